"""How long `aicr recipe` and `aicr bundle` take as processes, beside the bare interpreter.

The commands of one round run one after another and the rounds are interleaved, so a noisy machine
disturbs all of them alike. A target is a ratio to `python -I -c pass` of the same run (decision
82), because milliseconds do not carry over between machines. The figures are a report: a missed
target is marked, the exit status stays 0.

It must not know: anything inside the product; it calls the console script of the environment that
runs it (see tools/bench.sh) and, when AICR_ORIGINAL names a binary, the same commands of that.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

CRITERIA = [
    *("--service", "eks", "--accelerator", "h100", "--intent", "training"),
    *("--os", "ubuntu", "--platform", "kubeflow"),
]


@dataclass
class Contender:
    """One command line with what was measured of it: seconds and KiB, one entry a round.

    ``cpu_seconds`` is the time the processor worked in the program itself, without the kernel: what
    is left when files, other processes and the machine's mood are taken away.
    """

    name: str
    argv: list[str]
    #: Upper limit of median / floor median that we aim at; None for a reference.
    target: float | None = None
    #: A folder that must not exist before each run.
    fresh: Path | None = None
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak_kib: list[int] = field(default_factory=list)

    def run_once(self, scratch: Path) -> None:
        """Run the command, record wall time and peak memory; a failing command stops all."""
        if self.fresh is not None:
            shutil.rmtree(self.fresh, ignore_errors=True)
        with (scratch / "output").open("wb") as output:
            begin = time.perf_counter()
            process = subprocess.Popen(self.argv, cwd=scratch, stdout=output, stderr=output)
            # wait4 and not communicate(): it is what tells the peak memory of this very child.
            _, status, usage = os.wait4(process.pid, 0)
            self.seconds.append(time.perf_counter() - begin)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            words = (scratch / "output").read_text(errors="replace")
            raise SystemExit(f"{self.name}: exit {process.returncode}\n{words}")
        self.peak_kib.append(usage.ru_maxrss)
        self.cpu_seconds.append(usage.ru_utime)

    def forget(self) -> None:
        """Drop what was measured so far."""
        for measured in (self.seconds, self.cpu_seconds, self.peak_kib):
            measured.clear()


def contenders(aicr: str, original: str | None, scratch: Path) -> list[Contender]:
    """The commands to compare; the first one is the floor."""
    ours = scratch / "ours"
    found = [
        Contender("python -I -c pass", [sys.executable, "-I", "-c", "pass"]),
        Contender("aicr recipe", [aicr, "recipe", *CRITERIA, "-o", f"{ours}.yaml"], 3.0),
        Contender(
            "aicr bundle",
            [aicr, "bundle", "-r", f"{ours}.yaml", "--deployer", "helm", "-o", str(ours)],
            4.3,
            ours,
        ),
    ]
    if original:
        theirs = scratch / "theirs"
        found += [
            Contender("original recipe", [original, "recipe", *CRITERIA, "-o", f"{theirs}.yaml"]),
            Contender(
                "original bundle",
                [original, "bundle", "-r", f"{theirs}.yaml", "-o", str(theirs)],
                fresh=theirs,
            ),
        ]
    return found


def table(rows: Sequence[Contender]) -> str:
    """The report: medians, minima, ratio to the floor, target and peak memory."""
    floor = statistics.median(rows[0].seconds)
    lines = [
        f"{'command':<20}{'median ms':>10}{'min ms':>9}{'ratio':>8}{'target':>8}{'peak MiB':>10}"
    ]
    for row in rows:
        median = statistics.median(row.seconds)
        ratio = median / floor
        target = "" if row.target is None else f"{row.target:.1f}"
        missed = "  missed" if row.target is not None and ratio > row.target else ""
        lines.append(
            f"{row.name:<20}{median * 1e3:>10.1f}{min(row.seconds) * 1e3:>9.1f}{ratio:>8.2f}"
            f"{target:>8}{max(row.peak_kib) / 1024:>10.1f}{missed}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the hot commands as whole processes.")
    parser.add_argument("--rounds", type=int, default=40, help="measured rounds (40)")
    parser.add_argument(
        "--aicr",
        default=str(Path(sys.executable).with_name("aicr")),
        help="console script to measure (the one beside this interpreter)",
    )
    arguments = parser.parse_args()
    if not os.access(arguments.aicr, os.X_OK):
        raise SystemExit(f"{arguments.aicr} is no program; run this through `make bench`")
    original = os.environ.get("AICR_ORIGINAL") or None
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        rows = contenders(arguments.aicr, original, scratch)
        # Two rounds that do not count: bytecode, page cache, and the recipe that bundle reads.
        for number in range(arguments.rounds + 2):
            for row in rows:
                row.run_once(scratch)
            if number == 1:
                for row in rows:
                    row.forget()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {arguments.rounds} rounds")
    print(table(rows))
    # The kernel counts a child's memory from before it started the program, when it was still a
    # copy of this process, so nothing below our own size can be seen.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"A peak near {own:.0f} MiB is the benchmark's own size: the command needs no more.")
    if original is None:
        print("The original was not measured; AICR_ORIGINAL=path names its binary.")


if __name__ == "__main__":
    main()
