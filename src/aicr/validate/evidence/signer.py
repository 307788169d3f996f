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
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aicr.artifacts import dsse, keyless, signers, signing
from aicr.artifacts.signers import Expected
from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, AicrError, invalid
from aicr.validate.evidence import bounded, inventory
from aicr.validate.evidence.pointer import Signer
from aicr.validate.evidence.times import EvidenceTimes

Token = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Signing:
    """How statements are signed.

    Attributes:
        key: signs when it is there; nothing else is needed then.
        token: the identity token, asked at the last moment ("" = the environment has it).
        port: the signing service.
        times: of all attempts, of one, and between them.
        sleep: waits between attempts.
    """

    key: signing.PrivateKey | None = None
    token: Token = str
    port: keyless.Port | None = None
    times: EvidenceTimes = field(default_factory=EvidenceTimes)
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
        deadline = bounded.Deadline(self.times.sign, "signing")
        for pause in (*self.times.backoff, None):
            try:
                return bounded.within(
                    self.times.attempt, "an attempt to sign", lambda: port.sign(statement, token)
                )
            except AicrError as error:
                if error.code not in (SERVICE_UNAVAILABLE, TIMEOUT) or pause is None:
                    raise
            self.sleep(pause)
            deadline.check()
        raise AicrError(SERVICE_UNAVAILABLE, "no attempt to sign succeeded")


def verified(data: bytes, trust: Expected, source: str) -> tuple[bytes, Signer, bool]:
    """(what was signed, by whom, whether the caller named that signer).

    Raises:
        AicrError: INVALID_REQUEST when the signature does not hold or is somebody else's.
    """
    attestation = dsse.read(data, source=source)
    found = signers.check(attestation, trust, what="the evidence", where=source)
    logged = None if trust.key is not None else log_index(data)
    return found.payload, Signer(found.identity, found.issuer, logged), found.named


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
