"""Runs ``aicr-check`` as a process against a control plane, and puts the objects there that checks look at.

    ended = CheckRuns(plane, tmp_path).run("operator-health")
    assert (ended.status, ended.lines[-1]) == (0, "Running: 1/1")

Every object that a test puts is removed when its `Stage` ends. CRDs are made as small as they can be: no
schema, and no status subresource, so that a status can be stored with the object.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.workloads import PYTHON, container, deployment, pod_spec
from tests.controlplane.client import MERGE, RESOURCES, ApiError, Client, Document, eventually
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.nodes import HOLLOW
from tests.controlplane.plane import ControlPlane

from aicr.contract.sentinels import parse_output

SNAPSHOT = "kind: Snapshot\napiVersion: aicr.run/v1\nmeasurements: []\n"
ON_HOLLOW: Document = {
    "nodeSelector": {HOLLOW: "true"},
    "tolerations": [{"key": HOLLOW, "operator": "Exists"}],
}
PASSED, FAILED, SKIPPED = 0, 1, 2
GPU = "nvidia.com/gpu"
#: Nodes of the shared plane on which nothing runs.
HOLLOWS = ("hollow-1", "hollow-2")
#: Programs that stand in for those of vendors; pods see them at the same path.
STANDINS = Path(__file__).resolve().with_name("standins")


@dataclass
class Ended:
    """How a check ended: exit status, evidence, extra, termination message and log."""

    status: int
    lines: list[str]
    extra: dict[str, str]
    message: str
    log: str

    @property
    def code(self) -> str:
        """The published code of a check that could not tell, "" for a verdict."""
        return self.extra.get("code", "")


class CheckRuns:
    """Runs checks with one plane's kubeconfig, or another."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.folder = plane, folder

    def run(
        self,
        check: str,
        validation: Document | None = None,
        *,
        kubeconfig: Path | None = None,
        budget: str = "60s",
        factor: str = "0.1",
        **variables: str,
    ) -> Ended:
        """Run *check* to its end."""
        snapshot, message = self.folder / "snapshot.yaml", self.folder / "message"
        snapshot.write_text(SNAPSHOT)
        message.unlink(missing_ok=True)
        recipe = self.folder / "validation.json"
        recipe.unlink(missing_ok=True)
        if validation is not None:
            recipe.write_text(json.dumps(validation))
        environ = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig or self.plane.kubeconfig),
            "AICR_SNAPSHOT_PATH": str(snapshot),
            "AICR_VALIDATION_PATH": str(recipe),
            "AICR_TERMINATION_LOG": str(message),
            "AICR_CHECK_TIMEOUT": budget,
            "AICR_TIMEOUT_FACTOR": factor,
            **variables,
        }
        done = subprocess.run(
            [sys.executable, "-m", "aicr.checks.main", check],
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        output = parse_output(done.stdout)
        text = message.read_text() if message.exists() else ""
        return Ended(done.returncode, output.lines, dict(output.extra or {}), text, done.stderr)

    def without_access(
        self, check: str, validation: Document | None = None, budget: str = "60s"
    ) -> Ended:
        """Run *check* as somebody who may do nothing."""
        nobody = self.plane.kubeconfig_for("nobody-at-all")
        return self.run(check, validation, kubeconfig=nobody, budget=budget)


def recipe(*components: Document | str, policy: str = "unspecified", **phases: Any) -> Document:
    """A validation input with components, by name or in full, and constraints of phases."""
    refs = [
        {"name": each, "namespace": each} if isinstance(each, str) else each for each in components
    ]
    config = {
        phase: {"constraints": [{"name": key, "value": text} for key, text in stated.items()]}
        for phase, stated in phases.items()
    }
    return {"componentRefs": refs, "gpuAllocationPolicy": policy, "config": config}


class Stage:
    """Objects for one test; `with` removes them."""

    def __init__(self, api: Client) -> None:
        self.api = api
        self._made: list[str] = []
        self._kinds: list[tuple[str, str, str]] = []
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()
        for path in reversed(self._made):
            with contextlib.suppress(ApiError):
                self.api.request("DELETE", path)
        for path in self._made:
            # What decides how a later test ends.
            if "customresourcedefinitions" in path or "/pods/" in path:
                eventually(f"{path} to be gone", functools.partial(self._gone, path))
        for kind in self._kinds:
            eventually(f"{kind} not to be known", functools.partial(self._unknown, kind))

    def _unknown(self, kind: tuple[str, str, str]) -> bool:
        return not self._known(*kind)

    def _known(self, group: str, version: str, plural: str) -> bool:
        return plural in (served(self.api, group).get(version) or ())

    def _gone(self, path: str) -> bool:
        try:
            self.api.call("GET", path)
        except ApiError as error:
            return error.status == 404
        return False

    def namespace(self, name: str) -> str:
        """A namespace of that name; one that is still going is waited for."""
        path = f"/api/v1/namespaces/{name}"
        eventually(
            f"namespace {name} of earlier to be gone", functools.partial(self._gone, path), 180
        )
        make_namespace(self.api, name)
        self._made.append(path)
        return name

    def crd(self, group: str, version: str, kind: str, plural: str, *, namespaced: bool) -> str:
        """Serve a kind; returns the API path of its group version."""
        name = f"{plural}.{group}"
        schema = {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        }
        document = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": name,
                # Groups under k8s.io ask for it.
                "annotations": {"api-approved.kubernetes.io": "unapproved, a test's"},
            },
            "spec": {
                "group": group,
                "scope": "Namespaced" if namespaced else "Cluster",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
            },
        }
        collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        self.api.call("POST", collection, document)
        self._made.append(f"{collection}/{name}")
        self._kinds.append((group, version, plural))
        root = f"/apis/{group}/{version}"
        eventually(f"{name} to be served", lambda: self._lists(f"{root}/{plural}"))
        # What the server says about its kinds, which checks ask for, comes later than the kind.
        eventually(f"{name} to be known", lambda: self._known(group, version, plural))
        return root

    def _lists(self, path: str) -> bool:
        try:
            self.api.call("GET", path)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def put(self, document: Document, collection: str) -> Document:
        """Create an object in a collection, by API path."""
        made = self.api.call("POST", collection, document)
        self._made.append(f"{collection}/{document['metadata']['name']}")
        return made

    def node(self, name: str, labels: Document, *, gpus: int = 0, **annotations: str) -> None:
        """A node without an agent: Ready, and nothing runs there."""
        self.put(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels, "annotations": annotations},
            },
            "/api/v1/nodes",
        )
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "10"}
        if gpus:
            amounts["nvidia.com/gpu"] = str(gpus)
        status = {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        }
        path = f"/api/v1/nodes/{name}/status"
        self.api.call("PATCH", path, {"status": status}, content_type=MERGE)

    def change_node(self, name: str, before: Document, after: Document) -> None:
        """Patch a node, and back at the end."""
        path = f"/api/v1/nodes/{name}"
        self.api.call("PATCH", path, before, content_type=MERGE)
        self._undo.callback(self.api.call, "PATCH", path, after, content_type=MERGE)

    def cordon(self, *names: str) -> None:
        """Mark nodes unschedulable."""
        for name in names:
            self.change_node(
                name, {"spec": {"unschedulable": True}}, {"spec": {"unschedulable": None}}
            )

    def label(self, name: str, key: str, value: str) -> None:
        """Label a node."""
        self.change_node(
            name, {"metadata": {"labels": {key: value}}}, {"metadata": {"labels": {key: None}}}
        )

    def workload(
        self, kind: str, namespace: str, name: str, labels: Document | None = None
    ) -> None:
        """A Deployment or DaemonSet on hollow nodes; returns once it is ready."""
        selector = {"app": name}
        template: Document = {
            "metadata": {"labels": {**selector, **(labels or {})}},
            "spec": pod_spec(
                container("true", image="any.image/at:all"), restartPolicy="Always", **ON_HOLLOW
            ),
        }
        spec: Document = {"selector": {"matchLabels": selector}, "template": template}
        document: Document = {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name, "labels": labels or {}},
            "spec": spec,
        }
        collection = f"/apis/apps/v1/namespaces/{namespace}/{RESOURCES[kind][1]}"
        self.put(document, collection)
        key = "availableReplicas" if kind == "Deployment" else "numberReady"
        eventually(
            f"{kind} {name} to be ready",
            lambda: self.api.get(kind, name, namespace).get("status", {}).get(key) or None,
            120,
        )

    def endpoints(self, namespace: str, service: str) -> None:
        """Wait until a Service has a ready endpoint."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        query = {"labelSelector": f"kubernetes.io/service-name={service}"}

        def ready() -> bool:
            return any(
                (endpoint.get("conditions") or {}).get("ready")
                for each in self.api.call("GET", path, query=query)["items"]
                for endpoint in each.get("endpoints") or []
            )

        eventually(f"a ready endpoint of {service}", ready, 60)

    def serve(self, namespace: str, name: str, port: int, page: str, **labels: str) -> None:
        """A Service whose pod serves a page."""
        words = ["-u", str(STANDINS / "dcgm_exporter.py"), str(port), page]
        one = deployment(
            name,
            1,
            {
                **container([]),
                "image": PYTHON,
                "command": None,
                "args": words,
                "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
            },
            nodeSelector={"test.aicr.run/pool": "runs"},
        )
        self.put(one, f"/apis/apps/v1/namespaces/{namespace}/deployments")
        self.put(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "labels": labels},
                "spec": {"selector": {"app": name}, "ports": [{"port": port, "targetPort": port}]},
            },
            f"/api/v1/namespaces/{namespace}/services",
        )
        self.endpoints(namespace, name)


def served(api: Client, group: str) -> dict[str, list[str] | None]:
    """What the server says that it serves of a group: version → plurals, None for one out of reach."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    found = json.loads(api.request("GET", "/apis", accept=accept))
    return {
        version["version"]: [one["resource"] for one in version.get("resources") or []]
        if version.get("freshness", "Current") == "Current"
        else None
        for item in found["items"]
        if item["metadata"]["name"] == group
        for version in item["versions"]
    }


def registered(api: Client, group: str) -> None:
    """Wait until the server says that it knows a group, be it out of reach."""
    eventually(f"{group} to be known", lambda: served(api, group) or None)


def gpus_are_free(api: Client, *nodes: str) -> None:
    """Wait until no pod holds a GPU of these nodes: those of an earlier test may still be ending."""

    def holds(each: Document) -> bool:
        wants = [one.get("resources", {}).get("limits", {}) for one in each["spec"]["containers"]]
        ended = each["status"].get("phase") in ("Succeeded", "Failed")
        return (
            each["spec"].get("nodeName") in nodes and not ended and any(GPU in one for one in wants)
        )

    eventually(
        f"the GPUs of {', '.join(nodes)}",
        lambda: not any(holds(each) for each in api.list("Pod")),
        120,
    )


@contextlib.contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """Do *act* again and again in the background."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.2):
            # What it looks at may go at any time.
            with contextlib.suppress(ApiError, OSError, http.client.HTTPException):
                act()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def left_behind(api: Client, prefix: str) -> list[str]:
    """Namespaces of a check that nobody removes."""
    return [
        each["metadata"]["name"]
        for each in api.list("Namespace")
        if each["metadata"]["name"].startswith(prefix)
        and "deletionTimestamp" not in each["metadata"]
    ]
