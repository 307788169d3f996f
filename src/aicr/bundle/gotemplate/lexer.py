"""Cut the text of a template into literal text and actions, and actions into tokens.

Design: literal text is found with ``str.find``, so a long manifest with few actions costs next to
nothing, and inside an action the first character of a token says how to find its end: no regular
expression, because importing `re` and compiling one takes longer than every template that we ship.
A token is a tuple ``(kind, text, offset, spaced)``; ``spaced`` tells if white space stands before
it, because in this language ``.a .b`` are two values and ``.a.b`` is one. Trim markers and comments
are dealt with here and are not seen by the parser.

It must not know what keywords or functions there are.
"""

from __future__ import annotations

from aicr.errors import AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: kind, text, offset in the template, white space before it.
    Token = tuple[str, str, int, bool]
    #: start, end, and the literal text or the tokens of the action between the two.
    Piece = tuple[int, int, str | list[Token]]

SPACE = " \t\r\n"
_TRIM_MARKS = ("- ", "-\n", "-\t", "-\r")
_DIGITS = "0123456789"
#: What may stand right after a name, beside the end of the action and of the text.
_AFTER_NAME = " \t\r\n.,|:()"
_MARKS = "=|,()"


def line_of(text: str, offset: int) -> int:
    """The line number, from 1, of an offset in a text."""
    return text.count("\n", 0, offset) + 1


def syntax_error(text: str, offset: int, source: str, message: str, hint: str = "") -> AicrError:
    """The INVALID_REQUEST error for a mistake of form at an offset of a template."""
    return invalid(
        f"cannot parse the template: {message}",
        where=f"{source}:{line_of(text, offset)}",
        hint=hint,
    )


def lex(text: str, source: str) -> list[Piece]:
    """The pieces of a template in order; literal text that trimming leaves empty is dropped.

    Raises: AicrError INVALID_REQUEST with ``where`` as ``source:line``.
    """
    pieces: list[Piece] = []
    position = 0
    trim = False
    while True:
        start = text.find("{{", position)
        end = len(text) if start < 0 else start
        literal = text[position:end].lstrip(SPACE) if trim else text[position:end]
        inner = start + 2
        if start >= 0 and text.startswith(_TRIM_MARKS, inner):
            literal = literal.rstrip(SPACE)
            inner += 2
        if literal:
            pieces.append((position, end, literal))
        if start < 0:
            return pieces
        if text.startswith("/*", inner):
            position, trim = _skip_comment(text, start, inner, source)
            continue
        tokens, position, trim = _lex_action(text, start, inner, source)
        pieces.append((start, position, tokens))


def _skip_comment(text: str, start: int, inner: int, source: str) -> tuple[int, bool]:
    """Where the text goes on after a comment, and whether it is trimmed there."""
    close = text.find("*/", inner + 2)
    if close < 0:
        raise syntax_error(text, start, source, "unclosed comment", "end it with */}}")
    close += 2
    if text.startswith("}}", close):
        return close + 2, False
    if text[close : close + 1] in (" ", "\n", "\t", "\r") and text.startswith("-}}", close + 1):
        return close + 4, True
    raise syntax_error(
        text,
        close,
        source,
        "comment ends before closing delimiter",
        "a comment fills its action: {{/* text */}} or {{- /* text */ -}}",
    )


def _lex_action(text: str, start: int, inner: int, source: str) -> tuple[list[Token], int, bool]:
    """The tokens of the action that opens at *start*, its end, and if it trims what follows."""
    tokens: list[Token] = []
    cursor = inner
    while True:
        offset = _skip(text, cursor, SPACE)
        if text.startswith("}}", offset):
            return tokens, offset + 2, False
        if text.startswith("-}}", offset) and text[offset - 1] in SPACE:
            return tokens, offset + 3, True
        kind, end = _token_at(text, offset)
        if not end:
            raise _unreadable(text, start, cursor, source)
        token = text[offset:end]
        if kind == "name":
            kind = _kind_of_name(token)
        tokens.append((token if kind == "mark" else kind, token, offset, offset > cursor))
        cursor = end


def _token_at(text: str, at: int) -> tuple[str, int]:
    """Kind and end of the token that begins at *at*; the end is 0 when none does."""
    first = text[at : at + 1]
    if not first:
        return "", 0
    end = _end_of_number(text, at)
    if end:
        return "number", end
    if first in ".$" or first == "_" or first.isalnum():
        end = _end_of_word(text, at + 1)
        ends = end == len(text) or text[end] in _AFTER_NAME or text.startswith("}}", end)
        return "name", end if ends else 0
    if first == '"':
        return "string", _end_of_quoted(text, at)
    if first == "`":
        return "raw", text.find("`", at + 1) + 1
    if first == "'":
        end = _end_of_quoted(text, at)
        return "char", end if end > at + 2 else 0
    if text.startswith(":=", at):
        return "mark", at + 2
    return "mark", at + 1 if first in _MARKS else 0


def _skip(text: str, at: int, characters: str) -> int:
    """The first position from *at* without one of *characters*."""
    while at < len(text) and text[at] in characters:
        at += 1
    return at


def _end_of_word(text: str, at: int) -> int:
    """The first position from *at* without a letter, a digit or ``_``."""
    while at < len(text) and (text[at] == "_" or text[at].isalnum()):
        at += 1
    return at


def _end_of_number(text: str, at: int) -> int:
    """The end of a number, 0 if there is none: a sign, a point, a digit, then all that can belong to
    a number; whether it is one is judged where it is read."""
    if text[at] in "+-":
        at += 1
    if text[at : at + 1] == ".":
        at += 1
    if not (text[at : at + 1] and text[at] in _DIGITS):
        return 0
    at += 1
    while at < len(text):
        character = text[at]
        if character in "eEpP" and text[at + 1 : at + 2] in ("+", "-"):
            at += 2
        elif character in "._" or character.isalnum():
            at += 1
        else:
            break
    return at


def _end_of_quoted(text: str, at: int) -> int:
    """The end of what is quoted by the character at *at*, on one line; 0 if it is not closed."""
    quote = text[at]
    at += 1
    while at < len(text) and text[at] != "\n":
        if text[at] == quote:
            return at + 1
        if text[at] == "\\":
            if text[at + 1 : at + 2] in ("", "\n"):
                return 0
            at += 1
        at += 1
    return 0


def _kind_of_name(token: str) -> str:
    if token[0] == ".":
        return "field" if len(token) > 1 else "dot"
    return "variable" if token[0] == "$" else "word"


def _unreadable(text: str, start: int, cursor: int, source: str) -> AicrError:
    """Why no token starts at *cursor*."""
    while text[cursor : cursor + 1] and text[cursor] in SPACE:
        cursor += 1
    if cursor >= len(text):
        return syntax_error(text, start, source, "unclosed action", "end it with }}")
    character = text[cursor]
    if character == '"':
        return syntax_error(text, cursor, source, "unterminated quoted string")
    if character == "`":
        return syntax_error(text, cursor, source, "unterminated raw quoted string")
    if character == "'":
        return syntax_error(text, cursor, source, "unterminated character constant")
    if character in ".$" or character.isalnum() or character == "_":
        name = text[cursor]
        cursor += 1
        while text[cursor : cursor + 1].isalnum() or text[cursor : cursor + 1] == "_":
            name += text[cursor]
            cursor += 1
        follower = text[cursor : cursor + 1]
        return syntax_error(
            text,
            cursor,
            source,
            f"bad character {follower!r} after {name!r}",
            'a key with other characters is read with index, as in: index .Values "my-key"',
        )
    return syntax_error(text, cursor, source, f"unexpected {character!r} in an action")
