"""What a bundle run lays over a component's recipe values, as layers that ``aicr explain`` can show.

```
recipe values ─► --set ─► placement and storage flags, default tolerations ─► --set-file ─► --set-json
```

Every step is the one that ``plan`` takes, applied to the same values; in between, what a step wrote is
laid over the tagged stack of ``recipe.provenance`` too. A test compares the outcome with a real plan.
Checks of whole bundles (required selectors, rendering) are left to ``aicr bundle``.
"""

from __future__ import annotations

from aicr.bundle import dra, exposure, owned, selection, slurm_volumes
from aicr.bundle.options import parse_scheduling
from aicr.bundle.override_values import apply_scalars, apply_typed
from aicr.bundle.overrides import SET_FILE, SET_JSON, check_conflicts, parse_overrides, route
from aicr.bundle.placement import TIERS, Target, write_placement
from aicr.bundle.storage import write_storage_classes
from aicr.bundle.value_slots import fill
from aicr.catalog.dependencies import is_enabled
from aicr.catalog.registry import KUSTOMIZE
from aicr.errors import invalid
from aicr.recipe.hydrate import resolve_values
from aicr.recipe.places import places_of
from aicr.recipe.provenance import Layer, plain, tagged
from aicr.values import paths
from aicr.values.merge import deep_merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

    from aicr.bundle.options import BundleOptions, Scheduling
    from aicr.bundle.overrides import Override
    from aicr.catalog.types import ComponentRef
    from aicr.recipe.places import Places
    from aicr.recipe.provenance import Stack
    from aicr.recipe.recipe import Recipe

    Segments = list[str | int]

FLAG: Final = "bundle flag"
DEFAULT: Final = "bundle default"
TOLERATE_ALL: Final = "tolerate-all"
#: What a bundle writes after every override, so that components agree (components seed).
CONTRACT: Final = "bundle contract"

_COMMAND_LINE: Final = "command line"
_BUNDLER: Final = "aicr bundle"


class _Recorder(Target):
    """A target that remembers what each flag wrote."""

    __slots__ = ("written",)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.written: list[tuple[str, Any, str]] = []

    def write(self, path: str, value: Any, flag: str) -> None:
        """Write, and remember."""
        super().write(path, value, flag)
        self.written.append((path, value, flag))


def bundle_layers(
    recipe: Recipe,
    options: BundleOptions,
    *,
    read_file: Callable[[str], str] | None = None,
) -> Callable[[str, Stack], None]:
    """A function that lays the flags of a bundle run over the values of a component.

    Args:
        recipe: what is to be bundled.
        options: the flags.
        read_file: gives the text of a ``--set-file`` file.

    Raises:
        AicrError: INVALID_REQUEST for flags that cannot be read, name no component of the recipe,
            conflict, or touch what the recipe owns: as ``plan`` does.
    """
    scheduling = parse_scheduling(options)
    overrides, _ = parse_overrides(
        scalars=options.set, files=options.set_file, jsons=options.set_json, read_file=read_file
    )
    refs = {ref["name"]: ref for ref in recipe.document.get("componentRefs") or ()}
    route(overrides, recipe.catalog.registry, list(refs))
    check_conflicts(overrides)
    for override in overrides:
        if override.is_switch:
            raise invalid(
                f"{override.label} selects a component for a bundle and sets no value, so there is "
                f"nothing to explain about it",
                where=override.flag,
                hint="leave the flag out",
            )
    disabled = [name for name, ref in refs.items() if not is_enabled(ref)]
    selection.check_present(overrides, dict.fromkeys(disabled, selection.RECIPE_DISABLES))
    owned.check_configuration(recipe.document, overrides)
    owned.check_profile(recipe.document, overrides)
    places = places_of(recipe.catalog)

    def extend(component: str, stack: Stack) -> None:
        if component in disabled or refs[component].get("type") == KUSTOMIZE:
            return
        own = [item for item in overrides if item.component == component]
        _extend(stack, refs[component], recipe, own, scheduling, places)
        rendered = {name: ref for name, ref in refs.items() if name not in disabled}
        _lay_agreed(stack, component, rendered, recipe)

    return extend


def _lay_agreed(
    stack: Stack, component: str, refs: dict[str, ComponentRef], recipe: Recipe
) -> None:
    """What the bundle writes for the sake of other components, without a flag that asks for it."""
    values = plain(stack.merged)
    restricted, _ = exposure.restrict(component, values)
    if restricted is not values:
        layer = Layer(CONTRACT, "private networks", None, place=_BUNDLER)
        _lay_at(stack, layer, [exposure.RANGES], restricted)
    if component == slurm_volumes.SLURM:
        mounted, _, _ = slurm_volumes.materialise(values, "")
        for path in slurm_volumes.written_paths(mounted) if mounted is not values else ():
            layer = Layer(CONTRACT, "shared volumes", None, place=_BUNDLER)
            _lay_at(stack, layer, path, mounted)
    if component not in dra.DRIVERS or not dra.Pair(refs):
        return
    channels = (
        {dra.OLM: resolve_values(refs[dra.OLM], recipe.catalog.tree)} if dra.OLM in refs else {}
    )
    version = dra.operator_version(refs, channels)
    if version:
        annotated = dra.annotate(values, version)
        for segments in dra.ANNOTATIONS:
            layer = Layer(CONTRACT, "version of the GPU operator", None, place=_BUNDLER)
            _lay_at(stack, layer, segments, annotated)


def _extend(
    stack: Stack,
    ref: ComponentRef,
    recipe: Recipe,
    overrides: list[Override],
    scheduling: Scheduling,
    places: Places,
) -> None:
    entry: Any = recipe.catalog.registry.get(ref["name"]) or {}
    scalars = [item for item in overrides if not item.typed]
    values, _ = apply_scalars(plain(stack.merged), scalars)
    for override in scalars:
        _lay_at(stack, _flag(override), override.segments, values)

    before = values
    target = _Recorder(ref["name"], entry, ref.get("overrides") or {}, values, scalars)
    write_placement(target, scheduling)
    write_storage_classes(target, scheduling)
    for path, value, flag in target.written:
        _lay_filled(stack, Layer(FLAG, flag, None, place=_COMMAND_LINE), path, value)
    _lay_defaults(stack, target, before, places)

    values = target.values
    for flag in (SET_FILE, SET_JSON):
        typed = [item for item in overrides if item.flag == flag]
        values, _, _ = apply_typed(values, typed)
        for override in typed:
            _lay_typed(stack, override, values)


def _flag(override: Override) -> Layer:
    place = override.text if override.flag == SET_FILE else _COMMAND_LINE
    return Layer(FLAG, override.label, None, place=place)


def _lay_at(stack: Stack, layer: Layer, segments: Segments, values: dict[str, Any]) -> None:
    """Lay what *values* hold at a path over the stack; a list counts as a whole."""
    keys = _keys(segments)
    value = paths.get(values, keys)
    _add(stack, layer, keys, value)
    stack.merged = paths.put(stack.merged, keys, tagged(layer, value))


def _lay_filled(stack: Stack, layer: Layer, path: str, value: Any) -> None:
    """Lay a value over the stack as ``fill`` writes it: a map replaces a map."""
    keys = _keys(paths.split(path))
    layer.whole = tuple(str(key) for key in keys)
    _add(stack, layer, keys, value)
    stack.merged, _ = fill(stack.merged, paths.join(keys), tagged(layer, value))


def _lay_defaults(stack: Stack, target: _Recorder, before: dict[str, Any], places: Places) -> None:
    """The tolerations that a bundle writes where nobody said anything (decision 49)."""
    written = {path for path, _, _ in target.written}
    for tier in TIERS:
        for path in target.paths(tier, "tolerationPaths"):
            segments = paths.split(path)
            value = paths.get(target.values, segments, None)
            if path in written or value == paths.get(before, segments, None):
                continue
            written.add(path)
            listed = target.entry["nodeScheduling"][tier]["tolerationPaths"].index(path)
            trail = ("nodeScheduling", tier, "tolerationPaths", listed)
            place = places.registry(target.name, trail)
            _lay_filled(stack, Layer(DEFAULT, TOLERATE_ALL, None, place=place), path, value)


def _lay_typed(stack: Stack, override: Override, values: dict[str, Any]) -> None:
    layer, keys, value = _flag(override), _keys(override.segments), override.value
    if len(keys) < len(override.segments):
        _lay_at(stack, layer, override.segments, values)
        return
    _add(stack, layer, keys, value)
    if value is None:
        stack.merged = paths.delete(stack.merged, keys)
        return
    new = tagged(layer, value)
    if isinstance(value, dict):
        old = paths.get(stack.merged, keys, None)
        new = deep_merge(old if isinstance(old, dict) else {}, new, null_deletes=True)
    stack.merged = paths.put(stack.merged, keys, new)


def _add(stack: Stack, layer: Layer, keys: Segments, value: Any) -> None:
    content = value
    for key in reversed(keys):
        content = {key: content}
    layer.content = content
    stack.layers.append(layer)


def _keys(segments: Segments) -> Segments:
    """The part of a path that leads through maps."""
    for depth, segment in enumerate(segments):
        if isinstance(segment, int):
            return segments[:depth]
    return segments
