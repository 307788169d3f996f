"""Reading the file that a ``--set-file`` flag names: the one part of overrides that does I/O.

Stricter than what reads recipes: neither standard input nor an address nor a pipe is taken, so that
the same command line makes the same bundle again, and no more than what fits a Helm release.
"""

from __future__ import annotations

import os

from aicr.errors import invalid, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Larger files are refused, in bytes; values of a chart have to fit a Helm release of 1 MiB.
MAX_VALUE_FILE: Final = 1024 * 1024

_HINT: Final = "--set-file takes component:path=<file>, relative to the current directory"


def read_value_file(path: str) -> str:
    """The text of a value file (bundler spec 1.3).

    Raises:
        AicrError: NOT_FOUND when there is no such file; INVALID_REQUEST for a directory or other
            special file, one that is too large, unreadable, or not UTF-8.
    """
    import stat

    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer before it can be refused.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise not_found(f"value file not found: {path}", where="--set-file", hint=_HINT) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise invalid(
            f"cannot read value file {path}: {reason}", where="--set-file", hint=_HINT
        ) from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise invalid(
                f"value file {path} is not a regular file", where="--set-file", hint=_HINT
            )
        content = b""
        while len(content) <= MAX_VALUE_FILE and (chunk := os.read(handle, 1 << 16)):
            content += chunk
    except OSError as error:
        raise invalid(
            f"cannot read value file {path}: {error.strerror}", where="--set-file", hint=_HINT
        ) from error
    finally:
        os.close(handle)
    if len(content) > MAX_VALUE_FILE:
        raise invalid(
            f"value file {path} is larger than {MAX_VALUE_FILE} bytes",
            where="--set-file",
            hint="keep large content in a manifest of the recipe instead of in values",
        )
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise invalid(
            f"value file {path} is not UTF-8 text (byte {error.start})",
            where="--set-file",
            hint="save the file as UTF-8",
        ) from error
