"""Test pods that get one GPU, and what they may see: shared by the checks that allocate GPUs.

```
with_one_gpu   a pod with two containers: one is given a GPU, the other is not
without_gpu    a pod on the same node that is given none
judge          what the containers saw → what is wrong
spec_problems  the pod as the server stored it → what is wrong
gpu_namespace  the namespace of the run in which they live; what stays in it is a failure
```

The containers only report, in lines that `judge` reads: what they could list and which device nodes were
there. The image is CUDA's own, whose environment asks for every GPU; a runtime that grants that to a
container without an allocation is what the test is to find. Source: validators spec 6.2 (dra-support,
secure-accelerator-access); requirements V-242.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.deployment.check_nvidia_smi import CLAIM_TEMPLATE
from aicr.checks.sdk import Context, allocation, failed
from aicr.checks.sdk.namespaces import RunNamespace, run_namespace, wait_gone
from aicr.checks.sdk.nodes import GPU
from aicr.checks.sdk.pods import PodLifecycle, placed
from aicr.checks.sdk.removal import command
from aicr.errors import INTERNAL, TIMEOUT, AicrError
from aicr.kube import kinds

IMAGE: Final = "nvidia/cuda:12.9.0-base-ubuntu24.04"
AUTHORIZED: Final = "gpu-test"
UNAUTHORIZED: Final = "unauthorized"
#: Label of the namespaces of GPU tests.
RUN_LABEL: Final = "aicr.run/gpu-test-run"
_DEVICES: Final = 'for d in /dev/nvidia*; do [ -e "$d" ] && echo "DEV=$d"; done; echo DONE=1'
_LISTING: Final = f'nvidia-smi -L; echo "NVSMI_RC=$?"; {_DEVICES}'
_GPU_LINE: Final = re.compile(r"^GPU \d+:.*\(UUID: (GPU-[0-9A-Za-z-]+)\)", re.MULTILINE)
_TOLERATE_ALL: Final = ({"operator": "Exists"},)

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sight:
    """What a container reported.

    Attributes:
        gpus: UUIDs that nvidia-smi listed.
        devices: device nodes ``/dev/nvidia*``.
        status: exit status of nvidia-smi; None when it was not asked.
        complete: whether the report has its end.
    """

    gpus: tuple[str, ...]
    devices: tuple[str, ...]
    status: int | None
    complete: bool


def read_sight(text: str) -> Sight:
    """A container's report."""
    lines = text.splitlines()
    status = next(
        (line[9:] for line in lines if line.startswith("NVSMI_RC=") and line[9:].isdigit()), None
    )
    return Sight(
        gpus=tuple(_GPU_LINE.findall(text)),
        devices=tuple(line[4:] for line in lines if line.startswith("DEV=")),
        status=None if status is None else int(status),
        complete="DONE=1" in lines,
    )


def judge(authorized: str, unauthorized: str) -> list[str]:
    """What is wrong with what the two containers of a pod saw.

    Raises:
        AicrError: INTERNAL when a report has no end: then nothing can be told.
    """
    given, denied = read_sight(authorized), read_sight(unauthorized)
    for name, sight in ((AUTHORIZED, given), (UNAUTHORIZED, denied)):
        if not sight.complete:
            raise AicrError(INTERNAL, f"the report of container {name} is cut short")
    problems = []
    if given.status:
        problems.append(f"nvidia-smi ended with {given.status} in the container that has a GPU")
    elif len(set(given.gpus)) != 1:
        problems.append(
            f"the container that was given one GPU sees {len(set(given.gpus))}"
            f"{': ' if given.gpus else ''}{', '.join(sorted(set(given.gpus)))}"
        )
    if denied.devices:
        problems.append(f"the container without a GPU sees {', '.join(denied.devices)}")
    return problems


def judge_other(text: str) -> list[str]:
    """What is wrong with what a pod without an allocation saw; errors as `judge`."""
    sight = read_sight(text)
    if not sight.complete:
        raise AicrError(INTERNAL, "the report of the pod without a GPU is cut short")
    if sight.devices:
        return [f"a pod without a GPU on the same node sees {', '.join(sight.devices)}"]
    return []


def spec_problems(pod: Mapping[str, Any]) -> list[str]:
    """What is wrong with a pod as the server stored it: admission may have added to it."""
    spec = pod["spec"]
    problems = [
        f"volume {volume['name']} mounts {path} of the node"
        for volume in spec.get("volumes") or []
        if (path := str((volume.get("hostPath") or {}).get("path") or "")).startswith("/dev/nvidia")
    ]
    for container in spec["containers"][1:]:
        held = container.get("resources") or {}
        if GPU in {**(held.get("limits") or {}), **(held.get("requests") or {})}:
            problems.append(f"container {container['name']} has been given a GPU limit")
        if held.get("claims"):
            problems.append(f"container {container['name']} has been given a claim")
    return problems


def with_one_gpu(mechanism: str, nodes: Sequence[str], name: str = "gpu-access") -> Document:
    """A pod whose first container gets one GPU by *mechanism*, on one of *nodes*.

    *mechanism* is `allocation.DRA_CLAIM` or `allocation.DEVICE_PLUGIN`. The node is chosen by the
    scheduler, which must allocate a claim and knows which GPUs are free.
    """
    spec: Document = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "affinity": on_nodes(nodes),
        "containers": [_container(AUTHORIZED, _LISTING), _container(UNAUTHORIZED, _DEVICES)],
    }
    first = spec["containers"][0]
    if mechanism == allocation.DRA_CLAIM:
        first["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": CLAIM_TEMPLATE}]
    else:
        first["resources"] = {"limits": {GPU: "1"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def without_gpu(node: str, name: str = "gpu-denied") -> Document:
    """A pod on *node* that asks for no GPU."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "nodeName": node,
            "containers": [_container(UNAUTHORIZED, _DEVICES)],
        },
    }


def on_nodes(nodes: Sequence[str]) -> Document:
    """Affinity for one of *nodes*, by name: a field selector takes one name, so a term each."""
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
                    for node in nodes
                ]
            }
        }
    }


def budgeted(context: Context, fallback: float) -> Context:
    """A context with what is left of the budget for work, less what cleaning up needs.

    Args:
        context: of the check.
        fallback: seconds for a check that has no deadline.

    Raises:
        AicrError: TIMEOUT when less is left than the least that test pods need.
    """
    reserve, least = context.timeouts.reserve, context.timeouts.test_pod_least
    left = fallback if context.deadline is None else context.remaining() - reserve
    if left < least:
        raise AicrError(
            TIMEOUT,
            f"{left:.0f} s are left for the test, and it needs {least:.0f} s; "
            f"{reserve:.0f} s are kept for cleaning up",
            hint="give the check a longer timeout in its catalogue entry",
        )
    return context.within(left)


@contextlib.asynccontextmanager
async def gpu_namespace(context: Context) -> AsyncIterator[RunNamespace]:
    """A namespace for GPU tests; after a pass, what could not be removed is a failure.

    Raises:
        AicrError: INTERNAL when the body passed and the namespace stays.
    """
    labels = {RUN_LABEL: secrets.token_hex(8)}
    async with run_namespace(context, "aicr-gpu-test", labels, digits=32) as mine:
        yield mine
    # Reached only when the body raised nothing: an error of it is worth more than what it left.
    gone = mine.removed and await wait_gone(
        context, mine.name, mine.uid, context.timeouts.pod_termination
    )
    if not gone:
        raise failed(
            f"the test passed, but its namespace {mine.name} could not be removed",
            hint=f"it may hold a GPU; remove it with: {command(kinds.NAMESPACE, mine.name)}",
        )


async def isolation(
    context: Context, namespace: str, mechanism: str, nodes: Sequence[str], version: str
) -> str:
    """Run the pod with one GPU and judge it; the node that it ran on.

    Args:
        context: of the check.
        namespace: of the run.
        mechanism: see `with_one_gpu`.
        nodes: on which it may run.
        version: served version of resource.k8s.io, for a claim.

    Raises:
        AicrError: INTERNAL, a verdict, for what was seen and must not be; as `PodLifecycle` when the pod
            does not run.
    """
    if mechanism == allocation.DRA_CLAIM:
        template = allocation.one_gpu_template(CLAIM_TEMPLATE, version)
        await context.cluster.create(template, namespace=namespace)
    lifecycle = PodLifecycle(context, namespace)
    wanted = placed(with_one_gpu(mechanism, nodes), context, tolerations=_TOLERATE_ALL)
    created = await lifecycle.create(wanted)
    refuse(spec_problems(created))
    name = created["metadata"]["name"]
    pod = await lifecycle.wait_succeeded(name, context.timeouts.dra_test_pod)
    given = await lifecycle.logs(name, AUTHORIZED)
    denied = await lifecycle.logs(name, UNAUTHORIZED)
    node = str(pod["spec"].get("nodeName") or "")
    context.artifact(
        f"One GPU by {mechanism} on {node}",
        f"[{AUTHORIZED}]\n{given.rstrip()}\n[{UNAUTHORIZED}]\n{denied.rstrip()}",
        f"kubectl logs -n {namespace} {name} --all-containers",
    )
    refuse(judge(given, denied))
    return node


async def denial(context: Context, namespace: str, node: str) -> None:
    """Run a pod without a GPU on *node*; it must see none. Errors as `isolation`."""
    lifecycle = PodLifecycle(context, namespace)
    wanted = placed(without_gpu(node), context, tolerations=_TOLERATE_ALL)
    created = await lifecycle.create(wanted)
    name = created["metadata"]["name"]
    await lifecycle.wait_succeeded(name, context.timeouts.dra_test_pod)
    seen = await lifecycle.logs(name, UNAUTHORIZED)
    context.artifact(f"No GPU on {node}", seen, f"kubectl logs -n {namespace} {name}")
    refuse(judge_other(seen))


def refuse(problems: Sequence[str]) -> None:
    """Raise the verdict for *problems*, if there are any."""
    if problems:
        raise failed(
            f"GPUs are not isolated: {'; '.join(problems)}",
            hint="look at the container runtime's settings: who may ask for GPUs by environment variable",
        )


def _container(name: str, script: str) -> Document:
    return {
        "name": name,
        "image": IMAGE,
        "command": ["sh", "-c", script],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
