"""What can be set about inference-perf, where from, and what a value must look like.

```
recipe constraint of phase performance  >  variable of the catalogue entry  >  default
```

A blank value counts as absent. Every value that is there is checked, also one that another one overrides
or that the chosen routing mode does not use: a typo must not pass under one recipe and abort another.
All of it happens before anything is created, and all faults are named at once. What is no knob is
fixed in `inference_aiperf`. This module must not know clusters.

Units: seconds for waits, tokens for lengths. Source: validators spec 7.1, 7.3; requirements V-299 to
V-319.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.sdk.check import Setting
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import AicrError, invalid, nearest
from aicr.values import durations, quantities

PREFIX: Final = "AICR_INFERENCE_PERF_"
NO_CLEANUP: Final = f"{PREFIX}NO_CLEANUP"

DYNAMO_ROUTER: Final = "dynamo-router"
GATEWAY_EPP: Final = "gateway-epp"
ROUTING_MODES: Final = (DYNAMO_ROUTER, GATEWAY_EPP)
#: Dynamo's ``direct`` is not among them: it needs a worker's id in each request.
ROUTER_MODES: Final = (
    "kv",
    "round-robin",
    "random",
    "power-of-two",
    "least-loaded",
    "device-aware-weighted",
)
#: Values of the cache's size that switch it off.
CACHE_OFF: Final = frozenset({"off", "0", "none", "disabled"})

_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_NUMBER: Final = re.compile(r"\+?[0-9]{1,9}")
_CLASS: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_TYPE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: What Go's ParseBool takes.
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


@dataclass(frozen=True, slots=True)
class Settings:
    """How inference-perf measures.

    Attributes:
        model: Hugging Face id.
        concurrency_per_gpu: requests at a time for each GPU.
        routing_mode, router_mode: of `ROUTING_MODES` and `ROUTER_MODES`.
        warmup_per_concurrency, requests_per_concurrency: requests for each unit of concurrency.
        min_requests: the least that are measured.
        input_tokens, output_tokens: mean lengths.
        ready, health, populate: seconds for workload, endpoint and cache.
        cache_size: quantity of the cache; "" when it is off.
        storage_class: of the cache; "" for the cluster's default.
        extra_types: storage types that are compatible beyond the built-in lists.
        keep: leave everything in place afterwards.
    """

    model: str
    concurrency_per_gpu: int
    routing_mode: str
    router_mode: str
    warmup_per_concurrency: int
    min_requests: int
    requests_per_concurrency: int
    input_tokens: int
    output_tokens: int
    ready: float
    health: float
    populate: float
    cache_size: str
    storage_class: str
    extra_types: tuple[str, ...]
    keep: bool


@dataclass(frozen=True, slots=True)
class Knob:
    """One value.

    Attributes:
        key: field of `Settings`.
        read: text → value; raises AicrError with the reason alone.
        default: text; for waits it is replaced by the run's own `Timeouts`.
        meaning: for people.
        constraint: name of the recipe's constraint, "" if a recipe cannot set it.
        variable: full name of the variable, "" if only a recipe can.
    """

    key: str
    read: Callable[[str], Any]
    default: str
    meaning: str
    constraint: str = ""
    variable: str = ""


def _model(text: str) -> str:
    if not _MODEL.fullmatch(text):
        raise invalid("is not a model id", hint="for example Qwen/Qwen3-8B")
    return text


def _positive(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) <= 0:
        raise invalid("is not a positive integer", hint="write a whole number from 1 up")
    return int(text)


def _one_of(allowed: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            near = nearest(text, list(allowed))
            raise invalid(
                f"is not one of {', '.join(allowed)}", hint=f"did you mean {near}?" if near else ""
            )
        return text

    return read


def _seconds(text: str) -> float:
    try:
        found = durations.parse(text)
    except AicrError as error:
        raise invalid("is not a Go duration", hint="for example 10m or 1h30m") from error
    if found <= 0:
        raise invalid("is not a positive duration", hint="for example 10m")
    return found / durations.SECOND


def _size(text: str) -> str:
    if text.lower() in CACHE_OFF:
        return ""
    try:
        quantity = quantities.parse(text)
    except AicrError as error:
        raise invalid(
            "is neither a quantity nor off, 0, none or disabled", hint=error.hint
        ) from error
    if quantity.numerator <= 0:
        raise invalid("is not above zero", hint="off switches the cache off")
    return text


def _class(text: str) -> str:
    if not _CLASS.fullmatch(text):
        raise invalid("is not the name of a StorageClass", hint="kubectl get storageclasses")
    return text


def _types(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    odd = [part for part in found if not _TYPE.fullmatch(part)]
    if odd or not found:
        raise invalid(
            "is not a list of storage types", hint="for example hyperdisk-balanced,hyperdisk-ml"
        )
    return found


def _flag(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise invalid("is neither true nor false", hint="write 1 to keep everything in place")
    return text in _TRUE


KNOBS: Final = (
    Knob(
        *("model", _model, "Qwen/Qwen3-8B", "Hugging Face id of the model that is served"),
        *("inference-model", f"{PREFIX}MODEL"),
    ),
    Knob(
        *("concurrency_per_gpu", _positive, "256", "requests at a time for each free GPU"),
        *("inference-concurrency-per-gpu", f"{PREFIX}CONCURRENCY_PER_GPU"),
    ),
    Knob(
        *("routing_mode", _one_of(ROUTING_MODES), DYNAMO_ROUTER),
        *("who routes requests: Dynamo's frontend, or an endpoint picker behind the gateway",),
        "inference-routing-mode",
    ),
    Knob(
        *("router_mode", _one_of(ROUTER_MODES), "least-loaded"),
        "strategy of Dynamo's frontend; has no effect under gateway-epp",
        variable=f"{PREFIX}ROUTER_MODE",
    ),
    Knob(
        *("warmup_per_concurrency", _positive, "1", "warm-up requests per unit of concurrency"),
        variable=f"{PREFIX}WARMUP_PER_CONCURRENCY",
    ),
    Knob(
        *("min_requests", _positive, "1000", "the least number of requests that are measured"),
        variable=f"{PREFIX}MIN_REQUESTS",
    ),
    Knob(
        *("requests_per_concurrency", _positive, "8", "requests per unit of concurrency"),
        variable=f"{PREFIX}REQUESTS_PER_CONCURRENCY",
    ),
    Knob(
        *("input_tokens", _positive, "128", "tokens of a prompt"),
        variable=f"{PREFIX}INPUT_TOKENS_MEAN",
    ),
    Knob(
        *("output_tokens", _positive, "128", "tokens of an answer"),
        variable=f"{PREFIX}OUTPUT_TOKENS_MEAN",
    ),
    Knob(
        *("ready", _seconds, "10m", "how long the workload may take to be ready"),
        variable=f"{PREFIX}WORKLOAD_READY_TIMEOUT",
    ),
    Knob(
        *("health", _seconds, "5m", "how long the endpoint may take to serve after that"),
        variable=f"{PREFIX}HEALTH_TIMEOUT",
    ),
    Knob(
        *("populate", _seconds, "13m", "how long filling the weights cache may take"),
        variable=f"{PREFIX}MODEL_CACHE_POPULATE_TIMEOUT",
    ),
    Knob(
        *("cache_size", _size, "100Gi", "size of the weights cache; off, 0, none, disabled: none"),
        variable=f"{PREFIX}MODEL_CACHE_SIZE",
    ),
    Knob(
        *("storage_class", _class, "", "StorageClass of the weights cache"),
        *("inference-model-cache-storage-class", f"{PREFIX}MODEL_CACHE_STORAGE_CLASS"),
    ),
    Knob(
        *("extra_types", _types, "", "more storage types that fit the node, comma-separated"),
        variable=f"{PREFIX}MODEL_CACHE_EXTRA_COMPATIBLE_TYPES",
    ),
    Knob(
        *("keep", _flag, "", "1 leaves namespace, workload and load generator in place"),
        variable=NO_CLEANUP,
    ),
)
#: Knobs that are off, or someone else's choice, when nobody sets them.
_UNSET: Final[Mapping[str, Any]] = {"storage_class": "", "extra_types": (), "keep": False}


def resolve(
    constraint: Callable[[str], str | None], environ: Mapping[str, str], timeouts: Timeouts
) -> Settings:
    """The settings of a run.

    Args:
        constraint: name → expression of the recipe's performance phase, None if there is none.
        environ: the check's environment.
        timeouts: for waits that nobody sets.

    Raises:
        AicrError: INVALID_REQUEST naming every value that cannot be used, and where it comes from.
    """
    waits = {
        "ready": timeouts.inference_ready,
        "health": timeouts.inference_health,
        "populate": timeouts.inference_populate,
    }
    values: dict[str, Any] = {}
    faults: list[str] = []
    hints: list[str] = []
    for knob in KNOBS:
        found: list[Any] = []
        for source, text in _stated(knob, constraint, environ):
            try:
                found.append(knob.read(text))
            except AicrError as error:
                faults.append(f'{source}: "{text}" {error.message}')
                hints.append(error.hint)
        if found:
            values[knob.key] = found[0]
        elif knob.key in waits:
            values[knob.key] = waits[knob.key]
        else:
            values[knob.key] = _UNSET[knob.key] if knob.key in _UNSET else knob.read(knob.default)
    if faults:
        raise invalid("; ".join(faults), hint=next(filter(None, hints), ""))
    return Settings(**values)


def _stated(
    knob: Knob, constraint: Callable[[str], str | None], environ: Mapping[str, str]
) -> list[tuple[str, str]]:
    """(where from, text) of what is set, the one that counts first."""
    given = [
        (knob.constraint, (constraint(knob.constraint) or "") if knob.constraint else ""),
        (knob.variable, environ.get(knob.variable, "") if knob.variable else ""),
    ]
    return [(source, text.strip()) for source, text in given if text.strip()]


def described() -> tuple[Setting, ...]:
    """The variables, for `Check.settings`."""
    return tuple(
        Setting(
            knob.variable,
            knob.default or "not set",
            f"{knob.meaning}; constraint `{knob.constraint}` of the recipe comes first"
            if knob.constraint
            else knob.meaning,
        )
        for knob in KNOBS
        if knob.variable
    )
