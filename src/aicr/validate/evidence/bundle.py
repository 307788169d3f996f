"""Builds a bundle of evidence in memory: the files of ``summary-bundle`` and their statement.

```
recipe.yaml     canonical recipe          ctrf/<phase>.json      each phase's report
snapshot.yaml   what may be published     manifest.json          digests of all of these
bom.cdx.json    bill of materials         statement.intoto.json  the claim, not signed
```
Snapshot and reports are redacted copies unless everything is asked for; what is said about the match of
recipe and cluster is taken from the raw snapshot. The bundle is made whether or not checks failed: the
claim says how many. Pure; the time and the bound are handed in. Source: validators spec 9.3, 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.errors import invalid
from aicr.snapshot.fingerprint import fingerprint
from aicr.validate import redaction
from aicr.validate.evidence import bill, canonical, inventory, predicate
from aicr.validate.evidence.bounded import Deadline

RECIPE: Final = "recipe.yaml"
SNAPSHOT: Final = "snapshot.yaml"
BOM: Final = "bom.cdx.json"
CTRF: Final = "ctrf"

_LOGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s@:]+:[^/\s@]+@", re.IGNORECASE)

Document = dict[str, Any]
Files = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Content:
    """What a bundle is made of.

    Attributes:
        recipe, snapshot: the documents, raw.
        reports: phase → its CTRF report, raw.
        images: of the checks in use.
        catalog_version: of the catalogue of checks.
        version: of this program.
        attested_at: RFC 3339 in UTC, to the second.
        full: publish everything.
        bom: a bill that somebody made before; b"" to make one.
        known_images: names of images that a redacted bill may have.
    """

    recipe: Mapping[str, Any]
    snapshot: Mapping[str, Any]
    reports: Mapping[str, Mapping[str, Any]]
    images: Collection[str]
    catalog_version: str
    version: str
    attested_at: str
    full: bool = False
    bom: bytes = b""
    known_images: Collection[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that is built.

    Attributes:
        files: path in ``summary-bundle`` → bytes.
        predicate: what it claims.
    """

    files: Files
    predicate: Document

    @property
    def name(self) -> str:
        """What its recipe is called."""
        return str(self.predicate["recipe"]["name"])


def build(content: Content, deadline: Deadline) -> Bundle:
    """The bundle of a run.

    Raises:
        AicrError: INVALID_REQUEST without recipe, snapshot or reports, for a recipe that holds a
            login, and for a bill that is none; TIMEOUT past the deadline.
    """
    _require(content)
    recipe = canonical.recipe(content.recipe)
    seen = fingerprint(content.snapshot)
    shown = seen if content.full else _publishable(seen)
    reports = {
        phase: dict(given) if content.full else redaction.redact_report(given) or {}
        for phase, given in content.reports.items()
    }
    snapshot = dict(content.snapshot)
    if not content.full:
        snapshot = redaction.redact_snapshot(content.snapshot) or {}
    deadline.check()
    files: Files = {RECIPE: recipe, SNAPSHOT: canonical.text(snapshot)}
    deadline.check()
    files[BOM] = content.bom or bill.made(
        content.recipe,
        sorted(content.images),
        content.snapshot,
        version=content.version,
        known=None if content.full else content.known_images,
    )
    phases = {}
    for phase in predicate.PHASES:
        if phase in reports:
            data = inventory.dump(reports[phase])
            files[report_path(phase)] = data
            phases[phase] = predicate.phase_counts(reports[phase], canonical.digest(data))
    deadline.check()
    manifest = inventory.manifest(files)
    name = canonical.recipe_name(content.recipe)
    made: Document = {
        "schemaVersion": predicate.SCHEMA_VERSION,
        "attestedAt": content.attested_at,
        "aicrVersion": content.version,
        "validatorCatalogVersion": content.catalog_version,
        "validatorImages": predicate.validator_images(list(content.images)),
        "recipe": {"name": name, "digest": canonical.digest(recipe)},
        "fingerprint": shown,
        "criteriaMatch": predicate.criteria_match(content.recipe, seen),
        "phases": phases,
        "bom": bill.summary(files[BOM], BOM, canonical.digest(files[BOM])),
        "manifest": {"digest": canonical.digest(manifest), "fileCount": len(files)},
    }
    if not content.full:
        made["redaction"] = redaction.record()
    profile = predicate.profile_of(content.recipe)
    if profile is not None:
        made["profile"] = profile
        predicate.check_profile(profile, content.recipe)
    files[inventory.MANIFEST] = manifest
    subject = f"{predicate.RECIPE_SUBJECT}{name}"
    files[inventory.STATEMENT] = predicate.statement(made, subject, canonical.digest(recipe))
    deadline.check()
    return Bundle(files, made)


def report_path(phase: str) -> str:
    """Where the report of a phase lies."""
    return f"{CTRF}/{phase}.json"


def logins(document: Any, place: str = "") -> Iterator[str]:
    """Places of texts that hold an address with a login in it."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from logins(value, f"{place}.{key}" if place else str(key))
    elif isinstance(document, list):
        for number, value in enumerate(document):
            yield from logins(value, f"{place}[{number}]")
    elif isinstance(document, str) and _LOGIN.search(document):
        yield place


def _require(content: Content) -> None:
    if not content.recipe:
        raise invalid("evidence needs a recipe", where="--recipe")
    if not content.snapshot:
        raise invalid("evidence needs a snapshot", where="--snapshot")
    if not any(phase in content.reports for phase in predicate.PHASES):
        raise invalid("evidence needs the results of a phase", where="--emit-attestation")
    found = [] if content.full else list(logins(content.recipe))
    if found:
        # The recipe is what the evidence is about, so nothing of it can be left out.
        raise invalid(
            f"the recipe holds an address with a login at {', '.join(found[:3])}, and evidence "
            "publishes the recipe as it is",
            where="--emit-attestation",
            hint="take the login out of the recipe; no evidence was written",
        )


def _publishable(seen: Mapping[str, Any]) -> Document:
    return {key: value for key, value in seen.items() if key not in predicate.WITHHELD}
