"""Who signed an attestation, and whether that is whom the caller expects.

```
attestation --check(Expected)--> Checked (payload, identity, issuer, named by the caller?), or an error
```
One rule for bundles and for evidence: a key signature counts only with the key at hand, a certificate
only as sigstore sees it, and an identity only together with who vouched for it.

It must not know what was signed. Source: bundler spec 7.3; validators spec 11; decision 57.
"""

from __future__ import annotations

import dataclasses
import re

from aicr.artifacts import dsse
from aicr.artifacts.keyless import Port, Sigstore
from aicr.artifacts.signing import PublicKey, key_name
from aicr.errors import invalid


@dataclasses.dataclass(frozen=True, slots=True)
class Expected:
    """Whom the caller trusts.

    Attributes:
        key: the key that must have signed, or None.
        identity_regexp: pattern that the whole identity must match, "" for anybody.
        identity: the identity that the caller named in full, "" for none.
        issuer: who must have vouched for an identity, "" for anybody.
        trust_root: file with the roots of sigstore, "" for the library's own.
        port: stands in for sigstore.
    """

    key: PublicKey | None = None
    identity_regexp: str = ""
    identity: str = ""
    issuer: str = ""
    trust_root: str = ""
    port: Port | None = None

    @property
    def names_somebody(self) -> bool:
        """Whether a certain signer is expected, so that no signature is not good enough."""
        return self.key is not None or bool(self.identity_regexp or self.identity or self.issuer)


@dataclasses.dataclass(frozen=True, slots=True)
class Checked:
    """What was signed, and by whom; ``named`` when the caller expected exactly that signer."""

    payload: bytes
    identity: str
    issuer: str
    named: bool


def check(
    attestation: dsse.Attestation, expected: Expected, *, what: str, where: str = ""
) -> Checked:
    """Check the signature of *attestation*.

    Args:
        attestation: the file.
        expected: whom the caller trusts.
        what: what was signed, for errors: "the bundle".
        where: its place, for errors.

    Raises:
        AicrError: INVALID_REQUEST when the signature does not hold, was made by somebody else, or is
            about something else than an in-toto statement.
    """
    if attestation.payload_type != dsse.PAYLOAD_TYPE:
        raise invalid(
            f"the attestation holds a {attestation.payload_type}, not an in-toto statement",
            where=where,
        )
    if attestation.method == dsse.KEY and expected.key is None:
        raise invalid(
            f"{what} was signed with the key {key_name(attestation.key_hint)}, and none was named "
            "to check it with",
            where=where,
            hint=f"pass --key with the public key of whoever signed {what}",
        )
    if expected.key is not None:
        return Checked(expected.key.verify(attestation), expected.key.key_id, "", True)
    signed = (expected.port or Sigstore()).verify(attestation, expected.trust_root)
    if signed.payload_type != dsse.PAYLOAD_TYPE:
        raise invalid(
            f"the attestation holds a {signed.payload_type}, not an in-toto statement", where=where
        )
    pattern = expected.identity_regexp
    if pattern and not re.fullmatch(pattern, signed.identity):
        raise invalid(
            f"{what} was signed by {signed.identity}, which does not match {pattern}",
            where=where,
            hint="the pattern must match the whole identity, so it mostly ends in .*",
        )
    if expected.issuer and signed.issuer != expected.issuer:
        raise invalid(
            f"{signed.issuer} vouched for the signer, not {expected.issuer}",
            where=where,
            hint="name who must have vouched with --certificate-oidc-issuer",
        )
    named = bool(pattern) or (expected.identity != "" and signed.identity == expected.identity)
    return Checked(signed.payload, signed.identity, signed.issuer, named)
