"""What a caller may ask of a bundle beyond being whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.program import aicr
from tests.integrity.signed_bundles import (
    IDENTITY,
    ISSUER,
    KEYS,
    FakeSigstore,
    bundle_files,
    signed,
    write_key,
    written,
)

from aicr.artifacts import keyless, signing, trust
from aicr.bundle import publish
from aicr.errors import AicrError


@pytest.mark.parametrize("kind", list(KEYS))
def test_a_bundle_signed_with_each_kind_of_key_is_verified(kind: str, tmp_path: Path) -> None:
    """The pinned key is the highest trust there is, and needs no network (decision 57)."""
    private, public = write_key(tmp_path, KEYS[kind]())
    bundle = written(tmp_path / "b", signed(bundle_files(), private))
    result = aicr("verify", bundle, "--key", public, "--format", "json")
    report = json.loads(result.out)
    assert result.status == 0
    assert (report["trustLevel"], report["identityPinned"]) == ("verified", True)
    assert report["bundleCreator"] == signing.load_public_key(public).key_id
    assert report["toolVersion"] == "1.2.3"


def test_external_data_caps_trust_at_attested(tmp_path: Path) -> None:
    """The default asks no more of such a bundle; a caller who does is told why it fails."""
    private, public = write_key(tmp_path, KEYS["P-256"]())
    files = signed(bundle_files(data={"registry.yaml": b"a: 1\n"}), private)
    bundle = written(tmp_path / "b", files)
    assert "trust level:   attested" in aicr("verify", bundle, "--key", public).out
    asked = aicr("verify", bundle, "--key", public, "--min-trust-level", "verified")
    assert asked.status == 8
    assert "trust level attested is below verified: it holds external data" in asked.out


@pytest.mark.parametrize(
    ("level", "status"),
    [("unknown", 0), ("unverified", 0), ("attested", 8), ("verified", 8), ("MAX ", 0)],
)
def test_an_unsigned_bundle_against_each_level(level: str, status: int, tmp_path: Path) -> None:
    """Levels are ordered, and compared with what was reached."""
    bundle = written(tmp_path / "b", bundle_files())
    assert aicr("verify", bundle, "--min-trust-level", level).status == status


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--min-trust-level", "verfied"], "did you mean verified?"),
        (["--format", "yaml"], 'unknown output format: "yaml"'),
        (["--certificate-identity-regexp", "acme"], "is not anchored"),
        (["--certificate-identity-regexp", "^.*"], "pins nobody"),
        (["--certificate-identity-regexp", "^https://.*"], "pins nobody"),
        (["--certificate-identity-regexp", "^https://.......*"], "pins nobody"),
        (["--certificate-identity-regexp", "^......"], "pins nobody"),
        (["--certificate-identity-regexp", "^https://github.com/.*"], "pins nobody"),
        (["--certificate-identity-regexp", "^https://github.com/acme.*"], "pins nobody"),
        (["--certificate-identity-regexp", "^https://github.com/acme/*.*"], "pins nobody"),
        (["--certificate-identity-regexp", "^https://github.com/(acme|.*)/x"], "pins nobody"),
        (["--certificate-identity-regexp", "^ci@acme.com.*"], "pins nobody"),
        (["--certificate-oidc-issuer", "https://i.example"], "but not for whom"),
        (["--certificate-oidc-issuer", " "], "--certificate-oidc-issuer is blank"),
        (["--min-trust-level", ""], "--min-trust-level is blank"),
        (["--certificate-identity-regexp", "^https://github.com/a|.*"], "top level"),
        (["--certificate-identity-regexp", "^https://github.com/acme/("], "is not usable"),
        (["--certificate-identity-regexp", " "], "is blank"),
        (["--require-creator", ""], "--require-creator is blank"),
        (["--cli-version-constraint", ">= "], "constraint value cannot be empty"),
        (["--insecure-ignore-tlog"], "for key signatures only"),
        (["--key", ""], "--key is blank"),
        (["--key", "awskms://x"], "keys of key services are not supported"),
    ],
)
def test_a_policy_that_makes_no_sense_is_a_usage_error(
    flags: list[str], said: str, tmp_path: Path
) -> None:
    """Exit 2 with the flag: the bundle was not judged."""
    bundle = written(tmp_path / "b", bundle_files())
    aicr("verify", bundle, *flags).refused(2, said)


@pytest.mark.parametrize(
    ("pattern", "identity"),
    [
        (r"^https://github\.com/acme/.*", IDENTITY),
        (r"^https://github.com/acme/gpu/\.github/workflows/[a-z]+\.yaml@refs/tags/v\d+$", IDENTITY),
        ("^https://github.com/acme/(gpu|cpu)/.*", IDENTITY),
        (r"^ci\-bot@acme\.example$", "ci-bot@acme.example"),
        ("^ci-bot@acme.example", "ci-bot@acme.example"),
        ("^spiffe://acme.example/ns/.*", "spiffe://acme.example/ns/ci"),
    ],
)
def test_a_pattern_that_pins_somebody_is_taken(pattern: str, identity: str, tmp_path: Path) -> None:
    """A host and whose path on it, or a whole identity; the rest may vary."""
    port = FakeSigstore(identity)
    policy = trust.Policy(identity_regexp=pattern)
    report = trust.judge(keyless_bundle(tmp_path / "b", port), policy, port=port)
    assert (report.level, report.errors) == ("verified", [])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--certificate-identity-regexp", "^https://github.com/acme/("],
            ["where: --certificate-identity-regexp", r"next: write it as ^https://github\.com/"],
        ),
        (
            ["--cli-version-constraint", ">>1"],
            ["'>>1' cannot be read", "where: --cli-version-constraint", "next: operators are"],
        ),
    ],
)
def test_a_policy_that_cannot_be_read_names_its_flag_and_the_way_out(
    flags: list[str], words: list[str], tmp_path: Path
) -> None:
    """What, where, and the next step."""
    bundle = written(tmp_path / "b", bundle_files())
    aicr("verify", bundle, *flags).refused(2, *words)


def test_a_bundle_in_a_registry_is_fetched_first() -> None:
    """An address is no folder that is missing."""
    result = aicr("verify", "oci://me:hunter2@r.example/team/x:v1")
    result.refused(2, "next: fetch it first: aicr pull oci://r.example/team/x:v1 -o bundle")
    assert "hunter2" not in result.err


def test_an_absent_key_file_is_not_found(tmp_path: Path) -> None:
    """Exit 3 names the file."""
    bundle = written(tmp_path / "b", bundle_files())
    aicr("verify", bundle, "--key", tmp_path / "none.pub").refused(3, "key file not found")


def test_a_private_key_is_refused_for_verifying(tmp_path: Path) -> None:
    """Whoever verifies should not hold the private key; the hint makes the public one."""
    private, _ = write_key(tmp_path, KEYS["P-256"]())
    bundle = written(tmp_path / "b", bundle_files())
    aicr("verify", bundle, "--key", private).refused(2, "holds a private key", "-pubout")


def test_a_certificate_is_no_key_and_the_way_to_its_key_is_named(tmp_path: Path) -> None:
    """A file that a TLS server has is at hand sooner than its bare key."""
    place = tmp_path / "cert.pem"
    place.write_text("-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n")
    bundle = written(tmp_path / "b", bundle_files())
    result = aicr("verify", bundle, "--key", place)
    result.refused(2, "holds a certificate", "openssl x509 -in")


@pytest.mark.parametrize(
    ("constraint", "status", "said"),
    [
        ("1.2.0", 0, ""),
        ("v1.2.3", 0, ""),
        (">= 1.0.0", 0, ""),
        ("< 1.2.3", 8, "tool version 1.2.3 does not meet < 1.2.3"),
        ("1.3.0", 8, "tool version 1.2.3 does not meet >= 1.3.0"),
    ],
)
def test_the_version_of_the_maker_is_held_against_a_constraint(
    constraint: str, status: int, said: str, tmp_path: Path
) -> None:
    """A bare version means at least; the version comes from the signed statement."""
    private, public = write_key(tmp_path, KEYS["P-256"]())
    bundle = written(tmp_path / "b", signed(bundle_files(), private))
    result = aicr("verify", bundle, "--key", public, "--cli-version-constraint", constraint)
    assert result.status == status
    assert said in result.out


def test_a_version_constraint_needs_an_attestation_that_says_one(tmp_path: Path) -> None:
    """An unsigned bundle, and a statement without a version, do not meet it."""
    plain = written(tmp_path / "plain", bundle_files())
    result = aicr("verify", plain, "--cli-version-constraint", "1.0.0")
    assert result.status == 8
    assert "which is what says its tool version" in result.out
    private, public = write_key(tmp_path, KEYS["P-256"]())
    silent = written(tmp_path / "silent", signed(bundle_files(), private, version=""))
    result = aicr("verify", silent, "--key", public, "--cli-version-constraint", "1.0.0")
    assert result.status == 8
    assert "does not say which tool version" in result.out


def test_a_required_creator_is_compared_as_a_whole(tmp_path: Path) -> None:
    """A part of the identity is not enough, and without an attestation nobody is the creator."""
    private, public = write_key(tmp_path, KEYS["P-256"]())
    bundle = written(tmp_path / "b", signed(bundle_files(), private))
    creator = signing.load_public_key(public).key_id
    assert aicr("verify", bundle, "--key", public, "--require-creator", creator).status == 0
    result = aicr("verify", bundle, "--key", public, "--require-creator", creator[:-1])
    assert result.status == 8
    assert f"was signed by {creator}, not by" in result.out
    plain = written(tmp_path / "plain", bundle_files())
    assert aicr("verify", plain, "--require-creator", creator).status == 8


def keyless_bundle(folder: Path, port: FakeSigstore) -> str:
    """A bundle that was signed through sigstore."""
    files = publish.attested(
        bundle_files(), lambda statement: port.sign(statement, "token"), tool_version="1.2.3"
    )
    return written(folder, files)


PATTERN = r"^https://github\.com/acme/gpu/.*"


@pytest.mark.parametrize(
    ("policy", "level", "said"),
    [
        (trust.Policy(identity_regexp=PATTERN), "verified", ""),
        (trust.Policy(min_trust_level="attested"), "attested", ""),
        (trust.Policy(), "attested", "whoever signed it was not named"),
        (trust.Policy(require_creator=IDENTITY), "verified", ""),
        (trust.Policy(require_creator=IDENTITY[:-1]), "attested", "was signed by"),
        (
            trust.Policy(require_creator=IDENTITY, issuer="https://other.example"),
            "unknown",
            "vouched for the signer",
        ),
        (
            trust.Policy(identity_regexp=r"^https://github\.com/other/.*"),
            "unknown",
            "does not match",
        ),
        (
            trust.Policy(identity_regexp="^https://github.com/acme/gpu/"),
            "unknown",
            "does not match",
        ),
        (
            trust.Policy(identity_regexp=PATTERN, issuer="https://other.example"),
            "unknown",
            "vouched for the signer",
        ),
    ],
    ids=[
        *("pinned", "unpinned", "unpinned max", "creator", "other creator"),
        *("creator, other issuer", "other", "prefix only", "other issuer"),
    ],
)
def test_a_keyless_bundle_against_each_way_to_pin(
    policy: trust.Policy, level: str, said: str, tmp_path: Path
) -> None:
    """Only a signer that the caller named, and the right issuer, make it verified."""
    port = FakeSigstore()
    report = trust.judge(keyless_bundle(tmp_path / "b", port), policy, port=port)
    assert report.level == level
    assert bool(report.errors) == bool(said)
    assert not said or any(said in error for error in report.errors), report.errors
    if level != "unknown":
        assert report.creator == IDENTITY


def test_a_signer_without_a_name_is_not_the_one_that_nobody_named(tmp_path: Path) -> None:
    """An empty identity does not equal the empty expectation."""
    port = FakeSigstore(identity="")
    report = trust.judge(keyless_bundle(tmp_path / "b", port), trust.Policy(), port=port)
    assert (report.level, report.pinned) == ("attested", False)
    assert any("was not named" in error for error in report.errors)


def test_a_keyless_attestation_that_sigstore_refuses_is_unknown(tmp_path: Path) -> None:
    """What the library says goes into the report."""
    bundle = keyless_bundle(tmp_path / "b", FakeSigstore())
    report = trust.judge(bundle, trust.Policy(min_trust_level="unknown"), port=FakeSigstore())
    assert report.level == "unknown"
    assert any("does not verify: bad signature" in error for error in report.errors)


def test_a_key_does_not_verify_a_certificate(tmp_path: Path) -> None:
    """The two ways to sign are not mixed up."""
    _, public = write_key(tmp_path, KEYS["P-256"]())
    port = FakeSigstore()
    policy = trust.Policy(key=signing.load_public_key(public))
    report = trust.judge(keyless_bundle(tmp_path / "b", port), policy, port=port)
    assert any("signed with a certificate, not with a key" in error for error in report.errors)


def test_the_trust_root_reaches_the_library(tmp_path: Path) -> None:
    """The file that the caller names is the one that is used."""
    port = FakeSigstore()
    bundle = keyless_bundle(tmp_path / "b", port)
    trust.judge(bundle, trust.Policy(identity_regexp=PATTERN, trust_root="root.json"), port=port)
    assert port.roots == ["root.json"]


def test_a_key_and_an_identity_are_two_signers(tmp_path: Path) -> None:
    """Naming both is a usage error."""
    _, public = write_key(tmp_path, KEYS["P-256"]())
    bundle = written(tmp_path / "b", bundle_files())
    flags = ("--key", public, "--certificate-identity-regexp", PATTERN)
    aicr("verify", bundle, *flags).refused(2, "name two signers")


def test_a_config_file_gives_the_policy(tmp_path: Path) -> None:
    """spec.verify holds what the flags hold, and flags win."""
    bundle = written(tmp_path / "b", bundle_files())
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: aicr.run/v1beta1\nkind: AICRConfig\n"
        "spec: {verify: {policy: {minTrustLevel: attested}}}\n"
    )
    assert aicr("verify", bundle, "--config", config).status == 8
    assert aicr("verify", bundle, "--config", config, "--min-trust-level", "unverified").status == 0


def test_without_the_extra_keyless_says_which_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra is one error with the pip line (decision 39)."""
    import sys

    for module in ("sigstore", "sigstore.models", "sigstore.dsse", "sigstore.sign"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(AicrError, match=r"needs the extra sign") as caught:
        keyless.Sigstore().sign(b"", "token")
    assert caught.value.hint == "run: pip install 'aicr[sign]'"
    assert caught.value.exit_status == 2


def test_identity_and_issuer_are_read_from_a_certificate() -> None:
    """One name, and the issuer in the extension of Fulcio, in its new and its old form."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

    def certificate(*extensions: tuple[str, bytes], names: int = 1) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(x509.Name([]))
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(start)
            .not_valid_after(start + datetime.timedelta(minutes=10))
            .add_extension(
                x509.SubjectAlternativeName(
                    [x509.UniformResourceIdentifier(f"{IDENTITY}{n or ''}") for n in range(names)]
                ),
                critical=True,
            )
        )
        for oid, value in extensions:
            builder = builder.add_extension(
                x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), value), critical=False
            )
        return builder.sign(key, hashes.SHA256())

    v1, v2 = "1.3.6.1.4.1.57264.1.1", "1.3.6.1.4.1.57264.1.8"
    der = bytes([0x0C, len(ISSUER)]) + ISSUER.encode()
    assert keyless.identity_of(certificate((v2, der))) == (IDENTITY, ISSUER)
    assert keyless.identity_of(certificate((v1, ISSUER.encode()))) == (IDENTITY, ISSUER)
    with pytest.raises(AicrError, match="does not say who vouched"):
        keyless.identity_of(certificate((v2, b"\x0c\x7fx")))
    with pytest.raises(AicrError, match="does not name one identity"):
        keyless.identity_of(certificate((v2, der), names=2))
