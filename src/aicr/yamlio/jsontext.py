"""Strict JSON: what YAML reading refuses is refused here too (duplicate keys, NaN, deep nesting)."""

from __future__ import annotations

import json

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _RefusedError(ValueError):
    """Something json would let pass; it carries no position, so the message must name it."""


def load_json(text: str, *, source: str) -> Any:
    """The value of a JSON text.

    Raises:
        AicrError: INVALID_REQUEST with ``source:line:column`` for text that does not parse, a
            duplicate key, NaN or Infinity, and nesting too deep to read.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise invalid(
            f"not valid JSON: {error.msg.lower()}",
            where=f"{source}:{error.lineno}:{error.colno}",
        ) from None
    except _RefusedError as error:
        raise invalid(str(error), where=source, hint="keep valid, unique entries") from None
    except ValueError:
        raise invalid("not valid JSON: a number is too long", where=source) from None
    except RecursionError:
        raise invalid("JSON is nested too deeply", where=source) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RefusedError(f'duplicate key "{key}" in a JSON object')
            seen.add(key)
    return found


def _no_constant(text: str) -> Any:
    raise _RefusedError(f"{text} is not JSON; numbers must be finite")


def dump_json(value: Any) -> str:
    r"""JSON with two blanks of indent, ``<``, ``>`` and ``&`` escaped as Go does (recipe spec 0.7)."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text + "\n"
