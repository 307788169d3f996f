"""The environment of a check container, in its exact order.

First what the engine says about the run, then what it passes on from the caller's own environment
to the few checks that are entitled to it, then the catalogue's entries. A catalogue cannot set
what is passed on: it would otherwise decide for the person who runs the check. Pure.

Source: validators spec 3.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.contract import container
from aicr.validate.catalog import Entry
from aicr.values import durations

_NCCL: Final = ("nccl-all-reduce-bw", "nccl-all-reduce-bw-net", "nccl-all-reduce-bw-nvls")
_NO_CLEANUP: Final = "AICR_INFERENCE_PERF_NO_CLEANUP"
#: Variable → the checks that get it from the caller's environment.
FORWARDED: Final[Mapping[str, tuple[str, ...]]] = {
    "HF_TOKEN": ("inference-perf",),
    "AICR_REQUIRE_SCOPED_INFERENCE_GATEWAY": ("inference-gateway",),
    "AICR_NCCL_FABRIC": ("nccl-all-reduce-bw-net",),
    "AICR_NCCL_RUNTIME_IMAGE": _NCCL,
    _NO_CLEANUP: ("inference-perf",),
}
#: What Go's ParseBool takes for true.
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same for all checks of a run."""

    run_id: str
    version: str = ""
    commit: str = ""
    registry: str = ""
    tag: str = ""
    #: Of inner workloads; None when the caller said nothing, which is not the same as nothing.
    node_selector: Mapping[str, str] | None = None
    tolerations: Sequence[Mapping[str, Any]] | None = None
    #: The environment of the process that runs ``aicr validate``.
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


def variables(entry: Entry, setting: Setting) -> list[dict[str, Any]]:
    """The ``env`` of a check's container.

    Raises:
        AicrError: INVALID_REQUEST for a toleration that has no text form.
    """
    found: list[dict[str, Any]] = [
        _plain(container.SNAPSHOT_PATH, container.DEFAULT_SNAPSHOT_PATH),
        _plain(container.VALIDATION_PATH, container.DEFAULT_VALIDATION_PATH),
        _plain(container.VALIDATOR_NAME, entry.name),
        _plain(container.VALIDATOR_PHASE, entry.phase),
        _plain(container.RUN_ID, setting.run_id),
        {
            "name": container.NAMESPACE,
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
        },
        _plain(container.CHECK_TIMEOUT, durations.format(entry.timeout)),
    ]
    optional = (
        (container.NODE_SELECTOR, container.format_node_selector(setting.node_selector or {})),
        (container.TOLERATIONS, container.format_tolerations(setting.tolerations or ())),
        (container.CLI_VERSION, setting.version),
        (container.CLI_COMMIT, setting.commit),
        (container.IMAGE_REGISTRY, setting.registry),
        (container.IMAGE_TAG, setting.tag),
        *((name, forwarded(name, entry.name, setting.environ)) for name in FORWARDED),
    )
    found += [_plain(name, value) for name, value in optional if value]
    # A catalogue's own value may be empty on purpose.
    found += [_plain(name, value) for name, value in entry.env if name not in FORWARDED]
    return found


def forwarded(name: str, check: str, environ: Mapping[str, str]) -> str:
    """What a check gets of a variable of the caller's; "" for nothing."""
    if check not in FORWARDED[name]:
        return ""
    value = environ.get(name, "")
    if name == _NO_CLEANUP:
        return "1" if value in _TRUE else ""
    return value


def _plain(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "value": value}
