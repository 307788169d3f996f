"""Reads what `all_reduce_perf` of nccl-tests prints: the table, the ranks, and the lines that judge it.

The output is read by its header where there is one, because columns differ between releases: `error`
before 2.13, `#wrong` since, four more columns a half with per-iteration timing, a timestamp at the end.
Real output also carries prefixes of mpirun and of log viewers, and lines of NCCL itself that fall
between, and into, the rows; a row that was torn in two by such a line is put together again. What
cannot be read is kept as a broken row, so that a caller can say what was wrong and never mistakes it
for a row that is not there.

Units: sizes in bytes, times in microseconds, bandwidths in GB/s of 10^9 bytes. A header that names
other units is converted if they are known, else refused.

It must not know: thresholds, and what a result is good for.
Source: preflight specification 7.1, validators specification 7.2, field case K1.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from aicr.errors import INTERNAL, AicrError

#: Where a row begins: after the start of the line, or after what a launcher or a viewer put before it.
_START: Final = r"(?:^|(?<=[\s>:|\]]))"
_ROW: Final = re.compile(
    _START + r"(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<type>[a-z][\w-]*)\s+(?P<redop>[a-z]\w*)"
    r"\s+(?P<root>-?\d+)(?P<body>.*)$"
)
_HEADER: Final = re.compile(r"#\s+size\s+count\s+type\s+(?P<columns>.*)$")
_UNITS: Final = re.compile(r"#\s+\((?P<size>\w+)\)\s+\((?:elements)\)\s+(?P<units>.*)$")
_RANK: Final = re.compile(r"#\s+Rank\s+(\d+)\s+(?:Group|Pid)\b")
_BOUNDS: Final = re.compile(r"# Out of bounds values\s*:\s*(-?\d+)")
_AVERAGE: Final = re.compile(r"# Avg bus bandwidth\s*:\s*(\S+)")
_CONCLUDED: Final = re.compile(r"# Collective test concluded")
_FAILURE: Final = re.compile(r"Test (?:NCCL|CUDA|MPI) failure|^# error: |\bTest failure\b")
_BODY_LINE: Final = re.compile(r"^\s*(?:\d[\d.e+-]*|N/A)(?:\s+(?:\d[\d.e+-]*|N/A|[\d:-]+))*\s*$")
_PREFIX: Final = re.compile(r"^(?:\[\d+,\d+\]<std\w+>:|\S+ \| )")
#: Fewest blanks after `root` that mean "the out-of-place half was left out".
_LEFT_OUT: Final = 24
_SCALE: Final = {"B/s": 1e-9, "KB/s": 1e-6, "MB/s": 1e-3, "GB/s": 1.0, "TB/s": 1e3}
_SECONDS: Final = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_HALF: Final = ("time", "algbw", "busbw", "#wrong")
#: How much of an output is quoted in an error, in lines.
TAIL_LINES: Final = 15


@dataclass(frozen=True)
class Half:
    """One half of a row: out of place, or in place."""

    time_us: float
    algbw: float
    busbw: float
    #: Wrong elements; None when nothing was checked or the release did not count them.
    wrong: int | None


@dataclass(frozen=True)
class Row:
    """One message size."""

    size: int
    count: int
    dtype: str
    redop: str
    root: int
    out_of_place: Half | None
    in_place: Half | None

    @property
    def busbw(self) -> float:
        """Bus bandwidth in GB/s, out of place where it was measured (preflight specification 7.1)."""
        return self._judged.busbw

    @property
    def algbw(self) -> float:
        """Algorithm bandwidth in GB/s, of the same half as `busbw`."""
        return self._judged.algbw

    @property
    def wrong(self) -> int:
        """Wrong elements of both halves together."""
        return sum(half.wrong or 0 for half in (self.out_of_place, self.in_place) if half)

    @property
    def _judged(self) -> Half:
        half = self.out_of_place or self.in_place
        if half is None:
            raise AicrError(INTERNAL, f"the row of size {self.size} has no measurement")
        return half


@dataclass(frozen=True)
class BrokenRow:
    """A row that begins like one and cannot be read."""

    size: int
    column: str
    text: str


@dataclass(frozen=True)
class Output:
    """What one run printed."""

    rows: tuple[Row, ...]
    broken: tuple[BrokenRow, ...]
    #: Ranks that the list of devices names; 0 when there is no list.
    ranks: int
    #: Values out of bounds over the whole run; None when the run did not get there.
    out_of_bounds: int | None
    #: Average bus bandwidth over all sizes in GB/s. Small messages pull it down: never judge by it.
    average_busbw: float | None
    #: Lines in which the program says that it failed.
    failures: tuple[str, ...]
    #: Whether the closing lines are there; without them the output was cut off or the run died.
    complete: bool
    #: The last lines, for error messages.
    tail: str

    @property
    def wrong(self) -> int:
        """Wrong elements in all rows; at least the number out of bounds."""
        return max(sum(row.wrong for row in self.rows), self.out_of_bounds or 0)

    def row(self, size: int) -> Row:
        """The first row of *size* bytes.

        Raises:
            AicrError: INTERNAL `failed to parse <column>: …` for a broken row of that size, or
                `could not find results for size <n> bytes in output`; the context holds the tail.
        """
        for row in self.rows:
            if row.size == size:
                return row
        for broken in self.broken:
            if broken.size == size:
                raise self._error(f"failed to parse {broken.column}: {broken.text}")
        raise self._error(f"could not find results for size {size} bytes in output")

    def last_row(self) -> Row:
        """The last row, which is that of the largest size.

        Raises:
            AicrError: INTERNAL `could not find bandwidth value in logs`, also when the last row that
                was begun cannot be read: the one before it would be a smaller size.
        """
        largest = max((row.size for row in self.rows), default=-1)
        if not self.rows or any(broken.size > largest for broken in self.broken):
            raise self._error("could not find bandwidth value in logs")
        return self.rows[-1]

    def _error(self, message: str) -> AicrError:
        return AicrError(INTERNAL, message, context={"tail": self.tail})


def parse(text: str) -> Output:
    """Read the output of a run, whole or cut off, with whatever else is in it.

    Raises:
        AicrError: INTERNAL when the header names a unit that is not known.
    """
    reader = _Reader()
    # A last line without its line feed may have been cut in the middle of a number.
    lines = text.replace("\r\n", "\n").split("\n")
    last = len(lines) - 1
    for number, line in enumerate(lines):
        reader.line(line, cut=number == last and bool(line))
    reader.end()
    return Output(
        rows=tuple(reader.rows),
        broken=tuple(reader.broken),
        ranks=len(reader.ranks),
        out_of_bounds=reader.out_of_bounds,
        average_busbw=reader.average,
        failures=tuple(reader.failures),
        complete=reader.complete,
        tail=tail(text),
    )


def tail(text: str, lines: int = TAIL_LINES) -> str:
    """The last *lines* lines of *text* that hold something."""
    return "\n".join([line.rstrip() for line in text.splitlines() if line.strip()][-lines:])


def bus_bandwidth(size: int, seconds: float, ranks: int) -> tuple[float, float]:
    """Algorithm and bus bandwidth in GB/s of an all-reduce of *size* bytes in *seconds*.

    Source: preflight specification 7.3; one rank moves nothing over a bus and gives 0.
    """
    algbw = size / seconds / 1e9
    return algbw, algbw * 2 * (ranks - 1) / ranks


class _Reader:
    """Goes through the lines; remembers the header, and a row whose second part is still to come."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.broken: list[BrokenRow] = []
        self.ranks: set[int] = set()
        self.out_of_bounds: int | None = None
        self.average: float | None = None
        self.failures: list[str] = []
        self.complete = False
        self._columns: list[str] = []
        self._time = 1.0
        self._bandwidth = 1.0
        self._pending: re.Match[str] | None = None

    def line(self, line: str, *, cut: bool) -> None:
        """Take one line."""
        if self._pending and _BODY_LINE.match(bare := _PREFIX.sub("", line)):
            found, self._pending = self._pending, None
            self._row(found, bare, cut=cut)
        elif (found_row := _ROW.search(line)) and "#" not in line[: found_row.start()]:
            self._drop_pending()
            body = found_row["body"]
            if _BODY_LINE.match(body) or (body.strip() and _looks_like_body(body)):
                self._row(found_row, body, cut=cut)
            else:
                # Only the beginning: NCCL wrote a line of its own before the numbers came.
                self._pending = found_row
        elif "#" in line:
            self._comment(line, cut=cut)
        elif _FAILURE.search(line):
            self.failures.append(line.strip())

    def end(self) -> None:
        """Nothing comes after this."""
        self._drop_pending()

    def _drop_pending(self) -> None:
        if self._pending:
            found, self._pending = self._pending, None
            self.broken.append(BrokenRow(int(found["size"]), "time", found[0].strip()))

    def _comment(self, line: str, *, cut: bool) -> None:
        if found := _HEADER.search(line):
            self._columns = found["columns"].split()
        elif found := _UNITS.search(line):
            # A unit that was cut off looks like one that is not known.
            self._read_units(found["units"].split()[: -1 if cut else None])
        elif found := _RANK.search(line):
            self.ranks.add(int(found[1]))
        elif found := _BOUNDS.search(line):
            self.out_of_bounds = int(found[1])
        elif found := _AVERAGE.search(line):
            self.average = _number(found[1])
            self.complete = True
        elif _CONCLUDED.search(line):
            self.complete = True
        if _FAILURE.search(line):
            self.failures.append(line.strip())

    def _read_units(self, units: list[str]) -> None:
        names = [unit.strip("()") for unit in units]
        for name in names:
            if name not in _SCALE and name not in _SECONDS and name != "%" and "/" in name:
                raise AicrError(
                    INTERNAL,
                    f"the table gives bandwidths in {name!r}, a unit that is not known",
                    hint=f"known: {', '.join(_SCALE)}",
                )
        self._bandwidth = next((_SCALE[name] for name in names if name in _SCALE), 1.0)
        self._time = next((_SECONDS[name] for name in names if name in _SECONDS), 1.0)

    def _row(self, found: re.Match[str], body: str, *, cut: bool) -> None:
        size, text = int(found["size"]), (found[0][: -len(found["body"]) or None] + body).strip()
        fields = body.split()
        out, inside = self._halves()
        halves: list[Half | None] = []
        if len(fields) <= len(out) and _blanks(body) >= _LEFT_OUT and inside:
            # Replaying a trace measures in place only and leaves the other half blank.
            halves.append(None)
            out = []
        position = 0
        for columns in (out, inside):
            if not columns or (halves and position >= len(fields)):
                continue
            part = fields[position : position + len(columns)]
            position += len(columns)
            half, column = self._half(columns, part)
            if half is None:
                self.broken.append(BrokenRow(size, column, text))
                return
            halves.append(half)
        if cut and position >= len(fields):
            self.broken.append(BrokenRow(size, "busbw", text))
            return
        self.rows.append(
            Row(
                size,
                int(found["count"]),
                found["type"],
                found["redop"],
                int(found["root"]),
                halves[0],
                halves[1] if len(halves) > 1 else None,
            )
        )

    def _halves(self) -> tuple[list[str], list[str]]:
        """The columns of the two halves, by the header or as releases since 2.13 print them."""
        columns = [
            name for name in self._columns if name not in {"redop", "root", "timestamp", "time2"}
        ]
        starts = [number for number, name in enumerate(columns) if name in {"time", "cputime"}]
        if not starts:
            return list(_HALF), list(_HALF)
        second = starts[1] if len(starts) > 1 else len(columns)
        return columns[starts[0] : second], columns[second:]

    def _half(self, columns: list[str], fields: list[str]) -> tuple[Half | None, str]:
        """The half, or None and the name of the column that is missing or no number."""
        named = dict(zip(columns, fields, strict=False))
        values: dict[str, float] = {}
        for column in (columns[0], "algbw", "busbw"):
            value = _number(named.get(column, ""))
            if value is None:
                return None, "time" if column == columns[0] else column
            values[column] = value
        counted = _number(named.get("#wrong", "N/A"))
        if "#wrong" in columns and counted is None and named.get("#wrong", "") not in {"N/A", ""}:
            return None, "#wrong"
        return (
            Half(
                values[columns[0]] * self._time,
                values["algbw"] * self._bandwidth,
                values["busbw"] * self._bandwidth,
                None if counted is None else math.ceil(counted),
            ),
            "",
        )


def _looks_like_body(body: str) -> bool:
    """Whether at least the first three fields are there, if only as something like numbers."""
    fields = body.split()
    return body[:1].isspace() and bool(re.match(r"^-?[\dni.]", fields[0])) and len(fields) >= 3


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip())


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
