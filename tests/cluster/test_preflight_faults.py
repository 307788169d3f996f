"""Preflight while its cluster misbehaves: the chart with two replicas, real faults by pid (decision 83).

The rules: no check passes on a gang that is not real, no pod is lost, nothing is blocked outside
opted-in namespaces. At the end stands one table: fault, outcome, seconds. Faults that tests beside the
webhook and the gang controllers already make are gathered into it, not made again.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import os
import secrets
import signal
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cluster.gang_replicas import becomes_complete, state
from tests.cluster.preflight_release import (
    ALLREDUCE,
    DCGM,
    LABEL,
    LOOPBACK,
    Release,
    checked,
    gpu_pod,
    installed,
    member,
    native_group,
    order,
    tell,
)
from tests.cluster.workloads import container, deployment, pod, pod_becomes, pod_is_gone
from tests.controlplane.client import MERGE, ApiError, Client, Document, eventually, path_of
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.plane import ControlPlane
from tests.preflight_gang.admitting import review

from aicr.preflight.gang.naming import config_map_name

pytestmark = pytest.mark.cluster
ALONE = [DCGM, LOOPBACK]
#: Test elsewhere → the fault that it makes, and what its passing says.
ELSEWHERE = [
    (
        "test_a_webhook_that_is_killed_under_load_costs_what_its_policy_says[Fail]",
        "webhook killed under load, Fail",
        "refused while away, every stored pod has checks; pods without GPUs are created",
    ),
    (
        "test_a_webhook_that_is_killed_under_load_costs_what_its_policy_says[Ignore]",
        "webhook killed under load, Ignore",
        "none refused; without checks while away; healed by a restart",
    ),
    (
        "test_a_webhook_that_is_told_to_end_loses_no_admission",
        "webhook told to end under load",
        "none refused while it drains",
    ),
    (
        "test_an_expired_certificate_closes_the_door_until_it_is_rotated",
        "certificate expired, then rotated",
        "refused by the API server; admits again without a restart",
    ),
    (
        "test_gangs_survive_a_killed_api_server_and_the_end_of_the_leader",
        "API server killed with a gang complete; leader ends",
        "generation kept; the next one forms under the other replica",
    ),
    (
        "test_a_volcano_gang_whose_group_comes_late_is_edited_and_is_used_again",
        "PodGroup missing, changed, and its name used again",
        "count 0, then followed; complete only at the right size; names of the dead are gone",
    ),
    (
        "test_a_native_gang_of_four_forms_and_a_replaced_pod_makes_the_next_generation",
        "a pod of a complete gang replaced",
        "generation 2; each check read the peers of its own generation",
    ),
]


@dataclass
class Table:
    """What each fault came to."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, fault: str, outcome: str, seconds: float) -> None:
        """Note a row."""
        self.rows.append((fault, outcome, f"{seconds:.1f} s"))


@pytest.fixture(scope="session")
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """The table, printed when the last test of the run has ended."""
    made = Table()
    yield made
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    ran = {
        report.nodeid.rpartition("::")[2]: report
        for outcome in ("passed", "failed")
        for report in (reporter.getreports(outcome) if reporter else ())
        if report.when == "call"
    }
    for test, fault, outcome in ELSEWHERE:
        if (report := ran.get(test)) is not None:
            made.add(fault, outcome if report.passed else "FAILED", report.duration)
        else:
            made.rows.append((fault, "its test was not in this run", "-"))
    rows = [("FAULT", "OUTCOME", "TIME"), *made.rows]
    widths = [max(len(row[index]) for row in rows) for index in range(3)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    tell(request.config, lines)


@pytest.fixture(scope="module")
def release(plane: ControlPlane) -> Iterator[Release]:
    """Two replicas."""
    name = f"gates-{secrets.token_hex(3)}"
    with installed(plane, name, replicaCount=2) as made:
        made.ready(2)
        eventually("a leader", lambda: made.leader() or None)
        yield made


@pytest.fixture
def team(release: Release, namespace: str) -> str:
    """A namespace that has opted in."""
    opt_in(release.api, namespace)
    eventually("the label to count", lambda: checked(release.api, namespace, gpu_pod("p")))
    return namespace


def opt_in(api: Client, namespace: str) -> None:
    """Label a namespace."""
    body = {"metadata": {"labels": {LABEL: "enabled"}}}
    api.call("PATCH", path_of("Namespace", name=namespace), body, content_type=MERGE)


class Load:
    """Creates GPU pods, four at a time, and keeps what became of each and when.

    Four, so that the API server has connections to every replica.
    """

    def __init__(self, release: Release, namespace: str) -> None:
        self._client = release.plane.client()
        self._namespace = namespace
        self._ending = threading.Event()
        self._numbers = itertools.count()
        self._threads = [threading.Thread(target=self._create) for _ in range(4)]
        self.stored: dict[str, list[str]] = {}
        self.refused: list[tuple[float, str]] = []
        self.lost: list[str] = []

    def _create(self) -> None:
        while not self._ending.is_set():
            name = f"load-{next(self._numbers)}"
            try:
                made = self._client.create(gpu_pod(name), self._namespace)
                self.stored[name] = order(made)
            except ApiError as error:
                self.refused.append((time.monotonic(), error.message))
            except (OSError, http.client.HTTPException):
                # The API server itself is away; whether the pod was stored is not known.
                self.lost.append(name)
                time.sleep(0.05)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def goes_on(self, more: int = 5) -> None:
        """Wait until so many more pods are stored."""
        before = len(self.stored)
        eventually("the load", lambda: len(self.stored) >= before + more, pause=0.02)

    def refusals_while_it_goes_on(self, more: int) -> int:
        """How many pods are refused until so many more are stored."""
        before = len(self.refused)
        self.goes_on(more)
        return len(self.refused) - before

    def must_be_whole(self, api: Client) -> str:
        """Every pod that was stored is there, with its checks; says how many were refused."""
        found = {one["metadata"]["name"]: order(one) for one in api.list("Pod", self._namespace)}
        wrong = [name for name, checks in self.stored.items() if checks != ALONE]
        assert wrong == []
        assert self.stored.items() <= found.items()
        assert [name for name in self.lost if found.get(name, ALONE) != ALONE] == []
        span = self.refused[-1][0] - self.refused[0][0] if self.refused else 0.0
        return f"{len(self.stored)} stored, all with checks; {len(self.refused)} refused" + (
            f" within {span:.1f} s" if self.refused else ""
        )


#: Letters of /proc for what has taken effect.
EFFECT = {signal.SIGSTOP: {"T"}, signal.SIGKILL: {"Z", "X"}}


def kill(release: Release, made: Document, number: signal.Signals) -> None:
    """Send a signal to what runs in one of the webhook's pods, and wait until every thread has taken it.

    A signal only asks: on a busy machine threads run on, and answer meanwhile.
    """
    pids = release.pids(made)
    assert pids
    for pid in pids:
        os.kill(pid, number)
    if number in EFFECT:
        wanted = EFFECT[number]
        eventually(
            f"{number.name} to take effect",
            lambda: all(states(pid) <= wanted for pid in pids),
            pause=0.01,
        )


def states(pid: int) -> set[str]:
    """The letters of a process's threads; nothing for one that is no more."""
    found = set()
    for file in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            found.add(file.read_text().rpartition(")")[2].split()[0])
    return found


@contextlib.contextmanager
def impatient(api: Client) -> Iterator[None]:
    """The API server waits for 2 s only, so that a hung replica does not hold up a test."""
    path = path_of("MutatingWebhookConfiguration", name="preflight")

    def wait(seconds: int) -> None:
        change = {"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": seconds}
        api.call("PATCH", path, [change], content_type="application/json-patch+json")

    before = api.call("GET", path)["webhooks"][0]["timeoutSeconds"]
    wait(2)
    try:
        yield
    finally:
        wait(before)


def test_one_of_two_replicas_is_deleted_under_load(
    release: Release, team: str, table: Table
) -> None:
    """It drains: nobody notices, and the Deployment makes another."""
    began = time.monotonic()
    gone = release.pods()[0]["metadata"]["name"]
    with Load(release, team) as load:
        load.goes_on()
        release.api.delete("Pod", gone, release.namespace)
        pod_is_gone(release.api, release.namespace, gone)
        load.goes_on()
    assert load.refused == []
    table.add(
        "one of two replicas deleted under load",
        load.must_be_whole(release.api),
        time.monotonic() - began,
    )
    release.ready(2)


def test_one_of_two_replicas_hangs_under_load(release: Release, team: str, table: Table) -> None:
    """Stopped by SIGSTOP: what reaches it is refused after the time limit, never stored unchecked."""
    began = time.monotonic()
    before = [(one, release.admitted(one)) for one in release.pods()]
    with impatient(release.api), Load(release, team) as load:
        load.goes_on(20)
        # The API server keeps its connections: the one that it asks most is the one to stop.
        hung = max(before, key=lambda one: release.admitted(one[0]) - one[1])[0]
        address = hung["status"]["podIP"]
        kill(release, hung, signal.SIGSTOP)
        eventually("its end in the Service", lambda: address not in release.proxy.pods)
        load.goes_on(30)
        # What had a connection to it finds out; a writer may have one refusal under way at the beginning.
        eventually("the refusals to end", lambda: load.refusals_while_it_goes_on(30) <= 4, 120)
        kill(release, hung, signal.SIGCONT)
        release.ready(2)
        load.goes_on()
    # Without one of these the fault was none: nobody had asked the hung replica.
    assert load.refused
    assert all("failed calling webhook" in message for _, message in load.refused)
    table.add(
        "one of two replicas stopped (SIGSTOP), Fail",
        load.must_be_whole(release.api),
        time.monotonic() - began,
    )


def test_the_leader_is_killed_and_another_replica_takes_over(
    release: Release, team: str, table: Table
) -> None:
    """By SIGKILL, so that its Lease has to run out; a pod is replaced meanwhile."""
    api, name = release.api, config_map_name(f"kubernetes-{team}-train")
    native_group(api, team, 2)
    for one in ("a", "b"):
        api.create(member(one, native=True), team)
    becomes_complete(api, team, name, 1, ["a", "b"])

    def leading() -> Document | None:
        who = release.leader()
        return next((one for one in release.pods() if one["metadata"]["name"] == who), None)

    first = eventually("a leader that is there", leading)
    lease = api.get("Lease", "aicr-preflight-controllers", release.namespace)
    holder = lease["spec"]["holderIdentity"]
    began = time.monotonic()
    kill(release, first, signal.SIGKILL)
    api.delete("Pod", "b", team, {"gracePeriodSeconds": 0})
    pod_is_gone(api, team, "b")
    eventually("admissions", lambda: checked(api, team, gpu_pod("try")))
    # A connection may still lead to the one that is dead.
    eventually("its successor to be stored", lambda: api.create(member("c", native=True), team))

    def taken_over() -> bool:
        found = api.get("Lease", "aicr-preflight-controllers", release.namespace)
        return bool(found["spec"]["holderIdentity"] not in ("", holder))

    eventually("another leader", taken_over)
    took = time.monotonic() - began
    becomes_complete(api, team, name, 2, ["a", "c"])
    pod_becomes(api, team, "c", "Running")
    assert api.logs(team, "c", container=ALLREDUCE).startswith("generation 2\n")
    table.add(
        "leader killed (SIGKILL), a pod replaced meanwhile",
        f"another replica leads after {took:.1f} s (Lease 15 s, then up to 2 s); generation 2 completes",
        time.monotonic() - began,
    )
    release.ready(2)


@contextlib.contextmanager
def stuttering(plane: ControlPlane) -> Iterator[None]:
    """The API server stopped for 0.4 s of every 0.6 s."""
    ending = threading.Event()

    def stutter() -> None:
        while not ending.is_set():
            plane.apiserver.pause()
            time.sleep(0.4)
            plane.apiserver.resume()
            ending.wait(0.2)

    thread = threading.Thread(target=stutter)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def test_the_api_server_is_slow_while_a_gang_is_admitted(
    release: Release, plane: ControlPlane, team: str, table: Table
) -> None:
    """No pod of it is stored without checks, and it forms."""
    api, began = release.api, time.monotonic()
    native_group(api, team, 4)
    names = [f"w-{n}" for n in range(4)]
    refused: list[str] = []

    def stored(made: Document) -> Document:
        while True:
            try:
                return api.create(made, team)
            except ApiError as error:
                refused.append(error.message)

    with stuttering(plane):
        for one in names:
            assert order(stored(member(one, native=True))) == [*ALONE, ALLREDUCE]
        name = config_map_name(f"kubernetes-{team}-train")
        becomes_complete(api, team, name, 1, names)
    for one in names:
        pod_becomes(api, team, one, "Running")
    assert all("failed calling webhook" in text for text in refused)
    table.add(
        "API server slow (SIGSTOP 0.4 s of 0.6 s) while a gang of 4 is admitted",
        f"4 stored, all with checks, {len(refused)} refused and tried again; complete, generation 1",
        time.monotonic() - began,
    )


def test_the_api_server_is_killed_under_load(
    release: Release, plane: ControlPlane, team: str, table: Table
) -> None:
    """Once it is back the webhook answers as before; what was stored is there and has its checks."""
    began = time.monotonic()
    with Load(release, team) as load:
        load.goes_on()
        plane.apiserver.kill()
        time.sleep(0.5)
        plane.apiserver.start()
        plane.wait_ready()
        load.goes_on(20)
    assert [text for _, text in load.refused if "failed calling webhook" in text] == []
    release.ready(2)
    api, name = release.api, config_map_name(f"kubernetes-{team}-after")
    native_group(api, team, 1, "after")
    api.create(member("after", "after", native=True), team)
    eventually("a gang after it", lambda: len(state(api, team, name).peers) == 1)
    table.add(
        "API server killed under load, and back",
        f"{load.must_be_whole(api)}; gangs form again",
        time.monotonic() - began,
    )


def ask(release: Release, body: bytes) -> tuple[int, bytes]:
    """Status and answer of a request to the webhook's Service."""
    context = ssl.create_default_context(cadata=release.authority.cert_pem.bytes().decode())
    context.check_hostname = False
    connection = http.client.HTTPSConnection(
        release.proxy.address, release.proxy.port, timeout=60, context=context
    )
    try:
        connection.request("POST", "/mutate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def large(name: str, size: int) -> Document:
    """A GPU pod of so many bytes, in fields that may be as long."""
    made = gpu_pod(name)
    [only] = made["spec"]["containers"]
    only["env"] = [{"name": f"PAD_{n}", "value": "x" * 100_000} for n in range(size // 100_000)]
    return made


def test_large_pods(release: Release, team: str, table: Table) -> None:
    """5 MB never pass the API server; the webhook decides them all the same. 1 MB is stored, checked."""
    began = time.monotonic()
    with pytest.raises(ApiError) as caught:
        release.api.create(large("five", 5_000_000), team)
    assert caught.value.status == 413
    status, answer = ask(release, review(large("five", 5_000_000), team))
    response = json.loads(answer)["response"]
    assert (status, response["allowed"]) == (200, True)
    assert ALLREDUCE not in base64.b64decode(response["patch"]).decode()
    assert order(release.api.create(large("one", 1_000_000), team)) == ALONE
    table.add(
        "pods of 5 MB and 1 MB",
        "5 MB: 413 by the API server, decided by the webhook; 1 MB: stored with checks",
        time.monotonic() - began,
    )


MALFORMED: dict[str, tuple[bytes, Callable[[int, bytes], bool]]] = {
    "not JSON": (b"{", lambda status, _: status == 400),
    "no review": (b"[]", lambda status, _: status == 400),
    "bytes": (bytes(range(256)), lambda status, _: status == 400),
    "deep": (b"[" * 100_000, lambda status, _: status == 400),
    "pod is text": (
        json.dumps(
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "request": {"uid": "u", "operation": "CREATE", "object": "x"},
            }
        ).encode(),
        lambda status, body: status == 200 and not json.loads(body)["response"]["allowed"],
    ),
}


def test_malformed_reviews_under_load(release: Release, team: str, table: Table) -> None:
    """Each is answered, none is admitted, and the webhook goes on serving everybody else."""
    began = time.monotonic()
    with Load(release, team) as load:
        for _ in range(4):
            for name, (body, good) in MALFORMED.items():
                status, answer = ask(release, body)
                assert good(status, answer), (name, status, answer[:200])
        load.goes_on()
    assert load.refused == []
    table.add(
        f"{4 * len(MALFORMED)} malformed reviews under load",
        f"400, or refused with the reason; {load.must_be_whole(release.api)}",
        time.monotonic() - began,
    )


def test_all_replicas_are_killed_and_the_release_opted_in(
    release: Release, team: str, table: Table
) -> None:
    """GPU pods of opted-in namespaces wait; all else goes on, the webhook's own pods most of all."""
    api, began = release.api, time.monotonic()
    opt_in(api, release.namespace)
    other = f"{team[:50]}-plain"
    make_namespace(api, other)
    for one in release.pods():
        kill(release, one, signal.SIGKILL)
        options = {"gracePeriodSeconds": 0}
        api.delete("Pod", one["metadata"]["name"], release.namespace, options)
    with pytest.raises(ApiError) as caught:
        api.create(gpu_pod("early"), team)
    assert "failed calling webhook" in caught.value.message
    size = {"limits": {"nvidia.com/gpu": "1"}}
    gated = deployment("gated", 3, container("sleep 1", resources=size), schedulerName="nobody")
    api.create(gated, team)
    # Not one of these asks the webhook.
    assert order(api.create(gpu_pod("gpu"), other)) == []
    assert order(api.create(pod("cpu", container("true"), schedulerName="nobody"), team)) == []
    system = pod("preflight-fault", container("true"), schedulerName="nobody")
    assert order(api.create(system, "kube-system")) == []
    api.delete("Pod", "preflight-fault", "kube-system", {"gracePeriodSeconds": 0})
    release.ready(2)
    back = time.monotonic() - began

    def pods() -> list[Document] | None:
        found = api.list("Pod", team, labelSelector="app=gated")
        return found if len(found) == 3 else None

    for one in eventually("the Deployment's pods", pods, 180):
        assert order(one) == ALONE
    api.delete("Namespace", other)
    body = {"metadata": {"labels": {LABEL: None}}}
    api.call("PATCH", path_of("Namespace", name=release.namespace), body, content_type=MERGE)
    table.add(
        "all replicas killed and deleted, Fail, own namespace opted in",
        f"webhook back by itself in {back:.1f} s; a Deployment's 3 pods come then, with checks; "
        "CPU pods, plain namespaces, kube-system untouched",
        time.monotonic() - began,
    )
