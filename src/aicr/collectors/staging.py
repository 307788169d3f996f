"""How the agent hands its snapshot to whoever started it: compressed, in as many ConfigMaps as it takes.

A ConfigMap holds one mebibyte and a snapshot of some thousand nodes is larger, while a container's log
is rotated away. So the document travels as compressed JSON, cut into parts that fit; the first part
names how many there are and the digest of the whole, and is written last. A reader that finds it finds
all of them, and a part that is lost or foreign shows in the digest.

Pure: ConfigMaps in and out are plain documents. Source: validators spec 1.1 (capture), 3.9.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aicr.collectors.readings import Document
from aicr.contract import labels
from aicr.errors import INTERNAL, AicrError

#: Bytes of a part before base64 makes 4 of 3; the whole object stays below 1 MiB.
PART: Final = 700 * 1024
#: Bytes of a snapshot that is taken for one, uncompressed.
LARGEST: Final = 512 * 1024 * 1024
KEY: Final = "snapshot.json.gz"
PARTS: Final = f"{labels.DOMAIN}/parts"
DIGEST: Final = f"{labels.DOMAIN}/sha256"


def pack(document: Mapping[str, Any]) -> list[bytes]:
    """The parts of a snapshot, at least one."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    packed = gzip.compress(text, compresslevel=6, mtime=0)
    return [packed[at : at + PART] for at in range(0, len(packed), PART)]


def config_maps(
    parts: Sequence[bytes], *, name: str, namespace: str, marks: Mapping[str, str]
) -> list[Document]:
    """ConfigMaps that hold *parts*, the first one last; *marks* are their labels."""
    digest = hashlib.sha256(b"".join(parts)).hexdigest()
    found = []
    for number, part in enumerate(parts):
        metadata: Document = {
            "name": part_name(name, number),
            "namespace": namespace,
            "labels": dict(marks),
        }
        if number == 0:
            metadata["annotations"] = {PARTS: str(len(parts)), DIGEST: digest}
        found.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata,
                "binaryData": {KEY: base64.b64encode(part).decode()},
            }
        )
    return found[::-1]


def part_name(name: str, number: int) -> str:
    """Name of the ConfigMap of part *number*, counted from 0."""
    return name if number == 0 else f"{name}-{number + 1}"


def count_of(first: Mapping[str, Any]) -> int:
    """How many parts the first one names; INTERNAL if it names none."""
    text = ((first.get("metadata") or {}).get("annotations") or {}).get(PARTS, "")
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1000):
        raise _broken(first, "it does not say of how many parts it is the first")
    return int(text)


def unpack(found: Sequence[Mapping[str, Any]]) -> Document:
    """The snapshot from its ConfigMaps, first part first.

    Raises:
        AicrError: INTERNAL if a part is missing or another run's, or the text is no JSON.
    """
    first = found[0]
    try:
        packed = b"".join(
            base64.b64decode((one.get("binaryData") or {})[KEY], validate=True) for one in found
        )
    except (KeyError, ValueError) as error:
        raise _broken(first, f"a part has no {KEY}") from error
    said = ((first.get("metadata") or {}).get("annotations") or {}).get(DIGEST)
    if hashlib.sha256(packed).hexdigest() != said:
        raise _broken(first, "its parts do not have the digest that it states")
    try:
        inflater = zlib.decompressobj(wbits=31)
        text = inflater.decompress(packed, LARGEST)
        if inflater.unconsumed_tail or not inflater.eof:
            raise _broken(first, f"it is longer than {LARGEST} bytes, or cut")
        document: Document = json.loads(text)
    except (zlib.error, ValueError) as error:
        raise _broken(first, "it is no compressed JSON") from error
    return document


def _broken(first: Mapping[str, Any], why: str) -> AicrError:
    metadata = first.get("metadata") or {}
    return AicrError(
        INTERNAL,
        f"the snapshot that the agent left cannot be read: {why}",
        where=f"cm://{metadata.get('namespace', '')}/{metadata.get('name', '')}",
        hint="run it again",
    )
