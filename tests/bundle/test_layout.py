from __future__ import annotations

from typing import Any

import pytest
from tests.bundle.sample_plans import (
    CONFIG_MAP,
    GPU_CHART,
    chart,
    component,
    namespace_manifest,
    plan_of,
)

from aicr.bundle import layout
from aicr.bundle.plan import Component
from aicr.errors import AicrError
from aicr.yamlio import read


def dirs(*components: Component) -> list[str]:
    """Folder names of these components."""
    return [folder.dir for folder in layout.folders(plan_of(*components))]


def refused(*components: Component) -> AicrError:
    """The error that these components are refused with."""
    with pytest.raises(AicrError) as caught:
        layout.folders(plan_of(*components))
    assert caught.value.code == "INVALID_REQUEST"
    return caught.value


@pytest.mark.covers("B10-5", "C-095", "C-106")
def test_folders_are_numbered_in_deployment_order() -> None:
    """Numbers count folders from 001 in the order of the plan (bundler spec 2.1)."""
    assert dirs(chart("b"), chart("a"), chart("c")) == ["001-b", "002-a", "003-c"]


@pytest.mark.covers("B10-6", "C-025", "C-096", "C-097")
def test_manifests_of_a_chart_go_into_a_post_folder() -> None:
    """The chart stays a reference, and its manifests become a local chart after it (2.2)."""
    made = layout.folders(plan_of(chart("x", manifests=[("m.yaml", CONFIG_MAP)])))
    assert [folder.dir for folder in made] == ["001-x", "002-x-post"]
    assert [folder.kind for folder in made] == ["upstream-helm", "local-helm"]
    assert [folder.phase for folder in made] == ["primary", "post"]
    assert {folder.parent for folder in made} == {"x"}
    assert sorted(made[0].files) == [
        "cluster-values.yaml",
        "install.sh",
        "upstream.env",
        "values.yaml",
    ]
    assert sorted(made[1].files) == [
        "Chart.yaml",
        "cluster-values.yaml",
        "install.sh",
        "templates/m.yaml",
        "values.yaml",
    ]


@pytest.mark.covers("B10-7")
def test_manifests_alone_are_the_primary_folder() -> None:
    """Without a chart source the manifests are the component, and there is no -post (2.2)."""
    made = layout.folders(plan_of(component("x", manifests=[("m.yaml", CONFIG_MAP)])))
    assert [(folder.dir, folder.kind, folder.phase) for folder in made] == [
        ("001-x", "local-helm", "primary")
    ]
    assert "templates/m.yaml" in made[0].files


@pytest.mark.covers("C-098")
def test_pre_manifests_come_first() -> None:
    """A -pre local chart is installed before the chart that depends on it (2.2)."""
    made = layout.folders(
        plan_of(chart("x", pre_manifests=[("ns.yaml", namespace_manifest("x"))]), chart("y"))
    )
    assert [folder.dir for folder in made] == ["001-x-pre", "002-x", "003-y"]
    assert [folder.create_namespace for folder in made] == [False, True, True]


@pytest.mark.covers("B10-10")
@pytest.mark.parametrize("text", ["", " \n\t\n", "# nothing\n---\n", "---\nnull\n"])
def test_a_pre_manifest_that_renders_to_nothing_takes_no_number(text: str) -> None:
    """An empty -pre set is dropped, and an empty -post as well (2.2)."""
    manifests = [("a.yaml", text)]
    assert dirs(chart("x", pre_manifests=manifests, manifests=manifests)) == ["001-x"]


def test_an_empty_manifest_among_others_is_left_out() -> None:
    """A file without an object is skipped (2.2)."""
    both = [("a.yaml", "# no\n"), ("b.yaml", CONFIG_MAP)]
    [only] = layout.folders(plan_of(component("x", manifests=both)))
    assert [path for path in only.files if path.startswith("templates/")] == ["templates/b.yaml"]


def test_a_component_switched_off_by_its_values_is_an_empty_chart() -> None:
    """Its folder stays, so that its release and what depends on it stay in order."""
    [only] = layout.folders(plan_of(component("x", manifests=[("a.yaml", "# no\n")])))
    templates = [path for path in only.files if path.startswith("templates/")]
    assert templates == ["templates/empty.yaml"]
    assert only.files["templates/empty.yaml"][0].startswith(b"# ")


def test_file_modes_are_those_of_the_format() -> None:
    """Scripts run, the chart reference is private, the rest is readable (2.3)."""
    ref: dict[str, Any] = {**GPU_CHART, "entry": pinned(**GPU_CHART)}
    [folder] = layout.folders(plan_of(component("gpu-operator", **ref)))
    assert {path: oct(mode) for path, (_, mode) in folder.files.items()} == {
        "apply-crds.sh": "0o755",
        "cluster-values.yaml": "0o644",
        "install.sh": "0o755",
        "upstream.env": "0o600",
        "values.yaml": "0o644",
    }


def test_values_go_to_the_primary_folder_only() -> None:
    """Injected charts are rendered already, so the values are not stored a second time."""
    made = layout.folders(
        plan_of(chart("x", values={"b": {"z": 1, "a": "yes"}}, manifests=[("m.yaml", CONFIG_MAP)]))
    )
    assert made[0].files["values.yaml"][0] == b'b:\n  a: "yes"\n  z: 1\n'
    assert made[1].files["values.yaml"][0] == b"{}\n"
    assert {folder.files["cluster-values.yaml"][0] for folder in made} == {b"{}\n"}


def test_a_local_chart_is_named_after_its_release() -> None:
    """Chart.yaml: v2, the release's name, version 0.1.0 (2.3)."""
    made = layout.folders(plan_of(chart("x", manifests=[("m.yaml", CONFIG_MAP)])))
    text = made[1].files["Chart.yaml"][0].decode()
    assert read.load(text, source="Chart.yaml") == {
        "apiVersion": "v2",
        "name": "x-post",
        "version": "0.1.0",
    }


def pinned(**pins: str) -> dict[str, Any]:
    """A registry entry that allows CRDs to be applied for this very chart."""
    return {
        "ownsCRDs": True,
        "helm": {
            "defaultRepository": pins["source"],
            "defaultChart": f"nvidia/{pins['chart']}",
            "defaultVersion": pins["version"].removeprefix("v"),
        },
    }


@pytest.mark.covers("B10-62")
@pytest.mark.parametrize(
    ("change", "owned"),
    [
        ({}, True),
        ({"version": "v25.3.4"}, False),
        ({"version": ""}, False),
        ({"chart": "other"}, False),
        ({"source": "https://mirror.example.com"}, False),
    ],
)
def test_crds_are_applied_for_the_pinned_chart_alone(change: dict[str, str], owned: bool) -> None:
    """An override of source, chart or version voids the audit behind ownsCRDs (2.6)."""
    ref: dict[str, Any] = {**GPU_CHART, **change}
    [folder] = layout.folders(plan_of(component("gpu-operator", entry=pinned(**GPU_CHART), **ref)))
    assert ("apply-crds.sh" in folder.files) is owned


def test_crds_are_not_applied_without_the_registry_flag() -> None:
    """ownsCRDs must be true (2.6)."""
    entry = {**pinned(**GPU_CHART), "ownsCRDs": False}
    [folder] = layout.folders(plan_of(component("gpu-operator", entry=entry, **GPU_CHART)))
    assert "apply-crds.sh" not in folder.files


@pytest.mark.parametrize("excluded", [False, True])
def test_the_registry_can_leave_the_crds_of_subcharts_out(excluded: bool) -> None:
    """ownsCRDsExcludeSubcharts narrows the audit behind ownsCRDs to the chart's own CRDs (2.6)."""
    entry = {**pinned(**GPU_CHART), "ownsCRDsExcludeSubcharts": excluded}
    [folder] = layout.folders(plan_of(component("gpu-operator", entry=entry, **GPU_CHART)))
    assert folder.crd_owner
    assert folder.crd_subcharts is not excluded
    script = folder.files["apply-crds.sh"][0].decode()
    assert ("helm show crds" in script) is not excluded
    assert ("helm pull" in script) is excluded


@pytest.mark.covers("B10-11")
def test_a_name_that_ends_in_readiness_is_refused() -> None:
    """The suffix belongs to readiness gates (2.2)."""
    assert "foo-readiness" in str(refused(chart("foo-readiness")))


@pytest.mark.covers("B10-12")
@pytest.mark.parametrize("phase", ["pre", "post"])
def test_a_component_that_collides_with_an_injected_folder_is_refused(phase: str) -> None:
    """Two folders of one release name would be one Helm release (2.2)."""
    key = "manifests" if phase == "post" else "pre_manifests"
    foo = chart("foo", **{key: [("m.yaml", CONFIG_MAP)]})
    error = refused(foo, chart(f"foo-{phase}"))
    assert f"foo-{phase}" in error.message
    assert "foo" in error.message
    assert refused(chart(f"foo-{phase}"), foo).code == "INVALID_REQUEST"


def test_a_component_called_post_is_a_primary_without_a_collision() -> None:
    """The phase comes from the parent, not from the name (5.0.3)."""
    [foo, post] = layout.folders(plan_of(chart("foo"), chart("foo-post")))
    assert (foo.phase, post.phase, post.parent) == ("primary", "primary", "foo-post")


@pytest.mark.covers("F4")
@pytest.mark.parametrize(
    "name",
    ["", "../x", "a/b", "a\\b", "..", "-a", "a-", "a.", "A", "a_b", "a\n", "a b", "$(id)", "ä"],
)
def test_an_unsafe_component_name_is_refused(name: str) -> None:
    """A name becomes a folder, a release and a word of a script (2.2, F4: no trailing newline)."""
    assert "not safe" in refused(chart(name, namespace="ns")).message


@pytest.mark.covers("F4")
def test_a_release_name_beyond_53_characters_is_refused() -> None:
    """Helm's own limit holds for the folder's release, suffix included (F4)."""
    assert dirs(chart("a" * 53)) == [f"001-{'a' * 53}"]
    assert "54 characters" in refused(chart("a" * 54)).message
    long = chart("a" * 50, manifests=[("m.yaml", CONFIG_MAP)])
    assert f"{'a' * 50}-post" in refused(long).message


@pytest.mark.parametrize("namespace", ["A", "a.b", "-a", "a" * 64, "a\n"])
def test_an_invalid_namespace_is_refused(namespace: str) -> None:
    """A namespace is a DNS label."""
    assert "namespace" in refused(chart("x", namespace=namespace)).message


def test_a_missing_namespace_is_refused() -> None:
    """Helm's default namespace is nobody's intention."""
    held = chart("x")
    held.namespace = ""
    assert "has no namespace" in refused(held).message


def test_nothing_to_install_is_refused() -> None:
    """A ref without source, manifests, tag and path has no meaning (2.2)."""
    assert "nothing to install" in refused(component("x")).message


@pytest.mark.parametrize(("first", "second"), [("m.yaml", "m.yaml"), ("m.yaml", "M.yaml")])
def test_manifests_of_one_basename_are_refused(first: str, second: str) -> None:
    """They would overwrite each other, on some systems even if only the case differs (2.2, F10)."""
    error = refused(component("x", manifests=[(first, CONFIG_MAP), (second, CONFIG_MAP)]))
    assert second in error.message


@pytest.mark.parametrize("name", ["_helpers.yaml", ".hidden.yaml", "NOTES.txt", "x.tpl"])
def test_manifest_names_that_helm_passes_over_are_refused(name: str) -> None:
    """Helm renders no partials, dot files, notes: their objects would be lost without a word."""
    assert "does not render" in refused(component("x", manifests=[(name, CONFIG_MAP)])).message


@pytest.mark.parametrize("name", ["", "..", "a/b.yaml", "a\\b.yaml"])
def test_unsafe_manifest_names_are_refused(name: str) -> None:
    """A manifest's basename stays inside templates/ (2.2)."""
    assert "unsafe manifest" in refused(component("x", manifests=[(name, CONFIG_MAP)])).message


def test_a_pre_manifest_with_another_namespace_is_refused() -> None:
    """The Namespace of a -pre chart is the one that the chart after it lands in (2.2)."""
    held = chart("x", pre_manifests=[("ns.yaml", namespace_manifest("other"))])
    error = refused(held)
    assert "'other'" in error.message
    assert "'x'" in error.message


@pytest.mark.parametrize(
    ("text", "creates"),
    [
        (CONFIG_MAP, True),
        (CONFIG_MAP + "---\n" + namespace_manifest("x"), False),
        ('{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}\n', False),
        (
            "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Namespace\n"
            "    metadata: {name: x}\n",
            False,
        ),
        (CONFIG_MAP + "  # kind: Namespace\n", True),
        (CONFIG_MAP.replace("value", "Namespace"), True),
    ],
)
def test_helm_creates_the_namespace_unless_a_template_declares_one(
    text: str, creates: bool
) -> None:
    """Otherwise helm refuses the object that it has just made (2.2)."""
    [folder] = layout.folders(plan_of(component("x", manifests=[("m.yaml", text)])))
    assert folder.create_namespace is creates
    script = folder.files["install.sh"][0].decode()
    assert f"CREATE_NAMESPACE='{str(creates).lower()}'" in script


def test_more_than_999_folders_are_refused() -> None:
    """Folder numbers have three digits (2.1)."""
    many = [chart(f"c{number}") for number in range(999)]
    assert dirs(*many)[-1] == "999-c998"
    assert "more than 999" in refused(*many, chart("last")).message


def build(_command: list[str], _seconds: float) -> tuple[int, bytes, bytes]:
    """A Kustomize build that succeeds."""
    return 0, CONFIG_MAP.encode(), b""


@pytest.mark.covers("C-010", "C-011")
def test_a_kustomization_is_wrapped_as_one_manifest() -> None:
    """Its build output is templates/manifest.yaml of a local chart (2.2)."""
    held = component("k", type="Kustomize", source="https://git.example.com/k", path="deploy")
    pre = component(
        "p", type="Kustomize", path="deploy", pre_manifests=[("ns.yaml", namespace_manifest("p"))]
    )
    made = layout.folders(plan_of(held, pre), run=build)
    assert [folder.dir for folder in made] == ["001-k", "002-p-pre", "003-p"]
    assert made[0].kind == "local-helm"
    assert made[0].files["templates/manifest.yaml"][0] == CONFIG_MAP.encode()


@pytest.mark.covers("B10-8")
def test_a_kustomization_with_manifests_is_refused() -> None:
    """Its manifests belong into the kustomization (2.2)."""
    held = component("k", type="Kustomize", path="d", manifests=[("m.yaml", CONFIG_MAP)])
    assert "manifestFiles" in refused(held).message


@pytest.mark.covers("B10-9")
@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ({"tag": "v1"}, "a tag but no path"),
        ({"tag": "v1", "source": "https://git.example.com/k"}, "a tag but no path"),
        ({"tag": "v1", "path": "deploy"}, "a tag but no source"),
        ({"type": "Kustomize", "source": "https://git.example.com/k"}, "no path"),
        ({"path": "deploy", "chart": "x"}, "both Helm and Kustomize"),
    ],
)
def test_an_incomplete_kustomize_ref_is_refused(ref: dict[str, Any], words: str) -> None:
    """Tag needs path and source, and Helm fields do not mix in (2.2)."""
    assert words in refused(component("k", **ref)).message


def test_template_actions_in_manifests_survive_helm() -> None:
    """Rendered manifests may hold {{ }} of another template language; helm must not read it."""
    text = CONFIG_MAP.replace("value", "'{{ $labels.gpu }}'")
    [folder] = layout.folders(plan_of(component("x", manifests=[("m.yaml", text)])))
    assert b'{{ "{{" }} $labels.gpu }}' in folder.files["templates/m.yaml"][0]


def test_layout_never_names_a_component() -> None:
    """The local format has no special case for any component (2.3)."""
    plain = layout.folders(plan_of(chart("aaaaaaaaaaaaa")))
    special = layout.folders(plan_of(chart("kai-scheduler")))
    for path, (data, mode) in plain[0].files.items():
        renamed = data.replace(b"aaaaaaaaaaaaa", b"kai-scheduler")
        assert special[0].files[path] == (renamed, mode)
