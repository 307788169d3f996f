"""Runs on a cluster in memory: order, statuses, evidence, and what is made, kept and removed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.validate.cases import IMPATIENT, RUN, Heard, entry, order, recipe
from tests.validate.fake_cluster import FakeCluster, Play

from aicr.contract import ctrf
from aicr.errors import AicrError
from aicr.validate.redaction import redact_test
from aicr.validate.results import PhaseResult
from aicr.validate.run import Order, Run, failing, gates, merged, skipped_declared
from aicr.validate.runner_job import JobRunner

CHECKS = [
    entry("a"),
    entry("b"),
    entry("c", "conformance"),
    entry("d", "performance"),
    entry("e", "performance"),
]
ALL = recipe(deployment=["a", "b"], conformance=["c"], performance=["d"])


def run(
    cluster: FakeCluster, asked: Order, heard: Heard | None = None, *, cleanup: bool = True
) -> list[PhaseResult]:
    """Run to the end."""
    heard = heard or Heard()

    async def main() -> list[PhaseResult]:
        runner = JobRunner(cluster.port, asked.place, asked.timing, heard, cleanup=cleanup)
        return await Run(asked, gates(asked, heard), heard).with_runner(runner)

    return asyncio.run(main())


def statuses(found: list[PhaseResult]) -> dict[str, str]:
    """Status of each check."""
    return {
        test["name"]: test["status"]
        for result in found
        for test in result.report["results"]["tests"]
    }


def test_of(found: list[PhaseResult], name: str) -> dict[str, Any]:
    """A check's report entry."""
    return next(
        test
        for result in found
        for test in result.report["results"]["tests"]
        if test["name"] == name
    )


test_of.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.covers("V-073", "V-074", "V-045")
def test_phases_and_checks_run_one_after_another_in_order() -> None:
    """Deployment, conformance, performance; in each the catalogue's order; only declared checks."""
    heard, cluster = Heard(), FakeCluster()
    found = run(cluster, order(ALL, CHECKS), heard)
    assert [event for event in heard.events if event.startswith("started")] == [
        "started a",
        "started b",
        "started c",
        "started d",
    ]
    assert [result.status for result in found] == ["passed", "passed", "passed"]
    assert cluster.most_running == 1
    assert "e" not in statuses(found)


@pytest.mark.covers("V10-20", "V-077", "V-078")
@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_failed_phase_stops_the_rest_only_when_asked(fail_fast: bool) -> None:
    """Otherwise every phase runs; with fail-fast later ones list all of their checks as skipped."""
    cluster = FakeCluster({"a": Play(1, "broken")})
    found = run(cluster, order(ALL, CHECKS, fail_fast=fail_fast))
    rest = "skipped" if fail_fast else "passed"
    assert [result.status for result in found] == ["failed", rest, rest]
    assert failing(found) == ["deployment"]
    assert statuses(found)["b"] == "passed"
    if fail_fast:
        tests = found[2].report["results"]["tests"]
        assert [test["name"] for test in tests] == ["d", "e"]
        assert {test["message"] for test in tests} == {"skipped due to previous phase failure"}


@pytest.mark.covers("V10-21", "V-053", "V-063")
def test_a_phase_in_which_all_was_skipped_is_skipped() -> None:
    """Nothing ran to a verdict, so nothing passed (decision 8); it does not fail the run."""
    found = run(FakeCluster({"c": Play(2, "no GPU nodes")}), order(ALL, CHECKS))
    assert found[1].status == "skipped"
    assert ctrf.coverage(dict(found[1].summary)) == "0 of 1 ran"
    assert failing(found) == []
    assert test_of(found, "c")["message"] == "no GPU nodes"
    assert skipped_declared(order(ALL, CHECKS), found) == ["c"]


@pytest.mark.covers("V10-22")
def test_one_check_without_a_verdict_makes_its_phase_other() -> None:
    """And fails the run."""
    found = run(FakeCluster({"b": Play(3)}), order(ALL, CHECKS))
    assert found[0].status == "other"
    assert failing(found) == ["deployment"]


@pytest.mark.covers("V10-7", "V-002")
@pytest.mark.parametrize("checks", [{"deployment": []}, {}])
def test_nothing_declared_touches_nothing(checks: dict[str, list[str]]) -> None:
    """An empty list, or none: the phases read skipped, no right is given to anybody, and a constraint
    is evaluated here and not by a Job."""
    cluster, heard = FakeCluster(), Heard()
    subtype = {"subtype": "server", "data": {"version": "v1.33.1"}}
    snapshot = {"measurements": [{"type": "K8s", "subtypes": [subtype]}]}
    constraint = {"name": "K8s.server.version", "value": ">= 1.32.4"}
    found = run(cluster, order(recipe([constraint], **checks), CHECKS, snapshot=snapshot), heard)
    assert len(heard.notes) == 1
    assert [result.status for result in found] == ["skipped"] * 3
    assert found[0].report["results"]["tests"] == []
    assert cluster.calls == []


@pytest.mark.covers("V10-11", "V-054", "V-055", "V-057", "V-058", "V-065")
def test_a_withheld_check_is_reported_with_prose_and_code() -> None:
    """It runs nothing, stands at its place, and the code says why, also once redacted."""
    cluster = FakeCluster()
    found = run(cluster, order(ALL, CHECKS, skipped=["a"]))
    withheld = found[0].report["results"]["tests"][0]
    assert withheld["name"] == "a"
    assert withheld["status"] == "skipped"
    assert withheld["message"] == (
        "skipped: named in skipChecks, so the caller declared this check out of scope for this run"
    )
    assert withheld["extra"] == {"skipReason": "named-in-skip-checks"}
    published = redact_test(withheld)
    assert published["extra"] == withheld["extra"]
    assert not published.get("message")
    assert found[0].status == "passed"
    assert not any("aicr-a-" in call for call in cluster.calls)
    assert any("aicr-b-" in call for call in cluster.calls)


@pytest.mark.covers("V10-16", "V-436", "V-437")
def test_without_a_cluster_every_check_of_the_catalogue_is_skipped() -> None:
    """Not only the declared ones; constraints and names were judged before."""
    asked, heard = order(ALL, CHECKS), Heard()
    found = Run(asked, gates(asked, heard), heard).without_cluster()
    assert [result.status for result in found] == ["skipped"] * 3
    tests = [test for result in found for test in result.report["results"]["tests"]]
    assert [test["name"] for test in tests] == ["a", "b", "c", "d", "e"]
    assert {test["message"] for test in tests} == {"skipped - no-cluster mode"}


@pytest.mark.covers("V-085", "V-439", "V-440", "V-156", "V-157")
def test_a_report_has_evidence_extra_and_times() -> None:
    """Stdout without transport, counts apart; the log goes to whoever watches and nowhere else."""
    record = json.dumps(
        {"time": "t", "level": "INFO", "msg": "listing", "module": "m", "version": "v", "n": 2}
    )
    extra = '##AICR-EXTRA## {"nodesValidated":"1","nodesTotal":"2"}'
    log = ("seen", extra, record, "RESULT: 1/2")
    heard = Heard()
    found = run(FakeCluster({"a": Play(0, "fine", log)}), order(ALL, CHECKS), heard)
    assert test_of(found, "a") == {
        "name": "a",
        "status": "passed",
        "duration": 2000,
        "suite": ["deployment"],
        "message": "fine",
        "stdout": ["seen", "RESULT: 1/2"],
        "extra": {"nodesValidated": "1", "nodesTotal": "2"},
    }
    assert list(test_of(found, "a")["extra"]) == ["nodesTotal", "nodesValidated"]
    assert heard.logged == ["a: info listing n=2"]
    report = merged(found)
    assert report["results"]["summary"]["tests"] == 4
    assert [test["name"] for test in report["results"]["tests"]] == ["a", "b", "c", "d"]


@pytest.mark.covers("V10-45")
def test_a_sentinel_far_above_the_tail_is_not_lost() -> None:
    """1500 lines, the sentinel first: the last 1000 are kept, and the counts are there."""
    log = ['##AICR-EXTRA## {"nodesTotal":"7"}', *(f"line {number}" for number in range(1500))]
    found = test_of(run(FakeCluster({"a": Play(log=tuple(log))}), order(ALL, CHECKS)), "a")
    assert found["stdout"] == [f"line {number}" for number in range(500, 1500)]
    assert found["extra"] == {"nodesTotal": "7"}


def test_what_a_run_makes_and_leaves() -> None:
    """Reports stay, everything else of the run is removed; the namespace is made once and stays."""
    cluster = FakeCluster()
    run(cluster, order(ALL, CHECKS))
    left = sorted((kind, name) for kind, _, name in cluster.objects)
    assert left == [
        ("ConfigMap", f"aicr-ctrf-{RUN}-conformance"),
        ("ConfigMap", f"aicr-ctrf-{RUN}-deployment"),
        ("ConfigMap", f"aicr-ctrf-{RUN}-performance"),
        ("Namespace", "checks"),
    ]
    kept = cluster.objects[("ConfigMap", "checks", f"aicr-ctrf-{RUN}-deployment")]
    assert kept["metadata"]["managedBy"] == "aicr-validator"
    assert kept["metadata"]["labels"]["aicr.run/report-type"] == "ctrf"
    assert json.loads(kept["data"]["report.json"])["results"]["summary"]["passed"] == 2
    assert any(call.startswith("delete Job") and "Foreground" in call for call in cluster.calls)


def test_no_cleanup_keeps_everything() -> None:
    """Jobs, rights and documents."""
    cluster = FakeCluster()
    run(cluster, order(ALL, CHECKS), cleanup=False)
    assert len(cluster.names("Job")) == 4
    assert cluster.names("ClusterRoleBinding") == [f"aicr-validator-{RUN}"]
    assert not any(call.startswith("delete") for call in cluster.calls)


def test_a_namespace_that_exists_stays_as_it_is_and_one_that_goes_is_refused() -> None:
    """Labels of others are theirs; nothing is made in a namespace that is being deleted."""
    cluster = FakeCluster()
    cluster.put({"kind": "Namespace", "metadata": {"name": "checks", "labels": {"own": "1"}}})
    run(cluster, order(ALL, CHECKS))
    assert cluster.objects[("Namespace", "", "checks")]["metadata"]["labels"] == {"own": "1"}
    going = FakeCluster()
    going.put(
        {"kind": "Namespace", "metadata": {"name": "checks"}, "status": {"phase": "Terminating"}}
    )
    with pytest.raises(AicrError, match="is being deleted") as raised:
        run(going, order(ALL, CHECKS))
    assert raised.value.code == "CONFLICT"
    assert not any(call.startswith("apply") for call in going.calls)


@pytest.mark.covers("V10-23")
def test_a_binding_that_may_be_orphaned_is_said_in_words() -> None:
    """ConfigMaps are refused, and then the binding cannot be removed either."""
    cluster = FakeCluster()
    cluster.fail("apply ConfigMap", AicrError("UNAUTHORIZED", "no ConfigMaps for you"))
    cluster.fail("delete ClusterRoleBinding", AicrError("UNAUTHORIZED", "nor deletions"))
    with pytest.raises(AicrError) as raised:
        run(cluster, order(ALL, CHECKS))
    assert raised.value.message.startswith(
        "preparation failed and RBAC rollback failed; cluster-admin binding may be orphaned"
    )
    assert f"kubectl delete clusterrolebinding aicr-validator-{RUN}" in raised.value.hint
    assert "no ConfigMaps for you" in str(raised.value)


def test_a_preparation_that_fails_leaves_nothing() -> None:
    """Rights first: account and binding are removed again, and the first error is kept."""
    cluster = FakeCluster()
    cluster.fail("apply ConfigMap", AicrError("UNAUTHORIZED", "no ConfigMaps for you"))
    with pytest.raises(AicrError) as raised:
        run(cluster, order(ALL, CHECKS))
    assert raised.value.code == "UNAUTHORIZED"
    assert [kind for kind, _, _ in cluster.objects] == ["Namespace"]


@pytest.mark.covers("V10-24")
def test_rights_that_cannot_be_revoked_are_an_error_of_a_run_without_one() -> None:
    """A run that passed ends INTERNAL; a run that failed already keeps its own error."""
    cluster = FakeCluster()
    cluster.fail("delete ClusterRoleBinding", AicrError("UNAUTHORIZED", "no"))
    with pytest.raises(AicrError) as raised:
        run(cluster, order(ALL, CHECKS))
    assert raised.value.code == "INTERNAL"
    assert raised.value.message == "failed to revoke privileged RBAC"
    assert cluster.names("ServiceAccount") == []
    broken, heard = FakeCluster(), Heard()
    broken.fail("delete ClusterRoleBinding", AicrError("UNAUTHORIZED", "no"))
    asked = order(ALL, CHECKS)

    class Broken(JobRunner):
        async def store_report(self, phase: str, report: Any) -> None:
            raise AicrError("TIMEOUT", "the run's own error")

    async def main() -> None:
        runner = Broken(broken.port, asked.place, asked.timing, heard)
        await Run(asked, gates(asked, heard), heard).with_runner(runner)

    with pytest.raises(AicrError, match="the run's own error"):
        asyncio.run(main())
    assert any("failed to revoke privileged RBAC" in warning for warning in heard.warnings)


def test_a_document_that_cannot_be_removed_is_a_warning() -> None:
    """It gives nobody access, so the run keeps its verdict."""
    cluster, heard = FakeCluster(), Heard()
    cluster.fail("delete ConfigMap", AicrError("UNAUTHORIZED", "no"))
    cluster.fail(f"apply ConfigMap aicr-ctrf-{RUN}-deployment", AicrError("UNAUTHORIZED", "no"))
    found = run(cluster, order(ALL, CHECKS), heard)
    assert failing(found) == []
    assert len([warning for warning in heard.warnings if "ConfigMap of this run" in warning]) == 2
    assert any("report of phase deployment is not kept" in warning for warning in heard.warnings)


def test_a_job_that_cannot_be_made_is_a_result_and_the_next_check_runs() -> None:
    """Exit −1, with the server's words."""
    cluster = FakeCluster()
    cluster.fail("apply Job aicr-a-", AicrError("UNAUTHORIZED", "exceeded quota: pods"))
    found = run(cluster, order(ALL, CHECKS))
    first = test_of(found, "a")
    assert (first["status"], first["extra"]) == ("other", {"code": "UNAUTHORIZED"})
    assert first["message"] == "failed to deploy Job: [UNAUTHORIZED] exceeded quota: pods"
    assert statuses(found)["b"] == "passed"


def test_a_report_that_no_config_map_holds_is_kept_without_its_evidence() -> None:
    """The verdicts stay in the cluster; the output of the command has everything."""
    line = "x" * 500
    cluster = FakeCluster({"a": Play(log=(line,) * 1000), "b": Play(log=(line,) * 1000)})
    cluster.plays |= {f"x{number}": Play(log=(line,) * 1000) for number in range(3)}
    names = ["a", "b", "x0", "x1", "x2"]
    found = run(cluster, order(recipe(deployment=names), [entry(name) for name in names]))
    assert len(test_of(found, "a")["stdout"]) == 1000
    kept = cluster.objects[("ConfigMap", "checks", f"aicr-ctrf-{RUN}-deployment")]
    text = kept["data"]["report.json"]
    assert len(text) < 10_000
    assert json.loads(text)["results"]["summary"]["passed"] == 5


def test_a_request_is_repeated_while_its_server_is_away() -> None:
    """Applying the same Job again does no harm (decision 83)."""
    cluster = FakeCluster()
    cluster.fail("apply Job aicr-a-", AicrError("SERVICE_UNAVAILABLE", "refused"), times=1)
    asked = order(ALL, CHECKS, timing=order(ALL, CHECKS).timing.scaled(1000))
    assert failing(run(cluster, asked)) == []


@pytest.mark.parametrize(
    ("play", "said", "code"),
    [
        (
            Play(stuck={"reason": "ErrImageNeverPull", "message": "not present"}),
            "kind load docker-image",
            "SERVICE_UNAVAILABLE",
        ),
        (
            Play(stuck={"reason": "ImagePullBackOff", "message": "no such host"}),
            "validator container cannot start: ImagePullBackOff: no such host",
            "SERVICE_UNAVAILABLE",
        ),
        (
            Play(refused="pods is forbidden: exceeded quota"),
            "validator pod cannot be created: pods is forbidden: exceeded quota",
            "UNAUTHORIZED",
        ),
        (
            Play(stuck={"reason": "ContainerCreating", "message": ""}),
            "timeout: validator did not complete within 1s; ContainerCreating",
            "TIMEOUT",
        ),
        (
            Play(stuck={"reason": "ContainerCreating"}, warned='secret "own" not found'),
            'within 1s; ContainerCreating; FailedMount: secret "own" not found',
            "TIMEOUT",
        ),
    ],
    ids=["never pulled", "pull", "quota", "timeout", "warned"],
)
def test_waiting_ends_with_its_cause(play: Play, said: str, code: str) -> None:
    """The check is other, its Job and pod are removed, and the next check runs."""
    cluster = FakeCluster({"a": play})
    checks = [entry("a", timeout=1_000_000_000), *CHECKS[1:]]
    found = run(cluster, order(recipe(deployment=["a", "b"]), checks, IMPATIENT))
    assert said in test_of(found, "a")["message"]
    assert test_of(found, "a")["extra"] == {"code": code}
    assert statuses(found) == {"a": "other", "b": "passed"}
    assert cluster.names("Pod") == cluster.names("Job") == []


@pytest.mark.covers("G4")
def test_a_job_that_somebody_deletes_is_no_verdict() -> None:
    """It says so at once, and does not wait for the budget."""
    held = asyncio.Event()
    cluster, heard = FakeCluster({"a": Play(until=held)}), Heard()
    asked = order(recipe(deployment=["a"]), CHECKS)

    async def main() -> list[PhaseResult]:
        runner = JobRunner(cluster.port, asked.place, asked.timing.scaled(1000), heard)
        task = asyncio.create_task(Run(asked, gates(asked, heard), heard).with_runner(runner))
        while not cluster.running:
            await asyncio.sleep(0)
        for key in [key for key in cluster.objects if key[0] in ("Job", "Pod")]:
            cluster.remove(cluster.objects[key])
        return await task

    found = test_of(asyncio.run(main()), "a")
    assert found["status"] == "other"
    assert found["message"] in (
        "pod never reached running state: [INTERNAL] Job was deleted externally",
        "validation failed: [INTERNAL] Job was deleted externally",
    )
    assert found["extra"] == {"code": "INTERNAL"}


@pytest.mark.covers("V-086")
def test_the_log_is_told_while_the_check_runs() -> None:
    """Before there is any verdict."""
    held = asyncio.Event()
    record = {"time": "t", "level": "INFO", "msg": "half way", "module": "m", "version": "v"}
    cluster = FakeCluster({"a": Play(until=held, log=(json.dumps(record),))})
    asked, heard = order(recipe(deployment=["a"]), CHECKS), Heard()

    async def main() -> None:
        runner = JobRunner(cluster.port, asked.place, asked.timing.scaled(1000), heard)
        task = asyncio.create_task(Run(asked, gates(asked, heard), heard).with_runner(runner))
        while not heard.logged:
            await asyncio.sleep(0)
        assert not any(event.startswith("finished") for event in heard.events)
        held.set()
        await task

    asyncio.run(main())
    assert heard.logged == ["a: info half way"]
    assert "finished a passed" in heard.events


def test_access_that_is_taken_away_is_no_verdict() -> None:
    """A watch that is refused ends the wait; nothing passes."""
    cluster = FakeCluster()
    cluster.fail("watch Pod", AicrError("UNAUTHORIZED", "forbidden"))
    cluster.plays = {"a": Play(until=asyncio.Event())}
    found = test_of(run(cluster, order(recipe(deployment=["a"]), CHECKS)), "a")
    assert "[UNAUTHORIZED] forbidden" in found["message"]
    assert found["status"] == "other"


def test_checks_run_at_once_where_they_may_and_report_in_order() -> None:
    """--parallel is for deployment and conformance; performance stays one at a time (decision 61)."""
    names = [f"x{number}" for number in range(6)]
    checks = [entry(name) for name in names]
    cluster = FakeCluster()
    found = run(cluster, order(recipe(deployment=names), checks, parallel=3))
    assert cluster.most_running == 3
    assert [test["name"] for test in found[0].report["results"]["tests"]] == names
    slow = FakeCluster()
    checks = [entry(name, "performance") for name in names]
    run(slow, order(recipe(performance=names), checks, parallel=3))
    assert slow.most_running == 1


def test_an_interrupted_run_removes_what_it_has_made() -> None:
    """Cancelled in the middle of a check: no Job, no rights, no document is left."""
    held = asyncio.Event()
    cluster, heard = FakeCluster({"a": Play(until=held)}), Heard()
    asked = order(ALL, CHECKS)

    async def main() -> None:
        runner = JobRunner(cluster.port, asked.place, asked.timing.scaled(1000), heard)
        task = asyncio.create_task(Run(asked, gates(asked, heard), heard).with_runner(runner))
        while not cluster.running:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [kind for kind, _, _ in cluster.objects] == ["Namespace"]


def test_only_objects_of_this_run_are_removed() -> None:
    """Another run's Jobs, rights and documents stay, in the same namespace."""
    cluster = FakeCluster()
    other = RUN[:-1] + "0"
    theirs = {
        "kind": "Job",
        "metadata": {
            "name": "theirs",
            "namespace": "checks",
            "uid": "uid-theirs",
            "labels": {"aicr.run/run-id": other, "aicr.run/job-type": "validation"},
        },
        "spec": {},
    }
    cluster.put(theirs)
    run(cluster, order(ALL, CHECKS))
    assert cluster.names("Job") == ["theirs"]


def test_what_other_runs_have_left_is_named_and_stays() -> None:
    """An old binding of another run is a warning with the command; a young one may be in use."""
    cluster, heard = FakeCluster(), Heard()
    for name, made in (("old", "2026-01-01T00:00:00Z"), ("young", "2099-01-01T00:00:00Z")):
        labels = {"app.kubernetes.io/name": "aicr-validator", "aicr.run/run-id": name}
        metadata = {"name": f"aicr-validator-{name}", "creationTimestamp": made, "labels": labels}
        cluster.put({"kind": "ClusterRoleBinding", "metadata": metadata})
    run(cluster, order(ALL, CHECKS), heard)
    warned = [warning for warning in heard.warnings if "left behind" in warning]
    assert len(warned) == 1
    assert warned[0].endswith("kubectl delete clusterrolebinding aicr-validator-old")
    assert cluster.names("ClusterRoleBinding") == ["aicr-validator-old", "aicr-validator-young"]


def test_what_a_pod_waits_for_is_told_while_it_waits() -> None:
    """Once for each cause, and not what every pod waits for."""
    heard = Heard()
    stuck = {"reason": "ImagePullBackOff", "message": "no such host"}
    asked = order(recipe(deployment=["a"]), CHECKS, IMPATIENT)
    run(FakeCluster({"a": Play(stuck=stuck)}), asked, heard)
    assert heard.logged == ["a: waiting: ImagePullBackOff: no such host"]
    quiet = Heard()
    stuck = {"reason": "ContainerCreating"}
    checks = [entry("a", timeout=1_000_000_000)]
    asked = order(recipe(deployment=["a"]), checks, IMPATIENT)
    run(FakeCluster({"a": Play(stuck=stuck)}), asked, quiet)
    assert quiet.logged == []
