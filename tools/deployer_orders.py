"""Prints the order that each deployer will follow for two recipes, side by side.

Every bundle is written and then read back as its tool reads it (tests/deployers/parse_back.py), so
the table shows the files and not the plan. A cell is the stage in which a release is installed: one
more than the highest stage of what it waits for. The last column is the stage that the recipe's own
graph asks for. A deployer that goes through a chain has as many stages as releases.

Usage: `python -m tools.deployer_orders`, from the top of a development checkout. Exit 1 if a deployer would
install a release before something that it needs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.deployers import parse_back
from tests.deployers.test_argocd_flux_fleet_catalogue import RECIPES, written

TITLES = {"eks": "EKS training", "gke": "GKE inference"}


def stages(before: dict[str, set[str]]) -> dict[str, int]:
    """Stage of each release, from 1, by all that comes before it."""
    found: dict[str, int] = {}
    for name in sorted(before, key=lambda each: len(before[each])):
        found[name] = 1 + max((found[each] for each in before[name]), default=0)
    return found


def table(recipe: str, folder: Path) -> tuple[str, list[str]]:
    """The table of a recipe, and what would be installed too early."""
    columns: dict[str, dict[str, int]] = {}
    early: list[str] = []
    for deployer in sorted(parse_back.READERS):
        bundle = written(recipe, deployer, folder / recipe / deployer)
        found, wanted = parse_back.before(bundle), parse_back.expected(bundle)
        columns[deployer] = stages(found)
        early += [
            f"{recipe}, {deployer}: {name} does not wait for {', '.join(sorted(missing))}"
            for name, needed in wanted.items()
            if (missing := needed - found.get(name, set()))
        ]
    columns["recipe"] = stages(wanted)
    releases = parse_back.releases(bundle)
    wide = max(map(len, releases)) + 2
    lines = ["release".ljust(wide) + "".join(f"{name:>13}" for name in columns)]
    for release in releases:
        cells = "".join(f"{column.get(release, '-'):>13}" for column in columns.values())
        lines.append(release.ljust(wide) + cells)
    return "\n".join(lines), early


def main() -> int:
    """Print the tables."""
    early: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for recipe in sorted(RECIPES):
            words = ", ".join(f"{key} {value}" for key, value in RECIPES[recipe].items())
            text, found = table(recipe, Path(folder))
            print(f"{TITLES[recipe]} ({words}); stage of each release\n\n{text}\n")
            early += found
    for line in early:
        print(line, file=sys.stderr)
    if not early:
        print(
            "Every deployer installs each release after everything that the recipe puts before it."
        )
    return 1 if early else 0


if __name__ == "__main__":
    sys.exit(main())
