"""The decision for one pod: injected, left alone or refused, with the patch and the reasons.

Pure: what had to be asked of the API server comes in as `gang_port.Membership` and `claims.Facts`.
The order of steps is the order of preflight spec 2.4, because it decides which message a person sees.
Sources: decisions 16, 17, 21, 24, 26, 69, 70, 73; field cases I1 to I15.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from aicr.errors import AicrError, invalid
from aicr.preflight import names
from aicr.preflight.admission import claims as claim_facts
from aicr.preflight.admission import volumes
from aicr.preflight.admission.container import (
    Builder,
    claim_references,
    inheritance,
)
from aicr.preflight.admission.devices import Devices
from aicr.preflight.admission.gang_port import Membership
from aicr.preflight.admission.patch import Operation, operations
from aicr.preflight.admission.pod import NOT_A_POD, Pod
from aicr.preflight.admission.prepared import Prepared
from aicr.preflight.admission.selection import selected
from aicr.preflight.admission.sizing import sizes
from aicr.preflight.config import IGNORE, PREPEND, Check

#: Values of label ``result`` of ``preflight_injection_total`` (spec 2.9).
INJECTED: Final = "injected"
NO_GPU: Final = "skipped_no_gpu"
NO_CHECKS: Final = "skipped_no_checks"
REJECTED: Final = "rejected"
ERROR: Final = "error"

FORBIDDEN: Final = 403
UNPROCESSABLE: Final = 422


@dataclass(slots=True)
class Decision:
    """What is to happen with a pod, and why."""

    outcome: str
    reason: str
    """Why, in words for the person who made the pod."""
    message: str = ""
    """The text of a refusal."""
    code: int = FORBIDDEN
    """HTTP status of a refusal."""
    patch: list[Operation] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    checks: tuple[str, ...] = ()
    """The checks that the pod has afterwards, in order."""
    register: bool = False
    """Whether the gang is to be told of this pod."""

    @property
    def allowed(self) -> bool:
        """Whether the pod is admitted."""
        return not self.message


def needs_claims(pod: Pod, found: Devices, prepared: Prepared) -> bool:
    """Whether the decision depends on what the pod's resource claims ask for."""
    annotation = pod.annotations.get(names.CHECKS_ANNOTATION)
    opted_out = type(annotation) is str and not annotation.strip(" ,\t")
    return (
        bool(pod.claims)
        and prepared.config.dra_enabled
        and not opted_out
        and not found.has(prepared.gpu_resources)
        and names.MIRROR_ANNOTATION not in pod.annotations
    )


def decide(
    pod: Pod,
    found: Devices,
    prepared: Prepared,
    membership: Membership | None = None,
    facts: claim_facts.Facts = claim_facts.NONE,
) -> Decision:
    """Decide for *pod*; a refusal is a result and not an error."""
    warnings: list[str] = []
    try:
        return _decide(pod, found, prepared, membership, facts, warnings)
    except AicrError as error:
        return refused(error, warnings)


def refused(error: AicrError, warnings: list[str] | None = None) -> Decision:
    """The refusal that *error* means, in the words of spec 2.3."""
    if error.context.get(NOT_A_POD):
        message = f"failed to unmarshal pod: {error.message}"
        return Decision(ERROR, error.message, message, UNPROCESSABLE)
    text = f"{error.message}; {error.hint}" if error.hint else error.message
    message = f"failed to inject init containers: {text}"
    return Decision(REJECTED, text, message, warnings=warnings or [])


def _decide(
    pod: Pod,
    found: Devices,
    prepared: Prepared,
    membership: Membership | None,
    facts: claim_facts.Facts,
    warnings: list[str],
) -> Decision:
    if names.MIRROR_ANNOTATION in pod.annotations:
        return Decision(NO_CHECKS, "a static pod runs before the API server hears of it")
    by_resource = found.has(prepared.gpu_resources)
    if not by_resource and not facts.gpu_claims:
        return _without_gpu(pod, prepared, facts)
    volumes.check_token(pod, prepared)
    wanted = _wanted(pod, prepared, membership, warnings)
    if not wanted:
        reason = "no check is selected for this pod"
        return Decision(NO_CHECKS, reason, warnings=warnings)
    checks = tuple(check.name for check in wanted)
    if membership is not None:
        _check_gang(pod, membership, checks)
    existing = {c["name"] for c in (*pod.init_containers, *pod.containers)}
    missing = [check for check in wanted if check.name not in existing]
    if not missing:
        reason = "the pod has all its checks already"
        return Decision(
            NO_CHECKS, reason, warnings=warnings, checks=checks, register=membership is not None
        )
    if len(missing) < len(wanted):
        kept = ", ".join(name for name in checks if name in existing)
        warnings.append(f"the pod has a container named {kept} already, which is left as it is")
    position = _position(pod, found, prepared, warnings)
    builder = Builder(
        prepared=prepared,
        pod=pod,
        inherited=inheritance(pod, prepared),
        membership=membership,
        claims=_claims(pod, prepared, membership, facts),
        amounts=found.for_checks(position),
        sizes=sizes(pod),
        warnings=warnings,
        absent=volumes.absent(pod, prepared) if membership is not None else set(),
        mounted=set(),
    )
    containers = [builder.container(prepared.templates[check.name]) for check in missing]
    added = volumes.added(pod, prepared, membership, builder.mounted)
    patch = operations(pod, containers, position, added, prepared.config.pull_secrets)
    _warn_of_backed(builder, facts, warnings)
    _warn_of_pod(pod, prepared, missing, membership, warnings)
    what = "GPUs by extended resource" if by_resource else "GPUs by resource claim"
    return Decision(
        INJECTED,
        f"the pod gets {what}",
        patch=patch,
        warnings=warnings,
        checks=checks,
        register=membership is not None,
    )


def _without_gpu(pod: Pod, prepared: Prepared, facts: claim_facts.Facts) -> Decision:
    if not facts.problem:
        reason = "no container or sidecar gets a GPU"
        if pod.claims and not prepared.config.dra_enabled:
            reason += " by extended resource, and resource claims are not looked at (gpuDraEnabled)"
        return Decision(NO_GPU, reason)
    if prepared.config.failure_policy == IGNORE:
        reason = f"admitted without checks, because of its resource claims: {facts.problem}"
        return Decision(ERROR, reason, warnings=[reason])
    raise invalid(
        f"cannot tell whether the pod's resource claims ask for GPUs: {facts.problem}",
        hint=facts.hint,
    )


def _wanted(
    pod: Pod, prepared: Prepared, membership: Membership | None, warnings: list[str]
) -> list[Check]:
    annotation = pod.annotations.get(names.CHECKS_ANNOTATION)
    if annotation is not None and type(annotation) is not str:
        raise invalid(
            f"metadata.annotations[{names.CHECKS_ANNOTATION}]: expected text",
            context={NOT_A_POD: True},
        )
    return selected(annotation, prepared.checks, in_gang=membership is not None, warnings=warnings)


def _check_gang(pod: Pod, membership: Membership, checks: tuple[str, ...]) -> None:
    if membership.mismatch:
        raise invalid(membership.mismatch)
    if membership.checks is not None and membership.checks != checks:
        other = f"pod {membership.agreed_by}" if membership.agreed_by else "an earlier member"
        raise invalid(
            f"pods of gang {membership.gang_id} must name the same checks in the same order: "
            f"{other} has {', '.join(membership.checks)}; "
            f"pod {pod.name or '(unnamed)'} has {', '.join(checks)}",
            hint=f"give all pods of the gang one value of {names.CHECKS_ANNOTATION}",
        )


def _position(pod: Pod, found: Devices, prepared: Prepared, warnings: list[str]) -> int:
    """Before which init container the checks go; their number means at the end."""
    if prepared.config.placement == PREPEND:
        return 0
    if not found.only_in_sidecars(prepared.gpu_resources):
        return len(pod.init_containers)
    position = found.first_sidecar(prepared.gpu_resources)
    warnings.append(
        f"only sidecars get GPUs, so the checks go before sidecar "
        f"{pod.init_containers[position]['name']}, which would hold them"
    )
    return position


def _claims(
    pod: Pod, prepared: Prepared, membership: Membership | None, facts: claim_facts.Facts
) -> list[dict[str, Any]]:
    if facts.gpu_claims:
        return claim_references(pod, whole=False)
    if membership is not None and prepared.config.gangs.mirror_claims:
        return claim_references(pod, whole=True)
    return []


def _warn_of_backed(builder: Builder, facts: claim_facts.Facts, warnings: list[str]) -> None:
    """Extended resources for which every init container is given devices of its own."""
    for name, _ in builder.amounts:
        if name in facts.backed:
            warnings.append(
                f"{name} is served by claim (DeviceClass {facts.backed[name]}): each check may be "
                "given devices of its own; a ResourceClaim in the pod is shared"
            )


def _warn_of_pod(
    pod: Pod,
    prepared: Prepared,
    missing: list[Check],
    membership: Membership | None,
    warnings: list[str],
) -> None:
    """What about the pod itself may keep the checks from working."""
    spec = pod.spec
    if spec.get("hostNetwork") is True:
        if spec.get("dnsPolicy") != "ClusterFirstWithHostNet":
            warnings.append(
                "hostNetwork without dnsPolicy ClusterFirstWithHostNet: checks may not find "
                "services of the cluster, such as DCGM"
            )
        if membership is not None:
            warnings.append(
                f"hostNetwork: port {prepared.config.gangs.master_port} of the node is shared by "
                "all gangs on it"
            )
    context = spec.get("securityContext")
    if type(context) is dict and context.get("runAsNonRoot") is True:
        rooted = [
            check.name
            for check in missing
            if not {"runAsUser", "runAsNonRoot"}
            & (check.container.get("securityContext") or {}).keys()
        ]
        if rooted and not context.get("runAsUser"):
            warnings.append(
                f"runAsNonRoot: check {', '.join(rooted)} sets no user, so it cannot start if its "
                "image runs as root"
            )
