"""One certificate authority a control plane, and the certificates that it issues.

Design: keys and certificates are made with the `openssl` program (P-256, so a whole set takes a
fraction of a second), because a test tool should not bring a Python dependency that the product does
not have. Tests issue their own: a webhook's serving certificate, a client of some group, or a
second authority that nobody trusts.

It must not know: who uses a certificate for what.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

DAYS: Final = 30


class CertificateError(Exception):
    """Why a key or certificate could not be made."""


class Pair(NamedTuple):
    """Paths of a certificate and its key, both PEM."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that lives in one folder."""

    def __init__(self, folder: Path, *, name: str = "aicr-test-ca") -> None:
        """Make a new authority in *folder*, which is made if need be.

        Raises:
            CertificateError: openssl is missing or refuses.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._ca = self._make(
            "ca",
            {"CN": name},
            ["basicConstraints = critical, CA:TRUE", "keyUsage = critical, keyCertSign, cRLSign"],
            DAYS,
            None,
        )
        self.certificate = self._ca.certificate

    def issue(
        self,
        name: str,
        *,
        common_name: str,
        organizations: Sequence[str] = (),
        addresses: Sequence[str] = (),
        names: Sequence[str] = (),
        days: int = DAYS,
    ) -> Pair:
        """A certificate for servers and clients, written as NAME.crt and NAME.key.

        Kubernetes reads the common name as the user and the organisations as the groups.
        *addresses* and *names* are what a server may be reached by.

        Raises:
            CertificateError: openssl refuses.
        """
        extensions = [
            "basicConstraints = critical, CA:FALSE",
            "keyUsage = critical, digitalSignature",
            "extendedKeyUsage = serverAuth, clientAuth",
            "authorityKeyIdentifier = keyid",
        ]
        reached = [f"IP:{address}" for address in addresses] + [f"DNS:{text}" for text in names]
        if reached:
            extensions.append(f"subjectAltName = {', '.join(reached)}")
        subject = {f"{number}.O": text for number, text in enumerate(organizations)}
        return self._make(name, {**subject, "CN": common_name}, extensions, days, self._ca)

    def _make(
        self,
        name: str,
        subject: dict[str, str],
        extensions: list[str],
        days: int,
        issuer: Pair | None,
    ) -> Pair:
        pair = Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        settings = self.folder / f"{name}.cnf"
        lines = ["[req]", "prompt = no", "distinguished_name = subject", "[subject]"]
        lines += [f"{key} = {value}" for key, value in subject.items()]
        # Strict readers want the key identifiers, which openssl adds only when asked.
        lines += ["[extensions]", "subjectKeyIdentifier = hash", *extensions]
        settings.write_text("\n".join([*lines, ""]), encoding="utf-8")
        command = ["req", "-x509", "-config", str(settings), "-extensions", "extensions"]
        command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-days", str(days), "-keyout", str(pair.key), "-out", str(pair.certificate)]
        if issuer is not None:
            command += ["-CA", str(issuer.certificate), "-CAkey", str(issuer.key)]
        openssl(*command)
        return pair


def signing_key(folder: Path, name: str) -> tuple[Path, Path]:
    """Private and public key file of a signer of service account tokens."""
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(private))
    openssl("ec", "-in", str(private), "-pubout", "-out", str(public))
    return private, public


def openssl(*arguments: str) -> None:
    """Run openssl.

    Raises:
        CertificateError: it is not installed, or it refuses.
    """
    try:
        done = subprocess.run(
            ["openssl", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ.get("PATH", os.defpath), "OPENSSL_CONF": os.devnull},
        )
    except FileNotFoundError as error:
        raise CertificateError("there is no openssl; install the package openssl") from error
    if done.returncode != 0:
        raise CertificateError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
