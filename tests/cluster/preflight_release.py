"""The chart of preflight on a real cluster: installed by real Helm, its webhook running as pods.

What the plane lacks is stood in for, and nothing of the chart is changed: the kinds of cert-manager
exist but nobody acts on them, so the certificate's Secret and the bundle in the registration come from
here; kube-proxy is `service_proxy`. The images have stand-ins in images.yaml under the tag "test".
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
import yaml
from tests import tools
from tests.cluster.gang_replicas import CHART, CONTRIBUTOR, install
from tests.cluster.service_proxy import ServiceProxy, proxied
from tests.cluster.workloads import container, pod
from tests.controlplane.agent.sandbox import namespace_name
from tests.controlplane.client import ApiError, Client, Document, eventually, path_of
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.network import pids_in, program
from tests.controlplane.plane import ControlPlane

LABEL: Final = "nvsentinel.nvidia.com/preflight"
DCGM, LOOPBACK = "preflight-dcgm-diag", "preflight-nccl-loopback"
ALLREDUCE: Final = "preflight-nccl-allreduce"
#: A scheduler that does not exist, so that a pod is stored and never runs.
NOBODY: Final = "nobody"
SECRET: Final = "preflight-webhook-tls"
RELEASE: Final = "pf"
#: Only the tag of the images, and probes that neither make tests wait nor take a busy machine for a webhook
#: that hangs; `values_file` adds what the plane's machines need.
VALUES: Final[Document] = {
    "global": {"image": {"tag": "test"}},
    "readinessProbe": {"initialDelaySeconds": 0, "periodSeconds": 1, "timeoutSeconds": 3},
    "livenessProbe": {"initialDelaySeconds": 5, "periodSeconds": 60, "timeoutSeconds": 10},
}
#: The chart's user, and what a test gives instead where that user may not run the tests' interpreter.
USER: Final = "65532"
AS_ROOT: Final[Document] = {"runAsNonRoot": False, "runAsUser": 0, "runAsGroup": 0}
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


@dataclass
class Release:
    """The installed chart."""

    plane: ControlPlane
    api: Client
    namespace: str
    proxy: ServiceProxy
    authority: trustme.CA = field(default_factory=trustme.CA)

    def pods(self) -> list[Document]:
        """Pods of the webhook that are not on their way out."""
        selector = f"app.kubernetes.io/name=preflight,app.kubernetes.io/instance={RELEASE}"
        return [
            one
            for one in self.api.list("Pod", self.namespace, labelSelector=selector)
            if "deletionTimestamp" not in one["metadata"]
        ]

    def pids(self, made: Document) -> list[int]:
        """Processes of one of the pods."""
        bridge, node = self.plane.bridge_name, made["spec"]["nodeName"]
        return pids_in(namespace_name(bridge, node, made["metadata"]["uid"]))

    def admitted(self, made: Document) -> int:
        """How many pods one of the replicas has given checks."""
        connection = http.client.HTTPConnection(made["status"]["podIP"], 8080, timeout=60)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        [line] = re.findall(r'^preflight_injection_total\{result="injected"\} (.*)$', text, re.M)
        return int(float(line))

    def leader(self) -> str:
        """Name of the pod that leads."""
        lease = self.api.get("Lease", "aicr-preflight-controllers", self.namespace)
        return str(lease["spec"].get("holderIdentity") or "").partition("_")[0]

    def ready(self, count: int, seconds: float = 180) -> None:
        """Wait until so many pods are there, and they and no others get connections."""

        def connected() -> bool:
            there = {one["status"].get("podIP") for one in self.pods()}
            return len(there) == count and there == set(self.proxy.pods)

        eventually(f"{count} ready", connected, seconds)


def helm(plane: ControlPlane, *words: str) -> str:
    """What real Helm says; it must succeed."""
    done = subprocess.run(
        [tools.helm(), "--kubeconfig", str(plane.kubeconfig), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def certificate(
    authority: trustme.CA, namespace: str, *, until: datetime | None = None
) -> Document:
    """What cert-manager makes of the chart's Certificate."""
    names = [f"preflight.{namespace}.svc", f"preflight.{namespace}", "preflight"]
    pair = authority.issue_cert(*names, not_after=until)
    files = {
        "tls.crt": pair.cert_chain_pems[0].bytes(),
        "tls.key": pair.private_key_pem.bytes(),
        "ca.crt": authority.cert_pem.bytes(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET},
        "type": "kubernetes.io/tls",
        "data": {key: base64.b64encode(content).decode() for key, content in files.items()},
    }


def cert_manager_kinds(api: Client) -> None:
    """Let Issuers and Certificates exist; nobody acts on them."""
    for kind in ("Issuer", "Certificate"):
        plural = f"{kind.lower()}s"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
        }
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.cert-manager.io"},
            "spec": {
                "group": "cert-manager.io",
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [version],
            },
        }
        install(api, crd)


def trust(api: Client, authority: trustme.CA) -> None:
    """Put the authority into the registration, as cert-manager's injector does."""
    bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
    place = "/webhooks/0/clientConfig/caBundle"
    api.call(
        "PATCH",
        path_of("MutatingWebhookConfiguration", name="preflight"),
        [{"op": "add", "path": place, "value": bundle}],
        content_type="application/json-patch+json",
    )


def sweep(api: Client) -> None:
    """Remove cluster-wide objects of the chart that an earlier test has made without Helm."""
    api.delete("MutatingWebhookConfiguration", "preflight")
    roles = ("gang-discovery", "gang-discovery-builtin")
    names = ["preflight", *(f"{one}-{role}" for one in (RELEASE, "preflight") for role in roles)]
    for name in (*names, CONTRIBUTOR["metadata"]["name"]):
        for plural in ("clusterroles", "clusterrolebindings"):
            with contextlib.suppress(ApiError):
                api.request("DELETE", f"{RBAC}/{plural}/{name}")


@contextmanager
def installed(plane: ControlPlane, namespace: str, **values: Any) -> Iterator[Release]:
    """The chart in a namespace of its own, answering the API server; uninstalled afterwards."""
    api = plane.client()
    sweep(api)
    cert_manager_kinds(api)
    make_namespace(api, namespace)
    authority = trustme.CA()
    api.create(certificate(authority, namespace), namespace)
    file = values_file(plane, namespace, values)
    try:
        try:
            helm(
                *(plane, "install", RELEASE, str(CHART), "-n", namespace, "-f", str(file)),
                *("--wait", "--timeout", "240s"),
            )
        except AssertionError as error:
            raise AssertionError(f"{error}\n{_state(api, namespace)}") from error
        trust(api, authority)
        with proxied(plane, namespace, "preflight") as proxy:
            release = Release(plane, api, namespace, proxy, authority)
            answers(api, namespace)
            yield release
    finally:
        with contextlib.suppress(AssertionError):
            helm(plane, "uninstall", RELEASE, "-n", namespace)
        api.delete("Namespace", namespace)
        sweep(api)


def values_file(plane: ControlPlane, name: str, values: Document) -> Path:
    """A file with the values that the plane needs, and *values*."""
    given = {
        **VALUES,
        "initContainers": _checks(),
        **({} if _users_can_run() else {"securityContext": AS_ROOT}),
        **values,
    }
    file = plane.folder / f"{name}.json"
    file.write_text(json.dumps(given))
    return file


def _checks() -> list[Document]:
    """The chart's checks, with memory of which four fit on the plane's nodes of 64Gi."""
    chart: Document = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    checks: list[Document] = chart["initContainers"]
    for check in checks:
        check.setdefault("resources", {}).setdefault("limits", {})["memory"] = "512Mi"
    return checks


def _users_can_run() -> bool:
    # As the node agent becomes a container's user.
    words = [program("chroot"), f"--userspec={USER}:{USER}", "/", sys.executable, "-c", ""]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _state(api: Client, namespace: str) -> str:
    """What the pods of a release say, for the message of a failed installation."""
    lines = []
    for one in api.list("Pod", namespace):
        name = one["metadata"]["name"]
        lines.append(f"{name}: {json.dumps(one['status'].get('containerStatuses'))}")
        with contextlib.suppress(ApiError):
            lines.append(api.logs(namespace, name))
    lines += [f"{one['reason']}: {one['message']}" for one in api.list("Event", namespace)]
    return "\n".join(lines)


def answers(api: Client, namespace: str) -> None:
    """Wait until the API server asks the webhook, which takes it a moment after a change."""
    probe = f"{namespace}-probe"
    make_namespace(api, probe, {LABEL: "enabled"})
    try:
        eventually("the API server to ask", lambda: checked(api, probe, gpu_pod("p")))
    finally:
        api.delete("Namespace", probe)


def gpu_pod(name: str, *, annotations: Document | None = None, **spec: Any) -> Document:
    """A pod of class Guaranteed with a GPU, that no scheduler takes unless one is named."""
    size = {"nvidia.com/gpu": "1", "cpu": "1", "memory": "256Mi"}
    resources = {"limits": size, "requests": size}
    made = pod(
        name,
        container("exec sleep 1000", resources=resources),
        **{"schedulerName": NOBODY, **spec},
    )
    made["metadata"]["annotations"] = annotations or {}
    return made


def member(name: str, group: str = "train", *, native: bool) -> Document:
    """A pod of a gang that is to run."""
    place: Document = {
        "schedulerName": "default-scheduler",
        "nodeSelector": {"test.aicr.run/pool": "runs"},
    }
    if native:
        return gpu_pod(name, schedulingGroup={"podGroupName": group}, **place)
    return gpu_pod(name, annotations={"scheduling.k8s.io/group-name": group}, **place)


def dry_run(api: Client, namespace: str, made: Document) -> Document:
    """The pod as it would be stored."""
    return api.call("POST", path_of("Pod", namespace), made, query={"dryRun": "All"})


def order(stored: Document) -> list[str]:
    """Names of a pod's init containers."""
    return [item["name"] for item in stored["spec"].get("initContainers") or []]


def checked(api: Client, namespace: str, made: Document) -> list[str] | None:
    """Names of the checks that a pod would be stored with; None when it would have none."""
    return order(dry_run(api, namespace, made)) or None


def tell(config: pytest.Config, lines: Sequence[str]) -> None:
    """Show lines below the test that has just ended; a worker of pytest-xdist has nowhere to show them."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None:
        return
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        for line in ["", *lines]:
            reporter.write_line(line)


def gang_maps(api: Client, namespace: str) -> list[Document]:
    """The gang ConfigMaps of a namespace."""
    selector = "nvsentinel.nvidia.com/managed-by=preflight"
    return api.list("ConfigMap", namespace, labelSelector=selector)


def native_group(api: Client, namespace: str, minimum: int, name: str = "train") -> None:
    """A PodGroup of Kubernetes itself."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}},
    }
    api.create(group, namespace)
