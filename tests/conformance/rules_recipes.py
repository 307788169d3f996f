"""The rules for recipes: resolution, the criteria matrix, and queries."""

from __future__ import annotations

from tests.conformance.compare import Difference, at, join, steps
from tests.conformance.rules import Case, Everywhere, Exactly, Rule, refused, reworded

from aicr.version import __version__

LEGACY = "aicr.nvidia.com/v1alpha1"


def _header(_: Case, difference: Difference) -> bool:
    return difference.expected == LEGACY and difference.actual == "aicr.run/v1"


def _own_version(_: Case, difference: Difference) -> bool:
    return difference.expected == "dev" and difference.actual == __version__


def _assert_text(case: Case, difference: Difference) -> bool:
    """The text is that of the file which the registry names for this very component."""
    holder = join(str(step) for step in steps(difference.path)[:-1])
    catalog = case.facts["catalog"]
    entry = catalog.registry.get(at(case.actual, holder)["name"])
    file = (entry.get("healthCheck") or {}).get("assertFile")
    return bool(file) and difference.actual == catalog.tree.read_text(file)


def _same_checks(case: Case, difference: Difference) -> bool:
    """The list holds the same checks, the inherited ones first."""
    holder = join(str(step) for step in steps(difference.path)[:-1])
    return sorted(at(case.expected, holder)) == sorted(at(case.actual, holder))


HEADERS: tuple[Rule, ...] = (
    Everywhere(
        id="api-version",
        source="decision 1, decision 48",
        text="Results carry aicr.run/v1.",
        parts=("resolve", "matrix", "query"),
        paths=("document.apiVersion",),
        kinds=("value",),
        holds=_header,
    ),
    Everywhere(
        id="tool-version",
        source="decision 40; kit README, fields to ignore",
        text="The version of the tool that wrote the document is its own.",
        parts=("resolve", "matrix", "query"),
        paths=("document.metadata.version",),
        kinds=("value",),
        holds=_own_version,
    ),
    Everywhere(
        id="health-check-asserts",
        source="recipe spec 3.5",
        text="A component carries the text of the assert file that the registry names for it.",
        parts=("resolve", "matrix"),
        paths=("document.componentRefs[*].healthCheckAsserts",),
        kinds=("extra",),
        holds=_assert_text,
    ),
    Everywhere(
        id="checks-united",
        source="recipe spec 4.5; kit README, comparable as it stands",
        text="Checks of a phase unite, the inherited first, instead of being replaced.",
        parts=("resolve", "matrix"),
        paths=("document.validation.conformance.checks[*]",),
        kinds=("value",),
        holds=_same_checks,
    ),
)

RECIPES: tuple[Rule, ...] = (*HEADERS,)
