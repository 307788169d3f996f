"""Kubernetes quantities: grammar, exact equality and order, whole units."""

from __future__ import annotations

import pytest

from aicr.errors import INVALID_REQUEST, AicrError
from aicr.values import quantities
from aicr.values.quantities import parse


@pytest.mark.covers("C7")
@pytest.mark.parametrize(
    "equal",
    [
        ["100m", "0.1", "1e-1", ".1", "+.1", "0.10", 0.1],
        ["1k", "1e3", "1000", "1E3", "1e+3", 1000],
        ["1Gi", "1073741824", "1024Mi"],
        ["1.5Gi", "1536Mi"],
        [".5", "0.5", "500m", "500000u", "500000000n", 0.5],
        ["+1", "1", "1.", "1.0", "01", 1],
        ["100u", "100000n", "0.1m"],
        ["1E", "1000P", "1e18", "1000000000000000000"],
        ["1Ei", "1024Pi", str(2**60)],
        ["8", 8, "8000m"],
        ["0", "-0", "0Ki", "0e5", 0],
        ["-1.5", "-1500m", -1.5],
    ],
)
def test_different_spellings_of_one_amount_are_equal(equal: list[str | int | float]) -> None:
    """Amounts are exact fractions, so spelling does not matter."""
    amounts = [parse(text) for text in equal]
    assert all(amount == amounts[0] for amount in amounts)
    assert len(set(amounts)) == 1


@pytest.mark.covers("C7")
@pytest.mark.parametrize(
    "text",
    [
        *["1K", "1KB", "1GB", "16g", "1 Gi", "1e", "1_000", "0x10", "nan", "inf", "١٠", ""],
        *[" 1", "1 ", "+", "-", ".", "+.", "Gi", "1.2.3", "--1", "1e1.5", "1e1Gi", "1ei", "1Mib"],
        *["1e+", "1E-", "1e1_0", "1e١", "1,5", "1m1", "1kk", "0b1", "1e400000000", "1" * 500],
    ],
)
def test_what_kubernetes_does_not_read_is_refused(text: str) -> None:
    """Python's own number parsing would take half of these."""
    with pytest.raises(AicrError) as caught:
        parse(text)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.hint


@pytest.mark.parametrize("value", [True, None, [], float("nan"), float("inf")])
def test_values_that_are_no_quantity_at_all_are_refused(value: object) -> None:
    """A bool is not a number here."""
    with pytest.raises(AicrError, match="invalid quantity"):
        parse(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "meant"), [("16g", "G (10^9) or Gi (2^30)"), ("1K", "k (1000)"), ("2 GB", "Gi (2^30)")]
)
def test_wrongly_cased_suffixes_are_answered_with_the_right_ones(text: str, meant: str) -> None:
    """The hint names what was probably meant."""
    with pytest.raises(AicrError) as caught:
        parse(text)
    assert meant in caught.value.hint


def test_quantities_are_ordered_by_amount() -> None:
    """Suffixes and exponents compare exactly, beyond the precision of floats."""
    texts = ["-1", "0", "1n", "1u", "1m", "999m", "1", "1k", "1Ki", "1M", "1Mi", "1G", "1Gi", "1E"]
    amounts = [parse(text) for text in texts]
    assert sorted(parse(text) for text in texts[::-1]) == amounts
    assert parse("9007199254740993") > parse("9007199254740992")
    assert parse("1") <= parse("1000m") <= parse("1")
    assert parse("1") >= parse("1000m")
    assert parse("1") != "1"
    assert repr(parse("1.5Gi")) == "Quantity('1.5Gi')"


@pytest.mark.covers("C7")
def test_extended_resources_come_in_whole_units() -> None:
    """A part of a GPU is no GPU, and a negative number of them is none either."""
    assert quantities.whole_units("8", "nvidia.com/gpu") == 8
    assert quantities.whole_units(8, "nvidia.com/gpu") == 8
    assert quantities.whole_units("2000m", "nvidia.com/gpu") == 2
    with pytest.raises(AicrError, match=r"nvidia\.com/gpu: 1m is not a whole number of units"):
        quantities.whole_units("1m", "nvidia.com/gpu")
    with pytest.raises(AicrError, match="-1 is negative"):
        quantities.whole_units("-1", "nvidia.com/gpu")


@pytest.mark.covers("C7")
def test_request_and_limit_of_an_extended_resource_are_one_number() -> None:
    """Kubernetes does not overcommit them."""
    assert quantities.extended_count(None, None, "r") == 0
    assert quantities.extended_count("2", None, "r") == 2
    assert quantities.extended_count("2", 2, "r") == 2
    with pytest.raises(AicrError, match="request 2 and limit 1 differ"):
        quantities.extended_count("1", "2", "r")
    with pytest.raises(AicrError, match="request 2 without a limit"):
        quantities.extended_count(None, "2", "r")
