"""The minimal redaction policy (validators spec 4.2, 4.3; decision 62)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from aicr.validate import redaction

SNAPSHOT: dict[str, Any] = {
    "kind": "Snapshot",
    "apiVersion": "aicr.run/v1",
    "secret": "top",
    "metadata": {"timestamp": "t", "version": "1", "source-node": "gpu-node-17", "other": "x"},
    "fingerprint": {"service": "eks", "notes": []},
    "measurements": [
        {
            "type": "K8s",
            "subtypes": [
                {
                    "subtype": "server",
                    "data": {"version": "v1.33", "platform": "linux", "host": "10.0.0.5"},
                    "context": {"node": "gpu-node-17"},
                },
                {"subtype": "image", "data": {"x": "registry.acme/x:1"}},
            ],
        },
        {"type": "SystemD", "subtypes": [{"subtype": "kubelet.service", "data": {"a": "b"}}]},
        {
            "type": "NodeTopology",
            "subtypes": [
                {"subtype": "label", "data": {"pool": "gpu|gpu-node-17"}},
                {"subtype": "summary", "data": {"node-count": 2, "new-key": "x"}},
            ],
        },
        {"type": "GPU", "subtypes": [{"subtype": "hardware", "data": {"model": {"a": "b"}}}]},
    ],
}


@pytest.mark.covers("V10-51", "V-172")
def test_a_snapshot_keeps_only_the_allowed_measurements_and_header() -> None:
    """SystemD, labels, contexts, unknown keys and nested values go; empty parts are not left over."""
    before = copy.deepcopy(SNAPSHOT)
    assert redaction.redact_snapshot(SNAPSHOT) == {
        "kind": "Snapshot",
        "apiVersion": "aicr.run/v1",
        "metadata": {"timestamp": "t", "version": "1"},
        "fingerprint": {"service": "eks", "notes": []},
        "measurements": [
            {
                "type": "K8s",
                "subtypes": [
                    {"subtype": "server", "data": {"version": "v1.33", "platform": "linux"}}
                ],
            },
            {
                "type": "NodeTopology",
                "subtypes": [{"subtype": "summary", "data": {"node-count": 2}}],
            },
        ],
    }
    assert before == SNAPSHOT


def test_metadata_without_an_allowed_key_is_absent() -> None:
    """Never an empty map; None stays None."""
    found = redaction.redact_snapshot({"kind": "Snapshot", "metadata": {"source-node": "n"}})
    assert found == {"kind": "Snapshot", "measurements": []}
    assert redaction.redact_snapshot(None) is None
    assert redaction.redact_report(None) is None


@pytest.mark.covers("V10-51", "V-181")
def test_the_record_of_the_policy_is_constant() -> None:
    """Version 5: `code` joined the allow-list; the rules do not depend on the input."""
    assert redaction.record() == {
        "policy": "minimal",
        "version": 5,
        "applied": [
            "ctrf.tests.extra.allowlist",
            "ctrf.tests.omit:message",
            "ctrf.tests.omit:stdout",
            "ctrf.tests.runtimeProvenance.bound",
            "snapshot.header.allowlist",
            "snapshot.measurements.allowlist",
        ],
    }
    redaction.record()["applied"].append("x")
    assert list(redaction.RULES) == redaction.record()["applied"] == sorted(redaction.RULES)
    assert redaction.KNOWN_VERSIONS[-1] == redaction.VERSION


EXTRA: list[tuple[str, object, bool]] = [
    ("nodesValidated", "0", True),
    ("nodesTotal", "99999", True),
    ("nodesTotal", "100000", False),
    ("nodesTotal", "10.0.0.5", False),
    ("nodesTotal", "-1", False),
    ("nodesTotal", "1\n", False),
    ("nodesTotal", "", False),
    ("nodesTotal", "١", False),
    ("nodesTotal", 2, False),
    *(
        ("skipReason", code, True)
        for code in (
            *("no-gpu-nodes", "no-schedulable-gpu-nodes", "nodes-busy", "named-in-skip-checks"),
        )
    ),
    ("skipReason", "customer-prod-cluster", False),
    ("skipReason", "no-gpu-nodes ", False),
    *(
        ("runtimeSource", code, True)
        for code in ("delivered-artifact", "recipe-supplied-runtime", "cluster-capability")
    ),
    ("runtimeSource", "no-gpu-nodes", False),
    *(
        ("code", code, True)
        for code in ("UNAUTHORIZED", "TIMEOUT", "SERVICE_UNAVAILABLE", "INTERNAL")
    ),
    ("code", "NOT_FOUND", False),
    ("code", "gpu-node-17", False),
    ("nodeName", "1", False),
    ("nodestotal", "1", False),
]


@pytest.mark.covers("V10-48", "V-162", "V-172", "V-173", "V-174", "V-175", "V-176", "V-177")
@pytest.mark.covers("V-178", "V-179", "V-180", "V-182", "V-263")
@pytest.mark.parametrize(("key", "value", "kept"), EXTRA)
def test_extra_keeps_a_value_only_under_its_own_closed_set(
    key: str, value: object, kept: bool
) -> None:
    """Counts of up to five digits, and codes; when nothing survives the map is absent."""
    test = {"name": "c", "status": "passed", "duration": 1, "suite": ["x"], "extra": {key: value}}
    found = redaction.redact_test(test)
    assert found.get("extra") == ({key: value} if kept else None)
    assert ("extra" in found) == kept


@pytest.mark.covers("V-159", "V-164", "V-171")
def test_a_report_loses_stdout_and_messages_and_keeps_verdicts() -> None:
    """Name, status, duration, suite, summary, tool and environment are as they were."""
    digests = {"shippedDigest": "a" * 64, "derivedDigest": "b" * 64}
    report = {
        "reportFormat": "CTRF",
        "specVersion": "0.0.1",
        "timestamp": "t",
        "generatedBy": "aicr",
        "results": {
            "tool": {"name": "aicr", "version": "1"},
            "summary": {"tests": 2, "passed": 1, "failed": 1},
            "environment": {"appName": "a"},
            "tests": [
                {
                    "name": "check-nvidia-smi",
                    "status": "failed",
                    "duration": 1500,
                    "suite": ["deployment"],
                    "message": "gpu-node-17 failed",
                    "stdout": ["RESULT: nodesValidated: 1/2", "gpu-node-17"],
                    "extra": {"nodesTotal": "2", "node": "gpu-node-17"},
                    "runtimeProvenance": {
                        **digests,
                        "overriddenPaths": ["spec.nodeSelector.acme/gpu-node-17"],
                    },
                    "attachments": ["10.0.0.5"],
                },
                {"name": "b", "status": "passed", "duration": 0, "suite": ["x"], "extra": "text"},
            ],
        },
    }
    before = copy.deepcopy(report)
    found = redaction.redact_report(report)
    assert report == before
    assert found is not None
    assert found["results"]["tests"] == [
        {
            "name": "check-nvidia-smi",
            "status": "failed",
            "duration": 1500,
            "suite": ["deployment"],
            "extra": {"nodesTotal": "2"},
            "runtimeProvenance": {**digests, "overriddenPaths": ["spec.nodeSelector"]},
        },
        {"name": "b", "status": "passed", "duration": 0, "suite": ["x"]},
    ]
    for key in ("tool", "summary", "environment"):
        assert found["results"][key] == before["results"][key]  # type: ignore[index]
    assert "gpu-node-17" not in json.dumps(found)
    assert redaction.redact_report(found) == found
