"""Write values as Go's ``fmt`` does: ``%v``, ``%q`` and the verbs of ``printf``.

Design: what ``fmt`` would report inside its output (``%!d(string=x)``, ``%!v(MISSING)``) is a
failure here, since such text in a manifest is never meant.

It must not know about templates, only about values.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip
_VERB: Final = r"(?s)%([-+0 ]*)([0-9]*)(\.[0-9]*)?(.?)"
_MOST_WIDTH: Final = 200


class EvaluationError(Exception):
    """Why an expression has no value; the evaluator adds the place. Never leaves the package."""


def type_name(value: Any) -> str:
    """The name that Go gives to the type of a decoded YAML value."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float64"
    if isinstance(value, str):
        return "string"
    return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"


def display(value: Any) -> str:
    """A value as ``%v`` prints it; maps in sorted key order."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value is None:
        return "<nil>"
    if isinstance(value, float):
        return display_float(value)
    if isinstance(value, dict):
        pairs = [f"{display(key)}:{display(value[key])}" for key in sorted(value)]
        return f"map[{' '.join(pairs)}]"
    if isinstance(value, list | tuple):
        return f"[{' '.join([display(item) for item in value])}]"
    raise EvaluationError(f"can't print {value.__class__.__name__}")


def display_float(value: float) -> str:
    """The shortest decimal that reads back as the same float, in the notation of ``%v``.

    Go changes to an exponent below 1e-4 and from 1e6 on, which Python does elsewhere.
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    mantissa, _, power = repr(value).partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    written = whole + fraction
    digits = written.lstrip("0")
    exponent = len(whole) + int(power or 0) - (len(written) - len(digits)) - 1
    digits = digits.rstrip("0")
    if not digits:
        return f"{sign}0"
    if exponent < -4 or exponent >= 6:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def quoted(text: str) -> str:
    """Text as a Go string literal in double quotes (``%q``)."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join([_quoted_character(character) for character in text]) + '"'


def _quoted_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def sprint(values: tuple[Any, ...]) -> str:
    """``print``: a space between two operands when neither is a string."""
    out: list[str] = []
    for at, value in enumerate(values):
        if at and not isinstance(value, str) and not isinstance(values[at - 1], str):
            out.append(" ")
        out.append(display(value))
    return "".join(out)


def sprintf(template: str, values: tuple[Any, ...]) -> str:
    """``printf`` with the verbs %s %d %v %q %t and %%, and their width, ``-`` and ``0``.

    Raises: EvaluationError for another verb, for a value that does not fit its verb, and for too
        few or too many values.
    """
    import re

    used = 0

    def one(match: re.Match[str]) -> str:
        nonlocal used
        flags, width, precision, verb = match.groups()
        if verb == "%" and match.group() == "%%":
            return "%"
        if verb not in tuple("sdvqt") or precision is not None or set(flags) - {"-", "0"}:
            raise EvaluationError(
                f"printf: {match.group()} is not supported; use %s %d %v %q %t or %%"
            )
        if used >= len(values):
            raise EvaluationError(f"printf: no value for {match.group()}")
        value = values[used]
        used += 1
        return _padded(_verb(verb, value), flags, width, verb)

    text = re.sub(_VERB, one, template)
    if used < len(values):
        raise EvaluationError(f"printf: {len(values) - used} values more than verbs")
    return text


def _verb(verb: str, value: Any) -> str:
    """One value written by one verb."""
    if verb == "v":
        return display(value)
    if verb == "s" and isinstance(value, str):
        return value
    if verb == "q" and isinstance(value, str):
        return quoted(value)
    if verb == "t" and isinstance(value, bool):
        return display(value)
    if verb == "d" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise EvaluationError(
        f"printf: %{verb} does not take a value of type {type_name(value)}; %v does"
    )


def _padded(text: str, flags: str, width: str, verb: str) -> str:
    """Text at the width of its verb, counted in characters."""
    if not width:
        return text
    if len(width) > 3 or int(width) > _MOST_WIDTH:
        raise EvaluationError(f"printf: a width of {width} is more than {_MOST_WIDTH}")
    if "-" in flags:
        return text.ljust(int(width))
    if "0" in flags and verb == "d":
        return text.zfill(int(width))
    return text.rjust(int(width))
