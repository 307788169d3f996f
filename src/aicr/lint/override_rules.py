"""Rules about overrides that repeat, undo or miss what lies below them.

What is below an overlay's override is known exactly: the component's values.yaml, the values file in
force, and the overrides of the base and of the overlay's ancestors. Other overlays may join a recipe
too, so a repetition only counts as one when no overlay outside the lineage touches the same path.
Sources: recipe spec 3.6, 4.1 and 7; field pains 4 and 30.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from aicr.catalog.registry import KUSTOMIZE, component_type
from aicr.contract.documents import type_name
from aicr.errors import AicrError
from aicr.lint.findings import WARNING, Problem, rule
from aicr.lint.overlay_rules import words
from aicr.lint.registry_rules import value_paths_of
from aicr.recipe.hydrate import layered
from aicr.recipe.merge import compose
from aicr.values import paths as value_paths
from aicr.values.merge import is_set

if TYPE_CHECKING:
    from aicr.lint.ground import Ground
    from aicr.lint.reading import Source

_ABSENT = object()
_TOGGLES = ("enabled", "install")


class Leaf(NamedTuple):
    """One leaf of an overlay's overrides, and what is below it."""

    source: Source
    component: str
    keys: tuple[str, ...]
    value: Any
    below: Any
    #: The values in force below the overlay.
    values: dict[str, Any]

    @property
    def path(self) -> str:
        """The path as ``component:a.b.c``."""
        return f"{self.component}:{value_paths.join(list(self.keys))}"

    @property
    def where(self) -> str:
        """Where the leaf stands."""
        return self.source.ref_where(self.component, "overrides", *self.keys)


def leaves(ground: Ground) -> list[Leaf]:
    """Every override leaf of every overlay with a sound lineage; worked out once."""
    if "leaves" not in ground.facts:
        ground.facts["leaves"] = list(_leaves(ground))
    found: list[Leaf] = ground.facts["leaves"]
    return found


def _leaves(ground: Ground) -> Iterator[Leaf]:
    base = ground.overlays.get("base")
    for name, source in sorted(ground.overlays.items()):
        chain = ground.sound_chain(name) if name != "base" else [source]
        if chain is None or base is None or not base.sound or not source.sound:
            continue
        ancestors = [] if source is base else chain[:-1]
        specs = {member.name: member.spec for member in ancestors}
        lineage = [tuple(member.name for member in ancestors)]
        under: Any = {} if source is base else base.spec
        below = compose(under, lineage, specs)
        for component in source.refs:
            ref = source.ref(component) or {}
            entry = ground.entries.get(component)
            if not ref.get("overrides") or _is_kustomize(entry.entry if entry else {}):
                continue
            inherited: Any = below.refs.get(component) or {}
            file = ref.get("valuesFile") or inherited.get("valuesFile") or ""
            values = _values(ground, component, file, inherited.get("overrides") or {})
            if values is not None:
                for keys, value in flat(ref["overrides"]):
                    lower = _get(values, keys)
                    yield Leaf(source, component, keys, value, lower, values)


def _is_kustomize(entry: Any) -> bool:
    return component_type(entry) == KUSTOMIZE


def _values(
    ground: Ground, component: str, file: str, overrides: dict[str, Any]
) -> dict[str, Any] | None:
    """Values of a component from files and overrides; None when a file cannot be read."""
    layers = []
    for path in dict.fromkeys((f"components/{component}/values.yaml", file)):
        if path and ground.tree.exists(path):
            try:
                layers.append(ground.tree.values(path))
            except AicrError:
                # The file has its own finding.
                return None
    return layered(*layers, overrides)


def flat(
    node: dict[str, Any], trail: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Leaves of a map with their keys; lists, scalars and empty maps are leaves."""
    for key, item in node.items():
        if isinstance(item, dict) and item:
            yield from flat(item, (*trail, key))
        else:
            yield (*trail, key), item


def _get(node: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if not isinstance(node, dict) or key not in node:
            return _ABSENT
        node = node[key]
    return node


def _meets(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether one path is the other, or lies above or below it."""
    short = min(len(a), len(b))
    return a[:short] == b[:short]


def _placed(ground: Ground, leaf: Leaf) -> bool:
    """Whether a flag writes there: what an overlay says inline changes how it does (spec 3.6)."""
    entry = ground.entries.get(leaf.component)
    if entry is None:
        return False
    for _, text in value_paths_of(entry.entry):
        try:
            segments = tuple(str(segment) for segment in value_paths.split(text))
        except AicrError:
            continue
        if _meets(segments, leaf.keys):
            return True
    return False


def _touched_elsewhere(ground: Ground, leaf: Leaf) -> bool:
    """Whether something that the overlay does not inherit from sets the path in some recipe."""
    lineage = {member.name for member in ground.chain(leaf.source.name) or ()} | {"base"}
    for source in ground.sources():
        if not source.is_mixin and source.name in lineage:
            continue
        if not _meet(ground, source, leaf.source):
            continue
        ref: Any = source.ref(leaf.component) or {}
        heir = not source.is_mixin and leaf.source in (ground.chain(source.name) or ())
        # An heir comes later and overrides this leaf anyway, unless it brings a file below it.
        if heir and not ref.get("valuesFile"):
            continue
        if ref.get("valuesFile") or any(
            _meets(keys, leaf.keys) for keys, _ in flat(ref.get("overrides") or {})
        ):
            return True
    return False


def _meet(ground: Ground, other: Source, source: Source) -> bool:
    """Whether some query selects both, as far as their own criteria tell; a mixin goes with its users."""
    if other.is_mixin:
        users = (
            user
            for user in ground.overlays.values()
            if other.name in (user.spec.get("mixins") or ())
        )
        return any(_meet(ground, user, source) for user in users)
    stated = words(source)
    return all(stated.get(field, word) == word for field, word in words(other).items())


@rule(
    "override-redundant",
    WARNING,
    "An override that repeats the value below it keeps that value when the one below is changed.",
)
def override_redundant(ground: Ground) -> Iterator[Problem]:
    """Override leaves equal to what the component has without them."""
    for leaf in leaves(ground):
        if leaf.keys[0] in _TOGGLES or leaf.below is _ABSENT or leaf.value is None:
            continue
        same = leaf.below == leaf.value and type(leaf.below) is type(leaf.value)
        if same and not _placed(ground, leaf) and not _touched_elsewhere(ground, leaf):
            yield Problem(
                leaf.where,
                f"{leaf.path} repeats the value that is there without it",
                "remove it here",
            )


@rule(
    "override-type",
    WARNING,
    "An override of another kind than the value below throws away all of it, or is ignored by Helm.",
)
def override_type(ground: Ground) -> Iterator[Problem]:
    """A scalar over a map or list, and the reverse (field pain 4)."""
    for leaf in leaves(ground):
        for length in range(1, len(leaf.keys) + 1):
            lower = _get(leaf.values, leaf.keys[:length])
            if lower is _ABSENT or lower is None:
                break
            value = leaf.value if length == len(leaf.keys) else {}
            if value is not None and _kind(value) != _kind(lower):
                path = f"{leaf.component}:{value_paths.join(list(leaf.keys[:length]))}"
                yield Problem(
                    leaf.source.ref_where(leaf.component, "overrides", *leaf.keys[:length]),
                    f"{path} is {type_name(value)} over {type_name(lower)}",
                    "write the same kind of value, or null to take the value below away",
                )
                break


def _kind(value: Any) -> str:
    return "map" if isinstance(value, dict) else "list" if isinstance(value, list) else "scalar"


@rule(
    "override-drops-entries",
    WARNING,
    "Lists are replaced as a whole: entries that the override does not repeat are gone.",
)
def override_drops_entries(ground: Ground) -> Iterator[Problem]:
    """A list over a longer list, entries missing (field pain 30)."""
    for leaf in leaves(ground):
        if not (isinstance(leaf.value, list) and isinstance(leaf.below, list)) or not leaf.value:
            continue
        kept = {_identity(item) for item in leaf.value}
        lost = [item for item in leaf.below if _identity(item) not in kept]
        if lost:
            yield Problem(
                leaf.where,
                f"{leaf.path} replaces a list of {len(leaf.below)} and drops {len(lost)} of its "
                f"entries: {', '.join(map(_identity, lost))}",
                "repeat the entries that should stay",
            )


def _identity(item: Any) -> str:
    """What makes an entry of a list the same entry: its name if it has one."""
    if isinstance(item, dict):
        for key in ("name", "key"):
            if isinstance(item.get(key), str):
                return str(item[key])
    return repr(item)


@rule(
    "override-dead",
    WARNING,
    "A value on a mere parent that each of its children replaces reaches no recipe.",
)
def override_dead(ground: Ground) -> Iterator[Problem]:
    """Leaves of overlays without criteria that every child sets anew."""
    children: dict[str, list[Source]] = {}
    for source in ground.overlays.values():
        children.setdefault(source.spec.get("base") or "", []).append(source)
    for leaf in leaves(ground):
        heirs = children.get(leaf.source.name, [])
        if leaf.source.name == "base" or leaf.source.spec.get("criteria") is not None or not heirs:
            continue
        if all(_sets(heir, leaf) for heir in heirs):
            names = ", ".join(sorted(heir.name for heir in heirs))
            yield Problem(
                leaf.where,
                f"{leaf.path} is set anew by every overlay that inherits it: {names}",
                "remove it here, or there",
            )


def _sets(source: Source, leaf: Leaf) -> bool:
    """Whether an overlay replaces a leaf of its parent."""
    overrides = (source.ref(leaf.component) or {}).get("overrides") or {}
    return is_set(overrides, leaf.keys)


@rule(
    "override-dotted-key",
    WARNING,
    "A key with dots is one key to Helm, not a path, so the value it seems to set stays as it is.",
)
def override_dotted_key(ground: Ground) -> Iterator[Problem]:
    """Top-level override keys that look like paths."""
    for source in ground.sources():
        for component in source.refs:
            for key in (source.ref(component) or {}).get("overrides") or {}:
                if "." in key and "/" not in key:
                    yield Problem(
                        source.positions.key((*source.refs[component], "overrides", key)),
                        f'override key "{key}" of component "{component}" is one key, not a path',
                        "write nested maps",
                    )
