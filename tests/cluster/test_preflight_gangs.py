"""Gangs on a real cluster: the real scheduler, real pod IPs, checks that read mounted files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cluster.gang_replicas import (
    CHECK,
    POD_GROUP_CRD,
    VOLCANO,
    Replica,
    becomes_complete,
    grant,
    install,
    member,
    remove_volcano_group,
    state,
    volcano_group,
)
from tests.cluster.workloads import kubectl, pod_becomes, pod_is_gone
from tests.controlplane.client import Client, eventually
from tests.controlplane.plane import ControlPlane

from aicr.errors import NOT_FOUND, AicrError
from aicr.preflight.gang.naming import config_map_name

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).resolve().parents[2]
NAMES = [f"w-{n}" for n in range(4)]


def native_group(api: Client, namespace: str, minimum: int) -> None:
    """A PodGroup of Kubernetes itself."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}},
    }
    api.create(group, namespace)


def admitted(api: Client, replica: Replica, namespace: str, names: list[str], native: bool) -> None:
    """Admit and create pods."""
    for name in names:
        api.create(replica.admit(member(name, native=native), namespace), namespace)


@pytest.mark.covers("J1", "P-014", "P-094", "P-099", "P-100", "P-119", "P-130", "P-131", "P-132")
@pytest.mark.covers("P11-85")
def test_a_native_gang_of_four_forms_and_a_replaced_pod_makes_the_next_generation(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """Its checks see the peers in their mounted files; with the group the ConfigMap goes."""
    name = config_map_name(f"kubernetes-{namespace}-train")
    with Replica(grant(api, plane, namespace), namespace) as replica:
        native_group(api, namespace, 4)
        admitted(api, replica, namespace, NAMES[:3], native=True)
        eventually("the ConfigMap", lambda: state(api, namespace, name).expected == 4)
        assert not state(api, namespace, name).complete
        admitted(api, replica, namespace, NAMES[3:], native=True)
        first = becomes_complete(api, namespace, name, 1, NAMES)
        for one in NAMES:
            pod_becomes(api, namespace, one, "Running", 120)
        said = api.logs(namespace, "w-2", container=CHECK).splitlines()
        assert said[0] == "generation 1"
        assert said[1:] == [f"{p.name};{p.ip};{p.rank};{p.checks}" for p in first.peers]
        owner = api.get("ConfigMap", name, namespace)["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"]) == ("PodGroup", "train")

        api.delete("Pod", "w-1", namespace)
        eventually("the loss", lambda: state(api, namespace, name).generation == 2)
        pod_is_gone(api, namespace, "w-1")
        admitted(api, replica, namespace, ["w-1-x7k2"], native=True)
        members = ["w-0", "w-1-x7k2", "w-2", "w-3"]
        becomes_complete(api, namespace, name, 2, members)
        pod_becomes(api, namespace, "w-1-x7k2", "Running", 120)
        said = api.logs(namespace, "w-1-x7k2", container=CHECK).splitlines()
        assert said[0] == "generation 2"
        assert [line.split(";")[0] for line in said[1:]] == members

        for one in members:
            api.delete("Pod", one, namespace)
        eventually("the end of the gang", lambda: not state(api, namespace, name).peers)
        api.delete("PodGroup", "train", namespace)
        eventually("the ConfigMap to be collected", lambda: _gone(api, namespace, name), 90)


def _gone(api: Client, namespace: str, name: str) -> bool:
    return not any(one["metadata"]["name"] == name for one in api.list("ConfigMap", namespace))


@pytest.mark.covers("J4", "P-107", "P-111", "P-139", "P-148", "P-154", "P-155", "P-156", "P11-69")
def test_a_volcano_gang_whose_group_comes_late_is_edited_and_is_used_again(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """Under a PreflightConfig of its namespace, whose status kubectl prints.

    The chart grants nothing for Volcano; the ClusterRole that a platform adds does, by its label alone.
    """
    name = config_map_name(f"volcano-{namespace}-train")
    install(api, POD_GROUP_CRD)
    crd = ROOT / "charts" / "preflight" / "crds" / "preflightconfigs.yaml"
    install(api, yaml.safe_load(crd.read_text()))
    with Replica(grant(api, plane, namespace), namespace) as replica:
        config = {
            "apiVersion": "preflight.nvsentinel.nvidia.com/v1alpha1",
            "kind": "PreflightConfig",
            "metadata": {"name": "default"},
            "spec": {"gangDiscovery": VOLCANO},
        }
        path = f"/apis/preflight.nvsentinel.nvidia.com/v1alpha1/namespaces/{namespace}"
        api.call("POST", f"{path}/preflightconfigs", config)

        def listed() -> str | None:
            found = kubectl(plane.kubeconfig, "-n", namespace, "get", "preflightconfig")
            return found.stdout if "True" in found.stdout else None

        lines = eventually("a status", listed).splitlines()
        assert lines[0].split() == ["NAME", "DISCOVERER", "READY", "AGE"]
        assert lines[1].split()[:3] == ["default", "volcano", "True"]

        admitted(api, replica, namespace, NAMES, native=False)
        eventually("a peer", lambda: state(api, namespace, name).peers or None)
        assert state(api, namespace, name).expected == 0
        volcano_group(api, namespace, 5)
        eventually("the size", lambda: state(api, namespace, name).expected == 5)
        volcano_group(api, namespace, 4, change=True)
        becomes_complete(api, namespace, name, 1, NAMES)
        for one in NAMES:
            pod_becomes(api, namespace, one, "Running", 120)

        for one in NAMES:
            api.delete("Pod", one, namespace)
        for one in NAMES:
            pod_is_gone(api, namespace, one)
        eventually("the end of the gang", lambda: not state(api, namespace, name).peers)
        remove_volcano_group(api, namespace)
        volcano_group(api, namespace, 2)
        admitted(api, replica, namespace, NAMES[:2], native=False)

        def again() -> bool:
            found = state(api, namespace, name)
            return found.complete and found.expected == 2

        eventually("the second gang", again)
        assert [peer.name for peer in state(api, namespace, name).peers] == NAMES[:2]


@pytest.mark.covers("P-112", "P-108")
def test_the_charts_own_role_is_enough_for_the_scheduler_in_its_values(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """Volcano as the cluster's default: its PodGroups are read, and give owner and size."""
    name = config_map_name(f"volcano-{namespace}-train")
    install(api, POD_GROUP_CRD)
    kubeconfig = grant(api, plane, namespace, VOLCANO)
    with Replica(kubeconfig, namespace, discovery=VOLCANO) as replica:
        volcano_group(api, namespace, 2)
        admitted(api, replica, namespace, NAMES[:2], native=False)
        becomes_complete(api, namespace, name, 1, NAMES[:2])
        owner = api.get("ConfigMap", name, namespace)["metadata"]["ownerReferences"][0]
        assert owner["apiVersion"] == "scheduling.volcano.sh/v1beta1"


@pytest.mark.covers("J12")
def test_gangs_survive_a_killed_api_server_and_the_end_of_the_leader(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """Decision 83. Two replicas; a pod is lost afterwards each time, and the next generation forms."""
    name = config_map_name(f"kubernetes-{namespace}-train")
    kubeconfig = grant(api, plane, namespace)
    with Replica(kubeconfig, namespace, "one") as one:
        eventually("a leader", lambda: one.leads())
        with Replica(kubeconfig, namespace, "two") as two:
            native_group(api, namespace, 2)
            admitted(api, two, namespace, ["a", "b"], native=True)
            becomes_complete(api, namespace, name, 1, ["a", "b"])
            assert (one.leads(), two.leads()) == (True, False)

            plane.apiserver.kill()
            plane.apiserver.start()
            plane.wait_ready()
            eventually("both to be ready", lambda: not (one.unready() or two.unready()))

            def leading() -> tuple[Replica, Replica] | None:
                who = (one.leads(), two.leads())
                return {(True, False): (one, two), (False, True): (two, one)}.get(who)

            leader, other = eventually("one leader", leading)
            assert state(api, namespace, name).generation == 1

            leader.stop()
            eventually("the other to lead", lambda: other.leads())
            api.delete("Pod", "b", namespace)
            pod_is_gone(api, namespace, "b")
            admitted(api, other, namespace, ["c"], native=True)
            becomes_complete(api, namespace, name, 2, ["a", "c"])


@pytest.mark.covers("P-015", "P-150")
def test_a_default_whose_crd_is_not_installed_ends_the_start(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """With the words of the specification, from a real server's discovery."""
    block = {**VOLCANO, "podGroupGVR": {**VOLCANO["podGroupGVR"], "version": "v9"}}
    with (
        pytest.raises(AicrError) as caught,
        Replica(grant(api, plane, namespace), namespace, discovery=block),
    ):
        pass
    assert caught.value.code == NOT_FOUND
    assert str(caught.value).startswith("[NOT_FOUND] failed to create gang discoverer resolver: ")
    assert "gangDiscovery.podGroupGVR validation failed" in str(caught.value)


@pytest.mark.covers("P-148")
def test_the_crd_of_the_chart_takes_what_the_controller_writes(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """Of two objects the younger is told that it is not active."""
    install(api, POD_GROUP_CRD)
    crd = ROOT / "charts" / "preflight" / "crds" / "preflightconfigs.yaml"
    install(api, yaml.safe_load(crd.read_text()))
    path = f"/apis/preflight.nvsentinel.nvidia.com/v1alpha1/namespaces/{namespace}/preflightconfigs"
    with Replica(grant(api, plane, namespace), namespace):
        for name in ("a", "b"):
            document = {
                "apiVersion": "preflight.nvsentinel.nvidia.com/v1alpha1",
                "kind": "PreflightConfig",
                "metadata": {"name": name},
                "spec": {"gangDiscovery": VOLCANO},
            }
            api.call("POST", path, document)

        def conditions() -> list[str] | None:
            items = api.call("GET", path)["items"]
            found = [one.get("status", {}).get("conditions", []) for one in items]
            return [json.dumps(one) for one in found] if all(found) else None

        first, second = eventually("both statuses", conditions)
        assert "discoverer active" in first
        assert "already active in this namespace" in second
