"""Writes CNCF pages into a folder: names, modes, time and bound. Source: validators spec 9.1, 11."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from aicr.artifacts import whole_files
from aicr.errors import invalid
from aicr.validate.evidence import cncf_pages
from aicr.validate.evidence.bounded import Deadline
from aicr.validate.evidence.folder import FOLDER_MODE
from aicr.validate.evidence.times import EvidenceTimes

PAGE_MODE: Final = 0o644
FLAG: Final = "--evidence-dir"


def now() -> datetime:
    """The time of this machine, in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """``YYYY-MM-DDTHH:MM:SSZ``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def render(
    report: Mapping[str, Any] | None,
    directory: str,
    *,
    clock: Callable[[], datetime] = now,
    deadline: Deadline | None = None,
) -> list[str]:
    """Write the pages of *report* and their index; lines for people.

    Args:
        report: the merged report, or None.
        directory: made when it is missing; pages of the same names are replaced.
        clock: the one time that all pages carry.
        deadline: when it must be done; by default the 30 s of the specification.

    Raises:
        AicrError: INVALID_REQUEST ``evidence output directory not set``, and when it cannot be
            written; TIMEOUT past the deadline.
    """
    if not directory.strip():
        raise invalid("evidence output directory not set", where=FLAG, hint=f"{FLAG} DIR")
    listed = cncf_pages.groups(report)
    if not listed:
        return ["warning: no check of this run speaks for a CNCF requirement; no page was written"]
    deadline = deadline or Deadline(
        EvidenceTimes.from_environment(os.environ).render, "rendering evidence"
    )
    generated = stamp(clock())
    pages: dict[str, str] = {}
    for group in listed:
        deadline.check()
        pages[group.requirement.file] = cncf_pages.page(group, generated)
    pages[cncf_pages.INDEX] = cncf_pages.index(listed, generated)
    write_pages(pages, directory, deadline)
    return [f"evidence: {len(listed)} page(s) and {cncf_pages.INDEX} in {directory}"]


def write_pages(pages: Mapping[str, str], directory: str, deadline: Deadline) -> Sequence[str]:
    """Write each page whole; their paths.

    Raises:
        AicrError: INVALID_REQUEST when the folder cannot be written; TIMEOUT past the deadline.
    """
    try:
        if not os.path.isdir(directory):
            os.makedirs(directory, exist_ok=True)
            os.chmod(directory, FOLDER_MODE)
        written = []
        for name in sorted(pages):
            deadline.check()
            path = os.path.join(directory, name)
            whole_files.replace(path, pages[name].encode(), PAGE_MODE)
            written.append(path)
    except OSError as error:
        raise invalid(
            f"{directory} cannot be written: {error.strerror or error}",
            where=FLAG,
            hint="name a folder in a place where you may write",
        ) from error
    return written
