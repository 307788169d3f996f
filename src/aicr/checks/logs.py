"""Log lines of a check on stderr: JSON in containers, text for people (decision 45).

JSON lines have ``time, level, msg, module, version`` and the fields passed as ``extra={"fields":
{...}}``; text lines are ``level=INFO msg=... key=value``. This module must not know checks.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from aicr.contract.container import LOG_FORMAT
from aicr.errors import invalid
from aicr.version import __version__

_FORMATS: Final = ("json", "text")


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of *record*."""
        when = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "msg": record.getMessage(),
            "module": record.name,
            "version": __version__,
        }
        return json.dumps({**_fields(record), **line})


class TextLines(logging.Formatter):
    """``level=INFO msg="..." key=value``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of *record*."""
        pairs = {"level": record.levelname, "msg": record.getMessage(), **_fields(record)}
        return " ".join(f"{key}={_quoted(str(value))}" for key, value in pairs.items())


def logger(name: str, environ: Mapping[str, str], stream: TextIO) -> logging.Logger:
    """A logger that writes INFO and above to *stream* and to nothing else.

    Raises:
        AicrError: INVALID_REQUEST for an ``AICR_LOG_FORMAT`` that is neither json nor text.
    """
    chosen = environ.get(LOG_FORMAT) or (
        "json" if environ.get("KUBERNETES_SERVICE_HOST") else "text"
    )
    if chosen not in _FORMATS:
        raise invalid(
            f'unknown log format "{chosen}"', where=LOG_FORMAT, hint=f"one of {', '.join(_FORMATS)}"
        )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if chosen == "json" else TextLines())
    made = logging.Logger(name, logging.INFO)
    made.addHandler(handler)
    return made


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    found = getattr(record, "fields", None)
    return dict(found) if isinstance(found, Mapping) else {}


def _quoted(text: str) -> str:
    plain = text and text.isprintable() and not any(c in text for c in ' "=')
    return text if plain else json.dumps(text, ensure_ascii=False)
