"""A cluster of documents for expected-resources, in virtual time; answers can change with the second."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar, cast

from tests.checks.contexts import Seen
from tests.kube import virtual_time

from aicr.checks.deployment import nodewright
from aicr.checks.deployment.expected_resources import run_with
from aicr.checks.deployment.value_gates import embedded_tree
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import AicrError, not_found
from aicr.kube.kinds import Resource
from aicr.kube.port import Cluster

T = TypeVar("T")
Document = dict[str, Any]
Answer = list[Document] | AicrError
#: Words of resources that the checks list by → kinds of their documents.
_WORDS = {
    nodewright.NODEWRIGHTS: "nodewright.nvidia.com/v1alpha1/NodeWright",
    nodewright.SKYHOOKS: "skyhook.nvidia.com/v1alpha1/Skyhook",
}
CUSTOM = frozenset(_WORDS.values())


class DeployedCluster:
    """Objects by kind; a plan answers for a kind by the time; custom kinds are absent unless served."""

    def __init__(self, *objects: Document) -> None:
        self.objects = list(objects)
        self.plans: dict[str, Callable[[float], Answer]] = {}
        self.served: set[str] = set()
        self.asked: list[tuple[str, str]] = []

    def _found(self, kind: Any) -> list[Document]:
        name = _WORDS.get(kind, kind) if isinstance(kind, str) else _name(kind)
        self.asked.append((name, ""))
        if name in self.plans:
            answer = self.plans[name](virtual_time.now())
            if isinstance(answer, AicrError):
                raise answer
            return answer
        found = [one for one in self.objects if f"{one['apiVersion']}/{one['kind']}" == name]
        if name in CUSTOM and not found and name not in self.served:
            raise not_found(f"the server has no resource {kind}", context={"absent": "group"})
        return found

    async def get(self, kind: Any, name: str, *, namespace: str = "") -> Document:
        """As the port."""
        for one in self._found(kind):
            if _place(one) in ("", namespace) and one["metadata"]["name"] == name:
                return one
        raise not_found(f'{_name(kind)} "{name}" not found')

    async def list(
        self,
        kind: Any,
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: Any = None,
    ) -> list[Document]:
        """As the port."""
        return [
            one
            for one in self._found(kind)
            if namespace in ("", _place(one))
            and (labels or {}).items() <= one["metadata"].get("labels", {}).items()
        ]


def _name(kind: Any) -> str:
    return f"{kind.api_version}/{kind.kind}" if isinstance(kind, Resource) else str(kind)


def _place(document: Document) -> str:
    return str(document["metadata"].get("namespace", ""))


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run in virtual time."""
    return virtual_time.run(coroutine)


class Ended:
    """How a run of the check ended: what it printed, the error if it failed, and the seconds it took."""

    def __init__(self, seen: Seen, error: AicrError | None, seconds: float) -> None:
        self.lines, self.extra = seen.lines, seen.output.extra
        self.error, self.seconds = error, seconds
        self.emitted = [line for line in seen.stdout if line.startswith("##AICR-EXTRA##")]


def check(
    cluster: DeployedCluster, *refs: Document, budget: float = 600.0, validation: Any = ...
) -> Ended:
    """Run the check for these refs (or a whole *validation*) with the times of the product."""
    seen = Seen()

    async def body() -> tuple[AicrError | None, float]:
        context = seen.context(
            cast(Cluster, cluster),
            name="expected-resources",
            timeouts=Timeouts(),
            validation={"componentRefs": list(refs)} if validation is ... else validation,
            deadline=virtual_time.now() + budget,
        )
        try:
            await run_with(context, embedded_tree())
        except AicrError as error:
            return error, virtual_time.now()
        return None, virtual_time.now()

    error, seconds = run(body())
    return Ended(seen, error, seconds)


def namespace(name: str, phase: str = "Active") -> Document:
    """A namespace."""
    return made("v1", "Namespace", name, status={"phase": phase})


def made(api: str, kind: str, name: str, place: str = "", **more: Any) -> Document:
    """An object."""
    metadata = {"name": name, **({"namespace": place} if place else {}), **more.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def skyhook(name: str, status: str = "complete", **metadata: Any) -> Document:
    """A Skyhook."""
    return made(
        "skyhook.nvidia.com/v1alpha1", "Skyhook", name, metadata=metadata, status={"status": status}
    )


def node_wright(name: str, status: str = "complete", **metadata: Any) -> Document:
    """A NodeWright."""
    return made(
        *("nodewright.nvidia.com/v1alpha1", "NodeWright", name),
        metadata=metadata,
        status={"status": status},
    )


def gpu_node(
    name: str,
    resources: dict[str, str] | None = None,
    *,
    taints: list[Document] | None = None,
    cordoned: bool = False,
) -> Document:
    """A GPU node with an RDMA adapter; *resources* are further allocatable ones."""
    spec: Document = {"taints": taints or []}
    if cordoned:
        spec["unschedulable"] = True
    return made(
        *("v1", "Node", name),
        metadata={"labels": {"feature.node.kubernetes.io/pci-15b3.present": "true"}},
        spec=spec,
        status={"allocatable": {"nvidia.com/gpu": "8", **(resources or {})}},
    )


def customizations(manifest: str = "tuning.yaml", **overrides: Any) -> Document:
    """The ref of nodewright-customizations with one of the catalogue's manifests."""
    place = "components/nodewright-customizations/manifests"
    return {
        "name": "nodewright-customizations",
        "namespace": "skyhook",
        "overrides": {"accelerator": "h100", "intent": "training", "service": "eks", **overrides},
        "manifestFiles": [f"{place}/{manifest}"],
    }


def operator(version: str = "v0.17.1") -> Document:
    """The ref of nodewright-operator."""
    return {"name": "nodewright-operator", "namespace": "skyhook", "version": version}
