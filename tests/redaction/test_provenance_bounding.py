"""Bounding of provenance records (validators spec 4.4)."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from aicr.validate import provenance_bound
from aicr.validate.provenance_bound import bound, bound_path
from aicr.validate.provenance_bound_fields import FIELDS
from tools import gen_pod_template_fields as generator

ROOT = Path(__file__).resolve().parents[2]
A, B = "a" * 64, "0" * 64


def record(**more: Any) -> dict[str, Any]:
    """A record with good digests."""
    return {"shippedDigest": A, "derivedDigest": B, **more}


@pytest.mark.covers("V10-49", "V-213")
@pytest.mark.parametrize(
    "digest", ["A" * 64, "a" * 63, "a" * 65, "", "g" * 64, A + "\n", "sha256:" + A, None, 5]
)
@pytest.mark.parametrize("key", ["shippedDigest", "derivedDigest"])
def test_a_digest_that_is_no_lowercase_sha256_drops_the_record(key: str, digest: object) -> None:
    """Both must be 64 lowercase hex digits."""
    assert bound(record() | {key: digest}) is None


PATHS = [
    ("metadata.annotations.networking.gke.io/interfaces",) * 2,
    (
        "spec.containers[node].env[NCCL_FASTRAK_IFNAME].value",
        "spec.containers[*].env[NCCL_FASTRAK_IFNAME].value",
    ),
    ("spec.nodeSelector.my-org/pool", "spec.nodeSelector"),
    (
        "spec.initContainers[setup].resources.limits.acme.internal/x",
        "spec.initContainers[*].resources.limits",
    ),
    ("spec.volumes[customer-cache].secret.secretName", "spec.volumes[*].secret.secretName"),
    ("spec.acmeField.x", ""),
    (
        "spec.containers[node].env[NCCL_CUSTOMER_ACME_PROD].value",
        "spec.containers[*].env[*].value",
    ),
]


@pytest.mark.covers("V10-50", "V-216", "V-217", "V-218", "V-219", "V-220")
@pytest.mark.parametrize(("path", "kept"), PATHS, ids=[path for path, _ in PATHS])
def test_the_examples_of_the_specification(path: str, kept: str) -> None:
    """Names that an operator chose collapse, vendor keys and API fields stay."""
    assert bound_path(path) == kept


@pytest.mark.covers("V-214", "V-215", "V-216", "V-217", "V-218", "V-219")
@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("metadata.annotations.networking.gke.io/customer-prod", "metadata.annotations"),
        (
            "metadata.labels.networking.gke.io/interfaces",
            "metadata.labels.networking.gke.io/interfaces",
        ),
        ("metadata.labels.networking.gke.io/interfaces.x", "metadata.labels"),
        ("annotations.acme", "annotations"),
        ("spec.nodeSelector", "spec.nodeSelector"),
        ("spec.nodeSelector.", "spec.nodeSelector"),
        (
            "spec.containers[a].resources.requests.nvidia.com/gpu",
            "spec.containers[*].resources.requests.nvidia.com/gpu",
        ),
        ("spec.containers[a].env[LD_LIBRARY_PATH]", "spec.containers[*].env[LD_LIBRARY_PATH]"),
        ("spec.containers[NCCL_DEBUG].image", "spec.containers[*].image"),
        ("spec.env[NCCL_DEBUG].volumes[NCCL_DEBUG].name", "spec.env[NCCL_DEBUG].volumes[*].name"),
        ("spec.volumes[NCCL_DEBUG].env[NCCL_DEBUG]", "spec.volumes[*].env[NCCL_DEBUG]"),
        ("spec.customenv[NCCL_DEBUG].value", ""),
        ("spec.env[nccl_debug]", "spec.env[*]"),
        ("metadata.labels[x].gpu-node-17", ""),
        ("spec.containers[a]gpu-node-17.image", ""),
        ("spec.containers[gpu-node-17", ""),
        ("spec.containers]gpu[", ""),
        ("spec.containers[].image", ""),
        ("spec.containers[[a]].image", ""),
        ("spec.gpu-node-17", ""),
        ("spec.*.image", ""),
        ("spec..image", ""),
        ("", ""),
        ("spec.containers[a b].image", ""),
        ("spec.image\n", ""),
        ("spec.imagé", ""),
        ("spec." + "a" * 252, ""),
    ],
)
def test_everything_that_is_no_field_collapses_or_is_dropped(path: str, kept: str) -> None:
    """Exact sets, no prefixes, no half selectors, no text behind a selector."""
    assert bound_path(path) == kept


@pytest.mark.covers("V-221")
def test_lists_are_sorted_without_repetition_and_capped() -> None:
    """1024 a list; an empty one is absent."""
    many = [f"spec.containers[c{number}].env[x{number}].value" for number in range(5)]
    found = bound(record(overriddenPaths=[*many, "spec.hostNetwork"], inheritedPaths=["bad field"]))
    assert found == record(overriddenPaths=["spec.containers[*].env[*].value", "spec.hostNetwork"])
    fields = sorted(FIELDS)
    paths = [f"{a}.{b}" for a in fields[:60] for b in fields[:60]]
    kept = provenance_bound.bound_paths(paths)
    assert len(kept) == 1024
    assert kept == sorted(set(kept))


@pytest.mark.covers("V-222")
def test_nothing_but_digests_and_paths_is_kept_and_the_input_stays() -> None:
    """Unknown members, values and things that are no text vanish."""
    given = record(
        overriddenPaths=["spec.hostNetwork", 5, None, {"a": "b"}],
        inheritedPaths="spec.hostNetwork",
        values={"NCCL_IFNAME": "eth7"},
    )
    before = copy.deepcopy(given)
    assert bound(given) == record(overriddenPaths=["spec.hostNetwork"])
    assert given == before
    assert bound(None) is None


@pytest.mark.covers("V-215")
def test_the_field_names_are_those_of_the_newest_pod_template() -> None:
    """Written by the tool, newer members included; no name of ours, no free text."""
    assert generator.TARGET.read_text(encoding="utf-8") == generator.source()
    assert set(generator.NEWER) <= FIELDS
    assert {"containers", "env", "nodeSelector", "securityContext", "annotations"} <= FIELDS
    assert "node" not in FIELDS
    assert provenance_bound.FREE_KEY_MAPS <= FIELDS


def test_a_reference_that_leads_back_to_itself_ends() -> None:
    """Schemas are recursive."""
    definitions = {
        "a": {
            "properties": {"one": {"$ref": "#/$defs/b"}, "two": {"items": {"$ref": "#/$defs/a"}}}
        },
        "b": {"properties": {"three": {"additionalProperties": {"$ref": "#/$defs/a"}}}},
    }
    assert generator.reachable(definitions, "a") == {"one", "two", "three"}


@pytest.mark.covers("V-223")
def test_the_shipped_runtime_names_nothing_that_the_sets_lack() -> None:
    """A variable or key that is added to the shipped runtime is added to its set in the same change."""
    text = (
        ROOT / "recipes/components/kubeflow-trainer/manifests/torch-distributed-tcpxo.yaml"
    ).read_text(encoding="utf-8")
    variables = set(re.findall(r"^ *- name: ([A-Z][A-Z0-9_]+)$", text, re.MULTILINE))
    assert variables
    assert variables <= provenance_bound.FABRIC
    template = text[text.index("replicatedJobs:") :]
    keys = set(re.findall(r"^ *([a-z0-9.-]+\.[a-z]+/[A-Za-z0-9./-]+):", template, re.MULTILINE))
    assert {"networking.gke.io/interfaces", "nvidia.com/gpu"} <= keys
    assert keys <= provenance_bound.VENDOR_KEYS


@pytest.mark.covers("V-216", "V-218")
def test_the_closed_sets_have_the_sizes_of_the_specification() -> None:
    """27 fabric variables, 10 maps, 8 keys."""
    sizes = [
        len(found)
        for found in (
            provenance_bound.FABRIC,
            provenance_bound.FREE_KEY_MAPS,
            provenance_bound.VENDOR_KEYS,
        )
    ]
    assert sizes == [27, 10, 8]
