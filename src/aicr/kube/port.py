"""The interfaces of cluster access: what callers use, and what a transport must bring.

`Cluster` is the port of decision 42, on plain documents; checks, the gate, the webhook's
controllers and snapshot collectors take one and do not know which. `Transport` is what
`client.Client` needs underneath. Tests pass their own of either; nothing is patched. This module
must not know any implementation.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from aicr.kube.kinds import Resource
from aicr.kube.request import Request
from aicr.kube.watching import Event

Document = dict[str, Any]
Documents = list[dict[str, Any]]
Labels = str | Mapping[str, Any] | None
Fields = str | Mapping[str, str] | None
#: ``pods``, ``po``, ``Pod``, ``deployments.apps``, ``apps/v1/Deployment``, or a known `Resource`.
Kind = str | Resource


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command in a container ended."""

    exit_code: int
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)


class Cluster(Protocol):
    """Access to one cluster. Every method raises `aicr.errors.AicrError` and nothing else."""

    async def get(
        self, kind: Kind, name: str, *, namespace: str = "", subresource: str = ""
    ) -> Document:
        """One object; NOT_FOUND if there is none."""

    async def list(
        self, kind: Kind, *, namespace: str = "", labels: Labels = None, fields: Fields = None
    ) -> Documents:
        """All objects, of all namespaces if none is given; never cut short."""

    def watch(
        self, kind: Kind, *, namespace: str = "", labels: Labels = None, fields: Fields = None
    ) -> AsyncIterator[Event[Document]]:
        """What exists, then SYNCED, then every change; see `watching`."""

    async def create(
        self, document: Mapping[str, Any], *, namespace: str = "", dry_run: bool = False
    ) -> Document:
        """Create an object; CONFLICT if it exists."""

    async def apply(
        self,
        document: Mapping[str, Any],
        *,
        field_manager: str = "",
        namespace: str = "",
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Document:
        """Server-side apply; CONFLICT if another manager owns a field and *force* is off."""

    async def patch(
        self,
        kind: Kind,
        name: str,
        change: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        form: str = "merge",
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Document:
        """Patch an object: ``merge``, ``json`` or ``strategic``."""

    async def update(
        self,
        document: Mapping[str, Any],
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Document:
        """Replace an object; CONFLICT if it has changed since *document* was read."""

    async def delete(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete an object; NOT_FOUND if there is none, CONFLICT if it is not the one with *uid*."""

    async def logs(
        self,
        name: str,
        *,
        namespace: str,
        container: str = "",
        tail: int | None = None,
        previous: bool = False,
        limit_bytes: int = 0,
    ) -> bytes:
        """What a container has written so far."""

    def follow_logs(
        self, name: str, *, namespace: str, container: str = ""
    ) -> AsyncIterator[bytes]:
        """Each line that a container writes, until it ends, over cut connections."""

    async def exec(
        self,
        name: str,
        command: Sequence[str],
        *,
        namespace: str,
        container: str = "",
        stdin: bytes | None = None,
        timeout: float | None = None,
    ) -> ExecResult:
        """Run a command in a container; its exit status is a result, not an error."""


class Stream(Protocol):
    """An answer that is read while it comes."""

    def batches(self) -> AsyncIterator[list[bytes]]:
        """Complete lines, without their ends, as they arrive; AicrError when the connection breaks."""


class Socket(Protocol):
    """A websocket that carries binary messages."""

    @property
    def protocol(self) -> str:
        """The subprotocol that the server chose."""

    async def send(self, data: bytes) -> None:
        """Send one message."""

    async def receive(self) -> bytes | None:
        """The next message; None once the other side has closed."""


class Transport(Protocol):
    """Sends requests to one server."""

    async def send(self, request: Request, *, timeout: float | None = None) -> bytes:
        """The body of a 2xx answer."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """A 2xx answer that goes on."""

    def websocket(
        self, request: Request, protocols: Sequence[str]
    ) -> AbstractAsyncContextManager[Socket]:
        """An upgraded connection."""

    async def close(self) -> None:
        """Close all connections."""
