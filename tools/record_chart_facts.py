"""Records what pinned charts render, so that the facts our scripts rely on can be checked.

Scripts and manifests of a bundle name things that upstream charts define: API groups of their CRDs, a
default taint, labels, names. A new version of a chart may change each of them, and nothing of ours
would notice. So `docs/catalogue/chart-facts.yaml` holds, for each of these charts, the pin, a digest of
the base values, and the facts; the tests compare the constants in the code with it.

```
chart at hand --helm template, base values--> objects --facts--> chart-facts.yaml <--compare-- constants
```
A chart that was not at hand says so (decision 58): its facts are the constants' own, with their source,
which shows that a constant changed but proves nothing about the chart. It is counted, never claimed.
What an operator does at run time (``runtime``) is no part of any rendering and stays as it was written.

It must not know: how bundles are made. Source: requirements V-428, V-429.

Usage, in the top folder of the checkout:
    python -m tools.record_chart_facts CHART...     render charts (folders or .tgz), write their records
    python -m tools.record_chart_facts --refresh    bring pins of charts that were not at hand up to date
    python -m tools.record_chart_facts --report     show what is recorded; exit 1 on a disagreement
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tools.chart_constants import (
    CUSTOM,
    DAEMON_SETS,
    RUNTIME,
    SELECTORS,
    TAINTS,
    TOP,
    Constant,
    Pin,
    RecordError,
    constants,
    pins,
)

from aicr import yamlio
from aicr.errors import AicrError
from aicr.yamlio import read, write
from tools import get_helm

RECORD: Final = TOP / "docs" / "catalogue" / "chart-facts.yaml"
NOT_AT_HAND: Final = "no (chart not at hand)"
COMMAND: Final = "python -m tools.record_chart_facts"
SECONDS: Final = 120

_TAINT: Final = re.compile(
    r"[a-z0-9][\w.-]*(/[\w.-]+)?(=[\w.-]*)?:(NoSchedule|PreferNoSchedule|NoExecute)"
)
_HEADER: Final = """\
# What the charts define that our scripts, manifests and checks rely on, and where each fact is used.
#
# rendered: "yes" says that the facts come out of this chart, rendered at this version with the
# values that the base overlay gives it (`values` is their digest; values of other overlays are not
# covered). "no (chart not at hand)" says that nobody has rendered it here: the facts are those that
# the code relies on, from the source named, and unproven. runtime: what programs of the chart do
# later, which no rendering shows.
#
# Written by `python -m tools.record_chart_facts CHART...`; only `source` and `runtime` are edited by hand.
"""


# -- comparing ---------------------------------------------------------------------------------------


def disagreements(record: Mapping[str, Any], relied_on: list[Constant]) -> list[str]:
    """Constants that the record does not bear out, and uses that it lists wrongly (V-428).

    A rendered chart may define more than we rely on. Where it was not rendered there is nothing to
    define more, so whatever no constant needs is left over and named as well.
    """
    held = {entry["component"]: entry for entry in record["charts"]}
    problems = []
    for constant in relied_on:
        entry = held.get(constant.component)
        if entry is None:
            problems.append(f"{constant.component}: {constant.place} relies on it; no record")
        elif not any(_bears_out(fact, constant) for fact in entry["facts"].get(constant.fact, ())):
            problems.append(
                f"{constant.component}: {constant.place} relies on {constant.fact} "
                f"{constant.value!r}, and {_standing(entry)} has "
                f"{entry['facts'].get(constant.fact, [])!r}"
            )
    for name, entry in held.items():
        if entry["usedBy"] != used_by(name, relied_on):
            problems.append(f"{name}: usedBy is out of date; run: {COMMAND} --refresh")
        for fact, values in entry["facts"].items():
            if entry["rendered"] == "yes" and fact != RUNTIME:
                continue
            mine = [c for c in relied_on if (c.component, c.fact) == (name, fact)]
            problems += [
                f"{name}: {fact} {value!r} of its record is used by nothing"
                for value in values
                if not any(_bears_out(value, constant) for constant in mine)
            ]
    return problems


def _bears_out(fact: Any, constant: Constant) -> bool:
    if constant.fact == SELECTORS:
        labels = constant.value["labels"].items()
        return bool(fact["name"] == constant.value["name"] and labels <= fact["labels"].items())
    if constant.fact == DAEMON_SETS:
        # A script knows how the name ends, a health check the whole of it.
        return bool(
            fact.endswith(constant.value)
            if constant.value.startswith("-")
            else fact == constant.value
        )
    if constant.fact in (CUSTOM, RUNTIME):
        return bool(constant.value.items() <= fact.items())
    return bool(fact == constant.value)


def _standing(entry: Mapping[str, Any]) -> str:
    shown = f"chart {entry['chart']} {entry['version']}"
    return shown if entry["rendered"] == "yes" else f"the record of {shown}, not rendered,"


def used_by(component: str, relied_on: list[Constant]) -> dict[str, list[str]]:
    """Fact -> the places that use it, both in order."""
    found: dict[str, set[str]] = {}
    for constant in relied_on:
        if constant.component == component:
            found.setdefault(constant.fact, set()).add(constant.place)
    return {fact: sorted(found[fact]) for fact in sorted(found)}


def moved(entry: Mapping[str, Any], now: Mapping[str, Pin]) -> str:
    """What changed since an entry was written: its pin, its base values; or ""."""
    pin = now.get(entry["component"])
    if pin is None:
        return "the registry pins no such chart any more"
    was, is_now = f"{entry['chart']} {entry['version']}", f"{pin.chart} {pin.version}"
    if was != is_now:
        return f"recorded of {was}, and the registry pins {is_now}"
    return "" if entry["values"] == pin.digest else "its base values changed"


def stale(record: Mapping[str, Any], now: Mapping[str, Pin]) -> list[str]:
    """Rendered entries whose pin or base values changed since, with the command to run (V-429)."""
    return [
        f"{entry['component']}: {change}; run: {COMMAND} CHART, with the chart as folder or archive"
        for entry in record["charts"]
        if entry["rendered"] == "yes" and (change := moved(entry, now))
    ]


# -- recording ---------------------------------------------------------------------------------------


def facts_of(manifest: str, source: str) -> dict[str, list[Any]]:
    """The facts in what a chart rendered, each list in order; empty lists are left out."""
    custom: list[dict[str, str]] = []
    taints: set[str] = set()
    selectors: list[dict[str, Any]] = []
    daemon_sets: list[str] = []
    for item in read.load_all(manifest, source=source):
        if not isinstance(item, dict):
            continue
        kind, name = item.get("kind"), (item.get("metadata") or {}).get("name", "")
        spec = item.get("spec") or {}
        if kind == "CustomResourceDefinition":
            custom += [
                {
                    "group": spec["group"],
                    "version": version["name"],
                    "kind": spec["names"]["kind"],
                    "resource": spec["names"]["plural"],
                }
                for version in spec["versions"]
                if version.get("served", True)
            ]
        elif kind == "DaemonSet":
            daemon_sets.append(name)
        elif kind == "Deployment":
            selectors.append({"name": name, "labels": spec["selector"].get("matchLabels") or {}})
        if kind in ("Deployment", "DaemonSet", "StatefulSet"):
            taints |= {text for text in _texts(spec["template"]) if _TAINT.fullmatch(text)}
    found: dict[str, list[Any]] = {
        CUSTOM: sorted(custom, key=lambda fields: tuple(fields.values())),
        DAEMON_SETS: sorted(daemon_sets),
        SELECTORS: sorted(selectors, key=lambda fields: str(fields["name"])),
        TAINTS: sorted(taints),
    }
    return {fact: values for fact, values in found.items() if values}


def _texts(node: Any) -> Iterator[str]:
    """Every text in a pod template, arguments without their flag."""
    if isinstance(node, str):
        yield node
        if node.startswith("-"):
            yield node.partition("=")[2]
    elif isinstance(node, dict | list):
        for held in node.values() if isinstance(node, dict) else node:
            yield from _texts(held)


def render(chart: Path, pin: Pin, helm: Path) -> str:
    """The manifests of a chart at hand, CRDs among them, with the values of the base overlay.

    Raises:
        RecordError: helm refuses the chart.
    """
    with tempfile.TemporaryDirectory(prefix="aicr-") as home:
        values = Path(home) / "values.yaml"
        values.write_bytes(pin.values)
        return _helm(
            helm,
            Path(home),
            *("template", pin.component, str(chart), "--include-crds"),
            *("--namespace", pin.namespace, "--values", str(values)),
        )


def _helm(helm: Path, home: Path, *arguments: str) -> str:
    homes = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    try:
        done = subprocess.run(
            [str(helm), *arguments],
            env={**os.environ, **homes},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RecordError(f"helm {arguments[0]} did not finish: {error}") from error
    if done.returncode != 0:
        raise RecordError(f"helm {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def chart_name(chart: Path, helm: Path) -> tuple[str, str]:
    """(name, version) of a chart at hand, as helm reads them.

    Raises:
        RecordError: there is no chart.
    """
    with tempfile.TemporaryDirectory(prefix="aicr-") as home:
        text = _helm(helm, Path(home), "show", "chart", str(chart))
    document = read.load(text, source=f"{chart.name}: Chart.yaml")
    return str(document["name"]), str(document["version"])


def recorded(
    record: Mapping[str, Any],
    chart: Path,
    *,
    helm: Path,
    now: Mapping[str, Pin],
    relied_on: list[Constant],
) -> dict[str, Any]:
    """The record with what a chart at hand renders, for each component of the record that has it.

    Raises:
        RecordError: not a chart, of no component of the record, or of another version than the pin.
    """
    name, version = chart_name(chart, helm)
    entries = []
    found = False
    for entry in record["charts"]:
        pin = now.get(entry["component"])
        if pin is None or pin.chart != name:
            entries.append(entry)
            continue
        if version.removeprefix("v") != pin.version.removeprefix("v"):
            raise RecordError(f"{name} is {version} here, and the registry pins {pin.version}")
        found = True
        try:
            facts = facts_of(render(chart, pin, helm), name)
        except (KeyError, TypeError, AttributeError) as error:
            raise RecordError(f"{name} renders an object that is not whole: {error!r}") from error
        if kept := entry["facts"].get(RUNTIME):
            facts[RUNTIME] = kept
        entries.append(_entry(entry, pin, "yes", facts, relied_on))
    if not found:
        raise RecordError(f"no script or manifest of ours relies on facts of the chart {name}")
    return {**record, "charts": entries}


def refreshed(
    record: Mapping[str, Any], now: Mapping[str, Pin], relied_on: list[Constant]
) -> dict[str, Any]:
    """The record with today's uses, and today's pins where the chart was not at hand."""
    entries = []
    for entry in record["charts"]:
        if entry["rendered"] == "yes" or entry["component"] not in now:
            entries.append({**entry, "usedBy": used_by(entry["component"], relied_on)})
        else:
            pin = now[entry["component"]]
            entries.append(_entry(entry, pin, NOT_AT_HAND, entry["facts"], relied_on))
    return {**record, "charts": entries}


def _entry(
    old: Mapping[str, Any],
    pin: Pin,
    rendered: str,
    facts: Mapping[str, Any],
    relied_on: list[Constant],
) -> dict[str, Any]:
    return {
        "component": pin.component,
        "chart": pin.chart,
        "version": pin.version,
        "values": pin.digest,
        "rendered": rendered,
        "source": old["source"],
        "facts": facts,
        "usedBy": used_by(pin.component, relied_on),
    }


# -- files and the terminal --------------------------------------------------------------------------


def load(path: Path = RECORD) -> dict[str, Any]:
    """The record."""
    loaded: dict[str, Any] = yamlio.read_fast(path.read_text(encoding="utf-8"), source=path.name)
    return loaded


def text_of(record: Mapping[str, Any]) -> str:
    """The file's text, with the words at its head."""
    return _HEADER + write.dump(record)


def report(record: Mapping[str, Any], now: Mapping[str, Pin]) -> str:
    """A table of the charts, and how many of them were rendered."""
    rows = ["| component | chart | version | rendered | facts | changed since |", "|" + "---|" * 6]
    for entry in record["charts"]:
        facts = sum(len(values) for values in entry["facts"].values())
        rows.append(
            f"| {entry['component']} | {entry['chart']} | {entry['version']} "
            f"| {entry['rendered']} | {facts} | {moved(entry, now) or '-'} |"
        )
    every = len(record["charts"])
    done = sum(entry["rendered"] == "yes" for entry in record["charts"])
    rows.append(f"\n{done} of {every} charts rendered; {every - done} not at hand, facts unproven")
    return "\n".join(rows)


def main(arguments: list[str] | None = None) -> int:
    """Command-line entry; 1 when something disagrees or cannot be recorded."""
    parser = argparse.ArgumentParser(description="Record what pinned charts render.")
    parser.add_argument("charts", nargs="*", type=Path, help="chart folders or archives at hand")
    parser.add_argument("--report", action="store_true", help="show the record, write nothing")
    parser.add_argument("--refresh", action="store_true", help="bring unrendered pins up to date")
    parser.add_argument("--record", type=Path, default=RECORD, help="the file")
    parser.add_argument("--helm", type=Path, help="a helm to run instead of the tool cache's")
    given = parser.parse_args(arguments)
    if sum((given.report, given.refresh, bool(given.charts))) != 1:
        parser.error("give charts, or --refresh, or --report")
    try:
        record, now, relied_on = load(given.record), pins(), constants()
        if given.report:
            print(report(record, now))
        elif given.refresh:
            record = refreshed(record, now, relied_on)
        else:
            helm = given.helm or get_helm.ensure()
            for chart in given.charts:
                record = recorded(record, chart, helm=helm, now=now, relied_on=relied_on)
        if not given.report:
            given.record.write_text(text_of(record), encoding="utf-8")
    except (AicrError, RecordError, get_helm.ToolError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    problems = disagreements(record, relied_on) + stale(record, now)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
