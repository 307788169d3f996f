"""Runs checks as processes of this machine, with the caller's own access to the cluster (decision 12).

For development, and for clusters that get no images: the same program, the same contract, no Job,
no account, no ConfigMap. A process has two streams, so evidence and log need no taking apart.
Checks that ship as somebody's image cannot run this way, and say so.

Source: decisions 12, 63; validators spec 3.8.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from aicr.contract import container
from aicr.errors import INTERNAL, AicrError
from aicr.validate import extraction, images, output
from aicr.validate.environment import FORWARDED
from aicr.validate.extraction import Verdict
from aicr.validate.output import Collected
from aicr.validate.plan import JobPlan
from aicr.validate.progress import Progress
from aicr.validate.results import CheckResult
from aicr.validate.timing import Timing

#: The program that a check image of ours runs.
PROGRAM: Final = (sys.executable, "-m", "aicr.checks.main")
#: Longest line of a check that is read in one piece, in bytes.
_LINE: Final = 16 * 1024 * 1024


class LocalRunner:
    """Runs checks as processes; see `runner.Runner` for what each method promises."""

    def __init__(
        self,
        timing: Timing,
        progress: Progress,
        *,
        namespace: str,
        kubeconfig: str = "",
        environ: Mapping[str, str] | None = None,
        program: Sequence[str] = PROGRAM,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._timing, self._progress, self._program = timing, progress, tuple(program)
        self._namespace, self._kubeconfig, self._now = namespace, kubeconfig, now
        self._environ = dict(os.environ if environ is None else environ)
        self._folder: Path | None = None

    async def prepare(self, snapshot: str, validation: str) -> None:
        """Write the documents to a folder of the run."""
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="aicr-validate-"))
            (self._folder / "snapshot.yaml").write_text(snapshot, encoding="utf-8")
            (self._folder / "validation.yaml").write_text(validation, encoding="utf-8")
        except OSError as error:
            await self.close(failed=True)
            raise AicrError(
                INTERNAL,
                f"cannot write the documents for the checks: {error.strerror}",
                hint="make room in the folder for temporary files, or set TMPDIR",
            ) from error

    async def store_report(self, phase: str, report: Mapping[str, Any]) -> None:
        """Nothing is kept: the report is the output of the command."""

    async def close(self, failed: bool) -> None:
        """Remove the folder."""
        del failed
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    async def check(self, planned: JobPlan) -> CheckResult:
        """Run one check."""
        if not images.is_ours(planned.image):
            verdict = Verdict(
                extraction.UNDECIDED,
                f"image {planned.image} cannot run as a process of this machine; "
                f"run this check with --runner job",
                INTERNAL,
            )
            return CheckResult(planned.name, planned.phase, verdict)
        assert self._folder is not None
        collected = Collected()
        message = self._folder / f"{planned.name}.message"
        started = self._now()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._program,
                *planned.args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._variables(planned, message),
                start_new_session=True,
                limit=_LINE,
            )
        except OSError as error:
            problem = AicrError(INTERNAL, f"cannot start {self._program[0]}: {error.strerror}")
            return CheckResult(planned.name, planned.phase, extraction.not_deployed(problem))
        code, timed_out = await self._ended(process, planned, collected)
        verdict = self._verdict(planned, code, timed_out, _read(message), started)
        found = collected.parsed()
        for warning in found.warnings:
            self._progress.warn(f"{planned.name}: {warning}")
        return CheckResult(planned.name, planned.phase, verdict, found)

    def _verdict(
        self, planned: JobPlan, code: int, timed_out: bool, message: str, started: float
    ) -> Verdict:
        begun = datetime.fromtimestamp(started, UTC).isoformat()
        spent = max(0, round((self._now() - started) * 1000))
        if timed_out:
            late = extraction.after_error(None, None, planned.timeout_text)
            said = f"timeout: validator did not complete within {planned.timeout_text}"
            return Verdict(extraction.UNDECIDED, said, late.code, begun, spent)
        # A signal, as a container reports it.
        code = 128 - code if code < 0 else code
        return Verdict(code, container.cut(message), "", begun, spent)

    async def _ended(
        self, process: asyncio.subprocess.Process, planned: JobPlan, collected: Collected
    ) -> tuple[int, bool]:
        """(exit code, whether it had to be ended) once the process and its streams have ended."""
        assert process.stdout is not None
        assert process.stderr is not None

        def log(line: str) -> None:
            record = output.log_record(line)
            self._progress.log(planned.name, output.shown(record) if record else line)

        streams = asyncio.gather(
            _each_line(process.stdout, collected.evidence), _each_line(process.stderr, log)
        )
        try:
            async with asyncio.timeout(self._timing.wait_seconds(planned.timeout)):
                await streams
                return await process.wait(), False
        except TimeoutError:
            await self._end(process)
            return process.returncode or 0, True
        except BaseException:
            await asyncio.shield(self._end(process))
            raise
        finally:
            streams.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await streams

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Ask a process and what it has started to end, then make them."""
        seconds = min(self._timing.grace, self._timing.cleanup)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            try:
                async with asyncio.timeout(seconds):
                    await process.wait()
                    return
            except TimeoutError:
                continue

    def _variables(self, planned: JobPlan, message: Path) -> dict[str, str]:
        """The caller's environment with what the contract adds; nothing that is another check's."""
        assert self._folder is not None
        found = {key: value for key, value in self._environ.items() if key not in FORWARDED}
        found |= {one["name"]: one["value"] for one in planned.env if "value" in one}
        found |= {
            container.SNAPSHOT_PATH: str(self._folder / "snapshot.yaml"),
            container.VALIDATION_PATH: str(self._folder / "validation.yaml"),
            container.NAMESPACE: self._namespace,
            container.TERMINATION_LOG_PATH: str(message),
            container.LOG_FORMAT: "text",
        }
        if self._kubeconfig:
            found["KUBECONFIG"] = self._kubeconfig
        return found


async def _each_line(stream: asyncio.StreamReader, take: Callable[[str], None]) -> None:
    while line := await _line(stream):
        take(line.decode("utf-8", "replace").rstrip("\r\n"))


async def _line(stream: asyncio.StreamReader) -> bytes:
    """A line with its end; a longer one than can be read at once comes in pieces."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError:
        return await stream.read(_LINE)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        # A check that had nothing to say leaves no message.
        return ""
