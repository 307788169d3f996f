"""Settings of preflight-nccl-allreduce: its variables, and how message sizes are written.

The gang stage complains about the few variables that it needs and is lenient about the rest, because it
must be able to say that a gang did not form; the benchmark is strict. Every complaint ends the program
with 2 and without an event, whatever the strategy is. It must not know: files, processes, torch.
Source: preflight specification 7.2 and 7.3, known bugs S24 and S26, decisions 20 and 75.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aicr.errors import AicrError, invalid
from aicr.fabric import thresholds
from aicr.preflight import names
from aicr.preflight.checks import environment
from aicr.preflight.checks.times import CheckTimes
from aicr.preflight.health.events import EXECUTE_REMEDIATION, STRATEGIES
from aicr.values.waiting import factor_of

THRESHOLD: Final = "BW_THRESHOLD_GBPS"
BY_FABRIC: Final = "BW_THRESHOLDS_GBPS"
SIZES: Final = "MESSAGE_SIZES"
ITERATIONS: Final = "BENCHMARK_ITERS"
WARM_UP: Final = "WARMUP_ITERS"
REDUCE_OP: Final = "NCCL_REDUCE_OP"
SKIP: Final = "SKIP_BANDWIDTH_CHECK"
PROCESSES: Final = "NPROCS_PER_NODE"
LOCALIZE: Final = "LOCALIZE"
LOCALIZE_SECONDS: Final = "LOCALIZE_BUDGET_SECONDS"
BACKEND: Final = "ALLREDUCE_BACKEND"

DEFAULT_DIRECTORY: Final = "/etc/preflight"
DEFAULT_TIMEOUT: Final = 600
DEFAULT_SIZES: Final = "4G,8G"
DEFAULT_ITERATIONS: Final = 20
DEFAULT_WARM_UP: Final = 5
DEFAULT_THRESHOLD: Final = thresholds.DEFAULTS[thresholds.ALLREDUCE]
DEFAULT_LOCALIZE_SECONDS: Final = CheckTimes().localise
#: When nvidia-smi cannot be asked (preflight specification 7.2).
DEFAULT_PROCESSES: Final = 8
OPERATIONS: Final = ("sum", "prod", "min", "max", "avg")
BACKENDS: Final = ("nccl", "gloo")
#: One float32.
LEAST_SIZE: Final = 4

_SIZE: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:E[+-]?\d+)?)\s*(GB|G|MB|M)", re.ASCII)
_UNITS: Final = {"G": 1 << 30, "M": 1 << 20}


@dataclass(frozen=True)
class GangSettings:
    """What the gang stage needs."""

    pod: str
    #: UID and address of this pod, if the webhook injected them (decision 72).
    uid: str = ""
    address: str = ""
    directory: str = DEFAULT_DIRECTORY
    #: Seconds to wait for the gang, as configured, and the factor that all waiting is multiplied by.
    timeout: int = DEFAULT_TIMEOUT
    factor: float = 1.0
    #: How to reach the connector; None when socket or node is not known, and nothing is sent then.
    reporting: environment.Reporting | None = None


@dataclass(frozen=True)
class Benchmark:
    """How to measure, and what to hold it against."""

    threshold: float = DEFAULT_THRESHOLD
    by_fabric: Mapping[str, float] = field(default_factory=dict)
    #: Bytes.
    sizes: tuple[int, ...] = (4 << 30, 8 << 30)
    iterations: int = DEFAULT_ITERATIONS
    warm_up: int = DEFAULT_WARM_UP
    operation: str = "sum"
    skip: bool = False
    localize: bool = True
    localize_seconds: float = DEFAULT_LOCALIZE_SECONDS
    backend: str = "nccl"
    #: Workers on this node, one a GPU.
    processes: int = DEFAULT_PROCESSES
    #: Product of each GPU, where nvidia-smi could be asked.
    products: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_gang(environ: Mapping[str, str]) -> GangSettings:
    """Settings of the gang stage.

    Raises:
        AicrError: POD_NAME is missing, or a number is none.
    """
    pod = environment.required(environ, names.POD_NAME)
    timeout = environment.whole_number(environ, names.GANG_TIMEOUT, DEFAULT_TIMEOUT)
    factor = factor_of(environ)
    socket, node = (
        environ.get(name, "").strip() for name in (names.CONNECTOR_SOCKET, names.NODE_NAME)
    )
    strategy = environ.get(names.STRATEGY, "")
    reporting = None
    if socket and node:
        reporting = environment.Reporting(
            socket,
            node,
            strategy if strategy in STRATEGIES else EXECUTE_REMEDIATION,
            environ.get(names.TOKEN_PATH, ""),
        )
    return GangSettings(
        pod,
        environ.get(names.POD_UID, "").strip(),
        environ.get(names.POD_IP, "").strip(),
        environ.get(names.GANG_CONFIG_DIR, "").strip() or DEFAULT_DIRECTORY,
        timeout,
        factor,
        reporting,
    )


def read_benchmark(environ: Mapping[str, str], products: Callable[[], Sequence[str]]) -> Benchmark:
    """Settings of the benchmark.

    Args:
        environ: the variables.
        products: lists the GPUs of this container, or raises AicrError.

    Raises:
        AicrError: the first thing that is wrong.
    """
    notes: list[str] = []
    threshold = _threshold(environ)
    by_fabric = _by_fabric(environ)
    sizes = parse_sizes(environ.get(SIZES, "").strip() or DEFAULT_SIZES)
    iterations = _at_least(environ, ITERATIONS, DEFAULT_ITERATIONS, 1)
    warm_up = _at_least(environ, WARM_UP, DEFAULT_WARM_UP, 0)
    operation = _one_of(environ, REDUCE_OP, "sum", OPERATIONS)
    backend = _one_of(environ, BACKEND, "nccl", BACKENDS)
    if backend == "gloo" and operation == "avg":
        raise invalid(
            f"{REDUCE_OP}=avg needs GPUs: gloo has no average", where=REDUCE_OP, hint="use sum"
        )
    seconds = environment.number(environ, LOCALIZE_SECONDS, DEFAULT_LOCALIZE_SECONDS)
    if seconds <= 0:
        raise invalid(
            f"{LOCALIZE_SECONDS} must be positive, got {seconds:g}", where=LOCALIZE_SECONDS
        )
    localize = _localize(environ)
    processes, found = _processes(environ, products, notes)
    factor = factor_of(environ)
    return Benchmark(
        threshold,
        by_fabric,
        sizes,
        iterations,
        warm_up,
        operation,
        environ.get(SKIP, "").strip().lower() in {"true", "1", "yes"},
        localize,
        seconds * factor,
        backend,
        processes,
        found,
        tuple(notes),
    )


def parse_sizes(text: str) -> tuple[int, ...]:
    """A comma list of message sizes in bytes: `4G`, `512mb`, ` 0.5gb `.

    Raises:
        AicrError: INVALID_REQUEST naming the entry (preflight 11.7, row 116).
    """
    return tuple(_size(entry) for entry in text.split(","))


def _size(text: str) -> int:
    matched = _SIZE.fullmatch(text.strip().upper())
    if matched is None:
        raise invalid(
            f"invalid {SIZES}: {text.strip()!r} is no size",
            where=SIZES,
            hint="a number with G, GB, M or MB, for example 4G,512M",
        )
    number = float(matched[1]) * _UNITS[matched[2][0]]
    if not math.isfinite(number) or not LEAST_SIZE <= number <= 1 << 46:
        raise invalid(f"invalid {SIZES}: {text.strip()!r} is out of range", where=SIZES, hint="4G")
    return int(number)


def _threshold(environ: Mapping[str, str]) -> float:
    text = environ.get(THRESHOLD, "").strip()
    try:
        return thresholds.positive(text, THRESHOLD) if text else DEFAULT_THRESHOLD
    except AicrError as error:
        raise invalid(f"invalid {error.message}", where=THRESHOLD, hint=error.hint) from None


def _by_fabric(environ: Mapping[str, str]) -> dict[str, float]:
    try:
        return thresholds.parse_overrides(environ.get(BY_FABRIC, ""))
    except AicrError as error:
        raise invalid(
            f"invalid {BY_FABRIC}: {error.message}", where=BY_FABRIC, hint=error.hint
        ) from None


def _at_least(environ: Mapping[str, str], name: str, default: int, least: int) -> int:
    value = environment.whole_number(environ, name, default)
    if value < least:
        raise invalid(f"{name} must be at least {least}, got {value}", where=name)
    return value


def _one_of(environ: Mapping[str, str], name: str, default: str, known: tuple[str, ...]) -> str:
    value = environ.get(name, "").strip().lower() or default
    if value not in known:
        # A workload may have set it: NCCL_ names are inherited (known bug S24).
        raise invalid(f"invalid {name}: {value}", where=name, hint=f"one of {', '.join(known)}")
    return value


def _localize(environ: Mapping[str, str]) -> bool:
    text = environ.get(LOCALIZE, "").strip().lower() or "true"
    if text not in {"true", "1", "yes", "false", "0", "no"}:
        raise invalid(f"invalid {LOCALIZE}: {text}", where=LOCALIZE, hint="true or false")
    return text in {"true", "1", "yes"}


def _processes(
    environ: Mapping[str, str], products: Callable[[], Sequence[str]], notes: list[str]
) -> tuple[int, tuple[str, ...]]:
    if environ.get(PROCESSES, "").strip():
        return _at_least(environ, PROCESSES, DEFAULT_PROCESSES, 1), ()
    try:
        found = tuple(products())
    except AicrError as error:
        if error.message == "no GPUs found":
            raise invalid(
                "no GPUs found", where=PROCESSES, hint="check that the container got GPUs"
            ) from None
        notes.append(
            f"GPUs could not be counted ({environment.as_text(error)}); {DEFAULT_PROCESSES} are assumed"
        )
        return DEFAULT_PROCESSES, ()
    return len(found), found
