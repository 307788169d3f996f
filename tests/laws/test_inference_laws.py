"""Laws of inference-perf: who is chosen, what is counted, and when more is never worse."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aicr.checks.performance.inference_aiperf import MARKER, measurement
from aicr.checks.performance.inference_knobs import KNOBS, Knob, resolve
from aicr.checks.performance.inference_occupancy import effective_gpus, ledgers
from aicr.checks.performance.inference_sizing import Load, Offer, choose
from aicr.checks.performance.inference_verdict import Measurement, judge, threshold, thresholds
from aicr.checks.performance.inference_workload import readiness
from aicr.checks.sdk.allocation import DEVICE_PLUGIN, DRA_CLAIM
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import INTERNAL, INVALID_REQUEST, AicrError

T = TypeVar("T")
COUNTS = st.integers(min_value=0, max_value=16)
NUMBERS = st.floats(min_value=0.01, max_value=1e7, allow_nan=False)
OFFERS = st.lists(
    st.builds(
        lambda name, wiring, free: Offer(f"n{name}", wiring, 16, free, "why"),
        st.integers(0, 5),
        st.sampled_from([DEVICE_PLUGIN, DRA_CLAIM]),
        COUNTS,
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda each: each.node,
)


def outcome(call: Callable[[], T]) -> tuple[T | None, AicrError | None]:
    """What *call* gives, or the error; no other exception is let through."""
    try:
        return call(), None
    except AicrError as error:
        return None, error


@given(OFFERS, st.randoms(use_true_random=False))
def test_the_choice_has_most_free_and_does_not_depend_on_the_order(
    offers: list[Offer], random: Random
) -> None:
    """The same cluster gives the same node, however it was listed."""
    shuffled = list(offers)
    random.shuffle(shuffled)
    most = max(each.free for each in offers)
    if most == 0:
        with pytest.raises(AicrError, match="no node has a free GPU"):
            choose(offers)
        return
    assert choose(offers) == choose(shuffled)
    assert choose(offers).free == most


@given(
    st.integers(1, 8),
    st.integers(0, 8),
    NUMBERS,
    NUMBERS,
    st.floats(min_value=0, max_value=1e6, allow_nan=False),
)
def test_more_throughput_is_never_worse(
    free: int, held: int, asked: float, measured: float, more: float
) -> None:
    """What passes still passes when it is faster, and fewer GPUs never raise the gate."""
    wanted = thresholds({"inference-throughput": repr(asked)}.get)
    assert wanted is not None
    load, whole = Load(free, free + held, 1, 1, 1), Load(free, free, 1, 1, 1)
    (gate,) = judge(wanted, Measurement(measured, 1.0), load)
    (faster,) = judge(wanted, Measurement(measured + more, 1.0), load)
    (alone,) = judge(wanted, Measurement(measured, 1.0), whole)
    assert faster.passed or not gate.passed
    assert gate.passed or not alone.passed


@given(NUMBERS, NUMBERS)
def test_the_first_token_has_exactly_ten_percent(asked: float, measured: float) -> None:
    """Whatever the floating point of the product is."""
    wanted = thresholds({"inference-ttft-p99": f"<= {asked!r}"}.get)
    assert wanted is not None
    (gate,) = judge(wanted, Measurement(1.0, measured), Load(1, 8, 1, 1, 1))
    assert gate.passed is (Fraction(repr(measured)) * 10 <= Fraction(repr(asked)) * 11)


@given(st.text(max_size=20))
def test_a_threshold_is_a_positive_number_or_refused(text: str) -> None:
    """Nothing else comes out."""
    found, error = outcome(lambda: threshold("inference-throughput", text))
    assert found is None or found.value > 0
    assert error is None or error.code == INVALID_REQUEST


@given(st.sampled_from(KNOBS), st.text(max_size=30))
def test_any_text_of_any_knob_is_taken_or_refused_by_name(knob: Knob, text: str) -> None:
    """Never another error, and never a default behind somebody's back."""
    constraints = {knob.constraint: text} if knob.constraint else {}
    environ = {} if knob.constraint else {knob.variable: text}
    nothing: dict[str, str] = {}
    default = resolve(nothing.get, {}, Timeouts())
    found, error = outcome(lambda: resolve(constraints.get, environ, Timeouts()))
    if error is not None:
        assert error.code == INVALID_REQUEST
        assert (knob.constraint or knob.variable) in error.message
    elif not text.strip():
        assert found == default
    elif isinstance(getattr(found, knob.key), str) and knob.key != "cache_size":
        assert getattr(found, knob.key) == text.strip()


def _container(count: int, sidecar: bool = False) -> dict[str, object]:
    limits = {"limits": {"nvidia.com/gpu": str(count)}}
    return {"resources": limits, **({"restartPolicy": "Always"} if sidecar else {})}


@given(st.lists(COUNTS, max_size=4), st.lists(st.tuples(COUNTS, st.booleans()), max_size=4))
def test_the_effective_request_lies_between_the_largest_and_the_sum(
    main: list[int], init: list[tuple[int, bool]]
) -> None:
    """It covers everything that runs together, and invents nothing."""
    pod = {
        "spec": {
            "containers": [_container(each) for each in main],
            "initContainers": [_container(count, sidecar) for count, sidecar in init],
        }
    }
    found = effective_gpus(pod)
    together = sum(main) + sum(count for count, sidecar in init if sidecar)
    assert together <= found <= sum(main) + sum(count for count, _ in init)
    assert found >= max([count for count, _ in init], default=0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), max_size=12))
def test_a_device_counts_once_however_many_claims_name_it(held: list[tuple[int, int]]) -> None:
    """And on the node of its pool only."""
    claims = [
        {
            "status": {
                "allocation": {
                    "devices": {
                        "results": [
                            {"driver": "gpu.nvidia.com", "pool": f"p{pool}", "device": f"d{device}"}
                        ]
                    }
                }
            }
        }
        for pool, device in held
    ]
    pools = {f"p{index}": (f"n{index}",) for index in range(4)}
    found = ledgers([], claims, pools).dra
    assert sum(found.values()) == len(set(held))
    assert found == ledgers([], claims[::-1] + claims, pools).dra


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "output_token_throughput",
                    "time_to_first_token",
                    "avg",
                    "p99",
                    "unit",
                    "request_count",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON | st.text(max_size=40))
def test_any_report_is_a_positive_measurement_or_internal(document: object) -> None:
    """A number is never made up."""
    text = document if isinstance(document, str) else json.dumps(document)
    found, error = outcome(lambda: measurement(f"{MARKER}\n{text}\n{MARKER}\n"))
    assert error is None or error.code == INTERNAL
    assert found is None or (found.throughput > 0 and found.ttft_p99 > 0)


@given(JSON)
def test_readiness_never_fails_on_an_odd_status(status: object) -> None:
    """What an operator writes is not ours to trust."""
    spec = {"components": [{"name": "avg", "replicas": 1}]}
    ready, words = readiness({"spec": spec, "status": status})
    assert words
    assert not ready or isinstance(status, dict)
