"""The grammar of references to what registries hold: ``[host[:port]/]repository[:tag][@digest]``.

```
text --split--> Parts (nothing is checked) --is_host, is_port, ...--> which part is wrong
```
Images, addresses of bundles and settings that name an image are read by these rules alone; each reader
says in its own words what is wrong, and asks for more where it must. Of the digests that the grammar
knows only sha256 counts: our programs make and check no other, and registries serve no other.

It must not know defaults (docker's hub, ``latest``), nor what a reference is for. Source: the grammar of
references of the distribution project; limits on names of the OCI distribution specification 1.1;
bundler spec 1.5, 8.1.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: Docker's hub, first by the name that references carry.
HUB_NAMES: Final = ("docker.io", "index.docker.io", "registry-1.docker.io")
#: Characters of host, slash and repository together; more is refused by runtimes and clients.
LONGEST_NAME: Final = 255

_DIGEST_START: Final = "sha256:"
_PORTS: Final = 65536
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:]+\])(?::([0-9]{{1,5}}))?")
_SEGMENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY: Final = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST: Final = re.compile(rf"{_DIGEST_START}[0-9a-f]{{64}}")


class Parts(NamedTuple):
    """A reference taken apart.

    Attributes:
        host: with its port; "" when none is written.
        repository: path in the registry.
        tag: None when there is no colon for one; "" when nothing stands behind it.
        digest: None when there is no ``@``.
    """

    host: str
    repository: str
    tag: str | None
    digest: str | None


def split(text: str, *, hosted: bool = False) -> Parts:
    """The parts of *text*, none of which is checked.

    Args:
        text: a reference, without a scheme.
        hosted: the first segment is a host, however it looks.
    """
    rest, at, digest = text.partition("@")
    first, slash, behind = rest.partition("/")
    host, path = (first, behind) if hosted or (slash and names_host(first)) else ("", rest)
    repository, colon, tag = path.partition(":")
    return Parts(host, repository, tag if colon else None, digest if at else None)


def last_segment(text: str) -> tuple[str, str | None]:
    """(last segment of the repository, tag or None) of what a runtime has taken: nothing is checked.

    >>> last_segment("registry.example:5000/a/b:1@sha256:00"), last_segment("registry.example:5000/b")
    (('b', '1'), ('b', None))
    """
    whole = text.partition("@")[0].rpartition("/")[2]
    name, colon, tag = whole.rpartition(":")
    return (name, tag) if colon else (whole, None)


def names_host(segment: str) -> bool:
    """Whether a first segment is meant as a host: a point, a port, localhost or upper case (docker)."""
    return "." in segment or ":" in segment or segment == "localhost" or segment != segment.lower()


def is_host(text: str) -> bool:
    """Whether *text* is a domain or an address, maybe with a port (of which `is_port` says more)."""
    return _HOST.fullmatch(text) is not None


def port_of(host: str) -> str:
    """The digits behind the colon of a host, "" when it names no port."""
    found = _HOST.fullmatch(host)
    return found[1] or "" if found else ""


def is_port(digits: str) -> bool:
    """Whether what `port_of` gave is a port, or none."""
    return not digits or 0 < int(digits) < _PORTS


def is_repository(text: str) -> bool:
    """Whether *text* is a path that a registry takes: lower case."""
    return _REPOSITORY.fullmatch(text) is not None


def fits(host: str, repository: str) -> bool:
    """Whether the whole name is no longer than runtimes take."""
    name = f"{host}/{repository}" if host else repository
    return len(name) <= LONGEST_NAME


def is_tag(text: str) -> bool:
    """Whether *text* is a tag: at most 128 letters, digits, ``.``, ``_`` and ``-``."""
    return _TAG.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Whether *text* is ``sha256:`` and 64 lower-case hex digits."""
    return _DIGEST.fullmatch(text) is not None


def with_algorithm(digest: str) -> str:
    """*digest* with ``sha256:`` in front where only its 64 hex digits are given; else as it is."""
    whole = f"{_DIGEST_START}{digest}"
    return whole if is_digest(whole) else digest


def is_reference(text: str) -> bool:
    """Whether *text* is a whole reference, each part of it by its rule."""
    parts = split(text)
    return (
        (not parts.host or (is_host(parts.host) and is_port(port_of(parts.host))))
        and is_repository(parts.repository)
        and fits(parts.host, parts.repository)
        and (parts.tag is None or is_tag(parts.tag))
        and (parts.digest is None or is_digest(parts.digest))
    )
