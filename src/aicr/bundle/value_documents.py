"""The values of ``--set-json`` and ``--set-file``, read strictly.

What one reader takes and another refuses is refused here: duplicate keys, NaN and infinities,
numbers that Go cannot hold, half surrogate pairs. JSON and YAML readers are imported when a flag
needs them.
"""

from __future__ import annotations

from aicr.errors import AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_LARGEST: Final = 2**64 - 1
_SMALLEST: Final = -(2**63)
_INFINITE: Final = (float("inf"), float("-inf"))


def json_value(text: str, *, label: str) -> Any:
    """The value of a JSON text.

    Args:
        text: the JSON document.
        label: the flag, for messages.

    Raises:
        AicrError: INVALID_REQUEST for text that is not JSON, a key given twice, or a number or
            string that cannot be written faithfully (field case C3).
    """
    from aicr.yamlio.jsontext import load_json

    try:
        value = load_json(text, source=label)
    except AicrError as error:
        raise invalid(
            f"{label}: invalid JSON",
            hint="quote the whole flag for the shell, and strings with double quotes: "
            "--set-json 'component:path=[\"a\"]'",
        ) from error
    check_writable(value, label)
    return value


def first_yaml_document(text: str, *, source: str, label: str) -> tuple[Any, bool]:
    """The first YAML document of a value file, and whether others follow it.

    Raises:
        AicrError: INVALID_REQUEST for text that is not YAML or holds no value.
    """
    from aicr.yamlio import read

    try:
        documents = read.load_all(text, source=source, mode="helm")
    except AicrError as error:
        raise invalid(f"{label}: cannot read {source}", hint=error.hint) from error
    if not documents:
        raise invalid(
            f"{label}: {source} holds no value",
            hint="to delete a key pass null with --set-json",
        )
    check_writable(documents[0], label)
    return documents[0], len(documents) > 1


def check_writable(value: Any, label: str) -> None:
    """Refuse what YAML and Go readers would not give back unchanged.

    Raises:
        AicrError: INVALID_REQUEST naming the value.
    """
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, str):
            try:
                item.encode("utf-8")
            except UnicodeEncodeError as error:
                raise invalid(f"{label}: {item!r} is not valid Unicode text") from error
        elif isinstance(item, float):
            if item != item or item in _INFINITE:
                raise invalid(f"{label}: {item} is not a number that values can hold")
        elif isinstance(item, int) and not _SMALLEST <= item <= _LARGEST:
            raise invalid(
                f"{label}: {item} does not fit 64 bits", hint="quote it to keep it as text"
            )
