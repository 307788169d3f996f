"""A cluster of documents for the runner: answers by plan, and a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar, cast

from tests.kube import virtual_time

from aicr.errors import AicrError, not_found
from aicr.kube.port import Cluster, Document

T = TypeVar("T")
Plan = Callable[[float], list[Document] | AicrError]


class FakeCluster:
    """Objects by "apiVersion/Kind"; a kind can have a plan that answers by the time."""

    def __init__(self, *objects: Document) -> None:
        self.objects = list(objects)
        self.plans: dict[str, Plan] = {}
        self.asked: list[tuple[float, str, str, str, Any]] = []
        #: Seconds that every answer takes.
        self.delay = 0.0

    def plan(self, kind: str, plan: Plan) -> None:
        """Answer lists and gets of *kind* with what *plan* gives for the present second."""
        self.plans[kind] = plan

    async def _found(self, verb: str, kind: str, name: str, labels: Any) -> list[Document]:
        self.asked.append((virtual_time.now(), verb, kind, name, labels))
        if self.delay:
            await asyncio.sleep(self.delay)
        if kind in self.plans:
            answer = self.plans[kind](virtual_time.now())
            if isinstance(answer, AicrError):
                raise answer
            return answer
        return [o for o in self.objects if f"{o['apiVersion']}/{o['kind']}" == kind]

    async def get(self, kind: str, name: str, *, namespace: str = "") -> Document:
        """As the port."""
        for found in await self._found("get", kind, name, namespace):
            metadata = found["metadata"]
            if metadata["name"] == name and metadata.get("namespace", "") in ("", namespace):
                return found
        raise not_found(f'{kind} "{name}" not found')

    async def list(
        self, kind: str, *, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Document]:
        """As the port."""
        return [
            found
            for found in await self._found("list", kind, namespace, labels)
            if namespace in ("", found["metadata"].get("namespace", ""))
            and (labels or {}).items() <= found["metadata"].get("labels", {}).items()
        ]

    @property
    def port(self) -> Cluster:
        """This cluster as the runner sees it."""
        return cast(Cluster, self)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run in virtual time."""
    return virtual_time.run(coroutine)


def pod(name: str, phase: str = "Running", **more: Any) -> Document:
    """A pod in namespace ns."""
    metadata = {"name": name, "namespace": "ns", "labels": more.pop("labels", {})}
    metadata |= more.pop("metadata", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "node-1"},
        "status": {"phase": phase, **more},
    }


def check(kind: str, *resources: str, timeout: str = "") -> str:
    """The text of a Test with one operation of *kind* for each resource, written in flow style."""
    budget = f"  timeouts: {{assert: {timeout}}}\n" if timeout else ""
    entries = "".join(f"        - {kind}: {{resource: {resource}}}\n" for resource in resources)
    return (
        "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\nspec:\n"
        f"{budget}  steps:\n    - name: s\n      try:\n{entries}"
    )
