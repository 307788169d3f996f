"""The gang stage of preflight-nccl-allreduce: waiting for the mounted ConfigMap, on a clock of the test."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.preflight_allreduce.doubles import FakeTime, write_files
from tests.preflight_allreduce.mounted import Mounted, formed

from aicr.errors import SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.checks.allreduce import gang
from aicr.preflight.checks.allreduce.__main__ import World, main
from aicr.preflight.checks.allreduce.gang import Place, Refusal
from aicr.preflight.checks.allreduce.settings import GangSettings
from aicr.preflight.checks.environment_process import Completed
from aicr.preflight.health.events import Event

ABSENT = "Pod w-1 not found in peers list"


@dataclass
class Waiting:
    """A wait of one pod on a folder."""

    mounted: Mounted
    time: FakeTime = field(default_factory=FakeTime)
    said: list[str] = field(default_factory=list)

    def go(
        self, pod: str = "w-1", timeout: int = 300, uid: str = "", ip: str = ""
    ) -> Place | Refusal:
        """Wait."""
        settings = GangSettings(pod, uid, ip, str(self.mounted.path), timeout)
        return gang.wait(
            settings, lambda: gang.read(self.mounted.path), self.time.clock, self.said.append
        )


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    """A pod whose folder is still empty."""
    return Waiting(Mounted(tmp_path / "mounted"))


@pytest.mark.covers("P-132")
def test_a_complete_gang_gives_everybody_a_place_at_once(waiting: Waiting) -> None:
    """As the controller writes it, with `members` and all."""
    waiting.mounted.write(formed(3))
    places = [waiting.go(f"w-{n}", uid=f"uid-of-w-{n}") for n in range(3)]
    assert places == [
        Place("volcano-team-a-train", 1, n, ("w-0", "w-1", "w-2"), "10.0.0.1", 29500)
        for n in range(3)
    ]
    assert waiting.time.now == 0


@pytest.mark.covers("P11-114", "P-195")
@pytest.mark.parametrize("timeout", [10, 0, -5])
def test_files_that_never_come_are_a_timeout(waiting: Waiting, timeout: int) -> None:
    """There is one look at least, and the pause may overrun the limit by less than 5 s."""
    found = waiting.go(timeout=timeout)
    assert isinstance(found, Refusal)
    assert (found.exit_code, found.code) == (3, "NCCL_GANG_TIMEOUT")
    assert found.message.startswith(f"Gang formation timeout after {timeout}s")
    assert max(timeout, 0) <= waiting.time.now < max(timeout, 0) + 5


@pytest.mark.covers("P11-115")
@pytest.mark.parametrize("expected", ["abc", "", "0", "-1"])
def test_a_size_that_is_none_means_not_ready(waiting: Waiting, expected: str) -> None:
    """The controller writes 0 while it does not know the group."""
    waiting.mounted.write({**formed(2), "expected_count": expected})
    found = waiting.go(timeout=10)
    assert isinstance(found, Refusal)
    assert (found.exit_code, found.code) == (3, "NCCL_GANG_TIMEOUT")
    assert "not known yet" in found.message


@pytest.mark.covers("J14", "P-200")
def test_a_gang_that_lacks_one_names_it_while_waiting_and_at_the_end(waiting: Waiting) -> None:
    """Every five seconds a look, and a line when something changes or once a minute."""
    waiting.mounted.write(formed(4, present=3))
    found = waiting.go()
    assert isinstance(found, Refusal)
    assert found.message == (
        "Gang formation timeout after 300s: 3 of 4 members registered; missing: w-3"
    )
    assert waiting.time.now == 300
    assert set(waiting.said) == {"Waiting for the gang: 3 of 4 members registered; missing: w-3"}
    assert len(waiting.said) == 5


def test_members_for_which_there_is_no_pod_are_counted(waiting: Waiting) -> None:
    """The file of the original has no names of pods without an address."""
    data = {key: text for key, text in formed(4, present=3).items() if key != "missing"}
    waiting.mounted.write(data)
    found = waiting.go(timeout=0)
    assert isinstance(found, Refusal)
    assert found.message.endswith("3 of 4 members registered; missing: 1 that no pod exists for")


@pytest.mark.covers("J14")
def test_a_file_that_comes_late_and_one_that_changes_are_seen(waiting: Waiting) -> None:
    """90 s late, first without the last member, then for a gang that became smaller."""
    waiting.time.at(90, lambda: waiting.mounted.write(formed(3, present=2)))
    waiting.time.at(120, lambda: waiting.mounted.write({**formed(2), "expected_count": "2"}))
    found = waiting.go()
    assert isinstance(found, Place)
    assert (found.rank, found.nodes) == (1, 2)
    assert waiting.time.now == 120
    assert [line.split(": ", 1)[1] for line in waiting.said] == [
        f"no expected_count in {waiting.mounted.path}",
        f"no expected_count in {waiting.mounted.path}",
        "2 of 3 members registered; missing: w-2",
    ]


@pytest.mark.covers("J14", "P-194")
def test_a_complete_file_without_us_may_be_late_but_not_for_ever(waiting: Waiting) -> None:
    """It may be the membership before this pod replaced another one; then it is a wrong configuration."""
    waiting.mounted.write(formed(3))
    found = waiting.go("w-9")
    assert found == Refusal(2, "NCCL_GANG_CONFIG_ERROR", "Pod w-9 not found in peers list")
    assert waiting.time.now == 120
    waiting.time.now = 0
    waiting.time.at(60, lambda: waiting.mounted.write(formed(4)))
    assert isinstance(waiting.go("w-3"), Place)
    assert waiting.time.now == 60


def test_a_file_about_an_earlier_pod_of_our_name_is_waited_out(waiting: Waiting) -> None:
    """By UID where the members are listed, else by address."""
    waiting.mounted.write(formed(2))
    found = waiting.go(uid="another")
    assert isinstance(found, Refusal)
    assert "earlier pod" in found.message
    plain = {key: text for key, text in formed(2).items() if key != "members"}
    waiting.mounted.write(plain)
    found = waiting.go(ip="10.0.0.9")
    assert isinstance(found, Refusal)
    assert (found.exit_code, "10.0.0.2 and not 10.0.0.9" in found.message) == (2, True)
    assert isinstance(waiting.go(ip="10.0.0.2"), Place)
    waiting.mounted.write(formed(2))
    assert isinstance(waiting.go(uid="uid-of-w-1", ip="fd00::2"), Place), "a pod may have two"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"master_addr": ""}, "Master address not set in ConfigMap", id="no master"),
        pytest.param(
            {"peers": "w-0;1;0;a,b\nw-1;2;1;b,a\nw-2;3;2;a,b"},
            "Check name mismatch across gang: w-0=[a,b]; w-1=[b,a]; w-2=[a,b]",
            id="order of checks",
            marks=pytest.mark.covers("P-043"),
        ),
        pytest.param(
            {"expected_count": "1"},
            "Pod w-1 has rank 1, and the gang was made for 1 member: it takes part in no benchmark",
            id="beyond the gang",
        ),
        pytest.param(
            {"peers": "w-0;1;0\nw-1;2;1\nw-2;3;1"}, "Ranks in peers list are 0, 1, 1", id="twice"
        ),
        pytest.param({"peers": "w-0;1;0\nw-1;2;\nw-2;3;x"}, ABSENT, id="no rank for us", marks=[]),
        pytest.param(
            {"master_port": "70000"}, "Master port 70000 in ConfigMap is no port", id="port"
        ),
        pytest.param({"master_port": "²"}, "Master port ² in ConfigMap is no port", id="no digit"),
    ],
)
def test_what_is_wrong_with_a_complete_gang_is_said_at_once(
    waiting: Waiting, change: Mapping[str, str], message: str
) -> None:
    """Exit 2, before anything is launched."""
    waiting.mounted.write({**formed(3), **change})
    assert waiting.go() == Refusal(2, "NCCL_GANG_CONFIG_ERROR", message)
    assert waiting.time.now == 0


@pytest.mark.parametrize(
    "peers",
    [
        "w-0;10.0.0.1;0;\nw-1;10.0.0.2;1;",
        " w-0 ; 10.0.0.1 ; 0 \n\n nonsense \n w-1 ; fd00::2 ; 1 ",
        "w-0;10.0.0.1\nw-1;10.0.0.2",
    ],
    ids=["four fields", "three fields and blanks", "two fields, ranks by order"],
)
def test_peer_lines_of_two_to_four_fields_are_read(tmp_path: Path, peers: str) -> None:
    """Files that somebody else wrote, without the kubelet's link and without a port (decision 27)."""
    write_files(tmp_path, {"expected_count": "2", "peers": peers, "master_addr": "10.0.0.1"})
    found = gang.read(tmp_path)
    assert found is not None
    at = gang.place(found, "w-1")
    assert isinstance(at, Place)
    assert (at.rank, at.pods, at.master_port) == (1, ("w-0", "w-1"), 29500)


@dataclass
class Ended:
    """How the program ended."""

    code: int
    events: list[Event]
    log: str


def program(
    tmp_path: Path,
    variables: Mapping[str, str] | None = None,
    *,
    fails: bool = False,
    smi: Completed | None = None,
) -> Ended:
    """Run the program with events noted; nothing beyond the gang stage is provided."""
    time = FakeTime()
    events: list[Event] = []
    stream = io.StringIO()

    def note(event: Event) -> None:
        events.append(event)
        if fails:
            raise AicrError(SERVICE_UNAVAILABLE, "Failed to send health event after 5 retries")

    def process(argv: object, *, timeout: float, environ: Mapping[str, str]) -> Completed:
        return smi or Completed(0, "NVIDIA H100\n" * 8, "")

    environ = {
        "POD_NAME": "w-0",
        "GANG_CONFIG_DIR": str(tmp_path / "mounted"),
        "GANG_TIMEOUT_SECONDS": "10",
        "PLATFORM_CONNECTOR_SOCKET": "/none",
        "NODE_NAME": "node-0",
        "AICR_LOG_FORMAT": "json",
        **(variables or {}),
    }
    environ = {key: value for key, value in environ.items() if value != "-"}
    world = World(process=process, clock=time.clock, report=note)
    code = main(environ, stream, world)
    return Ended(code, events, stream.getvalue())


@pytest.mark.covers("P11-113", "P-073", "P-194")
@pytest.mark.parametrize("strategy", ["EXECUTE_REMEDIATION", "STORE_ONLY"])
def test_without_a_pod_name_there_is_no_gang(tmp_path: Path, strategy: str) -> None:
    """What happens with coordination off: exit 2 and no event, whatever the strategy is."""
    ended = program(tmp_path, {"POD_NAME": "-", "PROCESSING_STRATEGY": strategy})
    assert (ended.code, ended.events) == (2, [])
    assert "POD_NAME is required" in ended.log


@pytest.mark.covers("P11-114", "P-195", "P-200", "P-203", "K9")
@pytest.mark.parametrize("strategy", ["EXECUTE_REMEDIATION", "STORE_ONLY", "WHATEVER"])
@pytest.mark.parametrize("fails", [False, True], ids=["sent", "not sent"])
def test_a_gang_that_does_not_form_is_3_and_not_fatal(
    tmp_path: Path, strategy: str, fails: bool
) -> None:
    """Also under STORE_ONLY, with a strategy that does not exist, and when the event cannot be sent."""
    ended = program(tmp_path, {"PROCESSING_STRATEGY": strategy}, fails=fails)
    assert ended.code == 3
    (event,) = ended.events
    assert (event.check_name, event.is_fatal, event.is_healthy) == (
        "NCCLAllReduceTest",
        False,
        False,
    )
    assert (event.error_codes, event.action) == (("NCCL_GANG_TIMEOUT",), "NONE")
    assert event.message.startswith("Gang formation timeout after 10s")


def test_without_a_connector_the_gang_stage_only_warns(tmp_path: Path) -> None:
    """Its exit code does not depend on it."""
    stream = io.StringIO()
    environ = {"POD_NAME": "w-0", "GANG_CONFIG_DIR": str(tmp_path), "GANG_TIMEOUT_SECONDS": "0"}
    environ |= {"NPROCS_PER_NODE": "8"}
    assert main(environ, stream, World(clock=FakeTime().clock)) == 3
    assert "No event is sent" in stream.getvalue()


@pytest.mark.covers("P-194")
def test_a_gang_error_is_2_with_its_event(tmp_path: Path) -> None:
    """Never masked."""
    Mounted(tmp_path / "mounted").write({**formed(2), "master_addr": ""})
    ended = program(tmp_path, {"PROCESSING_STRATEGY": "STORE_ONLY"})
    assert ended.code == 2
    (event,) = ended.events
    assert (event.message, event.error_codes, event.is_fatal) == (
        "Master address not set in ConfigMap",
        ("NCCL_GANG_CONFIG_ERROR",),
        False,
    )


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        pytest.param({"GANG_TIMEOUT_SECONDS": "soon"}, "must be a whole number", id="timeout"),
        pytest.param({"GANG_TIMEOUT_SECONDS": "0"}, "must be at least 1, got 0", id="no time"),
        pytest.param({"NPROCS_PER_NODE": "x"}, "NPROCS_PER_NODE must be a whole", id="processes"),
        pytest.param({"NPROCS_PER_NODE": "0"}, "at least 1, got 0", id="no processes"),
        pytest.param({"NODE_NAME": "-"}, "NODE_NAME is required", id="node"),
        pytest.param({"PROCESSING_STRATEGY": "X"}, "Invalid PROCESSING_STRATEGY: X", id="strategy"),
        pytest.param({"NCCL_REDUCE_OP": "xor"}, "invalid NCCL_REDUCE_OP: xor", id="operation"),
        pytest.param({"LOG_LEVEL": "loud"}, "LOG_LEVEL 'loud' does not exist", id="log level"),
        pytest.param({"MESSAGE_SIZES": "4K"}, "'4K' is no size", id="size"),
    ],
)
def test_wrong_settings_are_2_without_an_event(
    tmp_path: Path, variables: dict[str, str], text: str
) -> None:
    """The gang being complete, and whatever STORE_ONLY says (known bugs S24 and S26)."""
    Mounted(tmp_path / "mounted").write(formed(2))
    ended = program(tmp_path, {"PROCESSING_STRATEGY": "STORE_ONLY", **variables})
    assert (ended.code, ended.events) == (2, [])
    assert text in ended.log


def test_a_container_without_gpus_is_misconfigured(tmp_path: Path) -> None:
    """Zero workers would run nothing at all."""
    ended = program(tmp_path, smi=Completed(0, "", ""))
    assert (ended.code, ended.events) == (2, [])
    assert "no GPUs found" in ended.log
