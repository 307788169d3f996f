"""The helm deployer: numbered folders and one deploy.sh that installs them one after another.

```
plan -> folders (layout) -> deploy.sh, README.md -> root files (info)
```
Order is the folder order alone, so `--serial` changes nothing here (requirements C-126, C-134). The
text of the script is in ``helm_script``; this module decides the facts that go into its head.
Source: bundler spec 5.0, 5.1.
"""

from __future__ import annotations

from aicr.bundle import info, layout, readme
from aicr.bundle.crd_groups import CRD_GROUPS, NODEWRIGHT
from aicr.bundle.deployers import helm_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Component, Plan

NAME: Final = "helm"
BUILD_TYPE: Final = "helm-bundle"
ENTRYPOINT: Final = "deploy.sh"
STEPS: Final = ("cd <output folder>", "chmod +x deploy.sh", "./deploy.sh")

#: Components whose driver the GPU operator may own: installing them restarts a DaemonSet.
_GPU_OPERATORS: Final = ("gpu-operator", "gpu-operator-ocp")
_TAINT_PATH: Final = ("controllerManager", "manager", "env", "runtimeRequiredTaint")


def generate(
    recipe: dict[str, Any],
    plan: Plan,
    *,
    options: BundleOptions | None = None,
    folders: list[Folder] | None = None,
) -> dict[str, tuple[bytes, int]]:
    """The complete file set of a helm bundle: relative path -> (bytes, mode).

    Args:
        recipe: the recipe of this bundle after filtering, written to recipe.yaml.
        plan: the components to install, in deployment order.
        options: the flags of the run, for bundle-info.yaml and `data/`.
        folders: the folders of the plan, when the caller has made them already.

    Raises:
        AicrError: INVALID_REQUEST as ``layout.folders`` does.
    """
    if folders is None:
        folders = layout.folders(plan)
    files: dict[str, tuple[bytes, int]] = {}
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
                f"helm uninstall {folder.release} --namespace {folder.namespace}"
                for folder in reversed(folders)
            ],
            files={
                ENTRYPOINT: "installs or upgrades everything, in order; safe to run again",
                info.RECIPE: "the recipe that this bundle was made from",
                info.BUNDLE_INFO: "how it was made, and its releases, for programs",
                "checksums.txt": "SHA-256 of each file",
            },
        ),
        info.MODE,
    )
    return info.complete(
        files,
        recipe=recipe,
        folders=folders,
        deployer=NAME,
        entrypoint=ENTRYPOINT,
        manifest="install.sh",
        options=options,
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
        node_taint=_node_taint(nodewright) if nodewright is not None else "",
        node_taint_namespace=nodewright.namespace if nodewright is not None else "",
        notes=list(plan.notes),
    )


def _manages_driver(operator: Component) -> bool:
    """Whether the operator installs the driver: it does unless told otherwise (bundler spec
    4.2)."""
    driver = operator.values.get("driver")
    return not (isinstance(driver, dict) and driver.get("enabled") is False)


def _node_taint(nodewright: Component) -> str:
    held: Any = nodewright.values
    for key in _TAINT_PATH:
        held = held.get(key) if isinstance(held, dict) else None
    return held if isinstance(held, str) and held else helm_script.NODEWRIGHT_TAINT
