"""Arguments of the wrong kind: the refusal says what was passed, in the error that everything raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import aicr

ANYTHING: Any = aicr


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda catalog: ANYTHING.resolve(catalog, {"service": "eks"}),
            "criteria must be aicr.Criteria, found dict",
        ),
        (
            lambda catalog: ANYTHING.resolve(catalog, "eks"),
            "criteria must be aicr.Criteria, found str",
        ),
        (
            lambda catalog: ANYTHING.hydrate(
                aicr.resolve(catalog, aicr.Criteria(service="eks")).document
            ),
            "only what aicr.resolve gives can be hydrated, found dict",
        ),
        (
            lambda catalog: ANYTHING.bundle(
                aicr.resolve(catalog, aicr.Criteria(service="eks")).document
            ),
            "only what aicr.resolve gives can be bundled, found dict",
        ),
        (
            lambda catalog: ANYTHING.bundle(
                aicr.resolve(catalog, aicr.Criteria(service="eks")), {"deployer": "helm"}
            ),
            "options must be aicr.BundleOptions, found dict",
        ),
        (lambda _: ANYTHING.Criteria(nodes="3"), "invalid nodes count: 3 (must be >= 0)"),
        (lambda _: ANYTHING.Criteria(nodes=True), "invalid nodes count: True (must be >= 0)"),
        (lambda _: ANYTHING.Criteria(service=3), "service must be text, found a number"),
    ],
    ids=["map", "word", "document", "bundle", "options", "nodes-text", "nodes-bool", "service"],
)
def test_an_argument_of_the_wrong_kind_is_an_aicr_error(
    call: Callable[[aicr.Catalog], object], message: str
) -> None:
    """No TypeError or AttributeError from inside, and no word about a field that nobody passed."""
    with pytest.raises(aicr.AicrError) as caught:
        call(aicr.Catalog.builtin())
    assert caught.value.code == "INVALID_REQUEST"
    assert caught.value.message == message
