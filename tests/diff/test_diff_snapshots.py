"""Two snapshots: readings by type, subtype and key; when they were taken means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.diff import snapshots


def snapshot(*measurements: tuple[str, str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A snapshot of (type, subtype, content)."""
    return {
        "kind": "Snapshot",
        "apiVersion": "aicr.run/v1",
        "measurements": [
            {"type": kind, "subtypes": [{"subtype": name, **content}]}
            for kind, name, content in measurements
        ],
        **more,
    }


BEFORE = snapshot(
    ("K8s", "server", {"data": {"version": "v1.33.1", "platform": "linux"}}),
    ("GPU", "smi", {"items": [{"name": "gpu0", "data": {"driver": "570"}}]}),
    metadata={"timestamp": "then"},
)


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (BEFORE, []),
        ({**BEFORE, "metadata": {"timestamp": "now"}}, []),
        ({**BEFORE, "measurements": BEFORE["measurements"][::-1]}, []),
        (
            snapshot(
                ("K8s", "server", {"data": {"version": "v1.34.0"}}),
                ("GPU", "smi", {"items": [{"name": "gpu0", "data": {"driver": "580"}}]}),
            ),
            [
                ("GPU.smi", "item gpu0.driver", "changed"),
                ("K8s.server", "platform", "removed"),
                ("K8s.server", "version", "changed"),
            ],
        ),
        (
            {**BEFORE, "measurements": BEFORE["measurements"][:1]},
            [("GPU.smi", "item gpu0.driver", "removed")],
        ),
        (
            {
                **BEFORE,
                "measurements": [
                    *BEFORE["measurements"],
                    {"type": "OS", "subtypes": [{"subtype": "empty", "data": {}}]},
                ],
            },
            [("OS.empty", "", "added")],
        ),
    ],
)
def test_readings_are_compared_by_name(
    after: dict[str, Any], found: list[tuple[str, str, str]]
) -> None:
    """Changed, gone and new readings; a subtype without any is one too (decision 59)."""
    changes = snapshots.compare(BEFORE, after).changes
    assert [(c.component, c.path, c.change) for c in changes] == found


def test_items_are_told_apart_by_what_they_are_about() -> None:
    """Without a name by their context, so that their order means nothing."""
    one = {"context": {"node": "a"}, "data": {"x": 1}}
    two = {"context": {"node": "b"}, "data": {"x": 2}}
    before = snapshot(("K8s", "nodes", {"items": [one, two]}))
    assert snapshots.compare(before, snapshot(("K8s", "nodes", {"items": [two, one]}))).same
    after = snapshot(("K8s", "nodes", {"items": [one]}))
    assert [c.path for c in snapshots.compare(before, after).changes] == ["item node=b.x"]


def test_of_two_readings_of_one_name_the_first_counts() -> None:
    """As everywhere (recipe 8.1)."""
    before = snapshot(("K8s", "server", {"data": {"v": 1}}), ("K8s", "server", {"data": {"v": 2}}))
    after = snapshot(("K8s", "server", {"data": {"v": 1}}), ("K8s", "server", {"data": {"v": 3}}))
    assert snapshots.compare(before, after).same
