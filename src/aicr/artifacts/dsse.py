"""The attestation file: a signed envelope inside the bundle form of the sigstore project.

```
statement bytes --pae--> what is signed --signature--> envelope --wrap_key_signature--> file
file --read--> Attestation (payload, signatures, how it was signed)
```
DSSE signs the length-prefixed payload with its type, so that bytes signed for one purpose mean
nothing in another. The file form is sigstore's bundle v0.3, which other tools read as well: for a
key it holds a hint that names the key, for a certificate what sigstore's own library checks.

This module knows formats only. It must not know keys, algorithms, or what a statement says.
Source: bundler spec 7.1 and 7.4, decision 57; DSSE v1 and sigstore bundle v0.3.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
from typing import Any, Final, TypeVar

from aicr.errors import invalid
from aicr.yamlio.jsontext import load_json

#: Where the attestation lies in a bundle; ``checksums.EXCLUDED`` leaves it out of the list.
PATH: Final = "attestation/bundle-attestation.sigstore.json"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
#: Files of this kind are a few KiB; a limit keeps a hostile one from filling the memory.
MAX_BYTES: Final = 8 * 1024 * 1024

_Kind = TypeVar("_Kind")

KEY: Final = "key"
CERTIFICATE: Final = "certificate"


@dataclasses.dataclass(frozen=True, slots=True)
class Attestation:
    """One attestation file, read but not verified.

    Attributes:
        method: ``KEY`` or ``CERTIFICATE``.
        key_hint: name of the public key, "" for a certificate.
        payload: the signed statement's bytes.
        payload_type: what the envelope says the payload is.
        signatures: the signatures over ``pae(payload_type, payload)``.
        raw: the whole file.
    """

    method: str
    key_hint: str
    payload: bytes
    payload_type: str
    signatures: tuple[bytes, ...]
    raw: bytes

    @property
    def signed_bytes(self) -> bytes:
        """What the signatures are over."""
        return pae(self.payload_type, self.payload)


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: type and payload, each with its length in bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def wrap_key_signature(payload: bytes, signature: bytes, key_hint: str) -> bytes:
    """The attestation file for a statement that was signed with a key.

    Keys are sorted and nothing depends on the time, so that a deterministic signature gives the
    same file each time.
    """
    document = {
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key_hint}},
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": base64.b64encode(signature).decode()}],
        },
    }
    return (json.dumps(document, sort_keys=True, indent=2) + "\n").encode()


def read(data: bytes, *, source: str = PATH) -> Attestation:
    """The attestation in *data*.

    Raises:
        AicrError: INVALID_REQUEST when it is no sigstore bundle v0.3 with a DSSE envelope, or
            says both or neither of key and certificate.
    """
    if len(data) > MAX_BYTES:
        raise invalid(f"the attestation is larger than {MAX_BYTES} bytes", where=source)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise invalid("the attestation is not UTF-8 text", where=source) from None
    document = load_json(text, source=source)
    media_type = _member(document, "mediaType", str, source)
    if media_type != MEDIA_TYPE:
        raise invalid(
            f"the attestation has the media type {media_type!r}; {MEDIA_TYPE} is understood",
            where=source,
        )
    envelope = _member(document, "dsseEnvelope", dict, source)
    signatures = _member(envelope, "signatures", list, source)
    if not signatures:
        raise invalid("the attestation's envelope has no signature", where=source)
    material = _member(document, "verificationMaterial", dict, source)
    forms = {"publicKey", "certificate", "x509CertificateChain"} & set(material)
    if len(forms) != 1:
        raise invalid(
            "the attestation must say either which key or which certificate signed it", where=source
        )
    hint = ""
    if forms == {"publicKey"}:
        hint = _member(_member(material, "publicKey", dict, source), "hint", str, source)
    return Attestation(
        method=KEY if forms == {"publicKey"} else CERTIFICATE,
        key_hint=hint,
        payload=_base64(_member(envelope, "payload", str, source), "payload", source),
        payload_type=_member(envelope, "payloadType", str, source),
        signatures=tuple(
            _base64(_member(item, "sig", str, source), "signature", source) for item in signatures
        ),
        raw=data,
    )


def _member(holder: Any, name: str, kind: type[_Kind], source: str) -> _Kind:
    value = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(value, kind):
        raise invalid(f"the attestation has no usable {name}", where=source)
    return value


def _base64(text: str, what: str, source: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise invalid(f"the attestation's {what} is not base64", where=source) from None
