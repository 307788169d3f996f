"""Refusals of the YAML reader in words: what libyaml says, where, and what to write instead.

libyaml's errors name grammar ("while scanning a block scalar"). People who meet them mostly forgot
quotes, so each error is matched with the text it stands at and answered with the quoted form.
The module knows texts and positions, not documents. Source: field case A8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aicr.errors import invalid
from aicr.yamlio.write import quote

if TYPE_CHECKING:
    from aicr.errors import AicrError

    Place = tuple[int, int]

_QUOTED_STARTS: Final = "@`%&*!|>"


def check_characters(text: str, source: str) -> None:
    """Refuses characters that may not stand in a YAML text, with their position.

    Raises:
        AicrError: INVALID_REQUEST.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return
    for offset, char in enumerate(text):
        if not (
            char in "\t\n\r\x85"
            or " " <= char <= "~"
            or "\xa0" <= char <= "\ud7ff"
            or ("\ue000" <= char <= "\ufffd" and char != "\ufeff")
            or char >= "\U00010000"
        ):
            start = text.rfind("\n", 0, offset) + 1
            line = text.count("\n", 0, offset) + 1
            raise invalid(
                f"character U+{ord(char):04X} cannot stand in a YAML text",
                where=f"{source}:{line}:{offset - start + 1}",
                hint="the file must be UTF-8 text; write control characters as escapes"
                ' in double quotes, for example "\\x1b"',
            )


def translate(error: Any, text: str, source: str) -> AicrError:
    """A libyaml *error* about *text* as our error, with a position and the next step."""
    problem = getattr(error, "problem", None) or "cannot be read"
    context = getattr(error, "context", None) or ""
    mark = getattr(error, "problem_mark", None)
    context_mark = getattr(error, "context_mark", None)
    if context_mark is not None and (mark is None or context.startswith(_POINT_AT_CONTEXT)):
        mark = context_mark
    if mark is None:
        return invalid(f"invalid YAML: {problem}", where=f"{source}:1:1", hint=_GENERAL)
    lines = text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    detail = f"{problem} ({context})" if context else problem
    return invalid(
        f"invalid YAML: {detail}",
        where=f"{source}:{mark.line + 1}:{mark.column + 1}",
        hint=_hint(problem, context, line, mark.column),
    )


_POINT_AT_CONTEXT: Final = (
    "while scanning a block scalar",
    "while scanning a tag",
    "while scanning an alias",
    "while scanning an anchor",
    "while scanning a quoted scalar",
    "while parsing a flow",
)
TEMPLATE_HINT: Final = (
    "quote a value that holds a template expression, or render the template first"
)
_GENERAL: Final = "check the indentation and the quotes around this line"


def _hint(problem: str, context: str, line: str, column: int) -> str:
    rest = line[column:].strip()
    value = line.partition(": ")[2].strip()
    if "a tab" in problem or ("\t" in line[: column + 1] and line[:column].strip() in ("", "-")):
        return "indent with spaces, not tabs"
    if "nesting depth" in problem:
        return "flatten the document"
    if "{{" in line:
        return TEMPLATE_HINT
    if "mapping values are not allowed" in problem:
        if ": " in value:
            return f'quote a value that contains ": ", for example {quote(value)}'
        return "line this key up with its siblings, or quote the value above it"
    if context == "while scanning a quoted scalar":
        return "close the quotes; inside single quotes write '' for a quote"
    if context == "while parsing a quoted scalar":
        return "use single quotes, in which a backslash is text, or write \\\\ for a backslash"
    if context.startswith("while parsing a flow"):
        return "close the bracket, or quote the value if it is text"
    if "YAML document" in problem or "directive" in context:
        return "remove the line that starts with %"
    if rest[:1] and rest[0] in _QUOTED_STARTS:
        return f'quote a value that starts with "{rest[0]}": {quote(rest)}'
    if value[:1] and value[0] in _QUOTED_STARTS:
        return f'quote a value that starts with "{value[0]}": {quote(value)}'
    return _GENERAL


def excerpt(text: str) -> str:
    """*text* on one line and short enough for a message."""
    line = text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
    return line if len(line) <= 60 else line[:57] + "..."
