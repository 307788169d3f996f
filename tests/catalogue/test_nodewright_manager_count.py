"""The health check of nodewright-operator, on one manager and on two."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.checks.contexts import put
from tests.kube.loopback import cluster

import aicr
from aicr.assertions.runner import run
from aicr.assertions.timing import Timing
from aicr.kube import kinds

NAME = "skyhook-operator-controller-manager"


def manager(name: str) -> dict[str, Any]:
    """A Deployment that carries the operator's labels."""
    labels = {"app.kubernetes.io/component": "manager", "control-plane": "controller-manager"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "skyhook", "labels": labels},
        "status": {"availableReplicas": 1},
    }


@pytest.mark.covers("V-419")
@pytest.mark.parametrize(
    ("names", "passed"), [((NAME,), True), ((NAME, "old-manager"), False), ((), False)], ids=str
)
def test_more_than_one_manager_is_no_healthy_operator(names: tuple[str, ...], passed: bool) -> None:
    """Which of two set a taint could not be told, so the second one fails the check by its name."""
    text = aicr.Catalog.builtin().tree.read_text("checks/nodewright-operator/health-check.yaml")

    async def judged() -> dict[str, Any]:
        async with cluster() as (api, client):
            await put(api, kinds.DEPLOYMENT, *(manager(name) for name in names))
            checks = [{"name": "nodewright-operator", "yaml": text}]
            (result,) = await run(client, checks, timing=Timing().scaled(0.002))
            return result

    found = asyncio.run(judged())
    assert found["passed"] is passed
    if len(names) == 2:
        assert "old-manager" in found["message"]
