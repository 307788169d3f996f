"""gpu-operator-health: the GPU operator is available, says that its policy is ready, and its exporter runs.

The operator's own aggregate is asked, which cordons do not change: its operands run on cordoned nodes
too. Source: validators spec 6.2; requirements V-271.
"""

from __future__ import annotations

from typing import Any, Final

from aicr.checks.conformance.required import home, listed, number, required
from aicr.checks.sdk import CONFORMANCE, Check, Context, failed, resources
from aicr.kube import kinds

OPERATOR: Final = "gpu-operator"
LABELS: Final = {"app.kubernetes.io/name": OPERATOR}
POLICY: Final = "nvidia.com/v1/ClusterPolicy"
POLICY_NAME: Final = "cluster-policy"
EXPORTER: Final = "nvidia-dcgm-exporter"


async def run(context: Context) -> None:
    """Deployment, ClusterPolicy, DaemonSet, in this order."""
    _, namespace = home(context, "gpu-operator", "gpu-operator", "gpu-operator-ocp")
    deployment = await _deployment(context, namespace)
    name = deployment["metadata"]["name"]
    ready, words = resources.state("Deployment", deployment)
    context.out(f"Deployment {namespace}/{name}: {words}")
    if not ready:
        raise failed(
            f"Deployment {namespace}/{name} is not available: {words}",
            hint=f"kubectl describe deployment -n {namespace} {name}",
        )
    policy = await required(context, POLICY, POLICY_NAME)
    state = (policy.get("status") or {}).get("state") or "not stated"
    context.out(f"ClusterPolicy {POLICY_NAME}: {state}")
    if state != "ready":
        raise failed(
            f'ClusterPolicy {POLICY_NAME} is "{state}", not "ready"',
            hint="kubectl describe clusterpolicy cluster-policy names the operand it waits for",
        )
    exporter = await required(context, kinds.DAEMON_SET, EXPORTER, namespace)
    count = number(exporter, "numberReady")
    context.out(f"DaemonSet {namespace}/{EXPORTER}: {count} ready")
    if count < 1:
        raise failed(
            f"DaemonSet {namespace}/{EXPORTER} has no ready pod",
            hint=f"kubectl describe daemonset -n {namespace} {EXPORTER}",
        )


async def _deployment(context: Context, namespace: str) -> dict[str, Any]:
    found = await listed(context, kinds.DEPLOYMENT, namespace, LABELS)
    if found:
        return min(found, key=lambda each: str(each["metadata"]["name"]))
    return await required(
        context,
        kinds.DEPLOYMENT,
        OPERATOR,
        namespace,
        hint="kubectl get deployments -A shows where the GPU operator is, if it is",
    )


CHECK = Check(
    name="gpu-operator-health",
    phase=CONFORMANCE,
    summary="GPU operator available, its cluster policy ready, its DCGM exporter running",
    run=run,
    timeout="2m",
    details=f"""\
Looks at the Deployment labelled `app.kubernetes.io/name=gpu-operator` (or of that name), at
`clusterpolicies.nvidia.com/{POLICY_NAME}` and at DaemonSet `{EXPORTER}`. Cordoned nodes make no difference.

- Passes when the Deployment is available, the policy's state is `ready` and the exporter has a ready pod.
- Fails otherwise; NOT_FOUND when one of them is absent.
- Never skips.
""",
    reads=("deployments, daemonsets in gpu-operator", "clusterpolicies"),
)
