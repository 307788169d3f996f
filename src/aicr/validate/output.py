"""What a check writes: its evidence and its log, which a container's log mixes, taken apart again.

A container's log has stdout and stderr in one stream. Checks of this product write their log as
JSON lines with known keys (decision 45), so those lines can be told; a check of somebody else's
writes one stream as far as anybody can see, and all of it is evidence (decision 63). A process of
this machine has two streams, and nothing has to be guessed. Sentinel lines are read from
everything, before anything is cut away.

`Collected` bounds memory: the evidence of a check is its end, sentinel lines come from anywhere
in it.

Source: validators spec 3.7, 4.1; decisions 45, 63.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.contract import sentinels

_LOG_KEYS: Final = frozenset({"time", "level", "msg", "module", "version"})
#: Text of a check that is held until it ends, in characters.
LARGEST: Final = 32 * 1024 * 1024


def log_record(line: str) -> dict[str, Any] | None:
    """The record of a line that one of our checks has logged; None for any other line."""
    if not line.startswith("{") or '"msg"' not in line:
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or not found.keys() >= _LOG_KEYS:
        return None
    return found


def shown(record: dict[str, Any]) -> str:
    """A log record as one line for people."""
    more = [f"{key}={value}" for key, value in record.items() if key not in _LOG_KEYS]
    return " ".join([str(record["level"]).lower(), str(record["msg"]), *more])


@dataclass
class Collected:
    """The lines of one check, in the order in which they came; `lost` counts what was too much."""

    lost: int = 0
    _lines: deque[str] = field(default_factory=deque)
    _sentinels: list[str] = field(default_factory=list)
    _size: int = 0

    def evidence(self, line: str) -> None:
        """Take a line of stdout."""
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > LARGEST and len(self._lines) > 1:
            first = self._lines.popleft()
            self._size -= len(first) + 1
            if first.startswith((sentinels.EXTRA, sentinels.PROVENANCE)):
                self._sentinels.append(first)
            else:
                self.lost += 1

    def mixed(self, line: str) -> str:
        """Take a line of a container's log; a log line is returned as it is shown to people."""
        record = log_record(line)
        if record is None:
            self.evidence(line)
            return ""
        return shown(record)

    def restart(self) -> None:
        """Forget everything: the whole text is coming again."""
        self.lost, self._size = 0, 0
        self._lines.clear()
        self._sentinels.clear()

    def parsed(self) -> sentinels.Output:
        """What it says, sentinels included."""
        return sentinels.parse_output("\n".join([*self._sentinels, *self._lines]))
