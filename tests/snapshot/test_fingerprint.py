"""Criteria and facts derived from a snapshot."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.snapshot.fingerprint import fingerprint

PRODUCT = "nvidia.com/gpu.product"
REGION = "topology.kubernetes.io/region"
H100 = "NVIDIA-H100-80GB-HBM3"


def snapshot(**readings: Any) -> dict[str, Any]:
    """A snapshot from ``Type__subtype={...}`` readings."""
    measurements: dict[str, list[dict[str, Any]]] = {}
    for name, data in readings.items():
        type_, subtype = name.split("__")
        measurements.setdefault(type_, []).append({"subtype": subtype, "data": data})
    return {"measurements": [{"type": t, "subtypes": s} for t, s in measurements.items()]}


def test_a_whole_cluster_is_recognised() -> None:
    """Every row of the table in recipe spec 1.10 at once."""
    found = fingerprint(
        snapshot(
            K8s__node={"provider": "gke"},
            K8s__server={"version": "v1.34.3-gke.1318000"},
            NodeTopology__label={PRODUCT: f"{H100}|a,b,c", REGION: "us-central1|a,b,c,d"},
            NodeTopology__summary={"node-count": 4},
            GPU__hardware={"model": "H100 SXM5"},
            OS__release={"ID": "cos", "VERSION_ID": "121"},
        )
    )
    assert found == {
        "service": "gke",
        "accelerator": "h100",
        "gpuModel": "H100 SXM5",
        "gpuNodeCount": 3,
        "os": "cos",
        "nodes": 4,
        "k8sVersion": "1.34.3-gke.1318000",
        "osVersion": "121",
        "region": "us-central1",
        "notes": [],
    }


def test_an_empty_snapshot_knows_nothing() -> None:
    """Nothing measured, nothing claimed; intent and platform are never derived."""
    assert fingerprint({"measurements": []}) == {"notes": []}


@pytest.mark.parametrize(
    ("provider", "service"),
    [
        ("eks", "eks"),
        (" EKS ", "eks"),
        ("openshift", "ocp"),
        ("kind", "kind"),
        ("rke2", "rke2"),
        ("generic", None),
        ("vanilla", None),
        ("any", None),
        ("somecloud", None),
        ("", None),
        (None, None),
        (5, None),
    ],
)
def test_the_service_is_a_known_provider(provider: object, service: str | None) -> None:
    """Unknown providers are not passed on, and generic is never detected."""
    assert fingerprint(snapshot(K8s__node={"provider": provider})).get("service") == service


@pytest.mark.parametrize(
    ("release_id", "os_value"),
    [
        ("ubuntu", "ubuntu"),
        ("Ubuntu", "ubuntu"),
        ("redhat", "rhel"),
        ("redhatenterpriselinux", "rhel"),
        ("amzn", "amazonlinux"),
        ("al2023", "amazonlinux"),
        ("ol", "ol"),
        ("talos", "talos"),
        ("debian", None),
        ("", None),
    ],
)
def test_the_os_follows_from_the_release_id(release_id: str, os_value: str | None) -> None:
    """IDs of os-release map to criteria values; others leave the field unset."""
    assert fingerprint(snapshot(OS__release={"ID": release_id})).get("os") == os_value


@pytest.mark.parametrize(
    ("labels", "model", "accelerator", "notes"),
    [
        ({PRODUCT: f"{H100}|a"}, None, "h100", []),
        ({PRODUCT: f"{H100}|a"}, "NVIDIA A100", "h100", []),
        ({}, "NVIDIA GB200", "gb200", []),
        (None, "NVIDIA GB200", "gb200", []),
        ({}, "Tesla T4", None, ["unknown-sku"]),
        ({PRODUCT: "Tesla-T4|a"}, None, None, ["unknown-sku"]),
        ({PRODUCT: "Tesla-T4|a"}, "Tesla T4", None, ["unknown-sku"]),
        ({PRODUCT: "Strange|a"}, "NVIDIA H200", "h200", ["unknown-sku"]),
        (
            {f"{PRODUCT}.{H100}": f"{H100}|a", f"{PRODUCT}.Tesla-T4": "Tesla-T4|b"},
            "NVIDIA H100",
            None,
            ["multi-gpu"],
        ),
        ({f"{PRODUCT}.Tesla-T4": "Tesla-T4|b"}, "NVIDIA H100", "h100", ["unreadable-labels"]),
        ({PRODUCT: "no separator"}, None, None, ["unreadable-labels"]),
        ({}, None, None, []),
    ],
)
def test_the_accelerator_comes_from_node_labels_first(
    labels: dict[str, str] | None, model: str | None, accelerator: str | None, notes: list[str]
) -> None:
    """Labels before local hardware; two products give none (recipe spec 1.10)."""
    readings: dict[str, Any] = {} if labels is None else {"NodeTopology__label": labels}
    if model is not None:
        readings["GPU__hardware"] = {"model": model}
    found = fingerprint(snapshot(**readings))
    assert found.get("accelerator") == accelerator
    assert found["notes"] == notes
    assert found.get("gpuModel") == model


@pytest.mark.parametrize(
    ("labels", "count"),
    [
        ({PRODUCT: f"{H100}|a,b"}, 2),
        ({PRODUCT: f"{H100}|a,b (+14 more)"}, 16),
        ({f"{PRODUCT}.{H100}": f"{H100}|a,b", f"{PRODUCT}.L4": "L4|c"}, 3),
        ({}, 0),
        (None, None),
    ],
)
def test_gpu_nodes_are_counted_with_those_cut_off(
    labels: dict[str, str] | None, count: int | None
) -> None:
    """The count includes truncated names; without label readings there is none."""
    readings = {} if labels is None else {"NodeTopology__label": labels}
    assert fingerprint(snapshot(**readings)).get("gpuNodeCount") == count


def test_two_regions_give_no_region() -> None:
    """One of two would be a guess."""
    labels = {f"{REGION}.eu-1": "eu-1|a", f"{REGION}.eu-2": "eu-2|b"}
    found = fingerprint(snapshot(NodeTopology__label=labels))
    assert "region" not in found
    assert found["notes"] == ["multi-region"]


@pytest.mark.parametrize(
    ("reading", "nodes"),
    [(4, 4), ("4", 4), (4.0, 4), (0, 0), ("x", None), (-1, None), (1.5, None), (True, None)],
)
def test_the_node_count_is_a_whole_number_or_unknown(reading: object, nodes: int | None) -> None:
    """A count that is none is left out."""
    found = fingerprint(snapshot(NodeTopology__summary={"node-count": reading}))
    assert found.get("nodes") == nodes


def test_lossless_items_are_read_too() -> None:
    """The newer encoding carries the same labels."""
    document = snapshot(NodeTopology__label={})
    document["measurements"][0]["subtypes"][0]["items"] = [
        {
            "context": {"key": PRODUCT, "value": H100},
            "data": {"node-count": 2, "node-list": "a,b", "truncated": False},
        }
    ]
    found = fingerprint(document)
    assert (found["accelerator"], found["gpuNodeCount"]) == ("h100", 2)
