"""Criteria files, and who wins: flags, then the file, then the snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.recipe.conftest import Install
from tests.recipe.trees import V1, command, document, overlay, refused, snapshot
from tests.recipe.world import WORLD

from aicr.yamlio.read import load


def criteria(folder: Path, text: str, name: str = "criteria.yaml") -> str:
    """A criteria file."""
    path = folder / name
    path.write_text(text)
    return str(path)


def spec(**fields: Any) -> str:
    """A RecipeCriteria document."""
    return document("RecipeCriteria", V1, "mine", spec=fields)


def stated(out: str) -> dict[str, Any]:
    """The criteria of a printed recipe that are not any."""
    found: dict[str, Any] = load(out, source="out")["criteria"]
    return {key: value for key, value in found.items() if value != "any"}


@pytest.mark.covers("R11-22")
def test_words_of_a_file_are_folded(installed: Install, tmp_path: Path) -> None:
    """Mixed case and blanks are one spelling of the same word."""
    installed(WORLD)
    path = criteria(tmp_path, spec(service=" Eks ", accelerator="H100", intent="TRAINING"))
    ran = command("recipe", "--criteria", path)
    assert ran.status == 0
    assert stated(ran.out) == {"service": "eks", "accelerator": "h100", "intent": "training"}


@pytest.mark.covers("R11-22")
@pytest.mark.parametrize("field", ["service", "accelerator", "intent", "os", "platform"])
def test_a_bad_word_of_a_file_says_which_field_and_where(
    installed: Install, tmp_path: Path, field: str
) -> None:
    """The wrapper names the field, the cause the word, and the place is file:line:column."""
    installed(WORLD)
    text = f"kind: RecipeCriteria\napiVersion: aicr.run/v1\nspec:\n  {field}: zzz\n"
    path = criteria(tmp_path, text)
    ran = refused("recipe", "--criteria", path)
    assert ran.status == 2
    assert f"invalid {field} in criteria spec" in ran.err
    assert f"invalid {field} type: zzz" in ran.err
    assert f"where: {path}:4:{len(field) + 5}" in ran.err


@pytest.mark.parametrize(
    ("nodes", "message"),
    [("-1", "invalid nodes count: -1 (must be >= 0)"), ("abc", "invalid nodes count: abc"),
     ("true", "invalid nodes count"), ("2.5", "invalid nodes count: 2.5")],
)  # fmt: skip
def test_a_bad_node_count_of_a_file_is_refused(
    installed: Install, tmp_path: Path, nodes: str, message: str
) -> None:
    """Unlike the flag, a file's negative count is an error."""
    installed(WORLD)
    text = (
        f"kind: RecipeCriteria\napiVersion: aicr.run/v1\nspec: {{service: eks, nodes: {nodes}}}\n"
    )
    ran = refused("recipe", "--criteria", criteria(tmp_path, text))
    assert ran.status == 2
    assert message in ran.err


@pytest.mark.covers("R11-23")
@pytest.mark.parametrize(
    ("kind", "shown"), [("Foo", "Foo"), ("RecipeResult", "RecipeResult"), ("", "")]
)
def test_another_kind_is_refused(installed: Install, tmp_path: Path, kind: str, shown: str) -> None:
    """A criteria file says what it is."""
    installed(WORLD)
    path = criteria(tmp_path, document(kind, V1, spec={"service": "eks"}))
    ran = refused("recipe", "--criteria", path)
    assert ran.status == 2
    assert f'invalid kind "{shown}", expected "RecipeCriteria"' in ran.err
    assert f"where: {path}" in ran.err


@pytest.mark.covers("R11-24")
@pytest.mark.parametrize(
    ("api", "message"),
    [
        ("aicr.run/v1alpha2",
         'invalid apiVersion "aicr.run/v1alpha2", expected "aicr.run/v1" '
         "(aicr.run/v1alpha2 was retired in v1.0.0)"),
        ("aicr.run/v1alpha3",
         'invalid apiVersion "aicr.run/v1alpha3", expected "aicr.run/v1" '
         "(aicr.run/v1alpha3 was retired in v1.0.0)"),
        ("aicr.run/v1beta1", 'invalid apiVersion "aicr.run/v1beta1", expected "aicr.run/v1"'),
        ("example.com/v1", 'invalid apiVersion "example.com/v1", expected "aicr.run/v1"'),
    ],
)  # fmt: skip
def test_another_api_version_is_refused(
    installed: Install, tmp_path: Path, api: str, message: str
) -> None:
    """Retired versions say that they are retired."""
    installed(WORLD)
    text = document("RecipeCriteria", api, spec={"service": "eks"})
    ran = refused("recipe", "--criteria", criteria(tmp_path, text))
    assert ran.status == 2
    assert message in ran.err
    assert "write apiVersion: aicr.run/v1" in ran.err


@pytest.mark.covers("R11-24")
@pytest.mark.parametrize("api", [None, "", "aicr.nvidia.com/v1alpha1"])
def test_what_v0_11_wrote_is_read_with_one_notice(
    installed: Install, tmp_path: Path, api: str | None
) -> None:
    """Decisions 1 and 48: absent and old headers are accepted, where the newest original refuses."""
    installed(WORLD)
    text = document("RecipeCriteria", api, spec={"service": "eks"})
    ran = command("recipe", "--criteria", criteria(tmp_path, text))
    assert ran.status == 0
    assert ran.err.count("warning:") == 1
    assert 'read as "aicr.run/v1"' in ran.err
    assert stated(ran.out) == {"service": "eks"}


@pytest.mark.covers("R11-25")
def test_unknown_keys_are_ignored(installed: Install, tmp_path: Path) -> None:
    """bogus is nothing, and gpu is no other word for accelerator in a file."""
    installed(WORLD)
    path = criteria(tmp_path, spec(service="eks", bogus="x", gpu="h100"))
    ran = command("recipe", "--criteria", path)
    assert ran.status == 0
    assert stated(ran.out) == {"service": "eks"}


@pytest.mark.covers("R11-26")
def test_flags_win_over_the_file_field_by_field(installed: Install, tmp_path: Path) -> None:
    """service and os from flags, accelerator and intent from the file."""
    installed(WORLD)
    path = criteria(tmp_path, spec(service="eks", accelerator="h100", intent="training"))
    ran = command("recipe", "--criteria", path, "--service", "gke", "--os", "cos")
    assert ran.status == 0
    applied = load(ran.out, source="out")["metadata"]["appliedOverlays"]
    assert applied[-1] == "h100-gke-cos-training"


def test_a_flag_of_any_takes_a_word_of_the_file_back(installed: Install, tmp_path: Path) -> None:
    """`--intent any` is said on purpose, so the file's intent does not come back."""
    installed(WORLD)
    path = criteria(tmp_path, spec(service="eks", intent="training", nodes=4))
    ran = command("recipe", "--criteria", path, "--intent", "any")
    assert stated(ran.out) == {"service": "eks", "nodes": 4}


def test_json_is_read_by_extension(installed: Install, tmp_path: Path) -> None:
    """A .json file is JSON: what only YAML allows is refused there."""
    installed(WORLD)
    good = criteria(tmp_path, spec(service="eks"), "criteria.json")
    assert command("recipe", "--criteria", good).status == 0
    bad = criteria(tmp_path, "kind: RecipeCriteria\n", "bad.json")
    assert refused("recipe", "--criteria", bad).status == 2


@pytest.mark.parametrize(
    "text",
    ["", "[]", "eks", "kind: RecipeCriteria\napiVersion: aicr.run/v1\nspec: [eks]\n",
     "kind: RecipeCriteria\napiVersion: aicr.run/v1\nspec: {service: [eks]}\n",
     "kind: RecipeCriteria\napiVersion: aicr.run/v1\nspec: {service: 5}\n",
     "kind: RecipeCriteria\nkind: RecipeCriteria\n", "a: b: c\n", "{{ .Values }}\n"],
)  # fmt: skip
def test_a_misshapen_file_is_refused_in_words(
    installed: Install, tmp_path: Path, text: str
) -> None:
    """No shape of a file gets a traceback or is taken for no criteria."""
    installed(WORLD)
    ran = refused("recipe", "--criteria", criteria(tmp_path, text), "--service", "eks")
    assert ran.status == 2
    assert "criteria.yaml" in ran.err


def test_an_absent_file_is_not_found(installed: Install, tmp_path: Path) -> None:
    """Exit 3, with the nearest name in the folder."""
    installed(WORLD)
    criteria(tmp_path, spec(service="eks"))
    ran = refused("recipe", "--criteria", str(tmp_path / "criterai.yaml"))
    assert ran.status == 3
    assert "criteria file not found" in ran.err
    assert "criteria.yaml" in ran.err.partition("next:")[2]


def test_a_file_that_states_nothing_is_no_criteria(installed: Install, tmp_path: Path) -> None:
    """The guard counts what the file says too."""
    installed(WORLD)
    ran = refused("recipe", "--criteria", criteria(tmp_path, spec(service="any", nodes=0)))
    assert ran.status == 2
    assert "no criteria provided" in ran.err


def test_a_snapshot_fills_in_what_nobody_stated(installed: Install, tmp_path: Path) -> None:
    """Flag over file over snapshot; a flag that differs from the measured value is said aloud."""
    installed({**WORLD, "overlays/gke.yaml": overlay("gke", {"service": "gke"})})
    readings = {
        "K8s.node": {"provider": "eks"},
        "K8s.server": {"version": "v1.33.5-eks-3025e55"},
        "GPU.hardware": {"model": "NVIDIA H100 80GB HBM3"},
        "NodeTopology.summary": {"node-count": 7},
    }
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(snapshot(readings)))
    ran = command("recipe", "--snapshot", str(path), "--intent", "training")
    assert ran.status == 0
    assert stated(ran.out) == {
        "service": "eks",
        "accelerator": "h100",
        "intent": "training",
        "nodes": 7,
    }
    assert "snapshot " in ran.err
    assert "service=eks, accelerator=h100, nodes=7" in ran.err
    other = command(
        "recipe",
        "--snapshot",
        str(path),
        "--service",
        "gke",
        "--accelerator",
        "any",
        "--nodes",
        "3",
    )
    assert stated(other.out) == {"service": "gke", "nodes": 3}
    assert "--service gke overrides what the snapshot says (eks)" in other.err
