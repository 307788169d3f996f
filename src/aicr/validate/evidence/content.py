"""Holds the files of a bundle against what is claimed about them. Pure.

Each problem begins with the file that is wrong. Source: validators spec 9.3, 4.3, 12 item 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aicr import yamlio
from aicr.errors import AicrError
from aicr.snapshot import document as snapshots
from aicr.validate import redaction
from aicr.validate.evidence import bill, bundle, canonical, inventory, predicate

_COUNTS: Final = ("passed", "failed", "skipped", "other")

Files = Mapping[str, bytes]


def manifest_problems(files: Files, claims: predicate.Claims) -> list[str]:
    """Is the inventory the one that is claimed, and are the files those of the inventory."""
    found = inventory.examine(files)
    stated = claims.predicate["manifest"]
    data = files.get(inventory.MANIFEST)
    if data is None:
        return found
    if canonical.digest(data) != stated["digest"]:
        found.insert(0, f"{inventory.MANIFEST}: has another digest than the predicate says")
    if inventory.count(data) != stated.get("fileCount"):
        found.append(f"{inventory.MANIFEST}: lists another number of files than the predicate says")
    return found


def problems(files: Files, claims: predicate.Claims) -> tuple[list[str], list[str]]:
    """(what in the files is not as claimed, notices)."""
    found = []
    for check in (_recipe, _bom, _reports, _layout):
        try:
            found += check(files, claims)
        except AicrError as error:
            found.append(f"{error.where}: {error.message}" if error.where else error.message)
    redacted, notices = _redaction(files, claims)
    return found + redacted, notices


def _recipe(files: Files, claims: predicate.Claims) -> list[str]:
    data = files.get(bundle.RECIPE)
    if data is None:
        return [f"{bundle.RECIPE}: is missing"]
    document = _yaml(data, bundle.RECIPE)
    if not isinstance(document, dict):
        return [f"{bundle.RECIPE}: is not a recipe"]
    found = []
    said = claims.predicate["recipe"]
    form = canonical.recipe(document, keep_version=claims.legacy)
    if canonical.digest(form) != said["digest"]:
        found.append(f"{bundle.RECIPE}: has another digest than the predicate says")
    elif form != data:
        found.append(f"{bundle.RECIPE}: is not in canonical form")
    if canonical.recipe_name(document) != said["name"]:
        found.append(f"{bundle.RECIPE}: its criteria do not make the name {said['name']}")
    try:
        predicate.check_profile(claims.predicate.get("profile"), document)
    except AicrError as error:
        found.append(f"{bundle.RECIPE}: {error.message}")
    return found


def _bom(files: Files, claims: predicate.Claims) -> list[str]:
    data = files.get(bundle.BOM)
    if data is None:
        return [f"{bundle.BOM}: is missing"]
    made = bill.summary(data, bundle.BOM, canonical.digest(data))
    said = claims.predicate["bom"]
    return [
        f"{bundle.BOM}: its {key} is not what the predicate says"
        for key in made
        if made[key] != said.get(key)
    ]


def _reports(files: Files, claims: predicate.Claims) -> list[str]:
    found = []
    for phase, said in claims.predicate["phases"].items():
        path = bundle.report_path(phase)
        data = files.get(path)
        if data is None:
            found.append(f"{path}: is missing")
            continue
        if canonical.digest(data) != said["ctrfDigest"]:
            found.append(f"{path}: has another digest than the predicate says")
        report = _report(data, path)
        if report is None:
            found.append(f"{path}: is not a CTRF report")
            continue
        counts = predicate.phase_counts(report, said["ctrfDigest"])
        if any(counts.get(key, 0) != (said.get(key) or 0) for key in _COUNTS):
            found.append(f"{path}: its counts are not what the predicate says")
    return found


def _layout(files: Files, claims: predicate.Claims) -> list[str]:
    """Files that no bundle has; a listed file may still be one that nobody looks at."""
    known = {bundle.RECIPE, bundle.SNAPSHOT, bundle.BOM, *inventory.EXCLUDED}
    known |= {bundle.report_path(phase) for phase in claims.predicate["phases"]}
    return [f"{path}: does not belong into the bundle" for path in sorted(set(files) - known)]


def _redaction(files: Files, claims: predicate.Claims) -> tuple[list[str], list[str]]:
    """Is a bundle that says it is redacted what redaction makes of it."""
    said = claims.predicate.get("redaction")
    if bundle.SNAPSHOT not in files:
        return [f"{bundle.SNAPSHOT}: is missing"], []
    try:
        snapshot = _yaml(files[bundle.SNAPSHOT], bundle.SNAPSHOT)
        snapshots.validate(snapshot, bundle.SNAPSHOT)
    except AicrError as error:
        return [f"{bundle.SNAPSHOT}: {error.message}"], []
    if said is None:
        return [], ["the bundle is not redacted (--full): do not publish it"]
    if not isinstance(said, dict) or said.get("policy") != redaction.POLICY:
        return [f"{inventory.STATEMENT}: names a redaction policy that is not known"], []
    version = said.get("version")
    if version not in redaction.KNOWN_VERSIONS:
        return [f"{inventory.STATEMENT}: redaction policy version {version!r} is not known"], []
    if version != redaction.VERSION:
        return [], [
            f"redacted by version {version} of the policy; only version {redaction.VERSION} can be "
            "applied again"
        ]
    found = []
    if said != redaction.record():
        found.append(f"{inventory.STATEMENT}: does not list the rules of its redaction policy")
    if canonical.text(redaction.redact_snapshot(snapshot)) != files[bundle.SNAPSHOT]:
        found.append(f"{bundle.SNAPSHOT}: is not what redaction makes of it")
    for phase in claims.predicate["phases"]:
        path = bundle.report_path(phase)
        report = _report(files.get(path, b""), path)
        if report is not None and inventory.dump(redaction.redact_report(report)) != files[path]:
            found.append(f"{path}: is not what redaction makes of it")
    if any(key in claims.predicate.get("fingerprint", {}) for key in predicate.WITHHELD):
        found.append(f"{inventory.STATEMENT}: its fingerprint holds what redaction leaves out")
    return found, []


def _report(data: bytes, path: str) -> dict[str, Any] | None:
    """A CTRF report whose tests can be counted; None for anything else."""
    try:
        document = inventory.load(data, path)
    except AicrError:
        return None
    results = document.get("results") if isinstance(document, dict) else None
    tests = results.get("tests") if isinstance(results, dict) else None
    if not isinstance(tests, list):
        return None
    if not all(isinstance(test, dict) and isinstance(test.get("status"), str) for test in tests):
        return None
    found: dict[str, Any] = document
    return found


def _yaml(data: bytes, source: str) -> Any:
    return yamlio.read_fast(yamlio.decode(data, source=source), source=source)
