"""What checks say about themselves, as documents and as markdown: for `aicr checks` and docs/checks.md.

Pure; the checks are passed in. Source: the metadata of each check (`sdk.check.Check`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aicr.checks.sdk.check import PHASES, Check


def document(check: Check) -> dict[str, Any]:
    """A check as a plain document; empty parts are empty lists."""
    return {
        "name": check.name,
        "phase": check.phase,
        "summary": check.summary,
        "timeout": check.timeout,
        "details": check.details,
        "reads": list(check.reads),
        "writes": list(check.writes),
        "capabilities": list(check.capabilities),
        "settings": [
            {"name": each.name, "default": each.default, "meaning": each.meaning}
            for each in check.settings
        ],
    }


def markdown(check: Check, level: int = 1) -> str:
    """A check as a section of a page, under a heading of *level*."""
    lines = [
        f"{'#' * level} {check.name}",
        "",
        f"{_sentence(check.summary)} Phase {check.phase}, timeout {check.timeout}.",
        "",
        check.details.strip(),
        "",
        f"- Reads: {_listed(check.reads)}.",
        f"- Writes: {_listed(check.writes)}.",
    ]
    if check.capabilities:
        lines.append(
            f"- Skips unless the recipe declares it or the cluster has it: {_listed(check.capabilities)}."
        )
    if check.settings:
        lines += ["", "| variable | default | meaning |", "|---|---|---|"]
        lines += [
            f"| `{each.name}` | {_cell(each.default)} | {_cell(each.meaning)} |"
            for each in check.settings
        ]
    return "\n".join(lines) + "\n"


def table(checks: Iterable[Check]) -> str:
    """Checks as a markdown table."""
    lines = ["| check | phase | timeout | what it is about |", "|---|---|---|---|"]
    lines += [
        f"| `{each.name}` | {each.phase} | {each.timeout} | {_cell(each.summary)} |"
        for each in checks
    ]
    return "\n".join(lines) + "\n"


def pages(checks: Iterable[Check]) -> str:
    """All checks, a section each, by phase."""
    found = list(checks)
    parts = []
    for phase in PHASES:
        mine = [check for check in found if check.phase == phase]
        if mine:
            parts.append(f"## Phase {phase}\n")
            parts += [markdown(check, 3) for check in mine]
    return "\n".join(parts)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


def _listed(entries: Iterable[str]) -> str:
    return "; ".join(entries) or "nothing"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
