"""What a bundle of evidence holds, what it claims, and what it must never hold."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.evidence.evidence_bundles import (
    PLANTED,
    RECIPE,
    SNAPSHOT,
    made,
    planted_in,
    predicate_of,
    report,
    reports,
    test_entry,
    tree,
)

from aicr import Catalog
from aicr.artifacts import cyclonedx
from aicr.errors import AicrError
from aicr.validate import redaction
from aicr.validate.evidence import bill, bounded, bundle, canonical, predicate

SUMMARY = "summary-bundle/"


def refused(code: str, out: Path, /, **more: Any) -> AicrError:
    """The error of evidence that cannot be made; nothing was written."""
    with pytest.raises(AicrError) as caught:
        made(out, **more)
    assert caught.value.code == code
    return caught.value


def test_a_bundle_has_the_files_of_the_specification(evidence: Path) -> None:
    """0600 and 0755, whatever the umask."""
    files = tree(evidence)
    assert sorted(files) == [
        "pointer.yaml",
        f"{SUMMARY}bom.cdx.json",
        f"{SUMMARY}ctrf/deployment.json",
        f"{SUMMARY}ctrf/performance.json",
        f"{SUMMARY}manifest.json",
        f"{SUMMARY}recipe.yaml",
        f"{SUMMARY}snapshot.yaml",
        f"{SUMMARY}statement.intoto.json",
    ]
    modes = {stat.S_IMODE((evidence / path).stat().st_mode) for path in files}
    assert modes == {0o600}
    assert stat.S_IMODE((evidence / "summary-bundle" / "ctrf").stat().st_mode) == 0o755


def test_the_predicate_says_what_was_run_on_what(evidence: Path) -> None:
    """Every field of the specification, at its place."""
    said = predicate_of(evidence)
    files = {path.removeprefix(SUMMARY): data for path, data in tree(evidence).items()}
    digests = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    assert said["schemaVersion"] == "1.0.0"
    assert said["attestedAt"] == "2026-03-04T05:06:07Z"
    assert said["validatorCatalogVersion"] == "1.0.0"
    assert said["validatorImages"] == [
        {"image": "aicr.local/aicr-checks-deployment:v0.1.0", "digest": ""}
    ]
    assert said["recipe"] == {
        "name": "h100-eks-ubuntu-training",
        "digest": digests["recipe.yaml"],
    }
    assert said["phases"] == {
        "deployment": {
            "passed": 1,
            "failed": 0,
            "skipped": 1,
            "ctrfDigest": digests["ctrf/deployment.json"],
        },
        "performance": {
            "passed": 1,
            "failed": 0,
            "skipped": 0,
            "ctrfDigest": digests["ctrf/performance.json"],
        },
    }
    assert said["bom"] == {
        "format": "CycloneDX",
        "version": "1.6",
        "digest": digests["bom.cdx.json"],
        "imageCount": 1,
    }
    assert said["manifest"] == {"digest": digests["manifest.json"], "fileCount": 5}
    assert said["redaction"] == redaction.record()
    assert said["criteriaMatch"]["matched"] is True
    assert "profile" not in said
    statement = json.loads(files["statement.intoto.json"])
    assert statement["predicateType"] == "https://aicr.run/recipe-evidence/v3"
    assert statement["subject"] == [
        {
            "name": "recipe:h100-eks-ubuntu-training",
            "digest": {"sha256": digests["recipe.yaml"]},
        }
    ]
    assert files["ctrf/deployment.json"].startswith(b'{\n  "reportFormat"')
    assert files["ctrf/deployment.json"].endswith(b"}\n")


@pytest.mark.covers("V-171", "V-173")
def test_planted_words_are_in_full_and_not_in_the_default_bundle(tmp_path: Path) -> None:
    """Names of nodes, addresses, hosts, secrets, tokens: every byte is searched, packed ones too."""
    catalog = Catalog.builtin()
    made(tmp_path / "minimal", catalog=catalog)
    lines = made(tmp_path / "full", catalog=catalog, full=True)
    assert planted_in(tree(tmp_path / "minimal")) == set()
    assert planted_in(tree(tmp_path / "full")) == set(PLANTED)
    assert lines[0].startswith("warning: --full: ")


@pytest.mark.covers("V10-88")
def test_full_evidence_names_no_policy_and_keeps_what_checks_printed(tmp_path: Path) -> None:
    """And the snapshot as it was."""
    made(tmp_path / "full", full=True)
    assert "redaction" not in predicate_of(tmp_path / "full")
    summary = tmp_path / "full" / "summary-bundle"
    tests = json.loads((summary / "ctrf" / "deployment.json").read_text())["results"]["tests"]
    assert tests[0]["stdout"][0] == "saw gpu-node-17"
    assert yaml.safe_load((summary / "snapshot.yaml").read_text()) == SNAPSHOT
    assert "region" in predicate_of(tmp_path / "full")["fingerprint"]


@pytest.mark.covers("V-056")
def test_a_withheld_check_is_accounted_for(evidence: Path) -> None:
    """Counted as skipped, with the code that survives and without the prose."""
    path = evidence / "summary-bundle" / "ctrf" / "deployment.json"
    withheld = json.loads(path.read_text())["results"]["tests"][1]
    assert withheld["name"] == "expected-resources"
    assert withheld["status"] == "skipped"
    assert withheld["extra"] == {"skipReason": "named-in-skip-checks"}
    assert "message" not in withheld
    assert predicate_of(evidence)["phases"]["deployment"]["skipped"] == 1


@pytest.mark.covers("V10-87")
def test_two_releases_give_one_subject(tmp_path: Path) -> None:
    """The version of the program is not part of what is deployed; everything else is."""
    newer = {**RECIPE, "metadata": {**RECIPE["metadata"], "version": "0.2.0"}}
    other = {**RECIPE, "criteria": {**RECIPE["criteria"], "intent": "inference"}}
    digests = []
    for number, recipe in enumerate((RECIPE, newer, other)):
        made(tmp_path / str(number), recipe=recipe)
        digests.append(predicate_of(tmp_path / str(number))["recipe"]["digest"])
    assert digests[0] == digests[1] != digests[2]
    assert canonical.recipe(RECIPE, keep_version=True) != canonical.recipe(newer, keep_version=True)


def test_a_checks_failure_is_evidence_too(tmp_path: Path) -> None:
    """Failed and other are counted; other is left out when there is none."""
    entries = [
        test_entry(name, status, "deployment")
        for name, status in (("a", "failed"), ("b", "other"), ("c", "passed"))
    ]
    made(tmp_path / "e", reports={"deployment": report(*entries)})
    counts = predicate_of(tmp_path / "e")["phases"]["deployment"]
    assert {key: counts[key] for key in ("passed", "failed", "skipped", "other")} == {
        "passed": 1,
        "failed": 1,
        "skipped": 0,
        "other": 1,
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"out": ""}, "needs a folder"),
        ({"recipe": {}}, "needs a recipe"),
        ({"snapshot": {}}, "needs a snapshot"),
        ({"reports": {}}, "needs the results of a phase"),
        ({"recipe": {"kind": "RecipeResult"}}, "recipe has no resolvable name"),
        ({"recipe": {"criteria": {"service": "../x"}}}, "recipe has no resolvable name"),
        ({"push": "oci://Bad Host/x"}, "is not a registry"),
        ({"push": "oci://h.example/x@sha256:" + "a" * 64}, "a digest is what a push answers with"),
    ],
    ids=["out", "recipe", "snapshot", "reports", "criteria", "name", "reference", "digest"],
)
def test_evidence_that_cannot_be_made_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """Each missing input by name; nothing is written."""
    error = refused("INVALID_REQUEST", tmp_path / "e", **change)
    assert said in str(error)
    assert not (tmp_path / "e").exists()


def test_a_recipe_with_a_login_in_it_is_not_published(tmp_path: Path) -> None:
    """The recipe is published as it is, so the place is named and nothing is written."""
    ref = {"name": "x", "type": "Helm", "source": "https://bob:hunter2-password@charts.example"}
    error = refused("INVALID_REQUEST", tmp_path / "e", recipe={**RECIPE, "componentRefs": [ref]})
    assert "componentRefs[0].source" in error.message
    assert "hunter2" not in str(error)
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize(
    ("criteria", "name"),
    [
        ({"service": "any"}, "recipe"),
        ({}, "recipe"),
        ({"platform": "slurm", "os": "any", "accelerator": "gb200"}, "gb200-slurm"),
    ],
    ids=["any", "none", "order"],
)
def test_a_recipe_is_named_by_its_criteria(criteria: dict[str, str], name: str) -> None:
    """Accelerator, service, os, intent, platform; open ones left out."""
    assert canonical.recipe_name({"criteria": criteria}) == name


def test_building_has_a_bound() -> None:
    """Past it a TIMEOUT."""
    content = bundle.Content(RECIPE, SNAPSHOT, reports(), [], "1", "0.1.0", "2026-03-04T05:06:07Z")
    moments = iter([0.0, 61.0])
    deadline = bounded.Deadline(60.0, "building the evidence", now=lambda: next(moments))
    with pytest.raises(AicrError) as caught:
        bundle.build(content, deadline)
    assert caught.value.code == "TIMEOUT"


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    """Key order of what is handed in does not matter."""
    made(tmp_path / "a")
    made(tmp_path / "b", recipe=dict(reversed(list(RECIPE.items()))))
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_only_whole_evidence_of_ours_is_replaced(evidence: Path, tmp_path: Path) -> None:
    """Anything else in the folder is a conflict, and stays."""
    made(evidence, full=True)
    assert "redaction" not in predicate_of(evidence)
    (evidence / "notes.txt").write_text("mine")
    before = tree(evidence)
    assert "notes.txt" in refused("CONFLICT", evidence).message
    assert tree(evidence) == before
    (tmp_path / "file").write_text("")
    assert "is not a folder" in refused("INVALID_REQUEST", tmp_path / "file").message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evidence", "file"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143)])
@pytest.mark.parametrize("function", ["mkdir", "write", "rename"])
def test_an_interrupted_run_leaves_the_older_evidence_in_its_place(
    evidence: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: BaseException
) -> None:
    """Ctrl-C or a request to end while evidence is replaced: all of the old, and nothing beside it."""
    before = tree(evidence.parent)
    real = getattr(os, function)
    calls: list[object] = []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise error
        return real(*arguments)

    monkeypatch.setattr(os, function, interrupted)
    with pytest.raises(type(error)):
        made(evidence, full=True)
    monkeypatch.undo()
    assert tree(evidence.parent) == before


def test_older_evidence_that_cannot_be_removed_is_named(
    evidence: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new evidence is in place; the error says what is left and where."""
    monkeypatch.setattr(os, "unlink", _denied)
    error = refused("INTERNAL", evidence, full=True)
    monkeypatch.undo()
    [left] = [path.name for path in evidence.parent.iterdir() if path.name != evidence.name]
    assert left in error.message
    assert error.where == "--emit-attestation"
    assert "redaction" not in predicate_of(evidence)


def _denied(*_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def test_an_automatic_bill_has_components_checks_and_known_images(tmp_path: Path) -> None:
    """It fits the schema; what only the customer runs is counted, and named in full evidence."""
    catalog = Catalog.builtin()
    made(tmp_path / "minimal", catalog=catalog)
    made(tmp_path / "full", catalog=catalog, full=True)
    found = {}
    for name in ("minimal", "full"):
        text = (tmp_path / name / "summary-bundle" / "bom.cdx.json").read_text()
        cyclonedx.validate(text)
        found[name] = {part["bom-ref"]: part for part in json.loads(text)["components"]}
    minimal = found["minimal"]
    assert minimal["recipe-evidence/gpu-operator"]["version"] == "v25.3.0"
    assert "recipe-evidence/off" not in minimal
    assert "img:aicr.local/aicr-checks-deployment:v0.1.0" in minimal
    seen = [ref for ref in minimal if ref.startswith("observed:")]
    assert seen == ["observed:busybox", "observed:kubectl:1.36.2"]
    properties = minimal["recipe-evidence/observed-images"]["properties"]
    assert {entry["name"]: entry["value"] for entry in properties} == {
        "aicr:observed:count": "4",
        "aicr:observed:withheld": "2",
    }
    assert "observed:acme-trading-bot:v3" in found["full"]


def test_a_bill_made_before_wins(tmp_path: Path) -> None:
    """Its bytes, its digest, its count of images."""
    document = cyclonedx.document("x", "1", [cyclonedx.Part(cyclonedx.CONTAINER, "i", "i")])
    (tmp_path / "bom.json").write_text(json.dumps(document))
    made(tmp_path / "e", bom=str(tmp_path / "bom.json"))
    assert tree(tmp_path / "e")[f"{SUMMARY}bom.cdx.json"] == (tmp_path / "bom.json").read_bytes()
    assert predicate_of(tmp_path / "e")["bom"]["imageCount"] == 1


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (None, "NOT_FOUND", "no such file"),
        ("{", "INVALID_REQUEST", "not valid JSON"),
        (
            '{"bomFormat": "CycloneDX", "specVersion": "1.4"}',
            "INVALID_REQUEST",
            "not a CycloneDX 1.6",
        ),
        (
            '{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": 1}',
            "INVALID_REQUEST",
            "must be a list",
        ),
    ],
    ids=["absent", "json", "version", "shape"],
)
def test_a_bill_that_is_none_is_refused(
    tmp_path: Path, text: str | None, code: str, said: str
) -> None:
    """Before anything is written."""
    path = tmp_path / "bom.json"
    if text is not None:
        path.write_text(text)
    assert said in refused(code, tmp_path / "e", bom=str(path)).message
    assert not (tmp_path / "e").exists()


def test_a_bill_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """More is no bill of materials."""
    monkeypatch.setattr(bill, "MAX_BYTES", 3)
    with pytest.raises(AicrError, match="larger than 3 bytes"):
        bill.check(b"{}  ", "bom.json")


SELECTED = {
    "name": "gpu-allocation",
    "value": "dra",
    "advertiser": "external",
    "ownedPaths": {"gpu-operator": ["devicePlugin.enabled"]},
}


def test_a_profile_is_part_of_the_claim(tmp_path: Path) -> None:
    """Selection, advertiser and an identity that changes with the policy."""
    recipe = {**RECIPE, "metadata": {**RECIPE["metadata"], "selectedProfile": SELECTED}}
    made(tmp_path / "e", recipe=recipe)
    block = predicate_of(tmp_path / "e")["profile"]
    assert block["selection"] == "gpu-allocation=dra"
    assert block["advertiser"] == "external"
    other = predicate.profile_of({"metadata": {"selectedProfile": {**SELECTED, "ownedPaths": {}}}})
    assert other is not None
    assert other["policyDescriptorIdentity"] != block["policyDescriptorIdentity"]
    pointer = yaml.safe_load((tmp_path / "e" / "pointer.yaml").read_text())
    assert pointer["profile"] == block


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"selection": "dra"}, "needs a selection"),
        ({"selection": "gpu-allocation=plugin"}, "disagree on the profile's selection"),
        ({"advertiser": "own"}, "disagree on the profile's advertiser"),
        ({"policyDescriptorIdentity": ""}, "needs a policyDescriptorIdentity"),
        ({"policyDescriptorIdentity": "sha256:0"}, "disagree on the profile's policy"),
    ],
    ids=["grammar", "selection", "advertiser", "no identity", "identity"],
)
def test_recipe_and_claim_agree_on_the_profile(change: dict[str, str], said: str) -> None:
    """Or nothing is signed."""
    recipe = {"metadata": {"selectedProfile": SELECTED}}
    block = {**(predicate.profile_of(recipe) or {}), **change}
    with pytest.raises(AicrError, match=said):
        predicate.check_profile(block, recipe)
    with pytest.raises(AicrError, match=r"disagree|needs a selection"):
        predicate.check_profile(None, recipe)
    with pytest.raises(AicrError, match="disagree"):
        predicate.check_profile(predicate.profile_of(recipe), {})


@pytest.mark.parametrize(
    ("recipe_says", "snapshot_says", "result"),
    [("h100", "h100", "match"), ("h100", "gb200", "mismatch"), ("h100", None, "unknown")],
    ids=["match", "mismatch", "unknown"],
)
def test_criteria_are_held_against_the_snapshot(
    recipe_says: str, snapshot_says: str | None, result: str
) -> None:
    """What a snapshot does not say is unknown, and unknown is no match."""
    seen = {} if snapshot_says is None else {"accelerator": snapshot_says}
    found = predicate.criteria_match({"criteria": {"accelerator": recipe_says, "os": "any"}}, seen)
    assert found["criteria"]["accelerator"]["result"] == result
    assert set(found["criteria"]) == {"accelerator"}
    assert found["matched"] is (result == "match")
