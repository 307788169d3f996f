"""YAML: one writer, one full reader, and a fast reader proved equal to it.

``write.dump`` writes; ``read.load`` and its siblings read with positions and refusals;
``read_fast`` tries the fast reader first, which needs no import, and is what hot paths call.

Only this package touches YAML text (decision 4). It must not know document kinds.
"""

from __future__ import annotations

from aicr.errors import invalid
from aicr.yamlio import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read_fast(text: str, *, source: str, mode: str = "helm") -> Any:
    """As :func:`aicr.yamlio.read.load`, faster for plain block-style documents.

    Raises:
        AicrError: as ``load``.
    """
    try:
        return canonical.parse(text)
    except canonical.Fallback:
        from aicr.yamlio import read

        return read.load(text, source=source, mode=mode)


def read_fast_all(text: str, *, source: str, mode: str = "helm") -> list[Any]:
    """As :func:`aicr.yamlio.read.load_all`, faster for plain block-style documents.

    Raises:
        AicrError: as ``load_all``.
    """
    try:
        return canonical.parse_all(text)
    except canonical.Fallback:
        from aicr.yamlio import read

        return read.load_all(text, source=source, mode=mode)


def decode(data: bytes, *, source: str) -> str:
    """The text of a YAML or JSON file, which must be UTF-8.

    Raises:
        AicrError: INVALID_REQUEST with line and column of the first byte that is not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        raise invalid(
            f"byte 0x{data[error.start]:02x} is not valid UTF-8",
            where=f"{source}:{line}:{column}",
            hint="save the file as UTF-8 text",
        ) from error
