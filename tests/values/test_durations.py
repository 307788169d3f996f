"""Go durations, both ways."""

from __future__ import annotations

import pytest

from aicr.errors import INVALID_REQUEST, AicrError
from aicr.values import durations


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("+0", 0),
        ("0s", 0),
        ("5s", 5 * 10**9),
        ("+5s", 5 * 10**9),
        ("-5s", -5 * 10**9),
        ("7m30s", 450 * 10**9),
        ("1h", 3600 * 10**9),
        ("1h0m0s", 3600 * 10**9),
        ("1.5h", 5400 * 10**9),
        (".5s", 5 * 10**8),
        ("1.s", 10**9),
        ("10ns", 10),
        ("11us", 11000),
        ("12µs", 12000),
        ("12μs", 12000),
        ("13ms", 13 * 10**6),
        ("1m1m", 120 * 10**9),
        ("39h9m14.425s", 140954425000000),
        ("0.3333333333333333333h", 1200 * 10**9),
        ("0.9007199254740993s", 900719925),
        ("0.100000000000000000000h", 360 * 10**9),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("2562047h47m16.854775807s", 2**63 - 1),
        ("1.9ns", 1),
    ],
)
def test_durations_read_as_go_reads_them(text: str, nanoseconds: int) -> None:
    """Units, signs, fractions and the 64-bit limits."""
    assert durations.parse(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'invalid duration ""'),
        ("-", 'invalid duration "-"'),
        ("s", 'invalid duration "s"'),
        (".", 'invalid duration "."'),
        (".s", 'invalid duration ".s"'),
        ("3", 'missing unit in duration "3"'),
        ("1.5", 'missing unit in duration "1.5"'),
        ("1h5", 'missing unit in duration "1h5"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
        ("1 s", 'unknown unit " s" in duration "1 s"'),
        ("5S", 'unknown unit "S" in duration "5S"'),
        ("1m-5s", 'unknown unit "m-" in duration "1m-5s"'),
        ("١s", 'invalid duration "١s"'),
        ("1e3s", 'unknown unit "e" in duration "1e3s"'),
        ("3000000h", "does not fit in 64 bits"),
        ("9223372036854775808ns", "does not fit in 64 bits"),
        ("-9223372036854775809ns", "does not fit in 64 bits"),
        ("1" * 6000 + "s", "does not fit in 64 bits"),
    ],
)
def test_what_go_refuses_is_refused(text: str, message: str) -> None:
    """There are no days, no blanks, and every number needs a unit."""
    with pytest.raises(AicrError) as caught:
        durations.parse(text)
    assert caught.value.code == INVALID_REQUEST
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (2200000, "2.2ms"),
        (10**9, "1s"),
        (3300000000, "3.3s"),
        (245 * 10**9, "4m5s"),
        (245001000000, "4m5.001s"),
        (18367001000000, "5h6m7.001s"),
        (3600 * 10**9, "1h0m0s"),
        (480000000001, "8m0.000000001s"),
        (-450 * 10**9, "-7m30s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
    ],
)
def test_durations_print_as_go_prints_them(nanoseconds: int, text: str) -> None:
    """The text reads back as the same duration."""
    assert durations.format(nanoseconds) == text
    assert durations.parse(text) == nanoseconds
