"""Drives a `watching.WatchMachine` over a transport: the I/O half of a watch.

It must not decide anything: what to do next, and which failures end it, is the machine's to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from aicr.errors import AicrError
from aicr.kube import decoding, request
from aicr.kube.kinds import Resource
from aicr.kube.port import Transport
from aicr.kube.request import Request
from aicr.kube.timeouts import Timeouts
from aicr.kube.watching import Event, ListPage, OpenWatch, Pause, WatchMachine

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which collection to follow. `resolve` finds its resource, and may have to ask the server."""

    resolve: Callable[[], Awaitable[Resource]]
    namespace: str = ""
    labels: str = ""
    fields: str = ""


async def follow(
    transport: Transport,
    machine: WatchMachine[T],
    selection: Selection,
    into: type[T],
    *,
    timeouts: Timeouts,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[Event[T], None]:
    """Events of a collection, for ever. Raises what the machine finds fatal."""
    while True:
        step = machine.step()
        if isinstance(step, Pause):
            await sleep(step.seconds)
            continue
        try:
            asked = _asked(step, selection, await selection.resolve())
            if isinstance(step, ListPage):
                body = await transport.send(asked, timeout=timeouts.page)
                page = decoding.page(asked, body, into)
                del body  # megabytes that would otherwise live on while the page is handled
                metadata = page.metadata
                for event in machine.page(
                    page.items or (), metadata.resource_version, metadata.continue_
                ):
                    yield event
                continue
            async with transport.stream(asked) as stream:
                machine.opened()
                async for batch in stream.batches():
                    for text in batch:
                        for event in _events(machine, asked, text, into):
                            yield event
        except AicrError as error:
            machine.ended(error)
        else:
            machine.ended()


def _asked(step: ListPage | OpenWatch, selection: Selection, resource: Resource) -> Request:
    where = {
        "namespace": selection.namespace,
        "labels": selection.labels,
        "fields": selection.fields,
    }
    if isinstance(step, ListPage):
        token = step.continue_token
        return request.list_page(resource, limit=step.limit, continue_token=token, **where)
    return request.watch(
        resource,
        resource_version=step.resource_version,
        timeout_seconds=step.timeout_seconds,
        initial_events=step.initial_events,
        **where,
    )


def _events(
    machine: WatchMachine[T], asked: Request, text: bytes, into: type[T]
) -> Iterable[Event[T]]:
    """What a line of a watch means."""
    if not text:
        return ()
    line = decoding.line(asked, text, into)
    if isinstance(line, decoding.Bookmark):
        return machine.bookmark(line.version, initial_end=line.initial_end)
    return machine.received(line.type, line.object)
