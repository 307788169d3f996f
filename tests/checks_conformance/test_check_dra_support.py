"""dra-support: scope, parts, policy, and the two behaviours (validators spec 6.2)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import node, pod, put, validation
from tests.checks_conformance.gpu_scenes import TWO, by_claim, by_plugin, listing, pods
from tests.checks_conformance.scene import CLAIM, CLAIM_TEMPLATE, IMPATIENT, SLICE, Scene, workload
from tests.checks_conformance.test_imex_channels import claim, clique, holder, piece
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.checks_deployment.kubelet import change
from tests.kube.fakeapi import FakeApi, refuse

from aicr.checks.conformance.dra_support import CHECK, CONTROLLER, PLUGIN, usable_drivers
from aicr.checks.conformance.imex import DRIVER
from aicr.checks.sdk.allocation import DEVICE_PLUGIN, DRA_CLAIM
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, INVALID_REQUEST, NOT_FOUND, SERVICE_UNAVAILABLE, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]

DOMAIN = Resource("resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain", True)
NS = "nvidia-dra-driver"


def recipe(policy: str = "unspecified") -> Document:
    """A recipe with the DRA driver in its usual namespace."""
    document = validation("nvidia-dra-driver-gpu")
    document["componentRefs"][0]["namespace"] = NS
    return {**document, "gpuAllocationPolicy": policy}


def with_driver(found: Scene, *, controller: int = 1, plugin: int = 1) -> Scene:
    """Add the driver's workloads."""
    found.put(kinds.DEPLOYMENT, workload("Deployment", CONTROLLER, NS, ready=controller))
    return found.put(kinds.DAEMON_SET, workload("DaemonSet", PLUGIN, NS, ready=plugin))


def gpus(**settings: Any) -> Scene:
    """A healthy driver that hands out full GPUs, in a recipe that declares it."""
    return with_driver(by_claim(CHECK, **{"validation": recipe(), **settings}))


@contextlib.asynccontextmanager
async def controller(api: FakeApi) -> AsyncIterator[None]:
    """The driver's controller: makes the claim template of each ComputeDomain."""
    done: set[str] = set()

    async def work() -> None:
        while True:
            version = api.version
            for domain in list(api.objects.get(DOMAIN.qualified, {}).values()):
                meta = domain["metadata"]
                if meta["uid"] not in done:
                    done.add(meta["uid"])
                    name = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
                    document = {"metadata": {"name": name, "namespace": meta["namespace"]}}
                    await put(api, CLAIM_TEMPLATE, document)
            await change(api, version)

    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def channels(*extra: Document, **settings: Any) -> Scene:
    """A driver that serves channels only, and a node with a clique."""
    found = by_plugin(CHECK, **{"validation": recipe(), "beside": controller, **settings})
    found.served = (*found.served, DOMAIN)
    found.put(kinds.NODE, clique("clique"), *extra).put(SLICE, piece("clique"))
    return with_driver(found)


@pytest.mark.covers("V-231", "V-234", "V-242")
def test_a_gpu_by_claim_on_nodes_without_a_clique_passes() -> None:
    """Channels do not apply, a full GPU does; nothing is left."""
    found = gpus()
    assert found.judge() is None
    lines = found.seen.lines
    assert lines[0] == "Served: resource.k8s.io/v1"
    assert f"Deployment {NS}/{CONTROLLER}: 1 available" in lines
    assert "  gpu.nvidia.com: 8 usable device(s)" in lines
    assert "IMEX channels: not applicable, no Ready schedulable node has a clique" in lines
    assert lines[-1] == "DRA works; tested by use: a full GPU by claim"
    assert found.left == []


@pytest.mark.covers("V-231", "V-232", "V-239", "V-240")
def test_a_channel_of_a_domain_of_its_own_passes() -> None:
    """The domain is removed by its UID; full GPUs are the device plugin's."""
    found = channels()
    assert found.judge() is None
    assert found.seen.lines[-1] == "DRA works; tested by use: IMEX channels"
    assert "Full GPUs by claim: not applicable, GPUs are not handed out by DRA" in found.seen.lines
    assert found.left == []
    assert found.api is not None
    assert found.api.objects[DOMAIN.qualified] == {}


@pytest.mark.covers("V-241")
def test_what_the_claim_says_afterwards_decides_nothing() -> None:
    """It may be gone, or may not be read: the pod has shown what counts."""
    found = channels()
    assert found.judge() is None
    assert (
        found.seen.lines[found.seen.lines.index("--- Claim after the pod ended ---") + 1] == "gone"
    )
    answer = refuse(403, "Forbidden", "no")
    denied = channels().fault("GET .*/namespaces/aicr-gpu-test-.*/resourceclaims", answer)
    assert denied.judge() is None
    assert "the claim cannot be read after the pod ended" in denied.seen.log


@pytest.mark.parametrize(
    ("text", "words"),
    [("DONE=1\n", "sees 0"), ("CHANNEL=channel0\nCHANNEL=channel1\nDONE=1\n", "sees 2")],
    ids=["none", "two"],
)
def test_another_number_of_channels_fails(text: str, words: str) -> None:
    """A verdict, and the domain is gone."""
    found = channels(behave=pods(channel=text))
    error = found.judge()
    assert error is not None
    assert words in error.message
    assert could_not_tell(error) == ""
    assert found.api is not None
    assert found.api.objects[DOMAIN.qualified] == {}


@pytest.mark.covers("V-235")
def test_a_clique_without_a_usable_slice_fails() -> None:
    """Naming the nodes."""
    found = gpus().put(kinds.NODE, clique("rack-1"))
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (INTERNAL, "")
    assert "rack-1" in error.message


@pytest.mark.covers("V-236", "V-237", "V-238")
@pytest.mark.parametrize(
    ("pods_there", "proven"),
    [
        ((holder("train", "clique"),), True),
        ((holder("train", "clique", "Pending"),), False),
        ((), False),
    ],
    ids=["runs", "pending", "gone"],
)
def test_when_all_channels_are_held_the_holders_are_the_evidence(
    pods_there: tuple[Document, ...], proven: bool
) -> None:
    """Without one that proves anything it is inconclusive: could not be told."""
    found = channels().put(CLAIM, claim("held", "clique", pods=("train",)))
    found.put(kinds.POD, *pods_there)
    error = found.judge()
    assert found.api is not None
    assert not any("computedomains" in line and "POST" in line for line in found.api.seen)
    if proven:
        assert error is None
        assert any("claim team/held, reserved by pod train" in line for line in found.seen.lines)
    else:
        assert error is not None
        assert error.message.startswith("inconclusive")
        assert could_not_tell(error) == INTERNAL


@pytest.mark.covers("V-236")
def test_the_probe_goes_to_a_node_whose_channel_is_free() -> None:
    """The held one is left out of the affinity."""
    made: list[Document] = []
    plain = pods()

    def behave(document: Document) -> Any:
        made.append(document)
        return plain(document)

    found = channels(clique("other"), behave=behave).put(SLICE, piece("other"))
    found.put(CLAIM, claim("held", "other", pods=("train",)))
    assert found.judge() is None
    affinity = next(each for each in made if each["metadata"]["name"] == "imex-probe")["spec"]
    assert "'clique'" in str(affinity["affinity"])
    assert "'other'" not in str(affinity["affinity"])


def test_a_driver_that_makes_no_claim_template_fails() -> None:
    """Its controller was available and did nothing."""
    error = channels(beside=None, timeouts=IMPATIENT).judge()
    assert error is not None
    assert "made no ResourceClaimTemplate" in error.message
    assert could_not_tell(error) == ""


def test_cliques_without_the_crd_of_domains_fail() -> None:
    """NOT_FOUND."""
    found = channels(beside=None)
    found.served = tuple(each for each in found.served if each != DOMAIN)
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")


@pytest.mark.covers("V-231", "V-247")
def test_the_device_plugin_policy_leaves_out_the_gpu_test() -> None:
    """Also where a claim could be met."""
    found = gpus(validation=recipe(DEVICE_PLUGIN)).put(kinds.NODE, node("plug", gpus=8))
    assert found.judge() is None
    assert found.seen.lines[-1] == "DRA works; tested by use: nothing"


@pytest.mark.covers("V-244")
def test_a_policy_that_the_cluster_contradicts_is_refused() -> None:
    """INVALID_REQUEST before anything is created."""
    found = channels(validation=recipe(DRA_CLAIM))
    error = found.judge()
    assert error is not None
    assert error.code == INVALID_REQUEST
    assert found.api is not None
    assert not any(line.startswith("POST") for line in found.api.seen)


@pytest.mark.parametrize(
    ("found", "code", "words"),
    [
        (by_claim(CHECK, validation=recipe()), NOT_FOUND, f"Deployment {NS}/{CONTROLLER} not"),
        (
            with_driver(by_claim(CHECK, validation=recipe()), controller=0),
            INTERNAL,
            "none available",
        ),
        (with_driver(by_claim(CHECK, validation=recipe()), plugin=0), INTERNAL, "none ready"),
        (with_driver(by_plugin(CHECK, validation=recipe())), INTERNAL, "no ResourceSlice"),
        (
            with_driver(by_plugin(CHECK, validation=recipe(), served=())),
            SERVICE_UNAVAILABLE,
            "serves no version",
        ),
        (gpus(behave=pods(given=listing(TWO))), INTERNAL, "GPUs are not isolated"),
    ],
    ids=["no controller", "controller down", "plugin down", "no slice", "no DRA", "two GPUs"],
)
def test_a_part_that_does_not_work_fails(found: Scene, code: str, words: str) -> None:
    """A verdict; nothing is left."""
    error = found.judge()
    assert error is not None
    assert error.code == code
    assert words in error.message
    assert could_not_tell(error) == ""
    assert skip_in(error) is None
    assert found.left == []


@pytest.mark.parametrize(
    "document", [None, validation("gpu-operator"), validation(disabled=("nvidia-dra-driver-gpu",))]
)
def test_without_a_driver_that_somebody_promised_it_skips(document: Document | None) -> None:
    """Standalone, another recipe, or disabled."""
    error = by_plugin(CHECK, validation=document).judge()
    assert error is not None
    assert skip_in(error) is not None


@pytest.mark.covers("V-143")
@pytest.mark.parametrize("document", [None, validation("gpu-operator")], ids=["alone", "recipe"])
def test_a_driver_that_is_there_and_not_declared_is_tested(document: Document | None) -> None:
    """Decision 64."""
    assert with_driver(by_claim(CHECK, validation=document)).judge() is None


def test_pods_alone_show_that_a_driver_is_there() -> None:
    """Then its missing parts are failures."""
    error = by_claim(CHECK).put(kinds.POD, pod("plugin-x", NS)).judge()
    assert error is not None
    assert error.code == NOT_FOUND
    assert skip_in(error) is None


@pytest.mark.parametrize(
    ("pattern", "document"),
    [
        (f"GET .*/namespaces/{NS}/pods", None),
        (f"GET .*/deployments/{CONTROLLER}", None),
        (f"GET .*/deployments/{CONTROLLER}", recipe()),
        (f"GET .*/daemonsets/{PLUGIN}", recipe()),
        ("GET .*/resourceslices", recipe()),
        ("GET .*/resourceclaims", recipe()),
        ("GET /api/v1/nodes", recipe()),
        ("POST .*/resourceclaimtemplates", recipe()),
        ("POST .*/pods", recipe()),
    ],
    ids=[
        *("pods", "controller alone", "controller", "plugin", "slices", "claims", "nodes"),
        *("template", "pod"),
    ],
)
@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
def test_a_request_that_fails_could_not_be_told(
    pattern: str, document: Document | None, answer: web.Response, code: str
) -> None:
    """Never a skip, whoever declared what; nothing is left."""
    found = gpus(validation=document).fault(pattern, answer)
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == code
    assert skip_in(error) is None
    assert found.left == []


@pytest.mark.covers("V-242")
def test_a_namespace_that_stays_turns_a_pass_into_a_failure() -> None:
    """A finalizer that nobody takes away."""
    found = gpus(timeouts=IMPATIENT)

    @contextlib.asynccontextmanager
    async def held(api: FakeApi) -> AsyncIterator[None]:
        stop = api.store

        async def store(type_: str, resource: Resource, document: Document) -> Document:
            if resource == kinds.NAMESPACE and type_ == "ADDED":
                document["metadata"]["finalizers"] = ["test/held"]
            return await stop(type_, resource, document)

        api.store = store  # type: ignore[method-assign]
        yield

    found.beside = held
    error = found.judge()
    assert error is not None
    assert "could not be removed" in error.message
    assert could_not_tell(error) == ""


def test_drivers_count_where_a_claim_could_be_met() -> None:
    """Of the vendor, in whole pools, on good nodes; a slice of no node counts."""
    good = [node("clique")]
    assert usable_drivers([piece("clique")], good) == {DRIVER: 2}
    assert usable_drivers([piece("clique", taint="NoExecute")], good) == {DRIVER: 1}
    assert usable_drivers([piece("clique", count=2)], good) == {}
    assert usable_drivers([piece("gone")], good) == {}
    assert usable_drivers([piece("clique")], [node("clique", cordoned=True)]) == {}
    foreign = piece("clique")
    foreign["spec"]["driver"] = "gpu.amd.com"
    assert usable_drivers([foreign], good) == {}
    everywhere = piece("clique")
    del everywhere["spec"]["nodeName"]
    assert usable_drivers([everywhere], good) == {DRIVER: 2}


def test_errors_are_ours() -> None:
    """Whatever comes out is an `AicrError` with a code."""
    error = gpus(behave=pods(given="garbage")).judge()
    assert isinstance(error, AicrError)
    assert could_not_tell(error) == INTERNAL
