"""The webhook's decision without a cluster: for ``aicr preflight inject`` and ``explain``.

What the webhook would ask the API server is taken from the pod itself (its gang anchor) and from documents
given beside it (ResourceClaims and their templates). What cannot be known offline is said, never
assumed. It must not read files. Source: decisions 26 and 31.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final, cast

from aicr.errors import AicrError, invalid, nearest
from aicr.kube.kinds import Resource
from aicr.kube.port import Cluster
from aicr.preflight import names
from aicr.preflight.admission import claims as claim_facts
from aicr.preflight.admission.amounts import canonical, number
from aicr.preflight.admission.decision import Decision, decide, needs_claims
from aicr.preflight.admission.devices import Devices, devices, effective_after
from aicr.preflight.admission.gang_port import Membership
from aicr.preflight.admission.patch import apply
from aicr.preflight.admission.pod import Pod, view
from aicr.preflight.admission.prepared import Prepared
from aicr.preflight.config import Config, load
from aicr.preflight.gang import naming, native, podgroup
from aicr.preflight.gang.groups import Discoverer
from aicr.preflight.gang.pods import gang_pod

Document = dict[str, Any]

#: Where a kind keeps the pod it makes.
TEMPLATES: Final[dict[str, tuple[str, ...]]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Deployment": ("spec", "template"),
    "Job": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
}
_BESIDE: Final = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass")


@dataclass(frozen=True, slots=True)
class Case:
    """A pod, and what the decision about it was made from."""

    pod: Pod
    found: Devices
    membership: Membership | None
    decision: Decision
    prepared: Prepared

    def admitted(self) -> Document:
        """The pod as it would be stored."""
        made: Document = apply(self.pod.document, self.decision.patch)
        return made


def default_config() -> Config:
    """What the chart sets with no values given."""
    text = resources.files("aicr.preflight").joinpath("default_config.yaml").read_text("utf-8")
    config, _ = load(text, source="the default configuration")
    return config


def pod_of(documents: Sequence[object], source: str) -> tuple[Document, list[Document]]:
    """The one pod, or pod template of a workload, in *documents*, and the claims beside it.

    Raises:
        AicrError: INVALID_REQUEST when there is none or more than one, or something else beside it.
    """
    pods: list[Document] = []
    beside: list[Document] = []
    for document in documents:
        if document is None:
            continue
        kind = document.get("kind") if isinstance(document, dict) else None
        if not isinstance(document, dict) or not isinstance(kind, str):
            raise invalid("every document needs a kind", where=source)
        if kind in _BESIDE:
            beside.append(document)
        elif kind in TEMPLATES:
            pods.append(_template(document, kind, source))
        else:
            near = nearest(kind, [*TEMPLATES, *_BESIDE])
            raise invalid(
                f"kind {kind} makes no pod",
                where=source,
                hint=f"did you mean {near}?" if near else f"kinds: {', '.join(TEMPLATES)}",
            )
    if len(pods) != 1:
        raise invalid(
            f"{len(pods)} pods in the file, expected one",
            where=source,
            hint=f"beside the pod may stand: {', '.join(_BESIDE)}",
        )
    return pods[0], beside


def _template(document: Document, kind: str, source: str) -> Document:
    node: object = document
    for step in TEMPLATES[kind]:
        node = node.get(step) if isinstance(node, dict) else None
    if not isinstance(node, dict):
        raise invalid(f"the {kind} has no {'.'.join(TEMPLATES[kind])}", where=source)
    if kind == "Pod":
        return node
    outer = document.get("metadata")
    outer = outer if isinstance(outer, dict) else {}
    metadata = dict(node.get("metadata") or {})
    if not metadata.get("name"):
        metadata.setdefault("generateName", f"{outer.get('name') or kind.lower()}-")
    if outer.get("namespace"):
        metadata.setdefault("namespace", outer["namespace"])
    return {"apiVersion": "v1", "kind": "Pod", **node, "metadata": metadata}


def judge(
    document: Document, beside: Sequence[Document], prepared: Prepared, namespace: str
) -> Case:
    """Decide for the pod *document*, created in *namespace* unless it names its own.

    Raises:
        AicrError: INVALID_REQUEST when it is no pod.
    """
    pod = view(document, namespace)
    found = devices(pod, prepared.resources)
    facts = claim_facts.Facts(
        backed=claim_facts.backed_resources(
            item for item in beside if item["kind"] == "DeviceClass"
        )
    )
    if needs_claims(pod, found, prepared):
        facts = _facts(pod, beside, prepared.config)
    membership = _membership(pod, prepared.config)
    if not (found.has(prepared.gpu_resources) or facts.gpu_claims):
        membership = None
    decision = decide(pod, found, prepared, membership, facts)
    return Case(pod, found, membership, decision, prepared)


def _facts(pod: Pod, beside: Sequence[Document], config: Config) -> claim_facts.Facts:
    given = {
        (str(item.get("kind")), str((item.get("metadata") or {}).get("name"))): item
        for item in beside
    }
    gpus: list[str] = []
    missing: list[str] = []
    for source in claim_facts.sources(pod):
        document = given.get((source.kind, source.name))
        if document is None:
            missing.append(f"{source.kind} {source.name}")
            continue
        spec = claim_facts.spec_of(document, source.kind)
        used = claim_facts.used_requests(pod, source.claim)
        if claim_facts.asks_for_gpus(spec, used, config.device_classes):
            gpus.append(source.claim)
    if gpus:
        return claim_facts.Facts(gpu_claims=tuple(gpus))
    if missing:
        return claim_facts.Facts(
            problem=f"{', '.join(missing)} is not in the file",
            hint="put it into the file, after ---",
        )
    return claim_facts.NONE


def _membership(pod: Pod, config: Config) -> Membership | None:
    if not config.gangs.enabled:
        return None
    anchor = _discoverer(config).anchor(gang_pod(pod.document, pod.namespace))
    if anchor is None:
        return None
    gang_id = anchor.gang_id
    return Membership(gang_id, naming.config_map_name(gang_id), anchor.discoverer)


def _discoverer(config: Config) -> Discoverer:
    """The configured discoverer, of which only the part is used that asks nobody."""
    nobody = cast(Cluster, None)
    settings = config.gang_discovery
    if settings.native:
        group = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", True)
        workload = Resource("scheduling.k8s.io", "v1alpha1", "workloads", "Workload", True)
        return native.NativeDiscoverer(nobody, native.Served(pod_group=group, workload=workload))
    resource = Resource(settings.group, settings.version, settings.resource, "PodGroup", True)
    return podgroup.PodGroupDiscoverer(nobody, settings, resource)


def explanation(case: Case) -> Document:
    """Why the pod would or would not be given checks, as a document for people and programs."""
    pod, decision = case.pod, case.decision
    made: Document = {
        "pod": pod.name or "(unnamed)",
        "namespace": pod.namespace or "(not stated)",
        "result": decision.outcome,
        "why": decision.message or decision.reason,
    }
    if decision.checks:
        made["checks"] = list(decision.checks)
    left_out = [name for name in case.prepared.checks if name not in decision.checks]
    if decision.allowed and decision.patch and left_out:
        made["leftOut"] = [{"check": name, "why": _left_out(case, name)} for name in left_out]
    if case.membership is not None:
        made["gang"] = {
            "id": case.membership.gang_id,
            "configMap": case.membership.config_map,
            "discoverer": case.membership.discoverer,
        }
    if decision.patch:
        after = view(case.admitted())
        made["initContainers"] = [container["name"] for container in after.init_containers]
        made["resources"] = _effective(case)
        made["volumesAdded"] = [volume["name"] for volume in after.volumes[len(pod.volumes) :]]
    notes = [*decision.warnings, *_notes(case)]
    if notes:
        made["notes"] = notes
    return made


def _left_out(case: Case, name: str) -> str:
    check = case.prepared.checks[name]
    if check.gang_only and case.membership is None:
        return "it is only for pods of a gang, and this pod is in none"
    if names.CHECKS_ANNOTATION in case.pod.annotations:
        return f"annotation {names.CHECKS_ANNOTATION} does not name it"
    return "defaultEnabled is false"


def _effective(case: Case) -> Document:
    """What the scheduler reserves for the pod, of each device, without and with the checks."""
    added: list[dict[str, Any]] = []
    position = 0
    after = view(case.admitted()).init_containers
    own = {container["name"] for container in case.pod.init_containers}
    for index, container in enumerate(after):
        if container["name"] not in own:
            position = position if added else index
            limits = container["resources"].get("limits", {})
            added.append(
                {
                    name: number(limits[name], name)
                    for name in case.prepared.resources
                    if name in limits
                }
            )
    changed = effective_after(case.found, added, position)
    return {
        name: {
            "check": canonical(added[0].get(name, 0)),
            "podBefore": canonical(case.found.effective(name)),
            "podAfter": canonical(count),
        }
        for name, count in changed.items()
    }


def _notes(case: Case) -> list[str]:
    """What follows for the pod, and what cannot be known here."""
    notes: list[str] = []
    if case.decision.patch:
        policy = case.pod.spec.get("restartPolicy") or "Always"
        if policy == "Never":
            notes.append(
                "restartPolicy Never: a check that fails fails the pod, and a Job counts that"
                " against its backoffLimit"
            )
        else:
            notes.append(
                f"restartPolicy {policy}: a check that fails is run again, and the pod holds its"
                " GPUs meanwhile (Init:CrashLoopBackOff)"
            )
    notes.append(
        f"the webhook is asked only in namespaces with label {names.OPT_IN_LABEL}="
        f"{names.OPT_IN_VALUE}, unless the chart's namespaceSelector says otherwise"
    )
    if case.membership is not None:
        notes.append("offline: what other members of the gang have agreed on is not known")
    return notes


def refusal(case: Case) -> AicrError | None:
    """The error for a pod that would be refused; None for one that is admitted."""
    if case.decision.allowed:
        return None
    return invalid(case.decision.message, where=case.pod.name)
