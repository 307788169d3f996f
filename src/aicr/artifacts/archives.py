"""Opens a tar.gz that comes from elsewhere, no further than it can be meant.

```
bytes --opened(most)--> tarfile whose headers and sum are bounded | AicrError
```
A few KiB can unpack to any size, also where no file is: in the headers, which tarfile holds in
memory, or between them. And a broken archive shows itself in more ways than tarfile's own error.

It must not know what an archive is for; names and kinds of members are for whoever reads it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from typing import Final

from aicr.errors import invalid

#: What reading a broken archive raises: the libraries' errors, and tarfile's trips over odd headers.
BROKEN: Final = (tarfile.TarError, OSError, EOFError, ValueError, zlib.error)
#: Largest single read, which is a header that tells more about a member, such as a long name.
#: Whoever reads members reads them in blocks of this or less.
BLOCK: Final = 1024 * 1024


class _Bounded(gzip.GzipFile):
    most = 0

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0 or size > BLOCK:
            raise invalid(f"the archive has a header of {size} bytes")
        data = super().read(size)
        if self.tell() > self.most:
            raise invalid(f"the archive holds more than {self.most} bytes")
        return data


@contextlib.contextmanager
def opened(data: bytes, *, most: int) -> Iterator[tarfile.TarFile]:
    """The archive *data*, of which at most *most* bytes are unpacked.

    Raises:
        AicrError: INVALID_REQUEST, also while it is read, for a header or a sum without measure.
            What is no archive raises one of ``BROKEN``.
    """
    with _Bounded(fileobj=io.BytesIO(data), mode="rb") as plain:
        plain.most = most
        with tarfile.open(fileobj=plain, mode="r:") as archive:
            yield archive


def content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """The bytes of a member; b"" for one that has none."""
    stream = archive.extractfile(member)
    held = bytearray()
    while block := stream.read(BLOCK) if stream is not None else b"":
        held += block
    return bytes(held)
