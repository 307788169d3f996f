"""The pages on the webhook name what there is, and the seed's values do what the seed says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml
from tests import tools
from tests.preflight.admission_cases import pod, send

from aicr.preflight import config_types, names
from aicr.preflight.admission.prepared import prepare
from aicr.preflight.config import CONTROLS, load

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "preflight"


def page(name: str) -> str:
    """The text of a page."""
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.covers("P-025", "P-084")
def test_the_configuration_page_has_every_key() -> None:
    """Each key of the file, of a check's own and of the coordination block, and the two thresholds."""
    text = page("configuration")
    keys = [*get_type_hints(config_types.PreflightFile), *CONTROLS]
    keys += get_type_hints(config_types.GangCoordination)
    assert [key for key in keys if f"`{key}`" not in text] == []
    assert "about 15 for PCIe and 150 for NVLink" in text
    patterns = yaml.safe_load((ROOT / "charts/preflight/values.yaml").read_text())
    for pattern in (*patterns["ncclEnvPatterns"], *patterns["volumeMountPatterns"]):
        assert f"`{pattern}`" in text
    for variable in ("NODE_NAME", "GANG_ID", "GANG_CONFIG_DIR", "MASTER_PORT", "POD_UID"):
        assert f"`{variable}`" in text


def test_the_webhook_page_names_what_people_look_for() -> None:
    """Annotation, label, results and series are spelt as the program spells them."""
    from aicr.preflight.server_metrics import GangFigures, Metrics

    text = page("webhook")
    metrics = Metrics()
    GangFigures(metrics.registry)
    found = set(re.findall(r"^# TYPE (preflight_\w+)", metrics.text()[0].decode(), re.MULTILINE))
    found -= {name for name in found if name.endswith("_created")}
    assert [name for name in sorted(found) if f"`{name}" not in text] == []
    assert names.CHECKS_ANNOTATION in text
    assert f"{names.OPT_IN_LABEL}={names.OPT_IN_VALUE}" in text


SINGLE_NODE = {
    "gangCoordination": {"enabled": False},
    "initContainers": [
        {
            "name": "preflight-dcgm-diag",
            "image": {"repository": "registry.example/preflight-dcgm-diag", "tag": ""},
            "env": [{"name": "DCGM_DIAG_LEVEL", "value": "2"}],
            "volumeMounts": [{"name": "nvsentinel-socket", "mountPath": "/var/run"}],
        }
    ],
}


def rendered(values: dict[str, Any], folder: Path) -> dict[tuple[str, str], Any]:
    """The chart's objects, by kind and name."""
    (folder / "values.json").write_text(json.dumps(values))
    done = subprocess.run(
        [tools.helm(), "template", "pf", str(ROOT / "charts" / "preflight"), "-n", "nvsentinel",
         "-f", str(folder / "values.json")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


@pytest.mark.covers("P-013", "P-017", "P-018", "P-019", "P-021", "P-022", "P-048")
def test_the_seeds_values_for_a_single_node_inject_that_one_check(tmp_path: Path) -> None:
    """A list in values replaces the built-in one; the empty tag is the release's; no gang env."""
    objects = rendered({**SINGLE_NODE, "global": {"image": {"tag": "v9"}}}, tmp_path)
    deployment = objects["Deployment", "preflight"]
    assert deployment["metadata"]["namespace"] == "nvsentinel"
    text = objects["ConfigMap", "preflight"]["data"]["config.yaml"]
    config, warnings = load(text, source="config.yaml")
    assert warnings == []
    reply = send(pod(), prepare(config))
    assert reply.order == ["preflight-dcgm-diag"]
    assert reply.check()["image"] == "registry.example/preflight-dcgm-diag:v9"
    env = reply.env()
    assert env["PLATFORM_CONNECTOR_SOCKET"] == "unix:///var/run/nvsentinel.sock"
    assert "GANG_ID" not in env
    assert "nvsentinel-socket" in reply.volumes
    default, _ = load(
        rendered({}, tmp_path)["ConfigMap", "preflight"]["data"]["config.yaml"], source="c"
    )
    assert default.gangs.enabled
    assert len(default.checks) == 3
