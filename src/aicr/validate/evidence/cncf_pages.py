"""CNCF conformance pages of a merged report: which check speaks for which requirement, and the text.

Skipped tests are left out before anything else, so a requirement of which nothing ran has neither a
page nor a row. A page's result is FAILED when one of its tests failed; a test with status ``other`` does
not fail it, which is what the CNCF's readers know from the original (spec 9.1, marked as a quirk there).
Title and description of a page are those of the first of its checks in the report. Evidence is what
checks printed and is not redacted. Pure; the time is handed in. Source: validators spec 9.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.contract import ctrf

INDEX: Final = "index.md"


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the CNCF asks for, and the page that answers.

    Attributes:
        id: the requirement's name.
        file: the page.
        title: its first heading.
        description: one paragraph.
    """

    id: str
    file: str
    title: str
    description: str


_METRICS_TITLE: Final = "Accelerator & AI Service Metrics"

#: Name of a check → what it speaks for.
REQUIREMENTS: Final[dict[str, Requirement]] = {
    "dra-support": Requirement(
        "dra_support",
        "dra-support.md",
        "DRA Support (Dynamic Resource Allocation)",
        "The cluster serves the resource.k8s.io API, and a driver publishes GPUs that pods can claim.",
    ),
    "gang-scheduling": Requirement(
        "gang_scheduling",
        "gang-scheduling.md",
        "Gang Scheduling (KAI Scheduler)",
        "The pods of one group are placed together or not at all.",
    ),
    "accelerator-metrics": Requirement(
        "accelerator_metrics",
        "accelerator-metrics.md",
        _METRICS_TITLE,
        "Utilisation, memory and temperature of each GPU are exported as metrics.",
    ),
    "ai-service-metrics": Requirement(
        "accelerator_metrics",
        "accelerator-metrics.md",
        _METRICS_TITLE,
        "Metrics of AI services are found and collected.",
    ),
    "inference-gateway": Requirement(
        "ai_inference",
        "inference-gateway.md",
        "Inference API Gateway",
        "Inference traffic is routed by an implementation of the Gateway API and its extension.",
    ),
    "pod-autoscaling": Requirement(
        "pod_autoscaling",
        "pod-autoscaling.md",
        "Pod Autoscaling (HPA)",
        "Pods that use GPUs are scaled by metrics of their own.",
    ),
    "cluster-autoscaling": Requirement(
        "cluster_autoscaling",
        "cluster-autoscaling.md",
        "Cluster Autoscaling",
        "Nodes with GPUs are added when pods ask for them.",
    ),
    "robust-controller": Requirement(
        "robust_controller",
        "robust-operator.md",
        "Robust AI Operator",
        "A complex AI operator runs, and its admission refuses what is not valid.",
    ),
    "secure-accelerator-access": Requirement(
        "secure_accelerator_access",
        "secure-accelerator-access.md",
        "Secure Accelerator Access",
        "A pod reaches the GPUs that it was given, and no others.",
    ),
}


@dataclass(slots=True)
class Group:
    """One page: a requirement and the tests that speak for it."""

    requirement: Requirement
    tests: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def result(self) -> str:
        """``FAILED`` or ``PASSED``."""
        failed = any(test.get("status") == ctrf.FAILED for test in self.tests)
        return (ctrf.FAILED if failed else ctrf.PASSED).upper()


def groups(report: Mapping[str, Any] | None) -> list[Group]:
    """The pages of a report in the order in which their first tests appear; [] for no report."""
    found: dict[str, Group] = {}
    results = (report or {}).get("results") or {}
    for test in results.get("tests") or ():
        requirement = REQUIREMENTS.get(test.get("name"))
        if requirement is None or test.get("status") == ctrf.SKIPPED:
            continue
        found.setdefault(requirement.file, Group(requirement)).tests.append(test)
    return list(found.values())


def page(group: Group, generated: str) -> str:
    """The page of a group; *generated* is RFC 3339 in UTC, to the second."""
    about = group.requirement
    lines = [
        f"# {about.title}",
        "",
        f"**Generated:** {generated}",
        f"**Requirement:** `{about.id}`",
        f"**Result:** {group.result}",
        "",
        "---",
        "",
        about.description,
        "",
        "## Checks",
    ]
    for test in group.tests:
        lines += [
            "",
            f"### {test['name']}",
            "",
            f"- **Status:** {str(test.get('status', '')).upper()}",
            f"- **Duration:** {int(test.get('duration') or 0)}ms",
        ]
        lines += _block("Error", _lines(test.get("message")))
        lines += _block("Evidence Output", _lines(test.get("stdout")))
    return "\n".join(lines) + "\n"


def index(listed: Sequence[Group], generated: str) -> str:
    """The index page: a row for each group."""
    lines = [
        "# CNCF AI Conformance Evidence",
        "",
        f"**Generated:** {generated}",
        "",
        "| # | Requirement | Feature | Result | Evidence |",
        "|---|---|---|---|---|",
    ]
    for number, group in enumerate(listed, 1):
        about = group.requirement
        cells = (
            str(number),
            f"`{about.id}`",
            about.title,
            group.result,
            f"[{about.file}]({about.file})",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def fenced(lines: Iterable[str]) -> list[str]:
    """*lines* as a code block whose fence is longer than any in them."""
    held = list(lines)
    runs = [len(run) for line in held for run in re.findall(r"`{3,}", line)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    return [fence, *held, fence]


def _block(title: str, lines: list[str]) -> list[str]:
    return ["", f"**{title}:**", "", *fenced(lines)] if lines else []


def _lines(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.rstrip("\n").split("\n") if value.strip() else []
    return [str(line) for line in value] if isinstance(value, list) else []
