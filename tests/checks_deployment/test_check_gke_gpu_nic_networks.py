"""gke-gpu-nic-networks: census, readiness, wiring (validators spec 6.1)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import Seen, put, validation
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.kube.fakeapi import SERVED, FakeApi
from tests.kube.loopback import cluster, run

from aicr.checks.deployment.gke_gpu_nic_networks import CHECK, delivered, miswired, unready
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import (
    INTERNAL,
    INVALID_REQUEST,
    NOT_FOUND,
    AicrError,
)
from aicr.kube.kinds import Resource

Document = dict[str, Any]

NETWORK = Resource("networking.gke.io", "v1", "networks", "Network", False, "network")
PARAMETERS = Resource("networking.gke.io", "v1", "gkenetworkparamsets", "GKENetworkParamSet", False)
RUNTIME = Resource(
    "trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", False
)
MANIFEST = "components/kubeflow-trainer/manifests/torch-distributed-tcpxo.yaml"


def network(number: int, **spec: Any) -> Document:
    """The Network of one GPU NIC."""
    name = f"vpc-gpu-nic-{number}"
    return {
        "metadata": {"name": name},
        "spec": {"parametersRef": {"kind": "GKENetworkParamSet", "name": name}, **spec},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "ParamsReady", "status": "True"},
            ]
        },
    }


def parameters(number: int) -> Document:
    """Its parameters."""
    name = f"vpc-gpu-nic-{number}"
    return {"metadata": {"name": name}, "status": {"networkName": name}}


def mapping(*numbers: int) -> list[dict[str, str]]:
    """A mapping of interfaces to networks."""
    return [
        {"interfaceName": f"eth{number}", "network": f"vpc-gpu-nic-{number}"} for number in numbers
    ]


def notes(entries: object = None, default: str = "eth0") -> Document:
    """What a runtime puts on pods."""
    if entries is None:
        entries = [{"interfaceName": "eth0", "network": "default"}, *mapping(*range(1, 9))]
    text = entries if isinstance(entries, str) else json.dumps(entries)
    return {
        "networking.gke.io/interfaces": text,
        "networking.gke.io/default-interface": default,
    }


def runtime(found: Document) -> Document:
    """A deployed runtime whose pods carry *found*."""
    template = {"spec": {"template": {"metadata": {"annotations": found}}}}
    jobs = [{"name": "launcher"}, {"name": "node", "template": template}]
    return {
        "metadata": {"name": "torch-distributed-tcpxo"},
        "spec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }


def recipe(**overrides: Any) -> Document:
    """A recipe that delivers the runtime."""
    document = validation("gke-nccl-tcpxo", "kubeflow-trainer")
    document["componentRefs"][1] |= {"manifestFiles": [MANIFEST], "overrides": overrides}
    return document


def judge(
    *,
    networks: int = 8,
    recipe: Document | None = None,
    runtimes: tuple[Document, ...] = (),
    served: bool = True,
    answer: web.Response | None = None,
) -> tuple[Seen, AicrError | None]:
    """What the check says about a cluster."""
    seen = Seen()

    async def scenario() -> AicrError | None:
        kinds = [NETWORK, PARAMETERS, RUNTIME] if served else []
        async with cluster(FakeApi(resources=[*SERVED, *kinds])) as (api, client):
            for number in range(1, networks + 1):
                await put(api, NETWORK, network(number))
                await put(api, PARAMETERS, parameters(number))
            await put(api, NETWORK, {"metadata": {"name": "default"}})
            await put(api, RUNTIME, *runtimes)
            if answer is not None:
                api.next("GET .*/networks", answer, times=20)
            try:
                await CHECK.run(seen.context(client, name=CHECK.name, validation=recipe))
            except AicrError as error:
                return error
            return None

    return seen, run(scenario())


@pytest.mark.covers("V-224", "V-227")
def test_eight_ready_networks_without_a_runtime_pass() -> None:
    """A base recipe runs census and readiness."""
    seen, error = judge(recipe=validation("gke-nccl-tcpxo"))
    assert error is None
    assert seen.lines[0] == "Found 8 GPU NIC network(s) (need 8):"
    assert seen.lines[1:9] == [f"  vpc-gpu-nic-{number}" for number in range(1, 9)]
    assert seen.lines[-1].startswith("The recipe delivers no TCPXO runtime")


@pytest.mark.covers("V-224")
def test_a_delivered_runtime_that_is_wired_as_recorded_passes() -> None:
    """Recipe, deployment and cluster have one mapping."""
    wired = mapping(*range(1, 9))
    seen, error = judge(recipe=recipe(tcpxoInterfaces=wired), runtimes=(runtime(notes()),))
    assert error is None
    assert seen.lines[-1].endswith("eth8=vpc-gpu-nic-8")


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"networks": 7, "recipe": validation("gke-nccl-tcpxo")}, NOT_FOUND, "7 GPU NIC network"),
        ({"networks": 3}, NOT_FOUND, "3 GPU NIC network"),
        ({"networks": 0, "recipe": validation("gke-nccl-tcpxo")}, NOT_FOUND, "not found, although"),
        (
            {"served": False, "recipe": validation("gke-nccl-tcpxo")},
            NOT_FOUND,
            "not found, although",
        ),
        ({"recipe": recipe()}, INVALID_REQUEST, "records no tcpxoInterfaces"),
        ({"recipe": recipe(tcpxoInterfaces=mapping(1))}, NOT_FOUND, "although the recipe delivers"),
        (
            {
                "recipe": recipe(tcpxoInterfaces=mapping(2, 1)),
                "runtimes": (runtime(notes()),),
            },
            INTERNAL,
            "8 interface(s) are mapped, the recipe maps 2",
        ),
        (
            {
                "recipe": recipe(tcpxoInterfaces=mapping(9)),
                "runtimes": (
                    runtime(notes([{"interfaceName": "eth0", "network": "default"}, *mapping(9)])),
                ),
            },
            INTERNAL,
            "do not exist: vpc-gpu-nic-9",
        ),
    ],
    ids=[
        *("seven", "three and undeclared", "none and declared", "not served and declared"),
        *("runtime without mapping", "runtime not deployed", "wired otherwise", "absent network"),
    ],
)
def test_what_is_not_as_promised_fails(settings: Document, code: str, words: str) -> None:
    """A verdict, never a skip."""
    _, error = judge(**settings)
    assert error is not None
    assert error.code == code
    assert words in error.message
    assert skip_in(error) is None
    assert could_not_tell(error) == ""


@pytest.mark.parametrize(
    "settings", [{"networks": 0}, {"served": False}], ids=["none", "group not served"]
)
def test_a_cluster_without_them_skips_when_nobody_promised_them(settings: Document) -> None:
    """Another cloud, or no TCPXO."""
    _, error = judge(**settings, recipe=validation("gpu-operator"))
    assert error is not None
    assert skip_in(error) is not None


@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
@pytest.mark.parametrize("recipe", [None, validation("gke-nccl-tcpxo")], ids=["standalone", "own"])
def test_a_list_that_fails_could_not_be_told(
    answer: web.Response, code: str, recipe: Document | None
) -> None:
    """Whoever declared what."""
    _, error = judge(answer=answer, recipe=recipe)
    assert error is not None
    assert could_not_tell(error) == code
    assert skip_in(error) is None


def changed(number: int, **status: Any) -> Document:
    """A network with another status."""
    return {**network(number), "status": status}


@pytest.mark.covers("V-224")
@pytest.mark.parametrize(
    ("networks", "sets", "words"),
    [
        ([network(1)], [parameters(1)], []),
        ([changed(1)], [parameters(1)], ["Ready is not True (absent)", "ParamsReady is not True"]),
        (
            [
                changed(
                    1,
                    conditions=[
                        {"type": "Ready", "status": "True"},
                        {"type": "ParamsReady", "status": "False", "message": "no VPC"},
                    ],
                )
            ],
            [parameters(1)],
            ["condition ParamsReady is not True (no VPC)"],
        ),
        ([network(1)], [], ["GKENetworkParamSet vpc-gpu-nic-1 does not exist"]),
        ([network(1, parametersRef={"kind": "Other", "name": "x"})], [parameters(1)], ["names no"]),
        (
            [network(1), network(2, parametersRef=network(1)["spec"]["parametersRef"])],
            [parameters(1)],
            ["belongs to vpc-gpu-nic-1 as well"],
        ),
        (
            [network(1)],
            [{**parameters(1), "status": {"networkName": "other"}}],
            ["serves network other"],
        ),
    ],
    ids=["ready", "no status", "params", "no set", "other kind", "shared", "bound elsewhere"],
)
def test_a_network_is_usable_when_ready_and_bound_to_parameters_of_its_own(
    networks: list[Document], sets: list[Document], words: list[str]
) -> None:
    """Each defect is a line."""
    given = copy.deepcopy((networks, sets))
    lines = unready(networks, sets)
    assert len(lines) == len(words)
    for line, word in zip(lines, words, strict=True):
        assert word in line
    assert (networks, sets) == given


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (notes(), None),
        (notes(default="eth1"), "default-interface"),
        ({"networking.gke.io/interfaces": "[]"}, "default-interface is None"),
        (notes("not json"), "no JSON list"),
        (notes("{}"), "no JSON list"),
        (notes([{"interfaceName": "eth0"}]), "no JSON list"),
        (notes(["eth0"]), "no JSON list"),
        (notes(mapping(*range(1, 9))), "the first entry"),
        (notes([]), "the first entry"),
        (
            notes([{"interfaceName": "eth0", "network": "default"}, *mapping(2, 1, *range(3, 9))]),
            "entry 1 is eth2=vpc-gpu-nic-2",
        ),
    ],
    ids=[
        *("equal", "default", "no default", "text", "a map", "no network", "texts"),
        *("no eth0", "empty", "other order"),
    ],
)
def test_the_deployed_wiring_equals_the_recorded_one_entry_by_entry(
    found: Document, word: str | None
) -> None:
    """Order counts, and the ordinary network comes first."""
    lines = miswired(found, mapping(*range(1, 9)))
    assert (word is None) == (lines == [])
    assert word is None or word in lines[0]


def test_a_mapping_without_the_runtime_delivers_nothing() -> None:
    """Only the manifest makes it a delivery; a mapping of another form is refused."""
    ref: Document = {"name": "kubeflow-trainer", "overrides": {"tcpxoInterfaces": mapping(1)}}
    assert delivered(None) is None
    assert delivered(ref) is None
    ref["manifestFiles"] = [MANIFEST]
    assert delivered(ref) == mapping(1)
    ref["overrides"] = {"tcpxoInterfaces": "eth1=x"}
    with pytest.raises(AicrError, match="must be a list") as caught:
        delivered(ref)
    assert caught.value.code == INVALID_REQUEST
