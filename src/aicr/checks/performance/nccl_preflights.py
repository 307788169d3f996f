"""What has to be right before a benchmark is worth starting, by platform.

```
EKS, OKE with GB200/GB300, network variant   driver and its module parameter, read on every node
GKE with H100 (GPUDirect-TCPXO)              eight GPU NIC networks, the installer ready on every node
a delivered runtime                          recipe → deployed → cluster: mapping and networks
```

A supplied runtime owns its wiring and passes all of them by. What cannot be determined fails. Judging
is pure; the looks take a context. Source: validators spec 7.2 "Preflights", "Delivered artifact";
requirements V-193, V-194.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aicr.checks.deployment.gke_gpu_nic_networks import (
    NEEDED,
    NETWORK,
    ORDINARY,
    TRAINER,
    Wiring,
    deployed_runtime,
    gpu_networks,
    miswired,
    node_annotations,
)
from aicr.checks.performance.nccl_plan import CAPABILITY, DELIVERED, Plan, wiring_of
from aicr.checks.performance.nccl_variants import EFA, NET
from aicr.checks.sdk import Context, failed
from aicr.checks.sdk.pods import PodLifecycle
from aicr.errors import INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.recipe.configuration import TCPXO_RUNTIME

PROBE_IMAGE: Final = "busybox:1.37"
#: Module parameter that lets GPUDirect work on these hosts, as /proc/driver/nvidia/params names it.
PARAMETER: Final = "GrdmaPciTopoCheckOverride"
#: From this branch of the driver on the parameter's effect is not known.
UNKNOWN_BRANCH: Final = 595
INSTALLER: Final = {"k8s-app": "nccl-tcpxo-installer"}
DAEMON: Final = "tcpxo-daemon"
_PROBE: Final = (
    "echo VERSION; cat /proc/driver/nvidia/version; echo PARAMS; cat /proc/driver/nvidia/params; "
    "echo END"
)
_DRIVER: Final = re.compile(r"NVRM version:.*?\s(\d+)\.\d+")
_VALUE: Final = re.compile(rf"^\s*(?:NVreg_)?{PARAMETER}:\s*(\S+)", re.MULTILINE)
_CONCURRENT: Final = 16

Document = Mapping[str, Any]


def needs_parameter(plan: Plan) -> bool:
    """Whether the driver's module parameter matters for *plan*."""
    return (
        plan.source == CAPABILITY
        and plan.variant is NET
        and plan.fabric == EFA
        and plan.pair.accelerator in ("gb200", "gb300")
        and plan.pair.service in ("eks", "oke")
    )


def needs_tcpxo(plan: Plan) -> bool:
    """Whether *plan* runs over GPUDirect-TCPXO."""
    return not plan.supplied and str(plan.pair) == "h100/gke" and not plan.variant.key


def judge_driver(text: str) -> str:
    """What is wrong with the driver that a probe saw, "" if nothing is."""
    driver = _DRIVER.search(text)
    if "END" not in text.splitlines() or driver is None:
        return "its driver cannot be determined"
    if int(driver[1]) >= UNKNOWN_BRANCH:
        return f"driver R{driver[1]} is not known to work: R{UNKNOWN_BRANCH} and later are refused"
    value = _VALUE.search(text)
    if value is None:
        return f"NVreg_{PARAMETER} cannot be determined"
    return "" if value[1] == "1" else f"NVreg_{PARAMETER} is {value[1]}, it must be 1"


def probe_pod(node: str) -> dict[str, Any]:
    """A pod that prints what the driver of *node* says of itself."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "driver-probe-"},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {"name": "probe", "image": PROBE_IMAGE, "command": ["sh", "-c", _PROBE]}
            ],
        },
    }


async def drivers(context: Context, namespace: str, nodes: Sequence[str]) -> None:
    """Read the driver's parameter on every node; a verdict names the nodes on which it is wrong."""
    gate = asyncio.Semaphore(_CONCURRENT)
    lifecycle = PodLifecycle(context, namespace)

    async def one(node: str) -> str:
        async with gate:
            created = await lifecycle.create(probe_pod(node))
            name = created["metadata"]["name"]
            await lifecycle.wait_succeeded(name, context.timeouts.pod_wait)
            return judge_driver(await lifecycle.logs(name))

    # All of them end before the first error is raised: none may go on beside the clean-up.
    found = await asyncio.gather(*(one(node) for node in nodes), return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    problems = [f"{node}: {problem}" for node, problem in zip(nodes, found, strict=True) if problem]
    if problems:
        raise failed(
            f"GPUDirect cannot work: {'; '.join(problems[:5])}",
            hint=f"set NVreg_{PARAMETER}=1 through the GPU operator's kernelModuleConfig",
        )
    context.out(f"NVreg_{PARAMETER} is 1 on {len(nodes)} nodes")


def without_installer(nodes: Iterable[str], pods: Iterable[Document]) -> list[str]:
    """The nodes on which no pod of the TCPXO installer is ready."""
    ready = {
        str((pod.get("spec") or {}).get("nodeName"))
        for pod in pods
        if any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in (pod.get("status") or {}).get("conditions") or []
        )
    }
    return [node for node in nodes if node not in ready]


async def tcpxo(context: Context, nodes: Sequence[str]) -> list[str]:
    """Check the networks and the installer; the names of the GPU NIC networks.

    Raises:
        AicrError: verdicts: NOT_FOUND for fewer networks than NICs, INTERNAL for nodes on which the
            plugin is not installed.
    """
    networks = [each["metadata"]["name"] for each in await _networks(context)]
    if len(networks) < NEEDED:
        raise failed(
            f"{len(networks)} GPU NIC network(s) found, {NEEDED} are needed",
            code=NOT_FOUND,
            hint="check gke-gpu-nic-networks says what is missing",
        )
    lacking = without_installer(nodes, await context.cluster.list(kinds.POD, labels=INSTALLER))
    if lacking:
        raise failed(
            f"the TCPXO installer is not ready on {', '.join(lacking[:10])}",
            hint="kubectl get pods -A -l k8s-app=nccl-tcpxo-installer -o wide",
        )
    return networks


def interfaces(networks: Sequence[str]) -> str:
    """The annotation that gives a pod its ordinary network and one interface for each GPU NIC."""
    mapped = [
        {"interfaceName": f"eth{number}", "network": name}
        for number, name in enumerate(networks[:NEEDED], 1)
    ]
    return json.dumps([ORDINARY, *mapped])


def devices(gpus: int) -> str:
    """The annotation that gives the TCPXO daemon the devices of *gpus* GPUs."""
    paths = [*(f"/dev/nvidia{number}" for number in range(gpus)), "/dev/nvidiactl"]
    paths += ["/dev/nvidia-uvm", "/dev/dmabuf_import_helper"]
    return json.dumps([{"path": path} for path in paths])


async def delivered_runtime(context: Context, plan: Plan) -> dict[str, Any]:
    """The delivered runtime as it is deployed, with the recipe's mapping and existing networks.

    Raises:
        AicrError: NOT_FOUND, a verdict, when it or a network is not there; INTERNAL when its mapping is
            not the recipe's, entry by entry.
    """
    assert plan.source == DELIVERED
    wanted: Wiring = wiring_of(plan)
    runtime = await deployed_runtime(context)
    problems = miswired(node_annotations(runtime), wanted)
    if problems:
        raise failed(
            f"the mapping of {TCPXO_RUNTIME} is not the recipe's: {'; '.join(problems)}",
            hint=f"install {TRAINER} of this recipe again",
        )
    existing = {each["metadata"]["name"] for each in await context.cluster.list(NETWORK)}
    absent = sorted({entry["network"] for entry in wanted} - existing)
    if absent:
        raise failed(
            f"mapped network(s) do not exist: {', '.join(absent)}",
            code=NOT_FOUND,
            hint="kubectl get networks.networking.gke.io",
        )
    return runtime


def daemon_failure(pods: Iterable[Document]) -> str:
    """What the TCPXO daemon of a worker died of, "" while none has."""
    for pod in pods:
        status = pod.get("status") or {}
        for each in [
            *(status.get("initContainerStatuses") or []),
            *(status.get("containerStatuses") or []),
        ]:
            if each.get("name") != DAEMON:
                continue
            state = each.get("state") or {}
            end = state.get("terminated") or (each.get("lastState") or {}).get("terminated") or {}
            if end.get("exitCode"):
                name = pod["metadata"]["name"]
                return f"{DAEMON} of {name} ended with {end['exitCode']} ({end.get('reason', 'Error')})"
    return ""


async def _networks(context: Context) -> list[Document]:
    try:
        return gpu_networks(await context.cluster.list(NETWORK))
    except AicrError as error:
        if error.code == NOT_FOUND and "absent" in error.context:
            return []
        raise AicrError(INTERNAL, "cannot list GPU NIC networks") from error
