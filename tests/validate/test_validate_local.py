"""Checks as processes of this machine: the same contract, two streams, an environment of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest
from tests.validate.cases import RUN, Heard, entry, order, recipe

from aicr.validate.environment import Setting
from aicr.validate.results import CheckResult
from aicr.validate.run import Run, gates
from aicr.validate.runner_local import LocalRunner
from aicr.validate.timing import Timing
from aicr.values import durations

OURS = "aicr.local/aicr-checks-deployment:latest"


def run(
    script: str,
    heard: Heard | None = None,
    *,
    image: str = OURS,
    environ: dict[str, str] | None = None,
    timeout: int = 20,
    timing: Timing | None = None,
    name: str = "a",
    program: tuple[str, ...] = (sys.executable, "-c"),
) -> CheckResult:
    """Run a Python text as a check, or that of another *program*."""
    heard = heard or Heard()
    setting = Setting(RUN, environ=environ or {})
    check = entry(name, image=image, args=(script,), timeout=timeout * durations.SECOND)
    asked = order(recipe(deployment=[name]), [check], timing or Timing(), setting=setting)

    async def main() -> CheckResult:
        runner = LocalRunner(
            asked.timing,
            heard,
            namespace="checks",
            kubeconfig="/some/config",
            environ={**os.environ, **(environ or {})},
            program=program,
        )
        kept: list[CheckResult] = []
        original = runner.check

        async def remembering(planned: object) -> CheckResult:
            kept.append(await original(planned))  # type: ignore[arg-type]
            return kept[0]

        runner.check = remembering  # type: ignore[method-assign]
        await Run(asked, gates(asked, heard), heard).with_runner(runner)
        return kept[0]

    return asyncio.run(main())


@pytest.mark.covers("V-085", "V-086")
def test_stdout_is_evidence_and_stderr_is_told_live() -> None:
    """Two streams that are never mixed (decision 63)."""
    heard = Heard()
    found = run(
        "import sys; print('seen'); print('working', file=sys.stderr); "
        'print(\'##AICR-EXTRA## {"nodesTotal":"1"}\')',
        heard,
    )
    assert found.status == "passed"
    assert found.output.lines == ["seen"]
    assert found.extra == {"nodesTotal": "1"}
    assert heard.logged == ["a: working"]


@pytest.mark.parametrize(
    ("end", "code", "status"),
    [
        ("sys.exit(0)", 0, "passed"),
        ("sys.exit(1)", 1, "failed"),
        ("sys.exit(2)", 2, "skipped"),
        ("os.kill(os.getpid(), 9)", 137, "other"),
    ],
)
def test_exit_codes_and_the_message_are_those_of_a_container(
    end: str, code: int, status: str
) -> None:
    """A signal reads as 128 and its number."""
    found = run(
        f"import os, sys; open(os.environ['AICR_TERMINATION_LOG'], 'w').write('why'); {end}"
    )
    assert (found.verdict.exit_code, found.status) == (code, status)
    assert found.verdict.message == "why"


def test_the_environment_is_the_contract_and_nothing_of_another_check() -> None:
    """Documents, namespace and kubeconfig; a token of the caller's reaches its own check only."""
    script = (
        "import os; e = os.environ; print(open(e['AICR_SNAPSHOT_PATH']).read().split()[0], "
        "open(e['AICR_VALIDATION_PATH']).read().split()[0], e['AICR_NAMESPACE'], e['KUBECONFIG'], "
        "e['AICR_CHECK_TIMEOUT'], e['AICR_RUN_ID'] != '', e.get('HF_TOKEN'))"
    )
    token = {"HF_TOKEN": "secret"}
    found = run(script, environ=token)
    assert found.output.lines == ["kind: constraints: checks /some/config 20s True None"]
    own = run(script, environ=token, name="inference-perf")
    assert own.output.lines[0].endswith("secret")


def test_somebody_elses_image_cannot_run_here() -> None:
    """It is said, and the check has no verdict."""
    found = run("print(1)", image="registry.example/own:v1")
    assert found.status == "other"
    assert "--runner job" in found.verdict.message


def test_a_check_that_does_not_end_is_ended_with_what_it_has_started(tmp_path: Path) -> None:
    """TERM first, for the whole group; the result is a timeout."""
    mark = tmp_path / "pid"
    # A shell, because it has started a child long before the second is over, on a busy machine too.
    script = f"sleep 100 & echo $! >'{mark}'; wait"
    found = run(script, timeout=2, timing=Timing().scaled(0.005), program=("/bin/sh", "-c"))
    assert found.status == "other"
    assert found.verdict.message == "timeout: validator did not complete within 2s"
    assert found.verdict.code == "TIMEOUT"
    child = int(mark.read_text())
    deadline = time.monotonic() + 30
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


def test_nothing_is_left_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the documents goes with the run."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    run("print(1)")
    assert list(tmp_path.iterdir()) == []
