"""Runs cases through the real chainsaw and through our engine, on one API server, and compares.

Both get the same text of the same operations. Chainsaw runs Tests of some operations each, every one of
them with ``continueOnError``, so that each has a verdict of its own in the JSON report; ours runs every
operation as a check of its own, with a clock that does not wait.

A verdict is one of three: ``pass``; ``fail``, the assertion does not hold (now); ``error``, it cannot be
evaluated. Chainsaw tells the last two apart by their words only: what does not hold is reported with the
object that was compared, or with its absence.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.chainsaw.chainsaw_case import Case

from aicr import kube
from aicr.assertions.document import read_check
from aicr.assertions.runner import run_check
from aicr.assertions.timing import Clock, Timing
from aicr.errors import INVALID_REQUEST, AicrError

PASS: Final = "pass"
FAIL: Final = "fail"
ERROR: Final = "error"
#: Chainsaw's alone: the program ended.
CRASH: Final = "crash"
#: Operations of one Test, and Tests at the same time.
_OPERATIONS: Final = 20
_PARALLEL: Final = 6
#: Time that chainsaw gives an assertion that does not hold; it looks every 50 ms.
_PATIENCE: Final = "400ms"
#: Words of a machine that was too slow, which say nothing of the case; it is given again.
_BUSY: Final = ("context deadline exceeded", "rate limiter", "connection re")
_REPEATS: Final = 3
#: Ours looks once: the first pause is longer than the budget.
_ONE_LOOK: Final = Timing(budget=30.0, retry=31.0, absent_grace=31.0)
#: How chainsaw says that something does not hold; all else is an error of its own.
_MISMATCH: Final = (
    "actual resource not found",
    "no actual resource found",
    "resource matches expectation",
    "---\n",
)

#: Verdict and the words that came with it.
Answer = tuple[str, str]


def document(name: str, cases: Sequence[Case]) -> dict[str, Any]:
    """A Test of these cases."""
    operations = [
        {case.kind: {"resource": case.resource}, "continueOnError": True} for case in cases
    ]
    return {
        "apiVersion": "chainsaw.kyverno.io/v1alpha1",
        "kind": "Test",
        "metadata": {"name": name},
        "spec": {"steps": [{"name": "s", "try": operations}]},
    }


def chainsaw(
    program: Path,
    config: Path,
    namespace: str,
    cases: Sequence[Case],
    alone: Sequence[bool],
    folder: Path,
) -> list[Answer]:
    """What the real program says of each case.

    A case on which it crashes takes down the run that it is in: those that are known to (*alone*) get a
    run of their own, and a run without a report is repeated by halves until the case stands alone.

    Raises:
        AssertionError: a report lacks some of the cases.
    """
    run = _Program(program, config, namespace, folder)
    rest = [case for case, apart in zip(cases, alone, strict=True) if not apart]
    groups = [rest[at : at + _OPERATIONS] for at in range(0, len(rest), _OPERATIONS)]
    together = iter([answer for answers in run.groups(groups) for answer in answers])
    found = []
    for case, apart in zip(cases, alone, strict=True):
        answer = run.groups([[case]])[0][0] if apart else next(together)
        for _ in range(_REPEATS):
            if not any(mark in answer[1] for mark in _BUSY):
                break
            answer = run.groups([[case]])[0][0]
        found.append(answer)
    return found


class _Program:
    """The program, with a folder that holds one folder a run."""

    def __init__(self, program: Path, config: Path, namespace: str, folder: Path) -> None:
        self._program, self._config, self._namespace = program, config, namespace
        self._folder, self._runs = folder, 0

    def groups(self, groups: Sequence[Sequence[Case]]) -> list[list[Answer]]:
        """Answers of groups of cases, a Test each."""
        found = self._run(groups)
        if isinstance(found, list):
            return found
        if len(groups) > 1:
            half = len(groups) // 2
            return [*self.groups(groups[:half]), *self.groups(groups[half:])]
        (cases,) = groups
        if len(cases) == 1:
            return [[(CRASH, found)]]
        half = len(cases) // 2
        return [self.groups([cases[:half]])[0] + self.groups([cases[half:]])[0]]

    def _run(self, groups: Sequence[Sequence[Case]]) -> list[list[Answer]] | str:
        """Answers, or how it crashed."""
        self._runs += 1
        folder = self._folder / f"run{self._runs:03}"
        for number, group in enumerate(groups):
            place = folder / f"t{number:04}"
            place.mkdir(parents=True)
            text = json.dumps(document(place.name, group))
            (place / "chainsaw-test.yaml").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [
                *(str(self._program), "test", f"--test-dir={folder}"),
                *(f"--namespace={self._namespace}", f"--parallel={_PARALLEL}"),
                *(f"--assert-timeout={_PATIENCE}", f"--error-timeout={_PATIENCE}"),
                *("--template=false", "--skip-delete", "--no-color", "--quiet"),
                *("--report-format=JSON", f"--report-path={folder}", "--report-name=report"),
            ],
            env={"KUBECONFIG": str(self._config), "HOME": str(folder), "PATH": ""},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        report = folder / "report.json"
        if not report.is_file():
            said = done.stdout + done.stderr
            panic = said.find("panic:")
            assert panic >= 0, f"no report, and no crash either\n{said[-3000:]}"
            return said[panic : panic + 300]
        tests = {test["name"]: test for test in json.loads(report.read_text())["tests"]}
        answers = []
        for number, group in enumerate(groups):
            operations = tests[f"t{number:04}"]["steps"][0]["operations"]
            assert len(operations) == len(group), f"t{number:04}: {operations}"
            answers.append([_theirs(operation) for operation in operations])
        return answers


def _theirs(operation: dict[str, Any]) -> Answer:
    failure = operation.get("failure")
    if failure is None:
        return PASS, ""
    text = str(failure.get("error", ""))
    return (FAIL if any(mark in text for mark in _MISMATCH) else ERROR), text


async def ours(config: Path, namespace: str, cases: Sequence[Case]) -> list[Answer]:
    """What our engine says of each case."""
    free = asyncio.Semaphore(_PARALLEL)
    async with kube.connect(kubeconfig=str(config)) as client:

        async def one(case: Case) -> Answer:
            try:
                check = read_check(json.dumps(document("t", [case])), source="f", component="c")
            except AicrError as error:
                return ERROR, str(error)
            async with free:
                result = await run_check(
                    client, check, timing=_ONE_LOOK, clock=_unwaiting(), namespace=namespace
                )
            return _ours(result)

        return list(await asyncio.gather(*map(one, cases)))


def _ours(result: dict[str, Any]) -> Answer:
    if result["passed"]:
        return PASS, ""
    assert result["verdict"] == "fail", result
    return (ERROR if result["code"] == INVALID_REQUEST else FAIL), str(result["message"])


def _unwaiting() -> Clock:
    """Time that stands still, except that a pause is over at once."""
    passed = [0.0]

    async def sleep(seconds: float) -> None:
        passed[0] += seconds

    return Clock(now=lambda: passed[0], sleep=sleep)
