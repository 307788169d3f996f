"""Is every ref of a recipe something that can be deployed? And are its dependencies whole?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.conftest import Install
from tests.recipe.trees import (
    SOURCE,
    catalog,
    chart,
    entry,
    innermost,
    overlay,
    refs_of,
    refusal,
    refused,
    registry,
    resolved,
)

from aicr.recipe.coherence import canonical_type, check_coherence, check_duplicates, ref_problems
from aicr.recipe.recipe import Recipe


def files(*refs: dict[str, Any], entries: tuple[dict[str, Any], ...] = ()) -> dict[str, str]:
    """A tree whose eks recipe has these refs."""
    return {
        "registry.yaml": registry(*entries),
        "overlays/eks.yaml": overlay("eks", {"service": "eks"}, componentRefs=list(refs)),
    }


def made(folder: Path, *refs: dict[str, Any], entries: tuple[dict[str, Any], ...] = ()) -> Recipe:
    """The recipe of such a tree."""
    return resolved(catalog(folder, files(*refs, entries=entries)), service="eks")


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        (chart("x"), []),
        (chart("x", patches=["p"]), ['component "x" declares patches, which no deployer applies']),
        (chart("x", tag="t"), ['Helm component "x" has tag set, which belongs to Kustomize']),
        (chart("x", path="p"), ['Helm component "x" has path set, which belongs to Kustomize']),
        (chart("x", version=" 1.0.0"),
         ["component \"x\" has version ' 1.0.0' with blanks around it"]),
        (chart("x", chart="c\n"), ["component \"x\" has chart 'c\\n' with blanks around it"]),
        (chart("x", source="\ts"), ["component \"x\" has source '\\ts' with blanks around it"]),
        (chart("x", version="v"), ['component "x" has version "v", which names no version']),
        (chart("x", version="V"), ['component "x" has version "v", which names no version']),
        (chart("x", version=""),
         ['Helm component "x" has no chart version; set version: …']),
        ({"name": "x", "type": "Helm", "source": SOURCE},
         ['Helm component "x" has no chart version; set version: …']),
        ({"name": "x", "type": "Helm", "chart": "c", "version": "1"},
         ['Helm component "x" has chart "c" but no source']),
        ({"name": "x", "type": "Helm", "chart": "c", "manifestFiles": ["m.yaml"]},
         ['Helm component "x" has chart "c" but no source']),
        ({"name": "x", "type": "Helm"},
         ['component "x" has no deployable primary: set source, chart and version, or '
          "manifestFiles"]),
        ({"name": "x", "type": "Helm", "preManifestFiles": ["m.yaml"]},
         ['component "x" has no deployable primary: set source, chart and version, or '
          "manifestFiles"]),
        ({"name": "x", "type": "Helm", "manifestFiles": ["m.yaml"]}, []),
        ({"name": "x", "type": "Kustomize", "path": "p"}, []),
        ({"name": "x", "type": "Kustomize", "path": "p", "source": "s", "tag": "t"}, []),
        ({"name": "x", "type": "Kustomize", "source": "s"},
         ['Kustomize component "x" has no path']),
        ({"name": "x", "type": "Kustomize", "path": "p", "tag": "t"},
         ['Kustomize component "x" has tag "t" but no source']),
        ({"name": "x", "type": "Kustomize", "path": "p", "manifestFiles": ["m"]},
         ['Kustomize component "x" cannot carry manifestFiles']),
        ({"name": "x", "type": "", "source": ""},
         ['component "x" has unsupported type ""; expected "Helm" or "Kustomize"']),
        ({"name": "x", "type": "Ansible"},
         ['component "x" has unsupported type "Ansible"; expected "Helm" or "Kustomize"']),
    ],
)  # fmt: skip
def test_the_table_of_problems(ref: Any, expected: list[str]) -> None:
    """Each row of recipe specification 4.10."""
    assert ref_problems(ref) == expected


@pytest.mark.covers("R11-48")
def test_a_component_of_unknown_type_is_refused(installed: Install, tmp_path: Path) -> None:
    """Not in the registry and with nothing to deploy: refused, where the original emits it."""
    installed(files({"name": "zzz"}))
    target = tmp_path / "recipe.yaml"
    ran = refused("recipe", "--service", "eks", "-o", str(target))
    assert ran.status == 2
    assert (
        'recipe has incoherent component ref(s): component "zzz" has unsupported type ""; expected '
        '"Helm" or "Kustomize"'
    ) in ran.err
    assert not target.exists()


@pytest.mark.covers("R11-48")
def test_a_registered_but_empty_entry_is_refused(tmp_path: Path) -> None:
    """It has a type by default and still nothing to deploy."""
    error = refusal(lambda: made(tmp_path, {"name": "x"}, entries=(entry("x"),)))
    assert error.code == "INVALID_REQUEST"
    assert error.context["problems"] == [
        'component "x" has no deployable primary: set source, chart and version, or manifestFiles'
    ]


@pytest.mark.covers("R11-49")
def test_a_chart_without_a_version_anywhere_is_refused(tmp_path: Path) -> None:
    """The overlay's, else the registry's; with neither there is nothing to pin."""
    helm = {"defaultRepository": SOURCE, "defaultChart": "c"}
    error = refusal(lambda: made(tmp_path / "a", {"name": "x"}, entries=(entry("x", helm=helm),)))
    assert error.message == (
        'recipe has incoherent component ref(s): Helm component "x" has no chart version; set '
        "version: …"
    )
    pinned = entry("x", helm={**helm, "defaultVersion": "2.0.0"})
    assert (
        refs_of(made(tmp_path / "b", {"name": "x"}, entries=(pinned,)))["x"]["version"] == "2.0.0"
    )
    ref = {"name": "x", "version": "3.0.0"}
    assert refs_of(made(tmp_path / "c", ref, entries=(pinned,)))["x"]["version"] == "3.0.0"


def test_all_problems_are_sorted_and_reported_together(tmp_path: Path) -> None:
    """In the order of their words, whatever the order of the refs."""
    error = refusal(
        lambda: made(tmp_path, chart("b", patches=["p"]), chart("a", tag="t"), {"name": "c"})
    )
    problems = error.context["problems"]
    assert len(problems) == 3
    assert problems == sorted(problems)
    assert error.message == "recipe has incoherent component ref(s): " + "; ".join(problems)


def test_disabled_refs_may_be_incoherent(tmp_path: Path) -> None:
    """What is not deployed need not be deployable."""
    recipe = made(tmp_path, chart("a"), {"name": "b", "overrides": {"enabled": False}})
    assert refs_of(recipe)["b"] == {
        "name": "b",
        "type": "",
        "source": "",
        "overrides": {"enabled": False},
    }
    assert recipe.document["deploymentOrder"] == ["a"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [("helm", "Helm"), ("HELM", "Helm"), ("kustomize", "Kustomize"), ("KuStomize", "Kustomize"),
     ("", ""), ("other", "other")],
)  # fmt: skip
def test_types_have_one_spelling(written: str, expected: str) -> None:
    """Any case is accepted, one is written."""
    assert canonical_type(written) == expected


def test_a_type_in_any_case_is_written_in_one(tmp_path: Path) -> None:
    """In the document."""
    recipe = made(
        tmp_path, chart("a", type="helm"), {"name": "k", "type": "KUSTOMIZE", "path": "p"}
    )
    assert {name: ref["type"] for name, ref in refs_of(recipe).items()} == {
        "a": "Helm",
        "k": "Kustomize",
    }


def test_deployer_is_no_component(tmp_path: Path) -> None:
    """Not even a disabled one."""
    for number, more in enumerate(({}, {"overrides": {"enabled": False}})):
        error = refusal(lambda n=number, m=more: made(tmp_path / str(n), chart("deployer", **m)))  # type: ignore[misc]
        assert error.message.startswith('component "deployer" uses a reserved name')
        assert error.code == "INVALID_REQUEST"


def test_two_refs_of_one_name_are_refused() -> None:
    """With both positions."""
    error = refusal(lambda: check_duplicates([{"name": "a"}, {"name": "b"}, {"name": "a"}]))
    assert error.message == 'recipe has duplicate component ref name "a" (refs 0 and 2)'
    check_coherence([])


@pytest.mark.covers("R11-33")
def test_a_dependency_that_is_not_in_the_recipe_is_refused(
    installed: Install, tmp_path: Path
) -> None:
    """Under "merged recipe validation failed", with the edge; nothing is written."""
    found = installed(files(chart("foo", dependencyRefs=["nope"])))
    error = refusal(lambda: resolved(found, service="eks"))
    assert error.message == "merged recipe validation failed"
    expected = 'component "foo" references unknown dependency "nope"'
    assert innermost(error).message == expected
    target = tmp_path / "recipe.yaml"
    ran = refused("recipe", "--service", "eks", "-o", str(target))
    assert ran.status == 2
    assert expected in ran.err
    assert not target.exists()


@pytest.mark.covers("R11-34", "F1")
def test_a_circle_of_dependencies_is_refused(installed: Install) -> None:
    """With the whole circle, and the chain of wrappers."""
    found = installed(files(chart("a", dependencyRefs=["b"]), chart("b", dependencyRefs=["a"])))
    error = refusal(lambda: resolved(found, service="eks"))
    assert [link.message for link in error.chain()] == [
        "merged recipe validation failed",
        "dependency validation failed",
        "circular dependency detected: [a b a]",
    ]
    ran = refused("recipe", "--service", "eks")
    assert ran.status == 2
    assert "circular dependency detected: [a b a]" in ran.err


@pytest.mark.covers("F1")
def test_a_recipe_orders_through_a_disabled_component(tmp_path: Path) -> None:
    """gpu-operator comes after cert-manager although nfd between them is off."""
    recipe = made(
        tmp_path,
        chart("gpu-operator", dependencyRefs=["nfd"]),
        chart("nfd", dependencyRefs=["zz-cert-manager"], overrides={"enabled": False}),
        chart("zz-cert-manager"),
        chart("aws-efa"),
    )
    assert recipe.document["deploymentOrder"] == ["aws-efa", "zz-cert-manager", "gpu-operator"]
