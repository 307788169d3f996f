"""Node classes as flags spell them: labels, tolerations, taints (bundler spec 1.2; field case D1).

Each function turns the text of a flag into a plain value, or into an error that names the flag.
Callers use them by way of ``options``. This module knows Kubernetes label syntax; it must not know
components or value paths.
"""

from __future__ import annotations

from aicr.contract.object_names import SUBDOMAIN_LENGTH, has_subdomain_form
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")

_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_REPEAT: Final = "to give several, repeat the flag"
_TOLERATION_FORM: Final = "key[=value][:Effect] with Effect one of " + ", ".join(EFFECTS)


def tolerate_all() -> dict[str, Any]:
    """A toleration of every taint: what a node class gets when no flag names its taints."""
    return {"operator": "Exists"}


def parse_selector(entries: Iterable[str], flag: str) -> dict[str, str]:
    """``key=value`` labels as a map, split at the first ``=``; the value may be empty.

    Keys and values must have Kubernetes label syntax: anything else can never match a node.

    Raises:
        AicrError: INVALID_REQUEST for a missing ``=``, a malformed label, or one key given twice
        with
            different values.
    """
    selector: dict[str, str] = {}
    for entry in entries:
        key, separator, value = entry.partition("=")
        if not separator:
            raise invalid(f'invalid {flag} "{entry}": expected key=value', where=flag, hint=_REPEAT)
        _check_label_key(key, entry, flag)
        _check_label_value(value, entry, flag)
        if selector.setdefault(key, value) != value:
            raise invalid(
                f'{flag} gives "{key}" two values, "{selector[key]}" and "{value}"',
                where=flag,
                hint="keep one of them: a node has one value for a label",
            )
    return selector


def parse_tolerations(entries: Iterable[str], flag: str) -> list[dict[str, Any]]:
    """Tolerations in the order given, repeated ones once; no entries gives an empty list."""
    parsed: list[dict[str, Any]] = []
    for entry in entries:
        toleration = parse_toleration(entry, flag)
        if toleration not in parsed:
            parsed.append(toleration)
    return parsed


def parse_toleration(text: str, flag: str) -> dict[str, Any]:
    """Read one toleration the way kubectl reads a taint (field case D1).

    ``k=v:Effect`` is Equal, ``k:Effect`` is Exists, ``k=:Effect`` is Equal with the empty value,
    and without ``:Effect`` all effects are tolerated. Empty fields are left out of the result.

    Raises:
        AicrError: INVALID_REQUEST with the expected form.
    """
    key, has_value, value, effect = _split_taint(text, flag)
    toleration: dict[str, Any] = {"key": key, "operator": "Equal" if has_value else "Exists"}
    if value:
        toleration["value"] = value
    if effect:
        toleration["effect"] = effect
    return toleration


def parse_taint(text: str, flag: str) -> dict[str, Any] | None:
    """The taint ``key[=value]:Effect`` as ``{key, value?, effect}``; "" gives None (no gate).

    Raises:
        AicrError: INVALID_REQUEST; unlike a toleration, a taint must name its effect.
    """
    if not text:
        return None
    key, _, value, effect = _split_taint(text, flag)
    if not effect:
        raise invalid(
            f'invalid {flag} "{text}": a taint needs an effect',
            where=flag,
            hint=f"write {text}:NoSchedule (or another of {', '.join(EFFECTS)})",
        )
    taint: dict[str, Any] = {"key": key}
    if value:
        taint["value"] = value
    taint["effect"] = effect
    return taint


def taint_text(taint: dict[str, Any]) -> str:
    """A taint as the one-line ``key[=value]:effect`` that some charts take."""
    value = taint.get("value", "")
    return f"{taint['key']}{'=' + value if value else ''}:{taint['effect']}"


def check_label(key: str, value: str, text: str, flag: str) -> None:
    """Refuse a label that no node can carry.

    Args:
        key: the label's key, with or without a prefix.
        value: its value.
        text: what was typed, for the message.
        flag: where it was typed.

    Raises:
        AicrError: INVALID_REQUEST naming flag and text.
    """
    _check_label_key(key, text, flag)
    _check_label_value(value, text, flag)


def _split_taint(text: str, flag: str) -> tuple[str, bool, str, str]:
    left, colon, effect = text.partition(":")
    hint = _REPEAT if "," in text else f"expected {_TOLERATION_FORM}"
    if ":" in effect or left.count("=") > 1:
        raise invalid(
            f'invalid {flag} "{text}": expected {_TOLERATION_FORM}', where=flag, hint=hint
        )
    key, equals, value = left.partition("=")
    if colon and effect not in EFFECTS:
        close = next((known for known in EFFECTS if known.lower() == effect.strip().lower()), "")
        raise invalid(
            f'invalid {flag} "{text}": unknown effect "{effect}", expected {_TOLERATION_FORM}',
            where=flag,
            hint=f"write {left}:{close}" if close else hint,
        )
    _check_label_key(key, text, flag)
    _check_label_value(value, text, flag)
    return key, bool(equals), value, effect


def _check_label_key(key: str, text: str, flag: str) -> None:
    import re

    prefix, slash, name = key.rpartition("/")
    valid = re.fullmatch(_NAME, name) and (
        not slash or (len(prefix) <= SUBDOMAIN_LENGTH and has_subdomain_form(prefix))
    )
    if not valid:
        problem = f'"{key}" is not a label key' if key else "the key is empty"
        raise invalid(
            f'invalid {flag} "{text}": {problem}',
            where=flag,
            hint=_REPEAT if "," in text else "a key looks like example.com/name, without wildcards",
        )


def _check_label_value(value: str, text: str, flag: str) -> None:
    import re

    if value and not re.fullmatch(_NAME, value):
        raise invalid(
            f'invalid {flag} "{text}": "{value}" is not a label value',
            where=flag,
            hint=_REPEAT
            if "," in text
            else "at most 63 letters, digits, '-', '_' and '.', alphanumeric at both ends",
        )
