"""Container image references: reading, joining split forms, and comparing.

```
"busybox"                                  --parse--> docker.io/library/busybox:latest
{repository: nvcr.io/x, image, version}    --join---> nvcr.io/x/image:version
reference --mirrored("mirror.local/pfx")--> mirror.local/pfx/x/image:version (once, however often)
```
Two spellings of one image are one reference, because a runtime reads them as one. A port is never
taken for a tag, and what no runtime would accept is an error with the part that is wrong.

It must not know charts or where in a document a reference stands (``bundle.image_scan``).
Source: bundler spec 8.1; field cases L1, L2.
"""

from __future__ import annotations

import dataclasses
import re
import urllib.parse
from typing import Final

from aicr.errors import AicrError, invalid
from aicr.values import references

HUB: Final = references.HUB_NAMES[0]
_OFFICIAL: Final = "library/"
LATEST: Final = "latest"
_UNRESOLVED: Final = re.compile(r"\{\{|\}\}|\$\{|\$\(|<[a-zA-Z_-]+>|%s")


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Reference:
    """One image, normalised.

    Attributes:
        registry: host, with its port; ``docker.io`` when none was written.
        repository: path in the registry.
        tag: tag, ``latest`` for a scalar without one, "" when a chart decides it or a digest does.
        digest: ``sha256:…`` or "".
    """

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        text = f"{self.registry}/{self.repository}"
        if self.tag:
            text += f":{self.tag}"
        return f"{text}@{self.digest}" if self.digest else text

    @property
    def floating(self) -> str:
        """Why the same reference can be another image tomorrow, or "" when it cannot be."""
        if self.digest:
            return ""
        if not self.tag:
            return "tag left to the chart"
        return "tag latest" if self.tag == LATEST else ""

    @property
    def purl(self) -> str:
        """The package URL of the image (type ``oci``)."""
        name = self.repository.rpartition("/")[2]
        version = f"@{self.digest}" if self.digest else ""
        # Package URLs leave the colon as it is, in digests and in front of ports.
        place = urllib.parse.quote(f"{self.registry}/{self.repository}", safe="/:")
        query = f"repository_url={place}" + (f"&tag={self.tag}" if self.tag else "")
        return f"pkg:oci/{name}{version}?{query}"

    def mirrored(self, mirror: str) -> Reference:
        """The same image in *mirror* (``HOST[:PORT][/PATH]``); one that is there already stays."""
        host, _, prefix = mirror.strip("/").partition("/")
        if self.is_in(mirror):
            return self
        path = f"{prefix}/{self.repository}" if prefix else self.repository
        return Reference(host, path, self.tag, self.digest)

    def is_in(self, mirror: str) -> bool:
        """Whether the image lies in *mirror* already."""
        host, _, prefix = mirror.strip("/").partition("/")
        return self.registry == host and (not prefix or self.repository.startswith(f"{prefix}/"))


def parse(text: str, *, where: str = "", default_tag: str = LATEST) -> Reference:
    """The image that *text* names.

    Args:
        text: ``[registry/]repository[:tag][@digest]``.
        where: its place, for errors.
        default_tag: tag of a reference that has neither tag nor digest.

    Raises:
        AicrError: INVALID_REQUEST naming the part that is wrong.
    """
    if not text or text != text.strip():
        raise _wrong(text, "is empty or has blanks around it", where)
    if _UNRESOLVED.search(text):
        raise _wrong(text, "holds a placeholder that is not filled in", where)
    parts = references.split(text)
    if parts.digest is not None and not references.is_digest(parts.digest):
        raise _wrong_digest(text, parts.digest, where)
    if parts.tag is not None and not references.is_tag(parts.tag):
        raise _wrong(text, f"has the tag {parts.tag!r}, which is not one", where)
    unsaid = default_tag if parts.digest is None else ""
    registry, repository = _checked_name(text, parts.host or HUB, parts.repository, where)
    return Reference(registry, repository, parts.tag or unsaid, parts.digest or "")


def join(
    *,
    repository: str,
    registry: str = "",
    name: str = "",
    tag: str = "",
    digest: str = "",
    where: str = "",
) -> Reference:
    """The image of a split form (registry, repository, name, tag, digest as separate values).

    A tag that is itself a digest or ends in one (``v1@sha256:…``), and a digest without ``sha256:``,
    are understood, because charts take them. A tag or digest inside of *repository* counts when none
    is given beside it.

    Raises:
        AicrError: INVALID_REQUEST naming the part that is wrong.
    """
    path = "/".join(part.strip("/") for part in (registry, repository, name) if part)
    if references.is_digest(tag):
        tag, digest = "", tag
    elif "@" in tag:
        tag, _, behind = tag.partition("@")
        digest = digest or behind
    digest = references.with_algorithm(digest)
    if tag and not references.is_tag(tag):
        raise _wrong(path, f"has the tag {tag!r}, which is not one", where)
    if digest and not references.is_digest(digest):
        raise _wrong_digest(path, digest, where)
    found = parse(path, where=where, default_tag="")
    return Reference(found.registry, found.repository, tag or found.tag, digest or found.digest)


def looks_like_image(text: str) -> bool:
    """Whether a scalar under an ``image`` key is meant as a whole reference.

    It is when it has a tag or digest, or its first segment looks like a registry (bundler spec 8.1);
    a bare word may as well be half of a split form.
    """
    if not text or any(char.isspace() for char in text) or _UNRESOLVED.search(text):
        return False
    if "://" in text or text.startswith(("/", ".", "-")):
        return False
    if "@" in text:
        return True
    first, slash, rest = text.partition("/")
    if slash and references.names_host(first):
        return bool(rest)
    return ":" in text.rpartition("/")[2]


def is_unresolved(text: str) -> bool:
    """Whether *text* holds a placeholder, which somebody fills in later."""
    return _UNRESOLVED.search(text) is not None


def _checked_name(text: str, registry: str, repository: str, where: str) -> tuple[str, str]:
    """(registry, repository) as equal images have them."""
    if not references.is_host(registry):
        raise _wrong(text, f"has the registry {registry!r}, which is not a host", where)
    port = references.port_of(registry)
    if not references.is_port(port):
        raise _wrong(text, f"has the port {port}, which is not one", where)
    if not references.fits(registry, repository):
        longest = references.LONGEST_NAME
        raise _wrong(text, f"has a name of more than {longest} characters", where)
    if not references.is_repository(repository):
        if repository != repository.lower() and references.is_repository(repository.lower()):
            raise _wrong(text, "has upper case in its repository, which no registry takes", where)
        raise _wrong(text, f"has the repository {repository!r}, which is not one", where)
    registry = registry.lower()
    if registry in references.HUB_NAMES:
        registry = HUB
        if "/" not in repository:
            repository = f"{_OFFICIAL}{repository}"
    return registry, repository


def _wrong_digest(text: str, digest: str, where: str) -> AicrError:
    return _wrong(text, f"has the digest {digest!r}, not sha256: and 64 hex digits", where)


def _wrong(text: str, problem: str, where: str) -> AicrError:
    return invalid(f"image {text!r} {problem}", where=where, hint="correct the value")
