"""Run the rules over a tree and hand out sorted findings.

With a data directory, what the built-in tree says about itself is left out: a finding counts when it is
in the directory's files, or when the built-in tree alone does not have it. A warning that is meant is
allowed in the file itself, by a comment on the line or the one above:
``# aicr-lint: allow unused-file (the next release needs it)``. Errors cannot be allowed, because the
product refuses them anyway.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

import aicr
from aicr.catalog import load
from aicr.catalog.tree import EMBEDDED, EXTERNAL
from aicr.errors import INTERNAL, AicrError
from aicr.lint.decoder import problem_of
from aicr.lint.files import Files
from aicr.lint.findings import ERROR, WARNING, Finding, Rule, located
from aicr.lint.ground import Ground
from aicr.lint.reading import Reading
from aicr.lint.rules import RULES

if TYPE_CHECKING:
    from aicr.catalog.catalog import Catalog

#: Reported when every rule is content and the loader is not, so that lint never says less than it.
REFUSED: Final = Rule(
    "tree-refused",
    ERROR,
    "Whatever the loader refuses that no rule foresaw.",
    lambda ground: iter(()),
)
ALL_RULES: Final[dict[str, Rule]] = dict(sorted({**RULES, REFUSED.id: REFUSED}.items()))

_ALLOW = re.compile(r"#\s*aicr-lint:\s*allow\s+([a-z-]+(?:\s*,\s*[a-z-]+)*)")


class Report:
    """The findings about a tree.

    Attributes:
        findings: sorted by file, line, column, rule.
        files: how many files of the tree were looked at.
    """

    def __init__(self, findings: list[Finding], files: int) -> None:
        self.findings = findings
        self.files = files

    def count(self, severity: str) -> int:
        """How many findings have a severity."""
        return sum(finding.severity == severity for finding in self.findings)


def lint(root: str = "", *, alone: bool = False, rules: Collection[str] = ()) -> Report:
    """Judge a data tree.

    Args:
        root: a directory for ``--data``; empty for the built-in tree.
        alone: judge the directory as a whole catalogue and not laid over the built-in one.
        rules: ids of the rules to run; all of them when empty.

    Raises:
        AicrError: NOT_FOUND or INVALID_REQUEST when there is no such directory, INTERNAL when the
            installation lost the built-in tree.
    """
    chosen = [rule for id, rule in RULES.items() if not rules or id in rules]
    net = not rules or REFUSED.id in rules
    if root and not alone:
        return _lint_over(root, chosen, net)
    files = Files(root, origin=EMBEDDED) if root else builtin_files()
    found = _findings(Ground(Reading(files, data=False)), chosen)
    if net and not _has_errors(found):
        found += _refused(lambda: _alone(files.root), files)
    return Report(sorted(found), len(files.paths()))


def _lint_over(root: str, rules: list[Rule], net: bool) -> Report:
    """Judge a directory as it is with the built-in tree below it."""
    files = Files(root, origin=EXTERNAL)
    lower = Reading(builtin_files(), data=False)
    found = _findings(Ground(lower, Reading(files, data=True)), rules)
    if not all(_inside(finding, files) for finding in found):
        own = set(_findings(Ground(lower), rules))
        found = [f for f in found if _inside(f, files) or f not in own]
    if net and not _has_errors(found):
        found += _refused(lambda: load.overlaid(_alone(lower.files.root), root), files)
    return Report(sorted(found), len(files.paths()))


def _alone(root: str) -> Catalog:
    return load.from_directory(root, origin=EMBEDDED, yaml_mode="helm")


def builtin_files() -> Files:
    """The sources of the built-in tree: shipped with the package, or of the checkout.

    Other commands insist on a built-in catalogue that was compiled from these very sources. Lint is
    what one runs while changing them, so it reads them as they are.

    Raises:
        AicrError: INTERNAL when there are none.
    """
    package = os.path.dirname(os.path.abspath(aicr.__file__))
    checkout = os.path.dirname(os.path.dirname(package))
    for root in (
        os.path.join(package, "catalog", "_recipes"),
        os.path.join(checkout, "recipes"),
    ):
        if os.path.isfile(os.path.join(root, load.REGISTRY_PATH)):
            return Files(root, prefix="recipes", origin=EMBEDDED)
    raise AicrError(
        INTERNAL, "this installation lost the catalogue's source files", hint="reinstall aicr"
    )


def _refused(load_tree: Callable[[], Catalog], files: Files) -> list[Finding]:
    """What the real loader says about a tree that no rule found an error in."""
    try:
        load_tree()
    except AicrError as error:
        return [located(REFUSED, problem_of(error, files.place(load.REGISTRY_PATH)))]
    return []


def _findings(ground: Ground, rules: list[Rule]) -> list[Finding]:
    found = {located(rule, problem) for rule in rules for problem in rule.find(ground)}
    allowed = _Allowed(ground)
    return sorted(finding for finding in found if not allowed.covers(finding))


def _has_errors(found: list[Finding]) -> bool:
    return any(finding.severity == ERROR for finding in found)


def _inside(finding: Finding, files: Files) -> bool:
    return finding.file.startswith(files.place(""))


class _Allowed:
    """Warnings that a comment in the file allows."""

    def __init__(self, ground: Ground) -> None:
        self._lines: dict[str, dict[int, set[str]]] = {}
        for reading in ground.readings:
            for path in reading.files.paths():
                if path.endswith((".yaml", ".yml")):
                    text = reading.files.read_text(path)
                    if "aicr-lint:" in text:
                        self._lines[reading.files.place(path)] = _allowances(text)

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is a warning that its line, or the line above, allows."""
        lines = self._lines.get(finding.file)
        if finding.severity != WARNING or lines is None:
            return False
        return any(finding.rule in lines.get(n, ()) for n in (finding.line, finding.line - 1))


def _allowances(text: str) -> dict[int, set[str]]:
    found = {}
    for number, line in enumerate(text.split("\n"), 1):
        match = _ALLOW.search(line)
        if match:
            found[number] = {word.strip() for word in match[1].split(",")}
    return found
