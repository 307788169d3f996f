"""IMEX channels: who can be asked, who holds one, what a pod saw (validators spec 6.2 dra-support)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.checks.contexts import node

from aicr.checks.conformance.imex import (
    CLIQUE,
    DRIVER,
    Survey,
    compute_domain,
    holders,
    judge,
    pod,
    survey,
)
from aicr.checks.sdk.outcome import could_not_tell
from aicr.errors import INTERNAL, AicrError

Document = dict[str, Any]


def clique(name: str, **more: Any) -> Document:
    """A node of a multi-node NVLink domain."""
    return node(name, labels={CLIQUE: "7f.1"}, **more)


def piece(
    name: str, *, kinds: tuple[str, ...] = ("channel", "daemon"), taint: str = "", count: int = 1
) -> Document:
    """What the driver publishes for a node."""
    devices: list[Document] = [
        {"name": f"{kind}-0", "attributes": {"type": {"string": kind}}} for kind in kinds
    ]
    if taint:
        devices[0]["taints"] = [{"key": "x", "effect": taint}]
    pool = {"name": name, "generation": 1, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return {"metadata": {"name": f"{name}-domain"}, "spec": spec}


def claim(
    name: str,
    on: str,
    *,
    device: str = "channel-0",
    driver: str = DRIVER,
    pods: tuple[str, ...] = (),
) -> Document:
    """An allocated claim of a channel."""
    given = {"driver": driver, "pool": on, "device": device, "request": "channel"}
    return {
        "metadata": {"name": name, "namespace": "team"},
        "status": {
            "allocation": {"devices": {"results": [given]}},
            "reservedFor": [{"resource": "pods", "name": p, "uid": f"uid-{p}"} for p in pods],
        },
    }


def holder(name: str, on: str, phase: str = "Running", namespace: str = "team") -> Document:
    """A pod that may hold a channel."""
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {"nodeName": on},
        "status": {"phase": phase},
    }


@pytest.mark.covers("V-233", "V-234", "V-235")
@pytest.mark.parametrize(
    ("nodes", "slices", "found", "candidates"),
    [
        ([clique("a"), clique("b")], [piece("a"), piece("b")], ("a", "b"), ("a", "b")),
        ([clique("a"), clique("b")], [piece("b")], ("a", "b"), ("b",)),
        ([clique("a")], [], ("a",), ()),
        ([clique("a")], [piece("a", taint="NoSchedule")], ("a",), ()),
        ([clique("a")], [piece("a", count=2)], ("a",), ()),
        ([clique("a")], [piece("a", kinds=("daemon",))], ("a",), ()),
        ([node("h100")], [piece("h100")], (), ()),
        ([clique("a", cordoned=True)], [piece("a")], (), ()),
        ([clique("a", ready=False)], [piece("a")], (), ()),
        ([node("a", labels={CLIQUE: ""})], [piece("a")], (), ()),
    ],
    ids=[
        *("two", "one without a slice", "no slice", "tainted", "pool not whole", "daemon only"),
        *("no clique", "cordoned", "not ready", "empty label"),
    ],
)
def test_candidates_have_a_clique_and_a_usable_slice(
    nodes: list[Document],
    slices: list[Document],
    found: tuple[str, ...],
    candidates: tuple[str, ...],
) -> None:
    """A slice alone says nothing: nodes without NVLink between them publish it too."""
    given = copy.deepcopy((nodes, slices))
    result = survey(nodes, slices, [])
    assert (result.clique, result.candidates) == (found, candidates)
    assert result.free == list(candidates)
    assert (nodes, slices) == given


@pytest.mark.covers("V-236")
@pytest.mark.parametrize(
    ("claims", "occupied"),
    [
        ([claim("c", "a")], {"a": ("team/c",)}),
        ([claim("d", "a", device="daemon-0")], {}),
        ([claim("g", "a", driver="gpu.nvidia.com")], {}),
        ([claim("x", "elsewhere")], {}),
        ([{"metadata": {"name": "new", "namespace": "team"}}], {}),
        (
            [claim("c", "a"), claim("e", "a"), claim("f", "b")],
            {"a": ("team/c", "team/e"), "b": ("team/f",)},
        ),
    ],
    ids=["held", "a daemon", "a GPU", "another node", "not allocated", "all"],
)
def test_a_node_whose_channel_is_held_is_left_out(
    claims: list[Document], occupied: Document
) -> None:
    """Only a channel of the driver, and only once it is allocated."""
    found = survey([clique("a"), clique("b")], [piece("a"), piece("b")], claims)
    assert found.occupied == occupied
    assert found.free == [name for name in ("a", "b") if name not in occupied]


@pytest.mark.covers("V-237")
@pytest.mark.parametrize(
    ("reserved", "pods", "proofs"),
    [
        (("p",), [holder("p", "a")], 1),
        (("p",), [holder("p", "b")], 0),
        (("p",), [holder("p", "a", "Pending")], 0),
        (("p",), [holder("p", "a", "Succeeded")], 0),
        (("p",), [holder("p", "a", namespace="other")], 0),
        ((), [holder("p", "a")], 0),
        (("q",), [holder("p", "a")], 0),
        (("gone", "p"), [holder("p", "a")], 1),
    ],
    ids=[
        *("runs there", "elsewhere", "pending", "ended", "same name", "not reserved"),
        *("for another", "one of two"),
    ],
)
def test_a_holder_proves_something_when_its_pod_runs_on_the_node(
    reserved: tuple[str, ...], pods: list[Document], proofs: int
) -> None:
    """Allocated, reserved and running: all three."""
    claims = [claim("c", "a", pods=reserved)]
    found = survey([clique("a")], [piece("a")], claims)
    assert found.free == []
    assert len(holders(found, claims, pods)) == proofs


@pytest.mark.covers("V-240")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("CHANNEL=channel0\nDONE=1\n", ""),
        ("CHANNEL=channel12\nDONE=1\n", ""),
        ("DONE=1\n", "sees 0 IMEX channel(s), not one: none"),
        ("CHANNEL=channel0\nCHANNEL=channel1\nDONE=1", "sees 2 IMEX channel(s)"),
        ("CHANNEL=other\nDONE=1", "sees 1 IMEX channel(s), not one: other"),
    ],
    ids=["one", "a high number", "none", "two", "something else"],
)
def test_exactly_one_channel_is_right(text: str, problem: str) -> None:
    """Fewer is no channel, more is no isolation."""
    assert problem in judge(text)
    assert (judge(text) == "") == (problem == "")


def test_a_report_without_its_end_cannot_be_judged() -> None:
    """INTERNAL: the pod may have died in the middle."""
    with pytest.raises(AicrError, match="cut short") as caught:
        judge("CHANNEL=channel0\n")
    assert could_not_tell(caught.value) == INTERNAL


@pytest.mark.covers("V-239")
def test_the_probe_takes_one_channel_of_a_domain_of_no_fixed_size() -> None:
    """``numNodes`` 0 and ``Single``; pinned to the candidates, a term each."""
    domain = compute_domain()
    assert domain["apiVersion"] == "resource.nvidia.com/v1beta1"
    assert domain["spec"]["numNodes"] == 0
    assert domain["spec"]["channel"]["allocationMode"] == "Single"
    template = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    spec = pod(["a", "b"])["spec"]
    assert spec["resourceClaims"][0]["resourceClaimTemplateName"] == template
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [term["matchFields"][0]["values"] for term in required["nodeSelectorTerms"]] == [
        ["a"],
        ["b"],
    ]
    assert spec["containers"][0]["image"] == "busybox:1.37"


def test_an_empty_survey_has_nobody() -> None:
    """No nodes, no candidates."""
    assert Survey().free == []
    assert holders(Survey(), [], []) == []
