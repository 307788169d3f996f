"""What is settled before anything is created: node, load, placement, storage.

It reads the cluster and asks the pure rules in `inference_sizing`, `inference_occupancy` and
`inference_storage`; nothing is written. A read that fails ends the check: a GPU that may be taken is not
free. Source: validators spec 7.3 "Sizing", "Deployment".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.performance import (
    inference_endpoint,
    inference_knobs,
    inference_sizing,
    inference_storage,
)
from aicr.checks.performance.inference_knobs import GATEWAY_EPP, Settings
from aicr.checks.performance.inference_namespace import suffix
from aicr.checks.performance.inference_occupancy import ledgers
from aicr.checks.performance.inference_sizing import Load
from aicr.checks.performance.inference_verdict import Thresholds
from aicr.checks.performance.inference_workload import Placement
from aicr.checks.sdk import Context, allocation, failed
from aicr.checks.sdk.cluster_reads import DRA_GROUP, find, served_dra_version
from aicr.checks.sdk.nodes import find_gpu_nodes
from aicr.errors import NOT_FOUND
from aicr.kube import kinds

GATEWAY_COMPONENT: Final = "agentgateway"
_STORAGE_CLASS: Final = "storage.k8s.io/v1/StorageClass"
_GATEWAY: Final = "gateway.networking.k8s.io/v1/Gateway"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is settled before anything is created."""

    settings: Settings
    asked: Thresholds
    load: Load
    placement: Placement
    node: str
    suffix: str
    #: StorageClass of the cache, "" without a cache.
    storage_class: str
    #: Served version of DRA, "" when workers get GPUs from a device plugin.
    dra_version: str
    #: Namespace of the gateway, "" when Dynamo's frontend routes.
    gateway: str


async def make_plan(context: Context, settings: Settings, asked: Thresholds) -> Plan:
    """Read the cluster and settle everything.

    Raises:
        AicrError: INVALID_REQUEST, INTERNAL or NOT_FOUND for a cluster on which it cannot run (see the
            functions of the siblings); else as the reads do.
    """
    facts = await allocation.inspect(context)
    policy = allocation.policy_of(context)
    inference_sizing.refuse(facts)
    for warning in allocation.verify(policy, facts):
        context.log.warning("%s", warning)
    nodes = await find_gpu_nodes(context)
    fitting = inference_sizing.candidates(nodes, facts, policy, context.node_selector)
    version = ""
    claims: list[Document] = []
    if facts.node_local_devices:
        version = await served_dra_version(context)
        claims = await context.cluster.list(f"{DRA_GROUP}/{version}/ResourceClaim")
    taken = ledgers(
        await context.cluster.list(kinds.POD),
        claims,
        facts.pool_nodes,
        [node.name for node in nodes],
    )
    if taken.unplaced:
        context.log.warning(
            "claims hold devices of pools that no node publishes: %s", ", ".join(taken.unplaced)
        )
    choice = inference_sizing.choose(
        inference_sizing.offer(node, facts, taken, policy) for node in fitting
    )
    node = next(each.document for each in fitting if each.name == choice.node)
    class_name = ""
    if settings.cache_size:
        classes = await context.cluster.list(_STORAGE_CLASS)
        class_name = inference_storage.storage_class(settings, classes, node)
    gateway = await _gateway(context) if settings.routing_mode == GATEWAY_EPP else ""
    return Plan(
        settings=settings,
        asked=asked,
        load=inference_sizing.size(settings, choice),
        placement=Placement(
            inference_sizing.hostname(node),
            inference_sizing.tolerations(node, context.tolerations),
            choice.wiring,
            choice.free,
        ),
        node=choice.node,
        suffix=suffix(context.run_id),
        storage_class=class_name,
        dra_version=version if choice.wiring == allocation.DRA_CLAIM else "",
        gateway=gateway,
    )


async def _gateway(context: Context) -> str:
    """The namespace of the inference gateway.

    Raises:
        AicrError: NOT_FOUND when there is none: the recipe chose to route through it.
    """
    reference = context.component(GATEWAY_COMPONENT) or {}
    namespace = str(reference.get("namespace") or "agentgateway-system")
    name = inference_endpoint.GATEWAY
    if await find(context, _GATEWAY, name, namespace) is None:
        raise failed(
            f"inference-routing-mode is {GATEWAY_EPP}, and there is no Gateway {namespace}/{name}",
            code=NOT_FOUND,
            hint=f"install {GATEWAY_COMPONENT}, or route with {inference_knobs.DYNAMO_ROUTER}",
        )
    return namespace


def say_plan(context: Context, plan: Plan) -> None:
    """Print it, as evidence of what a number describes."""
    settings, load = plan.settings, plan.load
    context.out(f"Model: {settings.model}")
    context.out(
        f"Node: {plan.node}, {load.gpus} of {load.node_gpus} GPUs free, by {plan.placement.wiring}"
    )
    routed = "" if plan.gateway else f" ({settings.router_mode})"
    context.out(f"Routing: {settings.routing_mode}{routed}")
    context.out(
        f"Load: concurrency {load.concurrency}, {load.requests} requests after {load.warmup} for "
        f"warm-up, {settings.input_tokens} tokens in, {settings.output_tokens} out"
    )
    cache = f"{settings.cache_size} of class {plan.storage_class}" if plan.storage_class else "off"
    context.out(f"Model cache: {cache}")
