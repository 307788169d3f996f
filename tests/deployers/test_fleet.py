"""The fleet deployer: Bundles and HelmOps, the chain, sizes, what is refused."""

from __future__ import annotations

import contextlib
import copy
import random
from pathlib import Path
from typing import Any

import pytest
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, namespace_manifest
from tests.deployers import gitops_plans as plans
from tests.deployers import golden, parse_back

from aicr.artifacts import checksums
from aicr.bundle import layout
from aicr.bundle.deployers import fleet
from aicr.bundle.plan import Component, Plan
from aicr.errors import AicrError
from aicr.yamlio import read, write

MANIFESTS = [("m.yaml", CONFIG_MAP)]


def plan_of(*components: Component, **options: Any) -> Plan:
    """A plan for fleet."""
    return plans.plan_of(*components, deployer="fleet", **options)


def bundles(plan: Plan) -> dict[str, dict[str, Any]]:
    """fleet.yaml by release."""
    loaded = [
        read.load(data.decode(), source=path)
        for path, (data, _) in plans.files_of(plan).items()
        if path.endswith("/fleet.yaml")
    ]
    return {item["helm"]["releaseName"]: item for item in loaded}


def helm_ops(plan: Plan) -> dict[str, dict[str, Any]]:
    """HelmOps by release."""
    text = plans.files_of(plan)["helmops.yaml"][0].decode()
    items = read.load_all(text, source="helmops.yaml")
    return {item["spec"]["helm"]["releaseName"]: item for item in items}


def git_repo(plan: Plan) -> dict[str, Any]:
    """The spec of the GitRepo."""
    text = plans.files_of(plan)["gitrepo.yaml"][0].decode()
    spec: dict[str, Any] = read.load(text, source="gitrepo.yaml")["spec"]
    return spec


@pytest.mark.covers("C-099", "C-100", "C-101", "B10-78", "B10-60")
def test_the_whole_bundle_is_as_kept(request: pytest.FixtureRequest) -> None:
    """Every file of a small bundle, byte for byte; twice the same."""
    plan = plan_of(*plans.pair())
    files = plans.files_of(plan)
    assert files == plans.files_of(plan)
    golden.compare("fleet", files, request)


def test_the_helm_ops_are_as_kept(request: pytest.FixtureRequest) -> None:
    """The other mode, byte for byte."""
    a, _ = plans.pair()
    plan = plan_of(
        plans.deferred(a, ["driver", "version"]),
        chart("g", dependencyRefs=["a"], **plans.OCI_CHART),
        fleet_mode="helmop",
    )
    golden.compare("fleet-helmop", plans.files_of(plan), request)


@pytest.mark.parametrize("mode", ["gitrepo", "helmop"])
def test_a_written_bundle_verifies(tmp_path: Path, mode: str) -> None:
    """What is generated, written and verified agree (bundler spec 7.2)."""
    plan = plan_of(chart("a"), chart("b"), fleet_mode=mode)
    bundle = plans.written(plan, tmp_path / "b")
    assert checksums.verify_tree(str(bundle)) == []
    entry = parse_back.document(bundle / "bundle-info.yaml")["layout"]["entrypoint"]
    assert entry == {"gitrepo": "gitrepo.yaml", "helmop": "helmops.yaml"}[mode]


@pytest.mark.covers("B10-60", "C-128", "C-103", "C-106")
@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("mode", ["gitrepo", "helmop"])
def test_each_release_waits_for_the_one_before(tmp_path: Path, serial: bool, mode: str) -> None:
    """One chain in folder order, whatever --serial says (bundler spec 5.0.4)."""
    items = [chart("a"), chart("b"), chart("c", dependencyRefs=["a"])]
    if mode == "gitrepo":
        items = plans.graph()
    bundle = plans.written(plan_of(*items, serial=serial, fleet_mode=mode), tmp_path / "b")
    assert parse_back.fleet_edges(bundle) == parse_back.chained(parse_back.releases(bundle))
    found, wanted = parse_back.before(bundle), parse_back.expected(bundle)
    assert all(found[name] >= needed for name, needed in wanted.items())


@pytest.mark.covers("F2")
def test_fleet_does_not_template_the_values(tmp_path: Path) -> None:
    """Pre-processing is off and the values file is what was planned (F2)."""
    plan = plan_of(*plans.pair())
    made = bundles(plan)
    assert all(item["helm"]["disablePreProcess"] is True for item in made.values())
    assert made["a"]["helm"]["valuesFiles"] == ["values.yaml", "cluster-values.yaml"]
    text = plans.files_of(plan)["001-a/values.yaml"][0].decode()
    assert read.load(text, source="v") == {"texts": plans.EATEN, "replicas": 2}


@pytest.mark.covers("F2")
def test_values_of_a_helm_op_are_inlined_with_the_dynamic_ones() -> None:
    """Static and deferred values together, and no pre-processing (bundler spec 5.7)."""
    a, _ = plans.pair()
    helm = helm_ops(plan_of(plans.deferred(a, ["driver", "version"]), fleet_mode="helmop"))["a"]
    assert helm["spec"]["helm"]["values"] == {
        "texts": plans.EATEN,
        "replicas": 2,
        "driver": {"version": ""},
    }
    assert helm["spec"]["helm"]["disablePreProcess"] is True


@pytest.mark.covers("F7")
@pytest.mark.parametrize("mode", ["gitrepo", "helmop"])
@pytest.mark.parametrize(
    ("ref", "wanted"),
    [
        (
            {"version": "v1.2.3"},
            {"repo": "https://charts.example.com", "chart": "a", "version": "v1.2.3"},
        ),
        (
            plans.OCI_CHART,
            {
                "repo": "oci://registry.example:5000/charts/gpu-operator",
                "version": "v26.3.1+build.2",
            },
        ),
    ],
)
def test_charts_keep_their_pins(mode: str, ref: dict[str, str], wanted: dict[str, str]) -> None:
    """A registry's chart is one reference, and versions stay (bundler spec 5.0.6, 5.7)."""
    plan = plan_of(chart("a", **ref), fleet_mode=mode)
    helm = bundles(plan)["a"]["helm"] if mode == "gitrepo" else helm_ops(plan)["a"]["spec"]["helm"]
    keys = ("repo", "chart", "version")
    assert {key: helm[key] for key in keys if key in helm} == wanted


def test_a_chart_in_the_bundle_is_its_own_folder() -> None:
    """Local charts have no repository (bundler spec 5.7)."""
    helm = bundles(plan_of(*plans.pair()))["b-post"]["helm"]
    assert helm["chart"] == "."
    assert "repo" not in helm
    assert "version" not in helm


def test_the_git_repo_lists_all_folders_and_opts_clusters_in_by_label() -> None:
    """Labels are of the domain aicr.run (decision 48)."""
    spec = git_repo(plan_of(*plans.pair(), repo="https://git.example/b.git", app_name="stack"))
    assert spec == {
        "repo": "https://git.example/b.git",
        "branch": "main",
        "paths": ["001-a", "002-b-pre", "003-b", "004-b-post"],
        "targets": [{"clusterSelector": {"matchLabels": {"aicr.run/bundle": "stack"}}}],
    }
    made = bundles(plan_of(*plans.pair(), app_name="stack"))
    assert {item["name"] for item in made.values()} == {
        "stack-a",
        "stack-b-pre",
        "stack-b",
        "stack-b-post",
    }
    assert all(item["labels"] == {"aicr.run/bundle": "stack"} for item in made.values())


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, {"repo": "https://github.com/YOUR_ORG/YOUR_REPO.git", "branch": "main"}),
        ({"target_revision": "v1"}, {"branch": "v1"}),
        ({"target_revision": "0" * 40}, {"revision": "0" * 40}),
        ({"target_revision": "refs/tags/v1"}, {"revision": "refs/tags/v1"}),
        ({"oci_reference": "oci://r.example/b:v1"}, {"branch": "main"}),
    ],
)
def test_where_fleet_reads_the_bundle_from(options: dict[str, str], wanted: dict[str, str]) -> None:
    """--repo, else a placeholder; Fleet reads no OCI artifacts (bundler spec 5.0.6)."""
    spec = git_repo(plan_of(chart("a"), **options))
    assert {key: spec[key] for key in wanted} == wanted
    assert ("branch" in spec) is not ("revision" in spec)


def test_the_local_workspace_targets_the_local_cluster() -> None:
    """There a label would select nothing (bundler spec 5.7)."""
    plan = plan_of(chart("a"), fleet_workspace="fleet-local")
    assert git_repo(plan)["targets"] == [{"clusterName": "local"}]
    assert "kubectl label" not in plans.files_of(plan)["README.md"][0].decode()


def test_scripts_are_no_content_of_a_bundle() -> None:
    """.fleetignore is in every folder (bundler spec 5.7)."""
    files = plans.files_of(plan_of(*plans.pair()))
    folders = {path.partition("/")[0] for path in files if path[:1].isdigit()}
    for folder in folders:
        text = files[f"{folder}/.fleetignore"][0].decode()
        assert text.split() == ["install.sh", "upstream.env", "apply-crds.sh"]


def test_a_chart_with_its_own_namespace_may_take_it_over() -> None:
    """Fleet makes the namespace first, and helm would refuse the chart's own."""
    plan = plan_of(chart("a", pre_manifests=[("n.yaml", namespace_manifest("a"))]))
    made = bundles(plan)
    assert made["a-pre"]["helm"]["takeOwnership"] is True
    assert "takeOwnership" not in made["a"]["helm"]


def test_a_readiness_gate_is_waited_for() -> None:
    """Fleet waits for hooks when a release has a time limit (decision 53)."""
    plan = plan_of(chart("a"))
    [folder] = layout.folders(plan)
    folder.phase = "readiness"
    [document] = fleet.bundles([folder], "aicr")
    assert document["helm"]["timeoutSeconds"] == 5700


@pytest.mark.covers("F4")
def test_a_long_app_name_is_met_with_a_digest() -> None:
    """Bundle names are labels; two long ones stay apart (F4)."""
    app = "customer-production-eu-central-1-cluster-0007"
    made = bundles(
        plan_of(chart("kube-prometheus-stack"), chart("kube-prometheus-stacks"), app_name=app)
    )
    names = {item["name"] for item in made.values()}
    assert len(names) == 2
    assert all(len(name) <= 63 and name[-1] not in "-." for name in names)
    last = made["kube-prometheus-stacks"]
    assert last["dependsOn"] == [{"name": made["kube-prometheus-stack"]["name"]}]


@pytest.mark.covers("B10-61")
@pytest.mark.parametrize(
    "item",
    [
        chart("a", manifests=MANIFESTS),
        chart("a", pre_manifests=MANIFESTS),
        component("a", manifests=MANIFESTS),
    ],
)
def test_a_helm_op_cannot_hold_a_chart(item: Component) -> None:
    """The message names the mode that can (bundler spec 5.7)."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(item, fleet_mode="helmop"))
    assert caught.value.code == "INVALID_REQUEST"
    assert "gitrepo" in caught.value.hint


@pytest.mark.parametrize(
    "options",
    [
        {"fleet_mode": "other"},
        {"app_name": "a.b"},
        {"app_name": "A"},
        {"app_name": "a\n"},
        {"app_name": "a" * 64},
        {"repo": "oci://r.example/b:v1"},
        {"repo": "https://u:p@git.example/b.git"},
    ],
)
def test_unusable_options_are_refused(options: dict[str, Any]) -> None:
    """Also when the deployer is called as a library (bundler spec 5.0.1)."""
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(chart("a"), **options))
    assert caught.value.code == "INVALID_REQUEST"


def noise(size: int) -> str:
    """Text that does not compress, the same each time."""
    return random.Random(7).randbytes(size // 2).hex()


def test_a_bundle_too_large_for_the_store_is_refused() -> None:
    """What compresses well passes; what does not is refused with the way out (field pain 28)."""

    def manifest(text: str) -> list[tuple[str, str]]:
        data = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": text}}
        return [("m.yaml", write.dump({**data, "metadata": {"name": "x"}}))]

    assert plans.files_of(plan_of(component("a", manifests=manifest("x" * 3_000_000))))
    with pytest.raises(AicrError) as caught:
        plans.files_of(plan_of(component("a", manifests=manifest(noise(3_000_000)))))
    assert caught.value.code == "INVALID_REQUEST"
    assert "1,048,576" in caught.value.message
    assert caught.value.hint


def test_values_too_large_for_a_helm_op_are_refused() -> None:
    """They are in the object itself (field pain 28)."""
    plan = plan_of(chart("a", values={"x": "y" * 1_100_000}), fleet_mode="helmop")
    with pytest.raises(AicrError, match="Fleet has to keep"):
        plans.files_of(plan)


def test_the_page_tears_down_in_reverse_and_names_crd_owners() -> None:
    """CRDs are a step by hand (bundler spec 5.7)."""
    entry = {
        "ownsCRDs": True,
        "helm": {
            "defaultRepository": "https://charts.example.com",
            "defaultChart": "a",
            "defaultVersion": "1.2.3",
        },
    }
    page = plans.files_of(plan_of(chart("a", entry=entry), chart("b")))["README.md"][0].decode()
    assert "bash 001-a/apply-crds.sh" in page
    assert page.index("delete bundles.fleet.cattle.io aicr-b ") < page.index(
        "delete bundles.fleet.cattle.io aicr-a "
    )
    assert "kubectl label clusters.fleet.cattle.io <cluster>" in page


def normalised(live: dict[str, Any], patches: list[dict[str, Any]]) -> dict[str, Any]:
    """A live object as Fleet compares it: without what the pointers of its kind and name lead to."""
    made = copy.deepcopy(live)
    for patch in patches:
        whose = (patch["apiVersion"], patch["kind"], patch.get("name", made["metadata"]["name"]))
        if whose != (made["apiVersion"], made["kind"], made["metadata"]["name"]):
            continue
        for pointer in patch["jsonPointers"]:
            *parents, last = pointer.split("/")[1:]
            with contextlib.suppress(KeyError, IndexError):
                held: Any = made
                for step in parents:
                    held = held[int(step) if isinstance(held, list) else step]
                del held[last]
    return made


@pytest.mark.parametrize("mode", ["gitrepo", "helmop"])
@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
def test_certificates_that_a_controller_writes_into_webhooks_are_no_drift(
    mode: str, kind: str
) -> None:
    """A Bundle that is Modified for ever would hold up the rest (field pain 46)."""
    plan = plan_of(chart("a"), fleet_mode=mode)
    document = bundles(plan)["a"] if mode == "gitrepo" else helm_ops(plan)["a"]["spec"]
    desired: dict[str, Any] = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "anything"},
        "webhooks": [{"name": f"w{number}", "clientConfig": {"url": "u"}} for number in range(24)],
    }
    live = copy.deepcopy(desired)
    for webhook in live["webhooks"]:
        webhook["clientConfig"]["caBundle"] = "injected"
    patches = document["diff"]["comparePatches"]
    assert normalised(live, patches) == desired
    live["webhooks"][3]["failurePolicy"] = "Ignore"
    assert normalised(live, patches) != desired


def test_fleet_and_argo_cd_overlook_the_same() -> None:
    """One table: kinds, names and fields, for published charts alone."""
    components = [chart("gpu-operator"), chart("nvidia-dra-driver-gpu"), chart("other")]
    plan = plan_of(*components, component("own", manifests=MANIFESTS))
    applications = {
        item["metadata"]["name"]: item["spec"].get("ignoreDifferences", [])
        for path, (data, _) in plans.files_of(
            plans.plan_of(*components, component("own", manifests=MANIFESTS), deployer="argocd")
        ).items()
        if path.endswith("/application.yaml")
        for item in [read.load(data.decode(), source=path)]
    }
    made = bundles(plan)
    assert set(applications) == set(made)
    for release, rules in applications.items():
        patches = made[release].get("diff", {}).get("comparePatches", [])
        assert [(rule["group"], rule["kind"], rule.get("name")) for rule in rules] == [
            (patch["apiVersion"].partition("/")[0], patch["kind"], patch.get("name"))
            for patch in patches
        ]
        for rule, patch in zip(rules, patches, strict=True):
            if "jsonPointers" in rule:
                assert rule["jsonPointers"] == patch["jsonPointers"]
            else:
                first = patch["jsonPointers"][0].replace("/0/", "[]?/").replace("/", ".")
                assert rule["jqPathExpressions"] == [first]
    assert "diff" not in made["own"]
    assert len(made["gpu-operator"]["diff"]["comparePatches"]) == 3
