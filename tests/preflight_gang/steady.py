"""A fake API server whose watches lose no change that happens while they write.

The shared one moves a watch's position to the newest version after it has sent what there was before;
a change in between is then never sent. Here the position moves to what was sent. Searching the
history for each watch is replaced by going on where the last search ended, because gangs of a thousand
pods make long histories.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiohttp import web
from tests.kube.fakeapi import FakeApi, refuse, selected
from tests.kube.fakeapi import _bookmark as bookmark
from tests.kube.fakeapi import _line as write_line

from aicr.kube.kinds import Resource


@dataclass
class SteadyApi(FakeApi):
    """See the module. Histories are never forgotten in it, except by `forget_history`."""

    async def _watch(
        self, request: web.Request, resource: Resource, namespace: str
    ) -> web.StreamResponse:
        try:
            return await self._watched(request, resource, namespace)
        except ConnectionResetError:
            # Who watched went away in the middle; nobody is left to be answered.
            return web.Response()

    async def _watched(
        self, request: web.Request, resource: Resource, namespace: str
    ) -> web.StreamResponse:
        position = int(request.query.get("resourceVersion", "0") or 0)
        if request.query.get("sendInitialEvents") == "true":
            return refuse(422, "Invalid", "sendInitialEvents: Forbidden: not enabled")
        if position < self.oldest:
            return refuse(410, "Expired", f"too old resource version: {position} ({self.oldest})")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        generation, place, history = self.generation, 0, self.history
        until = asyncio.get_running_loop().time() + float(request.query["timeoutSeconds"])
        while asyncio.get_running_loop().time() < until:
            upto, end = self.version, len(history)
            for version, type_, qualified, document in history[place:end]:
                if version <= position or qualified != resource.qualified:
                    continue
                there = document["metadata"].get("namespace", "")
                if (not namespace or there == namespace) and selected(document, request.query):
                    await write_line(response, type_, document)
            if upto > position:
                await write_line(response, "BOOKMARK", bookmark(resource, upto))
            position, place = max(position, upto), end
            async with self.changed:
                try:
                    async with asyncio.timeout_at(until):
                        while self.version <= position and self.generation == generation:
                            await self.changed.wait()
                except TimeoutError:
                    break
            if self.generation != generation:
                assert request.transport is not None
                request.transport.abort()
                break
            if len(history) < place:
                break
        return response
