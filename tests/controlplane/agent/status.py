"""The status of a pod, from what its containers say."""

from __future__ import annotations

from collections.abc import Sequence

from tests.controlplane.agent.container import Container
from tests.controlplane.agent.registration import now
from tests.controlplane.client import Document


def phase(inits: Sequence[Container], mains: Sequence[Container], *, stopped: bool) -> str:
    """Pending, Running, Succeeded or Failed; a pod is over only when all of it has *stopped*."""
    if stopped:
        broken = any(one.exit_code for one in inits if not one.sidecar)
        good = not broken and all(one.exit_code == 0 for one in mains)
        return "Succeeded" if good else "Failed"
    if any(one.running or one.exit_code is not None or one.restarts for one in mains):
        return "Running"
    return "Pending"


def conditions(
    pod: Document,
    inits: Sequence[Container],
    mains: Sequence[Container],
    *,
    sandbox: bool,
    ended: str,
    old: Sequence[Document],
) -> list[Document]:
    """The conditions that a node agent owns; a time changes only when the status does."""
    serving = [*mains, *(one for one in inits if one.sidecar)]
    not_ready = [one.name for one in serving if not one.ready]
    ready_reason: Document = {}
    if ended in {"Succeeded", "Failed"}:
        ready_reason = {"reason": "PodCompleted" if ended == "Succeeded" else "PodFailed"}
        not_ready = [one.name for one in serving]
    elif not_ready:
        ready_reason = {
            "reason": "ContainersNotReady",
            "message": f"containers with unready status: [{' '.join(not_ready)}]",
        }
    pending = [one.name for one in inits if not (one.started or one.exit_code == 0)]
    pending_reason: Document = {}
    if pending and ended != "Succeeded":
        pending_reason = {
            "reason": "ContainersNotInitialized",
            "message": f"containers with incomplete status: [{' '.join(pending)}]",
        }
    gates = [one["conditionType"] for one in pod["spec"].get("readinessGates", [])]
    held = {one["type"]: one["status"] for one in pod["status"].get("conditions", [])}
    gated = [gate for gate in gates if held.get(gate) != "True"]
    gate_reason: Document = (
        {"reason": "ReadinessGatesNotReady", "message": f"readiness gates: {gated}"}
        if gated
        else {}
    )
    wanted = [
        ("PodReadyToStartContainers", sandbox, {}),
        ("Initialized", not pending_reason, pending_reason),
        ("ContainersReady", not not_ready, ready_reason),
        ("Ready", not not_ready and not gated, ready_reason or gate_reason),
    ]
    before = {one["type"]: one for one in old}
    result = []
    for name, good, reason in wanted:
        entry: Document = {"type": name, "status": "True" if good else "False", **reason}
        last = before.get(name, {})
        same = last.get("status") == entry["status"]
        entry["lastTransitionTime"] = last["lastTransitionTime"] if same else now()
        # A strategic patch keeps what it is not told to remove.
        for field in ("reason", "message"):
            if field in last and field not in entry:
                entry[field] = None
        result.append(entry)
    return result
