"""Files that are there whole or not at all, with exact modes.

```
bytes --write_new--> a new file, unreadable to others until it is whole
bytes --replace--> hidden sibling --rename--> the file's place
```
A full disk, a place without rights, Ctrl-C or a request to end leaves what was there before, and nothing
else. The disk is not told to flush: a rename never shows half a file, and a power cut is met by running
the command again.

Every start of a command may come here, so this imports only what Python has loaded by then. It must not
know what is written, nor say in words what went wrong: that is for whoever knows the flag.
Source: decision 44.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Failures that are the name's, whatever the state of the disk: too long, a link that leads to itself.
BAD_NAMES: Final = (errno.ENAMETOOLONG, errno.ELOOP)


def sibling(place: str) -> str:
    """A new hidden name beside *place*, so that a rename stays within one file system."""
    return os.path.join(os.path.dirname(place), f".aicr-{os.urandom(6).hex()}")


def write_all(handle: int, data: bytes) -> None:
    """Write all of *data*: the system may take a part at a time.

    Raises:
        OSError: as the system says it.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def write_new(path: str, data: bytes, mode: int) -> None:
    """Make the file *path*, whatever the umask; what a failure leaves is the caller's to remove.

    Raises:
        OSError: as the system says it; FileExistsError if something is there, a link included.
    """
    # Made unreadable to others first: some of these files hold secrets.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        write_all(handle, data)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def replace(place: str, data: bytes, mode: int) -> None:
    """Put a file at *place*; a link there is replaced and not followed.

    Raises:
        OSError: as the system says it; the place is as it was then.
    """
    scratch = sibling(place)
    try:
        write_new(scratch, data, mode)
        os.replace(scratch, place)
    except BaseException:
        discard(scratch)
        raise


def discard(path: str) -> None:
    """Remove a file that may not be there.

    Raises:
        OSError: as the system says it.
    """
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
