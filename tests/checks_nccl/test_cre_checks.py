"""The checks that the Cluster Readiness Engine measures (validators spec 7.4)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.checks.contexts import ENOUGH, Seen, put
from tests.checks_nccl.bench import SHORT, crd, gpu_node, validation
from tests.kube.fakeapi import SERVED, FakeApi, refuse
from tests.kube.loopback import cluster, run

from aicr.checks.performance import cre_plan, cre_training_goodput, nccl_cre_all_reduce_bw
from aicr.checks.performance.cre_plan import GOODPUT, NCCL, Record
from aicr.checks.sdk.nodes import gpu_nodes
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import INTERNAL, INVALID_REQUEST, NOT_FOUND, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]

GROUP = "nvcre.nvidia.com"
CERTIFICATION = Resource(GROUP, "v1alpha1", "certifications", "Certification", True)
RUN = Resource(GROUP, "v1alpha1", "workloadruns", "WorkloadRun", True)
BANDWIDTH = Resource(GROUP, "v1alpha1", "bandwidthmeasurements", "BandwidthMeasurement", True)
GOOD = Resource(GROUP, "v1alpha1", "goodputmeasurements", "GoodputMeasurement", True)
TIMES = replace(SHORT, cre_certification=ENOUGH, cre_delete=ENOUGH)
CHECKS = {NCCL.check: nccl_cre_all_reduce_bw.CHECK, GOODPUT.check: cre_training_goodput.CHECK}
NET = {"result": "300.5", "transport": "NET/AWS Libfabric"}


class Unanswered:
    """A client whose creation of a Certification is done, and is interrupted before its answer."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def create(self, document: Document, **more: Any) -> Document:
        """Create it; no answer when it is a Certification."""
        created: Document = await self._client.create(document, **more)
        if document["kind"] == CERTIFICATION.kind:
            raise asyncio.CancelledError
        return created


@dataclass
class Engine:
    """A cluster with the engine, which answers a Certification as it is told."""

    record: Record = NCCL
    stated: str = ">= 300"
    status: Document | None = field(default_factory=lambda: dict(NET))
    phase: str = "Succeeded"
    nodes: list[Document] = field(default_factory=lambda: [gpu_node(n) for n in ("n3", "n1", "n2")])
    installed: bool = True
    criteria: tuple[str, str] = ("eks", "h100")
    declared: bool = False
    leaves: tuple[Resource, Document] | None = None
    timeouts: Timeouts = TIMES
    faults: tuple[tuple[str, Any], ...] = ()
    unanswered: bool = False
    seen: Seen = field(default_factory=Seen)
    api: FakeApi | None = None
    asked: Document = field(default_factory=dict)

    def judge(self) -> AicrError | None:
        """Run the check; what it raised."""

        async def scenario() -> AicrError | None:
            api = self.api = FakeApi(resources=[*SERVED, CERTIFICATION, RUN, BANDWIDTH, GOOD])
            async with cluster(api) as (_, client), self._engine(api):
                await put(api, kinds.NODE, *self.nodes)
                if self.installed:
                    await put(api, kinds.CUSTOM_RESOURCE_DEFINITION, crd(cre_plan.CRD))
                for pattern, answer in self.faults:
                    api.next(pattern, answer, times=30)
                given = validation({self.record.check: self.stated}, *self.criteria)
                if self.declared:
                    given["componentRefs"] = [{"name": "nvcre"}]
                asking: Any = Unanswered(client) if self.unanswered else client
                context = self.seen.context(
                    asking,
                    name=self.record.check,
                    phase="performance",
                    run_id="run-1",
                    validation=given,
                    timeouts=self.timeouts,
                )
                try:
                    await CHECKS[self.record.check].run(context)
                except AicrError as error:
                    return error
                return None

        return run(scenario())

    @contextlib.asynccontextmanager
    async def _engine(self, api: FakeApi) -> AsyncIterator[None]:
        async def work() -> None:
            async with api.changed:
                await api.changed.wait_for(lambda: api.objects.get(CERTIFICATION.qualified))
            (found,) = api.objects[CERTIFICATION.qualified].values()
            self.asked = found
            place = found["metadata"]["namespace"]
            if self.leaves is not None:
                resource, document = self.leaves
                document["metadata"] |= {"namespace": "elsewhere", "uid": "uid-left"}
                document["metadata"]["labels"] = {cre_plan.OWNER: found["metadata"]["name"]}
                await api.store("ADDED", resource, document)
            if self.status is not None:
                kind = BANDWIDTH if self.record is NCCL else GOOD
                measured = {"metadata": {"name": "m", "namespace": place}, "status": self.status}
                await api.store("ADDED", kind, measured)
            status = {"phase": self.phase, "message": "a node was lost"}
            await api.store("MODIFIED", CERTIFICATION, {**found, "status": status})

        task = asyncio.create_task(work())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    @property
    def left(self) -> list[str]:
        """Namespaces and Certifications afterwards."""
        assert self.api is not None
        tables = ("namespaces", CERTIFICATION.qualified)
        return [name for table in tables for _, name in self.api.objects.get(table, {})]


def test_a_certification_is_made_read_and_taken_away() -> None:
    """Sorted and capped nodes, qualified category, no tolerance; nothing is left."""
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    nodes = [gpu_node(name) for name in ("n3", "n1", "n2")]
    nodes[1]["spec"] = {"taints": [taint, {"key": "only-here", "effect": "NoExecute"}]}
    nodes[2]["spec"] = {"taints": [taint, {"key": "soft", "effect": "PreferNoSchedule"}]}
    engine = Engine(nodes=nodes)
    assert engine.judge() is None
    assert engine.asked["metadata"]["name"].startswith("aicr-cre-nccl-")
    assert engine.asked["spec"] == {
        "categories": [{"domain": "communication", "variant": "nccl-all-reduce"}],
        "gpusPerNode": 8,
        "nodesPerJob": 2,
        "timeoutPerJob": "30m",
        "target": {"nodeNames": ["n1", "n2"]},
        "taintSelectors": [taint],
    }
    assert engine.seen.lines == [
        "Target nodes: n1, n2",
        "NCCL All Reduce bandwidth (nccl-cre-all-reduce-bw): 300.50 GB/s",
        "Transport: NET/AWS Libfabric",
        "Constraint: >= 300 → true",
        "RESULT: nccl-cre-all-reduce-bw: 300.50 GB/s, threshold 300: PASS",
    ]
    assert engine.left == []


def test_goodput_is_read_as_a_ratio_with_its_facts() -> None:
    """Text or number; four decimals."""
    status = {"result": 0.95123, "avgTFLOPSPerGPU": "410.2", "interruptionCount": 0}
    engine = Engine(GOODPUT, ">= 0.95", status)
    assert engine.judge() is None
    assert engine.seen.lines[1:] == [
        "Training goodput (cre-training-goodput): 0.9512",
        "avgTFLOPSPerGPU: 410.2",
        "interruptionCount: 0",
        "Constraint: >= 0.95 → true",
        "RESULT: cre-training-goodput: 0.9512, threshold 0.95: PASS",
    ]


@pytest.mark.parametrize(
    ("engine", "code", "said", "verdict"),
    [
        (Engine(status={**NET, "result": "299.99"}), INTERNAL, "299.99 GB/s do not reach", True),
        (
            Engine(status={**NET, "transport": "NET/Socket"}),
            INTERNAL,
            "transport was NET/Socket",
            True,
        ),
        (Engine(status={**NET, "transport": "NVLS"}), INTERNAL, "transport was NVLS", True),
        (Engine(status={"result": "301"}), INTERNAL, "does not say which transport", True),
        (Engine(status=None), INTERNAL, "left no BandwidthMeasurement", False),
        (Engine(status={"result": "fast"}), INTERNAL, "holds no result", False),
        (Engine(status={"result": "nan"}), INTERNAL, "holds no result", False),
        (Engine(phase="Failed"), INTERNAL, "failed: a node was lost", True),
        (
            Engine(phase="Running", timeouts=replace(TIMES, cre_certification=1.0)),
            TIMEOUT,
            "did not end within",
            False,
        ),
        (Engine(GOODPUT, ">= 0.95", {"result": 0.94}), INTERNAL, "0.94 do not reach", True),
        (
            Engine(nodes=[gpu_node("n1"), gpu_node("n2", cordoned=True)]),
            NOT_FOUND,
            "1 GPU node(s) can be used",
            True,
        ),
        (Engine(nodes=[gpu_node("n1"), gpu_node("n2", gpus=4)]), INTERNAL, "n1=8, n2=4", True),
        (Engine(stated="fast"), INVALID_REQUEST, "has no number", True),
        (Engine(installed=False, declared=True), NOT_FOUND, "nvcre", True),
        (
            Engine(faults=(("GET .*/customresourcedefinitions/", refuse(403, "Forbidden", "no")),)),
            UNAUTHORIZED,
            "nvcre",
            False,
        ),
    ],
    ids=[
        "slow",
        "socket",
        "nvls",
        "unsaid",
        "no result",
        "word",
        "nan",
        "failed",
        "hangs",
        "goodput",
        "one node",
        "unlike",
        "knob",
        "declared",
        "forbidden",
    ],
)
def test_what_is_not_proven_fails_and_is_taken_away(
    engine: Engine, code: str, said: str, verdict: bool
) -> None:
    """No tolerance here; what could not be measured is no verdict."""
    error = engine.judge()
    assert error is not None
    assert (error.code, said in str(error)) == (code, True)
    assert bool(could_not_tell(error)) is not verdict
    assert engine.left == []


@pytest.mark.parametrize(
    "engine",
    [Engine(criteria=("gke", "h100")), Engine(criteria=("eks", "gb200")), Engine(installed=False)],
    ids=["service", "accelerator", "absent"],
)
def test_what_is_not_qualified_or_not_installed_skips(engine: Engine) -> None:
    """Nothing is created."""
    error = engine.judge()
    assert error is not None
    assert skip_in(error) is not None
    assert engine.left == []


def test_without_a_constraint_or_an_input_it_skips() -> None:
    """A standalone run has none."""
    for check in CHECKS.values():
        context = Seen().context(None, name=check.name, phase="performance")
        with pytest.raises(AicrError, match=f"no {check.name} constraint in recipe") as caught:
            run(check.run(context))  # type: ignore[arg-type]
        assert skip_in(caught.value) is not None


@pytest.mark.parametrize("busbw", ["301", "1"], ids=["passes", "fails"])
def test_a_teardown_that_cannot_be_proven_fails_a_pass_and_hides_no_failure(busbw: str) -> None:
    """A pod that goes on holds GPUs, wherever it is."""
    pod = {"metadata": {"name": "hangs"}, "status": {"phase": "Running"}}
    engine = Engine(
        status={**NET, "result": busbw},
        leaves=(kinds.POD, pod),
        timeouts=replace(TIMES, cre_delete=0.4),
    )
    error = engine.judge()
    assert error is not None
    said = "pod elsewhere/hangs" if busbw == "301" else "do not reach"
    assert said in error.message


def test_what_a_certification_made_is_deleted_by_its_name() -> None:
    """A run in another namespace goes with it."""
    left = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "WorkloadRun", "metadata": {"name": "w"}}
    engine = Engine(leaves=(RUN, left))
    assert engine.judge() is None
    assert engine.api is not None
    assert not engine.api.objects[RUN.qualified]


def test_a_certification_whose_creation_was_interrupted_is_taken_away() -> None:
    """It would go on and measure, on GPUs that nobody has asked for."""
    left = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "WorkloadRun", "metadata": {"name": "w"}}
    engine = Engine(leaves=(RUN, left), unanswered=True)
    with pytest.raises(asyncio.CancelledError):
        engine.judge()
    assert engine.left == []


def test_a_certification_needs_nodes() -> None:
    """An empty list would mean all of them."""
    with pytest.raises(AicrError) as caught:
        cre_plan.certification(NCCL, [], "x", {})
    assert caught.value.code == INVALID_REQUEST
    assert cre_plan.taint_selectors([]) == []
    assert cre_plan.chosen(NCCL, gpu_nodes([gpu_node("b"), gpu_node("a")]))[0].name == "a"


def test_the_lowest_of_several_measurements_counts() -> None:
    """A run on several jobs is as good as its worst."""
    found = [{"metadata": {"name": n}, "status": {"result": r}} for n, r in (("a", "3"), ("b", 2))]
    assert cre_plan.result(NCCL, found)[0] == 2
