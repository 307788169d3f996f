"""Constraints are checked when the tree is loaded: paths that exist, expressions that parse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import catalog, constraint, innermost, mixin, overlay, refusal

from aicr.errors import AicrError

Place = Callable[[dict[str, str]], dict[str, str]]


def _profile(key: str) -> Place:
    def at(found: dict[str, str]) -> dict[str, str]:
        values = {"a": {key: [found]}}
        return {"overlays/x.yaml": overlay(
            "x", profile={"name": "p", "default": "a", "values": values}
        )}  # fmt: skip

    return at


PLACES: dict[str, Place] = {
    "constraints": lambda c: {"overlays/x.yaml": overlay("x", constraints=[c])},
    "readiness": lambda c: {
        "overlays/x.yaml": overlay("x", validation={"readiness": {"constraints": [c]}})
    },
    "mixin": lambda c: {"mixins/x.yaml": mixin("x", constraints=[c])},
    "profile": _profile("constraints"),
    "profile readiness": _profile("readinessConstraints"),
}


def lint(folder: Path, place: str, name: str, value: str = ">= 1.30") -> AicrError:
    """The refusal of a tree with this constraint at a place."""
    return refusal(lambda: catalog(folder, PLACES[place](constraint(name, value))))


@pytest.mark.covers("R11-62")
@pytest.mark.parametrize("place", PLACES)
def test_a_misspelt_subtype_is_refused_wherever_a_constraint_may_stand(
    tmp_path: Path, place: str
) -> None:
    """The nearest name is offered, and the place is file:line:column."""
    error = lint(tmp_path, place, "K8s.serverr.version")
    assert error.code == "INVALID_REQUEST"
    expected = 'unknown subtype "serverr" for measurement type "K8s"; did you mean "server"?'
    assert innermost(error).message.startswith(expected)
    assert "/x.yaml:" in error.where


@pytest.mark.parametrize("place", PLACES)
def test_a_good_constraint_is_kept_wherever_it_may_stand(tmp_path: Path, place: str) -> None:
    """The check changes nothing."""
    catalog(tmp_path, PLACES[place](constraint("K8s.server.version", ">= 1.30")))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("K8s.server.versoin", ">= 1", 'unknown key "versoin"'),
        ("K8s.zzzzzzzz.version", ">= 1", 'unknown subtype "zzzzzzzz" for measurement type "K8s"'),
        ("K9s.server.version", ">= 1", "invalid measurement type in constraint path"),
        ("K8s", ">= 1", "invalid constraint path: expected format"),
        ("NetworkTopology.pfs.rail", ">= 1", "exposes no scalar readings"),
        ("K8s.server[0].version", ">= 1", "has no items"),
        ("K8s.server.version", "", "constraint expression cannot be empty"),
        ("K8s.server.version", ">=", "constraint value cannot be empty after operator"),
        ("K8s.server.version", "!1.30", "bare '!' prefix is invalid"),
        ("NodeTopology.gpu-nodes.label", "no equals", "invalid node-set constraint value"),
    ],
)
def test_every_way_to_misspell_a_constraint_is_refused(
    tmp_path: Path, name: str, value: str, message: str
) -> None:
    """A path that no collector answers would exclude its overlay for ever, without a word."""
    error = lint(tmp_path, "constraints", name, value)
    assert error.code == "INVALID_REQUEST"
    assert f'constraint "{name}" with value "{value}" is refused' in error.message
    assert message in innermost(error).message


def test_constraints_of_other_phases_name_metrics(tmp_path: Path) -> None:
    """They are not readings of a snapshot, so any name goes."""
    phases: dict[str, Any] = {
        phase: {"constraints": [constraint("nccl-all-reduce-bw", ">= 300")]}
        for phase in ("deployment", "performance", "conformance")
    }
    found = catalog(tmp_path, {"overlays/x.yaml": overlay("x", validation=phases)})
    validation = found.overlays["x"]["spec"]["validation"]
    assert validation["performance"]["constraints"][0]["name"] == "nccl-all-reduce-bw"
