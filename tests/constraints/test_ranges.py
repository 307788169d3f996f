"""Narrowing one constraint by another."""

from __future__ import annotations

import pytest

from aicr.constraints import ranges
from aicr.errors import INVALID_REQUEST, AicrError


@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        (">= 1.32.4", ">= 1.32.4", ">= 1.32.4"),
        (">= 1.32.4", ">=v1.34.0", ">= v1.34.0"),
        (">= 1.34.0", ">= 1.32.4", ">= 1.34.0"),
        (">= 1.32.4", "> 1.32.4", "> 1.32.4"),
        ("> 1.32.4", ">= 1.32.4", "> 1.32.4"),
        ("<= 1.36.0", "< 1.36.0", "< 1.36.0"),
        (">= 1.32.4", "< 1.36.0", ">= 1.32.4 < 1.36.0"),
        (">= 1.32.4 < 1.36.0", ">= 1.33.0", ">= 1.33.0 < 1.36.0"),
        (">= 1.32.4", "<= 1.32.4", ">= 1.32.4 <= 1.32.4"),
        (">= 1.32.4", "!= 1.33.0", ">= 1.32.4 != 1.33.0"),
        (">= 1.32.4", "== 1.33.0", "== 1.33.0"),
        (">= 1.32.4 != 1.33.0", "== 1.34.0", "== 1.34.0"),
        ("== 1.33.0", "== v1.33.0", "== 1.33.0"),
        (
            ">= 1.34.3-gke.5 < 1.35.0 || >= 1.35.0-gke.7",
            ">= 1.34.4",
            ">= 1.34.4 < 1.35.0 || >= 1.35.0-gke.7",
        ),
        (">= 1.30.0 || >= 1.32.0", ">= 1.31.0", ">= 1.31.0"),
        ("< 1.30.0 || > 1.34.0", ">= 1.35.0", ">= 1.35.0"),
        ("!= 1.30.0 || > 1.31.0", "< 1.34.0", "< 1.34.0 != 1.30.0"),
        ("ubuntu", "ubuntu", "ubuntu"),
        ("ubuntu || rhel", "rhel || cos", "rhel"),
        ("== ubuntu", "ubuntu", "ubuntu"),
        ("!= rhel", "ubuntu", "ubuntu"),
        ("!= rhel", "!= cos", "!= rhel != cos"),
        (" Install ", "Install", "Install"),
        # the same text is never parsed, so other grammars pass through
        ("!example.com/plugin", "!example.com/plugin", "!example.com/plugin"),
    ],
)
def test_two_ranges_narrow_to_what_both_allow(a: str, b: str, joined: str) -> None:
    """A profile's constraint may narrow the recipe's (recipe spec 4.11)."""
    assert ranges.intersect(a, b) == joined


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (">= 1.34.0", "< 1.34.0", "cannot both hold"),
        (">= 1.34.0", "<= 1.33.9", "cannot both hold"),
        ("> 1.34.0", "<= 1.34.0", "cannot both hold"),
        (">= 1.34.0", "== 1.33.0", "cannot both hold"),
        ("== 1.33.0", "!= 1.33.0", "cannot both hold"),
        ("== 1.33.0", "== 1.34.0", "cannot both hold"),
        (">= 1.34.1-gke.5", "== 1.34.1", "cannot both hold"),
        ("Install", "None", "cannot both hold"),
        ("!= Install", "Install", "cannot both hold"),
        (">= 1.32", ">= 1.32.4", "precision mismatch"),
        (">= 1.32.4", "< 1.36", "precision mismatch"),
        ("ubuntu", ">= 22.04", "not comparable"),
        ("1.33.0", ">= 1.32.0", "not comparable"),
        ("!= ubuntu", "== 22.04", "not comparable"),
        (">=", ">= 1.32", "cannot be empty after operator"),
        (">= 1.32", "~1.32", "not an operator"),
    ],
)
def test_what_cannot_be_narrowed_is_an_error(a: str, b: str, message: str) -> None:
    """Empty, incomparable and differently precise ranges are refused, not guessed."""
    with pytest.raises(AicrError, match=message) as caught:
        ranges.intersect(a, b)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.hint
