"""The fast reader: block-style YAML as our writer and most manifests have it, nothing imported.

Design: one loop over the lines with an explicit stack of open containers; a line costs a handful of
string operations and words are classified once. It accepts maps, lists (indented below their key or
not), plain and one-line quoted scalars, literal blocks, one-line flow collections, comments and
``---``. Everything else (anchors, tags, folded blocks, scalars over several lines, words and
numbers on which readers disagree, duplicate keys, tabs) raises :class:`Fallback`, and the full
reader decides.

The law that makes it safe: whenever it returns, :func:`aicr.yamlio.read.load` returns the same in
both modes (``tests/laws``). So it must never guess, and it must never report an error of its own.
Sources: decision 35, stack-study 2.4 and 3.3.
"""

from __future__ import annotations

from aicr.yamlio.oneline import (
    CONSTANTS,
    LONGEST_KEY,
    Fallback,
    closing_quote,
    flow_value,
    plain_value,
    unquoted,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

__all__ = ["Fallback", "parse", "parse_all"]

#: Deeper documents are left to the full reader, which has the limit that counts.
_MAX_DEPTH: Final = 100


def parse(text: str) -> Any:
    """The one document in *text*; None when it is empty.

    Raises:
        Fallback: for everything that is not surely read the same by the full reader, several
            documents and malformed text included.
    """
    documents = _Parser(text).documents()
    if len(documents) > 1:
        raise Fallback
    return documents[0] if documents else None


def parse_all(text: str) -> list[Any]:
    """The documents in *text*, without empty ones.

    Raises:
        Fallback: as :func:`parse`, but several documents are fine.
    """
    return [document for document in _Parser(text).documents() if document is not None]


class _Parser:
    """One reading of one text."""

    __slots__ = ("at", "lines", "memo", "whole")

    def __init__(self, text: str) -> None:
        # What libyaml refuses or treats as a line break must not get past this line.
        if not text.replace("\n", "").isprintable():
            raise Fallback
        self.lines = text.split("\n")
        self.whole = not self.lines[-1]
        if self.whole:
            self.lines.pop()
        self.memo: dict[str, Any] = dict(CONSTANTS)
        self.at = 0

    def documents(self) -> list[Any]:
        """Every document, also explicit nulls, but not those without any content."""
        found: list[Any] = []
        end = len(self.lines)
        while self.at < end:
            root = self.document()
            if root is not _NOTHING:
                found.append(root)
        return found

    def document(self) -> Any:
        """The document from the current line up to the next ``---`` line or the end of the text."""
        lines = self.lines
        memo = self.memo
        end = len(lines)
        at = self.at
        root: Any = _NOTHING
        current: Any = None  # the innermost open container
        column = -1  # and where its entries start
        stack: list[tuple[Any, int]] = []  # the containers around it
        pending: Any = _NOTHING  # the key or position whose value may follow on deeper lines
        while at < end:
            line = lines[at]
            at += 1
            body = line.lstrip(" ")
            if not body or body[0] == "#":
                continue
            indent = len(line) - len(body)
            if indent == 0 and body[:3] in ("---", "...", "%YA"):
                if body.rstrip(" ") != "---":
                    raise Fallback
                if root is _NOTHING and not stack:
                    continue
                break
            item = body[:2] == "- " or body == "-"

            if pending is not _NOTHING:
                if indent > column or (indent == column and item and type(current) is dict):
                    child: Any = [] if item else {}
                    current[pending] = child
                    stack.append((current, column))
                    if len(stack) > _MAX_DEPTH:
                        raise Fallback
                    current, column = child, indent
                pending = _NOTHING
            elif current is None:
                if root is not _NOTHING:
                    raise Fallback  # A second root, after a flow collection.
                if body[0] in "[{":
                    root = self.flow(body)
                    continue
                root = current = [] if item else {}
                column = indent
            while indent < column:
                if not stack:
                    raise Fallback
                current, column = stack.pop()
            if indent != column:
                raise Fallback
            if not item and type(current) is list:
                # A list that is not indented below its key ends where the next key begins.
                if not stack or stack[-1][1] != column:
                    raise Fallback
                current, column = stack.pop()

            while item:
                if type(current) is not list:
                    raise Fallback
                body = body[1:].lstrip(" ")
                if not body:
                    current.append(None)
                    pending = len(current) - 1
                    break
                indent = len(line) - len(body)
                item = body[:2] == "- " or body == "-"
                if item:
                    child = []
                elif body[0] in "\"'":
                    if self.closed(body):
                        current.append(self.quoted(body))
                        break
                    child = {}
                elif ": " in body or body[-1] == ":":
                    if body[0] in "{[":
                        current.append(self.flow(body))
                        break
                    child = {}
                elif body[0] == "|":
                    current.append(self.literal(body, column, at))
                    at = self.at
                    break
                else:
                    value = memo.get(body, _NOTHING)
                    current.append(self.value(body) if value is _NOTHING else value)
                    break
                current.append(child)
                stack.append((current, column))
                if len(stack) > _MAX_DEPTH:
                    raise Fallback
                current, column = child, indent
            if type(current) is list:
                continue

            key, colon, rest = body.partition(": ")
            if body[0] in "\"'":
                key, rest = self.quoted_key(body)
            else:
                if not colon:
                    if key[-1] != ":":
                        raise Fallback
                    key = key[:-1]
                if type(memo.get(key)) is not str:
                    self.check_key(key)
            if key in current:
                raise Fallback
            if not rest:
                current[key] = None
                pending = key
                continue
            value = memo.get(rest, _NOTHING)
            if value is not _NOTHING:
                current[key] = value
                continue
            rest = rest.strip(" ")
            if not rest or rest[0] == "#":
                current[key] = None
                pending = key
            elif rest[0] == "|":
                current[key] = self.literal(rest, column, at)
                at = self.at
            else:
                current[key] = self.value(rest)
        self.at = at
        return root

    def value(self, text: str) -> Any:
        """A scalar or one-line flow collection that stands on its own; remembered when plain."""
        first = text[0]
        if first in "\"'":
            return self.quoted(text)
        if first in "[{":
            return self.flow(text)
        if " #" in text:
            text = text.partition(" #")[0]
        text = text.rstrip(" ")
        if ": " in text or text[-1] == ":":
            raise Fallback
        if text in self.memo:
            return self.memo[text]
        value = plain_value(text)
        if len(text) <= LONGEST_KEY:  # Keys are looked up here, and longer ones are refused.
            self.memo[text] = value
        return value

    def check_key(self, key: str) -> None:
        """Lets a plain key pass that is surely a string."""
        if not key or key[-1] == " " or " #" in key or len(key) > LONGEST_KEY:
            raise Fallback
        if type(self.value(key)) is not str:
            raise Fallback

    def closed(self, body: str) -> bool:
        """Whether the quoted scalar that starts *body* is all there is (and not a key)."""
        end = closing_quote(body)
        rest = body[end + 1 :]
        return not rest.strip(" ") or rest.lstrip(" ")[0] == "#"

    def quoted(self, text: str) -> str:
        """A quoted scalar, with at most a comment behind it."""
        end = closing_quote(text)
        rest = text[end + 1 :]
        if rest and (rest[0] != " " or rest.lstrip(" ")[:1] not in ("", "#")):
            raise Fallback
        return unquoted(text[: end + 1])

    def quoted_key(self, body: str) -> tuple[str, str]:
        """A quoted key and the text behind its colon."""
        end = closing_quote(body)
        rest = body[end + 1 :]
        if rest[:1] != ":" or rest[1:2] not in ("", " ") or end > LONGEST_KEY:
            raise Fallback
        return unquoted(body[: end + 1]), rest[2:]

    def flow(self, text: str) -> Any:
        """A flow collection on one line, with at most a comment behind it."""
        text = text.rstrip(" ")
        if text == "[]":
            return []
        if text == "{}":
            return {}
        if len(text) > LONGEST_KEY:
            raise Fallback
        value, end = flow_value(text, 0, 0)
        rest = text[end:]
        if rest and (rest[0] != " " or rest.lstrip(" ")[0] != "#"):
            raise Fallback
        return value

    def literal(self, header: str, column: int, at: int) -> str:
        """The literal block whose header was read and whose first line is at *at*.

        *column* is where the entries of the container around it start. Leaves ``self.at`` behind
        the block.
        """
        chomp = header.lstrip("|123456789")
        digits = header[1 : len(header) - len(chomp)]
        if chomp not in ("", "-", "+") or len(digits) > 1 or header[1:2] == "|":
            raise Fallback
        lines = self.lines
        end = len(lines)
        start = at
        margin = column + int(digits) if digits else -1
        taken: list[str] = []
        while at < end:
            line = lines[at]
            body = line.lstrip(" ")
            if not body:
                if margin < 0 and line:
                    raise Fallback  # Blanks before the margin is known may be content.
                taken.append(line[margin:] if margin >= 0 else "")
                at += 1
                continue
            indent = len(line) - len(body)
            if margin < 0:
                if indent <= column:
                    break
                margin = indent
            if indent < margin:
                break
            taken.append(line[margin:])
            at += 1
        self.at = at
        if margin < 0 or at == start or (at == end and not self.whole):
            raise Fallback
        text = "\n".join(taken)
        if not text.strip("\n"):
            raise Fallback
        if chomp == "+":
            return text + "\n"
        stripped = text.rstrip("\n")
        return stripped if chomp else stripped + "\n"


class _Nothing:
    """Type of the mark for "no value read", because None is a value."""


_NOTHING: Final = _Nothing()
