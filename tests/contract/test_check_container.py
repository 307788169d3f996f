"""The container contract: exit codes, cutting, node selectors and tolerations as text."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.contract import container
from aicr.errors import INVALID_REQUEST, AicrError


@pytest.mark.covers("V-082", "V-083", "V-084")
@pytest.mark.parametrize(
    ("code", "status"),
    [(0, "passed"), (1, "failed"), (2, "skipped")]
    + [(code, "other") for code in (-1, 3, 125, 137, 143)],
)
def test_exit_codes_outside_the_contract_are_other(code: int, status: str) -> None:
    """0, 1 and 2 are verdicts; everything else is none."""
    assert container.status_of(code) == status


@pytest.mark.covers("V-087")
def test_a_long_termination_message_is_cut_between_characters() -> None:
    """`cut` says how much is missing on top of the limit; `fit` stays inside it."""
    text = "é" * 2500
    assert container.cut(text) == "é" * 2048 + "... [truncated 904 bytes]"
    assert container.cut("x" + text).startswith("x" + "é" * 2047 + "... [truncated 906 bytes]")
    assert container.cut("short") == container.fit("short") == "short"
    fitted = container.fit(text)
    assert len(fitted.encode()) <= 4096
    assert "... [truncated" in fitted


@pytest.mark.covers("V-097")
def test_a_node_selector_survives_its_text_form() -> None:
    """Sorted k=v pairs; a value may be empty."""
    selector = {"b": "2", "a": "", "nvidia.com/gpu.present": "true"}
    text = container.format_node_selector(selector)
    assert text == "a=,b=2,nvidia.com/gpu.present=true"
    assert container.parse_node_selector(text) == selector
    assert container.parse_node_selector("") == {}


@pytest.mark.parametrize("text", ["a", "=b", "a=b,c"], ids=["no value", "no key", "second entry"])
def test_a_node_selector_entry_that_is_no_pair_is_refused(text: str) -> None:
    """A selector that cannot be read would select other nodes."""
    with pytest.raises(AicrError, match="not of the form key=value") as caught:
        container.parse_node_selector(text)
    assert caught.value.code == INVALID_REQUEST


TOLERATIONS: list[tuple[str, list[dict[str, Any]]]] = [
    ("*", [{"operator": "Exists"}]),
    ("*:NoExecute", [{"operator": "Exists", "effect": "NoExecute"}]),
    ("gpu:NoSchedule", [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]),
    (
        "gpu=true:NoSchedule,*",
        [
            {"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
            {"operator": "Exists"},
        ],
    ),
    ("gpu:", [{"key": "gpu", "operator": "Exists"}]),
    ("", []),
]


@pytest.mark.covers("V-098")
@pytest.mark.parametrize(("text", "tolerations"), TOLERATIONS, ids=[t for t, _ in TOLERATIONS])
def test_tolerations_survive_their_text_form(text: str, tolerations: list[dict[str, Any]]) -> None:
    """`*` is the toleration of everything, an effect that is not stated stands for all."""
    assert container.parse_tolerations(text) == tolerations
    assert container.format_tolerations(tolerations) == text


def test_a_toleration_with_an_empty_value_means_that_the_key_exists() -> None:
    """As the command line reads it."""
    assert container.parse_tolerations("k=:NoSchedule") == [
        {"key": "k", "operator": "Exists", "effect": "NoSchedule"}
    ]


@pytest.mark.parametrize("text", ["gpu:Foo", ":NoSchedule", "a:b:NoSchedule", "*=x:NoSchedule"])
def test_a_toleration_that_is_of_none_of_the_forms_is_refused(text: str) -> None:
    """Effects are case-sensitive; a key is needed unless it is *."""
    with pytest.raises(AicrError, match="is not of the form") as caught:
        container.parse_tolerations(text)
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "k", "operator": "Exists", "tolerationSeconds": 5},
        {"key": "k", "operator": "Equal"},
        {"key": "k", "operator": "Exists", "value": "v"},
        {"operator": "Equal", "value": "v"},
        {"key": "k", "operator": "Lt", "value": "5"},
    ],
    ids=["seconds", "equal nothing", "exists with value", "no key", "other operator"],
)
def test_a_toleration_without_a_text_form_is_refused(toleration: dict[str, Any]) -> None:
    """Otherwise a check would run with another toleration than was asked for."""
    with pytest.raises(AicrError, match="has no text form"):
        container.format_tolerations([toleration])
