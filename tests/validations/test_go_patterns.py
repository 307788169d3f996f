"""Which regular expressions Go would compile, told without Go."""

from __future__ import annotations

import warnings

import pytest

from aicr.bundle.validations.go_patterns import pattern_problem


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "mlx5_0", "^mlx5_[0-3]$", "mlx5_(0|1)", "a*?", "a{2}", "a{2,}?", "x{,5}", "a|b"),
        *("(?i)foo", "foo(?i)bar", "(?i:x)", "(?s-m:x)", "(?P<n>x)", "(?<n>x)", "(?:x)"),
        *(r"\d+\.\w", r"\Aa\z", r"\pL", r"\PL", r"\p{Greek}x", r"\x41", r"\x{1F600}", r"\_"),
        *("[[:alpha:]_]", "[[:^digit:]]", r"\Qa+*(\E", r"\Qopen(", "[]a]", "[^]a]"),
        *("^*", r"a$+|\b?", "[(?]", "[a&&b]", "[a||b]", "[[a]", r"[\]]", r"[\pL]", "[*+?]{1,3}"),
    ],
)
def test_what_go_compiles_is_let_through(pattern: str) -> None:
    """Also what Python alone would refuse, or warn about."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pattern_problem(pattern) == ""


@pytest.mark.parametrize(
    "pattern",
    [
        *("[", "(", ")", "a)", "*a", "a|*", "+", "\\", "[b-a]", "a{2,1}", "mlx5_[0"),
        *("a**", "a++", "a*+", "a?+", "a{2}{3}", "a{1001}", "a{1,1001}"),
        *("(?=x)", "(?!x)", "(?<=x)", "(?<!x)", "(?>x)", "(?P=n)", "(?#c)", "(?(1)a|b)"),
        *(r"(a)\1", r"\Z", r"\q", r"\k", "[[:foo:]]", r"\x{110000}", r"[\1]", r"[\z]", "[(?]x)"),
    ],
)
def test_what_go_refuses_is_refused_in_words(pattern: str) -> None:
    """Also what Python alone would take: look-around, back references, possessive repetition."""
    assert pattern_problem(pattern)
