"""Mixins: what they may add, and every contradiction they are refused for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import (
    base,
    catalog,
    chart,
    constraint,
    entry,
    mixin,
    overlay,
    refs_of,
    refusal,
    registry,
    resolved,
)

from aicr.errors import AicrError
from aicr.recipe.mixins import IDENTITY_FIELDS, leaf_paths
from aicr.recipe.recipe import Recipe

SERVER = "K8s.server.version"
SAFE = ["tracing.enabled", "policies"]


def tree(
    *mixins: dict[str, Any],
    leaf: dict[str, Any] | None = None,
    root: dict[str, Any] | None = None,
    files: dict[str, str] | None = None,
) -> dict[str, str]:
    """A tree whose one leaf uses all the mixins, named m0, m1 …"""
    names = [f"m{number}" for number in range(len(mixins))]
    return {
        "registry.yaml": registry(entry("x", mixinSafeOverridePaths=SAFE), entry("free")),
        "overlays/base.yaml": base(**(root or {"componentRefs": [chart("x"), chart("y")]})),
        "overlays/leaf.yaml": overlay("leaf", {"service": "eks"}, mixins=names, **(leaf or {})),
        **{f"mixins/{name}.yaml": mixin(name, **spec)
           for name, spec in zip(names, mixins, strict=True)},
        **(files or {}),
    }  # fmt: skip


def made(folder: Path, *mixins: dict[str, Any], **more: Any) -> Recipe:
    """The recipe of such a tree."""
    return resolved(catalog(folder, tree(*mixins, **more)), service="eks")


def denied(folder: Path, *mixins: dict[str, Any], **more: Any) -> AicrError:
    """The refusal of such a tree's recipe; the tree itself loads."""
    found = catalog(folder, tree(*mixins, **more))
    error = refusal(lambda: resolved(found, service="eks"))
    named = str(folder / ("overlays/leaf.yaml" if error.code == "NOT_FOUND" else "mixins/m"))
    assert error.where.startswith(named)
    return error


def test_an_unknown_mixin_is_not_found(tmp_path: Path) -> None:
    """At resolution, with the nearest name, and only for a query that needs it."""
    files = tree({}) | {"overlays/other.yaml": overlay("other", {"service": "gke"}, mixins=["mO"])}
    found = catalog(tmp_path, files)
    error = refusal(lambda: resolved(found, service="gke"))
    assert error.code == "NOT_FOUND"
    assert error.message == 'mixin "mO" not found in recipes/mixins/'
    assert error.hint == 'did you mean "m0"?'
    resolved(found, service="eks")


def test_constraints_and_new_components_are_added(tmp_path: Path) -> None:
    """A mixin is no overlay: it adds, and is not listed as applied."""
    recipe = made(
        tmp_path,
        {"constraints": [constraint(SERVER, ">= 1.30")],
         "componentRefs": [chart("new", dependencyRefs=["x"], overrides={"a.b": {}, "c": 1})]},
    )  # fmt: skip
    assert recipe.document["constraints"] == [constraint(SERVER, ">= 1.30")]
    assert refs_of(recipe)["new"]["overrides"] == {"a.b": {}, "c": 1}
    assert recipe.document["metadata"]["appliedOverlays"] == ["base", "leaf"]
    assert "mixin" not in recipe.to_yaml()


def test_mixins_of_ancestors_and_base_apply_once(tmp_path: Path) -> None:
    """Accumulated along the chains; a second mention adds nothing and conflicts with nothing."""
    files = {
        "overlays/base.yaml": base(mixins=["m0"], componentRefs=[chart("x")]),
        "overlays/parent.yaml": overlay("parent", mixins=["m1"]),
        "overlays/leaf.yaml": overlay(
            "leaf", {"service": "eks"}, base="parent", mixins=["m1", "m0"]
        ),
        "mixins/m0.yaml": mixin("m0", constraints=[constraint(SERVER, ">= 1.30")]),
        "mixins/m1.yaml": mixin("m1", componentRefs=[chart("n")]),
    }
    recipe = resolved(catalog(tmp_path, files), service="eks")
    assert sorted(refs_of(recipe)) == ["n", "x"]
    assert len(recipe.document["constraints"]) == 1


@pytest.mark.covers("R11-75")
def test_two_mixins_may_not_set_one_constraint(tmp_path: Path) -> None:
    """Not even to the same value; the later one is named."""
    spec = {"constraints": [constraint(SERVER, ">= 1.30")]}
    error = denied(tmp_path, spec, spec)
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        f'mixin "m1" constraint "{SERVER}" conflicts with inheritance chain or another mixin'
    )


@pytest.mark.covers("R11-75")
def test_a_mixin_may_not_set_a_constraint_of_the_chain(tmp_path: Path) -> None:
    """What an overlay says is not a mixin's to change."""
    root = {"constraints": [constraint(SERVER, ">= 1.25")]}
    error = denied(tmp_path, {"constraints": [constraint(SERVER, ">= 1.30")]}, root=root)
    assert error.message == (
        f'mixin "m0" constraint "{SERVER}" conflicts with inheritance chain or another mixin'
    )


def test_a_component_twice_in_one_mixin_is_refused_when_loaded(tmp_path: Path) -> None:
    """The mixin contradicts itself."""
    error = refusal(lambda: catalog(tmp_path, tree({"componentRefs": [chart("n"), chart("n")]})))
    assert error.message == (
        'mixin "m0" declares component "n" more than once in its own componentRefs list'
    )
    assert error.code == "INVALID_REQUEST"


VALUES_OF_FIELDS: dict[str, Any] = {
    "chart": "c",
    "type": "Helm",
    "source": "s",
    "version": "1",
    "tag": "t",
    "path": "p",
    "valuesFile": "components/x/values.yaml",
    "patches": ["p"],
    "cleanup": True,
    "expectedResources": [{"kind": "Pod"}],
    "healthCheckAsserts": "a",
    "healthCheckSkip": True,
}


@pytest.mark.covers("R11-74")
@pytest.mark.parametrize("field", IDENTITY_FIELDS)
def test_what_a_component_is_is_not_a_mixins_to_say(tmp_path: Path, field: str) -> None:
    """Every identity field is refused on an existing component, by name."""
    ref = {"name": "x", "namespace": "ok", field: VALUES_OF_FIELDS[field]}
    error = denied(tmp_path, {"componentRefs": [ref]})
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        f'mixin "m0" component "x" sets identity/sourcing field "{field}" which conflicts with the '
        f"inheritance chain; mixins may only contribute Namespace, ManifestFiles, "
        f"PreManifestFiles, DependencyRefs, or registry-allowlisted Overrides paths to an existing "
        f"component"
    )


@pytest.mark.covers("R11-74")
@pytest.mark.parametrize("first", range(len(IDENTITY_FIELDS)))
def test_the_first_offending_field_is_reported(tmp_path: Path, first: int) -> None:
    """In the documented order, whatever the order in the file."""
    fields = IDENTITY_FIELDS[first:]
    ref = {"name": "x", **{field: VALUES_OF_FIELDS[field] for field in reversed(fields)}}
    error = denied(tmp_path, {"componentRefs": [ref]})
    assert f'sets identity/sourcing field "{fields[0]}" which' in error.message


@pytest.mark.covers("R11-74")
def test_even_the_same_version_again_is_refused(tmp_path: Path) -> None:
    """What matters is who may say it, not what is said."""
    error = denied(tmp_path, {"componentRefs": [{"name": "x", "version": "1.0.0"}]})
    assert 'sets identity/sourcing field "version"' in error.message


def test_an_existing_component_can_be_added_to(tmp_path: Path) -> None:
    """Namespace replaces, files and dependencies unite, allowed overrides merge deeply."""
    root = {"componentRefs": [chart("y"), chart(
        "x", namespace="old", dependencyRefs=["y"], manifestFiles=["a.yaml"],
        overrides={"tracing": {"insecure": True}},
    )]}  # fmt: skip
    ref = {"name": "x", "namespace": "new", "dependencyRefs": ["y", "n"],
           "manifestFiles": ["a.yaml", "b.yaml"], "preManifestFiles": ["c.yaml"],
           "overrides": {"tracing": {"enabled": True}}}  # fmt: skip
    recipe = made(tmp_path, {"componentRefs": [chart("n"), ref]}, root=root)
    found = refs_of(recipe)["x"]
    assert found == chart(
        "x",
        namespace="new",
        overrides={"tracing": {"insecure": True, "enabled": True}},
        dependencyRefs=["y", "n"],
        manifestFiles=["a.yaml", "b.yaml"],
        preManifestFiles=["c.yaml"],
    )
    assert recipe.document["deploymentOrder"] == ["n", "y", "x"]


def test_an_empty_namespace_inherits(tmp_path: Path) -> None:
    """Empty says nothing, and false switches say nothing."""
    root = {"componentRefs": [chart("x", namespace="old")]}
    ref = {"name": "x", "namespace": "", "version": "", "cleanup": False, "patches": []}
    recipe = made(tmp_path, {"componentRefs": [ref]}, root=root)
    assert refs_of(recipe)["x"]["namespace"] == "old"


@pytest.mark.parametrize(
    ("component", "overrides", "path", "allowed"),
    [
        ("x", {"tracing": {"insecure": True}}, "tracing.insecure", "[tracing.enabled, policies]"),
        ("x", {"tracing": True}, "tracing", "[tracing.enabled, policies]"),
        ("x", {"policiesX": 1}, "policiesX", "[tracing.enabled, policies]"),
        ("x", {"tracing": {"enabled": True, "a": None}}, "tracing.a",
         "[tracing.enabled, policies]"),
        ("x", {"enabled": False}, "enabled", "[tracing.enabled, policies]"),
        ("y", {"a": 1}, "a", "[]"),
    ],
)  # fmt: skip
def test_only_allow_listed_overrides_are_accepted(
    tmp_path: Path, component: str, overrides: dict[str, Any], path: str, allowed: str
) -> None:
    """A component without an allow-list accepts none."""
    ref = {"name": component, "overrides": overrides}
    error = denied(tmp_path, {"componentRefs": [ref]})
    assert error.message == (
        f'mixin "m0" component "{component}" sets overrides path "{path}", which is not in the '
        f"component's registry-declared mixinSafeOverridePaths allowlist {allowed}"
    )


def test_an_allowed_path_allows_what_lies_below_it(tmp_path: Path) -> None:
    """policies.a is part of policies."""
    ref = {"name": "x", "overrides": {"policies": {"a": [1], "b": {"c": None}}}}
    recipe = made(tmp_path, {"componentRefs": [ref]})
    assert refs_of(recipe)["x"]["overrides"] == {"policies": {"a": [1], "b": {"c": None}}}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({}, "sets an empty overrides map"),
        ({"policies": {}}, 'sets an empty map at overrides path "policies"'),
        ({"policies": {"a": {"b": {}}}}, 'sets an empty map at overrides path "policies.a.b"'),
        ({"": 1}, 'has override key "", which is empty or holds a dot'),
        ({"policies": {"": 1}}, 'has override key "", which is empty or holds a dot'),
        ({"tracing.enabled": True}, 'has override key "tracing.enabled", which is empty or holds'),
    ],
)
def test_overrides_that_cannot_be_checked_are_refused(
    tmp_path: Path, overrides: dict[str, Any], message: str
) -> None:
    """Empty maps, empty keys and keys with a dot say nothing that a path could name."""
    error = denied(tmp_path, {"componentRefs": [{"name": "x", "overrides": overrides}]})
    assert error.message == f'mixin "m0" component "x" {message}' or message in error.message
    assert error.code == "INVALID_REQUEST"


COLLIDES = 'mixin "{}" component "x" collides with path "{}" already set by the leaf\'s own chain'


@pytest.mark.parametrize(
    ("own", "files", "path"),
    [
        ({"overrides": {"tracing": {"enabled": False}}}, {}, "tracing.enabled"),
        ({"overrides": {"tracing": {"enabled": None}}}, {}, "tracing.enabled"),
        ({"overrides": {"tracing": "off"}}, {}, "tracing.enabled"),
        ({"overrides": {"tracing": None}}, {}, "tracing.enabled"),
        ({"overrides": {"tracing": {"enabled": {"deep": 1}}}}, {}, "tracing.enabled"),
        ({}, {"components/x/values.yaml": "tracing: {enabled: false}\n"}, "tracing.enabled"),
        ({"valuesFile": "components/x/values-eks.yaml"},
         {"components/x/values-eks.yaml": "tracing: {enabled: false}\n",
          "components/x/values.yaml": "a: 1\n"}, "tracing.enabled"),
        ({"valuesFile": "components/x/values-eks.yaml"},
         {"components/x/values-eks.yaml": "a: 1\n",
          "components/x/values.yaml": "tracing: 1\n"}, "tracing.enabled"),
    ],
)  # fmt: skip
def test_a_path_that_the_chain_sets_is_taken(
    tmp_path: Path, own: dict[str, Any], files: dict[str, str], path: str
) -> None:
    """In overrides, valuesFile or values.yaml; the path itself or an ancestor that is no map."""
    ref = {"name": "x", "overrides": {"tracing": {"enabled": True}}}
    root = {"componentRefs": [chart("x", **own)]}
    error = denied(tmp_path, {"componentRefs": [ref]}, root=root, files=files)
    assert error.message.startswith(COLLIDES.format("m0", path))
    assert error.code == "INVALID_REQUEST"


def test_a_neighbouring_path_is_free(tmp_path: Path) -> None:
    """The chain sets tracing.insecure; tracing.enabled is still the mixin's."""
    root = {"componentRefs": [chart("x", overrides={"tracing": {"insecure": True}})]}
    ref = {"name": "x", "overrides": {"tracing": {"enabled": True}}}
    files = {"components/x/values.yaml": "tracing: {insecure: false}\n"}
    recipe = made(tmp_path, {"componentRefs": [ref]}, root=root, files=files)
    assert refs_of(recipe)["x"]["overrides"]["tracing"] == {"insecure": True, "enabled": True}


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ({"policies": {"a": 1}}, {"policies": {"a": 1}}, "policies.a"),
        ({"policies": 1}, {"policies": {"a": 1}}, "policies.a"),
        ({"policies": {"a": 1}}, {"policies": 1}, "policies"),
    ],
)
def test_two_mixins_may_not_set_one_path(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], path: str
) -> None:
    """Equal, above or below: the later mixin is named."""
    specs = [{"componentRefs": [{"name": "x", "overrides": over}]} for over in (first, second)]
    error = denied(tmp_path, *specs)
    assert error.message.startswith(COLLIDES.format("m1", path))


def test_two_mixins_may_set_two_paths(tmp_path: Path) -> None:
    """Siblings do not collide."""
    specs = [
        {"componentRefs": [{"name": "x", "overrides": {"policies": {key: 1}}}]} for key in "ab"
    ]
    recipe = made(tmp_path, *specs)
    assert refs_of(recipe)["x"]["overrides"] == {"policies": {"a": 1, "b": 1}}


def test_a_component_that_an_earlier_mixin_brought_is_existing(tmp_path: Path) -> None:
    """The second mixin may add to it and may not say what it is."""
    new = {"componentRefs": [chart("n")]}
    more = {"componentRefs": [{"name": "n", "dependencyRefs": ["x"]}]}
    assert refs_of(made(tmp_path / "a", new, more))["n"]["dependencyRefs"] == ["x"]
    error = denied(tmp_path / "b", new, new)
    assert 'mixin "m1" component "n" sets identity/sourcing field "chart"' in error.message


def test_a_new_component_with_an_allow_list_is_restricted_too(tmp_path: Path) -> None:
    """No valuesFile, and only allowed overrides; without an allow-list it is added as it is."""
    root: dict[str, Any] = {"componentRefs": []}
    error = denied(
        tmp_path / "a",
        {"componentRefs": [chart("x", valuesFile="components/x/values.yaml")]},
        root=root,
    )
    assert 'mixin "m0" component "x" sets valuesFile' in error.message
    error = denied(
        tmp_path / "b", {"componentRefs": [chart("x", overrides={"other": 1})]}, root=root
    )
    assert 'sets overrides path "other", which is not in' in error.message
    allowed = chart("x", overrides={"policies": {"a": 1}})
    recipe = made(tmp_path / "c", {"componentRefs": [allowed]}, root=root)
    assert refs_of(recipe)["x"] == allowed
    free = chart("free", valuesFile="components/free/values.yaml", overrides={"other": {}})
    assert refs_of(made(tmp_path / "d", {"componentRefs": [free]}, root=root))["free"] == free


def test_a_disabled_target_is_a_warning(tmp_path: Path) -> None:
    """The contribution is kept for the day it is enabled."""
    root = {"componentRefs": [chart("x", overrides={"enabled": False}), chart("y")]}
    recipe = made(tmp_path, {"componentRefs": [{"name": "x", "dependencyRefs": ["y"]}]}, root=root)
    assert refs_of(recipe)["x"]["dependencyRefs"] == ["y"]
    assert recipe.warnings == [
        'mixin "m0" component "x": the component is disabled, so the mixin has no effect on it'
    ]


def test_a_mixin_may_not_bring_a_dependency_that_is_not_there(tmp_path: Path) -> None:
    """The merged recipe is checked after mixins."""
    found = catalog(tmp_path, tree({"componentRefs": [{"name": "x", "dependencyRefs": ["nope"]}]}))
    error = refusal(lambda: resolved(found, service="eks"))
    assert error.message == "merged recipe validation failed"
    assert 'component "x" references unknown dependency "nope"' in str(error)


def test_leaf_paths_count_lists_and_nulls_as_leaves() -> None:
    """Maps are walked, all else is set as a whole."""
    assert list(leaf_paths({"a": {"b": [{"c": 1}], "d": None}, "e": 1})) == ["a.b", "a.d", "e"]
    assert list(leaf_paths(None)) == []
