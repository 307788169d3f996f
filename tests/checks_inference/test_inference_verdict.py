"""The verdict of inference-perf: thresholds, scaling, tolerance."""

from __future__ import annotations

import pytest

from aicr.checks.performance.inference_sizing import Load
from aicr.checks.performance.inference_verdict import (
    Measurement,
    judge,
    least_throughput,
    threshold,
    thresholds,
    too_many_errors,
)
from aicr.errors import INVALID_REQUEST, AicrError


def load(gpus: int, node_gpus: int = 8) -> Load:
    """A load on so many GPUs."""
    return Load(gpus, node_gpus, 1, 1, 1)


@pytest.mark.covers("V10-65", "V-327")
def test_the_throughput_gate_is_scaled_by_free_gpus_and_then_has_its_tolerance() -> None:
    """8 GPUs, 4 free, at least 50000: the gate is 50000 x 0.5 x 0.9."""
    asked = threshold("inference-throughput", ">= 50000")
    assert least_throughput(asked, load(4)) == 22500
    assert least_throughput(asked, load(8)) == 45000
    assert least_throughput(asked, load(3, 3)) == 45000


@pytest.mark.covers("V10-65", "V-327", "V-328")
@pytest.mark.parametrize(
    ("throughput", "ttft", "gpus", "passed"),
    [
        (45000.0, 2200.0, 8, [True, True]),
        (44999.99, 2200.01, 8, [False, False]),
        (22500.0, 2200.0, 4, [True, True]),
        (22499.9, 100.0, 4, [False, True]),
        (99999.0, 2200.1, 1, [True, False]),
    ],
)
def test_each_gate_has_ten_percent_in_its_own_direction(
    throughput: float, ttft: float, gpus: int, passed: list[bool]
) -> None:
    """A value on the gate passes; the first token is not scaled."""
    asked = thresholds({"inference-throughput": ">= 50000", "inference-ttft-p99": "<= 2000"}.get)
    assert asked is not None
    gates = judge(asked, Measurement(throughput, ttft), load(gpus))
    assert [gate.passed for gate in gates] == passed
    words = ["PASS" if each else "FAIL" for each in passed]
    assert [gate.line for gate in gates] == [
        f"Throughput constraint: >= 50000 → {words[0]}",
        f"TTFT p99 constraint: <= 2000 → {words[1]}",
    ]


def test_only_what_is_stated_is_judged() -> None:
    """One constraint, one gate; none, none."""
    nothing: dict[str, str] = {}
    assert thresholds(nothing.get) is None
    assert thresholds({"inference-throughput": "  "}.get) is None
    asked = thresholds({"inference-ttft-p99": "<= 2000 ms"}.get)
    assert asked is not None
    (gate,) = judge(asked, Measurement(1.0, 2000.0), load(1))
    assert gate.line == "TTFT p99 constraint: <= 2000 ms → PASS"


@pytest.mark.parametrize(
    ("text", "value"), [(">= 50000", 50000), ("450.5 tokens/s", 450.5), ("=!> 7", 7), ("1e3", 1000)]
)
def test_a_threshold_is_the_first_number_of_its_expression(text: str, value: float) -> None:
    """The operator is not looked at."""
    assert threshold("inference-throughput", text).value == value


@pytest.mark.covers("V-274")
@pytest.mark.parametrize("text", [">=", "fast", ">= fast", ">= 0", "-5", "nan", "inf", "<= 2000ms"])
def test_a_threshold_without_a_positive_number_is_refused(text: str) -> None:
    """INVALID_REQUEST that names the constraint; a gate of 0 would judge nothing."""
    with pytest.raises(AicrError) as caught:
        thresholds({"inference-ttft-p99": text}.get)
    assert caught.value.code == INVALID_REQUEST
    assert "inference-ttft-p99" in caught.value.message


@pytest.mark.parametrize(
    ("requests", "errors", "broken"),
    [(900, 100, ""), (899, 101, "101 of 1000 requests failed"), (None, None, ""), (0, 5, "5 of 5")],
)
def test_a_service_that_refuses_more_than_a_tenth_is_not_measured_by_the_rest(
    requests: int | None, errors: int | None, broken: str
) -> None:
    """The numbers of the answered requests say little then."""
    found = too_many_errors(Measurement(1.0, 1.0, requests, errors))
    assert found.startswith(broken)
    assert bool(found) is bool(broken)
