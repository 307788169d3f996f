"""gke-gpu-nic-topology: NICs of nodes joined with their networks (validators spec 6.1)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import Seen, node, put, validation
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.kube.loopback import cluster, run

from aicr.checks.deployment.gke_gpu_nic_topology import CHECK, judge
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import CONFLICT, INTERNAL, NOT_FOUND, AicrError
from aicr.kube import kinds

Document = dict[str, Any]

MEGA = {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}
NIC_INFO = "networking.gke.io/nic-info"
NORTH = "networking.gke.io/north-interfaces"


def nics(count: int = 8) -> list[dict[str, str]]:
    """eth0 and *count* GPU NICs, as a node is born with them."""
    return [
        {"birthName": f"eth{n}", "birthIP": f"10.{n}.0.2", "pciAddress": f"0000:{n:02x}:00.0"}
        for n in range(count + 1)
    ]


def north(**named: str) -> list[dict[str, str]]:
    """The networks of the GPU NICs, *named* ones otherwise."""
    return [
        {"network": named.get(f"eth{n}", f"vpc-gpu-nic-{n - 1}"), "ipAddress": f"10.{n}.0.2"}
        for n in range(1, 9)
    ]


def mega(name: str, born: object = None, bound: object = None, **more: Any) -> Document:
    """An a3-megagpu node with annotations; False leaves one out, text is taken as it is."""
    found = node(name, labels=dict(MEGA), **more)
    notes = {NIC_INFO: nics() if born is None else born, NORTH: north() if bound is None else bound}
    found["metadata"]["annotations"] = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in notes.items()
        if value is not False
    }
    return found


def look(
    *nodes: Document,
    recipe: Document | None = None,
    answer: web.Response | None = None,
) -> tuple[Seen, AicrError | None]:
    """What the check says about nodes, for a recipe that declares TCPXO unless said otherwise."""
    seen = Seen()
    recipe = validation("gke-nccl-tcpxo") if recipe is None else recipe

    async def scenario() -> AicrError | None:
        async with cluster() as (api, client):
            await put(api, kinds.NODE, node("other"), *nodes)
            if answer is not None:
                api.next("GET .*/nodes", answer, times=20)
            try:
                await CHECK.run(seen.context(client, name=CHECK.name, validation=recipe))
            except AicrError as error:
                return error
            return None

    return seen, run(scenario())


@pytest.mark.covers("V-226")
def test_every_gpu_nic_on_its_network_passes_with_the_counts() -> None:
    """Cordoned nodes are read like others: nothing is scheduled."""
    seen, error = look(mega("a"), mega("b", cordoned=True), mega("c", born=False))
    assert error is None
    assert "  c: unverified (no annotation networking.gke.io/nic-info)" in seen.lines
    assert seen.lines[-1] == "RESULT: nodesValidated: 2/3"
    assert seen.output.extra == {"nodesValidated": "2", "nodesTotal": "3"}


@pytest.mark.covers("V-226")
def test_a_gvnic_in_the_place_of_a_gpu_nic_is_a_conflict_that_names_it() -> None:
    """The counts come with the failure; the good node is counted."""
    seen, error = look(mega("a"), mega("b", bound=north(eth3="default-two")))
    assert error is not None
    assert error.code == CONFLICT
    assert "b: eth3 is bound to network default-two, which is no GPU NIC network" in error.message
    assert could_not_tell(error) == ""
    assert seen.lines[-1] == "RESULT: nodesValidated: 1/2"
    assert seen.output.extra == {"nodesValidated": "1", "nodesTotal": "2"}


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (mega("n", born="not json"), "no JSON list of NICs"),
        (mega("n", born=[]), "no JSON list of NICs"),
        (mega("n", born=[{"birthName": "eth0"}]), "no JSON list of NICs"),
        (mega("n", born=[1]), "no JSON list of NICs"),
        (mega("n", born={}), "no JSON list of NICs"),
        (mega("n", born=[*nics(), nics()[2]]), "names birthName eth2 twice"),
        (mega("n", born=[*nics(), {**nics()[0], "birthName": "eth9"}]), "birthIP 10.0.0.2 twice"),
        (
            mega("n", born=[*nics(), {"birthName": "eth9", "birthIP": "x", "pciAddress": "y"}]),
            "unexpected interface eth9",
        ),
        (mega("n", born=nics(7)), "no GPU NIC eth8"),
        (mega("n", bound="{"), "no JSON list of networks"),
    ],
    ids=[
        *("text", "empty", "no address", "numbers", "a map", "name twice", "address twice"),
        *("eth9", "seven", "networks"),
    ],
)
def test_annotations_that_are_wrong_are_problems(found: Document, problem: str) -> None:
    """Said for the node, CONFLICT for the check."""
    assert any(problem in line for line in judge(found).problems)
    _, error = look(found)
    assert error is not None
    assert error.code == CONFLICT


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (mega("n", born=False), "no annotation"),
        (mega("n", bound=False), "does not say the network of eth1"),
        (mega("n", bound=north()[:7]), "does not say the network of eth8"),
    ],
    ids=["no NICs", "no networks", "one network short"],
)
def test_a_cluster_of_which_no_node_can_be_verified_could_not_be_told(
    found: Document, reason: str
) -> None:
    """The recipe declares it, so it does not skip (decision 64)."""
    assert reason in judge(found).unverified
    seen, error = look(found)
    assert error is not None
    assert could_not_tell(error) == INTERNAL
    assert skip_in(error) is None
    assert seen.lines[-1] == "RESULT: nodesValidated: 0/1"


def test_no_such_node_is_not_found() -> None:
    """Although the recipe declares what needs one."""
    seen, error = look()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")
    assert seen.output.extra == {"nodesValidated": "0", "nodesTotal": "0"}


@pytest.mark.covers("V-225")
@pytest.mark.parametrize(
    "recipe",
    [validation("gpu-operator"), validation(disabled=("gke-nccl-tcpxo",)), {}],
    ids=["other", "disabled", "standalone"],
)
def test_only_a_recipe_that_declares_tcpxo_is_looked_at(recipe: Document) -> None:
    """Everything else skips, whatever the nodes say."""
    seen, error = look(mega("a", born="broken"), recipe=recipe)
    assert error is not None
    assert skip_in(error) is not None
    assert seen.lines == ["RESULT: nodesValidated: 0/0"]


@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
def test_nodes_that_cannot_be_listed_could_not_be_told(answer: web.Response, code: str) -> None:
    """The counts are printed all the same."""
    seen, error = look(mega("a"), answer=answer)
    assert error is not None
    assert could_not_tell(error) == code
    assert seen.lines == ["RESULT: nodesValidated: 0/0"]
