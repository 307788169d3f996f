"""``aicr-check NAME``: one check, run in a container or as a process of the caller.

It keeps the container contract: evidence on stdout, a log on stderr, the reason in the termination
message, and the verdict as the exit status (0 pass, 1 fail, 2 skip). A skip leaves its reason in the
termination message too (decision 63). The budget ends a check as a failure with code TIMEOUT; SIGTERM
or Ctrl-C ends it without a verdict (143, 130). Either way the check unwinds first, and what it created
is removed. It must not know individual checks. Source: validators spec 3.8, 5.1, 5.2; decisions 12, 62,
63.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

from aicr.assertions.timing import Clock
from aicr.checks import loading, logs, registry
from aicr.checks.sdk.check import Check
from aicr.checks.sdk.context import Context
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.checks.sdk.timeouts import Timeouts
from aicr.contract import container
from aicr.contract.sentinels import CODE, SKIP_REASON
from aicr.errors import INTERNAL, TIMEOUT, AicrError
from aicr.kube import connect
from aicr.kube.port import Cluster
from aicr.values import durations

Connect = Callable[[Mapping[str, str], Timeouts], AbstractAsyncContextManager[Cluster]]

_PROGRAM: Final = "aicr-check"
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextlib.asynccontextmanager
async def connected(environ: Mapping[str, str], timeouts: Timeouts) -> AsyncIterator[Cluster]:
    """The cluster that applies here: in-cluster configuration, or the caller's kubeconfig."""
    chosen = environ.get(container.KUBE_CONTEXT, "")
    client = connect(context=chosen, environ=environ, timeouts=timeouts.kube)
    async with client:
        yield client


@dataclass
class Surroundings:
    """What the program touches outside itself; tests bring their own."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    stdout: TextIO = field(default_factory=lambda: sys.stdout)
    stderr: TextIO = field(default_factory=lambda: sys.stderr)
    read_text: loading.ReadFile = loading.read_file
    connect: Connect = connected
    load: Callable[[str], Check] = registry.load
    clock: Clock = field(default_factory=Clock)
    wall: Callable[[], float] = time.time
    #: Whether SIGTERM is ours to handle; only in the main thread of a program.
    signals: bool = True


def main(argv: Sequence[str] | None = None, around: Surroundings | None = None) -> int:
    """Run the check that *argv* names (without the program's name); the exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    around = around or Surroundings()
    try:
        log = logs.logger("aicr.checks", around.environ, around.stderr)
    except AicrError as error:
        log = logs.logger("aicr.checks", {}, around.stderr)
        log.error("%s", error)
        return _end(around, log, f"failed to load context: {error}", container.FAIL)
    if not words:
        usage = f"usage: {_PROGRAM} <check-name>"
        # A person at a terminal does not see the termination message.
        log.error("%s; aicr checks list shows all", usage)
        return _end(around, log, usage, container.FAIL)
    try:
        check = around.load(words[0])
    except AicrError as error:
        log.error("%s%s", error.message, f"; {error.hint}" if error.hint else "")
        return _end(around, log, error.message, container.FAIL)
    return asyncio.run(_watched(check, around, log))


def run() -> None:
    """The console script."""
    # A closed stream must not turn the verdict into an exception at the interpreter's end.
    status = main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


async def _watched(check: Check, around: Surroundings, log: logging.Logger) -> int:
    """The exit status of the check; 143 or 130 when SIGTERM or Ctrl-C came first."""
    task = asyncio.create_task(_run(check, around, log), name=check.name)
    asked: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        # Once: a second one would break the clean-up that the first one started.
        if not asked:
            asked.append(number)
            log.warning("asked to end (%s); cleaning up", number.name)
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS if around.signals else ():
        loop.add_signal_handler(number, end, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not asked:
            raise
        message = f"{check.name} was asked to end before it had a verdict"
        return _end(around, log, message, container.SIGNALLED + asked[0])
    finally:
        for number in _SIGNALS if around.signals else ():
            loop.remove_signal_handler(number)


async def _run(check: Check, around: Surroundings, log: logging.Logger) -> int:
    async with contextlib.AsyncExitStack() as stack:
        try:
            context, seconds = await _context(check, around, log, stack)
        except AicrError as error:
            log.error("failed to load context: %s", error)
            return _end(around, log, f"failed to load context: {error}", container.FAIL)
        try:
            await _bounded(check, context, seconds)
        except AicrError as error:
            return _judge(error, context, around)
        except Exception as error:
            return _judge(_bug(error), context, around)
        log.info("PASS", extra={"fields": {"check": check.name}})
        return container.PASS


async def _context(
    check: Check, around: Surroundings, log: logging.Logger, stack: contextlib.AsyncExitStack
) -> tuple[Context, float]:
    environ = around.environ
    timeouts = Timeouts.from_environment(environ)
    seconds = loading.budget(environ, timeouts, log)
    snapshot = loading.snapshot(environ, around.read_text)
    validation = loading.validation(environ, around.read_text)
    context = Context(
        cluster=await stack.enter_async_context(around.connect(environ, timeouts)),
        name=check.name,
        phase=environ.get(container.VALIDATOR_PHASE) or check.phase,
        run_id=loading.run_id(environ, around.wall()),
        namespace=loading.namespace(environ, around.read_text),
        write=_writer(around.stdout),
        snapshot=snapshot,
        validation=validation,
        node_selector=loading.node_selector(environ),
        tolerations=loading.tolerations(environ),
        environ=environ,
        clock=around.clock,
        timeouts=timeouts,
        log=log,
        deadline=around.clock.now() + seconds,
        wall=around.wall,
    )
    return context, seconds


async def _bounded(check: Check, context: Context, seconds: float) -> None:
    """Run the check inside its budget; past it the check unwinds and a TIMEOUT comes out."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await check.run(context)
    except TimeoutError as error:
        if not limit.expired():
            raise AicrError(TIMEOUT, "an operation had no answer in time") from error
        said = durations.format(int(seconds * durations.SECOND))
        raise AicrError(
            TIMEOUT,
            f"{check.name} did not finish within {said}",
            hint="the timeout of the check's catalogue entry gives it longer",
        ) from None


def _judge(error: AicrError, context: Context, around: Surroundings) -> int:
    """Say how the check ended when it did not pass; the exit status."""
    skip = skip_in(error)
    if skip is not None:
        if skip.reason_code:
            context.emit_extra({**context.extra, SKIP_REASON: skip.reason_code})
        context.log.info("SKIP", extra={"fields": {"reason": skip.reason}})
        return _end(around, context.log, skip.reason, container.SKIP)
    code = could_not_tell(error)
    if code:
        context.emit_extra({**context.extra, CODE: code})
    hints = [link.hint for link in error.chain() if link.hint]
    text = f"{error}\nnext: {hints[-1]}" if hints else str(error)
    context.log.error("FAIL", extra={"fields": {"error": str(error)}})
    return _end(around, context.log, text, container.FAIL)


def _bug(error: Exception) -> AicrError:
    trace = error.__traceback__
    place = ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/aicr/")[2]
        place = f"aicr/{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    found = AicrError(
        INTERNAL,
        f"unexpected {type(error).__name__}: {error}",
        where=place,
        hint="this is a bug in aicr; please report it with the check's output",
    )
    found.__cause__ = None
    return found


def _writer(stream: TextIO) -> Callable[[str], None]:
    def write(text: str) -> None:
        try:
            stream.write(f"{text}\n")
            stream.flush()
        except ValueError as error:
            raise OSError(str(error)) from error

    return write


def _end(around: Surroundings, log: logging.Logger, message: str, status: int) -> int:
    """Leave *message* in the termination log; that it cannot be left changes no verdict."""
    path = around.environ.get(container.TERMINATION_LOG_PATH) or container.TERMINATION_LOG
    try:
        Path(path).write_bytes(container.fit(message).encode())
    except OSError as error:
        log.warning("cannot write %s: %s", path, error.strerror or error)
        log.error("%s", message)
    return status


if __name__ == "__main__":
    run()
