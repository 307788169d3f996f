"""operator-health: the GPU operator's own pods exist and at least one of them runs.

Source: validators spec 6.1; requirements V-228 to V-230.
"""

from __future__ import annotations

from typing import Final

from aicr.checks.sdk import DEPLOYMENT, Check, Context, failed
from aicr.errors import INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds

NAMESPACE: Final = "gpu-operator"
LABELS: Final = {"app": "gpu-operator"}


async def run(context: Context) -> None:
    """Count the operator's pods and those in phase Running."""
    namespace = context.namespace_of("gpu-operator", NAMESPACE)
    try:
        pods = await context.cluster.list(kinds.POD, namespace=namespace, labels=LABELS)
    except AicrError as error:
        raise AicrError(INTERNAL, "failed to list gpu-operator pods", hint=error.hint) from error
    if not pods:
        raise failed(
            "no gpu-operator pods found",
            code=NOT_FOUND,
            where=f"namespace {namespace}, label app=gpu-operator",
            hint=f"kubectl get deployments -n {namespace} shows whether it is installed",
        )
    phases = [
        (pod["metadata"]["name"], str((pod.get("status") or {}).get("phase") or "Unknown"))
        for pod in pods
    ]
    running = sum(phase == "Running" for _, phase in phases)
    context.out(f"Found {len(phases)} gpu-operator pod(s):")
    for name, phase in phases:
        context.out(f"  {name}: {phase}")
    context.out(f"Running: {running}/{len(phases)}")
    if not running:
        raise failed(
            "no pods in Running state",
            hint=f"kubectl describe pods -n {namespace} -l app=gpu-operator says what they wait for",
        )


CHECK = Check(
    name="operator-health",
    phase=DEPLOYMENT,
    summary="GPU operator pods exist and at least one of them runs",
    run=run,
    timeout="2m",
    details="""\
Lists the pods with label `app=gpu-operator` in the namespace that the recipe states for the component, else
`gpu-operator`.

- Passes when at least one is in phase `Running`.
- Fails when there is none, or none runs.
- Never skips.
""",
    reads=("pods in the namespace of the component",),
)
