"""Constraints of snapshot, readiness and checks: one evaluator, and the gate before everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.checks.contexts import Seen, put, validation
from tests.kube.loopback import cluster, run
from tests.recipe.trees import catalog, constraint, overlay, resolved
from tests.validate.cases import Heard, entry, order, recipe
from tests.validate.fake_cluster import FakeCluster

from aicr.checks.deployment import gpu_operator_version
from aicr.errors import AicrError
from aicr.kube import kinds
from aicr.validate.readiness import check_readiness
from aicr.validate.run import Run, gates
from aicr.validate.runner_job import JobRunner

NAME = "K8s.server.version"


def snapshot(version: str) -> dict[str, Any]:
    """A snapshot of a cluster of some version."""
    subtype = {"subtype": "server", "data": {"version": version}}
    return {"kind": "Snapshot", "measurements": [{"type": "K8s", "subtypes": [subtype]}]}


def by_resolution(expression: str, actual: str, folder: Path) -> bool:
    """Whether an overlay with the constraint is applied on such a snapshot."""
    made = catalog(
        folder,
        {
            "overlays/leaf.yaml": overlay(
                "leaf", {"service": "eks"}, constraints=[constraint(NAME, expression)]
            ),
            "overlays/other.yaml": overlay("other", {"service": "eks"}),
        },
    )
    found = resolved(made, service="eks", options={"snapshot": snapshot(actual)})
    return "leaf" in found.document["metadata"]["appliedOverlays"]


def by_readiness(expression: str, actual: str) -> bool:
    """Whether the gate opens."""
    try:
        check_readiness(recipe([constraint(NAME, expression)]), snapshot(actual))
    except AicrError as error:
        if not error.message.startswith("readiness check failed"):
            raise
        return False
    return True


def by_check(expression: str, actual: str) -> bool:
    """Whether a container check passes that measures such a version itself."""
    labels = {"app.kubernetes.io/version": actual}
    metadata = {"name": "gpu-operator", "namespace": "gpu-operator", "labels": labels}
    given = validation(deployment={gpu_operator_version.CONSTRAINT: expression})

    async def scenario() -> bool:
        async with cluster() as (api, client):
            await put(api, kinds.DEPLOYMENT, {"metadata": metadata})
            context = Seen().context(client, name="gpu-operator-version", validation=given)
            try:
                await gpu_operator_version.CHECK.run(context)
            except AicrError as error:
                if not error.message.startswith("GPU operator version does not meet"):
                    raise
                return False
            return True

    return run(scenario())


@pytest.mark.covers("V-013", "V-032")
@pytest.mark.parametrize(
    ("expression", "actual", "holds"),
    [
        (">= 1.33", "v1.33.5", True),
        ("> 1.33", "v1.33.5", False),
        (">= 1.35.0", "v1.35.0-rc.1", False),
        (">= 1.30 < 1.34 != 1.33.5", "v1.33.5", False),
        ("< 1.30 || >= 1.33.5", "v1.33.5", True),
        ("== 1.33.5", "v1.33.5", True),
        ("1.33.5", "v1.33.5", False),
        ("v1.33.5", "v1.33.5", True),
    ],
)
def test_the_same_expression_means_the_same_everywhere(
    expression: str, actual: str, holds: bool, tmp_path: Path
) -> None:
    """Overlay filtering, the readiness gate, and a check that holds its own measurement against it."""
    assert by_resolution(expression, actual, tmp_path) is holds
    assert by_readiness(expression, actual) is holds
    assert by_check(expression, actual) is holds


@pytest.mark.covers("V-012", "V-031")
@pytest.mark.parametrize(
    ("version", "said"),
    [("v1.31.0", "readiness check failed"), ("unknown", "readiness check could not evaluate")],
)
@pytest.mark.parametrize("place", ["recipe", "readiness"])
def test_a_gate_that_does_not_open_leaves_the_cluster_untouched(
    place: str, version: str, said: str
) -> None:
    """From either place, failed or not evaluable: no check starts and no request goes out."""
    document = recipe(deployment=["a"])
    stated = [constraint(NAME, ">= 1.32.4")]
    if place == "recipe":
        document["constraints"] = stated
    else:
        document["validation"]["readiness"] = {"constraints": stated}
    served, heard = FakeCluster(), Heard()
    asked = order(document, [entry("a")], snapshot=snapshot(version))

    async def body() -> None:
        runner = JobRunner(served.port, asked.place, asked.timing, heard)
        await Run(asked, gates(asked, heard), heard).with_runner(runner)

    with pytest.raises(AicrError, match=said) as caught:
        run(body())
    assert caught.value.code == "INVALID_REQUEST"
    assert served.calls == []
    assert heard.events == []
