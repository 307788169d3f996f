"""GPU allocation checks as the real program: claims by the real scheduler, devices of the test driver.

A DeviceClass under the product's name selects the devices of the test driver, and slices under the names
of the vendor's drivers say that there are some. The claim template of a ComputeDomain, which the vendor's
controller would make, is made by a small stand-in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.check_runs import (
    FAILED,
    HOLLOWS,
    PASSED,
    SKIPPED,
    STANDINS,
    CheckRuns,
    Stage,
    left_behind,
    meanwhile,
    recipe,
)
from tests.cluster.checks_table import COULD_NOT_TELL, FAIL, PASS, SKIP, reaches
from tests.cluster.workloads import container, pod, pod_is_ready
from tests.controlplane.agent.claims import DRIVER
from tests.controlplane.client import Client, Document
from tests.controlplane.fixtures import root_or_fail
from tests.controlplane.nodes import Node
from tests.controlplane.plane import ControlPlane

from aicr.checks.sdk.allocation import DEVICE_PLUGIN, DRA_CLAIM

pytestmark = pytest.mark.cluster

CLIQUE = "nvidia.com/gpu.clique"
DRA_NAMESPACE = "nvidia-dra-driver"
#: For a test that passes only once the namespace of its pods is gone, which takes 5 s at least.
WHOLE = "1"
DRA: Document = {"name": "nvidia-dra-driver-gpu", "namespace": DRA_NAMESPACE}


@pytest.fixture
def runs(plane: ControlPlane, tmp_path: Path) -> CheckRuns:
    """Runs checks against the shared plane."""
    return CheckRuns(plane, tmp_path)


@pytest.fixture
def stage(api: Client) -> Iterator[Stage]:
    """Objects of one test."""
    with Stage(api) as found:
        yield found


@pytest.fixture(scope="module")
def careless_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A plane whose container runtime gives a GPU to everybody."""
    root_or_fail()
    images = tmp_path_factory.mktemp("images") / "images.yaml"
    path = f"{STANDINS}:/usr/bin:/bin"
    images.write_text(
        "nvidia/cuda:12.9.0-base-ubuntu24.04: "
        f'{{env: {{PATH: "{path}", STANDIN_GIVES: gpu, STANDIN_LEAK: "1"}}}}\n'
    )
    with ControlPlane([Node("gpu-1", gpus=8, devices=4)], images=[images]) as own:
        yield own


def gpu_class(stage: Stage) -> None:
    """The class of the product's driver, met by devices of the test driver."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    stage.put(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu.nvidia.com"},
            "spec": {"selectors": [selector]},
        },
        "/apis/resource.k8s.io/v1/deviceclasses",
    )


def offer(stage: Stage, driver: str, node: str, device: str) -> None:
    """A slice of one of the vendor's drivers with one device."""
    stage.put(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{driver}"},
            "spec": {
                "driver": driver,
                "nodeName": node,
                "pool": {"name": f"{node}-pool", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"{device}-0", "attributes": {"type": {"string": device}}}],
            },
        },
        "/apis/resource.k8s.io/v1/resourceslices",
    )


def dra_driver(stage: Stage) -> None:
    """The vendor's driver: its workloads, its class and full GPUs on runs-2."""
    stage.namespace(DRA_NAMESPACE)
    stage.workload("Deployment", DRA_NAMESPACE, "nvidia-dra-driver-gpu-controller")
    stage.workload("DaemonSet", DRA_NAMESPACE, "nvidia-dra-driver-gpu-kubelet-plugin")
    gpu_class(stage)
    offer(stage, "gpu.nvidia.com", "runs-2", "gpu")
    stage.cordon(*HOLLOWS)


def domains(stage: Stage) -> Callable[[], None]:
    """Serve ComputeDomains; returns one turn of their controller, which makes the claim templates."""
    root = stage.crd(
        "resource.nvidia.com", "v1beta1", "ComputeDomain", "computedomains", namespaced=True
    )
    api = stage.api

    def turn() -> None:
        for domain in api.call("GET", f"{root}/computedomains")["items"]:
            request = {"name": "channel", "exactly": {"deviceClassName": DRIVER}}
            template = {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": domain["spec"]["channel"]["resourceClaimTemplate"]["name"]},
                "spec": {"spec": {"devices": {"requests": [request]}}},
            }
            api.create(template, domain["metadata"]["namespace"])

    return turn


@reaches(PASS, "dra-support")
@pytest.mark.covers("V-231", "V-232", "V-239", "V-240", "V-242")
def test_a_claimed_gpu_and_a_channel_are_given_out_and_taken_back(
    runs: CheckRuns, stage: Stage
) -> None:
    """Allocated by the real scheduler, prepared by the test driver, seen by the pods."""
    dra_driver(stage)
    offer(stage, "compute-domain.nvidia.com", "runs-2", "channel")
    stage.label("runs-2", CLIQUE, "7f.1")
    with meanwhile(domains(stage)):
        ended = runs.run("dra-support", recipe(DRA), budget="280s", factor=WHOLE)
    assert ended.status == PASSED, ended.message
    assert "  gpu.nvidia.com: 1 usable device(s)" in ended.lines
    assert any(line.startswith("CHANNEL=channel") for line in ended.lines)
    assert ended.lines[-1] == "DRA works; tested by use: IMEX channels, a full GPU by claim"
    assert left_behind(stage.api, "aicr-gpu-test-") == []


@reaches(FAIL, "dra-support")
@pytest.mark.covers("V-235")
def test_a_clique_without_a_slice_and_a_contradicted_policy_fail(
    runs: CheckRuns, stage: Stage
) -> None:
    """Nothing of the driver, then a node that should have channels, then another policy."""
    absent = runs.run("dra-support", recipe(DRA), budget="180s")
    assert (absent.status, absent.code) == (FAILED, "")
    assert "nvidia-dra-driver-gpu-controller not found" in absent.message
    dra_driver(stage)
    stage.label("runs-2", CLIQUE, "7f.1")
    ended = runs.run("dra-support", recipe(DRA), budget="180s")
    assert (ended.status, ended.code) == (FAILED, "")
    assert "runs-2 have a clique and no usable slice" in ended.message
    stage.cordon("runs-2")
    refused = runs.run("dra-support", recipe(DRA, policy=DRA_CLAIM), budget="180s")
    assert (refused.status, refused.code) == (FAILED, "")
    assert left_behind(stage.api, "aicr-gpu-test-") == []


@reaches(SKIP, "dra-support")
@reaches(COULD_NOT_TELL, "dra-support")
def test_no_driver_skips_unless_it_was_promised_and_no_budget_cannot_tell(
    runs: CheckRuns,
) -> None:
    """Standalone, and with 100 s of which 90 are kept for cleaning up."""
    skipped = runs.run("dra-support", budget="180s")
    assert skipped.status == SKIPPED, skipped.message
    short = runs.run("dra-support", recipe(DRA), budget="100s")
    assert (short.status, short.code) == (FAILED, "TIMEOUT")


@reaches(PASS, "secure-accelerator-access")
@pytest.mark.covers("V-242", "V-247")
@pytest.mark.parametrize("policy", [DEVICE_PLUGIN, DRA_CLAIM])
def test_a_gpu_is_seen_by_who_has_it(policy: str, runs: CheckRuns, stage: Stage) -> None:
    """Both mechanisms, each forced by the recipe."""
    gpu_class(stage)
    offer(stage, "gpu.nvidia.com", "runs-2", "gpu")
    stage.cordon(*HOLLOWS)
    ended = runs.run(
        "secure-accelerator-access", recipe(DRA, policy=policy), budget="280s", factor=WHOLE
    )
    assert ended.status == PASSED, ended.message
    assert any(line.startswith("GPU 0: NVIDIA H100") for line in ended.lines)
    assert ended.lines[-1].startswith("One GPU is seen by the container that has it")
    assert left_behind(stage.api, "aicr-gpu-test-") == []


@reaches(FAIL, "secure-accelerator-access")
@pytest.mark.covers("V-242")
def test_a_careless_runtime_is_found(careless_plane: ControlPlane, tmp_path: Path) -> None:
    """The container without an allocation sees a GPU as well; the namespace is gone all the same."""
    ended = CheckRuns(careless_plane, tmp_path).run("secure-accelerator-access", budget="180s")
    assert (ended.status, ended.code) == (FAILED, "")
    assert "the container without a GPU sees /dev/nvidia0" in ended.message
    assert left_behind(careless_plane.client(), "aicr-gpu-test-") == []


@reaches(SKIP, "secure-accelerator-access")
@reaches(COULD_NOT_TELL, "secure-accelerator-access")
@pytest.mark.covers("V-248")
def test_slurm_skips_and_a_full_cluster_cannot_tell(runs: CheckRuns, stage: Stage) -> None:
    """Every GPU is held: the scheduler says so, and nothing was seen of isolation."""
    skipped = runs.run("secure-accelerator-access", recipe("slinky-slurm"), budget="180s")
    assert skipped.status == SKIPPED
    assert "slinky-slurm-gpu-access" in skipped.message
    stage.cordon(*HOLLOWS)
    namespace = stage.namespace("team")
    eight: Document = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    for name in ("one", "two"):
        stage.api.create(pod(name, container("exec sleep 1000", **eight)), namespace)
        pod_is_ready(stage.api, namespace, name)
    full = runs.run(
        "secure-accelerator-access", recipe(policy=DEVICE_PLUGIN), budget="180s", factor="0.1"
    )
    assert (full.status, full.code) == (FAILED, "INTERNAL")
    assert "Unschedulable" in full.message
    assert left_behind(stage.api, "aicr-gpu-test-") == []


@reaches(COULD_NOT_TELL, "dra-support", "secure-accelerator-access")
@pytest.mark.covers("V10-53", "V-146", "V-155")
@pytest.mark.parametrize("check", ["dra-support", "secure-accelerator-access"])
def test_who_may_not_look_at_gpus_cannot_tell(check: str, runs: CheckRuns) -> None:
    """The API server's own refusal: neither passed nor skipped."""
    ended = runs.without_access(check, recipe(DRA), budget="180s")
    assert (ended.status, ended.code) == (FAILED, "UNAUTHORIZED"), ended.message
