"""Count what the catalogue holds, what of it has a source, and what is unknown (decision 56).

The catalogue is `recipes/`; where its facts come from is `docs/catalogue/sources.yaml`. The first
table is printed and, with a table of the components and the list of the unknown, written to
`docs/catalogue/report.md`. The tests in `tests/catalogue` insist that nothing lacks a source and
that the page is current.

It must not judge or change the catalogue; it counts.

Usage: `python -m tools.catalogue_report [--check]`
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
RECIPES: Final = ROOT / "recipes"
SOURCES: Final = ROOT / "docs" / "catalogue" / "sources.yaml"
PAGE: Final = ROOT / "docs" / "catalogue" / "report.md"

#: What is counted, in the order of the first table.
PINS, VALUES, OBJECTS, MANIFESTS, UPGRADES = (
    "chart pins",
    "values in values files",
    "objects in health checks",
    "manifests",
    "upgrade records",
)
FACTS: Final = (PINS, VALUES, OBJECTS, MANIFESTS, UPGRADES)

INTRO: Final = """\
# What the catalogue holds

Written by `make catalogue-report` from [`recipes/`](../../recipes/) and [`sources.yaml`](sources.yaml),
which says for each fact where it comes from. A value is one leaf of a values file; a list counts as one.
What no source was found for is not in the catalogue: it is counted and listed under [Unknown](#unknown).
"""


@dataclass
class Tally:
    """How many facts of each sort there are, and how many of them have a source."""

    there: Counter[str] = field(default_factory=Counter)
    sourced: Counter[str] = field(default_factory=Counter)

    def count(self, sort: str, found: Iterable[Any], stated: Iterable[Any]) -> None:
        """Add facts of one sort; *stated* are the facts of that sort that have a source."""
        facts = set(found)
        self.there[sort] += len(facts)
        self.sourced[sort] += len(facts & set(stated))

    def cell(self, sort: str) -> str:
        """A cell of the table: the count, and after it how many of them lack a source."""
        missing = self.there[sort] - self.sourced[sort]
        return f"{self.there[sort]}" + (f" ({missing} without)" if missing else "")


def leaf_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Dotted paths of a values document; a list and an empty map count as one leaf."""
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from leaf_paths(child, (*path, str(key).replace(".", "\\.")))
    else:
        yield ".".join(path)


def named_objects(check: dict[str, Any]) -> set[str]:
    """Every object a health check asserts, as Kind/name, or Kind where it names none."""
    found = set()
    for step in check["spec"]["steps"]:
        for operation in step["try"]:
            resource = operation.get("assert", {}).get("resource")
            if resource:
                name = resource.get("metadata", {}).get("name")
                found.add(f"{resource['kind']}/{name}" if name else resource["kind"])
    return found


def _load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def tally(entry: dict[str, Any], stated: dict[str, Any], recipes: Path = RECIPES) -> Tally:
    """The facts of one component.

    Args:
        entry: the component in the registry.
        stated: the component in the source data.
        recipes: the catalogue's folder.
    """
    facts = Tally()
    folder = recipes / "components" / entry["name"]
    pin = entry.get("helm", {}).get("defaultVersion")
    facts.count(PINS, [pin] if pin else [], [pin] if "pin" in stated else [])
    for file in sorted(folder.glob("values*.yaml")):
        facts.count(VALUES, leaf_paths(_load(file)), stated.get("values", {}).get(file.name, {}))
    if check := entry.get("healthCheck", {}).get("assertFile"):
        facts.count(OBJECTS, named_objects(_load(recipes / check)), stated.get("objects", {}))
    manifests = [file.name for file in folder.glob("manifests/*.yaml")]
    facts.count(MANIFESTS, manifests, stated.get("manifests", {}))
    if record := entry.get("upgrades", {}).get("file"):
        transitions = range(len(_load(recipes / record)["transitions"]))
        facts.count(UPGRADES, transitions, transitions if "upgrades" in stated else [])
    return facts


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table whose columns line up when it is read as text; all but the first are numbers."""
    lines = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]

    def line(cells: Sequence[str]) -> str:
        first, *others = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        numbers = [cell.strip().rjust(len(cell)) for cell in others]
        return "| " + " | ".join([first, *numbers]) + " |"

    return "\n".join(line(cells) for cells in (lines[0], rule, *lines[1:]))


@dataclass(frozen=True)
class Report:
    """The counts of one catalogue."""

    components: dict[str, Tally]
    overlays: dict[str, bool]
    mixins: dict[str, bool]
    benchmarks: dict[str, bool]
    unknown: list[dict[str, str]]

    def summary(self) -> str:
        """The first table: one line a sort of fact."""
        rows: list[tuple[object, ...]] = [("components", len(self.components), "", "")]
        for sort, names in (("overlays", self.overlays), ("mixins", self.mixins)):
            sourced = sum(names.values())
            rows.append((sort, len(names), sourced, len(names) - sourced))
        for sort in FACTS:
            there = sum(facts.there[sort] for facts in self.components.values())
            sourced = sum(facts.sourced[sort] for facts in self.components.values())
            rows.append((sort, there, sourced, there - sourced))
        sourced = sum(self.benchmarks.values())
        without = len(self.benchmarks) - sourced
        rows.append(("benchmark templates", len(self.benchmarks), sourced, without))
        rows.append(("unknown", len(self.unknown), "", ""))
        return table(("what", "count", "with a source", "without"), rows)

    def by_component(self) -> str:
        """The second table: one line a component."""
        unknown = Counter(entry["subject"] for entry in self.unknown)
        rows = [
            (name, *(facts.cell(sort) for sort in FACTS), unknown[name])
            for name, facts in sorted(self.components.items())
        ]
        head = ("component", "pin", "values", "objects", "manifests", "upgrades", "unknown")
        return table(head, rows)

    def page(self) -> str:
        """The page of the documentation."""
        unknown = "\n".join(f"- `{entry['subject']}`: {entry['what']}" for entry in self.unknown)
        parts = (
            INTRO.rstrip(),
            self.summary(),
            "## Components",
            self.by_component(),
            "## Unknown",
            "By component or overlay:",
            unknown,
        )
        return "\n\n".join(parts) + "\n"


def report(recipes: Path = RECIPES, sources: Path = SOURCES) -> Report:
    """Count a catalogue.

    Args:
        recipes: the catalogue's folder.
        sources: the source data.
    """
    data = _load(sources)
    registry = _load(recipes / "registry.yaml")["components"]
    documents = {
        kind: [_load(path) for path in sorted((recipes / kind).rglob("*.yaml"))]
        for kind in ("overlays", "mixins")
    }
    sourced = {
        kind: {name: bool(data[kind].get(name)) for name in (d["metadata"]["name"] for d in found)}
        for kind, found in documents.items()
    }
    components = {
        entry["name"]: tally(entry, data["components"].get(entry["name"], {}), recipes)
        for entry in registry
    }
    templates = recipes / "validators" / "performance" / "testdata"
    stated = data["benchmarks"]
    benchmarks = {
        name: bool(stated.get(name))
        for name in sorted(
            path.relative_to(templates).as_posix() for path in templates.rglob("*.yaml")
        )
    }
    return Report(components, sourced["overlays"], sourced["mixins"], benchmarks, data["unknown"])


def main() -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description="Count the catalogue and its sources.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    check: bool = parser.parse_args().check
    found = report()
    print(found.summary())
    current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == found.page()
    name = PAGE.relative_to(ROOT).as_posix()
    if current:
        print(f"catalogue: {name} is current")
    elif check:
        print(f"catalogue: {name} is stale: run make catalogue-report")
    else:
        PAGE.write_text(found.page(), encoding="utf-8", newline="\n")
        print(f"catalogue: {name} written")
    return int(check and not current)


if __name__ == "__main__":
    raise SystemExit(main())
