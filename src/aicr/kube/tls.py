"""TLS settings of a cluster → `ssl.SSLContext`.

Certificates come as PEM bytes, wherever they were kept; reading files is `config`'s and `credentials`'
business. It must not know who connects where.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import dataclass, field

from aicr.errors import AicrError, invalid


@dataclass(frozen=True, slots=True)
class Tls:
    """How to tell that a server is the right one.

    `ca` empty means the trust store of this machine. `insecure` switches every check off.
    `server_name` is expected in the certificate instead of the address's host. `where` names the
    origin in errors.
    """

    ca: bytes = field(default=b"", repr=False)
    insecure: bool = False
    server_name: str = ""
    where: str = ""


def context(tls: Tls, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    """A client context; *certificate* and *key* (PEM) identify us.

    INVALID_REQUEST if the CA is no certificate, or if certificate and key do not belong together.
    """
    if tls.insecure:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    else:
        made = _verifying(tls)
    # The API server speaks HTTP/2 as well and would choose it if we left this open.
    made.set_alpn_protocols(["http/1.1"])
    if certificate or key:
        _identify(made, tls, certificate, key)
    return made


def _verifying(tls: Tls) -> ssl.SSLContext:
    if not tls.ca:
        made = ssl.create_default_context()
    else:
        try:
            made = ssl.create_default_context(cadata=tls.ca.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise invalid(
                "the cluster's certificate authority is not a PEM certificate",
                where=tls.where,
                hint="certificate-authority-data is base64 of the PEM text",
            ) from error
    # Python 3.13 asks of every CA for extensions that many clusters' CAs lack and that neither Go nor
    # earlier Pythons ask for.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return made


def _identify(made: ssl.SSLContext, tls: Tls, certificate: bytes, key: bytes) -> None:
    if not (certificate and key):
        lacking = "key" if certificate else "certificate"
        raise invalid(f"the client {lacking} is missing", where=tls.where)
    # OpenSSL reads these from files only. The folder is ours alone (0700) and gone before we return.
    with tempfile.TemporaryDirectory(prefix="aicr-") as folder:
        paths = []
        for name, content in (("certificate", certificate), ("key", key)):
            path = os.path.join(folder, name)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            paths.append(path)
        try:
            made.load_cert_chain(paths[0], paths[1], password=_no_password)
        except (ssl.SSLError, AicrError) as error:
            raise invalid(
                "the client certificate and key cannot be used together",
                where=tls.where,
                hint="both must be PEM, the key unencrypted, and belong to each other",
            ) from error


def _no_password() -> str:
    """Keeps OpenSSL from asking for a password on the terminal."""
    raise invalid("the client key is encrypted")
