"""The argocd-helm deployer: the files of the chart, and what is refused."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, component
from tests.deployers import gitops_plans as plans
from tests.deployers import golden, parse_back

from aicr.artifacts import checksums
from aicr.bundle.deployers import argocd_chart, argocd_helm, gitops
from aicr.bundle.plan import Component, Plan
from aicr.errors import AicrError
from aicr.yamlio import read

MANIFESTS = [("m.yaml", CONFIG_MAP)]


def plan_of(*components: Component, **options: Any) -> Plan:
    """A plan for argocd-helm."""
    return plans.plan_of(*components, deployer="argocd-helm", **options)


def loaded(plan: Plan, path: str) -> Any:
    """One YAML file of a bundle."""
    return read.load(plans.files_of(plan)[path][0].decode(), source=path)


@pytest.mark.covers("C-099", "C-100", "C-101", "B10-78")
def test_the_whole_bundle_is_as_kept(request: pytest.FixtureRequest) -> None:
    """Every file of a small bundle, byte for byte; twice the same."""
    a, b = plans.pair()
    plan = plan_of(plans.deferred(a, ["driver", "version"], ["replicas"]), b)
    files = plans.files_of(plan)
    assert files == plans.files_of(plan)
    golden.compare("argocd-helm", files, request)


def test_a_written_bundle_verifies(tmp_path: Path) -> None:
    """What is generated, written and verified agree (bundler spec 7.2)."""
    assert checksums.verify_tree(str(plans.written(plan_of(*plans.pair()), tmp_path / "b"))) == []


def test_each_folder_has_one_template() -> None:
    """The parent, the helpers, and one template for each release (bundler spec 5.4)."""
    names = [path for path in plans.files_of(plan_of(*plans.pair())) if path[:10] == "templates/"]
    assert sorted(names) == [
        "templates/_aicr.tpl",
        "templates/a.yaml",
        "templates/aicr-stack.yaml",
        "templates/b-post.yaml",
        "templates/b-pre.yaml",
        "templates/b.yaml",
    ]


def test_static_values_are_those_of_upstream_charts_that_have_any() -> None:
    """A local chart has its values in its folder (bundler spec 5.4)."""
    plan = plan_of(*plans.pair(), chart("c"), component("d", manifests=MANIFESTS, values={"x": 1}))
    names = [path for path in plans.files_of(plan) if path.startswith("static/")]
    assert names == ["static/a.yaml", "static/b.yaml"]
    assert loaded(plan, "static/a.yaml") == {"texts": plans.EATEN, "replicas": 2}


def test_the_values_have_the_keys_of_the_chart_and_stubs_for_dynamic_paths() -> None:
    """A dynamic value moves there; one that does not exist is an empty text (2.4, 5.4)."""
    entry = {"valueOverrideKeys": ["gpuop", "other"]}
    item = chart("gpu-operator", values={"driver": {"version": "1", "x": 2}}, entry=entry)
    plan = plan_of(
        plans.deferred(item, ["driver", "version"], ["toolkit", "env"]),
        app_name="stack",
        set=["deployer:project=gpu"],
    )
    assert loaded(plan, "values.yaml") == {
        "appName": "stack",
        "repoURL": "",
        "targetRevision": "",
        "deployer": {
            "namePrefix": "",
            "destinationServer": "https://kubernetes.default.svc",
            "project": "gpu",
            "includeRootApp": True,
        },
        "gpuop": {"driver": {"version": "1"}, "toolkit": {"env": ""}},
    }
    assert loaded(plan, "static/gpu-operator.yaml") == {"driver": {"x": 2}}


def test_the_key_of_a_component_is_its_first_override_key_else_its_name() -> None:
    """The name is an override key too (bundler spec 0.1)."""
    plan = plan_of(chart("a", entry={"valueOverrideKeys": ["x", "y"]}), chart("b-c"))
    assert argocd_chart.override_keys(plan) == {"a": "x", "b-c": "b-c"}


@pytest.mark.parametrize(
    "components",
    [
        [chart("a", entry={"valueOverrideKeys": ["b"]}), chart("b")],
        [chart("a", entry={"valueOverrideKeys": ["deployer"]})],
        [chart("global")],
    ],
)
def test_a_key_that_is_taken_is_refused(components: list[Component]) -> None:
    """Two components, or a component and the chart, never share a key."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(*components))
    assert caught.value.code == "INVALID_REQUEST"
    assert "under the key" in caught.value.message


def test_the_schema_is_closed_and_accepts_the_values() -> None:
    """A misspelt key is refused, at the root and below `deployer` (bundler spec 5.4)."""
    plan = plan_of(*plans.pair())
    schema = json.loads(plans.files_of(plan)["values.schema.json"][0])
    assert schema["additionalProperties"] is False
    assert schema["properties"]["deployer"]["additionalProperties"] is False
    assert set(loaded(plan, "values.yaml")) <= set(schema["properties"])
    assert {"a", "b"} <= set(schema["properties"])


@pytest.mark.covers("B10-52", "F7")
@pytest.mark.parametrize(
    ("options", "metadata", "wanted"),
    [
        ({"oci_reference": "oci://r:5000/o/b:1.0.0_rc1"}, "", ("b", "1.0.0+rc1", "oci://r:5000/o")),
        ({"oci_reference": "oci://r:5000/b:1.0.0-rc.1"}, "", ("b", "1.0.0-rc.1", "oci://r:5000")),
        ({"oci_reference": "r.example/o/b:2.0.0"}, "", ("b", "2.0.0", "oci://r.example/o")),
        ({"oci_reference": "oci://r/o/b"}, "", ("b", "1.0.0", "oci://r/o")),
        ({}, "1.4.0", ("aicr-bundle", "1.4.0", "")),
        ({}, "v1.4", ("aicr-bundle", "1.4.0", "")),
        ({}, "dev", ("aicr-bundle", "0.1.0", "")),
        ({}, "", ("aicr-bundle", "0.1.0", "")),
        ({}, "01.2.3", ("aicr-bundle", "0.1.0", "")),
    ],
)
def test_name_and_version_of_the_chart(
    options: dict[str, str], metadata: str, wanted: tuple[str, str, str]
) -> None:
    """From the reference, its underscore read as a plus, else from the recipe (1.5, 5.4)."""
    plan = plan_of(chart("a"), recipe={"metadata": {"version": metadata}}, **options)
    found = loaded(plan, "Chart.yaml")
    values = loaded(plan, "values.yaml")
    assert (found["name"], found["version"], values["repoURL"]) == wanted
    assert values["targetRevision"] == (wanted[1] if wanted[2] else "")


@pytest.mark.covers("B10-52")
@pytest.mark.parametrize("tag", ["1.0_rc", "v1.0.0", "latest", "1.0", "1.0.0_", "01.0.0"])
def test_a_tag_that_is_no_strict_version_is_refused(tag: str) -> None:
    """Helm would not push it (bundler spec 1.5)."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(chart("a"), oci_reference=f"oci://r/o/b:{tag}"))
    assert caught.value.code == "INVALID_REQUEST"
    assert "semantic version" in caught.value.message


def test_dynamic_values_of_a_chart_in_the_bundle_are_refused() -> None:
    """Its manifests are rendered already (bundler spec 1.8)."""
    item = plans.deferred(component("a", manifests=MANIFESTS), ["x"])
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(item))
    assert caught.value.code == "INVALID_REQUEST"
    assert "--set" in caught.value.hint


@pytest.mark.parametrize(
    ("components", "options", "part"),
    [
        ([chart("aicr-profile-lock")], {}, "template of the chart itself"),
        ([chart("aicr-stack")], {"app_name": "x"}, "template of the chart itself"),
        ([chart("aicr-stack")], {}, "the parent Application"),
        ([chart("a", values={"x": "a <no value> b"})], {}, "<no value>"),
        ([chart("a")], {"set": ["deployer:namePrefix=UPPER"]}, "namePrefix"),
        ([chart("a")], {"app_name": "UPPER"}, "--app-name"),
    ],
)
def test_what_helm_or_argo_cd_would_get_wrong_is_refused(
    components: list[Component], options: dict[str, Any], part: str
) -> None:
    """Names of our own templates, names of two objects, texts that helm removes (5.4)."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(*components, **options))
    assert caught.value.code == "INVALID_REQUEST"
    assert part in caught.value.message


def test_what_is_no_part_of_the_chart_is_ignored_by_helm() -> None:
    """Helm would keep a recipe with its secrets in the cluster."""
    text = plans.files_of(plan_of(*plans.pair()))[".helmignore"][0].decode()
    assert "/recipe.yaml\n" in text
    assert "/001-a/\n" in text
    assert "002-b-pre" not in text


def test_the_page_has_the_key_of_each_component(tmp_path: Path) -> None:
    """The reader sees where values go and what is asked for."""
    a, b = plans.pair()
    a.entry["valueOverrideKeys"] = ["alpha"]
    bundle = plans.written(plan_of(plans.deferred(a, ["driver", "a.b/c"]), b), tmp_path / "b")
    page = (bundle / "README.md").read_text()
    assert "| a | `alpha` | `driver.a\\.b/c` |" in page
    assert "helm uninstall aicr-bundle" in page
    assert page.index("remove b-post") < page.index("remove a\n")
    assert "take no values here" not in page
    info = parse_back.document(bundle / "bundle-info.yaml")
    assert info["layout"]["entrypoint"] == "Chart.yaml"


def test_the_page_offers_no_key_that_would_be_refused(tmp_path: Path) -> None:
    """Manifests of the bundle are rendered already, so values for them make helm fail."""
    rendered = component("m", manifests=[("m.yaml", CONFIG_MAP)])
    page = plans.files_of(plan_of(chart("a"), rendered))["README.md"][0].decode()
    assert "| a | `a` |" in page
    assert "| m | `m` |" not in page
    assert "take no values here: m." in page


def test_a_chart_that_carries_charts_is_applied_and_not_installed(tmp_path: Path) -> None:
    """Helm would keep the vendored charts in its record, and no Secret holds them (issue 5)."""
    for flags in ({}, {"oci_reference": "oci://r/o/b:1.0.0"}):
        plan = plan_of(chart("a"), vendor_charts=True, **flags)
        page = plans.files_of(plan)["README.md"][0].decode()
        last = argocd_helm.steps(plan.options)[-1]
        assert last.startswith("helm template ")
        assert last.endswith(" | kubectl apply -f -")
        assert last in page
        assert "helm upgrade" not in page
        assert "helm uninstall" not in page


def test_a_chart_that_helm_could_not_record_is_refused() -> None:
    """Its values are in it, and once more in what it renders (issue 5)."""
    noise = base64.b64encode(random.Random(1).randbytes(500_000)).decode()
    plan = plan_of(chart("a", values={"text": noise}))
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan)
    assert caught.value.code == "INVALID_REQUEST"
    assert "a Secret holds 1024 KiB" in caught.value.message
    assert plans.files_of(plan_of(chart("a", values={"text": "word " * 100_000})))


@pytest.mark.covers("F4")
@pytest.mark.parametrize("length", [52, 53, 54, 70, 200])
def test_fitted_names_keep_their_length_and_stay_apart(length: int) -> None:
    """Cut names end in a digest of the whole name (field case F4)."""
    names = [("a" * 44 + ".-" * length)[: length - 1] + end for end in "xyz"]
    cut = [gitops.fitted(name, 53) for name in names]
    assert len(set(cut)) == 3
    for name, short in zip(names, cut, strict=True):
        assert len(short) <= 53
        assert short == gitops.fitted(name, 53)
        assert short[-1] not in "-."
        assert (short == name) is (length <= 53)
