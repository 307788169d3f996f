"""Facts of a cloud's control plane: dumps of its command line become readings, or the command fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aicr.collectors import projections
from aicr.constraints import paths
from aicr.errors import INVALID_REQUEST, AicrError


def read(kind: str, dump: Any) -> dict[str, Any]:
    """The readings of a dump."""
    found: dict[str, Any] = projections.read(kind, json.dumps(dump), "dump.json")["data"]
    return found


def pool(name: str, size: str = "Standard_ND96isr_H100_v5", **fields: Any) -> dict[str, Any]:
    """An AKS pool."""
    return {"name": name, "vmSize": size, **fields}


@pytest.mark.parametrize(
    ("profile", "mode"),
    [
        (None, "Install"),
        ({"driver": "Install"}, "Install"),
        ({"driver": "None"}, "None"),
        ({"driver": "Strange"}, "Strange"),
        ({"driver": None}, "Install"),
        ({"nvidia": {"managementMode": "Managed"}}, "Managed"),
        ({"nvidia": {}}, "Managed"),
        ({"nvidia": {"managementMode": "Unmanaged"}, "driver": "None"}, "None"),
    ],
)
def test_an_aks_pool_says_who_installs_the_driver(profile: Any, mode: str) -> None:
    """Absent is the documented default; managed pools are their own mode."""
    assert read(projections.AKS, [pool("gpu1", gpuProfile=profile)]) == {
        "gpu-pool-count": 1,
        "gpu-pools": f"gpu1={mode}",
        "gpu-driver": mode,
    }


def test_aks_pools_that_disagree_are_mixed_and_listed_in_order() -> None:
    """No constraint accepts Mixed."""
    dump = [pool("z"), pool("a", gpuProfile={"driver": "None"}), pool("cpu", "Standard_D4s_v5")]
    assert read(projections.AKS, dump) == {
        "gpu-pool-count": 2,
        "gpu-pools": "a=None,z=Install",
        "gpu-driver": "Mixed",
    }


@pytest.mark.parametrize(
    "size",
    [
        "Standard_NG32ads_V620_v1",
        "Standard_ND96isr_MI300X_v5",
        "Standard_NV28adms_V710_v5",
        "Standard_D4s_v5",
    ],
)
def test_pools_without_nvidia_gpus_are_no_gpu_pools(size: str) -> None:
    """Without one the driver reading is absent, and a constraint on it fails."""
    assert read(projections.AKS, [pool("p", size)]) == {"gpu-pool-count": 0}


def test_gke_pools_say_which_driver_is_installed() -> None:
    """Verbatim; a pool that says nothing reads as unspecified."""

    def gke(name: str, *versions: str | None) -> dict[str, Any]:
        accelerators = [
            {"gpuDriverInstallationConfig": {"gpuDriverVersion": one}} if one else {}
            for one in versions
        ]
        return {"name": name, "config": {"accelerators": accelerators}}

    dump = [gke("a", "LATEST"), gke("b", None), {"name": "cpu", "config": {}}]
    assert read(projections.GKE, dump) == {
        "gpu-pool-count": 2,
        "gpu-pools": "a=LATEST,b=GPU_DRIVER_VERSION_UNSPECIFIED",
        "gpu-driver-installation": "Mixed",
    }
    assert read(projections.GKE, [gke("a", "LATEST", "DEFAULT")])["gpu-pools"] == "a=Mixed"


@pytest.mark.parametrize(
    ("addons", "reading"),
    [
        ([], "absent"),
        ([("CertManager", "ACTIVE")], "absent"),
        ([("NvidiaGpuPlugin", "ACTIVE")], "installed"),
        ([("NvidiaGpuPlugin", "DELETING")], "addon-deleting"),
        ([("NvidiaGpuPlugin", "")], "addon-unknown"),
    ],
)
def test_an_oke_cluster_says_whether_its_plugin_is_installed(
    addons: list[tuple[str, str]], reading: str
) -> None:
    """Only an active add-on is installed; every other state is named."""
    dump = {"data": [{"name": name, "lifecycle-state": state} for name, state in addons]}
    assert read(projections.OKE, dump) == {
        "addon-count": len(addons),
        "nvidia-gpu-plugin": reading,
    }


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (projections.AKS, "{}"),
        (projections.AKS, "[1]"),
        (projections.AKS, '[{"vmSize": "Standard_NC4"}]'),
        (projections.AKS, '[{"name": "a"}]'),
        (projections.AKS, '[{"name": "a", "vmSize": "Standard_NC4", "gpuProfile": 3}]'),
        (
            projections.AKS,
            '[{"name": "a", "vmSize": "Standard_D2"}, {"name": "a", "vmSize": "Standard_D2"}]',
        ),
        (projections.AKS, '[{"name": "a"'),
        (projections.GKE, '{"pools": []}'),
        (projections.OKE, "[]"),
        (projections.OKE, '{"data": {}}'),
        (
            projections.OKE,
            '{"data": [{"name": "NvidiaGpuPlugin"}, {"name": "NvidiaGpuPlugin"}]}',
        ),
        (projections.OKE, " " * (projections.LARGEST + 1)),
    ],
    ids=[
        *("map", "no-pool", "no-name", "no-size", "profile", "twice", "cut", "gke-map"),
        *("oke-list", "oke-map", "oke-twice", "large"),
    ],
)
def test_a_wrong_dump_fails_instead_of_reading_as_nothing(kind: str, text: str) -> None:
    """INVALID_REQUEST names the file; "no GPU pools" must not come of a mistake."""
    with pytest.raises(AicrError) as caught:
        projections.read(kind, text, "dump.json")
    assert caught.value.code == INVALID_REQUEST
    assert "dump.json" in str(caught.value)


def test_projections_join_the_k8s_measurement_and_replace_what_it_had() -> None:
    """The snapshot that was handed in stays as it is."""
    old = {"subtype": "oke-addons", "data": {"nvidia-gpu-plugin": "absent"}}
    snapshot = {
        "kind": "Snapshot",
        "measurements": [
            {"type": "OS", "subtypes": []},
            {"type": "K8s", "subtypes": [{"subtype": "server", "data": {}}, old]},
        ],
    }
    before = json.dumps(snapshot)
    new = projections.read(
        projections.OKE,
        '{"data": [{"name": "NvidiaGpuPlugin", "lifecycle-state": "ACTIVE"}]}',
        "x",
    )
    merged = projections.merged(snapshot, [new])
    path = paths.parse("K8s.oke-addons.nvidia-gpu-plugin")
    assert paths.extract(merged, path) == "installed"
    assert [one["subtype"] for one in merged["measurements"][1]["subtypes"]] == [
        "oke-addons",
        "server",
    ]
    assert json.dumps(snapshot) == before
    alone = projections.merged({"measurements": []}, [new])
    assert paths.extract(alone, path) == "installed"
