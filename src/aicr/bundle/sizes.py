"""How large Helm's record of a release gets, before the cluster refuses it.

Helm keeps a release as gzipped, base64-coded JSON in a Secret: chart templates and files, values, and
the rendered manifest. A Secret holds a mebibyte. Many large manifests or values can be over that
although every object is small, and the install then fails at its very end (issue 5; the same limit
for Fleet is that deployer's). Of a chart that is not in the bundle the values alone are known.

The estimate builds the same kind of document and compresses it the same way. It must not know
components or deployers.
"""

from __future__ import annotations

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from aicr.bundle.layout import Folder

#: Bytes of data that a Secret may hold.
LIMIT: Final = 1 << 20
#: Content of fewer bytes cannot exceed the limit, even if nothing compresses.
HARMLESS: Final = LIMIT // 4
#: Share of the limit from which on a note is due: the estimate is not exact.
_NEAR: Final = 0.9


def check(folders: list[Folder]) -> list[str]:
    """Refuse releases that Helm could not record; notes on those that come near.

    Raises:
        AicrError: INVALID_REQUEST naming the folder and its size.
    """
    notes = []
    for folder in folders:
        templates = {
            path: content
            for path, (content, _) in folder.files.items()
            if path.startswith("templates/")
        }
        values = len(folder.files["values.yaml"][0]) if "values.yaml" in folder.files else 0
        if sum(map(len, templates.values())) + values < HARMLESS:
            continue
        manifest = b"\n---\n".join(templates.values())
        size = estimate(templates, manifest, folder.values)
        words = (
            f"helm's record of release {folder.release!r} has about {size >> 10} KiB, and a Secret "
            f"holds {LIMIT >> 10} KiB"
        )
        if size > LIMIT:
            raise invalid(
                words,
                where=folder.parent,
                hint="split the manifests between two components, or take descriptions out of CRDs"
                if templates
                else "put large texts into a ConfigMap of your own, and name it in the values",
            )
        if size > LIMIT * _NEAR:
            notes.append(f"{words}; a little more and it can no longer be installed")
    return notes


def estimate(files: Mapping[str, bytes], manifest: bytes, values: Mapping[str, Any]) -> int:
    """Bytes of Helm's record of a release.

    Args:
        files: the chart's files by path; charts inside it are not part of the record.
        manifest: what the chart renders.
        values: the values that are given.
    """
    import base64
    import json
    import zlib

    def stored(path: str, content: bytes) -> dict[str, str]:
        return {"name": path, "data": base64.b64encode(content).decode()}

    own = {path: content for path, content in files.items() if not path.startswith("charts/")}
    document = {
        "chart": {
            "templates": [
                stored(path, content)
                for path, content in own.items()
                if path.startswith("templates/")
            ],
            "files": [
                stored(path, content)
                for path, content in own.items()
                if not path.startswith("templates/") and path not in ("Chart.yaml", "values.yaml")
            ],
        },
        "config": values,
        "manifest": manifest.decode(errors="replace"),
    }
    packed = zlib.compress(json.dumps(document).encode(), 9)
    return (len(packed) + 18 + 2) // 3 * 4
