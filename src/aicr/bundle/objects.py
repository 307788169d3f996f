"""What Kubernetes objects a text holds, without reading all of its YAML.

Rendered manifests are large and written in plain block style, where the head of an object can be
read from a few lines; reading YAML costs more than writing a whole bundle. Where the lines are not
what is expected, the document is read properly. The text is trusted to be YAML.

It must not know where a text comes from.
"""

from __future__ import annotations

from aicr import yamlio
from aicr.errors import AicrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

_CRD: Final = "CustomResourceDefinition"

#: API groups that every cluster serves.
BUILT_IN: Final = frozenset(
    (
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "extensions",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    )
)


class Head:
    """One object: ``group`` ("" for core), ``kind``, ``name``, and its ``text``."""

    __slots__ = ("group", "kind", "name", "text")

    def __init__(self, group: str, kind: str, name: str, text: str) -> None:
        self.group = group
        self.kind = kind
        self.name = name
        self.text = text

    @property
    def type(self) -> str:
        """``group/Kind``, whatever the version."""
        return f"{self.group}/{self.kind}"


def heads(text: str) -> Iterator[Head]:
    """The objects of a text of one or more documents, lists taken apart."""
    for document in documents(text):
        yield from _heads(document)


def documents(text: str) -> list[str]:
    """The documents of a text that hold more than blanks and comments."""
    found: list[str] = []
    lines: list[str] = []
    filled = False
    for line in [*text.split("\n"), "---"]:
        # A marker is three dashes at the very left, alone or before a blank.
        if line.startswith("---") and (len(line) == 3 or line[3] in " \t\r"):
            if filled:
                found.append("\n".join(lines) + "\n")
            lines, filled = [], False
            continue
        lines.append(line)
        bare = line.lstrip()
        filled = filled or bool(bare and not bare.startswith("#"))
    return found


def custom_types(text: str) -> set[str]:
    """``group/Kind`` of the objects whose group is not built in."""
    return {head.type for head in heads(text) if head.group not in BUILT_IN}


def defined_types(text: str) -> set[str]:
    """``group/Kind`` of what the CustomResourceDefinitions of a text define."""
    if _CRD not in text:
        return set()
    found = set()
    for head in heads(text):
        if head.kind == _CRD:
            quick = _quick_definition(head.text)
            if quick:
                found.add(quick)
                continue
            spec = _read(head.text).get("spec") or {}
            group, kind = spec.get("group"), (spec.get("names") or {}).get("kind")
            if isinstance(group, str) and isinstance(kind, str):
                found.add(f"{group}/{kind}")
    return found


def _quick_definition(text: str) -> str:
    """``group/Kind`` of a CRD in block style, or "": schemas are long, and these two lines are not."""
    group = kind = ""
    block, names = "", False
    for line in text.split("\n"):
        if line[:1] not in ("", " ", "#"):
            block, names = line.partition(":")[0], False
        elif block == "spec" and line.startswith("  ") and line[2:3] not in ("", " ", "#", "-"):
            key, _, rest = line[2:].partition(":")
            names = key == "names"
            group = _plain(rest) if key == "group" else group
        elif names and line.startswith("    kind:"):
            kind = _plain(line.partition(":")[2])
    return f"{group}/{kind}" if group and kind else ""


def _heads(document: str) -> Iterator[Head]:
    top: dict[str, str] = {}
    name, below = "", False
    for line in document.split("\n"):
        if line[:1] in ("", "#"):
            continue
        if line[0] != " ":
            key, colon, rest = line.partition(":")
            below = key == "metadata"
            if colon and key in ("apiVersion", "kind"):
                top[key] = _plain(rest)
        elif below and not name and line.startswith("  name:"):
            name = _plain(line.partition(":")[2])
    version, kind = top.get("apiVersion"), top.get("kind")
    single = bool(version and kind and not kind.endswith("List"))
    if single and name:
        yield _head(version or "", kind or "", name, document)
        return
    # A name may stand where these lines do not look, as in `metadata: {name: x}`.
    found = list(_objects(_read(document), document))
    if found or not single:
        yield from found
    else:
        yield _head(version or "", kind or "", "", document)


def _plain(text: str) -> str:
    """A plain or quoted scalar without its comment; "" for anything that is not that plain."""
    value = text.partition(" #")[0].strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return "" if any(char in "\"'{}[],&*!|>%@`#\\ :" for char in value) else value


def _objects(found: dict[str, Any], document: str) -> Iterator[Head]:
    kind, version = found.get("kind"), found.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):
        return
    items = found.get("items")
    if kind.endswith("List") and isinstance(items, list):
        from aicr.yamlio import write

        for item in items:
            if isinstance(item, dict):
                yield from _objects(item, write.dump(item))
        return
    metadata = found.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    yield _head(version, kind, name if isinstance(name, str) else "", document)


def _head(version: str, kind: str, name: str, text: str) -> Head:
    group, slash, _ = version.partition("/")
    return Head(group if slash else "", kind, name, text)


def _read(document: str) -> dict[str, Any]:
    try:
        found = yamlio.read_fast(document, source="manifest")
    except AicrError:
        # Whoever writes or installs the manifest says what is wrong with it.
        return {}
    return found if isinstance(found, dict) else {}
