r"""Whether Go would compile a regular expression, told with Python's own compiler.

Charts and controllers here are Go programs, whose expressions (RE2) differ from Python's at the
edges: no look-around, no back references, no possessive repetition; but ``\z``, ``\pL``, repeated
anchors, ``\Q…\E``, ``[[:alpha:]]`` and flags anywhere. What only Go knows is replaced by something
of the same shape, what only Python knows is refused, and the rest is left to ``re``. Nothing is
ever matched.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_MOST_REPETITIONS: Final = 1000
_POSIX: Final = (
    *("alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph"),
    *("lower", "print", "punct", "space", "upper", "word", "xdigit"),
)
#: One piece of an expression outside brackets; the last alternative takes anything.
_PIECE: Final = (
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|\\(?P<property>[pP])(?:\{\^?[A-Za-z_]+\}|[A-Z])"
    r"|\\x\{(?P<code>[0-9A-Fa-f]+)\}"
    r"|\\(?P<escape>.)"
    r"|\((?P<group>\?[^:)>]*[:)>]?)?"
    r"|(?P<repeat>[*+?]|\{\d+(?:,\d*)?\})\??(?P<again>[*+?]|\{\d)?"
    r"|\[\^?\]?"
    r"|."
)
#: The same inside brackets.
_CLASS_PIECE: Final = (
    r"\\(?P<property>[pP])(?:\{\^?[A-Za-z_]+\}|[A-Z])"
    r"|\\x\{(?P<code>[0-9A-Fa-f]+)\}"
    r"|\\(?P<escape>.)"
    r"|\[:\^?(?P<posix>[a-z]+):\]"
    r"|."
)
_GROUPS: Final = r"\?(?:[imsU]*(?:-[imsU]+)?[:)]|P?<[A-Za-z_]\w*>)"
_ESCAPES: Final = frozenset("dDsSwWbBAzafnrtvxC0")
#: Go lets them be repeated and Python does not, so a letter stands for each.
_ANCHORS: Final = "^$AbBz"


def pattern_problem(pattern: str) -> str:
    r"""Why Go would refuse the pattern, in a few words, or "".

    >>> pattern_problem("^mlx5_[0-3]$")
    ''
    >>> pattern_problem("mlx5_(?!0)")
    '(?! is not supported'
    >>> pattern_problem("mlx5_[")
    'unterminated character set'
    """
    out: list[str] = []
    position, brackets = 0, False
    while position < len(pattern):
        kind = _CLASS_PIECE if brackets else _PIECE
        piece = re.compile(kind, re.DOTALL).match(pattern, position)
        assert piece is not None  # the last alternative takes anything
        position = piece.end()
        parts = piece.groupdict()
        problem = "" if brackets else _refusal(piece[0], parts)
        text = _replaced(piece[0], parts, brackets)
        if problem or text is None:
            return problem or f'"{piece[0]}" is not supported'
        out.append(text)
        brackets = piece[0] != "]" if brackets else piece[0].startswith("[")
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python announces changes that Go will never make
            re.compile("".join(out))
    except (re.error, OverflowError) as error:
        return str(error).partition(" at position")[0]
    return ""


def _refusal(text: str, parts: dict[str, str | None]) -> str:
    """Why Go refuses a piece that Python takes, or ""."""
    group, repeat = parts["group"], parts["repeat"]
    if group and not re.fullmatch(_GROUPS, group):
        return f"({group[:2]} is not supported"
    if parts["again"]:
        return f'repetition of a repetition at "{text}"'
    if repeat and any(int(count) > _MOST_REPETITIONS for count in re.findall(r"\d+", repeat)):
        return f"repetition above {_MOST_REPETITIONS}"
    return ""


def _replaced(text: str, parts: dict[str, str | None], brackets: bool) -> str | None:
    """A piece as Python writes it; None for what Go does not know."""
    escape, code, posix = parts["escape"], parts["code"], parts.get("posix")
    if parts["property"]:
        return r"\w"
    if code:
        return "x" if int(code, 16) <= 0x10FFFF else None
    if posix:
        return "a-z" if posix in _POSIX else None
    if escape and escape.isalnum():
        if escape not in _ESCAPES or (brackets and escape in _ANCHORS + "C"):
            return None
        return "x" if escape in _ANCHORS or escape == "C" else text
    if brackets:
        # What Python reserves for operations on sets stands for itself in Go.
        return "\\" + text if text in "[&~|" else text
    if parts.get("quoted") is not None:
        return re.escape(parts["quoted"] or "")
    group = parts.get("group")
    if group:
        # Names and flags change nothing about whether an expression compiles.
        return "(" if "<" in group else "(?:" if group.endswith(":") else ""
    if text in ("^", "$"):
        return "x"
    return text.replace("[]", r"[\]").replace("[^]", r"[^\]")
