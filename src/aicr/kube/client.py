"""The port of decision 42 on a transport: reading (see `reader`), writing, logs and commands.

It must not know HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from aicr.errors import invalid
from aicr.kube import decoding, exec, logs, request
from aicr.kube.kinds import Resource
from aicr.kube.port import Document, ExecResult, Kind
from aicr.kube.reader import Reader


class Client(Reader):
    """One cluster; see `port.Cluster` for what each method promises.

    Args:
        transport: sends requests.
        config: the cluster, for its namespace and description.
        timeouts: all waiting times.
        field_manager: who owns the fields that `apply` sets, unless said otherwise.
        clock, random, sleep: time and chance.
    """

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self.transport.close()

    async def create(
        self,
        document: Mapping[str, Any],
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
        kind: Kind | None = None,
        dry_run: bool = False,
        validation: str = "",
    ) -> Document:
        """Create an object; CONFLICT if it exists.

        *kind*, *name* and *subresource* are for documents that are created under another object,
        such as an Eviction. *validation* ``Strict`` refuses unknown fields.
        """
        resource = await (self.resource_of(document) if kind is None else self.resource(kind))
        asked = request.create(
            resource,
            document,
            namespace=self._namespace(resource, document, namespace),
            name=name,
            subresource=subresource,
            field_manager=self.field_manager,
            dry_run=dry_run,
            validation=validation,
        )
        return decoding.document(asked, await self.send(asked))

    async def apply(
        self,
        document: Mapping[str, Any],
        *,
        field_manager: str = "",
        namespace: str = "",
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
        validation: str = "",
    ) -> Document:
        """Server-side apply; CONFLICT if another manager owns a field and *force* is off."""
        resource = await self.resource_of(document)
        asked = request.apply(
            resource,
            document,
            field_manager=field_manager or self.field_manager,
            namespace=self._namespace(resource, document, namespace),
            subresource=subresource,
            force=force,
            dry_run=dry_run,
            validation=validation,
        )
        return decoding.document(asked, await self.send(asked))

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
        """Patch an object: ``merge``, ``json`` (a list of operations) or ``strategic``."""
        asked = request.patch(
            await self.resource(kind),
            name,
            change,
            form=form,
            namespace=namespace,
            subresource=subresource,
            field_manager=self.field_manager,
            dry_run=dry_run,
        )
        return decoding.document(asked, await self.send(asked))

    async def update(
        self,
        document: Mapping[str, Any],
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Document:
        """Replace an object; CONFLICT if it changed since the resourceVersion in *document*."""
        resource = await self.resource_of(document)
        asked = request.update(
            resource,
            document,
            namespace=self._namespace(resource, document, namespace),
            subresource=subresource,
            field_manager=self.field_manager,
            dry_run=dry_run,
        )
        return decoding.document(asked, await self.send(asked))

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
        """Delete an object; it may live on while finalizers and grace periods last."""
        asked = request.delete(
            await self.resource(kind),
            name,
            namespace=namespace,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_seconds=grace_seconds,
            dry_run=dry_run,
        )
        await self.send(asked)

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
        options = logs.LogOptions(container, tail, previous, limit_bytes=limit_bytes)
        asked = logs.log_request(name, namespace, options)
        return await self.send(asked, timeout=self.timeouts.page)

    def follow_logs(
        self, name: str, *, namespace: str, container: str = ""
    ) -> AsyncIterator[bytes]:
        """Each line that a container writes, without its end, until the container has ended."""
        return logs.follow(self, name, namespace=namespace, container=container)

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
        """Run a command in a container and collect what it writes; TIMEOUT after *timeout* seconds."""
        limit = self.timeouts.command if timeout is None else timeout
        return await exec.run(
            self.transport,
            exec.exec_request(name, command, namespace, container, stdin is not None),
            stdin=stdin,
            timeout=limit,
        )

    def _namespace(self, resource: Resource, document: Mapping[str, Any], namespace: str) -> str:
        """The namespace of a document; INVALID_REQUEST if it names another than the caller."""
        own = str((document.get("metadata") or {}).get("namespace") or "")
        if own and namespace and own != namespace and resource.namespaced:
            raise invalid(
                f'the document is for namespace "{own}", not "{namespace}"',
                where=f"{resource.kind}/{(document.get('metadata') or {}).get('name', '')}",
            )
        return own or namespace or (self.config.namespace if resource.namespaced else "")
