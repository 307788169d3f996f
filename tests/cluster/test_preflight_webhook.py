"""The preflight webhook behind a real API server: what it stores, refuses, and does while we are away."""

from __future__ import annotations

import base64
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.client import ApiError, Client, Document, eventually, path_of
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.plane import ControlPlane
from tests.preflight.admission_cases import ALLREDUCE, ANNOTATION, DCGM, LOOPBACK, container
from tests.preflight.webhook_process import Webhook

pytestmark = pytest.mark.cluster

LABEL = "nvsentinel.nvidia.com/preflight"
GPU = {"nvidia.com/gpu": "1"}
#: A scheduler that does not exist, so that the pods of these tests are stored and never run.
NOBODY = "nobody"


def gpu_pod(name: str, *, annotations: Document | None = None, **spec: Any) -> Document:
    """A pod with a GPU that no scheduler takes."""
    containers = spec.pop("containers", [container(limits=GPU, requests=GPU)])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"schedulerName": NOBODY, "containers": containers, **spec},
    }


def dry_run(api: Client, namespace: str, made: Document) -> Document:
    """The pod as it would be stored."""
    return api.call("POST", path_of("Pod", namespace), made, query={"dryRun": "All"})


def order(stored: Document) -> list[str]:
    """Names of a pod's init containers."""
    return [item["name"] for item in stored["spec"].get("initContainers") or []]


def configuration(
    webhook: Webhook, authority: bytes, name: str, policy: str, namespace: str
) -> Document:
    """The MutatingWebhookConfiguration, for one namespace so that tests do not meet."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "preflight.nvsentinel.nvidia.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "NoneOnDryRun",
                "failurePolicy": policy,
                "timeoutSeconds": 10,
                "clientConfig": {
                    "url": f"https://localhost:{webhook.port}/mutate",
                    "caBundle": base64.b64encode(authority).decode(),
                },
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["pods"],
                        "operations": ["CREATE"],
                        "scope": "Namespaced",
                    }
                ],
                "namespaceSelector": {
                    "matchLabels": {LABEL: "enabled", "kubernetes.io/metadata.name": namespace}
                },
                # A pod without GPUs is created also while the webhook is away.
                "matchConditions": [
                    {
                        "name": "gpus",
                        "expression": "object.spec.containers.exists(c, has(c.resources.limits) && "
                        "'nvidia.com/gpu' in c.resources.limits) || has(object.spec.resourceClaims)",
                    }
                ],
            }
        ],
    }


@contextmanager
def installed(
    api: Client, folder: Path, namespace: str, *flags: str, policy: str = "Fail", **config: Any
) -> Iterator[Webhook]:
    """A webhook that the API server asks about pods in *namespace*, which is opted in."""
    webhook = Webhook(folder, **config)
    webhook.start(*flags)
    name = f"preflight-{namespace}"
    try:
        webhook.wait_for("Serving")
        authority = webhook.authority.cert_pem.bytes()
        api.call(
            "PATCH",
            path_of("Namespace", name=namespace),
            {"metadata": {"labels": {LABEL: "enabled"}}},
            content_type="application/merge-patch+json",
        )
        api.create(configuration(webhook, authority, name, policy, namespace))
        eventually(
            "the API server to ask the webhook",
            lambda: order(dry_run(api, namespace, gpu_pod("canary"))) or None,
        )
        yield webhook
    finally:
        api.delete("MutatingWebhookConfiguration", name)
        if webhook.process.poll() is None:
            webhook.process.kill()
        webhook.process.wait(60)


@pytest.mark.covers("P-001", "P-011", "P11-28", "P11-38", "I2", "P-169", "P-176")
def test_gpu_pods_of_an_opted_in_namespace_are_stored_with_their_checks(
    api: Client, namespace: str, tmp_path: Path
) -> None:
    """The real API server accepts the patch, and keeps sidecars and the class of service."""
    size = {**GPU, "cpu": "2", "memory": "1Gi"}
    made = gpu_pod(
        "train",
        containers=[container(limits=size, requests=size)],
        initContainers=[
            container("proxy", limits={"cpu": "1", "memory": "1Gi"}, restartPolicy="Always"),
        ],
    )
    other = f"{namespace}-out"
    make_namespace(api, other)
    try:
        with installed(api, tmp_path, namespace):
            stored = api.create(made, namespace)
            assert order(stored) == ["proxy", DCGM, LOOPBACK, ALLREDUCE]
            assert stored["spec"]["initContainers"][0]["restartPolicy"] == "Always"
            assert stored["status"]["qosClass"] == "Guaranteed"
            volumes = {volume["name"] for volume in stored["spec"]["volumes"]}
            assert {"nvsentinel-socket", "nvsentinel-connector-token"} <= volumes
            assert order(api.create(gpu_pod("train"), other)) == []
            cpu = gpu_pod("cpu", containers=[container()])
            assert order(api.create(cpu, namespace)) == []
            # A specification that was read back and is applied again has its checks already.
            copy = {
                **gpu_pod("copy"),
                "spec": {**stored["spec"], "volumes": stored["spec"]["volumes"]},
            }
            assert order(api.create(copy, namespace)) == order(stored)
    finally:
        api.delete("Namespace", other)


@pytest.mark.covers("P11-35", "P11-33", "P11-34")
def test_the_api_server_passes_refusals_and_opt_outs_on(
    api: Client, namespace: str, tmp_path: Path
) -> None:
    """A wrong name is refused with the words of the webhook; an empty value creates a plain pod."""
    with installed(api, tmp_path, namespace):
        with pytest.raises(ApiError) as caught:
            api.create(gpu_pod("wrong", annotations={ANNOTATION: "foo"}), namespace)
        assert caught.value.status == 403
        assert caught.value.message == (
            'admission webhook "preflight.nvsentinel.nvidia.com" denied the request: failed to inject '
            f"init containers: annotation {ANNOTATION} references unknown checks: foo "
            f"(configured: {DCGM}, {LOOPBACK}, {ALLREDUCE})"
        )
        plain = api.create(gpu_pod("plain", annotations={ANNOTATION: ""}), namespace)
        assert order(plain) == []
        chosen = {ANNOTATION: f"{LOOPBACK},{DCGM}"}
        assert order(api.create(gpu_pod("two", annotations=chosen), namespace)) == [LOOPBACK, DCGM]


@pytest.mark.covers("I1", "I10", "P11-62", "P-119")
def test_with_a_cluster_claims_are_read_and_a_dry_run_writes_nothing(
    api: Client, plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """GPUs by claim are recognised; gangs get their ConfigMap, and a dry run leaves no trace."""
    kubeconfig = plane.kubeconfig_for("preflight-webhook", ["system:masters"])
    more: Any = {"gangDiscovery": {}, "gangCoordination": {"enabled": True}, "gpuDraEnabled": True}
    flags = ("--kubeconfig", str(kubeconfig))
    with installed(api, tmp_path, namespace, *flags, **more) as webhook:
        eventually("readiness", lambda: webhook.ask("/readyz") == (200, b"ok"))
        before = {item["metadata"]["name"] for item in api.list("Event", namespace)}
        gang = gpu_pod("w-0", schedulingGroup={"podGroupName": "train"})
        dry = dry_run(api, namespace, gang)
        assert order(dry) == [DCGM, LOOPBACK, ALLREDUCE]
        assert marked(api, namespace) == []
        stored = api.create(gang, namespace)
        assert order(stored) == order(dry)
        maps = marked(api, namespace)
        assert [item["data"]["gang_id"] for item in maps] == [f"kubernetes-{namespace}-train"]
        volume = next(v for v in stored["spec"]["volumes"] if "gang" in v["name"])
        assert volume["configMap"]["name"] == maps[0]["metadata"]["name"]
        claimed = dra_pod("claimed", "two-gpus")
        with pytest.raises(ApiError) as caught:
            api.create(claimed, namespace)
        assert "ResourceClaimTemplate" in caught.value.message
        assert "create it, then retry" in caught.value.message
        api.create(claim_template("two-gpus", "gpu.nvidia.com"), namespace)
        api.create(claim_template("network", "nic.example"), namespace)
        with_claim = api.create(claimed, namespace)
        assert order(with_claim) == [DCGM, LOOPBACK, ALLREDUCE]
        for item in with_claim["spec"]["initContainers"]:
            assert item["resources"]["claims"] == [{"name": "g"}]
        assert order(api.create(dra_pod("net", "network"), namespace)) == []

        def events() -> dict[str, Document] | None:
            found = {
                item["reason"]: item
                for item in api.list("Event", namespace)
                if item["metadata"]["name"] not in before
                and item["source"]["component"] == "preflight"
            }
            return found if {"PreflightInjected", "PreflightRejected"} <= found.keys() else None

        seen = eventually("the webhook's Events", events)
        assert seen["PreflightInjected"]["involvedObject"]["kind"] == "Namespace"
        assert "create it, then retry" in seen["PreflightRejected"]["message"]


def marked(api: Client, namespace: str) -> list[Document]:
    """The gang ConfigMaps."""
    selector = "nvsentinel.nvidia.com/managed-by=preflight"
    return api.list("ConfigMap", namespace, labelSelector=selector)


def claim_template(name: str, device_class: str) -> Document:
    """A template for claims of one device."""
    request = {"name": "r0", "exactly": {"deviceClassName": device_class}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def dra_pod(name: str, template: str) -> Document:
    """A pod that gets its devices by claim alone."""
    user = {**container(), "resources": {"claims": [{"name": "g"}]}}
    claims = [{"name": "g", "resourceClaimTemplateName": template}]
    return gpu_pod(name, containers=[user], resourceClaims=claims)


class Load(threading.Thread):
    """Creates GPU pods one after the other and keeps what became of each."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        super().__init__()
        self.client = plane.client()
        self.namespace = namespace
        self.ending = threading.Event()
        self.stored: list[tuple[str, list[str]]] = []
        self.refused: list[str] = []

    def run(self) -> None:
        """Create until told to end."""
        number = 0
        while not self.ending.is_set():
            name = f"load-{number}"
            number += 1
            try:
                self.stored.append((name, order(self.client.create(gpu_pod(name), self.namespace))))
            except ApiError as error:
                self.refused.append(error.message)

    def __enter__(self) -> Load:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.join()


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that the load brings about."""
    eventually("the load", lambda: condition() or None, pause=0.02)


@pytest.mark.covers("P-168", "P-169")
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_webhook_that_is_killed_under_load_costs_what_its_policy_says(
    api: Client, plane: ControlPlane, namespace: str, tmp_path: Path, policy: str
) -> None:
    """Fail: refused, and no pod without checks. Ignore: admitted without. Both heal by a restart."""
    with (
        installed(api, tmp_path, namespace, policy=policy) as webhook,
        Load(plane, namespace) as load,
    ):
        until(lambda: len(load.stored) >= 3)
        os.kill(webhook.process.pid, signal.SIGKILL)
        webhook.process.wait(60)
        if policy == "Fail":
            until(lambda: len(load.refused) >= 3)
        else:
            until(lambda: any(not checks for _, checks in load.stored))
        cpu = gpu_pod("cpu", containers=[container()])
        assert order(api.create(cpu, namespace)) == []
        webhook.start()
        webhook.wait_for("Serving")
        healed = len(load.stored)
        until(lambda: len(load.stored) >= healed + 3 and len(load.stored[-1][1]) == 3)
    if policy == "Fail":
        assert all(len(checks) == 3 for _, checks in load.stored)
        assert all("failed calling webhook" in message for message in load.refused)
    else:
        assert load.refused == []


def test_a_webhook_that_is_told_to_end_loses_no_admission(
    api: Client, plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """While it drains, every pod gets its checks; only once it is gone are pods refused."""
    with (
        installed(api, tmp_path, namespace, "--drain-seconds", "600") as webhook,
        Load(plane, namespace) as load,
    ):
        until(lambda: len(load.stored) >= 3)
        webhook.process.send_signal(signal.SIGTERM)
        webhook.wait_for("Draining")
        before = len(load.stored)
        until(lambda: len(load.stored) >= before + 5)
        assert load.refused == []
        # A second request to end is the end of draining, whenever this machine gets to it.
        webhook.process.send_signal(signal.SIGTERM)
        assert webhook.process.wait(60) == 0
        until(lambda: len(load.refused) >= 1)
    assert all(len(checks) == 3 for _, checks in load.stored)
    # Refused by the machine; who comes just when the door closes may be cut instead.
    assert all("failed calling webhook" in message for message in load.refused), load.refused


def test_an_expired_certificate_closes_the_door_until_it_is_rotated(
    api: Client, namespace: str, tmp_path: Path
) -> None:
    """The API server refuses it, the probe says so, and a new one works without a restart."""
    with installed(api, tmp_path, namespace) as webhook:
        # The API server goes on using the connections that it has, so they end with the process.
        webhook.process.kill()
        webhook.process.wait(60)
        webhook.certify(until=datetime.now(UTC) - timedelta(hours=1))
        webhook.start()
        webhook.wait_for("Serving")
        refused = eventually(
            "the certificate to be refused",
            lambda: said if "certificate" in (said := refusal(api, namespace)) else None,
        )
        assert "certificate has expired" in refused
        webhook.certify()
        eventually(
            "admissions again", lambda: order(dry_run(api, namespace, gpu_pod("again"))) or None
        )
        assert webhook.process.poll() is None


def refusal(api: Client, namespace: str) -> str:
    """The message with which a GPU pod is refused; "" while it is not."""
    try:
        dry_run(api, namespace, gpu_pod("try"))
    except ApiError as error:
        return error.message
    return ""
