"""``aicr evidence`` and the evidence flags of ``aicr validate`` on the command line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.evidence.evidence_bundles import RECIPE, keys, made, report, test_entry

from aicr import Catalog
from aicr.cli import validate_evidence
from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.cli.validate import parser
from aicr.cli.validate_flags import Options
from aicr.validate.results import PhaseResult


def ran(*words: str) -> tuple[int, str, str]:
    """(status, stdout, stderr) of a command line."""
    out, err = io.StringIO(), io.StringIO()
    status = main(list(words), Console(out, err))
    return status, out.getvalue(), err.getvalue()


def test_verify_passes_whole_evidence(evidence: Path) -> None:
    """0, and words for people."""
    status, out, err = ran("evidence", "verify", str(evidence))
    assert (status, err) == (0, "")
    assert "verify: PASSED" in out
    assert "signature:  pending signature" in out
    assert "deployment: 1 passed, 0 failed, 1 skipped" in out


def test_verify_finds_failures_and_tampering(tmp_path: Path) -> None:
    """8 for both; the JSON form tells them apart (decision 46)."""
    failing = {"deployment": report(test_entry("a", "failed", "deployment"))}
    made(tmp_path / "e", reports=failing)
    status, out, _ = ran("evidence", "verify", str(tmp_path / "e"), "--format", "json")
    found = json.loads(out)
    assert (status, found["result"], found["errors"]) == (8, "recorded-failures", [])
    status, out, _ = ran("evidence", "verify", str(tmp_path / "e"))
    assert (status, "VALID, and it records checks that did not pass" in out) == (8, True)
    (tmp_path / "e" / "summary-bundle" / "recipe.yaml").write_text("kind: x\n")
    status, out, _ = ran("evidence", "verify", str(tmp_path / "e"), "--format", "json")
    found = json.loads(out)
    assert (status, found["result"], found["failedStep"]) == (8, "invalid", "manifest-hash")
    assert found["errors"][0].startswith("recipe.yaml: ")
    status, out, _ = ran("evidence", "verify", str(tmp_path / "e"))
    assert "verify: FAILED at manifest-hash" in out


def test_publish_and_verify_with_a_key(evidence: Path, tmp_path: Path, registry: str) -> None:
    """The pointer goes into a repository, and verifies from there."""
    private, public = keys(tmp_path)
    status, out, err = ran(
        *("evidence", "publish", str(evidence), "--push", f"oci://{registry}/cli:v1"),
        *("--signing-key", private, "--plain-http", "--pointers-dir", str(tmp_path / "repo")),
    )
    assert status == 0, err
    assert "evidence signed by key:sha256:" in err
    placed = tmp_path / "repo" / out.strip()
    for source in (str(evidence), str(placed), f"oci://{registry}/cli:v1"):
        status, out, err = ran("evidence", "verify", source, "--key", public, "--plain-http")
        assert (status, err) == (0, ""), out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evidence"], "name a sub-command"),
        (["evidence", "nothing"], "unknown sub-command"),
        (["evidence", "verify"], "name the evidence to verify"),
        (["evidence", "verify", "oci://h.example/x"], "neither a tag nor a digest"),
        (["evidence", "verify", "x", "--no-rekor"], "for key signatures only"),
        (["evidence", "verify", "x", "--key", "k", "--expected-issuer", "i"], "name two signers"),
        (["evidence", "verify", "x", "--expected-identity-regexp", ".*"], "--certificate-identity"),
        (["evidence", "publish"], "name the evidence"),
        (["evidence", "publish", "x"], "flag --push is required"),
        (["evidence", "publish", "x", "--push", "a/b", "--insecure-tls", "--plain-http"], "TLS"),
        (
            ["evidence", "publish", "x", "--push", "a/b", "--no-sign", "--identity-token", "t"],
            "--no-sign contradicts",
        ),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(words: list[str], said: str) -> None:
    """2, with the next step."""
    status, out, err = ran(*words)
    assert (status, out) == (2, "")
    assert said in err


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    """3: it was not judged."""
    assert ran("evidence", "verify", str(tmp_path / "x"))[0] == 3
    private, _ = keys(tmp_path)
    words = ["evidence", "publish", str(tmp_path / "x"), "--signing-key", private]
    assert ran(*words)[0] == 3


@pytest.fixture
def flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A validate command line on files, with no cluster that could be meant."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "AICR_VALIDATOR_IMAGE_TAG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    snapshot: dict[str, Any] = {
        "kind": "Snapshot",
        "apiVersion": "aicr.run/v1",
        "measurements": [],
    }
    for name, document in (("recipe", RECIPE), ("snapshot", snapshot)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(document))
    paths = (str(tmp_path / f"{name}.yaml") for name in ("recipe", "snapshot"))
    recipe, taken = paths
    return ["validate", "-r", recipe, "-s", taken, "--emit-attestation", str(tmp_path / "e")]


@pytest.mark.covers("V10-86")
def test_evidence_of_tags_that_move_needs_a_flag(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused before any check; with the flag, or a tag of a commit, the run gets to the cluster."""
    monkeypatch.setenv("AICR_VALIDATOR_IMAGE_TAG", "edge")
    status, _, err = ran(*flags)
    assert (status, "these tags can move" in err) == (2, True)
    _, _, err = ran(*flags, "--allow-mutable-validator-tags")
    assert "these tags can move" not in err
    assert "no kubeconfig" in err or "cluster" in err
    monkeypatch.setenv("AICR_VALIDATOR_IMAGE_TAG", "sha-abc1234")
    assert "these tags can move" not in ran(*flags)[2]
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        (["--push", "oci://Bad Host/x"], 2, "is not a registry"),
        (["--push", f"h.example/x@sha256:{'a' * 64}"], 2, "a digest is what a push answers with"),
        (["--bom", "/nowhere/bom.json"], 3, "no such file"),
        (["--push", "h.example/x", "--plain-http", "--insecure-tls"], 2, "goes without it"),
    ],
    ids=["address", "digest", "bom", "tls"],
)
def test_what_evidence_needs_is_tried_before_the_run(
    flags: list[str], more: list[str], status: int, said: str
) -> None:
    """Not after an hour."""
    found = ran(*flags, *more)
    assert found[0] == status
    assert said in found[2]


def test_a_folder_of_somebody_elses_is_found_before_the_run(
    flags: list[str], tmp_path: Path
) -> None:
    """It is a conflict, and stays."""
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "mine").write_text("x")
    status, _, err = ran(*flags)
    assert status == 2
    assert "not a whole evidence bundle" in err
    assert (tmp_path / "e" / "mine").read_text() == "x"


def test_a_finished_run_becomes_evidence(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `aicr validate` hands over is enough, failed checks or not."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    arguments = parser().parse([*flags[1:], "--evidence-dir", str(tmp_path / "pages")])
    options = Options(arguments, {})

    class Inputs:
        """The documents of a run."""

        class recipe:  # noqa: N801
            document = RECIPE
            catalog = Catalog.builtin()

        class catalog:  # noqa: N801
            version = "1.0.0"
            entries = ()

        snapshot = yaml.safe_load((tmp_path / "snapshot.yaml").read_text())

    inputs: Any = Inputs()
    failed = report(test_entry("dra-support", "failed", "conformance"))
    said: list[str] = []
    results = [PhaseResult("conformance", failed, "failed")]
    validate_evidence.write(options, inputs, results, failed, said.append)
    assert (tmp_path / "pages" / "dra-support.md").exists()
    assert any("evidence of h100-eks-ubuntu-training written to" in line for line in said)
    assert ran("evidence", "verify", str(tmp_path / "e"))[0] == 8
