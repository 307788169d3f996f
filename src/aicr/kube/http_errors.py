"""Failures of a connection → `AicrError`: refused, not trusted, cut, too slow, or stopped at a proxy.

None of these says anything about what the cluster has, so the codes are SERVICE_UNAVAILABLE and
TIMEOUT only (field case G2). Needs aiohttp; must not know what is done with an answer.
"""

from __future__ import annotations

import ssl

import aiohttp

from aicr.errors import INVALID_REQUEST, SERVICE_UNAVAILABLE, TIMEOUT, AicrError
from aicr.kube.config import ClusterConfig
from aicr.kube.request import Request
from aicr.values import proxy


def connection_error(error: BaseException, request: Request, config: ClusterConfig) -> AicrError:
    """The error for an exception of aiohttp or the event loop, to be raised ``from`` it."""
    code, what, hint = _reading(error, config)
    return AicrError(
        code,
        f"cannot {request.verb} {request.subject}: {what}",
        hint=hint,
        context={"server": proxy.shown(config.server)},
    )


def _reading(error: BaseException, config: ClusterConfig) -> tuple[str, str, str]:
    """(code, what happened, what to do)."""
    server, through = proxy.shown(config.server), proxy.shown(config.proxy)
    if isinstance(error, aiohttp.InvalidURL):
        return INVALID_REQUEST, f"{server} is not an address", "check the server in the kubeconfig"
    if isinstance(error, ValueError) and not isinstance(error, OSError | aiohttp.ClientError):
        what = f"the request cannot be written to {server}: {_reason(error)}"
        return INVALID_REQUEST, what, "check the server and the user's entry in the kubeconfig"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        what = f"the proxy {through} refused to connect us to {server} (HTTP {error.status})"
        return SERVICE_UNAVAILABLE, what, "check proxy-url or HTTPS_PROXY, and NO_PROXY"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        what = f"the proxy {through} cannot be reached ({_reason(error)})"
        return SERVICE_UNAVAILABLE, what, "check proxy-url or HTTPS_PROXY, and NO_PROXY"
    certificate = _certificate_error(error)
    if certificate is not None:
        what = f"the certificate of {server} is not trusted: {certificate.verify_message}"
        return SERVICE_UNAVAILABLE, what, _certificate_hint(certificate, config)
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        what = f"no TLS connection to {server} ({_reason(error)})"
        return SERVICE_UNAVAILABLE, what, "is this the address of an API server?"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        what = f"{server} did not accept a connection in time"
        return TIMEOUT, what, "is the cluster reachable from here (VPN, firewall)?"
    if isinstance(error, TimeoutError):
        return TIMEOUT, f"{server} did not answer in time", "try again; is the server overloaded?"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        host = error.host
        return (
            SERVICE_UNAVAILABLE,
            f"the name {host} cannot be resolved",
            "check server and network",
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        what = f"no connection to {server} ({_reason(error)})"
        return SERVICE_UNAVAILABLE, what, "is the API server running and reachable from here?"
    what = f"the connection to {server} was cut ({_reason(error)})"
    return SERVICE_UNAVAILABLE, what, "try again"


def _certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, aiohttp.ClientConnectorCertificateError):
            found = found.certificate_error
        if isinstance(found, ssl.SSLCertVerificationError):
            return found
        found = found.__cause__
    return None


def _certificate_hint(error: ssl.SSLCertVerificationError, config: ClusterConfig) -> str:
    origin = config.tls.where or config.source
    if "match" in error.verify_message:
        return f"the address must be one that the certificate names; or set tls-server-name in {origin}"
    if "expired" in error.verify_message or "not yet" in error.verify_message:
        return "renew the certificate; check the clock of this machine"
    return f"the certificate authority in {origin} is of another cluster, or was replaced"


def _reason(error: BaseException) -> str:
    """The system's words, without aiohttp's, which repeat the address."""
    number = getattr(error, "os_error", error)
    said = getattr(number, "strerror", None) or getattr(number, "reason", None)
    # What is said of a value that cannot be sent does not quote it.
    return str(said or (isinstance(error, ValueError) and str(error)) or type(error).__name__)
