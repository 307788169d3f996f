"""Runs the validations that the registry wires to the rendered components.

Severity decides what becomes of an outcome (bundler spec 6.1, decision 55):

=================  ==================  ================
severity           findings            errors
=================  ==================  ================
error              block               block
info               advice              advice
anything else      deployment notes    block
=================  ==================  ================

All validations of a component run, so that its problems are reported together; the first component
with a problem ends the run. This module knows no single check.
"""

from __future__ import annotations

import sys

from aicr.bundle.validations.conditions import applies
from aicr.bundle.validations.effective import Context
from aicr.bundle.validations.table import FUNCTIONS
from aicr.errors import AicrError, invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Final, NoReturn

    from aicr.bundle.options import BundleOptions, Scheduling
    from aicr.bundle.plan import Component
    from aicr.bundle.validations.effective import Finding, Verdict
    from aicr.catalog.tree import Tree
    from aicr.catalog.types import ComponentRef
    from aicr.recipe.types import RecipeResult

ERROR: Final = "error"
WARNING: Final = "warning"
INFO: Final = "info"


class Outcome:
    """What did not stop the bundle: ``notes`` for everybody, ``advice`` for whoever asks."""

    __slots__ = ("advice", "notes")

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.advice: list[str] = []


def run(
    *,
    recipe: RecipeResult,
    refs: Sequence[ComponentRef],
    removed: Mapping[str, str],
    components: Sequence[Component],
    options: BundleOptions,
    scheduling: Scheduling,
    tree: Tree,
) -> Outcome:
    """Judge every rendered component, in the order of the recipe.

    Args:
        recipe: the recipe as given.
        refs: its refs with registry defaults, rendered or not.
        removed: refs that are not rendered -> why.
        components: what is rendered, with final values.
        options: the flags. scheduling: the placement and storage flags, read.
        tree: where values files of components that are not rendered are read.

    Raises:
        AicrError: INVALID_REQUEST for an unknown function or an empty condition, or the problems of
            the first component that has any, with the code that the validation gave;
            ``context["notes"]`` holds the notes collected until then.
    """
    outcome = Outcome()
    rendered = {component.name: component for component in components}
    declared = {ref["name"]: ref for ref in refs}
    criteria = recipe.get("criteria")
    for name in declared:
        component = rendered.get(name)
        if component is None or not component.entry.get("validations"):
            continue
        context = Context(
            component=component,
            recipe=recipe,
            refs=declared,
            removed=removed,
            rendered=rendered,
            options=options,
            scheduling=scheduling,
            tree=tree,
        )
        problems: list[tuple[str, AicrError]] = []
        for wired in component.entry["validations"]:
            function = wired.get("function") or ""
            if function not in FUNCTIONS:
                raise _unknown(function, name)
            conditions = wired.get("conditions") or {}
            _check_conditions(conditions, function, name)
            if applies(conditions, criteria):
                _sort(wired, _load(function)(context), name, outcome, problems)
        if problems:
            _refuse(name, problems, outcome)
    _log(outcome.advice)
    return outcome


def _check_conditions(conditions: Mapping[str, Any], function: str, component: str) -> None:
    """Refuse a condition that no recipe can meet: a gate that never runs guards nothing."""
    empty = [field for field, values in conditions.items() if not values]
    if empty:
        raise invalid(
            f'the condition {", ".join(empty)} of {function} of component "{component}" has no value, '
            "so the check would never run",
            where=f"registry.yaml, validations of {component}",
            hint="list the values it is for, or take the condition out to run the check always",
        )


def _unknown(name: str, component: str) -> AicrError:
    near = nearest(name, list(FUNCTIONS))
    return invalid(
        f'unknown validation function "{name}" of component "{component}"',
        where=f"registry.yaml, validations of {component}",
        hint=f'did you mean "{near}"?' if near else f"functions: {', '.join(FUNCTIONS)}",
    )


def _load(name: str) -> Callable[[Context], Verdict]:
    """The function of that name; its module is imported now."""
    module, function = FUNCTIONS[name]
    path = f"aicr.bundle.validations.{module}"
    __import__(path)
    found: Callable[[Context], Verdict] = getattr(sys.modules[path], function)
    return found


def _sort(
    wired: Mapping[str, Any],
    verdict: Verdict,
    component: str,
    outcome: Outcome,
    problems: list[tuple[str, AicrError]],
) -> None:
    """Put what a validation returned where its severity says."""
    findings, errors = verdict
    function = wired["function"]
    message = wired.get("message") or ""
    severity = str(wired.get("severity") or WARNING).lower()
    if severity == INFO:
        outcome.advice += [_note(item, message) for item in findings]
        outcome.advice += [f"{component}: {_sentences(_text(e), message)}" for e in errors]
        return
    if severity == ERROR:
        problems += [
            (function, invalid(_sentences(item.text, message), hint=item.hint)) for item in findings
        ]
    else:
        outcome.notes += [_note(item, message) for item in findings]
    problems += [(function, _wrapped(error, message)) for error in errors]


def _wrapped(error: AicrError, message: str) -> AicrError:
    if not message:
        return error
    outer = AicrError(error.code, message, where=error.where, hint=error.hint)
    outer.__cause__ = error
    return outer


def _refuse(name: str, problems: list[tuple[str, AicrError]], outcome: Outcome) -> NoReturn:
    first = problems[0][1]
    functions = list(dict.fromkeys(function for function, _ in problems))
    verb = "refuses" if len(functions) == 1 else "refuse"
    cause = first
    if len(problems) > 1:
        texts = [_text(error) for _, error in problems]
        hints = dict.fromkeys(error.hint for _, error in problems if error.hint)
        cause = AicrError(
            first.code,
            "; ".join(f"({number}) {text}" for number, text in enumerate(texts, 1)),
            hint="; ".join(hints),
        )
    raise AicrError(
        first.code,
        f'{", ".join(functions)} {verb} component "{name}" as it is configured',
        where=first.where,
        hint=cause.hint,
        context={
            "component": name,
            "functions": functions,
            "problems": [_text(error) for _, error in problems],
            "notes": list(outcome.notes),
        },
    ) from cause


def _text(error: AicrError) -> str:
    return ": ".join(link.message for link in error.chain())


def _note(finding: Finding, message: str) -> str:
    """A finding for people; what the registry adds stands for the check's own next step."""
    if message or not finding.hint:
        return _sentences(finding.text, message)
    return f"{finding.text}; {finding.hint}"


def _sentences(*parts: str) -> str:
    return ". ".join(part.rstrip(".") for part in parts if part)


def _log(advice: list[str]) -> None:
    """Advice goes to the log of a program that has one; importing one costs more than a bundle."""
    logging = sys.modules.get("logging")
    if logging is not None and advice:
        logger = logging.getLogger("aicr.bundle.validations")
        for text in advice:
            logger.info(text)
