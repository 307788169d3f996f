"""The helm deployer: numbered folders and one deploy.sh that installs them one after another.

```
plan -> folders (layout) -> deploy.sh, README.md -> root files (info)
```
Order is the folder order alone, so `--serial` changes nothing here (requirements C-126, C-134). The
text of the script is in ``helm_script``; this module decides the facts that go into its head.
Source: bundler spec 5.0, 5.1.
"""

from __future__ import annotations

from aicr.bundle import info, readme
from aicr.bundle.crd_groups import (
    CRD_GROUPS,
    NODEWRIGHT,
    NODEWRIGHT_TAINT,
    NODEWRIGHT_TAINT_018,
)
from aicr.bundle.deployers import helm_script, waiting
from aicr.errors import AicrError
from aicr.values import versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.deployers import Files
    from aicr.bundle.layout import Folder
    from aicr.bundle.plan import Component, Plan

NAME: Final = "helm"
BUILD_TYPE: Final = "helm-bundle"
ENTRYPOINT: Final = "deploy.sh"
STEPS: Final = ("cd <output folder>", "chmod +x deploy.sh", "./deploy.sh")

#: Components whose driver the GPU operator may own: installing them restarts a DaemonSet.
_GPU_OPERATORS: Final = ("gpu-operator", "gpu-operator-ocp")
#: The version of nodewright that renamed its taint.
_RENAMED: Final = (0, 18)
_TAINT_PATH: Final = ("controllerManager", "manager", "env", "runtimeRequiredTaint")


def generate(plan: Plan, folders: list[Folder]) -> Files:
    """The complete file set of a helm bundle: relative path -> (bytes, mode)."""
    files: Files = {}
    for folder in folders:
        for path, content in folder.files.items():
            files[f"{folder.dir}/{path}"] = content
    files[ENTRYPOINT] = (helm_script.deploy_sh(script_facts(plan, folders)), 0o755)
    files[info.README] = (
        readme.readme(
            plan,
            folders,
            deploy=("./deploy.sh --help", "./deploy.sh"),
            uninstall=[
                # An operator must not go before the objects that only it can let go of.
                f"helm uninstall {folder.release} --namespace {folder.namespace} "
                f"--wait --timeout {waiting.TEARDOWN}"
                for folder in reversed(folders)
            ],
            files={
                ENTRYPOINT: "installs or upgrades everything, in order; safe to run again",
            },
        ),
        info.MODE,
    )
    return info.complete(
        files, plan, folders, deployer=NAME, entrypoint=ENTRYPOINT, manifest="install.sh"
    )


def script_facts(plan: Plan, folders: list[Folder]) -> helm_script.Facts:
    """What deploy.sh must know of this bundle."""
    by_name = {component.name: component for component in plan.components}
    nodewright = by_name.get(NODEWRIGHT)
    return helm_script.Facts(
        folders=[(f.dir, f.release, f.namespace, f.parent, f.phase) for f in folders],
        crd_groups=[
            (group, component.name, component.namespace)
            for component in plan.components
            for group in CRD_GROUPS.get(component.name, ())
        ],
        driver_managed=any(
            _manages_driver(by_name[name]) for name in _GPU_OPERATORS if name in by_name
        ),
        node_taints=_node_taints(nodewright) if nodewright is not None else [],
        node_taint_namespace=nodewright.namespace if nodewright is not None else "",
        notes=list(plan.notes),
    )


def _manages_driver(operator: Component) -> bool:
    """Whether the operator installs the driver: it does unless told otherwise (bundler spec
    4.2)."""
    driver = operator.values.get("driver")
    return not (isinstance(driver, dict) and driver.get("enabled") is False)


def _node_taints(nodewright: Component) -> list[str]:
    """The taints that nodewright takes from nodes once they are ready, each once."""
    held: Any = nodewright.values
    for key in _TAINT_PATH:
        held = held.get(key) if isinstance(held, dict) else None
    renamed = _is_renamed(nodewright)
    usual = NODEWRIGHT_TAINT_018 if renamed else NODEWRIGHT_TAINT
    taints = [held if isinstance(held, str) and held else usual]
    if renamed and NODEWRIGHT_TAINT not in taints:
        taints.append(NODEWRIGHT_TAINT)
    return taints


def _is_renamed(nodewright: Component) -> bool:
    """Whether the chart has the taint's newer spelling; one without a version is the newest."""
    try:
        version = versions.parse(nodewright.ref.get("version") or "")
    except AicrError:
        return True
    return version.numbers >= _RENAMED
