"""Ask for every overlay of the catalogue in one go and show how each request ended.

The table `docs/catalogue/leaves.yaml` (decision 52) says how to ask for each overlay and how that
should end. This runs `aicr recipe` and `aicr bundle` for every row inside one process, through the
entry point of the command line, and prints one line a row. The tests in `tests/leaves` use the same
functions, so what they check is what is shown here.

It must not know what a recipe or a bundle should contain; it runs, counts and compares exit statuses.

Usage: `python tools/leaf_table.py [--keep DIR] [--placement]`. Exit 1 when a row ends otherwise than
the table says.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aicr import yamlio
from aicr.cli.console import Console
from aicr.cli.main import main as aicr

TABLE: Final = Path(__file__).resolve().parent.parent / "docs" / "catalogue" / "leaves.yaml"

#: Every flag of `aicr bundle` that says where things run, so that optional parts appear as well.
PLACEMENT: Final = (
    *("--system-node-selector", "pool=system"),
    *("--system-node-toleration", "dedicated=system:NoSchedule"),
    *("--accelerated-node-selector", "nvidia.com/gpu.present=true"),
    *("--accelerated-node-toleration", "nvidia.com/gpu=present:NoSchedule"),
    *("--workload-selector", "job=train"),
    *("--workload-gate", "skyhook.nvidia.com=runtime-required:NoSchedule"),
    *("--nodes", "4"),
    *("--storage-class", "fast"),
    *("--shared-storage-class", "shared"),
)


@dataclass(frozen=True)
class Leaf:
    """One row of the table: how to ask for an overlay, and the exit status to expect."""

    number: int
    overlay: str
    recipe: tuple[str, ...]
    bundle: tuple[str, ...] | None
    exit: int

    @property
    def name(self) -> str:
        """Name of the row; no two rows share one, and it can name a folder."""
        return f"{self.number:02d}-{self.overlay}"


@dataclass(frozen=True)
class Outcome:
    """How a row ended and where its output lies."""

    leaf: Leaf
    status: int
    said: str
    recipe: Path
    bundle: Path
    components: int
    files: int
    milliseconds: float

    @property
    def expected(self) -> bool:
        """Whether the row ended as the table says."""
        return self.status == self.leaf.exit


def leaves() -> list[Leaf]:
    """The rows of the table, in its order."""
    rows = yamlio.read_fast(TABLE.read_text(encoding="utf-8"), source=TABLE.name)["leaves"]
    return [_leaf(number, row) for number, row in enumerate(rows, 1)]


def _leaf(number: int, row: dict[str, Any]) -> Leaf:
    bundle = tuple(row["bundle"]) if "bundle" in row else None
    return Leaf(number, row["overlay"], tuple(row["recipe"]), bundle, row["exit"])


def run(leaf: Leaf, into: Path, extra: tuple[str, ...] = ()) -> Outcome:
    """Run one row; its recipe and bundle lie in a folder of *into* that is named after the row.

    Args:
        leaf: the row.
        into: an existing folder.
        extra: more arguments of `aicr bundle`.
    """
    place = into / leaf.name
    place.mkdir()
    recipe, bundle = place / "recipe.yaml", place / "bundle"
    heard = io.StringIO()
    start = time.perf_counter()
    status = aicr(["recipe", *leaf.recipe, "-o", str(recipe)], Console(io.StringIO(), heard))
    if status == 0 and leaf.bundle is not None:
        words = ["bundle", "-r", str(recipe), *leaf.bundle, *extra, "-o", str(bundle)]
        status = aicr(words, Console(io.StringIO(), heard))
    spent = 1000 * (time.perf_counter() - start)
    components, files = _count(bundle) if bundle.is_dir() else (0, 0)
    return Outcome(leaf, status, heard.getvalue(), recipe, bundle, components, files, spent)


def run_all(into: Path, extra: tuple[str, ...] = ()) -> list[Outcome]:
    """Run every row; *extra* is left out where the table expects a refusal, which it could lift."""
    return [run(leaf, into, () if leaf.exit else extra) for leaf in leaves()]


def _count(bundle: Path) -> tuple[int, int]:
    """Components and files of a written bundle."""
    text = (bundle / "bundle-info.yaml").read_text(encoding="utf-8")
    releases = yamlio.read_fast(text, source="bundle-info.yaml")["layout"]["releases"]
    files = sum(path.is_file() for path in bundle.rglob("*"))
    return len({release["component"] for release in releases}), files


def report(outcomes: list[Outcome]) -> str:
    """The outcomes as a table for people, a line a row and a line of sums."""
    width = max(len(outcome.leaf.overlay) for outcome in outcomes)
    lines = [f"{'leaf':<{width}}  exit  components  files     ms"]
    for outcome in outcomes:
        wrong = "" if outcome.expected else f"  WRONG: the table says {outcome.leaf.exit}"
        lines.append(
            f"{outcome.leaf.overlay:<{width}}  {outcome.status:>4}  {outcome.components:>10}  "
            f"{outcome.files:>5}  {outcome.milliseconds:>5.0f}{wrong}"
        )
    bundled = sum(outcome.bundle.is_dir() for outcome in outcomes)
    refused = sum(outcome.status != 0 for outcome in outcomes)
    total = sum(outcome.milliseconds for outcome in outcomes)
    lines.append(
        f"{len(outcomes)} rows: {bundled} bundled, {refused} refused, "
        f"{sum(not outcome.expected for outcome in outcomes)} otherwise than the table says; "
        f"{total:.0f} ms in one process (the first row loads the program)"
    )
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    """Run the table and print the outcome."""
    parser = argparse.ArgumentParser(description="Resolve and bundle every row of leaves.yaml.")
    parser.add_argument("--keep", metavar="DIR", help="write recipes and bundles there, and stay")
    parser.add_argument(
        "--placement", action="store_true", help="bundle with every flag about placement"
    )
    options = parser.parse_args(argv)
    extra = PLACEMENT if options.placement else ()
    if options.keep:
        place = Path(options.keep)
        place.mkdir(parents=True, exist_ok=True)
        outcomes = run_all(place, extra)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            outcomes = run_all(Path(scratch), extra)
            sys.stdout.write(report(outcomes))
            return _judge(outcomes)
    sys.stdout.write(report(outcomes))
    return _judge(outcomes)


def _judge(outcomes: list[Outcome]) -> int:
    wrong = [outcome for outcome in outcomes if not outcome.expected]
    for outcome in wrong:
        sys.stderr.write(f"\n{outcome.leaf.name}: {outcome.said}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
