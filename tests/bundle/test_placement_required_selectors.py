"""Components that must not be bundled without a node selector, and storage classes."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.bundle.options import BundleOptions, parse_scheduling
from aicr.bundle.overrides import parse_overrides
from aicr.bundle.placement import (
    Target,
    check_kinds,
    check_required_selectors,
    has_storage_class,
    write_placement,
)
from aicr.bundle.storage import missing_class_notes, write_storage_classes
from aicr.errors import INVALID_REQUEST, AicrError

CLASS = "prometheus.spec.volume.storageClassName"
SLURM: dict[str, Any] = {
    "nodeScheduling": {
        "system": {
            "requireNodeSelector": True,
            "nodeSelectorPaths": ["controller.nodeSelector", "restapi.nodeSelector"],
        },
        "accelerated": {
            "requireNodeSelector": True,
            "nodeSelectorPaths": ["nodesets.nodeSelector"],
        },
    },
    "sharedStorageClassPaths": ["storage.home.storageClassName"],
}
PROMETHEUS: dict[str, Any] = {
    "nodeScheduling": {
        "system": {
            "requireNodeSelectorIfStorageClassSet": True,
            "nodeSelectorPaths": ["prometheus.nodeSelector"],
        }
    },
    "storageClassPaths": [CLASS],
    "sharedStorageClassPaths": ["shared.className"],
}


def bundle(
    entry: dict[str, Any],
    *,
    values: dict[str, Any] | None = None,
    overlay: dict[str, Any] | None = None,
    scalars: tuple[str, ...] = (),
    **flags: Any,
) -> Target:
    """Write all flags to a component called comp, then check its selectors."""
    found, _ = parse_overrides(scalars=scalars, files=(), jsons=(), read_file=None)
    target = Target("comp", entry, overlay or {}, values or {}, found)
    scheduling = parse_scheduling(BundleOptions(**flags))
    write_placement(target, scheduling)
    write_storage_classes(target, scheduling)
    check_required_selectors(target)
    return target


@pytest.mark.covers("B10-34", "R11-54", "C-049")
def test_a_required_selector_names_component_flag_and_paths() -> None:
    """The message says what to pass and how to opt out."""
    with pytest.raises(AicrError) as caught:
        bundle(SLURM)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message == (
        'component "comp" requires --system-node-selector to be set (paths: '
        "controller.nodeSelector, restapi.nodeSelector); pass a selector, opt this component's "
        "paths out with an explicit empty overlay override, or check whether a later "
        "--set-json/--set-file override cleared it"
    )


@pytest.mark.covers("R11-54", "C-049")
def test_each_class_asks_for_its_own_flag() -> None:
    """With the system selector given, the accelerated one is missing."""
    with pytest.raises(AicrError, match="--accelerated-node-selector") as caught:
        bundle(SLURM, system_node_selector=["a=b"])
    assert "(paths: nodesets.nodeSelector)" in caught.value.message
    bundle(SLURM, system_node_selector=["a=b"], accelerated_node_selector=["c=d"])


@pytest.mark.covers("B10-35", "C-051")
@pytest.mark.parametrize("empty", [{}, None, []])
def test_an_overlay_opts_out_of_the_requirement_path_by_path(empty: Any) -> None:
    """Every path has to be opted out or filled."""
    overlay = {
        "controller": {"nodeSelector": empty},
        "restapi": {"nodeSelector": empty},
        "nodesets": {"nodeSelector": empty},
    }
    bundle(SLURM, overlay=overlay)
    del overlay["restapi"]
    with pytest.raises(AicrError, match=r"\(paths: restapi\.nodeSelector\)"):
        bundle(SLURM, overlay=overlay)


def test_any_filled_map_meets_the_requirement_but_nothing_else_does() -> None:
    """Values files count, text in the place of a map does not."""
    some = {"nodeSelector": {"a": "b"}}
    bundle(SLURM, values={"controller": some, "restapi": some, "nodesets": some})
    with pytest.raises(AicrError, match=r"\(paths: controller\.nodeSelector\)"):
        bundle(
            SLURM,
            values={"controller": {"nodeSelector": "a"}, "restapi": some, "nodesets": some},
        )


@pytest.mark.covers("B10-37", "R11-55", "C-054")
@pytest.mark.parametrize(
    ("path", "value", "needed"),
    [
        ("a.nodeSelector", "pool=gpu", "map of labels"),
        ("a.nodeSelector", ["pool"], "map of labels"),
        ("a.tolerations", "foo", "list of tolerations"),
        ("a.tolerations", {"operator": "Exists"}, "list of tolerations"),
        ("a.tolerations", True, "list of tolerations"),
    ],
)
@pytest.mark.parametrize("tier", ["system", "accelerated"])
def test_what_is_no_selector_or_toleration_list_is_refused(
    tier: str, path: str, value: Any, needed: str
) -> None:
    """The registry says what is at the path, so anything else there is a mistake (3.1; B1)."""
    group = {"nodeSelectorPaths": ["a.nodeSelector"], "tolerationPaths": ["a.tolerations"]}
    entry = {"nodeScheduling": {tier: group}}
    with pytest.raises(AicrError) as caught:
        check_kinds(Target("comp", entry, {}, {"a": {path[2:]: value}}))
    assert caught.value.code == INVALID_REQUEST
    assert needed in caught.value.message
    assert f"--set-json 'comp:{path}=" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "held", [{}, None, "", {"k": "v"}], ids=["empty", "null", "blank", "filled"]
)
def test_an_empty_value_leaves_the_chart_as_it_is(held: Any) -> None:
    """Nothing, null and a filled map are all that a chart can use."""
    entry = {"nodeScheduling": {"system": {"nodeSelectorPaths": ["s"]}}}
    check_kinds(Target("comp", entry, {}, {"s": held}))
    check_kinds(Target("comp", entry, {}, {}))
    check_kinds(Target("comp", entry, {}, {"s": "later"}, dynamic=[["s"]]))


def test_the_conditional_requirement_sleeps_without_a_storage_class() -> None:
    """A chart on ephemeral storage needs no selector."""
    bundle(PROMETHEUS)
    bundle(PROMETHEUS, values={"shared": {"className": ""}})


@pytest.mark.covers("B10-37", "R11-55", "C-053", "C-055")
@pytest.mark.parametrize(
    "given",
    [
        {"storage_class": "gp3"},
        {"shared_storage_class": "efs"},
        {"values": {"prometheus": {"spec": {"volume": {"storageClassName": "gp3"}}}}},
    ],
)
def test_any_storage_class_wakes_the_conditional_requirement(given: dict[str, Any]) -> None:
    """It does not matter whether flag, --set or overlay set the class."""
    with pytest.raises(AicrError, match="requires --system-node-selector"):
        bundle(PROMETHEUS, **given)
    target = bundle(PROMETHEUS, system_node_selector=["a=b"], **given)
    assert has_storage_class(target)


@pytest.mark.covers("C-027", "C-028")
def test_each_storage_flag_goes_to_its_own_paths() -> None:
    """The shared class is never inferred from the block class."""
    entry = {"storageClassPaths": ["block.class"], "sharedStorageClassPaths": ["shared.class"]}
    assert bundle(entry, storage_class="gp3").values == {"block": {"class": "gp3"}}
    assert bundle(entry, shared_storage_class="efs").values == {"shared": {"class": "efs"}}
    assert bundle(entry, storage_class="gp3", shared_storage_class="efs").values == {
        "block": {"class": "gp3"},
        "shared": {"class": "efs"},
    }
    assert bundle(entry).values == {}


@pytest.mark.covers("B10-40")
def test_a_set_on_exactly_a_storage_path_wins_over_the_flag() -> None:
    """One component can differ from the class that all others get."""
    entry = {"storageClassPaths": ["a.class", "b.class"]}
    target = bundle(
        entry,
        values={"a": {"class": "io2"}, "b": {"class": "old"}},
        scalars=("comp:a.class=io2",),
        storage_class="gp3",
    )
    assert target.values == {"a": {"class": "io2"}, "b": {"class": "gp3"}}


def test_a_set_above_a_storage_path_conflicts_with_the_flag() -> None:
    """Only the exact path is an exception to the rule of two flags."""
    with pytest.raises(AicrError, match="conflict"):
        bundle({"storageClassPaths": ["a.class"]}, scalars=("comp:a=x",), storage_class="gp3")


@pytest.mark.parametrize(
    ("claim", "noted"),
    [
        ({"resources": {"requests": {"storage": "50Gi"}}}, True),
        ({"accessModes": ["ReadWriteOnce"]}, True),
        ({"size": "1Gi", "enabled": True}, True),
        ({"size": "1Gi", "enabled": False}, False),
        ({"resources": {}}, False),
        ({}, False),
        ("text", False),
    ],
)
def test_a_claim_without_a_class_is_worth_a_note(claim: Any, noted: bool) -> None:
    """The cluster's default class differs between clusters; no claim, no note."""
    target = bundle(PROMETHEUS, values={"prometheus": {"spec": {"volume": claim}}})
    expected = (
        [
            f"comp renders a PVC without storageClassName at {CLASS}; set --storage-class <name> "
            f"or --set comp:{CLASS}=<name>, else the cluster's default class is used"
        ]
        if noted
        else []
    )
    assert missing_class_notes(target) == expected


def test_a_claim_with_a_class_is_not_noted() -> None:
    """A named class is what the note asks for."""
    claim = {"size": "1Gi", "storageClassName": "gp3"}
    target = bundle(
        PROMETHEUS,
        values={"prometheus": {"spec": {"volume": claim}}},
        system_node_selector=["a=b"],
    )
    assert missing_class_notes(target) == []
