"""The settings of inference-perf: defaults, precedence, and every value that is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from aicr.checks.performance.inference_knobs import (
    KNOBS,
    ROUTER_MODES,
    Settings,
    described,
    resolve,
)
from aicr.checks.sdk.timeouts import Timeouts
from aicr.errors import INVALID_REQUEST, AicrError

P = "AICR_INFERENCE_PERF_"


def settings(
    constraints: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """The settings of a recipe and an environment."""
    return resolve((constraints or {}).get, environ or {}, Timeouts())


@pytest.mark.covers("V-301", "V-309", "V-310", "V-311", "V-319", "V-331", "V-334")
def test_defaults_are_those_of_the_seed() -> None:
    """Nothing set: the whole table of defaults."""
    assert settings() == Settings(
        model="Qwen/Qwen3-8B",
        concurrency_per_gpu=256,
        routing_mode="dynamo-router",
        router_mode="least-loaded",
        warmup_per_concurrency=1,
        min_requests=1000,
        requests_per_concurrency=8,
        input_tokens=128,
        output_tokens=128,
        ready=600.0,
        health=300.0,
        populate=780.0,
        cache_size="100Gi",
        storage_class="",
        extra_types=(),
        keep=False,
    )


@pytest.mark.covers("V-301", "V-302", "V-314")
@pytest.mark.parametrize(
    ("constraint", "variable", "key", "recipe", "environ", "default"),
    [
        ("inference-model", "MODEL", "model", "a/b", "c/d", "Qwen/Qwen3-8B"),
        (
            *("inference-concurrency-per-gpu", "CONCURRENCY_PER_GPU", "concurrency_per_gpu"),
            *("16", "32", 256),
        ),
        (
            *("inference-model-cache-storage-class", "MODEL_CACHE_STORAGE_CLASS", "storage_class"),
            *("fast", "slow", ""),
        ),
    ],
    ids=["model", "concurrency", "storage class"],
)
def test_the_recipe_comes_before_the_environment_before_the_default(
    constraint: str, variable: str, key: str, recipe: str, environ: str, default: Any
) -> None:
    """A blank value is absent, in the recipe and in the environment."""
    kind = type(default)

    def found(stated: str, env: str) -> Any:
        return getattr(settings({constraint: stated}, {P + variable: env}), key)

    assert found(recipe, environ) == kind(recipe)
    assert found(" ", environ) == kind(environ)
    assert found("", "  ") == default


@pytest.mark.covers("V-305", "V-306", "V-334")
@pytest.mark.parametrize("mode", ROUTER_MODES)
def test_every_router_mode_of_dynamo_but_direct_is_taken(mode: str) -> None:
    """In either routing mode."""
    for routing in ("dynamo-router", "gateway-epp"):
        found = settings({"inference-routing-mode": routing}, {P + "ROUTER_MODE": mode})
        assert (found.routing_mode, found.router_mode) == (routing, mode)


@pytest.mark.covers("V10-64", "V-274", "V-303", "V-305", "V-306")
@pytest.mark.parametrize(
    ("constraints", "environ", "message"),
    [
        ({"inference-model": "../etc"}, {}, 'inference-model: "../etc" is not a model id'),
        ({"inference-model": "a b"}, {}, 'inference-model: "a b" is not a model id'),
        ({}, {"MODEL": "-x"}, f'{P}MODEL: "-x" is not a model id'),
        *(
            (
                {"inference-concurrency-per-gpu": text},
                {},
                f'inference-concurrency-per-gpu: "{text}" is not a positive integer',
            )
            for text in ("0", "-1", "2.5", "many", "1e3", "٣", "0x10", ">= 5")
        ),
        *(
            ({}, {name: "0"}, f'{P}{name}: "0" is not a positive integer')
            for name in (
                *("CONCURRENCY_PER_GPU", "WARMUP_PER_CONCURRENCY", "MIN_REQUESTS"),
                *("REQUESTS_PER_CONCURRENCY", "INPUT_TOKENS_MEAN", "OUTPUT_TOKENS_MEAN"),
            )
        ),
        (
            {"inference-routing-mode": "gateway"},
            {},
            'inference-routing-mode: "gateway" is not one of dynamo-router, gateway-epp',
        ),
        (
            {"inference-routing-mode": "gateway-epp"},
            {"ROUTER_MODE": "direct"},
            f'{P}ROUTER_MODE: "direct" is not one of kv, round-robin, random, power-of-two, '
            "least-loaded, device-aware-weighted",
        ),
        ({}, {"ROUTER_MODE": "Least-Loaded"}, f'{P}ROUTER_MODE: "Least-Loaded" is not one of'),
        *(
            ({}, {name: text}, f'{P}{name}: "{text}" is not a {what}')
            for name in (
                *("WORKLOAD_READY_TIMEOUT", "HEALTH_TIMEOUT"),
                "MODEL_CACHE_POPULATE_TIMEOUT",
            )
            for text, what in (("ten", "Go duration"), ("600", "Go duration"), ("0s", "positive"))
        ),
        ({}, {"MODEL_CACHE_SIZE": "100GB"}, f'{P}MODEL_CACHE_SIZE: "100GB" is neither a quantity'),
        ({}, {"MODEL_CACHE_SIZE": "-1Gi"}, f'{P}MODEL_CACHE_SIZE: "-1Gi" is not above zero'),
        ({}, {"MODEL_CACHE_SIZE": "0Gi"}, f'{P}MODEL_CACHE_SIZE: "0Gi" is not above zero'),
        (
            {"inference-model-cache-storage-class": "Fast Disk"},
            {},
            'inference-model-cache-storage-class: "Fast Disk" is not the name of a StorageClass',
        ),
        (
            {},
            {"MODEL_CACHE_EXTRA_COMPATIBLE_TYPES": "a b,c"},
            f'{P}MODEL_CACHE_EXTRA_COMPATIBLE_TYPES: "a b,c" is not a list of storage types',
        ),
        ({}, {"NO_CLEANUP": "yes"}, f'{P}NO_CLEANUP: "yes" is neither true nor false'),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(
    constraints: dict[str, str], environ: dict[str, str], message: str
) -> None:
    """INVALID_REQUEST with the source, the text and the reason; nothing is defaulted."""
    with pytest.raises(AicrError) as caught:
        settings(constraints, {P + name: text for name, text in environ.items()})
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message.startswith(message)
    assert caught.value.hint or "one of" in message


def test_all_faults_are_named_at_once_also_of_values_that_do_not_count() -> None:
    """A variable that the recipe overrides is checked all the same."""
    with pytest.raises(AicrError) as caught:
        settings(
            {"inference-model": "good/model", "inference-concurrency-per-gpu": "0"},
            {P + "MODEL": "not good", P + "HEALTH_TIMEOUT": "soon"},
        )
    faults = caught.value.message.split("; ")
    assert [fault.split(":")[0] for fault in faults] == [
        f"{P}MODEL",
        "inference-concurrency-per-gpu",
        f"{P}HEALTH_TIMEOUT",
    ]


@pytest.mark.covers("V-311", "V-312", "V-317")
@pytest.mark.parametrize(
    ("text", "size"),
    [
        *((word, "") for word in ("off", "0", "none", "disabled", "OFF")),
        ("250Gi", "250Gi"),
        ("1T", "1T"),
    ],
)
def test_the_cache_has_a_size_or_is_off(text: str, size: str) -> None:
    """The four words switch it off, any quantity above zero resizes it."""
    assert settings({}, {P + "MODEL_CACHE_SIZE": text}).cache_size == size


@pytest.mark.covers("V-309", "V-319")
def test_the_wait_for_the_cache_does_not_follow_the_wait_for_the_workload() -> None:
    """Each wait has its own variable."""
    found = settings({}, {P + "WORKLOAD_READY_TIMEOUT": "1h30m"})
    assert (found.ready, found.health, found.populate) == (5400.0, 300.0, 780.0)
    assert settings({}, {P + "MODEL_CACHE_POPULATE_TIMEOUT": "20m"}).populate == 1200.0


@pytest.mark.covers("V-102")
@pytest.mark.parametrize(
    ("text", "keep"), [("1", True), ("true", True), ("T", True), ("0", False), ("F", False)]
)
def test_keeping_is_what_go_takes_for_a_bool(text: str, keep: bool) -> None:
    """As the orchestrator passes it on, and as a person may write it."""
    assert settings({}, {P + "NO_CLEANUP": text}).keep is keep


@pytest.mark.covers("V-300")
def test_settings_come_from_the_container_s_environment_which_the_catalogue_writes() -> None:
    """No knob but NO_CLEANUP is passed on from the caller's shell."""
    from aicr.validate.environment import FORWARDED

    variables = {knob.variable for knob in KNOBS if knob.variable}
    assert variables & set(FORWARDED) == {P + "NO_CLEANUP"}
    assert all(re.fullmatch(f"{P}[A-Z_]+", name) for name in variables)
    assert {setting.name for setting in described()} == variables
