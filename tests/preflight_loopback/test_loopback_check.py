"""preflight-nccl-loopback: what the benchmark prints, and what comes of it."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.fabric.tables import Measured, header, ranks, row, table

from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.preflight.checks import environment_process, loopback
from aicr.preflight.checks.environment_process import Completed
from aicr.preflight.health.events import Event

MEETS = "NCCL all-reduce bus bandwidth 197.87 GB/s meets threshold 150.00 GB/s"


@dataclass
class Machine:
    """A process port for a node with GPUs and a benchmark that prints as told."""

    output: Completed | AicrError = field(default_factory=lambda: Completed(0, table(), ""))
    gpus: int = 8
    smi: Completed | AicrError | None = None
    asked: list[Sequence[str]] = field(default_factory=list)
    environ: Mapping[str, str] = field(default_factory=dict)

    def __call__(
        self, argv: Sequence[str], *, timeout: float, environ: Mapping[str, str]
    ) -> Completed:
        """Answer a command."""
        if argv[0] == "nvidia-smi":
            found = self.smi or Completed(0, "NVIDIA H100 80GB HBM3\n" * self.gpus, "")
        else:
            assert timeout == 300
            self.asked.append(argv)
            self.environ = environ
            found = self.output
        if isinstance(found, AicrError):
            raise found
        return found


@dataclass
class Ended:
    """How a run of the program ended."""

    code: int
    events: list[Event]
    log: list[dict[str, Any]]

    def messages(self) -> list[str]:
        """The log's messages."""
        return [line["msg"] for line in self.log]


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    """Something that may be executed."""
    path = tmp_path / "all_reduce_perf"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


#: Runs the program on a machine, with variables.
Run = Callable[..., Ended]


@pytest.fixture
def run(binary: Path) -> Run:
    """Run the program; events are noted instead of sent."""

    def running(
        machine: Machine | str | Completed | AicrError | None = None,
        report: Callable[[Event], None] | None = None,
        **variables: str,
    ) -> Ended:
        if isinstance(machine, str):
            machine = Completed(0, machine, "")
        made = (
            machine
            if isinstance(machine, Machine)
            else Machine(machine or Completed(0, table(), ""))
        )
        events: list[Event] = []
        stream = io.StringIO()

        def note(event: Event) -> None:
            events.append(event)
            if report is not None:
                report(event)

        environ = {
            "NCCL_TEST_BINARY_PATH": str(binary),
            "PLATFORM_CONNECTOR_SOCKET": "/none",
            "NODE_NAME": "node-1",
            "AICR_LOG_FORMAT": "json",
            **variables,
        }
        code = loopback.main(environ, stream, process=made, report=note)
        return Ended(code, events, [json.loads(line) for line in stream.getvalue().splitlines()])

    return running


def short(size: int, busbw: str, count: int = 8) -> str:
    """Output as the specification's example has it: ranks and one row, without a header."""
    return (
        "\n".join([*ranks(count), f"{size} {size // 4} float sum -1 2374.1 113.07 {busbw} 0"])
        + "\n"
    )


@pytest.mark.covers("P11-107", "P-188", "P-067", "P-068", "P-069")
def test_a_bandwidth_above_the_threshold_passes(run: Run, binary: Path) -> None:
    """One healthy event in the words of the original; the benchmark got size and all GPUs."""
    machine = Machine(Completed(0, short(268435456, "197.87"), ""))
    ended = run(machine)
    assert ended.code == 0
    (event,) = ended.events
    assert (event.check_name, event.message) == ("NCCLLoopbackTest", MEETS)
    assert (event.is_healthy, event.is_fatal, event.action) == (True, False, "NONE")
    assert (event.error_codes, event.entities) == ((), ())
    assert machine.asked == [[str(binary), "-b", "256M", "-e", "256M", "-g", "8"]]


@pytest.mark.covers("P11-108", "P-189")
@pytest.mark.parametrize(("busbw", "code"), [("149.99", 1), ("150.00", 0)])
def test_the_threshold_itself_is_enough(run: Run, busbw: str, code: int) -> None:
    """Just below is degraded, which is fatal."""
    ended = run(table(Measured(busbw=busbw)))
    assert ended.code == code
    (event,) = ended.events
    if code:
        assert (
            event.message
            == "NCCL all-reduce bus bandwidth 149.99 GB/s is below threshold 150.00 GB/s"
        )
        assert (event.is_fatal, event.action) == (True, "CONTACT_SUPPORT")
        assert event.error_codes == ("NCCL_BW_DEGRADED",)
    else:
        assert event.is_healthy


@pytest.mark.covers("P11-109")
def test_one_gpu_is_not_testable_and_the_pod_starts(run: Run) -> None:
    """Told, not fatal (decision 76), and the benchmark is not even run."""
    machine = Machine(gpus=1)
    ended = run(machine)
    (event,) = ended.events
    assert "not testable on one GPU" in event.message
    assert (event.is_healthy, event.is_fatal, event.action) == (False, False, "NONE")
    assert (ended.code, machine.asked) == (0, [])


@pytest.mark.covers("P11-109", "P-070")
def test_the_bandwidth_check_can_be_skipped(run: Run) -> None:
    """The benchmark must run, whatever it measures; also on one GPU."""
    text = table(Measured(busbw="0.00", in_busbw="0.00"), gpus=1)
    ended = run(Machine(Completed(0, text, ""), gpus=1), SKIP_BANDWIDTH_CHECK="true")
    (event,) = ended.events
    assert event.message == (
        "NCCL all-reduce completed successfully with bus bandwidth 0.00 GB/s (threshold check skipped)"
    )
    assert (ended.code, event.is_healthy) == (0, True)
    assert run(Completed(1, "", "boom"), SKIP_BANDWIDTH_CHECK="1").code == 1


@pytest.mark.parametrize(
    ("text", "skips", "warned"),
    [("T", True, 0), ("TRUE", True, 0), ("0", False, 0), ("False", False, 0), ("yes", False, 1)],
)
def test_truth_is_spelled_as_in_go(run: Run, text: str, skips: bool, warned: int) -> None:
    """Anything else is a warning and false."""
    ended = run(table(Measured(busbw="1.00")), SKIP_BANDWIDTH_CHECK=text)
    assert ended.code == (0 if skips else 1)
    notes = [message for message in ended.messages() if "neither true nor false" in message]
    assert len(notes) == warned


@pytest.mark.covers("P11-110")
def test_another_size_in_the_output_is_an_error(run: Run) -> None:
    """It could not be tested: told, not fatal, and the pod does not start."""
    ended = run(table(), TEST_SIZE_MB="128")
    assert ended.code == 1
    (event,) = ended.events
    assert event.error_codes == ("NCCL_TEST_ERROR",)
    assert event.message == (
        "NCCL loopback test failed: could not find results for size 134217728 bytes in output"
    )
    assert (event.is_healthy, event.is_fatal, event.action) == (False, False, "NONE")


@pytest.mark.parametrize(
    ("output", "text", "fatal"),
    [
        pytest.param(
            Completed(0, "", ""),
            "could not determine number of GPUs from output",
            False,
            id="silent",
        ),
        pytest.param(
            Completed(0, "\n".join([*ranks(8), *header(), row(Measured(busbw="x"))]) + "\n", ""),
            "failed to parse busbw: ",
            False,
            id="unreadable",
        ),
        pytest.param(
            Completed(2, "out", "CUDA failure 'system not yet initialized'"),
            "the fabric manager is not ready",
            False,
            id="fabric manager",
        ),
        pytest.param(
            Completed(2, "said on stdout", "said on stderr"),
            "exit status 2: said on stdout\nsaid on stderr",
            True,
            id="unknown reason, both streams",
        ),
        pytest.param(Completed(-11, "", ""), "killed by SIGSEGV", True, id="killed"),
        pytest.param(
            Completed(1, "uncorrectable ECC error encountered", ""),
            "a GPU has an uncorrectable memory error",
            True,
            id="memory error",
        ),
        pytest.param(
            AicrError(TIMEOUT, "late", context={"stdout": "half", "stderr": ""}),
            "all_reduce_perf timed out after 5m0s",
            True,
            id="hangs",
        ),
        pytest.param(
            AicrError(SERVICE_UNAVAILABLE, "all_reduce_perf cannot be started: Exec format error"),
            "cannot be started",
            False,
            id="cannot be started",
        ),
        pytest.param(
            Completed(1, table(Measured(wrong="3"), bounds=3), ""),
            "3 wrong values",
            True,
            id="wrong values, and the benchmark fails",
        ),
        pytest.param(
            Completed(0, table(Measured(in_wrong="2")), ""),
            "2 wrong values",
            True,
            id="wrong values",
        ),
    ],
)
def test_a_benchmark_that_fails_is_an_error(
    run: Run, output: Completed | AicrError, text: str, fatal: bool
) -> None:
    """Fatal when the hardware is in question, and not when the surroundings are to blame."""
    ended = run(Machine(output))
    assert ended.code == 1
    (event,) = ended.events
    assert event.message.startswith("NCCL loopback test failed: ")
    assert text in event.message
    assert (event.is_fatal, event.error_codes) == (fatal, ("NCCL_TEST_ERROR",))
    assert event.action == ("CONTACT_SUPPORT" if fatal else "NONE")


def test_a_known_reason_comes_with_its_next_step(run: Run) -> None:
    """In the log, where there is room for it."""
    ended = run(Machine(Completed(2, "", "system not yet initialized")))
    (line,) = [line for line in ended.log if line["msg"] == "the fabric manager is not ready"]
    assert "nvidia-fabricmanager" in line["next"]


@pytest.mark.covers("P11-111", "P-191", "K9")
def test_an_event_that_cannot_be_sent_is_code_3(run: Run) -> None:
    """Whatever the benchmark said; STORE_ONLY lets the pod start."""

    def refuse(event: Event) -> None:
        raise AicrError(SERVICE_UNAVAILABLE, "Failed to send health event after 5 retries")

    for text in (table(), table(Measured(busbw="1.00"))):
        assert run(text, report=refuse).code == 3
        stored = run(text, report=refuse, PROCESSING_STRATEGY="STORE_ONLY")
        assert stored.code == 0
        assert "Check failed (STORE_ONLY — not blocking pod)" in stored.messages()
        assert "Failed to send health event after 5 retries" in stored.messages()


@pytest.mark.covers("P11-119")
def test_an_empty_token_file_is_code_3(run: Run, binary: Path, tmp_path: Path) -> None:
    """Through the real client: an event is never sent anonymously."""
    token = tmp_path / "token"
    token.write_text("")
    stream = io.StringIO()
    environ = {
        "NCCL_TEST_BINARY_PATH": str(binary),
        "PLATFORM_CONNECTOR_SOCKET": str(tmp_path / "none"),
        "PLATFORM_CONNECTOR_TOKEN_PATH": str(token),
        "NODE_NAME": "node-1",
    }
    assert loopback.main(environ, stream, process=Machine()) == 3
    assert "the connector token is empty" in stream.getvalue()
    assert UNAUTHORIZED not in stream.getvalue(), "logs hold words, not codes"


@pytest.mark.covers("K9", "P-202")
def test_store_only_turns_a_finding_into_0(run: Run) -> None:
    """With the same event; another strategy does not."""
    low = table(Measured(busbw="1.00"))
    stored = run(low, PROCESSING_STRATEGY="STORE_ONLY")
    assert (stored.code, stored.events) == (0, run(low).events)
    assert run(low, PROCESSING_STRATEGY="STORE_AND_ANALYSE").code == 1


@pytest.mark.covers("P-190", "P-201")
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"BW_THRESHOLD_GBPS": "x"}, "invalid BW_THRESHOLD_GBPS: 'x' is no number"),
        (
            {"BW_THRESHOLD_GBPS": "0"},
            "invalid BW_THRESHOLD_GBPS: 0 is not a positive, finite number",
        ),
        (
            {"BW_THRESHOLD_GBPS": "NaN"},
            "invalid BW_THRESHOLD_GBPS: NaN is not a positive, finite number",
        ),
        (
            {"BW_THRESHOLD_GBPS": "Inf"},
            "invalid BW_THRESHOLD_GBPS: Inf is not a positive, finite number",
        ),
        (
            {"BW_THRESHOLDS_GBPS": "sneakernet=1"},
            "invalid BW_THRESHOLDS_GBPS: 'sneakernet' is no fabric",
        ),
        ({"NCCL_LOOPBACK_FABRIC": "efa"}, "invalid NCCL_LOOPBACK_FABRIC: efa"),
        ({"TEST_SIZE_MB": "0"}, "TEST_SIZE_MB must be positive, got 0"),
        ({"TEST_SIZE_MB": "1.5"}, "invalid TEST_SIZE_MB: 1.5"),
        ({"TEST_SIZE_MB": "99999999"}, "TEST_SIZE_MB must be at most 1048576, got 99999999"),
        ({"NCCL_TEST_BINARY_PATH": "/none"}, "invalid NCCL_TEST_BINARY_PATH: file not found"),
        (
            {"NCCL_TEST_BINARY_PATH": "/"},
            "invalid NCCL_TEST_BINARY_PATH: path is a directory, not an executable",
        ),
        ({"PLATFORM_CONNECTOR_SOCKET": ""}, "PLATFORM_CONNECTOR_SOCKET is required"),
        ({"NODE_NAME": ""}, "NODE_NAME is required"),
        ({"PROCESSING_STRATEGY": "X"}, "Invalid PROCESSING_STRATEGY: X"),
    ],
    ids=str,
)
def test_a_wrong_configuration_is_code_2(run: Run, variables: dict[str, str], message: str) -> None:
    """No event, and STORE_ONLY does not help."""
    machine = Machine()
    ended = run(machine, **{"PROCESSING_STRATEGY": "STORE_ONLY", **variables})
    assert (ended.code, ended.events, machine.asked) == (2, [], [])
    (line,) = [line for line in ended.log if line["msg"] == "Configuration error"]
    assert line["error"].startswith(message)


def test_a_file_that_may_not_be_executed_is_named(run: Run, binary: Path) -> None:
    """Root may do everything but execute what nobody may."""
    binary.chmod(stat.S_IRUSR)
    ended = run()
    assert ended.code == 2
    assert "file is not executable" in ended.log[0]["error"]


@pytest.mark.covers("P11-112")
@pytest.mark.parametrize(
    ("smi", "message"),
    [
        pytest.param(
            AicrError(
                SERVICE_UNAVAILABLE, "nvidia-smi cannot be started: No such file or directory"
            ),
            "failed to detect GPU count: nvidia-smi failed: nvidia-smi cannot be started",
            id="missing",
        ),
        pytest.param(
            Completed(9, "", "NVML broken"),
            "failed to detect GPU count: nvidia-smi failed: exit status 9: NVML broken",
            id="fails",
        ),
        pytest.param(
            AicrError(TIMEOUT, "late"),
            "failed to detect GPU count: nvidia-smi timed out after 30s",
            id="hangs",
        ),
        pytest.param(
            Completed(0, "\n", ""), "failed to detect GPU count: no GPUs found", id="none"
        ),
        pytest.param(
            Completed(6, "No devices were found\n", ""),
            "failed to detect GPU count: no GPUs found",
            id="none, in words",
        ),
    ],
)
def test_without_gpus_the_configuration_is_wrong(
    run: Run, smi: Completed | AicrError, message: str
) -> None:
    """Code 2 also under STORE_ONLY, and no event."""
    ended = run(Machine(smi=smi), PROCESSING_STRATEGY="STORE_ONLY")
    assert (ended.code, ended.events) == (2, [])
    assert ended.log[0]["error"].startswith(message)


def test_complaints_come_in_order(run: Run) -> None:
    """Threshold before size before GPUs before the binary before the socket."""
    wrong = {
        "BW_THRESHOLD_GBPS": "x",
        "TEST_SIZE_MB": "x",
        "NCCL_TEST_BINARY_PATH": "/none",
        "NODE_NAME": "",
    }
    seen = []
    while wrong:
        ended = run(Machine(), **wrong)
        seen.append(ended.log[0]["error"].split()[-3:])
        wrong.pop(next(iter(wrong)))
    assert len(seen) == 4
    assert "NODE_NAME" in " ".join(seen[-1])


def test_a_threshold_for_the_fabric_goes_before_the_general_one(run: Run) -> None:
    """And the log says which it was, and how the figure compares with what is on record."""
    text = table(Measured(busbw="17.00"))
    given = {"BW_THRESHOLDS_GBPS": "pcie=15", "NCCL_LOOPBACK_FABRIC": "pcie"}
    assert run(text, **given).code == 0
    assert run(text, BW_THRESHOLDS_GBPS="pcie=15").code == 1
    ended = run(Machine(Completed(0, text, ""), smi=Completed(0, "NVIDIA L40S\n" * 8, "")), **given)
    (line,) = [line for line in ended.log if line["msg"] == "Bandwidth measured"]
    assert line["threshold"] == "pcie"
    assert line["onRecord"] == "85 % of 20 GB/s on record for pcie with L40S"


def test_nccl_is_asked_for_its_warnings_unless_told_otherwise(run: Run) -> None:
    """Without them a failure has no reason; what the pod says goes first."""
    machine = Machine()
    run(machine)
    assert machine.environ["NCCL_DEBUG"] == "WARN"
    run(machine, NCCL_DEBUG="INFO", NCCL_TOPO_FILE="/topo")
    assert (machine.environ["NCCL_DEBUG"], machine.environ["NCCL_TOPO_FILE"]) == ("INFO", "/topo")


def test_a_signal_ends_the_check(run: Run) -> None:
    """143, no event, and STORE_ONLY does not turn it into a pass."""

    def kill(argv: Sequence[str], *, timeout: float, environ: Mapping[str, str]) -> Completed:
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("the signal came late")

    stream = io.StringIO()
    environ = {"PROCESSING_STRATEGY": "STORE_ONLY"}
    assert loopback.main(environ, stream, process=kill) == 143
    assert "SIGTERM" in stream.getvalue()


def test_a_bug_ends_with_a_line_and_no_traceback() -> None:
    """Exit 1; the line says where."""

    def break_down(argv: Sequence[str], *, timeout: float, environ: Mapping[str, str]) -> Completed:
        raise ZeroDivisionError("oops")

    stream = io.StringIO()
    assert loopback.main({}, stream, process=break_down) == 1
    assert "this is a bug" in stream.getvalue()
    assert "Traceback" not in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"), [(300, "5m0s"), (90, "1m30s"), (0.3, "0.3s"), (60, "1m0s")]
)
def test_durations_are_printed_as_in_go(seconds: float, text: str) -> None:
    """The message of a timeout quotes one."""
    assert loopback.in_go(seconds) == text


def test_a_program_is_ended_with_all_its_children(tmp_path: Path) -> None:
    """When time is up; what it printed until then is kept."""
    script = tmp_path / "hangs"
    script.write_text("#!/bin/sh\necho half\nsleep 60 & echo $! >&2\nwait\n")
    script.chmod(0o755)
    with pytest.raises(AicrError) as caught:
        environment_process.run([str(script)], timeout=1.5, environ=dict(os.environ))
    assert caught.value.code == TIMEOUT
    assert caught.value.context["stdout"] == "half\n"
    # A signal only asks: what it ends takes its turn on a busy machine. And who adopts an orphan may take
    # its time to notice that it ended.
    deadline = time.monotonic() + 30
    while (state := state_of(int(caught.value.context["stderr"]))) not in {"gone", "Z"}:
        assert time.monotonic() < deadline, state
        time.sleep(0.02)


def state_of(pid: int) -> str:
    """The letter of a process in /proc, or "gone"."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def test_a_program_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """With the system's reason."""
    with pytest.raises(AicrError, match="cannot be started: No such file or directory"):
        environment_process.run([str(tmp_path / "none")], timeout=1, environ={})
    done = environment_process.run(
        ["/bin/sh", "-c", "echo a; echo b >&2; exit 3"], timeout=60, environ={}
    )
    assert (done.returncode, done.text, done.failure()) == (3, "a\nb", "exit status 3")
