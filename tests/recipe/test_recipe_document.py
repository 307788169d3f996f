"""The RecipeResult: order of its fields, what is left out, and reading one back for bundling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.recipe.conftest import Install
from tests.recipe.trees import (
    V1,
    V1BETA1,
    V1BETA2,
    base,
    catalog,
    chart,
    constraint,
    document,
    document_of,
    entry,
    innermost,
    overlay,
    refs_of,
    refusal,
    refused,
    registry,
    resolved,
    snapshot,
)
from tests.recipe.world import KUBEFLOW, WORLD

from aicr.catalog.catalog import Catalog
from aicr.catalog.fields import REF_ORDER
from aicr.recipe.document import load_recipe
from aicr.recipe.recipe import Recipe
from aicr.yamlio.write import dump

PROFILE = {"name": "p", "default": "a", "values": {"a": {
    "componentRefs": [{"name": "slinky-slurm", "overrides": {"x": 1}}]
}}}  # fmt: skip


def test_every_field_stands_in_its_place(tmp_path: Path) -> None:
    """Wire order of recipe specification 5.1, with everything there is."""
    found = catalog(
        tmp_path,
        {
            "overlays/base.yaml": base(
                constraints=[constraint("K8s.server.version", ">= 1.2")],
                validation={"deployment": {"checks": ["a"]}},
                componentRefs=[chart("slinky-slurm")],
            ),
            "overlays/a.yaml": overlay(
                "a", {"service": "eks"}, constraints=[constraint("OS.release.ID", "cos")]
            ),
            "overlays/b.yaml": overlay(
                "b", {"service": "eks", "platform": "slurm"}, profile=PROFILE
            ),
        },
    )
    readings = {
        "OS.release": {"ID": "x"},
        "GPU.hardware": {"driver-loaded": True},
        "K8s.mariadb-operator": {"collection-state": "absent"},
        "K8s.default-storage-class": {"collection-state": "detected", "default-count": 1},
        "K8s.percona-server-mongodb": {"collection-state": "absent"},
    }
    recipe = resolved(
        found, service="eks", platform="slurm", nodes=2, options={"snapshot": snapshot(readings)}
    )
    shape = document_of(recipe)
    assert list(shape) == [
        "kind",
        "apiVersion",
        "metadata",
        "criteria",
        "configuration",
        "constraints",
        "componentRefs",
        "deploymentOrder",
        "validation",
    ]
    assert list(shape["metadata"]) == [
        "version",
        "appliedOverlays",
        "excludedOverlays",
        "constraintWarnings",
        "gpuDriverState",
        "selectedProfile",
        "mariaDBOperatorState",
        "defaultStorageClassState",
        "perconaOperatorState",
    ]
    assert list(shape["criteria"]) == [
        "service",
        "accelerator",
        "intent",
        "os",
        "platform",
        "nodes",
    ]
    assert shape["apiVersion"] == V1BETA2


def test_what_is_empty_is_left_out(tmp_path: Path) -> None:
    """No empty lists, maps or texts, and no time; name, type and source are always there."""
    ref: dict[str, Any] = {
        "name": "x", "type": "Helm", "namespace": "", "version": "", "overrides": {},
        "dependencyRefs": [], "patches": [], "cleanup": False, "healthCheckSkip": False,
        "expectedResources": [], "manifestFiles": ["m.yaml"], "preManifestFiles": [],
    }  # fmt: skip
    found = catalog(
        tmp_path,
        {"overlays/eks.yaml": overlay(
            "eks", {"service": "eks"}, componentRefs=[ref],
            validation={"deployment": {"checks": [], "timeout": ""}}, constraints=[],
        )},
    )  # fmt: skip
    shape = document_of(resolved(found, service="eks", options={"version": ""}))
    assert list(shape) == [
        "kind",
        "apiVersion",
        "metadata",
        "criteria",
        "componentRefs",
        "deploymentOrder",
    ]
    assert shape["componentRefs"] == [
        {"name": "x", "type": "Helm", "source": "", "manifestFiles": ["m.yaml"]}
    ]
    assert list(shape["metadata"]) == ["appliedOverlays"]
    assert shape["apiVersion"] == V1


def test_a_ref_with_everything_is_in_wire_order(tmp_path: Path) -> None:
    """Whatever order it was written in and whatever the registry adds."""
    ref: dict[str, Any] = {
        "healthCheckSkip": True, "expectedResources": [{"kind": "Pod", "name": "p"}],
        "cleanup": True, "preManifestFiles": ["p.yaml"], "dependencyRefs": ["y"],
        "overrides": {"z": 1, "a": 2}, "valuesFile": "components/x/v.yaml", "version": "1",
        "name": "x",
    }  # fmt: skip
    helm = {"defaultRepository": "s", "defaultChart": "a/c", "defaultNamespace": "n"}
    found = catalog(
        tmp_path,
        {
            "registry.yaml": registry(entry("x", helm=helm, manifestFiles=["m.yaml"])),
            "overlays/eks.yaml": overlay(
                "eks", {"service": "eks"}, componentRefs=[ref, chart("y")]
            ),
        },
    )
    made = refs_of(resolved(found, service="eks"))["x"]
    assert list(made) == [key for key in REF_ORDER if key in made]
    assert len(made) == len(ref) + 5
    assert list(made["overrides"]) == ["z", "a"]


@pytest.fixture
def world(tmp_path: Path) -> Catalog:
    """The small catalogue."""
    return catalog(tmp_path / "world", WORLD)


def recipe_of(world: Catalog) -> Recipe:
    """A recipe of it."""
    return resolved(world, service="eks", accelerator="h100", intent="training", os="ubuntu")


def read(world: Catalog, text: str) -> Recipe:
    """Load a recipe text."""
    return load_recipe(text, "recipe.yaml", world)


def edited(world: Catalog, **changes: Any) -> str:
    """The text of a recipe with top-level fields changed; None removes."""
    shape = document_of(recipe_of(world))
    shape.update(changes)
    return dump({key: value for key, value in shape.items() if value is not None})


def test_what_was_written_is_read_back(world: Catalog) -> None:
    """YAML and JSON, without a warning."""
    made = recipe_of(world)
    for text in (made.to_yaml(), json.dumps(made.document, indent=2)):
        again = read(world, text)
        assert again.document == made.document
        assert again.to_yaml() == made.to_yaml()
        assert again.warnings == []


@pytest.mark.parametrize("kind", ["Snapshot", "RecipeMixin", "Foo", ["RecipeResult"]])
def test_another_kind_is_refused(world: Catalog, kind: Any) -> None:
    """With the command that makes the right one."""
    error = refusal(lambda: read(world, edited(world, kind=kind)))
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        f'recipe file has kind "{kind}", but "RecipeResult" is required; run "aicr recipe" to '
        f"generate a hydrated RecipeResult first"
    )


@pytest.mark.parametrize(
    ("api", "suffix"),
    [
        ("aicr.run/v1alpha2", " (aicr.run/v1alpha2 was retired in v1.0.0)"),
        (V1BETA1, ""),
        ("v1", ""),
    ],
)
def test_another_api_version_is_refused(world: Catalog, api: str, suffix: str) -> None:
    """Two tracks are right for a recipe."""
    error = refusal(lambda: read(world, edited(world, apiVersion=api)))
    assert error.message == (f'invalid apiVersion "{api}", expected "{V1}" or "{V1BETA2}"{suffix}')


@pytest.mark.parametrize(
    ("kind", "api"),
    [
        ("RecipeResult", None),
        ("Recipe", "aicr.nvidia.com/v1alpha1"),
        (None, None),
        ("Recipe", None),
    ],
)
def test_old_recipes_are_read_with_a_notice(
    world: Catalog, kind: str | None, api: str | None
) -> None:
    """Decisions 1 and 48, and the legacy kind."""
    again = read(world, edited(world, kind=kind, apiVersion=api))
    assert again.document["kind"] == "RecipeResult"
    assert len(again.warnings) == 1
    assert 'read as "aicr.run/v1"' in again.warnings[0]


def ref_with(world: Catalog, **fields: Any) -> str:
    """A recipe whose first ref has fields changed."""
    refs = [dict(ref) for ref in recipe_of(world).document["componentRefs"]]
    refs[0].update(fields)
    return edited(world, componentRefs=refs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"componentRefs": None}, "recipe has no componentRefs"),
        ({"componentRefs": []}, "recipe has no componentRefs"),
        ({"componentRefs": {}}, "componentRefs must be a list, found a map"),
        ({"componentRefs": ["x"]}, "a componentRef must be a map, found text"),
        ({"componentRefs": [None]}, "a componentRef must be a map, found nothing"),
        ({"componentRefs": [{"type": "Helm"}]}, "a componentRef needs a name"),
        ({"metadata": []}, "metadata must be a map, found a list"),
        ({"criteria": "eks"}, "criteria must be a map, found text"),
        ({"criteria": {"os": 24.04}}, "os must be text, found a number"),
        ({"criteria": {"nodes": "8"}}, "nodes must be a whole number"),
        ({"criteria": {"nodes": True}}, "nodes must be a whole number"),
        ({"constraints": {"a": "b"}}, "constraints must be a list, found a map"),
        ({"constraints": ["x"]}, "a constraint must be a map, found text"),
        ({"constraints": [{"name": "a", "value": 1.3}]}, "value must be text, found a number"),
        ({"deploymentOrder": "x"}, "deploymentOrder must be a list, found text"),
        ({"deploymentOrder": [1]}, "must be text, found a number"),
        ({"validation": ["x"]}, "validation must be a map, found a list"),
        ({"componentRef": []}, 'unknown field "componentRef" in a recipe'),
    ],
)
def test_a_misshapen_recipe_is_refused_at_its_place(
    world: Catalog, changes: dict[str, Any], message: str
) -> None:
    """Nothing of a file is taken on trust."""
    error = refusal(lambda: read(world, edited(world, **changes)))
    assert error.code == "INVALID_REQUEST"
    assert message in error.message
    assert error.where.startswith("recipe.yaml")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"verison": "1"}, 'unknown field "verison" in componentRef "gpu-operator"'),
        ({"version": 1.5}, "version must be text, found a number"),
        ({"version": True}, "version must be text, found a boolean"),
        ({"overrides": []}, "overrides must be a map, found a list"),
        ({"dependencyRefs": "nfd"}, "dependencyRefs must be a list, found text"),
        ({"dependencyRefs": [1]}, "must be text, found a number"),
        ({"cleanup": "yes"}, "cleanup must be true or false, found text"),
        ({"valuesFile": "../x.yaml"}, "path traversal or non-local path detected: ../x.yaml"),
        ({"valuesFile": "/etc/passwd"}, "path traversal or non-local path detected: /etc/passwd"),
        ({"manifestFiles": ["a/../../b"]}, "path traversal or non-local path detected: a/../../b"),
        ({"preManifestFiles": ["a\\b"]}, "path traversal or non-local path detected: a\\b"),
        ({"name": "GPU"}, 'component name "GPU" is not a lower-case DNS name'),
        ({"name": "../x"}, 'component name "../x" is not a lower-case DNS name'),
        ({"name": "a" * 64}, "is not a lower-case DNS name"),
        ({"name": "-x"}, "is not a lower-case DNS name"),
        ({"name": 5}, "name must be text, found a number"),
    ],
)
def test_a_misshapen_ref_is_refused_at_its_place(
    world: Catalog, fields: dict[str, Any], message: str
) -> None:
    """With file, line and column."""
    error = refusal(lambda: read(world, ref_with(world, **fields)))
    assert error.code == "INVALID_REQUEST"
    assert message in error.message
    assert error.where.startswith("recipe.yaml:")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dependencyRefs": ["nope"]}, 'references unknown dependency "nope"'),
        ({"dependencyRefs": ["gpu-operator"]}, "circular dependency detected"),
        ({"patches": ["p"]}, "declares patches, which no deployer applies"),
        ({"version": ""}, "has no chart version"),
        ({"name": "nfd"}, 'recipe has duplicate component ref name "nfd" (refs 0 and 1)'),
        ({"name": "deployer"}, 'component "deployer" uses a reserved name'),
        ({"type": "Ansible"}, 'has unsupported type "Ansible"'),
    ],
)
def test_the_checks_of_resolution_are_made_again(
    world: Catalog, fields: dict[str, Any], message: str
) -> None:
    """An edited file cannot slip past them."""
    error = refusal(lambda: read(world, ref_with(world, **fields)))
    assert error.message == "recipe cannot be bundled"
    assert error.code == "INVALID_REQUEST"
    assert error.where == "recipe.yaml"
    assert message in innermost(error).message


def test_a_missing_type_is_filled_in_from_the_registry(world: Catalog) -> None:
    """In wire order; an unusual spelling is made the usual one."""
    shape = document_of(recipe_of(world))
    refs = [dict(ref) for ref in shape["componentRefs"]]
    del refs[0]["type"]
    refs[1]["type"] = "helm"
    again = read(world, edited(world, componentRefs=refs))
    assert again.document["componentRefs"] == shape["componentRefs"]
    assert [list(ref) for ref in again.document["componentRefs"]] == [
        list(ref) for ref in shape["componentRefs"]
    ]


@pytest.mark.covers("C-091", "C-094")
def test_the_order_is_derived_again_and_a_difference_is_said(world: Catalog) -> None:
    """dependencyRefs decide; the file's own order is a memory of them."""
    made = recipe_of(world)
    for stated in (list(reversed(made.document["deploymentOrder"])), ["ghost"]):
        again = read(world, edited(world, deploymentOrder=stated))
        assert again.document["deploymentOrder"] == made.document["deploymentOrder"]
        assert len(again.warnings) == 1
        assert "derived order is used" in again.warnings[0]
    assert read(world, edited(world, deploymentOrder=None)).warnings == []


def test_the_kind_that_v0_11_1_wrote_is_read_with_one_notice(world: Catalog) -> None:
    """Decision 1, also when the apiVersion is today's: it is what aicr migrate rewrites."""
    assert read(world, edited(world, kind="Recipe")).warnings == [
        'recipe.yaml: kind "Recipe" is read as "RecipeResult"; rewrite it with aicr migrate'
    ]


@pytest.mark.parametrize("text", ["", "[]", "recipe", "null", "{}", "kind: [", '{"kind": '])
def test_a_file_that_is_no_recipe_is_refused_in_words(world: Catalog, text: str) -> None:
    """No traceback for any text."""
    assert refusal(lambda: read(world, text)).code == "INVALID_REQUEST"


def test_an_overlay_file_is_resolved_by_its_criteria(world: Catalog) -> None:
    """Recipe specification 5.4: the file's criteria, this catalogue's overlays."""
    text = overlay("mine", {"service": "EKS", "accelerator": "h100", "intent": "training",
                            "os": "ubuntu"})  # fmt: skip
    assert read(world, text).document == recipe_of(world).document


def test_an_old_overlay_file_is_resolved_with_a_notice(world: Catalog) -> None:
    """Decision 48 holds for it as well."""
    text = document("RecipeMetadata", None, "mine", spec={"criteria": {"service": "eks"}})
    again = read(world, text)
    assert 'read as "aicr.run/v1beta1"' in again.warnings[0]


@pytest.mark.covers("R11-79")
@pytest.mark.parametrize("spec", [{}, {"criteria": None}, {"criteria": {}}, None])
def test_an_overlay_file_without_criteria_is_refused(
    world: Catalog, installed: Install, tmp_path: Path, spec: dict[str, Any] | None
) -> None:
    """A parent is no recipe; no folder is made."""
    text = document("RecipeMetadata", V1BETA1, "mine", spec=spec)
    error = refusal(lambda: read(world, text))
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith('overlay "recipe.yaml" has no criteria; only leaf overlays')
    installed(WORLD)
    path, target = tmp_path / "mine.yaml", tmp_path / "bundle"
    path.write_text(text)
    ran = refused("bundle", "-r", str(path), "-o", str(target))
    assert ran.status == 2
    assert f'overlay "{path}" has no criteria; only leaf overlays' in ran.err
    assert not target.exists()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (["x"], "spec must be a map, found a list"),
        ({"criteria": "eks"}, "criteria must be a map, found text"),
        ({"criteria": {"os": 24.04}}, "os must be text, found a number"),
        ({"criteria": {"service": ["eks"]}}, "service must be text, found a list"),
        ({"criteria": {"service": "zzz"}}, "failed to parse service type"),
    ],
)
def test_a_misshapen_overlay_file_is_refused_in_words(
    world: Catalog, spec: Any, message: str
) -> None:
    """Never a bare exception."""
    error = refusal(lambda: read(world, document("RecipeMetadata", V1BETA1, "mine", spec=spec)))
    assert error.code == "INVALID_REQUEST"
    assert error.message == message


def test_a_profile_cannot_be_chosen_for_a_finished_recipe(
    installed: Install, tmp_path: Path
) -> None:
    """bundle has no --profile: the choice is in the recipe."""
    installed(WORLD)
    ran = refused("bundle", "-r", "x", "-o", "y", "--profile", "a=b")
    assert ran.status == 2
    assert "unknown flag --profile" in ran.err


def test_the_document_holds_no_time_and_no_path(installed: Install, tmp_path: Path) -> None:
    """The same inputs give the same bytes, wherever the tree lies (decision 3)."""
    one, other = (
        resolved(catalog(tmp_path / name, WORLD), service="eks").to_yaml() for name in "ab"
    )
    assert one == other
    assert str(tmp_path) not in one
    assert KUBEFLOW
