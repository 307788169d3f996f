"""Is a bundle of evidence whole, does it say what it holds, who vouches for it, and what does it record?

```
folder | pointer file | oci:// ─materialise─► files ─signature─► predicate ─► manifest ─► content ─► verdict
```
The predicate that counts is the signed one where there is a signature. Everything it says that can be
worked out from the files is worked out again and compared: digests, counts, the recipe's name, the
profile; and a bundle that says it is redacted must be what redaction makes of it, to the byte. A bundle
that nobody signed yet is whole but pending, which is no failure unless a signer was named. A folder
needs no network. Source: validators spec 9.3 to 9.5, 12 item 4; decision 46.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.artifacts import oci
from aicr.artifacts.signers import Expected
from aicr.errors import AicrError, invalid
from aicr.validate.evidence import (
    content,
    folder,
    inventory,
    pointer,
    predicate,
    publication,
    signer,
)
from aicr.validate.evidence.referrers import Referring

PASSED: Final = "passed"
RECORDED_FAILURES: Final = "recorded-failures"
INVALID: Final = "invalid"
STEPS: Final = ("materialise", "signature", "predicate", "manifest-hash", "content")
SIGNED, PENDING = "signed", "pending signature"

Connect = Callable[[str], Referring]


@dataclass(slots=True)
class Report:
    """What was found.

    Attributes:
        source: what was verified.
        errors: each begins with the part that is wrong; [] when the bundle is valid.
        failed_step: the first of `STEPS` that failed, "" for none.
        signature: ``signed`` or ``pending signature``.
        signer: who signed.
        pinned: whether the caller had named the signer.
        claims: what the bundle claims, once it could be read.
        digest: of the artifact in the registry, "" when it is not from one.
        notices: what a person should know that is no error.
    """

    source: str
    errors: list[str] = field(default_factory=list)
    failed_step: str = ""
    signature: str = PENDING
    signer: pointer.Signer | None = None
    pinned: bool = False
    claims: predicate.Claims | None = None
    digest: str = ""
    notices: list[str] = field(default_factory=list)

    @property
    def failures(self) -> dict[str, int]:
        """Phase → failed and other checks that it records; phases without any left out."""
        phases = {} if self.claims is None else self.claims.predicate["phases"]
        counts = {
            phase: int(found.get("failed") or 0) + int(found.get("other") or 0)
            for phase, found in phases.items()
        }
        return {phase: count for phase, count in counts.items() if count}

    @property
    def result(self) -> str:
        """``passed``, ``recorded-failures`` or ``invalid``."""
        if self.errors or self.claims is None:
            return INVALID
        return RECORDED_FAILURES if self.failures else PASSED

    def fail(self, step: str, *problems: str) -> None:
        """Note problems of a step."""
        self.errors += problems
        self.failed_step = self.failed_step or (step if problems else "")

    def document(self) -> dict[str, Any]:
        """The JSON form."""
        made: dict[str, Any] = {
            "source": self.source,
            "result": self.result,
            "failedStep": self.failed_step,
            "signature": self.signature,
            "signerPinned": self.pinned,
        }
        if self.signer is not None:
            made["signer"] = self.signer.document()
        if self.digest:
            made["artifactDigest"] = self.digest
        if self.claims is not None:
            made["predicateType"] = self.claims.type
            for key in ("recipe", "attestedAt", "phases", "redaction"):
                if key in self.claims.predicate:
                    made[key] = self.claims.predicate[key]
        return {**made, "errors": list(self.errors), "notices": list(self.notices)}


def verify_folder(directory: str, trust: Expected, *, signatures: bool = True) -> Report:
    """Verify the folder that was written, or the ``summary-bundle`` in it.

    Args:
        signatures: whether signatures are checked; a folder that is about to be replaced only has
            to be whole.

    Raises:
        AicrError: NOT_FOUND or INVALID_REQUEST when there is no folder to look at.
    """
    report = Report(directory)
    files, problems = folder.read(directory)
    report.fail("materialise", *problems)
    prefix = f"{folder.SUMMARY}/"
    pointed: pointer.Pointer | None = None
    if any(path.startswith(prefix) for path in files):
        if folder.POINTER in files:
            pointed = _pointer(files[folder.POINTER], report)
        else:
            report.fail("materialise", f"{folder.POINTER}: is missing")
        stray = [path for path in files if path != folder.POINTER and not path.startswith(prefix)]
        report.fail("materialise", *(f"{path}: does not belong there" for path in sorted(stray)))
        files = {
            path.removeprefix(prefix): data
            for path, data in files.items()
            if path.startswith(prefix)
        }
    if not report.errors:
        _judge(files, files.get(inventory.ATTESTATION), trust, report, pointed, signatures)
    return report


def verify_published(
    address: oci.Address,
    trust: Expected,
    connect: Connect,
    *,
    pointed: pointer.Pointer | None = None,
    source: str = "",
) -> Report:
    """Verify an artifact in a registry.

    Raises:
        AicrError: what the registry raises; INVALID_REQUEST when the artifact is no evidence.
    """
    report = Report(source or str(address))
    with connect(address.registry) as registry:
        manifest, report.digest = registry.pull_manifest(address)
        _, layer, size, root = oci.layer_of(manifest, source=str(address))
        packed = oci.unpack(registry.pull_blob(address.repository, layer, size), strip=root)
        found = registry.attestations(address, report.digest)
    files = {path: data for path, (data, _) in packed.items()}
    if inventory.ATTESTATION in files:
        report.fail("materialise", f"{inventory.ATTESTATION}: is inside of what it would sign")
        return report
    chosen, faults = _choose(found, trust)
    if found and chosen is None:
        report.fail("signature", *faults)
        return report
    _judge(files, chosen, trust, report, pointed, True)
    return report


def verify_pointer(path: str, trust: Expected, connect: Connect) -> Report:
    """Verify what a pointer file points to.

    Raises:
        AicrError: as `verify_published`; INVALID_REQUEST for a file that is no pointer.
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(folder.MAX_FILE_BYTES)
    except OSError as error:
        raise invalid(f"cannot be read: {error.strerror}", where=path) from error
    found = pointer.parse(data, path)
    if not found.oci:
        raise invalid(
            "the evidence that it points to was never pushed",
            where=path,
            hint="verify the folder itself: aicr evidence verify DIR",
        )
    address = publication.address_of(found.oci)
    pinned = oci.Address(address.registry, address.repository, digest=found.digest)
    return verify_published(pinned, trust, connect, pointed=found, source=path)


def _choose(found: list[bytes], trust: Expected) -> tuple[bytes | None, list[str]]:
    """The first attestation that holds; anybody with access can attach others."""
    faults = []
    for data in found:
        try:
            signer.verified(data, trust, inventory.ATTESTATION)
        except AicrError as error:
            faults.append(f"{inventory.ATTESTATION}: {error.message}")
            continue
        return data, []
    return None, faults


def _judge(
    files: Mapping[str, bytes],
    attestation: bytes | None,
    trust: Expected,
    report: Report,
    pointed: pointer.Pointer | None,
    signatures: bool,
) -> None:
    claims = _signature(files, attestation, trust, report, signatures)
    if claims is None:
        return
    report.claims = claims
    report.fail("predicate", *_subject(claims, report, pointed))
    report.fail("predicate", *_pointed(claims, report, pointed, signatures))
    found = content.manifest_problems(files, claims)
    report.fail("manifest-hash", *found)
    if not found:
        problems, notices = content.problems(files, claims)
        report.fail("content", *problems)
        report.notices += notices


def _signature(
    files: Mapping[str, bytes],
    attestation: bytes | None,
    trust: Expected,
    report: Report,
    signatures: bool,
) -> predicate.Claims | None:
    """The claims that count; None when there are none to go on with."""
    stated = files.get(inventory.STATEMENT)
    if stated is None:
        report.fail("materialise", f"{inventory.STATEMENT}: is missing")
        return None
    try:
        plain = predicate.parse(stated, inventory.STATEMENT)
    except AicrError as error:
        report.fail("predicate", f"{inventory.STATEMENT}: {error.message}")
        return None
    if attestation is None:
        if trust.names_somebody:
            report.fail("signature", f"{inventory.ATTESTATION}: is missing, and a signer was named")
        return plain
    if not signatures:
        return plain
    try:
        payload, report.signer, report.pinned = signer.verified(
            attestation, trust, inventory.ATTESTATION
        )
        signed = predicate.parse(payload, inventory.ATTESTATION)
    except AicrError as error:
        report.fail("signature", f"{inventory.ATTESTATION}: {error.message}")
        if error.hint:
            report.notices.append(error.hint)
        return None
    report.signature = SIGNED
    if (signed.predicate, signed.type) != (plain.predicate, plain.type):
        report.fail(
            "predicate", f"{inventory.STATEMENT}: does not say what was signed about this bundle"
        )
    return signed


def _subject(
    claims: predicate.Claims, report: Report, pointed: pointer.Pointer | None
) -> list[str]:
    """What is wrong with what the statement is about."""
    where = inventory.ATTESTATION if report.signature == SIGNED else inventory.STATEMENT
    recipe = claims.predicate["recipe"]
    if claims.subject.startswith(predicate.RECIPE_SUBJECT):
        if claims.subject != f"{predicate.RECIPE_SUBJECT}{recipe['name']}":
            return [f"{where}: its subject is {claims.subject}, not the recipe {recipe['name']}"]
        if claims.digest != recipe["digest"]:
            return [f"{where}: its subject has another digest than the recipe"]
        return []
    known = report.digest or ("" if pointed is None else pointed.digest)
    if known and known != f"sha256:{claims.digest}":
        return [f"{where}: it is about sha256:{claims.digest}, and the artifact is {known}"]
    return []


def _pointed(
    claims: predicate.Claims, report: Report, pointed: pointer.Pointer | None, signatures: bool
) -> list[str]:
    """Where the pointer and the claims differ."""
    if pointed is None:
        return []
    found = []
    for what, said, held in (
        ("recipe", pointed.recipe, claims.recipe_name),
        ("predicate type", pointed.type, claims.type),
        ("time", pointed.attested_at, claims.predicate["attestedAt"]),
        ("profile", pointed.profile, claims.predicate.get("profile")),
    ):
        if said != held:
            found.append(f"{folder.POINTER}: its {what} is {said!r}, and the bundle's is {held!r}")
    if not signatures:
        return found
    if pointed.signer is not None and report.signer is None and report.signature != SIGNED:
        found.append(f"{folder.POINTER}: names a signer, and the bundle is not signed")
    same = report.signer is not None and pointed.signer is not None
    if same and _who(pointed.signer) != _who(report.signer):
        found.append(f"{folder.POINTER}: names another signer than the one who signed")
    if report.signature == SIGNED and pointed.signer is None:
        found.append(f"{folder.POINTER}: names no signer, and the bundle is signed")
    return found


def _who(found: pointer.Signer | None) -> tuple[str, str]:
    return ("", "") if found is None else (found.identity, found.issuer)


def _pointer(data: bytes, report: Report) -> pointer.Pointer | None:
    try:
        return pointer.parse(data, folder.POINTER)
    except AicrError as error:
        report.fail("materialise", f"{folder.POINTER}: {error.message}")
        return None
