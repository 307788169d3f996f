from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, plan_of

from aicr.artifacts import checksums
from aicr.bundle import deployers, layout, output
from aicr.bundle.deployers import helm
from aicr.errors import AicrError
from aicr.yamlio import read

ROOT = Path(__file__).resolve().parents[2]


def sample() -> dict[str, tuple[bytes, int]]:
    """The files of a bundle with every kind of folder."""
    plan = plan_of(
        chart("b", values={"z": 1, "a": {"y": "1e3", "x": [1, "on"]}}),
        component("a", manifests=[("m.yaml", CONFIG_MAP)], pre_manifests=[("p.yaml", CONFIG_MAP)]),
        notes=("Warning: one",),
    )
    return helm.generate(plan, layout.folders(plan))


@pytest.mark.covers("B10-3", "C-099")
@pytest.mark.parametrize("text", ["helm", " HELM ", "Helm", ""])
def test_deployer_names_ignore_case_and_blanks(text: str) -> None:
    """Nothing means helm (bundler spec 1.1)."""
    assert deployers.canonical_name(text) == "helm"
    loaded: object = deployers.load(text)
    assert loaded is helm


@pytest.mark.covers("B10-4")
@pytest.mark.parametrize("text", ["kustomize", "helmm", "../helm"])
def test_an_unknown_deployer_is_refused_with_the_valid_names(text: str) -> None:
    """The valid names are listed in order (1.1)."""
    with pytest.raises(AicrError) as caught:
        deployers.load(text)
    assert caught.value.code == "INVALID_REQUEST"
    assert ", ".join(deployers.names()) in caught.value.message


def test_every_registered_deployer_can_be_loaded() -> None:
    """The table names modules that exist and offer what the protocol asks."""
    for name in deployers.names():
        loaded = deployers.load(name)
        assert callable(loaded.generate)
        assert loaded.BUILD_TYPE
        assert loaded.STEPS


def test_the_file_set_is_complete() -> None:
    """Folders, script, page, recipe, info and checksums, and nothing else (2.9, 5.1)."""
    assert sorted(sample()) == [
        "001-b/cluster-values.yaml",
        "001-b/install.sh",
        "001-b/upstream.env",
        "001-b/values.yaml",
        "002-a-pre/Chart.yaml",
        "002-a-pre/cluster-values.yaml",
        "002-a-pre/install.sh",
        "002-a-pre/templates/p.yaml",
        "002-a-pre/values.yaml",
        "003-a/Chart.yaml",
        "003-a/cluster-values.yaml",
        "003-a/install.sh",
        "003-a/templates/m.yaml",
        "003-a/values.yaml",
        "README.md",
        "bundle-info.yaml",
        "checksums.txt",
        "deploy.sh",
        "recipe.yaml",
    ]


def test_a_written_bundle_verifies(tmp_path: Path) -> None:
    """What is generated, written and verified agree (7.2)."""
    output.write_bundle(sample(), str(tmp_path / "out"))
    assert checksums.verify_tree(str(tmp_path / "out")) == []


@pytest.mark.covers("B10-78", "F10")
@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"},
    ],
)
def test_equal_input_gives_equal_bytes(tmp_path: Path, env: dict[str, str]) -> None:
    """Hash seed, time zone, locale, umask and folder change no byte and no mode (decision 3)."""
    code = (
        "import os, sys; os.umask(int(sys.argv[2], 8)); "
        "from tests.bundle.test_helm_deployer import sample; "
        "from aicr.bundle import output; output.write_bundle(sample(), sys.argv[1])"
    )
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out"), "077"],
        env={**env, "PYTHONPATH": path, "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        check=True,
    )
    for name, (data, mode) in sample().items():
        written = tmp_path / "out" / name
        assert written.read_bytes() == data
        assert written.stat().st_mode & 0o777 == mode
    everything = b"".join(data for data, _ in sample().values())
    assert str(tmp_path).encode() not in everything
    assert str(ROOT).encode() not in everything


def test_inputs_are_not_changed() -> None:
    """Values, refs and the recipe are as they were."""
    values: dict[str, Any] = {"a": {"b": [1, {"c": None}]}}
    plan = plan_of(chart("x", values=values))
    recipe = copy.deepcopy(plan.recipe)
    helm.generate(plan, layout.folders(plan))
    assert values == {"a": {"b": [1, {"c": None}]}}
    assert recipe == plan.recipe


@pytest.mark.parametrize(
    ("name", "values", "managed"),
    [
        ("gpu-operator", {}, True),
        ("gpu-operator", {"driver": {"enabled": True}}, True),
        ("gpu-operator", {"driver": {}}, True),
        ("gpu-operator", {"driver": {"enabled": False}}, False),
        ("gpu-operator-ocp", {}, True),
        ("other", {}, False),
    ],
)
def test_the_operator_manages_the_driver_unless_told_otherwise(
    name: str, values: dict[str, Any], managed: bool
) -> None:
    """A missing driver.enabled means yes (4.2)."""
    plan = plan_of(chart(name, values=values))
    assert helm.script_facts(plan, layout.folders(plan)).driver_managed is managed


def test_values_files_read_back_as_the_values() -> None:
    """What helm reads is what was planned, strings that look like numbers included."""
    text = sample()["001-b/values.yaml"][0].decode()
    assert read.load(text, source="values.yaml") == {
        "a": {"x": [1, "on"], "y": "1e3"},
        "z": 1,
    }
