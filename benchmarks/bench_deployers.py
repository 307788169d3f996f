"""How long `aicr bundle` takes with each deployer, for a real recipe and for hundreds of components.

Two tables. The first is the recipe of `make demo`, beside the bare interpreter, with the target that
bench_cli.py has for a bundle. The second is a recipe of 125, 250 and 500 made-up components: the
target is 2 s for 500, and `growth` is (t500 - t250) / (t250 - t125), which is 2 when work is linear
in the number of components, whatever the start of a process costs. It comes from the processor time of
the fastest run of each size: what the file system of a busy machine does to thousands of small files
is no growth of ours. `tests/deployers/test_linear_work.py` counts the work instead of timing it.

Every measurement is a whole process that reads the recipe and writes the bundle. The figures are a
report: a missed target is marked, the exit status stays 0.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from benchmarks.bench_cli import Contender

DEPLOYERS: Final = ("helm", "helmfile", "argocd", "argocd-helm", "flux", "terraform", "fleet")
SIZES: Final = (125, 250, 500)
#: Of a bundle of the demo recipe: median / median of the bare interpreter.
RATIO: Final = 4.3
#: Of a bundle of the largest size, in seconds.
LARGEST: Final = 2.0


def synthetic(count: int) -> dict[str, Any]:
    """A recipe of *count* components: chains of ten that hang on each other, two kinds of source."""
    refs: list[dict[str, Any]] = []
    for number in range(count):
        needed = number - (1 if number % 10 else 10)
        refs.append(
            {
                "name": f"part-{number:03d}",
                "namespace": f"space-{number // 5}",
                "chart": f"part-{number:03d}",
                "type": "Helm",
                "source": "https://charts.example.com"
                if number % 3
                else "oci://registry.example.com/charts",
                "version": "1.2.3",
                "overrides": {
                    "replicas": 2,
                    "image": {"repository": f"registry.example.com/part-{number}", "tag": "24.10"},
                    "args": [f"--option={each}" for each in range(10)],
                },
                **({"dependencyRefs": [f"part-{needed:03d}"]} if needed >= 0 else {}),
            }
        )
    return {
        "kind": "RecipeResult",
        "apiVersion": "aicr.run/v1",
        "metadata": {"version": "1.0.0"},
        "criteria": {"service": "eks"},
        "componentRefs": refs,
        "deploymentOrder": [ref["name"] for ref in refs],
    }


def bundles(aicr: str, recipe: Path, scratch: Path, ratio: float | None = None) -> list[Contender]:
    """One command for each deployer."""
    from benchmarks.bench_cli import Contender

    target = scratch / "bundle"
    words = [aicr, "bundle", "-r", str(recipe), "-o", str(target), "--deployer"]
    return [Contender(name, [*words, name], ratio, target) for name in DEPLOYERS]


def measure(rows: list[Contender], rounds: int, warm: int, scratch: Path) -> None:
    """Run the commands one after another, round by round; the first *warm* rounds do not count."""
    for number in range(rounds + warm):
        for row in rows:
            row.run_once(scratch)
        if number + 1 == warm:
            for row in rows:
                row.forget()


def size_table(found: dict[int, list[Contender]]) -> str:
    """Fastest run of each size in milliseconds, the growth, and the peak memory of the largest."""
    head = "".join(f"{f'{size} ms':>10}" for size in SIZES)
    lines = [f"{'deployer':<20}{head}{'growth':>8}{'target':>8}{'peak MiB':>10}"]
    for index, name in enumerate(DEPLOYERS):
        rows = [found[size][index] for size in SIZES]
        small, middle, large = (min(row.seconds) for row in rows)
        low, mid, high = (min(row.cpu_seconds) for row in rows)
        growth = (high - mid) / (mid - low) if mid > low else float("nan")
        missed = "  missed" if large > LARGEST else ""
        times = "".join(f"{each * 1e3:>10.0f}" for each in (small, middle, large))
        lines.append(
            f"{name:<20}{times}{growth:>8.2f}{LARGEST * 1e3:>8.0f}"
            f"{max(rows[-1].peak_kib) / 1024:>10.1f}{missed}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time every deployer as a whole process.")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of the demo recipe (20)")
    parser.add_argument("--size-rounds", type=int, default=5, help="rounds of each size (5)")
    parser.add_argument(
        "--aicr",
        default=str(Path(sys.executable).with_name("aicr")),
        help="console script to measure (the one beside this interpreter)",
    )
    arguments = parser.parse_args()
    if not os.access(arguments.aicr, os.X_OK):
        raise SystemExit(f"{arguments.aicr} is no program; run this through `make bench`")
    # Run by its path, as tools/bench.sh does, this file has its own folder on the path only.
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    from benchmarks.bench_cli import CRITERIA, Contender, table

    from aicr.yamlio import write

    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {arguments.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        recipe = scratch / "recipe.yaml"
        subprocess.run(
            [arguments.aicr, "recipe", *CRITERIA, "-o", str(recipe)],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        floor = Contender("python -I -c pass", [sys.executable, "-I", "-c", "pass"])
        rows = [floor, *bundles(arguments.aicr, recipe, scratch, RATIO)]
        measure(rows, arguments.rounds, 2, scratch)
        print(table(rows))
        found: dict[int, list[Contender]] = {}
        for size in SIZES:
            document = scratch / f"recipe-{size}.yaml"
            document.write_text(write.dump(synthetic(size)), encoding="utf-8")
            found[size] = bundles(arguments.aicr, document, scratch)
        # All sizes in one round, so that a change of the machine's mood does not look like growth.
        everything = [row for rows in found.values() for row in rows]
        measure(everything, arguments.size_rounds, 1, scratch)
        print(f"\nmade-up components, the fastest of {arguments.size_rounds} runs")
        print(size_table(found))


if __name__ == "__main__":
    main()
