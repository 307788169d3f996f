"""The CRDs of a release: those among its manifests, and those of a chart that lies in the bundle.

A CRD is compared by its name, the versions it serves and stores, and whether its schema is the same:
that is what decides if objects of it survive an upgrade. Charts that are pulled at install time
cannot be looked into; there the comparison of recipes says that the chart moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aicr.artifacts import archives
from aicr.diff import trees
from aicr.diff.changes import ABSENT, CHANGED, Change, of_sides
from aicr.errors import AicrError
from aicr.yamlio import read_fast_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Final

_KIND: Final = "CustomResourceDefinition"
#: Largest file that is looked into, in bytes; CRDs of today have up to two megabytes.
_LARGEST: Final = 32 << 20
#: Most that is unpacked of one chart, in bytes.
_MOST: Final = 512 << 20


def definitions(files: Mapping[str, bytes], found: Iterable[Any]) -> dict[str, Any]:
    """CRDs of a release folder by name: those *found* in its YAML, and those of its charts."""
    named: dict[str, Any] = {}
    for document in found:
        named.setdefault(str((document.get("metadata") or {}).get("name") or ""), document)
    for path in sorted(files):
        if path.endswith(".tgz"):
            for document in _in_chart(files[path]):
                name = str((document.get("metadata") or {}).get("name") or "")
                named.setdefault(name, document)
    return named


def compare(release: str, before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """The changes of a release's CRDs."""
    changes = []
    for name in sorted({*before, *after}):
        left, right = before.get(name), after.get(name)
        if left is None or right is None:
            one = ABSENT if left is None else _versions(left)
            other = ABSENT if right is None else _versions(right)
            change = of_sides(one, other)
            changes.append(
                Change("crds", component=release, path=name, change=change, before=one, after=other)
            )
        elif not trees.equal(left.get("spec"), right.get("spec")):
            one, other = _versions(left), _versions(right)
            if one == other:
                one, other = f"{one}, schema before", f"{other}, schema after"
            changes.append(
                Change(
                    "crds", component=release, path=name, change=CHANGED, before=one, after=other
                )
            )
    return changes


def _versions(definition: Any) -> str:
    said = []
    for version in (definition.get("spec") or {}).get("versions") or ():
        marks = [] if version.get("served") else ["not served"]
        marks += ["stored"] if version.get("storage") else []
        said.append(f"{version.get('name')}{' (' + ', '.join(marks) + ')' if marks else ''}")
    return ", ".join(said) or "no versions"


def _in_chart(data: bytes) -> Iterator[Any]:
    try:
        with archives.opened(data, most=_MOST) as archive:
            for member in archive:
                inside = member.name.split("/")
                wanted = "crds" in inside[1:-1] and member.name.endswith((".yaml", ".yml"))
                if not (wanted and member.isreg() and member.size <= _LARGEST):
                    continue
                text = archives.content(archive, member).decode("utf-8", "replace")
                try:
                    documents = read_fast_all(text, source=member.name)
                except AicrError:
                    continue
                yield from (d for d in documents if isinstance(d, dict) and d.get("kind") == _KIND)
    except (*archives.BROKEN, AicrError):
        # A chart that is no archive, or one without measure, is the verifier's finding; its bytes are
        # compared as a file.
        return
