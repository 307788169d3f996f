"""Logs of containers, with a time for each line.

Design: a container writes straight into a file, so that it can go on when its agent is killed. What
came when is found out by looking at the files ten times a second, which is as exact as a test needs;
each line keeps the time that it was first seen with, and no two lines have the same.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

LOOK_SECONDS: Final = 0.1
FOLLOW_SECONDS: Final = 0.05
NANO: Final = 10**9


class Log:
    """The log of one run of a container."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        #: Where each line begins, and when it was seen, in nanoseconds since the epoch.
        self._starts, self._times = array("q"), array("q")
        self._seen = 0
        self._unfinished = False

    def look(self) -> None:
        """Note the lines that have come since the last look."""
        with self._lock:
            if not self.path.exists() or self.path.stat().st_size <= self._seen:
                return
            with self.path.open("rb") as stream:
                stream.seek(self._seen)
                data = stream.read()
            at = 0
            while at < len(data):
                if not self._unfinished:
                    last = self._times[-1] if self._times else 0
                    self._starts.append(self._seen + at)
                    self._times.append(max(time.time_ns(), last + 1))
                end = data.find(b"\n", at)
                self._unfinished = end < 0
                at = len(data) if end < 0 else end + 1
            self._seen += len(data)

    def lines(self, first: int, *, complete: bool) -> list[tuple[int, bytes]]:
        """Time and bytes of all lines from number *first*.

        A last line without an end is left out unless the log is *complete*: more of it may come.
        """
        self.look()
        with self._lock:
            count = len(self._starts) - (self._unfinished and not complete)
            if first >= count:
                return []
            with self.path.open("rb") as stream:
                stream.seek(self._starts[first])
                data = stream.read(self._seen - self._starts[first])
            base = self._starts[first]
            ends = [*self._starts[first + 1 : count + 1], self._seen][: count - first]
            return [
                (self._times[first + n], data[self._starts[first + n] - base : end - base])
                for n, end in enumerate(ends)
            ]

    def __len__(self) -> int:
        """Number of lines that have been seen."""
        return len(self._starts)


class LogClock:
    """Looks at the logs of all containers that run."""

    def __init__(self) -> None:
        self._logs: set[Log] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, daemon=True).start()

    def add(self, log: Log) -> None:
        """Begin to look at a log."""
        with self._lock:
            self._logs.add(log)

    def remove(self, log: Log) -> None:
        """The last look: nothing more will come."""
        log.look()
        with self._lock:
            self._logs.discard(log)

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            with self._lock:
                logs = list(self._logs)
            for log in logs:
                log.look()


@dataclass(frozen=True)
class Wanted:
    """Which part of a log, as the query of a request says it."""

    follow: bool = False
    timestamps: bool = False
    tail: int | None = None
    limit: int | None = None
    since: int = 0

    @classmethod
    def of(cls, query: dict[str, list[str]]) -> Wanted:
        """Read a query; ValueError when a number or a time is none."""

        def number(name: str) -> int | None:
            return int(query[name][0]) if name in query else None

        since = 0
        if "sinceTime" in query:
            since = int(datetime.fromisoformat(query["sinceTime"][0]).timestamp() * NANO)
        elif (seconds := number("sinceSeconds")) is not None:
            since = time.time_ns() - seconds * NANO
        return cls(
            follow=query.get("follow") == ["true"],
            timestamps=query.get("timestamps") == ["true"],
            tail=number("tailLines"),
            limit=number("limitBytes"),
            since=since,
        )


def stream(log: Log, ended: Callable[[], bool], wanted: Wanted) -> Iterator[bytes]:
    """Pieces of the log; while it is followed, until *ended* and no more is there."""
    log.look()
    next_line, left = 0, wanted.limit
    if wanted.tail is not None:
        next_line = max(0, len(log.lines(0, complete=True)) - wanted.tail)
    while left is None or left > 0:
        # In this order, or what was written just before the end would be lost.
        over = ended() or not wanted.follow
        lines = log.lines(next_line, complete=over)
        next_line += len(lines)
        data = b"".join(
            stamp(moment) + line if wanted.timestamps else line
            for moment, line in lines
            if moment >= wanted.since
        )
        if left is not None:
            data, left = data[:left], left - len(data)
        if data:
            yield data
        if over:
            return
        if not lines:
            time.sleep(FOLLOW_SECONDS)


def stamp(moment: int) -> bytes:
    """A time as it stands before a line, with all nine digits."""
    seconds, rest = divmod(moment, NANO)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z ".encode()
