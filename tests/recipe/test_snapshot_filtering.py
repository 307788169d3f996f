"""A snapshot rules overlays out: which constraints count, what excludes, and what aborts."""

from __future__ import annotations

import json
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
    innermost,
    mixin,
    overlay,
    refs_of,
    refusal,
    refused,
    resolved,
    snapshot,
)
from tests.recipe.world import SERVER, TRAINING, VERSION_ID, WORLD

from aicr.catalog.catalog import Catalog
from aicr.recipe.filtering import failure
from aicr.recipe.recipe import Recipe

GOOD: dict[str, Any] = {
    "K8s.server": {"version": "v1.33.5-eks-3025e55"},
    "OS.release": {"ID": "ubuntu", "VERSION_ID": "24.04"},
}


def with_snapshot(found: Catalog, readings: dict[str, Any], **words: Any) -> Recipe:
    """Resolve with a snapshot of these readings."""
    return resolved(found, options={"snapshot": snapshot(readings)}, **words)


def leaf_tree(name: str, value: str, **more: str) -> dict[str, str]:
    """A tree with one leaf for eks that has one constraint, and a fallback beside it."""
    return {
        "overlays/leaf.yaml": overlay(
            "leaf", {"service": "eks"}, constraints=[constraint(name, value)]
        ),
        "overlays/other.yaml": overlay("other", {"service": "eks"}),
        **more,
    }


def test_a_snapshot_that_meets_everything_changes_nothing(tmp_path: Path) -> None:
    """Apart from what was measured, the document is that of the criteria alone."""
    found = catalog(tmp_path, WORLD)
    words: dict[str, Any] = {"service": "eks", "accelerator": "h100", "intent": "training"}
    assert with_snapshot(found, GOOD, **words).to_yaml() == resolved(found, **words).to_yaml()


@pytest.mark.covers("R11-56")
def test_an_excluded_leaf_has_no_fallback(installed: Install, tmp_path: Path) -> None:
    """22.04 against 24.04: the ancestors do not stand in, and nothing is relaxed."""
    found = installed({key: text for key, text in WORLD.items() if "kubeflow.yaml" not in key})
    readings = {**GOOD, "OS.release": {"ID": "ubuntu", "VERSION_ID": "22.04"}}
    words = {"service": "eks", "accelerator": "h100", "intent": "training", "os": "ubuntu"}
    error = refusal(lambda: with_snapshot(found, readings, **words))
    assert error.code == "INVALID_REQUEST"
    text = "criteria(service=eks, accelerator=h100, intent=training, os=ubuntu)"
    assert (
        f"os 'ubuntu' for {text} is provided only by overlays excluded by failing constraints "
        f"(see excludedOverlays)"
    ) in error.message
    assert error.context["excludedOverlays"] == [
        {"name": "h100-eks-ubuntu-training", "reason": "constraint-failed"}
    ]
    assert error.context["constraintWarnings"] == [
        {
            "overlay": "h100-eks-ubuntu-training",
            "constraint": VERSION_ID,
            "expected": "24.04",
            "actual": "22.04",
            "reason": "expected 24.04, got 22.04",
        }
    ]
    assert all(entry["constraintExcluded"] for entry in error.context["uncovered"]
               if entry["dimension"] == "os")  # fmt: skip
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(snapshot(readings)))
    target = tmp_path / "recipe.yaml"
    flags = [word for word in TRAINING if word not in ("--os", "ubuntu")]
    ran = refused("recipe", *flags, "--snapshot", str(path), "-o", str(target))
    assert ran.status == 2
    assert "excluded by failing constraints (see excludedOverlays)" in ran.err
    assert not target.exists()


@pytest.mark.covers("R11-56")
def test_what_still_covers_the_query_is_resolved_and_the_exclusion_is_reported(
    tmp_path: Path,
) -> None:
    """Another leaf carries the service: the recipe lists what was left out and why."""
    found = catalog(tmp_path, leaf_tree(VERSION_ID, "24.04"))
    readings = {"OS.release": {"VERSION_ID": "22.04"}}
    document = with_snapshot(found, readings, service="eks").document
    assert document["metadata"]["appliedOverlays"] == ["base", "other"]
    assert document["metadata"]["excludedOverlays"] == [
        {"name": "leaf", "reason": "constraint-failed"}
    ]
    (warning,) = document["metadata"]["constraintWarnings"]
    assert list(warning) == ["overlay", "constraint", "expected", "actual", "reason"]


@pytest.mark.covers("R11-56")
def test_the_command_line_says_what_was_left_out(installed: Install, tmp_path: Path) -> None:
    """On stderr, and the recipe is printed."""
    installed(leaf_tree(VERSION_ID, "24.04"))
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(snapshot({"OS.release": {"VERSION_ID": "22.04"}})))
    ran = command("recipe", "--service", "eks", "--snapshot", str(path))
    assert ran.status == 0
    (line,) = (line for line in ran.err.splitlines() if "overlay leaf left out" in line)
    assert all(word in line for word in (VERSION_ID, "24.04", "22.04"))
    assert "reason: constraint-failed" in ran.out


@pytest.mark.covers("R11-57", "R11-58", "R11-59", "V-008")
@pytest.mark.parametrize(
    ("actual", "value", "passes"),
    [
        ("v1.33.5-eks-3025e55", ">= 1.32.4", True),
        ("1.32.4", "> 1.32", False),
        ("1.32.4", "== 1.32", False),
        ("1.32.4", ">= 1.32", True),
        ("1.32.4", "<= 1.32", True),
        ("v1.32.0", "1.32.0", False),
        ("v1.32.0", "== 1.32.0", True),
        ("1.35.0-rc.1", ">= 1.35.0", False),
    ],
)
def test_a_leaf_is_applied_exactly_when_its_constraint_holds(
    tmp_path: Path, actual: str, value: str, passes: bool
) -> None:
    """The rows of version comparison, seen through resolution."""
    found = catalog(tmp_path, leaf_tree(SERVER, value))
    metadata = with_snapshot(found, {"K8s.server": {"version": actual}}, service="eks").document[
        "metadata"
    ]
    assert ("leaf" in metadata["appliedOverlays"]) is passes
    assert ("excludedOverlays" in metadata) is not passes
    if not passes:
        assert metadata["constraintWarnings"][0]["reason"] == f"expected {value}, got {actual}"


@pytest.mark.covers("R11-60")
def test_a_reading_that_is_no_version_aborts(tmp_path: Path) -> None:
    """Could not tell is not a no: generation stops, where the original excluded the overlay."""
    found = catalog(tmp_path, leaf_tree(SERVER, ">= 1.28"))
    error = refusal(lambda: with_snapshot(found, {"K8s.server": {"version": "abc"}}, service="eks"))
    assert error.code == "INVALID_REQUEST"
    assert error.message == 'overlay "leaf" cannot be judged by this snapshot'
    assert f'constraint evaluation failed for "{SERVER}"' in str(error)
    assert "cannot parse actual version" in str(error)


@pytest.mark.covers("R11-61", "A9")
@pytest.mark.parametrize(
    "readings", [{}, {"OS.sysctl": {"a": "b"}}, {"OS.release": {"VERSION_ID": "24.04"}}]
)
def test_an_absent_reading_excludes(tmp_path: Path, readings: dict[str, Any]) -> None:
    """No measurement, no subtype or no key: NOT_FOUND, and the reason says so."""
    found = catalog(tmp_path, leaf_tree("OS.release.ID", "ubuntu"))
    metadata = with_snapshot(found, readings, service="eks").document["metadata"]
    assert metadata["appliedOverlays"] == ["base", "other"]
    (warning,) = metadata["constraintWarnings"]
    assert "value not found in snapshot" in warning["reason"]
    assert "actual" not in warning


@pytest.mark.covers("R11-63")
def test_a_systemd_unit_keeps_its_dots(tmp_path: Path) -> None:
    """The unit is containerd.service, the key ActiveState."""
    found = catalog(tmp_path, leaf_tree("SystemD.containerd.service.ActiveState", "active"))
    readings = {"SystemD.containerd.service": {"ActiveState": "active"}}
    metadata = with_snapshot(found, readings, service="eks").document["metadata"]
    assert metadata["appliedOverlays"] == ["base", "leaf", "other"]
    other = {"SystemD.containerd": {"service.ActiveState": "active"}}
    metadata = with_snapshot(found, other, service="eks").document["metadata"]
    assert metadata["excludedOverlays"] == [{"name": "leaf", "reason": "constraint-failed"}]


@pytest.mark.covers("R11-64")
def test_a_predicate_that_matches_two_items_aborts(tmp_path: Path) -> None:
    """Ambiguity is a CONFLICT of the question, no exclusion."""
    found = catalog(tmp_path, leaf_tree("NetworkTopology.pfs[rail=0].traffic", "east-west"))
    items = [{"data": {"rail": 0, "traffic": "east-west"}}] * 2
    error = refusal(lambda: with_snapshot(found, {"NetworkTopology.pfs": items}, service="eks"))
    assert error.code == "CONFLICT"
    assert error.exit_status == 2
    assert innermost(error).message == "item predicate matches multiple entries"


GPU_NODES = "NodeTopology.gpu-nodes.label"


def labels(provider: str, universe: str, **more: str) -> dict[str, Any]:
    """Node labels of a GKE-like snapshot."""
    return {
        "K8s.node": {"provider": provider},
        "NodeTopology.label": {"cloud.google.com/gke-accelerator": universe, **more},
    }


@pytest.mark.covers("R11-65")
def test_a_node_set_rule_on_a_service_without_gpu_label_aborts(tmp_path: Path) -> None:
    """On EKS nobody declared which nodes are GPU nodes: fail closed."""
    found = catalog(tmp_path, leaf_tree(GPU_NODES, "a=b"))
    error = refusal(lambda: with_snapshot(found, labels("eks", "h100|n1"), service="eks"))
    assert error.code == "INVALID_REQUEST"
    assert 'service "eks" has no declared GPU-node label' in str(error)


@pytest.mark.covers("R11-66")
def test_a_truncated_node_list_aborts(tmp_path: Path) -> None:
    """The nodes that were cut off could be the ones that differ."""
    found = catalog(tmp_path, leaf_tree(GPU_NODES, "!bad"))
    readings = labels("gke", "h100|n1,n2 (+3 more)")
    error = refusal(lambda: with_snapshot(found, readings, service="eks"))
    assert error.code == "INVALID_REQUEST"
    assert "truncated" in str(error)


@pytest.mark.covers("V-014")
def test_only_the_leafs_own_constraints_are_evaluated(tmp_path: Path) -> None:
    """An ancestor's, the base's, and those of other phases do not exclude."""
    impossible = [constraint(SERVER, ">= 99")]
    found = catalog(
        tmp_path,
        {
            "overlays/base.yaml": base(constraints=[constraint("OS.release.ID", "beos")]),
            "overlays/parent.yaml": overlay("parent", {"service": "eks"}, constraints=impossible),
            "overlays/leaf.yaml": overlay(
                "leaf", {"service": "eks"}, base="parent",
                validation={"readiness": {"constraints": [constraint(VERSION_ID, "1")]}},
            ),
        },
    )  # fmt: skip
    metadata = with_snapshot(found, GOOD, service="eks").document["metadata"]
    assert metadata["appliedOverlays"] == ["base", "parent", "leaf"]
    assert "excludedOverlays" not in metadata


def test_every_failing_constraint_is_reported(tmp_path: Path) -> None:
    """One exclusion, one warning for each reason."""
    several = [constraint(SERVER, ">= 99"), constraint(VERSION_ID, "24.04"),
               constraint("OS.release.ID", "beos")]  # fmt: skip
    found = catalog(
        tmp_path,
        {"overlays/leaf.yaml": overlay("leaf", {"service": "eks"}, constraints=several),
         "overlays/other.yaml": overlay("other", {"service": "eks"})},
    )  # fmt: skip
    metadata = with_snapshot(found, GOOD, service="eks").document["metadata"]
    assert [warning["constraint"] for warning in metadata["constraintWarnings"]] == [
        SERVER,
        "OS.release.ID",
    ]
    assert len(metadata["excludedOverlays"]) == 1


def test_without_a_snapshot_nothing_is_excluded(tmp_path: Path) -> None:
    """Criteria alone cannot fail a reading."""
    found = catalog(tmp_path, leaf_tree(SERVER, ">= 99"))
    metadata = resolved(found, service="eks").document["metadata"]
    assert metadata["appliedOverlays"] == ["base", "leaf", "other"]
    assert "excludedOverlays" not in metadata
    assert "constraintWarnings" not in metadata


MIXED = {
    "overlays/base.yaml": base(componentRefs=[chart("x")]),
    "overlays/parent.yaml": overlay("parent", mixins=["m"]),
    "overlays/a.yaml": overlay("a", {"service": "eks"}, base="parent", componentRefs=[chart("a")]),
    "overlays/b.yaml": overlay("b", {"service": "eks"}, mixins=["n"], componentRefs=[chart("b")]),
    "mixins/m.yaml": mixin(
        "m", constraints=[constraint(VERSION_ID, "24.04")], componentRefs=[chart("from-m")]
    ),
    "mixins/n.yaml": mixin("n", componentRefs=[chart("from-n")]),
}


def test_a_failing_constraint_of_a_mixin_excludes_every_leaf_that_uses_it(tmp_path: Path) -> None:
    """Through an ancestor too; the recipe is rebuilt from the others and their own mixins."""
    found = catalog(tmp_path, MIXED)
    recipe = with_snapshot(found, {"OS.release": {"VERSION_ID": "22.04"}}, service="eks")
    metadata = recipe.document["metadata"]
    assert metadata["appliedOverlays"] == ["base", "b"]
    assert sorted(refs_of(recipe)) == ["b", "from-n", "x"]
    assert "constraints" not in recipe.document
    assert metadata["excludedOverlays"] == [{"name": "a", "reason": "mixin-constraint-failed"}]
    assert metadata["constraintWarnings"] == [
        {
            "overlay": "a",
            "constraint": VERSION_ID,
            "expected": "24.04",
            "actual": "22.04",
            "reason": "mixin-constraint-failed: expected 24.04, got 22.04",
        }
    ]


def test_a_constraint_of_a_mixin_that_holds_excludes_nobody(tmp_path: Path) -> None:
    """And both leaves' mixins apply."""
    recipe = with_snapshot(catalog(tmp_path, MIXED), GOOD, service="eks")
    assert sorted(refs_of(recipe)) == ["a", "b", "from-m", "from-n", "x"]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"value": "x"}, "constraint name is required for snapshot evaluation"),
        ({"name": "", "value": "x"}, "constraint name is required for snapshot evaluation"),
        ({"name": SERVER}, f'constraint "{SERVER}" value is required for snapshot evaluation'),
        ({"name": SERVER, "value": ""},
         f'constraint "{SERVER}" value is required for snapshot evaluation'),
    ],
)  # fmt: skip
def test_a_constraint_without_name_or_value_cannot_be_evaluated(
    found: dict[str, str], message: str
) -> None:
    """Hard errors, for catalogues that were built by hand."""
    given: Any = found
    error = refusal(lambda: failure(given, snapshot(GOOD)))
    assert (error.code, error.message) == ("INVALID_REQUEST", message)


def test_resolving_with_one_snapshot_does_not_colour_the_next(tmp_path: Path) -> None:
    """The catalogue remembers compositions, never verdicts."""
    found = catalog(tmp_path, leaf_tree(VERSION_ID, "24.04"))
    bad = {"OS.release": {"VERSION_ID": "22.04"}}
    first = with_snapshot(found, bad, service="eks").to_yaml()
    good = with_snapshot(found, GOOD, service="eks")
    assert good.document["metadata"]["appliedOverlays"] == ["base", "leaf", "other"]
    assert "excludedOverlays" not in good.document["metadata"]
    assert with_snapshot(found, bad, service="eks").to_yaml() == first


@pytest.mark.parametrize(
    ("loaded", "state"),
    [(True, "preinstalled"), ("true", "preinstalled"), (False, "absent"), ("false", "absent"),
     ("unknown", None), (None, None)],
)  # fmt: skip
def test_the_driver_state_is_recorded(tmp_path: Path, loaded: object, state: str | None) -> None:
    """From GPU.hardware.driver-loaded; a reading that cannot tell is not recorded as absent."""
    found = catalog(tmp_path, {"overlays/eks.yaml": overlay("eks", {"service": "eks"})})
    readings = {} if loaded is None else {"GPU.hardware": {"driver-loaded": loaded}}
    metadata = with_snapshot(found, readings, service="eks").document["metadata"]
    assert metadata.get("gpuDriverState") == state


OPERATOR_STATES: list[tuple[object, str | None]] = [
    ("absent", "absent"), ("api-detected", "api-detected"), ("crs-detected", "crs-detected"),
    ("unknown", "unknown"), ("", "unknown"), ("Absent", "unknown"), (True, "unknown"), (None, None),
]  # fmt: skip


@pytest.mark.parametrize(("reading", "state"), OPERATOR_STATES)
@pytest.mark.parametrize(
    ("subtype", "field"),
    [
        ("mariadb-operator", "mariaDBOperatorState"),
        ("percona-server-mongodb", "perconaOperatorState"),
    ],
)
def test_the_state_of_an_operator_is_recorded(
    tmp_path: Path, subtype: str, field: str, reading: object, state: str | None
) -> None:
    """From collection-state; what may not stand there is unknown, and no subtype is no state."""
    found = catalog(tmp_path, {"overlays/eks.yaml": overlay("eks", {"service": "eks"})})
    readings = {} if reading is None else {f"K8s.{subtype}": {"collection-state": reading}}
    metadata = with_snapshot(found, readings, service="eks").document["metadata"]
    assert metadata.get(field) == state


@pytest.mark.parametrize("state", ["operator-detected", "aicr-owned"])
def test_only_the_mongodb_operator_has_more_states(tmp_path: Path, state: str) -> None:
    """An operator without databases, and one of ours."""
    found = catalog(tmp_path, {"overlays/eks.yaml": overlay("eks", {"service": "eks"})})
    readings = {
        f"K8s.{name}": {"collection-state": state}
        for name in ("mariadb-operator", "percona-server-mongodb")
    }
    metadata = with_snapshot(found, readings, service="eks").document["metadata"]
    assert metadata["perconaOperatorState"] == state
    assert metadata["mariaDBOperatorState"] == "unknown"


@pytest.mark.parametrize(
    ("readings", "state"),
    [
        (None, None),
        ({"collection-state": "detected", "default-count": 1}, "present"),
        ({"collection-state": "detected", "default-count": 2}, "multiple"),
        ({"collection-state": "absent", "default-count": 0}, "absent"),
        ({"collection-state": "unknown"}, "unknown"),
        ({"collection-state": "absent"}, "unknown"),
        ({"collection-state": "detected", "default-count": "one"}, "unknown"),
        ({"collection-state": "detected", "default-count": -1}, "unknown"),
    ],
    ids=["none", "one", "two", "zero", "unread", "no count", "no number", "negative"],
)
def test_the_state_of_the_default_storage_class_is_recorded(
    tmp_path: Path, readings: dict[str, object] | None, state: str | None
) -> None:
    """From the number of default classes; without one that can be read it is unknown."""
    found = catalog(tmp_path, {"overlays/eks.yaml": overlay("eks", {"service": "eks"})})
    given = {} if readings is None else {"K8s.default-storage-class": readings}
    metadata = with_snapshot(found, given, service="eks").document["metadata"]
    assert metadata.get("defaultStorageClassState") == state


RELAX = {
    "overlays/eks.yaml": overlay("eks", {"service": "eks"}),
    "overlays/h100.yaml": overlay(
        "h100", {"accelerator": "h100"}, constraints=[constraint(VERSION_ID, "24.04")]
    ),
}


def test_what_only_the_snapshot_said_may_be_dropped(tmp_path: Path) -> None:
    """os was measured, nobody has a recipe for it: it is dropped once, and said."""
    found = catalog(tmp_path, RELAX)
    options = {"snapshot": snapshot(GOOD), "derived": ["os", "service"]}
    recipe = resolved(found, service="eks", os="rhel", options=options)
    assert recipe.relaxed == ["os"]
    assert recipe.document["criteria"]["os"] == "any"
    assert recipe.warnings[0] == (
        "os 'rhel' was read from the snapshot, and no recipe covers it: resolved without it"
    )


@pytest.mark.parametrize(
    ("words", "derived", "readings"),
    [
        # os was typed.
        ({"service": "eks", "os": "rhel"}, ["service"], GOOD),
        # Nothing would stay stated.
        ({"os": "rhel"}, ["os"], GOOD),
        # One of the two uncovered dimensions was typed.
        ({"service": "eks", "os": "rhel", "intent": "training"}, ["os"], GOOD),
        # The accelerator is uncovered because a constraint failed.
        ({"service": "eks", "accelerator": "h100"}, ["accelerator"],
         {"OS.release": {"VERSION_ID": "22.04"}}),
    ],
)  # fmt: skip
def test_nothing_else_is_ever_dropped(
    tmp_path: Path, words: dict[str, str], derived: list[str], readings: dict[str, Any]
) -> None:
    """Typed criteria stand, something must stay stated, and exclusions are not papered over."""
    found = catalog(tmp_path, RELAX)
    options = {"snapshot": snapshot(readings), "derived": derived}
    error = refusal(lambda: resolved(found, options=options, **words))
    assert error.code == "INVALID_REQUEST"
    assert error.context["uncovered"]


def test_without_a_snapshot_nothing_is_dropped(tmp_path: Path) -> None:
    """derived means nothing then."""
    found = catalog(tmp_path, RELAX)
    refusal(lambda: resolved(found, service="eks", os="rhel", options={"derived": ["os"]}))


def test_a_strict_os_is_never_relaxed(tmp_path: Path) -> None:
    """Relaxation is for what is uncovered; a demanded os is still demanded."""
    files = {
        **RELAX,
        "overlays/both.yaml": overlay(
            "both", {"service": "eks", "accelerator": "h100", "os": "ubuntu"}
        ),
    }
    options = {"snapshot": snapshot(GOOD), "derived": ["service", "accelerator"]}
    found = catalog(tmp_path, files)
    error = refusal(lambda: resolved(found, service="eks", accelerator="h100", options=options))
    assert error.context["strictDimensions"] == [{"dimension": "os", "validValues": ["ubuntu"]}]


def test_the_command_line_relaxes_what_it_measured(installed: Install, tmp_path: Path) -> None:
    """The snapshot says rhel; the recipe is resolved without an os, with a warning."""
    installed(RELAX)
    readings = {**GOOD, "OS.release": {"ID": "rhel", "VERSION_ID": "24.04"}}
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(snapshot(readings)))
    ran = command("recipe", "--service", "eks", "--snapshot", str(path))
    assert ran.status == 0
    assert "os 'rhel' was read from the snapshot" in ran.err
    assert (
        refused("recipe", "--service", "eks", "--os", "rhel", "--snapshot", str(path)).status == 2
    )
