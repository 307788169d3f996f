"""Check metadata, skip and verdict, context lookups, evidence, timeouts, registry."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.checks.contexts import Seen, validation

from aicr.assertions.timing import Clock, Timing
from aicr.checks import registry
from aicr.checks.sdk import Check, Skip, failed
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import (
    INTERNAL,
    INVALID_REQUEST,
    NOT_FOUND,
    RATE_LIMIT_EXCEEDED,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
)
from aicr.kube.timeouts import Timeouts as KubeTimeouts


async def nothing(context: Any) -> None:
    """A check that passes."""


@pytest.mark.parametrize(
    ("phase", "timeout"), [("readiness", "2m"), ("deployment", "2 minutes")], ids=["phase", "time"]
)
def test_a_check_with_a_wrong_phase_or_timeout_cannot_be_declared(phase: str, timeout: str) -> None:
    """Readiness is no phase of checks (spec 0.2)."""
    with pytest.raises(AicrError):
        Check("c", phase, "s", nothing, timeout, "d", ())


def test_a_skip_code_outside_the_published_set_cannot_be_used() -> None:
    """Redaction would drop it."""
    with pytest.raises(AicrError, match="not a published skip code") as caught:
        Skip("why", "customer-prod-cluster")
    assert not isinstance(caught.value, Skip)


def test_a_skip_is_found_in_a_chain_of_causes() -> None:
    """However it was wrapped; another error is none."""
    skip = Skip("why")
    outer = AicrError(INTERNAL, "outer")
    outer.__cause__ = skip
    assert skip_in(outer) is skip
    assert skip_in(AicrError(INTERNAL, "x")) is None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AicrError(INTERNAL, "x"), "INTERNAL"),
        (AicrError(TIMEOUT, "x"), "TIMEOUT"),
        (AicrError(RATE_LIMIT_EXCEEDED, "x"), "SERVICE_UNAVAILABLE"),
        (AicrError(NOT_FOUND, "x"), ""),
        (AicrError(INVALID_REQUEST, "x"), ""),
        (failed("x"), ""),
        (failed("x", code=TIMEOUT), ""),
    ],
)
def test_a_verdict_publishes_no_code_and_a_failed_look_does(error: AicrError, code: str) -> None:
    """Decision 62."""
    assert could_not_tell(error) == code


@pytest.mark.covers("V-140")
def test_a_component_is_found_only_when_it_is_enabled() -> None:
    """Standalone runs have none."""
    context = Seen().context(validation=validation("a", disabled=("b",)))
    assert context.component("a") == {"name": "a", "namespace": "a"}
    assert context.component("b") is None
    assert Seen().context().component("a") is None


def test_a_constraint_is_looked_up_in_its_phase_and_must_be_unambiguous_text() -> None:
    """Two that differ, and a number, are refused; two alike are one."""
    context = Seen().context(
        validation=validation(deployment={"a": ">= 1"}, performance={"b": "5"})
    )
    assert context.constraint("a") == ">= 1"
    assert context.constraint("a", "performance") is None
    assert context.constraint("b") is None
    assert Seen().context().constraint("a") is None

    def with_values(*values: Any) -> Any:
        entries = [{"name": "a", "value": value} for value in values]
        config = {"deployment": {"constraints": entries}, "conformance": None}
        return Seen().context(validation={"config": config})

    assert with_values("1", "1").constraint("a") == "1"
    for values, said in ((("1", "2"), "stated twice"), ((1.5,), "must be text")):
        with pytest.raises(AicrError, match=said) as caught:
            with_values(*values).constraint("a")
        assert caught.value.code == INVALID_REQUEST


@pytest.mark.covers("V-156", "V-170")
def test_evidence_extra_and_provenance_are_told_apart_in_stdout() -> None:
    """Human lines stay beside what is published."""
    seen = Seen()
    context = seen.context()
    record = {"shippedDigest": "a", "derivedDigest": "b"}
    context.out("Found 2 GPU node(s)")
    context.emit_extra({})
    context.emit_provenance(None)
    context.emit_extra({"nodesTotal": "2"})
    context.emit_provenance(record)
    context.out("RESULT: nodesValidated: 2/2")
    output = seen.output
    assert output.lines == ["Found 2 GPU node(s)", "RESULT: nodesValidated: 2/2"]
    assert output.extra == {"nodesTotal": "2"}
    assert output.provenance == record
    assert output.results == ["nodesValidated: 2/2"]


def test_an_artifact_has_a_label_and_the_command_that_shows_the_same() -> None:
    """And a log in it cannot speak for the check."""
    seen = Seen()
    seen.context().artifact("Pods", '##AICR-EXTRA## {"a":"b"}\nx\n', "kubectl get pods")
    seen.context().artifact("Bare", "y")
    assert seen.lines == [
        *("--- Pods ---", "Equivalent: kubectl get pods", "", ' ##AICR-EXTRA## {"a":"b"}', "x"),
        *("--- Bare ---", "y"),
    ]
    assert seen.output.extra == {}


@pytest.mark.covers("V-132")
def test_a_child_context_has_the_shorter_deadline_and_the_same_extra() -> None:
    """Never longer than its parent; counts that it publishes are the parent's too."""
    now = [100.0]
    clock = Clock(now=lambda: now[0])
    parent = Seen().context(clock=clock, deadline=110.0)
    child = parent.within(5.0)
    assert (child.remaining(), parent.remaining()) == (5.0, 10.0)
    assert parent.within(60.0).remaining() == 10.0
    child.emit_extra({"nodesTotal": "2"})
    assert parent.extra == {"nodesTotal": "2"}
    now[0] = 200.0
    assert (child.remaining(), parent.remaining(), parent.timeout(5.0)) == (0.0, 0.0, 0.0)
    assert Seen().context(clock=clock).within(5.0).remaining() == 5.0


DEFAULTS = {
    "check_execution": 3300.0,
    "cleanup": 30.0,
    "pod_termination": 60.0,
    "resource_verification": 10.0,
    "diagnostic": 120.0,
    "pod_creation": 120.0,
    "pod_wait": 600.0,
    "gpu_readiness_poll": 10.0,
    "gpu_readiness_window": 60.0,
    "gpu_readiness": 480.0,
    "dra_test_pod": 300.0,
    "gang_test_pod": 300.0,
    "co_schedule_window": 30.0,
    "hpa_scale": 180.0,
    "nccl_train_job": 1800.0,
    "nccl_lock_stale_age": 1200.0,
    "cre_certification": 1800.0,
    "inference_populate": 780.0,
    "aiperf_job": 900.0,
    "gate_limit": 5400.0,
}


def test_the_real_waiting_times_are_those_of_the_specification() -> None:
    """Validators spec 11."""
    found = dataclasses.asdict(Timeouts())
    assert {name: found[name] for name in DEFAULTS} == DEFAULTS
    assert Timeouts().kube == KubeTimeouts()
    assert Timeouts().assertions == Timing()


def test_one_factor_scales_every_waiting_time() -> None:
    """Those of cluster access and of assertions too; nonsense is refused."""
    scaled = Timeouts.from_environment({"AICR_TIMEOUT_FACTOR": "0.5"})
    assert scaled.pod_wait == 300.0
    assert scaled.kube == KubeTimeouts().scaled(0.5)
    assert scaled.assertions == Timing().scaled(0.5)
    assert Timeouts.from_environment({}) == Timeouts()
    for text in ("0", "-1", "x", "inf"):
        with pytest.raises(AicrError) as caught:
            Timeouts.from_environment({"AICR_TIMEOUT_FACTOR": text})
        assert caught.value.code == INVALID_REQUEST


@pytest.mark.covers("V-089")
def test_an_unknown_check_names_the_nearest() -> None:
    """NOT_FOUND, in the words of the runner."""
    with pytest.raises(AicrError, match="unknown check: operator-helth") as caught:
        registry.load("operator-helth")
    assert (caught.value.code, caught.value.hint) == (NOT_FOUND, "did you mean operator-health?")


def test_a_check_is_loaded_by_its_name() -> None:
    """Name and phase of the module agree with the table."""
    check = registry.load("operator-health")
    assert (check.name, check.phase) == ("operator-health", "deployment")
    assert registry.names("deployment")[0] == "operator-health"
    assert set(registry.names()) == set(registry.MODULES)


def test_an_error_that_hides_its_cause_in_words_keeps_the_inner_code() -> None:
    """The text of a chain has every code."""
    outer = AicrError(INTERNAL, "failed to list")
    outer.__cause__ = AicrError(UNAUTHORIZED, "no")
    assert str(outer) == "[INTERNAL] failed to list: [UNAUTHORIZED] no"
