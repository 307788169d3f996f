"""Laws of the judgements about GPUs: order does not matter, and more of what is wrong is never right."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.checks.contexts import node
from tests.checks_conformance.gpu_scenes import listing, nothing
from tests.checks_conformance.test_imex_channels import claim, clique, piece
from tests.checks_deployment.test_check_gke_gpu_nic_topology import mega, nics, north

from aicr.checks.conformance.gpu_pods import judge
from aicr.checks.conformance.imex import judge as judge_channels
from aicr.checks.conformance.imex import survey
from aicr.checks.deployment.gke_gpu_nic_networks import miswired
from aicr.checks.deployment.gke_gpu_nic_topology import judge as judge_node

NAMES = ("a", "b", "c", "d")
subsets = st.sets(st.sampled_from(NAMES))


@given(subsets, subsets, subsets, subsets, st.randoms(use_true_random=False))
def test_free_nodes_have_a_clique_a_slice_and_nobody_on_their_channel(
    cliques: set[str], cordoned: set[str], sliced: set[str], held: set[str], random: Any
) -> None:
    """Exactly those, in whatever order the API server lists."""
    nodes = [
        (clique if name in cliques else node)(name, cordoned=name in cordoned) for name in NAMES
    ]
    slices = [piece(name) for name in sorted(sliced)]
    claims = [claim(f"c-{name}", name) for name in sorted(held)]
    for documents in (nodes, slices, claims):
        random.shuffle(documents)
    found = survey(nodes, slices, claims)
    assert set(found.clique) == cliques - cordoned
    assert set(found.candidates) == (cliques - cordoned) & sliced
    assert set(found.free) == (cliques - cordoned) & sliced - held
    assert found.free == sorted(found.free)


@given(st.lists(st.sampled_from(["nvidia0", "nvidia7", "nvidiactl", "nvidia-uvm"]), min_size=1))
def test_any_device_in_the_container_without_a_gpu_is_a_problem(devices: list[str]) -> None:
    """However right the other container is."""
    assert judge(listing(), nothing()) == []
    assert judge(listing(), nothing(*devices))


@given(st.sets(st.integers(0, 2047), max_size=5))
def test_only_one_channel_is_right(numbers: set[int]) -> None:
    """Whatever its number."""
    text = "".join(f"CHANNEL=channel{number}\n" for number in numbers) + "DONE=1\n"
    assert (judge_channels(text) == "") == (len(numbers) == 1)


@given(st.permutations(nics()), st.permutations(north()))
def test_the_order_of_annotations_does_not_matter(
    born: list[dict[str, str]], bound: list[dict[str, str]]
) -> None:
    """Names and addresses join them."""
    good = judge_node(mega("n", born=born, bound=bound))
    assert (good.problems, good.unverified) == ((), "")


@given(
    st.integers(1, 8), st.text("abcdefgh-", min_size=1).filter(lambda name: "gpu-nic" not in name)
)
def test_any_other_network_on_a_gpu_nic_is_a_problem(number: int, name: str) -> None:
    """It displaced a GPU NIC."""
    found = judge_node(mega("n", bound=north(**{f"eth{number}": name})))
    assert any(f"eth{number} is bound to network {name}" in each for each in found.problems)


@given(st.permutations([f"eth{n}" for n in range(1, 9)]))
def test_the_order_of_the_wiring_does_matter(order: list[str]) -> None:
    """The runtime counts interfaces by position."""
    wanted = [{"interfaceName": f"eth{n}", "network": f"net-{n}"} for n in range(1, 9)]
    deployed = [{"interfaceName": name, "network": f"net-{name[3:]}"} for name in order]
    entries = [{"interfaceName": "eth0", "network": "default"}, *deployed]
    notes = {
        "networking.gke.io/default-interface": "eth0",
        "networking.gke.io/interfaces": json.dumps(entries),
    }
    assert (miswired(notes, wanted) == []) == (deployed == wanted)
