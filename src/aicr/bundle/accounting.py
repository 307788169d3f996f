"""The values behind a recipe's Slurm accounting mode, checked as they will be installed.

``owned`` keeps flags off these values; what is checked here is that the layers of the recipe itself
agree with the mode it states (bundler spec 0.6; 0.3, step 8). A mode that promises a database and
values that point elsewhere would lose accounting records without a word.
"""

from __future__ import annotations

from aicr.bundle.owned import AICR_PROVIDED, DISABLED
from aicr.errors import invalid
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from aicr.recipe.types import RecipeResult

    Values = dict[str, Any]

SLURM: Final = "slinky-slurm"
DATABASE: Final = "slurm-accounting-mariadb"
_ENABLED: Final = "accounting.enabled"
_STORAGE: Final = "accounting.storageConfig"
_NEEDED: Final = ("host", "database", "username", "passwordKeyRef.name", "passwordKeyRef.key")
_LARGEST_PORT: Final = 65535

#: What aicr-provided accounting fixes: component -> path -> value.
_CONTRACT: Final[dict[str, dict[str, Any]]] = {
    SLURM: {
        f"{_STORAGE}.host": "mariadb",
        f"{_STORAGE}.port": 3306,
        f"{_STORAGE}.database": "slurm_acct_db",
        f"{_STORAGE}.username": "slurm",
        f"{_STORAGE}.passwordKeyRef.name": "mariadb-password",
        f"{_STORAGE}.passwordKeyRef.key": "password",
    },
    DATABASE: {
        "fullnameOverride": "mariadb",
        "namespaceOverride": "slurm",
        "mariadb.rootPasswordSecretKeyRef.name": "mariadb-root-password",
        "mariadb.rootPasswordSecretKeyRef.key": "root",
        "mariadb.rootPasswordSecretKeyRef.generate": True,
        "mariadb.username": "slurm",
        "mariadb.database": "slurm_acct_db",
        "mariadb.passwordSecretKeyRef.name": "mariadb-password",
        "mariadb.passwordSecretKeyRef.key": "password",
        "mariadb.passwordSecretKeyRef.generate": True,
        "mariadb.cleanupPolicy": "Skip",
        "users": [],
        "databases": [],
        "grants": [],
    },
}


def check(recipe: RecipeResult, values: Mapping[str, Values]) -> list[str]:
    """Refuse final values that contradict the recipe's accounting mode; notes otherwise.

    Args:
        recipe: for ``configuration.slurm.accounting.mode``.
        values: rendered component -> final values.

    Raises:
        AicrError: INVALID_REQUEST naming mode, component and path.
    """
    configuration = recipe.get("configuration") or {}
    mode = ((configuration.get("slurm") or {}).get("accounting") or {}).get("mode")
    slurm = values.get(SLURM)
    enabled = paths.get(slurm, paths.split(_ENABLED), False) if slurm is not None else False
    if not mode:
        if enabled is not True:
            return []
        return [
            f"{SLURM} switches accounting on by {_ENABLED}, and the recipe has no "
            f"configuration.slurm.accounting.mode; this way is deprecated, generate the recipe "
            f"again with --slurm-accounting-mode"
        ]
    if mode == DISABLED:
        if enabled is not False:
            raise _contradiction(mode, SLURM, _ENABLED, enabled, "false")
        return []
    if slurm is None:
        raise invalid(
            f'configuration.slurm.accounting.mode is "{mode}", but {SLURM} is not in the bundle',
            where=SLURM,
            hint="keep the component, or generate the recipe with --slurm-accounting-mode disabled",
        )
    if enabled is not True:
        raise _contradiction(mode, SLURM, _ENABLED, enabled, "true")
    _check_connection(mode, slurm)
    if mode == AICR_PROVIDED:
        _check_contract(mode, values)
    return []


def _check_connection(mode: str, slurm: Values) -> None:
    for path in _NEEDED:
        held = paths.get(slurm, paths.split(f"{_STORAGE}.{path}"), None)
        if not isinstance(held, str) or not held:
            raise _contradiction(mode, SLURM, f"{_STORAGE}.{path}", held, "a text")
    port = paths.get(slurm, paths.split(f"{_STORAGE}.port"), None)
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= _LARGEST_PORT:
        raise _contradiction(mode, SLURM, f"{_STORAGE}.port", port, f"1 to {_LARGEST_PORT}")


def _check_contract(mode: str, values: Mapping[str, Values]) -> None:
    for component, fixed in _CONTRACT.items():
        if component not in values:
            raise invalid(
                f'configuration.slurm.accounting.mode is "{mode}", but {component} is not in the '
                f"bundle",
                where=component,
                hint="keep the component in the recipe",
            )
        for path, wanted in fixed.items():
            held = paths.get(values[component], paths.split(path), None)
            # 1 == True in Python, but not in YAML.
            if type(held) is not type(wanted) or held != wanted:
                raise _contradiction(mode, component, path, held, repr(wanted))


def _contradiction(mode: str, component: str, path: str, held: Any, wanted: str) -> Exception:
    return invalid(
        f'configuration.slurm.accounting.mode is "{mode}", but {component}:{path} is {held!r}; '
        f"it must be {wanted}",
        where=f"{component}:{path}",
        hint="correct the values file or overlay that sets it, or choose another mode when the "
        "recipe is generated",
    )
