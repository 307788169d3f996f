"""What inference-perf deploys, and when that is ready."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.checks_inference.perf_scene import settings

from aicr.checks.performance.inference_workload import (
    CLAIM_TEMPLATE,
    Placement,
    deployment,
    readiness,
    route,
)
from aicr.checks.sdk.allocation import DEVICE_PLUGIN, DRA_CLAIM, one_gpu_template

Document = dict[str, Any]
TOLERATIONS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def graph(wiring: str = DEVICE_PLUGIN, **changed: Any) -> dict[str, Document]:
    """The components of a deployment with four workers, by type."""
    document = deployment(settings(**changed), Placement("gpu-1", TOLERATIONS, wiring, 4))
    assert document["apiVersion"] == "nvidia.com/v1beta1"
    assert document["metadata"] == {"name": "aicr-inference-perf"}
    assert document["spec"]["backendFramework"] == "vllm"
    return {each["type"]: each for each in document["spec"]["components"]}


def environment(component: Document, container: int = 0) -> dict[str, Any]:
    """Variables of a container: name → value or source."""
    found = component["podTemplate"]["spec"]["containers"][container]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in found["env"]}


@pytest.mark.covers("V-326", "V-337")
def test_workers_are_one_for_each_gpu_on_one_node_with_no_cpu_or_memory_request() -> None:
    """Pinned by host name, with the tolerations that were worked out."""
    worker = graph()["worker"]
    assert (worker["name"], worker["replicas"]) == ("VllmWorker", 4)
    pod = worker["podTemplate"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "gpu-1"}
    assert pod["tolerations"] == TOLERATIONS
    (main,) = pod["containers"]
    assert (main["name"], main["image"]) == ("main", "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.2.1")
    assert main["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert main["args"][:2] == ["--model", "Qwen/Qwen3-8B"]


@pytest.mark.covers("V-247")
def test_a_dra_worker_has_a_claim_from_the_run_s_template_and_no_limit() -> None:
    """The template is written in the version that is served."""
    pod = graph(DRA_CLAIM)["worker"]["podTemplate"]["spec"]
    assert pod["containers"][0]["resources"] == {"claims": [{"name": "gpu"}]}
    (claim,) = pod["resourceClaims"]
    template = one_gpu_template(CLAIM_TEMPLATE, "v1")
    assert claim["resourceClaimTemplateName"] == template["metadata"]["name"]
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request == {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 1}}
    (older,) = one_gpu_template("t", "v1beta1")["spec"]["spec"]["devices"]["requests"]
    assert older == {"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 1}


@pytest.mark.covers("V-320", "V-324")
def test_the_cache_is_mounted_read_only_and_hugging_face_is_out_of_reach() -> None:
    """Weights that are missing then fail at once."""
    for component in graph().values():
        pod = component["podTemplate"]["spec"]
        assert pod["volumes"] == [
            {
                "name": "model-cache",
                "persistentVolumeClaim": {"claimName": "aicr-model-cache", "readOnly": True},
            }
        ]
        (mount,) = pod["containers"][0]["volumeMounts"]
        assert mount["readOnly"] is True
        variables = environment(component)
        assert (variables["HF_HOME"], variables["HF_HUB_OFFLINE"]) == (mount["mountPath"], "1")
        assert variables["HF_TOKEN"]["secretKeyRef"]["optional"] is True


@pytest.mark.covers("V-312", "V-320")
def test_without_a_cache_workers_download_themselves() -> None:
    """No volume, no offline mode; the token is still there."""
    for component in graph(cache_size="").values():
        pod = component["podTemplate"]["spec"]
        assert "volumes" not in pod
        assert set(environment(component)) <= {"HF_TOKEN", "DYN_ROUTER_MODE"}


@pytest.mark.covers("V-308", "V-331", "V-332", "V-333")
def test_the_frontend_gets_the_router_mode_and_no_request_plane() -> None:
    """Nothing anywhere speaks of NATS."""
    found = graph(router_mode="kv")
    assert (found["frontend"]["name"], found["frontend"]["replicas"]) == ("Frontend", 1)
    assert environment(found["frontend"])["DYN_ROUTER_MODE"] == "kv"
    assert environment(graph()["frontend"])["DYN_ROUTER_MODE"] == "least-loaded"
    text = json.dumps(found)
    assert "DYN_REQUEST_PLANE" not in text
    assert "nats" not in text.lower()


@pytest.mark.covers("V-307", "V-335")
def test_behind_the_gateway_workers_carry_direct_frontends_and_a_picker_chooses() -> None:
    """The router mode is nowhere, and there is no frontend of its own."""
    found = graph(routing_mode="gateway-epp", router_mode="kv")
    assert set(found) == {"epp", "decode"}
    worker = found["decode"]
    sidecar = worker["podTemplate"]["spec"]["containers"][1]
    assert worker["frontendSidecar"] == sidecar["name"]
    assert sidecar["args"][-2:] == ["--router-mode", "direct"]
    assert "resources" not in sidecar
    assert "DYN_ROUTER_MODE" not in json.dumps(found)
    config = found["epp"]["eppConfig"]["config"]
    known = {each.get("name") for each in config["plugins"]}
    (profile,) = config["schedulingProfiles"]
    assert {each["pluginRef"] for each in profile["plugins"]} <= known
    args = worker["podTemplate"]["spec"]["containers"][0]["args"]
    assert (
        environment(found["epp"])["DYN_KV_CACHE_BLOCK_SIZE"] == args[args.index("--block-size") + 1]
    )


@pytest.mark.covers("V-334")
def test_the_route_takes_only_the_run_s_own_requests() -> None:
    """To the pool that the operator makes, by an exact path and a header."""
    found = route("gateways", "inference-gateway", "0123abcd")
    assert found["spec"]["parentRefs"] == [{"name": "inference-gateway", "namespace": "gateways"}]
    (rule,) = found["spec"]["rules"]
    (match,) = rule["matches"]
    assert match["path"] == {"type": "Exact", "value": "/v1/chat/completions"}
    assert match["headers"] == [{"name": "x-aicr-inference-perf", "value": "0123abcd"}]
    (backend,) = rule["backendRefs"]
    assert (backend["kind"], backend["name"]) == ("InferencePool", "aicr-inference-perf-pool")


# Readiness


def reported(state: object = "successful", seen: object = None, **components: Any) -> Document:
    """A deployment of a Frontend and two workers, and what its operator says."""
    status: Document = {"state": state, "components": components}
    if seen is not None:
        status["observedGeneration"] = seen
    return {
        "metadata": {"generation": 2},
        "spec": {"components": [{"name": "F"}, {"name": "W", "replicas": 2}]},
        "status": status,
    }


F = {"readyReplicas": 1}


@pytest.mark.parametrize(
    ("document", "ready", "words"),
    [
        (reported(F=F, W={"readyReplicas": 2}), True, "successful, all replicas ready"),
        (reported(F=F, W={"availableReplicas": 3}), True, "successful"),
        (reported("pending", F=F, W={"readyReplicas": 2}), False, "state pending"),
        (reported(F=F, W={"readyReplicas": 1}), False, "W: 1/2 ready"),
        (reported(F={"readyReplicas": 0}, W={"readyReplicas": 2}), False, "F: 0/1 ready"),
        (reported(W={"readyReplicas": 2}), False, "F: not reported"),
        (reported(F=F, W={"readyReplicas": "2"}), False, "W: not reported"),
        (reported(F=F, W={"readyReplicas": True}), False, "W: not reported"),
        (reported(F=F, W=["readyReplicas"]), False, "W: not reported"),
        (reported(F=F, W={"readyReplicas": None, "availableReplicas": 2}), True, "successful"),
        (reported(seen=1, F=F, W={"readyReplicas": 2}), False, "has not seen the latest change"),
        (reported(seen=2, F=F, W={"readyReplicas": 2}), True, "successful"),
        ({**reported(), "status": None}, False, "has not reported yet"),
        ({**reported(), "status": "successful"}, False, "has not reported yet"),
        ({**reported(), "status": {"state": "successful", "components": []}}, False, "F: not"),
    ],
    ids=[
        *("all there", "available counts", "its own word", "too few", "frontend", "missing"),
        *("text", "bool", "list", "null", "stale", "seen", "no status", "odd status", "odd list"),
    ],
)
def test_ready_is_the_operator_s_word_and_every_replica_of_the_spec(
    document: Document, ready: bool, words: str
) -> None:
    """Replicas are 1 where none are stated; what is no count is not ready."""
    found, said = readiness(document)
    assert found is ready
    assert words in said
