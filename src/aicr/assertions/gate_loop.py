"""Running a readiness gate: tests from a folder, evaluated until the gate opens or gives up.

What decides is in `gate`; this module brings tests, cluster and clock. A test that cannot be read is
refused before anything is asked, because no waiting mends it. One that cannot be *evaluated* on what is
there now holds the gate like any other failure: the field that it lacks may still be filled in.

Source: validators spec 8.9; decisions 67 and 68.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from aicr.assertions import gate
from aicr.assertions.document import HealthCheck, read_check
from aicr.assertions.runner import FAIL, PARALLEL, UNKNOWN, run_check
from aicr.assertions.timing import Clock, Timing
from aicr.errors import TIMEOUT, AicrError, invalid, not_found
from aicr.kube.port import Cluster

#: What the evaluation at the deadline gets, in seconds, so that the last words are of now.
_LAST_LOOK: Final = 5.0
SUFFIX: Final = ".yaml"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation and what follows from it."""

    number: int
    elapsed: float
    sample: tuple[gate.Verdict, ...]
    step: gate.Step


def read_bundle(folder: str) -> list[HealthCheck]:
    """The tests in a folder: its ``*.yaml`` files, by name; what else lies there is left alone.

    Raises:
        AicrError: NOT_FOUND if there is no such folder, INVALID_REQUEST if it holds no test or one that
            cannot be read.
    """
    place = Path(folder)
    try:
        # A ConfigMap's files are links into a folder of its own, so links are followed.
        files = sorted(
            entry for entry in place.iterdir() if entry.name.endswith(SUFFIX) and entry.is_file()
        )
    except FileNotFoundError:
        raise not_found(
            f"the folder of readiness tests does not exist: {folder}",
            where="--bundle",
            hint="name the folder where the ConfigMap with the tests is mounted",
        ) from None
    except OSError as error:
        raise invalid(
            f"cannot list the folder of readiness tests {folder}: {error.strerror}",
            where="--bundle",
            hint="it must be a folder that this program may read",
        ) from None
    if not files:
        raise invalid(
            f"the folder {folder} holds no *{SUFFIX}, so nothing would be tested",
            where="--bundle",
            hint=f"each component has a file COMPONENT{SUFFIX} there",
        )
    return [_read(file) for file in files]


def _read(file: Path) -> HealthCheck:
    name = file.name.removesuffix(SUFFIX)
    try:
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        raise invalid(
            f"cannot read the readiness test {file.name}: {error.strerror}", where=os.fspath(file)
        ) from None
    except UnicodeDecodeError:
        raise invalid(
            f"the readiness test {file.name} is not UTF-8 text", where=os.fspath(file)
        ) from None
    return read_check(text, source=file.name, component=name)


async def evaluate(
    cluster: Cluster,
    checks: Sequence[HealthCheck],
    *,
    timing: Timing,
    clock: Clock,
    namespace: str = "",
) -> tuple[gate.Verdict, ...]:
    """Evaluate every component once, in the order given, at most four at a time."""
    free = asyncio.Semaphore(PARALLEL)

    async def one(check: HealthCheck) -> gate.Verdict:
        async with free:
            result = await run_check(
                cluster, check, timing=timing, clock=clock, namespace=namespace
            )
        return verdict(result)

    return tuple(await asyncio.gather(*map(one, checks)))


def verdict(result: dict[str, Any]) -> gate.Verdict:
    """A result of the runner as the gate sees it."""
    word = {FAIL: gate.FAIL, UNKNOWN: gate.UNKNOWN}.get(result["verdict"], gate.PASS)
    return gate.Verdict(result["component"], word, gate.tail(result["message"]))


async def watch(
    cluster: Cluster,
    checks: Sequence[HealthCheck],
    settings: gate.Settings,
    *,
    timing: Timing,
    clock: Clock | None = None,
    namespace: str = "",
    told: Callable[[Evaluation], None] | None = None,
) -> Evaluation:
    """Evaluate until the gate opens or its time is up; returns the last evaluation.

    Args:
        cluster: where to look.
        checks: the tests, as `read_bundle` gives them.
        settings: pauses, window and limit.
        timing: of one evaluation; none lasts beyond the limit.
        clock: what to wait by; by default the running event loop.
        namespace: for resources that name none.
        told: hears each evaluation.

    Raises:
        AicrError: INVALID_REQUEST if there is nothing to test.
    """
    if not checks:
        raise invalid("a gate without tests would open whatever happens")
    clock = clock or Clock()
    started = clock.now()
    state = gate.State(started)
    number = 0
    while True:
        number += 1
        sample = await evaluate(
            cluster,
            checks,
            timing=_within(timing, settings, clock.now() - started),
            clock=clock,
            namespace=namespace,
        )
        now = clock.now()
        found = gate.step(settings, state, now, sample)
        evaluation = Evaluation(number, now - started, sample, found)
        if told is not None:
            told(evaluation)
        if found.ended:
            return evaluation
        state = found.state
        await clock.sleep(found.requeue)


def _within(timing: Timing, settings: gate.Settings, elapsed: float) -> Timing:
    """*timing* with a budget that ends with the gate; long enough for one look in any case."""
    if settings.max_wait <= 0:
        return timing
    left = max(settings.max_wait - elapsed, _LAST_LOOK)
    return replace(timing, budget=min(timing.budget, left))


def failure(evaluation: Evaluation) -> AicrError | None:
    """Why the gate did not open, with the components that held it; None if it did."""
    if evaluation.step.ready:
        return None
    failing = [each for each in evaluation.sample if each.result != gate.PASS]
    held = gate.summary(failing) if failing else "all components pass, but not for long enough yet"
    unknown = any(each.result == gate.UNKNOWN for each in failing)
    hint = (
        "Unknown is no verdict about the component: look at the API server, and at "
        "kubectl get apiservices"
        if unknown
        else "look at the component's pods and events; the gate can be run again"
    )
    return AicrError(TIMEOUT, f"{evaluation.step.message}; {held}", hint=hint)
