"""Running checks in virtual time: retries, budgets, grace, verdicts and messages."""

from __future__ import annotations

from typing import Any

import pytest
from tests.assertions import fake_cluster
from tests.assertions.fake_cluster import FakeCluster, check, pod

from aicr.assertions.runner import run
from aicr.assertions.timing import Clock, Timing
from aicr.errors import (
    CONFLICT,
    INTERNAL,
    INVALID_REQUEST,
    NOT_FOUND,
    RATE_LIMIT_EXCEEDED,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
    invalid,
    not_found,
)

POD = "{apiVersion: v1, kind: Pod, metadata: {namespace: ns}, status: {phase: %s}}"
NAMED = "{apiVersion: v1, kind: Pod, metadata: {namespace: ns, name: p1}, status: {phase: %s}}"
DEPLOYMENT = (
    "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns, name: d}, "
    "status: {(availableReplicas >= `1`): true}}"
)


def judge(cluster: FakeCluster, text: str, **more: Any) -> dict[str, Any]:
    """The result of one check."""
    results = fake_cluster.run(run(cluster.port, [{"name": "c", "yaml": text}], **more))
    assert len(results) == 1
    return results[0]


def deployment(**status: Any) -> dict[str, Any]:
    """Deployment ns/d."""
    metadata = {"name": "d", "namespace": "ns"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "status": status}


def test_the_waiting_times_of_the_product_are_these() -> None:
    """Budget of decision 67, interval of 8.5, grace of decision 68."""
    timing = Timing()
    assert (timing.budget, timing.retry, timing.absent_grace) == (450.0, 5.0, 30.0)
    assert timing.scaled(0.1) == Timing(45.0, 0.5, 3.0)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_of_times_is_positive(factor: float) -> None:
    """Times of zero would pass nothing, endless ones never fail."""
    with pytest.raises(AicrError, match="positive number"):
        Timing().scaled(factor)


@pytest.mark.covers("H1")
def test_an_unnamed_assert_needs_one_match_and_tells_how_many() -> None:
    """Chainsaw's rule: any object will do; the report says 1 of 2."""
    cluster = FakeCluster(pod("p1"), pod("p2", "Pending"))
    result = judge(cluster, check("assert", POD % "Running"))
    assert result["verdict"] == "pass"
    assert result["output"] == ['step "s" try[0] assert: Pod ns/p1: matched, 1 of 2 matched']
    assert result["seconds"] == 0


@pytest.mark.covers("H1")
def test_all_of_them_is_said_with_an_error() -> None:
    """What must hold of all objects must hold of none negated."""
    cluster = FakeCluster(pod("p1"), pod("p2", "Pending"))
    text = check(
        "error",
        "{apiVersion: v1, kind: Pod, metadata: {namespace: ns}, "
        "status: {(phase != 'Running'): true}}",
    )
    result = judge(cluster, text)
    assert result["verdict"] == "fail"
    assert "Pod ns/p2 matches forbidden shape (phase=Pending, node=node-1)" in result["message"]


@pytest.mark.covers("H2")
def test_a_list_in_an_assertion_is_compared_by_position() -> None:
    """The message says so, because it is not what people expect."""
    conditions = [{"type": "A", "status": "True"}, {"type": "Ready", "status": "True"}]
    cluster = FakeCluster(deployment(conditions=conditions))
    start = "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns, name: d}, status: "
    listed = judge(cluster, check("assert", start + "{conditions: [{type: Ready}]}}"))
    assert "length 2, expected 1; lists compare by position" in listed["message"]
    filtered = start + "{\"(conditions[?type == 'Ready'])\": [{status: 'True'}]}}"
    assert judge(cluster, check("assert", filtered))["passed"]
    assert not judge(cluster, check("assert", start + "{conditions: null}}"))["passed"]


@pytest.mark.covers("H4", "V10-76", "V10-77", "V10-78")
def test_a_wrong_type_fails_at_once_and_a_mixed_order_is_a_mismatch() -> None:
    """Rows 76 and 77: what waiting cannot cure is terminal, a field not yet set is retried."""
    cluster = FakeCluster(deployment(replicas=3))
    start = "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns, name: d}, status: "
    wrong = judge(cluster, check("assert", start + '{replicas: "3"}}'))
    assert (wrong["code"], wrong["seconds"]) == (INVALID_REQUEST, 0)
    assert "types are not comparable, string - int64" in wrong["message"]
    absent = judge(cluster, check("assert", DEPLOYMENT))
    assert (absent["code"], absent["seconds"]) == (INTERNAL, 450)
    assert "null compared with number" in absent["message"]
    literal = judge(cluster, check("assert", start + "{(replicas == `3`): true}}"))
    assert literal["code"] == INTERNAL
    assert judge(cluster, check("assert", start + "{(to_number(replicas) == `3`): true}}"))[
        "passed"
    ]


@pytest.mark.covers("V10-79")
def test_an_unguarded_filter_fails_at_once() -> None:
    """Row 79: length of null is an error of the author, even while conditions are not set yet."""
    key = "(conditions[?type=='Ready'] | length(@) > `0`)"
    text = check("assert", DEPLOYMENT.replace("(availableReplicas >= `1`)", f'"{key}"'))
    result = judge(FakeCluster(deployment()), text)
    assert (result["code"], result["seconds"]) == (INVALID_REQUEST, 0)
    assert "give a default with ||" in result["message"]


@pytest.mark.covers("V10-80")
def test_a_list_of_containers_fits_pods_of_one_container_only() -> None:
    """Row 80."""
    cluster = FakeCluster(pod("p1", containerStatuses=[{"ready": True}, {"ready": True}]))
    text = check("assert", NAMED.replace("phase: %s", "containerStatuses: [{ready: true}]"))
    assert "length 2, expected 1" in judge(cluster, text)["message"]


@pytest.mark.covers("H7", "V-383")
@pytest.mark.parametrize(
    ("objects", "verdict", "said"),
    [
        ([], "pass", "Pod ns/*: none exists"),
        ([pod("p1")], "pass", "Pod ns/*: 1 object exists, none matched"),
        ([pod("p1"), pod("p2")], "pass", "Pod ns/*: 2 objects exist, none matched"),
        ([pod("p1"), pod("p2", "Failed")], "fail", "Pod ns/p2 matches forbidden shape"),
        ([pod("p1", "Failed", metadata={"deletionTimestamp": "x"})], "pass", "none exists"),
        ([pod("p1", "Failed", reason="NodeLost")], "pass", "none exists"),
    ],
)
def test_an_unnamed_error_holds_while_nothing_matches(
    objects: list[dict[str, Any]], verdict: str, said: str
) -> None:
    """No object, or objects that differ, are fine; a match is looked at again until the deadline."""
    cluster = FakeCluster(*objects)
    result = judge(cluster, check("error", POD % "Failed"))
    assert result["verdict"] == verdict
    assert said in result["message"] + "".join(result["output"])
    assert result["seconds"] == (0 if verdict == "pass" else 450)


@pytest.mark.covers("H7")
@pytest.mark.parametrize(
    ("objects", "verdict", "said"),
    [
        ([], "pass", "Pod ns/p1: does not exist"),
        ([pod("p1")], "pass", "Pod ns/p1: 1 object exists, none matched"),
        ([pod("p1", "Failed")], "fail", "Pod ns/p1: forbidden shape matched (phase=Failed"),
        ([pod("p1", "Failed", metadata={"deletionTimestamp": "x"})], "pass", "terminating or lost"),
    ],
)
def test_a_named_error_holds_while_that_object_does_not_match(
    objects: list[dict[str, Any]], verdict: str, said: str
) -> None:
    """The same of one object by name."""
    result = judge(FakeCluster(*objects), check("error", NAMED % "Failed"))
    assert result["verdict"] == verdict
    assert said in result["message"] + "".join(result["output"])


@pytest.mark.covers("H7")
def test_an_error_of_a_bare_kind_holds_only_while_none_exists() -> None:
    """apiVersion and kind alone match every object."""
    text = check("error", "{apiVersion: v1, kind: Pod}")
    assert judge(FakeCluster(), text)["passed"]
    assert not judge(FakeCluster(pod("p1")), text)["passed"]


@pytest.mark.covers("H7")
def test_a_match_that_goes_away_in_time_is_forgiven() -> None:
    """An error check looks again every five seconds."""
    cluster = FakeCluster()
    cluster.plan("v1/Pod", lambda now: [pod("p1", "Failed" if now < 12 else "Running")])
    result = judge(cluster, check("error", POD % "Failed"))
    assert (result["verdict"], result["seconds"]) == ("pass", 15)


def test_symptoms_of_a_pod_are_in_the_message() -> None:
    """Phase, what it waits for, and its node."""
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
    cluster = FakeCluster(pod("p1", "Pending", initContainerStatuses=[{"state": {}}, waiting]))
    result = judge(cluster, check("error", POD % "Pending"))
    assert "(phase=Pending, waiting=ImagePullBackOff, node=node-1)" in result["message"]


def forbidden() -> AicrError:
    """What the client says for a 403."""
    return AicrError(
        UNAUTHORIZED,
        "cannot list pods: pods is forbidden",
        hint="the role lacks this verb",
        context={"status": 403},
    )


@pytest.mark.covers("H10", "V10-73", "V-397")
@pytest.mark.parametrize("kind", ["assert", "error"])
def test_a_forbidden_read_is_asked_again_and_unknown_at_the_deadline(kind: str) -> None:
    """Rights may still come; the text has the 403, and nothing is said of the component."""
    cluster = FakeCluster()
    cluster.plan("v1/Pod", lambda now: forbidden())
    result = judge(cluster, check(kind, POD % "Failed"))
    assert (result["verdict"], result["code"]) == ("unknown", SERVICE_UNAVAILABLE)
    assert (result["seconds"], len(cluster.asked)) == (450, 90)
    assert "(HTTP 403): cannot list pods: pods is forbidden" in result["message"]
    assert result["hint"] == "the role lacks this verb"
    healthy = [pod("p1", "Failed" if kind == "assert" else "Running")]
    cluster.plan("v1/Pod", lambda now: healthy if now >= 20 else forbidden())
    assert judge(cluster, check(kind, POD % "Failed"))["verdict"] == "pass"


@pytest.mark.covers("H10")
@pytest.mark.parametrize(
    "code", [SERVICE_UNAVAILABLE, TIMEOUT, RATE_LIMIT_EXCEEDED, INTERNAL, CONFLICT]
)
def test_a_failing_server_is_asked_again(code: str) -> None:
    """500 twice and then an answer: the check passes."""
    cluster = FakeCluster()
    cluster.plan("v1/Pod", lambda now: [pod("p1")] if now >= 10 else AicrError(code, "HTTP 500"))
    for kind, phase in (("assert", "Running"), ("error", "Failed")):
        result = judge(cluster, check(kind, POD % phase))
        assert (result["verdict"], result["seconds"]) == ("pass", 10)


@pytest.mark.covers("H10", "V-397")
def test_a_server_that_never_answers_leaves_the_state_unknown() -> None:
    """An outage for the whole budget is no verdict, and the text has its cause (row 73)."""
    cluster = FakeCluster()
    cluster.plan("v1/Pod", lambda now: AicrError(SERVICE_UNAVAILABLE, "the API server is down"))
    for kind in ("assert", "error"):
        result = judge(cluster, check(kind, NAMED % "Failed"))
        assert (result["verdict"], result["code"]) == ("unknown", SERVICE_UNAVAILABLE)
        assert result["seconds"] == 450
        assert result["message"] == "the state of Pod ns/p1 is not known: the API server is down"


@pytest.mark.covers("H10")
def test_an_unknown_kind_has_a_grace_and_then_fails() -> None:
    """Its CRD may come; after 30 s of absence it is an error (decision 68)."""
    cluster = FakeCluster()
    absent = not_found('the server has no kind "Pod" in v1', context={"absent": "kind"})
    cluster.plan("v1/Pod", lambda now: absent)
    result = judge(cluster, check("assert", POD % "Running"))
    assert (result["verdict"], result["code"], result["seconds"]) == ("fail", NOT_FOUND, 30)
    cluster.plan("v1/Pod", lambda now: absent if now < 22 else [pod("p1")])
    result = judge(cluster, check("assert", POD % "Running"))
    assert (result["verdict"], result["seconds"]) == ("pass", 25)


def test_an_error_on_a_kind_that_is_surely_not_served_holds() -> None:
    """Row 74: absent is absent; an unreachable group is not."""
    cluster = FakeCluster()
    cluster.plan("v1/Pod", lambda now: not_found("the server has no such kind"))
    result = judge(cluster, check("error", POD % "Failed"))
    assert result["output"] == ['step "s" try[0] error: Pod ns/*: the kind is not served']
    unreachable = AicrError(SERVICE_UNAVAILABLE, "cannot tell: an API group cannot be reached")
    cluster.plan("v1/Pod", lambda now: unreachable)
    assert judge(cluster, check("error", POD % "Failed"))["verdict"] == "unknown"


@pytest.mark.covers("V10-72")
def test_an_absent_object_fails_after_the_grace() -> None:
    """Row 72, first half; the grace can be configured."""
    result = judge(FakeCluster(), check("assert", DEPLOYMENT))
    assert (result["code"], result["seconds"]) == (NOT_FOUND, 30)
    result = judge(FakeCluster(), check("assert", DEPLOYMENT), timing=Timing(absent_grace=7.0))
    assert result["seconds"] == 7


@pytest.mark.covers("V10-72")
def test_an_object_once_seen_has_the_whole_budget() -> None:
    """Row 72, second half: unready at 10 s, gone at 40 s, ready at 60 s."""
    cluster = FakeCluster()

    def plan(now: float) -> list[dict[str, Any]] | AicrError:
        if now < 10 or 40 <= now < 60:
            return []
        return [deployment(availableReplicas=1 if now >= 60 else 0)]

    cluster.plan("apps/v1/Deployment", plan)
    result = judge(cluster, check("assert", DEPLOYMENT))
    assert (result["verdict"], result["seconds"]) == ("pass", 60)


def test_an_outage_does_not_count_as_having_seen_the_object() -> None:
    """Only a mismatch proves that it exists; the grace counts from the start."""
    cluster = FakeCluster()
    down = AicrError(SERVICE_UNAVAILABLE, "down")
    cluster.plan("apps/v1/Deployment", lambda now: down if now < 20 else [])
    result = judge(cluster, check("assert", DEPLOYMENT))
    assert (result["code"], result["seconds"]) == (NOT_FOUND, 30)


@pytest.mark.covers("V10-75")
def test_an_assert_on_something_that_is_going_away_is_not_met() -> None:
    """Row 75: the only match is terminating."""
    cluster = FakeCluster(pod("p1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    unnamed = judge(cluster, check("assert", POD % "Running"))
    assert unnamed["code"] == NOT_FOUND
    assert "no live resources found (labels=; 1 terminating or lost)" in unnamed["message"]
    named = judge(cluster, check("assert", NAMED % "Running"))
    assert named["code"] == NOT_FOUND
    assert "Pod ns/p1 is terminating or lost" in named["message"]


def test_an_unnamed_assert_without_a_match_says_how_many_there_are() -> None:
    """The last reason, and how many objects were looked at."""
    cluster = FakeCluster(pod("p1"), pod("p2"))
    message = judge(cluster, check("assert", POD % "Failed"))["message"]
    assert message == (
        'no Pod in "ns" matched (last reason: Pod ns/p2: status.phase: Invalid value: "Running": '
        'Expected value: "Failed"); 2 objects exist, none matched'
    )


def test_labels_select_among_unnamed_objects() -> None:
    """Selectors go to the server; the labels are asserted as well."""
    cluster = FakeCluster(pod("p1", "Failed", labels={"app": "x"}), pod("p2", labels={"app": "z"}))
    resource = "{apiVersion: v1, kind: Pod, metadata: {labels: {app: z}}, status: {phase: Failed}}"
    assert judge(cluster, check("error", resource))["passed"]
    assert cluster.asked[0][3:] == ("", {"app": "z"})


def test_an_unnamed_assert_without_any_object_says_so() -> None:
    """Absent, and not merely different; the labels that were asked for are named."""
    resource = "{apiVersion: v1, kind: Pod, metadata: {namespace: ns, labels: {app: x}}}"
    result = judge(FakeCluster(), check("assert", resource))
    assert (result["code"], result["seconds"]) == (NOT_FOUND, 30)
    assert result["message"] == 'no Pod in "ns" exists (labels=app=x)'


@pytest.mark.covers("V-402")
@pytest.mark.parametrize(("namespace", "asked"), [("", ""), ("gate", "gate")])
def test_a_default_namespace_is_for_resources_that_name_none(namespace: str, asked: str) -> None:
    """The gate passes its own; the validator looks everywhere."""
    cluster = FakeCluster()
    text = check("error", "{apiVersion: v1, kind: Pod}", POD % "Failed")
    judge(cluster, text, namespace=namespace)
    assert [name for _, _, _, name, _ in cluster.asked] == [asked, "ns"]


def test_one_list_is_one_look() -> None:
    """Polling lists once in five seconds and reads no object by itself."""
    cluster = FakeCluster(*[pod(f"p{index}", "Pending") for index in range(50)])
    judge(cluster, check("assert", POD % "Running", timeout="20s"))
    assert [(now, verb) for now, verb, *_ in cluster.asked] == [
        (float(now), "list") for now in (0, 5, 10, 15)
    ]


@pytest.mark.covers("V10-83", "V-430", "V-431")
@pytest.mark.parametrize(("authored", "seconds"), [("10m", 450), ("90s", 90), ("7s", 7)])
def test_the_budget_is_one_for_all_steps_and_operations(authored: str, seconds: int) -> None:
    """Row 83: authored times shorten; waiting never goes past the deadline."""
    cluster = FakeCluster(pod("p1"))
    cluster.plan("apps/v1/Deployment", lambda now: [deployment(availableReplicas=int(now >= 5))])
    text = check("assert", DEPLOYMENT, POD % "Failed", POD % "Running", timeout=authored)
    result = judge(cluster, text)
    assert (result["verdict"], result["seconds"]) == ("fail", seconds)
    assert len(result["output"]) == 1


def test_the_first_failure_ends_a_component() -> None:
    """What comes after it is not looked at."""
    cluster = FakeCluster(pod("p1", "Failed"))
    judge(cluster, check("error", POD % "Failed", DEPLOYMENT, timeout="5s"))
    assert {kind for _, _, kind, *_ in cluster.asked} == {"v1/Pod"}


def test_a_request_that_hangs_ends_at_the_deadline() -> None:
    """Nothing was seen in time, so nothing is known."""
    cluster = FakeCluster(pod("p1"))
    cluster.delay = 1000.0
    for kind, words in (("assert", "assertion"), ("error", "error check")):
        result = judge(cluster, check(kind, POD % "Running"))
        assert (result["verdict"], result["code"]) == ("unknown", INTERNAL)
        assert result["seconds"] == 450
        assert f"context canceled during {words}" in result["message"]


def test_the_last_failure_seen_counts_when_a_request_hangs() -> None:
    """A mismatch that was seen is the verdict, not the time that ran out."""
    cluster = FakeCluster(pod("p1"))

    def plan(now: float) -> list[dict[str, Any]]:
        cluster.delay = 1000.0
        return [pod("p1")]

    cluster.plan("v1/Pod", plan)
    result = judge(cluster, check("assert", POD % "Failed"))
    assert (result["verdict"], result["code"], result["seconds"]) == ("fail", INTERNAL, 450)


def test_a_failure_keeps_its_cause_when_the_time_is_up() -> None:
    """The cause is what helps, also if the last request of all hangs."""
    cluster = FakeCluster()

    def plan(now: float) -> AicrError:
        cluster.delay = 1000.0
        return AicrError(SERVICE_UNAVAILABLE, "the API server is down")

    cluster.plan("v1/Pod", plan)
    result = judge(cluster, check("assert", NAMED % "Failed"))
    assert result["message"] == "the state of Pod ns/p1 is not known: the API server is down"


def test_time_that_is_up_between_operations_is_told() -> None:
    """What was not looked at is not said to have failed."""
    cluster = FakeCluster(pod("p1"))
    slow = Clock(now=lambda: 100.0 * len(cluster.asked))
    result = judge(cluster, check("error", *[POD % "Failed"] * 3, timeout="8s"), clock=slow)
    assert len(cluster.asked) == 1
    assert (result["verdict"], result["code"]) == ("unknown", INTERNAL)
    assert "context canceled between steps" in result["message"]


def test_a_bad_request_of_ours_is_not_repeated() -> None:
    """A name that no object can have, say, stays wrong."""
    cluster = FakeCluster()
    cluster.plan("v1/Pod", lambda now: invalid("the name is not allowed"))
    result = judge(cluster, check("assert", NAMED % "Running"))
    assert (result["seconds"], "the name is not allowed" in result["message"]) == (0, True)


@pytest.mark.covers("H8", "V-388")
def test_a_file_that_is_refused_never_reaches_the_cluster() -> None:
    """The result has code, place and hint."""
    cluster = FakeCluster()
    result = judge(cluster, check("script", "{}"))
    assert (result["verdict"], result["code"]) == ("fail", INVALID_REQUEST)
    assert result["where"] == "c:8:11"
    assert cluster.asked == []


def test_several_components_are_independent_and_in_order() -> None:
    """One that fails, or cannot be read, ends no other; four run at a time."""
    cluster = FakeCluster(pod("p1"))
    good, bad = check("assert", POD % "Running"), check("assert", POD % "Failed", timeout="10s")
    entries = [{"name": f"c{index}", "yaml": bad} for index in range(5)]
    entries[1]["yaml"] = "a: ["
    entries.append({"name": "last", "yaml": good})
    results = fake_cluster.run(run(cluster.port, entries))
    assert [result["component"] for result in results] == [entry["name"] for entry in entries]
    assert [result["passed"] for result in results] == [False] * 5 + [True]
    assert sum(1 for now, *_ in cluster.asked if now == 0) == 4


def test_nothing_to_check_gives_no_results() -> None:
    """An empty list of components is no error."""
    assert fake_cluster.run(run(FakeCluster().port, [])) == []


@pytest.mark.covers("V10-70", "V-391")
def test_a_no_op_that_is_intended_passes() -> None:
    """The annotation says that another mechanism checks the component."""
    text = (
        "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: t\n"
        '  annotations: {aicr/no-op-check: "true"}\n'
    )
    assert judge(FakeCluster(), text)["verdict"] == "pass"


def test_raw_objects_must_all_match_in_the_same_look() -> None:
    """8.6: any that differs makes all be looked at again; one being removed counts."""
    cluster = FakeCluster(pod("p1", metadata={"deletionTimestamp": "x"}))
    cluster.plan("apps/v1/Deployment", lambda now: [deployment(availableReplicas=int(now >= 5))])
    text = "\n---\n".join([NAMED % "Running", DEPLOYMENT])
    result = judge(cluster, text)
    assert (result["verdict"], result["seconds"]) == ("pass", 5)
    assert result["output"] == ["Pod ns/p1: matched", "Deployment ns/d: matched"]
    assert len(cluster.asked) == 4


def test_a_message_about_a_secret_has_no_value_of_it() -> None:
    """What was found there does not go into reports."""
    metadata = {"name": "s", "namespace": "ns"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"k": "aGlkZGVu"}}
    text = check(
        "assert",
        "{apiVersion: v1, kind: Secret, metadata: {namespace: ns, name: s}, data: {k: eA==}}",
    )
    result = judge(FakeCluster(secret), text)
    assert result["message"] == "Secret ns/s: data.k: Invalid value: <redacted>"


def test_a_loop_over_nothing_is_in_the_report() -> None:
    """0 iterations: passed, and proved nothing."""
    cluster = FakeCluster(pod("p1", containerStatuses=[]))
    text = check("assert", NAMED.replace("phase: %s", "~.containerStatuses: {ready: true}"))
    assert judge(cluster, text)["output"][-1].endswith("0 iterations")
