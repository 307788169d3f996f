"""Conformance checks as the real program on a real API server: gateway, autoscaling, webhooks.

Components are real objects of their API groups. Autoscalers are the real controller's, on a metrics API
that a small aggregated server brings; a webhook is called by the real API server. What Karpenter would do
is done by a thread of this file, which adds a hollow node. Slurm has a file of its own.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.check_runs import (
    FAILED,
    ON_HOLLOW,
    PASSED,
    SKIPPED,
    CheckRuns,
    Stage,
    recipe,
    registered,
    served,
)
from tests.cluster.checks_table import COULD_NOT_TELL, FAIL, PASS, SKIP, reaches
from tests.cluster.standins_b import servers
from tests.cluster.workloads import container, pod
from tests.controlplane.client import MERGE, ApiError, Client, Document, eventually
from tests.controlplane.nodes import HOLLOW, Node
from tests.controlplane.plane import ControlPlane

from aicr.checks.conformance.inference_gateway import CRDS, POOLS
from aicr.checks.conformance.robust_controller import OPERATORS

pytestmark = pytest.mark.cluster

GATEWAY_NS = "agentgateway-system"
GATEWAY_GROUP = "gateway.networking.k8s.io"
DYNAMO, TRAINER = OPERATORS
DYNAMO_NS = DYNAMO.namespace
POOL_LABEL = "karpenter.sh/nodepool"
#: Long enough for the real autoscaler, which looks every 15 s.
SCALES: dict[str, Any] = {
    "factor": "0.4",
    "budget": "110s",
    "AICR_NODE_SELECTOR": f"{HOLLOW}=true",
    "AICR_TOLERATIONS": HOLLOW + ":",
}


@pytest.fixture
def runs(plane: ControlPlane, tmp_path: Path) -> CheckRuns:
    """Runs checks against the shared plane."""
    return CheckRuns(plane, tmp_path)


@pytest.fixture
def stage(api: Client) -> Iterator[Stage]:
    """Objects of one test."""
    with Stage(api) as found:
        yield found


def left_behind(api: Client, prefix: str) -> list[str]:
    """Namespaces of a check that nobody removes."""
    return [
        each["metadata"]["name"]
        for each in api.list("Namespace")
        if each["metadata"]["name"].startswith(prefix)
        and "deletionTimestamp" not in each["metadata"]
    ]


def endpoint(stage: Stage, namespace: str, service: str) -> None:
    """A ready endpoint behind a Service that has no selector."""
    stage.put(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{service}-1",
                "labels": {"kubernetes.io/service-name": service},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.64.0.9"], "conditions": {"ready": True}}],
            "ports": [{"name": "http", "port": 80}],
        },
        f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
    )


@reaches(COULD_NOT_TELL, "inference-gateway", "pod-autoscaling", "cluster-autoscaling")
@reaches(COULD_NOT_TELL, "robust-controller", "slinky-slurm-health")
@reaches(COULD_NOT_TELL, "slinky-slurm-gpu-access", "slinky-slurm-imex-channel")
@pytest.mark.covers("V10-53")
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "not declared"])
@pytest.mark.parametrize(
    ("check", "component"),
    [
        ("inference-gateway", "agentgateway"),
        ("pod-autoscaling", "gpu-operator"),
        ("cluster-autoscaling", "karpenter"),
        ("robust-controller", "dynamo-platform"),
        ("slinky-slurm-health", "slinky-slurm"),
        ("slinky-slurm-gpu-access", "slinky-slurm"),
        ("slinky-slurm-imex-channel", "slinky-slurm"),
    ],
)
def test_who_may_not_look_could_not_tell(
    check: str, component: str, declared: bool, runs: CheckRuns, stage: Stage
) -> None:
    """A refusal by RBAC is UNAUTHORIZED, whoever declares what; Slurm's checks skip before they look."""
    if component == "agentgateway":
        # Without the API group its absence would be the answer.
        stage.crd(GATEWAY_GROUP, "v1", "Gateway", "gateways", namespaced=True)
    if component == "slinky-slurm":
        stage.crd("slinky.slurm.net", "v1beta1", "LoginSet", "loginsets", namespaced=True)
    ended = runs.without_access(check, recipe(component) if declared else None)
    if component == "slinky-slurm" and not declared:
        assert ended.status == SKIPPED
        return
    assert (ended.status, ended.code) == (FAILED, "UNAUTHORIZED"), ended.log


# inference-gateway


def gateway(stage: Stage, *ranges: str) -> None:
    """The gateway as its controller leaves it, its CRDs, and a load balancer for these sources."""
    stage.namespace(GATEWAY_NS)
    root = stage.crd(GATEWAY_GROUP, "v1", "Gateway", "gateways", namespaced=True)
    stage.crd(GATEWAY_GROUP, "v1", "GatewayClass", "gatewayclasses", namespaced=False)
    stage.crd(GATEWAY_GROUP, "v1", "HTTPRoute", "httproutes", namespaced=True)
    stage.crd(
        "inference.networking.k8s.io", "v1", "InferencePool", "inferencepools", namespaced=True
    )
    assert CRDS[0] == f"gateways.{GATEWAY_GROUP}"
    assert POOLS[0] == "inferencepools.inference.networking.k8s.io"

    def document(kind: str, name: str, condition: str, **spec: str) -> Document:
        return {
            "apiVersion": f"{GATEWAY_GROUP}/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
            "status": {"conditions": [{"type": condition, "status": "True"}]},
        }

    stage.put(document("GatewayClass", "agentgateway", "Accepted"), f"{root}/gatewayclasses")
    stage.put(
        document("Gateway", "inference-gateway", "Programmed", gatewayClassName="agentgateway"),
        f"{root}/namespaces/{GATEWAY_NS}/gateways",
    )
    stage.put(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "inference-gateway"},
            "spec": {
                "type": "LoadBalancer",
                "ports": [{"name": "http", "port": 80}],
                "loadBalancerSourceRanges": list(ranges),
            },
        },
        f"/api/v1/namespaces/{GATEWAY_NS}/services",
    )
    endpoint(stage, GATEWAY_NS, "inference-gateway")


@reaches(PASS, "inference-gateway")
@reaches(FAIL, "inference-gateway")
@pytest.mark.covers("V-103", "V-105")
def test_a_gateway_passes_and_an_open_one_fails_where_a_scoped_one_is_asked_for(
    runs: CheckRuns, stage: Stage, api: Client
) -> None:
    """Without the variable the exposure is evidence; with ranges it passes either way."""
    gateway(stage)
    declared = recipe({"name": "agentgateway", "namespace": GATEWAY_NS})
    ended = runs.run("inference-gateway", declared)
    assert ended.status == PASSED, ended.message
    assert "open to any source" in ended.lines[-1]
    ended = runs.run("inference-gateway", declared, AICR_REQUIRE_SCOPED_INFERENCE_GATEWAY="true")
    assert (ended.status, ended.code) == (FAILED, "")
    assert "open to any source" in ended.message
    path = f"/api/v1/namespaces/{GATEWAY_NS}/services/inference-gateway"
    change = {"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}
    api.call("PATCH", path, change, content_type=MERGE)
    assert (
        runs.run("inference-gateway", declared, AICR_REQUIRE_SCOPED_INFERENCE_GATEWAY="true").status
        == PASSED
    )


@reaches(SKIP, "inference-gateway")
@pytest.mark.covers("V10-52")
def test_a_gateway_whose_api_is_not_served_skips_unless_it_is_declared(runs: CheckRuns) -> None:
    """The real server's answer about a group that it does not have."""
    assert runs.run("inference-gateway").status == SKIPPED
    ended = runs.run("inference-gateway", recipe("agentgateway"))
    assert (ended.status, ended.code) == (FAILED, "")
    assert ended.message.startswith("[NOT_FOUND]")


# pod-autoscaling and cluster-autoscaling


@contextlib.contextmanager
def metrics_api(plane: ControlPlane, stage: Stage, value: str) -> Iterator[None]:
    """The custom and external metrics APIs, served by an aggregated API server."""
    namespace = stage.namespace("monitoring-standin")
    with servers.serving(plane, servers.metrics(value)) as port:
        stage.put(
            servers.outside("metrics", namespace, plane.host),
            f"/api/v1/namespaces/{namespace}/services",
        )
        for kind in ("custom", "external"):
            api_service(stage, kind, namespace, port)
        for kind in ("custom", "external"):
            path = f"/apis/{kind}.metrics.k8s.io/v1beta1"
            eventually(f"{path} to be served", functools.partial(stage.api.call, "GET", path))
            eventually(f"{path} to be known", functools.partial(metrics_known, stage.api, kind))
        yield


def metrics_known(api: Client, kind: str) -> bool:
    """Whether what the server says about its kinds has those of a metrics API."""
    return bool(served(api, f"{kind}.metrics.k8s.io").get("v1beta1"))


def api_service(stage: Stage, kind: str, namespace: str, port: int) -> None:
    """Who serves a group of the metrics APIs."""
    group = f"{kind}.metrics.k8s.io"
    stage.put(
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1beta1.{group}"},
            "spec": {
                "group": group,
                "version": "v1beta1",
                "insecureSkipTLSVerify": True,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"name": "metrics", "namespace": namespace, "port": port},
            },
        },
        "/apis/apiregistration.k8s.io/v1/apiservices",
    )


def exporter(stage: Stage) -> None:
    """A pod of the DCGM exporter."""
    stage.namespace("gpu-operator")
    made = pod("dcgm-1", container("true"), labels={"app": "nvidia-dcgm-exporter"}, **ON_HOLLOW)
    stage.put(made, "/api/v1/namespaces/gpu-operator/pods")


@reaches(PASS, "pod-autoscaling")
def test_the_real_autoscaler_grows_a_deployment_on_the_gpus_power(
    plane: ControlPlane, runs: CheckRuns, stage: Stage, api: Client
) -> None:
    """By a metric of an aggregated API server; nothing is left."""
    exporter(stage)
    with metrics_api(plane, stage, "95"):
        ended = runs.run("pod-autoscaling", recipe("gpu-operator"), **SCALES)
    assert ended.status == PASSED, ended.message
    assert "custom.metrics.k8s.io/v1beta1: answers" in ended.lines
    assert ended.lines[-2].endswith("wants 3, began with 1")
    assert left_behind(api, "hpa-test-") == []


@reaches(FAIL, "pod-autoscaling")
def test_a_metric_that_the_api_does_not_have_fails(
    plane: ControlPlane, runs: CheckRuns, stage: Stage, api: Client
) -> None:
    """NOT_FOUND: both APIs answer, and the metric is not there."""
    exporter(stage)
    with metrics_api(plane, stage, ""):
        ended = runs.run("pod-autoscaling")
    assert (ended.status, ended.code) == (FAILED, "")
    assert ended.message.startswith("[NOT_FOUND] external metric")


@reaches(FAIL, "pod-autoscaling")
def test_gpus_that_draw_nothing_make_nothing_grow(
    plane: ControlPlane, runs: CheckRuns, stage: Stage, api: Client
) -> None:
    """The autoscaler is active and wants no more; that is not enough."""
    exporter(stage)
    with metrics_api(plane, stage, "1"):
        ended = runs.run("pod-autoscaling", **{**SCALES, "factor": "0.12"})
    assert (ended.status, ended.code) == (FAILED, "")
    assert ended.message.startswith("[TIMEOUT] the autoscaler did not want more")
    assert left_behind(api, "hpa-test-") == []


@reaches(COULD_NOT_TELL, "pod-autoscaling")
def test_a_metrics_server_that_is_down_could_not_be_told(
    plane: ControlPlane, runs: CheckRuns, stage: Stage
) -> None:
    """The API is registered and nobody answers."""
    exporter(stage)
    namespace = stage.namespace("monitoring-standin")
    stage.put(
        servers.outside("metrics", namespace, plane.host),
        f"/api/v1/namespaces/{namespace}/services",
    )
    api_service(stage, "custom", namespace, 1)
    registered(stage.api, "custom.metrics.k8s.io")
    ended = runs.run("pod-autoscaling")
    assert ended.status == FAILED
    assert ended.code in ("SERVICE_UNAVAILABLE", "INTERNAL"), ended.message


@reaches(SKIP, "pod-autoscaling")
@pytest.mark.covers("V10-52")
def test_no_exporter_skips_unless_the_operator_is_declared(runs: CheckRuns) -> None:
    """No pod of it in any namespace."""
    assert runs.run("pod-autoscaling").status == SKIPPED
    ended = runs.run("pod-autoscaling", recipe("gpu-operator"))
    assert (ended.status, ended.code) == (FAILED, "")


def karpenter(stage: Stage, **limits: str) -> None:
    """Karpenter's Deployment and a NodePool."""
    stage.namespace("karpenter")
    stage.workload("Deployment", "karpenter", "karpenter", {"app.kubernetes.io/name": "karpenter"})
    root = stage.crd("karpenter.sh", "v1", "NodePool", "nodepools", namespaced=False)
    stage.put(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "gpu"},
            "spec": {"limits": limits},
        },
        f"{root}/nodepools",
    )


@contextlib.contextmanager
def provisioner(plane: ControlPlane, api: Client, name: str) -> Iterator[None]:
    """A stand-in of Karpenter: a hollow node for the first pod that waits for one of the pool."""
    done = threading.Event()
    made: list[str] = []

    def waits(each: Document) -> bool:
        return (
            each["metadata"]["namespace"].startswith("cluster-auto-test-")
            and (each["spec"].get("nodeSelector") or {}).get(POOL_LABEL) == "gpu"
            and not each["spec"].get("nodeName")
        )

    def work() -> None:
        while not done.wait(0.3):
            with contextlib.suppress(ApiError, OSError, http.client.HTTPException):
                if not made and any(waits(each) for each in api.list("Pod")):
                    made.append(name)
                    plane.add_nodes([Node(name, labels={POOL_LABEL: "gpu"}, gpus=8, hollow=True)])

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if made:
            plane.agent(name).stop()
            api.delete("Node", name)


@reaches(PASS, "cluster-autoscaling")
def test_a_pool_of_karpenter_gets_a_new_node_for_the_pods_of_an_autoscaler(
    plane: ControlPlane, runs: CheckRuns, stage: Stage, api: Client
) -> None:
    """The pods wait, a node comes, the real scheduler binds them; nothing is left."""
    karpenter(stage, **{"nvidia.com/gpu": "64"})
    chosen = {**SCALES, "AICR_NODE_SELECTOR": ""}
    with metrics_api(plane, stage, "95"), provisioner(plane, api, "karpenter-made-1"):
        ended = runs.run("cluster-autoscaling", **chosen)
    assert ended.status == PASSED, ended.message
    assert "NodePool gpu: 0 node(s), 0 GPU(s) free" in ended.lines
    assert "NodePool gpu: 1 new node(s)" in ended.lines[-1]
    assert left_behind(api, "cluster-auto-test-") == []


@reaches(FAIL, "cluster-autoscaling")
def test_karpenter_without_a_gpu_pool_fails(runs: CheckRuns, stage: Stage) -> None:
    """NOT_FOUND, before anything is created."""
    karpenter(stage, cpu="100")
    ended = runs.run("cluster-autoscaling")
    assert (ended.status, ended.code) == (FAILED, "")
    assert ended.message.startswith("[NOT_FOUND] no NodePool")


@reaches(SKIP, "cluster-autoscaling")
@reaches(PASS, "cluster-autoscaling")
@reaches(FAIL, "cluster-autoscaling")
def test_without_karpenter_the_platform_of_the_nodes_decides(runs: CheckRuns, stage: Stage) -> None:
    """None skips; EKS fails without a node group and passes with one."""
    assert runs.run("cluster-autoscaling").status == SKIPPED
    stage.node("aaa-cloud", {}, gpus=1)
    path = "/api/v1/nodes/aaa-cloud"
    change: Document = {"spec": {"providerID": "aws:///zone/i-1"}}
    stage.api.call("PATCH", path, change, content_type=MERGE)
    ended = runs.run("cluster-autoscaling")
    assert (ended.status, ended.code) == (FAILED, "")
    change = {"metadata": {"labels": {"eks.amazonaws.com/nodegroup": "gpus"}}}
    stage.api.call("PATCH", path, change, content_type=MERGE)
    ended = runs.run("cluster-autoscaling")
    assert ended.status == PASSED
    assert ended.lines[-1].startswith("EKS: 1/")


# robust-controller


def dynamo(plane: ControlPlane, stage: Stage, port: int, policy: str = "Fail") -> str:
    """Dynamo's controller, its CRD, and a webhook configuration for it; the path of its objects."""
    stage.namespace(DYNAMO_NS)
    stage.workload("Deployment", DYNAMO_NS, DYNAMO.deployment)
    root = stage.crd("nvidia.com", "v1alpha1", DYNAMO.kind, DYNAMO.plural, namespaced=True)
    stage.put(
        servers.outside("dynamo-hooks", DYNAMO_NS, plane.host),
        f"/api/v1/namespaces/{DYNAMO_NS}/services",
    )
    endpoint(stage, DYNAMO_NS, "dynamo-hooks")
    rule = {
        "apiGroups": ["nvidia.com"],
        "apiVersions": ["*"],
        "resources": [DYNAMO.plural],
        "operations": ["CREATE"],
    }
    service = {"name": "dynamo-hooks", "namespace": DYNAMO_NS, "path": "/validate", "port": port}
    stage.put(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "dynamo-platform-validating"},
            "webhooks": [
                {
                    "name": "vgraph.dynamo.nvidia.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": policy,
                    "timeoutSeconds": 5,
                    "clientConfig": {"service": service, "caBundle": servers.bundle(plane)},
                    "rules": [rule],
                }
            ],
        },
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    )
    return f"{root}/{DYNAMO.plural}"


def hooks(plane: ControlPlane) -> Any:
    """A webhook that refuses every graph."""
    return servers.serving(
        plane, servers.refusing("spec.services must not be empty"), "dynamo-hooks.dynamo-system.svc"
    )


def refused(api: Client, path: str) -> bool:
    """Whether the API server asks the webhook by now."""
    made = {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": DYNAMO.kind,
        "metadata": {"name": "canary"},
        "spec": {},
    }
    target = path.replace("/v1alpha1/", "/v1alpha1/namespaces/default/")
    try:
        api.call("POST", target, made, query={"dryRun": "All"})
    except ApiError as error:
        return "webhook" in str(error)
    return False


DYNAMO_RECIPE = recipe({"name": "dynamo-platform", "namespace": DYNAMO_NS})


@reaches(PASS, "robust-controller")
@reaches(FAIL, "robust-controller")
@reaches(COULD_NOT_TELL, "robust-controller")
def test_a_wrong_object_is_refused_by_the_real_admission_chain(
    plane: ControlPlane, runs: CheckRuns, stage: Stage, api: Client
) -> None:
    """By the webhook passes; by RBAC is UNAUTHORIZED; a webhook that is gone fails, declared or not."""
    with hooks(plane) as port:
        path = dynamo(plane, stage, port)
        eventually("the API server to ask the webhook", lambda: refused(api, path))
        ended = runs.run("robust-controller", DYNAMO_RECIPE)
        assert ended.status == PASSED, ended.message
        assert "vgraph.dynamo.nvidia.com" in ended.lines[-1]
        assert ended.lines[-1].endswith("spec.services must not be empty")
        reader = plane.kubeconfig_for("reads-only")
        may_read(stage, "reads-only")
        ended = runs.run("robust-controller", DYNAMO_RECIPE, kubeconfig=reader)
        assert (ended.status, ended.code) == (FAILED, "UNAUTHORIZED"), ended.message
    ended = runs.run("robust-controller")
    assert (ended.status, ended.code) == (FAILED, "")
    assert "cannot be called" in ended.message
    assert left_behind(api, "robust-test-") == []


def may_read(stage: Stage, user: str) -> None:
    """Let a user read everything, and make and remove namespaces."""
    root = "/apis/rbac.authorization.k8s.io/v1"
    rules = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create", "delete"]},
    ]
    role = {"kind": "ClusterRole", "metadata": {"name": user}, "rules": rules}
    stage.put({"apiVersion": "rbac.authorization.k8s.io/v1", **role}, f"{root}/clusterroles")
    stage.put(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": user},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": user,
            },
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        },
        f"{root}/clusterrolebindings",
    )


@reaches(FAIL, "robust-controller")
def test_a_wrong_object_that_is_accepted_fails_and_is_removed(
    plane: ControlPlane, runs: CheckRuns, stage: Stage, api: Client
) -> None:
    """A webhook that may be ignored, and nobody listens."""
    path = dynamo(plane, stage, 1, policy="Ignore")
    ended = runs.run("robust-controller", DYNAMO_RECIPE)
    assert (ended.status, ended.code) == (FAILED, "")
    assert "was accepted" in ended.message
    assert api.call("GET", path)["items"] == []


@reaches(SKIP, "robust-controller")
@pytest.mark.covers("V10-52", "V10-55")
def test_no_operator_skips_unless_it_is_declared_and_enabled(runs: CheckRuns) -> None:
    """A component that is disabled counts as not declared."""
    assert runs.run("robust-controller").status == SKIPPED
    off: Document = {"name": "dynamo-platform", "overrides": {"enabled": False}}
    assert runs.run("robust-controller", recipe(off)).status == SKIPPED
    ended = runs.run("robust-controller", DYNAMO_RECIPE)
    assert (ended.status, ended.code) == (FAILED, "")
