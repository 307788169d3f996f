"""Ranges of versions in upgrade records."""

from __future__ import annotations

import pytest

from aicr.bundle import upgrade_ranges
from aicr.errors import AicrError
from aicr.values import versions


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("<2.0.0", ["1.9.9", "0.0.1", "2.0.0-rc.1"], ["2.0.0", "2.0.1"]),
        ("<=2", ["2.0.0", "v1"], ["2.0.1"]),
        (">=1.2 <1.4", ["1.2.0", "1.3.9"], ["1.1.9", "1.4.0"]),
        (">=1.2, <=1.4.0", ["1.4"], ["1.4.1"]),
        (">1.2.3,<1.2.5", ["1.2.4"], ["1.2.3", "1.2.5"]),
        ("=1.2.3", ["1.2.3", "v1.2.3"], ["1.2.4", "1.2.3-alpha"]),
        ("1.2.3", ["1.2.3"], ["1.2.2"]),
        ("<0.1.0-alpha.12", ["v0.1.0-alpha.9", "0.0.9"], ["0.1.0-alpha.12", "0.1.0"]),
        (">= 1.0 < 2.0", ["1.5.0"], ["2.0.0"]),
        (">=1 >=2 <4 <3", ["2.0.0"], ["1.0.0", "3.0.0"]),
    ],
)
def test_a_range_holds_what_all_its_comparisons_hold(
    text: str, inside: list[str], outside: list[str]
) -> None:
    """Comparisons are joined by and; missing components are zero (recipe 3.9)."""
    found = upgrade_ranges.parse(text)
    assert [v for v in inside if not found.contains(versions.parse(v))] == []
    assert [v for v in outside if found.contains(versions.parse(v))] == []


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "<", "latest", "1.0 ||", ">=1 || <2", "!=1.0", "~1.2", "^1", "==1.0", "1.2.3.4"),
        *("<1.0,,>2", "1.x", ">=1.0;<2", "<1.0 and >0"),
    ],
)
def test_what_is_no_range_is_refused(text: str) -> None:
    """There is no or, no other operator and no wildcard."""
    with pytest.raises(AicrError, match="is not a range of versions"):
        upgrade_ranges.parse(text)


@pytest.mark.parametrize("text", [">2.0 <1.0", ">1.0 <=1.0", "=1 =2", ">=1.0 <1.0.0"])
def test_a_range_without_a_version_is_refused(text: str) -> None:
    """It could only be a mistake."""
    with pytest.raises(AicrError, match="no version is in the range"):
        upgrade_ranges.parse(text)


@pytest.mark.parametrize(
    ("first", "second", "meets", "reaches"),
    [
        (">=1 <2", ">=2 <3", False, True),
        (">=1 <2", ">2 <3", False, False),
        (">=1 <=2", ">=2 <3", True, True),
        (">=1 <=2", ">2 <3", False, True),
        (">=1 <2", ">=2.1 <3", False, False),
        (">=1 <2", "<3", True, True),
        (">=5 <6", ">=1 <2", False, True),
    ],
)
def test_neighbours_meet_or_leave_a_hole(
    first: str, second: str, meets: bool, reaches: bool
) -> None:
    """Touching ends leave no hole when one of the two has the point."""
    left, right = upgrade_ranges.parse(first), upgrade_ranges.parse(second)
    assert left.meets(right) is meets
    assert left.reaches(right) is reaches
