"""Subtypes of ``K8s`` that no cluster shows: facts of a cloud's control plane, from its own command line.

======  ===================  ======================================================
cloud   subtype              dump
======  ===================  ======================================================
AKS     aks-gpu-pools        ``az aks nodepool list -o json``
GKE     gke-gpu-pools        ``gcloud container node-pools list --format=json``
OKE     oke-addons           ``oci ce cluster list-addons --all --output json``
======  ===================  ======================================================

A dump that cannot be read fails the command before any cluster is touched: a wrong file must not look
like a cluster without GPU pools. What pools disagree on is `Mixed`, which no constraint accepts.

Pure but for `read`, which is given text. Source: recipe spec 8.3, 4.11; validators spec 1.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aicr.collectors.readings import K8S, Document, Scalar, subtype
from aicr.errors import invalid
from aicr.yamlio.jsontext import load_json

MIXED: Final = "Mixed"
#: Largest dump that is read, in bytes.
LARGEST: Final = 1024 * 1024

AKS: Final = "aks-gpu-pools"
GKE: Final = "gke-gpu-pools"
OKE: Final = "oke-addons"
#: Flag → subtype, and the variable that stands for the flag.
FLAGS: Final = {"--oke-addons": OKE, "--aks-gpu-pools": AKS, "--gke-gpu-pools": GKE}
VARIABLES: Final = {
    "--oke-addons": "AICR_OKE_ADDONS_PATH",
    "--aks-gpu-pools": "AICR_AKS_GPU_POOLS_PATH",
    "--gke-gpu-pools": "AICR_GKE_GPU_POOLS_PATH",
}

_AKS_FAMILIES: Final = ("standard_nc", "standard_nd", "standard_nv")
#: Sizes of those families whose accelerator is not NVIDIA's.
_AKS_OTHERS: Final = ("_mi300x", "_mi325x", "_v620", "_v710")
_OKE_PLUGIN: Final = "NvidiaGpuPlugin"


def read(kind: str, text: str, source: str) -> Document:
    """The subtype *kind* (AKS, GKE or OKE) from a dump.

    Raises:
        AicrError: INVALID_REQUEST if *text* is not such a dump.
    """
    if len(text.encode()) > LARGEST:
        raise invalid(f"{source} is larger than {LARGEST} bytes", where=source)
    projection: Callable[[Any, str], dict[str, Scalar]] = {AKS: aks, GKE: gke, OKE: oke}[kind]
    return subtype(kind, projection(load_json(text, source=source), source))


def merged(snapshot: Mapping[str, Any], subtypes: list[Document]) -> Document:
    """*snapshot* with provider subtypes in its ``K8s`` measurement, in place of what it had of them."""
    if not subtypes:
        return dict(snapshot)
    names = {one["subtype"] for one in subtypes}
    measurements = list(snapshot.get("measurements") or [])
    place = next((at for at, one in enumerate(measurements) if one.get("type") == K8S), None)
    own: Document = {"type": K8S, "subtypes": []} if place is None else measurements[place]
    kept = [one for one in own.get("subtypes") or [] if one.get("subtype") not in names]
    new = {**own, "subtypes": sorted([*kept, *subtypes], key=lambda one: str(one["subtype"]))}
    if place is None:
        measurements.insert(0, new)
    else:
        measurements[place] = new
    return {**snapshot, "measurements": measurements}


def aks(dump: Any, source: str) -> dict[str, Scalar]:
    """``aks-gpu-pools``: who installs the driver in each NVIDIA pool."""
    modes = {
        _pool_name(pool, source): _aks_mode(pool, source)
        for pool in _pools(dump, source, "az aks nodepool list -o json")
        if _is_aks_gpu(pool, source)
    }
    return _pool_readings(modes, "gpu-driver")


def _is_aks_gpu(pool: Mapping[str, Any], source: str) -> bool:
    size = pool.get("vmSize")
    if not isinstance(size, str) or not size:
        raise _wrong(
            source, f"pool {_pool_name(pool, source)} has no vmSize", "az aks nodepool list"
        )
    size = size.lower()
    return size.startswith(_AKS_FAMILIES) and not any(mark in size for mark in _AKS_OTHERS)


def _aks_mode(pool: Mapping[str, Any], source: str) -> str:
    profile = pool.get("gpuProfile")
    if profile is None:
        # The documented default of a pool that says nothing.
        return "Install"
    if not isinstance(profile, Mapping):
        raise _wrong(source, f"gpuProfile of pool {_pool_name(pool, source)} is no map", "az")
    managed = profile.get("nvidia")
    if isinstance(managed, Mapping) and managed.get("managementMode") != "Unmanaged":
        return "Managed"
    return str(profile.get("driver") or "Install")


def gke(dump: Any, source: str) -> dict[str, Scalar]:
    """``gke-gpu-pools``: which driver GKE installs in each GPU pool."""
    modes = {}
    for pool in _pools(dump, source, "gcloud container node-pools list --format=json"):
        accelerators = (pool.get("config") or {}).get("accelerators") or []
        versions = {
            str(
                (one.get("gpuDriverInstallationConfig") or {}).get("gpuDriverVersion")
                or "GPU_DRIVER_VERSION_UNSPECIFIED"
            )
            for one in accelerators
        }
        if versions:
            modes[_pool_name(pool, source)] = versions.pop() if len(versions) == 1 else MIXED
    return _pool_readings(modes, "gpu-driver-installation")


def oke(dump: Any, source: str) -> dict[str, Scalar]:
    """``oke-addons``: whether OKE's add-on for the GPU device plugin is installed."""
    command = "oci ce cluster list-addons --all --output json"
    entries = dump.get("data") if isinstance(dump, Mapping) else None
    if not isinstance(entries, list) or not all(isinstance(one, Mapping) for one in entries):
        raise _wrong(source, "it has no list under data", command)
    states = [
        str(one.get("lifecycle-state") or "") for one in entries if one.get("name") == _OKE_PLUGIN
    ]
    if len(states) > 1:
        raise _wrong(source, f"it names {_OKE_PLUGIN} {len(states)} times", command)
    if not states:
        reading = "absent"
    elif states[0] == "ACTIVE":
        reading = "installed"
    else:
        reading = f"addon-{states[0].lower() or 'unknown'}"
    return {"addon-count": len(entries), "nvidia-gpu-plugin": reading}


def _pool_readings(modes: Mapping[str, str], key: str) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {"gpu-pool-count": len(modes)}
    if modes:
        found["gpu-pools"] = ",".join(f"{name}={modes[name]}" for name in sorted(modes))
        different = set(modes.values())
        found[key] = different.pop() if len(different) == 1 else MIXED
    return found


def _pools(dump: Any, source: str, command: str) -> list[Mapping[str, Any]]:
    if not isinstance(dump, list) or not all(isinstance(pool, Mapping) for pool in dump):
        raise _wrong(source, "it is no list of node pools", command)
    names = [_pool_name(pool, source) for pool in dump]
    if len(set(names)) != len(names):
        raise _wrong(source, "two pools have one name", command)
    return dump


def _pool_name(pool: Mapping[str, Any], source: str) -> str:
    name = pool.get("name")
    if not isinstance(name, str) or not name:
        raise _wrong(source, "a pool has no name", "the cloud's command line")
    return name


def _wrong(source: str, why: str, command: str) -> Any:
    return invalid(f"not such a dump: {why}", where=source, hint=f"make it with: {command}")
