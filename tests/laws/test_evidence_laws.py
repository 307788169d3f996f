"""Laws of evidence: whatever a snapshot or a report holds, nothing planted is in a default bundle, and
what is written verifies."""

from __future__ import annotations

import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evidence.evidence_bundles import PLANTED, made, planted_in, report, tree
from tests.laws.test_redaction_laws import SNAPSHOT, TEST

from aicr.artifacts.signers import Expected
from aicr.validate.evidence import verification

PLANT = st.sampled_from(PLANTED)
WORD = st.one_of(PLANT, PLANT.map(lambda word: f"x-{word}-y"), st.sampled_from(["busybox", "v1"]))
IMAGES = st.dictionaries(WORD, st.one_of(WORD, st.just("1.36.2"), st.integers(0, 9)), max_size=4)
LABELS = st.dictionaries(
    st.one_of(WORD, st.just("topology.kubernetes.io/region")),
    WORD.map(lambda word: f"{word}|{word}"),
    max_size=3,
)
FREE = st.fixed_dictionaries(
    {
        "images": IMAGES,
        "labels": LABELS,
        "units": st.dictionaries(WORD, WORD, max_size=3),
        "metadata": st.dictionaries(st.sampled_from(["source-node", "host"]), WORD, max_size=2),
    }
)
MORE = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["operator-health", "dra-support"]),
        "status": st.sampled_from(["passed", "failed", "skipped", "other"]),
        "duration": st.integers(0, 10**6),
        "suite": st.just(["deployment"]),
    },
    optional={
        "message": WORD,
        "stdout": st.lists(WORD, max_size=3),
        "extra": st.dictionaries(
            st.sampled_from(["nodesTotal", "skipReason", "code", "runtimeSource"]) | WORD,
            WORD,
            max_size=3,
        ),
        "trace": WORD,
        "attachments": st.lists(WORD, max_size=2),
    },
)


def snapshot_of(free: dict[str, Any], drawn: dict[str, Any]) -> dict[str, Any]:
    """A snapshot that a collector could have written, its free places filled in."""
    measurements = [
        {"type": "K8s", "subtypes": [{"subtype": "image", "data": free["images"]}]},
        {"type": "NodeTopology", "subtypes": [{"subtype": "label", "data": free["labels"]}]},
        {"type": "SystemD", "subtypes": [{"subtype": "unit", "data": free["units"]}]},
    ]
    known = {"K8s", "NodeTopology", "SystemD", "gpu-node-17"}
    for entry in drawn["measurements"]:
        if entry["type"] not in known:
            known.add(entry["type"])
            measurements.append(entry)
    return {
        "kind": "Snapshot",
        "apiVersion": "aicr.run/v1",
        "metadata": free["metadata"],
        "measurements": measurements,
    }


@settings(max_examples=60, deadline=None)
@given(FREE, SNAPSHOT, st.lists(MORE | TEST, min_size=1, max_size=3))
def test_nothing_planted_is_in_a_default_bundle_and_it_verifies(
    free: dict[str, Any], drawn: dict[str, Any], tests: list[dict[str, Any]]
) -> None:
    """Every byte is searched; the documents of the run stay as they were."""
    snapshot = snapshot_of(free, drawn)
    reports = {"deployment": report(*tests)}
    before = copy.deepcopy((snapshot, reports))
    with TemporaryDirectory() as folder:
        out = Path(folder) / "e"
        made(out, snapshot=snapshot, reports=reports)
        assert (snapshot, reports) == before
        assert planted_in(tree(out)) == set()
        found = verification.verify_folder(str(out), Expected())
        assert found.errors == []
        counts = {
            status: sum(t["status"] == status for t in tests) for status in ("failed", "other")
        }
        assert sum(found.failures.values()) == sum(counts.values())
