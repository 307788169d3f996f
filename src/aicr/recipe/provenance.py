"""The layers of a resolved recipe, lowest first, and which of them each value came from.

A recipe does not say how it came about; its metadata names what was merged, and the catalogue still has
the parts. This module lines the parts up again:

```
values.yaml ─► valuesFile ─► overlays in merge order ─► mixins ─► profile ─► configuration
```

To find the origin of a value it does not repeat the merge rules but runs the product's own merge on
*tagged* trees, in which every leaf is a ``Tag`` that remembers its layer. Merging moves leaves without
looking into them, so the tags that come out are right by construction; a test hydrates the whole
catalogue both ways. It must not know selectors, words for people, or flags of a bundle.
"""

from __future__ import annotations

from aicr.catalog.registry import KUSTOMIZE
from aicr.recipe.criteria import Criteria
from aicr.recipe.hydrate import layered
from aicr.recipe.places import places_of
from aicr.values.merge import copy_tree, deep_merge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from aicr.catalog.types import ComponentRef
    from aicr.recipe.places import Trail
    from aicr.recipe.recipe import Recipe

    Keys = tuple[str, ...]

#: Kinds of layers, as they are shown and written to JSON.
REGISTRY: Final = "registry"
COMPONENT_VALUES: Final = "component values"
VALUES_FILE: Final = "values file"
OVERLAY: Final = "overlay"
MIXIN: Final = "mixin"
PROFILE: Final = "profile"
CONFIGURATION: Final = "configuration"

#: Choice behind what configuration sets on a component; any other is the accounting of Slurm.
_CHOICES: Final = {"k8s-aibom": "runtimeInventory", "kubeflow-trainer": "gke.tcpxoInterfaces"}
_ACCOUNTING: Final = "slurm.accounting.mode"


class Layer:
    """One source of values.

    Attributes:
        kind: one of the kinds above, or what a later step calls its own.
        name: the overlay, the mixin, the file, ``profile=value``, or the choice.
        file: path in the catalogue's tree; "" for what stands in no file.
        trail: where in that file ``content`` stands.
        content: the part of the document.
        place: what to show as its place when it stands in no file.
        named_by: for a values file, the layer whose ``valuesFile`` chose it.
        whole: path below which the layer leaves nothing of those under it; None for a layer that
            merges.
    """

    __slots__ = ("content", "file", "kind", "name", "named_by", "place", "trail", "whole")

    def __init__(
        self,
        kind: str,
        name: str,
        content: Any,
        *,
        file: str = "",
        trail: Trail = (),
        place: str = "",
        named_by: Layer | None = None,
        whole: Keys | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.file = file
        self.trail = trail
        self.place = place
        self.content = content
        self.named_by = named_by
        self.whole = whole

    def inside(self, *keys: str | int, content: Any) -> Layer:
        """The same source, narrowed to a part of it."""
        trail = (*self.trail, *keys)
        return Layer(self.kind, self.name, content, file=self.file, trail=trail, place=self.place)


class Tag:
    """A leaf of a values tree (scalar or list) and the layer it came from."""

    __slots__ = ("layer", "value")

    def __init__(self, layer: Layer, value: Any) -> None:
        self.layer = layer
        self.value = value


class Stack:
    """The values of one component by layer, lowest first, and what they add up to.

    Attributes:
        layers: each ``content`` is a tree of values, nulls included.
        merged: the outcome, with ``Tag`` leaves; nulls that stay for Helm are None.
    """

    __slots__ = ("layers", "merged")

    def __init__(self, layers: list[Layer], merged: dict[str, Any]) -> None:
        self.layers = layers
        self.merged = merged


class Origins:
    """The layers of one recipe.

    Args:
        recipe: what resolution returned.
    """

    __slots__ = ("by_name", "places", "recipe", "sources")

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.places = places_of(recipe.catalog)
        #: Overlays, mixins and the profile value: ``content`` is a spec, or a profile value.
        self.sources: list[Layer] = list(_sources(recipe))
        self.by_name: dict[str, ComponentRef] = {
            ref["name"]: ref for ref in recipe.document.get("componentRefs") or ()
        }

    def where(self, layer: Layer, *keys: str | int) -> str:
        """``file:line`` of a key of a layer, or the place of one that stands in no file."""
        if layer.file:
            return self.places.at(layer.file, (*layer.trail, *keys))
        return layer.place

    def refs(self, component: str) -> list[Layer]:
        """What each layer says about one component; ``content`` is a component ref."""
        found = []
        for source in self.sources:
            for index, ref in enumerate(source.content.get("componentRefs") or ()):
                if ref["name"] == component:
                    found.append(source.inside("componentRefs", index, content=ref))
        overrides = _configured(self.recipe).get(component)
        if overrides:
            name = _CHOICES.get(component, _ACCOUNTING)
            content = {"name": component, "overrides": overrides}
            found.append(Layer(CONFIGURATION, name, content, place=f"configuration.{name}"))
        return found

    def overrides(self, component: str) -> Stack:
        """The inline overrides of a component: nulls are values here (recipe spec 4.1)."""
        layers = [
            layer.inside("overrides", content=layer.content["overrides"])
            for layer in self.refs(component)
            if layer.content.get("overrides")
        ]
        merged: dict[str, Any] = {}
        for layer in layers:
            merged = deep_merge(merged, tagged(layer, layer.content), null_deletes=False)
        return Stack(layers, merged)

    def values(self, component: str) -> Stack:
        """The values of a component, as ``hydrate`` resolves them.

        Raises:
            AicrError: for a values file that cannot be read.
        """
        ref = self.by_name[component]
        if ref.get("type") == KUSTOMIZE:
            return Stack([], {})
        files = self._value_files(ref)
        overrides = self.overrides(component)
        trees = [tagged(layer, layer.content) for layer in files]
        return Stack([*files, *overrides.layers], layered(*trees, overrides.merged))

    def _value_files(self, ref: ComponentRef) -> list[Layer]:
        tree = self.recipe.catalog.tree
        own = f"components/{ref['name']}/values.yaml"
        named = ref.get("valuesFile") or ""
        files = []
        if named == own or tree.exists(own):
            files.append(Layer(COMPONENT_VALUES, own, tree.values(own), file=own))
        if named and named != own:
            chooser = None
            for layer in self.refs(ref["name"]):
                if layer.content.get("valuesFile"):
                    chooser = layer
            files.append(
                Layer(VALUES_FILE, named, tree.values(named), file=named, named_by=chooser)
            )
        return files


def tagged(layer: Layer, value: Any) -> Any:
    """A tree whose leaves know their layer; maps stay maps, and nulls stay, as both have rules."""
    if isinstance(value, dict):
        return {key: tagged(layer, item) for key, item in value.items()}
    return None if value is None else Tag(layer, copy_tree(value))


def plain(value: Any) -> Any:
    """A tagged tree without its tags."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value.value if isinstance(value, Tag) else value


def leaves(value: Any, keys: Keys = ()) -> Iterator[Keys]:
    """Paths of the leaves of a tree, in order: everything but maps that hold something."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*keys, key))
    else:
        yield keys


def applied_mixins(recipe: Recipe) -> list[tuple[str, list[str]]]:
    """Each mixin in the order of application, and the applied overlays that list it."""
    listed: dict[str, list[str]] = {}
    for name in recipe.document["metadata"].get("appliedOverlays") or ():
        for mixin in _overlay(recipe, name)["spec"].get("mixins") or ():
            listed.setdefault(mixin, []).append(name)
    return list(listed.items())


def declaring_overlay(recipe: Recipe) -> Any:
    """The applied overlay that declares a profile, or None."""
    for name in recipe.document["metadata"].get("appliedOverlays") or ():
        overlay = _overlay(recipe, name)
        if overlay["spec"].get("profile") is not None:
            return overlay
    return None


def _overlay(recipe: Recipe, name: str) -> Any:
    catalog = recipe.catalog
    return catalog.base if name == "base" else catalog.overlays[name]


def _sources(recipe: Recipe) -> Iterator[Layer]:
    for name in recipe.document["metadata"].get("appliedOverlays") or ():
        overlay = _overlay(recipe, name)
        yield Layer(OVERLAY, name, overlay["spec"], file=overlay["path"], trail=("spec",))
    for name, _ in applied_mixins(recipe):
        mixin = recipe.catalog.mixins[name]
        yield Layer(MIXIN, name, mixin["spec"], file=mixin["path"], trail=("spec",))
    selected = recipe.document["metadata"].get("selectedProfile")
    if selected:
        overlay = declaring_overlay(recipe)
        value = selected["value"]
        yield Layer(
            PROFILE,
            f"{selected['name']}={value}",
            overlay["spec"]["profile"]["values"][value],
            file=overlay["path"],
            trail=("spec", "profile", "values", value),
        )


def _configured(recipe: Recipe) -> dict[str, dict[str, Any]]:
    """Overrides that typed configuration set, by component: the product's own step on bare refs."""
    configuration = recipe.document.get("configuration")
    if not configuration:
        return {}
    from aicr.recipe.configuration import apply_configuration

    bare: dict[str, ComponentRef] = {}
    for ref in recipe.document.get("componentRefs") or ():
        bare[ref["name"]] = {"name": ref["name"], "manifestFiles": ref.get("manifestFiles") or []}
    words = {
        key: value for key, value in recipe.document["criteria"].items() if key != "nodes" and value
    }
    apply_configuration(bare, configuration, Criteria(**words))
    return {name: ref["overrides"] for name, ref in bare.items() if ref.get("overrides")}
