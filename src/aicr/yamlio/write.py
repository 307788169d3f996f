"""The YAML writer: plain documents in, block-style text out.

Design: one recursive walk that appends lines; strings are classified once per call and remembered,
because documents repeat their words. The look is that of go-yaml v3 (sequences indented below their
key, maps in sequences on the dash line). A string gets quotes when any consumer could misread it:
double quotes when it looks like another type, single quotes when only the syntax is in the way,
escapes when there are characters that must not stand in a file as they are. There are no aliases,
no folding and no time- or hash-dependent order.

It must not know what a document means, and does no I/O. Sources: decisions 3, 5 and 35,
stack-study 3.2.
"""

from __future__ import annotations

from aicr.errors import INTERNAL, AicrError, invalid
from aicr.yamlio.scalars import misread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Containers may nest this deep; deeper input is refused rather than overflowing the stack.
MAX_DEPTH: Final = 200

#: Readers stop looking for the colon of a one-line key after 1024 characters.
_LONGEST_KEY: Final = 1000

_WORD: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/_")
_INDICATORS: Final = frozenset(",[]{}#&*!|>'\"%@`")
_ESCAPES: Final = {
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\u2028": "\\L",
    "\u2029": "\\P",
}


def dump(value: Any, *, sort_keys: bool = False, indent: int = 2) -> str:
    """*value* as YAML text that every reader reads back as the same value.

    Args:
        value: dict (string keys), list, str, int, float, bool or None, nested at most 200 deep.
        sort_keys: order mapping keys by code point instead of keeping their order.
        indent: spaces for each level, 2 to 9 (recipes use 2, Helm values in the original used 4).

    Returns:
        Text that ends with one newline.

    Raises:
        AicrError: INVALID_REQUEST for a number that YAML readers cannot hold (NaN, infinities,
            integers beyond 64 bits) and for text that is not valid Unicode; INTERNAL for any other
            type, for a key that is not a string, and for nesting beyond the limit (decision 5).
    """
    if not 2 <= indent <= 9:
        raise AicrError(INTERNAL, f"cannot write YAML with an indent of {indent} spaces")
    writer = _Writer(sort_keys, indent)
    out = writer.out
    if type(value) is dict and value:
        writer.mapping(value, 0, "", 1)
    elif type(value) is list and value:
        writer.sequence(value, 0, "", 1)
    else:
        out.append(writer.scalar(value, -1, ()) + "\n")
    return "".join(out)


#: Strings as they stand on one line. Kept from one dump to the next, because the documents of a
#: bundle repeat each other's words; forgotten when there are many, so that a server does not grow.
_WORDS: Final[dict[str, str]] = {}
_MOST_WORDS: Final = 1 << 14


class _Writer:
    """State of one dump: the pieces written so far, and the strings classified in this and others."""

    __slots__ = ("indent", "out", "sort_keys", "words")

    def __init__(self, sort_keys: bool, indent: int) -> None:
        self.out: list[str] = []
        if len(_WORDS) > _MOST_WORDS:
            _WORDS.clear()
        self.words = _WORDS
        self.sort_keys = sort_keys
        self.indent = indent

    def mapping(self, value: dict[str, Any], column: int, lead: str, depth: int) -> None:
        """Writes entries at *column*; *lead* replaces the margin of the first one."""
        if depth > MAX_DEPTH:
            raise AicrError(INTERNAL, f"cannot write a document nested more than {MAX_DEPTH} deep")
        out, words, step = self.out, self.words, self.indent
        margin = " " * column
        prefix = lead or margin
        for key in sorted(value, key=_key_text) if self.sort_keys else value:
            item = value[key]
            name = words.get(key) or self.key(key)
            kind = type(item)
            if kind is str:
                text = words.get(item)
                if text is None:
                    text = self.string(item, column)
                out.append(f"{prefix}{name}: {text}\n")
            elif kind is dict and item:
                out.append(f"{prefix}{name}:\n")
                self.mapping(item, column + step, "", depth + 1)
            elif kind is list and item:
                out.append(f"{prefix}{name}:\n")
                self.sequence(item, column + step, "", depth + 1)
            else:
                out.append(f"{prefix}{name}: {self.scalar(item, column, key)}\n")
            prefix = margin

    def sequence(self, value: list[Any], column: int, lead: str, depth: int) -> None:
        """Writes items at *column*; nested containers start on the line of their dash."""
        if depth > MAX_DEPTH:
            raise AicrError(INTERNAL, f"cannot write a document nested more than {MAX_DEPTH} deep")
        out = self.out
        margin = " " * column
        prefix = (lead or margin) + "- "
        for index, item in enumerate(value):
            kind = type(item)
            if kind is dict and item:
                self.mapping(item, column + 2, prefix, depth + 1)
            elif kind is list and item:
                self.sequence(item, column + 2, prefix, depth + 1)
            else:
                out.append(f"{prefix}{self.scalar(item, column, index)}\n")
            prefix = margin + "- "

    def key(self, key: Any) -> str:
        """The text of a mapping key."""
        if type(key) is not str:
            raise AicrError(INTERNAL, f"cannot write the mapping key {key!r}: keys must be strings")
        text = _one_line(key)
        if len(text) > _LONGEST_KEY:
            raise invalid(
                f"cannot write a mapping key of {len(text)} characters",
                where=f"key {key[:40]!r}...",
                hint=f"shorten the key to {_LONGEST_KEY} characters or fewer",
            )
        if "\n" not in key:  # As a value the same text would be a block, so it is not remembered.
            self.words[key] = text
        return text

    def string(self, text: str, column: int) -> str:
        """The text of a string value whose parent collection stands at *column*."""
        if "\n" in text and column >= 0:
            block = _literal(text, column + self.indent, self.indent)
            if block:
                return block
        line = _one_line(text)
        if column >= 0 or "\n" not in text:  # Elsewhere the same text may be a block.
            self.words[text] = line
        return line

    def scalar(self, value: Any, column: int, place: object) -> str:
        """The text of anything that is written on one line (or as a literal block)."""
        kind = type(value)
        if kind is str:
            return self.words.get(value) or self.string(value, column)
        if value is None:
            return "null"
        if kind is bool:
            return "true" if value else "false"
        if kind is int:
            if -(1 << 63) <= value < (1 << 64):
                return str(value)
            raise invalid(
                f"cannot write the integer {value}: YAML readers hold 64 bits and would round it",
                where=_place(place),
                hint="write it as a string",
            )
        if kind is float:
            return _float(value, place)
        if kind is dict:
            return "{}"
        if kind is list:
            return "[]"
        raise AicrError(
            INTERNAL, f"cannot write a value of type {kind.__name__} as YAML", where=_place(place)
        )


def quote(text: str) -> str:
    """*text* as a one-line YAML scalar, in quotes only where some reader needs them.

    For texts with a YAML line of their own, such as generated templates and hints.

    Raises:
        AicrError: INVALID_REQUEST for text that is not valid Unicode.
    """
    return _one_line(text)


def _key_text(key: Any) -> str:
    return key if type(key) is str else ""


def _place(place: object) -> str:
    return f"item {place}" if type(place) is int else f"key {place}" if place != () else ""


def _float(value: float, place: object) -> str:
    """Shortest text that reads back equal, with the dot that YAML 1.1 readers need."""
    text = repr(value)
    if text in ("nan", "inf", "-inf"):
        raise invalid(
            f"cannot write the number {text}: neither JSON nor Kubernetes has it",
            where=_place(place),
            hint="use a finite number or a string",
        )
    mantissa, mark, exponent = text.partition("e")
    if mark and "." not in mantissa:
        return f"{mantissa}.0e{exponent}"
    return text


def _one_line(text: str) -> str:
    """The quoting of a string on one line."""
    if _WORD.issuperset(text) and text[:1] in _LETTERS:
        return f'"{text}"' if len(text) < 6 and misread(text) else text
    if not _printable(text):
        return _escaped(text)
    if misread(text):
        return f'"{text}"'
    if _plain_allowed(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _printable(text: str) -> bool:
    """Whether every character may stand in a YAML file unescaped, on one line.

    Characters beyond U+FFFF are legal, but go-yaml escapes them, so they are written the same way.
    """
    if text.isascii():
        return text.isprintable()
    return all(
        " " <= char <= "~" or "\xa0" <= char <= "\u2027" or "\u202a" <= char < "\ud800"
        or "\ue000" <= char < "\ufeff" or "\uff00" <= char <= "\ufffd"
        for char in text
    )  # fmt: skip


def _plain_allowed(text: str) -> bool:
    """Whether a printable text that looks like no other type may stand without quotes."""
    first = text[0]
    return not (
        first in _INDICATORS
        or first == " "
        or text[-1] in " :"
        or (first in "-?:" and text[1:2] in ("", " "))
        or ": " in text
        or " #" in text
        or text.startswith(("---", "..."))
    )


def _escaped(text: str) -> str:
    """*text* in double quotes with escapes for what may not stand in a file."""
    out = ['"']
    for char in text:
        if " " <= char <= "~" and char not in '"\\':
            out.append(char)
            continue
        known = _ESCAPES.get(char)
        code = ord(char)
        if known is not None:
            out.append(known)
        elif 0xD800 <= code < 0xE000:
            raise invalid(
                f"cannot write text with the lone surrogate U+{code:04X}: it is not valid Unicode",
                hint="check the encoding of the file that the text came from; it must be UTF-8",
            )
        elif code > 0xFFFF:
            out.append(f"\\U{code:08X}")
        elif _printable(char):
            out.append(char)
        elif code > 0xFF:
            out.append(f"\\u{code:04X}")
        else:
            out.append(f"\\x{code:02X}")
    out.append('"')
    return "".join(out)


def _literal(text: str, column: int, step: int) -> str:
    """*text* as a literal block at *column*, or "" if a block would not carry it faithfully.

    A block cannot hold escapes, and trailing blanks in it are invisible to people and eaten by
    editors.
    """
    lines = text.split("\n")
    if not text.strip("\n"):
        return ""
    for line in lines:
        if line and (line[-1] in " \t" or not _printable(line.replace("\t", ""))):
            return ""
    indicator = str(step) if text[0] in " \n\t" else ""
    chomping = "+" if lines[-2:] == ["", ""] else "" if lines[-1] == "" else "-"
    if lines[-1] == "":
        lines.pop()
    margin = "\n" + " " * column
    body = "".join(margin + line if line else "\n" for line in lines)
    return f"|{indicator}{chomping}{body}"
