"""Running health checks: looking again until they hold, cannot hold, or their time is up.

One deadline holds for a component: all its documents, steps, operations and retries. The first operation
that fails ends the component; others go on. A result says *pass*, *fail* or *unknown*: what could not be
established (an outage, a forbidden read, no answer in time) is no verdict about the component.

Everything waits by a `Clock`, and clusters come in through `aicr.kube.port.Cluster`.
Source: validators spec 8.1, 8.4 to 8.6; decisions 67 and 68; field case H10.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from aicr.assertions import looking
from aicr.assertions.document import HealthCheck, Operation, read_check
from aicr.assertions.timing import Clock, Timing
from aicr.errors import (
    INTERNAL,
    INVALID_REQUEST,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    AicrError,
)
from aicr.kube.port import Cluster

PASS: Final = "pass"
FAIL: Final = "fail"
UNKNOWN: Final = "unknown"
#: Components that are checked at the same time.
PARALLEL: Final = 4

Result = dict[str, Any]
#: Component and what keeps it from passing now; called when that changes, and with "" once it passes.
Told = Callable[[str, str], None]
_Look = Callable[[], Awaitable[list[str]]]


async def run(
    cluster: Cluster,
    asserts: Sequence[Mapping[str, str]],
    *,
    timing: Timing | None = None,
    clock: Clock | None = None,
    namespace: str = "",
    told: Told | None = None,
    done: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Check components against a cluster, at most four at a time; results in the order given.

    Args:
        cluster: where to look.
        asserts: for each component its ``name``, the text of its check (``yaml``) and, for messages,
            the name of the file (``source``).
        timing: budget, interval and grace; by default those of the product.
        clock: what to wait by; by default the running event loop.
        namespace: for operations that name none; "" means all namespaces.
        told: hears what each component waits for, while it waits.
        done: hears each result as soon as it is there.

    A file that cannot be read gives a failing result with code INVALID_REQUEST, before the cluster is
    asked for anything. No AicrError is raised: what goes wrong is in the results (see `run_check`).
    """
    gate = asyncio.Semaphore(PARALLEL)

    async def judged(entry: Mapping[str, str]) -> Result:
        name = entry["name"]
        try:
            check = read_check(entry["yaml"], source=entry.get("source", name), component=name)
        except AicrError as error:
            return _result(name, [], error, 0.0)
        async with gate:
            return await run_check(
                cluster, check, timing=timing, clock=clock, namespace=namespace, told=told
            )

    async def one(entry: Mapping[str, str]) -> Result:
        result = await judged(entry)
        if done is not None:
            done(result)
        return result

    return list(await asyncio.gather(*map(one, asserts)))


async def run_check(
    cluster: Cluster,
    check: HealthCheck,
    *,
    timing: Timing | None = None,
    clock: Clock | None = None,
    namespace: str = "",
    told: Told | None = None,
) -> Result:
    """Check one component; see `run` for the arguments.

    Returns a plain map: ``component``, ``passed``, ``verdict`` (pass, fail, unknown), ``code``,
    ``message``, ``hint`` and ``where`` of what failed (empty if nothing did), ``output`` (what was seen,
    a line each) and ``seconds``.
    """
    timing, clock = timing or Timing(), clock or Clock()
    start = clock.now()
    component = _Component(cluster, timing, clock, namespace, start + check.budget(timing.budget))
    if told is not None:
        component.told = partial(told, check.component)
    failure: AicrError | None = None
    try:
        if check.raw:
            await component.raw(check.raw)
        else:
            await component.operations(check.operations)
        component.tell("")
    except AicrError as error:
        failure = error
    return _result(check.component, component.output, failure, clock.now() - start)


def _result(component: str, output: list[str], error: AicrError | None, seconds: float) -> Result:
    verdict = PASS
    if error is not None:
        unsettled = error.code == SERVICE_UNAVAILABLE or error.context.get("indeterminate")
        verdict = UNKNOWN if unsettled else FAIL
    return {
        "component": component,
        "passed": error is None,
        "verdict": verdict,
        "code": error.code if error else "",
        "message": _text(error) if error else "",
        "hint": error.hint if error else "",
        "where": error.where if error else "",
        "output": output,
        "seconds": seconds,
    }


def _text(error: AicrError) -> str:
    return ": ".join(each.message for each in error.chain())


class _Component:
    """The run of one component."""

    def __init__(
        self, cluster: Cluster, timing: Timing, clock: Clock, namespace: str, deadline: float
    ) -> None:
        self.cluster = cluster
        self.timing = timing
        self.clock = clock
        self.namespace = namespace
        self.deadline = deadline
        self.output: list[str] = []
        self.told: Callable[[str], None] | None = None
        self._said = ""

    def tell(self, text: str) -> None:
        """Let the listener hear *text*, unless that is what it heard last."""
        if self.told is not None and text != self._said:
            self._said = text
            self.told(text)

    async def operations(self, operations: Iterable[Operation]) -> None:
        """Operations one after another; the first that fails ends it."""
        for operation in operations:
            if self.clock.now() >= self.deadline:
                raise _out_of_time("context canceled between steps", operation)

            async def once(operation: Operation = operation) -> list[str]:
                return await looking.look(self.cluster, operation, self.namespace)

            lines = await self.until(once, operation)
            self.output += [f"{operation.step} {operation.kind}: {line}" for line in lines]

    async def raw(self, operations: Sequence[Operation]) -> None:
        """Raw objects: all must match in the same pass."""

        async def once() -> list[str]:
            lines = []
            for operation in operations:
                lines += await looking.compare(self.cluster, operation, self.namespace)
            return lines

        self.output += await self.until(once, operations[0])

    async def until(self, look: _Look, operation: Operation) -> list[str]:
        """Look again and again; the last failure that was seen in time is the one that counts."""
        started = self.clock.now()
        seen = False
        last: AicrError | None = None
        while True:
            remaining = self.deadline - self.clock.now()
            if remaining <= 0:
                break
            try:
                return await asyncio.wait_for(look(), remaining)
            except TimeoutError:
                break
            except AicrError as error:
                if _is_terminal(error):
                    raise
                seen = seen or error.code == INTERNAL
                last = error
                self.tell(_text(error))
            limit = self.deadline
            if operation.kind == "assert" and not seen and last.code == NOT_FOUND:
                limit = min(limit, started + self.timing.absent_grace)
            remaining = limit - self.clock.now()
            if remaining <= 0:
                break
            await self.clock.sleep(min(self.timing.retry, remaining))
        # Raised here, outside of any except clause, so that it keeps the cause that it came with.
        raise last or _late(operation)


def _is_terminal(error: AicrError) -> bool:
    """Whether waiting cannot help: the assertion cannot be evaluated.

    A forbidden read is not among these: rights may still be granted, so it is asked again (V-397).
    """
    return any(found.code == INVALID_REQUEST for found in error.chain())


def _late(operation: Operation) -> AicrError:
    what = "assertion" if operation.kind == "assert" else "error check"
    return _out_of_time(f"context canceled during {what}", operation)


def _out_of_time(message: str, operation: Operation) -> AicrError:
    return AicrError(
        INTERNAL,
        f"{message}: the time was up before {operation.subject()} was judged",
        where=operation.where,
        hint="give more time, or look why the API server is slow",
        context={"indeterminate": True},
    )
