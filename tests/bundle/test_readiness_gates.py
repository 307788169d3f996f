"""Readiness gates: which components get one, what is in it, and how each deployer runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.bundle.chart_repository import helm
from tests.bundle.sample_catalogues import World

import aicr
from aicr.bundle import layout, readiness
from aicr.bundle.layout import Folder
from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Plan
from aicr.contract.images import pull_policy
from aicr.errors import AicrError
from aicr.yamlio import read


def asserting(kind: str = "Deployment", version: str = "apps/v1", extra: str = "") -> str:
    """A test that asserts one object."""
    return (
        "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: app\n"
        f"{extra}spec:\n  steps:\n    - try:\n        - assert:\n            resource:\n"
        f"              apiVersion: {version}\n              kind: {kind}\n"
        "              metadata:\n                name: '{{ not a template }}'\n"
    )


OWN = {"components/app/readiness.yaml": asserting()}
ENTRY = {"app": {"healthCheck": {"assertFile": "checks/app.yaml"}}}


def gates(plan: Plan) -> list[Folder]:
    """The readiness folders of a plan."""
    return [folder for folder in layout.folders(plan) if folder.phase == "readiness"]


def objects(folder: Folder, **values: Any) -> dict[str, dict[str, Any]]:
    """The gate's objects by kind, with the values that helm would put in."""
    text = folder.files["templates/readiness.yaml"][0].decode()
    for key, value in {**folder.values, **values}.items():
        text = text.replace(f"{{{{ .Values.{key} }}}}", value)
    text = text.replace('{{ "{{" }}', "{{")
    return {item["kind"]: item for item in read.load_all(text, source="gate")}


def gate(world: World, **flags: Any) -> dict[str, dict[str, Any]]:
    """The objects of the only gate."""
    (folder,) = gates(world.plan(readiness_hooks=True, **flags))
    return objects(folder)


def test_without_the_flag_there_is_no_gate() -> None:
    """Gates are asked for (bundler spec 2.8)."""
    assert gates(World("app", files=OWN).plan()) == []


def test_a_gate_comes_last_and_is_a_chart_of_its_own() -> None:
    """pre, primary, post, readiness; numbered like everything else (bundler spec 2.1)."""
    files = {**OWN, "pre.yaml": "kind: A\n", "post.yaml": "kind: B\n"}
    ref = {"name": "app", "preManifestFiles": ["pre.yaml"], "manifestFiles": ["post.yaml"]}
    made = layout.folders(World(ref, files=files).plan(readiness_hooks=True))
    assert [(folder.dir, folder.phase) for folder in made] == [
        ("001-app-pre", "pre"),
        ("002-app", "primary"),
        ("003-app-post", "post"),
        ("004-app-readiness", "readiness"),
    ]
    assert (made[3].kind, made[3].parent, made[3].namespace) == ("local-helm", "app", "app")


@pytest.mark.parametrize(
    ("ref", "files", "source"),
    [
        ({}, {**OWN, "checks/app.yaml": asserting("Pod", "v1")}, "Deployment"),
        ({}, {"checks/app.yaml": asserting("Pod", "v1")}, "Pod"),
        ({"healthCheckAsserts": asserting("Node", "v1")}, {"checks/app.yaml": asserting()}, "Node"),
        ({"healthCheckSkip": True}, {"checks/app.yaml": asserting()}, ""),
        ({"healthCheckSkip": True}, OWN, "Deployment"),
        ({}, {}, ""),
    ],
)
def test_a_components_own_test_comes_before_its_health_check(
    ref: dict[str, Any], files: dict[str, str], source: str
) -> None:
    """readiness.yaml, else what check-health would run, else nothing (decision 68)."""
    world = World({"name": "app", **ref}, entries=ENTRY, files=files)
    made = world.plan(readiness_hooks=True)
    found = gates(made)
    assert len(found) == bool(source)
    if source:
        assert f"kind: {source}\n" in objects(found[0])["ConfigMap"]["data"]["app.yaml"]
    else:
        assert any("no readiness gate for app" in note for note in made.notes)


def test_the_test_arrives_byte_for_byte() -> None:
    """Braces and all: helm's templating of the gate's chart changes nothing (F2)."""
    found = gate(World("app", files=OWN))["ConfigMap"]
    assert found["metadata"]["name"] == "app-readiness-bundle"
    assert found["data"] == {"app.yaml": OWN["components/app/readiness.yaml"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("kind: Test\napiVersion: v1\n", "chainsaw.kyverno.io"),
        ("kind: Deployment\napiVersion: chainsaw.kyverno.io/v1alpha1\n", "kind Test"),
        ("- a\n", "kind Test"),
        (
            "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nspec:\n"
            "  timeouts: {assert: 5m}\n  steps: [{try: [{apply: {}}]}]\n",
            "asserts nothing",
        ),
        (f"{asserting()}---\nkind: Pod\napiVersion: v1\n", "kind Test"),
        ("a: [", ""),
    ],
)
def test_what_is_no_readiness_test_is_refused(text: str, words: str) -> None:
    """Another kind, a test without an assertion, or no YAML at all (bundler spec 2.8)."""
    world = World("app", files={"components/app/readiness.yaml": text})
    error = world.refused(readiness_hooks=True)
    assert words in error.message
    assert "components/app/readiness.yaml" in str(error)


def test_a_test_that_says_it_is_no_op_needs_no_gate() -> None:
    """Some health checks hold nothing on purpose (validators spec 8)."""
    text = (
        "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: a\n"
        '  annotations: {aicr/no-op-check: "true"}\nspec: {steps: []}\n'
    )
    world = World("app", files={"components/app/readiness.yaml": text})
    assert gates(world.plan(readiness_hooks=True)) == []


NIC = "apiVersion: mellanox.com/v1alpha1\nkind: NicClusterPolicy\nmetadata:\n  name: n\n"


@pytest.mark.parametrize("where", ["", "network-operator", "other"])
def test_the_network_operator_is_gated_only_with_a_policy(where: str) -> None:
    """Without a NicClusterPolicy it never reports ready (bundler spec 2.8)."""
    refs: list[dict[str, Any]] = [{"name": "network-operator"}, {"name": "other"}]
    for ref in refs:
        if ref["name"] == where:
            ref["manifestFiles"] = ["nic.yaml"]
    files = {"nic.yaml": NIC, "components/network-operator/readiness.yaml": asserting()}
    found = gates(World(*refs, files=files).plan(readiness_hooks=True))
    assert [folder.parent for folder in found] == (["network-operator"] if where else [])
    if where:
        rules = objects(found[0])["ClusterRole"]["rules"]
        assert {"apiGroups": ["mellanox.com"], "resources": ["nicclusterpolicies"]}.items() <= next(
            rule for rule in rules if rule["apiGroups"] == ["mellanox.com"]
        ).items()


def test_the_role_only_reads() -> None:
    """get, list and watch; no Secrets; cluster-wide names end in the namespace (2.8)."""
    found = gate(World({"name": "app", "namespace": "ns"}, files=OWN))
    role, binding = found["ClusterRole"], found["ClusterRoleBinding"]
    assert role["metadata"]["name"] == "app-readiness-gate-ns"
    assert binding["metadata"]["name"] == "app-readiness-gate-ns"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "app-readiness-gate", "namespace": "ns"}
    ]
    assert {tuple(rule["verbs"]) for rule in role["rules"]} == {("get", "list", "watch")}
    by_group = {rule["apiGroups"][0]: rule["resources"] for rule in role["rules"]}
    assert "secrets" not in by_group[""]
    assert "pods" in by_group[""]
    assert by_group["nvidia.com"] == ["*"]
    assert by_group["operators.coreos.com"] == ["clusterserviceversions"]
    assert by_group["apiextensions.k8s.io"] == ["customresourcedefinitions"]


@pytest.mark.parametrize(
    ("kind", "version", "group", "resources"),
    [
        ("Gateway", "gateway.networking.k8s.io/v1", "gateway.networking.k8s.io", ["*"]),
        ("Subscription", "operators.coreos.com/v1alpha1", "operators.coreos.com", ["*"]),
        (
            "ClusterServiceVersion",
            "operators.coreos.com/v1alpha1",
            "operators.coreos.com",
            ["clusterserviceversions"],
        ),
    ],
)
def test_the_role_covers_what_the_test_looks_at(
    kind: str, version: str, group: str, resources: list[str]
) -> None:
    """A test that may not read what it asserts could never pass."""
    files = {"components/app/readiness.yaml": asserting(kind, version)}
    rules = gate(World("app", files=files))["ClusterRole"]["rules"]
    assert next(rule["resources"] for rule in rules if rule["apiGroups"] == [group]) == resources


def test_a_test_that_names_a_secret_may_read_secrets() -> None:
    """And no other gate may."""
    files = {"components/app/readiness.yaml": asserting("Secret", "v1")}
    rules = gate(World("app", files=files))["ClusterRole"]["rules"]
    assert "secrets" in next(rule["resources"] for rule in rules if rule["apiGroups"] == [""])


def test_the_job_is_the_gate_with_its_limits() -> None:
    """Arguments, back-off, and a deadline five minutes after the gate's own (bundler spec 2.8)."""
    job = gate(World({"name": "app", "namespace": "ns"}, files=OWN), version="1.2.3")["Job"]
    spec = job["spec"]
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    assert job["metadata"]["name"] == "app-readiness-gate"
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (6, 90 * 60 + 300)
    assert container["args"] == [
        "--bundle=/bundle",
        "--namespace=ns",
        "--timeout=2m",
        "--poll-interval=10s",
        "--stability-window=30s",
        "--max-wait=1h30m",
    ]
    assert (container["image"], container["imagePullPolicy"]) == (
        "aicr.local/aicr-gate:v1.2.3",
        "Never",
    )
    assert pod["tolerations"] == [{"operator": "Exists"}]
    # A failed pod that stays would be found by tests that look for failed pods.
    assert pod["restartPolicy"] == "OnFailure"
    assert container["resources"].keys() == {"requests", "limits"}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_the_gate_runs_where_the_controllers_do() -> None:
    """On a cluster whose nodes are all tainted it would be pending for ever otherwise."""
    pod = gate(
        World("app", files=OWN),
        system_node_selector=["pool=system"],
        system_node_tolerations=["dedicated=system:NoSchedule"],
    )["Job"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"pool": "system"}
    assert [item["key"] for item in pod["tolerations"]] == ["dedicated"]


@pytest.mark.parametrize(
    "deployer", ["helm", "helmfile", "flux", "terraform", "fleet", "argocd", "argocd-helm"]
)
def test_helm_runs_the_job_as_a_hook_and_argo_replaces_it(deployer: str) -> None:
    """All seven; Argo CD would take a Helm hook for one of its own (decision 53)."""
    annotations = gate(World("app", files=OWN), deployer=deployer)["Job"]["metadata"]["annotations"]
    if deployer.startswith("argocd"):
        assert annotations == {"argocd.argoproj.io/sync-options": "Replace=true,Force=true"}
    else:
        assert annotations == {
            "helm.sh/hook": "post-install,post-upgrade",
            "helm.sh/hook-delete-policy": "before-hook-creation",
        }


@pytest.mark.parametrize(
    ("version", "registry", "image"),
    [
        ("1.2.3", "", "aicr.local/aicr-gate:v1.2.3"),
        ("v1.2.3", "", "aicr.local/aicr-gate:v1.2.3"),
        ("1.2.3-rc1", "", "aicr.local/aicr-gate:v1.2.3-rc1"),
        ("1.2.3-next", "", "aicr.local/aicr-gate:dev"),
        ("0.0.0-12-gabc1234", "", "aicr.local/aicr-gate:dev"),
        ("dev", "", "aicr.local/aicr-gate:dev"),
        ("", "", "aicr.local/aicr-gate:dev"),
        ("1.2.3", "registry.example.com/mirror/", "registry.example.com/mirror/aicr-gate:v1.2.3"),
    ],
)
def test_the_image_follows_the_version_and_the_registry(
    version: str, registry: str, image: str
) -> None:
    """Releases have a tag; anything else is dev (bundler spec 2.8, decision 41)."""
    assert readiness.gate_image(version, registry) == image


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("aicr.local/aicr-gate:dev", "Never"),
        ("kind.local/a:b", "Never"),
        ("aicr.localhost/a:b", "IfNotPresent"),
        ("r.example.com/a:latest", "Always"),
        ("r.example.com/a:latest@sha256:00", "IfNotPresent"),
        ("r.example.com/a:v1", "IfNotPresent"),
    ],
)
def test_side_loaded_images_are_never_pulled(image: str, policy: str) -> None:
    """The local prefix has no registry behind it (validators spec 2.5)."""
    assert pull_policy(image) == policy


def test_a_mirror_can_be_named_when_the_gate_is_installed() -> None:
    """The image is a value of the gate's chart (decision 41)."""
    (folder,) = gates(World("app", files=OWN).plan(readiness_hooks=True, version="1.2.3"))
    assert folder.values == {
        "image": "aicr.local/aicr-gate:v1.2.3",
        "imagePullPolicy": "Never",
    }
    job = objects(folder, image="mirror.example.com/gate:1", imagePullPolicy="Always")["Job"]
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "mirror.example.com/gate:1"


def test_a_release_name_that_gets_too_long_is_refused() -> None:
    """Helm's cap holds for the gate's release too (field case F4)."""
    name = "a" * 45
    files = {f"components/{name}/readiness.yaml": asserting()}
    with pytest.raises(AicrError, match="at most 53"):
        layout.folders(World(name, files=files).plan(readiness_hooks=True))


@pytest.mark.parametrize("deployer", ["helm", "argocd"])
def test_every_health_check_of_the_catalogue_makes_a_gate(deployer: str) -> None:
    """One gate a component, each with a test that reads back as it is in the catalogue."""
    catalog = aicr.Catalog.builtin()
    recipe = aicr.resolve(
        catalog, aicr.Criteria(service="eks", accelerator="h100", intent="training", os="ubuntu")
    )
    bundle = aicr.bundle(recipe, BundleOptions(deployer=deployer, readiness_hooks=True))
    found = gates(bundle.plan)
    assert [folder.parent for folder in found] == [item.name for item in bundle.plan.components]
    for folder in found:
        name = f"checks/{folder.parent}/health-check.yaml"
        data = objects(folder)["ConfigMap"]["data"]
        assert data == {f"{folder.parent}.yaml": catalog.tree.read_text(name)}
    info = read.load(bundle.files["bundle-info.yaml"][0].decode(), source="info")
    assert info["build"]["settings"]["readinessHooks"] is True


def test_helm_finds_nothing_wrong_with_a_gate(tmp_path: Path) -> None:
    """Lint and rendering by the real helm, with a mirror named at install time."""
    (folder,) = gates(World("app", files=OWN).plan(readiness_hooks=True, version="1.2.3"))
    for path, (content, _) in folder.files.items():
        target = tmp_path / "gate" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    helm(tmp_path, "lint", "--strict", str(tmp_path / "gate"))
    out = helm(
        *(tmp_path, "template", "app-readiness", str(tmp_path / "gate")),
        *("--set", "image=mirror.example.com/gate:1"),
    )
    found = {item["kind"]: item for item in read.load_all(out, source="helm")}
    assert found["ConfigMap"]["data"] == {"app.yaml": OWN["components/app/readiness.yaml"]}
    container = found["Job"]["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "mirror.example.com/gate:1"
    assert len(found) == 5
