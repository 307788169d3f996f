"""Laws of redaction: idempotent, without side effects, and nothing planted survives."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.validate import redaction
from aicr.validate.provenance_bound import FREE_KEY_MAPS, VENDOR_KEYS, bound_path
from aicr.validate.provenance_bound_fields import FIELDS

PLANTED = ("gpu-node-17", "10.20.30.40", "node-17.acme.internal")

PLANT = st.sampled_from(PLANTED)
SCALAR = st.one_of(PLANT, st.sampled_from(["1", "no-gpu-nodes", "INTERNAL", "x"]), st.integers())
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(PLANT, inner, max_size=2)
)
KEYS = [key for keys in redaction.MEASUREMENTS.values() for key in keys]
KEY = st.one_of(PLANT, st.sampled_from([*("labels", "hostname", "taint", "kubelet")]))
#: Under an allowed key stands what a collector writes there; a planted name there is only nested.
DATA = st.dictionaries(KEY, VALUE, max_size=4) | st.dictionaries(
    st.sampled_from(KEYS), st.sampled_from(["v1", 2, True, ["gpu-node-17"], {"a": "10.20.30.40"}])
)
TYPES = st.sampled_from(["K8s", "GPU", "OS", "NodeTopology", "SystemD", "gpu-node-17"])
SUBTYPES = st.sampled_from(["server", "node", "hardware", "release", "summary", "label", "sysctl"])
SNAPSHOT = st.fixed_dictionaries(
    {
        "kind": st.just("Snapshot"),
        "metadata": st.dictionaries(st.sampled_from(["source-node", "host"]), PLANT, max_size=2),
        "measurements": st.lists(
            st.fixed_dictionaries(
                {
                    "type": TYPES,
                    "subtypes": st.lists(
                        st.fixed_dictionaries(
                            {
                                "subtype": SUBTYPES,
                                "data": DATA,
                                "context": st.dictionaries(KEY, PLANT),
                            }
                        ),
                        max_size=3,
                    ),
                }
            ),
            max_size=3,
        ),
    },
    optional={"nodes": st.lists(PLANT)},
)
SEGMENT = st.one_of(
    st.sampled_from(sorted(FIELDS)),
    st.sampled_from([*sorted(FREE_KEY_MAPS), *sorted(VENDOR_KEYS), "env[NCCL_DEBUG]", "*", ""]),
    PLANT,
    PLANT.map(lambda name: f"containers[{name}]"),
    PLANT.map(lambda name: f"containers[*]{name}"),
    PLANT.map(lambda name: f"labels[a].{name}"),
    PLANT.map(lambda name: f"env[{name}"),
)
PATH = st.lists(SEGMENT, min_size=1, max_size=6).map(".".join)
TEST = st.fixed_dictionaries(
    {
        "name": st.just("check-nvidia-smi"),
        "status": st.sampled_from(["passed", "failed", "skipped", "other"]),
        "duration": st.integers(0, 10**6),
        "suite": st.just(["deployment"]),
    },
    optional={
        "message": PLANT,
        "stdout": st.lists(PLANT),
        "extra": st.dictionaries(
            st.sampled_from(["nodesTotal", "skipReason", "code", "runtimeSource", "node"]), VALUE
        ),
        "runtimeProvenance": st.fixed_dictionaries(
            {"shippedDigest": st.just("a" * 64), "derivedDigest": st.sampled_from(["b" * 64, "B"])},
            optional={
                "overriddenPaths": st.lists(PATH, max_size=4),
                "inheritedPaths": st.lists(PATH, max_size=4),
                "gpu-node-17": PLANT,
            },
        ),
        "gpu-node-17": VALUE,
    },
)


def clean(document: Any) -> bool:
    """Whether nothing that was planted is left."""
    text = json.dumps(document)
    return not any(planted in text for planted in PLANTED)


@given(SNAPSHOT)
def test_nothing_planted_in_a_snapshot_survives(snapshot: dict[str, Any]) -> None:
    """Idempotent and without side effects as well."""
    before = copy.deepcopy(snapshot)
    once = redaction.redact_snapshot(snapshot)
    assert snapshot == before
    assert clean(once)
    assert redaction.redact_snapshot(once) == once


@given(st.lists(TEST, max_size=3))
def test_nothing_planted_in_a_report_survives_and_no_verdict_changes(
    tests: list[dict[str, Any]],
) -> None:
    """Names, statuses and times are those that went in."""
    report = {"reportFormat": "CTRF", "results": {"tool": {"name": "aicr"}, "tests": tests}}
    before = copy.deepcopy(report)
    once = redaction.redact_report(report)
    assert report == before
    assert once is not None
    assert clean(once)
    assert redaction.redact_report(once) == once
    kept = ("name", "status", "duration", "suite")
    assert [[test[key] for key in kept] for test in once["results"]["tests"]] == [
        [test[key] for key in kept] for test in tests
    ]


@given(PATH)
def test_a_bounded_path_is_bounded_and_holds_only_what_is_public(path: str) -> None:
    """Twice is once; each segment is a field, a bare selector, or a vendor's key."""
    once = bound_path(path)
    assert bound_path(once) == once
    for segment in once.split("."):
        name = segment.partition("[")[0]
        assert not once or name in FIELDS or any(name in key for key in VENDOR_KEYS)
