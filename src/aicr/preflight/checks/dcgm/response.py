"""What the answer of a diagnostic says about our GPUs, and about the run as a whole.

Results are kept by entity kind and number, and given back by UUID. Nothing may pass by being overlooked:
an answer whose places do not fit together is an error, a pass with an error beside it is no clean pass,
and a failure that names no GPU of ours is a problem of the run. Pure.
Source: preflight specification 6.3 step 9, preflight known bugs S2, S4 and S5, field case K7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from aicr.errors import INTERNAL, AicrError
from aicr.fabric import dcgm_codes
from aicr.preflight.checks.dcgm.hostengine import DiagnosticTest, EntityError, Response

#: Statuses that say that a test ran.
RAN: Final = frozenset({"pass", "warn", "fail"})


@dataclass(frozen=True)
class GpuResult:
    """One test on one of our GPUs."""

    test: str
    uuid: str
    #: pass, skip, warn, fail, not_run or unknown.
    status: str
    mnemonics: tuple[str, ...] = ()
    action: str = dcgm_codes.NONE
    message: str = ""


@dataclass(frozen=True)
class RunProblem:
    """A failure that names none of our GPUs."""

    test: str
    mnemonics: tuple[str, ...]
    action: str
    message: str


@dataclass(frozen=True)
class Answer:
    """Everything an answer says."""

    results: tuple[GpuResult, ...]
    problems: tuple[RunProblem, ...]


def interpret(
    response: Response,
    gpus: Mapping[int, str],
    mnemonics: Mapping[int, str],
    mapping: Mapping[str, str] = dcgm_codes.BUILT_IN,
) -> Answer:
    """Read an answer.

    Args:
        response: the answer.
        gpus: our GPUs, number at the hostengine → UUID.
        mnemonics: error code → DCGM_FR_* name.
        mapping: mnemonic → action.

    Raises:
        AicrError: INTERNAL when a test names a result that the answer does not hold.
    """
    reader = _Reader(response, gpus, mnemonics, mapping)
    results: list[GpuResult] = []
    problems: list[RunProblem] = []
    for number, test in enumerate(response.tests):
        ours, others = reader.test(number, test)
        results += ours
        problems += others
    problems += reader.rest()
    return Answer(tuple(results), tuple(problems))


class _Reader:
    def __init__(
        self,
        response: Response,
        gpus: Mapping[int, str],
        mnemonics: Mapping[int, str],
        mapping: Mapping[str, str],
    ) -> None:
        self._response, self._gpus = response, gpus
        self._mnemonics, self._mapping = mnemonics, mapping
        self._used: set[int] = set()

    def test(self, number: int, test: DiagnosticTest) -> tuple[list[GpuResult], list[RunProblem]]:
        """Results of one test on our GPUs, and its failures elsewhere."""
        ours: list[GpuResult] = []
        elsewhere = False
        for place in test.results:
            if not 0 <= place < len(self._response.results):
                raise AicrError(
                    INTERNAL,
                    f"the answer of DCGM cannot be read: test {test.name!r} names result {place} of "
                    f"{len(self._response.results)}",
                    hint="hostengine and bindings must be of one major version",
                )
            result = self._response.results[place]
            status = dcgm_codes.result_name(result.result)
            if result.entity.is_gpu and result.entity.id in self._gpus:
                ours.append(self._ours(number, test.name, result.entity.id, status))
            elif status == "fail" and not result.entity.is_gpu:
                # A switch or a processor; another tenant's GPU is not our business.
                elsewhere = True
        failed = dcgm_codes.result_name(test.result) == "fail"
        if elsewhere or (failed and not any(one.status == "fail" for one in ours)):
            return ours, [self._problem(number, test.name)]
        return ours, []

    def rest(self) -> list[RunProblem]:
        """Errors that belong to no GPU and no test: DCGM's own failures."""
        left = [
            (place, error)
            for place, error in enumerate(self._response.errors)
            if place not in self._used and not error.entity.is_gpu and error.code
        ]
        problems = []
        for place, error in left:
            self._used.add(place)
            known = 0 <= error.test < len(self._response.tests)
            name = self._response.tests[error.test].name if known else ""
            problems.append(RunProblem(name, *self._worst([error], "fail")))
        return problems

    def _ours(self, number: int, name: str, gpu: int, status: str) -> GpuResult:
        errors = self._errors(number, lambda one: one.entity.is_gpu and one.entity.id == gpu)
        if status == "pass":
            if not any(error.code or error.message for error in errors):
                return GpuResult(name, self._gpus[gpu], "pass")
            status = "warn"
        if status not in {"warn", "fail"}:
            return GpuResult(name, self._gpus[gpu], status, message=_joined(errors))
        return GpuResult(name, self._gpus[gpu], status, *self._worst(errors, status))

    def _problem(self, number: int, name: str) -> RunProblem:
        errors = self._errors(
            number, lambda one: not (one.entity.is_gpu and one.entity.id in self._gpus)
        )
        codes, action, message = self._worst(errors, "fail")
        return RunProblem(name, codes, action, message or "failed without naming a GPU")

    def _errors(self, number: int, wanted: Callable[[EntityError], bool]) -> list[EntityError]:
        found = []
        for place, error in enumerate(self._response.errors):
            if error.test == number and wanted(error):
                self._used.add(place)
                found.append(error)
        return found

    def _worst(self, errors: list[EntityError], status: str) -> tuple[tuple[str, ...], str, str]:
        """Mnemonics (worst first), the worst action, and all texts."""
        graded = []
        for error in errors:
            if error.code:
                name = self._mnemonics.get(error.code, f"{dcgm_codes.PREFIX}{error.code}")
                graded.append((name, dcgm_codes.action_for(name, self._mapping)))
        graded.sort(key=lambda pair: -dcgm_codes.severity(pair[1]))
        names = tuple(dict.fromkeys(name for name, _ in graded))
        # A failure that gives no reason needs a person (preflight specification 6.4).
        action = graded[0][1] if graded else dcgm_codes.CONTACT_SUPPORT
        return names, action, _joined(errors) or f"test ended with {status}"


def _joined(errors: list[EntityError]) -> str:
    return "; ".join(dict.fromkeys(error.message for error in errors if error.message))
