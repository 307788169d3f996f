"""From what was measured to a verdict: thresholds, gates, tolerance.

```
throughput   measured >= threshold x free GPUs / GPUs of the node x 0.9
TTFT p99     measured <= threshold x 1.1            not scaled: it is one request's latency
failed       at most 10 % of the requests
```

The operator of an expression is ignored, as the seed's program does; the direction is fixed. Sums are
exact, so that a value on the gate passes. Units: tokens per second, milliseconds. Pure.
Source: validators spec 7.1, 7.3 "Verdict", 10 row 65; requirements V-327, V-328.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from aicr.checks.performance.inference_sizing import Load
from aicr.checks.performance.stated import number

THROUGHPUT: Final = "inference-throughput"
TTFT: Final = "inference-ttft-p99"
TOLERANCE: Final = Fraction(1, 10)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A constraint of the recipe: its text, and the number in it."""

    expression: str
    value: Fraction


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the recipe asks for; at least one of them is there."""

    throughput: Threshold | None
    ttft: Threshold | None


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the load generator reports.

    Attributes:
        throughput: output tokens per second, on average.
        ttft_p99: milliseconds to the first token.
        requests: requests that were answered; None when the report does not say.
        errors: requests that failed; None likewise.
    """

    throughput: float
    ttft_p99: float
    requests: int | None = None
    errors: int | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """One judgement."""

    label: str
    expression: str
    passed: bool
    #: Why it failed, in words.
    reason: str

    @property
    def line(self) -> str:
        """For the evidence."""
        return f"{self.label} constraint: {self.expression} → {'PASS' if self.passed else 'FAIL'}"


def threshold(name: str, expression: str) -> Threshold:
    """The number of an expression such as ``>= 50000`` or ``<= 2000 ms``.

    Raises:
        AicrError: INVALID_REQUEST as `number`.
    """
    return Threshold(expression, Fraction(repr(number(expression, name))))


def thresholds(constraint: Callable[[str], str | None]) -> Thresholds | None:
    """What the recipe asks for, or None when it asks for nothing; a blank expression is nothing.

    Raises:
        AicrError: INVALID_REQUEST as `threshold`.
    """
    stated = {name: (constraint(name) or "").strip() for name in (THROUGHPUT, TTFT)}
    if not any(stated.values()):
        return None
    found = {name: threshold(name, text) if text else None for name, text in stated.items()}
    return Thresholds(found[THROUGHPUT], found[TTFT])


def least_throughput(asked: Threshold, load: Load) -> Fraction:
    """The least throughput that passes on the GPUs that were used."""
    return asked.value * Fraction(load.gpus, load.node_gpus) * (1 - TOLERANCE)


def most_ttft(asked: Threshold) -> Fraction:
    """The longest time to the first token that passes."""
    return asked.value * (1 + TOLERANCE)


def judge(asked: Thresholds, measured: Measurement, load: Load) -> list[Gate]:
    """Every gate, in the order in which they are printed."""
    gates = []
    if asked.throughput is not None:
        least = least_throughput(asked.throughput, load)
        reason = (
            f"{measured.throughput:.2f} tokens/s are below {float(least):.2f} "
            f"({asked.throughput.expression}, {load.gpus}/{load.node_gpus} GPUs, 10 % tolerance)"
        )
        passed = _exact(measured.throughput) >= least
        gates.append(Gate("Throughput", asked.throughput.expression, passed, reason))
    if asked.ttft is not None:
        most = most_ttft(asked.ttft)
        reason = (
            f"TTFT p99 of {measured.ttft_p99:.2f} ms is above {float(most):.2f} ms "
            f"({asked.ttft.expression}, 10 % tolerance)"
        )
        gates.append(
            Gate("TTFT p99", asked.ttft.expression, _exact(measured.ttft_p99) <= most, reason)
        )
    return gates


def too_many_errors(measured: Measurement) -> str:
    """Why the run cannot count although it has numbers; "" when it can.

    What was answered says little about a service that refuses a tenth of what it is asked.
    """
    errors, answered = measured.errors or 0, measured.requests or 0
    total = errors + answered
    if total and Fraction(errors, total) > TOLERANCE:
        return f"{errors} of {total} requests failed, more than 10 %"
    return ""


def _exact(value: float) -> Fraction:
    return Fraction(repr(value))
