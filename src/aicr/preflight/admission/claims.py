"""Whether a pod gets GPUs by resource claim (DRA): which claims to look up, and what they ask for.

A claim counts as GPUs when a request of it names one of the configured device classes, without admin
access; a request with alternatives counts when each of them does. Only requests count that the
workload's containers or sidecars use. Looking claims up is `claim_lookup`'s business.
Source: decision 17, 73; preflight spec Appendix A1; field case I1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from aicr.preflight.admission.container import container_claims
from aicr.preflight.admission.pod import Pod, is_sidecar

CLAIM: Final = "ResourceClaim"
TEMPLATE: Final = "ResourceClaimTemplate"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a pod's claims."""

    gpu_claims: tuple[str, ...] = ()
    """Names, in the pod, of the claims that ask for GPUs."""
    problem: str = ""
    """Why it could not be found out."""
    hint: str = ""
    """What to do about the problem."""
    backed: Mapping[str, str] = field(default_factory=dict)
    """Extended resources that the cluster serves by claim, with the device class (field case I4)."""


NONE: Final = Facts()


class ClaimLookup(Protocol):
    """Finds out about the claims of a pod."""

    async def find(self, pod: Pod) -> Facts:
        """What *pod*'s claims ask for. A failure is a fact, not an error."""


@dataclass(frozen=True, slots=True)
class Source:
    """The object that says what a claim of a pod asks for."""

    claim: str
    kind: str
    name: str


def sources(pod: Pod) -> Iterator[Source]:
    """The objects to look up, one for each claim that names one and that the workload uses."""
    for claim in pod.claims:
        if used_requests(pod, claim["name"]) == frozenset():
            continue
        for key, kind in (
            ("resourceClaimTemplateName", TEMPLATE),
            ("resourceClaimName", CLAIM),
        ):
            name = claim.get(key)
            if type(name) is str and name:
                yield Source(claim["name"], kind, name)
                break


def used_requests(pod: Pod, claim: str) -> frozenset[str] | None:
    """The requests of *claim* that containers and sidecars use; None for all of them.

    A claim that no container mentions is reserved for the pod all the same, so it counts as a whole;
    one that only ordinary init containers use is used by none.
    """
    found: set[str] = set()
    mentioned = False
    for kind, containers in (
        ("containers", pod.containers),
        ("initContainers", pod.init_containers),
    ):
        for index, container in enumerate(containers):
            for reference in container_claims(container, f"spec.{kind}[{index}].resources"):
                if reference["name"] != claim:
                    continue
                mentioned = True
                if kind == "containers" or is_sidecar(container):
                    found.add(reference.get("request") or "")
    if "" in found or not mentioned:
        return None
    return frozenset(found)


def backed_resources(classes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Extended resource → name of the device class that serves it, of the DeviceClasses given.

    For such a resource the scheduler makes a claim for each container that asks for it, so that init
    containers do not share the workload's devices.
    """
    found: dict[str, str] = {}
    for document in classes:
        name = (document.get("metadata") or {}).get("name") or ""
        resource = (document.get("spec") or {}).get("extendedResourceName")
        if type(resource) is str and resource:
            found[resource] = name
        # Every device class also has a resource of its own name.
        found[f"deviceclass.resource.kubernetes.io/{name}"] = name
    return found


def spec_of(document: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The claim's specification in a ResourceClaim or ResourceClaimTemplate."""
    spec = document.get("spec") or {}
    found: Mapping[str, Any] = (spec.get("spec") or {}) if kind == TEMPLATE else spec
    return found


def asks_for_gpus(
    spec: Mapping[str, Any], used: frozenset[str] | None, classes: Collection[str]
) -> bool:
    """Whether a claim's *spec* has a request among *used* (None: all) of one of *classes*."""
    for request in (spec.get("devices") or {}).get("requests") or ():
        name = request.get("name") or ""
        if used is not None and not any(_selects(choice, name) for choice in used):
            continue
        alternatives = request.get("firstAvailable")
        if alternatives:
            chosen = [
                alternative
                for alternative in alternatives
                if used is None or name in used or f"{name}/{alternative.get('name')}" in used
            ]
            if chosen and all(_is_gpu(alternative, classes) for alternative in chosen):
                return True
        # resource.k8s.io/v1beta1 has the fields of `exactly` in the request itself.
        elif _is_gpu(request.get("exactly") or request, classes):
            return True
    return False


def _selects(choice: str, request: str) -> bool:
    """Whether a container that uses *choice* (``request`` or ``request/alternative``) uses *request*."""
    return choice.partition("/")[0] == request


def _is_gpu(request: Mapping[str, Any], classes: Collection[str]) -> bool:
    return request.get("deviceClassName") in classes and not request.get("adminAccess")
