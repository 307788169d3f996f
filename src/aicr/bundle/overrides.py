"""The value overrides of a bundle run: from flag texts to routed, conflict-free entries.

```
--set c:path=value        a scalar, typed by typed_values
--set-file c:path=file    the first YAML document of a file
--set-json c:path=<json>  a JSON value
```

Each text becomes one ``Override``; ``route`` finds its component by name or alias;
``check_conflicts`` refuses two that touch the same place, since whichever won would surprise one
of their authors (decision 7). Applying them to values is the business of override_values.
"""

from __future__ import annotations

from aicr.errors import AicrError, invalid, nearest
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Final

    from aicr.catalog.registry import Registry

    Segments = list[str | int]

SET: Final = "--set"
SET_JSON: Final = "--set-json"
SET_FILE: Final = "--set-file"

#: Not a component: options of the Argo CD formats (bundler spec 1.4).
RESERVED_KEY: Final = "deployer"

_FORM: Final[dict[str, str]] = {
    SET: "component:path=value",
    SET_JSON: "component:path=<json>",
    SET_FILE: "component:path=<file>",
}

#: Maps from one flat key to one scalar: nothing is ever nested below their keys.
_FLAT_MAPS: Final = ("nodeselector", "selector", "matchlabels", "labels", "annotations")
_FLAT_RESOURCES: Final = ("limits", "requests")


class Override:
    """One override flag.

    ``key`` is the component as written, ``component`` the name it routes to ("" until routed);
    ``path``/``segments`` the place; ``text`` what was typed behind the ``=``; ``value`` the parsed
    value of a typed override.
    """

    __slots__ = ("component", "flag", "key", "path", "segments", "text", "value")

    def __init__(
        self, flag: str, key: str, path: str, segments: Segments, text: str, value: Any = None
    ) -> None:
        self.flag = flag
        self.key = key
        self.component = ""
        self.path = path
        self.segments = segments
        self.text = text
        self.value = value

    @property
    def typed(self) -> bool:
        """Whether the value came as JSON or YAML."""
        return self.flag != SET

    @property
    def label(self) -> str:
        """The flag without its value, for messages."""
        return f"{self.flag} {self.key}:{self.path}"

    @property
    def is_switch(self) -> bool:
        """Whether this is ``--set <component>:enabled=…``, which selects rather than sets."""
        return self.segments == ["enabled"]


def parse_overrides(
    *,
    scalars: Iterable[str],
    files: Iterable[str],
    jsons: Iterable[str],
    read_file: Callable[[str], str] | None,
) -> tuple[list[Override], list[str]]:
    """Read all override flags of a run.

    Args:
        scalars: texts of ``--set``. files: texts of ``--set-file``. jsons: texts of
        ``--set-json``. read_file: gives the text of a value file; needed only with *files*. Its
        errors pass through.

    Returns:
        The overrides, scalars first, then files, then JSON; and advisory notes.

    Raises:
        AicrError: INVALID_REQUEST naming the flag and what is wrong with it (bundler spec 1.2,
        1.3).
    """
    notes: list[str] = []
    found = [_parse(SET, text) for text in scalars]
    for text in files:
        # Where they are needed and not at the top: most bundles have no such flag.
        from aicr.bundle.value_documents import first_yaml_document

        override = _parse(SET_FILE, text)
        if read_file is None:
            raise invalid(
                f"{override.label}: value files cannot be read here",
                where=SET_FILE,
                hint=f"pass the content with {SET_JSON}",
            )
        if not override.text:
            raise invalid(f"{override.label}: the file name is empty", where=SET_FILE)
        override.value, several = first_yaml_document(
            read_file(override.text), source=override.text, label=override.label
        )
        if several:
            notes.append(
                f"{override.label} uses the first YAML document of {override.text} and ignores the "
                f"others"
            )
        found.append(override)
    for text in jsons:
        from aicr.bundle.value_documents import json_value

        override = _parse(SET_JSON, text)
        override.value = json_value(override.text, label=override.label)
        found.append(override)
    return found, notes


def route(overrides: Iterable[Override], registry: Registry, declared: list[str]) -> None:
    """Set ``component`` of each override: names first, then aliases (components seed).

    Args:
        overrides: changed in place; each gets its component.
        registry: where aliases are looked up.
        declared: names of all components of the recipe, rendered or not.

    Raises:
        AicrError: INVALID_REQUEST for the first unknown key, scalars before typed, in key order.
    """
    names = set(declared)
    for override in sorted(overrides, key=lambda item: (item.typed, item.key, item.path)):
        if override.key == RESERVED_KEY:
            raise _reserved(override)
        if override.key in names:
            override.component = override.key
            continue
        entry = registry.by_override_key(override.key)
        if entry is not None and entry["name"] in names:
            override.component = entry["name"]
            continue
        raise _unknown(override, entry is not None, registry, declared)


def check_conflicts(overrides: Iterable[Override]) -> None:
    """Refuse two flags that touch the same path of one component (decision 7).

    Equal paths count, through an alias too and with equal values too, and so do a path and one
    above or below it.

    Raises:
        AicrError: INVALID_REQUEST naming both flags.
    """
    by_component: dict[str, list[Override]] = {}
    for override in overrides:
        earlier_ones = by_component.setdefault(override.component, [])
        for earlier in earlier_ones:
            if not paths.conflict(earlier.segments, override.segments):
                continue
            if earlier.segments == override.segments:
                reason = f'both set "{override.component}:{override.path}"'
            else:
                reason = f'one path contains the other in component "{override.component}"'
            raise invalid(
                f"{earlier.label} and {override.label} conflict: {reason}",
                where=override.flag,
                hint="keep one of the two flags",
            )
        earlier_ones.append(override)


def _parse(flag: str, text: str) -> Override:
    # Not at the top: most bundles are made without these flags, and every start would pay.
    from aicr.values import secrets

    form = _FORM[flag]
    key, colon, rest = text.partition(":")
    path, equals, value = rest.partition("=")
    if not colon or not equals or not key or not path:
        missing = (
            "the ':' after the component"
            if not colon
            else "the component"
            if not key
            else "the '=' after the path"
            if not equals
            else "the path"
        )
        raise invalid(
            f'invalid {flag} "{secrets.shown_flag(text)}": {missing} is missing, expected {form}',
            where=flag,
            hint=f"write {flag} {form}",
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise invalid(
            f"invalid {flag} {secrets.shown_flag(text)!r}: not UTF-8 text", where=flag
        ) from error
    try:
        segments = paths.split(path)
    except AicrError as error:
        raise invalid(
            f'invalid {flag} "{secrets.shown_flag(text)}": the path "{path}" cannot be read',
            where=flag,
            hint=error.hint,
        ) from error
    override = Override(flag, key, path, segments, value)
    _check_path(override)
    return override


def _check_path(override: Override) -> None:
    segments = override.segments
    if segments[0] == "enabled" and override.key != RESERVED_KEY:
        if len(segments) > 1:
            raise invalid(
                f'{override.label}: "enabled" switches a component and holds no other keys',
                where=override.flag,
            )
        if override.typed:
            raise invalid(
                f"{override.label}: a component is switched with a scalar override only",
                where=override.flag,
                hint=f"write {SET} {override.key}:enabled=true or =false",
            )
    _check_dotted_key(override)


def _check_dotted_key(override: Override) -> None:
    """Refuse dots of a label key that would nest, ``nodeSelector.a.io/b`` (field case B4)."""
    segments = override.segments
    for index, segment in enumerate(segments[:-2]):
        if not isinstance(segment, str):
            continue
        name = segment.lower()
        if not name.endswith(_FLAT_MAPS) and name not in _FLAT_RESOURCES:
            continue
        below = segments[index + 1 :]
        if not all(isinstance(part, str) for part in below):
            continue
        if any("/" in str(part) for part in below[1:]):
            meant = [*segments[: index + 1], ".".join(str(part) for part in below)]
            raise invalid(
                f'{override.label}: the dots in "{meant[-1]}" would nest maps inside "{segment}", '
                f"which holds plain keys",
                where=override.flag,
                hint=f"escape the dots: {override.flag} '{override.key}:{paths.join(meant)}=…'",
            )


def _reserved(override: Override) -> AicrError:
    if override.typed:
        return invalid(
            f'{override.label}: the reserved key "{RESERVED_KEY}" takes {SET} only',
            where=override.flag,
        )
    return invalid(
        f'{override.label}: "{RESERVED_KEY}" options apply to the deployers argocd and argocd-helm '
        f"only",
        where=override.flag,
        hint="drop the flag for this deployer",
    )


def _unknown(
    override: Override, registered: bool, registry: Registry, declared: list[str]
) -> AicrError:
    known = list(declared)
    for name in declared:
        entry = registry.get(name)
        known += (entry.get("valueOverrideKeys") or ()) if entry is not None else ()
    close = nearest(override.key, known)
    if registered:
        hint = "the registry has this component, but the recipe does not include it"
    elif close:
        hint = f'did you mean "{close}"?'
    else:
        hint = "use a component name of the recipe or one of its override keys"
    return invalid(
        f'{override.label} cannot take effect: unknown component "{override.key}"; '
        f"recipe declares: {', '.join(sorted(declared))}",
        where=override.flag,
        hint=hint,
    )
