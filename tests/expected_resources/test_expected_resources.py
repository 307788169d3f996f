"""expected-resources from namespaces to verdict: what is printed, what is raised, when it gives up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.assertions.fake_cluster import check as chainsaw
from tests.expected_resources.deployed_cluster import (
    DeployedCluster,
    check,
    customizations,
    made,
    namespace,
    operator,
    skyhook,
)

from aicr.assertions.document import read_check
from aicr.catalog.catalog import Catalog
from aicr.checks import registry
from aicr.checks.deployment import expected_resources
from aicr.checks.deployment.expected_resources_report import Issue, Report
from aicr.checks.sdk.outcome import could_not_tell
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import (
    INTERNAL,
    INVALID_REQUEST,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
)
from aicr.values import durations
from aicr.yamlio import read

DEPLOYMENT = (
    "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: app, name: d}, "
    "status: {(availableReplicas >= `1`): true}}"
)
HEALTHY = "All deployment resources and required readiness signals are healthy"


def ref(name: str = "app", **more: Any) -> dict[str, Any]:
    """A component."""
    return {"name": name, "namespace": name, **more}


def deployment(replicas: int = 1, place: str = "app", name: str = "d") -> dict[str, Any]:
    """A Deployment of one replica."""
    status = {"availableReplicas": replicas}
    return made("apps/v1", "Deployment", name, place, spec={"replicas": 1}, status=status)


@pytest.mark.covers("V-378", "V-385", "V-386")
def test_a_healthy_deployment_passes_with_tagged_lines() -> None:
    """Namespace, resource and health check, each with where it comes from."""
    cluster = DeployedCluster(namespace("app"), deployment())
    expected = [{"kind": "Deployment", "name": "d"}]
    found = check(
        cluster, ref(expectedResources=expected, healthCheckAsserts=chainsaw("assert", DEPLOYMENT))
    )
    assert found.error is None
    assert found.lines == [
        "  Namespace app: Active",
        "  [expectedResources] Deployment app/d: healthy",
        "  [chainsaw] app: health check passed",
        HEALTHY,
    ]


def test_disabled_components_are_left_out() -> None:
    """Neither their namespace nor their check is looked at."""
    off = ref("off", overrides={"enabled": False}, healthCheckAsserts="broken: [")
    assert check(DeployedCluster(namespace("app")), ref(), off).error is None


@pytest.mark.parametrize(
    ("validation", "words"),
    [
        (None, "needs the recipe's validation input"),
        ({"componentRefs": []}, "no enabled component"),
        ({}, "no enabled component"),
    ],
)
def test_without_a_recipe_nothing_passes(validation: Any, words: str) -> None:
    """A run that looks at nothing is refused (fail closed)."""
    error = check(DeployedCluster(), validation=validation).error
    assert error is not None
    assert (error.code, words in error.message) == (INVALID_REQUEST, True)


@pytest.mark.parametrize(
    ("objects", "code", "words"),
    [
        ([], NOT_FOUND, 'v1/Namespace "app" not found'),
        ([namespace("app", "Terminating")], NOT_FOUND, "is Terminating, not Active"),
        ([made("v1", "Namespace", "app")], NOT_FOUND, "is without a phase, not Active"),
    ],
)
def test_a_namespace_must_be_active(objects: list[Any], code: str, words: str) -> None:
    """Absent, going away, or not set up yet."""
    found = check(DeployedCluster(*objects), ref())
    assert found.error is not None
    assert found.error.code == code
    assert found.lines[0] == "Failed resources:"
    assert words in found.lines[1]
    assert not could_not_tell(found.error)


def test_plain_issues_alone_become_one_error_with_all_of_them() -> None:
    """NOT_FOUND with the count and every issue."""
    cluster = DeployedCluster(namespace("a", "Terminating"), namespace("b", "Terminating"))
    error = check(cluster, ref("b"), ref("a")).error
    assert error is not None
    assert (error.code, error.message) == (
        NOT_FOUND,
        "expected resource check failed: 2 issue(s): [namespace] a: is Terminating, not Active; "
        "[namespace] b: is Terminating, not Active",
    )


def test_the_first_issue_with_an_error_is_the_error_and_all_are_listed() -> None:
    """Its own code and text; an issue without one does not come before it."""
    cluster = DeployedCluster(namespace("app", "Terminating"), deployment(0))
    cluster.plans["v1/Service"] = lambda now: AicrError(UNAUTHORIZED, "services is forbidden")
    expected = [{"kind": "Deployment", "name": "d"}, {"kind": "Service", "name": "s"}]
    found = check(cluster, ref(expectedResources=expected))
    assert found.error is not None
    assert found.error.code == INTERNAL
    assert found.error.message == "Deployment app/d is not ready: 0/1 available"
    assert found.lines == [
        "Failed resources:",
        "  [namespace] app: is Terminating, not Active",
        "  [expectedResources] Deployment app/d: Deployment app/d is not ready: 0/1 available",
        "  [expectedResources] Service app/s: services is forbidden",
    ]


def test_a_read_that_is_refused_is_no_verdict() -> None:
    """It fails, and its code is published as could-not-tell (decision 62)."""
    cluster = DeployedCluster()
    cluster.plans["v1/Namespace"] = lambda now: AicrError(UNAUTHORIZED, "no")
    error = check(cluster, ref()).error
    assert error is not None
    assert could_not_tell(error) == UNAUTHORIZED


def test_a_health_check_that_fails_is_listed_with_its_message() -> None:
    """After its whole budget; the code is that of the failure."""
    cluster = DeployedCluster(namespace("app"), deployment(0))
    found = check(cluster, ref(healthCheckAsserts=chainsaw("assert", DEPLOYMENT)))
    assert found.error is not None
    assert (found.error.code, found.seconds) == (INTERNAL, 450)
    assert found.lines[1] == "Failed resources:"
    assert found.lines[2].startswith(
        "  [chainsaw] app: Deployment app/d: status.(availableReplicas"
    )
    assert not could_not_tell(found.error)


def test_an_unknown_state_of_a_component_is_could_not_tell() -> None:
    """An outage during the health check says nothing of the component."""
    cluster = DeployedCluster(namespace("app"))
    cluster.plans["apps/v1/Deployment"] = lambda now: AicrError(SERVICE_UNAVAILABLE, "down")
    found = check(cluster, ref(healthCheckAsserts=chainsaw("assert", DEPLOYMENT)))
    assert found.error is not None
    assert could_not_tell(found.error) == SERVICE_UNAVAILABLE


def test_a_check_that_may_do_more_than_look_is_refused() -> None:
    """The allowlist holds here as well; the cluster is not asked."""
    cluster = DeployedCluster(namespace("app"))
    found = check(cluster, ref(healthCheckAsserts=chainsaw("script", "{}")))
    assert found.error is not None
    assert found.error.code == INVALID_REQUEST
    assert 'uses operation "script"' in found.error.message


def test_an_assert_without_a_namespace_looks_in_all() -> None:
    """The check has no default namespace."""
    pods = "{apiVersion: v1, kind: Pod, status: {phase: Running}}"
    far = made("v1", "Pod", "p", "far", status={"phase": "Running"})
    cluster = DeployedCluster(namespace("app"), far)
    assert check(cluster, ref(healthCheckAsserts=chainsaw("assert", pods))).error is None


@pytest.mark.covers("V-432")
def test_the_callers_budget_of_a_health_check_is_that_of_decision_67() -> None:
    """7 m 30 s, whatever the file asks for."""
    cluster = DeployedCluster(namespace("app"), deployment(0))
    text = chainsaw("assert", DEPLOYMENT, timeout="9m")
    assert check(cluster, ref(healthCheckAsserts=text), budget=3000).seconds == 450


def test_a_budget_that_ends_during_health_checks_lists_what_was_not_looked_at() -> None:
    """A minute is kept for saying so; what had ended is judged."""
    cluster = DeployedCluster(namespace("app"), deployment(0))
    failing = chainsaw("assert", DEPLOYMENT)
    quick = chainsaw("assert", DEPLOYMENT, timeout="20s")
    refs = [ref("app", healthCheckAsserts=quick)]
    refs += [{"name": f"c{number}", "healthCheckAsserts": failing} for number in range(9)]
    found = check(cluster, *refs, budget=600)
    assert found.error is not None
    assert found.error.code == TIMEOUT
    assert found.error.message.startswith(
        "deployment validation budget exhausted during health checks with "
    )
    assert found.seconds == 540
    assert "  [chainsaw] c8: not evaluated — budget exhausted during health checks" in found.lines
    assert any(line.startswith("  [chainsaw] app: Deployment app/d") for line in found.lines)
    # A finding is a verdict, so the whole is not "could not tell".
    assert not could_not_tell(found.error)


def test_a_budget_that_ends_with_nothing_found_could_not_tell() -> None:
    """TIMEOUT, no issue collected, and every tag of what is left."""
    cluster = DeployedCluster()

    async def hangs(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(3600)

    cluster.get = hangs  # type: ignore[method-assign]
    refs = [
        ref(expectedResources=[{"kind": "Service", "name": "s"}], healthCheckAsserts="x"),
        {**operator(), "namespace": "app"},
        {**customizations(), "namespace": "app"},
    ]
    found = check(cluster, *refs, budget=600)
    assert found.error is not None
    assert found.error.message == (
        "deployment validation budget exhausted during namespaces with 0 issue(s) collected"
    )
    assert found.lines == [
        f"  [{tag}] {name}: not evaluated — budget exhausted during namespaces"
        for tag, name in (
            ("expectedResources", "Service app/s"),
            ("gpuReadiness", "Nodewright customizations"),
            ("chainsaw", "app"),
        )
    ]
    assert could_not_tell(found.error) == TIMEOUT


@pytest.mark.covers("V-433", "V-434")
def test_budgets_nest() -> None:
    """Shipped checks fit the caller's budget, which fits the check's with its margin (decision 67)."""
    times = Timeouts()
    catalog = Catalog.builtin()
    authored = {
        entry["name"]: read_check(catalog.tree.read_text(path), source=path).tests[0].assert_timeout
        for entry in catalog.registry.entries
        if (path := (entry.get("healthCheck") or {}).get("assertFile"))
    }
    assert times.assertions.budget == 450
    assert [name for name, seconds in authored.items() if seconds > 450] == []
    assert authored["slinky-slurm"] == 420
    catalogue = read.load(catalog.tree.read_text("validators/catalog.yaml"), source="catalog")
    (entry,) = (one for one in catalogue["validators"] if one["name"] == "expected-resources")
    outer = durations.parse(entry["timeout"]) / durations.SECOND
    assert entry["timeout"] == expected_resources.CHECK.timeout == "10m"
    assert times.assertions.budget + times.job_envelope_margin < outer


def test_the_check_is_in_the_table() -> None:
    """By the name that the catalogue uses."""
    assert registry.load("expected-resources") is expected_resources.CHECK


def test_issues_read_as_one_line_with_their_causes() -> None:
    """The chain is kept; the error stays the very same."""
    cause = AicrError(INTERNAL, "inner")
    error = AicrError(NOT_FOUND, "outer")
    error.__cause__ = cause
    issue = Issue.of("chainsaw", "c", error)
    assert issue.line == "  [chainsaw] c: outer: inner"
    report = Report(lambda text: None, [Issue("namespace", "n", "plain"), issue])
    with pytest.raises(AicrError) as caught:
        report.finish()
    assert caught.value is error


def test_a_skyhook_of_another_name_changes_nothing() -> None:
    """A recipe without customizations does not look at Nodewright at all."""
    cluster = DeployedCluster(namespace("app"), skyhook("other", "erroring"))
    assert check(cluster, ref()).error is None
    assert {kind for kind, _ in cluster.asked} == {"v1/Namespace"}
