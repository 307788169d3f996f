"""Replicas of the gang controllers on a real API server, and pods admitted as the webhook admits them.

Each replica is a thread with an event loop of its own, with a user that has only what the chart grants,
so that the synchronous tests of this folder can start and stop it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import subprocess
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from tests import tools
from tests.cluster.workloads import SHELL, container, pod
from tests.controlplane import kubeconfig
from tests.controlplane.client import ApiError, Client, Document, eventually
from tests.controlplane.plane import ControlPlane
from tests.preflight_gang.admitting import Silent, patched, review

from aicr.kube import connect
from aicr.kube.lease import Terms
from aicr.preflight.admission.handler import Admission
from aicr.preflight.admission.prepared import prepare
from aicr.preflight.config import parse
from aicr.preflight.controller.service import Gangs
from aicr.preflight.gang import configmap as cm
from aicr.preflight.times import Times

T = TypeVar("T")
CHART = Path(__file__).resolve().parents[2] / "charts" / "preflight"
CHECK = "gang-check"
#: Ends when the mounted files say that the gang is complete, and prints them: what a check waits for.
WAITS = """
i=0
while [ $i -lt 1500 ]; do
  expected=$(cat $GANG_CONFIG_DIR/expected_count 2>/dev/null || echo 0)
  peers=$(grep -c . $GANG_CONFIG_DIR/peers 2>/dev/null)
  if [ "$expected" -gt 0 ] && [ "$peers" -ge "$expected" ] && grep -q "^$POD_NAME;$POD_IP;" \
      $GANG_CONFIG_DIR/peers; then
    echo generation $(cat $GANG_CONFIG_DIR/generation)
    cat $GANG_CONFIG_DIR/peers
    exit 0
  fi
  i=$((i+1)); sleep 0.2
done
exit 3
"""
VOLCANO: Document = {
    "name": "volcano",
    "annotationKeys": ["scheduling.k8s.io/group-name"],
    "podGroupGVR": {
        "group": "scheduling.volcano.sh",
        "version": "v1beta1",
        "resource": "podgroups",
    },
}
#: As small as a PodGroup of Volcano can be.
POD_GROUP_CRD: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.volcano.sh"},
    "spec": {
        "group": "scheduling.volcano.sh",
        "scope": "Namespaced",
        "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"minMember": {"type": "integer"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}
#: What a platform adds for one more scheduler (seed, RBAC): nothing of the chart changes.
CONTRIBUTOR: Document = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {
        "name": "preflight-gang-discovery-volcano",
        "labels": {"preflight.nvsentinel.nvidia.com/aggregate-to-gang-discovery": "true"},
    },
    "rules": [
        {
            "apiGroups": ["scheduling.volcano.sh"],
            "resources": ["podgroups"],
            "verbs": ["get", "list", "watch"],
        }
    ],
}
RBAC: Final[Mapping[str, str]] = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "namespaces/{}/roles",
    "RoleBinding": "namespaces/{}/rolebindings",
}


def grant(
    api: Client, plane: ControlPlane, namespace: str, discovery: Document | None = None
) -> Path:
    """A kubeconfig of the chart's service account, with the roles that the chart renders.

    With *discovery* as the chart's gangDiscovery, nothing else is granted; else a platform's role is
    added.
    """
    rendered = subprocess.run(
        [
            *(tools.helm(), "template", "pf", str(CHART), "-n", namespace),
            *("--set-json", f"gangDiscovery={json.dumps(discovery or {})}"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    documents = [one for one in yaml.safe_load_all(rendered.stdout) if one]
    roles = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{CONTRIBUTOR['metadata']['name']}"
    with contextlib.suppress(ApiError):
        api.request("DELETE", roles)
    for document in [*documents, *([] if discovery else [CONTRIBUTOR])]:
        if document["kind"] in RBAC:
            place = RBAC[document["kind"]].format(namespace)
            name = document["metadata"]["name"]
            api.call(
                *("PATCH", f"/apis/rbac.authorization.k8s.io/v1/{place}/{name}", document),
                query={"fieldManager": "aicr-test", "force": "true"},
                content_type="application/apply-patch+yaml",
            )
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.call("POST", account, {"metadata": {"name": "preflight"}})
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = api.call("POST", f"{account}/preflight/token", asked)["status"]["token"]
    text = kubeconfig.document(plane.url, plane.ca_file, token=token)
    return kubeconfig.write(plane.folder / f"{namespace}.kubeconfig", text)


def install(api: Client, crd: Document) -> None:
    """Install a CRD, and wait until it is served and discovery names it, which are three moments."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    name = crd["metadata"]["name"]
    api.call(
        "PATCH",
        f"{path}/{name}",
        crd,
        query={"fieldManager": "aicr-test", "force": "true"},
        content_type="application/apply-patch+yaml",
    )

    def established() -> bool:
        status = api.call("GET", f"{path}/{name}").get("status") or {}
        conditions = status.get("conditions") or []
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    eventually(f"{name} to be established", established)
    group = f"/apis/{crd['spec']['group']}"
    plural = crd["spec"]["names"]["plural"]

    def served() -> bool:
        for version in crd["spec"]["versions"]:
            found = api.call("GET", f"{group}/{version['name']}")
            if plural not in {one["name"] for one in found["resources"]}:
                return False
            api.call("GET", f"{group}/{version['name']}/{plural}", query={"limit": "1"})
        return True

    eventually(f"{name} to be served", served)


class _Counted:
    """The metrics port, counting writes of gang ConfigMaps."""

    def __init__(self) -> None:
        self.writes = 0

    def written(self, result: str) -> None:
        """See `GangMetrics`."""
        self.writes += result != "conflict"

    def completed(self, members: int, seconds: float) -> None:
        """See `GangMetrics`."""

    def leading(self, leads: bool) -> None:
        """See `GangMetrics`."""

    def conflicting(self, namespaces: int) -> None:
        """See `GangMetrics`."""


class Replica:
    """One replica, and the webhook's decision in front of it."""

    def __init__(
        self,
        kubeconfig: Path,
        namespace: str,
        identity: str = "one",
        *,
        discovery: Document | None = None,
    ) -> None:
        self._kubeconfig = kubeconfig
        self._lease = namespace
        self._identity = identity
        self._config = parse(
            {
                "initContainers": [
                    {
                        **container(WAITS, name=CHECK, image=SHELL),
                        "resources": {"limits": {"memory": "64Mi"}},
                    }
                ],
                "gangCoordination": {"enabled": True},
                "gangDiscovery": discovery or {},
            }
        )
        self._counted = _Counted()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._task: asyncio.Task[None] | None = None
        self.gangs: Gangs | None = None
        self._admission: Admission | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Replica:
        self._thread.start()
        assert self._ready.wait(120)
        if self._failed is not None:
            self._thread.join()
            raise self._failed
        try:
            eventually("the replica to be ready", lambda: self.unready() == "" or None, 120)
        except BaseException:
            # Nobody calls __exit__ then, and its thread would keep the process alive.
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the replica."""
        if self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._serve())
            except asyncio.CancelledError:
                return
            except BaseException as error:
                self._failed = error
                self._ready.set()

    async def _serve(self) -> None:
        async with connect(kubeconfig=str(self._kubeconfig), environ={}) as client:
            self.gangs = Gangs(
                client,
                self._config,
                namespace=self._lease,
                identity=self._identity,
                metrics=self._counted,
                # Nobody loses its Lease because this machine is busy; who ends gives it back at once.
                terms=Terms(duration=30.0, deadline=20.0, retry=0.3),
                times=Times(absent=0.3, forming=0.5, longest=1.0),
            )
            await self.gangs.start()
            self._admission = Admission(prepare(self._config), meter=Silent(), gangs=self.gangs)
            self._task = asyncio.ensure_future(self.gangs.run())
            self._ready.set()
            await self._task

    def _ask(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    def unready(self) -> str:
        """See `Gangs.unready`."""
        assert self.gangs is not None
        return self.gangs.unready()

    def writes(self) -> int:
        """Writes of gang ConfigMaps by its controllers; admissions' are not counted."""
        return self._counted.writes

    def leads(self) -> bool:
        """See `Gangs.leads`."""
        assert self.gangs is not None
        return self.gangs.leads

    def admit(self, document: Document, namespace: str) -> Document:
        """The pod as the webhook would have it."""
        assert self._admission is not None
        reply = json.loads(self._ask(self._admission.review(review(document, namespace))))
        response = reply["response"]
        assert response["allowed"], response
        return patched(document, json.loads(base64.b64decode(response["patch"])))


def member(name: str, group: str = "train", *, native: bool = False) -> Document:
    """A pod of a gang, with one GPU."""
    fields: Document = {"nodeSelector": {"test.aicr.run/pool": "runs"}}
    if native:
        fields["schedulingGroup"] = {"podGroupName": group}
    gpu = {"limits": {"nvidia.com/gpu": "1"}}
    document = pod(name, container("exec sleep 1000", resources=gpu), **fields)
    if not native:
        document["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": group}
    return document


def state(api: Client, namespace: str, name: str) -> cm.State:
    """A gang's ConfigMap; ApiError if there is none."""
    return cm.read(api.get("ConfigMap", name, namespace))


def becomes_complete(
    api: Client, namespace: str, name: str, generation: int, members: list[str]
) -> cm.State:
    """Wait for a complete membership of that generation and these pods; each peer's IP is its pod's."""

    def complete() -> cm.State | None:
        found = state(api, namespace, name)
        return found if found.complete and found.generation == generation else None

    found = eventually(f"generation {generation} of {name} to be complete", complete, 180)
    assert [peer.name for peer in found.peers] == sorted(members)
    for peer in found.peers:
        assert peer.ip == api.get("Pod", peer.name, namespace)["status"]["podIP"]
    return found


def volcano_group(
    api: Client, namespace: str, minimum: int, name: str = "train", *, change: bool = False
) -> None:
    """Make a PodGroup of Volcano, or change its size."""
    path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups"
    document = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum},
    }
    if change:
        api.call(
            *("PATCH", f"{path}/{name}", {"spec": {"minMember": minimum}}),
            content_type="application/merge-patch+json",
        )
    else:
        api.call("POST", path, document)


def remove_volcano_group(api: Client, namespace: str, name: str = "train") -> None:
    """Delete a PodGroup of Volcano."""
    api.request(
        "DELETE", f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups/{name}"
    )
