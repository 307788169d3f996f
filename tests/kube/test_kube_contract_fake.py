"""The contract of `aicr.kube` against the fake API server, with new and with old discovery."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.kube import contract, loopback
from tests.kube.fakeapi import FakeApi

from aicr.kube.client import Client


class TestFakeApiServer(contract.KubeContract):
    """Everything that the contract says."""

    @pytest.fixture(params=["aggregated", "legacy", "streaming"])
    def session(self, request: pytest.FixtureRequest) -> contract.Session:
        """A fresh server; its namespaces exist without being made."""

        @asynccontextmanager
        async def opened() -> AsyncIterator[tuple[Client, str]]:
            api = FakeApi(
                aggregated=request.param != "legacy", streaming_lists=request.param == "streaming"
            )
            async with loopback.cluster(api) as (_, client):
                yield client, "ns"

        return opened
