"""A run while its cluster misbehaves, for real: the right outcome in time, and nothing left.

Processes are killed or stopped by their id; what is left is listed through a second client (decision 83).
At the end of the file stands a table: fault, outcome, seconds, leftovers.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cluster.validate_runs import Case, Ended, left_of, recipe, shell
from tests.controlplane.client import Client, Document, eventually
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.nodes import Node
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster


@dataclass
class Table:
    """What each fault came to."""

    rows: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, fault: str, ended: Ended, left: list[str], outcome: str = "") -> None:
        """Note a row; nothing may be left."""
        statuses = ", ".join(f"{name} {test['status']}" for name, test in ended.tests.items())
        said = outcome or f"exit {ended.status}, {statuses or 'no check ran'}"
        self.rows.append((fault, said, f"{ended.seconds:.1f} s", ", ".join(left) or "none"))
        assert left == [], fault


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """The table, printed when the last test of the file has ended."""
    made = Table()
    yield made
    plugins = request.config.pluginmanager
    reporter, capture = plugins.getplugin("terminalreporter"), plugins.getplugin("capturemanager")
    rows = [("FAULT", "OUTCOME", "TIME", "LEFT"), *made.rows]
    widths = [max(len(row[index]) for row in rows) for index in range(4)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    with capture.global_and_fixture_disabled():
        for line in ["", *lines]:
            reporter.write_line(line)


@pytest.fixture
def case(tmp_path: Path, plane: ControlPlane) -> Case:
    """A folder and the shared plane."""
    return Case(tmp_path, plane.kubeconfig)


def pods_of(api: Client, namespace: str, phase: str = "") -> list[Document]:
    """Pods of checks in a namespace."""
    found = api.list("Pod", namespace, labelSelector="app.kubernetes.io/component=validation")
    return [pod for pod in found if not phase or pod["status"].get("phase") == phase]


def running(api: Client, namespace: str, count: int = 1) -> list[Document]:
    """Wait until pods of checks run."""

    def found() -> list[Document] | None:
        pods = pods_of(api, namespace, "Running")
        return pods if len(pods) >= count else None

    return eventually("a check to run", found, 120)


def snapshot_of(api: Client, namespace: str) -> set[str]:
    """Everything that is no run's, so that it can be compared afterwards."""
    kinds = ("ConfigMap", "ServiceAccount", "Secret", "Job", "Pod")
    return {
        f"{kind}/{one['metadata']['name']}"
        for kind in kinds
        for one in api.list(kind, namespace)
        if "aicr.run/run-id" not in one["metadata"].get("labels", {})
    }


def connections(plane: ControlPlane, pid: int) -> set[str]:
    """The connections of a process to the plane's API server, by the kernel's numbers."""
    port = f"{plane.port:04X}"
    links = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    to_server = {words[9] for words in map(str.split, lines) if words[2].rpartition(":")[2] == port}
    return {one for one in to_server if f"socket:[{one}]" in links}


def test_the_api_server_restarts(
    case: Case, plane: ControlPlane, api: Client, namespace: str, table: Table
) -> None:
    """Killed while a check runs: the check ends, its log is whole, the run passes."""
    case.write(
        recipe(deployment=["long"]),
        [shell("long", "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.5; done")],
    )
    started = case.start("-n", namespace, factor="0.3")
    running(api, namespace)
    plane.apiserver.kill()
    plane.apiserver.start()
    plane.wait_ready()
    ended = started.ended()
    assert ended.status == 0, ended.err
    assert ended.tests["long"]["stdout"] == [f"line {number}" for number in range(1, 9)]
    table.add("API server killed and restarted", ended, left_of(api.call, ended.run_id))


def test_the_server_is_frozen_for_a_while(
    case: Case, plane: ControlPlane, api: Client, namespace: str, table: Table
) -> None:
    """Stopped until every watch is given up for its silence, and continued: the run passes."""
    case.write(recipe(deployment=["long"]), [shell("long", "sleep 2; echo done", timeout="120s")])
    # A tenth is 15 s of silence; less would leave ordinary requests of a slow machine no time.
    started = case.start("-n", namespace, factor="0.1")
    running(api, namespace)
    plane.apiserver.pause()
    try:
        before = eventually(
            "its connections", lambda: connections(plane, started.process.pid) or None
        )
        eventually(
            "the run to give its connections up",
            lambda: not before & connections(plane, started.process.pid),
        )
    finally:
        plane.apiserver.resume()
    plane.wait_ready()
    ended = started.ended()
    assert ended.status == 0, ended.err
    assert ended.tests["long"]["stdout"] == ["done"]
    table.add("watches cut (server frozen)", ended, left_of(api.call, ended.run_id))


def test_the_pod_is_evicted(case: Case, api: Client, namespace: str, table: Table) -> None:
    """By the eviction API: no verdict, the next check runs."""
    case.write(
        recipe(deployment=["evicted", "next"]),
        [shell("evicted", "exec sleep 60", timeout="60s"), shell("next", "true")],
    )
    started = case.start("-n", namespace)
    name = running(api, namespace)[0]["metadata"]["name"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    api.call("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", eviction)
    ended = started.ended()
    assert ended.status == 8
    assert ended.tests["evicted"]["status"] == "other"
    assert ended.tests["next"]["status"] == "passed"
    table.add("pod evicted", ended, left_of(api.call, ended.run_id))


def test_an_image_cannot_be_had(case: Case, api: Client, namespace: str, table: Table) -> None:
    """Pulled and not found, never pulled and not there, no image name at all: cause and end."""
    case.write(
        recipe(deployment=["pulled", "never", "name"]),
        [
            shell("pulled", "true", image="registry.invalid/nothing:v1", timeout="10m"),
            shell("never", "true", image="aicr.local/aicr-checks-nothing:v1", timeout="10m"),
            shell("name", "true", image="test.local/check:v1"),
        ],
    )
    ended = case.run("-n", namespace, "--parallel", "3", factor="0.1")
    assert ended.status == 8
    assert "ErrImageNeverPull" in ended.tests["never"]["message"]
    assert "kind load docker-image" in ended.tests["never"]["message"]
    pulled = ended.tests["pulled"]["message"]
    assert "ImagePullBackOff" in pulled or "ErrImagePull" in pulled
    assert ended.tests["name"]["status"] == "passed"
    # Long before the budgets of the checks.
    assert ended.seconds < 240
    table.add("image cannot be pulled", ended, left_of(api.call, ended.run_id))


def test_the_namespace_is_being_deleted(case: Case, api: Client, table: Table) -> None:
    """Refused before any right is given."""
    name = f"going-{time.monotonic_ns()}"
    make_namespace(api, name)
    held = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "held", "finalizers": ["test.aicr.run/held"]},
    }
    api.create(held, name)
    api.delete("Namespace", name)
    case.write(recipe(deployment=["a"]), [shell("a", "true")])
    ended = case.run("-n", name)
    assert ended.status == 2
    assert f'namespace "{name}" is being deleted' in ended.err
    left = left_of(api.call, ended.run_id)
    path = f"/api/v1/namespaces/{name}/configmaps/held"
    api.call(
        "PATCH",
        path,
        {"metadata": {"finalizers": None}},
        content_type="application/merge-patch+json",
    )
    table.add("namespace terminating", ended, left, "exit 2, nothing made")


def allowed_to_make_accounts(api: Client, namespace: str, user: str) -> None:
    """Wait until the API server knows of a role that was just bound."""
    attributes = {"namespace": namespace, "verb": "create", "resource": "serviceaccounts"}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    eventually("the role to hold", lambda: api.call("POST", path, review)["status"]["allowed"])


def test_rights_are_missing(
    case: Case, plane: ControlPlane, api: Client, namespace: str, table: Table
) -> None:
    """A user who may make accounts and no bindings: exit 4, and the account is gone again."""
    user = "small"
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        {
            "apiGroups": [""],
            "resources": ["serviceaccounts", "configmaps"],
            "verbs": ["get", "create", "patch", "delete"],
        },
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["clusterrolebindings"],
            "verbs": ["get", "delete"],
        },
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "test-small"},
        "rules": rules,
    }
    bound = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "test-small"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "test-small",
        },
        "subjects": [{"kind": "User", "name": user}],
    }
    base = "/apis/rbac.authorization.k8s.io/v1"
    api.call("POST", f"{base}/clusterroles", role)
    api.call("POST", f"{base}/clusterrolebindings", bound)
    try:
        allowed_to_make_accounts(api, namespace, user)
        case.write(recipe(deployment=["a"]), [shell("a", "true")])
        ended = case.run("-n", namespace, kubeconfig=plane.kubeconfig_for(user))
    finally:
        api.request("DELETE", f"{base}/clusterrolebindings/test-small")
        api.request("DELETE", f"{base}/clusterroles/test-small")
    assert ended.status == 4, ended.err
    assert "what was made is removed" in ended.err
    table.add("RBAC denied", ended, left_of(api.call, ended.run_id))


def test_the_quota_is_used_up(case: Case, api: Client, namespace: str, table: Table) -> None:
    """No pod can be made: the check ends with the server's words, long before its budget."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    }
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    api.call("POST", path, quota)
    eventually(
        "the quota to hold",
        lambda: api.call("GET", f"{path}/none").get("status", {}).get("hard", {}).get("pods"),
    )
    case.write(recipe(deployment=["a"]), [shell("a", "true", timeout="10m")])
    ended = case.run("-n", namespace, factor="0.1")
    assert ended.status == 8
    assert ended.tests["a"]["status"] == "other"
    assert "exceeded quota" in ended.tests["a"]["message"]
    assert ended.seconds < 240
    table.add("quota full", ended, left_of(api.call, ended.run_id))


def test_two_runs_at_once(case: Case, api: Client, namespace: str, table: Table) -> None:
    """Same namespace, same checks: neither sees or removes anything of the other."""
    api.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ours"}, "data": {"a": "b"}},
        namespace,
    )
    before = snapshot_of(api, namespace)
    case.write(recipe(deployment=["a"]), [shell("a", "echo $AICR_RUN_ID; sleep 1")])
    both = [case.start("-n", namespace) for _ in range(2)]
    ended = [one.ended() for one in both]
    for one in ended:
        assert one.status == 0, one.err
        assert one.tests["a"]["stdout"] == [one.run_id]
    assert ended[0].run_id != ended[1].run_id
    assert snapshot_of(api, namespace) == before
    left = [entry for one in ended for entry in left_of(api.call, one.run_id)]
    table.add("two runs at once", ended[0], left, "both exit 0")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "TERM"])
def test_a_run_is_interrupted(
    case: Case, api: Client, namespace: str, table: Table, number: signal.Signals
) -> None:
    """In the middle of a check: exit 128 + signal, and nothing is left."""
    case.write(recipe(deployment=["long"]), [shell("long", "exec sleep 60", timeout="60s")])
    started = case.start("-n", namespace)
    running(api, namespace)
    started.process.send_signal(number)
    eventually("its answer", lambda: "removing what this run has made" in started.err)
    started.process.send_signal(number)
    ended = started.ended()
    assert ended.status == 128 + number, ended.err
    table.add(f"interrupted by {number.name}", ended, left_of(api.call, ended.run_id))


def test_fifty_checks_ten_at_a_time_lose_no_line(
    case: Case, api: Client, namespace: str, table: Table
) -> None:
    """Every line of every check is in the report, in order, and the checks in the catalogue's."""
    names = [f"check-{number:02d}" for number in range(50)]
    script = "i=0; while [ $i -lt 200 ]; do echo $AICR_VALIDATOR_NAME $i; i=$((i+1)); done"
    case.write(recipe(deployment=names), [shell(name, script, timeout="120s") for name in names])
    ended = case.start("-n", namespace, "--parallel", "10").ended(600)
    assert ended.status == 0, ended.err[-2000:]
    assert list(ended.tests) == names
    for name in names:
        assert ended.tests[name]["stdout"] == [f"{name} {number}" for number in range(200)]
    left = left_of(api.call, ended.run_id)
    table.add("50 checks, 10 at once", ended, left, "exit 0, 10,000 of 10,000 lines")


def test_a_node_dies(tmp_path: Path, table: Table) -> None:
    """Killed with its pod: the check has no verdict in time, says why, and its pod is removed."""
    with ControlPlane([Node("dies", cpu="4")], node_grace=4) as plane:
        api = plane.client()
        make_namespace(api, "checks")
        case = Case(tmp_path, plane.kubeconfig)
        case.write(recipe(deployment=["long"]), [shell("long", "exec sleep 100", timeout="5s")])
        # The node counts as lost after 4 s and the look that follows, up to 5 s later; the check is
        # waited for 20 s.
        started = case.start("-n", "checks", factor="0.1")
        running(api, "checks")
        plane.agent("dies").kill()
        ended = started.ended()
        assert ended.status == 8, ended.err
        test = ended.tests["long"]
        assert test["status"] == "other"
        assert "timeout: validator did not complete within 5s" in test["message"]
        assert "node dies is not ready" in test["message"]
        assert test["extra"] == {"code": "TIMEOUT"}
        table.add("node lost", ended, left_of(api.call, ended.run_id))
