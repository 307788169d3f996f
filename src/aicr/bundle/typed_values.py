"""The type that the text of a ``--set`` flag gets.

A type is given only to text that means the same after a round trip; everything else stays the
string that was typed, so a version, a git digest or a zip code never turns into a number on the
way (decision 6, field case B2).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_INTEGER: Final = r"-?[1-9][0-9]{0,18}|0"
_DECIMAL: Final = r"-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9]"
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}

#: Last path segments, lower-case, whose values are names or versions even if they look like
#: numbers.
_TEXT_ENDINGS: Final = ("version", "tag", "digest")

_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


def is_text_path(last: str | int) -> bool:
    """Whether a path ending like this always holds text: ``…version``, ``…tag``, ``image…``."""
    if isinstance(last, int):
        return False
    name = last.lower()
    return name.endswith(_TEXT_ENDINGS) or name.startswith("image") or last.endswith("Image")


def typed(text: str) -> Any:
    """The value of a text whose path does not already decide the type.

    ``true``, ``false`` and ``null`` in lower case, integers in int64 and decimals, both only in the
    one spelling that printing the number gives back, become typed; all else stays text.
    """
    import re

    if text in _WORDS:
        return _WORDS[text]
    if re.fullmatch(_INTEGER, text):
        number = int(text)
        return number if _INT64_MIN <= number <= _INT64_MAX else text
    if re.fullmatch(_DECIMAL, text):
        decimal = float(text)
        return decimal if repr(decimal) == text else text
    return text


def typed_at(text: str, last: str | int, current: Any) -> Any:
    """The value of a text at a path that ends in *last* and now holds *current* (None if unset).

    A path that holds a string, or whose name says that it holds a version or an image, keeps text.
    ``null`` is the exception, as it never is a value but asks for the key to go. A switch that is a
    boolean today stays one whatever its name, because a chart takes the string "false" for true.
    """
    if text == "null":
        return None
    if isinstance(current, bool) and text in ("true", "false"):
        return text == "true"
    if isinstance(current, str) or is_text_path(last):
        return text
    return typed(text)
