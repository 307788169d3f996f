"""Where the values of a YAML document stand, and the check that a string slot surely holds text.

The reader fills a :class:`Positions` while it builds the document; everything that later complains
about a value asks it for ``source:line:column``. It knows paths and places, not document kinds.
Sources: decision 43, field case A8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aicr.errors import invalid
from aicr.yamlio.scalars import misread

if TYPE_CHECKING:
    Path = tuple[str | int, ...]
    Place = tuple[int, int]


class Positions:
    """Where each value of a document stands in its source."""

    __slots__ = ("_keys", "_marks", "_plain", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._marks: dict[Path, Place] = {}
        self._keys: dict[Path, Place] = {}
        self._plain: dict[Path, str] = {}

    def note(self, path: Path, place: Place) -> None:
        """Records where the value at *path* stands; the first record of a path holds."""
        self._marks.setdefault(path, place)

    def note_key(self, path: Path, place: Place) -> None:
        """Records where the key that ends *path* stands."""
        self._keys[path] = place

    def note_plain(self, path: Path, text: str) -> None:
        """Records the source text of an unquoted scalar."""
        self._plain[path] = text

    def where(self, path: Path) -> str:
        """``source:line:column`` of the value at *path*, or of its nearest known ancestor.

        Lines and columns count from 1. A scalar or list item is found at itself, a map or list that
        is the value of a key at that key.
        """
        return self._format(path)

    def key(self, path: Path) -> str:
        """``source:line:column`` of the key that ends *path*, for errors about the key itself."""
        mark = self._keys.get(path)
        return self.where(path) if mark is None else f"{self.source}:{mark[0]}:{mark[1]}"

    def plain(self, path: Path) -> str | None:
        """The source text of the unquoted scalar at *path*; None for anything else."""
        return self._plain.get(path)

    def _format(self, path: Path) -> str:
        for length in range(len(path), -1, -1):
            mark = self._marks.get(path[:length])
            if mark is not None:
                return f"{self.source}:{mark[0]}:{mark[1]}"
        return f"{self.source}:1:1"


def require_string(value: Any, positions: Positions, path: Path, field: str) -> str:
    """*value*, which the document kind wants to be a string, if it surely is one.

    Args:
        value: the value read at *path*.
        positions: of the same document.
        path: keys and list positions from the root.
        field: what messages call the field, for example ``constraints[0].value``.

    Raises:
        AicrError: INVALID_REQUEST when the value is no string, or is unquoted text that another
            YAML reader takes for a number, bool, null or date; the hint shows the quoted form
            (decision 43).
    """
    written = positions.plain(path)
    if type(value) is str:
        # A lone dot is a float only to the letter of YAML 1.1; no reader takes it for one.
        if written is None or written == "." or not misread(written):
            return value
        problem = f"{field}: unquoted {written} is not a string to every YAML reader"
    else:
        problem = f"{field} must be a string, not {_KINDS.get(type(value), 'another type')}"
        if written:
            problem += f" ({written})"
    hint = f'quote it: "{written}"' if written else "write a string in quotes"
    raise invalid(problem, where=positions.where(path), hint=hint)


_KINDS: Final[dict[type, str]] = {
    dict: "a map",
    list: "a list",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}
