"""The YAML reader: text in, plain documents out, every refusal with file, line and column.

Design: libyaml splits the text into events (PyYAML's CParser); the values are built here, because
PyYAML's own construction disagrees with what Helm and Kubernetes read (dates become objects,
``1e3`` stays text, duplicate keys vanish). Scalars mean what :mod:`aicr.yamlio.scalars` says, in
one of two modes:

- ``helm``: as sigs.k8s.io/yaml, with the YAML 1.1 booleans (``yes``, ``n``, ``on``);
- ``v3``: as yaml.v3, where those words are text.

What two readers could understand differently, or what hides a mistake, is refused: duplicate keys,
tabs as indentation, tags, keys that are not strings, several documents where one is expected, and
aliases that expand without bound. Aliases are copied, so no two places of a document share a
container.

It must not know document kinds. It is off the fast path: importing it costs PyYAML.
Sources: decisions 4 and 43, stack-study 3.2, field cases A8 and C3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

import yaml
from yaml._yaml import CParser

from aicr.errors import INTERNAL, AicrError, invalid
from aicr.values.merge import copy_tree
from aicr.yamlio.positions import Positions, require_string
from aicr.yamlio.problems import TEMPLATE_HINT, check_characters, excerpt, translate
from aicr.yamlio.scalars import HELM_WORDS, WORDS, resolve
from aicr.yamlio.write import MAX_DEPTH, quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from aicr.yamlio.problems import Place
    from aicr.yamlio.scalars import Scalar

    Path = tuple[str | int, ...]

__all__ = ["Positions", "load", "load_all", "load_with_positions", "require_string"]

#: Nodes that all aliases of one document may expand to, merge keys included.
MAX_ALIASED_NODES: Final = 50_000

_MODES: Final[dict[str, dict[str, Scalar]]] = {"helm": HELM_WORDS, "v3": WORDS}


def load(text: str, *, source: str, mode: str = "helm") -> Any:
    """The one document in *text*; None when it is empty.

    Args:
        text: YAML (or JSON, which is a part of it).
        source: what errors call the text, usually the file name.
        mode: ``helm`` or ``v3``.

    Raises:
        AicrError: INVALID_REQUEST with ``where`` as ``source:line:column`` for everything this
            module refuses (see the module's description); INTERNAL for an unknown mode.
    """
    return _one(_Builder(text, source, mode, record=False).documents(), source)[0]


def load_all(text: str, *, source: str, mode: str = "helm") -> list[Any]:
    """The documents in *text* in order, without those that are empty or null.

    Raises:
        AicrError: as :func:`load`, except that several documents are welcome.
    """
    found = _Builder(text, source, mode, record=False).documents()
    return [value for value, _, _ in found if value is not None]


def load_with_positions(text: str, *, source: str, mode: str = "helm") -> tuple[Any, Positions]:
    """As :func:`load`, and where each value stands.

    Raises:
        AicrError: as :func:`load`.
    """
    value, positions, _ = _one(_Builder(text, source, mode, record=True).documents(), source)
    return value, positions


def _one(found: list[tuple[Any, Positions, Place]], source: str) -> tuple[Any, Positions, Place]:
    if not found:
        return None, Positions(source), (1, 1)
    if len(found) > 1:
        line, column = found[1][2]
        raise invalid(
            f"expected one YAML document, found {len(found)}",
            where=f"{source}:{line}:{column}",
            hint='remove the "---" line, or split the file',
        )
    return found[0]


class _Builder:
    """Builds the values of one text from libyaml's events."""

    __slots__ = (
        "aliased",
        "anchors",
        "helm",
        "memo",
        "next",
        "nodes",
        "positions",
        "record",
        "source",
        "tabs",
        "text",
        "words",
    )

    def __init__(self, text: str, source: str, mode: str, *, record: bool) -> None:
        words = _MODES.get(mode)
        if words is None:
            raise AicrError(INTERNAL, f'unknown YAML mode "{mode}"')
        self.text = text[1:] if text[:1] == "\ufeff" else text
        self.source = source
        self.helm = mode == "helm"
        self.words = words
        self.memo: dict[str, Scalar] = {}
        self.record = record
        self.positions = Positions(source)
        self.anchors: dict[str, tuple[Any, int] | None] = {}
        self.next: Callable[[], Any]
        self.nodes = 0
        self.aliased = 0
        self.tabs = "\t" in text
        check_characters(self.text, source)

    def documents(self) -> list[tuple[Any, Positions, Place]]:
        """Each document with content: its value, its positions and where it starts."""
        found: list[tuple[Any, Positions, Place]] = []
        try:
            self.next = CParser(self.text).get_event
            event: Any = self.next()
            while type(event) is not yaml.StreamEndEvent:
                if type(event) is yaml.DocumentStartEvent:
                    self.anchors.clear()
                    self.nodes = self.aliased = 0
                    self.positions = Positions(self.source)
                    start = _place(event)
                    root = self.next()
                    value = self.node(root, (), 1)
                    if value is not None or not _empty(root):
                        found.append((value, self.positions, start))
                event = self.next()
        except yaml.YAMLError as error:
            raise translate(error, self.text, self.source) from None
        return found

    def node(self, event: Any, path: Path, depth: int) -> Any:
        """The value that starts with *event*."""
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self.alias(event, path)
        if event.tag is not None:
            self.refuse_tag(event)
        self.nodes += 1
        anchor = event.anchor
        before = self.nodes
        if anchor is not None:
            self.anchors[anchor] = None
        if kind is yaml.ScalarEvent:
            value: Any = event.value
            if event.implicit[0]:
                value = self.plain(event)
                if self.record:
                    self.positions.note_plain(path, event.value)
            if self.record:
                self.positions.note(path, _place(event))
        else:
            if depth > MAX_DEPTH:
                self.fail(event, f"nested more than {MAX_DEPTH} deep", "flatten the document")
            if self.tabs:
                self.refuse_tab(event)
            if self.record:
                self.positions.note(path, _place(event))
            if kind is yaml.MappingStartEvent:
                value = self.mapping(path, depth)
            else:
                value = self.sequence(path, depth)
        if anchor is not None:
            self.anchors[anchor] = (value, self.nodes - before + 1)
        return value

    def plain(self, event: Any) -> Scalar:
        """The value of an unquoted scalar."""
        text = event.value
        memo = self.memo
        if text in memo:
            return memo[text]
        value = memo[text] = resolve(text, self.words)
        if type(value) is float and value - value != 0:
            del memo[text]
            self.fail(
                event, f"{text} is not a number that JSON or Kubernetes has", f'quote it: "{text}"'
            )
        return value

    def sequence(self, path: Path, depth: int) -> list[Any]:
        """The items up to the end of the list."""
        items: list[Any] = []
        while True:
            event = self.next()
            if type(event) is yaml.SequenceEndEvent:
                return items
            place = (*path, len(items)) if self.record else path
            items.append(self.node(event, place, depth + 1))

    def mapping(self, path: Path, depth: int) -> dict[str, Any]:
        """The entries up to the end of the map, merge keys applied."""
        entries: dict[str, Any] = {}
        seen: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        record = self.record
        while True:
            event = self.next()
            if type(event) is yaml.MappingEndEvent:
                break
            key = self.key(event)
            merge = key == "<<" and event.implicit[0]
            if key in seen:
                first = seen[key].start_mark.line + 1
                self.fail(
                    event,
                    f'duplicate key "{excerpt(key)}": already set on line {first},'
                    f" again on line {event.start_mark.line + 1}",
                    "keep one of the two",
                )
            seen[key] = event
            place = path
            value_event = self.next()
            if record and not merge:
                place = (*path, key)
                self.positions.note_key(place, _place(event))
                if type(value_event) is not yaml.ScalarEvent:
                    self.positions.note(place, _place(event))
            if merge:
                layer = self.merge_layer(value_event, depth)
                if self.helm:
                    # Helm's reader applies the merge where it stands: it beats what is above it.
                    entries.update(layer)
                else:
                    merged = layer
            else:
                entries[key] = self.node(value_event, place, depth + 1)
        for key, value in merged.items():
            entries.setdefault(key, value)
        return entries

    def key(self, event: Any) -> str:
        """The text of a key, which must be a string to every reader of this mode."""
        if type(event) is not yaml.ScalarEvent:
            what = "an alias" if type(event) is yaml.AliasEvent else "a map or a list"
            templated = "{{" in self.text.split("\n")[event.start_mark.line]
            self.fail(
                event,
                f"{what} cannot be a mapping key here",
                TEMPLATE_HINT if templated else "write the key as a string",
            )
        if event.tag is not None:
            self.refuse_tag(event)
        self.nodes += 1
        key: str = event.value
        if event.implicit[0] and type(self.plain(event)) is not str:
            self.fail(
                event,
                f"mapping key {key or 'null'} is not a string",
                f'quote it: "{key}"' if key else "write the key in quotes",
            )
        if event.anchor is not None:
            self.anchors[event.anchor] = (key, 1)
        return key

    def merge_layer(self, event: Any, depth: int) -> dict[str, Any]:
        """The map that a merge key brings in; earlier maps of a list win over later ones."""
        recording, self.record = self.record, False
        value = self.node(event, (), depth + 1)
        self.record = recording
        layers = value if type(value) is list else [value]
        merged: dict[str, Any] = {}
        for layer in layers:
            if type(layer) is not dict:
                self.fail(
                    event,
                    'the merge key "<<" needs a map or a list of maps',
                    'quote it if it is an ordinary key: "<<"',
                )
            for key, item in layer.items():
                merged.setdefault(key, item)
        return merged

    def alias(self, event: Any, path: Path) -> Any:
        """A copy of the anchored value."""
        name = event.anchor
        if name not in self.anchors:
            self.fail(
                event,
                f'alias "*{name}" has no anchor',
                f"quote the value if it is text: {quote('*' + name)}",
            )
        anchored = self.anchors[name]
        if anchored is None:
            self.fail(event, f'alias "*{name}" contains itself', "write the value out")
        value, size = anchored
        self.nodes += size
        self.aliased += size
        if self.aliased > MAX_ALIASED_NODES:
            self.fail(
                event,
                f"aliases expand to more than {MAX_ALIASED_NODES} nodes",
                "write the values out",
            )
        if self.record:
            self.positions.note(path, _place(event))
        return copy_tree(value)

    def refuse_tag(self, event: Any) -> NoReturn:
        """A tag changes or hides the value it stands before, so there are none."""
        line = self.text.split("\n")[event.start_mark.line]
        written = line[event.start_mark.column :].partition(" #")[0].strip()
        self.fail(
            event,
            f'a leading "!" is a YAML tag ({excerpt(event.tag)}), and tags are not accepted',
            f"quote the value if it is text: {quote(written)}" if written else "remove the tag",
        )

    def refuse_tab(self, event: Any) -> None:
        """A block that starts behind a tab has no column that readers agree on."""
        if event.flow_style:
            return
        mark = event.start_mark
        if "\t" in self.text.split("\n")[mark.line][: mark.column]:
            self.fail(event, "a tab cannot be used as indentation", "indent with spaces")

    def fail(self, event: Any, message: str, hint: str) -> NoReturn:
        """Refuses the document at *event*."""
        line, column = _place(event)
        raise invalid(message, where=f"{self.source}:{line}:{column}", hint=hint)


def _place(event: Any) -> Place:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1


def _empty(event: Any) -> bool:
    """Whether a document has no content at all (which is not the same as a written null)."""
    return type(event) is yaml.ScalarEvent and event.value == "" and event.implicit[0]
