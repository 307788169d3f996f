"""Reading from a cluster: kinds, get, list and watch, as plain documents or as projections.

The half of the port that checks, collectors and caches need; `client.Client` adds writing, logs and
commands. Kinds are found through discovery, or without it for the kinds of `kinds`. It must not
know HTTP.
"""

from __future__ import annotations

import asyncio
import random as random_module
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar, cast, overload

from aicr.errors import NOT_FOUND, AicrError
from aicr.kube import decoding, request, status
from aicr.kube.config import ClusterConfig
from aicr.kube.discovery import Discovery
from aicr.kube.follow import Selection, follow
from aicr.kube.kinds import WELL_KNOWN, Resource
from aicr.kube.port import Document, Documents, Fields, Kind, Labels, Transport
from aicr.kube.timeouts import Timeouts
from aicr.kube.watching import (
    FATAL,
    Event,
    Identity,
    WatchMachine,
    identity_of_document,
    identity_of_struct,
)

T = TypeVar("T")
#: A list; inside the class below the name `list` means its method.
Projected = list[T]

#: Objects a page: some megabytes of pods, decoded in a few milliseconds.
PAGE: Final = 500
#: Who owns the fields that `apply` sets, unless said otherwise.
FIELD_MANAGER: Final = "aicr"


class Reader:
    """The reading half of `client.Client`, which documents the arguments."""

    def __init__(
        self,
        transport: Transport,
        config: ClusterConfig,
        *,
        timeouts: Timeouts | None = None,
        field_manager: str = FIELD_MANAGER,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.transport = transport
        self.config = config
        self.timeouts = timeouts or Timeouts()
        self.field_manager = field_manager
        self.clock = clock
        self.random = random
        self.sleep = sleep
        self.discovery = Discovery(transport.send, clock=clock, timeouts=self.timeouts)

    async def resource(self, kind: Kind) -> Resource:
        """Where objects of *kind* live; NOT_FOUND or SERVICE_UNAVAILABLE as `discovery` says."""
        if isinstance(kind, Resource):
            return kind
        api_version, _, name = kind.rpartition("/")
        known = WELL_KNOWN.get((api_version, name)) if api_version else None
        return known or await self.discovery.named(kind)

    async def resource_of(self, document: Mapping[str, Any]) -> Resource:
        """The resource of a document's apiVersion and kind."""
        api_version = str(document.get("apiVersion") or "")
        kind = str(document.get("kind") or "")
        known = WELL_KNOWN.get((api_version, kind))
        return known or await self.discovery.kind(api_version, kind)

    async def version(self) -> Document:
        """What ``/version`` says."""
        asked = request.raw("/version")
        return decoding.document(asked, await self.send(asked))

    @overload
    async def get(
        self, kind: Kind, name: str, *, namespace: str = "", subresource: str = ""
    ) -> Document: ...

    @overload
    async def get(
        self, kind: Kind, name: str, *, namespace: str = "", subresource: str = "", into: type[T]
    ) -> T: ...

    async def get(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str = "",
        subresource: str = "",
        into: type[T] | None = None,
    ) -> Document | T:
        """One object, as a document or *into* a projection; NOT_FOUND if there is none."""
        resource = await self.resource(kind)
        asked = request.get(resource, name, namespace=namespace, subresource=subresource)
        body = await self.send(asked)
        if into is None:
            return decoding.document(asked, body)
        return decoding.projection(asked, body, into)

    @overload
    async def list(
        self, kind: Kind, *, namespace: str = "", labels: Labels = None, fields: Fields = None
    ) -> Documents: ...

    @overload
    async def list(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: Labels = None,
        fields: Fields = None,
        into: type[T],
    ) -> Projected[T]: ...

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: Labels = None,
        fields: Fields = None,
        into: type[T] | None = None,
    ) -> Documents | Projected[T]:
        """All objects as of one moment, fetched in pages; of all namespaces if none is given.

        Never cut short (decision 9): a list that changes under its pages beyond what the server
        keeps is begun again, the second time in one piece.
        """
        resource = await self.resource(kind)
        selectors = {
            "namespace": namespace,
            "labels": request.label_selector(labels),
            "fields": request.field_selector(fields),
        }
        for limit in (PAGE, PAGE, 0):
            try:
                if into is None:
                    return await self._all(resource, dict, limit, selectors)
                return await self._all(resource, into, limit, selectors)
            except AicrError as error:
                if not (limit and status.is_gone(error)):
                    raise
        raise AssertionError("a list in one piece cannot expire")

    async def _all(
        self, resource: Resource, into: type[T], limit: int, selectors: dict[str, str]
    ) -> Projected[T]:
        found: Projected[T] = []
        token = ""
        while True:
            asked = request.list_page(resource, limit=limit, continue_token=token, **selectors)
            body = await self.send(asked, timeout=self.timeouts.page)
            page = decoding.page(asked, body, into)
            found += page.items or ()
            token = page.metadata.continue_
            # Some megabytes that need not wait for the next page to take their place.
            del body, page
            if not token:
                return found

    @overload
    def watch(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: Labels = None,
        fields: Fields = None,
    ) -> AsyncIterator[Event[Document]]: ...

    @overload
    def watch(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: Labels = None,
        fields: Fields = None,
        into: type[T],
    ) -> AsyncIterator[Event[T]]: ...

    def watch(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: Labels = None,
        fields: Fields = None,
        into: type[Any] = dict,
    ) -> AsyncIterator[Event[Any]]:
        """What exists as ADDED, then SYNCED, then every change, for ever and over lost connections.

        Raises only what waiting does not mend: access denied, no such kind, wrong selector. To
        stop, leave the loop; ``contextlib.aclosing`` closes the connection at that moment.
        """
        machine = self.machine(into)
        return self.follow(machine, kind, into, namespace=namespace, labels=labels, fields=fields)

    def machine(
        self, into: type[T], *, initial_events: bool = False, fatal: frozenset[str] = FATAL
    ) -> WatchMachine[T]:
        """A watch machine with this client's times, for `follow`."""
        document = into is dict
        identify = identity_of_document if document else identity_of_struct
        return WatchMachine(
            identify=cast("Callable[[T], Identity]", identify),
            clock=self.clock,
            random=self.random,
            timeouts=self.timeouts,
            limit=PAGE,
            initial_events=initial_events,
            fatal=fatal,
        )

    def follow(
        self,
        machine: WatchMachine[T],
        kind: Kind,
        into: type[T],
        *,
        namespace: str = "",
        labels: Labels = None,
        fields: Fields = None,
    ) -> AsyncGenerator[Event[T], None]:
        """As `watch`, driven by a machine whose state the caller looks at."""
        selection = Selection(
            lambda: self.resource(kind),
            namespace,
            request.label_selector(labels),
            request.field_selector(fields),
        )
        return follow(
            *(self.transport, machine, selection, into), timeouts=self.timeouts, sleep=self.sleep
        )

    async def send(self, asked: request.Request, timeout: float | None = None) -> bytes:
        """The answer to *asked*. A path that is not served after all makes discovery ask again."""
        try:
            return await self.transport.send(asked, timeout=timeout)
        except AicrError as error:
            if error.code == NOT_FOUND and error.context.get("absent") == "resource":
                self.discovery.forget()
            raise
