from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, namespace_manifest, plan_of
from tests.bundle.stub_cluster import StubCluster, place

from aicr.bundle import charts, layout, scripts

CRDS = """\
Pulled: registry.example/chart:1.2.3
Digest: sha256:0
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.com
"""


def upstream(root: Path, **ref: Any) -> Path:
    """The folder of an upstream chart called x."""
    [folder] = layout.folders(plan_of(chart("x", namespace="ns", **ref)))
    return place(folder.files, root / "bundle" / folder.dir)


def local(root: Path, text: str = CONFIG_MAP, namespace: str = "ns") -> Path:
    """The folder of a local chart called x."""
    held = component("x", namespace=namespace, manifests=[("m.yaml", text)])
    [folder] = layout.folders(plan_of(held))
    return place(folder.files, root / "bundle" / folder.dir)


def owner(root: Path) -> Path:
    """The folder of a chart whose CRDs may be applied."""
    entry = {
        "ownsCRDs": True,
        "helm": {
            "defaultRepository": "https://charts.example.com",
            "defaultChart": "x",
            "defaultVersion": "1.2.3",
        },
    }
    return upstream(root, entry=entry)


def test_upstream_install_runs_one_helm_upgrade(tmp_path: Path) -> None:
    """The command is that of bundler spec 2.5, and repository and version are the pins."""
    cluster = StubCluster(tmp_path / "stub")
    done = cluster.run(upstream(tmp_path) / "install.sh")
    assert done.returncode == 0, done.stderr
    assert cluster.calls("helm upgrade") == [
        "helm upgrade --install x x --repo https://charts.example.com --version 1.2.3 "
        "--namespace ns --create-namespace -f values.yaml -f cluster-values.yaml "
        "--server-side=true --force-conflicts"
    ]


def test_an_oci_chart_without_a_version_has_neither_repo_nor_version(tmp_path: Path) -> None:
    """Empty REPO and VERSION add no arguments (2.3)."""
    cluster = StubCluster(tmp_path / "stub")
    folder = upstream(tmp_path, source="oci://r.example/charts", version="")
    assert cluster.run(folder / "install.sh").returncode == 0
    [call] = cluster.calls("helm upgrade")
    assert call.startswith("helm upgrade --install x oci://r.example/charts/x --namespace ns ")


def test_local_install_uses_its_own_folder(tmp_path: Path) -> None:
    """A local chart is installed from ./ whatever the caller's folder is (2.5)."""
    cluster = StubCluster(tmp_path / "stub")
    done = cluster.run(local(tmp_path) / "install.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [call] = cluster.calls("helm upgrade")
    assert call.startswith("helm upgrade --install x ./ --namespace ns --create-namespace -f")
    assert not cluster.calls("kubectl")


@pytest.mark.parametrize(("version", "forced"), [("v3.18.1", False), ("v4.0.0", True)])
def test_conflicts_are_forced_from_helm_4_on(tmp_path: Path, version: str, forced: bool) -> None:
    """Helm 3 does not know the flag (2.5)."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("helm-version", version)
    cluster.run(upstream(tmp_path) / "install.sh")
    [call] = cluster.calls("helm upgrade")
    assert ("--force-conflicts" in call) is forced


def test_an_unreadable_helm_version_stops_the_install(tmp_path: Path) -> None:
    """Guessing a major version would guess how objects are applied."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("helm-version", "unknown")
    done = cluster.run(upstream(tmp_path) / "install.sh")
    assert done.returncode == 1
    assert "major version" in done.stderr
    assert not cluster.installs()


def test_environment_is_passed_through(tmp_path: Path) -> None:
    """Wait arguments, dry run, debug and context reach helm, word by word, without globbing."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.run(
        upstream(tmp_path) / "install.sh",
        COMPONENT_WAIT_ARGS="--wait --timeout 10m --description *",
        DRY_RUN_FLAG="--dry-run=server",
        HELM_DEBUG_FLAG="--debug",
        KUBE_CONTEXT="my context",
    )
    [call] = cluster.calls("helm upgrade")
    assert call.endswith(
        "--kube-context my context --wait --timeout 10m --description * --dry-run=server --debug"
    )


def test_a_relative_kubeconfig_is_that_of_the_callers_folder(tmp_path: Path) -> None:
    """The script changes folder, which must not change the cluster."""
    cluster = StubCluster(tmp_path / "stub")
    (cluster.bin / "helm").write_text('#!/usr/bin/env bash\necho "v4.0.0 $KUBECONFIG"\n')
    done = cluster.run(
        upstream(tmp_path) / "install.sh", cwd=tmp_path, KUBECONFIG="a b.yaml:/abs/c:d"
    )
    assert f"{tmp_path}/a b.yaml:/abs/c:{tmp_path}/d" in done.stdout


def test_the_deprecated_flag_variable_is_refused_here(tmp_path: Path) -> None:
    """Ignoring KUBECONFIG_FLAG could install into another cluster."""
    cluster = StubCluster(tmp_path / "stub")
    done = cluster.run(upstream(tmp_path) / "install.sh", KUBECONFIG_FLAG="--kube-context=x")
    assert done.returncode == 64
    assert "KUBE_CONTEXT" in done.stderr
    assert not cluster.calls()


def test_a_failing_helm_fails_the_script(tmp_path: Path) -> None:
    """Its exit status is that of helm."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.fail("upgrade-x")
    assert cluster.run(local(tmp_path) / "install.sh").returncode == 1


def test_a_chart_with_its_own_namespace_finds_it_made_and_handed_over(tmp_path: Path) -> None:
    """Helm needs the namespace for its record, and takes over only what is labelled as its own."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.fail("get-namespace", 1)
    done = cluster.run(local(tmp_path, namespace_manifest("ns")) / "install.sh")
    assert done.returncode == 0, done.stderr
    calls = cluster.calls()
    assert "kubectl create namespace ns" in calls
    label = "kubectl label namespace ns --overwrite app.kubernetes.io/managed-by=Helm"
    assert calls.index(label) < calls.index(cluster.calls("helm upgrade")[0])
    assert any(
        "meta.helm.sh/release-name=x meta.helm.sh/release-namespace=ns" in call for call in calls
    )
    assert "--create-namespace" not in cluster.calls("helm upgrade")[0]


def test_a_namespace_of_another_release_is_not_taken_over(tmp_path: Path) -> None:
    """The annotation of its owner stays, and helm says what is wrong."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("get-namespace", "other-release")
    cluster.run(local(tmp_path, namespace_manifest("ns")) / "install.sh")
    assert not cluster.calls("kubectl label")
    assert not cluster.calls("kubectl annotate")
    assert not cluster.calls("kubectl create")


def test_a_declared_namespace_that_is_not_the_releases_is_left_to_helm(tmp_path: Path) -> None:
    """The release's namespace is made, and no object is handed over."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.fail("get-namespace", 1)
    cluster.run(local(tmp_path, namespace_manifest("other")) / "install.sh")
    assert cluster.calls("kubectl create") == ["kubectl create namespace ns"]
    assert not cluster.calls("kubectl label")


def test_a_dry_run_makes_no_namespace(tmp_path: Path) -> None:
    """A dry run changes nothing."""
    cluster = StubCluster(tmp_path / "stub")
    folder = local(tmp_path, namespace_manifest("ns"))
    cluster.run(folder / "install.sh", DRY_RUN_FLAG="--dry-run=server")
    assert not cluster.calls("kubectl")
    assert cluster.installs() == ["x"]


def test_values_of_the_head_cannot_become_shell(tmp_path: Path) -> None:
    """upstream.env is sourced, so what is in it is quoted (2.3)."""
    folder = upstream(tmp_path)
    ref = {"name": "x", "source": "https://c.example/$(touch${IFS}pwned)'`id`"}
    (folder / "upstream.env").write_bytes(charts.upstream_env(ref))
    cluster = StubCluster(tmp_path / "stub")
    cluster.run(folder / "install.sh")
    assert "--repo https://c.example/$(touch${IFS}pwned)'`id`" in cluster.calls("helm upgrade")[0]
    assert not list(tmp_path.rglob("pwned"))


def test_crds_are_applied_before_an_upgrade(tmp_path: Path) -> None:
    """With the release there, its CRDs are applied by the server, conflicts forced (2.6)."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("helm-list", "x\n")
    cluster.answer("helm-show", CRDS)
    done = cluster.run(owner(tmp_path) / "install.sh", KUBE_CONTEXT="c")
    assert done.returncode == 0, done.stderr
    calls = [call for call in cluster.calls() if "version" not in call.split()[1]]
    assert [call.split(" --")[0] for call in calls] == [
        "helm list",
        "helm show crds x",
        "kubectl",
        "helm upgrade",
    ]
    assert "--filter ^x$ --deployed --failed --pending --short" in calls[0]
    assert calls[1].endswith("--repo https://charts.example.com --version 1.2.3")
    assert calls[2] == "kubectl --context c apply --server-side --force-conflicts -f -"
    applied = (tmp_path / "stub" / "applied").read_text()
    assert applied.startswith("---\napiVersion")


def test_helm_creates_the_crds_of_a_first_install(tmp_path: Path) -> None:
    """No release and none of its CRDs in the cluster: nothing to apply (2.6)."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("helm-show", CRDS)
    done = cluster.run(owner(tmp_path) / "install.sh")
    assert done.returncode == 0, done.stderr
    assert not cluster.calls("kubectl apply")
    assert cluster.installs() == ["x"]


def test_crds_left_by_an_earlier_install_are_applied(tmp_path: Path) -> None:
    """No release but CRDs: helm would keep the old ones (2.6)."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("helm-show", CRDS)
    cluster.answer("get--f", "customresourcedefinition/things.example.com\n")
    done = cluster.run(owner(tmp_path) / "install.sh")
    assert done.returncode == 0, done.stderr
    assert cluster.calls("kubectl apply")


def test_a_chart_without_crds_needs_no_step(tmp_path: Path) -> None:
    """Said, and the install goes on (2.6)."""
    cluster = StubCluster(tmp_path / "stub")
    done = cluster.run(owner(tmp_path) / "install.sh")
    assert done.returncode == 0, done.stderr
    assert "ships no CRDs" in done.stdout
    assert not cluster.calls("kubectl")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("helm-list", "cannot tell whether release x is installed"),
        ("helm-show", "cannot read the CRDs"),
        ("get--f", "cannot tell whether the cluster has these CRDs"),
        ("apply", "kubectl apply failed"),
    ],
)
def test_an_undetermined_crd_step_stops_the_install(tmp_path: Path, call: str, words: str) -> None:
    """Could not tell is never no: exit 1 before helm runs (2.6)."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("helm-show", CRDS)
    if call == "apply":
        cluster.answer("helm-list", "x\n")
    cluster.fail(call)
    done = cluster.run(owner(tmp_path) / "install.sh")
    assert done.returncode == 1
    assert words in done.stderr
    assert not cluster.installs()


@pytest.mark.parametrize(
    ("without", "words"), [("kubectl", "kubectl is not installed"), ("timeout", "gtimeout")]
)
def test_the_crd_step_needs_kubectl_and_a_limit(tmp_path: Path, without: str, words: str) -> None:
    """It never runs without a time limit (2.6)."""
    cluster = StubCluster(tmp_path / "stub", without=(without,))
    done = cluster.run(owner(tmp_path) / "install.sh")
    assert done.returncode == 1
    assert words in done.stderr
    assert not cluster.installs()


def test_each_crd_call_is_ended_by_the_limit(tmp_path: Path) -> None:
    """A call that does not answer ends after AICR_CRD_STEP_TIMEOUT seconds (2.6)."""
    cluster = StubCluster(tmp_path / "stub")
    real_sleep = tools.program("sleep", "install coreutils")
    (cluster.bin / "helm").write_text(f"#!/usr/bin/env bash\nexec {real_sleep} 50\n")
    done = cluster.run(owner(tmp_path) / "apply-crds.sh", AICR_CRD_STEP_TIMEOUT="1")
    assert done.returncode == 1
    assert "cannot tell whether release x is installed" in done.stderr


@pytest.mark.parametrize("seconds", ["0", "x", "1.5", "-1"])
def test_a_bad_crd_limit_is_refused(tmp_path: Path, seconds: str) -> None:
    """Zero would mean no limit to timeout."""
    cluster = StubCluster(tmp_path / "stub")
    done = cluster.run(owner(tmp_path) / "apply-crds.sh", AICR_CRD_STEP_TIMEOUT=seconds)
    assert done.returncode == 1
    assert "AICR_CRD_STEP_TIMEOUT" in done.stderr
    assert not cluster.calls()


def test_helms_own_context_variable_reaches_kubectl_too(tmp_path: Path) -> None:
    """HELM_KUBECONTEXT alone would send releases to one cluster and their CRDs to another (2.6)."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("helm-list", "x\n")
    cluster.answer("helm-show", CRDS)
    done = cluster.run(owner(tmp_path) / "install.sh", HELM_KUBECONTEXT="prod")
    assert done.returncode == 0, done.stderr
    assert cluster.calls("kubectl") == [
        "kubectl --context prod apply --server-side --force-conflicts -f -"
    ]
    assert "--kube-context prod" in cluster.calls("helm upgrade")[0]


@pytest.mark.parametrize("script", ["install.sh", "apply-crds.sh"])
@pytest.mark.parametrize(
    "env",
    [
        {"HELM_KUBECONTEXT": "prod", "KUBE_CONTEXT": "staging"},
        {"HELM_KUBEAPISERVER": "https://192.0.2.1"},
    ],
    ids=["two-contexts", "server"],
)
def test_variables_that_would_part_helm_from_kubectl_are_refused(
    tmp_path: Path, script: str, env: dict[str, str]
) -> None:
    """The script ends as a wrong call does, before it asks any cluster."""
    cluster = StubCluster(tmp_path / "stub")
    done = cluster.run_with(owner(tmp_path) / script, env=env)
    assert done.returncode == 64
    assert next(iter(env)) in done.stderr
    assert not cluster.calls()


@pytest.mark.parametrize(
    ("argument", "context"),
    [("--kube-context=prod", "--context prod "), ("--kube-context=", "")],
    ids=["named", "current"],
)
def test_the_context_of_an_argument_goes_before_the_variable(
    tmp_path: Path, argument: str, context: str
) -> None:
    """helmfile does not read KUBE_CONTEXT, so its hook says where helm will go (5.2)."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.answer("helm-list", "x\n")
    cluster.answer("helm-show", CRDS)
    done = cluster.run(owner(tmp_path) / "apply-crds.sh", argument, KUBE_CONTEXT="other")
    assert done.returncode == 0, done.stderr
    assert cluster.calls("kubectl") == [
        f"kubectl {context}apply --server-side --force-conflicts -f -"
    ]
    [listed] = cluster.calls("helm list")
    assert ("--kube-context prod" in listed) is bool(context)


def test_the_crd_step_takes_no_other_argument(tmp_path: Path) -> None:
    """What it does not know it refuses, before it asks any cluster."""
    cluster = StubCluster(tmp_path / "stub")
    done = cluster.run(owner(tmp_path) / "apply-crds.sh", "--context=prod")
    assert done.returncode == 64
    assert not cluster.calls()


def test_the_crd_step_is_left_out_of_a_dry_run(tmp_path: Path) -> None:
    """A dry run changes nothing (2.5)."""
    cluster = StubCluster(tmp_path / "stub")
    cluster.run(owner(tmp_path) / "install.sh", DRY_RUN_FLAG="--dry-run=server")
    assert not cluster.calls("helm list")
    assert cluster.installs() == ["x"]


def all_scripts() -> dict[str, bytes]:
    """Every script text of the folder format."""
    return {
        "upstream": scripts.upstream_install_sh("x", "ns"),
        "local": scripts.local_install_sh("x", "ns", create_namespace=False, owns_namespace=True),
        "crds": scripts.apply_crds_sh("x.y", "ns"),
        "own-crds": scripts.apply_crds_sh("x.y", "ns", subcharts=False),
        "own-crds-local": scripts.apply_crds_sh("x.y", "ns", local=True, subcharts=False),
    }


@pytest.mark.parametrize("name", sorted(all_scripts()))
def test_folder_scripts_pass_shellcheck(tmp_path: Path, name: str) -> None:
    """No finding of any severity, and bash parses them."""
    path = tmp_path / f"{name}.sh"
    path.write_bytes(all_scripts()[name])
    bash = tools.program("bash", "install bash")
    assert subprocess.run([bash, "-n", str(path)], check=False).returncode == 0
    done = subprocess.run(
        [tools.shellcheck(), str(path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0
