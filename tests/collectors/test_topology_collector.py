"""The NodeTopology measurement: two encodings of labels and taints, sorted, cut only when asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aicr.collectors import topology
from aicr.collectors.topology import LabelledNode
from aicr.constraints import nodelabels
from aicr.errors import AicrError


def node(name: str, labels: dict[str, str] | None = None, *taints: str) -> LabelledNode:
    """A node; a taint is written ``key=value:Effect``."""
    parsed = []
    for taint in taints:
        what, _, effect = taint.partition(":")
        key, _, value = what.partition("=")
        parsed.append({"key": key, "effect": effect, **({"value": value} if value else {})})
    return msgspec.convert(
        {"metadata": {"name": name, "labels": labels}, "spec": {"taints": parsed}}, LabelledNode
    )


def subtypes(nodes: list[LabelledNode], most: int = 0) -> dict[str, Any]:
    """Subtypes by name."""
    found = topology.measure(nodes, most_names=most)
    return {one["subtype"]: one for one in found.subtypes}


NODES = [
    node("b", {"zone": "1", "gpu": "h100"}, "gpu=present:NoSchedule"),
    node("a", {"zone": "2", "gpu": "h100"}, "gpu=present:NoSchedule", "dedicated=x:NoExecute"),
    node("c", {"zone": "1", "empty": ""}, "dedicated=y:NoSchedule", "bare:NoSchedule"),
]


def test_labels_of_one_value_and_of_several_are_folded_apart() -> None:
    """``key: value|nodes`` and ``key.value: value|nodes``, names sorted."""
    assert subtypes(NODES)["label"]["data"] == {
        "empty": "|c",
        "gpu": "h100|a,b",
        "zone.1": "1|b,c",
        "zone.2": "2|a",
    }


def test_taints_of_one_variant_and_of_several_are_folded_apart() -> None:
    """``key: Effect|value|nodes`` and ``key.Effect: value|nodes``."""
    assert subtypes(NODES)["taint"]["data"] == {
        "bare": "NoSchedule||c",
        "dedicated.NoExecute": "x|a",
        "dedicated.NoSchedule": "y|c",
        "gpu": "NoSchedule|present|a,b",
    }


def test_the_summary_counts_nodes_and_encoded_keys() -> None:
    """Counts are those of the map's keys."""
    assert subtypes(NODES)["summary"]["data"] == {
        "label-count": 4,
        "node-count": 3,
        "taint-count": 4,
    }


def test_items_lose_nothing() -> None:
    """Key, effect and value apart; nodes counted before a list is cut."""
    items = subtypes(NODES)["taint"]["items"]
    assert items[1] == {
        "context": {"key": "dedicated", "effect": "NoExecute", "value": "x"},
        "data": {"node-count": 1, "node-list": "a", "truncated": False},
    }
    assert len(items) == 4


def test_two_values_under_one_effect_collapse_only_in_the_older_encoding() -> None:
    """The map has one key for both, the items have both (the hazard of recipe spec 8.4)."""
    found = subtypes([node("a", {}, "k=1:NoSchedule"), node("b", {}, "k=2:NoSchedule")])["taint"]
    assert list(found["data"]) == ["k.NoSchedule"]
    assert [one["context"]["value"] for one in found["items"]] == ["1", "2"]


@pytest.mark.covers("A11")
def test_a_label_named_like_a_folded_one_is_kept_apart_in_the_items() -> None:
    """``key.value`` as a label's own name is not a value of ``key``."""
    found = subtypes([node("a", {"k.x": "x"}), node("b", {"k": "y"}), node("c", {"k": "x"})])
    values = nodelabels.nodes_by_value(found["label"], "k")
    assert values == {"x": frozenset({"c"}), "y": frozenset({"b"})}


@pytest.mark.parametrize(
    ("most", "text", "cut"),
    [(0, "n0,n1,n2,n3", False), (4, "n0,n1,n2,n3", False), (3, "n0,n1,n2 (+1 more)", True)],
)
def test_long_lists_are_cut_and_say_so(most: int, text: str, cut: bool) -> None:
    """The count is of all nodes; whoever needs all of them is refused (decision 9)."""
    found = subtypes([node(f"n{number}", {"k": "v"}) for number in range(4)], most)["label"]
    assert found["data"] == {"k": f"v|{text}"}
    assert found["items"][0]["data"] == {"node-count": 4, "node-list": text, "truncated": cut}
    if cut:
        with pytest.raises(AicrError, match="truncated"):
            nodelabels.nodes_by_value(found, "k")
    else:
        assert len(nodelabels.nodes_by_value(found, "k")["v"]) == 4


def test_a_cluster_without_nodes_has_an_empty_measurement() -> None:
    """Zero nodes are a count; rules about them are errors elsewhere."""
    found = subtypes([])
    assert found["summary"]["data"]["node-count"] == 0
    assert found["label"] == {"subtype": "label", "data": {}}
