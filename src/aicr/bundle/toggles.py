"""Overrides that switch a manifest of a component on or off, and are no values of its chart.

``dynamo-platform:a4xStorageClass.create=false`` leaves the storage class for A4X nodes out, where
the cluster has one already (bundler spec 0.9).
"""

from __future__ import annotations

from aicr.bundle.overrides import SET
from aicr.errors import invalid
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from aicr.bundle.overrides import Override
    from aicr.catalog.types import ComponentRef

#: Component -> path of the switch, and the manifest that it is about.
TOGGLES: Final[dict[str, tuple[str, str]]] = {
    "dynamo-platform": (
        "a4xStorageClass.create",
        "components/dynamo-platform/manifests/a4x-storage-class.yaml",
    ),
}

#: Go's ParseBool (bundler spec 0.4).
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))


def take(overrides: Iterable[Override]) -> tuple[dict[str, bool], list[Override]]:
    """The switches among overrides (component -> wanted), and the other overrides.

    Raises:
        AicrError: INVALID_REQUEST for a typed switch, a path above or below it, or text that is no
            boolean.
    """
    wishes: dict[str, bool] = {}
    rest: list[Override] = []
    for override in overrides:
        path, manifest = TOGGLES.get(override.component, ("", ""))
        if not path or not paths.conflict(override.segments, paths.split(path)):
            rest.append(override)
            continue
        form = f"{SET} {override.key}:{path}=true or =false"
        if override.flag != SET or override.path != path:
            raise invalid(
                f'{override.label} is not allowed: "{path}" decides whether the bundle holds '
                f"{manifest}, and is set as a whole with {SET} only",
                where=override.flag,
                hint=f"write {form}",
            )
        if override.text not in _TRUE and override.text not in _FALSE:
            raise invalid(
                f'{override.label}: "{override.text}" is no boolean',
                where=override.flag,
                hint=f"write {form}",
            )
        wishes[override.component] = override.text in _TRUE
    return wishes, rest


def apply(
    ref: ComponentRef, values: dict[str, Any], wishes: dict[str, bool]
) -> tuple[ComponentRef, dict[str, Any], list[str]]:
    """A component's ref and values after its switch, and notes.

    The switch may stand in the recipe's values too; the flag wins. It never reaches the chart.

    Raises:
        AicrError: INVALID_REQUEST when the recipe's switch is no boolean.
    """
    name = ref["name"]
    if name not in TOGGLES:
        return ref, values, []
    path, manifest = TOGGLES[name]
    segments = paths.split(path)
    stated = paths.get(values, segments, None)
    if stated is not None and not isinstance(stated, bool):
        raise invalid(f"{name}:{path} is {stated!r}, not true or false", where=name)
    values = paths.delete(values, segments)
    if values.get(str(segments[0])) == {}:
        values = paths.delete(values, segments[:1])
    wanted = wishes.get(name, stated)
    listed = list(ref.get("manifestFiles") or ())
    if wanted is None or (wanted and manifest in listed):
        return ref, values, []
    if wanted:
        return ref, values, [f"{name}:{path}=true changes nothing: the recipe has no {manifest}"]
    return {**ref, "manifestFiles": [each for each in listed if each != manifest]}, values, []
