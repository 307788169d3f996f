"""Addresses that a registry sends us to: read, joined and compared.

A registry names addresses in redirects, uploads and challenges. What cannot be read is an error and
not a crash, and whether an address is the registry itself decides who gets a log-in, so equal
addresses have to compare equal however they are written.

It must not know requests. Source: bundler spec 7.5; OCI distribution 1.1.
"""

from __future__ import annotations

import urllib.parse
from typing import Final

from aicr.errors import invalid

_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
#: Docker's hub is not served where its name says.
_SERVED_AT: Final = {
    "docker.io": "registry-1.docker.io",
    "index.docker.io": "registry-1.docker.io",
}


def served_at(host: str) -> str:
    """Where the registry that people call *host* answers.

    >>> served_at("docker.io"), served_at("ghcr.io")
    ('registry-1.docker.io', 'ghcr.io')
    """
    return _SERVED_AT.get(host.lower(), host)


def parts(url: str) -> urllib.parse.SplitResult:
    """The parts of an address.

    Raises:
        AicrError: INVALID_REQUEST for what is no address.
    """
    try:
        found = urllib.parse.urlsplit(url)
        # Looked at because a port that is no number shows only then.
        _ = found.port
    except ValueError:
        raise invalid(f"the registry names the address {url!r}, which cannot be used") from None
    return found


def joined(base: str, target: str) -> str:
    """*target* as seen from *base*.

    Raises:
        AicrError: INVALID_REQUEST for what is no address.
    """
    parts(target)
    return urllib.parse.urljoin(base, target)


def place(url: urllib.parse.SplitResult) -> tuple[str, str]:
    """Scheme and host as equal addresses have them: lower case, no port that goes unsaid.

    >>> place(parts("https://Registry.example:443/v2/"))
    ('https', 'registry.example')
    """
    return url.scheme, url.netloc.lower().removesuffix(_DEFAULT_PORTS.get(url.scheme, ""))


def with_digest(location: str, digest: str) -> str:
    """The address that ends an upload to *location*.

    >>> with_digest("/v2/a/blobs/uploads/1?state=x", "sha256:00")
    '/v2/a/blobs/uploads/1?state=x&digest=sha256%3A00'
    """
    joint = "&" if parts(location).query else "?"
    return f"{location}{joint}digest={urllib.parse.quote(digest, safe='')}"
