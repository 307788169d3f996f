"""Reads a Helm chart archive in memory: its name and version, its files, its CRDs.

An archive comes from elsewhere, so it is never unpacked to disk, and sizes, names and kinds of
members are checked. It must not know components, folders or the network.
"""

from __future__ import annotations

from aicr import yamlio
from aicr.artifacts import archives
from aicr.bundle import objects
from aicr.errors import AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Largest archive, largest sum of its files, and most files, that are read.
MAX_BYTES: Final = 64 << 20
MAX_UNPACKED: Final = 256 << 20
MAX_MEMBERS: Final = 20_000


class Archive:
    """A chart: ``name``, ``version``, ``files`` by path inside the chart, and its Chart.yaml."""

    __slots__ = ("files", "metadata", "name", "version")

    def __init__(self, metadata: dict[str, Any], files: dict[str, bytes]) -> None:
        self.metadata = metadata
        self.name: str = metadata["name"]
        self.version: str = metadata["version"]
        self.files = files

    def crds(self) -> set[str]:
        """``group/Kind`` of the CRDs in `crds/`, of the chart and of the charts inside it."""
        found: set[str] = set()
        for path, content in self.files.items():
            parts = path.split("/")
            if path.endswith((".yaml", ".yml", ".json")) and (
                parts[0] == "crds" or (parts[0] == "charts" and "crds" in parts[2:])
            ):
                found |= objects.defined_types(content.decode(errors="replace"))
            elif parts[0] == "charts" and len(parts) == 2 and path.endswith(".tgz"):
                found |= read(content, component=self.name).crds()
        return found


def read(content: bytes, *, component: str) -> Archive:
    """The chart in an archive.

    Raises:
        AicrError: INVALID_REQUEST when it is no gzipped tar, is too large, holds links or paths that
            leave its folder, or no readable Chart.yaml.
    """
    if len(content) > MAX_BYTES:
        raise _bad(component, f"has more than {MAX_BYTES} bytes")
    files: dict[str, bytes] = {}
    total = 0
    try:
        # Headers come on top of the files.
        with archives.opened(content, most=2 * MAX_UNPACKED) as archive:
            for count, member in enumerate(archive):
                total += member.size
                if count >= MAX_MEMBERS or total > MAX_UNPACKED:
                    raise _bad(component, "holds too much to be a chart")
                if member.isdir():
                    continue
                parts = member.name.split("/")
                if not member.isreg() or len(parts) < 2 or parts[0] == "" or ".." in parts:
                    raise _bad(component, f"holds {member.name!r}, which is no file of a chart")
                files["/".join(parts[1:])] = archives.content(archive, member)
    except archives.BROKEN as error:
        raise _bad(component, "is no gzipped tar file") from error
    except AicrError as error:
        if error.where:
            raise
        raise _bad(component, "holds too much to be a chart") from error
    try:
        metadata = yamlio.read_fast(
            files.get("Chart.yaml", b"").decode(), source=f"{component}: Chart.yaml"
        )
    except (AicrError, UnicodeDecodeError) as error:
        raise _bad(component, "has a Chart.yaml that cannot be read") from error
    for key in ("name", "version"):
        if not isinstance(metadata, dict) or not isinstance(metadata.get(key), str):
            raise _bad(component, f"has no Chart.yaml with a {key}")
        if "/" in metadata[key] or metadata[key].startswith((".", "-")):
            raise _bad(component, f"has a Chart.yaml with the {key} {metadata[key]!r}")
    return Archive(metadata, files)


def _bad(component: str, problem: str) -> AicrError:
    return invalid(f"the chart archive of component {component!r} {problem}", where=component)
