"""Selectors, tolerations, gate and node count on the paths that the registry routes them to."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.bundle.options import BundleOptions, parse_scheduling
from aicr.bundle.overrides import Override, parse_overrides
from aicr.bundle.placement import Target, append_unique, merge_shared, write_placement
from aicr.errors import INVALID_REQUEST, AicrError

ALL = {"operator": "Exists"}
K1 = {"key": "k1", "operator": "Exists"}
K2 = {"key": "k2", "operator": "Exists"}
T0 = {"key": "t0", "operator": "Exists"}

ENTRY: dict[str, Any] = {
    "nodeScheduling": {
        "system": {
            "nodeSelectorPaths": ["operator.nodeSelector", "webhook.nodeSelector"],
            "tolerationPaths": ["operator.tolerations"],
        },
        "accelerated": {
            "nodeSelectorPaths": ["daemon.nodeSelector"],
            "tolerationPaths": ["daemon.tolerations"],
            "taintStrPaths": ["manager.env.runtimeRequiredTaint"],
            "taintPaths": ["manager.taints"],
        },
        "nodeCountPaths": ["estimatedNodeCount"],
    },
    "podScheduling": {"workload": {"workloadSelectorPaths": ["workloadSelector"]}},
}
SHARED: dict[str, Any] = {
    "nodeScheduling": {
        "system": {"tolerationPaths": ["worker.tolerations"]},
        "accelerated": {"tolerationPaths": ["worker.tolerations"]},
    }
}


def overrides(*texts: str) -> list[Override]:
    """`--set` overrides of component x."""
    found, _ = parse_overrides(scalars=texts, files=(), jsons=(), read_file=None)
    for override in found:
        override.component = "x"
    return found


def place(
    entry: dict[str, Any],
    *,
    values: dict[str, Any] | None = None,
    overlay: dict[str, Any] | None = None,
    scalars: tuple[str, ...] = (),
    **flags: Any,
) -> Target:
    """Write flags to one component; *values* are resolved values, *overlay* inline overrides."""
    target = Target("x", entry, overlay or {}, values or {}, overrides(*scalars))
    write_placement(target, parse_scheduling(BundleOptions(**flags)))
    return target


@pytest.mark.covers("B10-24", "C-034", "C-065")
def test_a_selector_reaches_every_path_of_its_class() -> None:
    """One flag covers all workloads of a chart, and only those of its class."""
    values = place(ENTRY, system_node_selector=["a=b"]).values
    assert values["operator"]["nodeSelector"] == {"a": "b"}
    assert values["webhook"]["nodeSelector"] == {"a": "b"}
    assert "nodeSelector" not in values["daemon"]


@pytest.mark.covers("C-034", "C-036", "C-038")
def test_each_class_of_a_chart_gets_its_own_pair() -> None:
    """Controller and DaemonSet of one chart are routed apart."""
    values = place(
        ENTRY,
        system_node_selector=["pool=sys"],
        system_node_tolerations=["k1"],
        accelerated_node_selector=["pool=gpu"],
        accelerated_node_tolerations=["k2"],
    ).values
    assert values["operator"] == {"nodeSelector": {"pool": "sys"}, "tolerations": [K1]}
    assert values["daemon"] == {"nodeSelector": {"pool": "gpu"}, "tolerations": [K2]}


@pytest.mark.covers("C-048")
def test_without_a_flag_no_selector_is_written() -> None:
    """Many clusters have no node pools, so an unset selector is left alone."""
    assert place(ENTRY).values == {
        "operator": {"tolerations": [ALL]},
        "daemon": {"tolerations": [ALL]},
    }


@pytest.mark.covers("B10-25")
def test_without_a_flag_everything_is_tolerated() -> None:
    """The default is one entry without a key."""
    assert place(ENTRY).values["operator"]["tolerations"] == [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("values", "overlay", "scalars"),
    [
        ({"operator": {"tolerations": [T0]}}, {}, ()),
        ({"operator": {"tolerations": [T0]}}, {"operator": {"tolerations": [T0]}}, ()),
        ({"operator": {"tolerations": [T0]}}, {}, ("x:operator.tolerations[0].key=t0",)),
    ],
)
def test_the_default_never_goes_over_what_recipe_or_user_set(
    values: dict[str, Any], overlay: dict[str, Any], scalars: tuple[str, ...]
) -> None:
    """A list from a values file, an overlay or a --set stays as it is when no flag is given."""
    target = place(ENTRY, values=values, overlay=overlay, scalars=scalars)
    assert target.values["operator"]["tolerations"] == [T0]


def test_the_default_respects_a_set_that_emptied_the_path() -> None:
    """--set …=null is a statement of the user as well."""
    assert "operator" not in place(ENTRY, scalars=("x:operator.tolerations=null",)).values


@pytest.mark.covers("C-074")
def test_an_empty_list_of_a_values_file_is_not_a_statement() -> None:
    """Charts ship empty lists, so only an overlay's inline empty list opts out."""
    values: dict[str, Any] = {"operator": {"tolerations": []}}
    assert place(ENTRY, values=values).values["operator"]["tolerations"] == [ALL]


@pytest.mark.covers("B10-31", "C-045", "C-051")
@pytest.mark.parametrize("empty", [[], {}, None])
@pytest.mark.parametrize("flags", [{}, {"system_node_tolerations": ["k1"]}])
def test_an_explicitly_empty_overlay_opts_out_of_tolerations(
    empty: Any, flags: dict[str, Any]
) -> None:
    """Null, an empty list and an empty map keep flag and default off the path."""
    overlay = {"operator": {"tolerations": empty}}
    target = place(ENTRY, values={"operator": {"tolerations": []}}, overlay=overlay, **flags)
    assert target.values["operator"]["tolerations"] == []


@pytest.mark.parametrize("empty", [[], {}, None])
def test_an_explicitly_empty_overlay_opts_out_of_selectors(empty: Any) -> None:
    """The opted-out path is left alone, its neighbour is written."""
    overlay = {"operator": {"nodeSelector": empty}}
    values = place(ENTRY, overlay=overlay, system_node_selector=["a=b"]).values
    assert "nodeSelector" not in values["operator"]
    assert values["webhook"]["nodeSelector"] == {"a": "b"}


@pytest.mark.covers("B10-32", "C-045")
def test_a_flag_is_appended_to_an_overlay_list() -> None:
    """The overlay's own entries come first, and equal ones are not repeated."""
    overlay = {"operator": {"tolerations": [T0, K1]}}
    target = place(
        ENTRY, values=overlay, overlay=overlay, system_node_tolerations=["k1", "k2:NoExecute"]
    )
    assert target.values["operator"]["tolerations"] == [T0, K1, {**K2, "effect": "NoExecute"}]
    assert overlay == {"operator": {"tolerations": [T0, K1]}}


@pytest.mark.covers("B10-33")
def test_a_flag_replaces_a_list_of_a_values_file_and_says_so() -> None:
    """Only inline overrides are kept; dropped entries are counted in a note."""
    target = place(
        ENTRY, values={"operator": {"tolerations": [T0, K1]}}, system_node_tolerations=["k1"]
    )
    assert target.values["operator"]["tolerations"] == [K1]
    assert target.notes == [
        "--system-node-toleration replaces the tolerations that the recipe's values files give x "
        "at operator.tolerations (1 dropped)"
    ]


def test_a_selector_replaces_what_an_overlay_says() -> None:
    """Selectors have no append mode."""
    overlay = {"operator": {"nodeSelector": {"old": "1"}}}
    target = place(ENTRY, values=overlay, overlay=overlay, system_node_selector=["a=b"])
    assert target.values["operator"]["nodeSelector"] == {"a": "b"}


def test_appending_to_something_that_is_no_list_is_refused() -> None:
    """A wrong overlay is reported with component, path and flag."""
    overlay = {"operator": {"tolerations": "all"}}
    with pytest.raises(AicrError, match=r'no list at "operator\.tolerations"') as caught:
        place(ENTRY, values=overlay, overlay=overlay, system_node_tolerations=["k1"])
    assert caught.value.code == INVALID_REQUEST


def test_something_in_the_way_of_a_routed_path_is_replaced_with_a_note() -> None:
    """Registry paths are facts about the chart, so a flag gets through."""
    target = place(ENTRY, values={"operator": "on"}, system_node_selector=["a=b"])
    assert target.values["operator"]["nodeSelector"] == {"a": "b"}
    assert target.notes == [
        "--system-node-selector replaces what x holds at operator, which is not a map"
    ]


@pytest.mark.covers("C-073")
@pytest.mark.parametrize(
    ("scalar", "flags"),
    [
        ("x:operator.nodeSelector.zone=a", {"system_node_selector": ["a=b"]}),
        ("x:operator.nodeSelector=a", {"system_node_selector": ["a=b"]}),
        ("x:operator.tolerations[0].key=a", {"system_node_tolerations": ["k1"]}),
        ("x:estimatedNodeCount=4", {"nodes": 8}),
        ("x:manager.env.runtimeRequiredTaint=a:NoExecute", {"workload_gate": "b:NoSchedule"}),
        ("x:workloadSelector.a=b", {"workload_selector": ["a=c"]}),
    ],
)
def test_a_flag_and_a_set_on_one_path_conflict(scalar: str, flags: dict[str, Any]) -> None:
    """Both were given on purpose, so neither may win in silence."""
    with pytest.raises(AicrError, match="conflict") as caught:
        place(ENTRY, scalars=(scalar,), **flags)
    assert caught.value.code == INVALID_REQUEST


def test_a_set_without_the_flag_stays() -> None:
    """--set alone places a pod."""
    values = {"operator": {"nodeSelector": {"zone": "a"}}}
    target = place(ENTRY, values=values, scalars=("x:operator.nodeSelector.zone=a",))
    assert target.values["operator"]["nodeSelector"] == {"zone": "a"}


@pytest.mark.covers("C-029")
def test_gate_and_workload_selector_and_node_count_are_written() -> None:
    """The gate as text or as a list of taints, the selector as a map, the count as a number."""
    values = place(
        ENTRY, workload_gate="gate.io/x=y:NoSchedule", workload_selector=["job=train"], nodes=8
    ).values
    assert values["manager"] == {
        "env": {"runtimeRequiredTaint": "gate.io/x=y:NoSchedule"},
        "taints": [{"key": "gate.io/x", "value": "y", "effect": "NoSchedule"}],
    }
    assert values["workloadSelector"] == {"job": "train"}
    assert values["estimatedNodeCount"] == 8


@pytest.mark.covers("C-029")
def test_the_workload_selector_has_no_default() -> None:
    """Which pods are training pods, only the user knows."""
    assert "workloadSelector" not in place(ENTRY).values


@pytest.mark.covers("B10-82")
def test_zero_nodes_leave_the_chart_figure() -> None:
    """The estimate is written only when it is given."""
    assert place(ENTRY, values={"estimatedNodeCount": 3}).values["estimatedNodeCount"] == 3


@pytest.mark.parametrize(
    ("overlay", "flags", "path"),
    [
        (
            {"manager": {"env": {"runtimeRequiredTaint": None}, "taints": []}},
            {"workload_gate": "a:NoSchedule"},
            "manager",
        ),
        ({"workloadSelector": {}}, {"workload_selector": ["a=b"]}, "workloadSelector"),
        ({"estimatedNodeCount": None}, {"nodes": 4}, "estimatedNodeCount"),
    ],
)
def test_the_opt_out_holds_for_every_flag(
    overlay: dict[str, Any], flags: dict[str, Any], path: str
) -> None:
    """An explicitly empty inline override keeps any flag off the path."""
    assert path not in place(ENTRY, overlay=overlay, **flags).values


def test_a_component_without_routing_is_left_alone() -> None:
    """No entry, no paths, no writes."""
    flags: dict[str, Any] = {"system_node_selector": ["a=b"], "nodes": 3}
    assert place({}, values={"a": 1}, **flags).values == {"a": 1}


@pytest.mark.covers("B10-28", "B10-29", "B10-30", "C-041", "C-042", "C-043", "C-044")
@pytest.mark.parametrize(
    ("system", "accelerated", "expected"),
    [
        ([K1, ALL], [K2], [K1, K2]),
        ([K1], [K1, K2], [K1, K2]),
        ([ALL], [], [ALL]),
        ([K1, ALL], [], [K1, ALL]),
        ([ALL], [K2], [K2]),
        ([], [K2], [K2]),
        ([K1], [ALL], [K1, ALL]),
        ([], [], []),
    ],
)
def test_a_shared_list_is_keyed_system_entries_then_accelerated_ones(
    system: list[dict[str, Any]],
    accelerated: list[dict[str, Any]],
    expected: list[dict[str, Any]],
) -> None:
    """Keyless system entries never widen a restricted accelerated list."""
    assert merge_shared(system, accelerated) == expected


@pytest.mark.covers("D3")
def test_duplicates_are_found_field_by_field() -> None:
    """60 equals 60.0 and an empty field equals an absent one; the first spelling stays."""
    first = [{"key": "a", "operator": "Exists", "tolerationSeconds": 60}]
    second = [
        {"key": "a", "operator": "Exists", "tolerationSeconds": 60.0},
        {"key": "a", "operator": "Exists", "tolerationSeconds": 60, "value": "", "effect": None},
        {"key": "a", "operator": "Exists", "tolerationSeconds": 61},
    ]
    assert append_unique(first, second) == [first[0], second[2]]


def test_entries_that_are_no_maps_are_kept_as_they_are() -> None:
    """Merging judges no entry; the cluster or a later check does."""
    assert append_unique(["a", ALL], ["a", "b"]) == ["a", ALL, "b"]


@pytest.mark.covers("C-039")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, [ALL]),
        ({"system_node_tolerations": ["k1"], "accelerated_node_tolerations": ["k2"]}, [K1, K2]),
        ({"system_node_tolerations": ["k1"]}, [K1, ALL]),
        ({"accelerated_node_tolerations": ["k2"]}, [K2]),
    ],
)
def test_a_shared_path_is_written_once(
    flags: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    """A DaemonSet for every node gets the tolerations of both classes."""
    assert place(SHARED, **flags).values == {"worker": {"tolerations": expected}}


@pytest.mark.covers("D3")
@pytest.mark.parametrize("inline", [True, False])
def test_a_list_of_the_recipe_on_a_shared_path_is_not_widened_by_a_default(inline: bool) -> None:
    """With one flag missing, the recipe's entries stand for that class instead of tolerate-all."""
    values = {"worker": {"tolerations": [T0]}}
    target = place(
        SHARED, values=values, overlay=values if inline else {}, system_node_tolerations=["k1"]
    )
    assert target.values == {"worker": {"tolerations": [T0, K1]}}


@pytest.mark.covers("C-045", "D3")
def test_opt_out_and_append_hold_on_a_shared_path() -> None:
    """The single write follows the usual rules."""
    flags: dict[str, Any] = {
        "system_node_tolerations": ["k1"],
        "accelerated_node_tolerations": ["k2"],
    }
    empty: dict[str, Any] = {"worker": {"tolerations": []}}
    assert place(SHARED, values=empty, overlay=empty, **flags).values == empty
    some = {"worker": {"tolerations": [T0]}}
    assert place(SHARED, values=some, overlay=some, **flags).values == {
        "worker": {"tolerations": [T0, K1, K2]}
    }
    assert place(SHARED, values=some, **flags).values == {"worker": {"tolerations": [K1, K2]}}


def test_written_maps_and_lists_are_not_shared_between_paths() -> None:
    """Changing one path later must not change its neighbours."""
    values = place(ENTRY, system_node_selector=["a=b"]).values
    assert values["operator"]["nodeSelector"] is not values["webhook"]["nodeSelector"]
