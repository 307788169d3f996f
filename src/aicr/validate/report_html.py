"""The report of a run as one HTML page for people: no script, no font, no picture from elsewhere.

The page says what a CTRF report says and nothing more, so it is made from the report and can be
made again from the stored file. Text from checks is untrusted: it is escaped by the template
engine, and the page carries a policy under which a browser would run nothing anyway.

`render` is pure. It must not know how checks are run.
Source: decisions 8, 32 and 62; validators spec 1.10 and 3.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from aicr.errors import INVALID_REQUEST, AicrError, invalid

Report = Mapping[str, Any]

#: Worst first: what a reader came for.
ORDER: Final = ("failed", "other", "pending", "skipped", "passed")
#: What each status means to a reader.
MEANING: Final = {
    "passed": "ran and held",
    "failed": "ran and did not hold, or could not tell",
    "skipped": "did not run",
    "other": "ended without a verdict",
    "pending": "has not ended",
}
#: Codes of a failure that says nothing about the cluster (decision 62).
UNSETTLED: Final = ("UNAUTHORIZED", "TIMEOUT", "SERVICE_UNAVAILABLE", "INTERNAL")


def render(report: Report, facts: Mapping[str, str] | None = None) -> str:
    """The page for one CTRF report.

    Args:
        report: a CTRF document (validators spec 1.10); durations and start/stop in milliseconds.
        facts: what the run was about, in the order to show: ``{"recipe": ..., "cluster": ...}``.

    Raises:
        AicrError: INVALID_REQUEST for something that is no CTRF report, or if Jinja2 is missing.
    """
    try:
        import jinja2
    except ImportError as error:
        raise AicrError(
            INVALID_REQUEST,
            "an HTML report needs the package Jinja2",
            hint='pip install "aicr[cluster]"',
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("aicr.validate", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page: str = environment.get_template("report.html.j2").render(**page_facts(report, facts or {}))
    return page


def page_facts(report: Report, facts: Mapping[str, str]) -> dict[str, Any]:
    """Everything that the page shows, as plain values; raises AicrError as `render` does."""
    results = _mapping(report, "results")
    summary, tests = _mapping(results, "summary"), results.get("tests")
    if report.get("reportFormat") != "CTRF" or not isinstance(tests, list):
        raise invalid(
            "this is not a CTRF report",
            hint="give the file that `aicr validate -o FILE` wrote",
        )
    rows = [_row(test) for test in tests]
    ran = sum(row["status"] in ("passed", "failed", "other") for row in rows)
    phases: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        phases.setdefault(row["phase"], []).append(row)
    counts = {status: sum(row["status"] == status for row in rows) for status in ORDER}
    return {
        "verdict": verdict(counts, ran),
        "headline": _headline(counts, ran, len(rows)),
        "counts": [(status, counts[status]) for status in ORDER if counts[status]],
        "bar": _bar(counts, len(rows)),
        "meaning": MEANING,
        "facts": [(name, value) for name, value in facts.items() if value],
        "phases": [
            {
                "name": name,
                "state": verdict({s: sum(r["status"] == s for r in found) for s in ORDER}, 1)
                if any(r["status"] != "skipped" for r in found)
                else "skipped",
                "rows": sorted(found, key=lambda row: ORDER.index(row["status"])),
            }
            for name, found in phases.items()
        ],
        "taken": _span(summary.get("start"), summary.get("stop")),
        "when": str(report.get("timestamp", "")),
        "version": str(_mapping(results, "tool").get("version", "")),
    }


def verdict(counts: Mapping[str, int], ran: int) -> str:
    """One word for a whole run: ``failed``, ``other``, ``skipped`` (nothing ran) or ``passed``."""
    if counts.get("failed"):
        return "failed"
    if counts.get("other") or counts.get("pending"):
        return "other"
    return "passed" if ran else "skipped"


def _headline(counts: Mapping[str, int], ran: int, total: int) -> str:
    """What happened, in one sentence."""
    if not ran:
        return f"0 of {total} checks ran: this says nothing about the cluster"
    bad = [
        f"{counts[status]} {word}"
        for status, word in (("failed", "failed"), ("other", "without a verdict"))
        if counts[status]
    ]
    told = f"{ran} of {total} checks ran"
    return f"{told}, {' and '.join(bad)}" if bad else f"{told}, and all passed"


def _row(test: Any) -> dict[str, Any]:
    if not isinstance(test, Mapping):
        raise invalid(
            "this is not a CTRF report: one of its tests is no map",
            hint="give the file that `aicr validate -o FILE` wrote",
        )
    status = test.get("status")
    if status not in ORDER:
        raise invalid(
            f"check {test.get('name', '?')!r} has the status {status!r}",
            hint=f"statuses: {', '.join(sorted(ORDER))}",
        )
    extra = test.get("extra") or {}
    code = str(extra.get("code", ""))
    return {
        "name": str(test.get("name", "")),
        "status": status,
        "word": "could not tell" if status == "failed" and code in UNSETTLED else status,
        "phase": str((test.get("suite") or [""])[0]),
        "taken": duration(test.get("duration")),
        "message": str(test.get("message") or ""),
        "output": "\n".join(map(str, test.get("stdout") or [])),
        "extra": sorted((str(key), str(value)) for key, value in extra.items()),
        "provenance": sorted(
            (str(key), ", ".join(map(str, value)) if isinstance(value, list) else str(value))
            for key, value in (test.get("runtimeProvenance") or {}).items()
        ),
    }


def _bar(counts: Mapping[str, int], total: int) -> list[tuple[str, float, float]]:
    """(status, start, width) of each segment of a bar 100 wide."""
    found, start = [], 0.0
    for status in ORDER:
        if counts[status]:
            width = 100 * counts[status] / total
            found.append((status, round(start, 3), round(width, 3)))
            start += width
    return found


def duration(milliseconds: Any) -> str:
    """A duration for reading: ``0.4 s``, ``12 s``, ``3 min 20 s``; empty if there is none."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return ""
    seconds = milliseconds / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _span(start: Any, stop: Any) -> str:
    if not (isinstance(start, int) and isinstance(stop, int) and 0 < start <= stop):
        return ""
    began = datetime.fromtimestamp(start / 1000, UTC)
    return f"{began:%Y-%m-%d %H:%M:%S} UTC, {duration(stop - start)}"


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = document.get(key)
    if not isinstance(found, Mapping):
        raise invalid(
            f"this is not a CTRF report: it has no {key!r}",
            hint="give the file that `aicr validate -o FILE` wrote",
        )
    return found
