"""Which nodes are measured and how workers get there (validators spec 7.2 "Node targeting")."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks_nccl.bench import gpu_node

from aicr.checks.performance import nccl_targeting as targeting
from aicr.checks.performance.nccl_targeting import TOLERATE_ALL, Placement
from aicr.checks.sdk import Skip
from aicr.checks.sdk.nodes import GpuNode, gpu_nodes, names
from aicr.checks.sdk.outcome import could_not_tell
from aicr.errors import INTERNAL, AicrError

PRODUCT = targeting.PRODUCT
TYPE = targeting.INSTANCE_TYPE


def of(**labels: dict[str, str]) -> list[GpuNode]:
    """GPU nodes by name and labels."""
    return gpu_nodes([gpu_node(name, labels=has) for name, has in labels.items()])


MIXED = of(
    a={PRODUCT: "NVIDIA-H100-80GB-HBM3", TYPE: "p5.48xlarge", "pool": "x"},
    b={PRODUCT: "NVIDIA-H100-80GB-HBM3", TYPE: "p5.48xlarge"},
    c={PRODUCT: "NVIDIA-H100-80GB-HBM3", TYPE: "p5.4xlarge", "pool": "x"},
    d={PRODUCT: "NVIDIA-L40S", TYPE: "g6e.48xlarge", "pool": "x"},
)


@pytest.mark.covers("V-282")
@pytest.mark.parametrize(
    ("service", "accelerator", "selector", "found"),
    [
        ("aks", "h100", None, ["a", "b", "c"]),
        ("eks", "h100", None, ["a", "b"]),
        ("aks", "h100", {"pool": "x"}, ["a", "c", "d"]),
        ("eks", "h100", {"pool": "x"}, ["a", "c", "d"]),
        ("aks", "vr200", None, ["a", "b", "c", "d"]),
        ("aks", "h100", {}, ["a", "b", "c"]),
    ],
    ids=["product", "instance type", "selector", "selector on eks", "no matcher", "empty selector"],
)
def test_targets_follow_the_user_then_the_product_then_the_instance_type(
    service: str, accelerator: str, selector: dict[str, str] | None, found: list[str]
) -> None:
    """The first rule that applies; on EKS instances of one type only."""
    chosen = targeting.targets(MIXED, accelerator=accelerator, service=service, selector=selector)
    assert names(chosen) == found


@pytest.mark.parametrize(
    ("accelerator", "product", "fits"),
    [
        ("h100", "NVIDIA-H100-PCIe", True),
        ("h100", "NVIDIA-H1000", False),
        ("h200", "NVIDIA-H200-141GB-HBM3e", True),
        ("a100", "NVIDIA-A100-SXM4-80GB", True),
        ("gb200", "NVIDIA-GB200", True),
        ("b200", "NVIDIA-GB200", False),
        ("gb300", "NVIDIA-GB300", True),
        ("l40", "NVIDIA-L40", True),
        ("l40", "NVIDIA-L40S", True),
    ],
)
def test_products_match_exactly_or_by_their_family(
    accelerator: str, product: str, fits: bool
) -> None:
    """What GPU feature discovery writes."""
    nodes = of(a={PRODUCT: product}, b={PRODUCT: product})
    if fits:
        assert len(targeting.targets(nodes, accelerator=accelerator, service="x")) == 2
        return
    with pytest.raises(AicrError, match=f"products are {product}"):
        targeting.targets(nodes, accelerator=accelerator, service="x")


def test_a_selector_that_fits_nothing_is_named() -> None:
    """A verdict, not a skip: somebody asked for these nodes."""
    with pytest.raises(AicrError, match="no schedulable GPU node has pool=z") as caught:
        targeting.targets(MIXED, accelerator="h100", service="x", selector={"pool": "z"})
    assert (caught.value.code, could_not_tell(caught.value)) == (INTERNAL, "")


@pytest.mark.covers("V10-61")
@pytest.mark.parametrize(
    ("nodes", "code"),
    [
        ([], "no-gpu-nodes"),
        ([gpu_node("a", cordoned=True), gpu_node("b", cordoned=True)], "no-schedulable-gpu-nodes"),
        ([gpu_node("a"), gpu_node("b", cordoned=True)], ""),
        ([gpu_node("a")], ""),
    ],
    ids=["none", "all cordoned", "one cordoned", "one"],
)
def test_fewer_than_two_targets_skip(nodes: list[dict[str, Any]], code: str) -> None:
    """With a published code where there is one."""
    with pytest.raises(Skip) as caught:
        targeting.targets(gpu_nodes(nodes), accelerator="h100", service="x")
    assert (caught.value.reason, caught.value.reason_code) == (targeting.TOO_FEW, code)


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([8, 8], 8),
        ([4, 4, 4], 4),
        ([8, 7, 8], "n1=7/8"),
        ([8, None], "n1=0/8"),
        ([0, None], "none"),
    ],
    ids=["eight", "uniformly low", "short", "silent", "none"],
)
def test_targets_must_have_the_same_number_of_gpus(
    counts: list[int | None], found: int | str
) -> None:
    """Uniformly low is what the cluster is; a short or silent node is named."""
    nodes = gpu_nodes([gpu_node(f"n{i}", gpus=count) for i, count in enumerate(counts)])
    if isinstance(found, int):
        assert targeting.census(nodes) == found
        return
    with pytest.raises(AicrError, match=found):
        targeting.census(nodes)


SHARED = {TYPE: "p5", PRODUCT: "NVIDIA-X", "cloud.google.com/gke-accelerator": "nvidia-x"}


@pytest.mark.parametrize(
    ("service", "selector", "tolerations"),
    [
        ("eks", {TYPE: "p5"}, None),
        ("gke", {"cloud.google.com/gke-accelerator": "nvidia-x"}, TOLERATE_ALL),
        ("oke", {PRODUCT: "NVIDIA-X"}, TOLERATE_ALL),
        ("aks", {PRODUCT: "NVIDIA-X"}, TOLERATE_ALL),
        ("generic", {PRODUCT: "NVIDIA-X"}, TOLERATE_ALL),
        ("rke2", None, None),
    ],
)
def test_workers_are_placed_by_service_unless_somebody_says_otherwise(
    service: str, selector: Any, tolerations: Any
) -> None:
    """The user first, then a supplied runtime, then the service's rule."""
    nodes = of(a=SHARED, b=SHARED)
    none = Placement()
    assert targeting.placement(nodes, service, user=none) == Placement(selector, tolerations)
    user = Placement({"mine": "1"}, ())
    own = Placement({"theirs": "1"}, ({"key": "k"},))
    assert targeting.placement(nodes, service, user=user) == user
    assert targeting.placement(nodes, service, user=user, runtime=own) == user
    assert targeting.placement(nodes, service, user=none, runtime=own) == none
    partly = Placement({"theirs": "1"}, None)
    assert targeting.placement(nodes, service, user=none, runtime=partly) == Placement(
        None, tolerations
    )


def test_a_label_that_nodes_do_not_share_selects_nothing() -> None:
    """Half of the workers would not find a node."""
    nodes = of(a={PRODUCT: "x"}, b={PRODUCT: "y"})
    assert targeting.placement(nodes, "oke", user=Placement()).node_selector is None
