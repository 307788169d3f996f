"""Lines of a check's stdout that are not evidence but messages to whoever started it.

```
RESULT: text                  stays in the evidence, and is shown to the person who watches
##AICR-EXTRA## {json}         counts and codes, for the result's `extra`; taken out of the evidence
##AICR-PROVENANCE## {json}    which template a number describes, for `runtimeProvenance`; taken out
```

A prefix counts only at the start of a line, with its blank. The last valid payload of a kind wins; one
that cannot be read is a warning, loses its line, and changes nothing else: transport never decides a
verdict. The closed sets of codes are here too, because checks write them and redaction lets only them
through. This module must not know Jobs, checks or redaction. Source: validators spec 4.1, 4.2, 3.7;
decision 62.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.errors import (
    INTERNAL,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
)

RESULT: Final = "RESULT: "
EXTRA: Final = "##AICR-EXTRA## "
PROVENANCE: Final = "##AICR-PROVENANCE## "

#: Keys of `extra` that have a meaning.
NODES_VALIDATED: Final = "nodesValidated"
NODES_TOTAL: Final = "nodesTotal"
SKIP_REASON: Final = "skipReason"
RUNTIME_SOURCE: Final = "runtimeSource"
CODE: Final = "code"

NAMED_IN_SKIP_CHECKS: Final = "named-in-skip-checks"
SKIP_REASONS: Final = frozenset(
    {"no-gpu-nodes", "no-schedulable-gpu-nodes", "nodes-busy", NAMED_IN_SKIP_CHECKS}
)
RUNTIME_SOURCES: Final = frozenset(
    {"delivered-artifact", "recipe-supplied-runtime", "cluster-capability"}
)
#: A failed test whose `extra.code` is one of these could not be judged (decision 62).
COULD_NOT_TELL: Final = frozenset({UNAUTHORIZED, TIMEOUT, SERVICE_UNAVAILABLE, INTERNAL})

#: What is kept of stdout: lines, and bytes of each.
MAX_LINES: Final = 1000
MAX_LINE_BYTES: Final = 512

_DIGESTS: Final = ("shippedDigest", "derivedDigest")
_PATHS: Final = ("overriddenPaths", "inheritedPaths")


@dataclass(frozen=True, slots=True)
class Output:
    """What a check's stdout says."""

    #: Evidence, without the lines that were transport and without blank lines at the end.
    lines: list[str] = field(default_factory=list)
    extra: dict[str, str] = field(default_factory=dict)
    provenance: dict[str, Any] | None = None
    #: Texts of RESULT lines, for the live display.
    results: list[str] = field(default_factory=list)
    #: One line about each payload that could not be used.
    warnings: list[str] = field(default_factory=list)


def extra_line(extra: Mapping[str, str] | None) -> str:
    """The line that carries *extra*, without its end; "" when there is nothing to say.

    Raises:
        AicrError: INTERNAL when a key or value is no text; the reader would refuse the line.
    """
    if not extra:
        return ""
    if not all(isinstance(key, str) and isinstance(value, str) for key, value in extra.items()):
        raise AicrError(INTERNAL, f"extra must map text to text, not {dict(extra)!r}")
    return EXTRA + _one_line(dict(extra))


def provenance_line(record: Mapping[str, Any] | None) -> str:
    """The line that carries a provenance record, without its end; "" when there is none.

    Raises:
        AicrError: INTERNAL for a record that the reader would refuse.
    """
    if not record:
        return ""
    checked, problem = _provenance(dict(record))
    if checked is None:
        raise AicrError(INTERNAL, f"provenance record: {problem}")
    return PROVENANCE + _one_line(checked)


def parse_output(text: str) -> Output:
    """Read all of a check's stdout, before anything of it is cut away (validators spec 4.1)."""
    lines: list[str] = []
    results: list[str] = []
    warnings: list[str] = []
    extra: dict[str, str] = {}
    provenance: dict[str, Any] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(EXTRA):
            found, problem = _extra(_decoded(line[len(EXTRA) :]))
            extra = found or extra
        elif line.startswith(PROVENANCE):
            record, problem = _provenance(_decoded(line[len(PROVENANCE) :]))
            provenance = record or provenance
        else:
            lines.append(line)
            if line.startswith(RESULT) and line[len(RESULT) :]:
                results.append(line[len(RESULT) :])
            continue
        if problem:
            warnings.append(f"line {number}: {line.split(' ', 1)[0]} line ignored: {problem}")
    while lines and lines[-1] == "":
        lines.pop()
    return Output(lines, extra, provenance, results, warnings)


def tail(lines: Sequence[str]) -> list[str]:
    """The last 1000 lines, each cut after 512 bytes without breaking a character (spec 3.7)."""
    return [_short(line) for line in lines[-MAX_LINES:]]


def disarmed(text: str) -> str:
    """*text* as evidence: a line in it that looks like transport gets a blank in front.

    Logs of other programs are printed as evidence, and must not speak for the check.
    """
    if EXTRA not in text and PROVENANCE not in text:
        return text
    return "\n".join(
        f" {line}" if line.startswith((EXTRA, PROVENANCE)) else line for line in text.split("\n")
    )


def _short(line: str) -> str:
    data = line.encode("utf-8", "replace")
    if len(data) <= MAX_LINE_BYTES:
        return data.decode("utf-8")
    kept = data[:MAX_LINE_BYTES].decode("utf-8", "ignore")
    return f"{kept}... [truncated {len(line) - len(kept)} chars]"


def _one_line(payload: dict[str, Any]) -> str:
    # ASCII only, so that no log transport in between can change or split it.
    return json.dumps(payload, sort_keys=True, separators=(",", ":"))


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _extra(payload: Any) -> tuple[dict[str, str], str]:
    if not isinstance(payload, dict):
        return {}, "not a JSON object"
    if not payload:
        return {}, "an empty object"
    if not all(isinstance(value, str) for value in payload.values()):
        return {}, "values must be text"
    return {_clean(key): _clean(value) for key, value in payload.items()}, ""


def _provenance(payload: Any) -> tuple[dict[str, Any] | None, str]:
    if not isinstance(payload, dict):
        return None, "not a JSON object"
    record: dict[str, Any] = {}
    for key in _DIGESTS:
        digest = payload.get(key)
        if not isinstance(digest, str) or not digest:
            return None, f"{key} is missing"
        record[key] = _clean(digest)
    for key in _PATHS:
        paths = payload.get(key) or []
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            return None, f"{key} is not a list of text"
        if paths:
            record[key] = [_clean(path) for path in paths]
    return record, ""


def _clean(text: str) -> str:
    """*text* without the halves of characters that JSON escapes can state and UTF-8 cannot."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
