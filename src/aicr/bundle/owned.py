"""Value paths that the recipe owns, so that no override may touch them.

A recipe may carry a choice that several components have to agree on: a profile, an accounting
mode, a network mapping. The values behind such a choice are owned: changing one alone would leave
the others telling a different story (bundler spec 0.6, 0.8). The choice is changed where it was
made, in the recipe.

Separate from ownership, ``allocation_notes`` points out overrides that decide who hands out GPUs.
"""

from __future__ import annotations

from aicr.errors import invalid
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from aicr.bundle.overrides import Override
    from aicr.recipe.types import RecipeResult

    OwnedPaths = dict[str, list[str]]

DISABLED: Final = "disabled"
AICR_PROVIDED: Final = "aicr-provided"

_SLURM: Final = "slinky-slurm"
_ACCOUNTING: Final = "accounting.enabled"

#: What aicr-provided accounting fixes on both sides of the database connection.
_PROVIDED_PATHS: Final[OwnedPaths] = {
    _SLURM: [
        "enabled",
        _ACCOUNTING,
        "accounting.storageConfig.host",
        "accounting.storageConfig.port",
        "accounting.storageConfig.database",
        "accounting.storageConfig.username",
        "accounting.storageConfig.passwordKeyRef",
    ],
    "mariadb-operator-crds": ["enabled"],
    "mariadb-operator": ["enabled"],
    "slurm-accounting-mariadb": [
        "enabled",
        "fullnameOverride",
        "namespaceOverride",
        "mariadb.rootPasswordSecretKeyRef",
        "mariadb.username",
        "mariadb.database",
        "mariadb.passwordSecretKeyRef",
        "mariadb.cleanupPolicy",
        "users",
        "databases",
        "grants",
    ],
}

#: Which mechanism advertises GPUs: the device plugin or the DRA driver (bundler spec 0.3, step 6).
ALLOCATION_PATHS: Final[OwnedPaths] = {
    "gpu-operator": ["enabled", "devicePlugin.enabled"],
    "gpu-operator-ocp": ["enabled", "devicePlugin.enabled"],
    "nvidia-dra-driver-gpu": [
        "enabled",
        "resources.gpus.enabled",
        "gpuResourcesEnabledOverride",
    ],
}


def configuration_paths(recipe: RecipeResult) -> list[tuple[str, OwnedPaths]]:
    """The owned paths of each configuration of the recipe, with the configuration's own path."""
    configuration = recipe.get("configuration") or {}
    found: list[tuple[str, OwnedPaths]] = []
    accounting = (configuration.get("slurm") or {}).get("accounting") or {}
    mode = accounting.get("mode")
    if mode == AICR_PROVIDED:
        found.append(("slurm.accounting.mode", _PROVIDED_PATHS))
    elif mode:
        owned = [_ACCOUNTING] if mode == DISABLED else ["enabled", _ACCOUNTING]
        found.append(("slurm.accounting.mode", {_SLURM: owned}))
    if (configuration.get("gke") or {}).get("tcpxoInterfaces"):
        found.append(("gke.tcpxoInterfaces", {"kubeflow-trainer": ["tcpxoInterfaces"]}))
    return found


def check_configuration(recipe: RecipeResult, overrides: Iterable[Override]) -> None:
    """Refuse overrides at, above or below a path that the recipe's configuration owns.

    Raises:
        AicrError: INVALID_REQUEST naming the configuration (bundler spec 0.6).
    """
    rules = configuration_paths(recipe)
    for override in _in_order(overrides):
        for name, owned in rules:
            path = touched(override, owned)
            if path:
                raise invalid(
                    f'{override.label} is not allowed: "{path}" of component '
                    f'"{override.component}" is owned by configuration.{name} of the recipe',
                    where=override.flag,
                    hint="choose another value of that configuration when the recipe is generated",
                )


def check_left_out(recipe: RecipeResult, left_out: Iterable[str]) -> None:
    """Refuse to leave out a component that the recipe's configuration needs.

    Args:
        recipe: for its configuration.
        left_out: components that the ``bundlers`` filter does not name.

    Raises:
        AicrError: INVALID_REQUEST naming the configuration (bundler spec 0.6).
    """
    rules = configuration_paths(recipe)
    for component in sorted(left_out):
        for name, owned in rules:
            if "enabled" in owned.get(component, ()):
                raise invalid(
                    f'the bundlers filter leaves out component "{component}", which '
                    f"configuration.{name} of the recipe needs",
                    where="bundlers",
                    hint=f"add {component} to the filter",
                )


def check_profile(recipe: RecipeResult, overrides: Iterable[Override]) -> None:
    """Refuse overrides at, above or below a path that the selected profile owns.

    Raises:
        AicrError: INVALID_REQUEST naming the profile (bundler spec 0.8).
    """
    profile = (recipe.get("metadata") or {}).get("selectedProfile")
    if not profile:
        return
    choice = f"{profile['name']}={profile['value']}"
    owned = profile.get("ownedPaths") or {}
    for override in _in_order(overrides):
        path = touched(override, owned)
        if path:
            raise invalid(
                f'{override.label} is not allowed: "{path}" of component "{override.component}" is '
                f"owned by the profile {choice}",
                where=override.flag,
                hint=f"generate the recipe with another value: --profile {profile['name']}=…",
            )


def allocation_notes(overrides: Iterable[Override]) -> list[str]:
    """Notes on overrides that change which mechanism allocates GPUs."""
    return [
        f"{override.label} changes which mechanism allocates GPUs; checks that follow the recipe's "
        f"own policy judge the changed cluster"
        for override in _in_order(overrides)
        if touched(override, ALLOCATION_PATHS)
    ]


def touched(override: Override, owned: OwnedPaths) -> str:
    """The owned path that an override lies at, above or below; "" for none."""
    for path in owned.get(override.component) or ():
        if paths.conflict(override.segments, paths.split(path)):
            return path
    return ""


def _in_order(overrides: Iterable[Override]) -> list[Override]:
    return sorted(overrides, key=lambda item: (item.typed, item.component, item.path))
