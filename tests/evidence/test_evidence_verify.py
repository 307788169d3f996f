"""Verifying evidence: what is whole, every kind of tampering by name, signatures, older versions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.evidence.evidence_bundles import (
    RECIPE,
    keys,
    made,
    report,
    request,
    test_entry,
)

from aicr.artifacts import signing
from aicr.artifacts.signers import Expected
from aicr.errors import AicrError
from aicr.validate.evidence import (
    attesting,
    canonical,
    inventory,
    pointer,
    predicate,
    signer,
    verification,
)

TYPE = "https://aicr.run/recipe-evidence/"


def verified(out: Path, trust: Expected | None = None) -> verification.Report:
    """The report about a folder."""
    return verification.verify_folder(str(out), trust or Expected())


def signed(folder: Path, **more: Any) -> tuple[Path, Expected]:
    """Evidence that a key signed where it is, and whom to trust."""
    private, public = keys(folder)
    out = folder / "evidence"
    attesting.attest(request(out, signingKey=private, **more))
    return out, Expected(key=signing.load_public_key(public))


def rebound(out: Path, change: Callable[[dict[str, Any]], None] = lambda said: None) -> None:
    """Make inventory and statement of a changed folder fit again, as a forger would."""
    root = out / "summary-bundle"
    files = {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }
    manifest = inventory.manifest(files)
    (root / "manifest.json").write_bytes(manifest)
    document = json.loads(files["statement.intoto.json"])
    said = document["predicate"]
    said["manifest"] = {
        "digest": canonical.digest(manifest),
        "fileCount": inventory.count(manifest),
    }
    for phase, counts in said["phases"].items():
        counts["ctrfDigest"] = canonical.digest(files[f"ctrf/{phase}.json"])
    said["bom"]["digest"] = canonical.digest(files["bom.cdx.json"])
    change(said)
    (root / "statement.intoto.json").write_text(json.dumps(document))


def test_whole_evidence_that_nobody_signed_is_pending(evidence: Path) -> None:
    """No failure, unless a signer is named."""
    found = verified(evidence)
    assert (found.result, found.errors, found.signature) == ("passed", [], "pending signature")
    named = verified(evidence, Expected(identity_regexp="^https://github.com/acme/.*"))
    assert named.result == "invalid"
    assert named.failed_step == "signature"
    assert "attestation.intoto.jsonl: is missing" in named.errors[0]


def test_the_bare_summary_bundle_verifies_too(evidence: Path) -> None:
    """Without its pointer."""
    assert verified(evidence / "summary-bundle").result == "passed"


@pytest.mark.parametrize("status", ["failed", "other"])
def test_recorded_failures_are_valid_and_are_told(tmp_path: Path, status: str) -> None:
    """A check without a verdict counts as one that did not pass."""
    made(
        tmp_path / "e",
        reports={"deployment": report(test_entry("a", status, "deployment"))},
    )
    found = verified(tmp_path / "e")
    assert found.result == "recorded-failures"
    assert found.failures == {"deployment": 1}


def test_a_key_vouches_for_all_of_it(tmp_path: Path) -> None:
    """The public key finds it whole; another key, or none, cannot tell and so refuses."""
    out, trust = signed(tmp_path)
    found = verified(out, trust)
    assert (found.result, found.errors) == ("passed", [])
    assert found.pinned
    assert found.signer is not None
    assert found.signer.identity.startswith("key:sha256:")
    assert verified(out).result == "invalid"
    assert "none was named" in verified(out).errors[0]
    (tmp_path / "other").mkdir()
    _, other = keys(tmp_path / "other")
    wrong = verified(out, Expected(key=signing.load_public_key(other)))
    assert wrong.failed_step == "signature"
    assert wrong.errors[0].startswith("attestation.intoto.jsonl: ")


PARTS = [
    "recipe.yaml",
    "snapshot.yaml",
    "bom.cdx.json",
    "ctrf/deployment.json",
    "ctrf/performance.json",
    "manifest.json",
    "statement.intoto.json",
    "attestation.intoto.jsonl",
]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("how", ["changed", "removed", "linked"])
def test_tampering_with_any_part_is_refused_and_the_part_named(
    tmp_path: Path, part: str, how: str
) -> None:
    """A byte, a missing file, a link in its place."""
    out, trust = signed(tmp_path)
    path = out / "summary-bundle" / part
    data = path.read_bytes()
    if how == "changed":
        at = data.index(b"a", len(data) // 2)
        path.write_bytes(data[:at] + b"b" + data[at + 1 :])
    else:
        path.unlink()
    if how == "linked":
        (tmp_path / "elsewhere").write_bytes(data)
        path.symlink_to(tmp_path / "elsewhere")
    found = verified(out, trust)
    assert found.result == "invalid"
    assert any(part in problem for problem in found.errors), found.errors


@pytest.mark.parametrize("path", ["summary-bundle/extra.txt", "summary-bundle/ctrf/x.json", "x"])
def test_nothing_else_may_be_there(evidence: Path, path: str) -> None:
    """The world is closed, beside the bundle as well."""
    (evidence / path).write_text("{}")
    found = verified(evidence)
    assert found.result == "invalid"
    assert any(problem.startswith(path.removeprefix("summary-bundle/")) for problem in found.errors)


def test_a_listed_file_that_belongs_nowhere_is_refused(evidence: Path) -> None:
    """A forger lists it, and nobody would look at it."""
    (evidence / "summary-bundle" / "notes.txt").write_text("x")
    rebound(evidence)
    assert verified(evidence).errors == ["notes.txt: does not belong into the bundle"]


def test_a_forger_who_fixes_all_digests_is_stopped_by_the_signature(tmp_path: Path) -> None:
    """The statement then says something else than what was signed."""
    out, trust = signed(tmp_path)
    path = out / "summary-bundle" / "ctrf" / "deployment.json"
    path.write_bytes(path.read_bytes().replace(b'"nodesTotal": "2"', b'"nodesTotal": "9"'))
    rebound(out)
    found = verified(out, trust)
    assert found.failed_step == "predicate"
    assert any(problem.startswith("statement.intoto.json: ") for problem in found.errors)
    assert any(problem.startswith("manifest.json: ") for problem in found.errors)


@pytest.mark.parametrize(
    ("part", "before", "after", "said"),
    [
        (
            "ctrf/deployment.json",
            b'"status": "passed"',
            b'"status": "passed", "stdout": ["gpu-node-17"]',
            "ctrf/deployment.json: is not what redaction makes of it",
        ),
        (
            "ctrf/deployment.json",
            b'"status": "passed"',
            b'"status": "failed"',
            "ctrf/deployment.json: its counts are not what the predicate says",
        ),
        (
            "ctrf/deployment.json",
            b'"tests": [',
            b'"tests": [3,',
            "ctrf/deployment.json: is not a CTRF report",
        ),
        (
            "snapshot.yaml",
            b"metadata:\n",
            b"metadata:\n  source-node: gpu-node-17\n",
            "snapshot.yaml: is not what redaction makes of it",
        ),
        ("snapshot.yaml", b"measurements:", b"measurementz:", "snapshot.yaml: snapshot has no"),
        (
            "recipe.yaml",
            b"v25.3.0",
            b"v25.3.1",
            "recipe.yaml: has another digest than the predicate says",
        ),
        (
            "recipe.yaml",
            b"kind: RecipeResult\n",
            b"kind: RecipeResult # x\n",
            "recipe.yaml: is not in canonical form",
        ),
        (
            "bom.cdx.json",
            b'"specVersion": "1.6"',
            b'"specVersion": "1.5"',
            "bom.cdx.json is not a CycloneDX 1.6 document",
        ),
    ],
    ids=["stdout", "status", "shape", "snapshot", "no snapshot", "recipe", "comment", "bom"],
)
def test_content_is_held_against_the_claim(
    evidence: Path, part: str, before: bytes, after: bytes, said: str
) -> None:
    """Also where all digests fit."""
    path = evidence / "summary-bundle" / part
    data = path.read_bytes()
    assert before in data
    path.write_bytes(data.replace(before, after, 1))
    rebound(evidence)
    found = verified(evidence)
    assert found.failed_step == "content"
    assert any(said in problem for problem in found.errors), found.errors


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"redaction": {"policy": "none", "version": 5}}, "a redaction policy that is not known"),
        ({"redaction": {"policy": "minimal", "version": 99}}, "version 99 is not known"),
        ({"redaction": {"policy": "minimal", "version": 5}}, "does not list the rules"),
        ({"fingerprint": {"region": "acme-dc-4"}}, "holds what redaction leaves out"),
        ({"phases": {"readiness": {"ctrfDigest": "x"}}}, "phases that there are not"),
        ({"recipe": {"name": "../x", "digest": "0"}}, "not one segment of a path"),
        ({"recipe": {"name": "other", "digest": "0"}}, "not the recipe other"),
        ({"bom": {"digest": "0", "imageCount": 7}}, "its imageCount is not"),
        ({"schemaVersion": "2.0.0"}, "not of schema version 1.0.0"),
        ({"manifest": {}}, "the predicate has no manifest"),
    ],
)
def test_a_claim_that_cannot_be_is_refused(
    evidence: Path, change: dict[str, Any], said: str
) -> None:
    """Each by what is wrong with it."""
    rebound(evidence, lambda predicate: predicate.update(change))
    found = verified(evidence)
    assert found.result == "invalid"
    assert any(said in problem for problem in found.errors), found.errors


def test_evidence_redacted_by_an_older_policy_is_accepted_with_a_notice(evidence: Path) -> None:
    """Versions 1 to 4 are known; only the newest can be applied again."""
    rebound(evidence, lambda said: said["redaction"].update(version=4))
    found = verified(evidence)
    assert found.result == "passed"
    assert "redacted by version 4" in found.notices[0]


def test_full_evidence_is_valid_and_says_so(tmp_path: Path) -> None:
    """Nobody should publish it by mistake."""
    made(tmp_path / "e", full=True)
    found = verified(tmp_path / "e")
    assert found.result == "passed"
    assert "do not publish" in found.notices[0]


POINTERS = [
    ("recipe", "other", "pointer.yaml: its recipe is 'other'"),
    ("recipe", "../x", "pointer.yaml: the pointer's recipe is not one segment"),
    ("schemaVersion", "9", "pointer.yaml: not a pointer of schema version"),
    ("attestations", [], "pointer.yaml: a pointer has exactly one attestation"),
    ("profile", {"selection": "a=b"}, "pointer.yaml: its profile is"),
]


@pytest.mark.parametrize(
    ("key", "value", "said"), POINTERS, ids=[row[2][14:40] for row in POINTERS]
)
def test_a_pointer_that_says_something_else_is_refused(
    evidence: Path, key: str, value: Any, said: str
) -> None:
    """It is part of what was made."""
    path = evidence / "pointer.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), key: value}))
    assert any(said in problem for problem in verified(evidence).errors)


def test_a_pointer_with_a_signer_needs_a_signature(tmp_path: Path) -> None:
    """Taking the signature away does not make it pending; another signer's name is refused."""
    out, trust = signed(tmp_path)
    path = out / "pointer.yaml"
    document = yaml.safe_load(path.read_text())
    document["attestations"][0]["signer"]["identity"] = "key:sha256:other"
    text = path.read_text()
    path.write_text(yaml.safe_dump(document))
    assert (
        "pointer.yaml: names another signer than the one who signed" in verified(out, trust).errors
    )
    path.write_text(text)
    (out / "summary-bundle" / "attestation.intoto.jsonl").unlink()
    found = verified(out)
    assert found.errors == ["pointer.yaml: names a signer, and the bundle is not signed"]


def statement(evidence: Path) -> dict[str, Any]:
    """The statement of a bundle."""
    path = evidence / "summary-bundle" / "statement.intoto.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_older_versions_verify_with_the_canonical_form_of_their_time(
    tmp_path: Path, version: str
) -> None:
    """Version 1 without, version 2 with a profile; both keep metadata.version in the recipe."""
    selected = {"name": "gpu", "value": "dra", "ownedPaths": {}}
    metadata = dict(RECIPE["metadata"])
    if version == "v2":
        metadata["selectedProfile"] = selected
    recipe = {**RECIPE, "metadata": metadata}
    out = tmp_path / "e"
    made(out, recipe=recipe)
    form = canonical.recipe(recipe, keep_version=True)
    (out / "summary-bundle" / "recipe.yaml").write_bytes(form)
    rebound(out, lambda said: said["recipe"].update(digest=canonical.digest(form)))
    document = statement(out)
    document["predicateType"] = TYPE + version
    document["subject"][0]["digest"]["sha256"] = canonical.digest(form)
    path = out / "summary-bundle" / "statement.intoto.json"
    path.write_text(json.dumps(document))
    text = (out / "pointer.yaml").read_text()
    (out / "pointer.yaml").write_text(text.replace(f"{TYPE}v3", TYPE + version))
    assert verified(out).errors == []
    document["predicateType"] = f"{TYPE}v1" if version == "v2" else f"{TYPE}v2"
    path.write_text(json.dumps(document))
    said = "has no profile block" if version == "v2" else "must have a profile block"
    assert said in verified(out).errors[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"_type": "x"}, "not an in-toto statement"),
        ({"predicateType": f"{TYPE}v4"}, "is not known"),
        ({"predicateType": None}, "is not known"),
        ({"subject": []}, "must have one subject"),
        ({"subject": [{"name": "", "digest": {}}]}, "subject has no name"),
        ({"subject": [{"name": "recipe:x", "digest": {"sha256": "0"}}]}, "not 64 hex digits"),
        ({"subject": [{"name": "recipe:x", "digest": {"sha256": "0" * 64}}]}, "its subject is"),
        ({"predicate": 3}, "not of schema version"),
    ],
)
def test_a_statement_that_is_none_is_refused(
    evidence: Path, change: dict[str, Any], said: str
) -> None:
    """Whatever the rest says."""
    path = evidence / "summary-bundle" / "statement.intoto.json"
    path.write_text(json.dumps({**statement(evidence), **change}))
    assert any(said in problem for problem in verified(evidence).errors)


@pytest.mark.parametrize("data", [b"{", b"\xff", b"[]", b"{}"])
@pytest.mark.parametrize("part", ["manifest.json", "statement.intoto.json", "recipe.yaml"])
def test_files_of_another_kind_are_refused_and_not_a_crash(
    evidence: Path, part: str, data: bytes
) -> None:
    """Named like the part they stand for."""
    (evidence / "summary-bundle" / part).write_bytes(data)
    assert any(part in problem for problem in verified(evidence).errors)


def test_a_digest_that_is_none_is_never_put_into_a_statement() -> None:
    """Nor an unknown type."""
    for digest, type_ in (("A" * 64, predicate.V3), ("a" * 63, predicate.V3), ("a" * 64, "x")):
        with pytest.raises(AicrError):
            predicate.statement({}, "recipe:x", digest, type_)


SIGNER = pointer.Signer(
    "https://github.com/acme/gpu/.github/workflows/e.yaml@refs/heads/main",
    "https://token.actions.githubusercontent.com",
    42,
)


def test_a_pointers_place_is_made_of_recipe_signer_and_digest() -> None:
    """Two signers never share one; what cannot be part of a path is refused."""
    path = pointer.commit_path("h100-eks", "sha256:" + "a" * 64, SIGNER)
    head, recipe, slug, name = path.rsplit("/", 3)
    assert (head, recipe, name) == ("recipes/evidence", "h100-eks", f"sha256-{'a' * 64}.yaml")
    assert slug.startswith("token-actions-githubusercontent-com-github-com-acme-gpu")
    assert canonical.is_segment(slug)
    other = pointer.Signer(SIGNER.identity + "x", SIGNER.issuer)
    assert pointer.source_slug(other) != slug
    assert pointer.commit_path("h100-eks") == "recipes/evidence/h100-eks.yaml"
    for recipe, digest in (("..", "sha256:" + "a" * 64), ("a/b", ""), ("a", "sha256:" + "A" * 64)):
        with pytest.raises(AicrError) as caught:
            pointer.commit_path(recipe, digest, SIGNER)
        assert caught.value.code == "INVALID_REQUEST"


def test_a_signed_pointer_moves_to_its_place_and_overwrites_nothing(tmp_path: Path) -> None:
    """Twice is once; another content in the same place is a conflict."""
    said = {"recipe": {"name": "h100-eks"}, "attestedAt": "2026-03-04T05:06:07Z"}
    where = {"oci": "oci://h.example/e:v1", "digest": "sha256:" + "a" * 64}
    flat = canonical.text(pointer.document(said, predicate.V3))
    full = canonical.text(pointer.document(said, predicate.V3, signer=SIGNER, **where))
    assert pointer.place(str(tmp_path), flat) == "recipes/evidence/h100-eks.yaml"
    path = pointer.place(str(tmp_path), full)
    assert pointer.place(str(tmp_path), full) == path
    assert (tmp_path / path).read_bytes() == full
    assert not (tmp_path / "recipes" / "evidence" / "h100-eks.yaml").exists()
    assert b"rekorLogIndex: 42" in full
    (tmp_path / path).write_text("x")
    with pytest.raises(AicrError) as caught:
        pointer.place(str(tmp_path), full)
    assert caught.value.code == "CONFLICT"
    assert (tmp_path / path).read_text() == "x"
    assert [entry.name for entry in (tmp_path / path).parent.iterdir()] == [path.rpartition("/")[2]]


def test_a_log_index_is_read_where_there_is_one() -> None:
    """As text or number; none is none."""
    for given, index in (("7", 7), (7, 7), ("x", None), (None, None)):
        entry = {"verificationMaterial": {"tlogEntries": [{"logIndex": given}]}}
        assert signer.log_index(json.dumps(entry).encode()) == index
    assert signer.log_index(b"{}") is None
