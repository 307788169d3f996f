"""The K8s measurement, against a small API server: what is read, and what failing costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.collectors.clusters import (
    CLUSTER_POLICY,
    KYVERNO_POLICY,
    MARIADB,
    SLINKY,
    STORAGE_CLASS,
    custom,
    data,
    fill,
    node,
    pod,
    server,
)
from tests.kube.fakeapi import FakeApi, refuse
from tests.kube.loopback import cluster, run

from aicr.collectors import kubernetes, operators
from aicr.collectors.readings import Collected
from aicr.errors import NOT_FOUND, UNAUTHORIZED, AicrError

FORBIDDEN = refuse(403, "Forbidden", "you may not")


def collect(api: FakeApi, *objects: Any, provider: str = "eks") -> Collected:
    """The measurement of a cluster with *objects*."""

    async def body() -> Collected:
        async with cluster(api) as (fake, client):
            await fill(fake, *objects)
            return await kubernetes.collect(client, node=node(), provider=provider)

    return run(body())


@pytest.mark.parametrize(
    ("provider_id", "service"),
    [
        ("aws:///us-west-2a/i-1", "eks"),
        ("gce://project/zone/name", "gke"),
        ("azure:///subscriptions/x", "aks"),
        ("oci://ocid1.instance.oc1", "oke"),
        ("ocid1.instance.oc1.phx.abc", "oke"),
        ("kind://docker/kind/kind-worker", "kind"),
        ("metal3://uid", "metal3"),
        ("RKE2://x", "rke2"),
        ("", ""),
        ("i-12345", ""),
    ],
)
def test_the_service_follows_from_the_providers_scheme(provider_id: str, service: str) -> None:
    """Known schemes are mapped, others stand for themselves, none is no service."""
    assert kubernetes.provider_of(provider_id) == service


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("nginx", ("nginx", "latest")),
        ("nginx:1.27", ("nginx", "1.27")),
        ("registry.test:5000/team/app", ("app", "latest")),
        ("registry.test:5000/team/app:v2@sha256:abc", ("app", "v2")),
        ("app@sha256:abc", ("app", "latest")),
        ("", ("", "latest")),
    ],
)
def test_an_image_is_its_last_name_and_tag(reference: str, expected: tuple[str, str]) -> None:
    """Registry, port and digest go; no tag is latest."""
    assert kubernetes.image_of(reference) == expected


def test_the_node_is_read_with_what_it_says() -> None:
    """Runtime comes apart at its scheme; empty fields are left out."""
    assert kubernetes.node_readings(node()) == {
        "source-node": "gpu-1",
        "provider": "eks",
        "provider-id": "aws:///us-west-2a/i-1",
        "container-runtime-id": "containerd://1.7.27",
        "container-runtime-name": "containerd",
        "container-runtime-version": "1.7.27",
        "kubelet-version": "v1.34.1-eks-113cf36",
        "kernel-version": "6.8.0-1028-aws",
        "operating-system": "linux",
        "os-image": "Ubuntu 24.04.1 LTS",
    }
    assert kubernetes.node_readings({"metadata": {"name": "n"}}) == {"source-node": "n"}


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"NODE_NAME": "a", "HOSTNAME": "b"}, "a"),
        ({"NODE_NAME": " ", "KUBERNETES_NODE_NAME": "k", "HOSTNAME": "b"}, "k"),
        ({"HOSTNAME": "b"}, "b"),
        ({}, ""),
    ],
)
def test_the_first_variable_that_is_not_empty_names_the_node(
    environ: dict[str, str], name: str
) -> None:
    """NODE_NAME, KUBERNETES_NODE_NAME, HOSTNAME."""
    assert kubernetes.node_name(environ) == name


def test_images_of_all_kinds_of_containers_are_listed() -> None:
    """Init and ephemeral containers count; a later pod's tag wins."""
    found = collect(
        server(),
        pod("a", "registry.test/app:1", initContainers=[{"name": "i", "image": "setup:3"}]),
        pod("b", "other.test/app:2", ephemeralContainers=[{"name": "e", "image": "debug"}]),
    )
    assert data(found, "image") == {"app": "2", "debug": "latest", "setup": "3"}
    assert data(found, "server") == {"version": "v1.36.2"}


def test_every_cluster_policy_is_flattened_in_whatever_group_it_is() -> None:
    """Lists as JSON, empty lists dropped, booleans and numbers as text."""
    spec = {
        "driver": {"enabled": True, "version": "580.95.05", "rdma": {"enabled": False}},
        "daemonsets": {"tolerations": [{"key": "a"}], "labels": []},
        "count": 3,
        "nothing": None,
    }
    found = collect(
        server(CLUSTER_POLICY, KYVERNO_POLICY),
        custom(CLUSTER_POLICY, "cluster-policy", spec),
        custom(KYVERNO_POLICY, "k", {"background": True}),
    )
    assert data(found, "policy") == {
        "background": "true",
        "count": "3",
        "daemonsets.tolerations": '[{"key":"a"}]',
        "driver.enabled": "true",
        "driver.rdma.enabled": "false",
        "driver.version": "580.95.05",
    }


def test_a_cluster_without_policies_has_an_empty_subtype() -> None:
    """Discovery was whole and found none."""
    found = collect(server())
    assert data(found, "policy") == {}
    assert found.missing == []


def test_a_forbidden_list_costs_its_subtype_and_is_named() -> None:
    """403 on pods is no cluster without images (decision 9)."""
    api = server()
    api.next("/api/v1/pods", FORBIDDEN)
    found = collect(api, pod("a", "app:1"))
    assert "image" not in [one["subtype"] for one in found.subtypes]
    assert [(each.name, each.error.code) for each in found.missing] == [("K8s.image", UNAUTHORIZED)]
    assert data(found, "server") == {"version": "v1.36.2"}


def test_groups_that_cannot_be_reached_are_remarked() -> None:
    """A policy could be in them, so their absence is not silent."""
    api = server(MARIADB)
    api.stale.add("k8s.mariadb.com/v1alpha1")
    found = collect(api)
    assert found.remarks == [
        "API groups that cannot be reached were not searched: k8s.mariadb.com/v1alpha1"
    ]


@pytest.mark.parametrize(("present", "reading"), [(True, "installed"), (False, "absent")])
def test_the_old_plugin_of_oke_is_looked_for_on_oke_alone(present: bool, reading: str) -> None:
    """A DaemonSet of that name in kube-system; other services have no such subtype."""
    plugin = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "nvidia-gpu-device-plugin", "namespace": "kube-system", "uid": "1"},
    }
    objects = [plugin] if present else []
    found = data(collect(server(), *objects, provider="oke"), "oke-legacy-plugin")
    assert found["nvidia-gpu-device-plugin"] == reading
    assert found.get("daemonset") == ("kube-system/nvidia-gpu-device-plugin" if present else None)
    elsewhere = collect(server(), *objects, provider="eks")
    assert "oke-legacy-plugin" not in [one["subtype"] for one in elsewhere.subtypes]


def test_a_machine_that_is_no_node_is_told_what_to_do() -> None:
    """The error says which name was looked for, and the way to measure a node."""

    async def body() -> list[AicrError]:
        errors = []
        async with cluster(server()) as (_, client):
            for name in ("laptop", ""):
                with pytest.raises(AicrError) as caught:
                    await kubernetes.read_node(client, name)
                errors.append(caught.value)
        return errors

    named, unnamed = run(body())
    assert (named.code, unnamed.code) == (NOT_FOUND, NOT_FOUND)
    assert '"laptop"' in named.message
    assert "--agent" in named.hint
    assert "NODE_NAME" in unnamed.message


def operator(api: FakeApi, *objects: Any) -> Collected:
    """Only the subtypes about operators."""

    async def body() -> Collected:
        found = Collected("K8s")
        async with cluster(api) as (fake, client):
            await fill(fake, *objects)
            await operators.add(found, client)
        return found

    return run(body())


def test_an_operator_that_is_not_there_is_absent() -> None:
    """Discovery said so, for each of them."""
    found = operator(server())
    assert data(found, "mariadb-operator") == {"collection-state": "absent", "api-available": False}
    assert data(found, "percona-server-mongodb")["collection-state"] == "absent"
    assert data(found, "slinky-slurm") == {
        "api-available": False,
        "detected": False,
        "collection-state": "absent",
    }
    assert found.missing == []


@pytest.mark.parametrize(
    ("names", "state"),
    [((), "api-detected"), (("db",), "crs-detected"), (("a", "b"), "crs-detected")],
)
def test_mariadb_is_told_by_its_kind_and_its_objects(names: tuple[str, ...], state: str) -> None:
    """The API alone and databases are two states."""
    objects = [custom(MARIADB, name, {}, namespace="db") for name in names]
    assert data(operator(server(MARIADB), *objects), "mariadb-operator") == {
        "api-available": True,
        "api-version": "v1alpha1",
        "collection-state": state,
    }


def test_what_cannot_be_listed_is_unknown_and_named() -> None:
    """A failed list is no count of zero."""
    api = server(MARIADB)
    api.next("mariadbs", FORBIDDEN)
    found = operator(api)
    assert data(found, "mariadb-operator")["collection-state"] == "unknown"
    assert [(each.name, each.error.code) for each in found.missing] == [
        ("K8s.mariadb-operator", UNAUTHORIZED)
    ]


@pytest.mark.parametrize(
    ("request_", "subtype"),
    [("storageclasses", "default-storage-class"), ("controllers", "slinky-slurm")],
)
def test_a_refused_list_leaves_only_the_state(request_: str, subtype: str) -> None:
    """Unknown, with the reason in the snapshot; no counts."""
    api = server(*SLINKY.values())
    api.next(f"GET .*/{request_}", FORBIDDEN)
    found = operator(api)
    readings = data(found, subtype)
    assert readings["collection-state"] == "unknown"
    assert not [key for key in readings if key.endswith("-count")]
    assert [(each.name, each.error.code) for each in found.missing] == [
        (f"K8s.{subtype}", UNAUTHORIZED)
    ]


def test_an_api_group_without_the_kind_is_detected_but_not_available() -> None:
    """The group is served, the kind is not."""
    other = replace(MARIADB, plural="backups", kind="Backup", singular="backup")
    assert data(operator(server(other)), "mariadb-operator") == {
        "api-available": False,
        "collection-state": "api-detected",
    }


def test_a_stale_group_is_unknown_and_not_absent() -> None:
    """An API that is down may well exist."""
    api = server(MARIADB)
    api.stale.add("k8s.mariadb.com/v1alpha1")
    assert data(operator(api), "mariadb-operator")["collection-state"] == "unknown"


def slinky() -> list[Any]:
    """A Slurm cluster with everything."""
    place = {"namespace": "slurm"}
    refs = {"controllerRef": {"name": "main"}}
    return [
        custom(
            SLINKY["controllers"],
            "main",
            {"clusterName": "hpc", "accountingRef": {"name": "acc"}, "extraConf": "secret"},
            **place,
        ),
        custom(SLINKY["nodesets"], "gpu", {**refs, "partition": {"enabled": True}}, **place),
        custom(SLINKY["nodesets"], "other", {"controllerRef": {"name": "x"}}, **place),
        custom(SLINKY["loginsets"], "login", refs, **place),
        custom(SLINKY["accountings"], "acc", {"external": True}, **place),
    ]


def test_one_slurm_cluster_is_described_by_what_refers_to_it() -> None:
    """Counts, identities and a few booleans; free configuration stays out."""
    found = operator(server(*SLINKY.values()), *slinky())
    assert data(found, "slinky-slurm") == {
        "accounting-count": 1,
        "api-available": True,
        "api-version": "v1beta1",
        "collection-state": "detected",
        "controller-count": 1,
        "detected": True,
        "loginset-count": 1,
        "nodeset-count": 1,
        "restapi-count": 0,
    }
    items = next(one["items"] for one in found.subtypes if one["subtype"] == "slinky-slurm")
    assert [one["context"]["id"] for one in items] == [
        "controller/slurm/main",
        "nodeset/slurm/gpu",
        "loginset/slurm/login",
        "accounting/slurm/acc",
    ]
    assert items[0]["data"] == {
        "external": False,
        "accounting-ref-present": True,
        "cluster-name": "hpc",
    }
    assert items[1]["context"]["controller-id"] == "controller/slurm/main"
    assert items[1]["data"] == {"partition-enabled": True}
    assert "secret" not in str(items)


def test_children_that_cannot_be_told_leave_out_all_counts() -> None:
    """The controller stays, and why the rest is missing is said."""
    api = server(*SLINKY.values())
    api.next("loginsets", FORBIDDEN)
    found = operator(api, *slinky())
    readings = data(found, "slinky-slurm")
    assert readings["collection-state"] == "detected"
    assert not [key for key in readings if key.endswith("-count") and key != "controller-count"]
    assert [each.name for each in found.missing] == ["K8s.slinky-slurm.nodeset-count"]


def test_two_slurm_clusters_are_unsupported_and_counted() -> None:
    """None of them is chosen."""
    two = [custom(SLINKY["controllers"], name, {}, namespace="slurm") for name in ("one", "two")]
    found = operator(server(*SLINKY.values()), *two)
    assert data(found, "slinky-slurm")["collection-state"] == "unsupported-multicluster"
    assert data(found, "slinky-slurm")["controller-count"] == 2


def test_the_default_storage_class_is_named() -> None:
    """Both spellings of the mark; several are all listed."""

    def storage(name: str, key: str = "", value: str = "true") -> Any:
        found = custom(STORAGE_CLASS, name, {})
        found["metadata"]["annotations"] = {key: value} if key else {}
        return found

    current, beta = operators.DEFAULT_CLASS
    found = operator(
        server(),
        storage("b", beta),
        storage("a", current),
        storage("c", current, "false"),
        storage("d"),
    )
    assert data(found, "default-storage-class") == {
        "collection-state": "detected",
        "default-classes": "a,b",
        "default-count": 2,
    }
    none = operator(server(), storage("d"))
    assert data(none, "default-storage-class") == {"collection-state": "absent", "default-count": 0}


def test_readings_are_those_that_constraints_may_name() -> None:
    """Every closed subtype writes only keys that the catalogue of addressable readings has."""
    from aicr.constraints import addressable

    found = collect(server(CLUSTER_POLICY, MARIADB, *SLINKY.values()), *slinky(), provider="oke")
    for one in found.subtypes:
        allowed = addressable.SCALARS["K8s"][one["subtype"]]
        if allowed is not addressable.OPEN:
            assert set(one["data"]) <= set(allowed), one["subtype"]
