"""Pushing to a real registry on loopback, signing with a key and through a stand-in for sigstore, and
verifying what lies there."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.evidence.evidence_bundles import (
    PLANTED,
    keys,
    made,
    planted_in,
    predicate_of,
    request,
)
from tests.integrity.signed_bundles import IDENTITY, ISSUER, FakeSigstore
from tests.oci.registry_server import ask

from aicr.artifacts import dsse, oci, signing
from aicr.artifacts.signers import Expected
from aicr.artifacts.wire import Transport
from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.validate.evidence import attesting, identity, publication, signer, verification
from aicr.validate.evidence.referrers import Referring
from aicr.validate.evidence.times import EvidenceTimes

PLAIN = Transport(plain_http=True)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def connect(host: str) -> Referring:
    """The registry without TLS and login."""
    return Referring(host, PLAIN)


def certificate() -> str:
    """A certificate that names the test's identity and issuer, in base64."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    oid = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
    now = datetime.now(UTC)
    found = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(minutes=10))
        .add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(IDENTITY)]), critical=True
        )
        .add_extension(
            x509.UnrecognizedExtension(oid, b"\x0c" + bytes([len(ISSUER)]) + ISSUER.encode()),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    from cryptography.hazmat.primitives.serialization import Encoding

    return base64.b64encode(found.public_bytes(Encoding.DER)).decode()


class Sigstore(FakeSigstore):
    """Makes attestations that say who signed, and keeps the tokens that it was given."""

    def __init__(self, *failures: AicrError) -> None:
        super().__init__()
        self.tokens: list[str] = []
        self.failures = list(failures)

    def sign(self, statement: bytes, token: str) -> bytes:
        """An attestation with a certificate and a log entry; fails as often as it was told."""
        self.tokens.append(token)
        if self.failures:
            raise self.failures.pop(0)
        document = json.loads(dsse.wrap_key_signature(statement, b"signature", "hint"))
        document["verificationMaterial"] = {
            "certificate": {"rawBytes": certificate()},
            "tlogEntries": [{"logIndex": "42"}],
        }
        made = json.dumps(document).encode()
        self.made[made] = statement
        return made


def keyless(port: Sigstore, token: str = "token") -> signer.Signing:
    """Signing through the stand-in, without waiting."""
    return signer.Signing(token=lambda: token, port=port, sleep=lambda seconds: None)


def order(out: Path, address: str, signing: signer.Signing | None) -> publication.Order:
    """An order to publish."""
    found = publication.address_of(address) if address else None
    return publication.Order(str(out), found, signing, PLAIN)


def pointer_of(out: Path) -> dict[str, Any]:
    """The one attestation in the pointer."""
    document = yaml.safe_load((out / "pointer.yaml").read_text())
    found: dict[str, Any] = document["attestations"][0]
    return found


def published(address: str, trust: Expected) -> verification.Report:
    """What verification says of an address."""
    return verification.verify_published(oci.parse_address(address), trust, connect)


def test_a_run_pushes_and_signs_with_a_key(tmp_path: Path, registry: str) -> None:
    """The default tag names recipe and cluster; nothing planted is in any blob of the registry."""
    private, public = keys(tmp_path)
    out = tmp_path / "e"
    lines = made(out, push=f"oci://{registry}/run", signingKey=private, plainHTTP=True)
    trust = Expected(key=signing.load_public_key(public))
    found = pointer_of(out)
    address = found["bundle"]["oci"]
    assert re.fullmatch(rf"oci://{registry}/run:h100-eks-ubuntu-training-[0-9a-f]{{12}}", address)
    assert any(line.startswith(f"evidence pushed to {address}@sha256:") for line in lines)
    local = verification.verify_folder(str(out), trust)
    assert (local.result, local.errors) == ("passed", [])
    remote = published(address, trust)
    assert (remote.result, remote.errors) == ("passed", [])
    assert remote.digest == found["bundle"]["digest"]
    by_pointer = verification.verify_pointer(str(out / "pointer.yaml"), trust, connect)
    assert (by_pointer.result, by_pointer.errors) == ("passed", [])
    digest = found["bundle"]["digest"]
    assert lines[-1].split("commit it as ")[1].endswith(f"/sha256-{digest[7:]}.yaml")
    held = blobs(registry, "run", [digest, f"sha256-{digest[7:]}"])
    assert len(held) >= 5
    assert planted_in(held) == set()


def test_full_evidence_in_a_registry_has_everything(tmp_path: Path, registry: str) -> None:
    """The search of the test above would have found it."""
    made(tmp_path / "e", push=f"{registry}/full:v1", sign=False, full=True, plainHTTP=True)
    assert planted_in(blobs(registry, "full", ["v1"])) == set(PLANTED)


def blobs(host: str, repository: str, references: list[str]) -> dict[str, bytes]:
    """Everything that a registry has below some manifests, past our own client."""
    found: dict[str, bytes] = {}
    for reference in references:
        status, data = ask(host, "GET", f"/v2/{repository}/manifests/{reference}")
        if status != 200:
            status, data = ask_index(host, f"/v2/{repository}/manifests/{reference}")
        assert status == 200, data
        found[reference] = data
        document = json.loads(data)
        inner = [entry["digest"] for entry in document.get("manifests", ())]
        found |= blobs(host, repository, inner)
        for layer in (document.get("config"), *document.get("layers", ())):
            if layer is not None:
                status, data = ask(host, "GET", f"/v2/{repository}/blobs/{layer['digest']}")
                assert status == 200
                found[layer["digest"]] = data
    return found


def ask_index(host: str, path: str) -> tuple[int, bytes]:
    """(status, body) of an index."""
    import http.client

    connection = http.client.HTTPConnection(host, timeout=20)
    try:
        connection.request(
            "GET", path, headers={"Accept": "application/vnd.oci.image.index.v1+json"}
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_pushing_without_signing_leaves_a_pointer_without_a_signer(
    tmp_path: Path, registry: str
) -> None:
    """And is pending for a verifier."""
    out = tmp_path / "e"
    lines = made(out, push=f"oci://{registry}/unsigned:v1", sign=False, plainHTTP=True)
    assert "signer" not in pointer_of(out)
    assert DIGEST.fullmatch(pointer_of(out)["bundle"]["digest"])
    assert "is not signed" in lines[-1]
    found = published(f"oci://{registry}/unsigned:v1", Expected())
    assert (found.result, found.signature) == ("passed", "pending signature")


def test_publishing_later_signs_without_a_key_and_says_who(evidence: Path, registry: str) -> None:
    """The token is asked once, at the end; the pointer has identity, issuer and log entry."""
    port = Sigstore()
    before = predicate_of(evidence)
    publication.publish(order(evidence, f"oci://{registry}/later:v1", keyless(port)))
    assert port.tokens == ["token"]
    assert pointer_of(evidence)["signer"] == {
        "identity": IDENTITY,
        "issuer": ISSUER,
        "rekorLogIndex": 42,
    }
    signed = json.loads(next(iter(port.made.values())))
    digest = pointer_of(evidence)["bundle"]["digest"]
    assert signed["subject"] == [
        {"name": f"oci://{registry}/later:v1", "digest": {"sha256": digest[7:]}}
    ]
    assert signed["predicate"] == before
    trust = Expected(identity_regexp=re.escape(IDENTITY), issuer=ISSUER, port=port)
    for report in (
        published(f"oci://{registry}/later:v1", trust),
        verification.verify_folder(str(evidence), trust),
        verification.verify_pointer(str(evidence / "pointer.yaml"), trust, connect),
    ):
        assert (report.result, report.errors, report.pinned) == ("passed", [], True)
    stranger = dataclasses.replace(trust, identity_regexp="^https://github.com/other/.*")
    assert published(f"oci://{registry}/later:v1", stranger).failed_step == "signature"
    elsewhere = dataclasses.replace(trust, issuer="https://issuer.example")
    assert published(f"oci://{registry}/later:v1", elsewhere).failed_step == "signature"


def test_publishing_again_signs_anew_under_the_same_type(evidence: Path, registry: str) -> None:
    """The artifact is the same, because the signature is not part of it."""
    address = f"oci://{registry}/again:v1"
    port = Sigstore()
    publication.publish(order(evidence, address, keyless(port)))
    first = pointer_of(evidence)["bundle"]["digest"]
    publication.publish(order(evidence, address, keyless(port)))
    assert pointer_of(evidence)["bundle"]["digest"] == first
    assert published(address, Expected(port=port)).result == "passed"


def test_signed_evidence_is_not_pushed_without_its_signature(
    evidence: Path, registry: str, tmp_path: Path
) -> None:
    """The pointer would say that nobody signed; nothing is sent."""
    private, public = keys(tmp_path)
    key = signing.load_private_key(private)
    publication.publish(order(evidence, "", signer.Signing(key=key)))
    with pytest.raises(AicrError) as caught:
        publication.publish(order(evidence, f"oci://{registry}/unsign:v1", None))
    assert (caught.value.code, caught.value.where) == ("INVALID_REQUEST", "--no-sign")
    assert ask(registry, "GET", "/v2/unsign/manifests/v1")[0] == 404
    trust = Expected(key=signing.load_public_key(public))
    assert verification.verify_folder(str(evidence), trust).result == "passed"


def test_another_artifact_with_the_same_signature_is_refused(tmp_path: Path, registry: str) -> None:
    """A signature about one artifact, attached to another, proves nothing."""
    port = Sigstore()
    made(tmp_path / "a")
    made(tmp_path / "b", catalogVersion="2.0.0")
    publication.publish(order(tmp_path / "a", f"oci://{registry}/swap:a", keyless(port)))
    publication.publish(order(tmp_path / "b", f"oci://{registry}/swap:b", None))
    address = oci.parse_address(f"oci://{registry}/swap:b")
    attestation = (tmp_path / "a" / "summary-bundle" / "attestation.intoto.jsonl").read_bytes()
    with connect(registry) as client:
        manifest, _ = client.pull_manifest(address)
        client.attach(address, oci.Blob(oci.MANIFEST_TYPE, manifest), attestation)
    found = published(f"oci://{registry}/swap:b", Expected(port=port))
    assert found.result == "invalid"
    assert any("the artifact is sha256:" in problem for problem in found.errors)


def test_a_strangers_signature_beside_the_right_one_changes_nothing(
    evidence: Path, registry: str, tmp_path: Path
) -> None:
    """Anybody with access can attach; the first that holds counts, and none is a failure."""
    private, public = keys(tmp_path)
    (tmp_path / "other").mkdir()
    stranger, _ = keys(tmp_path / "other")
    address = f"oci://{registry}/two:v1"
    for path in (stranger, private):
        key = signing.load_private_key(path)
        publication.publish(order(evidence, address, signer.Signing(key=key)))
    assert published(address, Expected(key=signing.load_public_key(public))).result == "passed"
    (tmp_path / "third").mkdir()
    _, third = keys(tmp_path / "third")
    found = published(address, Expected(key=signing.load_public_key(third)))
    assert found.failed_step == "signature"
    assert len(found.errors) == 2


def test_a_key_signs_where_nothing_is_pushed(evidence: Path, tmp_path: Path) -> None:
    """The subject is the recipe; no address in the pointer."""
    private, public = keys(tmp_path)
    key = signing.load_private_key(private)
    lines = publication.publish(order(evidence, "", signer.Signing(key=key)))
    assert "is not pushed" in lines[-1]
    found = verification.verify_folder(str(evidence), Expected(key=signing.load_public_key(public)))
    assert found.result == "passed"
    assert found.claims is not None
    assert found.claims.subject == "recipe:h100-eks-ubuntu-training"
    with pytest.raises(AicrError, match="never pushed"):
        verification.verify_pointer(str(evidence / "pointer.yaml"), Expected(), connect)


@pytest.mark.parametrize("part", ["recipe.yaml", "statement.intoto.json", "manifest.json"])
def test_evidence_that_is_not_whole_is_not_published(
    evidence: Path, registry: str, part: str
) -> None:
    """Before anything is sent or signed."""
    path = evidence / "summary-bundle" / part
    path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
    port = Sigstore()
    with pytest.raises(AicrError) as caught:
        publication.publish(order(evidence, f"oci://{registry}/broken:v1", keyless(port)))
    assert caught.value.code == "INVALID_REQUEST"
    assert port.tokens == []
    assert ask(registry, "GET", "/v2/broken/manifests/v1")[0] == 404


def test_a_folder_without_evidence_is_refused(tmp_path: Path) -> None:
    """Present or not."""
    for place, code in ((tmp_path, "INVALID_REQUEST"), (tmp_path / "x", "NOT_FOUND")):
        with pytest.raises(AicrError) as caught:
            publication.publish(order(place, "", None))
        assert caught.value.code == code


def test_a_registry_that_is_not_there_leaves_the_bundle(tmp_path: Path) -> None:
    """The evidence of an hour is kept, and the error says where."""
    with pytest.raises(AicrError) as caught:
        made(tmp_path / "e", push="oci://127.0.0.1:9/x:v1", sign=False, plainHTTP=True)
    assert caught.value.code == SERVICE_UNAVAILABLE
    assert f"it lies in {tmp_path / 'e'}" in caught.value.message
    assert verification.verify_folder(str(tmp_path / "e"), Expected()).result == "passed"


def test_only_a_service_that_is_away_is_tried_again() -> None:
    """Three attempts, after 1 s and 5 s; a refusal is final at once."""
    away = [AicrError(SERVICE_UNAVAILABLE, "away") for _ in range(3)]
    slept: list[float] = []
    port = Sigstore(*away[:2])
    signer.Signing(token=str, port=port, sleep=slept.append).sign(b"{}")
    assert (len(port.tokens), slept) == (3, [1.0, 5.0])
    port = Sigstore(*away)
    with pytest.raises(AicrError, match="away"):
        signer.Signing(token=str, port=port, sleep=slept.append).sign(b"{}")
    assert len(port.tokens) == 3
    port = Sigstore(AicrError(UNAUTHORIZED, "expired"))
    with pytest.raises(AicrError, match="expired"):
        signer.Signing(token=str, port=port, sleep=slept.append).sign(b"{}")
    assert len(port.tokens) == 1


def test_an_attempt_to_sign_has_a_bound() -> None:
    """A service that hangs is given up, as one that is away."""
    import threading

    release = threading.Event()

    class Hanging(Sigstore):
        def sign(self, statement: bytes, token: str) -> bytes:
            release.wait(20)
            return super().sign(statement, token)

    way = signer.Signing(
        token=str, port=Hanging(), times=EvidenceTimes(attempt=0.01), sleep=lambda seconds: None
    )
    with pytest.raises(AicrError) as caught:
        way.sign(b"{}")
    release.set()
    assert caught.value.code == TIMEOUT


def prompt(
    answers: list[str], answer: bool | None = None, *, there: bool = False
) -> identity.Prompt:
    """A person who says yes or no, or nobody."""
    confirm: Callable[[str], bool] | None = None
    if answer is not None:

        def confirm(text: str) -> bool:
            answers.append(text)
            return bool(answer)

    return identity.Prompt(answers.append, confirm, there)


@pytest.mark.parametrize(
    ("given", "environ", "device", "there", "expected"),
    [
        ("flag", {"ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x"}, True, True, "flag"),
        ("", {"ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x"}, True, True, ""),
        ("", {}, True, True, "device"),
        ("", {}, False, True, "browser"),
        ("", {}, False, False, ""),
    ],
    ids=["given", "CI", "device", "browser", "nobody"],
)
def test_tokens_come_from_where_they_are_in_order(
    given: str, environ: dict[str, str], device: bool, there: bool, expected: str
) -> None:
    """What was handed in, the CI job, another device, a browser; else the library looks."""
    found = identity.token(
        given,
        environ,
        prompt([], there=there),
        device_flow=device,
        device=lambda say: "device",
        browser=lambda: "browser",
    )
    assert found == expected


def test_a_person_is_asked_before_being_named_in_public() -> None:
    """No is CANCELED; --yes does not ask; where nobody sits, it is said."""
    said: list[str] = []
    with pytest.raises(AicrError) as caught:
        identity.consent(prompt(said, False), assume_yes=False)
    assert caught.value.code == "CANCELED"
    identity.consent(prompt(said, True), assume_yes=False)
    identity.consent(prompt(said, False), assume_yes=True)
    assert len(said) == 2
    identity.consent(prompt(said), assume_yes=False)
    assert said[-1].startswith("warning: ")


def test_a_no_leaves_everything_unsigned(evidence: Path, registry: str) -> None:
    """It is asked when it is time to sign: the bundle is pushed, and says it is not signed."""
    port = Sigstore()
    way = attesting.signing_of(
        None, "token", {}, prompt([], False), device_flow=False, assume_yes=False
    )
    way = dataclasses.replace(way, port=port)
    with pytest.raises(AicrError) as caught:
        publication.publish(order(evidence, f"oci://{registry}/no:v1", way))
    assert caught.value.code == "CANCELED"
    assert port.tokens == []
    assert not (evidence / "summary-bundle" / "attestation.intoto.jsonl").exists()
    assert DIGEST.fullmatch(pointer_of(evidence)["bundle"]["digest"])
    assert "signer" not in pointer_of(evidence)
    assert verification.verify_folder(str(evidence), Expected()).result == "passed"


def test_two_ways_to_sign_are_refused(tmp_path: Path) -> None:
    """A key and a token; a key and no signature."""
    private, _ = keys(tmp_path)
    key = signing.load_private_key(private)
    with pytest.raises(AicrError, match="name two signers"):
        attesting.signing_of(key, "token", {}, prompt([]), device_flow=False, assume_yes=True)
    with pytest.raises(AicrError, match="contradict each other"):
        attesting.attest(request(tmp_path / "e", signingKey=private, sign=False))
    assert not (tmp_path / "e").exists()


def test_something_else_in_a_registry_is_not_evidence(registry: str) -> None:
    """A bundle of a recipe, for one, and nothing at all."""
    address = oci.parse_address(f"oci://{registry}/bundle:v1")
    package = oci.bundle_package({"checksums.txt": (b"", 0o600)}, version="1")
    with connect(registry) as client:
        client.push(address, package)
    found = published(str(address), Expected())
    assert found.errors == ["statement.intoto.json: is missing"]
    with pytest.raises(AicrError) as caught:
        published(f"oci://{registry}/nothing:v1", Expected())
    assert caught.value.code == "NOT_FOUND"
