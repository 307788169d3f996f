"""The flow of preflight-dcgm-diag: which GPUs, which hostengine, the run and its retries, the events.

Everything that touches the world is handed in, so tests go through every branch with a scripted
hostengine. The diagnostic runs in a thread of its own, because a call into DCGM's library blocks and
Python would see a signal only after it. It must not know: variables, the bindings, gRPC.
Source: preflight specification 6.3; decisions 18, 19 and 75 (the number of attempts is a maximum).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.checks import exit_codes
from aicr.preflight.checks.dcgm import hostengine, verdict
from aicr.preflight.checks.dcgm.hostengine import Hostengine, Response, Session
from aicr.preflight.checks.dcgm.response import interpret
from aicr.preflight.checks.dcgm.settings import LEVELS, Settings
from aicr.preflight.checks.environment import Interrupted, Report, as_text, fields
from aicr.preflight.checks.environment_gpus import LocalGpu
from aicr.preflight.checks.exit_codes import Outcome
from aicr.preflight.health.events import Event

NO_GPUS: Final = "No GPUs allocated to this container"
#: How long a stopped run may take to end, in seconds.
STOPPING: Final = 10.0


@dataclass
class Run:
    """One run of the check.

    Args:
        settings: how.
        engine: connects to a hostengine.
        local: lists the GPUs of this container, or raises AicrError.
        report: delivers an event, or raises AicrError.
        log: where the run tells what it does.
        sleep: the pause between attempts.
    """

    settings: Settings
    engine: Hostengine
    local: Callable[[], Sequence[LocalGpu]]
    report: Report
    log: logging.Logger
    sleep: Callable[[float], None] = time.sleep
    events: list[Event] = field(default_factory=list)
    unsent: list[str] = field(default_factory=list)

    def go(self) -> Outcome:
        """Run the check to its outcome, events sent.

        Raises:
            Interrupted: a signal came; the diagnostic has been stopped, and nothing was sent.
        """
        for note in self.settings.notes:
            self.log.warning(note)
        try:
            gpus = self.local()
            if not gpus:
                raise AicrError(SERVICE_UNAVAILABLE, NO_GPUS)
            whole = [gpu.uuid for gpu in gpus if not gpu.mig]
            mig = [verdict.of_mig(gpu.uuid) for gpu in gpus if gpu.mig]
            if not whole:
                return self._ended(
                    exit_codes.PASSED,
                    exit_codes.NOT_TESTED,
                    f"MIG is on for every GPU: {', '.join(gpu.uuid for gpu in gpus)}",
                    mig,
                )
            return self._on(whole, mig)
        except AicrError as error:
            status, text = hostengine.status_of(error), as_text(error)
            gave_up = bool(error.context.get("gaveUp"))
            self.log.error("Diagnostic did not complete", extra=fields(error=text))
            return self._ended(
                # A status that stays is an infrastructure fault: the workload is not kept waiting.
                exit_codes.PASSED if gave_up else exit_codes.FAILED,
                exit_codes.NOT_TESTED,
                text,
                [verdict.of_run_error(text, *([status] if gave_up else []))],
            )

    def _on(self, uuids: Sequence[str], mig: list[Event]) -> Outcome:
        session = self._connect()
        try:
            ids = match(uuids, session)
            session.group(list(ids))
            level = LEVELS[self.settings.level]
            self.log.info(
                "Running DCGM diagnostic",
                extra=fields(diagnostic=level.name, takes=level.takes, gpus=list(ids.values())),
            )
            response = self._diagnose(session)
            answer = interpret(response, ids, session.mnemonics(), self.settings.mapping)
        finally:
            session.close()
        found = verdict.judge(answer, uuids)
        counts = found.summary.document()
        self.log.info("Diagnostic summary", extra=fields(**counts))
        word, message = found.verdict, found.message
        if mig and word == exit_codes.PASS:
            word, message = exit_codes.WARNED, f"{message}; {len(mig)} with MIG not tested"
        return self._ended(found.exit_code, word, message, [*mig, *found.events], counts)

    def _connect(self) -> Session:
        """The first hostengine of the list that answers (preflight seed, tried in order)."""
        causes = []
        for address in self.settings.addresses:
            try:
                session = self.engine.connect(address)
            except AicrError as error:
                self.log.warning(
                    "Hostengine did not answer", extra=fields(address=address, error=as_text(error))
                )
                causes.append(f"{address}: {as_text(error)}")
            else:
                self.log.info("Connected to hostengine", extra=fields(address=address))
                return session
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"no DCGM hostengine could be reached: {'; '.join(causes)}",
            hint="check the service of the GPU Operator and network policies to it",
        )

    def _diagnose(self, session: Session) -> Response:
        most = self.settings.attempts
        for attempt in range(1, most + 1):
            try:
                return in_thread(
                    lambda: session.diagnose(self.settings.level), session.stop, self.settings.limit
                )
            except AicrError as error:
                status = hostengine.status_of(error)
                if not status:
                    raise
                ours = status == hostengine.TIMED_OUT and "limit" in error.context
                if attempt == most or ours:
                    raise AicrError(
                        SERVICE_UNAVAILABLE,
                        f"DCGM diagnostic returned {status} after {attempt} attempts; diagnostic did "
                        "not complete",
                        context={"status": status, "gaveUp": True},
                    ) from None
                self.log.warning(
                    "DCGM status while running the diagnostic",
                    extra=fields(status=status, attempt=attempt, attempts=most),
                )
                self.sleep(self.settings.interval)
                if attempt == most - 1 and status == hostengine.ALREADY_RUNNING:
                    self._stop_stale(session)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _stop_stale(self, session: Session) -> None:
        """Before the last attempt: the diagnostic that would not end was left by a crashed client."""
        self.log.warning("Stopping the diagnostic that keeps the hostengine busy")
        try:
            session.stop()
        except AicrError as error:
            self.log.warning("It could not be stopped", extra=fields(error=as_text(error)))

    def _ended(
        self,
        code: int,
        word: str,
        message: str,
        events: Sequence[Event],
        details: Mapping[str, int] | None = None,
    ) -> Outcome:
        for event in events:
            self.events.append(event)
            try:
                self.report(event)
            except AicrError as error:
                # The gate does not depend on the connector; the log must not lose the event.
                self.unsent.append(as_text(error))
                self.log.error(
                    error.message, extra=fields(error=as_text(error), event=event.document())
                )
        return Outcome(
            exit_codes.DCGM_DIAG,
            code,
            word,
            message,
            tuple(self.events),
            tuple(self.unsent),
            details or {},
        )


def match(uuids: Sequence[str], session: Session) -> dict[int, str]:
    """Number at the hostengine → UUID, for the GPUs of this container in their order.

    Raises:
        AicrError: INTERNAL when the hostengine does not know one of them, which is what a hostengine of
            another node looks like.
    """
    known = {gpu.uuid.strip().lower(): gpu.id for gpu in session.gpus()}
    strange = [uuid for uuid in uuids if uuid.lower() not in known]
    if strange:
        raise AicrError(
            INTERNAL,
            f"the hostengine does not know {', '.join(strange)}",
            hint="its address must lead to this node: internalTrafficPolicy Local, or a host port",
        )
    return {known[uuid.lower()]: uuid for uuid in uuids}


def in_thread(call: Callable[[], Response], stop: Callable[[], None], limit: float) -> Response:
    """Run a blocking call so that signals and the time limit are noticed.

    Raises:
        AicrError: what the call raised, or a status error DCGM_ST_TIMEOUT with `limit` in its context.
        Interrupted: passed on, once the diagnostic was told to stop.
    """
    answers: list[Response] = []
    failures: list[Exception] = []
    done = threading.Event()

    def work() -> None:
        try:
            answers.append(call())
        except Exception as error:
            failures.append(error)
        finally:
            done.set()

    try:
        # A signal may come as early as in start(), when the diagnostic runs already.
        threading.Thread(target=work, name="dcgm-diagnostic", daemon=True).start()
        finished = done.wait(limit)
    except Interrupted:
        _stop(stop, done)
        raise
    if not finished:
        _stop(stop, done)
        error = hostengine.status_error(hostengine.TIMED_OUT, f"not done within {limit:g} s")
        error.context["limit"] = limit
        raise error
    if failures:
        raise failures[0]
    return answers[0]


def _stop(stop: Callable[[], None], done: threading.Event) -> None:
    try:
        stop()
    except AicrError:
        # The hostengine may be gone; there is nothing left to stop then.
        return
    done.wait(STOPPING)
