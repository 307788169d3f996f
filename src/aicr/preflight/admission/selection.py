"""Which checks a pod gets: by its annotation, or else by the entries' own defaults.

Source: preflight spec 2.4.2, decisions 16 and 69.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aicr.errors import invalid, nearest
from aicr.preflight.config import Check
from aicr.preflight.names import CHECKS_ANNOTATION


def selected(
    annotation: str | None, checks: Mapping[str, Check], *, in_gang: bool, warnings: list[str]
) -> list[Check]:
    """The checks for a pod, in the order in which they are to run.

    Args:
        annotation: value of the pod's selection annotation; None if it has none.
        checks: the configured checks by name, in order.
        in_gang: whether the pod is in a gang; checks with ``gangOnly`` are for those alone.
        warnings: takes what the person who made the pod should know.

    Raises:
        AicrError: INVALID_REQUEST for a name that is given twice, and for unknown names.
    """
    if annotation is None:
        return [c for c in checks.values() if c.default_enabled and (in_gang or not c.gang_only)]
    found = [checks[name] for name in _named(annotation, checks)]
    if in_gang:
        return found
    left_out = [check.name for check in found if check.gang_only]
    if left_out:
        warnings.append(
            f"check {', '.join(left_out)} left out: it is only for pods of a gang, "
            "and this pod is in none"
        )
    return [check for check in found if not check.gang_only]


def known_part(annotation: str | None, checks: Sequence[Check]) -> list[str]:
    """The names that a pod of a gang is recorded with: like `selected`, but never an error.

    For pods that were admitted with another configuration: unknown names are left out, and a list
    that names a check twice is no list.
    """
    if annotation is None:
        return [check.name for check in checks if check.default_enabled]
    names = _split(annotation)
    if len(set(names)) != len(names):
        return []
    known = {check.name for check in checks}
    return [name for name in names if name in known]


def _split(annotation: str) -> list[str]:
    return [name for part in annotation.split(",") if (name := part.strip())]


def _named(annotation: str, checks: Mapping[str, Check]) -> list[str]:
    names = _split(annotation)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise invalid(f'duplicate check name "{name}" in annotation {CHECKS_ANNOTATION}')
        seen.add(name)
    unknown = [name for name in names if name not in checks]
    if unknown:
        near = nearest(unknown[0], list(checks))
        raise invalid(
            f"annotation {CHECKS_ANNOTATION} references unknown checks: {', '.join(unknown)} "
            f"(configured: {', '.join(checks)})",
            hint=f"did you mean {near}?" if near else "",
        )
    return names
