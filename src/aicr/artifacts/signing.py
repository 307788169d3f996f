"""Signing a statement with a key file, and checking such a signature.

```
PEM file --load_private_key--> PrivateKey --sign--> attestation file
PEM file --load_public_key---> PublicKey  --verify(attestation)--> payload, or an error
```
Keys are P-256, P-384, P-521, Ed25519 or RSA from 2048 bits, in PEM. Signatures are deterministic
(RFC 6979 for the curves), so that equal bundles have equal attestations. Nothing is sent anywhere.

The library behind it comes with the extra ``sign`` and is imported when a key is used.
It must not know what is in a statement, or bundles. Source: bundler spec 7.4; decision 57.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final

from aicr.artifacts import dsse
from aicr.errors import AicrError, invalid

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    Private = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
    Public = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey

#: Holds the password of an encrypted key file; a flag would show it to every user of the machine.
PASSWORD_VARIABLE: Final = "AICR_SIGNING_KEY_PASSWORD"
_KMS: Final = ("awskms://", "gcpkms://", "azurekms://", "hashivault://")
_CURVES: Final = {"secp256r1": "SHA256", "secp384r1": "SHA384", "secp521r1": "SHA512"}
_SMALLEST_RSA: Final = 2048


def missing_extra(extra: str, what: str, error: ImportError) -> AicrError:
    """The one error for a part of the product that was not installed (decision 39)."""
    return invalid(
        f"{what} needs the extra {extra}, which is not installed ({error.name or error})",
        hint=f"run: pip install 'aicr[{extra}]'",
    )


def key_name(hint: str) -> str:
    """The name of the key that an attestation's *hint* means, as ``PublicKey.key_id`` has it.

    A hint that is no base64 of a SHA-256 is somebody else's and shown as it is.

    >>> key_name("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")[:24]
    'key:sha256:e3b0c44298fc1'
    """
    try:
        digest = base64.b64decode(hint, validate=True)
    except ValueError:
        return hint
    return f"key:sha256:{digest.hex()}" if len(digest) == hashlib.sha256().digest_size else hint


class PublicKey:
    """A key that signatures are checked with; ``key_id`` names it."""

    __slots__ = ("_key", "hint", "key_id")

    def __init__(self, key: Public) -> None:
        self._key = key
        digest = hashlib.sha256(_spki(key)).digest()
        self.hint = base64.b64encode(digest).decode()
        self.key_id = f"key:sha256:{digest.hex()}"

    def verify(self, attestation: dsse.Attestation) -> bytes:
        """The payload of *attestation*, which this key signed.

        Raises:
            AicrError: INVALID_REQUEST when it did not, or when a certificate did.
        """
        if attestation.method != dsse.KEY:
            raise invalid(
                "the attestation was signed with a certificate, not with a key",
                where=dsse.PATH,
                hint="drop --key and pin the signer with --certificate-identity-regexp",
            )
        for signature in attestation.signatures:
            if _holds(self._key, signature, attestation.signed_bytes):
                return attestation.payload
        other = ""
        if attestation.key_hint != self.hint:
            other = (
                f"; it names the key {key_name(attestation.key_hint)}, this one is {self.key_id}"
            )
        raise invalid(
            f"the attestation's signature was not made with this key{other}",
            where=dsse.PATH,
            hint="name the public key of whoever signed the bundle",
        )


class PrivateKey:
    """A key that signs statements."""

    __slots__ = ("_key", "public")

    def __init__(self, key: Private) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())

    def sign(self, statement: bytes) -> bytes:
        """The attestation file for *statement*; the same bytes each time."""
        signature = _sign(self._key, dsse.pae(dsse.PAYLOAD_TYPE, statement))
        return dsse.wrap_key_signature(statement, signature, self.public.hint)


def load_private_key(path: str, *, password: str = "", flag: str = "--signing-key") -> PrivateKey:
    """The private key in the PEM file *path*.

    Raises:
        AicrError: INVALID_REQUEST for a blank path, the address of a key service, an unreadable
            file, a wrong or missing password, and a kind of key that is not supported; NOT_FOUND
            for an absent file.
    """
    _check_name(path, flag)
    data = _read(path, flag)
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        raise missing_extra("sign", "signing with a key", error) from None
    if b"ENCRYPTED COSIGN" in data or b"ENCRYPTED SIGSTORE" in data:
        raise invalid(
            f"{path} is a key in cosign's own form",
            where=flag,
            hint="make a PEM key, for example: openssl ecparam -name prime256v1 -genkey -noout",
        )
    try:
        key = serialization.load_pem_private_key(data, password.encode() if password else None)
    except TypeError:
        problem = "needs no password" if password else "is encrypted"
        raise invalid(
            f"the key file {path} {problem}",
            where=flag,
            hint=f"set its password in {PASSWORD_VARIABLE}"
            if not password
            else f"unset {PASSWORD_VARIABLE}",
        ) from None
    except Exception as error:
        if b"PUBLIC KEY" in data:
            raise invalid(
                f"{path} is a public key", where=flag, hint="signing needs the private key"
            ) from None
        raise invalid(
            f"{path} is not a private key in PEM, or its password is wrong: {_reason(error)}",
            where=flag,
            hint="make one with: openssl ecparam -name prime256v1 -genkey -noout -out key.pem",
        ) from None
    return PrivateKey(_supported(key, path, flag))


def load_public_key(path: str, *, flag: str = "--key") -> PublicKey:
    """The public key in the PEM file *path*.

    Raises:
        AicrError: as ``load_private_key``; also for a private key, which a verifier must not have.
    """
    _check_name(path, flag)
    data = _read(path, flag)
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        raise missing_extra("sign", "checking a key signature", error) from None
    if b"PRIVATE KEY" in data:
        raise invalid(
            f"{path} holds a private key",
            where=flag,
            hint=f"name the public one: openssl pkey -in {path} -pubout -out key.pub",
        )
    if b"BEGIN CERTIFICATE" in data:
        raise invalid(
            f"{path} holds a certificate, and a key is asked for",
            where=flag,
            hint=f"take the key out of it: openssl x509 -in {path} -pubkey -noout",
        )
    try:
        key = serialization.load_pem_public_key(data)
    except Exception as error:
        raise invalid(
            f"{path} is not a public key in PEM: {_reason(error)}",
            where=flag,
            hint="make it with: openssl pkey -in key.pem -pubout -out key.pub",
        ) from None
    return PublicKey(_supported(key, path, flag))


def _check_name(path: str, flag: str) -> None:
    if not path.strip():
        raise invalid(f"{flag} is blank", where=flag, hint="name a PEM file")
    if path.startswith(_KMS):
        raise invalid(
            f"{path}: keys of key services are not supported",
            where=flag,
            hint="name a PEM file, or sign keyless with the extra sign",
        )


def _read(path: str, flag: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(dsse.MAX_BYTES)
    except FileNotFoundError:
        raise AicrError(
            "NOT_FOUND", f"key file not found: {path}", where=flag, hint="check the path"
        ) from None
    except OSError as error:
        raise invalid(f"cannot read the key file {path}: {error.strerror}", where=flag) from None


def _supported(key: Any, path: str, flag: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, (ed25519.Ed25519PrivateKey, ed25519.Ed25519PublicKey)):
        return key
    if isinstance(key, (ec.EllipticCurvePrivateKey, ec.EllipticCurvePublicKey)):
        if key.curve.name in _CURVES:
            return key
        raise invalid(
            f"{path}: the curve {key.curve.name} is not supported",
            where=flag,
            hint=f"use one of {', '.join(_CURVES)}",
        )
    if isinstance(key, (rsa.RSAPrivateKey, rsa.RSAPublicKey)):
        if key.key_size >= _SMALLEST_RSA:
            return key
        raise invalid(
            f"{path}: an RSA key of {key.key_size} bits is too short",
            where=flag,
            hint=f"use {_SMALLEST_RSA} bits or more",
        )
    raise invalid(
        f"{path}: keys of this kind cannot sign here ({type(key).__name__})",
        where=flag,
        hint="use an EC (P-256), Ed25519 or RSA key",
    )


def _spki(key: Public) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _sign(key: Private, data: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(data)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        algorithm = getattr(hashes, _CURVES[key.curve.name])()
        return key.sign(data, ec.ECDSA(algorithm, deterministic_signing=True))
    return key.sign(data, padding.PKCS1v15(), hashes.SHA256())


def _holds(key: Public, signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, data)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            algorithm = getattr(hashes, _CURVES[key.curve.name])()
            key.verify(signature, data, ec.ECDSA(algorithm))
        else:
            key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def _reason(error: Exception) -> str:
    # Behind its first sentence the library guesses, and adds what its own library said.
    said = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    return said.partition("\n")[0].partition(". ")[0].rstrip(".")[:200] or type(error).__name__
