"""What the commands print with: machine output to stdout, words for people to stderr.

Colour appears only on a terminal and never with NO_COLOR set to something or on a dumb terminal. Output
is UTF-8 whatever the locale says, so that the same inputs give the same bytes. That nobody listens to
the words for people is no reason to fail; that output cannot be written is an error.
"""

from __future__ import annotations

import os
import sys

from aicr.errors import INTERNAL, AicrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_RED = "\033[31m"
_YELLOW = "\033[33m"
_DIM = "\033[2m"
_OFF = "\033[0m"

#: Longest part of a message that is shown, in characters; a value can be a whole file.
_LONGEST = 4000


class Console:
    """Two streams, and whether the second may be coloured."""

    __slots__ = ("_colour", "err", "out")

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out = out
        self.err = err
        self._colour = (
            bool(err.isatty())
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )

    @classmethod
    def standard(cls) -> Console:
        """The process's own streams; Python leaves out one that was closed beforehand."""
        out = sys.stdout
        if hasattr(out, "reconfigure"):
            # A file may have a name that is no UTF-8: it is shown escaped, and fails nothing.
            out.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
        return cls(out or _Closed(), sys.stderr or _Closed())  # type: ignore[arg-type]

    def write(self, text: str) -> None:
        """Machine output.

        Raises:
            AicrError: INTERNAL when stdout is closed or its disk is full.
            BrokenPipeError: when the reader went away; ``main`` ends the run quietly.
        """
        try:
            self.out.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _unwritable(error.strerror or str(error)) from None

    def flush(self) -> None:
        """Bring out what ``write`` was given.

        Raises:
            AicrError, BrokenPipeError: as ``write``.
        """
        try:
            self.out.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _unwritable(error.strerror or str(error)) from None

    def abandon(self) -> None:
        """Drop what is still unwritten, so that the interpreter does not fail on it at its end."""
        try:
            descriptor = self.out.fileno()
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, descriptor)
            os.close(devnull)
        except (OSError, ValueError):
            # Not a stream of the process: nothing is flushed behind our back.
            pass

    def say(self, text: str) -> None:
        """A line for people."""
        self._tell(_shown(text) + "\n")

    def warn(self, text: str) -> None:
        """A warning for people; the word is not repeated when the text brings it."""
        text = text.removeprefix("Warning: ")
        self._tell(f"{self._paint('warning:', _YELLOW)} {_shown(text)}\n")

    def dim(self, text: str) -> None:
        """A detail for people."""
        self._tell(self._paint(_shown(text), _DIM) + "\n")

    def error(self, error: AicrError) -> None:
        """An error for the person at 3 a.m.: what, why, where, and the next step."""
        chain = error.chain()
        lines = [f"{self._paint('error:', _RED)} [{error.code}] {_shown(chain[0].message)}"]
        lines += [f"  because: {_shown(cause.message)}" for cause in chain[1:]]
        places = _places(chain)
        if places:
            # A name may hold a line break, and what follows it would pass for a line of ours.
            lines.append(f"  where: {_shown(', '.join(places))}".replace("\n", "\\n"))
        hints = [link.hint for link in chain if link.hint]
        if hints:
            lines.append(f"  next: {_shown(hints[-1])}")
        self._tell("\n".join(lines) + "\n")

    def _tell(self, text: str) -> None:
        try:
            self.err.write(text)
        except (OSError, UnicodeEncodeError):
            # Nobody can be told that they cannot be told; the exit status still says it.
            pass

    def _paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_OFF}" if self._colour else text


def _places(chain: list[AicrError]) -> list[str]:
    """The places of an error, outermost first, without those that another one says as well."""
    stated = [link.where for link in chain if link.where]
    return [
        place
        for index, place in enumerate(stated)
        if place not in stated[:index]
        and not any(place in other for other in stated if other != place)
    ]


class _Closed:
    """A stream that is not there: nothing can be written to it."""

    def isatty(self) -> bool:
        return False

    def write(self, text: str) -> int:
        raise OSError("it is closed")

    def flush(self) -> None:
        """There is nothing to bring out."""

    def fileno(self) -> int:
        raise OSError("it is closed")


def _shown(text: str) -> str:
    """*text* without control characters, which a file could use to write over a terminal."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text) - _LONGEST} more characters)"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def _unwritable(reason: str) -> AicrError:
    return AicrError(
        INTERNAL,
        f"cannot write to standard output: {reason}",
        hint="what was printed is incomplete; make room or choose a file with --output",
    )
