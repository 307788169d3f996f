"""Settings of preflight-nccl-loopback: its variables, in the order in which they are complained about.

Every complaint ends the program with 2 and without an event, whatever the strategy is. It must not
know: how the benchmark runs.
Source: preflight specification 7.1; preflight seed, preflight-nccl-loopback.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aicr.errors import AicrError, invalid
from aicr.fabric import thresholds
from aicr.preflight.checks import environment
from aicr.preflight.checks.times import CheckTimes

THRESHOLD: Final = "BW_THRESHOLD_GBPS"
BY_FABRIC: Final = "BW_THRESHOLDS_GBPS"
FABRIC: Final = "NCCL_LOOPBACK_FABRIC"
SKIP: Final = "SKIP_BANDWIDTH_CHECK"
SIZE: Final = "TEST_SIZE_MB"
BINARY: Final = "NCCL_TEST_BINARY_PATH"

DEFAULT_THRESHOLD: Final = thresholds.DEFAULTS[thresholds.LOOPBACK]
DEFAULT_SIZE: Final = 256
DEFAULT_BINARY: Final = "/opt/nccl-tests/build/all_reduce_perf"
#: The largest size that means something: more does not fit a GPU.
MOST_MB: Final = 1 << 20

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


@dataclass(frozen=True)
class Settings:
    """How to run the benchmark."""

    #: Product of each GPU; their number is what the benchmark runs on.
    products: tuple[str, ...]
    threshold: float = DEFAULT_THRESHOLD
    by_fabric: Mapping[str, float] = field(default_factory=dict)
    #: What connects the GPUs, if somebody said so.
    fabric: str = thresholds.UNKNOWN
    skip: bool = False
    size_mb: int = DEFAULT_SIZE
    binary: str = DEFAULT_BINARY
    #: Longest that the benchmark may take, in seconds.
    limit: float = CheckTimes().loopback
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Message size in bytes."""
        return self.size_mb << 20


def read(
    environ: Mapping[str, str], products: Callable[[], Sequence[str]], *, sends: bool = True
) -> tuple[Settings, environment.Reporting | None]:
    """Settings, and how to reach the connector, from the environment.

    Args:
        environ: the variables.
        products: lists the GPUs of this container, or raises AicrError.
        sends: whether events are sent, so that socket and node are needed.

    Raises:
        AicrError: the first thing that is wrong (preflight specification 7.1).
    """
    notes: list[str] = []
    threshold = _threshold(environ)
    by_fabric, fabric = _by_fabric(environ)
    skip = _skip(environ, notes)
    size = _size(environ)
    try:
        found = tuple(products())
    except AicrError as error:
        raise AicrError(
            error.code, "failed to detect GPU count", hint="check that the container got GPUs"
        ) from error
    binary = _binary(environ)
    reporting = environment.reporting(environ) if sends else None
    return (
        Settings(
            found,
            threshold,
            by_fabric,
            fabric,
            skip,
            size,
            binary,
            CheckTimes.from_environment(environ).loopback,
            tuple(notes),
        ),
        reporting,
    )


def _threshold(environ: Mapping[str, str]) -> float:
    text = environ.get(THRESHOLD, "").strip()
    if not text:
        return DEFAULT_THRESHOLD
    try:
        return thresholds.positive(text, THRESHOLD)
    except AicrError as error:
        raise invalid(
            f"invalid {THRESHOLD}: {error.message.removeprefix(f'{THRESHOLD}: ')}",
            where=THRESHOLD,
            hint=error.hint,
        ) from None


def _by_fabric(environ: Mapping[str, str]) -> tuple[dict[str, float], str]:
    try:
        found = thresholds.parse_overrides(environ.get(BY_FABRIC, ""))
    except AicrError as error:
        raise invalid(
            f"invalid {BY_FABRIC}: {error.message}", where=BY_FABRIC, hint=error.hint
        ) from None
    fabric = environ.get(FABRIC, "").strip().lower() or thresholds.UNKNOWN
    if fabric not in {"nvlink", "pcie", thresholds.UNKNOWN}:
        raise invalid(f"invalid {FABRIC}: {fabric}", where=FABRIC, hint="nvlink or pcie")
    return found, fabric


def _skip(environ: Mapping[str, str], notes: list[str]) -> bool:
    text = environ.get(SKIP, "")
    if text and text not in _TRUE | _FALSE:
        notes.append(f"{SKIP}={text!r} is neither true nor false; false is used")
    return text in _TRUE


def _size(environ: Mapping[str, str]) -> int:
    try:
        size = environment.whole_number(environ, SIZE, DEFAULT_SIZE)
    except AicrError as error:
        raise invalid(f"invalid {SIZE}: {environ[SIZE]}", where=SIZE, hint="whole MiB") from error
    if size <= 0:
        raise invalid(f"{SIZE} must be positive, got {size}", where=SIZE)
    if size > MOST_MB:
        raise invalid(f"{SIZE} must be at most {MOST_MB}, got {size}", where=SIZE)
    return size


def _binary(environ: Mapping[str, str]) -> str:
    path = Path(environ.get(BINARY, "").strip() or DEFAULT_BINARY)
    problem = ""
    if os.path.isdir(path):
        problem = "path is a directory, not an executable"
    elif not os.path.isfile(path):
        problem = "file not found"
    elif not os.access(path, os.X_OK):
        problem = "file is not executable"
    if problem:
        raise invalid(
            f"invalid {BINARY}: {problem}",
            where=str(path),
            hint="the check image holds nccl-tests there; build it, or name another all_reduce_perf",
        )
    return str(path)
