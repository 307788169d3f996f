"""The program of preflight-nccl-allreduce on every node of a gang, with workers that play a part."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.preflight_allreduce.doubles import (
    PLAYER,
    FakeTime,
    MemoryBoard,
    Words,
    codes,
    fails,
    measured,
    play,
    plays,
)
from tests.preflight_allreduce.mounted import Mounted, formed

from aicr.errors import SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.checks.allreduce import job as jobs
from aicr.preflight.checks.allreduce import worker
from aicr.preflight.checks.allreduce.__main__ import World, main
from aicr.preflight.checks.allreduce.clock import Clock
from aicr.preflight.checks.allreduce.gang import Place
from aicr.preflight.checks.allreduce.gathering import Card, Gathering
from aicr.preflight.checks.allreduce.job import Job
from aicr.preflight.checks.environment_process import Completed
from aicr.preflight.health.events import Event

ISOLATED = {"nodes": [1], "rounds": 4, "reason": "slow with every sound partner", "ran": True}


@pytest.mark.covers("P-192", "P-072")
def test_a_gang_that_passes_is_told_once() -> None:
    """By rank 0; the workers know their ranks and all of the gang."""
    made = play({rank: plays(250.0) for rank in range(4)}, 2, workers=2)
    assert codes(made) == [0, 0]
    assert [len(node.events) for node in made] == [1, 0]
    assert made[0].events[0].is_healthy
    assert made[1].outcome is not None
    assert made[1].outcome.details["workers"] == 4


@pytest.mark.covers("P11-118", "P-193")
def test_an_isolated_node_tells_it_itself() -> None:
    """All fail; only node 1 sends."""
    made = play({rank: plays(5.0, ISOLATED) for rank in range(3)}, 3)
    assert codes(made) == [1, 1, 1]
    assert [len(node.events) for node in made] == [0, 1, 0]
    assert made[1].events[0].is_fatal


@pytest.mark.covers("P-196")
def test_an_event_that_is_not_sent_is_4_above_all_else() -> None:
    """On the node whose event it was."""
    made = play({rank: plays(5.0, ISOLATED) for rank in range(3)}, 3, refuses=[0, 1])
    assert codes(made) == [1, 4, 1]
    assert made[1].outcome is not None
    assert made[1].outcome.unsent == ("Failed to send health event after 5 retries",)


def test_the_threshold_follows_the_fabric_that_nccl_names(tmp_path: Path) -> None:
    """A threshold by fabric makes NCCL say it, long before anything is measured; the default would pass."""
    read = tmp_path / "read"
    part = {**plays(250.0), "prints": "n0:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa"}
    part["awaits"] = str(read)
    made = play(
        {0: part, 1: part},
        by_fabric={"efa": 300.0},
        environ={"NCCL_DEBUG_SUBSYS": "INIT"},
        write=lambda line: read.touch() if line.startswith("[rank 0] ") else None,
    )
    assert codes(made) == [1, 1]
    assert "is below threshold 300.00" in made[0].events[0].message
    assert made[0].outcome is not None
    assert made[0].outcome.details["threshold"] == "efa"


def test_a_worker_that_fails_ends_the_gang_at_once() -> None:
    """The others would wait for their time limit; who failed is named."""
    hangs = {"steps": 2, "hangs": "hard"}
    made = play({0: hangs, 1: fails("Connection reset"), 2: hangs}, 3, settle=0.1)
    assert codes(made) == [1, 1, 1]
    (event,) = made[0].events
    assert event.message == "NCCL all-reduce benchmark failed: Connection reset (w-1 on node-1)"
    assert not event.is_fatal
    assert [node.events for node in made[1:]] == [[], []]


@pytest.mark.parametrize("dies", [0, 1])
def test_a_worker_that_is_killed_is_named(dies: int) -> None:
    """Also the one of rank 0."""
    part: dict[str, Any] = {"steps": 2, "dies": True}
    made = play({dies: part, 1 - dies: fails("Connection closed by peer")})
    assert codes(made) == [1, 1]
    (event,) = made[0].events
    assert f"killed by SIGKILL (w-{dies} on node-{dies})" in event.message


def test_an_init_failure_of_all_is_one_event() -> None:
    """NCCL_ALLREDUCE_INIT_FAILED, not fatal, from rank 0."""
    part = fails("NCCL error: unhandled system error", "init")
    made = play(dict.fromkeys(range(4), part), 2, workers=2)
    assert codes(made) == [1, 1]
    assert [len(node.events) for node in made] == [1, 0]
    assert made[0].events[0].error_codes == ("NCCL_ALLREDUCE_INIT_FAILED",)
    assert not made[0].events[0].is_fatal


def test_a_cause_in_the_output_of_a_worker_is_told() -> None:
    """The exception alone says little."""
    part = {**fails("ncclSystemError"), "prints": "No space left on device /dev/shm/nccl-x"}
    made = play({0: part, 1: {"steps": 2, "hangs": True}}, settle=0.1)
    assert "/dev/shm is too small" in made[0].events[0].message


def test_workers_that_hang_without_a_word_are_ended() -> None:
    """Twice the time limit and a margin without a step."""
    part = {"steps": 2, "hangs": True}
    words = Words(2)
    made = play({0: part, 1: part}, timeout=0.3, factor=0.002, now=words.now, write=words)
    assert codes(made) == [1, 1]
    assert made[0].events[0].error_codes == ("NCCL_ALLREDUCE_TIMEOUT",)
    assert "no answer within" in made[0].events[0].message


def test_a_worker_that_cannot_leave_has_its_result_all_the_same() -> None:
    """What hangs after the result is ended."""
    part = {**plays(250.0), "hangs": True}
    assert codes(play({0: part, 1: part}, settle=0.1)) == [0, 0]


def test_a_worker_that_breaks_after_its_result_is_no_pass() -> None:
    """Fail closed."""
    made = play({0: plays(250.0), 1: {**plays(250.0), "dies": True}})
    assert codes(made) == [1, 1]
    assert "killed by SIGKILL (w-1 on node-1)" in made[0].events[0].message


def test_a_worker_that_refuses_its_job_is_a_wrong_configuration() -> None:
    """Exit 2, and no event."""
    part = fails("no such operation", "config", code=2)
    made = play({0: part, 1: part})
    assert codes(made) == [2, 2]
    assert [node.events for node in made] == [[], []]


def test_a_member_that_never_comes_is_named_and_the_others_hear_it() -> None:
    """NCCL is not started at all; rank 0 alone tells it."""
    board = MemoryBoard()
    begun: list[float] = []

    def now() -> float:
        """Seconds since node 1 has come; a busy machine may take long to start its thread."""
        if not begun and "node/1" in board.texts:
            begun.append(time.monotonic())
        return time.monotonic() - begun[0] if begun else 0.0

    parts = {0: plays(250.0), 1: plays(250.0)}
    made = play(parts, 3, absent=[2], board=board, timeout=0.2, now=now)
    assert codes(made) == [1, 1, None]
    (event,) = made[0].events
    assert event.message == (
        "Failed to initialize NCCL: w-2 did not come to rank 0 (w-0 on node-0)"
    )
    assert (event.is_fatal, made[1].events) == (False, [])


def test_without_rank_0_each_node_speaks_for_itself() -> None:
    """Nobody else can; no node is blamed."""
    board = MemoryBoard()
    board.lost = True
    made = play({1: plays(250.0)}, 2, absent=[0], board=board, timeout=0.2)
    assert codes(made) == [None, 1]
    (event,) = made[1].events
    assert (event.is_fatal, event.error_codes) == (False, ("NCCL_ALLREDUCE_INIT_FAILED",))
    assert "the store of rank 0 is gone" in event.message


def test_when_rank_0_goes_while_workers_run_they_are_ended() -> None:
    """A result without rank 0's verdict is none."""
    board, words = MemoryBoard(), Words(2)

    def lose() -> None:
        words.wait()
        board.lost = True

    thread = threading.Thread(target=lose)
    thread.start()
    part = {"steps": 2, "hangs": True}
    made = play({0: part, 1: part}, board=board, settle=0.1, write=words)
    thread.join()
    assert codes(made) == [1, 1]
    assert all("the store of rank 0 is gone" in node.events[0].message for node in made)
    assert not any(node.events[0].is_fatal for node in made)


def card(pod: str, token: str, generation: int = 1) -> Card:
    """What a node says of itself."""
    return Card(pod, "node", 1, token, generation)


def gathering(board: MemoryBoard, rank: int, one: Card, clock: Clock | None = None) -> Gathering:
    """A node that is about to meet the others."""
    place = Place("gang", 1, rank, ("w-0", "w-1"), "127.0.0.1", 1)
    return Gathering(place, one, board.meet, clock or Clock(), 60)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (card("w-1", "b", generation=2), "different generations of the gang: w-0=1; w-1=2"),
        (card("w-7", "b"), "w-7 came with a rank that is another pod's here"),
    ],
    ids=["generation", "rank"],
)
def test_members_that_read_different_files_do_not_start(one: Card, text: str) -> None:
    """They would wait for each other in vain; both are told."""
    board = MemoryBoard()
    errors: list[AicrError] = []

    def other() -> None:
        try:
            gathering(board, 1, one).meet()
        except AicrError as error:
            errors.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(AicrError, match=text):
        gathering(board, 0, card("w-0", "a")).meet()
    thread.join()
    assert text in errors[0].message


def test_the_board_of_an_earlier_run_is_not_taken_for_ours() -> None:
    """A container that was restarted alone finds its predecessor on the roster and goes on looking."""
    board, seconds = MemoryBoard(), FakeTime()
    old = {"session": "old", "cards": [vars(card("w-0", "a")), vars(card("w-1", "before"))]}
    board.put("roster", json.dumps(old))
    again = gathering(board, 1, card("w-1", "now"), clock=seconds.clock)
    new = {"session": "new", "cards": [vars(card("w-0", "c")), vars(card("w-1", "now"))]}
    seconds.at(3, lambda: board.put("roster", json.dumps(new)))
    assert again.meet().session == "new"


@pytest.fixture
def mounted(tmp_path: Path) -> dict[str, str]:
    """Variables of a gang of one pod, complete."""
    Mounted(tmp_path / "mounted").write(formed(1))
    return {
        "POD_NAME": "w-0",
        "GANG_CONFIG_DIR": str(tmp_path / "mounted"),
        "NODE_NAME": "node-0",
        "PLATFORM_CONNECTOR_SOCKET": "/none",
        "NPROCS_PER_NODE": "2",
        "MESSAGE_SIZES": "1M",
        "AICR_LOG_FORMAT": "text",
        "AICR_TIMEOUT_FACTOR": "0.01",
        "GANG_TIMEOUT_SECONDS": "6000",
    }


def program(
    environ: dict[str, str], parts: dict[int, Any], *, log: io.StringIO | None = None, **world: Any
) -> tuple[int, list[Event], str]:
    """Run the program itself: code, events, log."""
    events: list[Event] = []
    stream = log or io.StringIO()
    given = {
        "process": lambda *a, **k: Completed(0, "", ""),
        "meeting": MemoryBoard().meet,
        "worker": (sys.executable, "-c", PLAYER),
        "report": events.append,
        **world,
    }
    code = main({**environ, "PLAY": json.dumps(parts)}, stream, World(**given))
    return code, events, stream.getvalue()


@pytest.mark.covers("P11-118", "P-193", "P-202", "K9")
@pytest.mark.parametrize(("strategy", "code"), [("EXECUTE_REMEDIATION", 1), ("STORE_ONLY", 0)])
def test_store_only_masks_a_finding_of_the_benchmark(
    mounted: dict[str, str], strategy: str, code: int
) -> None:
    """One fatal event either way; the output of the workers is in the log."""
    found, events, log = program(
        {**mounted, "PROCESSING_STRATEGY": strategy}, {0: plays(5.0), 1: plays(5.0)}
    )
    assert found == code
    (event,) = events
    assert event.is_fatal
    assert "[rank 1] hello" in log
    assert ("Check failed (STORE_ONLY — not blocking pod)" in log) is (code == 0)


@pytest.mark.covers("P-196", "P11-119", "K9")
@pytest.mark.parametrize(("strategy", "code"), [("EXECUTE_REMEDIATION", 4), ("STORE_ONLY", 0)])
def test_an_empty_token_is_4_and_masked_by_store_only(
    mounted: dict[str, str], tmp_path: Path, strategy: str, code: int
) -> None:
    """Never sent without the token that was asked for."""
    token = tmp_path / "token"
    token.touch()
    environ = {
        **mounted,
        "PROCESSING_STRATEGY": strategy,
        "PLATFORM_CONNECTOR_TOKEN_PATH": str(token),
    }
    found, _, log = program(environ, {0: plays(500.0), 1: plays(500.0)}, report=None)
    assert found == code
    assert "the connector token is empty" in log


@pytest.mark.parametrize("strategy", ["EXECUTE_REMEDIATION", "STORE_ONLY"])
def test_a_job_that_workers_refuse_is_2_and_never_masked(
    mounted: dict[str, str], strategy: str
) -> None:
    """A wrong configuration blocks under every strategy."""
    part = fails("no such operation", "config", code=2)
    found, events, _ = program({**mounted, "PROCESSING_STRATEGY": strategy}, {0: part, 1: part})
    assert (found, events) == (2, [])


class Signals(io.StringIO):
    """A log that sends this process a signal once both workers have said their first word."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self._sent = False

    def write(self, text: str) -> int:
        """Take text, and look whether it is time."""
        written = super().write(text)
        said = self.getvalue()
        if not self._sent and "[rank 0] hello" in said and "[rank 1] hello" in said:
            self._sent = True
            os.kill(os.getpid(), self._number)
        return written


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_workers_first(mounted: dict[str, str], number: int) -> None:
    """128 and its number, and no event."""
    part = {"steps": 2, "hangs": True}
    found, events, log = program(mounted, {0: part, 1: part}, log=Signals(number))
    assert (found, events) == (128 + number, [])
    assert "Interrupted: the workers were ended" in log


def test_a_worker_that_cannot_be_started_is_told(mounted: dict[str, str]) -> None:
    """Nothing was tested."""
    found, events, _ = program(mounted, {}, worker=("/none/python",))
    assert found == 1
    assert (events[0].is_fatal, events[0].error_codes) == (False, ("NCCL_ALLREDUCE_INIT_FAILED",))
    assert "/none/python cannot be started" in events[0].message


def test_a_bug_is_1_and_has_its_place_in_the_log(mounted: dict[str, str]) -> None:
    """No traceback reaches anybody."""

    def broken(*arguments: object, **named: object) -> Any:
        raise ValueError("odd")

    found, events, log = program(mounted, {}, meeting=broken)
    assert (found, events) == (1, [])
    assert "this is a bug of the check" in log
    assert "Traceback" not in log


class Sham(worker.Worker):
    """A worker whose steps are the test's."""

    fails_at = ""
    error: Exception = RuntimeError("boom")

    def __init__(self, *arguments: Any) -> None:
        if self.fails_at == "config":
            raise AttributeError("type object 'ReduceOp' has no attribute 'XOR'")

    def join(self) -> None:
        """Meet, or fail."""
        if self.fails_at == "init":
            raise self.error

    def run(self) -> jobs.Result:
        """Measure, or fail."""
        if self.fails_at == "benchmark":
            raise self.error
        return jobs.Result((jobs.Measured(**measured(3.0)),))


@pytest.mark.parametrize(
    ("stage", "error", "code", "hung"),
    [
        ("", RuntimeError(), 0, False),
        ("config", RuntimeError(), 2, False),
        ("init", RuntimeError("boom"), 1, False),
        ("init", RuntimeError("Socket Timeout"), 1, True),
        ("benchmark", worker.HungError("no answer within 1 s"), 1, True),
        ("benchmark", ValueError(), 1, False),
    ],
    ids=str,
)
def test_a_worker_reports_where_it_failed(
    monkeypatch: pytest.MonkeyPatch, stage: str, error: Exception, code: int, hung: bool
) -> None:
    """Stage, words, and whether it was time that ran out."""
    monkeypatch.setattr(Sham, "fails_at", stage)
    monkeypatch.setattr(Sham, "error", error)
    told: list[dict[str, Any]] = []
    job = Job("k", "a", 1, (1,), (4,), 1, 0, "sum", "gloo", 1.0)
    environ = {jobs.JOB: job.text(), "RANK": "0", "LOCAL_RANK": "0"}
    assert worker.run(environ, told.append, None, Sham) == code
    (document,) = told
    if not code:
        assert document["kind"] == "result"
        return
    assert (document["kind"], document["stage"], document["hung"]) == ("failed", stage, hung)
    assert document["text"]


def test_a_worker_without_torch_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a failure to start, not as a traceback."""
    report = tmp_path / "report"
    monkeypatch.setenv(jobs.REPORT, str(report))
    monkeypatch.setitem(sys.modules, "torch", None)
    assert worker.main() == 1
    document = json.loads(report.read_text())
    assert (document["kind"], document["stage"]) == ("failed", "init")


def test_the_board_without_torch_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do about it."""
    from aicr.preflight.checks.allreduce.board import meet

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    with pytest.raises(AicrError, match=r"torch\.distributed is not installed") as caught:
        meet("127.0.0.1", 1, serves=True, limit=1.0, clock=Clock())
    assert caught.value.code == SERVICE_UNAVAILABLE
