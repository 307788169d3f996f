"""What a validation may look at: final values, declared components, criteria, dynamic paths.

``Context`` is the one argument of every validation. Values are those of the plan for a rendered
component, and the recipe's own for a component that is declared but not rendered: overrides for
those are refused earlier, so there is nothing else to add (bundler spec 6.3).
"""

from __future__ import annotations

from aicr.bundle.selection import OVERRIDE_REMOVED, RECIPE_DISABLES
from aicr.recipe.hydrate import resolve_values
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from aicr.bundle.options import BundleOptions, Scheduling
    from aicr.bundle.plan import Component
    from aicr.catalog.tree import Tree
    from aicr.catalog.types import ComponentRef
    from aicr.errors import AicrError
    from aicr.recipe.types import RecipeResult

    #: What every validation returns: findings whose weight the registry decides, and errors.
    Verdict = tuple[list["Finding"], list[AicrError]]

GPU_OPERATORS: Final = ("gpu-operator", "gpu-operator-ocp")


class _Mark:
    """Type of the two marks below; they are compared with ``is``."""


#: There is no value at a path.
ABSENT: Final = _Mark()
#: Something on the way to a path is not a map, null included.
BROKEN: Final = _Mark()


class Finding:
    """One thing that a validation has to say: ``text`` what is wrong, ``hint`` the next step."""

    __slots__ = ("hint", "text")

    def __init__(self, text: str, hint: str = "") -> None:
        self.text = text
        self.hint = hint

    def __repr__(self) -> str:
        return f"Finding({self.text!r})"


class Context:
    """The component under judgement and everything a validation may consult about it.

    Attributes:
        component: the rendered component that wires the validation.
        recipe: the recipe as it was given, nothing filtered out.
        refs: every declared ref by name, with registry defaults.
        removed: declared components that are not rendered -> why.
        rendered: rendered components by name.
        options: the flags as typed. scheduling: the placement and storage flags, read.
    """

    __slots__ = (
        "_resolved",
        "_tree",
        "component",
        "options",
        "recipe",
        "refs",
        "removed",
        "rendered",
        "scheduling",
    )

    def __init__(
        self,
        *,
        component: Component,
        recipe: RecipeResult,
        refs: Mapping[str, ComponentRef],
        removed: Mapping[str, str],
        rendered: Mapping[str, Component],
        options: BundleOptions,
        scheduling: Scheduling,
        tree: Tree,
    ) -> None:
        self.component = component
        self.recipe = recipe
        self.refs = refs
        self.removed = removed
        self.rendered = rendered
        self.options = options
        self.scheduling = scheduling
        self._tree = tree
        self._resolved: dict[str, dict[str, Any]] = {}

    @property
    def name(self) -> str:
        """Name of the component under judgement."""
        return self.component.name

    @property
    def criteria(self) -> Mapping[str, Any]:
        """The recipe's criteria; empty when it has none."""
        return self.recipe.get("criteria") or {}

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The recipe's metadata: what a snapshot observed, and the selected profile."""
        return self.recipe.get("metadata") or {}

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The recipe's typed configuration."""
        return self.recipe.get("configuration") or {}

    def enabled(self, name: str) -> bool:
        """Whether a component is declared and neither recipe nor ``--set`` switch it off."""
        reason = self.removed.get(name)
        return name in self.refs and reason not in (RECIPE_DISABLES, OVERRIDE_REMOVED)

    def values(self, name: str = "") -> Mapping[str, Any]:
        """Final values of a declared component, by default the one under judgement.

        Raises:
            AicrError: a values file of a component that is not rendered is missing or malformed.
        """
        component = self.rendered.get(name or self.name)
        if component is not None:
            return component.values
        if name not in self._resolved:
            values = resolve_values(self.refs[name], self._tree)
            values.pop("enabled", None)
            self._resolved[name] = values
        return self._resolved[name]

    def is_dynamic(self, path: str, name: str = "") -> bool:
        """Whether a declared ``--dynamic`` path is at, above or below *path* of a component."""
        component = self.rendered.get(name or self.name)
        if component is None or not component.dynamic:
            return False
        segments: list[str | int] = [*path.split(".")]
        return any(paths.conflict(declared, segments) for declared in component.dynamic)

    def gpu_operator(self) -> str:
        """The GPU operator of the recipe, whichever variant is enabled; "" when none is."""
        return next((name for name in GPU_OPERATORS if self.enabled(name)), "")

    def profile(self, name: str) -> str:
        """The value of the selected profile of that name, or ""."""
        selected = self.metadata.get("selectedProfile") or {}
        return selected.get("value") or "" if selected.get("name") == name else ""


def look(values: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, ``ABSENT``, or ``BROKEN`` when the way there is no map.

    >>> look({"a": {"b": None}}, "a.b") is None
    True
    >>> look({"a": None}, "a.b") is BROKEN
    True
    """
    value: Any = values
    for segment in path.split("."):
        if not isinstance(value, dict):
            return BROKEN
        if segment not in value:
            return ABSENT
        value = value[segment]
    return value


def truth(value: Any) -> bool:
    """Whether a chart's template takes a value for true (bundler spec 6.3).

    Empty text, zero and empty collections are false; the *text* ``false`` is true.

    >>> [truth(value) for value in (False, 0, "", [], None, "false")]
    [False, False, False, False, False, True]
    """
    return bool(value) and value is not ABSENT and value is not BROKEN


def shown(value: Any) -> str:
    """A value for a message, as one line of JSON; ``unset`` where there is none."""
    if value is ABSENT:
        return "unset"
    if value is BROKEN:
        return "below something that is not a map"
    from aicr.bundle.override_values import show

    return show(value)
