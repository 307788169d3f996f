"""What the real scheduler decides: gangs, devices, hollow nodes; and a webhook that changes pods."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.cluster.workloads import (
    condition,
    container,
    deployment,
    job,
    job_ends,
    pod,
    pod_becomes,
)
from tests.controlplane.agent.claims import DRIVER, VARIABLE
from tests.controlplane.client import ApiError, Client, Document, eventually
from tests.controlplane.nodes import HOLLOW, Node
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster

CLAIMED: Document = {"resources": {"claims": [{"name": "gpu"}]}}


def gang_member(number: int) -> Document:
    """A pod of the gang "three"."""
    return pod(
        f"member-{number}",
        container("exec sleep 1000"),
        schedulingGroup={"podGroupName": "three"},
    )


def bound(api: Client, namespace: str) -> list[str]:
    """Names of pods that have a node."""
    pods = api.list("Pod", namespace)
    return sorted(one["metadata"]["name"] for one in pods if one["spec"].get("nodeName"))


def test_a_gang_of_three_binds_all_or_nothing(api: Client, namespace: str) -> None:
    """Two of three wait; with the third all have nodes and run."""
    api.create(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "three"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
        },
        namespace,
    )
    api.create(gang_member(0), namespace)
    api.create(gang_member(1), namespace)
    # A pod outside the gang shows that the scheduler has had its turn with the two.
    api.create(pod("alone", container("true")), namespace)
    pod_becomes(api, namespace, "alone", "Succeeded")
    assert bound(api, namespace) == ["alone"]
    api.create(gang_member(2), namespace)
    for number in range(3):
        pod_becomes(api, namespace, f"member-{number}", "Running")


def test_an_indexed_job_becomes_a_gang_where_that_is_turned_on() -> None:
    """The Job controller writes the PodGroup, and the Job runs to the end."""
    with ControlPlane([Node("n")], jobs_make_gangs=True) as own:
        client = own.client()
        indexed = job("ranks", container("echo $JOB_COMPLETION_INDEX"), pods=3)
        indexed["spec"]["completionMode"] = "Indexed"
        client.create(indexed, "default")
        groups = eventually("a PodGroup", lambda: client.list("PodGroup", "default") or None)
        assert groups[0]["spec"]["schedulingPolicy"]["gang"]["minCount"] == 3
        assert job_ends(client, "default", "ranks") == "Complete"
        said = [
            client.logs("default", one["metadata"]["name"]) for one in client.list("Pod", "default")
        ]
        assert sorted(said) == ["0\n", "1\n", "2\n"]


def test_a_gang_that_does_not_fit_holds_nothing(api: Client, namespace: str) -> None:
    """Three pods of all GPUs of a node, on two nodes: none is bound, and a single pod still fits."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "three"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    api.create(group, namespace)
    eight: Document = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    for number in range(3):
        member = gang_member(number)
        member["spec"]["containers"][0] |= eight
        api.create(member, namespace)
    api.create(pod("alone", container("true", **eight)), namespace)
    pod_becomes(api, namespace, "alone", "Succeeded")
    assert bound(api, namespace) == ["alone"]


def test_a_deployment_that_tolerates_hollow_nodes_is_available_there(
    api: Client, namespace: str
) -> None:
    """Its pods are said to run, at addresses that nobody has."""
    selector = {"test.aicr.run/pool": "hollow"}
    api.create(
        deployment(
            "pretends",
            3,
            container("true", image="any.image/at:all"),
            tolerations=[{"key": HOLLOW, "operator": "Exists"}],
            nodeSelector=selector,
        ),
        namespace,
    )
    eventually(
        "the Deployment to be available",
        lambda: condition(api.get("Deployment", "pretends", namespace), "Available"),
    )
    nodes = {one["spec"]["nodeName"] for one in api.list("Pod", namespace)}
    assert nodes <= {"hollow-1", "hollow-2"}


def test_a_job_never_lands_on_a_hollow_node(api: Client, namespace: str) -> None:
    """The taint keeps it off, also when it asks for such a node by name of a label."""
    api.create(job("runs", container("true"), pods=8), namespace)
    assert job_ends(api, namespace, "runs") == "Complete"
    nodes = {one["spec"]["nodeName"] for one in api.list("Pod", namespace)}
    assert nodes <= {"runs-1", "runs-2"}
    asking = job("asks", container("true"), nodeSelector={"test.aicr.run/pool": "hollow"})
    api.create(asking, namespace)

    def refused() -> str | None:
        for one in api.list("Pod", namespace, labelSelector="job-name=asks"):
            for found in one["status"].get("conditions", []):
                if found["type"] == "PodScheduled" and found["status"] == "False":
                    return str(found["message"])
        return None

    assert "untolerated taint" in eventually("the scheduler's refusal", refused)


def test_a_job_that_tolerates_everything_fails_on_a_hollow_node(
    api: Client, namespace: str
) -> None:
    """Better a clear failure than a Job that pretends to run for ever."""
    careless = job(
        "careless",
        container("true"),
        tolerations=[{"operator": "Exists"}],
        nodeSelector={"test.aicr.run/pool": "hollow"},
    )
    api.create(careless, namespace)
    assert job_ends(api, namespace, "careless") == "Failed"
    (found,) = api.list("Pod", namespace)
    assert found["status"]["reason"] == "HollowNode"


def claim_template(count: int) -> Document:
    """A template for claims of *count* devices."""
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def output(api: Client, namespace: str, name: str) -> str:
    """What a pod has written, once it has."""
    return eventually("output", lambda: api.logs(namespace, name) or None)


def claiming(name: str, script: str) -> Document:
    """A pod with a claim from the template."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    return pod(name, container(script, **CLAIMED), resourceClaims=claims)


def test_a_claimed_device_is_allocated_and_the_pod_runs_with_it(
    api: Client, namespace: str
) -> None:
    """The scheduler writes the allocation, the driver prepares it, two pods get different devices."""
    api.create(claim_template(2), namespace)
    script = f"echo ${VARIABLE}; exec sleep 1000"
    for name in ("one", "two"):
        api.create(claiming(name, script), namespace)
        found = pod_becomes(api, namespace, name, "Running")
        assert found["spec"]["nodeName"] == "runs-2"
    devices = []
    for name in ("one", "two"):
        devices += output(api, namespace, name).strip().split(",")
    assert sorted(devices) == [f"device-{number}" for number in range(4)]
    api.create(claiming("three", script), namespace)
    eventually(
        "the third to find no device",
        lambda: any(
            one["reason"] == "FailedScheduling" and one["involvedObject"]["name"] == "three"
            for one in api.list("Event", namespace)
        ),
    )
    api.delete("Pod", "one", namespace)
    pod_becomes(api, namespace, "three", "Running")


def test_a_pod_whose_claim_nobody_allocated_does_not_start(api: Client, namespace: str) -> None:
    """Bound past the scheduler, it waits with the reason, for ever."""
    api.create(claim_template(1), namespace)
    sneaky = claiming("sneaky", "true")
    sneaky["spec"]["nodeName"] = "runs-2"
    api.create(sneaky, namespace)

    def told() -> str | None:
        for one in api.list("Event", namespace):
            if one["reason"] == "FailedPrepareDynamicResources" and "allocated" in one["message"]:
                return str(one["message"])
        return None

    assert "is not allocated" in eventually("the refusal", told)
    assert api.get("Pod", "sneaky", namespace)["status"]["phase"] == "Pending"


class _Labels(BaseHTTPRequestHandler):
    """Adds a label to every pod."""

    def do_POST(self) -> None:
        """Answer an AdmissionReview."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        patch = [{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]
        answer = {
            "uid": review["request"]["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
        }
        body = json.dumps({**review, "request": None, "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@contextlib.contextmanager
def webhook(plane: ControlPlane) -> Iterator[int]:
    """Serve `_Labels` with a certificate of the plane's authority; yields the port."""
    pair = plane.authority.issue("webhook", common_name="webhook", addresses=[plane.host])
    server = ThreadingHTTPServer((plane.host, 0), _Labels)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def configuration(plane: ControlPlane, namespace: str, port: int) -> Document:
    """Ask the webhook about pods of one namespace."""
    bundle = base64.b64encode(Path(plane.ca_file).read_bytes()).decode()
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [
            {
                "name": "labels.test.aicr.run",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 30,
                "rules": [rule],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "clientConfig": {"url": f"https://{plane.host}:{port}/", "caBundle": bundle},
            }
        ],
    }


def test_a_webhook_by_url_mutates_a_pod_and_refuses_when_it_is_down(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """Admission is the real one, also in how it fails."""
    one = pod("seen", container("true"), labels={"app": "x"})
    with webhook(plane) as port:
        api.create(configuration(plane, namespace, port))
        try:
            # The API server takes a moment to notice a new configuration.
            numbers = itertools.count()

            def labels() -> Document | None:
                one["metadata"]["name"] = f"seen-{next(numbers)}"
                made: Document = api.create(one, namespace)["metadata"]["labels"]
                return made if made.get("seen") else None

            assert eventually("the webhook", labels) == {"app": "x", "seen": "yes"}
        except BaseException:
            api.delete("MutatingWebhookConfiguration", namespace)
            raise
    try:
        one["metadata"]["name"] = "refused"
        with pytest.raises(ApiError, match="failed calling webhook"):
            api.create(one, namespace)
    finally:
        api.delete("MutatingWebhookConfiguration", namespace)
