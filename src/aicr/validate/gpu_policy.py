"""How a recipe hands out GPUs, read off its components' final values: what checks hold the cluster to.

```
device-plugin-extended-resource   nvidia.com/gpu, advertised by the device plugin
dra-resource-claim                claims on ResourceSlices of the DRA driver
unspecified                       there is no recipe: each check goes by what it finds
```

Values that contradict each other are refused: two advertisers of one GPU, or none, cannot be
validated as either. Pure. Source: validators spec 5.5 (resolution).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aicr.checks.sdk.allocation import DEVICE_PLUGIN, DRA_CLAIM, UNSPECIFIED
from aicr.errors import AicrError, invalid

__all__ = ["DEVICE_PLUGIN", "DRA_CLAIM", "UNSPECIFIED", "resolve_policy"]

EXTERNAL: Final = "external"
DRIVERS: Final = ("nvidia-dra-driver-gpu", "nvidia-dra-driver-gpu-ocp")
OPERATORS: Final = ("gpu-operator", "gpu-operator-ocp")

_GPUS: Final = ("resources", "gpus", "enabled")
_OVERRIDE: Final = ("gpuResourcesEnabledOverride",)
_PLUGIN: Final = ("devicePlugin", "enabled")


def resolve_policy(
    values: Mapping[str, Mapping[str, Any]], *, advertiser: str = ""
) -> tuple[str, list[str]]:
    """The policy of a recipe, and warnings.

    Args:
        values: final values of each *enabled* component, by name.
        advertiser: ``metadata.selectedProfile.advertiser``: ``external`` when the provider's own
            device plugin advertises the GPUs, else "".

    Raises:
        AicrError: INVALID_REQUEST for values that contradict each other or are no booleans.
    """
    if advertiser not in ("", EXTERNAL):
        raise invalid(
            f'unknown GPU advertiser "{advertiser}"',
            where="metadata.selectedProfile.advertiser",
            hint=f"{EXTERNAL}, or none",
        )
    driver = next((name for name in DRIVERS if name in values), "")
    gpus = _flag(values[driver], _GPUS, driver) if driver else None
    override = bool(driver and _flag(values[driver], _OVERRIDE, driver))
    operators = [name for name in OPERATORS if name in values]
    warnings = []
    if len(operators) > 1 and not advertiser:
        warnings.append(
            f"{operators[0]} and {operators[1]} are both enabled; {operators[0]} decides"
        )
    considered = operators if advertiser else operators[:1]
    plugins = [name for name in considered if _flag(values[name], _PLUGIN, name) is not False]
    if driver and gpus is None:
        raise _contradiction(f"{driver} is enabled and does not say resources.gpus.enabled", driver)
    if gpus and not override:
        raise _contradiction(
            f"{driver} has resources.gpus.enabled true and gpuResourcesEnabledOverride false",
            driver,
        )
    if gpus is False and override:
        raise _contradiction(
            f"{driver} has resources.gpus.enabled false and gpuResourcesEnabledOverride true, which "
            f"waives nothing",
            driver,
        )
    if gpus and (plugins or advertiser):
        who = plugins[0] if plugins else "the provider's device plugin"
        raise _contradiction(f"{driver} and {who} both advertise the GPUs", driver)
    if advertiser and plugins:
        raise _contradiction(
            f"{plugins[0]} and the provider's device plugin both advertise the GPUs", plugins[0]
        )
    if gpus:
        return DRA_CLAIM, warnings
    if not advertiser and not plugins:
        raise _contradiction(
            "no component advertises GPUs", ", ".join(operators) or "componentRefs"
        )
    return DEVICE_PLUGIN, warnings


def _flag(values: Mapping[str, Any], path: tuple[str, ...], component: str) -> bool | None:
    """A boolean value; None when it is absent."""
    found: Any = values
    for index, key in enumerate(path):
        if found is None:
            return None
        if not isinstance(found, Mapping):
            raise _contradiction(
                f"{component}: {'.'.join(path[:index])} is no map, so {'.'.join(path)} cannot be read",
                component,
            )
        found = found.get(key)
    if found is None or isinstance(found, bool):
        return found
    raise _contradiction(f"{component}: {'.'.join(path)} must be true or false", component)


def _contradiction(message: str, where: str) -> AicrError:
    return invalid(
        f"the recipe's GPU allocation cannot be told: {message}",
        where=where,
        hint="one component must advertise the GPUs: the GPU operator's device plugin, or the DRA driver",
    )
