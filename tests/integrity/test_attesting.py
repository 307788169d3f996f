"""Signing a bundle when it is made: ``aicr bundle --attest``."""

from __future__ import annotations

import base64
import json
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import EKS, aicr
from tests.integrity.signed_bundles import KEYS, FakeSigstore, bundle_files, write_key

from aicr.artifacts import checksums, dsse, keyless, signing, statements
from aicr.bundle import publish
from aicr.errors import AicrError

FACTS = statements.Facts("recipe.yaml", "helm", ["a"], "1.0.0", {"recipe.yaml": "0" * 64}, False)


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    """A recipe in a file."""
    path = tmp_path / "recipe.yaml"
    path.write_text(aicr("recipe", *EKS).out, encoding="utf-8")
    return str(path)


def test_an_attested_bundle_verifies_and_says_that_it_is_attested(
    recipe: str, tmp_path: Path
) -> None:
    """The command line signs, the file lies in attestation/, and bundle-info.yaml says so."""
    private, public = write_key(tmp_path, KEYS["P-256"]())
    out = tmp_path / "b"
    assert aicr("bundle", "-r", recipe, "-o", out, "--attest", "--signing-key", private).status == 0
    assert "    attested: true\n" in (out / "bundle-info.yaml").read_text()
    assert stat.S_IMODE((out / dsse.PATH).stat().st_mode) == 0o644
    assert aicr("verify", out, "--key", public).status == 0
    # An attested bundle of ours is replaced as any other (decision 47).
    assert aicr("bundle", "-r", recipe, "-o", out).status == 0
    assert not (out / "attestation").exists()


@pytest.mark.parametrize("kind", list(KEYS))
def test_equal_bundles_have_equal_attestations(kind: str, tmp_path: Path) -> None:
    """Signatures are deterministic, and a statement holds no time and no path of the machine."""
    private, _ = write_key(tmp_path, KEYS[kind]())
    sign = signing.load_private_key(private).sign
    first = publish.attested(bundle_files(), sign, tool_version="1")
    assert publish.attested(bundle_files(), sign, tool_version="1") == first
    assert str(tmp_path).encode() not in first[dsse.PATH][0]


def test_the_statement_is_about_the_list_and_what_went_in(tmp_path: Path) -> None:
    """In-toto v1 with SLSA provenance: subject, build type, components, inputs (7.4)."""
    private, _ = write_key(tmp_path, KEYS["Ed25519"]())
    sign = signing.load_private_key(private).sign
    files = publish.attested(
        bundle_files(data={"overlays/x.yaml": b"x"}), sign, tool_version="1.2.3"
    )
    attestation = dsse.read(files[dsse.PATH][0])
    document = json.loads(attestation.payload)
    listing = files["checksums.txt"][0]
    assert document["subject"] == [
        {"name": "checksums.txt", "digest": {"sha256": checksums.sha256_hex(listing)}}
    ]
    assert document["predicateType"] == "https://slsa.dev/provenance/v1"
    definition = document["predicate"]["buildDefinition"]
    assert definition["externalParameters"] == {
        "recipe": "recipe.yaml",
        "recipeSource": "external",
    }
    assert definition["internalParameters"] == {
        "components": ["driver"],
        "deployer": "helm",
        "toolVersion": "1.2.3",
    }
    uris = [item["uri"] for item in definition["resolvedDependencies"]]
    assert uris == ["data/overlays/x.yaml", "recipe.yaml"]
    assert "startedOn" not in json.dumps(document)


def test_the_signature_is_over_the_pre_authentication_encoding() -> None:
    """The example of the DSSE protocol."""
    assert dsse.pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_payload_of_another_type_is_not_what_was_signed(tmp_path: Path) -> None:
    """Changing the type of the envelope breaks the signature."""
    private, public = write_key(tmp_path, KEYS["P-256"]())
    made = signing.load_private_key(private).sign(b"{}")
    other = made.replace(b"vnd.in-toto+json", b"vnd.other+json")
    with pytest.raises(AicrError, match="was not made with this key"):
        signing.load_public_key(public).verify(dsse.read(other))


def test_an_encrypted_key_is_opened_with_the_password_of_the_environment(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No flag takes a password, because every user of the machine could read it."""
    private, public = write_key(tmp_path, KEYS["P-256"](), password="secret")
    command = ("bundle", "-r", recipe, "-o", tmp_path / "b", "--attest", "--signing-key", private)
    aicr(*command).refused(2, "is encrypted", "AICR_SIGNING_KEY_PASSWORD")
    monkeypatch.setenv("AICR_SIGNING_KEY_PASSWORD", "wrong")
    aicr(*command).refused(2, "its password is wrong")
    monkeypatch.setenv("AICR_SIGNING_KEY_PASSWORD", "secret")
    assert aicr(*command).status == 0
    assert aicr("verify", tmp_path / "b", "--key", public).status == 0


@pytest.mark.parametrize(
    ("flags", "status", "said"),
    [
        (["--signing-key", "k.pem"], 2, "add --attest"),
        (["--identity-token", "x"], 2, "add --attest"),
        (["--attest", "--signing-key", " "], 2, "--signing-key is blank"),
        (["--attest", "--signing-key", "k", "--identity-token", "t"], 2, "name two signers"),
        (["--attest", "--signing-key", "none.pem"], 3, "key file not found: none.pem"),
        (["--attest", "--signing-key", "gcpkms://x"], 2, "keys of key services"),
        (["--attest", "--signing-key", "PUBLIC"], 2, "is a public key"),
        (["--attest", "--signing-key", "RECIPE"], 2, "is not a private key in PEM"),
        (["--image-refs", "x"], 2, "--image-refs is for bundles that are pushed"),
        (["--plain-http"], 2, "--plain-http is for bundles that are pushed"),
        (["--insecure-tls"], 2, "--insecure-tls is for bundles that are pushed"),
    ],
)
@pytest.mark.covers("B10-77")
def test_flags_that_cannot_be_met_end_before_anything_is_made(
    flags: list[str], status: int, said: str, recipe: str, tmp_path: Path
) -> None:
    """Usage errors of signing and pushing (1.8); the output folder is untouched."""
    _, public = write_key(tmp_path, KEYS["P-256"]())
    places = {"PUBLIC": public, "RECIPE": recipe}
    words = [places.get(word, word) for word in flags]
    aicr("bundle", "-r", recipe, "-o", tmp_path / "b", *words).refused(status, said)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("marks", [True, False], ids=["between marks", "alone"])
@pytest.mark.parametrize("command", ["bundle", "verify"])
def test_a_key_that_is_none_is_refused_in_one_sentence(
    command: str, marks: bool, recipe: str, tmp_path: Path
) -> None:
    """What the library guesses, and what its own library said, is not about this file."""
    kind = "PRIVATE" if command == "bundle" else "PUBLIC"
    key = tmp_path / "key.pem"
    key.write_text(
        f"-----BEGIN {kind} KEY-----\nAAAA\n-----END {kind} KEY-----\n" if marks else "garbage\n"
    )
    if command == "bundle":
        done = aicr("bundle", "-r", recipe, "-o", tmp_path / "b", "--attest", "--signing-key", key)
    else:
        done = aicr("verify", tmp_path, "--key", key)
    done.refused(2, f"{key} is not a {kind.lower()} key in PEM")
    first = done.err.splitlines()[0]
    assert not re.search(r"[('\[]|See |\. ", first.partition("key in PEM")[2]), first


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: _weak_rsa(), "of 1024 bits is too short"),
        (lambda: _curve(), "the curve secp256k1 is not supported"),
        (lambda: _x25519(), "cannot sign here"),
    ],
    ids=["weak", "curve", "x25519"],
)
def test_keys_that_are_weak_or_cannot_sign_are_refused(
    make: Callable[[], Any], said: str, tmp_path: Path
) -> None:
    """The error says what is wrong with the key and what to use."""
    private, _ = write_key(tmp_path, make())
    with pytest.raises(AicrError, match=said):
        signing.load_private_key(private)


def _weak_rsa() -> Any:
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(public_exponent=65537, key_size=1024)


def _curve() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256K1())


def _x25519() -> Any:
    from cryptography.hazmat.primitives.asymmetric import x25519

    return x25519.X25519PrivateKey.generate()


def test_keyless_signing_asks_no_questions_without_a_terminal_but_says_what_it_publishes(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CI job is told that its identity becomes public; --yes says that this is known."""
    port = FakeSigstore()
    monkeypatch.setattr(keyless, "Sigstore", lambda: port)
    told = aicr("bundle", "-r", recipe, "-o", tmp_path / "b", "--attest")
    assert told.status == 0
    assert "into a public log for good" in told.err
    quiet = aicr("bundle", "-r", recipe, "-o", tmp_path / "c", "--attest", "--yes")
    assert "public log" not in quiet.err
    assert len(port.made) == 1


def test_keyless_signing_without_an_identity_names_the_ways_out(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails in signing leaves no bundle behind."""
    from aicr.errors import invalid

    class Nobody(FakeSigstore):
        def sign(self, statement: bytes, token: str) -> bytes:
            raise invalid("keyless signing needs an identity token")

    monkeypatch.setattr(keyless, "Sigstore", Nobody)
    result = aicr("bundle", "-r", recipe, "-o", tmp_path / "b", "--attest", "--yes")
    result.refused(2, "needs an identity token")
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("subjects", "said"),
    [
        ({}, "needs a subject"),
        ({"": "0" * 64}, "has no name"),
        ({"x": ""}, "has no sha256 digest"),
        ({"x": "abc"}, "is not 64 hex digits"),
        ({"x": "A" * 64}, "is not 64 hex digits"),
    ],
)
def test_a_statement_without_a_proper_subject_is_refused(
    subjects: dict[str, str], said: str
) -> None:
    """Subjects need a name and 64 hex digits (7.4)."""
    with pytest.raises(AicrError, match=said):
        statements.statement(subjects, FACTS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(_type="x"), "is not an in-toto statement v1"),
        (lambda d: d.update(predicateType="x"), "is about 'x'"),
        (lambda d: d.update(subject=[]), "has no subject"),
        (lambda d: d.update(subject=[{"name": "a"}]), "has no sha256 digest"),
        (lambda d: d.update(subject=d["subject"] * 2), "twice"),
        (lambda d: d["predicate"]["buildDefinition"].update(buildType="x"), "build of type 'x'"),
    ],
)
def test_a_signed_statement_about_something_else_is_refused(
    change: Callable[[dict[str, Any]], None], said: str
) -> None:
    """A signature by the right key over the wrong thing proves nothing."""
    document = json.loads(statements.statement({"checksums.txt": "0" * 64}, FACTS))
    change(document)
    with pytest.raises(AicrError, match=said):
        statements.parse(json.dumps(document).encode(), source="x")


def test_a_statement_about_another_file_does_not_cover_the_list() -> None:
    """The subject must be checksums.txt alone, with the digest of these bytes."""
    listing = b"x"
    good = checksums.sha256_hex(listing)
    claims = statements.parse(statements.statement({"checksums.txt": good}, FACTS), source="x")
    assert statements.mismatch(claims, listing) == ""
    assert "is about another" in statements.mismatch(claims, b"y")
    other = statements.parse(statements.statement({"recipe.yaml": good}, FACTS), source="x")
    assert "is not about checksums.txt" in statements.mismatch(other, listing)
    more = statements.statement({"recipe.yaml": good, "checksums.txt": good}, FACTS)
    assert "more than" in statements.mismatch(statements.parse(more, source="x"), listing)


def test_the_attestation_file_is_a_sigstore_bundle_for_a_key(tmp_path: Path) -> None:
    """Other tools read it: bundle v0.3, key hint, one DSSE signature over the payload."""
    private, public = write_key(tmp_path, KEYS["P-256"]())
    document = json.loads(signing.load_private_key(private).sign(b"{}"))
    assert document["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    hint = document["verificationMaterial"]["publicKey"]["hint"]
    assert hint == signing.load_public_key(public).hint
    envelope = document["dsseEnvelope"]
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert base64.b64decode(envelope["payload"]) == b"{}"
    assert len(envelope["signatures"]) == 1
