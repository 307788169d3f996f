"""What every check program reads from its environment, and its log, client and signals.

Values are read by small functions that name the variable in their message, so that a check can keep
the order in which the original complains. It must not know: what a check tests.
Source: preflight specification 5.3, 5.4, 6.1, 7.1; decisions 45 and 67.
"""

from __future__ import annotations

import logging
import math
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Final, TextIO, TypeVar

from aicr.checks.logs import TextLines
from aicr.contract.container import LOG_FORMAT
from aicr.errors import AicrError, invalid
from aicr.preflight import names
from aicr.preflight.health.client import Attempts, HealthClient
from aicr.preflight.health.events import EXECUTE_REMEDIATION, Event, Source, check_strategy
from aicr.preflight.health.transport import UnixSocket
from aicr.preflight.logs import JsonFormatter
from aicr.version import __version__

#: Delivers one event, or raises AicrError.
Report = Callable[[Event], None]
LOG_LEVEL: Final = "LOG_LEVEL"
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Reporting:
    """How a check reaches the platform connector."""

    socket: str
    node: str
    strategy: str = EXECUTE_REMEDIATION
    token_path: str = ""

    def client(
        self,
        agent: str,
        component_class: str,
        environ: Mapping[str, str],
        progress: Callable[[str], None],
    ) -> HealthClient:
        """The client for a check; its pauses follow ``AICR_TIMEOUT_FACTOR``."""
        return HealthClient(
            UnixSocket(self.socket),
            Source(agent, component_class, self.node, self.strategy),
            token_path=self.token_path,
            attempts=Attempts.from_environment(environ),
            progress=progress,
        )


def reporting(environ: Mapping[str, str]) -> Reporting:
    """Socket, node, strategy and token path, complained about in this order.

    Raises:
        AicrError: INVALID_REQUEST `<name> is required`, or `Invalid PROCESSING_STRATEGY: X`.
    """
    return with_strategy(reporting_place(environ), environ)


def reporting_place(environ: Mapping[str, str]) -> Reporting:
    """Socket, node and token path, for a check that looks at other variables before the strategy."""
    return Reporting(
        socket=required(environ, names.CONNECTOR_SOCKET),
        node=required(environ, names.NODE_NAME),
        token_path=environ.get(names.TOKEN_PATH, ""),
    )


def with_strategy(place: Reporting, environ: Mapping[str, str]) -> Reporting:
    """*place* with the processing strategy of the environment."""
    return replace(place, strategy=strategy(environ))


def strategy(environ: Mapping[str, str]) -> str:
    """The processing strategy; EXECUTE_REMEDIATION when unset or empty."""
    return check_strategy(environ.get(names.STRATEGY) or EXECUTE_REMEDIATION)


def required(environ: Mapping[str, str], name: str) -> str:
    """A variable that must hold something.

    Raises:
        AicrError: INVALID_REQUEST `<name> is required`.
    """
    value = environ.get(name, "").strip()
    if not value:
        raise invalid(f"{name} is required", where=name)
    return value


def whole_number(environ: Mapping[str, str], name: str, default: int) -> int:
    """A whole number.

    Raises:
        AicrError: INVALID_REQUEST naming the variable and its value.
    """
    return _read(environ, name, default, int, "a whole number")


def number(environ: Mapping[str, str], name: str, default: float) -> float:
    """A finite number.

    Raises:
        AicrError: INVALID_REQUEST naming the variable and its value.
    """
    value = _read(environ, name, default, float, "a number")
    if not math.isfinite(value):
        text = environ.get(name, "").strip()
        raise invalid(f"{name} must be a finite number, got {text}", where=name)
    return value


def _read(
    environ: Mapping[str, str],
    name: str,
    default: Number,
    convert: Callable[[str], Number],
    what: str,
) -> Number:
    text = environ.get(name, "").strip()
    if not text:
        return default
    try:
        # Python would take 1_000 and digits of other scripts.
        if not text.isascii() or "_" in text:
            raise ValueError(text)
        return convert(text)
    except ValueError:
        raise invalid(f"{name} must be {what}, got {text}", where=name) from None


def log_for(module: str, environ: Mapping[str, str], stream: TextIO) -> logging.Logger:
    """The log of a check program on *stream* at LOG_LEVEL (info): JSON in a cluster, text elsewhere.

    Raises:
        AicrError: INVALID_REQUEST for a level or format that does not exist.
    """
    level = (environ.get(LOG_LEVEL) or "info").strip().upper()
    known = logging.getLevelNamesMapping()
    if level not in known:
        raise invalid(
            f"{LOG_LEVEL} {level.lower()!r} does not exist",
            where=LOG_LEVEL,
            hint="debug, info, warning or error",
        )
    inside = environ.get("KUBERNETES_SERVICE_HOST")
    chosen = environ.get(LOG_FORMAT) or ("json" if inside else "text")
    if chosen not in {"json", "text"}:
        raise invalid(
            f"{LOG_FORMAT} {chosen!r} does not exist", where=LOG_FORMAT, hint="json or text"
        )
    made = plain_log(module, stream)
    if chosen == "json":
        made.handlers[0].setFormatter(JsonFormatter(__version__, module))
    made.setLevel(known[level])
    return made


def plain_log(module: str, stream: TextIO) -> logging.Logger:
    """A log in text, also for the time before the real one could be set up."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextLines())
    made = logging.Logger(module, logging.INFO)
    made.addHandler(handler)
    return made


def fields(**pairs: object) -> dict[str, object]:
    """Fields of a log line, for ``log.info(text, extra=fields(...))``."""
    return {"fields": pairs}


class Interrupted(BaseException):
    """SIGTERM or SIGINT came; `signal` is its number."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.signal = number


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGTERM and SIGINT into `Interrupted` for the time of the block.

    A process with number 1 in its container would otherwise not notice a SIGTERM at all.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {one: signal.signal(one, interrupt) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def bug(error: Exception) -> dict[str, object]:
    """Fields of a log line about an exception that nobody expected: what, and the place in our code."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/aicr/")[2]
        place, trace = f"aicr/{name}:{trace.tb_lineno}", trace.tb_next
    return fields(error=f"{type(error).__name__}: {error}", where=place)


def as_text(error: AicrError) -> str:
    """Message and causes of an error in one line, for events and logs: no code, no hint."""
    parts = [link.message for link in error.chain()]
    last = error.chain()[-1].__cause__
    if last is not None and not isinstance(last, AicrError) and str(last):
        parts.append(str(last))
    return ": ".join(parts)
