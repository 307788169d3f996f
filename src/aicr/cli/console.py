"""What the commands print with: machine output to stdout, words for people to stderr.

Colour appears only on a terminal and never with NO_COLOR set (any value).
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from aicr.errors import AicrError

_RED = "\033[31m"
_YELLOW = "\033[33m"
_DIM = "\033[2m"
_OFF = "\033[0m"


class Console:
    """Two streams, and whether the second may be coloured."""

    __slots__ = ("_colour", "err", "out")

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out = out
        self.err = err
        self._colour = bool(err.isatty()) and not os.environ.get("NO_COLOR")

    @classmethod
    def standard(cls) -> Console:
        """The process's own streams."""
        return cls(sys.stdout, sys.stderr)

    def write(self, text: str) -> None:
        """Machine output."""
        self.out.write(text)

    def say(self, text: str) -> None:
        """A line for people."""
        self.err.write(text + "\n")

    def warn(self, text: str) -> None:
        """A warning for people; the word is not repeated when the text brings it."""
        text = text.removeprefix("Warning: ")
        self.err.write(f"{self._paint('warning:', _YELLOW)} {text}\n")

    def dim(self, text: str) -> None:
        """A detail for people."""
        self.err.write(self._paint(text, _DIM) + "\n")

    def error(self, error: AicrError) -> None:
        """An error for the person at 3 a.m.: what, why, where, and the next step."""
        chain = error.chain()
        self.err.write(f"{self._paint('error:', _RED)} [{error.code}] {chain[0].message}\n")
        for cause in chain[1:]:
            self.err.write(f"  because: {cause.message}\n")
        places = [link.where for link in chain if link.where]
        if places:
            self.err.write(f"  where: {places[-1]}\n")
        hints = [link.hint for link in chain if link.hint]
        if hints:
            self.err.write(f"  next: {hints[-1]}\n")

    def _paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_OFF}" if self._colour else text
