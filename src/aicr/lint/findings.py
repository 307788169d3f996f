"""What a rule says: problems with a place, and the table in which rules register.

A rule is a function from a ground to problems. It does not know its own name or severity: both stand
in the table, beside the one sentence that says why the rule exists, which is also what the manual
prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from aicr.lint.ground import Ground

ERROR: Final = "error"
WARNING: Final = "warning"


class Problem(NamedTuple):
    """Something wrong at a place; ``where`` is ``file``, ``file:line`` or ``file:line:column``."""

    where: str
    message: str
    hint: str = ""


class Finding(NamedTuple):
    """A problem that a rule found, in the order in which findings are sorted."""

    file: str
    line: int
    column: int
    rule: str
    message: str
    hint: str
    severity: str

    def text(self) -> str:
        """``file:line:column: severity [rule]: message``, and the hint on a line of its own."""
        line = (
            f"{self.file}:{self.line}:{self.column}: {self.severity} [{self.rule}]: {self.message}"
        )
        return f"{_printable(line)}\n" + (f"    {_printable(self.hint)}\n" if self.hint else "")

    def document(self) -> dict[str, object]:
        """The finding as a map for machines."""
        found: dict[str, object] = {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "severity": self.severity,
            "rule": self.rule,
            "message": self.message,
        }
        if self.hint:
            found["hint"] = self.hint
        return found


class Rule(NamedTuple):
    """A rule of the table."""

    id: str
    severity: str
    why: str
    find: Callable[[Ground], Iterator[Problem]]


_TABLE: Final[dict[str, Rule]] = {}


def rule(
    id: str, severity: str, why: str
) -> Callable[[Callable[[Ground], Iterator[Problem]]], Callable[[Ground], Iterator[Problem]]]:
    """Register a function as a rule.

    Args:
        id: what people write in ``--rule`` and read in brackets.
        severity: ERROR or WARNING.
        why: one sentence for the manual: what happens to somebody without the rule.
    """

    def register(
        find: Callable[[Ground], Iterator[Problem]],
    ) -> Callable[[Ground], Iterator[Problem]]:
        assert id not in _TABLE, f"rule {id} is registered twice"
        _TABLE[id] = Rule(id, severity, why, find)
        return find

    return register


def table() -> dict[str, Rule]:
    """All registered rules by id, sorted."""
    return dict(sorted(_TABLE.items()))


def located(found: Rule, problem: Problem) -> Finding:
    """A problem as a finding of a rule."""
    file, line, column = split_place(problem.where)
    return Finding(file, line, column, found.id, problem.message, problem.hint, found.severity)


def split_place(where: str) -> tuple[str, int, int]:
    """File, line and column of a place; what is not given is 1.

    >>> split_place("a.yaml:3:5"), split_place("a.yaml:3"), split_place("a.yaml")
    (('a.yaml', 3, 5), ('a.yaml', 3, 1), ('a.yaml', 1, 1))
    """
    rest, _, last = where.rpartition(":")
    if not (rest and last.isdigit()):
        return where, 1, 1
    file, _, line = rest.rpartition(":")
    if file and line.isdigit():
        return file, int(line), int(last)
    return rest, int(last), 1


def _printable(text: str) -> str:
    """*text* on one line and without characters that could write over a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
