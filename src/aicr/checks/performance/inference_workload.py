"""What is deployed for inference-perf: a DynamoGraphDeployment, and what goes with it.

```
dynamo-router   Frontend (routes by DYN_ROUTER_MODE) → workers
gateway-epp     gateway → HTTPRoute → InferencePool (of the operator) → frontend sidecars in the workers
```

One worker for each free GPU, all on one node. Workers have no CPU or memory request: contention with
the load generator was measured and is none. ``DYN_REQUEST_PLANE`` is not set, so Dynamo's own default
holds. The route takes only requests with the run's header, so that no other route of a shared gateway
answers in our place. Documents and readiness only; pure.
Source: validators spec 7.3 "Deployment"; requirements V-308, V-320, V-324, V-331 to V-337.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.performance import inference_storage as storage
from aicr.checks.performance.inference_knobs import GATEWAY_EPP, Settings
from aicr.checks.performance.inference_sizing import HOSTNAME
from aicr.checks.sdk.allocation import DRA_CLAIM
from aicr.checks.sdk.nodes import GPU

GROUP_VERSION: Final = "nvidia.com/v1beta1"
DEPLOYMENT: Final = f"{GROUP_VERSION}/DynamoGraphDeployment"
NAME: Final = "aicr-inference-perf"
FRONTEND: Final = "Frontend"
WORKER: Final = "VllmWorker"
PICKER: Final = "Epp"
SIDECAR: Final = "sidecar-frontend"
PICKER_IMAGE: Final = "nvcr.io/nvidia/ai-dynamo/dynamo-frontend:1.2.1"
PORT: Final = 8000
CLAIM_TEMPLATE: Final = "aicr-inference-perf-gpu"
#: Requests of a run carry it; its value is the run's suffix.
ROUTE_HEADER: Final = "x-aicr-inference-perf"
CHAT_PATH: Final = "/v1/chat/completions"
_ROLE_LABEL: Final = "nvidia.com/dynamo-component-type"
#: Tokens of a KV cache block; engine and endpoint picker must agree.
_BLOCK: Final = "16"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the workload runs, and how it gets GPUs.

    Attributes:
        node: value of the host name label.
        tolerations: of all its pods.
        wiring: `DRA_CLAIM` or `DEVICE_PLUGIN`.
        workers: how many, one GPU each.
    """

    node: str
    tolerations: Sequence[Mapping[str, Any]]
    wiring: str
    workers: int


def deployment(settings: Settings, placement: Placement) -> Document:
    """The DynamoGraphDeployment."""
    worker = _worker(settings, placement)
    routed = settings.routing_mode == GATEWAY_EPP
    first = _picker(settings, placement) if routed else _frontend(settings, placement)
    return {
        "apiVersion": GROUP_VERSION,
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": NAME},
        "spec": {"backendFramework": "vllm", "components": [first, worker]},
    }


def _frontend(settings: Settings, placement: Placement) -> Document:
    main = {
        "name": "main",
        "image": storage.RUNTIME_IMAGE,
        "command": ["python3", "-m", "dynamo.frontend"],
        "args": ["--http-port", str(PORT)],
        "env": [{"name": "DYN_ROUTER_MODE", "value": settings.router_mode}, *_weights(settings)],
    }
    return _component(FRONTEND, "frontend", 1, _pod(placement, [main], settings))


def _worker(settings: Settings, placement: Placement) -> Document:
    main: Document = {
        "name": "main",
        "image": storage.RUNTIME_IMAGE,
        "command": ["python3", "-m", "dynamo.vllm"],
        "args": ["--model", settings.model, "--block-size", _BLOCK],
        "env": _weights(settings),
    }
    if placement.wiring == DRA_CLAIM:
        main["resources"] = {"claims": [{"name": "gpu"}]}
    else:
        main["resources"] = {"limits": {GPU: "1"}}
    containers = [main]
    if settings.routing_mode == GATEWAY_EPP:
        containers.append(
            {
                "name": SIDECAR,
                "image": storage.RUNTIME_IMAGE,
                "command": ["python3", "-m", "dynamo.frontend"],
                "args": ["--http-port", str(PORT), "--router-mode", "direct"],
                "env": _weights(settings),
            }
        )
    pod = _pod(placement, containers, settings)
    if placement.wiring == DRA_CLAIM:
        pod["spec"]["resourceClaims"] = [
            {"name": "gpu", "resourceClaimTemplateName": CLAIM_TEMPLATE}
        ]
    if settings.routing_mode == GATEWAY_EPP:
        return {
            **_component(WORKER, "decode", placement.workers, pod),
            "frontendSidecar": SIDECAR,
        }
    return _component(WORKER, "worker", placement.workers, pod)


def _picker(settings: Settings, placement: Placement) -> Document:
    main = {
        "name": "main",
        "image": PICKER_IMAGE,
        "env": [
            {"name": "DYN_MODEL_NAME", "value": settings.model},
            {"name": "DYN_KV_CACHE_BLOCK_SIZE", "value": _BLOCK},
            *_weights(settings),
        ],
    }
    chosen = [
        {"pluginRef": name, "weight": 1} for name in ("decode-filter", "decode-scorer", "picker")
    ]
    config = {
        "plugins": [
            {"type": "disagg-profile-handler"},
            {
                "name": "decode-filter",
                "type": "label-filter",
                "parameters": {
                    "label": _ROLE_LABEL,
                    "validValues": ["decode"],
                    "allowsNoLabel": True,
                },
            },
            {"name": "decode-scorer", "type": "dyn-decode-scorer"},
            {"name": "picker", "type": "max-score-picker"},
        ],
        "schedulingProfiles": [{"name": "decode", "plugins": chosen}],
    }
    component = _component(PICKER, "epp", 1, _pod(placement, [main], settings))
    return {**component, "eppConfig": {"config": config}}


def _component(name: str, kind: str, replicas: int, pod: Document) -> Document:
    return {"name": name, "type": kind, "replicas": replicas, "podTemplate": pod}


def _pod(placement: Placement, containers: Sequence[Document], settings: Settings) -> Document:
    spec: Document = {
        "nodeSelector": {HOSTNAME: placement.node},
        "tolerations": [dict(each) for each in placement.tolerations],
        "containers": [dict(each) for each in containers],
    }
    if settings.cache_size:
        spec["volumes"] = [storage.cache_volume(read_only=True)]
        spec["securityContext"] = {"fsGroup": storage.GROUP}
        for container in spec["containers"]:
            container["volumeMounts"] = [storage.cache_mount(read_only=True)]
    return {"spec": spec}


def _weights(settings: Settings) -> list[Document]:
    """Variables that say where model and tokenizer come from: the cache alone, or Hugging Face."""
    if not settings.cache_size:
        return [storage.token_variable()]
    return [
        {"name": "HF_HOME", "value": storage.MOUNT},
        # Whatever is missing in the cache then fails at once and is not downloaded unseen.
        {"name": "HF_HUB_OFFLINE", "value": "1"},
        storage.token_variable(),
    ]


def route(gateway_namespace: str, gateway: str, suffix: str) -> Document:
    """The HTTPRoute from the gateway to the operator's pool, for requests with the run's header."""
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": NAME},
        "spec": {
            "parentRefs": [{"name": gateway, "namespace": gateway_namespace}],
            "rules": [
                {
                    "matches": [
                        {
                            "path": {"type": "Exact", "value": CHAT_PATH},
                            "headers": [{"name": ROUTE_HEADER, "value": suffix}],
                        }
                    ],
                    "backendRefs": [
                        {
                            "group": "inference.networking.k8s.io",
                            "kind": "InferencePool",
                            "name": f"{NAME}-pool",
                            "port": PORT,
                        }
                    ],
                }
            ],
        },
    }


def readiness(document: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether a DynamoGraphDeployment is ready, and its state in words.

    Its own word is not enough: every component of the *spec* must have as many ready replicas as it
    asks for. A count that is no whole number is not ready, and neither is a status of an older spec.
    """
    metadata, spec = document.get("metadata") or {}, document.get("spec") or {}
    status = document.get("status")
    if not isinstance(status, dict):
        return False, "its operator has not reported yet"
    seen = status.get("observedGeneration")
    if isinstance(seen, int) and seen < int(metadata.get("generation") or 0):
        return False, "its operator has not seen the latest change yet"
    state = status.get("state")
    words = [f"state {state}"] if state != "successful" else []
    reported = status.get("components")
    reported = reported if isinstance(reported, dict) else {}
    for component in spec.get("components") or []:
        name = str(component.get("name"))
        wanted = component.get("replicas", 1)
        found = reported.get(name)
        have = _replicas(found) if isinstance(found, dict) else None
        if not _is_count(wanted) or have is None:
            words.append(f"{name}: not reported")
        elif have < wanted:
            words.append(f"{name}: {have}/{wanted} ready")
    return not words, "; ".join(words) or "successful, all replicas ready"


def _replicas(found: Mapping[str, Any]) -> int | None:
    for key in ("readyReplicas", "availableReplicas"):
        value = found.get(key)
        if value is not None:
            return value if _is_count(value) else None
    return None


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0
