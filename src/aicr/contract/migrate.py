"""Bring the headers that v0.11.1 wrote up to date, and leave every other character as it is.

The text is not printed anew: the places of ``kind`` and ``apiVersion`` come from the reader, and only the
characters there are replaced, so comments, order, quoting and line ends survive. The result is read
again and must say the same as before but for the header; else nothing is offered. What today's readers
refuse (a retired or unknown apiVersion) is reported with what to write, because its content may need more
than a new header; components that have another name today are notes (recipe spec 10.2).

Pure: text in, text and findings out. It must not know files or terminals.
Sources: decisions 1 and 48; recipe spec 0.3, 0.4, 5.4.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final

from aicr.contract.documents import ACCEPTED, RETIRED, V1BETA2, is_legacy
from aicr.errors import AicrError, invalid, nearest
from aicr.yamlio import jsontext, read

Positions = read.Positions

#: Components of v0.11.1 by the name that they have today.
RENAMED: Final[dict[str, str]] = {
    "kgateway": "agentgateway",
    "kgateway-crds": "agentgateway-crds",
    "skyhook-customizations": "nodewright-customizations",
    "skyhook-operator": "nodewright-operator",
}
#: Components of v0.11.1 that have no successor.
REMOVED: Final = ("dynamo-crds",)

_GROUPS: Final = ("aicr.run/", "aicr.nvidia.com/", "validator.nvidia.com/")
#: A document starts at such a line, whatever stands around it.
_MARKER: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'')
#: A document in braces, behind comments and the marker of a document.
_BRACES: Final = re.compile(r"(?:\ufeff|\s|---|#[^\n]*\n|%[^\n]*\n)*\{")
#: An apiVersion that says nothing, with the blanks that end its line.
_EMPTY: Final = re.compile(
    r"""(["']?apiVersion["']?[ \t]*:)
        (?:[ \t]*(?:~|null|""|''))?
        (?:[ \t]+(?=\r?\n|\Z)|(?=[ \t\r\n,}\#]|\Z))""",
    re.VERBOSE,
)
_LOOKS_LIKE_OURS: Final = re.compile(
    rf"""^["' \t]*apiVersion["']?:\s*["']?(?:{"|".join(map(re.escape, _GROUPS))})""", re.MULTILINE
)


class Migration:
    """What became of one text.

    Attributes:
        text: the text with today's headers; the same object when there is nothing to do.
        changes: a line for each header rewritten, with its place.
        problems: AicrErrors about headers that need a person.
        old_names: components that today's catalogue does not have under their name, with their place.
        documents: how many documents of ours the text holds.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.changes: list[str] = []
        self.problems: list[AicrError] = []
        self.old_names: list[tuple[str, str]] = []
        self.documents = 0


def migrate(text: str, source: str) -> Migration:
    """Rewrite the headers in *text*, YAML (of one or several documents) or JSON.

    Raises:
        AicrError: INVALID_REQUEST with file, line and column for text that does not parse.
    """
    found = Migration(text)
    pieces = _pieces(text)
    line = 0
    for index, piece in enumerate(pieces):
        pieces[index] = _document(piece, source, line, found)
        line += piece.count("\n")
    if found.changes:
        found.text = "".join(pieces)
    return found


def _pieces(text: str) -> list[str]:
    """The text cut before each document marker; joined they are the text again."""
    if jsontext.is_json(text):
        return [text]
    cuts = [0, *(match.start() for match in _MARKER.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts) if end > start]


def _document(text: str, source: str, line: int, found: Migration) -> str:
    """One document with today's header; findings go to *found*, with lines counted from *line*."""
    # Blank lines in front keep the places right without arithmetic on every message.
    shifted = "\n" * line + text
    value, positions = _parse(shifted, source)
    kind = _kind(value)
    version = value.get("apiVersion") if isinstance(value, dict) else None
    if not kind:
        if isinstance(version, str) and version.startswith(_GROUPS):
            found.documents += 1
            found.problems.append(_unknown_kind(value, positions))
        return text
    found.documents += 1
    found.old_names += [
        (name, positions.where(path))
        for name, path in _components(value, kind)
        if name in RENAMED or name in REMOVED
    ]
    target = _target(value, kind)
    if kind == value["kind"] and version in ACCEPTED[kind]:
        if kind == "RecipeMetadata" and version != target:
            found.problems.append(_mistaken(kind, version, target, positions))
        return text
    if not is_legacy(version) and version not in ACCEPTED[kind]:
        found.problems.append(_refused(kind, version, target, positions))
        return text
    said = f'apiVersion "{version}"' if version else "no apiVersion"
    try:
        changed = _rewritten(shifted, value, kind, target, positions)
        _check_same(value, changed, kind, target, source)
    except AicrError as error:
        found.problems.append(error)
        return text
    old = f"kind {value['kind']} and {said}" if kind != value["kind"] else said
    place = (
        positions.where(("apiVersion",)) if "apiVersion" in value else positions.where(("kind",))
    )
    found.changes.append(f"{place}: {kind}: {old} -> {target}")
    return changed[line:]


def _parse(text: str, source: str) -> tuple[Any, Positions]:
    if jsontext.is_json(text):
        return jsontext.load_json(text, source=source), jsontext.positions(text, source=source)
    return read.load_with_positions(text, source=source)


def _kind(value: Any) -> str:
    """The kind of a document of ours by today's name, or "" for any other document.

    ``Recipe`` is an old name of RecipeResult; other products have a kind of that name too, so the group
    or the content must speak for ours.
    """
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return ""
    kind, version = value["kind"], value.get("apiVersion")
    ours = isinstance(version, str) and version.startswith(_GROUPS)
    if kind == "Recipe":
        ours = ours or (is_legacy(version) and isinstance(value.get("componentRefs"), list))
        return "RecipeResult" if ours else ""
    if kind not in ACCEPTED:
        return ""
    foreign = isinstance(version, str) and version and not ours and version not in ACCEPTED[kind]
    return "" if foreign else kind


def _target(value: dict[str, Any], kind: str) -> str:
    """The apiVersion that a document with this content belongs to."""
    if kind == "RecipeMetadata":
        spec = value.get("spec")
        if isinstance(spec, dict) and spec.get("profile") is not None:
            return V1BETA2
    if kind == "RecipeResult":
        metadata = value.get("metadata")
        profiled = isinstance(metadata, dict) and metadata.get("selectedProfile")
        if profiled or value.get("configuration"):
            return V1BETA2
    return ACCEPTED[kind][0]


def _refused(kind: str, version: Any, target: str, positions: Positions) -> AicrError:
    if version in RETIRED:
        return invalid(
            f'{kind} has apiVersion "{version}", which was retired in v1.0.0 and is not rewritten '
            f"here: its fields may have changed as well",
            where=positions.where(("apiVersion",)),
            hint=f"write apiVersion: {target}, then let the command that reads the file check it",
        )
    return invalid(
        f'{kind} has apiVersion "{version}", which this version does not know',
        where=positions.where(("apiVersion",)),
        hint=f"write apiVersion: {target} if the file is meant for this version",
    )


def _unknown_kind(value: dict[str, Any], positions: Positions) -> AicrError:
    kind = value.get("kind")
    near = nearest(str(kind), list(ACCEPTED))
    return invalid(
        f'kind "{kind or ""}" is no document of aicr, although its apiVersion '
        f'"{value["apiVersion"]}" says so',
        where=positions.where(("kind",) if "kind" in value else ("apiVersion",)),
        hint=f'did you mean "{near}"?' if near else f"kinds: {', '.join(ACCEPTED)}",
    )


def _mistaken(kind: str, version: Any, target: str, positions: Positions) -> AicrError:
    why = "declares no profile" if version == V1BETA2 else "declares a profile"
    return invalid(
        f'{kind} has apiVersion "{version}" and {why}',
        where=positions.where(("apiVersion",)),
        hint=f"write apiVersion: {target}",
    )


def _rewritten(
    text: str, value: dict[str, Any], kind: str, target: str, positions: Positions
) -> str:
    """The text with kind and apiVersion in place.

    Raises:
        AicrError: INVALID_REQUEST when a header is written in a way that is not edited here.
    """
    edits: list[tuple[int, int, str]] = []
    if kind != value["kind"]:
        edits.append(_scalar_edit(text, ("kind",), kind, positions))
    if value.get("apiVersion"):
        edits.append(_scalar_edit(text, ("apiVersion",), target, positions))
    elif "apiVersion" in value:
        edits.append(_filled(text, target, positions))
    else:
        edits.append(_inserted(text, target, positions))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _scalar_edit(
    text: str, path: tuple[str, ...], new: str, positions: Positions
) -> tuple[int, int, str]:
    """Replace the scalar at *path*, keeping its quotes."""
    start = _offset(text, positions.where(path))
    quoted = _QUOTED.match(text, start)
    if quoted:
        return start, quoted.end(), f"{text[start]}{new}{text[start]}"
    plain = positions.plain(path)
    if plain and text.startswith(plain, start):
        return start, start + len(plain), new
    raise _by_hand(path[0], new, positions)


def _filled(text: str, target: str, positions: Positions) -> tuple[int, int, str]:
    """Write behind an ``apiVersion:`` that says nothing."""
    start = _offset(text, positions.key(("apiVersion",)))
    empty = _EMPTY.match(text, start)
    if not empty:
        raise _by_hand("apiVersion", target, positions)
    quote = empty[1][0] if empty[1][0] in "\"'" else ""
    return start, empty.end(), f"{empty[1]} {quote}{target}{quote}"


def _inserted(text: str, target: str, positions: Positions) -> tuple[int, int, str]:
    """A new apiVersion right behind the kind, written as the kind is."""
    key = _offset(text, positions.key(("kind",)))
    _, end, _ = _scalar_edit(text, ("kind",), "", positions)
    before = text[text.rfind("\n", 0, key) + 1 : key]
    quote = text[key] if text[key] in "\"'" else ""
    entry = f"{quote}apiVersion{quote}: {quote}{target}{quote}"
    newline = "\r\n" if "\r\n" in text else "\n"
    if _BRACES.match(text):
        apart = f",{newline}{before}" if not before.strip() else ", "
        return end, end, apart + entry
    stop = text.find("\n", end)
    if stop < 0:
        return len(text), len(text), newline + before + entry
    return stop + 1, stop + 1, before + entry + newline


def _by_hand(key: str, new: str, positions: Positions) -> AicrError:
    return invalid(
        f"{key} is written in a way that is not edited here",
        where=positions.where((key,)),
        hint=f"write {key}: {new} by hand",
    )


def _offset(text: str, where: str) -> int:
    """The index of a place ``source:line:column``."""
    _, line, column = where.rsplit(":", 2)
    start = 0
    for _ in range(int(line) - 1):
        start = text.index("\n", start) + 1
    return start + int(column) - 1


def _check_same(value: dict[str, Any], changed: str, kind: str, target: str, source: str) -> None:
    """The new text must say what the old one did, under the new header."""
    expected = {**value, "kind": kind, "apiVersion": target}
    try:
        found = _parse(changed, source)[0]
    except AicrError:
        found = None
    if found != expected:
        raise invalid(
            "the header is written in a way that is not edited here",
            where=source,
            hint=f"write kind: {kind} and apiVersion: {target} by hand",
        )


def _components(value: dict[str, Any], kind: str) -> list[tuple[str, tuple[str | int, ...]]]:
    """Every place where a document names a component."""
    found: list[tuple[str, tuple[str | int, ...]]] = []
    if kind == "AICRConfig":
        place: tuple[str, ...] = ("spec", "bundle", "deployment")
        for key in ("set", "dynamic"):
            for index, text in enumerate(_list(value, (*place, key))):
                found.append((str(text).partition(":")[0], (*place, key, index)))
        return found
    for place in (("componentRefs",), ("spec", "componentRefs"), ("components",)):
        for index, entry in enumerate(_list(value, place)):
            if isinstance(entry, dict):
                found.append((str(entry.get("name")), (*place, index, "name")))
                for at, name in enumerate(_list(entry, ("dependencyRefs",))):
                    found.append((str(name), (*place, index, "dependencyRefs", at)))
    return found


def _list(value: Any, path: tuple[str, ...]) -> list[Any]:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []


def about(name: str) -> str:
    """What became of a component of ``old_names``, in words."""
    if name in RENAMED:
        return (
            f'component "{name}" is called "{RENAMED[name]}" today; it is not rewritten, because it is '
            f"another chart, whose values may differ"
        )
    return f'component "{name}" has no successor in today\'s catalogue'


def looks_like_ours(text: str) -> bool:
    """Whether a text that cannot be parsed seems to hold a document of ours."""
    return _LOOKS_LIKE_OURS.search(text) is not None
