"""Our bundles through kubeconform, which is built from Go modules.

`make test-tools` builds it and runs these; other runs leave them out, since the first build takes
minutes. Nothing here needs a network or a cluster once the program is there.
"""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
from tests import tools_build
from tests.bundle.sample_plans import CONFIG_MAP
from tests.deployers import gitops_crds, parse_back
from tests.deployers.built_tools import built
from tests.deployers.test_argocd_flux_fleet_catalogue import RECIPES, written

pytestmark = pytest.mark.tools

#: Kubernetes release whose schemas judge what our own charts render.
KUBERNETES: Final = "v1.36.0"
#: Kinds of it that our charts may render; another one would be found as skipped.
KINDS: Final = ("configmap-v1", "daemonset-apps-v1", "namespace-v1", "resourcequota-v1")


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of schemas as kubeconform looks for them: Kubernetes' own, and those of our CRDs."""
    folder = tmp_path_factory.mktemp("schemas")
    found = find_spec("kubernetes_validate")
    assert found is not None
    assert found.origin is not None
    own = Path(found.origin).parent / "kubernetes-json-schema" / f"{KUBERNETES}-local-strict"
    shared = json.loads((own / "_definitions.json").read_text().replace(*_INLINE))["$defs"]
    for name in KINDS:
        text = (own / f"{name}.json").read_text().replace(*_INLINE)
        (folder / f"{name}.json").write_text(json.dumps({**json.loads(text), "$defs": shared}))
    for definition in gitops_crds.definitions().values():
        spec = definition["spec"]
        version = spec["versions"][0]
        name = f"{spec['names']['kind'].lower()}-{spec['group'].split('.')[0]}-{version['name']}"
        schema = _closed(version["schema"]["openAPIV3Schema"])
        (folder / f"{name}.json").write_text(json.dumps(schema))
    return folder


#: kubeconform resolves no reference to another local file, so all definitions go into each schema.
_INLINE: Final = ("/api/_definitions.json#", "#")


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with no room for fields that it does not name, as strict validation reads it."""
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {key: _closed(held) for key, held in made["properties"].items()}
        made["additionalProperties"] = False
    if "items" in made:
        made["items"] = _closed(made["items"])
    return made


def kubeconform(schemas: Path, text: str) -> list[dict[str, Any]]:
    """What kubeconform says of each object."""
    location = f"{schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    done = subprocess.run(
        [
            *(built("kubeconform"), "-strict", "-output", "json", "-verbose"),
            *("-schema-location", location, "-ignore-missing-schemas"),
        ],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout, done.stderr
    # A chart that renders nothing gives one entry without a kind and a status.
    return [each for each in json.loads(done.stdout)["resources"] if each["status"]]


def test_the_programs_are_of_the_pinned_releases() -> None:
    """What the report of a run names is what was built."""
    done = subprocess.run(
        [built("kubeconform"), "-v"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == tools_build.TOOLS["kubeconform"].version


@pytest.mark.parametrize("deployer", ["argocd", "flux", "fleet"])
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_kubeconform_accepts_every_object_of_a_gitops_bundle(
    schemas: Path, tmp_path: Path, name: str, deployer: str
) -> None:
    """No object without a schema, none that does not fit it."""
    bundle = written(name, deployer, tmp_path / "b")
    if deployer == "argocd":
        paths = [bundle / "app-of-apps.yaml", *sorted(bundle.glob("*/application.yaml"))]
    elif deployer == "flux":
        listed = parse_back.document(bundle / "kustomization.yaml")["resources"]
        paths = [bundle / path for path in listed]
    else:
        paths = [bundle / "gitrepo.yaml"]
    found = kubeconform(schemas, "\n---\n".join(path.read_text() for path in paths))
    assert len(found) == len(paths)
    assert [each for each in found if each["status"] != "statusValid"] == []


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_kubeconform_accepts_what_our_own_charts_render(
    schemas: Path, tmp_path: Path, name: str
) -> None:
    """Objects of Kubernetes are valid; those of a component's own CRDs have no schema here."""
    bundle = written(name, "helm", tmp_path / "b")
    found: list[dict[str, Any]] = []
    for folder in sorted(path.parent for path in bundle.glob("*/Chart.yaml")):
        done = parse_back.run_helm("template", "release", str(folder))
        assert done.returncode == 0, done.stderr
        found += kubeconform(schemas, done.stdout)
    for each in found:
        served_by_crd = "." in each["version"].partition("/")[0]
        allowed = ("statusValid", "statusSkipped") if served_by_crd else ("statusValid",)
        assert each["status"] in allowed, each
    assert any(each["status"] == "statusValid" for each in found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CONFIG_MAP.replace("data:", "datas:"), "datas"),
        (
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata:\n  name: a\n"
            "spec:\n  interval: 5m\n  link: https://charts.example.com\n",
            "link",
        ),
    ],
)
def test_kubeconform_refuses_a_wrong_field(schemas: Path, text: str, words: str) -> None:
    """A check that finds nothing proves nothing."""
    (found,) = kubeconform(schemas, text)
    assert found["status"] == "statusInvalid"
    assert words in found["msg"]
