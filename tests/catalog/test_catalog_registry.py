"""The component registry: its header, every rule of an entry, look-up, and defaults for refs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import (
    SOURCE,
    V1,
    V1BETA1,
    base,
    catalog,
    chart,
    data,
    document,
    entry,
    innermost,
    overlay,
    refs_of,
    refusal,
    registry,
    resolved,
)

from aicr.catalog.registry import Registry, apply_defaults, component_type

CHART = {"defaultRepository": SOURCE, "defaultChart": "repo/c", "defaultVersion": "1.0.0"}
ELSEWHERE = {"defaultSource": "https://git.example.com/x", "defaultPath": "p"}


def problems(folder: Path, *entries: dict[str, Any]) -> list[str]:
    """The problems for which a registry of these entries is refused."""
    error = refusal(lambda: catalog(folder, {"registry.yaml": registry(*entries)}))
    assert error.code == "INVALID_REQUEST"
    assert error.where.endswith("registry.yaml")
    found: list[str] = error.context["problems"]
    assert error.message == "registry validation failed: " + "; ".join(found)
    return found


@pytest.mark.parametrize(
    ("kind", "api", "message"),
    [
        ("RecipeMetadata", V1BETA1,
         'registry.yaml has kind "RecipeMetadata", expected "ComponentRegistry"; update the '
         "registry header for this aicr release"),
        ("", V1BETA1,
         'registry.yaml has kind "", expected "ComponentRegistry"; update the registry header for '
         "this aicr release"),
        ("ComponentRegistry", V1,
         'registry.yaml has apiVersion "aicr.run/v1", expected "aicr.run/v1beta1"; update the '
         "registry header for this aicr release"),
        ("ComponentRegistry", "aicr.run/v1alpha2",
         'registry.yaml has apiVersion "aicr.run/v1alpha2", expected "aicr.run/v1beta1"; update '
         "the registry header for this aicr release"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("external", [False, True])
def test_the_header_of_a_registry_is_checked(
    tmp_path: Path, kind: str, api: str, message: str, external: bool
) -> None:
    """Kind and apiVersion, built in or brought by --data."""
    text = document(kind, api, components=[])
    if external:
        folder = data(tmp_path / "data", {"registry.yaml": text})
        lower = catalog(tmp_path / "lower")
        error = refusal(lambda: lower.overlay(str(folder)))
    else:
        error = refusal(lambda: catalog(tmp_path, {"registry.yaml": text}))
    assert error.message == message
    assert error.code == "INVALID_REQUEST"


@pytest.mark.parametrize("text", ["", "[]\n", "registry\n"])
def test_a_registry_is_a_map(tmp_path: Path, text: str) -> None:
    """An empty file is no stub."""
    error = refusal(lambda: catalog(tmp_path, {"registry.yaml": text}))
    assert error.message == "registry.yaml must be a ComponentRegistry document"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"displayName": "X"}, "component[1]: name is required"),
        ({"name": "", "displayName": "X"}, "component[1]: name is required"),
        ({"name": "x"}, "component[1] (x): displayName is required"),
        ({"name": "ok", "displayName": "Again"}, "duplicate component name: ok"),
    ],
)
def test_names_are_required_and_unique(tmp_path: Path, bad: dict[str, Any], message: str) -> None:
    """The index counts from the top of the file."""
    assert message in problems(tmp_path, entry("ok"), bad)


@pytest.mark.covers("R11-37", "C-005", "C-006")
@pytest.mark.parametrize(
    "helm",
    [{"defaultRepository": SOURCE}, {"defaultChart": "c"}, {"defaultNamespace": "n"}, CHART],
)
def test_helm_and_kustomize_do_not_mix(tmp_path: Path, helm: dict[str, str]) -> None:
    """There is no precedence between them, so the shape is refused."""
    assert problems(tmp_path, entry("x", helm=helm, kustomize=ELSEWHERE)) == [
        "component[0] (x): cannot have both helm and kustomize configuration"
    ]


@pytest.mark.covers("R11-37")
def test_empty_blocks_do_not_count_as_configuration(tmp_path: Path) -> None:
    """`helm: {}` and empty fields say nothing."""
    text = registry(
        entry("x", helm={}, kustomize=ELSEWHERE),
        entry("y", helm=CHART, kustomize={"defaultTag": ""}),
    )
    found = catalog(tmp_path, {"registry.yaml": text}).registry
    types = [component_type(item) for item in found.entries]
    assert types == ["Kustomize", "Helm"]


def test_a_kustomize_entry_has_no_manifests(tmp_path: Path) -> None:
    """Manifests ship as a chart beside a chart."""
    assert problems(tmp_path, entry("x", kustomize=ELSEWHERE, manifestFiles=["a.yaml"])) == [
        "component[0] (x): a Kustomize entry cannot list manifestFiles"
    ]


@pytest.mark.covers("R11-38")
def test_deployer_is_reserved_as_a_name_and_as_an_alias(tmp_path: Path) -> None:
    """`--set deployer:…` means Argo CD options."""
    assert problems(tmp_path / "a", entry("deployer")) == [
        'registry component "deployer" uses the reserved deployer override key as its name; '
        '"deployer" is reserved for --set deployer:<key> Argo deployer options'
    ]
    (problem,) = problems(tmp_path / "b", entry("x", valueOverrideKeys=["ok", "deployer"]))
    assert problem.startswith(
        'registry component "x" declares the reserved override key "deployer"'
    )


@pytest.mark.covers("R11-39", "C-063")
def test_an_alias_belongs_to_one_component(tmp_path: Path) -> None:
    """Two owners, or an alias that is another component's name; one's own name is no clash."""
    a, b = entry("a", valueOverrideKeys=["k"]), entry("b", valueOverrideKeys=["k"])
    assert problems(tmp_path / "1", a, b) == [
        'duplicate valueOverrideKey "k": used by both a and b'
    ]
    assert problems(tmp_path / "2", entry("k"), a) == [
        'duplicate valueOverrideKey "k": used by both k and a'
    ]
    assert problems(tmp_path / "3", a, entry("k")) == [
        'duplicate valueOverrideKey "k": used by both k and a'
    ]
    own = entry("a", valueOverrideKeys=["a", "k", "k"])
    assert catalog(tmp_path / "4", {"registry.yaml": registry(own)}).registry.get("a") == own


@pytest.mark.covers("C-056", "C-057")
@pytest.mark.parametrize("tier", ["system", "accelerated"])
@pytest.mark.parametrize(
    ("group", "stored", "tail"),
    [
        ({"requireNodeSelector": True}, False,
         " requires a node selector but nodeSelectorPaths is empty"),
        ({"requireNodeSelectorIfStorageClassSet": True}, True,
         " requires a node selector but nodeSelectorPaths is empty"),
        ({"requireNodeSelectorIfStorageClassSet": True, "nodeSelectorPaths": ["a"]}, False,
         ".requireNodeSelectorIfStorageClassSet is true but the component has no storageClassPaths "
         "or sharedStorageClassPaths to condition on"),
        ({"requireNodeSelectorIfStorageClassSet": True, "requireNodeSelector": True,
          "nodeSelectorPaths": ["a"]}, True,
         ".requireNodeSelector and requireNodeSelectorIfStorageClassSet are mutually exclusive"),
    ],
)  # fmt: skip
def test_a_required_selector_needs_its_paths(
    tmp_path: Path, tier: str, group: dict[str, Any], stored: bool, tail: str
) -> None:
    """A requirement that could never be met, or contradicts another, is refused."""
    more: dict[str, Any] = {"storageClassPaths": ["s"]} if stored else {}
    found = problems(tmp_path, entry("x", nodeScheduling={tier: group}, **more))
    assert found == [f'component "x": nodeScheduling.{tier}{tail}']


@pytest.mark.parametrize("field", ["storageClassPaths", "sharedStorageClassPaths"])
def test_either_storage_list_is_a_condition(tmp_path: Path, field: str) -> None:
    """Both kinds of storage class can trigger the conditional requirement."""
    group = {"requireNodeSelectorIfStorageClassSet": True, "nodeSelectorPaths": ["a"]}
    found = entry("x", nodeScheduling={"system": group}, **{field: ["s"]})
    catalog(tmp_path, {"registry.yaml": registry(found)})


@pytest.mark.covers("C-039", "C-046")
def test_a_selector_path_belongs_to_one_tier_and_a_toleration_path_may_have_both(
    tmp_path: Path,
) -> None:
    """A selector cannot mean two node classes; tolerations add up."""
    both = {"nodeSelectorPaths": ["a", "b"], "tolerationPaths": ["t"]}
    other = {"nodeSelectorPaths": ["b", "c"], "tolerationPaths": ["t"]}
    assert problems(
        tmp_path, entry("x", nodeScheduling={"system": both, "accelerated": other})
    ) == [
        'component "x": nodeSelectorPaths entry "b" is shared between system and accelerated; a '
        "selector cannot mean both node classes"
    ]


def test_all_problems_are_reported_together(tmp_path: Path) -> None:
    """One run shows everything there is to fix."""
    assert (
        len(
            problems(
                tmp_path, {"name": "deployer"}, {}, entry("y", helm=CHART, kustomize=ELSEWHERE)
            )
        )
        == 4
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"helm": {"defaultVersion": 1.5}}, "helm.defaultVersion"),
        ({"helm": []}, "helm must be a map, found a list"),
        ({"valueOverrideKeys": "k"}, "valueOverrideKeys must be a list, found text"),
        ({"manifestFiles": ["../x"]}, "path traversal or non-local path detected"),
        ({"manifestFiles": ["a\\x"]}, "path traversal or non-local path detected"),
        ({"ownsCRDs": "yes"}, "ownsCRDs must be true or false, found text"),
        ({"nodeScheduling": {"system": []}}, "system must be a map, found a list"),
        ({"nodeScheduling": {"system": {"tolerationPaths": [{}]}}}, "tolerationPaths[0]"),
        ({"nodeScheduling": {"system": {"requireNodeSelector": 1}}},
         "requireNodeSelector must be true or false"),
        ({"nodeScheduling": {"nodeCountPaths": {}}}, "nodeCountPaths must be a list"),
        ({"podScheduling": {"workload": []}}, "workload must be a map"),
        ({"validations": [{"severity": "error"}]}, "validations[0]: function is required"),
        ({"validations": [{"function": "F", "conditions": {"service": "aks"}}]},
         "service must be a list, found text"),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_shape_is_refused(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    """With file, line and column of the field."""
    text = registry(entry("x", **fields))
    error = refusal(lambda: catalog(tmp_path, {"registry.yaml": text}))
    assert error.code == "INVALID_REQUEST"
    assert message in error.message
    assert "registry.yaml:" in error.where


def test_unknown_fields_of_an_entry_are_ignored(tmp_path: Path) -> None:
    """Such as `manifest`, which old registries had."""
    text = registry(entry("x", manifest={"defaultNamespace": "kube-system"}, future=1))
    assert catalog(tmp_path, {"registry.yaml": text}).registry.get("x") is not None


def test_look_up_by_name_and_alias() -> None:
    """Names first, then aliases; nothing else."""
    found = Registry([{"name": "a", "valueOverrideKeys": ["b", "c"]}, {"name": "b"}])
    by_key = {key: (found.by_override_key(key) or {}).get("name") for key in "abcd"}
    assert by_key == {"a": "a", "b": "b", "c": "a", "d": None}
    assert found.get("c") is None
    assert found.names() == ["a", "b"]


def test_merging_registries_replaces_in_place_and_appends() -> None:
    """Order of the lower one is kept, new names follow in their own order."""
    lower = Registry([{"name": "a", "testTier": "x"}, {"name": "b"}])
    merged = lower.merged([{"name": "z"}, {"name": "a"}, {"name": "c"}])
    assert merged.entries == [{"name": "a"}, {"name": "b"}, {"name": "z"}, {"name": "c"}]
    assert lower.entries == [{"name": "a", "testTier": "x"}, {"name": "b"}]


HELM_ENTRY: dict[str, Any] = {
    "name": "x",
    "helm": {**CHART, "defaultNamespace": "ns"},
    "manifestFiles": ["m.yaml"],
}


@pytest.mark.parametrize(
    ("ref", "item", "expected"),
    [
        ({}, HELM_ENTRY,
         {"type": "Helm", "source": SOURCE, "version": "1.0.0", "namespace": "ns", "chart": "c",
          "manifestFiles": ["m.yaml"]}),
        ({"source": "s", "version": "v", "namespace": "n", "chart": "h", "manifestFiles": ["o"]},
         HELM_ENTRY,
         {"type": "Helm", "source": "s", "version": "v", "namespace": "n", "chart": "h",
          "manifestFiles": ["o"]}),
        ({"source": "", "version": "", "manifestFiles": []}, HELM_ENTRY,
         {"type": "Helm", "source": SOURCE, "version": "1.0.0", "namespace": "ns", "chart": "c",
          "manifestFiles": ["m.yaml"]}),
        ({}, {"kustomize": {**ELSEWHERE, "defaultTag": "v1"}},
         {"type": "Kustomize", "source": "https://git.example.com/x", "path": "p", "tag": "v1"}),
        ({"type": "Kustomize"}, {"helm": CHART}, {"type": "Kustomize"}),
        ({}, {"helm": {"defaultChart": "plain"}}, {"type": "Helm", "chart": "plain"}),
        ({}, {}, {"type": "Helm"}),
    ],
)  # fmt: skip
def test_defaults_fill_only_what_is_empty(
    ref: dict[str, Any], item: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Source, version, namespace, the chart's last segment; source, path, tag for Kustomize."""
    found: Any = {"name": "x", **ref}
    given: Any = item
    apply_defaults(found, given)
    assert found == {"name": "x", **expected}


@pytest.mark.covers("R11-36")
def test_an_empty_list_of_manifests_means_the_same_as_none(tmp_path: Path) -> None:
    """On a ref it inherits the registry's list; in an external entry nothing is inherited."""
    registered = registry(entry("x", helm=CHART, manifestFiles=["components/x/m.yaml"]))
    refs = [{"name": "x", "type": "Helm", "manifestFiles": []}]
    lower = catalog(
        tmp_path / "lower",
        {
            "registry.yaml": registered,
            "overlays/base.yaml": base(componentRefs=refs),
            "overlays/eks.yaml": overlay("eks", {"service": "eks"}),
        },
    )
    inherited = refs_of(resolved(lower, service="eks"))["x"]
    assert inherited["manifestFiles"] == ["components/x/m.yaml"]
    same: tuple[dict[str, Any], ...] = ({"manifestFiles": []}, {})
    for fields in same:
        folder = data(
            tmp_path / f"data{len(fields)}",
            {"registry.yaml": registry(entry("x", helm=CHART, **fields))},
        )
        found = refs_of(resolved(lower.overlay(str(folder)), service="eks"))["x"]
        assert "manifestFiles" not in found


def test_a_component_that_the_registry_does_not_know_stays_as_authored(tmp_path: Path) -> None:
    """No default and no error for the look-up itself."""
    ref = chart("stranger", namespace="n")
    found = catalog(
        tmp_path,
        {"overlays/base.yaml": base(componentRefs=[ref]),
         "overlays/eks.yaml": overlay("eks", {"service": "eks"})},
    )  # fmt: skip
    assert refs_of(resolved(found, service="eks")) == {"stranger": ref}


ASSERTS = {"healthCheck": {"assertFile": "checks/x/health-check.yaml"}}


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ({}, "kind: Test\n"),
        ({"overrides": {"enabled": False}}, "kind: Test\n"),
        ({"healthCheckSkip": True}, None),
        ({"healthCheckAsserts": "mine\n"}, "mine\n"),
    ],
)
def test_the_health_check_text_is_filled_in(
    tmp_path: Path, ref: dict[str, Any], expected: str | None
) -> None:
    """From the assert file, also for disabled refs; not when skipped or inline."""
    found = catalog(
        tmp_path,
        {"registry.yaml": registry(entry("x", **ASSERTS)),
         "checks/x/health-check.yaml": "kind: Test\n",
         "overlays/base.yaml": base(componentRefs=[chart("x", **ref)]),
         "overlays/eks.yaml": overlay("eks", {"service": "eks"})},
    )  # fmt: skip
    assert refs_of(resolved(found, service="eks"))["x"].get("healthCheckAsserts") == expected


def test_an_assert_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """With the component and the path."""
    found = catalog(
        tmp_path,
        {"registry.yaml": registry(entry("x", **ASSERTS)),
         "overlays/base.yaml": base(componentRefs=[chart("x")]),
         "overlays/eks.yaml": overlay("eks", {"service": "eks"})},
    )  # fmt: skip
    error = refusal(lambda: resolved(found, service="eks"))
    assert error.message == (
        'failed to read healthCheck.assertFile for component "x" from "checks/x/health-check.yaml"'
    )
    assert innermost(error).code == "NOT_FOUND"
