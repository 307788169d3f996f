"""Events on the wire, as a reader with descriptors of its own sees them."""

from __future__ import annotations

import importlib.util
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.preflight_health.receiver import decode

from aicr.errors import INVALID_REQUEST, AicrError
from aicr.fabric import dcgm_codes
from aicr.preflight.health import wire
from aicr.preflight.health.events import (
    STRATEGIES,
    Event,
    Source,
    as_lines,
    check_strategy,
    finding,
    gpu,
    healthy,
    notice,
)

WHEN = datetime(2026, 9, 23, 10, 11, 12, 500_000, tzinfo=UTC)
SOURCE = Source("preflight-dcgm-diag", "GPU", "node-1", "STORE_ONLY")
NUMBERS = {
    "NONE": 0,
    "COMPONENT_RESET": 2,
    "CONTACT_SUPPORT": 5,
    "RUN_FIELDDIAG": 6,
    "RESTART_VM": 15,
    "RESTART_BM": 24,
    "REPLACE_VM": 25,
    "RUN_DCGMEUD": 26,
    "CUSTOM": 27,
    "UNKNOWN": 99,
}
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.covers("P-211")
def test_every_field_has_its_number() -> None:
    """One event in one message; the fields that checks leave unset are absent."""
    event = finding(
        "DcgmDiagnosticMemory", "bad", "RESTART_VM", "DCGM_FR_X", entities=(gpu("GPU-1"),)
    )
    message = decode(wire.encode(event, SOURCE, WHEN))
    assert message.version == 1
    (found,) = message.events
    assert (found.version, found.agent, found.componentClass) == (1, "preflight-dcgm-diag", "GPU")
    assert (found.checkName, found.message) == ("DcgmDiagnosticMemory", "bad")
    assert (found.isFatal, found.isHealthy, found.recommendedAction) == (True, False, 15)
    assert list(found.errorCode) == ["DCGM_FR_X"]
    assert [(one.entityType, one.entityValue) for one in found.entitiesImpacted] == [
        ("GPU_UUID", "GPU-1")
    ]
    assert found.generatedTimestamp.ToDatetime(UTC) == WHEN
    assert (found.nodeName, found.processingStrategy) == ("node-1", 2)
    assert (found.id, found.customRecommendedAction) == ("", "")


@pytest.mark.parametrize(("action", "number"), NUMBERS.items(), ids=list(NUMBERS))
def test_actions_have_the_numbers_of_the_interface(action: str, number: int) -> None:
    """Every action that a mapping may name can be sent."""
    data = wire.encode(Event("C", "m", False, action=action), SOURCE, WHEN)
    assert decode(data).events[0].recommendedAction == number


def test_every_action_of_the_mapping_can_be_sent() -> None:
    """The list of names and the numbers belong together."""
    assert set(dcgm_codes.ACTIONS) == set(NUMBERS)


@pytest.mark.parametrize(("number", "strategy"), list(enumerate(STRATEGIES)), ids=list(STRATEGIES))
def test_strategies_have_the_numbers_of_the_interface(number: int, strategy: str) -> None:
    """All four, in order."""
    data = wire.encode(healthy("C", "m"), Source("a", "Node", "n", strategy), WHEN)
    assert decode(data).events[0].processingStrategy == number


def test_our_own_reader_gives_the_same_back() -> None:
    """`aicr preflight connector` shows all fields, also those that are false or empty."""
    (found,) = wire.decode(wire.encode(notice("C", "m", "X", action="NONE"), SOURCE, WHEN))
    assert (found["isFatal"], found["isHealthy"], found["errorCode"]) == (False, False, ["X"])
    assert (found["processingStrategy"], found["generatedTimestamp"]) == (
        "STORE_ONLY",
        "2026-09-23T10:11:12.500Z",
    )


@pytest.mark.parametrize("text", ["store_only", "", "ALL"])
def test_an_unknown_strategy_is_refused(text: str) -> None:
    """In the words of the original."""
    with pytest.raises(AicrError) as caught:
        check_strategy(text)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message == f"Invalid PROCESSING_STRATEGY: {text}"


def test_an_event_can_be_read_by_people() -> None:
    """What, about what, and what is to be done."""
    event = finding("C", "m", "RESTART_VM", "X", entities=(gpu("GPU-1"),))
    assert as_lines(event.document()) == [
        "C: FATAL: m",
        "  action RESTART_VM",
        "  code X",
        "  about GPU_UUID GPU-1",
    ]
    assert as_lines(healthy("C", "m").document()) == ["C: healthy: m"]
    assert as_lines(notice("C", "m").document())[0] == "C: not fatal: m"


@pytest.mark.skipif(
    importlib.util.find_spec("grpc_tools") is None, reason="grpcio-tools is not installed"
)
def test_the_generated_messages_are_current() -> None:
    """What is committed is what protoc makes of the .proto; run `make proto` otherwise.

    Which release made it may differ.
    """
    from tools.gen_proto import TARGET, generate

    def without_release(text: str) -> str:
        text = re.sub(r"# Protobuf Python Version: .*\n", "", text)
        return re.sub(r"(Domain\.PUBLIC,)\s+\d+,\s+\d+,\s+\d+,", r"\1", text)

    for name, text in generate().items():
        committed = (TARGET / name).read_text(encoding="utf-8")
        assert without_release(committed) == without_release(text), name


def test_the_proto_holds_no_field_that_the_interface_does_not_name() -> None:
    """Eighteen fields in an event, with the numbers 1 to 18."""
    text = (ROOT / "proto" / "health_event.proto").read_text(encoding="utf-8")
    body = text.partition("message HealthEvent {")[2].partition("}")[0]
    assert [int(number) for number in re.findall(r"= (\d+);", body)] == list(range(1, 19))
