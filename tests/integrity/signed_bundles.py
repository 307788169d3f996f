"""Small bundles and keys for the tests of signing and verifying."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from aicr.artifacts import dsse, signing
from aicr.artifacts.keyless import Signed
from aicr.bundle import info, publish
from aicr.bundle.layout import UPSTREAM_HELM, Folder
from aicr.bundle.options import BundleOptions
from aicr.bundle.output import write_bundle
from aicr.bundle.plan import Plan
from aicr.errors import invalid

Files = dict[str, tuple[bytes, int]]
IDENTITY = "https://github.com/acme/gpu/.github/workflows/release.yaml@refs/tags/v1"
ISSUER = "https://token.actions.githubusercontent.com"

KEYS: dict[str, Callable[[], Any]] = {
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
    "RSA-2048": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
}


def write_key(folder: Path, key: Any, name: str = "key", password: str = "") -> tuple[str, str]:
    """Write a key pair as PEM; the paths of the private and the public file."""
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    public.write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return str(private), str(public)


def bundle_files(*, data: dict[str, bytes] | None = None) -> Files:
    """A whole bundle of one component."""
    folder = Folder(
        dir="001-driver",
        release="driver",
        parent="driver",
        phase="primary",
        kind=UPSTREAM_HELM,
        namespace="gpu",
        create_namespace=True,
        files={},
    )
    ref = {"name": "driver", "source": "https://charts.example", "version": "1.2.0"}
    recipe: Any = {"kind": "RecipeResult", "componentRefs": [ref]}
    options = BundleOptions(version="1.2.3", data_files=data or {})
    return info.complete(
        {"deploy.sh": (b"#!/bin/sh\n", 0o755), "001-driver/values.yaml": (b"a: 1\n", 0o644)},
        Plan(components=[], notes=[], recipe=recipe, deployer="helm", options=options),
        [folder],
        deployer="helm",
        entrypoint="deploy.sh",
        manifest="",
    )


def signed(files: Files, private: str, *, version: str = "1.2.3") -> Files:
    """The bundle with an attestation by a key file."""
    return publish.attested(files, signing.load_private_key(private).sign, tool_version=version)


def written(folder: Path, files: Files) -> str:
    """The bundle on disk; its path."""
    write_bundle(files, str(folder))
    return os.fspath(folder)


class FakeSigstore:
    """Stands in for sigstore: what it signed it knows again, and nothing else."""

    def __init__(self, identity: str = IDENTITY, issuer: str = ISSUER) -> None:
        self.identity = identity
        self.issuer = issuer
        self.made: dict[bytes, bytes] = {}
        self.roots: list[str] = []

    def sign(self, statement: bytes, token: str) -> bytes:
        """An attestation file in the form that has a certificate."""
        del token
        made = dsse.wrap_key_signature(statement, b"signature", "hint").replace(
            b'"publicKey": {\n      "hint": "hint"\n    }',
            b'"certificate": {\n      "rawBytes": ""\n    }',
        )
        self.made[made] = statement
        return made

    def verify(self, attestation: dsse.Attestation, trust_root: str) -> Signed:
        """The statement of a file that was made here."""
        self.roots.append(trust_root)
        if attestation.raw not in self.made:
            raise invalid("the attestation does not verify: bad signature", where=dsse.PATH)
        return Signed(dsse.PAYLOAD_TYPE, self.made[attestation.raw], self.identity, self.issuer)
