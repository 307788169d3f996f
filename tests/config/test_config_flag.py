"""`--config`: what the commands do with the file, who wins, and whom an error blames."""

from __future__ import annotations

import functools
import json
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.program import CRITERIA, EKS, Result, aicr
from tests.recipe import trees

INTERFACES = [{"interfaceName": f"eth{n}", "network": f"gpu-nic-{n}"} for n in range(1, 9)]


def config(folder: Path, name: str = "aicr.yaml", **spec: Any) -> Path:
    """A config file with sections; every leaf has a line of its own."""
    path = folder / name
    body = {"kind": "AICRConfig", "apiVersion": "aicr.run/v1beta1", "spec": spec}
    path.write_text(yaml.safe_dump(body, sort_keys=False), encoding="utf-8")
    return path


def criteria_of(found: Result) -> dict[str, Any]:
    """The criteria in a printed recipe."""
    assert found.status == 0, found.err
    criteria: dict[str, Any] = yaml.safe_load(found.out)["criteria"]
    return criteria


@pytest.fixture
def recipe_path(tmp_path: Path) -> Path:
    """A recipe in a file."""
    path = tmp_path / "recipe.yaml"
    assert aicr("recipe", *EKS, "-o", path).status == 0
    return path


def test_a_file_says_what_flags_say(tmp_path: Path) -> None:
    """The same recipe, byte for byte, from a file and from flags."""
    path = config(tmp_path, recipe={"criteria": {**CRITERIA, "nodes": 8}})
    found = aicr("recipe", "--config", path)
    assert found == aicr("recipe", *EKS, "--nodes", "8")


@pytest.mark.parametrize("command", [("query", "--selector", "deploymentOrder"), ("explain",)])
def test_query_and_explain_take_the_file_as_well(command: tuple[str, ...], tmp_path: Path) -> None:
    """Every command that resolves a recipe reads spec.recipe."""
    path = config(tmp_path, recipe={"criteria": CRITERIA})
    assert aicr(*command, "--config", path) == aicr(*command, *EKS)


def test_json_is_taken_as_yaml_is(tmp_path: Path) -> None:
    """A config is YAML or JSON."""
    body = {"kind": "AICRConfig", "apiVersion": "aicr.run/v1beta1"}
    path = tmp_path / "aicr.json"
    path.write_text(json.dumps({**body, "spec": {"recipe": {"criteria": CRITERIA}}}, indent="\t"))
    assert criteria_of(aicr("recipe", "--config", path))["service"] == "eks"


def test_a_flag_wins_over_the_file_and_says_so(tmp_path: Path) -> None:
    """Flag > config, word by word, with a line for each word that lost (spec 6.5)."""
    path = config(tmp_path, recipe={"criteria": {**CRITERIA, "nodes": 8}})
    found = aicr("recipe", "--config", path, "--accelerator", "gb200", "--os", " UBUNTU ")
    assert criteria_of(found) == {
        **CRITERIA,
        "accelerator": "gb200",
        "platform": "any",
        "nodes": 8,
    }
    assert found.lines[0] == (
        f"--accelerator gb200 wins over spec.recipe.criteria.accelerator h100 of {path}"
    )
    assert "--os" not in found.err


def test_a_criteria_file_stands_between_flags_and_config(tmp_path: Path) -> None:
    """--criteria is a flag, so its words win over those of the config, and lose against flags."""
    own = tmp_path / "criteria.yaml"
    own.write_text(
        "kind: RecipeCriteria\napiVersion: aicr.run/v1\nspec: {service: gke, os: cos, nodes: 3}\n"
    )
    path = config(tmp_path, recipe={"criteria": {**CRITERIA, "nodes": 8}})
    found = aicr("recipe", "--criteria", own, "--config", path)
    assert criteria_of(found)["service"] == "gke"
    assert criteria_of(found)["nodes"] == 3
    assert criteria_of(found)["accelerator"] == "h100"
    assert f"service gke of {own} wins over spec.recipe.criteria.service eks" in found.err


def snapshot(folder: Path) -> Path:
    """A snapshot that says EKS."""
    path = folder / "snapshot.yaml"
    found = trees.snapshot({"K8s.node": {"provider": "eks"}})
    path.write_text(yaml.safe_dump(found), encoding="utf-8")
    return path


def test_the_file_may_name_a_snapshot_and_flags_complete_it(tmp_path: Path) -> None:
    """input.snapshot is --snapshot."""
    path = config(tmp_path, recipe={"input": {"snapshot": str(snapshot(tmp_path))}})
    found = aicr("recipe", "--config", path, "--intent", "training")
    assert criteria_of(found)["service"] == "eks"


def test_the_file_wins_over_a_snapshot(tmp_path: Path) -> None:
    """Config > snapshot, and the warning says where the word stands."""
    words = {"service": "gke", "accelerator": "h100", "intent": "training", "os": "cos"}
    path = config(tmp_path, recipe={"criteria": words})
    found = aicr("query", "--config", path, "--snapshot", snapshot(tmp_path), "--selector", "")
    assert (
        f"spec.recipe.criteria.service gke of {path} overrides what the snapshot says (eks)"
        in found.err
    )


def test_any_in_the_file_states_nothing(tmp_path: Path) -> None:
    """A wildcard is no statement, as in a criteria file."""
    path = config(tmp_path, recipe={"criteria": {"service": "any", "platform": "", "nodes": 0}})
    aicr("recipe", "--config", path).refused(2, "no criteria provided")


def test_output_of_a_recipe_comes_from_the_file(tmp_path: Path) -> None:
    """output.path and output.format are flags of aicr recipe alone."""
    target = tmp_path / "recipe.json"
    output = {"path": str(target), "format": "json"}
    path = config(tmp_path, recipe={"criteria": CRITERIA, "output": output})
    assert aicr("recipe", "--config", path).out == ""
    assert json.loads(target.read_text())["kind"] == "RecipeResult"
    target.unlink()
    printed = aicr("recipe", "--config", path, "-o", "-", "--format", "yaml")
    assert printed.out.startswith("kind: RecipeResult")
    assert f"--output wins over spec.recipe.output.path of {path}" in printed.lines
    query = aicr("query", "--config", path, "--selector", "criteria.service")
    assert (query.out, target.exists()) == ("eks\n", False)


def test_typed_choices_come_from_the_file(tmp_path: Path) -> None:
    """configuration.* of the file is what the flags would be, lists included."""
    words = {"service": "gke", "accelerator": "h100", "intent": "training", "os": "cos"}
    path = config(
        tmp_path,
        recipe={
            "criteria": {**words, "platform": "kubeflow"},
            "profile": "gpuStack=gke-default",
            "configuration": {"gke": {"tcpxoInterfaces": INTERFACES}},
        },
    )
    found = yaml.safe_load(aicr("recipe", "--config", path).out)
    assert found["configuration"]["gke"]["tcpxoInterfaces"] == INTERFACES
    assert found["metadata"]["selectedProfile"]["value"] == "gke-default"
    other = ",".join(f"eth{n}=other-gpu-nic-{n}" for n in range(1, 9))
    flagged = aicr("recipe", "--config", path, "--gke-tcpxo-interfaces", other)
    assert "other-gpu-nic-8" in flagged.out
    assert "network: gpu-nic-8" not in flagged.out


def test_data_and_strictness_come_from_the_file(tmp_path: Path) -> None:
    """A word that --data teaches is taken, unless the file is strict, unless a flag is not."""
    data = trees.data(
        tmp_path / "data", {"overlays/mine.yaml": trees.overlay("mine", {"service": "mycloud"})}
    )
    section: dict[str, Any] = {"criteria": {"service": "mycloud"}, "data": str(data)}
    loose = config(tmp_path, "loose.yaml", recipe=section)
    strict = config(tmp_path, "strict.yaml", recipe={**section, "criteriaStrict": True})
    off = config(tmp_path, "off.yaml", recipe={**section, "criteriaStrict": False})
    assert aicr("recipe", "--config", loose).status == 0
    assert aicr("recipe", "--config", off).status == 0
    assert aicr("recipe", "--config", strict, "--no-criteria-strict").status == 0
    aicr("recipe", "--config", strict).refused(2, "invalid service type: mycloud", "strict.yaml:6:")
    aicr("recipe", "--config", off, "--criteria-strict").refused(2, "invalid service type: mycloud")
    aicr("recipe", "--no-criteria-strict", "--criteria-strict", *EKS).refused(2, "contradicts")


def test_the_environment_counts_where_neither_flag_nor_file_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AICR_CRITERIA_STRICT is a default; the file's false is a statement."""
    data = trees.data(
        tmp_path / "data", {"overlays/mine.yaml": trees.overlay("mine", {"service": "mycloud"})}
    )
    section: dict[str, Any] = {"criteria": {"service": "mycloud"}, "data": str(data)}
    monkeypatch.setenv("AICR_CRITERIA_STRICT", "1")
    silent = config(tmp_path, "silent.yaml", recipe=section)
    off = config(tmp_path, "off.yaml", recipe={**section, "criteriaStrict": False})
    aicr("recipe", "--config", silent).refused(2, "invalid service type: mycloud")
    assert aicr("recipe", "--config", off).status == 0


def bundle_config(folder: Path, recipe: Path, **more: Any) -> Path:
    """A config of a whole bundle run."""
    return config(
        folder,
        bundle={
            "input": {"recipe": str(recipe)},
            "output": {"target": str(folder / "out")},
            "deployment": {"deployer": "helm", "set": ["gpu-operator:toolkit.enabled=false"]},
            "scheduling": {
                "systemNodeSelector": {"pool": "system"},
                "acceleratedNodeTolerations": ["nvidia.com/gpu=present:NoSchedule"],
                "workloadGate": "gate=closed:NoSchedule",
                "nodes": 4,
                "storageClass": "gp3",
                **more,
            },
        },
    )


def bundle_values(folder: Path, component: str) -> str:
    """The values file of a component in the bundle."""
    (path,) = folder.glob(f"out/*-{component}/values.yaml")
    return path.read_text(encoding="utf-8")


def test_a_bundle_from_a_file_is_the_bundle_from_flags(tmp_path: Path, recipe_path: Path) -> None:
    """Every field of spec.bundle that has a flag has its effect."""
    folder = tmp_path / "filed"
    folder.mkdir()
    assert aicr("bundle", "--config", bundle_config(folder, recipe_path)).status == 0
    (tmp_path / "flags").mkdir()
    flags = aicr(
        *("bundle", "-r", recipe_path, "-o", tmp_path / "flags" / "out"),
        *("--set", "gpu-operator:toolkit.enabled=false", "--system-node-selector", "pool=system"),
        *("--accelerated-node-toleration", "nvidia.com/gpu=present:NoSchedule"),
        *("--workload-gate", "gate=closed:NoSchedule", "--nodes", "4", "--storage-class", "gp3"),
    )
    assert flags.status == 0, flags.err
    for path in sorted((tmp_path / "flags").rglob("*")):
        if path.is_file():
            other = folder / path.relative_to(tmp_path / "flags")
            assert other.read_bytes() == path.read_bytes(), other


def test_a_list_of_flags_replaces_the_list_of_the_file(tmp_path: Path, recipe_path: Path) -> None:
    """Lists and maps are never joined (spec 6.5)."""
    path = bundle_config(tmp_path, recipe_path)
    found = aicr(
        *("bundle", "--config", path, "--set", "gpu-operator:toolkit.enabled=true"),
        *("--system-node-selector", "role=infra"),
    )
    assert found.status == 0, found.err
    assert f"--set wins over spec.bundle.deployment.set of {path}" in found.lines
    assert [line for line in found.lines if line.startswith("set ")] == [
        "set gpu-operator:toolkit.enabled: true → true"
    ]
    values = bundle_values(tmp_path, "cert-manager")
    assert "role: infra" in values
    assert "pool: system" not in values


def test_an_empty_gate_on_the_command_line_masks_the_one_of_the_file(
    tmp_path: Path, recipe_path: Path
) -> None:
    """--workload-gate "" is a statement (bundler spec 1.2)."""
    path = bundle_config(tmp_path, recipe_path)
    assert aicr("bundle", "--config", path, "--workload-gate", "").status == 0
    assert "gate=closed" not in bundle_values(tmp_path, "nodewright-operator")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("storageClass", "", "spec.bundle.scheduling.storageClass must not be blank"),
        ("storageClass", "  ", "spec.bundle.scheduling.storageClass must not be blank"),
        ("sharedStorageClass", "A_b", 'invalid spec.bundle.scheduling.sharedStorageClass "A_b"'),
        ("systemNodeSelector", {"a b": "c"}, "invalid spec.bundle.scheduling.systemNodeSelector"),
        ("workloadGate", "gate", 'invalid spec.bundle.scheduling.workloadGate "gate"'),
        (
            "acceleratedNodeTolerations",
            ["a=b:Never"],
            'invalid spec.bundle.scheduling.acceleratedNodeTolerations "a=b:Never"',
        ),
    ],
)
def test_an_error_blames_the_place_in_the_file_and_no_flag(
    field: str, value: Any, words: str, tmp_path: Path, recipe_path: Path
) -> None:
    """A person who typed no flag hears of none; nothing is written."""
    path = bundle_config(tmp_path, recipe_path, **{field: value})
    lines = path.read_text().splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if text.strip().startswith(field)]
    found = aicr("bundle", "--config", path)
    found.refused(2, words)
    place = next(text for text in found.lines if text.startswith("  where: "))
    assert place.startswith((f"  where: {path}:{line}:", f"  where: {path}:{line + 1}:"))
    assert "--" not in found.err
    assert not (tmp_path / "out").exists()


def test_an_error_about_a_flag_still_blames_the_flag(tmp_path: Path, recipe_path: Path) -> None:
    """What was typed wins, also for the blame."""
    path = bundle_config(tmp_path, recipe_path)
    found = aicr("bundle", "--config", path, "--storage-class", " ")
    found.refused(2, "--storage-class must not be blank", "where: --storage-class")


@pytest.mark.parametrize(
    ("block", "field", "value", "flag"),
    [
        ("attestation", "oidcDeviceFlow", True, "--oidc-device-flow"),
        ("attestation", "fulcioURL", "https://fulcio.example", "--fulcio-url"),
    ],
)
def test_a_value_without_a_flag_is_refused_and_an_empty_one_is_not(
    block: str, field: str, value: Any, flag: str, tmp_path: Path, recipe_path: Path
) -> None:
    """Nothing that the file asks for is lost unseen; what asks for nothing is fine."""
    sections: dict[str, dict[str, Any]] = {
        "input": {"recipe": str(recipe_path)},
        "output": {"target": str(tmp_path / "out")},
    }
    for found, ended in ((value, 2), (type(value)(), 0)):
        blocks = {**sections, block: {**sections.get(block, {}), field: found}}
        ran = aicr("bundle", "--config", config(tmp_path, bundle=blocks))
        assert ran.status == ended, ran.err
        assert (tmp_path / "out").exists() == (ended == 0)
        if ended:
            assert f"spec.bundle.{block}.{field} is set" in ran.err
            assert f"has no {flag}" in ran.err


def test_the_data_of_the_recipe_is_the_data_of_its_bundle(tmp_path: Path) -> None:
    """A recipe made with a directory is bundled with it, from one file."""
    data = trees.data(
        tmp_path / "data",
        {
            "registry.yaml": trees.registry(trees.entry("mine")),
            "overlays/mine.yaml": trees.overlay(
                "mine", {"service": "mycloud"}, componentRefs=[trees.chart("mine")]
            ),
        },
    )
    path = config(
        tmp_path,
        recipe={
            "criteria": {"service": "mycloud"},
            "data": str(data),
            "output": {"path": str(tmp_path / "recipe.yaml")},
        },
        bundle={
            "input": {"recipe": str(tmp_path / "recipe.yaml")},
            "output": {"target": str(tmp_path / "out")},
        },
    )
    assert aicr("recipe", "--config", path).status == 0
    assert aicr("bundle", "--config", path).status == 0
    assert (tmp_path / "out" / "data" / "overlays" / "mine.yaml").is_file()


def test_without_its_section_a_command_says_that_the_file_has_no_effect(tmp_path: Path) -> None:
    """A config for another command is a mistake that should be seen."""
    path = config(tmp_path, verify={"policy": {"minTrustLevel": "max"}})
    found = aicr("recipe", "--config", path, *EKS)
    assert found.status == 0
    assert f"warning: {path} has no spec.recipe, which is what aicr recipe reads" in found.lines


def test_a_bundle_without_a_recipe_names_the_field(tmp_path: Path) -> None:
    """Who uses a file is told of the field."""
    path = config(tmp_path, bundle={"output": {"target": "out"}})
    aicr("bundle", "--config", path).refused(2, "flag --recipe", "spec.bundle.input.recipe")


def test_explain_says_where_in_the_file_a_value_stands(tmp_path: Path) -> None:
    """Values that a bundle would get from the file have its place, and --nodes counts."""
    path = config(
        tmp_path,
        recipe={"criteria": CRITERIA},
        bundle={
            "deployment": {"set": ["nfd:a=1", "gpuoperator:driver.enabled=false"]},
            "scheduling": {"nodes": 7},
        },
    )
    words = ["explain", "--config", path, "gpu-operator:driver.enabled", "--format", "json"]
    (item,) = json.loads(aicr(*words).out)["items"]
    assert item["value"] is False
    assert item["steps"][-1]["where"] == f"{path}:14:9"
    found = aicr(*words[:3], "nodewright-operator:estimatedNodeCount", "--format", "json")
    (item,) = json.loads(found.out)["items"]
    assert item["value"] == 7


def test_the_list_takes_criteria_as_filters(tmp_path: Path) -> None:
    """aicr recipe list reads criteria and data of the file."""
    path = config(tmp_path, recipe={"criteria": CRITERIA, "output": {"format": "xml"}})
    rows = json.loads(aicr("recipe", "list", "--config", path, "--format", "json").out)
    assert rows
    assert all(CRITERIA.items() <= row["criteria"].items() for row in rows)
    wider = aicr("recipe", "list", "--config", path, "--os", "any", "--format", "json")
    assert len(json.loads(wider.out)) > len(rows)


@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        ("cm://ns/name", 2, "ConfigMaps are not read"),
        ("absent.yaml", 3, "config file not found: absent.yaml"),
        ("", 2, "config file: the name is empty"),
        (".", 2, "config file . is a folder"),
    ],
)
def test_a_source_that_cannot_be_read_is_refused(
    source: str, status: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File or http(s); a ConfigMap is not a source (spec 6.5)."""
    monkeypatch.chdir(tmp_path)
    for command in ("recipe", "query", "explain", "bundle"):
        aicr(command, "--config", source).refused(status, words)
    aicr("recipe", "list", "--config", source).refused(status, words)


def test_an_address_is_a_source(tmp_path: Path) -> None:
    """http(s) is read as a file is, and errors name the address (spec 6.5)."""
    config(tmp_path, recipe={"criteria": CRITERIA})
    config(tmp_path, "wrong.yaml", recipe={"criteria": {**CRITERIA, "service": "ekss"}})
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            assert criteria_of(aicr("recipe", "--config", f"{address}/aicr.yaml"))
            wrong = aicr("recipe", "--config", f"{address}/wrong.yaml")
            wrong.refused(2, "invalid service type: ekss", f"{address}/wrong.yaml:6:")
            absent = aicr("recipe", "--config", f"{address}/absent.yaml")
            absent.refused(3, f"config file not found: {address}/absent.yaml")
        finally:
            server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and keeps silent about it."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def test_the_file_is_named_once(tmp_path: Path) -> None:
    """--config is a single-value flag (bundler spec 1.1)."""
    path = config(tmp_path, recipe={"criteria": CRITERIA})
    aicr("recipe", "--config", path, "--config", path).refused(2, "can only be specified once")


def test_an_old_header_is_said_to_be_old(tmp_path: Path) -> None:
    """One deprecation line, and the file counts (decision 48)."""
    path = config(tmp_path, recipe={"criteria": CRITERIA})
    path.write_text(path.read_text().replace("aicr.run/v1beta1", "aicr.nvidia.com/v1alpha1"))
    found = aicr("recipe", "--config", path)
    assert found.status == 0
    assert found.lines[0].startswith(f"warning: {path}: AICRConfig has apiVersion")
