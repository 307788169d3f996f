"""Evidence of runs on a real control plane: made by validate, then verified and published."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.check_runs import left_behind
from tests.cluster.validate_runs import Case, left_of, recipe, shell
from tests.controlplane.client import Client
from tests.controlplane.plane import ControlPlane
from tests.evidence.evidence_bundles import tree
from tests.integrity.signed_bundles import KEYS, write_key

pytestmark = pytest.mark.cluster

#: What the checks of these runs print, and nobody may publish.
PLANTED = ("gpu-node-17", "10.20.30.40", "hunter2-password")


@pytest.fixture
def case(tmp_path: Path, plane: ControlPlane) -> Case:
    """A folder and the shared plane."""
    return Case(tmp_path, plane.kubeconfig)


def evidence(*words: str) -> subprocess.CompletedProcess[str]:
    """Run ``aicr evidence``, with nothing that could be contacted."""
    return subprocess.run(
        [sys.executable, "-m", "aicr", "evidence", *words],
        env={**os.environ, "KUBECONFIG": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_run_with_failures_leaves_evidence_that_verifies(
    case: Case, api: Client, namespace: str
) -> None:
    """Redacted, with the withheld check in it; then a key signs it, and tampering is found."""
    printing = "; ".join(f"echo {word}" for word in PLANTED)
    case.write(
        recipe(deployment=["passes", "fails", "left-out"]),
        [
            shell("passes", f'{printing}; echo \'##AICR-EXTRA## {{"nodesTotal":"3"}}\''),
            shell("fails", f"echo {PLANTED[0]} > /dev/termination-log; exit 1"),
            shell("left-out", "true"),
        ],
    )
    out = case.folder / "evidence"
    flags = ["--emit-attestation", str(out), "--allow-mutable-validator-tags"]
    ended = case.run("-n", namespace, "--skip-check", "left-out", *flags)
    assert ended.status == 8, ended.err
    assert "evidence of eks written to" in ended.err
    assert "validation failed: one or more phases did not pass" in ended.err
    assert PLANTED[0] in json.dumps(ended.report)
    assert left_of(api.call, ended.run_id) == []
    everything = b"".join(tree(out).values())
    assert not [word for word in PLANTED if word.encode() in everything]
    found = evidence("verify", str(out), "--format", "json")
    said = json.loads(found.stdout)
    assert found.returncode == 8, found.stderr
    assert (said["result"], said["errors"]) == ("recorded-failures", [])
    counts = said["phases"]["deployment"]
    assert (counts["passed"], counts["failed"], counts["skipped"]) == (1, 1, 1)
    private, public = write_key(case.folder, KEYS["Ed25519"]())
    assert evidence("publish", str(out), "--signing-key", private).returncode == 0
    signed = json.loads(evidence("verify", str(out), "--key", public, "--format", "json").stdout)
    assert (signed["result"], signed["signature"]) == ("recorded-failures", "signed")
    path = out / "summary-bundle" / "ctrf" / "deployment.json"
    path.write_bytes(path.read_bytes().replace(b'"failed"', b'"passed"', 1))
    tampered = evidence("verify", str(out), "--key", public)
    assert tampered.returncode == 8
    assert "ctrf/deployment.json: " in tampered.stdout
    full = case.folder / "full"
    ended = case.run(
        *("-n", namespace, "--emit-attestation", str(full), "--full"),
        "--allow-mutable-validator-tags",
    )
    assert "warning: --full" in ended.err
    everything = b"".join(tree(full).values())
    assert [word for word in PLANTED if word.encode() not in everything] == []


def test_a_submission_uses_the_cluster_and_writes_a_page_for_each_feature(
    case: Case, api: Client
) -> None:
    """On a cluster without drivers and gateways nothing applies; the pages say so."""
    before, living = (
        {item["metadata"]["name"] for item in api.list("Namespace")},
        left_behind(api, ""),
    )
    pages = case.folder / "pages"
    flags = ["--cncf-submission", "--evidence-dir", str(pages)]
    flags += ["--feature", "dra", "--feature", "secure"]
    ended = case.run(*flags, sources=False)
    assert sorted(path.name for path in pages.iterdir()) == ["dra-support.md", "secure-access.md"]
    for path in pages.iterdir():
        text = path.read_text()
        assert "**Verdict:** " in text
        assert "**Verdict:** PASS" not in text
    assert "## GPUs of nodes" in (pages / "secure-access.md").read_text()
    assert ("**Verdict:** FAIL" in (pages / "dra-support.md").read_text()) == (
        "dra-support: FAIL" in ended.err
    )
    # None came, and only what other tests have deleted may have gone meanwhile.
    assert {item["metadata"]["name"] for item in api.list("Namespace")} <= before
    assert left_behind(api, "") == living
