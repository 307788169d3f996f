"""Log lines of programs in containers: one JSON object a line, on stderr.

Keys ``time, level, msg, module, version``, then what a call gave in ``extra``, flattened. Modules log
with the standard library and do not know this format. Source: preflight spec 10, decision 45.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import IO, Any, Final

import msgspec

from aicr.errors import AicrError

MODULE: Final = "preflight"

_OWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def __init__(self, version: str, module: str = MODULE) -> None:
        super().__init__()
        self._version = version
        self._module = module
        self._last = (0, "")

    def _second(self, moment: int) -> str:
        """The second *moment* as text; thousands of lines share one."""
        if self._last[0] != moment:
            self._last = moment, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
        return self._last[1]

    def format(self, record: logging.LogRecord) -> str:
        """The line for *record*, without its end."""
        line: dict[str, Any] = {
            "time": f"{self._second(int(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "msg": record.getMessage(),
            "module": self._module,
            "version": self._version,
        }
        for key, value in record.__dict__.items():
            if key in _OWN:
                continue
            if key == "fields" and isinstance(value, dict):
                line.update(value)
            else:
                line[key] = value
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = text_of(record.exc_info[1])
        return msgspec.json.encode(line, enc_hook=str).decode()


class LineHandler(logging.Handler):
    """Writes each record as one line at once; one write a line, so lines never mix without a lock."""

    def __init__(self, stream: IO[str], formatter: logging.Formatter) -> None:
        super().__init__()
        self._stream = stream
        self.formatter = formatter

    def createLock(self) -> None:  # noqa: N802 - the name is the standard library's.
        """None is needed."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """Write *record*."""
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """Write *record*; a reader that went away must not fail an admission."""
        try:
            self._stream.write(f"{self.format(record)}\n")
            self._stream.flush()
        except (OSError, ValueError):
            self.handleError(record)


def set_up(version: str, *, level: int = logging.INFO, stream: IO[str] | None = None) -> None:
    """Send everything that is logged in this process to *stream* (stderr), in this format."""
    # Nothing of this is in a line, and gathering it costs as much as the line (Python's logging how-to).
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    # A log that nobody reads any more is no reason for tracebacks.
    logging.raiseExceptions = False
    root = logging.getLogger()
    root.handlers[:] = [LineHandler(stream or sys.stderr, JsonFormatter(version))]
    root.setLevel(level)
    # Servers and clients underneath say at INFO what we say better.
    for noisy in ("uvicorn", "uvicorn.error", "aiohttp", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def text_of(error: BaseException) -> str:
    """The messages of *error* and its causes, outermost first, as a chain of ``: ``."""
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, AicrError):
            parts.append(
                f"{current.where}: {current.message}" if current.where else current.message
            )
        else:
            parts.append(str(current) or type(current).__name__)
        current = current.__cause__
    return ": ".join(parts)
