"""check-nvidia-smi: a pod on every schedulable GPU node gets one GPU and sees it.

The universe counts every GPU node, the cordoned and the silent ones too: a node whose driver is dead
advertises no GPU, and is named as a failure instead of not being seen. Cordoned nodes are left out by
policy, since somebody took them out on purpose; their number is part of the coverage line, which is
printed however the check ends.

A node whose GPUs come from a device plugin is probed past the scheduler, by node name. One whose GPUs
come from DRA needs the scheduler to allocate the claim, so its probe is bound by affinity.
Source: validators spec 6.1; requirements V-253 to V-260; decisions 62, 64, 66.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.sdk import (
    DEPLOYMENT,
    Check,
    Context,
    Skip,
    allocation,
    cluster_reads,
    failed,
    nodes,
)
from aicr.checks.sdk.namespaces import run_namespace
from aicr.checks.sdk.nodes import GpuNode
from aicr.checks.sdk.outcome import (
    NO_GPU_NODES,
    NO_SCHEDULABLE_GPU_NODES,
    NODES_BUSY,
    could_not_tell,
)
from aicr.checks.sdk.pods import PodLifecycle
from aicr.constraints import expression
from aicr.constraints.expression import Expression
from aicr.errors import AicrError, invalid, some_of

CONSTRAINT: Final = "Deployment.gpu-driver.version"
IMAGE: Final = "nvcr.io/nvidia/cuda:13.0.0-base-ubuntu22.04"
SUCCESS: Final = "GPU_CHECK_SUCCESS"
CLAIM_TEMPLATE: Final = "one-gpu"
#: Probes at the same time: enough for a rack, few enough for the API server.
PARALLEL: Final = 16
_POD_NAME_LIMIT: Final = 253
#: What nvidia-smi prints, of which one word of each line must be there, in any case.
_MARKERS: Final = (
    ("NVIDIA-SMI",),
    ("Driver Version:", "KMD Version:"),
    ("CUDA Version:", "CUDA UMD Version:"),
    (SUCCESS,),
)
_DRIVER: Final = re.compile(r"(?:Driver|KMD) Version:\s*([0-9][\w.]*)", re.IGNORECASE)

Document = dict[str, Any]


@dataclass
class Coverage:
    """What of the universe has been confirmed working so far."""

    total: int = 0
    cordoned: int = 0
    validated: int = 0

    @property
    def line(self) -> str:
        """The coverage line of the report."""
        left_out = f" ({self.cordoned} cordoned, skipped)" if self.cordoned else ""
        return f"RESULT: nodesValidated: {self.validated}/{self.total}{left_out}"

    @property
    def extra(self) -> dict[str, str]:
        """The counts that survive redaction."""
        return {"nodesValidated": str(self.validated), "nodesTotal": str(self.total)}


async def run(context: Context) -> None:
    """Probe every schedulable GPU node; the coverage line comes last on every path."""
    stated = context.constraint(CONSTRAINT, DEPLOYMENT)
    floor = expression.parse(stated) if stated is not None else None
    coverage = Coverage()
    try:
        await _run(context, floor, coverage)
    finally:
        context.out(coverage.line)
        context.emit_extra({**context.extra, **coverage.extra})


async def _run(context: Context, floor: Expression | None, coverage: Coverage) -> None:
    found = await nodes.find_gpu_nodes(context)
    simulated = {node.name for node in found if nodes.is_simulated(node.document)}
    ready = [node for node in nodes.schedulable(found) if node.name not in simulated]
    cordoned = nodes.cordoned(found)
    coverage.total, coverage.cordoned = len(found), len(cordoned)
    if not found:
        context.out("Found 0 GPU node(s).")
        raise _unmeasurable("the cluster has no GPU node", NO_GPU_NODES, floor)
    able = len(found) - len(cordoned)
    context.out(f"Found {len(found)} GPU node(s), {able} schedulable, {len(cordoned)} cordoned:")
    for node in found:
        left_out = "cordoned" if node.cordoned else "simulated" if node.name in simulated else ""
        context.out(f"  {node.name}{f': skipped ({left_out})' if left_out else ''}")
    if not ready:
        why = "cordoned or simulated" if simulated else "cordoned"
        raise _unmeasurable(f"every GPU node is {why}", NO_SCHEDULABLE_GPU_NODES, floor)
    facts = await allocation.inspect(context)
    broken = _broken(ready, facts)
    working = [node for node in ready if node.name not in broken]
    busy = await _busy(context, working)
    for name, pods in sorted(busy.items()):
        context.out(f"  {name}: in use by {', '.join(pods)}")
    if busy and not broken:
        words = "; ".join(f"{name} by {', '.join(pods)}" for name, pods in sorted(busy.items()))
        raise _unmeasurable(f"GPU nodes are in use: {words}", NODES_BUSY, floor)
    free = [node for node in working if node.name not in busy]
    unknown: dict[str, AicrError] = {}
    if free:
        async with run_namespace(context, "aicr-nvidia-smi") as mine:
            resources = {node.name: resource_of(node, facts) for node in free}
            if "" in resources.values():
                version = await cluster_reads.served_dra_version(context)
                await context.cluster.create(
                    allocation.one_gpu_template(CLAIM_TEMPLATE, version), namespace=mine.name
                )
            unknown, found_broken = await _probe_all(context, mine.name, resources, floor, coverage)
            broken.update(found_broken)
    for name, why in sorted(broken.items()):
        context.out(f"  {name}: FAILED: {why}")
    for name, error in sorted(unknown.items()):
        context.out(f"  {name}: could not be probed: {_said(error)}")
    if broken:
        raise failed(
            f"nvidia-smi failed on {len(broken)} of {len(ready)} schedulable GPU node(s): {_some(broken)}",
            hint="cordon the node, then look at its driver: kubectl get pods -n gpu-operator -o wide",
        )
    if unknown:
        words = _some({name: _said(error) for name, error in unknown.items()})
        first = min(unknown.items())[1]
        raise AicrError(
            could_not_tell(first),
            f"{len(unknown)} of {len(ready)} schedulable GPU node(s) could not be probed: {words}",
            hint=first.hint,
        ) from first
    context.out(f"nvidia-smi works on {coverage.validated} node(s)")


def _said(error: AicrError) -> str:
    return ": ".join(link.message for link in error.chain())


def _some(reasons: dict[str, str]) -> str:
    """The first five of name → reason."""
    return some_of([f"{name}: {why}" for name, why in sorted(reasons.items())], 5, "; ")


def _unmeasurable(why: str, code: str, floor: Expression | None) -> AicrError:
    """A skip; a failure if a driver version was promised that nobody can see now."""
    if floor is None:
        return Skip(why, code)
    return failed(
        f"{why}, so {CONSTRAINT} {floor.text} cannot be measured",
        hint="uncordon or free a GPU node and run the check again, or remove the constraint",
    )


def _broken(ready: list[GpuNode], facts: allocation.Facts) -> dict[str, str]:
    """Schedulable nodes that no probe could reach, and why."""
    silent = set(nodes.silent(ready, facts.dra_node_devices))
    found = {}
    for node in ready:
        if not node.ready:
            found[node.name] = "the node is not Ready"
        elif node.name in silent:
            found[node.name] = (
                "it has GPUs and none is advertised: its driver or device plugin is dead"
            )
    return found


async def _busy(context: Context, working: list[GpuNode]) -> dict[str, list[str]]:
    """Nodes whose GPUs are held, with the pods that hold them; raises what the list of pods raises."""
    held = await asyncio.gather(*(nodes.gpu_holders(context, node.name) for node in working))
    return {node.name: pods for node, pods in zip(working, held, strict=True) if pods}


async def _probe_all(
    context: Context,
    namespace: str,
    resources: dict[str, str],
    floor: Expression | None,
    coverage: Coverage,
) -> tuple[dict[str, AicrError], dict[str, str]]:
    """Probe nodes (name → resource) side by side.

    Returns:
        The nodes whose probe could not be made, with the error; the nodes that failed, and why.
    """
    gate = asyncio.Semaphore(PARALLEL)
    unknown: dict[str, AicrError] = {}
    broken: dict[str, str] = {}

    async def one(node: str, resource: str) -> None:
        async with gate:
            try:
                driver = await _probe(context, namespace, node, resource)
                if floor is not None:
                    hold(floor, driver)
            except AicrError as error:
                if could_not_tell(error):
                    unknown[node] = error
                else:
                    broken[node] = _said(error)
                return
        coverage.validated += 1
        context.out(f"  {node}: driver {driver or 'of unknown version'}")

    await asyncio.gather(*(one(node, resource) for node, resource in resources.items()))
    return unknown, broken


async def _probe(context: Context, namespace: str, node: str, resource: str) -> str:
    """The driver version that a pod on *node* sees."""
    pod = probe_pod(node, resource)
    lifecycle = PodLifecycle(context, namespace)
    created = await lifecycle.create(pod)
    name = created["metadata"]["name"]
    try:
        await lifecycle.wait_succeeded(name, context.timeouts.pod_wait)
        text = await lifecycle.logs(name)
    finally:
        await lifecycle.remove(created)
    return read_output(text)


def read_output(text: str) -> str:
    """The driver version in what nvidia-smi printed, "" if it is not a number.

    Raises:
        AicrError: INTERNAL, naming what is missing.
    """
    lowered = text.lower()
    missing = [
        " or ".join(words)
        for words in _MARKERS
        if not any(word.lower() in lowered for word in words)
    ]
    if missing:
        raise failed(f"its output lacks {', '.join(missing)}; it begins: {text.strip()[:200]!r}")
    match = _DRIVER.search(text)
    return match[1] if match else ""


def hold(floor: Expression, driver: str) -> None:
    """Hold the constraint against one node's driver; INTERNAL if it does not hold."""
    if not driver:
        raise failed(
            f"its driver version cannot be read, and {CONSTRAINT} {floor.text} is declared"
        )
    outcome = expression.evaluate(floor, driver)
    if not outcome.passed:
        raise failed(f"driver {driver} does not meet {CONSTRAINT}: {outcome.explanation}")


def pod_name(node: str) -> str:
    """The name of a node's probe; a long one is cut and keeps a digest."""
    name = f"nvidia-smi-verify-{node.replace('.', '-')}"
    if len(name) <= _POD_NAME_LIMIT:
        return name
    return f"{name[: _POD_NAME_LIMIT - 9]}-{hashlib.sha256(node.encode()).hexdigest()[:8]}"


def resource_of(node: GpuNode, facts: allocation.Facts) -> str:
    """The extended resource by which a probe gets a GPU of *node*; "" means by a claim.

    A node whose GPUs are all cut into MIG slices gives a slice: nvidia-smi says the same there.
    """
    if node.gpus:
        return nodes.GPU
    if node.name in facts.dra_node_devices:
        return ""
    offered = (node.document.get("status") or {}).get("allocatable") or {}
    return min(
        (name for name in offered if nodes.is_gpu(name) and nodes.allocatable(node.document, name)),
        default="",
    )


def probe_pod(node: str, resource: str) -> Document:
    """The probe of *node*, with one GPU: of an extended resource, or by a claim if that is "".

    Raises:
        AicrError: INVALID_REQUEST for a node without a name.
    """
    if not node:
        raise invalid("a probe needs the name of a node")
    container: Document = {
        "name": "nvidia-smi",
        "image": IMAGE,
        "command": ["sh", "-c", f"nvidia-smi && echo {SUCCESS}"],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    spec: Document = {
        "restartPolicy": "Never",
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    if not resource:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": CLAIM_TEMPLATE}]
        fields = {"key": "metadata.name", "operator": "In", "values": [node]}
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchFields": [fields]}]
                }
            }
        }
    else:
        container["resources"] = {"limits": {resource: "1"}}
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod_name(node)},
        "spec": spec,
    }


CHECK = Check(
    name="check-nvidia-smi",
    phase=DEPLOYMENT,
    summary="nvidia-smi works on every schedulable GPU node, and the driver meets the recipe's floor",
    run=run,
    timeout="10m",
    details=f"""\
Runs a pod with one GPU on every GPU node that is not cordoned and reads what `nvidia-smi` prints. A GPU
node is one that advertises GPUs, or whose labels say that it has them; one that has GPUs and advertises
none is a failure that names it. `RESULT: nodesValidated: V/T` is printed however the check ends; T counts
cordoned nodes.

- Passes when every schedulable GPU node answers, with a driver that meets deployment constraint
  `{CONSTRAINT}` if the recipe states one.
- Fails when a node does not answer, is not Ready, has lost its driver, or has an older driver.
- Skips when there is no GPU node (`no-gpu-nodes`), all are cordoned or simulated
  (`no-schedulable-gpu-nodes`), or a GPU is in use (`nodes-busy`). With the constraint declared these three
  fail: a promised version that nobody can see is not met.
""",
    reads=("nodes", "pods by node", "resourceslices, deviceclasses"),
    writes=("a namespace of the run with one pod a node",),
)
