"""The pointer: a small file that says where evidence is published, and who signed it.

It is what goes into a repository instead of the evidence. Its place there is made of the recipe's name,
the signer and the digest, each checked to be a plain segment first. A pointer that nobody signed yet lies
flat; once it is signed it moves to its own place, without ever overwriting another one. Source:
validators spec 9.4.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr import yamlio
from aicr.artifacts import whole_files
from aicr.errors import CONFLICT, AicrError, invalid
from aicr.validate.evidence import canonical
from aicr.values import references

SCHEMA_VERSION: Final = "1.0.0"
ROOT: Final = "recipes/evidence"
_LONGEST_SLUG: Final = 80
_POINTER_MODE: Final = 0o644

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signed: the identity, who vouched for it ("" for a key), and the log entry if any."""

    identity: str
    issuer: str = ""
    log_index: int | None = None

    def document(self) -> Document:
        """Its form in a pointer."""
        made: Document = {"identity": self.identity, "issuer": self.issuer}
        if self.log_index is not None:
            made["rekorLogIndex"] = self.log_index
        return made


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer that was read.

    Attributes:
        recipe: name of the recipe.
        oci, digest: where the bundle is; both "" when it was not pushed.
        type: predicate type.
        attested_at: as in the predicate.
        signer: None when nobody signed.
        profile: the profile block, or None.
    """

    recipe: str
    oci: str
    digest: str
    type: str
    attested_at: str
    signer: Signer | None
    profile: Any = None


def document(
    predicate: Mapping[str, Any],
    type_: str,
    *,
    oci: str = "",
    digest: str = "",
    signer: Signer | None = None,
) -> Document:
    """The pointer to a bundle with that predicate."""
    attestation: Document = {"bundle": {"oci": oci, "digest": digest, "predicateType": type_}}
    if signer is not None:
        attestation["signer"] = signer.document()
    attestation["attestedAt"] = predicate["attestedAt"]
    made: Document = {"schemaVersion": SCHEMA_VERSION, "recipe": predicate["recipe"]["name"]}
    if "profile" in predicate:
        made["profile"] = predicate["profile"]
    return {**made, "attestations": [attestation]}


def parse(data: bytes, source: str) -> Pointer:
    """The pointer in *data*.

    Raises:
        AicrError: INVALID_REQUEST for what is no pointer, holds not exactly one attestation, or
            names a digest that is none.
    """
    found = yamlio.read_fast(yamlio.decode(data, source=source), source=source)
    if not isinstance(found, dict) or found.get("schemaVersion") != SCHEMA_VERSION:
        raise invalid(
            f"not a pointer of schema version {SCHEMA_VERSION}",
            where=source,
            hint="name pointer.yaml, the folder that it is in, or an oci:// address",
        )
    attestations = found.get("attestations")
    if not isinstance(attestations, list) or len(attestations) != 1:
        raise invalid("a pointer has exactly one attestation", where=source)
    entry = attestations[0]
    bundle = entry.get("bundle") if isinstance(entry, dict) else None
    if not isinstance(bundle, dict):
        raise invalid("the pointer's attestation names no bundle", where=source)
    texts = [bundle.get(key, "") for key in ("oci", "digest", "predicateType")]
    texts += [found.get("recipe"), entry.get("attestedAt")]
    if not all(isinstance(text, str) for text in texts):
        raise invalid("the pointer's fields must be text", where=source)
    oci, digest, type_, recipe, attested_at = (str(text) for text in texts)
    if not canonical.is_segment(recipe):
        raise invalid("the pointer's recipe is not one segment of a path", where=source)
    if bool(oci) != bool(digest) or (digest and not references.is_digest(digest)):
        raise invalid("the pointer's bundle needs an address and a sha256 digest", where=source)
    return Pointer(
        recipe, oci, digest, type_, attested_at, _signer(entry, source), found.get("profile")
    )


def _signer(entry: Mapping[str, Any], source: str) -> Signer | None:
    if "signer" not in entry:
        return None
    held = entry["signer"]
    identity = held.get("identity") if isinstance(held, dict) else None
    if not isinstance(identity, str) or not identity:
        raise invalid("the pointer's signer has no identity", where=source)
    index = held.get("rekorLogIndex")
    return Signer(identity, str(held.get("issuer") or ""), index if type(index) is int else None)


def commit_path(recipe: str, digest: str = "", signer: Signer | None = None) -> str:
    """Where the pointer belongs in a repository.

    Raises:
        AicrError: INVALID_REQUEST for a recipe or digest that cannot be part of a path.
    """
    if not canonical.is_segment(recipe):
        raise invalid(f"{recipe!r} is not one segment of a path", where="recipe")
    if signer is None:
        return f"{ROOT}/{recipe}.yaml"
    if not references.is_digest(digest):
        raise invalid(f"{digest!r} is not sha256: and 64 lower-case hex digits", where="digest")
    return f"{ROOT}/{recipe}/{source_slug(signer)}/{digest.replace(':', '-')}.yaml"


def source_slug(signer: Signer) -> str:
    """One segment for who signed: the issuer's host and the identity, and a part of their digest,
    so that two signers never share it."""
    host = urllib.parse.urlsplit(signer.issuer).hostname or "key"
    identity = signer.identity.partition("://")[2] or signer.identity
    words = re.sub(r"[^a-z0-9]+", "-", f"{host}-{identity}".lower()).strip("-")
    mark = canonical.digest(f"{signer.issuer}\n{signer.identity}".encode())[:8]
    return f"{words[:_LONGEST_SLUG].strip('-')}-{mark}"


def place(root: str, data: bytes) -> str:
    """Put a pointer into the repository at *root*; its path there.

    A signed pointer takes its own place with a hard link, which never replaces a file; the flat one
    of the same recipe is removed when it was the same bundle. Doing it twice changes nothing.

    Raises:
        AicrError: CONFLICT when another file has that place; INVALID_REQUEST when it cannot be
            written.
    """
    found = parse(data, "the pointer")
    path = commit_path(found.recipe, found.digest, found.signer)
    target = os.path.join(root, *path.split("/"))
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if found.signer is None:
            _claim(target, data, path)
            return path
        _claim(target, data, path)
        flat = os.path.join(root, *commit_path(found.recipe).split("/"))
        if os.path.isfile(flat) and not os.path.islink(flat):
            with open(flat, "rb") as stream:
                older = parse(stream.read(), flat)
            if older.signer is None and older.digest in ("", found.digest):
                os.unlink(flat)
    except OSError as error:
        raise invalid(
            f"{path} cannot be written below {root}: {error.strerror or error}",
            where="--pointers-dir",
            hint="name the root of a repository in which you may write",
        ) from error
    return path


def _claim(target: str, data: bytes, path: str) -> None:
    """Make *target* hold *data* unless it holds something else."""
    scratch = whole_files.sibling(target)
    try:
        whole_files.write_new(scratch, data, _POINTER_MODE)
        os.link(scratch, target)
    except FileExistsError:
        with open(target, "rb") as stream:
            same = stream.read() == data
        if not same:
            raise AicrError(
                CONFLICT,
                f"{path} is there and says something else",
                where="--pointers-dir",
                hint="look at what it points to; remove it if this one replaces it",
            ) from None
    finally:
        whole_files.discard(scratch)
