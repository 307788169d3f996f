"""Profiles: choosing a value, what it sets and owns, and what a snapshot has to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.conftest import Install
from tests.recipe.trees import (
    base,
    catalog,
    chart,
    command,
    constraint,
    overlay,
    refs_of,
    refusal,
    refused,
    resolved,
    snapshot,
)

from aicr.errors import AicrError
from aicr.recipe.profile import owned_paths, parse_selection
from aicr.recipe.recipe import Recipe

SERVER = "K8s.server.version"
GPU_NODES = "NodeTopology.gpu-nodes.label"
LABEL = "gke-no-default-nvidia-gpu-device-plugin"


def value(enabled: bool, **more: Any) -> dict[str, Any]:
    """A value that sets the device plugin and the driver."""
    overrides = {"devicePlugin": {"enabled": enabled}, "driver": {"env": [1] if enabled else None}}
    return {"componentRefs": [{"name": "gpu-operator", "overrides": overrides}], **more}


STACK: dict[str, Any] = {
    "name": "gpuStack",
    "default": "gke-default",
    "values": {
        "gke-default": value(False, advertiser="external",
                             readinessConstraints=[constraint(GPU_NODES, f"!{LABEL}")]),
        "bundle-installer": value(True, readinessConstraints=[
            constraint(GPU_NODES, f"{LABEL}=true")
        ]),
    },
}  # fmt: skip


def files(profile: dict[str, Any] | None = None, **more: str) -> dict[str, str]:
    """gke declares the profile, eks declares none."""
    gpu = chart("gpu-operator", overrides={"driver": {"version": "1"}, "enabled": True})
    return {
        "overlays/base.yaml": base(
            componentRefs=[gpu], constraints=[constraint(SERVER, ">= 1.30")]
        ),
        "overlays/gke.yaml": overlay("gke", {"service": "gke"}, profile=profile or STACK),
        "overlays/eks.yaml": overlay("eks", {"service": "eks"}),
        **more,
    }


def made(
    folder: Path, selection: str = "", *, profile: dict[str, Any] | None = None, **options: Any
) -> Recipe:
    """The gke recipe with a profile selection."""
    found = catalog(folder, files(profile))
    return resolved(found, service="gke", options={"profile": selection, **options})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ("", "")), ("a=b", ("a", "b")), ("A.-_1=2", ("A.-_1", "2"))],
)
def test_a_selection_is_name_and_value(text: str, expected: tuple[str, str]) -> None:
    """Nothing selected is a pair of empty texts."""
    assert parse_selection(text) == expected


@pytest.mark.covers("R11-68")
@pytest.mark.parametrize("text", ["gpuStack", "a=b=c", "a==b"])
def test_another_form_is_refused(text: str) -> None:
    """Exactly one equals sign."""
    error = refusal(lambda: parse_selection(text))
    assert error.code == "INVALID_REQUEST"
    assert error.message == "profile must use the exact name=value form"


@pytest.mark.covers("R11-68")
@pytest.mark.parametrize("text", ["=x", "x=", "=", "a b=c", "a=b c", "ä=b", "a=b\n", " a=b"])
def test_other_characters_are_refused(text: str) -> None:
    """Name and value are identifiers; nothing is trimmed."""
    error = refusal(lambda: parse_selection(text))
    assert error.message == "profile name and value must match [A-Za-z0-9._-]+"


@pytest.mark.covers("R11-68")
@pytest.mark.parametrize(
    ("service", "selection", "message"),
    [
        ("gke", "gpuStack", "profile must use the exact name=value form"),
        ("gke", "=x", "profile name and value must match [A-Za-z0-9._-]+"),
        ("gke", "gpuStack=nope",
         'profile "gpuStack" has no value "nope"; valid values: [bundle-installer, gke-default]'),
        ("gke", "gpuStack=GKE-DEFAULT",
         'profile "gpuStack" has no value "GKE-DEFAULT"; valid values: '
         "[bundle-installer, gke-default]"),
        ("gke", "driver=gke-default",
         'resolved composition declares profile "gpuStack", not "driver"'),
        ("eks", "gpuStack=gke-default",
         'profile "gpuStack=gke-default" was selected, but the resolved composition declares no '
         "profile"),
    ],
)  # fmt: skip
def test_the_command_line_refuses_a_selection_that_means_nothing(
    installed: Install, tmp_path: Path, service: str, selection: str, message: str
) -> None:
    """Exit 2, and nothing is written."""
    installed(files())
    target = tmp_path / "recipe.yaml"
    ran = refused("recipe", "--service", service, "--profile", selection, "-o", str(target))
    assert ran.status == 2
    assert message in ran.err
    assert not target.exists()


def test_the_default_applies_without_a_selection(tmp_path: Path) -> None:
    """And selecting it by name gives the same bytes."""
    recipe = made(tmp_path / "a")
    selected = recipe.document["metadata"]["selectedProfile"]
    assert selected == {
        "name": "gpuStack",
        "value": "gke-default",
        "advertiser": "external",
        "ownedPaths": {"gpu-operator": ["devicePlugin.enabled", "driver.env", "enabled"]},
    }
    assert list(selected) == ["name", "value", "advertiser", "ownedPaths"]
    assert recipe.document["apiVersion"] == "aicr.run/v1beta2"
    assert made(tmp_path / "b", "gpuStack=gke-default").to_yaml() == recipe.to_yaml()


def test_overrides_are_laid_over_all_overlays(tmp_path: Path) -> None:
    """Deeply, last, nulls kept; what the value does not set stays."""
    before = refs_of(made(tmp_path / "a"))["gpu-operator"]["overrides"]
    assert before == {
        "driver": {"version": "1", "env": None},
        "enabled": True,
        "devicePlugin": {"enabled": False},
    }
    other = made(tmp_path / "b", "gpuStack=bundle-installer")
    after = refs_of(other)["gpu-operator"]["overrides"]
    assert after["devicePlugin"] == {"enabled": True}
    assert after["driver"] == {"version": "1", "env": [1]}
    assert "advertiser" not in other.document["metadata"]["selectedProfile"]


def test_readiness_constraints_join_the_phase(tmp_path: Path) -> None:
    """After those that are there."""
    recipe = made(tmp_path)
    readiness = recipe.document["validation"]["readiness"]
    assert readiness == {"constraints": [constraint(GPU_NODES, f"!{LABEL}")]}


def test_a_recipe_without_profile_has_none(tmp_path: Path) -> None:
    """And stays on the stable track."""
    document = resolved(catalog(tmp_path, files()), service="eks").document
    assert "selectedProfile" not in document["metadata"]
    assert document["apiVersion"] == "aicr.run/v1"


def test_two_declarations_in_one_composition_are_refused(tmp_path: Path) -> None:
    """Whichever overlays they come from, they are named in merge order."""
    found = catalog(
        tmp_path,
        files() | {"overlays/more.yaml": overlay("more", {"service": "gke", "os": "cos"}, base="gke",
                                                 profile=STACK)},
    )  # fmt: skip
    error = refusal(lambda: resolved(found, service="gke", os="cos"))
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        "resolved composition has multiple profile declarations from [gke, more]"
    )


@pytest.mark.parametrize("refs", [[chart("other")], [
    chart("gpu-operator", overrides={"enabled": False})
]])  # fmt: skip
def test_a_component_that_is_not_deployed_cannot_be_set(
    tmp_path: Path, refs: list[dict[str, Any]]
) -> None:
    """Absent or disabled, the choice would have no effect."""
    found = catalog(tmp_path, files() | {"overlays/base.yaml": base(componentRefs=refs)})
    error = refusal(lambda: resolved(found, service="gke"))
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        'profile "gpuStack" references component "gpu-operator", which is not enabled in the '
        "surviving composition"
    )


def test_a_readiness_constraint_that_is_already_there_collides(tmp_path: Path) -> None:
    """Readiness constraints are not intersected."""
    phases = {"readiness": {"constraints": [constraint(GPU_NODES, "x=y")]}}
    found = catalog(
        tmp_path,
        files() | {"overlays/leaf.yaml": overlay("leaf", {"service": "gke"}, base="gke",
                                                 validation=phases)},
    )  # fmt: skip
    error = refusal(lambda: resolved(found, service="gke"))
    assert error.message == (
        f'profile gpuStack=gke-default adds readiness constraint "{GPU_NODES}", which is already '
        f"there"
    )


def tightening(mine: str) -> dict[str, Any]:
    """A profile whose only value states a constraint of the recipe again."""
    return {"name": "p", "default": "a",
            "values": {"a": {"constraints": [constraint(SERVER, mine, unit="v")]}}}  # fmt: skip


@pytest.mark.parametrize(
    ("mine", "result"),
    [
        (">= 1.30", ">= 1.30"),
        (">= 1.32", ">= 1.32"),
        (">= 1.28", ">= 1.30"),
        ("< 1.34", ">= 1.30 < 1.34"),
        (">= 1.31 < 1.34", ">= 1.31 < 1.34"),
        ("== 1.33", "== 1.33"),
        ("!= 1.31", ">= 1.30 != 1.31"),
        (">= 1.31 < 1.32 || >= 1.33", ">= 1.31 < 1.32 || >= 1.33"),
    ],
)
def test_a_constraint_that_is_already_there_is_tightened(
    tmp_path: Path, mine: str, result: str
) -> None:
    """The intersection, never wider than either; the rest of the entry stays as it was."""
    recipe = made(tmp_path, profile=tightening(mine))
    assert recipe.document["constraints"] == [constraint(SERVER, result)]


@pytest.mark.parametrize("mine", ["< 1.29", "== 1.20", ">= 1.30.4", "1.33", "< 1.30"])
def test_a_constraint_that_cannot_be_tightened_is_refused(tmp_path: Path, mine: str) -> None:
    """Nothing in common, other precision, or text against version."""
    error = refusal(lambda: made(tmp_path, profile=tightening(mine)))
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        f'profile p=a cannot tighten constraint "{SERVER}" from ">= 1.30" by "{mine}"'
    )
    assert len(error.chain()) > 1


def test_a_new_constraint_joins_the_recipe(tmp_path: Path) -> None:
    """Whole, and sorted in."""
    added = constraint("GPU.hardware.model", "H100", remediation="buy one")
    profile = {"name": "p", "default": "a", "values": {"a": {"constraints": [added]}}}
    recipe = made(tmp_path, profile=profile)
    assert recipe.document["constraints"] == [added, constraint(SERVER, ">= 1.30")]


def gke(universe: str, **more: str) -> dict[str, Any]:
    """A snapshot of a GKE cluster with these GPU nodes and labels."""
    return snapshot({
        "K8s.server": {"version": "1.33.0"},
        "K8s.node": {"provider": "gke"},
        "NodeTopology.label": {"cloud.google.com/gke-accelerator": universe, **more},
    })  # fmt: skip


@pytest.mark.covers("R11-67", "A11", "V-016")
def test_with_a_snapshot_a_profile_must_hold_now(tmp_path: Path) -> None:
    """One GPU pool carries the label: gke-default fails, and the other value is named."""
    labelled = gke("nvidia-h100|n1,n2,n3", **{LABEL: "true|n1"})
    error = refusal(lambda: made(tmp_path / "a", snapshot=labelled))
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith(f'profile gpuStack=gke-default constraint "{GPU_NODES}" failed')
    assert f"1 of 3 GPU node(s) carry label {LABEL}: n1" in error.message
    assert error.hint == "other values: bundle-installer"
    error = refusal(lambda: made(tmp_path / "b", "gpuStack=bundle-installer", snapshot=labelled))
    assert f"2 of 3 GPU node(s) missing {LABEL}=true: n2,n3" in error.message
    made(tmp_path / "c", snapshot=gke("nvidia-h100|n1,n2,n3"))


@pytest.mark.covers("R11-67", "V-017")
def test_without_a_snapshot_the_check_is_left_to_the_gate(tmp_path: Path) -> None:
    """Nothing is known yet, so nothing is refused."""
    assert made(tmp_path).document["metadata"]["selectedProfile"]["value"] == "gke-default"


@pytest.mark.parametrize(
    "found",
    [
        snapshot({"K8s.server": {"version": "1.33.0"}, "K8s.node": {"provider": "gke"}}),
        snapshot({"K8s.server": {"version": "1.33.0"}, "K8s.node": {"provider": "gke"},
                  "NodeTopology.label": {"a": "b|n1"}}),
        snapshot({"K8s.server": {"version": "1.33.0"}}),
    ],
)  # fmt: skip
def test_an_unavailable_reading_fails_closed(tmp_path: Path, found: dict[str, Any]) -> None:
    """No labels, no GPU node, or no service: could not tell is no pass."""
    error = refusal(lambda: made(tmp_path, snapshot=found))
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        f'profile gpuStack=gke-default cannot be validated because reading "{GPU_NODES}" is '
        f"unavailable"
    )


def test_a_profile_whose_overlay_was_excluded_is_an_error(tmp_path: Path) -> None:
    """Its choice would be lost without a word."""
    gke_overlay = overlay(
        "gke", {"service": "gke"}, profile=STACK, constraints=[constraint(SERVER, ">= 99")]
    )
    other = overlay("other", {"service": "gke"})
    found = catalog(
        tmp_path, files() | {"overlays/gke.yaml": gke_overlay, "overlays/other.yaml": other}
    )
    options = {"snapshot": gke("h100|n1")}
    error: AicrError = refusal(lambda: resolved(found, service="gke", options=options))
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        'profile declaration from overlay "gke" was removed by snapshot constraint filtering'
    )
    assert error.context["excludedOverlays"] == [{"name": "gke", "reason": "constraint-failed"}]


def test_a_declaration_of_an_ancestor_survives_another_leafs_exclusion(tmp_path: Path) -> None:
    """It is merged through the other leaf."""
    found = catalog(tmp_path, files() | {
        "overlays/a.yaml": overlay("a", {"service": "gke"}, base="gke",
                                   constraints=[constraint(SERVER, ">= 99")]),
        "overlays/b.yaml": overlay("b", {"service": "gke"}, base="gke"),
    })  # fmt: skip
    recipe = resolved(found, service="gke", options={"snapshot": gke("h100|n1")})
    assert recipe.document["metadata"]["selectedProfile"]["name"] == "gpuStack"


def test_owned_paths_are_sorted_and_include_the_switch() -> None:
    """By component, each path once."""
    chosen: Any = {"componentRefs": [
        {"name": "b", "overrides": {"z": 1, "a": {"x": [1], "w": None}}},
        {"name": "a", "overrides": {"k": {"k": 0}}},
    ]}  # fmt: skip
    assert owned_paths(chosen) == {"a": ["enabled", "k.k"], "b": ["a.w", "a.x", "enabled", "z"]}
    assert list(owned_paths(chosen)) == ["a", "b"]


def test_choosing_one_value_does_not_colour_the_next(tmp_path: Path) -> None:
    """The catalogue's memory is by choice."""
    found = catalog(tmp_path, files())
    first = resolved(found, service="gke").to_yaml()
    other = resolved(found, service="gke", options={"profile": "gpuStack=bundle-installer"})
    assert other.to_yaml() != first
    assert resolved(found, service="gke").to_yaml() == first


def test_the_command_line_prints_the_choice(installed: Install) -> None:
    """And a query can read it."""
    installed(files())
    ran = command("query", "--service", "gke", "--profile", "gpuStack=bundle-installer",
                  "--selector", "metadata.selectedProfile.value")  # fmt: skip
    assert ran.out == "bundle-installer\n"
