"""The way of a snapshot from the pod to the caller: compressed parts that belong together."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from aicr.collectors import staging
from aicr.errors import INTERNAL, AicrError

SNAPSHOT = {"kind": "Snapshot", "measurements": [{"type": "OS", "subtypes": []}], "text": "ü|x"}


def staged(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The ConfigMaps of a document, first part first."""
    parts = staging.pack(document)
    return staging.config_maps(parts, name="cm", namespace="ns", marks={"a": "b"})[::-1]


def large() -> dict[str, Any]:
    """A document that does not compress into one part."""
    chance = random.Random(1)
    return {"lines": [f"{chance.getrandbits(256):x}" for _ in range(60_000)]}


def test_a_snapshot_comes_back_whole() -> None:
    """One part, labelled, with its digest."""
    (only,) = staged(SNAPSHOT)
    assert only["metadata"]["labels"] == {"a": "b"}
    assert staging.count_of(only) == 1
    assert staging.unpack([only]) == SNAPSHOT


def test_a_large_snapshot_is_cut_into_objects_that_a_cluster_takes() -> None:
    """Every object stays below a mebibyte, and the first part is written last."""
    document = large()
    parts = staging.pack(document)
    assert len(parts) > 1
    written = staging.config_maps(parts, name="cm", namespace="ns", marks={})
    assert all(len(json.dumps(one)) < 1024 * 1024 for one in written)
    assert written[-1]["metadata"]["name"] == "cm"
    assert [one["metadata"]["name"] for one in written[::-1]] == [
        staging.part_name("cm", number) for number in range(len(parts))
    ]
    assert staging.unpack(written[::-1]) == document


def test_the_same_snapshot_gives_the_same_bytes() -> None:
    """No time in the compressed form (decision 3)."""
    assert staging.pack(SNAPSHOT) == staging.pack(copy.deepcopy(SNAPSHOT))


def test_missing_foreign_and_broken_parts_are_refused() -> None:
    """Half a snapshot never reads as a whole one."""
    parts = staged(large())
    (other,) = staged(SNAPSHOT)
    no_data = {**parts[1], "binaryData": {}}
    not_base64 = {**parts[1], "binaryData": {staging.KEY: "?"}}
    for wrong in (
        parts[:-1],
        [parts[0], other, *parts[2:]],
        [parts[1], parts[0], *parts[2:]],
        [parts[0], no_data, *parts[2:]],
        [parts[0], not_base64, *parts[2:]],
    ):
        with pytest.raises(AicrError) as caught:
            staging.unpack(wrong)
        assert caught.value.code == INTERNAL
        assert caught.value.where.startswith("cm://ns/cm")


@pytest.mark.parametrize("text", ["", "0", "x", "-1", "1000000"])
def test_a_first_part_that_names_no_number_is_refused(text: str) -> None:
    """The count is what tells a whole snapshot."""
    with pytest.raises(AicrError):
        staging.count_of({"metadata": {"annotations": {staging.PARTS: text}}})


def test_content_that_is_no_snapshot_text_is_refused() -> None:
    """A right digest of wrong content helps nobody."""
    broken = staging.config_maps([b"not gzip"], name="cm", namespace="ns", marks={})
    with pytest.raises(AicrError, match="no compressed JSON"):
        staging.unpack(broken)
