"""Loading a data tree: which files count, how strictly each is read, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import (
    V1,
    V1BETA1,
    V1BETA2,
    base,
    catalog,
    chart,
    constraint,
    document,
    innermost,
    mixin,
    overlay,
    refusal,
    registry,
    resolved,
    tree,
    write,
)

from aicr.catalog.catalog import Catalog

PROFILE: dict[str, Any] = {
    "name": "stack",
    "default": "a",
    "values": {"a": {}, "b": {}},
}


def test_overlays_of_all_folders_are_found_by_name_not_by_path(tmp_path: Path) -> None:
    """Sub-directories are free, and metadata.name is the identity."""
    found = catalog(
        tmp_path,
        {
            "overlays/deep/er/x.yaml": overlay("eks", {"service": "eks"}),
            "elsewhere/y.yaml": overlay("gke", {"service": "gke"}),
            "z.yaml": overlay("kind", {"service": "kind"}),
        },
    )
    assert sorted(found.overlays) == ["eks", "gke", "kind"]
    assert found.overlays["eks"]["path"] == "overlays/deep/er/x.yaml"
    assert found.overlays["eks"]["origin"] == "embedded"


@pytest.mark.parametrize(
    "path",
    [
        "checks/eks.yaml",
        "overlays/checks/eks.yaml",
        "components/eks/values.yaml",
        "validators/eks.yaml",
        "evidence/eks.yaml",
        "data-v1.yaml",
        "overlays/eks.yml",
        "overlays/eks.yaml.bak",
        "overlays/eks.json",
    ],
)
def test_files_that_are_not_the_walks_business_are_left_alone(tmp_path: Path, path: str) -> None:
    """Even an overlay in such a place is none, and even nonsense in such a place is fine."""
    assert catalog(tmp_path / "a", {path: overlay("eks", {"service": "eks"})}).overlays == {}
    assert catalog(tmp_path / "b", {path: "{{ not yaml"}).overlays == {}


@pytest.mark.parametrize(
    "kind",
    [
        "AICRConfig",
        "BundleProvenance",
        "ComponentRegistry",
        "RecipeCriteria",
        "RecipeMixin",
        "RecipeResult",
        "Recipe",
        "Snapshot",
    ],
)
def test_other_known_kinds_are_skipped(tmp_path: Path, kind: str) -> None:
    """A recipe or snapshot that lies in the tree does not stop it from loading."""
    found = catalog(tmp_path, {"notes/other.yaml": document(kind, V1, "other")})
    assert found.overlays == {}
    assert found.mixins == {}


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "- a\n- b\n", "just text\n", "kind: ConfigMap\n"]
)
def test_yaml_that_is_none_of_ours_is_skipped(tmp_path: Path, text: str) -> None:
    """Documents without our group are somebody else's."""
    assert catalog(tmp_path, {"notes/x.yaml": text}).overlays == {}


@pytest.mark.parametrize(
    ("kind", "near"),
    [("RecipeMetdata", "RecipeMetadata"), ("Overlay", ""), ("recipemetadata", "RecipeMetadata")],
)
def test_an_unknown_kind_of_our_group_is_refused(tmp_path: Path, kind: str, near: str) -> None:
    """A misspelt kind would otherwise drop the overlay in silence."""
    error = refusal(lambda: catalog(tmp_path, {"overlays/x.yaml": document(kind, V1BETA1, "x")}))
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        f'AICR catalog file overlays/x.yaml has kind "{kind}", expected "RecipeMetadata"; fix the '
        f"wire kind or move the unrelated document outside the recipe catalog"
    )
    assert error.hint == (f'did you mean "{near}"?' if near else "")


def test_no_kind_with_our_group_is_refused(tmp_path: Path) -> None:
    """A document of ours without a kind cannot be told from a broken overlay."""
    text = 'apiVersion: "aicr.run/v1beta1"\nmetadata: {name: x}\n'
    error = refusal(lambda: catalog(tmp_path, {"overlays/x.yaml": text}))
    assert 'has kind "", expected "RecipeMetadata"' in error.message


@pytest.mark.parametrize(
    ("api", "suffix"),
    [
        (V1, ""),
        ("aicr.run/v1alpha2", " (aicr.run/v1alpha2 was retired in v1.0.0)"),
        ("example.com/v1", ""),
    ],
)
def test_an_overlay_of_another_api_version_is_refused(
    tmp_path: Path, api: str, suffix: str
) -> None:
    """Two apiVersions are right for an overlay; retired ones are named as such."""
    text = document("RecipeMetadata", api, "x", spec={})
    error = refusal(lambda: catalog(tmp_path, {"overlays/x.yaml": text}))
    expected = f'invalid apiVersion "{api}", expected "{V1BETA1}" or "{V1BETA2}"{suffix}'
    assert error.message == expected
    assert error.where.endswith("overlays/x.yaml")


def test_old_headers_are_read_and_summed_up_in_one_notice(tmp_path: Path) -> None:
    """Decisions 1 and 48: a whole tree of v0.11.1 costs one deprecation line."""
    old = "aicr.nvidia.com/v1alpha1"
    found = catalog(
        tmp_path,
        {
            "registry.yaml": document("ComponentRegistry", old, components=[]),
            "overlays/base.yaml": document("RecipeMetadata", old, "base", spec={}),
            "overlays/eks.yaml": document("RecipeMetadata", None, "eks", spec={}),
            "mixins/m.yaml": document("RecipeMixin", old, "m", spec={}),
        },
    )
    assert sorted(found.overlays) == ["eks"]
    assert sorted(found.mixins) == ["m"]
    (notice,) = found.notices
    assert 'read as "aicr.run/v1beta1"' in notice
    assert notice.endswith(f"(and 3 more files under {tmp_path})")


def test_an_unknown_key_of_an_ordinary_overlay_is_ignored(tmp_path: Path) -> None:
    """v1beta1 overlays are read leniently, at every level."""
    text = document(
        "RecipeMetadata",
        V1BETA1,
        "eks",
        note="x",
        spec={"criteria": {"service": "eks", "cloud": "x"}, "owner": "me",
              "componentRefs": [chart("a", colour="red")]},
    )  # fmt: skip
    found = catalog(tmp_path, {"overlays/eks.yaml": text})
    assert found.overlays["eks"]["spec"]["criteria"] == {"service": "eks"}
    assert "colour" not in found.overlays["eks"]["spec"]["componentRefs"][0]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"note": "x"}, "note"),
        ({"metadata": {"name": "eks", "owner": "me"}}, "owner"),
        ({"spec": {"profile": PROFILE, "bass": "x"}}, "bass"),
        ({"spec": {"profile": PROFILE, "criteria": {"cloud": "x"}}}, "cloud"),
        ({"spec": {"profile": PROFILE, "componentRefs": [{"name": "a", "verison": "1"}]}},
         "verison"),
        ({"spec": {"profile": PROFILE, "validation": {"readiness": {"cheks": []}}}}, "cheks"),
        ({"spec": {"profile": {**PROFILE, "valuez": {}}}}, "valuez"),
        ({"spec": {"profile": {**PROFILE, "values": {"a": {"advertizer": "external"}}}}},
         "advertizer"),
    ],
)  # fmt: skip
def test_an_unknown_key_of_a_profile_overlay_is_refused(
    tmp_path: Path, change: dict[str, Any], key: str
) -> None:
    """v1beta2 overlays are read strictly, from the frame to the leaves."""
    fields: dict[str, Any] = {"metadata": {"name": "eks"}, "spec": {"profile": PROFILE}, **change}
    text = document("RecipeMetadata", V1BETA2, **fields)
    error = refusal(lambda: catalog(tmp_path, {"overlays/eks.yaml": text}))
    assert error.code == "INVALID_REQUEST"
    assert f'unknown field "{key}"' in innermost(error).message
    assert "overlays/eks.yaml:" in innermost(error).where


@pytest.mark.parametrize(
    ("api", "spec", "message"),
    [
        (V1BETA2, {}, "aicr.run/v1beta2 is for overlays that declare spec.profile"),
        (V1BETA2, {"profile": None}, "aicr.run/v1beta2 is for overlays that declare spec.profile"),
        (V1BETA1, {"profile": PROFILE}, 'spec.profile needs apiVersion "aicr.run/v1beta2"'),
        (None, {"profile": PROFILE}, 'spec.profile needs apiVersion "aicr.run/v1beta2"'),
    ],
)
def test_profile_and_api_version_go_together(
    tmp_path: Path, api: str | None, spec: dict[str, Any], message: str
) -> None:
    """A profile without v1beta2, or v1beta2 without a profile, is refused at its line."""
    text = document("RecipeMetadata", api, "eks", spec=spec)
    error = refusal(lambda: catalog(tmp_path, {"overlays/eks.yaml": text}))
    assert error.message.startswith(message)
    assert "overlays/eks.yaml:" in error.where


@pytest.mark.parametrize("metadata", [None, {}, {"name": ""}, {"name": None}])
def test_an_overlay_needs_a_name(tmp_path: Path, metadata: object) -> None:
    """A nameless overlay cannot be referred to."""
    text = document("RecipeMetadata", V1BETA1, metadata=metadata, spec={})
    error = refusal(lambda: catalog(tmp_path, {"overlays/x.yaml": text}))
    assert error.message == "metadata.name is required"


def test_several_documents_in_a_catalogue_file_are_refused(tmp_path: Path) -> None:
    """The second document would be dropped in silence (decision 4)."""
    both = overlay("a") + "---\n" + overlay("b")
    error = refusal(lambda: catalog(tmp_path, {"overlays/x.yaml": both}))
    assert error.message == "failed to parse overlays/x.yaml"
    assert error.code == "INVALID_REQUEST"
    assert "overlays/x.yaml:" in innermost(error).where


@pytest.mark.parametrize("text", ["a: [", "a: 1\na: 2\n", "\ta: 1\n", "a: &x [*x]\n", "!t a: 1\n"])
def test_broken_yaml_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    """File, line and column of what cannot be read."""
    error = refusal(lambda: catalog(tmp_path, {"overlays/x.yaml": text}))
    assert error.message == "failed to parse overlays/x.yaml"
    assert "overlays/x.yaml:" in innermost(error).where


def test_two_overlays_of_one_name_are_refused_with_both_paths(tmp_path: Path) -> None:
    """The original lets the later one win in silence; here neither does."""
    files = {"overlays/a.yaml": overlay("eks"), "overlays/b/c.yaml": overlay("eks")}
    error = refusal(lambda: catalog(tmp_path, files))
    expected = 'overlay name "eks" is declared twice: in overlays/a.yaml and overlays/b/c.yaml'
    assert error.message == expected
    assert error.code == "INVALID_REQUEST"


def test_a_tree_without_base_is_refused(tmp_path: Path) -> None:
    """Every recipe starts from base; a file of that name is not enough."""
    files = {"registry.yaml": registry(), "overlays/base.yaml": overlay("bass")}
    error = refusal(lambda: Catalog.from_dir(str(write(tmp_path, files))))
    assert error.code == "INTERNAL"
    assert error.message == "base.yaml not found"
    assert "metadata.name: base" in error.hint


@pytest.mark.parametrize(
    ("refs", "message"),
    [
        ([chart("a", dependencyRefs=["zz"])], 'component "a" references unknown dependency "zz"'),
        ([chart("a", dependencyRefs=["b"]), chart("b", dependencyRefs=["a"])],
         "circular dependency detected: [a b a]"),
        ([chart("a", dependencyRefs=["a"])], "circular dependency detected: [a a]"),
    ],
)  # fmt: skip
def test_the_base_must_stand_alone(
    tmp_path: Path, refs: list[dict[str, Any]], message: str
) -> None:
    """Base's dependencies are checked when the tree is loaded, not when somebody resolves."""
    error = refusal(lambda: catalog(tmp_path, {"overlays/base.yaml": base(componentRefs=refs)}))
    assert error.message == "base recipe validation failed"
    assert error.code == "INVALID_REQUEST"
    assert innermost(error).message == message
    assert error.where.endswith("overlays/base.yaml")


@pytest.mark.covers("R11-76")
@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"spec": {"constraintz": []}}, "constraintz"),
        ({"spec": {"componentRefs": [{"name": "a", "colour": "red"}]}}, "colour"),
        ({"spec": {"constraints": [{"name": "x", "value": "y", "when": "z"}]}}, "when"),
        ({"spec": {"componentRefs": [{"name": "a", "expectedResources": [{"nmae": "x"}]}]}},
         "nmae"),
        ({"spec": {}, "note": "x"}, "note"),
        ({"spec": {}, "metadata": {"name": "m", "owner": "x"}}, "owner"),
    ],
)  # fmt: skip
def test_an_unknown_key_of_a_mixin_is_refused(
    tmp_path: Path, fields: dict[str, Any], key: str
) -> None:
    """Mixins are read strictly, where an overlay ignores the same key."""
    text = document("RecipeMixin", V1BETA1, **{"metadata": {"name": "m"}, **fields})
    error = refusal(lambda: catalog(tmp_path, {"mixins/m.yaml": text}))
    expected = "failed to parse mixin mixins/m.yaml (unknown fields are not allowed)"
    assert error.message == expected
    assert error.code == "INVALID_REQUEST"
    assert innermost(error).message == f'unknown field "{key}"'
    assert "mixins/m.yaml:" in innermost(error).where


@pytest.mark.covers("R11-76")
def test_the_same_unknown_key_of_an_overlay_is_ignored(tmp_path: Path) -> None:
    """The other half of the row: the overlay loads and resolves."""
    found = catalog(
        tmp_path, {"overlays/eks.yaml": overlay("eks", {"service": "eks"}, constraintz=[])}
    )
    assert resolved(found, service="eks").document["metadata"]["appliedOverlays"] == ["base", "eks"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (document("RecipeMetadata", V1BETA1, "m", spec={}),
         'mixin file mixins/m.yaml has kind "RecipeMetadata", expected "RecipeMixin"; use a '
         "RecipeMixin document compatible with this aicr release"),
        ("[]\n", 'mixin file mixins/m.yaml has kind "", expected "RecipeMixin"; use a '
         "RecipeMixin document compatible with this aicr release"),
        (document("RecipeMixin", V1, "m", spec={}),
         'invalid apiVersion "aicr.run/v1", expected "aicr.run/v1beta1"'),
        (document("RecipeMixin", V1BETA1, spec={}), "metadata.name is required"),
    ],
)  # fmt: skip
def test_a_mixin_file_holds_a_mixin(tmp_path: Path, text: str, message: str) -> None:
    """Everything under mixins/ must be one."""
    error = refusal(lambda: catalog(tmp_path, {"mixins/m.yaml": text}))
    assert error.message == message
    assert error.code == "INVALID_REQUEST"


def test_two_mixins_of_one_name_are_refused(tmp_path: Path) -> None:
    """The second file is named, and the first in the hint."""
    files = {"mixins/a.yaml": mixin("m"), "mixins/b.yaml": mixin("m")}
    error = refusal(lambda: catalog(tmp_path, files))
    assert error.message == 'duplicate mixin name "m" in mixins/b.yaml'
    assert "mixins/a.yaml" in error.hint


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"componentRefs": [{"version": "1"}]}, "componentRefs[0]: name is required"),
        ({"componentRefs": [chart("a"), chart("a")]},
         'component "a" is listed twice (entries 0 and 1)'),
        ({"componentRefs": ["a"]}, "componentRefs[0] must be a map, found text"),
        ({"componentRefs": {"a": {}}}, "componentRefs must be a list, found a map"),
        ({"componentRefs": [chart("a", version=1.5)]}, "version"),
        ({"componentRefs": [chart("a", version=True)]}, "version"),
        ({"componentRefs": [chart("a", cleanup="yes")]}, "cleanup must be true or false"),
        ({"componentRefs": [chart("a", dependencyRefs="b")]}, "dependencyRefs must be a list"),
        ({"componentRefs": [chart("a", dependencyRefs=[1])]}, "dependencyRefs[0]"),
        ({"componentRefs": [chart("a", overrides=[])]}, "overrides must be a map, found a list"),
        ({"constraints": [{"value": ">= 1"}]}, "constraints[0]: name is required"),
        ({"constraints": [{"name": "K8s.server.version", "value": 1.3}]}, "value"),
        ({"criteria": {"service": 1}}, "service"),
        ({"criteria": {"nodes": -1}}, "invalid nodes count: -1 (must be >= 0)"),
        ({"criteria": {"nodes": "8"}}, "invalid nodes count: 8"),
        ({"mixins": "m"}, "mixins must be a list, found text"),
        ({"base": ["x"]}, "base"),
        ({"validation": {"deploymnt": {}}}, 'unknown validation phase "deploymnt"'),
        ({"validation": {"deployment": []}}, "deployment must be a map, found a list"),
        ({"validation": {"deployment": {"timeout": "5 minutes"}}}, 'invalid timeout "5 minutes"'),
        ({"validation": {"deployment": {"timeout": 5}}}, "timeout"),
        ({"validation": {"deployment": {"checks": {}}}}, "checks must be a list, found a map"),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_shape_is_refused_at_its_place(
    tmp_path: Path, spec: dict[str, Any], message: str
) -> None:
    """Leniency is about unknown keys only: a known key of another type is an error."""
    error = refusal(lambda: catalog(tmp_path, {"overlays/x.yaml": overlay("x", **spec)}))
    assert error.code == "INVALID_REQUEST"
    assert message in error.message
    assert "overlays/x.yaml:" in error.where
    assert error.where.rpartition("overlays/x.yaml:")[2].count(":") == 1


@pytest.mark.covers("A8")
@pytest.mark.parametrize("value", ["24.10", "yes", "null", "0x10", "1_000", "2024-01-01"])
def test_an_unquoted_scalar_in_a_text_slot_must_be_quoted(tmp_path: Path, value: str) -> None:
    """Decision 43: what two readers would read differently is refused, with the quotes to add."""
    text = (
        "kind: RecipeMetadata\napiVersion: aicr.run/v1beta1\nmetadata:\n  name: x\nspec:\n"
        f"  constraints:\n    - name: OS.release.VERSION_ID\n      value: {value}\n"
    )
    # An unquoted null is no text at all, and an expression may not be empty.
    expected = "is refused" if value == "null" else "value"
    error = refusal(lambda: catalog(tmp_path, {"overlays/x.yaml": text}))
    assert error.code == "INVALID_REQUEST"
    assert expected in error.message
    quoted = text.replace(f"value: {value}", f'value: "{value}"')
    assert catalog(tmp_path / "quoted", {"overlays/x.yaml": quoted}).overlays["x"]["spec"][
        "constraints"
    ] == [constraint("OS.release.VERSION_ID", value)]


def test_the_v3_mode_reads_yes_as_text(tmp_path: Path) -> None:
    """Trees written for yaml.v3 are read as it reads them."""
    text = (
        "kind: RecipeMetadata\napiVersion: aicr.run/v1beta1\nmetadata:\n  name: x\nspec:\n"
        "  componentRefs:\n    - name: a\n      namespace: yes\n"
    )
    root = tree(tmp_path, {"overlays/x.yaml": text})
    refs = Catalog.from_dir(str(root), yaml_mode="v3").overlays["x"]["spec"]["componentRefs"]
    assert refs == [{"name": "a", "namespace": "yes"}]


@pytest.mark.parametrize("field", ["manifestFiles", "preManifestFiles"])
@pytest.mark.parametrize(
    "path", ["../x.yaml", "a/../../x.yaml", "/etc/passwd", "a\\..\\x.yaml", "./x.yaml", "a//x", ""]
)
def test_manifest_paths_stay_inside_the_tree(tmp_path: Path, field: str, path: str) -> None:
    """A path that could leave the tree is refused when the tree is loaded."""
    text = overlay("x", componentRefs=[chart("a", **{field: ["ok.yaml", path]})])
    error = refusal(lambda: catalog(tmp_path, {"overlays/x.yaml": text}))
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith("path traversal or non-local path detected")
    assert "overlays/x.yaml:" in error.where


def test_a_byte_order_mark_is_no_part_of_the_document(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    assert "x" in catalog(tmp_path, {"overlays/x.yaml": "\ufeff" + overlay("x")}).overlays


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    """The file is named, and what to do."""
    root = tree(tmp_path)
    (root / "overlays" / "x.yaml").write_bytes(b"kind: \xff\n")
    error = refusal(lambda: Catalog.from_dir(str(root)))
    assert innermost(error).message == "overlays/x.yaml is not UTF-8 text (byte 6)"
    assert innermost(error).code == "INVALID_REQUEST"
