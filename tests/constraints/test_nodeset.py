"""The rule over all GPU nodes: grammar, verdicts, and every way it fails closed."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.constraints import nodeset
from aicr.constraints.evaluate import evaluate_constraint
from aicr.constraints.expression import Outcome
from aicr.errors import INVALID_REQUEST, NOT_FOUND, AicrError

UNIVERSE = "cloud.google.com/gke-accelerator"
PLUGIN = "nvidia.com/gpu.deploy.device-plugin"
GPU_NODES = {UNIVERSE: "nvidia-h100-80gb|n1,n2,n3"}


def snapshot(
    data: dict[str, Any] | None = None,
    *,
    items: list[dict[str, Any]] | None = None,
    provider: str | None = "gke",
) -> dict[str, Any]:
    """A snapshot with these label readings."""
    node = {} if provider is None else {"provider": provider}
    label: dict[str, Any] = {"subtype": "label"}
    if data is not None:
        label["data"] = data
    if items is not None:
        label["items"] = items
    return {
        "measurements": [
            {"type": "K8s", "subtypes": [{"subtype": "node", "data": node}]},
            {"type": "NodeTopology", "subtypes": [label]},
        ]
    }


def item(key: str, value: str, nodes: str, **data: Any) -> dict[str, Any]:
    """One lossless label item."""
    return {
        "context": {"key": key, "value": value},
        "data": {"node-count": len(nodes.split(",")), "node-list": nodes, "truncated": False}
        | data,
    }


def ask(value: str, document: dict[str, Any] | None) -> Outcome:
    """Evaluate the rule by its constraint name."""
    return evaluate_constraint({"name": nodeset.NAME, "value": value}, document)


@pytest.mark.covers("R11-67", "V-035")
@pytest.mark.parametrize(
    ("value", "data", "passed", "actual"),
    [
        ("a/b=x", {"a/b": "x|n1,n2,n3,other"}, True, "all 3 GPU node(s) carry a/b=x"),
        ("a/b=", {"a/b": "|n1,n2,n3"}, True, "all 3 GPU node(s) carry a/b="),
        ("a/b=x", {"a/b": "x|n1"}, False, "2 of 3 GPU node(s) missing a/b=x: n2,n3"),
        ("a/b=x", {"a/b": "y|n1,n2,n3"}, False, "3 of 3 GPU node(s) missing a/b=x: n1,n2,n3"),
        ("a/b=x", {}, False, "3 of 3 GPU node(s) missing a/b=x: n1,n2,n3"),
        (
            "a/b=x",
            {"a/b.x": "x|n1,n2", "a/b.y": "y|n3"},
            False,
            "1 of 3 GPU node(s) missing a/b=x: n3",
        ),
        ("!a/b", {}, True, "none of 3 GPU node(s) carry label a/b"),
        ("!a/b", {"a/b": "x|other"}, True, "none of 3 GPU node(s) carry label a/b"),
        ("!a/b", {"a/b": "x|n2,other"}, False, "1 of 3 GPU node(s) carry label a/b: n2"),
        (
            "!a/b",
            {"a/b.x": "x|n2", "a/b.y": "y|n1"},
            False,
            "2 of 3 GPU node(s) carry label a/b: n1,n2",
        ),
        (" !a/b ", {}, True, "none of 3 GPU node(s) carry label a/b"),
    ],
)
def test_the_rule_is_asked_of_every_gpu_node(
    value: str, data: dict[str, str], passed: bool, actual: str
) -> None:
    """All carry it, or none does; the answer counts and names (recipe spec 8.7)."""
    outcome = ask(value, snapshot(GPU_NODES | data))
    assert (outcome.passed, outcome.actual) == (passed, actual)
    assert outcome.expected == value.strip()


def test_a_failed_rule_names_five_nodes_at_most() -> None:
    """A big cluster does not flood the message."""
    nodes = ",".join(f"n{index}" for index in range(1, 8))
    outcome = ask("a=x", snapshot({UNIVERSE: f"h100|{nodes}"}))
    assert outcome.actual == "7 of 7 GPU node(s) missing a=x: n1,n2,n3,n4,n5(+2 more)"


@pytest.mark.covers("V-035")
def test_several_pools_form_one_universe() -> None:
    """GPU nodes are those with any value of the service's label."""
    data = {f"{UNIVERSE}.a": "a|n1", f"{UNIVERSE}.b": "b|n2", "x": "1|n1,n2"}
    assert ask("x=1", snapshot(data)).actual == "all 2 GPU node(s) carry x=1"


@pytest.mark.covers("R11-65", "V-036", "V-037", "V-043")
@pytest.mark.parametrize("provider", ["eks", "aks", "kind", "somecloud"])
def test_a_service_without_a_gpu_node_label_cannot_be_asked(provider: str) -> None:
    """Only GKE declares what a GPU node is; elsewhere the rule is an error."""
    with pytest.raises(AicrError, match="has no declared GPU-node label") as caught:
        ask("!a", snapshot(GPU_NODES, provider=provider))
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.covers("V-037", "V-042")
def test_an_unknown_service_cannot_be_asked() -> None:
    """Without a provider reading nobody knows which nodes have GPUs."""
    with pytest.raises(AicrError, match="the service is unknown") as caught:
        ask("!a", snapshot(GPU_NODES, provider=None))
    assert caught.value.code == INVALID_REQUEST


def test_no_snapshot_is_an_invalid_request() -> None:
    """The rule needs a snapshot like any other constraint."""
    with pytest.raises(AicrError, match="snapshot is nil"):
        ask("!a", None)


@pytest.mark.covers("A11", "V-039")
@pytest.mark.parametrize("data", [{}, {"x": "1|n1"}])
def test_an_empty_universe_is_not_a_vacuous_truth(data: dict[str, str]) -> None:
    """Zero GPU nodes is NOT_FOUND, never "none carries it"."""
    with pytest.raises(AicrError, match="no node carries") as caught:
        ask(f"!{PLUGIN}", snapshot(data))
    assert caught.value.code == NOT_FOUND


def test_absent_label_readings_are_not_an_empty_cluster() -> None:
    """Without the label subtype there is nothing to conclude from."""
    document = snapshot({})
    document["measurements"].pop()
    with pytest.raises(AicrError, match=r"NodeTopology\.label is not in the snapshot") as caught:
        ask("!a", document)
    assert caught.value.code == NOT_FOUND


@pytest.mark.covers("A11", "R11-66", "V-038")
@pytest.mark.parametrize(
    "data",
    [
        {UNIVERSE: "h|n1,n2 (+14 more)"},
        {UNIVERSE: "h|n1,n2(+14 more)"},
        GPU_NODES | {PLUGIN: "true|n7 (+1 more)"},
        GPU_NODES | {f"{PLUGIN}.a": "a|n7 (+1 more)", f"{PLUGIN}.b": "b|n8"},
    ],
)
def test_a_list_that_was_cut_is_an_error(data: dict[str, str]) -> None:
    """Nodes that are not listed may be the ones that matter (decision 9)."""
    with pytest.raises(AicrError, match="truncated") as caught:
        ask(f"!{PLUGIN}", snapshot(data))
    assert caught.value.code == INVALID_REQUEST
    assert "again" in caught.value.hint


@pytest.mark.covers("A11")
def test_a_label_whose_name_extends_the_key_does_not_count() -> None:
    """``device-plugin.true`` is another label, unless it can only be read as a value."""
    other = GPU_NODES | {f"{PLUGIN}.true": "yes|n1"}
    assert ask(f"!{PLUGIN}", snapshot(other)).passed
    beside = GPU_NODES | {f"{PLUGIN}.true": "true|n1", PLUGIN: "x|other"}
    assert ask(f"!{PLUGIN}", snapshot(beside)).passed
    items = [item(UNIVERSE, "h", "n1"), item(f"{PLUGIN}.true", "true", "n1")]
    assert ask(f"!{PLUGIN}", snapshot(other, items=items)).passed


@pytest.mark.covers("A11", "V-041")
@pytest.mark.parametrize(
    "data",
    [
        {"k.true": "true|n1"},
        {"k.a": "a|n1,n2", "k.b": "b|n2,n3"},
    ],
)
def test_an_encoding_that_reads_two_ways_is_an_error(data: dict[str, str]) -> None:
    """One prefixed reading alone, or a node with two values, is ambiguous (8.7)."""
    with pytest.raises(AicrError, match="ambiguous") as caught:
        ask("!k", snapshot(GPU_NODES | data))
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.covers("V-040")
@pytest.mark.parametrize(
    "reading",
    ["x", "", "x|y|n1", "x|", "x|n1,", "x|n1,,n2", "x|n1,n1", "x|N1", "x|n1, n2", 5, None, ["n1"]],
)
@pytest.mark.parametrize("key", [UNIVERSE, "k"])
def test_a_malformed_reading_is_an_error(key: str, reading: object) -> None:
    """A reading is ``value|node,node`` with distinct node names, or nothing follows from it."""
    data: dict[str, Any] = GPU_NODES | {key: reading}
    with pytest.raises(AicrError, match=r"malformed NodeTopology\.label") as caught:
        ask("k=x", snapshot(data))
    assert caught.value.code == INVALID_REQUEST


def test_a_malformed_reading_of_another_label_does_not_matter() -> None:
    """Only readings that the rule needs are judged."""
    data: dict[str, Any] = GPU_NODES | {"other": 5, "k": "x|n1,n2,n3"}
    assert ask("k=x", snapshot(data)).passed


def test_items_are_used_where_there_are_any() -> None:
    """The lossless encoding wins over the map beside it (8.7)."""
    items = [item(UNIVERSE, "h", "n1,n2"), item("k", "x", "n1"), item("k", "y", "n2")]
    lossy = {UNIVERSE: "h|n1 (+1 more)", "k.x": "x|n1", "k.y": "y|n2"}
    outcome = ask("k=x", snapshot(lossy, items=items))
    assert outcome.actual == "1 of 2 GPU node(s) missing k=x: n2"


def test_item_node_lists_may_be_lists() -> None:
    """A list of names is as good as a comma-separated text."""
    entry = item(UNIVERSE, "h", "n1,n2")
    entry["data"]["node-list"] = ["n1", "n2"]
    assert ask("!k", snapshot(items=[entry])).passed


@pytest.mark.covers("V-038", "V-040", "V-041")
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (item("k", "x", "n1", truncated=True), "truncated"),
        (item("k", "x", "n1", truncated="true"), "truncated"),
        (item("k", "x", "n1 (+2 more)"), "malformed"),
        (item("k", "x", "n1", **{"node-count": 2}), "malformed"),
        (item("k", "x", "n1", **{"node-count": "1"}), "malformed"),
        (item("k", "x", "n1", **{"node-count": True}), "malformed"),
        (item("k", "x", "n1", truncated="perhaps"), "malformed"),
        (item("k", "x", "n1", **{"node-list": 5}), "malformed"),
        (item("k", "h", "n1,n1"), "malformed"),
        ({"context": {"value": "x"}, "data": {}}, "malformed"),
        ({"data": {}}, "malformed"),
        ({"context": {"key": "k", "value": 1}, "data": {}}, "malformed"),
        ({"context": {"key": "k", "value": "x"}}, "malformed"),
        (item("k", "z", "n2"), "ambiguous"),
        (item("k", "y", "n3"), "malformed"),
    ],
)
def test_items_fail_closed_too(bad: dict[str, Any], message: str) -> None:
    """Truncated, contradictory, repeated and shapeless items are errors."""
    items = [item(UNIVERSE, "h", "n1,n2"), item("k", "y", "n2"), bad]
    with pytest.raises(AicrError, match=message) as caught:
        ask("!k", snapshot(items=items))
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.covers("V-034")
@pytest.mark.parametrize(
    "value",
    [
        "",
        "  ",
        "key",
        "!",
        "!a=b",
        "!!a",
        "! a",
        "=x",
        "==x",
        "a==x",
        "a!=x",
        "a =x",
        "a= x",
        "a=x y",
        "a=x,y",
        "a=-x",
        "a=" + "x" * 64,
        "-a=x",
        "a/b/c=x",
        "/a=x",
        "A.example/b=x",
        "a..b/c=x",
        "é=x",
        "a=１",
        "a\n=x",
        "a=x\u200b",
        "x" * 64 + "=1",
        "a." * 127 + "a/b=1",
        ">= 1.2",
    ],
)
def test_only_key_value_and_negated_key_are_rules(value: str) -> None:
    """Label grammar of Kubernetes, and nothing else (8.7)."""
    with pytest.raises(AicrError) as caught:
        nodeset.parse(value)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.where == nodeset.NAME
    assert caught.value.hint


@pytest.mark.covers("V-034")
@pytest.mark.parametrize(
    "value",
    [
        "a=x",
        "a=",
        "a.b-c_D9=X.y-z_9",
        "example.com/a=x",
        "!example.com/A_b",
        "9=9",
        "a=" + "x" * 63,
    ],
)
def test_valid_labels_are_rules(value: str) -> None:
    """Upper case, marks inside names, an empty value and a DNS prefix are legal."""
    assert nodeset.parse(value).text == value
