"""Every command of the user guide, as it stands on the page and in its order, on a real cluster.

`NAMESPACE` and the like are filled in; everything else runs in bash, with real helm and kubectl. Between
the commands happens what a reader's cluster does by itself: cert-manager signs, DNS knows the Service,
somebody submits a workload. A command that is not listed here fails the test.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
import yaml
from tests.cluster import preflight_release as releases
from tests.cluster.gang_replicas import CONTRIBUTOR, POD_GROUP_CRD, install
from tests.cluster.service_proxy import named, proxied
from tests.cluster.workloads import kubectl, pod_becomes, secret
from tests.controlplane.client import Client, Document, eventually
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.plane import ControlPlane
from tests.preflight_guide.guide_blocks import ROOT, blocks, commands, filled, programs, run

pytestmark = pytest.mark.cluster
RELEASE = "nvsentinel"


class Expected(NamedTuple):
    """What a command, found by how it begins, comes to."""

    begins: str
    words: str
    status: int = 0
    before: str = ""
    after: str = ""


#: In the order of the page.
EXPECTED = [
    Expected("helm install preflight", "STATUS: deployed", after="sign"),
    Expected("kubectl --namespace nvsentinel rollout", "successfully rolled out", after="reach"),
    Expected("helm test preflight", "Phase:          Succeeded"),
    Expected("kubectl label namespace NAMESPACE", "labeled", after="opted"),
    Expected("aicr preflight explain", "gets checks (injected)"),
    Expected("kubectl --namespace NAMESPACE create --dry-run", "name: preflight-nccl-allreduce"),
    Expected("kubectl --namespace nvsentinel logs", '"msg":"Serving"'),
    Expected("aicr preflight gangs --discovery volcano", "scheduling.volcano.sh"),
    Expected("aicr preflight gangs --discovery osmo-with-kai", "osmo.group_uuid"),
    Expected("kubectl --namespace nvsentinel get configmap preflight", "name: regcred"),
    Expected("kubectl --namespace NAMESPACE get secret", "regcred", before="secret"),
    Expected("kubectl --namespace NAMESPACE get pod POD", ": aicr.local/", before="submit"),
    Expected("kubectl --namespace NAMESPACE get configmap", "gang_id: kubernetes-NAMESPACE-train"),
    Expected("aicr preflight gangs --namespace", "complete"),
    Expected("kubectl --namespace NAMESPACE get preflightconfig", "volcano", before="configure"),
    Expected("kubectl --namespace NAMESPACE get preflightconfig default", "type: Ready"),
    Expected("helm show values", "initContainerPlacement: append"),
    Expected("kubectl delete mutatingwebhookconfiguration", "deleted"),
    Expected("helm upgrade preflight", "has been upgraded", after="trust"),
    Expected("kubectl get --raw", "preflight_injection_total{"),
    Expected(
        "kubectl --namespace NAMESPACE get pod POD", "preflight-nccl-loopback\t1", before="fail"
    ),
    Expected("kubectl --namespace NAMESPACE logs POD", "ended on"),
    Expected("kubectl describe node", "Ready"),
    Expected("kubectl get events", ""),
    Expected("kubectl --namespace NAMESPACE get events", "PreflightInjected"),
    Expected("aicr preflight run nccl-loopback", "nvidia-smi", status=6),
    Expected("aicr preflight thresholds", "nccl-loopback"),
    Expected("kubectl label namespace NAMESPACE", "unlabeled"),
    Expected("helm uninstall", "uninstalled"),
]


class Surroundings:
    """What a reader's cluster does by itself, between the commands."""

    def __init__(self, plane: ControlPlane, namespace: str, stack: ExitStack) -> None:
        self.plane, self.namespace, self._stack = plane, namespace, stack
        self.api: Client = plane.client()
        self._authority = trustme.CA()
        place: Document = {
            "schedulerName": "default-scheduler",
            "nodeSelector": {"test.aicr.run/pool": "runs"},
        }
        anchor: Document = {"schedulingGroup": {"podGroupName": "train"}}
        self.pod: Document = releases.gpu_pod("train-0", **place, **anchor)
        self._failing: Document = releases.gpu_pod("train-1", **place)
        [main] = self._failing["spec"]["containers"]
        main["env"] = [{"name": "NCCL_STANDIN_EXIT", "value": "1"}]

    def sign(self) -> None:
        """cert-manager signs, and tells the API server whom to trust."""
        self.api.create(releases.certificate(self._authority, RELEASE), RELEASE)
        self.trust()

    def trust(self) -> None:
        """cert-manager's injector."""
        releases.trust(self.api, self._authority)

    def reach(self) -> None:
        """The network and DNS."""
        proxy = self._stack.enter_context(proxied(self.plane, RELEASE, "preflight"))
        self._stack.enter_context(named(self.plane, RELEASE, "preflight", proxy.address))

    def opted(self) -> None:
        """A moment passes."""
        eventually(
            "the label to count",
            lambda: releases.order(
                releases.dry_run(self.api, self.namespace, releases.gpu_pod("probe"))
            ),
        )

    def secret(self) -> None:
        """Somebody has made the pull secret."""
        self.api.create(secret("regcred", {"a": "b"}), self.namespace)

    def submit(self) -> None:
        """Somebody submits a gang of one."""
        releases.native_group(self.api, self.namespace, 1)
        self.api.create(self.pod, self.namespace)
        pod_becomes(self.api, self.namespace, "train-0", "Running")

    def configure(self) -> None:
        """The page's PreflightConfig and ClusterRole are applied, Volcano being installed."""
        install(self.api, POD_GROUP_CRD)
        for block in blocks("yaml"):
            if block.document().get("kind") in ("PreflightConfig", "ClusterRole"):
                entry = filled(block.text, {"NAMESPACE": self.namespace})
                done = kubectl(self.plane.kubeconfig, "apply", "-f", "-", entry=entry)
                assert done.returncode == 0, done.stderr

        def active() -> bool:
            words = ("-n", self.namespace, "get", "preflightconfig", "--no-headers")
            return "True" in kubectl(self.plane.kubeconfig, *words).stdout

        eventually("the PreflightConfig", active)

    def fail(self) -> None:
        """A pod comes whose loopback check fails."""
        eventually("admissions", lambda: self.api.create(self._failing, self.namespace))
        found = pod_becomes(self.api, self.namespace, "train-1", "Failed")
        assert "terminated" not in found["status"]["containerStatuses"][0]["state"]


@pytest.fixture
def surroundings(plane: ControlPlane, api: Client) -> Iterator[Surroundings]:
    """A cluster without preflight, and after the test without it again."""
    releases.sweep(api)
    releases.cert_manager_kinds(api)
    namespace = f"team-{secrets.token_hex(3)}"
    make_namespace(api, namespace)
    try:
        with ExitStack() as stack:
            yield Surroundings(plane, namespace, stack)
    finally:
        with contextlib.suppress(AssertionError):
            releases.helm(plane, "uninstall", "preflight", "-n", RELEASE)
        for one in (namespace, RELEASE):
            api.delete("Namespace", one)
        releases.sweep(api)


@pytest.mark.covers("P-115", "P-116", "P-118", "P-121", "P-183")
def test_every_command_of_the_guide(surroundings: Surroundings, tmp_path: Path) -> None:
    """One after the other, each with the answer that the page leads one to expect."""
    (tmp_path / "charts").symlink_to(ROOT / "charts")
    values = releases.values_file(
        surroundings.plane,
        "guide",
        {"injectedImagePullSecrets": [{"name": "regcred"}]},
    )
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(json.loads(values.read_text())))
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(surroundings.pod))
    environment = {
        **os.environ,
        "PATH": f"{programs(tmp_path)}:/usr/bin:/bin",
        "KUBECONFIG": str(surroundings.plane.kubeconfig),
    }
    names = {"NAMESPACE": surroundings.namespace, "NODE": "runs-1", "SECRET": "regcred"}
    left = list(EXPECTED)
    failing = False
    for heading, command in commands():
        failing = failing or heading.startswith("1. Read the exit code")
        assert left, f"not listed: {command}"
        expected = left.pop(0)
        assert command.startswith(expected.begins), (command, expected.begins)
        happening: dict[str, Callable[[], None]] = {
            name: getattr(surroundings, name) for name in (expected.before, expected.after) if name
        }
        if expected.before:
            happening[expected.before]()
        filled_in = filled(command, {**names, "POD": "train-1" if failing else "train-0"})
        status, answer = run(filled_in, tmp_path, environment)
        assert status == expected.status, (filled_in, answer)
        assert filled(expected.words, names) in answer, (filled_in, answer)
        if expected.after:
            happening[expected.after]()
    assert left == []


@pytest.mark.covers("P-096", "P-142", "P-155")
def test_the_objects_of_the_guide_are_taken_by_the_api_server(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """As they stand; the Workload of 1.35 is not served by this server, and says so."""
    crd = ROOT / "charts" / "preflight" / "crds" / "preflightconfigs.yaml"
    install(api, yaml.safe_load(crd.read_text()))
    for block in blocks("yaml"):
        document = block.document()
        if "apiVersion" not in document:
            continue
        entry = filled(block.text, {"NAMESPACE": namespace})
        done = kubectl(plane.kubeconfig, "apply", "--dry-run=server", "-f", "-", entry=entry)
        if document["kind"] == "Workload":
            assert 'no matches for kind "Workload" in version "scheduling.k8s.io/v1alpha1"' in (
                done.stderr
            )
        else:
            assert done.returncode == 0, done.stderr
    # The role of the page is the one with which gangs of Volcano are tested.
    roles = [
        one.document() for one in blocks("yaml") if one.document().get("kind") == "ClusterRole"
    ]
    assert [one["rules"] for one in roles] == [CONTRIBUTOR["rules"]]
