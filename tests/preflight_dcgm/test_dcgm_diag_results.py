"""preflight-dcgm-diag: what each result of the diagnostic leads to."""

from __future__ import annotations

import io

import pytest
from tests.preflight_dcgm.scripted import (
    ENVIRON,
    FAIL,
    NOT_RUN,
    PASS,
    SKIP,
    WARN,
    Ended,
    Engine,
    answer,
    run,
    smi,
    uuid,
)
from tests.preflight_health.receiver import receiving

from aicr.errors import AicrError
from aicr.preflight.checks.dcgm import __main__ as program
from aicr.preflight.checks.dcgm.hostengine import DiagnosticTest, Response
from aicr.preflight.checks.dcgm.response import interpret
from aicr.preflight.health.events import Event, gpu, healthy

MEMORY_FAILS = answer(
    ("software", 0, PASS),
    ("software", 1, PASS),
    ("memory", 0, PASS),
    ("memory", 1, FAIL),
    errors=[("memory", 1, 56, "cannot allocate")],
)


def unhealthy(ended: Ended) -> list[Event]:
    """Events that are not healthy."""
    return [event for event in ended.events if not event.is_healthy]


@pytest.mark.covers("P11-97", "P-185", "P-204", "P-210")
def test_each_result_is_an_event_and_a_failed_test_is_fatal() -> None:
    """Two tests on two GPUs are four events; the failed one names its GPU by UUID."""
    ended = run(MEMORY_FAILS)
    assert len(ended.events) == 4
    assert ended.events[0] == healthy("DcgmDiagnosticSoftware", "Test passed", gpu(uuid(0)))
    (found,) = unhealthy(ended)
    assert found.check_name == "DcgmDiagnosticMemory"
    assert (found.is_fatal, found.action) == (True, "RESTART_VM")
    assert (found.error_codes, found.message) == (("DCGM_FR_MEMORY_ALLOC",), "cannot allocate")
    assert found.entities == (gpu(uuid(1)),)
    assert ended.code == 1
    counts = ended.line("Diagnostic summary")
    assert {key: counts[key] for key in ("passed", "failed", "warned", "skipped", "total")} == {
        "passed": 3,
        "failed": 1,
        "warned": 0,
        "skipped": 0,
        "total": 4,
    }


@pytest.mark.covers("P11-98", "P-206", "P-197")
def test_a_failure_without_remediation_is_told_and_lets_the_pod_start() -> None:
    """DCGM_FR_XID_ERROR: unhealthy, not fatal, no action, exit 0."""
    ended = run(answer(("memory", 0, FAIL), errors=[("memory", 0, 101, "XID 31")]), gpus=[0])
    (found,) = ended.events
    assert (found.is_healthy, found.is_fatal, found.action) == (False, False, "NONE")
    assert found.error_codes == ("DCGM_FR_XID_ERROR",)
    assert ended.code == 0


@pytest.mark.covers("P11-99", "P-205", "P-209", "P-184")
def test_a_warning_is_told_with_its_action_and_lets_the_pod_start() -> None:
    """DCGM_FR_PERSISTENCE_MODE: not fatal, yet with a recommended action."""
    ended = run(answer(("software", 0, WARN), errors=[("software", 0, 29, "off")]), gpus=[0])
    (found,) = ended.events
    assert (found.is_healthy, found.is_fatal, found.action) == (False, False, "CONTACT_SUPPORT")
    assert ended.code == 0


@pytest.mark.parametrize(
    ("result", "fatal"), [pytest.param(WARN, False, id="warn"), pytest.param(FAIL, True, id="fail")]
)
def test_a_result_without_a_code_needs_a_person(result: int, fatal: bool) -> None:
    """CONTACT_SUPPORT and no error code; the text still says what happened."""
    (found,) = run(answer(("pcie", 0, result)), gpus=[0]).events
    assert (found.is_fatal, found.action, found.error_codes) == (fatal, "CONTACT_SUPPORT", ())
    assert found.message.startswith("test ended with ")


def test_of_several_errors_the_worst_decides_and_all_are_told() -> None:
    """Not the last one, whatever their order."""
    errors = [
        ("memory", 0, 56, "first"),
        ("memory", 0, 101, "second"),
        ("memory", 0, 101, "second"),
    ]
    (found,) = run(answer(("memory", 0, FAIL), errors=errors), gpus=[0]).events
    assert (found.is_fatal, found.action) == (True, "RESTART_VM")
    assert (found.error_codes, found.message) == (("DCGM_FR_MEMORY_ALLOC",), "first; second")


def test_a_code_that_the_bindings_do_not_name_needs_a_person() -> None:
    """The number is told."""
    (found,) = run(answer(("memory", 0, FAIL), errors=[("memory", 0, 999, "new")]), gpus=[0]).events
    assert (found.is_fatal, found.action, found.error_codes) == (
        True,
        "CONTACT_SUPPORT",
        ("DCGM_FR_999",),
    )


@pytest.mark.covers("K7", "P-055")
@pytest.mark.parametrize(
    ("response", "code", "verdict", "fatal", "about"),
    [
        pytest.param(
            answer(*(("software", one, PASS) for one in range(8))),
            0,
            "passed",
            0,
            "",
            id="all pass",
        ),
        pytest.param(
            answer(
                *(("software", one, PASS) for one in range(7)),
                ("software", 7, WARN),
                errors=[("software", 7, 29, "off")],
            ),
            0,
            "passed with warnings",
            0,
            uuid(7),
            id="persistence mode",
        ),
        pytest.param(
            answer(
                *(("memory", one, FAIL if one == 3 else PASS) for one in range(8)),
                errors=[("memory", 3, 62, "slow")],
            ),
            1,
            "failed",
            1,
            uuid(3),
            id="one GPU fails",
        ),
        pytest.param(
            answer(*(("software", one, SKIP) for one in range(8))),
            1,
            "could not test",
            0,
            uuid(0),
            id="all skipped",
        ),
        pytest.param(
            answer(
                *(("software", one, PASS) for one in range(8)),
                errors=[("software", 2, 56, "cannot allocate memory")],
            ),
            0,
            "passed with warnings",
            0,
            uuid(2),
            id="a pass with an error beside it",
        ),
        pytest.param(Response((), (), ()), 1, "could not test", 0, uuid(0), id="an empty answer"),
        pytest.param(
            Response((DiagnosticTest("software", PASS, (0, 1)),), (), ()),
            1,
            "could not test",
            0,
            "cannot be read",
            id="a cut answer",
        ),
        pytest.param(
            answer(*(("software", one, PASS) for one in range(7))),
            1,
            "could not test",
            0,
            uuid(7),
            id="a GPU is missing",
        ),
    ],
)
def test_every_kind_of_answer_has_its_verdict(
    response: Response, code: int, verdict: str, fatal: int, about: str
) -> None:
    """A pass is only what ran and passed on every GPU; and only a failed test is fatal."""
    ended = run(response, gpus=range(8))
    assert ended.code == code
    assert f"Check {verdict}" in ended.messages()
    assert sum(event.is_fatal for event in ended.events) == fatal
    found = unhealthy(ended)
    assert bool(found) == bool(about)
    assert all(event.action == "NONE" for event in found if verdict == "could not test")
    told = [f"{event.entities} {event.message}" for event in found]
    assert not about or any(about in text for text in told)


def test_skipped_and_not_run_results_send_nothing() -> None:
    """Beside tests that ran; they count as skipped."""
    ended = run(
        answer(("software", 0, PASS), ("memory", 0, SKIP), ("pcie", 0, NOT_RUN), ("new", 0, 17)),
        gpus=[0],
    )
    assert [event.check_name for event in ended.events] == ["DcgmDiagnosticSoftware"]
    assert ended.line("Diagnostic summary")["skipped"] == 3
    assert ended.code == 0


def test_results_of_other_entities_are_not_taken_for_ours() -> None:
    """Processor 0 is not GPU 0, and another tenant's GPU is not our business."""
    response = answer(
        ("software", "switch", PASS),
        ("software", 0, PASS),
        ("software", 5, FAIL),
        tests={"software": PASS},
    )
    ended = run(response, gpus=[0])
    assert ended.events == [healthy("DcgmDiagnosticSoftware", "Test passed", gpu(uuid(0)))]
    assert ended.code == 0


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(
            answer(
                ("software", 0, PASS),
                ("software", "switch", FAIL),
                errors=[("software", "switch", 27, "switch")],
            ),
            id="a switch fails",
        ),
        pytest.param(
            answer(
                ("software", 0, PASS),
                tests={"software": PASS, "nvlink": FAIL},
                errors=[("nvlink", "switch", 27, "link")],
            ),
            id="a test fails without a result",
        ),
        pytest.param(
            answer(("software", 0, PASS), errors=[("", "system", 27, "nvvs died")]),
            id="DCGM itself fails",
        ),
    ],
)
def test_a_failure_that_names_no_gpu_does_not_pass(response: Response) -> None:
    """One event for the run, not fatal because no GPU is named; the pod does not start."""
    ended = run(response, gpus=[0])
    (found,) = unhealthy(ended)
    assert (found.is_fatal, found.entities, found.error_codes) == (
        False,
        (),
        ("DCGM_FR_FIELD_QUERY",),
    )
    assert ended.code == 1


def test_an_answer_whose_places_do_not_fit_is_refused() -> None:
    """It is of another version, and nothing in it can be trusted."""
    response = Response((DiagnosticTest("software", PASS, (4,)),), (), ())
    with pytest.raises(AicrError, match="test 'software' names result 4 of 0"):
        interpret(response, {0: uuid(0)}, {})


@pytest.mark.covers("P11-105")
def test_gpus_are_matched_by_uuid() -> None:
    """The container's GPUs 0 and 1 are the node's 6 and 7; those are tested and named."""
    engine = Engine()
    response = answer(("memory", 6, PASS), ("memory", 7, FAIL), errors=[("memory", 7, 56, "bad")])
    ended = run(response, gpus=[6, 7], engine=engine)
    assert engine.groups == [[6, 7]]
    assert [event.entities for event in ended.events] == [(gpu(uuid(6)),), (gpu(uuid(7)),)]
    assert ended.code == 1


@pytest.mark.covers("P11-103")
def test_events_say_that_they_are_only_stored() -> None:
    """Over a real socket: four events with strategy 2 and the node's name; exit 0."""
    with receiving() as receiver:
        environ = {
            **ENVIRON,
            "PLATFORM_CONNECTOR_SOCKET": receiver.path,
            "PROCESSING_STRATEGY": "STORE_ONLY",
        }
        engine = Engine([MEMORY_FAILS])
        code = program.main(environ, io.StringIO(), engine=engine, process=smi(0, 1))
    assert code == 0
    assert [event.processingStrategy for event in receiver.events] == [2] * 4
    assert [event.isFatal for event in receiver.events] == [False, False, False, True]
    assert {(one.agent, one.componentClass, one.nodeName) for one in receiver.events} == {
        ("preflight-dcgm-diag", "GPU", "node-1")
    }


@pytest.mark.covers("P11-103", "P-202", "K9")
def test_store_only_tells_the_same_and_lets_the_pod_start() -> None:
    """The same events; exit 0, and the line that operators search for."""
    plain, stored = run(MEMORY_FAILS), run(MEMORY_FAILS, PROCESSING_STRATEGY="STORE_ONLY")
    assert stored.events == plain.events
    assert (plain.code, stored.code) == (1, 0)
    assert "Check failed (STORE_ONLY — not blocking pod)" in stored.messages()
    assert "Check failed (STORE_ONLY — not blocking pod)" not in plain.messages()
    # Only that strategy; the other that merely stores does not change the gate.
    assert run(MEMORY_FAILS, PROCESSING_STRATEGY="STORE_AND_ANALYSE").code == 1


@pytest.mark.covers("P-198", "P-199")
def test_only_a_failed_test_on_a_gpu_is_fatal() -> None:
    """Everything else that can be reported leaves the node schedulable."""
    assert [event.is_fatal for event in run(MEMORY_FAILS).events] == [False, False, False, True]
    harmless = [
        run(gpus=[]),
        run(answer(("software", 0, SKIP)), gpus=[0]),
        run(answer(("software", 0, WARN)), gpus=[0]),
        run(gpus=[0], mig=[0]),
        run(gpus=[0], DCGM_HOSTENGINE_ADDR="bad:5555"),
    ]
    for ended in harmless:
        assert ended.events
        assert not any(event.is_fatal or event.is_healthy for event in ended.events)


@pytest.mark.covers("K7")
def test_a_gpu_with_mig_is_named_and_the_others_are_tested() -> None:
    """DCGM cannot diagnose it; that is told, and no reason to keep the pod from starting."""
    engine = Engine()
    ended = run(gpus=[0, 1, 2], mig=[1], engine=engine)
    assert engine.groups == [[0, 2]]
    (found,) = [event for event in unhealthy(ended) if event.entities == (gpu(uuid(1)),)]
    assert "MIG" in found.message
    assert not found.is_fatal


def test_with_mig_everywhere_nothing_is_asked_of_dcgm() -> None:
    """Each GPU is named, and the pod starts."""
    engine = Engine()
    ended = run(gpus=[0, 1], mig=[0, 1], engine=engine)
    assert (engine.asked, ended.code) == ([], 0)
    assert [event.entities for event in ended.events] == [(gpu(uuid(0)),), (gpu(uuid(1)),)]
    assert "Check could not test" in ended.messages()
