from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests import tools
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, plan_of
from tests.bundle.stub_cluster import StubCluster, place

from aicr.bundle import layout
from aicr.bundle.deployers import helm
from aicr.bundle.plan import Component

WEBHOOKS = "get-validatingwebhookconfigurations,mutatingwebhookconfigurations"
BACK_OFF = ["sleep 5", "sleep 20", "sleep 45", "sleep 80", "sleep 120"]


def bundle(root: Path, *components: Component, notes: tuple[str, ...] = ()) -> Path:
    """deploy.sh of a written bundle; by default of the two components a and b."""
    plan = plan_of(*(components or (chart("a"), chart("b"))), notes=notes)
    return place(helm.generate(plan, layout.folders(plan)), root / "bundle") / "deploy.sh"


@pytest.fixture
def cluster(tmp_path: Path) -> StubCluster:
    """A cluster on which everything works."""
    return StubCluster(tmp_path / "stub")


@pytest.mark.covers("C-126")
def test_releases_are_installed_one_by_one_in_folder_order(
    tmp_path: Path, cluster: StubCluster
) -> None:
    """The script is serial and takes its order from the folder numbers alone (5.1)."""
    names = [chart("z"), chart("a", manifests=[("m.yaml", CONFIG_MAP)]), chart("m")]
    done = cluster.run(bundle(tmp_path, *names))
    assert done.returncode == 0, done.stderr
    assert cluster.installs() == ["z", "a", "a-post", "m"]
    assert "all 4 releases are installed" in done.stdout
    assert all("--wait --timeout 10m" in call for call in cluster.calls("helm upgrade"))


def test_the_script_runs_from_any_folder(tmp_path: Path, cluster: StubCluster) -> None:
    """It finds its bundle by its own place, even if the path has a blank."""
    folder = tmp_path / "with blank"
    folder.mkdir()
    done = cluster.run(bundle(folder), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--now"],
        ["extra"],
        ["--retries"],
        ["--retries", "x"],
        ["--retries", ""],
        ["--retries=-1"],
        ["--retries", "1000"],
        ["--no-wait", "--what"],
    ],
)
def test_wrong_arguments_are_a_usage_error(
    tmp_path: Path, cluster: StubCluster, arguments: list[str]
) -> None:
    """Nothing is asked of the cluster, and the exit status is that of no other outcome (5.1)."""
    done = cluster.run(bundle(tmp_path), *arguments)
    assert done.returncode == 64
    assert "usage: ./deploy.sh" in done.stderr
    assert not cluster.calls()


@pytest.mark.parametrize(
    "env",
    [
        {"DRY_RUN_FLAG": "--dry-run=none"},
        {"DRY_RUN_FLAG": "yes"},
        {"HELM_DEBUG_FLAG": "--post-renderer=x"},
        {"HELM_TIMEOUT": "ten"},
        {"HELM_TIMEOUT": "10m --atomic"},
        {"HELM_TIMEOUT": "10"},
        {"KUBECONFIG_FLAG": "--kube-token=x"},
        {"KUBECONFIG_FLAG": "--kube-context"},
        {"KUBECONFIG_FLAG": "--kube-context=a", "KUBE_CONTEXT": "b"},
        {"KUBECONFIG_FLAG": "--kubeconfig /a", "KUBECONFIG": "/b"},
        {"HELM_KUBECONTEXT": "a", "KUBE_CONTEXT": "b"},
        {"HELM_KUBECONTEXT": "a", "KUBECONFIG_FLAG": "--kube-context=b"},
        {"HELM_KUBEAPISERVER": "https://192.0.2.1"},
    ],
)
def test_a_wrong_environment_is_a_usage_error(
    tmp_path: Path, cluster: StubCluster, env: dict[str, str]
) -> None:
    """A variable that would be misread stops the script before the cluster is asked (5.1)."""
    done = cluster.run_with(bundle(tmp_path), env=env)
    assert done.returncode == 64
    assert next(iter(env)) in done.stderr
    assert not cluster.calls()


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_no_error(tmp_path: Path, cluster: StubCluster, flag: str) -> None:
    """It names every flag and variable."""
    done = cluster.run(bundle(tmp_path), flag)
    assert done.returncode == 0
    for word in ("--no-wait", "--best-effort", "--retries", "KUBE_CONTEXT", "HELM_TIMEOUT"):
        assert word in done.stdout


def test_one_context_reaches_helm_and_kubectl(tmp_path: Path, cluster: StubCluster) -> None:
    """KUBE_CONTEXT is used in every call that talks to a cluster (5.1)."""
    assert cluster.run(bundle(tmp_path), KUBE_CONTEXT="prod").returncode == 0
    assert all("--context prod" in call for call in cluster.calls("kubectl"))
    assert all("--kube-context prod" in call for call in cluster.calls("helm upgrade"))


def test_the_deprecated_connection_variable_is_translated(
    tmp_path: Path, cluster: StubCluster
) -> None:
    """KUBECONFIG_FLAG still works, with a warning (5.1)."""
    flags = "--kube-context=prod --kubeconfig /etc/kc"
    done = cluster.run(bundle(tmp_path), KUBECONFIG_FLAG=flags)
    assert done.returncode == 0, done.stderr
    assert "deprecated" in done.stderr
    assert all("--kube-context prod" in call for call in cluster.calls("helm upgrade"))


def test_no_wait_leaves_out_wait(tmp_path: Path, cluster: StubCluster) -> None:
    """--no-wait keeps the timeout, for hooks (5.1)."""
    cluster.run(bundle(tmp_path), "--no-wait", HELM_TIMEOUT="3m")
    for call in cluster.calls("helm upgrade"):
        assert call.endswith("--timeout 3m")
        assert "--wait" not in call


def test_a_failed_release_is_tried_again_with_growing_pauses(
    tmp_path: Path, cluster: StubCluster
) -> None:
    """Five retries; the pause is min(attempt squared times 5, 120) seconds (5.1)."""
    cluster.fail("upgrade-a")
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 1
    assert cluster.installs() == ["a"] * 6
    assert cluster.calls("sleep") == BACK_OFF
    assert "the folders after it were not installed" in done.stderr


def test_a_release_that_recovers_lets_the_rest_go_on(tmp_path: Path, cluster: StubCluster) -> None:
    """A retry that works is a success."""
    cluster.fail("upgrade-a", 2)
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 0, done.stderr
    assert cluster.installs() == ["a", "a", "a", "b"]
    assert cluster.calls("sleep") == BACK_OFF[:2]


@pytest.mark.parametrize(("retries", "tries"), [("0", 1), ("2", 3), ("08", 9)])
def test_the_number_of_retries_can_be_set(
    tmp_path: Path, cluster: StubCluster, retries: str, tries: int
) -> None:
    """--retries N gives N more tries; a leading zero is decimal."""
    cluster.fail("upgrade-a")
    cluster.run(bundle(tmp_path), "--retries", retries)
    assert len(cluster.installs()) == tries


def test_diagnostics_come_before_hook_jobs_are_removed(
    tmp_path: Path, cluster: StubCluster
) -> None:
    """Between tries the state is shown, then hook Jobs that did not succeed go (5.1)."""
    cluster.fail("upgrade-a", 1)
    cluster.answer("get-jobs", "h1|post-install|\nh2|post-install|1\nplain||\nh3|pre-install|0\n")
    done = cluster.run(bundle(tmp_path, chart("a", namespace="ns")))
    assert done.returncode == 0, done.stderr
    deleted = [call.split()[3] for call in cluster.calls("kubectl delete job")]
    assert deleted == ["h1", "h3"]
    calls = cluster.calls()
    shown = calls.index("kubectl get pods,jobs --namespace ns -o wide")
    assert shown < calls.index("kubectl delete job h1 --namespace ns --ignore-not-found")
    assert "helm status a --namespace ns" in calls


def test_hook_jobs_of_the_last_try_are_kept(tmp_path: Path, cluster: StubCluster) -> None:
    """They are the evidence of why it failed."""
    cluster.fail("upgrade-a")
    cluster.answer("get-jobs", "h1|post-install|\n")
    cluster.run(bundle(tmp_path), "--retries", "0")
    assert not cluster.calls("kubectl delete")


def test_best_effort_goes_on_and_ends_non_zero(tmp_path: Path, cluster: StubCluster) -> None:
    """A failed release is recorded, the others are installed, the exit status tells (5.1)."""
    cluster.fail("upgrade-a")
    done = cluster.run(bundle(tmp_path), "--best-effort", "--retries", "0")
    assert done.returncode == 1
    assert cluster.installs() == ["a", "b"]
    assert "failed: 001-a" in done.stderr


def test_kai_scheduler_is_not_waited_for(tmp_path: Path, cluster: StubCluster) -> None:
    """No --wait, 20 minutes, one retry, its -post folder included (5.0.5, 5.1)."""
    cluster.fail("upgrade-kai-scheduler", 1)
    held = chart("kai-scheduler", manifests=[("m.yaml", CONFIG_MAP)])
    done = cluster.run(bundle(tmp_path, held))
    assert done.returncode == 0, done.stderr
    assert cluster.installs() == ["kai-scheduler", "kai-scheduler", "kai-scheduler-post"]
    for call in cluster.calls("helm upgrade"):
        assert call.endswith("--timeout 20m")
        assert "--wait" not in call
    cluster.fail("upgrade-kai-scheduler")
    (tmp_path / "stub" / "calls").unlink()
    assert cluster.run(tmp_path / "bundle" / "deploy.sh").returncode == 1
    assert len(cluster.installs()) == 2


@pytest.mark.covers("C-127")
def test_a_readiness_gate_always_waits(tmp_path: Path, cluster: StubCluster) -> None:
    """1h35m, one retry, whatever --no-wait says, also for an asynchronous parent (5.1)."""
    script = bundle(tmp_path, chart("kai-scheduler", manifests=[("m.yaml", CONFIG_MAP)]))
    # The script keys a gate by its phase; a bundle with gates differs from this one in that word.
    text = script.read_text().replace("PHASE='post'", "PHASE='readiness'")
    script.write_text(text)
    cluster.fail("upgrade-kai-scheduler-post")
    assert cluster.run(script, "--no-wait").returncode == 1
    gates = [call for call in cluster.calls("helm upgrade") if "-post ./" in call]
    assert len(gates) == 2
    assert all(call.endswith("--wait --timeout 1h35m") for call in gates)


def test_a_terminating_namespace_stops_before_anything_is_installed(
    tmp_path: Path, cluster: StubCluster
) -> None:
    """A namespace of the bundle that is stuck would swallow the release (5.1)."""
    cluster.answer("get-namespaces", "a Active\nb Terminating\nother Terminating\n")
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 1
    assert "namespace b is stuck in Terminating" in done.stderr
    assert "namespace other" not in done.stderr
    assert not cluster.installs()


def test_a_pending_release_stops_before_anything_is_installed(
    tmp_path: Path, cluster: StubCluster
) -> None:
    """helm refuses a release that a cut-off run left pending, and retries cannot help (issue 5)."""
    cluster.answer("helm-list", "b\nnot-of-this-bundle\n")
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 1
    assert "release b in namespace b is pending" in done.stderr
    assert "helm rollback b --namespace b" in done.stderr
    assert "not-of-this-bundle" not in done.stderr
    assert "--namespace b --pending" in "\n".join(cluster.calls("helm list"))
    assert not cluster.installs()


def test_releases_that_cannot_be_listed_stop_the_script(
    tmp_path: Path, cluster: StubCluster
) -> None:
    """Could not tell is never no."""
    cluster.fail("helm-list")
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 1
    assert "the releases in namespace a cannot be listed" in done.stderr
    assert not cluster.installs()


def test_an_unreachable_cluster_stops_the_script(tmp_path: Path, cluster: StubCluster) -> None:
    """The preflight fails closed."""
    cluster.fail("get-namespaces")
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 1
    assert "namespaces cannot be listed" in done.stderr
    assert not cluster.installs()


def webhook(name: str, namespace: str, service: str) -> dict[str, object]:
    """A webhook configuration that calls a service."""
    client = {"service": {"namespace": namespace, "name": service}}
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{"clientConfig": client}, {"clientConfig": {"url": "https://x"}}],
    }


def test_a_webhook_without_its_service_stops_the_script(
    tmp_path: Path, cluster: StubCluster
) -> None:
    """Left over by an earlier install, it would refuse what is installed now (5.1)."""
    items = [
        webhook("left-over", "a", "gone"),
        webhook("fine", "b", "there"),
        webhook("foreign", "elsewhere", "gone"),
        {"kind": "MutatingWebhookConfiguration", "metadata": {"name": "empty"}},
    ]
    cluster.answer(WEBHOOKS, json.dumps({"items": items}))
    cluster.answer("get-service-there", "service/there\n")
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 1
    assert "left-over points to the missing service a/gone" in done.stderr
    assert "fine" not in done.stderr
    assert "foreign" not in done.stderr
    assert not cluster.installs()


def test_webhooks_that_cannot_be_read_stop_the_script(tmp_path: Path, cluster: StubCluster) -> None:
    """Could not check is not fine."""
    cluster.fail(WEBHOOKS)
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 1
    assert "webhook configurations cannot be read" in done.stderr


def test_without_jq_the_webhook_check_is_skipped_aloud(tmp_path: Path) -> None:
    """The skip is said on stderr, and the rest goes on (5.1)."""
    cluster = StubCluster(tmp_path / "stub", without=("jq",))
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "SKIPPED" in done.stderr
    assert "jq" in done.stderr


@pytest.mark.parametrize("tool", ["helm", "kubectl"])
def test_a_missing_tool_is_named(tmp_path: Path, tool: str) -> None:
    """Found before the first release, not at it."""
    cluster = StubCluster(tmp_path / "stub", without=(tool,))
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 1
    assert f"{tool} is not installed" in done.stderr


def test_an_unavailable_apiservice_is_a_warning(tmp_path: Path, cluster: StubCluster) -> None:
    """It is not ours to judge, but explains later trouble (5.1)."""
    cluster.answer("get-apiservices", "v1.apps True\nv1beta1.metrics.k8s.io False\nv1.x\n")
    done = cluster.run(bundle(tmp_path))
    assert done.returncode == 0
    assert "APIService v1beta1.metrics.k8s.io is not available" in done.stderr
    assert "APIService v1.x is not available" in done.stderr
    assert "v1.apps" not in done.stderr


def test_crds_without_their_release_are_a_warning(tmp_path: Path, cluster: StubCluster) -> None:
    """CRDs of an earlier install are kept by helm, and may be of another version (5.1)."""
    cluster.answer(
        "get-customresourcedefinitions",
        "nvidia.com clusterpolicies.nvidia.com\nnvidia.com nvidiadrivers.nvidia.com\n"
        "cert-manager.io issuers.cert-manager.io\nexample.com things.example.com\n",
    )
    cluster.fail("helm-status-gpu-operator")
    done = cluster.run(bundle(tmp_path, chart("cert-manager"), chart("gpu-operator")))
    assert done.returncode == 0, done.stderr
    assert (
        "CRDs of group nvidia.com are here without the release that brings them: "
        "clusterpolicies.nvidia.com nvidiadrivers.nvidia.com" in done.stderr
    )
    assert "cert-manager.io are" not in done.stderr
    assert "example.com" not in done.stderr


def test_a_foreign_or_missing_folder_stops_the_script(tmp_path: Path, cluster: StubCluster) -> None:
    """Only what the bundle was made of is run."""
    script = bundle(tmp_path)
    (script.parent / "003-evil").mkdir()
    (script.parent / "001-a" / "install.sh").unlink()
    done = cluster.run(script)
    assert done.returncode == 1
    assert "003-evil is not part of this bundle" in done.stderr
    assert "001-a/install.sh is missing" in done.stderr
    assert not cluster.calls()


def test_a_dry_run_reads_and_changes_nothing(tmp_path: Path, cluster: StubCluster) -> None:
    """The flag reaches helm, the preflight runs, a failure is not tried again (5.1)."""
    cluster.fail("upgrade-b")
    done = cluster.run(bundle(tmp_path), "--best-effort", DRY_RUN_FLAG="--dry-run=server")
    assert done.returncode == 1
    assert cluster.installs() == ["a", "b"]
    assert all(call.endswith("--dry-run=server") for call in cluster.calls("helm upgrade"))
    assert cluster.calls("kubectl get namespaces")
    changing = ("delete", "create", "taint", "label", "annotate", "rollout", "apply")
    assert not [call for call in cluster.calls("kubectl") if call.split()[1] in changing]


def test_a_client_side_dry_run_asks_no_cluster(tmp_path: Path, cluster: StubCluster) -> None:
    """--dry-run=client works without a cluster."""
    cluster.fail("get-namespaces")
    done = cluster.run(bundle(tmp_path), DRY_RUN_FLAG="--dry-run=client")
    assert done.returncode == 0, done.stderr
    assert not cluster.calls("kubectl")


def dra(*, managed: bool) -> list[Component]:
    """The DRA driver with an operator that installs the GPU driver, or does not."""
    values = {} if managed else {"driver": {"enabled": False}}
    return [
        chart("gpu-operator", values=values),
        chart("nvidia-dra-driver-gpu", namespace="dra", manifests=[("m.yaml", CONFIG_MAP)]),
        chart("z"),
    ]


def test_the_dra_kubelet_plugin_is_restarted(tmp_path: Path, cluster: StubCluster) -> None:
    """After the driver's release and before what follows it; no other DaemonSet (5.1)."""
    cluster.answer("get-nodes", "n1 upgrade-done\nn2\n")
    cluster.answer("get-daemonsets", "daemonset.apps/x-kubelet-plugin\ndaemonset.apps/other\n")
    done = cluster.run(bundle(tmp_path, *dra(managed=True)))
    assert done.returncode == 0, done.stderr
    assert cluster.calls("kubectl rollout") == [
        "kubectl rollout restart daemonset.apps/x-kubelet-plugin --namespace dra",
        "kubectl rollout status daemonset.apps/x-kubelet-plugin --namespace dra --timeout 10m",
    ]
    calls = cluster.calls()
    restart = calls.index(cluster.calls("kubectl rollout")[0])
    upgrades = [place for place, call in enumerate(calls) if call.startswith("helm upgrade")]
    assert upgrades[1] < restart < upgrades[2]


def test_an_unfinished_driver_upgrade_asks_for_another_run(
    tmp_path: Path, cluster: StubCluster
) -> None:
    """No restart, the other releases go on, and the exit status is 2 (5.1)."""
    cluster.answer("get-nodes", "n1 upgrade-done\nn2 pod-restart-required\nn3 upgrade-failed\n")
    done = cluster.run(bundle(tmp_path, *dra(managed=True)))
    assert done.returncode == 2
    assert "NEEDS_RETRY" in done.stderr
    assert "n2 (pod-restart-required), n3 (upgrade-failed)" in done.stderr
    assert not cluster.calls("kubectl rollout")
    assert cluster.installs()[-1] == "z"


def test_a_driver_of_the_host_has_no_upgrade_to_wait_for(
    tmp_path: Path, cluster: StubCluster
) -> None:
    """The check is made only when the operator manages the driver (5.1)."""
    cluster.answer("get-nodes", "n2 pod-restart-required\n")
    cluster.answer("get-daemonsets", "daemonset.apps/x-kubelet-plugin\n")
    done = cluster.run(bundle(tmp_path, *dra(managed=False)), "--no-wait")
    assert done.returncode == 0, done.stderr
    assert cluster.calls("kubectl rollout") == [
        "kubectl rollout restart daemonset.apps/x-kubelet-plugin --namespace dra"
    ]


@pytest.mark.parametrize("call", ["get-nodes", "get-daemonsets", "rollout-restart"])
def test_a_restart_that_fails_fails_the_release(
    tmp_path: Path, cluster: StubCluster, call: str
) -> None:
    """A plugin with an old driver is no success."""
    cluster.answer("get-daemonsets", "daemonset.apps/x-kubelet-plugin\n")
    cluster.fail(call)
    done = cluster.run(bundle(tmp_path, *dra(managed=True)))
    assert done.returncode == 1
    assert cluster.installs()[-1] == "nvidia-dra-driver-gpu"


OLD_TAINT = "skyhook.nvidia.com=runtime-required:NoSchedule"
NEW_TAINT = "nodewright.nvidia.com=runtime-required:NoSchedule"


def nodewright(taint: str = "", version: str = "v0.17.1") -> Component:
    """nodewright-operator, with a taint of its own or the usual one."""
    env = {"runtimeRequiredTaint": taint} if taint else {}
    values = {"controllerManager": {"manager": {"env": env}}}
    return chart("nodewright-operator", namespace="skyhook", values=values, version=version)


@pytest.mark.parametrize(
    ("taint", "listed"),
    [
        ("", "skyhook.nvidia.com=runtime-required:NoSchedule"),
        ("gate=on:NoExecute", "gate=on:NoExecute"),
        ("gate:NoSchedule", "gate=:NoSchedule"),
    ],
)
def test_left_over_node_taints_are_removed(
    tmp_path: Path, cluster: StubCluster, taint: str, listed: str
) -> None:
    """Only that taint, and only while its operator does not run (5.1)."""
    cluster.answer("get-deployments", " 0")
    cluster.answer("get-nodes", f"n1 other=x:NoSchedule {listed}\nn2 other=x:NoSchedule\nn3\n")
    done = cluster.run(bundle(tmp_path, nodewright(taint)))
    assert done.returncode == 0, done.stderr
    assert cluster.calls("kubectl taint") == [f"kubectl taint nodes n1 {listed}-"]


@pytest.mark.parametrize(
    ("version", "taint", "taken"),
    [
        ("v0.17.1", "", [OLD_TAINT]),
        ("v0.18.0", "", [NEW_TAINT, OLD_TAINT]),
        ("1.2.0", "", [NEW_TAINT, OLD_TAINT]),
        ("", "", [NEW_TAINT, OLD_TAINT]),
        ("v0.18.0", "gate=on:NoExecute", ["gate=on:NoExecute", OLD_TAINT]),
        ("v0.18.0", OLD_TAINT, [OLD_TAINT]),
    ],
    ids=["old", "renamed", "newer", "no version", "own taint", "old by value"],
)
def test_from_nodewright_018_both_spellings_of_the_taint_are_removed(
    tmp_path: Path, cluster: StubCluster, version: str, taint: str, taken: list[str]
) -> None:
    """0.18 renamed the taint and still takes the old one away, so either may be left over (5.1)."""
    cluster.answer("get-deployments", " 0")
    cluster.answer("get-nodes", f"n1 {OLD_TAINT} {NEW_TAINT} gate=on:NoExecute\n")
    done = cluster.run(bundle(tmp_path, nodewright(taint, version)))
    assert done.returncode == 0, done.stderr
    assert cluster.calls("kubectl taint") == [f"kubectl taint nodes n1 {each}-" for each in taken]


@pytest.mark.parametrize("case", ["running", "dry run", "not in the bundle"])
def test_node_taints_are_left_alone(tmp_path: Path, cluster: StubCluster, case: str) -> None:
    """While the operator runs they are its own, and a dry run changes nothing."""
    cluster.answer("get-nodes", "n1 skyhook.nvidia.com=runtime-required:NoSchedule\n")
    if case == "running":
        cluster.answer("get-deployments", "0 1")
    held = chart("a") if case == "not in the bundle" else nodewright()
    flag = "--dry-run=server" if case == "dry run" else ""
    done = cluster.run(bundle(tmp_path, held), DRY_RUN_FLAG=flag)
    assert done.returncode == 0, done.stderr
    assert not cluster.calls("kubectl taint")


def test_notes_are_printed_as_they_are(tmp_path: Path, cluster: StubCluster) -> None:
    """A note is text, whatever a shell could read in it (F2)."""
    note = "Warning: it's $(touch pwned) `id` ${HOME} %s \\n EOF"
    done = cluster.run(bundle(tmp_path, notes=(note,)))
    assert f"- {note}" in done.stdout
    assert not list(tmp_path.rglob("pwned"))


def test_output_is_plain_when_it_is_no_terminal(tmp_path: Path, cluster: StubCluster) -> None:
    """No colour codes in a log."""
    cluster.fail("upgrade-a", 1)
    done = cluster.run(bundle(tmp_path))
    assert "\033" not in done.stdout + done.stderr


@pytest.mark.parametrize("rich", [False, True])
def test_deploy_sh_passes_shellcheck(tmp_path: Path, rich: bool) -> None:
    """bash parses it, and shellcheck finds nothing of any severity (5.1)."""
    parts = [*dra(managed=True), nodewright(), component("m", manifests=[("m.yaml", CONFIG_MAP)])]
    script = bundle(
        tmp_path, *(parts if rich else [chart("a")]), notes=("it's $x",) if rich else ()
    )
    bash = tools.program("bash", "install bash")
    assert subprocess.run([bash, "-n", str(script)], check=False).returncode == 0
    done = subprocess.run(
        [tools.shellcheck(), str(script)], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0
