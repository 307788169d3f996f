"""Laws of the two encodings of node labels: what goes in comes out, or is refused."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from aicr.collectors import staging, topology
from aicr.collectors.topology import LabelledNode
from aicr.constraints import nodelabels
from aicr.errors import AicrError

KEYS = st.sampled_from(["a", "a.b", "a.b.c", "nvidia.com/gpu", "nvidia.com/gpu.x"])
VALUES = st.sampled_from(["", "b", "b.c", "x", "true", "1"])
NODES = st.dictionaries(
    st.sampled_from([f"n{number}" for number in range(6)]), st.dictionaries(KEYS, VALUES)
)


def subtype(cluster: dict[str, dict[str, str]], most: int = 0) -> dict[str, object]:
    """The label subtype of a cluster: node → labels."""
    nodes = [
        msgspec.convert({"metadata": {"name": name, "labels": labels}}, LabelledNode)
        for name, labels in cluster.items()
    ]
    found: dict[str, object] = topology.measure(nodes, most_names=most).subtypes[1]
    return found


def truth(cluster: dict[str, dict[str, str]], key: str) -> dict[str, frozenset[str]]:
    """Nodes by value of a label."""
    found: dict[str, set[str]] = {}
    for name, labels in cluster.items():
        if key in labels:
            found.setdefault(labels[key], set()).add(name)
    return {value: frozenset(names) for value, names in found.items()}


@given(NODES, KEYS)
def test_items_give_back_every_label(cluster: dict[str, dict[str, str]], key: str) -> None:
    """The lossless encoding is lossless, whatever keys look like each other's."""
    assert nodelabels.nodes_by_value(subtype(cluster), key) == truth(cluster, key)


@given(NODES, KEYS)
def test_the_folded_map_is_right_or_refused_for_keys_that_no_other_looks_like(
    cluster: dict[str, dict[str, str]], key: str
) -> None:
    """Where no key begins like another, both encodings say the same."""
    keys = {one for labels in cluster.values() for one in labels}
    if any(one != other and one.startswith(f"{other}.") for one in keys for other in keys):
        return
    folded = {"subtype": "label", "data": subtype(cluster)["data"]}
    try:
        read = nodelabels.nodes_by_value(folded, key)
    except AicrError:
        return
    if key in keys:
        assert read == truth(cluster, key)


@given(NODES, KEYS, st.integers(1, 5))
def test_a_cut_list_is_never_taken_for_a_whole_one(
    cluster: dict[str, dict[str, str]], key: str, most: int
) -> None:
    """Counts stay right; membership is refused exactly where names are missing."""
    found = subtype(cluster, most)
    right = truth(cluster, key)
    counts = {value: nodes.count for value, nodes in nodelabels.values_of(found, key).items()}
    assert counts == {value: len(names) for value, names in right.items()}
    cut = any(len(names) > most for names in right.values())
    try:
        assert nodelabels.nodes_by_value(found, key) == right
        assert not cut
    except AicrError:
        assert cut


@given(
    st.recursive(
        st.text() | st.integers() | st.booleans(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_what_is_staged_comes_back(value: object) -> None:
    """Any document survives compression, parts and digest."""
    document = {"measurements": [], "value": value}
    parts = staging.pack(document)
    made = staging.config_maps(parts, name="n", namespace="ns", marks={})
    assert staging.unpack(made[::-1]) == document
