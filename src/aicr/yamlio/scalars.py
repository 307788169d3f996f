"""What a plain (unquoted) YAML scalar means to the readers of our files.

Two questions live here, because they must never drift apart:

- :func:`misread`: would any consumer (YAML 1.1, YAML 1.2 core, go-yaml v2 and v3, HCL yamldecode)
  read this *string* as something else if it were written without quotes? The writer quotes on
  "yes".
- :func:`resolve`: which value does Helm (or yaml.v3) give to this plain scalar? The reader uses it.

``misread`` is wider than ``resolve`` on purpose: it covers the union of all consumers.
The module knows nothing of documents, quoting styles or positions, and imports nothing.
Sources: decisions 4 and 5, stack-study 3.2, field case C1.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    Scalar = str | int | float | bool | None

_TRUE_WORDS: Final = ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON")
_FALSE_WORDS: Final = ("n", "N", "no", "No", "NO", "off", "Off", "OFF")

#: Plain words with a value of their own in every reader.
WORDS: Final[dict[str, Scalar]] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}

#: The same for readers that keep the YAML 1.1 booleans (sigs.k8s.io/yaml, so Helm and kubectl).
HELM_WORDS: Final[dict[str, Scalar]] = {
    **WORDS,
    **dict.fromkeys(_TRUE_WORDS, True),
    **dict.fromkeys(_FALSE_WORDS, False),
}

_MISREAD_WORDS: Final = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "=", "<<", "")
)
_DIGITS: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdef")
_NUMBER_START: Final = frozenset("0123456789+-.")


def misread(text: str) -> bool:
    """Whether some consumer reads unquoted *text* as a bool, null, number, date or merge key."""
    if text[:1] not in _NUMBER_START:
        return len(text) < 6 and text.lower() in _MISREAD_WORDS
    if not text.isascii():
        return False
    body = text[1:] if text[0] in "+-" else text
    body = body.replace("_", "").lower()
    if body in (".inf", ".nan", "."):
        return True
    if body[:2] in ("0x", "0o", "0b"):
        # The dot and the exponent belong to hexadecimal floats, which HCL and Go accept in places.
        return _HEX.issuperset(body[2:].translate(_DROP_HEX_FLOAT))
    if _dated(text):
        return True
    if ":" in body:
        return _DIGITS.issuperset(body.replace(":", "").replace(".", "", 1)) and body[0] != ":"
    mantissa, exponent_mark, exponent = body.partition("e")
    if exponent_mark:
        if exponent[:1] in ("+", "-"):
            exponent = exponent[1:]
        if not exponent.isdigit():
            return False
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    return digits.isdigit() and "." not in fraction


_DROP_HEX_FLOAT: Final = {ord("."): None, ord("p"): None, ord("+"): None, ord("-"): None}


def _dated(text: str) -> bool:
    """Whether *text* starts with year-month-day and then ends, or goes on with a time."""
    if len(text) < 8 or text[4] != "-" or not text[:4].isdigit():
        return False
    month, dash, rest = text[5:].partition("-")
    if not dash or not month.isdigit() or len(month) > 2:
        return False
    day = rest[:2] if rest[1:2].isdigit() else rest[:1]
    return day.isdigit() and rest[len(day) :][:1] in ("", "t", "T", " ", "\t")


def resolve(text: str, words: dict[str, Scalar] = HELM_WORDS) -> Scalar:
    """The value that the Go readers give to the plain scalar *text*.

    Args:
        text: the scalar as written, without quotes.
        words: :data:`HELM_WORDS` (YAML 1.1 booleans) or :data:`WORDS` (yaml.v3).

    Returns:
        None, a bool, an int within [-2**63, 2**64), a float (``inf`` and ``nan`` for the ``.inf``
        and ``.nan`` words), or the text itself. Dates and base-60 numbers stay text (decision 4).
    """
    first = text[:1]
    if first not in _NUMBER_START:
        return words.get(text, text)
    if first == ".":
        special = _special_float(text)
        return special if special is not None else _dotted_float(text)
    special = _special_float(text[1:]) if first in "+-" else None
    if special is not None:
        return -special if first == "-" else special
    plain = text.replace("_", "")
    number = _go_integer(plain)
    if number is not None and -(1 << 63) <= number < (1 << 64):
        return number
    if _yaml_float(plain):
        value = float(plain)
        return text if value in (_INFINITY, -_INFINITY) else value
    return text


_INFINITY: Final = float("inf")


def _special_float(text: str) -> float | None:
    if text in (".inf", ".Inf", ".INF"):
        return _INFINITY
    if text in (".nan", ".NaN", ".NAN"):
        return float("nan")
    return None


def _go_integer(text: str) -> int | None:
    """An integer as Go's ParseInt with base 0: ``0x``, ``0o``, ``0b`` and leading-zero octal."""
    if not text.isascii():
        return None
    sign = -1 if text[:1] == "-" else 1
    digits = text[1:] if text[:1] in ("+", "-") else text
    if len(digits) > 70:
        return None  # No 64-bit number is this long in any base; float or text decides.
    prefix = digits[:2].lower()
    base = {"0x": 16, "0o": 8, "0b": 2}.get(prefix, 10)
    if base != 10:
        digits = digits[2:]
    elif digits[:1] == "0" and len(digits) > 1:
        base = 8
    if not digits.isalnum():
        return None
    try:
        return sign * int(digits, base)
    except ValueError:
        return None


def _yaml_float(text: str) -> bool:
    """Go's float: ``[-+]?(\\.[0-9]+|[0-9]+(\\.[0-9]*)?)([eE][-+]?[0-9]+)?``, without a regex."""
    if not text.isascii():
        return False
    body = text[1:] if text[:1] in ("+", "-") else text
    mantissa, mark, exponent = body.replace("E", "e").partition("e")
    if mark and not (exponent[1:] if exponent[:1] in ("+", "-") else exponent).isdigit():
        return False
    whole, dot, fraction = mantissa.partition(".")
    if whole:
        return whole.isdigit() and (not fraction or fraction.isdigit())
    return bool(dot) and fraction.isdigit()


def _dotted_float(text: str) -> Scalar:
    """A scalar that starts with a dot: underscores count only between digits, as Go reads it."""
    if "_" in text:
        for before, after in zip(text.split("_"), text.split("_")[1:], strict=False):
            if before[-1:] not in _DIGITS or after[:1] not in _DIGITS:
                return text
    plain = text.replace("_", "")
    if not _yaml_float(plain):
        return text
    value = float(plain)
    return text if value == _INFINITY else value
