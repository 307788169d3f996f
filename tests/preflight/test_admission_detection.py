"""Which pods get checks, and how many devices a check asks for (preflight spec 11.2, field cases I)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.preflight.admission_cases import (
    ALLREDUCE,
    DCGM,
    EFA,
    GANG,
    GPU,
    LOOPBACK,
    container,
    gpu_container,
    pod,
    prepared,
    send,
    without_gangs,
)

from aicr.preflight.admission import claims
from aicr.preflight.admission.amounts import canonical, number
from aicr.preflight.admission.devices import devices, effective_after
from aicr.preflight.admission.pod import view

SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.covers("P11-15", "P11-16", "P11-20", "P-001", "P-176")
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(pod(container(limits={EFA: "1"})), id="network only"),
        pytest.param(pod(container(), initContainers=[gpu_container("1", "own")]), id="init only"),
        pytest.param(pod(gpu_container("0")), id="zero"),
        pytest.param(pod(gpu_container(0)), id="zero as a number"),
        pytest.param(pod(container(limits={"cpu": "4"})), id="cpu"),
        pytest.param(pod(container(limits={"nvidia.com/mig-1g.10gb": "1"})), id="another name"),
        pytest.param({"metadata": {}, "spec": {}}, id="no containers"),
        pytest.param({}, id="empty"),
        pytest.param(
            pod(container(), ephemeralContainers=[gpu_container("1", "debug")]), id="ephemeral"
        ),
    ],
)
def test_a_pod_without_gpus_passes_untouched(made: Any) -> None:
    """Neither patch nor warning, and whatever its annotation says."""
    reply = send(made)
    assert reply.allowed
    assert reply.response == {"uid": "u-1", "allowed": True}


@pytest.mark.covers("P11-18", "P11-19", "P11-21", "P11-24", "P11-28", "P-055")
@pytest.mark.parametrize(
    ("containers", "amounts"),
    [
        pytest.param([container(limits={GPU: "1"})], {GPU: "1"}, id="limits only"),
        pytest.param([container(requests={GPU: "1"})], {GPU: "1"}, id="requests only"),
        pytest.param([gpu_container("8000m")], {GPU: "8"}, id="8000m is 8"),
        pytest.param([gpu_container(8)], {GPU: "8"}, id="a number"),
        pytest.param([gpu_container("1000")], {GPU: "1k"}, id="canonical"),
        pytest.param([gpu_container("1Ki")], {GPU: "1Ki"}, id="binary"),
        pytest.param(
            [gpu_container("1"), container("c1", limits={EFA: "4"})],
            {GPU: "1", EFA: "4"},
            id="network beside GPUs",
        ),
    ],
)
def test_a_gpu_pod_gets_checks_with_its_devices(containers: Any, amounts: dict[str, str]) -> None:
    """Limits or requests make a GPU pod; checks ask for the devices as limit and request alike."""
    reply = send(pod(*containers))
    assert reply.order == [DCGM, LOOPBACK, ALLREDUCE]
    for name in reply.order:
        assert reply.amounts(name) == amounts


@pytest.mark.covers("P11-22", "P11-23", "I3")
@pytest.mark.parametrize(
    ("containers", "inits", "placement", "count", "effective"),
    [
        pytest.param([4, 4], [], "append", "8", 8, id="a: two containers"),
        pytest.param([4, 2], [], "append", "6", 6, id="total and not maximum"),
        pytest.param([6], [(2, SIDECAR)], "append", "6", 8, id="b: after the sidecar"),
        pytest.param([6], [(2, SIDECAR)], "prepend", "6", 8, id="b: before the sidecar"),
        pytest.param([8], [(8, {})], "append", "8", 8, id="c: own init container"),
        pytest.param([0], [(2, SIDECAR)], "append", "2", 2, id="only a sidecar"),
        pytest.param([0], [(2, SIDECAR), (2, SIDECAR)], "prepend", "4", 4, id="two sidecars"),
        pytest.param(["1k", "8"], [], "append", "1008", 1008, id="suffixes add up"),
    ],
)
def test_checks_test_all_gpus_and_never_raise_what_the_pod_reserves(
    containers: Any, inits: Any, placement: str, count: str, effective: int
) -> None:
    """The workload's total, and with the checks the scheduler reserves what it did without."""
    made = pod(
        *(gpu_container(amount, f"c{i}") for i, amount in enumerate(containers)),
        initContainers=[{**gpu_container(n, f"i{i}"), **x} for i, (n, x) in enumerate(inits)],
    )
    config = without_gangs(initContainerPlacement=placement)
    reply = send(made, config)
    assert reply.amounts(DCGM) == {GPU: count}
    before = devices(view(made), config.resources)
    after = devices(view(reply.pod), config.resources)
    assert before.effective(GPU) == after.effective(GPU) == effective


@pytest.mark.covers("P11-17")
def test_gpus_of_sidecars_alone_are_tested_before_the_sidecar_holds_them() -> None:
    """Decision 17: a sidecar's GPUs make a GPU pod; appended after it, a check would wait for ever."""
    made = pod(
        container(),
        initContainers=[
            {"name": "setup", "image": "s"},
            {**gpu_container("2", "proxy"), **SIDECAR},
        ],
    )
    reply = send(made)
    assert reply.order == ["setup", DCGM, LOOPBACK, ALLREDUCE, "proxy"]
    assert reply.paths[:3] == [f"/spec/initContainers/{i}" for i in (1, 2, 3)]
    assert any("only sidecars get GPUs" in warning for warning in reply.warnings)


@pytest.mark.covers("P11-25", "P-166")
def test_any_listed_resource_makes_a_gpu_pod_and_all_listed_are_copied() -> None:
    """MIG profiles and vendors' aliases work once they are listed."""
    mig = "nvidia.com/mig-1g.10gb"
    made = pod(container(limits={mig: "2", GPU: "1", "example.com/other": "1"}))
    reply = send(made, without_gangs(gpuResourceNames=[GPU, mig]))
    assert reply.amounts() == {mig: "2", GPU: "1"}


@pytest.mark.covers("P11-26", "P11-63")
@pytest.mark.parametrize(
    "more",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"subResource": "ephemeralcontainers"},
        {"kind": {"kind": "Deployment"}},
    ],
)
def test_only_the_creation_of_a_pod_is_looked_at(more: dict[str, Any]) -> None:
    """Updates, subresources and other kinds pass without a patch."""
    made = more.pop("object", pod())
    reply = send(made, **more)
    assert reply.response == {"uid": "u-1", "allowed": True}


@pytest.mark.covers("P11-29")
def test_a_pod_on_the_hosts_network_is_told_what_may_fail() -> None:
    """Injected as usual; DNS of the cluster and the shared port are named."""
    reply = send(pod(hostNetwork=True), prepared(), GANG)
    assert reply.order == [DCGM, LOOPBACK, ALLREDUCE]
    said = " ".join(reply.warnings)
    assert "ClusterFirstWithHostNet" in said
    assert "29500" in said
    assert send(pod(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")).warnings == []


def test_a_root_image_in_a_pod_that_forbids_root_is_warned_of() -> None:
    """The kubelet would refuse such a check; one that names a user is not warned of."""
    made = pod(securityContext={"runAsNonRoot": True})
    assert any("runAsNonRoot" in warning for warning in send(made).warnings)
    checks = [{"name": "c", "image": "x", "securityContext": {"runAsUser": 1000}}]
    assert send(made, without_gangs(initContainers=checks)).warnings == []


def test_a_static_pod_is_left_alone() -> None:
    """Its mirror is created after it runs; a changed mirror would be created for ever."""
    made = pod(annotations={"kubernetes.io/config.mirror": "x"})
    assert send(made).response == {"uid": "u-1", "allowed": True}


# --- resource claims -------------------------------------------------------------------------------


def claim_spec(*requests: Any) -> dict[str, Any]:
    """The specification of a claim."""
    return {"devices": {"requests": list(requests)}}


def exactly(name: str, device_class: str, **more: Any) -> dict[str, Any]:
    """A request as resource.k8s.io/v1 writes it."""
    return {"name": name, "exactly": {"deviceClassName": device_class, **more}}


GPUS = exactly("r0", "gpu.nvidia.com")


def dra_pod(*references: Any, **more: Any) -> dict[str, Any]:
    """A pod whose container uses *references* of claim ``g``."""
    return pod(
        {"name": "t", "image": "x", "resources": {"claims": list(references)}},
        resourceClaims=[{"name": "g", "resourceClaimTemplateName": "two-gpus"}],
        **more,
    )


@pytest.mark.covers("P11-27", "I1")
@pytest.mark.parametrize(
    ("references", "mirrored"),
    [
        ([{"name": "g"}], [{"name": "g"}]),
        ([{"name": "g", "request": "r0"}], [{"name": "g", "request": "r0"}]),
        (
            [{"name": "g", "request": "r0"}, {"name": "g", "request": "r1"}],
            [{"name": "g", "request": "r0"}, {"name": "g", "request": "r1"}],
        ),
        ([], [{"name": "g"}]),
    ],
)
def test_a_pod_with_gpus_by_claim_alone_shares_its_claim_with_the_checks(
    references: Any, mirrored: Any
) -> None:
    """The same claim, or the same requests of it; never a new one, and no extended resource."""
    reply = send(dra_pod(*references), facts=claims.Facts(gpu_claims=("g",)))
    assert reply.order == [DCGM, LOOPBACK, ALLREDUCE]
    for name in reply.order:
        resources = reply.check(name)["resources"]
        assert resources["claims"] == mirrored
        assert "limits" not in resources
        assert reply.amounts(name) == {}
    assert "resourceClaims" in reply.pod["spec"]
    assert send(dra_pod({"name": "g"})).patch == []


@pytest.mark.covers("I1")
@pytest.mark.parametrize(
    ("requests", "used", "gpu"),
    [
        pytest.param([GPUS], None, True, id="whole claim"),
        pytest.param([exactly("c", "compute-domain.nvidia.com")], None, False, id="another class"),
        pytest.param([exactly("a", "gpu.nvidia.com", adminAccess=True)], None, False, id="admin"),
        pytest.param(
            [{"name": "r", "deviceClassName": "gpu.nvidia.com"}], None, True, id="v1beta1"
        ),
        pytest.param([GPUS, exactly("n", "nic")], frozenset({"n"}), False, id="other request used"),
        pytest.param([GPUS, exactly("n", "nic")], frozenset({"r0"}), True, id="this request used"),
        pytest.param([], None, False, id="no request"),
    ],
)
def test_the_class_of_the_requests_in_use_decides(requests: Any, used: Any, gpu: bool) -> None:
    """Only a configured device class, without admin access, counts as GPUs."""
    assert claims.asks_for_gpus(claim_spec(*requests), used, ["gpu.nvidia.com"]) is gpu


@pytest.mark.parametrize(
    ("classes", "used", "gpu"),
    [
        (("gpu.nvidia.com", "gpu.nvidia.com"), None, True),
        (("gpu.nvidia.com", "cpu"), None, False),
        (("gpu.nvidia.com", "cpu"), frozenset({"r/a0"}), True),
        (("gpu.nvidia.com", "cpu"), frozenset({"r/a1"}), False),
        (("gpu.nvidia.com", "gpu.nvidia.com"), frozenset({"r"}), True),
    ],
)
def test_of_alternatives_all_that_may_be_used_must_be_gpus(
    classes: Any, used: Any, gpu: bool
) -> None:
    """A pod that may get something else may have nothing to test."""
    request = {
        "name": "r",
        "firstAvailable": [{"name": f"a{i}", "deviceClassName": c} for i, c in enumerate(classes)],
    }
    assert claims.asks_for_gpus(claim_spec(request), used, ["gpu.nvidia.com"]) is gpu


def test_a_claim_of_an_ordinary_init_container_alone_is_not_looked_up() -> None:
    """As with extended resources: what only an init container uses makes no GPU pod."""
    claimed = {"name": "own", "image": "x", "resources": {"claims": [{"name": "g"}]}}
    made = pod(
        container(),
        initContainers=[claimed],
        resourceClaims=[{"name": "g", "resourceClaimName": "c"}],
    )
    assert list(claims.sources(view(made))) == []
    sidecar = {**claimed, **SIDECAR}
    made["spec"]["initContainers"] = [sidecar]
    assert [source.name for source in claims.sources(view(made))] == ["c"]


@pytest.mark.covers("I4")
def test_a_resource_that_is_served_by_claim_is_warned_of() -> None:
    """Each init container would be given devices of its own, and the pod may never be scheduled."""
    classes = [
        {"metadata": {"name": "gpu.nvidia.com"}, "spec": {"extendedResourceName": GPU}},
        {"metadata": {"name": "nic.example"}, "spec": {}},
    ]
    backed = claims.backed_resources(classes)
    assert backed == {
        GPU: "gpu.nvidia.com",
        "deviceclass.resource.kubernetes.io/gpu.nvidia.com": "gpu.nvidia.com",
        "deviceclass.resource.kubernetes.io/nic.example": "nic.example",
    }
    reply = send(pod(), facts=claims.Facts(backed=backed))
    assert reply.order == [DCGM, LOOPBACK, ALLREDUCE]
    assert reply.warnings == [
        f"preflight: {GPU} is served by claim (DeviceClass gpu.nvidia.com): each check may be given "
        "devices of its own; a ResourceClaim in the pod is shared"
    ]


def test_effective_amounts_count_checks_where_they_stand() -> None:
    """The calculator knows that sidecars before a check hold their devices meanwhile."""
    made = pod(gpu_container(6), initContainers=[{**gpu_container(2, "s"), **SIDECAR}])
    found = devices(view(made), {GPU})
    assert effective_after(found, [{GPU: 8}], 1) == {GPU: 10}
    assert effective_after(found, [{GPU: 8}], 0) == {GPU: 8}


@pytest.mark.parametrize(
    ("text", "binary", "printed"),
    [
        ("0", False, "0"),
        ("1000", False, "1k"),
        ("1500", False, "1500"),
        ("2000000", False, "2M"),
        ("1024", True, "1Ki"),
        ("1Gi", True, "1Gi"),
        ("500m", False, "500m"),
        ("0.5", False, "500m"),
        ("1n", False, "1n"),
        ("0.1n", False, "1n"),
        ("1e3", False, "1k"),
    ],
)
def test_quantities_are_printed_as_kubernetes_prints_them(
    text: str, binary: bool, printed: str
) -> None:
    """The largest suffix that leaves a whole number; below a billionth it is rounded up."""
    assert canonical(number(text, "x"), binary=binary) == printed
