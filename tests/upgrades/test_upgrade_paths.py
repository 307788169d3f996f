"""Which recorded transitions lead from one version to another, and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from tests.upgrades.upgrade_samples import record, transition

from aicr.bundle import upgrade_paths, upgrade_records

RECORD = upgrade_records.read(
    record(
        transition("<2.0.0", ">=2.0.0 <3.0.0", "safe", summary="Tried."),
        transition(">=2.0.0 <3.0.0", ">=3.0.0 <4.0.0", summary="By hand.", reversible=False),
        transition(
            "<4.0.0",
            ">=4.0.0 <=4.5.0",
            "blocked",
            summary="Not yet.",
            reversibleNotes="Data moved.",
        ),
    ),
    source="r.yaml",
)


@pytest.mark.parametrize(
    ("before", "after", "verdict", "path"),
    [
        ("1.0.0", "2.1.0", "safe", ["Tried."]),
        ("2.1.0", "3.0.0", "manual", ["By hand."]),
        ("1.0.0", "3.9.0", "manual", ["Tried.", "By hand."]),
        ("1.0.0", "4.0.0", "blocked", ["Not yet."]),
        ("v3.0.0", "v4.5.0", "blocked", ["Not yet."]),
        ("2.1.0", "2.2.0", "unknown", []),
        ("4.0.0", "4.1.0", "unknown", []),
        ("1.0.0", "1.5.0", "unknown", []),
        ("4.0.0", "4.5.1", "blocked", []),
        ("1.0.0", "9", "blocked", []),
        ("1.0.0", "latest", "unversioned", []),
        ("", "1.0.0", "unversioned", []),
        ("1.0", "v1.0.0", "unchanged", []),
        ("3.5.0", "2.5.0", "blocked", []),
        ("2.5.0", "1.0.0", "unknown", []),
    ],
)
def test_a_way_has_the_verdict_of_its_worst_part(
    before: str, after: str, verdict: str, path: list[str]
) -> None:
    """Shortest chain; none is unknown, above the ceiling is blocked (9.1)."""
    found = upgrade_paths.assess("x", RECORD, before, after)
    assert (found.verdict, [item.summary for item in found.path]) == (verdict, path)
    assert found.reason


def test_without_a_record_a_change_is_unknown() -> None:
    """That nobody wrote anything down does not make it safe."""
    assert upgrade_paths.assess("x", None, "1.0", "1.1").verdict == "unknown"


def ref(name: str, version: str = "1.0.0", **more: Any) -> dict[str, Any]:
    """A component ref."""
    return {"name": name, "version": version, "source": "https://a.example", **more}


def test_components_are_compared_by_name() -> None:
    """New and gone ones are said and need nobody; another source needs a look."""
    before = [
        ref("gone"),
        ref("same"),
        ref("moved"),
        ref("x"),
        ref("bare", "", tag="v1"),
        ref("t", ""),
    ]
    after = [
        *(ref("new"), ref("same"), ref("moved", source="https://b.example"), ref("x", "2.0.0")),
        *(ref("bare", "", tag="v2"), ref("t", "1.0")),
    ]
    rows = upgrade_paths.compare(before, after, lambda name: RECORD if name == "x" else None)
    assert {row.component: row.verdict for row in rows} == {
        "bare": "unknown",
        "gone": "removed",
        "moved": "unknown",
        "new": "added",
        "same": "unchanged",
        "t": "unversioned",
        "x": "safe",
    }
    assert {row.component for row in rows if row.needs_attention} == {"bare", "moved", "t"}
