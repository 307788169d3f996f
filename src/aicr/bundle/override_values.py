"""Overrides applied to the values of one component.

Scalars are strict: they never replace a list or a map, and never grow a list. Typed overrides
merge maps, replace everything else, and delete with null. Each application returns new values and
the line that tells the user what changed (decision 6).
"""

from __future__ import annotations

from aicr.errors import AicrError, invalid
from aicr.values import paths
from aicr.values.merge import deep_merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from aicr.bundle.overrides import Override

UNSET: Final = "(unset)"
DELETED: Final = "(deleted)"
#: Characters of a value that a change line shows: a screen, not a file.
_LONG: Final = 400

_ABSENT: Final = object()


def apply_scalars(
    values: dict[str, Any], overrides: Iterable[Override]
) -> tuple[dict[str, Any], list[str]]:
    """Apply ``--set`` overrides, the shallowest path first, then by path.

    ``null`` is written as it is, which makes Helm drop the chart's own default too: what a null in
    Helm's ``--set`` does. To fall back to the chart's default, delete with ``--set-json`` (field
    case B7: both must be expressible).

    Returns:
        New values, and one ``component:path: old → new`` line an override.

    Raises:
        AicrError: INVALID_REQUEST when a path runs through something that is not a map, an index is
            out of bounds, or a scalar would replace a list or a map (field cases B1, B5).
    """
    changes: list[str] = []
    for override in _in_order(overrides):
        # Not at the top: most bundles are made without --set, and every start would pay.
        from aicr.bundle.typed_values import typed_at

        old = paths.get(values, override.segments, _ABSENT)
        _check_scalar(override, old)
        last = override.segments[-1]
        new = typed_at(override.text, last, old)
        values = _put(values, override, new)
        changes.append(_line(override, old, new))
    return values, changes


def apply_typed(
    values: dict[str, Any], overrides: Iterable[Override]
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Apply typed overrides of one flag, the shallowest path first, then by path.

    A map merges into a map and its nulls delete, at any depth; lists and scalars replace
    (bundler spec 1.3).

    Returns:
        New values, change lines, and notes on overrides that had nothing to delete.

    Raises:
        AicrError: INVALID_REQUEST as for scalars, or when null is set on a list element.
    """
    changes: list[str] = []
    notes: list[str] = []
    for override in _in_order(overrides):
        old = paths.get(values, override.segments, _ABSENT)
        new = override.value
        if new is None:
            if isinstance(override.segments[-1], int):
                raise invalid(
                    f"{override.label}=null: a list element cannot be deleted",
                    where=override.flag,
                    hint="pass the whole list without it",
                )
            if old is _ABSENT:
                notes.append(f"{override.label}=null deletes nothing: there is no value there")
                continue
            values = paths.delete(values, override.segments)
            new = _ABSENT
        else:
            if isinstance(new, dict):
                new = deep_merge(old if isinstance(old, dict) else {}, new, null_deletes=True)
            values = _put(values, override, new)
        changes.append(_line(override, old, new))
    return values, changes, notes


def secret_notes(component: str, overrides: Iterable[Override]) -> list[str]:
    """A warning for each secret that an override puts into the bundle in clear, by its path.

    Source: issue 5 ("secrets never in Git outputs").
    """
    notes: list[str] = []
    for override in overrides:
        # Not at the top: most bundles are made without --set, and every start would pay.
        from aicr.bundle.typed_values import typed
        from aicr.values import secrets

        value = override.value if override.typed else typed(override.text)
        notes += [
            f"{component}:{paths.join(place)} looks like a secret and stands in clear in the bundle, "
            "which others may read in Git or a registry; if the chart can take it from a Secret of the "
            "cluster, name that instead"
            for place in secrets.places(value, override.segments)
        ]
    return notes


def show(value: Any) -> str:
    """A value as one line of JSON, for change lines; of a long one the beginning and the length."""
    text = _written(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}… ({len(text)} characters)"


def _written(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str) and value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    import json

    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _check_scalar(override: Override, old: Any) -> None:
    from aicr.values import secrets

    place = f"{override.key}:{override.path}"
    typed = secrets.shown(override.text, override.segments)
    if isinstance(old, (dict, list)):
        raise invalid(
            f"{override.label}={typed}: the value there is a {paths.type_name(old)}, which "
            f"a scalar cannot replace",
            where=override.flag,
            hint=f"pass JSON: --set-json '{place}={'[…]' if isinstance(old, list) else '{…}'}'",
        )
    if override.text.startswith("{") and not override.text.startswith("{{"):
        raise invalid(
            f"{override.label}={typed}: lists are not written as {{a,b}} here",
            where=override.flag,
            hint=f'pass JSON: --set-json \'{place}=["a","b"]\'',
        )


def _put(values: dict[str, Any], override: Override, value: Any) -> dict[str, Any]:
    try:
        changed: dict[str, Any] = paths.put(values, override.segments, value)
    except AicrError as error:
        raise invalid(
            f"{override.label}: failed to apply map overrides",
            where=override.flag,
            hint=error.hint,
        ) from error
    return changed


def _in_order(overrides: Iterable[Override]) -> list[Override]:
    return sorted(overrides, key=lambda item: (len(item.segments), item.path))


def _line(override: Override, old: Any, new: Any) -> str:
    # Not at the top: most bundles are made without --set, and every start would pay.
    from aicr.values import secrets

    def shown(value: Any, absent: str) -> str:
        if value is _ABSENT:
            return absent
        safe = secrets.shown(value, override.segments)
        return secrets.HIDDEN if safe == secrets.HIDDEN else show(safe)

    before, after = shown(old, UNSET), shown(new, DELETED)
    return f"{override.component}:{override.path}: {before} → {after}"
