"""Preflight from end to end: the chart by real Helm, the webhook as a pod behind its Service, real gangs.

Only `tests.cluster.preflight_release` says what is stood in for. A table at the end has what was seen.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterator

import pytest
import yaml
from tests.cluster.gang_replicas import (
    CONTRIBUTOR,
    POD_GROUP_CRD,
    VOLCANO,
    becomes_complete,
    install,
    volcano_group,
)
from tests.cluster.preflight_release import (
    ALLREDUCE,
    DCGM,
    LABEL,
    LOOPBACK,
    RELEASE,
    Release,
    checked,
    dry_run,
    gang_maps,
    gpu_pod,
    helm,
    installed,
    member,
    native_group,
    order,
    tell,
)
from tests.cluster.service_proxy import named
from tests.cluster.workloads import kubectl, pod_becomes, pod_is_gone
from tests.controlplane.client import ApiError, Client, Document, eventually
from tests.controlplane.fixtures import make_namespace
from tests.controlplane.plane import ControlPlane

from aicr.preflight.gang.naming import config_map_name
from aicr.preflight.names import CHECKS_ANNOTATION

pytestmark = pytest.mark.cluster
NAMES = [f"w-{n}" for n in range(4)]


@pytest.fixture(scope="module")
def release(plane: ControlPlane) -> Iterator[Release]:
    """The chart with its own values; only the images' tag is given."""
    with installed(plane, f"gates-{secrets.token_hex(3)}") as made:
        yield made


@pytest.fixture
def team(release: Release, namespace: str) -> str:
    """A namespace that has opted in, as the user guide says."""
    words = ("label", "namespace", namespace, f"{LABEL}=enabled")
    assert kubectl(release.plane.kubeconfig, *words).returncode == 0
    # The API server's view of namespaces follows within a moment.
    eventually("the label to count", lambda: checked(release.api, namespace, gpu_pod("p")))
    return namespace


@pytest.fixture(scope="module")
def said(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Lines of what was seen, printed when the file has ended."""
    lines: list[str] = []
    yield lines
    tell(request.config, lines)


def test_helm_installs_the_chart_and_its_own_test_passes(release: Release, said: list[str]) -> None:
    """Every object is taken by the API server; what `helm test` runs succeeds as a pod."""
    listed = helm(release.plane, "status", RELEASE, "-n", release.namespace, "-o", "yaml")
    assert yaml.safe_load(listed)["info"]["status"] == "deployed"
    with named(release.plane, release.namespace, "preflight", release.proxy.address):
        tested = helm(release.plane, "test", RELEASE, "-n", release.namespace)
    phase = next(line for line in tested.splitlines() if line.startswith("Phase:"))
    assert phase.split() == ["Phase:", "Succeeded"]
    said.append(f"helm install: deployed; helm test: {phase.split()[1]}")


@pytest.mark.covers("P-017", "P-118")
def test_a_native_gang_of_four_is_injected_completes_and_replaces_a_pod(
    release: Release, team: str, said: list[str]
) -> None:
    """Guaranteed pods stay Guaranteed; a replaced pod opens the next generation, and nobody mixes them."""
    api = release.api
    began = time.monotonic()
    native_group(api, team, 4)
    stored = [api.create(member(name, native=True), team) for name in NAMES]
    for made in stored:
        assert order(made) == [DCGM, LOOPBACK, ALLREDUCE]
        assert made["status"]["qosClass"] == "Guaranteed"
        assert {item["image"].partition(":")[2] for item in made["spec"]["initContainers"]} == {
            "test"
        }
    name = config_map_name(f"kubernetes-{team}-train")
    becomes_complete(api, team, name, 1, NAMES)
    formed = time.monotonic() - began
    for one in NAMES:
        pod_becomes(api, team, one, "Running")
        assert checked_with(api, team, one) == (1, NAMES)
    api.delete("Pod", "w-1", team)
    pod_is_gone(api, team, "w-1")
    api.create(member("w-1-x", native=True), team)
    now = ["w-0", "w-1-x", "w-2", "w-3"]
    becomes_complete(api, team, name, 2, now)
    pod_becomes(api, team, "w-1-x", "Running")
    assert checked_with(api, team, "w-1-x") == (2, now)
    said.append(
        f"native gang of 4: injected, complete {formed:.1f} s after the first pod; "
        "one pod replaced: generation 2"
    )


@pytest.mark.covers("P-140", "P-154")
def test_a_volcano_gang_of_four_under_a_preflight_config(
    release: Release, team: str, said: list[str]
) -> None:
    """One namespace uses Volcano: no Helm upgrade, no restart, and the platform's one ClusterRole."""
    api, config = release.api, release.plane.kubeconfig
    install(api, POD_GROUP_CRD)
    before = [one["metadata"]["uid"] for one in release.pods()]
    document = {
        "apiVersion": "preflight.nvsentinel.nvidia.com/v1alpha1",
        "kind": "PreflightConfig",
        "metadata": {"name": "default", "namespace": team},
        "spec": {"gangDiscovery": VOLCANO},
    }
    both = yaml.safe_dump_all([CONTRIBUTOR, document])
    applied = kubectl(config, "apply", "-f", "-", entry=both)
    assert applied.returncode == 0, applied.stderr

    def status() -> bool:
        found = kubectl(config, "-n", team, "get", "preflightconfig", "default", "--no-headers")
        return found.stdout.split()[:3] == ["default", "volcano", "True"]

    eventually("the discoverer", status)
    began = time.monotonic()
    volcano_group(api, team, 4)
    for one in NAMES:
        assert order(api.create(member(one, native=False), team)) == [DCGM, LOOPBACK, ALLREDUCE]
    name = config_map_name(f"volcano-{team}-train")
    becomes_complete(api, team, name, 1, NAMES)
    formed = time.monotonic() - began
    for one in NAMES:
        pod_becomes(api, team, one, "Running")
        assert checked_with(api, team, one) == (1, NAMES)
    api.delete("Pod", "w-2", team)
    pod_is_gone(api, team, "w-2")
    api.create(member("w-2", native=False), team)
    becomes_complete(api, team, name, 2, NAMES)
    pod_becomes(api, team, "w-2", "Running")
    assert checked_with(api, team, "w-2") == (2, NAMES)
    assert [one["metadata"]["uid"] for one in release.pods()] == before
    said.append(
        f"volcano gang of 4: injected, complete {formed:.1f} s after the first pod; "
        "one pod replaced under its own name: generation 2"
    )


def test_refusals_dry_runs_and_other_namespaces(
    release: Release, team: str, said: list[str]
) -> None:
    """An unknown check is refused by name, a dry run writes nothing, a plain namespace is left alone."""
    api = release.api
    wrong = gpu_pod("wrong", annotations={CHECKS_ANNOTATION: "nvlink"})
    with pytest.raises(ApiError) as caught:
        api.create(wrong, team)
    assert (caught.value.status, caught.value.message) == (
        403,
        'admission webhook "preflight.nvsentinel.nvidia.com" denied the request: failed to inject '
        f"init containers: annotation {CHECKS_ANNOTATION} references unknown checks: nvlink "
        f"(configured: {DCGM}, {LOOPBACK}, {ALLREDUCE})",
    )
    native_group(api, team, 2)
    before = everything(api, team)
    dry = dry_run(api, team, gpu_pod("dry", schedulingGroup={"podGroupName": "train"}))
    assert order(dry) == [DCGM, LOOPBACK, ALLREDUCE]
    # A gang's ConfigMap would be there before the answer was.
    assert everything(api, team) == before
    # Alone, a pod has nobody to reduce with.
    assert order(dry_run(api, team, gpu_pod("alone"))) == [DCGM, LOOPBACK]
    other = f"{team[:50]}-plain"
    make_namespace(api, other)
    stored = api.create(gpu_pod("plain", schedulingGroup={"podGroupName": "train"}), other)
    assert order(stored) == []
    [volume] = stored["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert gang_maps(api, other) == []
    api.delete("Namespace", other)
    said.append(f"unknown check: {caught.value.status} {caught.value.message}")
    said.append("dry run: the same patch, nothing written; namespace without the label: untouched")


def test_what_the_chart_grants_is_enough(release: Release, said: list[str]) -> None:
    """After all that: the webhook has logged no failure, and no look-up of an admission has failed."""
    [only] = release.pods()
    log = release.api.logs(release.namespace, only["metadata"]["name"])
    lines = [json.loads(line) for line in log.splitlines()]
    assert [one for one in lines if one["level"] == "ERROR"] == []
    # A new contributor role takes a moment to be collected; the look-up is tried again (seed, RBAC).
    refused = [one for one in lines if "forbidden" in json.dumps(one).lower()]
    assert [one for one in refused if "scheduling.volcano.sh" not in json.dumps(one)] == []
    place = (
        f"/api/v1/namespaces/{release.namespace}/services/preflight-metrics:metrics/proxy/metrics"
    )
    metrics = release.api.request("GET", place).decode()
    failed = re.findall(r"^preflight_lookup_failures_total\{.*\} ([1-9].*)$", metrics, re.MULTILINE)
    assert failed == []
    said.append("the webhook's log: no error, nothing forbidden; look-ups that failed: 0")


def everything(api: Client, namespace: str) -> set[tuple[str, str, str]]:
    """What preflight could write, with versions."""
    kinds = ("ConfigMap", "Lease", "Pod", "PodGroup")
    return {
        (kind, one["metadata"]["name"], one["metadata"]["resourceVersion"])
        for kind in kinds
        for one in api.list(kind, namespace)
    }


def checked_with(api: Client, namespace: str, name: str) -> tuple[int, list[str]]:
    """Generation and peers that the pod's gang check passed with; the peers have their pods' addresses."""
    first, *lines = api.logs(namespace, name, container=ALLREDUCE).splitlines()
    peers: dict[str, str] = {line.split(";")[0]: line.split(";")[1] for line in lines}
    found: list[Document] = api.list("Pod", namespace)
    own = {one["metadata"]["name"]: one["status"].get("podIP") for one in found}
    assert peers.items() <= own.items()
    return int(first.removeprefix("generation ")), list(peers)
