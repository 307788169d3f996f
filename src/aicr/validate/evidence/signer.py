"""Signing a statement of evidence, and finding out who signed one.

```
statement ─Signing─► attestation (sigstore bundle) ─who─► Signer, for the pointer
attestation ─verified(trust)─► payload and signer, or an error
```
With a key, nothing is sent anywhere. Without one, the signing service gets 35 s for each of at most three
attempts, and only its being unavailable is worth another. Who signs is asked when it is time to sign,
because tokens live for minutes. Source: validators spec 9.5, 11; decision 57.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from aicr.artifacts import dsse, keyless, signing
from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, AicrError, invalid
from aicr.validate.evidence import bounded, inventory
from aicr.validate.evidence.pointer import Signer

ATTEMPT_SECONDS: Final = 35.0
#: Before the second and the third attempt.
BACKOFF: Final = (1.0, 5.0)

Token = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Signing:
    """How statements are signed.

    Attributes:
        key: signs when it is there; nothing else is needed then.
        token: the identity token, asked at the last moment ("" = the environment has it).
        port: the signing service.
        seconds: for all attempts.
        sleep: waits between attempts.
    """

    key: signing.PrivateKey | None = None
    token: Token = str
    port: keyless.Port | None = None
    seconds: float = 120.0
    attempt: float = ATTEMPT_SECONDS
    sleep: Callable[[float], None] = time.sleep

    def sign(self, statement: bytes) -> bytes:
        """The attestation of *statement*.

        Raises:
            AicrError: UNAUTHORIZED or INVALID_REQUEST without an identity; SERVICE_UNAVAILABLE or
                TIMEOUT when the service failed every attempt.
        """
        if self.key is not None:
            return self.key.sign(statement)
        port = self.port or keyless.Sigstore()
        token = self.token()
        deadline = bounded.Deadline(self.seconds, "signing")
        for pause in (*BACKOFF, None):
            try:
                return bounded.within(
                    self.attempt, "an attempt to sign", lambda: port.sign(statement, token)
                )
            except AicrError as error:
                if error.code not in (SERVICE_UNAVAILABLE, TIMEOUT) or pause is None:
                    raise
            self.sleep(pause)
            deadline.check()
        raise AicrError(SERVICE_UNAVAILABLE, "no attempt to sign succeeded")


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom a verifier trusts.

    Attributes:
        key: the key that must have signed, or None.
        identity_regexp: pattern that the whole identity must match, "" for anybody.
        issuer: who must have vouched, "" for anybody.
        trust_root: file with the roots of sigstore, "" for the library's own.
        port: stands in for sigstore.
    """

    key: signing.PublicKey | None = None
    identity_regexp: str = ""
    issuer: str = ""
    trust_root: str = ""
    port: keyless.Port | None = None

    @property
    def names_somebody(self) -> bool:
        """Whether a certain signer is expected, so that no signature is not good enough."""
        return self.key is not None or bool(self.identity_regexp or self.issuer)


def verified(data: bytes, trust: Trust, source: str) -> tuple[bytes, Signer, bool]:
    """(what was signed, by whom, whether the caller named that signer).

    Raises:
        AicrError: INVALID_REQUEST when the signature does not hold or is somebody else's.
    """
    attestation = dsse.read(data, source=source)
    if attestation.payload_type != dsse.PAYLOAD_TYPE:
        raise invalid(
            f"it holds a {attestation.payload_type}, not an in-toto statement", where=source
        )
    if attestation.method == dsse.KEY and trust.key is None:
        raise invalid(
            f"it was signed with the key {attestation.key_hint}, and none was named to check it with",
            where=source,
            hint="pass --key with the public key of whoever signed it",
        )
    if trust.key is not None:
        return trust.key.verify(attestation), Signer(trust.key.key_id), True
    signed = (trust.port or keyless.Sigstore()).verify(attestation, trust.trust_root)
    if signed.payload_type != dsse.PAYLOAD_TYPE:
        raise invalid(f"it holds a {signed.payload_type}, not an in-toto statement", where=source)
    if trust.identity_regexp and not re.fullmatch(trust.identity_regexp, signed.identity):
        raise invalid(
            f"it was signed by {signed.identity}, which does not match {trust.identity_regexp}",
            where=source,
            hint="the pattern must match the whole identity",
        )
    if trust.issuer and signed.issuer != trust.issuer:
        raise invalid(f"{signed.issuer} vouched for the signer, not {trust.issuer}", where=source)
    who = Signer(signed.identity, signed.issuer, log_index(data))
    return signed.payload, who, bool(trust.identity_regexp)


def who(data: bytes, key: signing.PrivateKey | None) -> Signer:
    """Who has just signed, for the pointer.

    Raises:
        AicrError: INVALID_REQUEST when the attestation does not say.
    """
    if key is not None:
        return Signer(key.public.key_id)
    from cryptography import x509

    document: Any = inventory.load(data, inventory.ATTESTATION)
    material = document.get("verificationMaterial") or {}
    raw = (material.get("certificate") or {}).get("rawBytes")
    if not isinstance(raw, str):
        raise invalid("the signature came without a certificate", where=inventory.ATTESTATION)
    try:
        certificate = x509.load_der_x509_certificate(base64.b64decode(raw))
    except ValueError as error:
        raise invalid(
            "the signature's certificate cannot be read", where=inventory.ATTESTATION
        ) from error
    identity, issuer = keyless.identity_of(certificate)
    return Signer(identity, issuer, log_index(data))


def log_index(data: bytes) -> int | None:
    """The place of a signature in the public log; None when it is in none."""
    document = inventory.load(data, inventory.ATTESTATION)
    material = document.get("verificationMaterial") if isinstance(document, dict) else None
    entries = material.get("tlogEntries") if isinstance(material, dict) else None
    first = entries[0] if isinstance(entries, list) and entries else None
    index = first.get("logIndex") if isinstance(first, dict) else None
    text = str(index)
    return int(text) if index is not None and text.isascii() and text.isdigit() else None
