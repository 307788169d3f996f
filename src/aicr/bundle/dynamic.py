"""Values that are given when a bundle is installed: ``--dynamic component:path``.

```
--dynamic texts ─► parse ─► route ─► refusals ─► by_component ─► split: values.yaml, cluster-values.yaml
```

A dynamic path leaves values.yaml for cluster-values.yaml, with what the recipe says there or an
empty text to be filled in (bundler spec 2.4). Nothing may rely on such a value while the bundle is
made, so paths that some rule of the bundle needs to know are refused (decision 7; bundler spec 0.3
step 6, 0.5, 0.6, 0.8, 3.5, 4.6; requirements C-052, C-081).

A dynamic path is an ``Override`` without a value, so routing and the look at what is in the bundle
are the same as for ``--set``. It must not know files or deployers.
"""

from __future__ import annotations

from aicr.bundle import owned
from aicr.bundle.overrides import Override
from aicr.errors import AicrError, invalid
from aicr.values import paths
from aicr.values.merge import copy_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Final

    Segments = list[str | int]

DYNAMIC: Final = "--dynamic"
FORM: Final = "component:path"

_ABSENT: Final = object()


def parse_dynamic(texts: Iterable[str]) -> list[Override]:
    """The paths of ``--dynamic`` flags, as overrides without a value.

    Raises:
        AicrError: INVALID_REQUEST for another form, a value behind the path, a list position, or
            the ``enabled`` switch, which decides what is in the bundle (bundler spec 1.2).
    """
    return [_parse(text) for text in texts]


def _parse(text: str) -> Override:
    from aicr.values import secrets

    key, colon, path = text.partition(":")
    if not colon or not key or not path:
        missing = "the ':' after the component" if not colon else "the path" if key else "its name"
        raise invalid(
            f'invalid {DYNAMIC} "{text}": {missing} is missing, expected {FORM}',
            where=DYNAMIC,
            hint=f"write {DYNAMIC} {FORM}",
        )
    if "=" in path:
        safe = secrets.shown_flag(text)
        raise invalid(
            f'invalid {DYNAMIC} "{safe}": a value that is given at install time cannot be set here, '
            f"expected {FORM}",
            where=DYNAMIC,
            hint=f"write {DYNAMIC} {key}:{path.partition('=')[0]}, or --set {safe}",
        )
    try:
        segments = paths.split(path)
    except AicrError as error:
        raise invalid(
            f'invalid {DYNAMIC} "{text}": the path "{path}" cannot be read',
            where=DYNAMIC,
            hint=error.hint,
        ) from error
    for depth, segment in enumerate(segments):
        if not isinstance(segment, str):
            whole = paths.join(segments[:depth]) if depth else path
            raise invalid(
                f'invalid {DYNAMIC} "{text}": helm replaces a list as a whole, so one item cannot '
                f"be left open",
                where=DYNAMIC,
                hint=f"leave the whole list open: {DYNAMIC} {key}:{whole}",
            )
    if segments[0] == "enabled":
        raise invalid(
            f'{DYNAMIC} {key}:{path} is not allowed: "enabled" decides whether the component is in '
            f"the bundle, and is no value of its chart",
            where=DYNAMIC,
            hint=f"decide now, with --set {key}:enabled=false",
        )
    return Override(DYNAMIC, key, path, segments, "")


def check_conflicts(dynamic: Sequence[Override], overrides: Iterable[Override]) -> None:
    """Refuse a dynamic path that another flag touches, or that contains another one (decision 7).

    The same path twice, through an alias too, says the same thing twice and is no conflict.

    Raises:
        AicrError: INVALID_REQUEST naming both flags.
    """
    others: dict[str, list[Override]] = {}
    for override in overrides:
        others.setdefault(override.component, []).append(override)
    seen: dict[str, list[Override]] = {}
    for path in dynamic:
        for override in others.get(path.component, ()):
            if paths.conflict(path.segments, override.segments):
                raise invalid(
                    f"{override.label} and {path.label} conflict: the one gives a value now, the "
                    f"other when the bundle is installed",
                    where=DYNAMIC,
                    hint="keep one of them; a default for the installation belongs into the recipe",
                )
        earlier_ones = seen.setdefault(path.component, [])
        for earlier in earlier_ones:
            if earlier.segments != path.segments and paths.conflict(
                earlier.segments, path.segments
            ):
                raise invalid(
                    f"{earlier.label} and {path.label} conflict: one path contains the other in "
                    f'component "{path.component}"',
                    where=DYNAMIC,
                    hint="keep the shorter path; it leaves everything below it open",
                )
        earlier_ones.append(path)


def check_decided_now(dynamic: Iterable[Override]) -> None:
    """Refuse dynamic paths that decide which mechanism allocates GPUs (bundler spec 0.3, step 6).

    Raises:
        AicrError: INVALID_REQUEST naming the path.
    """
    for override in dynamic:
        path = owned.touched(override, owned.ALLOCATION_PATHS)
        if path:
            raise invalid(
                f'{override.label} is not allowed: "{path}" of component "{override.component}" '
                f"decides which mechanism allocates GPUs, which must be known when the bundle is "
                f"made",
                where=DYNAMIC,
                hint="decide now, with --set",
            )


def check_placement(
    dynamic: Iterable[Override], entry: Mapping[str, Any], overrides: Mapping[str, Any]
) -> None:
    """Refuse dynamic paths of one component that would leave a required node selector open.

    Args:
        dynamic: the dynamic paths of the component.
        entry: its registry entry.
        overrides: the inline overrides of its ref; an explicit empty selector opts a path out.

    Raises:
        AicrError: INVALID_REQUEST naming flag and path (bundler spec 3.5; C-052, C-058).
    """
    scheduling = entry.get("nodeScheduling") or {}
    for tier in ("system", "accelerated"):
        group = scheduling.get(tier) or {}
        conditional = bool(group.get("requireNodeSelectorIfStorageClassSet"))
        if not conditional and not group.get("requireNodeSelector"):
            continue
        guarded = [
            path for path in group.get("nodeSelectorPaths") or () if not _opted_out(overrides, path)
        ]
        why = f"requires --{tier}-node-selector to be set when the bundle is made"
        if conditional and guarded:
            guarded += entry.get("storageClassPaths") or ()
            guarded += entry.get("sharedStorageClassPaths") or ()
            why += ", if it has a storage class"
        for override in dynamic:
            for path in guarded:
                if paths.conflict(override.segments, paths.split(path)):
                    raise invalid(
                        f'{override.label} is not allowed: component "{override.component}" {why} '
                        f"({path})",
                        where=DYNAMIC,
                        hint=f"drop it: give the value now, and --{tier}-node-selector key=value; "
                        f"or opt out with an explicit empty nodeSelector in an overlay",
                    )


def check_reachable(values: dict[str, Any], dynamic: Iterable[Override]) -> None:
    """Refuse a dynamic path that runs through something other than a map.

    Raises:
        AicrError: INVALID_REQUEST naming the path.
    """
    for override in dynamic:
        try:
            paths.put(values, override.segments, "")
        except AicrError as error:
            raise invalid(
                f"{override.label}: a value cannot be given there",
                where=DYNAMIC,
                hint="leave the value above it open, or correct the path",
            ) from error


def by_component(dynamic: Iterable[Override]) -> dict[str, list[Segments]]:
    """The paths of each component, each once, in the order of their text."""
    found: dict[str, dict[str, Segments]] = {}
    for override in dynamic:
        text = paths.join(override.segments)
        found.setdefault(override.component, {})[text] = override.segments
    return {name: [by_text[text] for text in sorted(by_text)] for name, by_text in found.items()}


def split(
    values: dict[str, Any], dynamic: Iterable[Segments]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(values.yaml, cluster-values.yaml) of final values, for these dynamic paths.

    A value at a path moves over; where there is none, cluster-values.yaml gets an empty text that
    shows what is to be filled in. Maps that a move leaves empty stay (bundler spec 2.4).
    """
    static: dict[str, Any] = values
    deferred: dict[str, Any] = {}
    for segments in dynamic:
        value = paths.get(static, segments, _ABSENT)
        if value is _ABSENT:
            value = ""
        else:
            static = paths.delete(static, segments)
        deferred = paths.put(deferred, segments, copy_tree(value))
    return static, deferred


def _opted_out(overrides: Mapping[str, Any], path: str) -> bool:
    value = paths.get(overrides, paths.split(path), _ABSENT)
    return value is None or value in ([], {})
