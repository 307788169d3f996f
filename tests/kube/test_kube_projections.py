"""Projections take little memory, and are what ordinary dictionaries and texts would be."""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

import msgspec
import pytest

from aicr.kube import projection
from aicr.kube.projection import Node


def labels(count: int, own: str) -> dict[str, str]:
    """As many labels, of which one differs; one is named as something that Python knows."""
    common = {f"feature.example.test/a-feature-of-cpu-{number}": "true" for number in range(count)}
    return {"__class__": "x", "example.test/own": own, **common}


def node(name: str, count: int) -> Any:
    """A node, decoded from texts of its own."""
    metadata = {
        "name": name,
        "creationTimestamp": "2026-11-30T10:00:00Z",
        "labels": {"kubernetes.io/hostname": name, **labels(count, name)},
    }
    return msgspec.json.decode(json.dumps({"metadata": metadata}), type=Node)


@pytest.mark.parametrize("count", [0, 6, 7, 18, 26, 27, 28, 29, 98])
def test_labels_are_dictionaries_of_their_own_however_many_they_are(count: int) -> None:
    """Equal, in the same order, and whoever changes one changes no other; never larger than a copy."""
    projection._TEMPLATES.clear()
    for name in ("one", "two", "three"):
        given = labels(count, name)
        found = projection._shared_texts(dict(given))
        gc.collect()
        assert found == given
        assert type(found) is dict
        assert list(found) == list(given)
        assert sys.getsizeof(found) <= sys.getsizeof(given.copy())
        found["spoilt"] = "spoilt"
        del found["example.test/own"]
        found.clear()
        assert projection._shared_texts(dict(given)) == given


def test_a_name_and_the_label_that_repeats_it_are_one_text() -> None:
    """As the time of objects that were made in the same second is."""
    projection._POOL.clear()
    one, two = node("node-of-pool-1", 18).metadata, node("node-of-pool-2", 18).metadata
    assert one.name is one.labels["kubernetes.io/hostname"]
    assert (one.name, two.name) == ("node-of-pool-1", "node-of-pool-2")
    assert one.creation_timestamp is two.creation_timestamp
