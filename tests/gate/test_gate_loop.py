"""The gate on a cluster, in virtual time: evaluations, verdicts, the window and the deadline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.assertions import fake_cluster
from tests.assertions.fake_cluster import FakeCluster, check, pod

from aicr.assertions import gate, gate_loop
from aicr.assertions.document import HealthCheck, read_check
from aicr.assertions.gate import Settings, Verdict
from aicr.assertions.gate_loop import Evaluation, read_bundle, watch
from aicr.assertions.timing import Timing
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import (
    INVALID_REQUEST,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
    not_found,
)

SETTINGS = Settings(poll=10.0, window=30.0, max_wait=600.0)
EVALUATION = Timing(budget=120.0)
POD = "{apiVersion: v1, kind: Pod, status: {phase: %s}}"


def asserting(*resources: str, **more: str) -> list[HealthCheck]:
    """Checks called c0, c1 and so on, each an assert."""
    return [
        read_check(check("assert", text, **more), source="f", component=f"c{number}")
        for number, text in enumerate(resources)
    ]


def ends(
    cluster: FakeCluster, checks: list[HealthCheck], **more: Any
) -> tuple[Evaluation, list[Evaluation]]:
    """The last evaluation, and all of them."""
    told: list[Evaluation] = []
    settings = more.pop("settings", SETTINGS)
    more.setdefault("timing", EVALUATION)
    last = fake_cluster.run(watch(cluster.port, checks, settings, told=told.append, **more))
    return last, told


def test_the_times_of_the_product_are_these() -> None:
    """2 m an evaluation, 10 s, 30 s, 90 m (validators spec 11), and they scale together."""
    times = Timeouts()
    assert (times.gate_exec, times.gate_poll) == (120, 10)
    assert (times.gate_window, times.gate_limit) == (30, 5400)


@pytest.mark.covers("V-400")
def test_a_healthy_component_opens_the_gate_after_the_window() -> None:
    """Three pauses of ten seconds, then True."""
    last, told = ends(FakeCluster(pod("p1")), asserting(POD % "Running"))
    assert (last.step.ready, last.elapsed, last.number) == (True, 30, 4)
    assert [each.step.reason for each in told] == ["Stabilizing"] * 3 + ["AllPass"]
    assert last.step.message == "All 1 component(s) passing (stable for 30s)"
    assert gate_loop.failure(last) is None


def test_a_relapse_starts_the_window_anew() -> None:
    """Healthy, then not for a moment, then healthy."""
    cluster = FakeCluster()
    cluster.plan("v1/Pod", lambda now: [pod("p1", "Pending" if 20 <= now < 24 else "Running")])
    last, told = ends(cluster, asserting(POD % "Running"), timing=Timing(budget=2.0))
    reasons = [(each.elapsed, each.step.reason) for each in told]
    assert (22, "ComponentsFailing") in reasons
    assert (last.step.ready, last.elapsed) == (True, 62)


@pytest.mark.covers("V-403")
@pytest.mark.parametrize(
    ("error", "result", "text"),
    [
        (AicrError(SERVICE_UNAVAILABLE, "an API group cannot be reached"), "Unknown", "reached"),
        (AicrError(UNAUTHORIZED, "no", context={"status": 403}), "Unknown", "(HTTP 403): no"),
        (not_found("gone"), "Fail", "gone"),
        (None, "Fail", "exists (labels=)"),
    ],
    ids=["outage", "forbidden", "kind-absent", "object-absent"],
)
def test_a_state_that_was_not_established_is_unknown_and_no_failure(
    error: AicrError | None, result: str, text: str
) -> None:
    """Both hold the gate to the deadline; the word sends the operator to the right place."""
    cluster = FakeCluster()
    cluster.plan("v1/Pod", lambda now: error or [])
    last, _ = ends(cluster, asserting(POD % "Running"))
    assert last.elapsed == pytest.approx(600, abs=5)
    assert last.step.reason == "DeadlineExceeded"
    assert last.step.message == "Gate did not become Ready within 10m0s"
    assert (last.sample[0].result, text in last.sample[0].message) == (result, True)
    failure = gate_loop.failure(last)
    assert failure is not None
    assert failure.code == TIMEOUT
    assert f"1 component(s) failing: c0: {result} (" in failure.message
    assert ("no verdict about the component" in failure.hint) is (result == "Unknown")


def test_one_component_holds_back_all() -> None:
    """All must pass in the same evaluation."""
    last, _ = ends(FakeCluster(pod("p1")), asserting(POD % "Running", POD % "Failed"))
    assert [each.result for each in last.sample] == ["Pass", "Fail"]
    assert not last.step.ready


def test_a_component_that_never_is_ready_ends_at_the_deadline() -> None:
    """The last evaluation gets 5 s at the most, so --timeout does not put off the end."""
    last, told = ends(
        FakeCluster(pod("p1", "Pending")),
        asserting(POD % "Running"),
        settings=Settings(10.0, 30.0, 130.0),
    )
    assert [each.elapsed for each in told] == [120, 135]
    assert last.step.reason == "DeadlineExceeded"


def test_a_streak_that_is_too_young_at_the_deadline_is_told_as_such() -> None:
    """Passing is not enough, stable passing is."""
    cluster = FakeCluster()
    cluster.plan("v1/Pod", lambda now: [pod("p1", "Running" if now > 90 else "Pending")])
    last, _ = ends(cluster, asserting(POD % "Running"), settings=Settings(10.0, 30.0, 100.0))
    failure = gate_loop.failure(last)
    assert failure is not None
    assert "all components pass, but not for long enough yet" in failure.message


@pytest.mark.covers("V-432")
def test_a_test_that_asks_for_more_is_cut_to_the_gates_time() -> None:
    """`assert: 5m` in a gate's test ends after the 2 m of one evaluation."""
    _, told = ends(FakeCluster(pod("p1", "Pending")), asserting(POD % "Running", timeout="5m"))
    assert told[0].elapsed == 120


def test_an_unknown_kind_has_a_grace_in_each_evaluation() -> None:
    """30 s (decision 68), so its CRD may come while the gate waits."""
    cluster = FakeCluster()
    absent = not_found('the server has no kind "Pod" in v1', context={"absent": "kind"})
    cluster.plan("v1/Pod", lambda now: absent if now < 95 else [pod("p1")])
    last, told = ends(cluster, asserting(POD % "Running"))
    assert [each.elapsed for each in told[:3]] == [30, 70, 95]
    assert last.step.ready


def test_a_field_that_is_not_there_yet_holds_the_gate_and_does_not_end_it() -> None:
    """What cannot be evaluated now may be evaluated later."""
    cluster = FakeCluster()
    filled, bare = pod("p1", conditions=[{"type": "Ready"}]), pod("p1")
    cluster.plan("v1/Pod", lambda now: [filled if now >= 15 else bare])
    unguarded = (
        "{apiVersion: v1, kind: Pod, "
        "status: {\"(conditions[?type=='Ready'] | length(@) > `0`)\": true}}"
    )
    last, told = ends(cluster, asserting(unguarded))
    assert told[0].sample[0].result == "Fail"
    assert last.step.ready


@pytest.mark.covers("V-402")
def test_the_gates_namespace_is_for_resources_that_name_none() -> None:
    """The tree itself is unchanged: no namespace is asserted."""
    cluster = FakeCluster(pod("p1"))
    ends(cluster, asserting(POD % "Running"), namespace="ns")
    assert {asked[3] for asked in cluster.asked} == {"ns"}
    other = "{apiVersion: v1, kind: Pod, metadata: {namespace: other}}"
    cluster = FakeCluster()
    ends(cluster, asserting(other), namespace="ns", settings=Settings(1.0, 0.0, 3.0))
    assert {asked[3] for asked in cluster.asked} == {"other"}


def test_a_gate_without_tests_is_refused() -> None:
    """It would open whatever happens."""
    with pytest.raises(AicrError, match="open whatever happens"):
        ends(FakeCluster(), [])


def test_a_result_becomes_a_verdict_with_the_end_of_its_message() -> None:
    """Pass, Fail, Unknown; 120 characters."""
    result = {"component": "c", "verdict": "unknown", "message": "a" * 200}
    assert gate_loop.verdict(result) == Verdict("c", gate.UNKNOWN, "a" * 120)
    assert gate_loop.verdict({**result, "verdict": "pass", "message": ""}).result == gate.PASS


def test_a_folder_is_read_as_a_mounted_config_map_is(tmp_path: Path) -> None:
    """*.yaml by name, through links; folders and other files are left alone."""
    data = tmp_path / "..2026"
    data.mkdir()
    for name in ("b.yaml", "a.yaml"):
        (data / name).write_text(check("assert", POD % "Running"), encoding="utf-8")
        (tmp_path / name).symlink_to(data / name)
    (tmp_path / "sub.yaml").mkdir()
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    assert [found.component for found in read_bundle(str(tmp_path))] == ["a", "b"]


@pytest.mark.parametrize(
    ("files", "code", "text"),
    [
        (None, NOT_FOUND, "does not exist"),
        ({}, INVALID_REQUEST, "holds no *.yaml"),
        ({"a.txt": b"x"}, INVALID_REQUEST, "holds no *.yaml"),
        ({"a.yaml": b"\xff"}, INVALID_REQUEST, "not UTF-8"),
        ({"a.yaml": b""}, INVALID_REQUEST, "declares no resources to assert"),
        ({"a.yaml": b"a: ["}, INVALID_REQUEST, "failed to parse document 0"),
        (
            {"a.yaml": check("script", "x").encode()},
            INVALID_REQUEST,
            'uses operation "script"',
        ),
    ],
    ids=["missing", "empty", "no-yaml", "bytes", "blank", "malformed", "script"],
)
def test_folders_that_test_nothing_are_refused_before_anything_is_asked(
    tmp_path: Path, files: dict[str, bytes] | None, code: str, text: str
) -> None:
    """No waiting mends them."""
    folder = tmp_path / "bundle"
    if files is not None:
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
    with pytest.raises(AicrError, match=r".") as caught:
        read_bundle(str(folder))
    assert caught.value.code == code
    assert text in caught.value.message


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """With the flag that names it."""
    place = tmp_path / "f"
    place.write_text("x", encoding="utf-8")
    with pytest.raises(AicrError, match="cannot list") as caught:
        read_bundle(str(place))
    assert caught.value.where == "--bundle"
