"""Waiting times stand in families that one rule scales, and in the manual's table of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from aicr.errors import INVALID_REQUEST, AicrError
from aicr.values.waiting import FACTOR_VARIABLE, Waits
from tools import gen_timeouts_page

SOURCE = Path(__file__).resolve().parents[2] / "src" / "aicr"
FAMILIES = gen_timeouts_page.families()

#: Names that speak of time to whoever reads code.
SPEAKS = re.compile(
    r"(^|_)(timeout|seconds|poll|pauses?|grace|interval|patience|settle|backoff|wait|ttl|reserve)($|_)",
    re.IGNORECASE,
)
WAITING_CALLS = re.compile(r"(^|\.)(sleep|timeout|wait_for)$")

#: Modules with times that are written into bundles: others wait.
WRITTEN = ("bundle/deployers/waiting.py",)

#: Place -> why the number that stands there is no time that we wait for, or cannot be in a family.
ELSEWHERE = {
    "bundle/readiness.py BACKOFF_LIMIT": "a number of attempts",
    "kube/lease.py RELEASED_SECONDS": "written into a lease",
    "preflight/checks/allreduce/settings.py DEFAULT_TIMEOUT": "default of a variable",
    "preflight/checks/dcgm/settings.py DEFAULT_INTERVAL": "default of a variable",
    "preflight/checks/exit_codes.py GANG_TIMEOUT": "an exit code",
    "preflight/config.py timeout_seconds": "default of a key",
    "preflight/controller/gangs.py PAUSE_FACTOR": "how pauses grow",
    "preflight/controller/listing.py _SETTLE": "a share of a pause",
}


def numbers(node: ast.expr | None) -> bool:
    """Whether *node* is a number other than 0, or several."""
    try:
        found = ast.literal_eval(node) if node is not None else None
    except ValueError:
        found = None
        if isinstance(node, ast.BinOp):
            return numbers(node.left) and numbers(node.right)
    if isinstance(found, tuple):
        return bool(found) and all(isinstance(each, int | float) for each in found)
    return isinstance(found, int | float) and not isinstance(found, bool) and found != 0


def strays(tree: ast.AST) -> Iterator[str]:
    """Names and calls in *tree* that hold a number of seconds."""
    inside = [
        each
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "Waits" in [ast.unparse(base) for base in node.bases]
        for each in node.body
    ]
    for node in ast.walk(tree):
        if node in inside:
            continue
        if isinstance(node, ast.AnnAssign | ast.Assign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and SPEAKS.search(target.id) and numbers(node.value):
                yield target.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            rows = list(zip(reversed(node.args.args), reversed(node.args.defaults), strict=False))
            rows += [
                (name, default)
                for name, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                if default is not None
            ]
            yield from (n.arg for n, value in rows if SPEAKS.search(n.arg) and numbers(value))
        elif isinstance(node, ast.Call):
            waits = WAITING_CALLS.search(ast.unparse(node.func))
            given = [*(node.args[:1] if waits else ()), *_timeouts(node)]
            yield from (ast.unparse(node.func) for value in given if numbers(value))


def _timeouts(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords if keyword.arg == "timeout"]


def test_no_number_of_seconds_stands_outside_a_family() -> None:
    """One place for waiting times (decision 67); each exception has its reason, and is there."""
    found = {
        f"{path.relative_to(SOURCE)} {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        if "_builtin" not in path.parts and not str(path).endswith(WRITTEN)
        for name in strays(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert sorted(found - ELSEWHERE.keys()) == []
    assert sorted(ELSEWHERE.keys() - found) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("PAUSE: Final = 2.0", ["PAUSE"]),
        ("_POLL_SECONDS = 60 * 2", ["_POLL_SECONDS"]),
        ("BACKOFF = (1.0, 5.0)", ["BACKOFF"]),
        ("def f(*, timeout: float = 5): ...", ["timeout"]),
        ("async def f(grace=1.0): ...", ["grace"]),
        ("await asyncio.sleep(0.5)", ["asyncio.sleep"]),
        ("run(command, timeout=120)", ["run"]),
        ("class Times(Waits):\n    pause: float = 2.0", []),
        ("await asyncio.sleep(0)", []),
        ("await asyncio.sleep(times.poll)", []),
        ("TIMEOUT: Final = 'TIMEOUT'", []),
    ],
)
def test_the_search_for_strays_finds_them(text: str, found: list[str]) -> None:
    """Constants, defaults and literals in calls; not families, names and zero."""
    body = f"async def outer():\n    {text}" if text.startswith("await") else text
    assert list(strays(ast.parse(body))) == found


def test_one_module_reads_the_factor() -> None:
    """Everybody else asks it."""
    readers = [
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        if re.search(
            rf"environ.*{FACTOR_VARIABLE}|FACTOR_VARIABLE", path.read_text(encoding="utf-8")
        )
    ]
    assert readers == ["values/waiting.py"]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__qualname__)
def test_a_factor_multiplies_every_time_of_a_family(family: type[Waits]) -> None:
    """But the kept ones; a fixed family does not look at the variable."""
    before, after = family(), family().scaled(3)
    for field in fields(family):
        was: Any = getattr(before, field.name)
        by = 1 if field.name in family.KEPT else 3
        if isinstance(was, Waits):
            expected: Any = was.scaled(by)
        elif isinstance(was, tuple):
            expected = tuple(each * by for each in was)
        else:
            expected = was * by
        assert getattr(after, field.name) == expected, field.name
    said = family.from_environment({FACTOR_VARIABLE: "3"})
    assert said == (before if family.FIXED else after)
    assert {field.name for field in fields(family)} >= family.KEPT


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__qualname__)
def test_every_time_says_what_it_is_for(family: type[Waits]) -> None:
    """In the words that the manual's table takes."""
    said, times = gen_timeouts_page.meanings(family), family()
    for field in fields(family):
        if not isinstance(getattr(times, field.name), Waits):
            assert said.get(field.name), field.name


@pytest.mark.parametrize("text", ["x", "0", "-1", "nan", "inf"])
def test_a_factor_that_is_none_is_refused_by_name(text: str) -> None:
    """It is not ignored."""
    scaled = next(family for family in FAMILIES if not family.FIXED)
    with pytest.raises(AicrError, match="must be a positive number") as caught:
        scaled.from_environment({FACTOR_VARIABLE: text})
    assert caught.value.code == INVALID_REQUEST


def test_the_table_of_the_manual_is_the_code() -> None:
    """`python -m tools.gen_timeouts_page` writes it."""
    assert gen_timeouts_page.PAGE.read_text(encoding="utf-8") == gen_timeouts_page.page()
