"""From the environment and the mounted files to what a check is handed.

Everything is passed in, files included, so that a run is reproducible in a test. A part that cannot be
read is an error and never a default, except where the contract says so: no validation input is a
standalone run, an unreadable budget is the default budget with a warning. Source: validators spec 5.1,
3.3, 3.4.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aicr.checks.sdk.timeouts import Timeouts
from aicr.contract import container, labels
from aicr.errors import INTERNAL, INVALID_REQUEST, NOT_FOUND, AicrError, invalid
from aicr.snapshot import document as snapshots
from aicr.values import durations
from aicr.yamlio import read

#: Path → text of a file; raises OSError.
ReadFile = Callable[[str], str]


def read_file(path: str) -> str:
    """The text of a file."""
    return Path(path).read_text(encoding="utf-8")


def budget(environ: Mapping[str, str], timeouts: Timeouts, log: logging.Logger) -> float:
    """Seconds that the check may take: AICR_CHECK_TIMEOUT, else the default, with a warning."""
    text = environ.get(container.CHECK_TIMEOUT, "")
    default = timeouts.check_execution
    said = durations.format(int(default * durations.SECOND))
    if not text:
        log.warning("%s is not set; the check may take %s", container.CHECK_TIMEOUT, said)
        return default
    try:
        found = durations.parse(text)
    except AicrError as error:
        log.warning("%s: %s; the check may take %s", container.CHECK_TIMEOUT, error.message, said)
        return default
    if found <= 0:
        log.warning("%s is %s; the check may take %s", container.CHECK_TIMEOUT, text, said)
        return default
    return found / durations.SECOND


def snapshot(environ: Mapping[str, str], read_text: ReadFile) -> dict[str, Any]:
    """The snapshot document.

    Raises:
        AicrError: NOT_FOUND when there is none, INVALID_REQUEST when it cannot be read as one.
    """
    path = environ.get(container.SNAPSHOT_PATH) or container.DEFAULT_SNAPSHOT_PATH
    text = _text(path, "snapshot", container.SNAPSHOT_PATH, read_text)
    if text is None:
        raise AicrError(
            NOT_FOUND,
            "there is no snapshot",
            where=path,
            hint=f"{container.SNAPSHOT_PATH} says where it is; aicr snapshot writes one",
        )
    document, _ = snapshots.load(text, path)
    return document


def validation(environ: Mapping[str, str], read_text: ReadFile) -> dict[str, Any] | None:
    """The validation input; None when there is no such file (a standalone run).

    Raises:
        AicrError: INVALID_REQUEST for a file that is none.
    """
    path = environ.get(container.VALIDATION_PATH) or container.DEFAULT_VALIDATION_PATH
    text = _text(path, "validation input", container.VALIDATION_PATH, read_text)
    if text is None:
        return None
    document = read.load(text, source=path)
    check_validation(document, path)
    found: dict[str, Any] = document
    return found


def check_validation(document: Any, source: str) -> None:
    """Check the shape of a ValidationInput as far as checks rely on it.

    Raises:
        AicrError: INVALID_REQUEST naming the part.
    """
    if not isinstance(document, dict):
        raise invalid("validation input is not a map", where=source)
    for key, kind in (("constraints", list), ("componentRefs", list), ("config", dict)):
        value = document.get(key)
        if value is not None and not isinstance(value, kind):
            raise invalid(f"{key} is not a {kind.__name__}", where=source)
    for index, ref in enumerate(document.get("componentRefs") or []):
        if not isinstance(ref, dict) or not isinstance(ref.get("name"), str):
            raise invalid(f"componentRefs[{index}] has no name", where=source)
        if not isinstance(ref.get("overrides") or {}, dict):
            raise invalid(f"componentRefs[{index}].overrides is not a map", where=source)
    for phase, config in (document.get("config") or {}).items():
        if not isinstance(config or {}, dict):
            raise invalid(f"config.{phase} is not a map", where=source)
        for index, entry in enumerate((config or {}).get("constraints") or []):
            if not isinstance(entry, dict):
                raise invalid(f"config.{phase}.constraints[{index}] is not a map", where=source)


def namespace(environ: Mapping[str, str], read_text: ReadFile) -> str:
    """The service account's namespace, else AICR_NAMESPACE, else ``default``.

    Raises:
        AicrError: INTERNAL when the service account's file is there and cannot be read.
    """
    path = container.SERVICE_ACCOUNT_NAMESPACE
    found = (_text(path, "namespace", "", read_text) or "").strip()
    return found or environ.get(container.NAMESPACE) or container.DEFAULT_NAMESPACE


def node_selector(environ: Mapping[str, str]) -> dict[str, str] | None:
    """The user's node selector; None when the variable is not set."""
    text = environ.get(container.NODE_SELECTOR)
    return None if text is None else container.parse_node_selector(text)


def tolerations(environ: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """The user's tolerations; None when the variable is not set."""
    text = environ.get(container.TOLERATIONS)
    return None if text is None else container.parse_tolerations(text)


def run_id(environ: Mapping[str, str], now: float) -> str:
    """The run's id; one of this process when nobody gave one. *now* is in seconds since 1970."""
    given = environ.get(container.RUN_ID)
    return given or labels.run_id(datetime.fromtimestamp(now, UTC), secrets.token_hex(8))


def _text(path: str, what: str, variable: str, read_text: ReadFile) -> str | None:
    try:
        return read_text(path)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise AicrError(INVALID_REQUEST, f"{what} is not UTF-8 text", where=path) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise AicrError(
            INTERNAL, f"cannot read the {what}: {reason}", where=path, hint=variable
        ) from error
