"""Certificate authorities and certificates for servers and clients on loopback."""

from __future__ import annotations

import functools
import ssl
from dataclasses import dataclass

import trustme


@dataclass(frozen=True)
class Pair:
    """A certificate chain and its key, PEM."""

    certificate: bytes
    key: bytes


@functools.cache
def authority(name: str) -> trustme.CA:
    """A CA; another one for each *name*."""
    return trustme.CA(organization_name=f"test {name}")


def ca_pem(name: str = "one") -> bytes:
    """The CA's certificate."""
    return authority(name).cert_pem.bytes()


def issue(identity: str, *, ca: str = "one") -> Pair:
    """A certificate for a server's address or a client's name."""
    return _pair(authority(ca).issue_cert(identity, common_name=identity))


def _pair(leaf: trustme.LeafCert) -> Pair:
    chain = b"".join(part.bytes() for part in leaf.cert_chain_pems)
    return Pair(chain, leaf.private_key_pem.bytes())


def server_context(*, identity: str = "127.0.0.1", client_ca: str = "") -> ssl.SSLContext:
    """TLS for a test server; with *client_ca* clients must show a certificate of that CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority("one").issue_cert(identity).configure_cert(context)
    if client_ca:
        authority(client_ca).configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
