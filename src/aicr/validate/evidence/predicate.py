"""What a bundle of evidence claims: the predicate, and the in-toto statement around it.

```
facts of a run ──predicate──► predicate ──statement(subject)──► bytes that are signed
bytes ──parse──► Claims, after a signature over them was checked, or when nobody vouches
```
The subject is the recipe while nothing is pushed, and the artifact in the registry afterwards; the
predicate is the same. Version 3 is what is written; 1 (never with a profile) and 2 (always with one)
are still read. A phase counts ``other`` beside the three counts of the original when there is any, so
that a crashed check does not read as nothing. Pure. Source: validators spec 9.3, 12 item 7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.contract import ctrf
from aicr.errors import AicrError, invalid
from aicr.validate.evidence import canonical, inventory

SCHEMA_VERSION: Final = "1.0.0"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
_TYPE_PREFIX: Final = "https://aicr.run/recipe-evidence/"
V1: Final = f"{_TYPE_PREFIX}v1"
V2: Final = f"{_TYPE_PREFIX}v2"
V3: Final = f"{_TYPE_PREFIX}v3"
#: What can be verified.
TYPES: Final = (V1, V2, V3)
RECIPE_SUBJECT: Final = "recipe:"
PHASES: Final = ("deployment", "performance", "conformance")
#: Criteria that a snapshot can speak about.
MATCHED: Final = ("service", "accelerator", "os")
#: Of the fingerprint, what can be a customer's word: the region label of an own data centre.
WITHHELD: Final = ("region",)

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SELECTION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*=[A-Za-z0-9][A-Za-z0-9._-]*")
_REQUIRED: Final = ("schemaVersion", "attestedAt", "recipe", "phases", "bom", "manifest")

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Claims:
    """A statement that was read.

    Attributes:
        type: its predicate type, one of `TYPES`.
        subject: name of its subject.
        digest: sha256 of its subject.
        predicate: the predicate.
    """

    type: str
    subject: str
    digest: str
    predicate: Document

    @property
    def legacy(self) -> bool:
        """Whether the recipe's digest is over the older canonical form."""
        return self.type != V3

    @property
    def recipe_name(self) -> str:
        """What the recipe is called."""
        return str(self.predicate["recipe"]["name"])


def criteria_match(recipe: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> Document:
    """Which of the recipe's criteria the snapshot bears out; ``unknown`` when it does not say."""
    criteria = recipe.get("criteria") or {}
    found: Document = {}
    for key in MATCHED:
        wanted = criteria.get(key)
        if not wanted or wanted == "any":
            continue
        seen = fingerprint.get(key)
        result = "unknown" if seen is None else "match" if seen == wanted else "mismatch"
        found[key] = {"recipe": wanted, "result": result}
        if seen is not None:
            found[key]["snapshot"] = seen
    matched = all(entry["result"] == "match" for entry in found.values())
    return {"matched": matched, "criteria": found}


def phase_counts(report: Mapping[str, Any], digest: str) -> Document:
    """The counts of one phase's report; ``other`` only when there is any."""
    counted = ctrf.counted(report["results"]["tests"])
    made: Document = {key: counted[key] for key in (ctrf.PASSED, ctrf.FAILED, ctrf.SKIPPED)}
    other = counted[ctrf.OTHER] + counted[ctrf.PENDING]
    if other:
        made[ctrf.OTHER] = other
    return {**made, "ctrfDigest": digest}


def validator_images(references: Sequence[str]) -> list[Document]:
    """Each image once, sorted; digests are empty, because the catalogue pins tags."""
    return [{"image": image, "digest": ""} for image in sorted(set(references))]


def profile_of(recipe: Mapping[str, Any]) -> Document | None:
    """The profile block of a recipe; None when it selects none.

    The identity of the policy is a digest over everything that the recipe says about the choice,
    the owned paths among it, so that a changed policy is another one.
    """
    selected = (recipe.get("metadata") or {}).get("selectedProfile")
    if not selected:
        return None
    text = json.dumps(selected, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    made: Document = {"selection": f"{selected.get('name', '')}={selected.get('value', '')}"}
    if selected.get("advertiser"):
        made["advertiser"] = str(selected["advertiser"])
    made["policyDescriptorIdentity"] = f"sha256:{canonical.digest(text.encode())}"
    return made


def check_profile(block: Any, recipe: Mapping[str, Any]) -> None:
    """Hold a predicate's profile block against the recipe in the same bundle.

    Raises:
        AicrError: INVALID_REQUEST when one lacks what the other has, or they differ.
    """
    expected = profile_of(recipe)
    if block is None and expected is None:
        return
    if not isinstance(block, dict) or not _SELECTION.fullmatch(str(block.get("selection") or "")):
        raise invalid("the profile block needs a selection NAME=VALUE", where="predicate.profile")
    if not block.get("policyDescriptorIdentity"):
        raise invalid(
            "the profile block needs a policyDescriptorIdentity", where="predicate.profile"
        )
    for key in ("selection", "advertiser", "policyDescriptorIdentity"):
        if block.get(key) != (expected or {}).get(key):
            raise invalid(
                f"the bundle's recipe and the predicate disagree on the profile's {key}",
                where="predicate.profile",
            )


def statement(predicate: Mapping[str, Any], subject: str, digest: str, type_: str = V3) -> bytes:
    """The statement about one subject, as canonical JSON.

    Raises:
        AicrError: INVALID_REQUEST when *digest* is not 64 lower-case hex digits, or for a type that
            is not known.
    """
    if not _SHA256.fullmatch(digest):
        raise invalid(f"the digest of {subject} is not 64 lower-case hex digits")
    if type_ not in TYPES:
        raise _unknown_type(type_, "predicateType")
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": subject, "digest": {"sha256": digest}}],
        "predicateType": type_,
        "predicate": predicate,
    }
    return (
        json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    ).encode()


def parse(data: bytes, source: str) -> Claims:
    """The claims of a statement.

    Raises:
        AicrError: INVALID_REQUEST for another kind of document, a predicate type that is not known,
            and a predicate that lacks what its type must have.
    """
    document = inventory.load(data, source)
    if not isinstance(document, dict) or document.get("_type") != STATEMENT_TYPE:
        raise invalid("not an in-toto statement v1", where=source)
    type_ = document.get("predicateType")
    if type_ not in TYPES:
        raise _unknown_type(type_, source)
    subjects = document.get("subject")
    if not isinstance(subjects, list) or len(subjects) != 1 or not isinstance(subjects[0], dict):
        raise invalid("the statement must have one subject", where=source)
    name = subjects[0].get("name")
    digests = subjects[0].get("digest")
    digest = digests.get("sha256") if isinstance(digests, dict) else None
    if not isinstance(name, str) or not name:
        raise invalid("the statement's subject has no name", where=source)
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise invalid("the sha256 of the statement's subject is not 64 hex digits", where=source)
    found = document.get("predicate")
    return Claims(str(type_), name, digest, _checked(found, str(type_), source))


def _checked(found: Any, type_: str, source: str) -> Document:
    if not isinstance(found, dict) or found.get("schemaVersion") != SCHEMA_VERSION:
        raise invalid(f"the predicate is not of schema version {SCHEMA_VERSION}", where=source)
    for key in _REQUIRED:
        if not found.get(key):
            raise invalid(f"the predicate has no {key}", where=source)
    for holder, key in (
        ("recipe", "name"),
        ("recipe", "digest"),
        ("manifest", "digest"),
        ("bom", "digest"),
    ):
        held = found[holder]
        if not isinstance(held, dict) or not isinstance(held.get(key), str) or not held[key]:
            raise invalid(f"the predicate has no {holder}.{key}", where=source)
    if not canonical.is_segment(found["recipe"]["name"]):
        raise invalid("the predicate's recipe.name is not one segment of a path", where=source)
    phases = found["phases"]
    if not isinstance(phases, dict) or not set(phases) <= set(PHASES):
        raise invalid("the predicate speaks of phases that there are not", where=source)
    for phase, counts in phases.items():
        if not isinstance(counts, dict) or not isinstance(counts.get("ctrfDigest"), str):
            raise invalid(f"the predicate has no digest of phase {phase}", where=source)
    if type_ == V1 and "profile" in found:
        raise invalid("evidence of version 1 has no profile block", where=source)
    if type_ == V2 and "profile" not in found:
        raise invalid("evidence of version 2 must have a profile block", where=source)
    made: Document = found
    return made


def _unknown_type(type_: object, source: str) -> AicrError:
    return invalid(
        f"predicate type {type_!r} is not known", where=source, hint=f"known: {', '.join(TYPES)}"
    )
