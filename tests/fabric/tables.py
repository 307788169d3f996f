"""Prints tables as nccl-tests prints them, in the shapes of its releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SIZE = 268435456


@dataclass(frozen=True)
class Measured:
    """Numbers of one row, as text."""

    size: int = SIZE
    time: str = "2374.1"
    algbw: str = "113.07"
    busbw: str = "197.87"
    wrong: str = "0"
    in_algbw: str = "113.20"
    in_busbw: str = "198.10"
    in_wrong: str = "0"


def ranks(count: int = 8, *, word: str = "Group") -> list[str]:
    """The list of devices; releases before 2.14 do not name a group."""
    group = " Group  0" if word == "Group" else ""
    return [
        f"#  Rank {number:2d}{group} Pid {1000 + number:6d} on     node-1 device {number:2d} "
        f"[0000:{number:02x}:00] NVIDIA H100 80GB HBM3"
        for number in range(count)
    ]


def header(*, wrong: str = "#wrong", extra: Sequence[str] = (), stamp: bool = False) -> list[str]:
    """The three lines above the rows."""
    half = f"    time   algbw   busbw {wrong}" + "".join(f" {name:>8}" for name in extra)
    units = "    (us)  (GB/s)  (GB/s)       " + "".join(f" {'(us)':>8}" for _ in extra)
    tail = "           timestamp" if stamp else ""
    return [
        "#",
        "#                                                              out-of-place"
        "                       in-place          ",
        f"#       size         count      type   redop    root {half} {half}{tail}",
        f"#        (B)    (elements)                           {units} {units}",
    ]


def row(one: Measured, *, extra: Sequence[str] = (), stamp: str = "") -> str:
    """One line."""
    more = "".join(f" {value:>8}" for value in extra)
    line = f"{one.size:12d}  {one.size // 4:12d}     float     sum      -1"
    line += f"  {one.time:>7}  {one.algbw:>6}  {one.busbw:>6}  {one.wrong:>6}{more}"
    line += f"  {one.time:>7}  {one.in_algbw:>6}  {one.in_busbw:>6}  {one.in_wrong:>6}{more}"
    return f"{line}  {stamp}" if stamp else line


def footer(average: str = "197.98", bounds: int = 0) -> list[str]:
    """The closing lines."""
    word = "FAILED" if bounds else "OK"
    return [
        f"# Out of bounds values : {bounds} {word}",
        f"# Avg bus bandwidth    : {average} ",
        "#",
    ]


def table(*rows: Measured, gpus: int = 8, bounds: int = 0) -> str:
    """A whole run."""
    lines = ["# nThread 1 nGpus 8 minBytes 268435456 maxBytes 268435456", "#", "# Using devices"]
    lines += [*ranks(gpus), *header(), *(row(one) for one in rows or (Measured(),))]
    return "\n".join([*lines, *footer(bounds=bounds)]) + "\n"
