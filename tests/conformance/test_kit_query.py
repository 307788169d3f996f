"""Every query of the kit: selectors, formats, refusals, and whole hydrated documents."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.conftest import Judge
from tests.conformance.kit import Kit, kit
from tests.conformance.product import Product, golden_refusal, option, settle_words

from aicr.recipe.criteria import Criteria
from aicr.recipe.hydrate import hydrate
from aicr.recipe.query import select
from aicr.recipe.resolve import resolve
from aicr.snapshot import document as snapshots

KIT: Kit = kit()
CASES: list[dict[str, Any]] = KIT.load("query/index.yaml")["cases"]
#: What the original detected in the snapshot of the queries that have one.
DETECTED = KIT.load("resolve/cases/snapshot-eks-h100-inference-dynamo.yaml")["criteria"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_query_agrees_with_the_original(
    case: dict[str, Any], product: Product, conformance: Judge
) -> None:
    """A query prints what the original prints, or is refused as there, but for what a rule names."""
    product.without_coverage()
    args = [str(word) for word in case["args"]]
    plain = "out" in case and not case["out"].startswith("- ")
    if option(args, "--snapshot"):
        actual = {"document": _filtered(args)}
    else:
        actual = product.observe(args, plain=plain)
    if "file" in case:
        expected = {"document": KIT.load(case["file"])}
    elif "out" in case:
        expected = {"document": case["out"] if plain else KIT.comparer.loads(case["out"])}
    else:
        expected = golden_refusal(case["error"], case["exit"])
    settle_words(expected, actual)
    conformance("query", case["id"], expected, actual, facts={"catalog": KIT.catalog})


def _filtered(args: list[str]) -> Any:
    """Query below the detection of criteria, with those that the original detected."""
    source, selector = option(args, "--snapshot"), option(args, "--selector")
    assert source is not None
    assert selector is not None
    assert option(args, "--intent") == DETECTED["intent"]
    snapshot, _ = snapshots.load(KIT.text(source), source, mode="v3")
    recipe = resolve(KIT.catalog, Criteria(**DETECTED), snapshot=snapshot, coverage=False)
    return select(hydrate(recipe), selector)
