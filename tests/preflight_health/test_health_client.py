"""The client of the platform connector: retries, tokens, strategies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest
from tests.preflight_health.receiver import receiving

from aicr.errors import SERVICE_UNAVAILABLE, UNAUTHORIZED, AicrError
from aicr.preflight.health.client import Attempts, HealthClient
from aicr.preflight.health.events import Source, healthy
from aicr.preflight.health.transport import CallError, UnixSocket

SOURCE = Source("preflight-x", "Node", "node-1")
EVENT = healthy("C", "m")


class Script:
    """A transport that fails as told, then takes what comes."""

    def __init__(self, *failures: CallError) -> None:
        self.failures = list(failures)
        self.metadata: list[list[tuple[str, str]]] = []
        self.timeouts: list[float] = []
        self.data: list[bytes] = []

    def __call__(self, data: bytes, metadata: Sequence[tuple[str, str]], timeout: float) -> None:
        """Take a message, or fail."""
        self.metadata.append(list(metadata))
        self.timeouts.append(timeout)
        self.data.append(data)
        if self.failures:
            raise self.failures.pop(0)


def client(
    script: Script, slept: list[float], token: str = "", jitter: float = 0.0
) -> HealthClient:
    """A client whose pauses are only noted."""
    return HealthClient(script, SOURCE, token_path=token, sleep=slept.append, jitter=lambda: jitter)


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(CallError("UNAVAILABLE", "no such file"), id="not there"),
        pytest.param(CallError("DEADLINE_EXCEEDED", "late"), id="late"),
        pytest.param(CallError("RESOURCE_EXHAUSTED", "busy"), id="busy"),
        pytest.param(CallError("", "no code"), id="without a code"),
        pytest.param(CallError("INTERNAL", "connection reset by peer"), id="reset"),
        pytest.param(CallError("UNKNOWN", "write: broken pipe"), id="pipe"),
        pytest.param(CallError("INTERNAL", "unexpected EOF"), id="end of file"),
    ],
)
def test_what_may_pass_is_tried_again(failure: CallError) -> None:
    """Five attempts with pauses of 2, 3, 4.5 and 6.75 s, each of at most 30 s."""
    slept: list[float] = []
    script = Script(*[failure] * 4)
    client(script, slept).send(EVENT)
    assert slept == [2.0, 3.0, 4.5, 6.75]
    assert script.timeouts == [30.0] * 5
    assert len(set(script.data)) == 1, "all attempts carry the same event and time"


def test_chance_adds_at_most_a_tenth() -> None:
    """So that the checks of a node do not come back together."""
    slept: list[float] = []
    client(Script(CallError("UNAVAILABLE", "")), slept, jitter=1.0).send(EVENT)
    assert slept == [pytest.approx(2.2)]


def test_after_five_attempts_it_is_given_up() -> None:
    """In the words of the original, with the last cause."""
    slept: list[float] = []
    script = Script(*[CallError("UNAVAILABLE", "no such file")] * 9)
    with pytest.raises(AicrError) as caught:
        client(script, slept).send(EVENT)
    assert caught.value.code == SERVICE_UNAVAILABLE
    assert caught.value.message == "Failed to send health event after 5 retries"
    assert isinstance(caught.value.__cause__, CallError)
    assert len(script.data) == 5
    assert len(slept) == 4


def test_after_an_event_that_was_given_up_the_next_ones_get_one_short_attempt() -> None:
    """So that eighty events do not wait twenty minutes for a connector that is away."""
    slept: list[float] = []
    script = Script(*[CallError("UNAVAILABLE", "no such file")] * 7)
    sender = client(script, slept)
    with pytest.raises(AicrError, match="after 5 retries"):
        sender.send(EVENT)
    for _ in range(2):
        with pytest.raises(AicrError, match="away for an earlier one too") as caught:
            sender.send(EVENT)
        assert caught.value.code == SERVICE_UNAVAILABLE
    assert script.timeouts == [30.0] * 5 + [5.0] * 2
    assert slept == [2.0, 3.0, 4.5, 6.75], "the single attempts have no pauses"


@pytest.mark.parametrize(
    "answer", [None, CallError("PERMISSION_DENIED", "no")], ids=["takes", "no"]
)
def test_a_connector_that_is_back_gets_all_attempts_again(answer: CallError | None) -> None:
    """From the first event on that it answers, be it with a refusal."""
    slept: list[float] = []
    away = CallError("UNAVAILABLE", "")
    script = Script(*[away] * 5, *([answer] if answer else []))
    sender = client(script, slept)
    with pytest.raises(AicrError):
        sender.send(EVENT)
    if answer:
        with pytest.raises(AicrError, match="refused"):
            sender.send(EVENT)
    else:
        sender.send(EVENT)
    script.failures = [away] * 4
    sender.send(EVENT)
    assert script.timeouts == [30.0] * 5 + [5.0] + [30.0] * 5


def test_all_times_are_scaled_together() -> None:
    """Pauses, calls, and the short call."""
    scaled = Attempts().scaled(0.5)
    assert (scaled.pauses, scaled.call, scaled.short) == ((1.0, 1.5, 2.25, 3.375), 15.0, 2.5)


@pytest.mark.covers("P11-120")
@pytest.mark.parametrize("status", ["PERMISSION_DENIED", "UNAUTHENTICATED", "INVALID_ARGUMENT"])
def test_a_refusal_is_final(status: str) -> None:
    """One attempt only."""
    slept: list[float] = []
    script = Script(CallError(status, "no"))
    with pytest.raises(AicrError) as caught:
        client(script, slept).send(EVENT)
    assert (len(script.data), slept) == (1, [])
    refused = status in {"PERMISSION_DENIED", "UNAUTHENTICATED"}
    assert caught.value.code == (UNAUTHORIZED if refused else SERVICE_UNAVAILABLE)


def test_the_token_is_read_for_every_attempt_as_it_is(tmp_path: Path) -> None:
    """The kubelet may replace it between two attempts; nothing is trimmed."""
    token = tmp_path / "token"
    token.write_text(" first ")

    def replace_token(seconds: float) -> None:
        token.write_text("second")

    script = Script(CallError("UNAVAILABLE", ""))
    HealthClient(script, SOURCE, token_path=str(token), sleep=replace_token).send(EVENT)
    assert script.metadata == [
        [("authorization", "Bearer  first ")],
        [("authorization", "Bearer second")],
    ]


def test_without_a_token_path_no_token_is_sent() -> None:
    """The connector then pins the event to its own node."""
    script = Script()
    client(script, []).send(EVENT)
    assert script.metadata == [[]]


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"], ids=["missing", "empty", "no text"])
def test_an_event_is_never_sent_without_the_token_that_was_asked_for(
    tmp_path: Path, content: bytes | None
) -> None:
    """Nothing reaches the transport."""
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    script = Script()
    with pytest.raises(AicrError) as caught:
        client(script, [], str(token)).send(EVENT)
    assert caught.value.code == UNAUTHORIZED
    assert script.data == []


def test_events_arrive_over_a_real_socket(tmp_path: Path) -> None:
    """With `unix://` in front of the path, token, strategy and the time of the send."""
    token = tmp_path / "token"
    token.write_text("secret")
    source = Source("preflight-x", "Node", "node-1", "STORE_AND_ANALYSE")
    with receiving() as receiver:
        HealthClient(UnixSocket(f"unix://{receiver.path}"), source, token_path=str(token)).send(
            EVENT
        )
    (event,) = receiver.events
    assert (event.agent, event.nodeName, event.processingStrategy) == ("preflight-x", "node-1", 3)
    assert receiver.metadata[0]["authorization"] == "Bearer secret"
    age = datetime.now(UTC) - event.generatedTimestamp.ToDatetime(UTC)
    assert timedelta(0) <= age < timedelta(minutes=5)


def test_a_connector_that_comes_late_is_found() -> None:
    """Each attempt opens a channel of its own."""
    busy = grpc.StatusCode.UNAVAILABLE
    with receiving(lambda number: busy if number < 3 else None) as receiver:
        slept: list[float] = []
        HealthClient(UnixSocket(receiver.path), SOURCE, sleep=slept.append).send(EVENT)
    assert receiver.calls == 3
    assert len(receiver.events) == 1


def test_a_missing_socket_is_unavailable(tmp_path: Path) -> None:
    """Five attempts, then the error."""
    attempts = Attempts().scaled(0.001)
    told: list[str] = []
    sender = HealthClient(
        UnixSocket(str(tmp_path / "none")), SOURCE, attempts=attempts, progress=told.append
    )
    with pytest.raises(AicrError, match="Failed to send health event after 5 retries"):
        sender.send(EVENT)
    assert [line.split(" failed")[0] for line in told] == [
        f"health event: attempt {number} of 5" for number in range(1, 6)
    ]


def test_a_refusal_over_a_real_socket_keeps_its_status() -> None:
    """PERMISSION_DENIED comes through as such."""
    denied = grpc.StatusCode.PERMISSION_DENIED
    with receiving(lambda number: denied) as receiver, pytest.raises(AicrError) as caught:
        HealthClient(UnixSocket(receiver.path), SOURCE).send(EVENT)
    assert caught.value.context == {"status": "PERMISSION_DENIED"}
    assert receiver.calls == 1
