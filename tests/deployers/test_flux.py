"""The flux deployer: objects, the graph, where charts and values come from, what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, namespace_manifest
from tests.deployers import gitops_plans as plans
from tests.deployers import golden, parse_back

from aicr.artifacts import checksums
from aicr.bundle import layout
from aicr.bundle.deployers import flux, flux_sources
from aicr.bundle.plan import Component, Plan
from aicr.errors import AicrError
from aicr.yamlio import read

MANIFESTS = [("m.yaml", CONFIG_MAP)]
DISABLED = {"kustomize.toolkit.fluxcd.io/substitute": "disabled"}
PINS = {
    "ownsCRDs": True,
    "helm": {
        "defaultRepository": "https://charts.example.com",
        "defaultChart": "x/a",
        "defaultVersion": "1.2.3",
    },
}


def plan_of(*components: Component, **options: Any) -> Plan:
    """A plan for flux."""
    return plans.plan_of(*components, deployer="flux", **options)


def objects(plan: Plan) -> dict[tuple[str, str], dict[str, Any]]:
    """Every object that the kustomization lists, by kind and name."""
    files = plans.files_of(plan)
    listed = read.load(files["kustomization.yaml"][0].decode(), source="kustomization.yaml")
    made = {}
    for path in listed["resources"]:
        item = read.load(files[path][0].decode(), source=path)
        made[item["kind"], item["metadata"]["name"]] = item
    assert len(made) == len(listed["resources"])
    return made


def release(plan: Plan, name: str) -> dict[str, Any]:
    """The spec of one HelmRelease."""
    spec: dict[str, Any] = objects(plan)["HelmRelease", name]["spec"]
    return spec


@pytest.mark.covers("C-099", "C-100", "C-101", "C-095", "B10-78")
def test_the_whole_bundle_is_as_kept(request: pytest.FixtureRequest) -> None:
    """Every file of a small bundle, byte for byte; twice the same."""
    a, b = plans.pair()
    plan = plan_of(plans.deferred(a, ["driver", "version"]), b)
    files = plans.files_of(plan)
    assert files == plans.files_of(plan)
    golden.compare("flux", files, request)


def test_a_written_bundle_verifies(tmp_path: Path) -> None:
    """What is generated, written and verified agree (bundler spec 7.2)."""
    assert checksums.verify_tree(str(plans.written(plan_of(*plans.pair()), tmp_path / "b"))) == []


def test_the_kustomization_lists_every_object_and_nothing_else() -> None:
    """A plain list, sorted; charts inside the bundle are no objects (bundler spec 5.5)."""
    files = plans.files_of(plan_of(*plans.pair()))
    listed = read.load(files["kustomization.yaml"][0].decode(), source="k")
    assert listed["resources"] == sorted(listed["resources"])
    others = ("/Chart.yaml", "/values.yaml", "bundle-info.yaml", "recipe.yaml")
    wanted = {
        path
        for path in files
        if path.endswith(".yaml")
        and not path.endswith(others)
        and "/templates/" not in path
        and path != "kustomization.yaml"
    }
    assert set(listed["resources"]) == wanted


@pytest.mark.covers("B10-53", "C-109", "C-110", "C-103")
def test_a_release_waits_for_the_last_release_of_each_dependency() -> None:
    """And for nothing else; within a component for the one before (bundler spec 5.5)."""
    plan = plan_of(*plans.graph())
    depends = flux.dependencies(plan, layout.folders(plan))
    assert depends == {
        "aws-efa": [],
        "cert-manager": [],
        "cert-manager-post": ["cert-manager"],
        "extras": ["aws-efa"],
        "gpu-operator": ["cert-manager-post"],
        "gpu-operator-post": ["gpu-operator"],
        "dynamo": ["gpu-operator-post"],
        "kai-scheduler": ["gpu-operator-post"],
    }


@pytest.mark.covers("C-128", "C-129", "C-131")
def test_serial_is_a_chain_that_ignores_the_graph(tmp_path: Path) -> None:
    """Each component's first release waits for the component before (bundler spec 5.0.4)."""
    bundle = plans.written(plan_of(*plans.graph(), serial=True), tmp_path / "b")
    names = parse_back.releases(bundle)
    assert parse_back.flux_edges(bundle) == parse_back.chained(names)


@pytest.mark.parametrize("serial", [False, True])
def test_the_order_of_the_files_is_that_of_the_recipe(tmp_path: Path, serial: bool) -> None:
    """Without --serial exactly that, with it at least that."""
    bundle = plans.written(plan_of(*plans.graph(), serial=serial), tmp_path / "b")
    found, wanted = parse_back.before(bundle), parse_back.expected(bundle)
    assert found.keys() == wanted.keys()
    assert all(found[name] >= needed for name, needed in wanted.items())
    assert serial or found == wanted


def test_releases_keep_their_names_and_places() -> None:
    """Flux would call a release after its namespace as well (field pain 42)."""
    made = objects(plan_of(*plans.pair(), flux_namespace="gitops"))
    item = made["HelmRelease", "b-post"]
    assert item["metadata"]["namespace"] == "gitops"
    assert (item["spec"]["releaseName"], item["spec"]["targetNamespace"]) == ("b-post", "b-system")
    assert {each["metadata"]["namespace"] for each in made.values()} == {"gitops"}


@pytest.mark.covers("F7")
@pytest.mark.parametrize(
    ("ref", "wanted"),
    [
        ({"version": "v1.2.3"}, {"chart": "a", "version": "1.2.3"}),
        ({"chart": "stable/x", "version": "1.2.3"}, {"chart": "x", "version": "1.2.3"}),
        ({"version": ""}, {"chart": "a"}),
    ],
)
def test_charts_over_http(ref: dict[str, str], wanted: dict[str, str]) -> None:
    """A HelmRepository for each address; a leading v goes (bundler spec 5.0.6)."""
    plan = plan_of(chart("a", **ref))
    made = objects(plan)
    assert (
        made["HelmRepository", "charts-example-com"]["spec"]["url"] == "https://charts.example.com"
    )
    assert release(plan, "a")["chart"]["spec"] == {
        **wanted,
        "interval": "5m",
        "sourceRef": {
            "kind": "HelmRepository",
            "name": "charts-example-com",
            "namespace": "flux-system",
        },
    }


@pytest.mark.covers("F7")
def test_charts_in_a_registry_keep_scheme_and_exact_tag() -> None:
    """A plus in a version is an underscore in the tag; the port is no tag (F7)."""
    plan = plan_of(chart("g", **plans.OCI_CHART))
    [source] = [item for (kind, _), item in objects(plan).items() if kind == "OCIRepository"]
    assert source["spec"]["url"] == "oci://registry.example:5000/charts/gpu-operator"
    assert source["spec"]["ref"] == {"tag": "v26.3.1_build.2"}
    assert source["spec"]["layerSelector"]["mediaType"].startswith(
        "application/vnd.cncf.helm.chart"
    )
    assert release(plan, "g")["chartRef"] == {
        "kind": "OCIRepository",
        "name": "registry-example-5000-charts-gpu-operator",
        "namespace": "flux-system",
    }
    assert "chart" not in release(plan, "g")


def test_one_chart_in_two_versions_has_two_sources() -> None:
    """The version is in the name only where it has to be."""
    first = {**plans.OCI_CHART, "version": "1.0.0"}
    plan = plan_of(chart("a", **first), chart("b", **plans.OCI_CHART))
    names = sorted(name for kind, name in objects(plan) if kind == "OCIRepository")
    assert names == [
        "registry-example-5000-charts-gpu-operator-1-0-0",
        "registry-example-5000-charts-gpu-operator-v26-3-1-build-2",
    ]
    assert release(plan, "a")["chartRef"]["name"] == names[0]


def test_charts_in_the_bundle_come_from_git_by_content() -> None:
    """Their version never moves, so the revision has to count (bundler spec 5.5)."""
    plan = plan_of(component("a", manifests=MANIFESTS), repo="git@git.example:team/b.git")
    source = objects(plan)["GitRepository", "git-git-example-team-b"]["spec"]
    assert source["url"] == "ssh://git@git.example/team/b.git"
    spec = release(plan, "a")["chart"]["spec"]
    assert (spec["chart"], spec["reconcileStrategy"]) == ("./001-a", "Revision")
    assert "version" not in spec
    assert "values" not in release(plan, "a")


@pytest.mark.parametrize(
    ("revision", "ref"),
    [
        ("main", {"branch": "main"}),
        ("refs/tags/v1", {"name": "refs/tags/v1"}),
        ("0" * 40, {"commit": "0" * 40}),
        ("0" * 39, {"branch": "0" * 39}),
    ],
)
def test_revisions_are_read_for_what_they_are(revision: str, ref: dict[str, str]) -> None:
    """A branch, a full reference or a commit."""
    plan = plan_of(component("a", manifests=MANIFESTS), target_revision=revision)
    [source] = [item for (kind, _), item in objects(plan).items() if kind == "GitRepository"]
    assert source["spec"]["ref"] == ref
    assert source["spec"]["url"] == "https://github.com/YOUR_ORG/YOUR_REPO.git"


def test_a_bundle_of_upstream_charts_needs_no_repository() -> None:
    """Without charts of its own nothing reads the bundle (bundler spec 5.5)."""
    assert not [name for kind, name in objects(plan_of(chart("a"))) if kind == "GitRepository"]


def test_a_published_bundle_is_cut_into_charts() -> None:
    """helm wants a folder around Chart.yaml in an archive, so one is kept (bundler spec 5.5)."""
    plan = plan_of(
        *plans.pair(), oci_reference="oci://r.example/b:v1", flux_oci_source_name="stack"
    )
    made = objects(plan)
    assert not [name for kind, name in made if kind == "GitRepository"]
    generator = made["ArtifactGenerator", "b-post-chart"]
    assert generator["apiVersion"] == "source.extensions.fluxcd.io/v1beta1"
    assert generator["spec"] == {
        "sources": [{"alias": "bundle", "kind": "OCIRepository", "name": "stack"}],
        "artifacts": [
            {
                "name": "b-post-chart",
                "copy": [{"from": "@bundle/004-b-post/**", "to": "@artifact/b-post/"}],
            }
        ],
    }
    assert release(plan, "b-post")["chartRef"] == {
        "kind": "ExternalArtifact",
        "name": "b-post-chart",
        "namespace": "flux-system",
    }
    page = plans.files_of(plan)["README.md"][0].decode()
    assert "flux create source oci stack" in page
    assert "--url oci://r.example/b --tag v1" in page


@pytest.mark.covers("F2")
def test_values_are_inlined_byte_for_byte_and_protected() -> None:
    """No substitution touches an object with a dollar sign (F2)."""
    plan = plan_of(*plans.pair())
    made = objects(plan)
    assert release(plan, "a")["values"] == {"texts": plans.EATEN, "replicas": 2}
    assert made["HelmRelease", "a"]["metadata"]["annotations"] == DISABLED
    assert "annotations" not in made["HelmRelease", "b"]["metadata"]
    text = plans.files_of(plan)["kustomization.yaml"][0].decode()
    assert "postBuild" not in text


@pytest.mark.covers("F2")
def test_values_survive_the_kustomization(tmp_path: Path) -> None:
    """What kubectl builds of it has the very texts (F2)."""
    bundle = plans.written(plan_of(*plans.pair()), tmp_path / "b")
    done = subprocess.run(
        [tools.kubectl(), "kustomize", str(bundle)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    [item] = [
        each
        for each in read.load_all(done.stdout, source="kustomize")
        if (each["kind"], each["metadata"]["name"]) == ("HelmRelease", "a")
    ]
    assert item["spec"]["values"]["texts"] == plans.EATEN


@pytest.mark.covers("F2")
def test_dynamic_values_are_in_a_config_map_and_not_inline() -> None:
    """Inline values would win over it (bundler spec 5.5)."""
    item = chart("a", values={"driver": {"version": "${V}", "x": 1}})
    plan = plan_of(plans.deferred(item, ["driver", "version"], ["toolkit", "env"]))
    made = objects(plan)
    assert release(plan, "a")["values"] == {"driver": {"x": 1}}
    assert release(plan, "a")["valuesFrom"] == [{"kind": "ConfigMap", "name": "a-values"}]
    config_map = made["ConfigMap", "a-values"]
    assert read.load(config_map["data"]["values.yaml"], source="v") == {
        "driver": {"version": "${V}"},
        "toolkit": {"env": ""},
    }
    assert config_map["metadata"]["annotations"] == DISABLED
    assert "`a-values`" in plans.files_of(plan)["README.md"][0].decode()


@pytest.mark.covers("B10-62", "F5")
@pytest.mark.parametrize(("version", "owner"), [("1.2.3", True), ("1.2.4", False)])
def test_crds_of_audited_charts_are_replaced_on_upgrade(version: str, owner: bool) -> None:
    """And of no other chart (bundler spec 2.6, 5.5)."""
    spec = release(plan_of(chart("a", entry=PINS, version=version)), "a")
    assert (spec["install"].get("crds"), spec["upgrade"].get("crds")) == (
        ("Create", "CreateReplace") if owner else (None, None)
    )


def test_crds_of_subcharts_that_are_not_audited_are_never_replaced() -> None:
    """Flux replaces all CRDs of a chart or none, so then it replaces none (bundler spec 2.6)."""
    entry = {**PINS, "ownsCRDsExcludeSubcharts": True}
    spec = release(plan_of(chart("a", entry=entry)), "a")
    assert spec["install"]["crds"] == "Create"
    assert "crds" not in spec["upgrade"]


def test_namespaces_timeouts_and_retries() -> None:
    """A chart with its own Namespace gets none made; one slow component has its own limit."""
    plan = plan_of(
        chart("a", pre_manifests=[("n.yaml", namespace_manifest("a"))]), chart("kai-scheduler")
    )
    assert "createNamespace" not in release(plan, "a-pre")["install"]
    assert release(plan, "a")["install"]["createNamespace"] is True
    assert release(plan, "a")["timeout"] == "10m"
    assert release(plan, "kai-scheduler")["timeout"] == "20m"
    assert release(plan, "a")["install"]["remediation"] == {"retries": 3}


def test_a_readiness_gate_is_waited_for_and_is_what_others_wait_for() -> None:
    """The last release of a component may be its gate (decision 53)."""
    plan = plan_of(chart("a"), chart("b", dependencyRefs=["a"]))
    folders = layout.folders(plan)
    gate = layout.Folder(
        dir="002-a-readiness",
        release="a-readiness",
        parent="a",
        phase="readiness",
        kind=layout.LOCAL_HELM,
        namespace="a",
        create_namespace=True,
        files={"Chart.yaml": (b"name: a-readiness\n", 0o644)},
    )
    folders.insert(1, gate)
    files = flux.generate(plan, folders)
    spec = read.load(files["002-a-readiness/helmrelease.yaml"][0].decode(), source="g")["spec"]
    assert spec["timeout"] == "1h35m"
    assert spec["install"]["remediation"] == {"retries": 1}
    assert spec["dependsOn"] == [{"name": "a"}]
    assert flux.dependencies(plan, folders)["b"] == ["a-readiness"]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://helm.ngc.nvidia.com/nvidia", "helm-ngc-nvidia-com-nvidia"),
        ("https://Charts.Example.com/a_b/", "charts-example-com-a-b"),
        ("https://github.com/Org/Repo.git", "github-com-org-repo"),
    ],
)
def test_names_of_sources(url: str, name: str) -> None:
    """Lower case, no scheme, no .git, other characters as dashes (bundler spec 5.5)."""
    assert flux_sources.source_name(url) == name


@pytest.mark.covers("F4")
def test_names_of_sources_are_labels() -> None:
    """At most 63 characters, and told apart (F4)."""
    urls = [f"https://{'long.' * 20}example/{end}" for end in "ab"]
    names = {flux_sources.source_name(url) for url in urls}
    assert len(names) == 2
    assert all(len(name) <= 63 for name in names)


@pytest.mark.parametrize(
    ("components", "options"),
    [
        (
            [
                chart("a", source="https://charts.example/x-y"),
                chart("b", source="https://charts.example/x_y"),
            ],
            {},
        ),
        (
            [
                chart("a", source="oci://r.example/x-y", chart="c"),
                chart("b", source="oci://r.example/x_y", chart="c"),
            ],
            {},
        ),
        ([component("a", manifests=MANIFESTS)], {"repo": "oci://r.example/b:v1"}),
        ([component("a", manifests=MANIFESTS)], {"repo": "https://u:p@git.example/b.git"}),
    ],
)
def test_addresses_that_flux_cannot_use_are_refused(
    components: list[Component], options: dict[str, Any]
) -> None:
    """Two sources of one name, or a bundle that cannot be read (bundler spec 5.5)."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(*components, **options))
    assert caught.value.code == "INVALID_REQUEST"


def test_the_page_tears_down_in_reverse() -> None:
    """The last release goes first (field pain 12)."""
    page = plans.files_of(plan_of(*plans.pair()))["README.md"][0].decode()
    places = [page.index(f"delete helmrelease {name} ") for name in ("b-post", "b", "b-pre", "a")]
    assert places == sorted(places)
    assert "placeholder" in page


def test_folders_hold_what_flux_reads() -> None:
    """Upstream charts need the HelmRelease alone (bundler spec 5.5)."""
    files = plans.files_of(plan_of(*plans.pair()))
    assert [path for path in files if path.startswith("001-")] == ["001-a/helmrelease.yaml"]
    assert sorted(path for path in files if path.startswith("004-")) == [
        "004-b-post/Chart.yaml",
        "004-b-post/helmrelease.yaml",
        "004-b-post/templates/settings.yaml",
        "004-b-post/values.yaml",
    ]


def test_the_info_names_the_entry_and_each_release(tmp_path: Path) -> None:
    """bundle-info.yaml is for programs (bundler spec 2.10)."""
    bundle = plans.written(plan_of(*plans.pair()), tmp_path / "b")
    found = parse_back.document(bundle / "bundle-info.yaml")["layout"]
    assert found["entrypoint"] == "kustomization.yaml"
    for each in found["releases"]:
        assert (bundle / each["manifest"]).is_file()
