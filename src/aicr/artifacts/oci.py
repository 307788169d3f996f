"""Bundles as OCI artifacts: addresses, reproducible archives, manifests, and reading them back.

```
oci://host/repo:tag --parse_address--> Address
files --bundle_package / chart_package--> Package (manifest bytes, blobs)
layer bytes --unpack--> files, or an error for anything but plain files
```
The archive has fixed times and owners and sorted names, so equal bundles have equal digests. An
archive that was pulled is not trusted: a link, a device, a path that leaves the tree, a name twice
or too much data refuses the whole, and of its modes only "can be run" and "everybody may read" count.

It must not know how bytes travel (``artifacts.registry``). Source: bundler spec 1.5, 7.5.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from typing import Any, Final

from aicr.artifacts import archives, checksums
from aicr.errors import AicrError, invalid
from aicr.values import references
from aicr.yamlio.jsontext import load_json

SCHEME: Final = "oci://"
MANIFEST_TYPE: Final = "application/vnd.oci.image.manifest.v1+json"
ARTIFACT_TYPE: Final = "application/vnd.nvidia.aicr.artifact"
LAYER_TYPE: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
EMPTY_TYPE: Final = "application/vnd.oci.empty.v1+json"
CHART_CONFIG_TYPE: Final = "application/vnd.cncf.helm.config.v1+json"
CHART_LAYER_TYPE: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_CREATED: Final = "1970-01-01T00:00:00Z"
_SOURCE: Final = "https://github.com/NVIDIA/aicr"

#: A bundle with every chart vendored stays below 100 MiB; more is not a bundle.
MAX_LAYER_BYTES: Final = 512 * 1024 * 1024
MAX_UNPACKED_BYTES: Final = 2 * 1024 * 1024 * 1024
MAX_MANIFEST_BYTES: Final = 4 * 1024 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Address:
    """Where an artifact is: ``oci://registry/repository[:tag][@digest]``."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def reference(self) -> str:
        """What a registry is asked for: the digest if there is one, else the tag."""
        return self.digest or self.tag

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{SCHEME}{self.registry}/{self.repository}{tag}" + (
            f"@{self.digest}" if self.digest else ""
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that a manifest points to."""

    media_type: str
    data: bytes

    @property
    def digest(self) -> str:
        """``sha256:`` and the hash of the bytes."""
        return digest_of(self.data)

    def descriptor(self) -> dict[str, Any]:
        """How a manifest points to it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.data)}


@dataclasses.dataclass(frozen=True, slots=True)
class Package:
    """An artifact that is ready to be pushed: blobs first, the manifest last."""

    blobs: tuple[Blob, ...]
    manifest: Blob


def digest_of(data: bytes) -> str:
    """The digest of *data* as registries write it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def parse_address(text: str, *, default_tag: str = "", flag: str = "--output") -> Address:
    """The address in *text*.

    Args:
        text: ``oci://host[:port]/repository[:tag][@sha256:…]``.
        default_tag: tag of an address that has neither tag nor digest.
        flag: the flag it came with, for errors.

    Raises:
        AicrError: INVALID_REQUEST naming the part that is wrong.
    """
    if not text.startswith(SCHEME):
        raise invalid(
            f"{text!r} is not an oci:// address",
            where=flag,
            hint="write it as oci://HOST/REPOSITORY:TAG",
        )
    # Not split yet: what stands before an @ may be a password, which no message repeats.
    netloc = text.removeprefix(SCHEME).partition("/")[0]
    if "@" in netloc and not references.is_digest(netloc.rpartition("@")[2]):
        raise invalid(
            f"{SCHEME}{netloc.rpartition('@')[2]}: the address is given with a user name or password",
            where=flag,
            hint="take it out, and log in: docker login HOST",
        )
    registry, repository, tag, digest = references.split(text.removeprefix(SCHEME), hosted=True)
    if digest is not None and not references.is_digest(digest):
        raise invalid(
            f"{text}: the digest {digest!r} is not sha256: and 64 hex digits",
            where=flag,
            hint="copy it whole; aicr bundle prints it when it has pushed, and --image-refs keeps it",
        )
    if not references.is_host(registry):
        raise invalid(
            f"{text}: {registry!r} is not a registry",
            where=flag,
            hint="write oci://HOST[:PORT]/REPOSITORY[:TAG]",
        )
    port = references.port_of(registry)
    if not references.is_port(port):
        raise invalid(f"{text}: {port} is not a port", where=flag)
    if not references.is_repository(repository):
        lower = ", all in lower case" if repository != repository.lower() else ""
        raise invalid(
            f"{text}: {repository!r} is not a repository",
            where=flag,
            hint=f"write segments of letters and digits, joined by . _ - and /{lower}",
        )
    if not references.fits(registry, repository):
        raise invalid(
            f"{text}: registry and repository have more than {references.LONGEST_NAME} characters",
            where=flag,
            hint="choose a shorter repository; registries and their clients refuse a longer name",
        )
    if tag is not None and not references.is_tag(tag):
        raise invalid(
            f"{text}: {tag!r} is not a tag",
            where=flag,
            hint="a tag has letters, digits and . _ -; write _ where a version has +",
        )
    if not tag and not digest:
        tag = default_tag.replace("+", "_")
    return Address(registry, repository, tag or "", digest or "")


def bundle_package(files: Mapping[str, tuple[bytes, int]], *, version: str) -> Package:
    """The generic artifact: an OCI 1.1 manifest with one layer that holds the whole tree."""
    config = Blob(EMPTY_TYPE, b"{}")
    layer = Blob(LAYER_TYPE, archive(files))
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": ARTIFACT_TYPE,
        "config": config.descriptor(),
        "layers": [layer.descriptor()],
        "annotations": {
            "org.opencontainers.image.created": _CREATED,
            "org.opencontainers.image.source": _SOURCE,
            "org.opencontainers.image.title": "AICR Bundle",
            "org.opencontainers.image.vendor": "NVIDIA",
            "org.opencontainers.image.version": version,
        },
    }
    return Package((config, layer), _manifest(document))


def chart_package(files: Mapping[str, tuple[bytes, int]], chart: Mapping[str, Any]) -> Package:
    """The artifact of a bundle that is a chart: what ``helm push`` would make of it.

    Args:
        files: the bundle, with Chart.yaml at its root.
        chart: the content of Chart.yaml.
    """
    name = str(chart["name"])
    config = Blob(CHART_CONFIG_TYPE, json.dumps(dict(chart), sort_keys=True).encode())
    layer = Blob(
        CHART_LAYER_TYPE, archive({f"{name}/{path}": held for path, held in files.items()})
    )
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": config.descriptor(),
        "layers": [layer.descriptor()],
        "annotations": {
            "org.opencontainers.image.created": _CREATED,
            "org.opencontainers.image.title": name,
            "org.opencontainers.image.version": str(chart["version"]),
        },
    }
    return Package((config, layer), _manifest(document))


def _manifest(document: dict[str, Any]) -> Blob:
    return Blob(MANIFEST_TYPE, json.dumps(document, separators=(",", ":")).encode())


def archive(files: Mapping[str, tuple[bytes, int]]) -> bytes:
    """A reproducible tar.gz: names sorted, time 0, owner 0, the modes as given.

    Raises:
        AicrError: INVALID_REQUEST for a path that is not plain.
    """
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(files):
            problem = checksums.path_problem(path)
            if problem:
                raise invalid(f"bundle file {path!r} {problem}")
            data, mode = files[path]
            member = tarfile.TarInfo(path)
            member.size, member.mode, member.mtime = len(data), mode, 0
            tar.addfile(member, io.BytesIO(data))
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0, compresslevel=6) as stream:
        stream.write(plain.getvalue())
    return packed.getvalue()


def unpack(data: bytes, *, strip: str = "") -> dict[str, tuple[bytes, int]]:
    """The files of an archive.

    Args:
        data: a tar.gz.
        strip: folder that all of it must lie in, left out of the result.

    Raises:
        AicrError: INVALID_REQUEST for what is no archive, for anything but folders and plain files,
            a path that leaves the tree, a name twice, and too much data.
    """
    found: dict[str, tuple[bytes, int]] = {}
    total = 0
    try:
        # The sum is of files, and an archive has headers besides.
        with archives.opened(data, most=2 * MAX_UNPACKED_BYTES) as tar:
            for member in tar:
                path = member.name.removeprefix("./").rstrip("/")
                if member.isdir() and path in ("", "."):
                    continue
                problem = checksums.path_problem(path)
                if strip and not problem and path.partition("/")[0] != strip:
                    problem = f"lies outside of {strip}/"
                if not member.isdir() and not member.isreg():
                    problem = problem or "is neither a file nor a folder"
                if path in found:
                    problem = problem or "is there twice"
                if problem:
                    raise invalid(f"the archive's entry {member.name!r} {problem}")
                if member.isdir():
                    continue
                total += member.size
                if total > MAX_UNPACKED_BYTES:
                    raise invalid(f"the archive holds more than {MAX_UNPACKED_BYTES} bytes")
                mode = 0o755 if member.mode & 0o111 else 0o644 if member.mode & 0o004 else 0o600
                found[path.removeprefix(f"{strip}/") if strip else path] = (
                    archives.content(tar, member),
                    mode,
                )
    except archives.BROKEN as error:
        raise invalid(f"the layer is not a tar.gz archive: {error}") from error
    return found


def layer_of(manifest: bytes, *, source: str) -> tuple[str, str, int, str]:
    """(media type, digest, size, root folder) of the one layer of a bundle's manifest.

    Raises:
        AicrError: INVALID_REQUEST when the manifest is not that of a bundle.
    """
    try:
        document = load_json(manifest.decode("utf-8", "replace"), source=source)
    except AicrError:
        # What is wrong with the JSON helps nobody: it is a page, or a file of another kind.
        raise invalid(
            f"{source}: what came is no manifest, nor any JSON",
            hint="is it a registry? A proxy or a login page may stand in between",
        ) from None
    if not isinstance(document, dict) or document.get("mediaType") != MANIFEST_TYPE:
        raise invalid(f"{source} is not an OCI image manifest", hint="is it the right address?")
    kind = document.get("artifactType") or _map(document, "config").get("mediaType")
    layers = document.get("layers")
    if kind not in (ARTIFACT_TYPE, CHART_CONFIG_TYPE):
        raise invalid(
            f"{source} is not a bundle: its type is {kind!r}, not {ARTIFACT_TYPE}",
            hint="is it the right address?",
        )
    if not isinstance(layers, list) or len(layers) != 1 or not isinstance(layers[0], dict):
        raise invalid(f"{source}: a bundle has exactly one layer")
    layer = layers[0]
    chart = kind == CHART_CONFIG_TYPE
    wanted = CHART_LAYER_TYPE if chart else LAYER_TYPE
    digest, size = layer.get("digest"), layer.get("size")
    if layer.get("mediaType") != wanted:
        raise invalid(f"{source}: the layer has the type {layer.get('mediaType')!r}, not {wanted}")
    if not isinstance(digest, str) or not references.is_digest(digest):
        raise invalid(f"{source}: the layer's digest is not sha256: and 64 hex digits")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= MAX_LAYER_BYTES:
        raise invalid(f"{source}: the layer's size {size!r} is not that of a bundle")
    title = _map(document, "annotations").get("org.opencontainers.image.title", "")
    return wanted, digest, size, str(title) if chart else ""


def _map(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    held = document.get(name)
    return held if isinstance(held, dict) else {}


def wrong_bytes(source: str, wanted: str, got: str) -> AicrError:
    """What was received is not what the digest says."""
    return AicrError(
        "INTERNAL",
        f"{source}: the registry sent other bytes than it was asked for ({got}, not {wanted})",
        hint="nothing was written; try again, and if it stays so, push the bundle anew",
    )
