"""The argocd deployer: objects, waves, where values come from, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, namespace_manifest
from tests.deployers import gitops_plans as plans
from tests.deployers import golden, parse_back

from aicr.artifacts import checksums
from aicr.bundle import crd_groups, layout
from aicr.bundle.deployers import argocd, drift
from aicr.bundle.plan import Component, Plan
from aicr.errors import AicrError
from aicr.yamlio import read

PLACEHOLDER = "https://github.com/YOUR-ORG/YOUR-REPO.git"
GIT = "https://git.example/team/bundles.git"
OCI_OUTPUT = "oci://registry.example:5000/team/stack:v1.2.3"
MANIFESTS = [("m.yaml", CONFIG_MAP)]


def plan_of(*components: Component, **options: Any) -> Plan:
    """A plan for argocd."""
    return plans.plan_of(*components, deployer="argocd", **options)


def applications(plan: Plan) -> dict[str, dict[str, Any]]:
    """The Applications of a bundle by name."""
    files = plans.files_of(plan)
    loaded = [
        read.load(data.decode(), source=path)
        for path, (data, _) in files.items()
        if path.endswith(("application.yaml", "app-of-apps.yaml"))
    ]
    return {item["metadata"]["name"]: item for item in loaded}


def child(plan: Plan, name: str) -> dict[str, Any]:
    """The spec of one Application."""
    spec: dict[str, Any] = applications(plan)[name]["spec"]
    return spec


@pytest.mark.covers("C-099", "C-100", "C-101", "B10-78")
def test_the_whole_bundle_is_as_kept(request: pytest.FixtureRequest) -> None:
    """Every file of a small bundle, byte for byte; twice the same."""
    files = plans.files_of(plan_of(*plans.pair(), notes=("Warning: one",)))
    assert files == plans.files_of(plan_of(*plans.pair(), notes=("Warning: one",)))
    golden.compare("argocd", files, request)


def test_a_written_bundle_verifies(tmp_path: Path) -> None:
    """What is generated, written and verified agree (bundler spec 7.2)."""
    assert checksums.verify_tree(str(plans.written(plan_of(*plans.pair()), tmp_path / "b"))) == []


@pytest.mark.covers("B10-46", "C-098", "C-119", "C-120", "C-121", "C-108")
def test_waves_are_bands_of_tiers_with_a_wave_for_each_phase(tmp_path: Path) -> None:
    """Tier times four plus phase: a 1, b-pre 4, b 5, b-post 6 (bundler spec 5.0.3)."""
    bundle = plans.written(plan_of(*plans.pair()), tmp_path / "b")
    assert parse_back.argocd_waves(bundle) == {"a": 1, "b-pre": 4, "b": 5, "b-post": 6}


@pytest.mark.covers("B10-47", "C-128", "C-129", "C-130", "C-106")
def test_serial_waves_are_folder_indices(tmp_path: Path) -> None:
    """With --serial nothing shares a wave (bundler spec 5.0.4)."""
    bundle = plans.written(plan_of(*plans.pair(), serial=True), tmp_path / "b")
    assert parse_back.argocd_waves(bundle) == {"a": 0, "b-pre": 1, "b": 2, "b-post": 3}


@pytest.mark.covers("C-103", "C-104", "C-107")
@pytest.mark.parametrize("serial", [False, True])
def test_the_order_of_the_files_is_that_of_the_recipe(tmp_path: Path, serial: bool) -> None:
    """Whatever the recipe puts before a release has a lower wave."""
    bundle = plans.written(plan_of(*plans.graph(), serial=serial), tmp_path / "b")
    found, wanted = parse_back.before(bundle), parse_back.expected(bundle)
    assert found.keys() == wanted.keys()
    assert all(found[name] >= needed for name, needed in wanted.items())


def test_components_without_a_path_between_them_share_a_wave(tmp_path: Path) -> None:
    """Independent components roll out together."""
    waves = parse_back.argocd_waves(plans.written(plan_of(*plans.graph()), tmp_path / "b"))
    assert waves["aws-efa"] == waves["cert-manager"]
    assert waves["dynamo"] == waves["kai-scheduler"]


def test_a_component_whose_name_ends_like_a_phase_is_a_primary(tmp_path: Path) -> None:
    """Phases go by the folder's parent, not by its name (bundler spec 5.0.3)."""
    bundle = plans.written(
        plan_of(chart("x-post"), chart("y", manifests=MANIFESTS)), tmp_path / "b"
    )
    assert parse_back.argocd_waves(bundle) == {"x-post": 1, "y": 1, "y-post": 2}


@pytest.mark.covers("F2")
def test_values_of_a_git_bundle_are_the_values_file_byte_for_byte(tmp_path: Path) -> None:
    """Argo CD hands the file that $values names to helm as it is."""
    bundle = plans.written(plan_of(*plans.pair(), repo=GIT), tmp_path / "b")
    upstream, values = parse_back.document(bundle / "001-a/application.yaml")["spec"]["sources"]
    assert values == {"repoURL": GIT, "targetRevision": "main", "ref": "values"}
    [path] = upstream["helm"]["valueFiles"]
    read_back = parse_back.document(bundle / path.removeprefix("$values/"))
    assert read_back == {"texts": plans.EATEN, "replicas": 2}


@pytest.mark.covers("B10-51", "F2", "F7")
def test_a_bundle_in_a_registry_has_its_values_inlined() -> None:
    """$values cannot name a file of an OCI artifact (field pain 34)."""
    plan = plan_of(*plans.pair(), oci_reference=OCI_OUTPUT)
    spec = child(plan, "a")
    assert "sources" not in spec
    assert spec["source"]["helm"] == {"valuesObject": {"texts": plans.EATEN, "replicas": 2}}
    assert child(plan, "b-post")["source"] == {
        "repoURL": "oci://registry.example:5000/team/stack",
        "targetRevision": "v1.2.3",
        "path": "004-b-post",
    }
    assert child(plan, "nvidia-stack")["source"]["repoURL"].startswith(
        "oci://registry.example:5000"
    )


@pytest.mark.parametrize(
    ("options", "url", "revision"),
    [
        ({}, PLACEHOLDER, "main"),
        ({"target_revision": "release-1"}, PLACEHOLDER, "release-1"),
        ({"repo": GIT, "target_revision": "v2"}, GIT, "v2"),
        ({"repo": "git@git.example:team/b.git"}, "git@git.example:team/b.git", "main"),
        ({"oci_reference": OCI_OUTPUT}, "oci://registry.example:5000/team/stack", "v1.2.3"),
        ({"oci_reference": "oci://r.example/b"}, "oci://r.example/b", "1.0.0"),
        ({"oci_reference": "oci://r:5000/b", "version": "1.0.0+x"}, "oci://r:5000/b", "1.0.0_x"),
        ({"repo": GIT, "oci_reference": OCI_OUTPUT}, GIT, "main"),
        ({"repo": "oci://r:5000/o/b:v1"}, "oci://r:5000/o/b", "v1"),
        ({"repo": "oci://r:5000/o/b", "target_revision": "v3"}, "oci://r:5000/o/b", "v3"),
    ],
)
def test_where_the_bundle_is_read_from(options: dict[str, Any], url: str, revision: str) -> None:
    """--repo, else the OCI output, else a placeholder; a port is no tag (1.5, 5.0.6, F7)."""
    source = child(plan_of(component("a", manifests=MANIFESTS), **options), "a")["source"]
    assert (source["repoURL"], source["targetRevision"]) == (url, revision)


@pytest.mark.covers("F7")
@pytest.mark.parametrize(
    ("ref", "wanted"),
    [
        (plans.OCI_CHART, ("registry.example:5000/charts", "gpu-operator", "v26.3.1+build.2")),
        ({"source": "oci://r.example", "chart": "x"}, ("r.example", "x", "1.2.3")),
        (
            {"source": "https://charts.example.com/", "chart": "stable/x", "version": "v1.2.3"},
            ("https://charts.example.com", "x", "1.2.3"),
        ),
        ({"version": ""}, ("https://charts.example.com", "a", "*")),
    ],
)
def test_charts_are_spelled_as_argo_cd_wants_them(
    ref: dict[str, str], wanted: tuple[str, str, str]
) -> None:
    """No scheme for OCI and its version as pinned; no leading v over HTTP (5.0.6)."""
    source = child(plan_of(chart("a", **ref)), "a")["sources"][0]
    assert (source["repoURL"], source["chart"], source["targetRevision"]) == wanted


@pytest.mark.parametrize(
    ("item", "name", "wanted"),
    [
        (chart("a"), "a", {"CreateNamespace=true", "ServerSideApply=true"}),
        (
            component("a", manifests=[("n.yaml", namespace_manifest("a"))]),
            "a",
            {"ServerSideApply=true"},
        ),
        (
            chart("a", entry={"hasSelfRefCRDs": True}, manifests=MANIFESTS),
            "a",
            {"CreateNamespace=true", "ServerSideApply=true", "SkipDryRunOnMissingResource=true"},
        ),
        (
            chart("a", entry={"hasSelfRefCRDs": True}, manifests=MANIFESTS),
            "a-post",
            {"CreateNamespace=true", "ServerSideApply=true"},
        ),
        (
            chart("a", entry={"manifestsUseChartCRDs": True}, manifests=MANIFESTS),
            "a-post",
            {"CreateNamespace=true", "ServerSideApply=true", "SkipDryRunOnMissingResource=true"},
        ),
    ],
)
@pytest.mark.covers("F5")
def test_sync_options(item: Component, name: str, wanted: set[str]) -> None:
    """A chart with its own Namespace gets none made; unknown kinds are not tried out first."""
    assert set(child(plan_of(item), name)["syncPolicy"]["syncOptions"]) == wanted


def test_two_charts_with_one_crd_do_not_undo_each_other() -> None:
    """GPU operator and DRA driver both ship it (bundler spec 5.3)."""
    plan = plan_of(chart("gpu-operator"), chart("nvidia-dra-driver-gpu"), chart("other"))
    crd = "computedomains.resource.nvidia.com"
    for name, shares in (("gpu-operator", True), ("nvidia-dra-driver-gpu", True), ("other", False)):
        spec = child(plan, name)
        assert ("RespectIgnoreDifferences=true" in spec["syncPolicy"]["syncOptions"]) is shares
        names = [rule.get("name") for rule in spec["ignoreDifferences"]]
        assert (crd in names) is shares
    assert drift.contested(plan_of(chart("gpu-operator"))) == frozenset()
    ocp = {"gpu-operator-ocp", "nvidia-dra-driver-gpu-ocp"}
    assert drift.contested(plan_of(*map(chart, sorted(ocp)))) == ocp


def test_the_shared_crd_is_of_a_group_that_both_charts_are_known_to_bring() -> None:
    """One table says who brings what; what is left alone follows from it."""
    group = crd_groups.SHARED_CRD.partition(".")[2]
    bringers = {name for name, groups in crd_groups.CRD_GROUPS.items() if group in groups}
    assert bringers == {"gpu-operator", "nvidia-dra-driver-gpu"}


def test_certificates_that_are_written_into_webhooks_are_no_drift() -> None:
    """caBundle of an upstream chart's webhooks is ignored (field pain 46)."""
    kinds = {
        rule["kind"]: rule["jqPathExpressions"]
        for rule in child(plan_of(chart("a")), "a")["ignoreDifferences"]
    }
    assert kinds == {
        "MutatingWebhookConfiguration": [".webhooks[]?.clientConfig.caBundle"],
        "ValidatingWebhookConfiguration": [".webhooks[]?.clientConfig.caBundle"],
    }


def test_the_deployer_keys_shape_the_applications() -> None:
    """Prefix, cluster, project and finalizers; the parent stays with Argo CD (1.4)."""
    keys = {
        "namePrefix": "eu-",
        "destinationServer": "https://gpu.example:6443",
        "project": "gpu.team",
        "cascadeDelete": "T",
    }
    plan = plan_of(*plans.pair(), set=[f"deployer:{key}={text}" for key, text in keys.items()])
    made = applications(plan)
    assert set(made) == {"nvidia-stack", "eu-a", "eu-b-pre", "eu-b", "eu-b-post"}
    spec = made["eu-a"]["spec"]
    assert spec["project"] == "gpu.team"
    assert spec["destination"] == {"server": "https://gpu.example:6443", "namespace": "a"}
    assert spec["sources"][0]["helm"]["releaseName"] == "a"
    assert made["eu-b-post"]["spec"]["source"]["helm"] == {"releaseName": "b-post"}
    parent = made["nvidia-stack"]["spec"]
    assert (parent["project"], parent["destination"]["server"]) == (
        "default",
        "https://kubernetes.default.svc",
    )
    for item in made.values():
        assert item["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io"]


def test_the_release_is_named_only_where_the_application_is_not() -> None:
    """Without a prefix the Application's name is the release's."""
    helm = child(plan_of(chart("a")), "a")["sources"][0]["helm"]
    assert helm == {"valueFiles": ["$values/001-a/values.yaml"]}


@pytest.mark.covers("B10-49")
@pytest.mark.parametrize(
    "text",
    [
        "namePrefix=UPPER",
        "namePrefix=",
        "namePrefix=-a",
        "namePrefix=a\n",
        "destinationServer=http://x",
        "destinationServer=HTTPS://x",
        "destinationServer=https://",
        "destinationServer=https://:443",
        "destinationServer=https:///x",
        "destinationServer=https://u@x",
        "destinationServer=https://x/'",
        "destinationServer=https://x y",
        "project=",
        "project=Gpu",
        f"project={'a' * 64}",
        "cascadeDelete=yes",
        "cascadeDelete=",
        "project",
    ],
)
def test_values_of_deployer_keys_are_checked(text: str) -> None:
    """Each has its form (bundler spec 1.4)."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(chart("a"), set=[f"deployer:{text}"]))
    assert caught.value.code == "INVALID_REQUEST"
    assert caught.value.where == "--set"
    assert "expected" in caught.value.message


@pytest.mark.covers("B10-49")
@pytest.mark.parametrize("text", ["deployer:foo=1", "deployer:nameprefix=x", "deployer:=1"])
def test_an_unknown_deployer_key_lists_the_four(text: str) -> None:
    """The four names are in the message (bundler spec 1.4)."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(chart("a"), set=[text]))
    assert caught.value.code == "INVALID_REQUEST"
    for key in ("cascadeDelete", "destinationServer", "namePrefix", "project"):
        assert key in caught.value.message


@pytest.mark.parametrize(
    "options",
    [
        {"set_json": ['deployer:project="x"']},
        {"set_file": ["deployer:project=file"]},
        {"set": ["deployer:project=a", "deployer:project=a"]},
    ],
)
def test_typed_and_repeated_deployer_keys_are_refused(options: dict[str, Any]) -> None:
    """The reserved key takes --set, once (1.4; decision 7)."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(chart("a"), **options))
    assert caught.value.code == "INVALID_REQUEST"
    assert "deployer" in caught.value.message


@pytest.mark.covers("F4")
def test_a_prefix_that_makes_names_too_long_is_met_with_a_digest() -> None:
    """53 characters, told apart, no dash or dot at the end, and the release keeps its name (F4)."""
    prefix = "customer-production-eu-central-1-cluster-0007-"
    long = ["kube-prometheus-stack", "kube-prometheus-stack-x", "kube-pr"]
    plan = plan_of(*(chart(name) for name in long), set=[f"deployer:namePrefix={prefix}"])
    made = applications(plan)
    assert len(made) == 4
    for name, item in made.items():
        assert len(name) <= 53
        assert name[-1] not in "-."
        if name != "nvidia-stack":
            assert item["spec"]["sources"][0]["helm"]["releaseName"] in long
    assert f"{prefix}kube-pr" in made


@pytest.mark.covers("B10-50")
def test_a_release_of_54_characters_is_refused() -> None:
    """Helm's own limit comes before any name of ours (bundler spec 5.3)."""
    assert plans.files_of(plan_of(chart("a" * 53)))
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(chart("a" * 54)))
    assert caught.value.code == "INVALID_REQUEST"


@pytest.mark.parametrize(
    "options",
    [
        {"app_name": "a"},
        {"app_name": "p-a", "set": ["deployer:namePrefix=p-"]},
        {"app_name": "Stack"},
        {"app_name": "stack\n"},
        {"app_name": "a" * 64},
        {"repo": "https://user:secret@git.example/b.git"},
        {"repo": "https://secret@git.example/b.git"},
        {"repo": "oci://secret@r.example/b:v1"},
        {"oci_reference": "oci://secret@r.example/b:v1"},
        {"repo": "ftp://git.example/b.git"},
        {"repo": "git.example/b.git"},
        {"repo": "https:///b.git"},
        {"repo": "https://git.example/b .git"},
        {"repo": "https://git.example/'b"},
    ],
)
def test_unusable_names_and_addresses_are_refused(options: dict[str, Any]) -> None:
    """Also when the deployer is called as a library (bundler spec 5.0.1)."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(chart("a"), **options))
    assert caught.value.code == "INVALID_REQUEST"
    assert "secret" not in str(caught.value)


@pytest.mark.covers("B10-48")
def test_dynamic_values_name_the_other_deployer() -> None:
    """argocd refuses; the message points at argocd-helm (bundler spec 1.8)."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(plans.deferred(chart("a"), ["driver", "version"])))
    assert caught.value.code == "INVALID_REQUEST"
    assert "argocd-helm" in caught.value.hint


def test_files_that_argo_cd_has_no_use_for_are_left_out() -> None:
    """No scripts, no upstream.env, no cluster-values.yaml (bundler spec 5.3)."""
    names = {path.rpartition("/")[2] for path in plans.files_of(plan_of(*plans.pair()))}
    assert names.isdisjoint({"install.sh", "upstream.env", "cluster-values.yaml", "apply-crds.sh"})


@pytest.mark.covers("C-105")
def test_applications_get_a_health(tmp_path: Path) -> None:
    """Without it Argo CD would not wait for a wave (field pain 6)."""
    bundle = plans.written(plan_of(chart("a")), tmp_path / "b")
    data = parse_back.document(bundle / "argocd-cm-patch.yaml")["data"]
    script = data["resource.customizations.health.argoproj.io_Application"]
    assert 'result.status = "Degraded"' in script
    assert "argocd-cm-patch.yaml" in (bundle / "README.md").read_text()


def test_the_page_tears_down_in_reverse_after_the_parent(tmp_path: Path) -> None:
    """The parent would bring its children back, so it goes first (field pain 12)."""
    page = (plans.written(plan_of(*plans.pair()), tmp_path / "b") / "README.md").read_text()
    found = [line for line in page.split("\n") if line.startswith("remove ")]
    assert found == ["remove b-post", "remove b", "remove b-pre", "remove a"]
    assert page.index("delete application nvidia-stack") < page.index("remove b-post")
    assert "placeholder" in page
    own = plans.written(plan_of(*plans.pair(), repo=GIT), tmp_path / "own")
    assert "placeholder" not in (own / "README.md").read_text()


def test_the_info_names_the_entry_and_each_application(tmp_path: Path) -> None:
    """bundle-info.yaml is for programs (bundler spec 2.10)."""
    bundle = plans.written(plan_of(*plans.pair()), tmp_path / "b")
    found = parse_back.document(bundle / "bundle-info.yaml")["layout"]
    assert found["entrypoint"] == "app-of-apps.yaml"
    for release in found["releases"]:
        assert (bundle / release["manifest"]).is_file()


def test_inputs_are_not_changed_and_given_folders_are_used() -> None:
    """A caller that has the folders already gets the same files."""
    plan = plan_of(*plans.pair())
    folders = layout.folders(plan)
    first = argocd.generate(plan, folders)
    assert first == argocd.generate(plan, folders)
    assert plan.components[0].values == {"texts": plans.EATEN, "replicas": 2}
