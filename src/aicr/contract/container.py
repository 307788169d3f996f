"""What a check container and whoever started it agree on: exit codes, variables, paths, limits.

Both sides import these names, the engine that writes the Job and the program that runs in it, so that
neither can drift. The text forms of node selectors and tolerations are here for the same reason: one
side writes them into a variable, the other reads them. This module must not know Jobs or checks.
Source: validators spec 3.3, 3.4, 3.7, 3.8, 5.1; decision 63.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aicr.errors import invalid

PASS: Final = 0
FAIL: Final = 1
SKIP: Final = 2
#: Plus the number of the signal: a program that was asked to end before it had a verdict.
SIGNALLED: Final = 128

#: Name of the container whose end is the verdict; sidecars have other names.
CONTAINER: Final = "validator"

SNAPSHOT_PATH: Final = "AICR_SNAPSHOT_PATH"
VALIDATION_PATH: Final = "AICR_VALIDATION_PATH"
VALIDATOR_NAME: Final = "AICR_VALIDATOR_NAME"
VALIDATOR_PHASE: Final = "AICR_VALIDATOR_PHASE"
RUN_ID: Final = "AICR_RUN_ID"
NAMESPACE: Final = "AICR_NAMESPACE"
CHECK_TIMEOUT: Final = "AICR_CHECK_TIMEOUT"
NODE_SELECTOR: Final = "AICR_NODE_SELECTOR"
TOLERATIONS: Final = "AICR_TOLERATIONS"
CLI_VERSION: Final = "AICR_CLI_VERSION"
CLI_COMMIT: Final = "AICR_CLI_COMMIT"
IMAGE_REGISTRY: Final = "AICR_VALIDATOR_IMAGE_REGISTRY"
IMAGE_TAG: Final = "AICR_VALIDATOR_IMAGE_TAG"
#: Where the termination message goes when a check runs as a process of the caller.
TERMINATION_LOG_PATH: Final = "AICR_TERMINATION_LOG"
#: Context of the kubeconfig, for the same case.
KUBE_CONTEXT: Final = "AICR_KUBE_CONTEXT"
#: ``json`` or ``text``; by default JSON inside a cluster and text elsewhere (decision 45).
LOG_FORMAT: Final = "AICR_LOG_FORMAT"

DEFAULT_SNAPSHOT_PATH: Final = "/data/snapshot/snapshot.yaml"
DEFAULT_VALIDATION_PATH: Final = "/data/validation/validation.yaml"
DEFAULT_NAMESPACE: Final = "default"
SERVICE_ACCOUNT_NAMESPACE: Final = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

TERMINATION_LOG: Final = "/dev/termination-log"
#: Bytes of a termination message that the kubelet keeps.
TERMINATION_LIMIT: Final = 4096

_STATUS: Final = {PASS: "passed", FAIL: "failed", SKIP: "skipped"}
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def status_of(exit_code: int) -> str:
    """The CTRF status of an exit code; ``other`` for everything outside the contract."""
    return _STATUS.get(exit_code, "other")


def cut(text: str, limit: int = TERMINATION_LIMIT) -> str:
    """*text*, or its first *limit* bytes of UTF-8 without half a character and how much is missing.

    The note ``... [truncated N bytes]`` comes on top of *limit* (validators spec 3.7).
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    kept = data[:limit].decode("utf-8", "ignore")
    return f"{kept}... [truncated {len(data) - len(kept.encode())} bytes]"


def fit(text: str, limit: int = TERMINATION_LIMIT) -> str:
    """As `cut`, with the note inside *limit*: for a file that somebody else would cut again."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    room = limit - len(f"... [truncated {len(data)} bytes]")
    return cut(text, max(0, room))


def format_node_selector(selector: Mapping[str, str]) -> str:
    """``k=v,…``, sorted; "" for an empty selector."""
    return ",".join(f"{key}={selector[key]}" for key in sorted(selector))


def parse_node_selector(text: str) -> dict[str, str]:
    """The selector that *text* states; {} for blank text.

    Raises:
        AicrError: INVALID_REQUEST for an entry without ``=`` or without a key.
    """
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = entry.partition("=")
        if not equals or not key.strip():
            raise invalid(
                f'node selector "{entry}" is not of the form key=value', where=NODE_SELECTOR
            )
        found[key.strip()] = value.strip()
    return found


def format_tolerations(tolerations: Sequence[Mapping[str, Any]]) -> str:
    """``*``, ``key=value:Effect`` or ``key:Effect`` each, comma-separated in their order.

    An effect that is not stated stands for all: ``key:`` and ``*``.

    Raises:
        AicrError: INVALID_REQUEST for ``tolerationSeconds`` and for what has no text form, because
            a check would otherwise run with another toleration than was asked for (Equal without a
            value, for example, reads back as Exists).
    """
    return ",".join(_toleration_text(entry) for entry in tolerations)


def _toleration_text(entry: Mapping[str, Any]) -> str:
    key, value, effect = (str(entry.get(name) or "") for name in ("key", "value", "effect"))
    operator = str(entry.get("operator") or "Equal")
    odd = set(entry) - {"key", "operator", "value", "effect"}
    sensible = not value if operator == "Exists" else operator == "Equal" and key and value
    if odd or not sensible:
        raise invalid(f"toleration {dict(entry)!r} has no text form", where=TOLERATIONS)
    if not key:
        return f"*:{effect}" if effect else "*"
    return f"{key}={value}:{effect}" if operator == "Equal" else f"{key}:{effect}"


def parse_tolerations(text: str) -> list[dict[str, Any]]:
    """The tolerations that *text* states; [] for blank text.

    A value that is not empty makes the operator Equal, otherwise it is Exists (``key=:Effect`` too).

    Raises:
        AicrError: INVALID_REQUEST naming the entry that is of none of the forms.
    """
    return [_toleration(part.strip()) for part in text.split(",") if part.strip()]


def _toleration(entry: str) -> dict[str, Any]:
    what, _, effect = entry.partition(":")
    key, _, value = what.partition("=")
    if (effect and effect not in _EFFECTS) or not key or (key == "*" and value):
        raise invalid(
            f'toleration "{entry}" is not of the form *, key:Effect or key=value:Effect',
            where=TOLERATIONS,
            hint=f"effects are {', '.join(_EFFECTS)}",
        )
    found: dict[str, Any] = {} if key == "*" else {"key": key}
    found["operator"] = "Equal" if value else "Exists"
    if value:
        found["value"] = value
    if effect:
        found["effect"] = effect
    return found
