"""Which test reaches which outcome of a check on the real API server, as a table.

A test says what it reaches with the decorator; several checks may share a test, and a test may carry
several decorators::

    from tests.cluster.checks_table import FAIL, reaches

    @reaches(FAIL, "gang-scheduling")
    def test_a_gang_of_which_one_member_is_bound_fails(...): ...

Outcomes are `PASS`, `FAIL`, `SKIP` and `COULD_NOT_TELL`. A cell that cannot exist is listed in
`IMPOSSIBLE` with the section that says so. The decorators are read from the source text of
``tests/cluster/test_*.py``, so no test is imported or run for the table. Print it with::

    python -m tests.cluster.checks_table [--phase deployment|conformance]
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from aicr.checks import registry

PASS: Final = "pass"
FAIL: Final = "fail"
SKIP: Final = "skip"
COULD_NOT_TELL: Final = "could-not-tell"
OUTCOMES: Final = (PASS, FAIL, SKIP, COULD_NOT_TELL)
PHASES: Final = ("deployment", "conformance", "performance")
_OUTCOME_NAMES: Final = {
    "PASS": PASS,
    "FAIL": FAIL,
    "SKIP": SKIP,
    "COULD_NOT_TELL": COULD_NOT_TELL,
}

#: (check, outcome) → why there is no such cell.
IMPOSSIBLE: Final[dict[tuple[str, str], str]] = {
    ("operator-health", SKIP): "spec 6.1",
    ("gpu-operator-version", SKIP): "spec 6.1",
    ("expected-resources", SKIP): "spec 6.1",
    ("gpu-operator-health", SKIP): "spec 6.2",
    ("platform-health", SKIP): "spec 6.2",
}

T = TypeVar("T", bound=Callable[..., object])


def reaches(outcome: str, *checks: str) -> Callable[[T], T]:
    """Say that a test reaches *outcome* of *checks*, by their names in the registry."""
    assert outcome in OUTCOMES, outcome
    unknown = set(checks) - set(registry.names())
    assert not unknown, unknown

    def same(test: T) -> T:
        return test

    return same


def claims(source: str) -> Iterator[tuple[str, str, str]]:
    """(check, outcome, name of the test) of every decorator in the text of a test file."""
    tree = ast.parse(source)
    constants = {
        target.id: str(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    known = {**_OUTCOME_NAMES, **constants}
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                continue
            if call.func.id != "reaches":
                continue
            outcome, *checks = (_text(argument, known) for argument in call.args)
            for check in checks:
                yield check, outcome, node.name


def _text(node: ast.expr, known: Mapping[str, str]) -> str:
    """A text that is written out, or the constant of the module that is named."""
    if isinstance(node, ast.Name):
        return known[node.id]
    assert isinstance(node, ast.Constant), ast.dump(node)
    return str(node.value)


def table(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Check → outcome → tests, for every check of `PHASES`."""
    found: dict[str, dict[str, list[str]]] = {
        name: {outcome: [] for outcome in OUTCOMES}
        for phase in PHASES
        for name in registry.names(phase)
    }
    for path in sorted(folder.glob("test_*.py")):
        for check, outcome, test in claims(path.read_text(encoding="utf-8")):
            found.setdefault(check, {each: [] for each in OUTCOMES})[outcome].append(test)
    return found


def cell(check: str, outcome: str, tests: Iterable[str]) -> str:
    """The text of a cell: tests, or that there can be none, or a dash."""
    if (check, outcome) in IMPOSSIBLE:
        return f"n/a ({IMPOSSIBLE[check, outcome]})"
    return ", ".join(tests) or "-"


def markdown(found: dict[str, dict[str, list[str]]], checks: Iterable[str]) -> str:
    """The table for *checks*."""
    lines = [f"| check | {' | '.join(OUTCOMES)} |", "|---" * (len(OUTCOMES) + 1) + "|"]
    for check in checks:
        cells = [cell(check, outcome, found[check][outcome]) for outcome in OUTCOMES]
        lines.append(f"| {check} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phase", choices=PHASES)
    phase = parser.parse_args().phase
    names = [name for each in PHASES if phase in (None, each) for name in registry.names(each)]
    print(markdown(table(Path(__file__).parent), names))


if __name__ == "__main__":
    main()
