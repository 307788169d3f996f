"""Log lines of the webhook: one JSON object a line, with keys to filter by (decision 45)."""

from __future__ import annotations

import io
import json
import logging
import re
from typing import Any

import pytest

from aicr.errors import AicrError, invalid
from aicr.preflight.logs import JsonFormatter, LineHandler, text_of


def logger(stream: io.StringIO) -> logging.Logger:
    """A logger of its own that writes to *stream*."""
    found = logging.Logger("aicr.test", logging.INFO)
    found.addHandler(LineHandler(stream, JsonFormatter("1.2.3")))
    return found


def written(log: Any) -> dict[str, Any]:
    """The one line that *log*, called with a logger, writes."""
    stream = io.StringIO()
    log(logger(stream))
    line, end = stream.getvalue().split("\n")
    assert end == ""
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_has_the_keys_of_the_house_and_what_the_call_gave() -> None:
    """Fields stand beside the message, whatever their type, and the time is UTC."""
    found = written(
        lambda log: log.info(
            "Mutating %s", "pod", extra={"namespace": "a", "patchOps": 3, "x": {1}}
        )
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.pop("time"))
    assert found == {
        "level": "INFO",
        "msg": "Mutating pod",
        "module": "preflight",
        "version": "1.2.3",
        "namespace": "a",
        "patchOps": 3,
        "x": [1],
    }
    nested = written(lambda log: log.warning("w", extra={"fields": {"gang": "g"}}))
    assert nested["gang"] == "g"
    assert "fields" not in nested


def test_a_value_that_is_no_json_is_text_and_a_newline_never_ends_a_line() -> None:
    """One call is one line, or a reader would lose the rest."""
    found = written(lambda log: log.error("a\nb", extra={"error": ValueError("c\nd")}))
    assert (found["msg"], found["error"]) == ("a\nb", "c\nd")


def test_an_exception_is_its_chain_and_no_traceback() -> None:
    """The messages, outermost first, as the original wrote them."""

    def log(to: logging.Logger) -> None:
        try:
            try:
                raise ValueError("inner")
            except ValueError as error:
                raise invalid("outer", where="file:1") from error
        except AicrError:
            to.exception("Fatal error")

    assert written(log)["error"] == "file:1: outer: inner"
    assert text_of(KeyError()) == "KeyError"


def test_a_log_that_nobody_reads_any_more_fails_no_admission(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A closed stream is given up on in silence."""
    monkeypatch.setattr(logging, "raiseExceptions", False)
    stream = io.StringIO()
    stream.close()
    logger(stream).info("x")
