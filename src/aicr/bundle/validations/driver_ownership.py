"""Who brings the GPU driver, and where it lies: one story for all components (bundler spec 6.4.7).

```
toggles of the operator ──► rule A: nobody brings a driver to nodes that have none
driverInstallDir ─┐
toggles ──────────┴───────► rule B: the DRA driver looks where the driver is
```

A value that is given at install time could tell another story than the one judged here, so the
deciding ones must be static. What cannot be read stops the rules that would have to trust it.
"""

from __future__ import annotations

import posixpath

from aicr.bundle.validations.effective import ABSENT, BROKEN, Finding, look, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from aicr.bundle.validations.effective import Context, Verdict

DRIVER: Final = "driver.enabled"
TOOLKIT: Final = "toolkit.enabled"
INSTALL_DIR: Final = "hostPaths.driverInstallDir"
DRIVER_ROOT: Final = "nvidiaDriverRoot"

#: Where the operator mounts the root of its driver container unless told otherwise.
CONTAINER_ROOT: Final = "/run/nvidia/driver"

_DRA_DRIVERS: Final = ("nvidia-dra-driver-gpu", "nvidia-dra-driver-gpu-ocp")
_INSTALLER: Final = "gcp-driver-installer"
_INSTALLER_ON: Final = "installer.enabled"
_STATES: Final = ("preinstalled", "absent")


def driver_ownership(context: Context) -> Verdict:
    """Somebody brings the GPU driver, and the DRA driver looks for it where it will be.

    Nodes seen without a driver (``metadata.gpuDriverState: absent``) need one from the bundle. When
    the operator manages the driver, ``nvidiaDriverRoot`` of the DRA driver equals the operator's
    ``hostPaths.driverInstallDir``; with a preinstalled driver it is not ``/run/nvidia/driver``.

    Remedy: set ``driver.enabled`` and ``toolkit.enabled`` of the operator to match the nodes, and
    ``nvidiaDriverRoot`` to match both; with a profile, choose its other value.
    """
    values = context.values()
    found = _dynamic(context)
    trusted = not found
    state = context.metadata.get("gpuDriverState") or ""
    if state and state not in _STATES:
        found.append(
            Finding(
                f"{context.name}: the recipe records the GPU driver as "
                f"{shown(state)}, which is neither {' nor '.join(_STATES)}",
                "generate the recipe again from a snapshot of the cluster",
            )
        )
    toggles, broken = _toggles(context.name, values)
    if broken:
        return found + broken, []
    managed = toggles[DRIVER]
    if state == "absent" and not (managed and toggles[TOOLKIT]) and not _installed(context):
        off = " and ".join(path for path in (DRIVER, TOOLKIT) if not toggles[path])
        found.append(
            Finding(
                f"{context.name}: the snapshot saw no NVIDIA driver on the nodes, but {off} "
                f"{'is' if ' and ' not in off else 'are'} false, as if they had one",
                _remedy(context),
            )
        )
    directory = look(values, INSTALL_DIR)
    problem = _directory_problem(directory)
    if problem:
        found.append(
            Finding(
                f"{context.name}: {INSTALL_DIR} {problem}",
                f"give an absolute path, or leave it out for {CONTAINER_ROOT}",
            )
        )
        trusted = False
    if trusted:
        installed_at = clean(directory) if isinstance(directory, str) and directory else ""
        for name in _DRA_DRIVERS:
            if name in context.rendered:
                found += _root(context, name, managed, installed_at or CONTAINER_ROOT)
    return found, []


def clean(path: str) -> str:
    """A path without doubled slashes and dots; nothing is looked up.

    >>> clean("//run/./nvidia/driver/")
    '/run/nvidia/driver'
    """
    text = posixpath.normpath(path)
    return "/" + text.lstrip("/") if text.startswith("/") else text


def _dynamic(context: Context) -> list[Finding]:
    return [
        Finding(
            f"{context.name}: {path} is given at install time, so nobody can say now who brings "
            f"the driver and where it will be",
            f"drop --dynamic for it; set it now: --set {context.name}:{path}=…",
        )
        for path in (DRIVER, TOOLKIT, INSTALL_DIR)
        if context.is_dynamic(path)
    ]


def _toggles(name: str, values: Mapping[str, Any]) -> tuple[dict[str, bool], list[Finding]]:
    """Both switches; an absent one is on, as in the chart."""
    toggles: dict[str, bool] = {}
    broken: list[Finding] = []
    for path in (DRIVER, TOOLKIT):
        value = look(values, path)
        if value is ABSENT or isinstance(value, bool):
            toggles[path] = value is not False
            continue
        section = path.partition(".")[0]
        broken.append(
            Finding(
                f"{name}: {path} cannot be read: {section} is {shown(values.get(section))}"
                if value is BROKEN
                else f"{name}: {path} is {shown(value)}, not true or false",
                f"set it: --set-json '{name}:{section}={{\"enabled\": true}}', or false",
            )
        )
    return toggles, broken


def _installed(context: Context) -> bool:
    """Whether a component of the bundle other than the operator surely installs the driver."""
    if _INSTALLER not in context.rendered or context.is_dynamic(_INSTALLER_ON, _INSTALLER):
        return False
    return look(context.values(_INSTALLER), _INSTALLER_ON) is True


def _directory_problem(directory: Any) -> str:
    if directory is ABSENT or directory == "":
        return ""
    if directory is BROKEN or not isinstance(directory, str):
        return f"is {shown(directory)}, not a path"
    if not directory.startswith("/"):
        return f"is {shown(directory)}, a relative path"
    if clean(directory) == "/":
        return "is the root of the node, which a driver container must not be mounted on"
    return ""


def _root(context: Context, name: str, managed: bool, directory: str) -> list[Finding]:
    """Rule B for one DRA driver: its root is where the driver will be."""
    root = look(context.values(name), DRIVER_ROOT)
    wanted = directory if managed else "/"
    remedy = f"set it: --set {name}:{DRIVER_ROOT}={wanted}"
    if not managed:
        remedy += ", or wherever the node image keeps its driver"
    problem = ""
    if context.is_dynamic(DRIVER_ROOT, name):
        problem = "is given at install time, so nobody can say now whether the driver is there"
        remedy = f"drop --dynamic for it, and {remedy}"
    elif root is ABSENT:
        if managed:
            problem = f"is not set, but {context.name} puts the driver at {directory}"
    elif not isinstance(root, str) or not root.startswith("/"):
        problem = f"is {shown(root)}, not an absolute path"
    elif managed and clean(root) != directory:
        problem = f"is {root}, but {context.name} puts the driver at {directory} ({INSTALL_DIR})"
    elif not managed and clean(root) == CONTAINER_ROOT:
        problem = (
            f"is {root}, which only a driver container fills, and {context.name} runs none "
            f"({DRIVER} is false)"
        )
    return [Finding(f"{name}: {DRIVER_ROOT} {problem}", remedy)] if problem else []


def _remedy(context: Context) -> str:
    """How to get a driver onto the nodes, in the words of the provider."""
    service, os = context.criteria.get("service"), context.criteria.get("os")
    switch = f"--set {context.name}:{DRIVER}=true --set {context.name}:{TOOLKIT}=true"
    profile = bool(context.profile("gpuStack"))
    if service == "aks" and profile:
        return (
            "generate the recipe with --profile gpuStack=operator-managed, or make node pools "
            "with --gpu-driver Install and take the snapshot again"
        )
    if service == "aks":
        return f"let the operator bring it: {switch}; or make node pools with --gpu-driver Install"
    if service == "gke" and os == "cos":
        return (
            "generate the recipe with --profile gpuStack=bundle-installer, or let GKE install "
            "drivers (gpu-driver-version=default) and take the snapshot again"
        )
    if service == "gke" and os == "ubuntu":
        return (
            "let GKE install drivers (gpu-driver-version=default) and take the snapshot again, or "
            f"let the operator bring it: {switch}"
        )
    if service == "gke":
        return (
            "generate the recipe with --os cos or --os ubuntu: who may install the driver on GKE "
            "depends on the node image"
        )
    if service == "oke" and profile:
        return "generate the recipe with --profile gpuStack=operator-managed"
    if service == "ocp":
        return f"only the operator brings drivers to OpenShift nodes: {switch}"
    return (
        f"let the operator bring it: {switch}; or install a driver on the nodes and take the "
        f"snapshot again"
    )
