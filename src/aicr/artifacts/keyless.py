"""Signing and checking without a key of one's own, through sigstore.

```
identity token --Port.sign(statement)--> attestation file (certificate, log entry)
attestation file --Port.verify--> Signed (payload, identity, issuer), or an error
```
``Port`` is all that the product asks of sigstore; tests stand in for it, ``Sigstore`` is the real
one. Its library comes with the extra ``sign`` and is imported when it is used. Checking needs no
network: the trust root that the library carries or has cached is used, or the one that is named.

Signing publishes the signer's identity in a public log for good, so whoever calls must have asked.
It must not know bundles. Source: bundler spec 7.4; decision 57.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any, Final, Protocol

from aicr.artifacts import dsse
from aicr.artifacts.signing import missing_extra
from aicr.errors import SERVICE_UNAVAILABLE, UNAUTHORIZED, AicrError, invalid

TOKEN_VARIABLE: Final = "COSIGN_IDENTITY_TOKEN"
_ISSUER_V1: Final = "1.3.6.1.4.1.57264.1.1"
_ISSUER_V2: Final = "1.3.6.1.4.1.57264.1.8"


@dataclasses.dataclass(frozen=True, slots=True)
class Signed:
    """What a checked attestation holds, and who the certificate says signed it."""

    payload_type: str
    payload: bytes
    identity: str
    issuer: str


class Port(Protocol):
    """What is asked of sigstore."""

    def sign(self, statement: bytes, token: str) -> bytes:
        """The attestation file for *statement*, signed as whom *token* ("" = ambient) says."""
        ...

    def verify(self, attestation: dsse.Attestation, trust_root: str) -> Signed:
        """Check the file against a trust root file, or the library's own for ""."""
        ...


class Sigstore:
    """The port on the library of the sigstore project, with its public services."""

    def sign(self, statement: bytes, token: str) -> bytes:
        """Sign *statement*.

        Raises:
            AicrError: INVALID_REQUEST without the extra or a usable token, UNAUTHORIZED for a
                token that is refused or expired, SERVICE_UNAVAILABLE when a service fails.
        """
        try:
            from sigstore import oidc  # type: ignore[import-not-found,unused-ignore]
            from sigstore.dsse import Statement  # type: ignore[import-not-found,unused-ignore]
            from sigstore.models import ClientTrustConfig  # type: ignore[import-not-found,unused-ignore]
            from sigstore.sign import SigningContext  # type: ignore[import-not-found,unused-ignore]
        except ImportError as error:
            raise missing_extra("sign", "keyless signing", error) from None
        try:
            raw = token or oidc.detect_credential()
        except Exception as error:
            raise AicrError(
                UNAUTHORIZED, f"no identity could be had from this environment: {_words(error)}"
            ) from error
        if not raw:
            raise invalid(
                "keyless signing needs an identity token, and this environment offers none",
                where="--attest",
                hint=f"set {TOKEN_VARIABLE}, run where a workload identity is (for example a CI "
                "job with id-token: write), or sign with --signing-key FILE.pem",
            )
        try:
            identity = oidc.IdentityToken(raw)
        except Exception as error:
            raise AicrError(
                UNAUTHORIZED, f"the identity token is not usable: {_words(error)}"
            ) from error
        try:
            context = SigningContext.from_trust_config(ClientTrustConfig.production())
            with context.signer(identity) as signer:
                made: str = signer.sign_dsse(Statement(statement)).to_json()
        except Exception as error:
            raise AicrError(
                SERVICE_UNAVAILABLE,
                f"sigstore could not sign: {_words(error)}",
                hint="try again, or sign with --signing-key FILE.pem; nothing was written",
            ) from error
        return made.encode() + b"\n"

    def verify(self, attestation: dsse.Attestation, trust_root: str) -> Signed:
        """Check the file offline.

        Raises:
            AicrError: INVALID_REQUEST without the extra, for an unusable trust root, and when the
                certificate, the signature or the log entry does not hold.
        """
        try:
            from sigstore.models import Bundle, TrustedRoot  # type: ignore[import-not-found,unused-ignore]
            from sigstore.verify.policy import UnsafeNoOp  # type: ignore[import-not-found,unused-ignore]
            from sigstore.verify.verifier import Verifier  # type: ignore[import-not-found,unused-ignore]
        except ImportError as error:
            raise missing_extra("sign", "checking a keyless attestation", error) from None
        # It warns that it works offline, which is what is wanted.
        logging.getLogger("sigstore").setLevel(logging.ERROR)
        try:
            if trust_root:
                verifier = Verifier(trusted_root=TrustedRoot.from_file(trust_root))
            else:
                verifier = Verifier.production(offline=True)
        except Exception as error:
            raise invalid(
                f"the trust root cannot be used: {_words(error)}",
                where="--trust-root",
                hint="name a trusted_root.json; sigstore's own tool can fetch a new one",
            ) from error
        try:
            bundle = Bundle.from_json(attestation.raw)
            # Whose certificate it is, is compared by the caller, who has a pattern for it.
            kind, payload = verifier.verify_dsse(bundle, UnsafeNoOp())
            identity, issuer = identity_of(bundle.signing_certificate)
        except Exception as error:
            raise invalid(
                f"the attestation does not verify: {_words(error)}",
                where=dsse.PATH,
                hint="if it was made after this machine's trust root, name a newer one with "
                "--trust-root",
            ) from error
        return Signed(kind, payload, identity, issuer)


def identity_of(certificate: Any) -> tuple[str, str]:
    """(identity, issuer) of a signing certificate: its one alternative name, and who vouched.

    Raises:
        AicrError: INVALID_REQUEST when there is not exactly one name, or no issuer.
    """
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        raise invalid("the signing certificate names nobody", where=dsse.PATH) from None
    found = [
        *names.get_values_for_type(x509.RFC822Name),
        *names.get_values_for_type(x509.UniformResourceIdentifier),
    ]
    if len(found) != 1:
        raise invalid("the signing certificate does not name one identity", where=dsse.PATH)
    issuers = {e.oid.dotted_string: e.value for e in certificate.extensions}
    for oid in (_ISSUER_V2, _ISSUER_V1):
        if oid in issuers:
            raw: bytes = issuers[oid].value
            if oid == _ISSUER_V2:
                # A DER UTF8String; issuers are short, so the length is one byte.
                if len(raw) < 2 or raw[0] != 0x0C or raw[1] != len(raw) - 2:
                    continue
                raw = raw[2:]
            return found[0], raw.decode()
    raise invalid("the signing certificate does not say who vouched for it", where=dsse.PATH)


def _words(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__
