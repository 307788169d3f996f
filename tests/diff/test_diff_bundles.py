"""Two bundles: releases by name, values and objects path by path, and no noise."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, plan_of

from aicr.bundle import deployers, layout
from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Component
from aicr.diff import bundles, crds
from aicr.errors import AicrError

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foos.example.com
spec:
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object}}
"""


def bundle(*components: Component, deployer: str = "helm", **flags: Any) -> dict[str, bytes]:
    """The files of a bundle."""
    plan = plan_of(*components)
    options = BundleOptions(deployer=deployer, **flags)
    plan.options, plan.serial = options, options.serial
    files = deployers.load(deployer).generate(plan, layout.folders(plan))
    return {path: data for path, (data, _) in files.items()}


def found(before: dict[str, bytes], after: dict[str, bytes]) -> list[tuple[str, str, str, str]]:
    """The changes without their sides."""
    return [
        (change.area, change.component, change.path, change.change)
        for change in bundles.compare(before, after).changes
    ]


def manifests(text: str, **more: Any) -> Component:
    """A component of manifests."""
    return component("m", manifests=[("m.yaml", text)], **more)


@pytest.mark.parametrize("deployer", ["helm", "helmfile", "terraform"])
def test_a_bundle_is_the_same_as_itself(deployer: str) -> None:
    """Also when another program version wrote it, which pages and info say."""
    before = bundle(chart("a", values={"x": 1}), manifests(CONFIG_MAP), deployer=deployer)
    after = dict(before)
    after["README.md"] = b"other words\n"
    after["bundle-info.yaml"] = after["bundle-info.yaml"].replace(b"dev", b"9.9")
    assert found(before, after) == []


@pytest.mark.parametrize("deployer", ["helm", "helmfile", "terraform"])
def test_a_new_component_renumbers_folders_without_other_changes(deployer: str) -> None:
    """Releases are matched by name; numbers in the deployer's own files mean nothing."""
    before = bundle(chart("b"), deployer=deployer)
    after = bundle(chart("a"), chart("b"), deployer=deployer)
    changes = found(before, after)
    assert ("components", "a", "", "added") in changes
    assert ("releases", "a", "", "added") in changes
    assert not [change for change in changes if change[1] == "b"]


def test_a_changed_value_is_found_by_path() -> None:
    """In values.yaml, and in cluster-values.yaml with its name."""
    before = bundle(chart("a", values={"x": {"y": 1}, "z": 1}))
    after = bundle(chart("a", values={"x": {"y": 2}, "z": 1}))
    assert found(before, after) == [("values", "a", "x.y", "changed")]
    after = dict(before)
    after["001-a/cluster-values.yaml"] = b"later: x\n"
    assert found(before, after) == [("values", "a", "later (cluster-values.yaml)", "added")]


def test_an_object_is_compared_by_kind_and_name() -> None:
    """A changed field, a renamed object, and layout that means nothing."""
    before = bundle(manifests(CONFIG_MAP))
    changed = bundle(manifests(CONFIG_MAP.replace("key: value", "key: other")))
    assert found(before, changed) == [("manifests", "m", "ConfigMap settings: data.key", "changed")]
    renamed = bundle(manifests(CONFIG_MAP.replace("settings", "options")))
    assert found(before, renamed) == [
        ("manifests", "m", "ConfigMap options", "added"),
        ("manifests", "m", "ConfigMap settings", "removed"),
    ]
    commented = bundle(manifests("# a comment\n" + CONFIG_MAP))
    assert found(before, commented) == []


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (CRD.replace("served: true", "served: false"), "v1 (stored)", "v1 (not served, stored)"),
        (
            CRD.replace("type: object", "type: string"),
            "v1 (stored), schema before",
            "v1 (stored), schema after",
        ),
    ],
)
def test_a_crd_is_compared_by_versions_and_schema(text: str, before: str, after: str) -> None:
    """What decides whether its objects survive."""
    comparison = bundles.compare(bundle(manifests(CRD)), bundle(manifests(text)))
    assert [(c.area, c.component, c.path, c.before, c.after) for c in comparison.changes] == [
        ("crds", "m", "foos.example.com", before, after)
    ]


def test_crds_that_come_and_go_are_found() -> None:
    """Removing a CRD takes its objects with it."""
    both = bundle(manifests(CONFIG_MAP + "---\n" + CRD))
    without = bundle(manifests(CONFIG_MAP))
    assert found(both, without) == [("crds", "m", "foos.example.com", "removed")]
    assert found(without, both) == [("crds", "m", "foos.example.com", "added")]


def archive(**files: str) -> bytes:
    """A chart archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as made:
        for name, text in files.items():
            data = text.encode()
            entry = tarfile.TarInfo(name.replace("__", "/") + ".yaml")
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def test_crds_of_a_vendored_chart_are_seen() -> None:
    """Those in crds/ of the chart and of its subcharts; a broken archive has none."""
    data = archive(foo__crds__a=CRD, foo__charts__sub__crds__b=CRD.replace("foos", "bars"))
    assert sorted(crds.definitions({"charts/foo-1.tgz": data}, [])) == [
        "bars.example.com",
        "foos.example.com",
    ]
    assert crds.definitions({"x.tgz": b"no archive", "y.tgz": data[:60]}, []) == {}


def test_other_files_are_named() -> None:
    """A script that was changed by hand, and a data file."""
    before = bundle(chart("a"))
    after = dict(before)
    after["001-a/install.sh"] += b"true\n"
    after["deploy.sh"] += b"true\n"
    after["data/x.yaml"] = b"x\n"
    assert found(before, after) == [
        ("files", "", "a: install.sh", "changed"),
        ("files", "", "deploy.sh", "changed"),
        ("files", "", "data/x.yaml", "added"),
    ]


def test_bundles_of_two_deployers_are_compared_in_what_they_share() -> None:
    """The settings say so, and a note; no file of a deployer is compared."""
    before, after = (bundle(chart("a"), deployer=name) for name in ("helm", "terraform"))
    comparison = bundles.compare(before, after)
    assert [(c.area, c.path) for c in comparison.changes] == [("settings", "deployer")]
    assert len(comparison.notes) == 1


@pytest.mark.parametrize("second", sorted(deployers.MODULES))
@pytest.mark.parametrize("first", ["helm", "flux", "argocd"])
def test_the_same_plan_under_any_two_deployers_differs_in_the_deployer_alone(
    first: str, second: str
) -> None:
    """Objects that belong to one deployer are none of the other's that came or went (59)."""
    parts = [chart("a", values={"x": {"y": 1}}, manifests=[("m.yaml", CONFIG_MAP)]), chart("b")]
    before, after = (bundle(*parts, deployer=name) for name in (first, second))
    areas = {area for area, _, _, _ in found(before, after)}
    assert areas == (set() if first == second else {"settings"})


@pytest.mark.parametrize("second", sorted(deployers.MODULES))
@pytest.mark.parametrize("first", ["helm", "flux"])
def test_a_changed_value_is_the_only_difference_wherever_it_is_kept(
    first: str, second: str
) -> None:
    """In values.yaml, in spec.values of a HelmRelease, or in `static/` as well (decision 59)."""
    before = bundle(chart("a", values={"x": {"y": 1}, "k": "v"}), deployer=first)
    after = bundle(chart("a", values={"x": {"y": 2}, "k": "v"}), deployer=second)
    changes = [change for change in found(before, after) if change[0] != "settings"]
    assert changes == [("values", "a", "x.y", "changed")]


def test_values_inside_an_application_are_values_too() -> None:
    """A bundle that is published has them there."""
    flags = {"deployer": "argocd", "oci_reference": "oci://r.example/b:1.0.0"}
    before = bundle(chart("a", values={"k": 1}), **flags)
    after = bundle(chart("a", values={"k": 2}), **flags)
    assert found(before, after) == [("values", "a", "k", "changed")]


@pytest.mark.parametrize("deployer", ["argocd-helm", "flux", "terraform"])
def test_a_changed_value_under_one_deployer_is_told_once(deployer: str) -> None:
    """Copies of values and digests of them are no differences of their own."""
    before = bundle(chart("a", values={"k": 1}), deployer=deployer)
    after = bundle(chart("a", values={"k": 2}), deployer=deployer)
    assert found(before, after) == [("values", "a", "k", "changed")]


def test_a_flag_that_shaped_a_bundle_is_a_setting() -> None:
    """For example a storage class."""
    before, after = bundle(chart("a")), bundle(chart("a"), storage_class="gp3")
    assert ("settings", "", "storageClass", "added") in found(before, after)


@pytest.mark.parametrize("missing", ["bundle-info.yaml", "recipe.yaml"])
def test_a_folder_that_is_no_bundle_is_refused(missing: str) -> None:
    """The missing file is named."""
    files = bundle(chart("a"))
    del files[missing]
    with pytest.raises(AicrError, match=f"it has no {missing}"):
        bundles.compare(bundle(chart("a")), files)


def test_a_template_that_is_no_yaml_is_compared_as_text() -> None:
    """A note says so."""
    before = bundle(manifests(CONFIG_MAP))
    after = dict(before)
    after["001-m/templates/m.yaml"] = b"{{ if }}: [\n"
    comparison = bundles.compare(before, after)
    assert any(change.area == "files" for change in comparison.changes)
    assert "compared as text" in comparison.notes[0]
