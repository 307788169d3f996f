"""preflight-dcgm-diag: addresses, retries, signals, settings, and what keeps it from testing."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.preflight_dcgm.scripted import (
    FAIL,
    PASS,
    Engine,
    answer,
    busy,
    run,
    signals,
    smi,
    uuid,
    waits,
)

from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.checks.dcgm import settings as dcgm_settings
from aicr.preflight.health.events import Event

FINE = answer(("software", 0, PASS))


@pytest.mark.covers("P11-102", "P-060", "P-061", "P-056")
def test_addresses_are_tried_in_order() -> None:
    """The first that answers is used; later ones are not asked."""
    engine = Engine()
    ended = run(
        FINE, gpus=[0], engine=engine, DCGM_HOSTENGINE_ADDR=" bad:5555, good:5555 ,,other:5555"
    )
    assert engine.asked == ["bad:5555", "good:5555"]
    assert ended.code == 0
    assert engine.closed == 1


@pytest.mark.covers("P11-102", "P-186", "K7")
def test_when_no_address_answers_the_pod_is_held_and_nobody_blamed() -> None:
    """One event that names each address and cause; not fatal by decision 19; exit 1."""
    ended = run(gpus=[0], DCGM_HOSTENGINE_ADDR="bad:5555,worse:5555")
    (found,) = ended.events
    assert (found.check_name, found.is_fatal, found.action) == ("DcgmDiagnostic", False, "NONE")
    assert "bad:5555: connection refused" in found.message
    assert "worse:5555: connection refused" in found.message
    assert (found.error_codes, found.entities) == ((), ())
    assert ended.code == 1
    assert run(gpus=[0], DCGM_HOSTENGINE_ADDR="bad:1", PROCESSING_STRATEGY="STORE_ONLY").code == 0


@pytest.mark.covers("P11-100", "K7", "P-062", "P-063", "P-064", "P-065", "P-066", "P-207")
def test_a_status_that_stays_ends_as_a_notice() -> None:
    """Ten runs, nine pauses of 10 s, one event with the status and no action, exit 0."""
    engine = Engine()
    ended = run(busy("DCGM_ST_IN_USE"), gpus=[0], engine=engine)
    assert ended.slept == [10.0] * 9
    assert len(engine.levels) == 10
    (found,) = ended.events
    assert (found.is_healthy, found.is_fatal, found.action) == (False, False, "NONE")
    assert found.error_codes == ("DCGM_ST_IN_USE",)
    assert found.message == (
        "DCGM diagnostic returned DCGM_ST_IN_USE after 10 attempts; diagnostic did not complete"
    )
    assert (ended.code, engine.stops, engine.closed) == (0, 0, 1)


def test_a_status_that_passes_is_no_finding() -> None:
    """Attempts and pause are settings."""
    engine = Engine()
    ended = run(
        busy("DCGM_ST_IN_USE"),
        busy("DCGM_ST_DIAG_BAD_JSON"),
        FINE,
        gpus=[0],
        engine=engine,
        DCGM_DIAG_STATUS_RETRY_MAX_ATTEMPTS="3",
        DCGM_DIAG_STATUS_RETRY_INTERVAL_SECONDS="0.5",
    )
    assert (ended.slept, ended.code, len(engine.levels)) == ([0.5, 0.5], 0, 3)
    assert [event.is_healthy for event in ended.events] == [True]


@pytest.mark.covers("P11-101", "P-062")
def test_a_diagnostic_that_was_left_running_is_stopped_before_the_last_attempt() -> None:
    """Once, and the number of attempts stays a maximum (decision 75)."""
    engine = Engine()
    ended = run(*[busy("DCGM_ST_DIAG_ALREADY_RUNNING")] * 9, FINE, gpus=[0], engine=engine)
    assert (engine.stops, len(engine.levels), ended.code) == (1, 10, 0)
    assert [event.is_healthy for event in ended.events] == [True]


def test_another_status_stops_nothing() -> None:
    """Only a diagnostic that runs can be stopped, and one attempt leaves no time for it."""
    engine = Engine()
    ended = run(
        busy("DCGM_ST_DIAG_ALREADY_RUNNING"),
        gpus=[0],
        engine=engine,
        DCGM_DIAG_STATUS_RETRY_MAX_ATTEMPTS="1",
    )
    assert (engine.stops, len(engine.levels), ended.slept, ended.code) == (0, 1, [], 0)
    assert ended.events[0].error_codes == ("DCGM_ST_DIAG_ALREADY_RUNNING",)


def test_another_failure_is_not_tried_again() -> None:
    """It could not be tested: not fatal, exit 1."""
    engine = Engine()
    ended = run(AicrError(INTERNAL, "TypeError: of a kind"), gpus=[0], engine=engine)
    assert (len(engine.levels), ended.slept, ended.code, engine.closed) == (1, [], 1, 1)
    (found,) = ended.events
    assert (found.is_fatal, found.action, found.message) == (False, "NONE", "TypeError: of a kind")


def test_a_run_that_never_ends_is_stopped() -> None:
    """The limit of the level, or of the settings; then as with any status that stays."""
    engine = Engine()
    ended = run(waits, gpus=[0], engine=engine, DCGM_DIAG_TIMEOUT_SECONDS="0.05")
    assert (engine.stops, ended.code) == (1, 0)
    assert ended.events[0].error_codes == ("DCGM_ST_TIMEOUT",)


@pytest.mark.covers("P11-106")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_a_signal_stops_the_diagnostic(number: signal.Signals, code: int) -> None:
    """Nothing of ours is left running on the hostengine; no event is sent."""
    engine = Engine()
    before = signal.getsignal(number)
    ended = run(signals(number), gpus=[0], engine=engine)
    assert (engine.stops, ended.code, ended.events, engine.closed) == (1, code, [], 1)
    assert signal.getsignal(number) is before
    # STORE_ONLY does not turn an interruption into a pass.
    assert run(signals(number), gpus=[0], PROCESSING_STRATEGY="STORE_ONLY").code == code


def test_without_gpus_there_is_nothing_to_test() -> None:
    """The pod is held, and no node is blamed."""
    engine = Engine()
    ended = run(gpus=[], engine=engine)
    assert (ended.code, engine.asked) == (1, [])
    assert [event.message for event in ended.events] == ["No GPUs allocated to this container"]
    assert not ended.events[0].is_fatal


def test_a_driver_that_is_not_there_is_an_event_and_no_traceback() -> None:
    """And STORE_ONLY masks it as any other failure."""
    broken = smi(failure="couldn't communicate with the NVIDIA driver")
    ended = run(process=broken)
    assert ended.code == 1
    assert "couldn't communicate with the NVIDIA driver" in ended.events[0].message
    assert run(process=broken, PROCESSING_STRATEGY="STORE_ONLY").code == 0


def test_a_gpu_that_the_hostengine_does_not_know_is_an_error() -> None:
    """It is the hostengine of another node; nothing is tested there."""
    engine = Engine(known=[0, 1])
    ended = run(gpus=[1, 6], engine=engine)
    assert (engine.groups, engine.levels, ended.code) == ([], [], 1)
    assert uuid(6) in ended.events[0].message
    assert uuid(1) not in ended.events[0].message
    assert not ended.events[0].is_fatal


@pytest.mark.covers("P11-104")
def test_events_that_cannot_be_sent_do_not_change_the_code() -> None:
    """They stand in the log, whole."""

    def refuse(event: Event) -> None:
        raise AicrError(SERVICE_UNAVAILABLE, "Failed to send health event after 5 retries")

    ended = run(FINE, gpus=[0], report=refuse)
    assert ended.code == 0
    line = ended.line("Failed to send health event after 5 retries")
    assert line["event"]["checkName"] == "DcgmDiagnosticSoftware"
    failing = answer(("memory", 0, FAIL), errors=[("memory", 0, 56, "x")])
    assert run(failing, gpus=[0], report=refuse).code == 1


@pytest.mark.covers("P11-104")
def test_a_missing_connector_is_tried_five_times_an_event(tmp_path: Path) -> None:
    """Through the real client, with shortened pauses."""
    import io
    import json

    from aicr.preflight.checks.dcgm import __main__ as program

    stream = io.StringIO()
    environ = {
        "DCGM_HOSTENGINE_ADDR": "good:5555",
        "PLATFORM_CONNECTOR_SOCKET": str(tmp_path / "none"),
        "NODE_NAME": "node-1",
        "AICR_TIMEOUT_FACTOR": "0.001",
        "AICR_LOG_FORMAT": "json",
    }
    code = program.main(environ, stream, engine=Engine([FINE]), process=smi(0))
    messages = [json.loads(line)["msg"] for line in stream.getvalue().splitlines()]
    tries = [message for message in messages if message.startswith("health event: attempt")]
    assert (code, len(tries)) == (0, 5)
    assert "Failed to send health event after 5 retries" in messages


@pytest.mark.covers("P11-96", "P-187", "P-201")
@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("DCGM_DIAG_LEVEL", "5", "DCGM_DIAG_LEVEL must be 1-4, got 5"),
        ("DCGM_DIAG_LEVEL", "0", "DCGM_DIAG_LEVEL must be 1-4, got 0"),
        ("DCGM_DIAG_LEVEL", "x", "DCGM_DIAG_LEVEL must be a whole number, got x"),
        ("DCGM_DIAG_LEVEL", "1_0", "DCGM_DIAG_LEVEL must be a whole number, got 1_0"),
        ("DCGM_HOSTENGINE_ADDR", " , ", "DCGM_HOSTENGINE_ADDR is required"),
        ("PLATFORM_CONNECTOR_SOCKET", "", "PLATFORM_CONNECTOR_SOCKET is required"),
        ("NODE_NAME", "", "NODE_NAME is required"),
        (
            "DCGM_DIAG_STATUS_RETRY_MAX_ATTEMPTS",
            "0",
            "DCGM_DIAG_STATUS_RETRY_MAX_ATTEMPTS must be >= 1, got 0",
        ),
        (
            "DCGM_DIAG_STATUS_RETRY_INTERVAL_SECONDS",
            "0",
            "DCGM_DIAG_STATUS_RETRY_INTERVAL_SECONDS must be > 0, got 0.0",
        ),
        (
            "DCGM_DIAG_STATUS_RETRY_INTERVAL_SECONDS",
            "nan",
            "DCGM_DIAG_STATUS_RETRY_INTERVAL_SECONDS must be a finite number, got nan",
        ),
        ("DCGM_DIAG_TIMEOUT_SECONDS", "-1", "DCGM_DIAG_TIMEOUT_SECONDS must be > 0, got -1.0"),
        ("PROCESSING_STRATEGY", "LATER", "Invalid PROCESSING_STRATEGY: LATER"),
    ],
)
def test_a_wrong_configuration_ends_before_anything_is_asked(
    variable: str, value: str, message: str
) -> None:
    """Exit 1, no event, and STORE_ONLY does not help."""
    engine = Engine()
    environ = {"PROCESSING_STRATEGY": "STORE_ONLY", variable: value}
    ended = run(gpus=[0], engine=engine, environ=environ)
    assert (ended.code, ended.events, engine.asked) == (1, [], [])
    assert ended.line("Configuration error")["error"] == message


def test_complaints_come_in_the_order_of_the_original() -> None:
    """Numbers first, then what is required, then ranges, then the strategy."""
    ended = run(DCGM_DIAG_LEVEL="7", NODE_NAME="", PROCESSING_STRATEGY="X")
    assert ended.line("Configuration error")["error"] == "NODE_NAME is required"
    ended = run(DCGM_DIAG_LEVEL="7", PROCESSING_STRATEGY="X")
    assert ended.line("Configuration error")["error"] == "DCGM_DIAG_LEVEL must be 1-4, got 7"
    ended = run(DCGM_DIAG_STATUS_RETRY_MAX_ATTEMPTS="x", DCGM_HOSTENGINE_ADDR="")
    assert "must be a whole number" in ended.line("Configuration error")["error"]


def test_an_unknown_log_level_is_a_configuration_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Told in text, because the log could not be set up."""
    import io

    from aicr.preflight.checks.dcgm import __main__ as program

    stream = io.StringIO()
    assert program.main({"LOG_LEVEL": "loud"}, stream) == 1
    assert "LOG_LEVEL 'loud' does not exist" in stream.getvalue()


def test_a_bug_ends_with_a_line_and_no_traceback() -> None:
    """Exit 1, or 0 under STORE_ONLY; the line says where."""

    def break_down(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("oops")

    ended = run(process=break_down)  # type: ignore[arg-type]
    assert ended.code == 1
    line = ended.line("Unexpected error: this is a bug of the check")
    assert line["error"] == "ZeroDivisionError: oops"
    assert line["where"].startswith("aicr/preflight/") or line["where"]
    assert run(process=break_down, PROCESSING_STRATEGY="STORE_ONLY").code == 0  # type: ignore[arg-type]


@pytest.mark.covers("P-057", "P-058")
def test_the_levels_are_those_of_dcgm() -> None:
    """Level 2 unless another is asked for; how long each takes is said."""
    engine = Engine()
    run(FINE, gpus=[0], engine=engine)
    ended = run(FINE, gpus=[0], engine=engine, DCGM_DIAG_LEVEL="4")
    assert engine.levels == [2, 4]
    assert ended.line("Running DCGM diagnostic")["diagnostic"] == "xlong"
    assert {
        number: (level.constant, level.name, level.takes)
        for number, level in dcgm_settings.LEVELS.items()
    } == {
        1: ("DCGM_DIAG_LVL_SHORT", "short", "about 30 s"),
        2: ("DCGM_DIAG_LVL_MED", "medium", "about 2 min"),
        3: ("DCGM_DIAG_LVL_LONG", "long", "about 15 min"),
        4: ("DCGM_DIAG_LVL_XLONG", "xlong", "1 to 2 hours"),
    }


@pytest.mark.covers("P-059")
def test_the_default_addresses_are_both_services_of_the_gpu_operator() -> None:
    """The one of GPUCluster mode first."""
    settings, _ = dcgm_settings.read(
        {"DCGM_HOSTENGINE_ADDR": dcgm_settings.DEFAULT_ADDRESSES}, sends=False
    )
    assert settings.addresses == (
        "nvidia-dcgm-dra.gpu-operator.svc:5555",
        "nvidia-dcgm.gpu-operator.svc:5555",
    )
    assert (settings.level, settings.attempts, settings.interval) == (2, 10, 10.0)


def test_an_operators_mapping_replaces_the_built_in_one(tmp_path: Path) -> None:
    """A file that is named and missing maps nothing, which is the safe side, and is told."""
    file = tmp_path / "mapping.csv"
    file.write_text("DCGM_FR_MEMORY_ALLOC,NONE\nDCGM_FR_XID_ERROR,REBOOT\n")
    failing = answer(("memory", 0, FAIL), errors=[("memory", 0, 56, "x")])
    ended = run(failing, gpus=[0], DCGM_ERROR_MAPPING_PATH=str(file))
    assert (ended.code, ended.events[0].action) == (0, "NONE")
    assert any("'REBOOT' is no action" in message for message in ended.messages())
    harmless = answer(("memory", 0, FAIL), errors=[("memory", 0, 101, "x")])
    ended = run(harmless, gpus=[0], DCGM_ERROR_MAPPING_PATH=str(tmp_path / "none"))
    assert (ended.code, ended.events[0].action) == (1, "CONTACT_SUPPORT")
    assert any("cannot be read" in message for message in ended.messages())
