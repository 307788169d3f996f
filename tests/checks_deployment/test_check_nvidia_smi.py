"""check-nvidia-smi: every GPU node is counted, the schedulable ones answer (validators spec 6.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import TIMES, Seen, node, pod, put, validation
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.checks_deployment.kubelet import Ends, running
from tests.kube.fakeapi import SERVED, FakeApi, refuse
from tests.kube.loopback import cluster, run

from aicr.checks.deployment import check_nvidia_smi
from aicr.checks.deployment.check_nvidia_smi import (
    CHECK,
    pod_name,
    probe_pod,
    read_output,
)
from aicr.checks.sdk import allocation
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, INVALID_REQUEST, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]

FLOOR = "Deployment.gpu-driver.version"
LABEL = {"nvidia.com/gpu.present": "true"}
SLICE = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)
CLASS = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
TEMPLATE = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True
)
OUTPUT = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.65.06              Driver Version: 580.65.06      CUDA Version: 13.0     |
+-----------------------------------------------------------------------------------------+
GPU_CHECK_SUCCESS
"""


def works(_: Document) -> Ends:
    """Every probe answers."""
    return Ends(logs={"nvidia-smi": OUTPUT})


def look(
    *nodes: Document,
    pods: tuple[Document, ...] = (),
    floor: str = "",
    behave: Callable[[Document], Ends | None] = works,
    dra: tuple[Document, ...] = (),
    fault: tuple[str, web.Response] | None = None,
    patience: float = 10.0,
) -> tuple[Seen, AicrError | None, FakeApi]:
    """What the check says about nodes; the server afterwards."""
    seen = Seen()
    recipe = validation("gpu-operator", deployment={FLOOR: floor}) if floor else None

    async def scenario() -> tuple[AicrError | None, FakeApi]:
        served = [*SERVED, SLICE, CLASS, TEMPLATE] if dra else list(SERVED)
        async with cluster(FakeApi(resources=served)) as (api, client), running(api, behave):
            await put(api, kinds.NODE, node("cpu-only"), *nodes)
            await put(api, kinds.POD, *pods)
            await put(api, SLICE, *dra)
            if fault:
                api.next(*fault, times=20)
            try:
                times = replace(TIMES, pod_wait=patience)
                context = seen.context(client, name=CHECK.name, validation=recipe, timeouts=times)
                await CHECK.run(context)
            except AicrError as error:
                return error, api
            return None, api

    error, api = run(scenario())
    return seen, error, api


@pytest.mark.covers("V10-56", "V-253", "V-254", "V-256", "V-257", "V-262", "V-263")
def test_the_schedulable_half_passes_and_the_cordoned_half_is_counted() -> None:
    """Case 56: one of two is cordoned; names are in the evidence and not in the extra."""
    seen, error, api = look(node("a.local", gpus=8), node("b", gpus=8, cordoned=True))
    assert error is None
    assert seen.lines == [
        "Found 2 GPU node(s), 1 schedulable, 1 cordoned:",
        "  a.local",
        "  b: skipped (cordoned)",
        "  a.local: driver 580.65.06",
        "nvidia-smi works on 1 node(s)",
        "RESULT: nodesValidated: 1/2 (1 cordoned, skipped)",
    ]
    assert seen.output.extra == {"nodesValidated": "1", "nodesTotal": "2"}
    assert any(
        line.startswith("DELETE") and "nvidia-smi-verify-a-local" in line for line in api.seen
    )
    assert api.objects["namespaces"] == {}


@pytest.mark.covers("V-441")
@pytest.mark.parametrize(
    "marked",
    [
        {"labels": {"type": "kwok"}},
        {"labels": {"aicr.run/hollow": "true"}},
        {"annotations": {"kwok.x-k8s.io/node": "fake"}},
    ],
    ids=["kwok-label", "hollow", "kwok-annotation"],
)
def test_a_node_that_only_plays_a_node_is_listed_and_not_probed(marked: Document) -> None:
    """Its kubelet would say that the probe ran; it stays in the count and is never validated."""
    fake = node("fake", gpus=8)
    fake["metadata"] |= marked
    seen, error, _ = look(node("real", gpus=8), fake)
    assert error is None
    assert "  fake: skipped (simulated)" in seen.lines
    assert seen.lines[-1] == "RESULT: nodesValidated: 1/2"
    _, error, api = look(fake)
    assert error is not None
    skip = skip_in(error)
    assert skip is not None
    assert skip.reason_code == "no-schedulable-gpu-nodes"
    assert not any(line.startswith("POST") for line in api.seen)


@pytest.mark.covers("V10-56", "V-258", "V-260")
@pytest.mark.parametrize(
    ("nodes", "pods", "code", "line"),
    [
        ((), (), "no-gpu-nodes", "RESULT: nodesValidated: 0/0"),
        (
            (node("a", gpus=8, cordoned=True), node("b", gpus=8, cordoned=True)),
            (),
            "no-schedulable-gpu-nodes",
            "RESULT: nodesValidated: 0/2 (2 cordoned, skipped)",
        ),
        (
            (node("a", gpus=8), node("b", gpus=8)),
            (
                pod(
                    "train",
                    "team",
                    spec={
                        "nodeName": "b",
                        "containers": [
                            {"name": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
                        ],
                    },
                ),
            ),
            "nodes-busy",
            "RESULT: nodesValidated: 0/2",
        ),
    ],
    ids=["no GPU node", "all cordoned", "busy"],
)
def test_what_cannot_be_measured_skips_with_its_code(
    nodes: tuple[Document, ...], pods: tuple[Document, ...], code: str, line: str
) -> None:
    """Nothing was confirmed, and nothing was created."""
    seen, error, api = look(*nodes, pods=pods)
    assert error is not None
    skip = skip_in(error)
    assert skip is not None
    assert skip.reason_code == code
    assert seen.lines[-1] == line
    assert seen.output.extra["nodesValidated"] == "0"
    assert not any(request.startswith("POST") for request in api.seen)


@pytest.mark.covers("V10-56", "V-259")
@pytest.mark.parametrize(
    "nodes",
    [(), (node("a", gpus=8, cordoned=True),), (node("busy", gpus=8),)],
    ids=["no GPU node", "all cordoned", "busy"],
)
def test_with_a_declared_driver_version_the_same_fails(nodes: tuple[Document, ...]) -> None:
    """A promised version that nobody can see is not met."""
    holder = pod(
        "train",
        "team",
        spec={
            "nodeName": "busy",
            "containers": [{"name": "x", "resources": {"requests": {"nvidia.com/gpu": "2"}}}],
        },
    )
    seen, error, _ = look(*nodes, pods=(holder,), floor=">= 570")
    assert error is not None
    assert skip_in(error) is None
    assert could_not_tell(error) == ""
    assert "Deployment.gpu-driver.version >= 570 cannot be measured" in error.message
    assert seen.lines[-1].startswith("RESULT: nodesValidated: 0/")


@pytest.mark.covers("V-258")
def test_a_node_that_fails_is_named_and_the_others_are_counted() -> None:
    """Partial coverage on the failure path."""

    def behave(found: Document) -> Ends:
        if found["spec"]["nodeName"] == "bad":
            end = {"exitCode": 9, "reason": "Error", "message": "driver not loaded"}
            state = {"name": "nvidia-smi", "state": {"terminated": end}}
            return Ends("Failed", status={"containerStatuses": [state]})
        return works(found)

    seen, error, api = look(node("good", gpus=8), node("bad", gpus=8), behave=behave)
    assert error is not None
    assert error.code == INTERNAL
    assert could_not_tell(error) == ""
    assert error.message.startswith("nvidia-smi failed on 1 of 2 schedulable GPU node(s): bad: ")
    assert "ended with 9" in error.message
    assert seen.lines[-1] == "RESULT: nodesValidated: 1/2"
    assert seen.output.extra == {"nodesValidated": "1", "nodesTotal": "2"}
    assert api.objects["namespaces"] == {}


@pytest.mark.covers("V-253")
@pytest.mark.parametrize(
    ("found", "words"),
    [
        (node("dead", labels=LABEL), "its driver or device plugin is dead"),
        (node("dead", gpus=0, labels=LABEL), "its driver or device plugin is dead"),
        (node("dead", gpus=8, ready=False), "the node is not Ready"),
    ],
    ids=["nothing allocatable", "zero allocatable", "not ready"],
)
def test_a_node_whose_driver_is_dead_is_counted_and_named(found: Document, words: str) -> None:
    """It advertises nothing, and is not lost for that."""
    seen, error, _ = look(node("good", gpus=8), found)
    assert error is not None
    assert f"dead: {words}" in error.message or words in error.message
    assert f"  dead: FAILED: {words}" in "\n".join(seen.lines) or words in "\n".join(seen.lines)
    assert seen.lines[-1] == "RESULT: nodesValidated: 1/2"


@pytest.mark.covers("V-272")
def test_a_node_that_was_taken_out_by_its_label_leaves_the_universe() -> None:
    """``gpu.deploy.operands=false`` is deliberate, and no dead driver."""
    out = node("out", labels={**LABEL, "nvidia.com/gpu.deploy.operands": "false"})
    seen, error, _ = look(node("good", gpus=8), out)
    assert error is None
    assert seen.lines[-1] == "RESULT: nodesValidated: 1/1"


@pytest.mark.parametrize(
    ("floor", "words"),
    [(">= 580", ""), (">= 580.65.06", ""), (">= 590", "driver 580.65.06 does not meet")],
)
def test_the_driver_of_each_node_is_held_against_the_floor(floor: str, words: str) -> None:
    """One that is too old is a failure of that node."""
    seen, error, _ = look(node("a", gpus=8), floor=floor)
    assert (error is None) == (words == "")
    if error is not None:
        assert words in error.message
        assert seen.lines[-1] == "RESULT: nodesValidated: 0/1"


@pytest.mark.parametrize(
    "fault",
    ["GET /api/v1/nodes", "GET /api/v1/pods", "POST /api/v1/namespaces"],
    ids=["nodes", "pods", "namespace"],
)
@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
def test_a_look_that_fails_could_not_be_told(fault: str, answer: web.Response, code: str) -> None:
    """Neither passed nor skipped, and the coverage line is there."""
    seen, error, _ = look(node("a", gpus=8), fault=(fault, answer))
    assert error is not None
    assert could_not_tell(error) == code
    assert skip_in(error) is None
    assert seen.lines[-1].startswith("RESULT: nodesValidated: 0/")


def test_a_bad_constraint_ends_the_check_before_it_looks() -> None:
    """INVALID_REQUEST."""
    _, error, api = look(node("a", gpus=8), floor=">= ")
    assert error is not None
    assert error.code == INVALID_REQUEST
    assert api.seen == []


@pytest.mark.parametrize(
    ("behave", "fault", "code"),
    [
        (works, ("POST .*/pods", refuse(403, "Forbidden", "pods is forbidden")), UNAUTHORIZED),
        (
            lambda _: Ends(
                "Pending",
                status={
                    "containerStatuses": [
                        {"name": "nvidia-smi", "state": {"waiting": {"reason": "ErrImagePull"}}}
                    ]
                },
            ),
            None,
            INTERNAL,
        ),
        (lambda _: None, None, TIMEOUT),
    ],
    ids=["may not create pods", "no image", "the pod never starts"],
)
def test_probes_that_cannot_be_made_say_nothing_about_the_nodes(
    behave: Callable[[Document], Ends | None], fault: Any, code: str
) -> None:
    """Could not be told, with the nodes and the reason; nothing is left."""
    patience = 0.3 if code == TIMEOUT else 10.0
    seen, error, api = look(node("a", gpus=8), behave=behave, fault=fault, patience=patience)
    assert error is not None
    assert could_not_tell(error) == code
    assert error.message.startswith("1 of 1 schedulable GPU node(s) could not be probed: a: ")
    assert seen.lines[-1] == "RESULT: nodesValidated: 0/1"
    assert api.objects["namespaces"] == {}


@pytest.mark.covers("V-255", "V-135")
def test_a_probe_is_pinned_by_node_name_and_tolerates_everything() -> None:
    """One GPU, no root, past the scheduler."""
    found = probe_pod("node.1", "nvidia.com/gpu")
    spec = found["spec"]
    (container,) = spec["containers"]
    assert found["metadata"]["name"] == "nvidia-smi-verify-node-1"
    assert (spec["nodeName"], spec["tolerations"]) == ("node.1", [{"operator": "Exists"}])
    assert "nodeSelector" not in spec
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert container["image"] == "nvcr.io/nvidia/cuda:13.0.0-base-ubuntu22.04"
    assert container["command"] == ["sh", "-c", "nvidia-smi && echo GPU_CHECK_SUCCESS"]
    assert container["securityContext"]["runAsUser"] == 1000
    assert container["securityContext"]["runAsNonRoot"] is True
    with pytest.raises(AicrError, match="needs the name of a node"):
        probe_pod("", "nvidia.com/gpu")


def test_a_node_that_gives_gpus_by_claims_is_probed_through_the_scheduler() -> None:
    """A claim has to be allocated, which a pinned pod would wait for in vain."""
    spec: Document = {
        "driver": "gpu.nvidia.com",
        "nodeName": "a",
        "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    }
    made: list[Document] = []

    def behave(found: Document) -> Ends:
        made.append(found)
        return works(found)

    _, error, api = look(
        node("a", labels=LABEL), behave=behave, dra=({"metadata": {"name": "s"}, "spec": spec},)
    )
    assert error is None
    (probe,) = made
    assert "nodeName" not in {key for key in probe["spec"] if probe["spec"][key] != "a"}
    assert probe["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == "one-gpu"
    (template,) = api.objects["resourceclaimtemplates.resource.k8s.io"].values()
    request = template["spec"]["spec"]["devices"]["requests"][0]
    assert request["exactly"] == {"deviceClassName": "gpu.nvidia.com", "count": 1}
    flat = allocation.one_gpu_template("t", "v1beta1")["spec"]["spec"]["devices"]["requests"][0]
    assert flat == {"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 1}


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        (OUTPUT, "580.65.06"),
        (OUTPUT.lower().replace("gpu_check_success", "GPU_CHECK_SUCCESS"), "580.65.06"),
        (
            "NVIDIA-SMI 590.1 KMD Version: 590.44.01 CUDA UMD Version: 13.1\nGPU_CHECK_SUCCESS",
            "590.44.01",
        ),
        ("NVIDIA-SMI Driver Version: N/A CUDA Version: N/A\nGPU_CHECK_SUCCESS", ""),
    ],
    ids=["usual", "lower case", "KMD and UMD", "no number"],
)
def test_both_forms_of_output_are_read(text: str, driver: str) -> None:
    """The words of older and newer drivers."""
    assert read_output(text) == driver


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("", "NVIDIA-SMI"),
        ("Failed to initialize NVML: Driver/library version mismatch", "NVIDIA-SMI"),
        (OUTPUT.replace("GPU_CHECK_SUCCESS", ""), "GPU_CHECK_SUCCESS"),
        (OUTPUT.replace("Driver Version:", "x"), "Driver Version: or KMD Version:"),
        (OUTPUT.replace("CUDA Version:", "x"), "CUDA Version: or CUDA UMD Version:"),
    ],
    ids=["empty", "mismatch", "no end", "no driver", "no CUDA"],
)
def test_output_that_lacks_a_marker_fails_naming_it(text: str, missing: str) -> None:
    """A verdict, with how it begins."""
    with pytest.raises(AicrError) as caught:
        read_output(text)
    assert missing in caught.value.message
    assert could_not_tell(caught.value) == ""


def test_long_names_are_cut_and_stay_apart() -> None:
    """Two nodes with one beginning have two pods."""
    names = {pod_name("n" * 250 + end) for end in ("a", "b")}
    assert len(names) == 2
    assert all(len(name) <= check_nvidia_smi._POD_NAME_LIMIT for name in names)
