"""The ``minimal`` redaction policy: what of a snapshot and a report may be published.

Everything is an allow-list, down to the values of `extra`: a key or value that nobody thought of is
dropped. Names of nodes, addresses, logs and messages never pass. The documents given are not changed,
redacting twice changes nothing, and the list of applied rules is constant, so that the record of the
policy is the same bytes in every run. `VERSION` counts up with every change of a rule or of a closed
set.

```
1  snapshot allow-list; stdout and message left out     2  extra allow-list
3  runtimeSource, bounded provenance                    4  skip code named-in-skip-checks
5  extra.code (decision 62)
```

Pure. Source: validators spec 4.2, 4.3, 12 item 4; requirements V-171 to V-181; decision 62.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any, Final

from aicr.contract import sentinels
from aicr.validate.provenance_bound import bound

POLICY: Final = "minimal"
VERSION: Final = 5
#: Policy versions that a verifier knows.
KNOWN_VERSIONS: Final = (1, 2, 3, 4, 5)
RULES: Final = (
    "ctrf.tests.extra.allowlist",
    "ctrf.tests.omit:message",
    "ctrf.tests.omit:stdout",
    "ctrf.tests.runtimeProvenance.bound",
    "snapshot.header.allowlist",
    "snapshot.measurements.allowlist",
)

#: Measurement type and subtype → keys that are published.
MEASUREMENTS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("K8s", "server"): ("version", "platform", "goVersion"),
    ("K8s", "node"): (
        *("provider", "kubelet-version", "kernel-version", "operating-system", "os-image"),
        *("container-runtime-name", "container-runtime-version"),
    ),
    ("GPU", "hardware"): (
        *("gpu-present", "gpu-count", "driver-loaded", "detection-source", "model"),
    ),
    ("OS", "release"): (
        *("ID", "ID_LIKE", "NAME", "PRETTY_NAME", "VERSION", "VERSION_ID", "VERSION_CODENAME"),
    ),
    ("NodeTopology", "summary"): ("node-count", "taint-count", "label-count"),
}
_HEADER: Final = ("kind", "apiVersion")
_METADATA: Final = ("timestamp", "version")
_REPORT: Final = ("reportFormat", "specVersion", "timestamp", "generatedBy")
_RESULTS: Final = ("tool", "summary")
_TEST: Final = ("name", "status", "duration", "suite")
_COUNT: Final = re.compile(r"[0-9]{1,5}")
_CODES: Final[dict[str, frozenset[str]]] = {
    sentinels.SKIP_REASON: sentinels.SKIP_REASONS,
    sentinels.RUNTIME_SOURCE: sentinels.RUNTIME_SOURCES,
    sentinels.CODE: sentinels.COULD_NOT_TELL,
}
_COUNTS: Final = (sentinels.NODES_VALIDATED, sentinels.NODES_TOTAL)

Document = dict[str, Any]


def record() -> Document:
    """What an evidence predicate says about the policy; the same in every run."""
    return {"policy": POLICY, "version": VERSION, "applied": list(RULES)}


def redact_snapshot(snapshot: Mapping[str, Any] | None) -> Document | None:
    """The publishable part of a snapshot document; None for None."""
    if snapshot is None:
        return None
    made = {key: snapshot[key] for key in _HEADER if key in snapshot}
    metadata = _texts(snapshot.get("metadata"), _METADATA)
    if metadata:
        made["metadata"] = metadata
    if "fingerprint" in snapshot:
        made["fingerprint"] = copy.deepcopy(snapshot["fingerprint"])
    measurements = []
    for measurement in _maps(snapshot.get("measurements")):
        subtypes = [
            kept
            for subtype in _maps(measurement.get("subtypes"))
            if (kept := _subtype(measurement.get("type"), subtype))
        ]
        if subtypes:
            measurements.append({"type": measurement["type"], "subtypes": subtypes})
    made["measurements"] = measurements
    return made


def redact_report(report: Mapping[str, Any] | None) -> Document | None:
    """The publishable part of a CTRF report; None for None."""
    if report is None:
        return None
    made = {key: report[key] for key in _REPORT if key in report}
    given = report.get("results") or {}
    results = {key: copy.deepcopy(given[key]) for key in _RESULTS if key in given}
    results["tests"] = [redact_test(test) for test in _maps(given.get("tests"))]
    if given.get("environment"):
        results["environment"] = copy.deepcopy(given["environment"])
    made["results"] = results
    return made


def redact_test(test: Mapping[str, Any]) -> Document:
    """The publishable part of one entry of ``results.tests``."""
    made = {key: copy.deepcopy(test[key]) for key in _TEST if key in test}
    extra = filter_extra(test.get("extra"))
    if extra:
        made["extra"] = extra
    provenance = bound(test.get("runtimeProvenance"))
    if provenance:
        made["runtimeProvenance"] = provenance
    return made


def filter_extra(extra: Any) -> dict[str, str]:
    """The entries of an `extra` map whose key and value are both in the closed sets."""
    if not isinstance(extra, Mapping):
        return {}
    return {
        key: value
        for key, value in extra.items()
        if isinstance(value, str) and _allowed(key, value)
    }


def _allowed(key: object, value: str) -> bool:
    if key in _COUNTS:
        return _COUNT.fullmatch(value) is not None
    return isinstance(key, str) and value in _CODES.get(key, ())


def _subtype(type_: object, subtype: Mapping[str, Any]) -> Document | None:
    """A subtype with its publishable keys; None when none is left."""
    keys = MEASUREMENTS.get((str(type_), str(subtype.get("subtype"))), ())
    data = _texts(subtype.get("data"), keys)
    return {"subtype": subtype["subtype"], "data": data} if data else None


def _texts(given: Any, keys: tuple[str, ...]) -> Document:
    """Scalars of *given* under *keys*: a map or list could hide what no rule looks at."""
    if not isinstance(given, Mapping):
        return {}
    return {
        key: given[key]
        for key in keys
        if key in given and isinstance(given[key], (str, int, float, bool))
    }


def _maps(given: Any) -> list[Mapping[str, Any]]:
    return (
        [entry for entry in given if isinstance(entry, Mapping)] if isinstance(given, list) else []
    )
