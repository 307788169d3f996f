"""Contexts for single validations, built by hand from a few values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aicr.bundle.options import BundleOptions, parse_scheduling
from aicr.bundle.plan import Component
from aicr.bundle.selection import RECIPE_DISABLES
from aicr.bundle.validations.effective import Context, Finding
from aicr.errors import AicrError
from aicr.values import paths

Values = dict[str, dict[str, Any]]


class ValuesTree:
    """A catalogue tree that holds values of components, as values files would."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._files = {f"components/{name}/values.yaml": held for name, held in values.items()}

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return path in self._files

    def values(self, path: str) -> dict[str, Any]:
        """The values of one file; an error stands for a file that cannot be read."""
        held = self._files[path]
        if isinstance(held, AicrError):
            raise held
        return dict(held)


def component(
    name: str,
    values: dict[str, Any] | None = None,
    *,
    dynamic: Sequence[str] = (),
    namespace: str = "",
    entry: dict[str, Any] | None = None,
) -> Component:
    """A rendered component."""
    return Component(
        name=name,
        ref=cast("Any", {"name": name, "type": "Helm"}),
        entry=cast("Any", entry or {}),
        namespace=namespace or name,
        values=values or {},
        manifests=[],
        pre_manifests=[],
        changes=[],
        dynamic=[paths.split(path) for path in dynamic],
    )


def context(
    name: str,
    values: Values | None = None,
    *,
    dynamic: Mapping[str, Sequence[str]] | None = None,
    removed: Mapping[str, str] | None = None,
    left_out: Mapping[str, Any] | None = None,
    namespaces: Mapping[str, str] | None = None,
    entry: dict[str, Any] | None = None,
    refs: Mapping[str, dict[str, Any]] | None = None,
    criteria: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    configuration: dict[str, Any] | None = None,
    **flags: Any,
) -> Context:
    """The context of component *name*.

    Args:
        name: the component under judgement.
        values: values of every rendered component; *name* is rendered even without any.
        dynamic: dynamic paths by component.
        removed: declared components that are not rendered -> why.
        left_out: values of declared components that are not rendered for another reason, such as a
            filter; an error in their place is what reading them raises.
        namespaces: namespaces that differ from the component's name.
        entry: registry entry of *name*. refs: more fields of refs.
        criteria, metadata, configuration: blocks of the recipe; no criteria when None.
        flags: fields of BundleOptions.
    """
    values = {name: {}, **(values or {})}
    dynamic, left_out = dynamic or {}, left_out or {}
    namespaces, refs = namespaces or {}, refs or {}
    why = {**(removed or {}), **dict.fromkeys(left_out, "the bundlers filter left it out")}
    recipe: dict[str, Any] = {"metadata": metadata or {}, "configuration": configuration or {}}
    if criteria is not None:
        recipe["criteria"] = criteria
    options = BundleOptions(**flags)
    declared = {
        each: {"name": each, "type": "Helm", **refs.get(each, {})} for each in (*values, *why)
    }
    rendered = {
        each: component(
            each,
            held,
            dynamic=dynamic.get(each, ()),
            namespace=namespaces.get(each, ""),
            entry=entry if each == name else None,
        )
        for each, held in values.items()
    }
    return Context(
        component=rendered[name],
        recipe=cast("Any", recipe),
        refs=cast("Any", declared),
        removed=why,
        rendered=rendered,
        options=options,
        scheduling=parse_scheduling(options),
        tree=cast("Any", ValuesTree(left_out)),
    )


def disabled(*names: str) -> dict[str, str]:
    """These components, disabled by the recipe."""
    return dict.fromkeys(names, RECIPE_DISABLES)


def only(verdict: tuple[list[Finding], list[AicrError]]) -> str:
    """The text of the one finding of a verdict without errors; "" when it is silent."""
    findings, errors = verdict
    assert errors == []
    assert len(findings) <= 1, findings
    for finding in findings:
        assert finding.hint, f"no next step: {finding.text}"
    return findings[0].text if findings else ""


def error_of(verdict: tuple[list[Finding], list[AicrError]]) -> AicrError:
    """The one error of a verdict without findings."""
    findings, errors = verdict
    assert findings == []
    assert len(errors) == 1
    assert errors[0].hint
    return errors[0]


def nested(path: str, value: Any) -> dict[str, Any]:
    """Values that hold one value at a dotted path."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return cast("dict[str, Any]", value)


def merged(*trees: dict[str, Any]) -> dict[str, Any]:
    """Values laid over each other."""
    from aicr.values.merge import deep_merge

    found: dict[str, Any] = {}
    for tree in trees:
        found = deep_merge(found, tree, null_deletes=False)
    return found
