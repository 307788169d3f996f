"""Every constraint expression of the kit: one constraint of a recipe against one snapshot."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.conftest import Judge
from tests.conformance.kit import Kit, kit
from tests.conformance.product import golden_refusal, refusal, settle_words

from aicr.constraints.evaluate import evaluate_constraint
from aicr.errors import AicrError
from aicr.snapshot import document as snapshots
from aicr.yamlio import read

KIT: Kit = kit()
CASES: list[dict[str, Any]] = KIT.load("constraints/index.yaml")["expressions"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_expression_agrees_with_the_original(case: dict[str, Any], conformance: Judge) -> None:
    """A constraint passes, fails or cannot be evaluated as in the original, but for named rules."""
    expected: dict[str, Any] = {"outcome": case["outcome"]}
    if case["outcome"] in ("pass", "fail"):
        expected["actual"] = case["actual"]
    else:
        expected |= golden_refusal(case.get("message") or case["error"])
    actual = _evaluate(case)
    settle_words(expected, actual)
    conformance("expression", case["id"], expected, actual)


def _evaluate(case: dict[str, Any]) -> dict[str, Any]:
    source = f"constraints/snapshots/{case['snapshot']}"
    try:
        snapshot, _ = snapshots.load(KIT.text(source), source, mode="v3")
    except AicrError as error:
        return {"outcome": "error", **refusal(error)}
    name = f"constraints/recipes/{case['id']}.yaml"
    recipe = read.load(KIT.text(name), source=name, mode="v3")
    try:
        outcome = evaluate_constraint(recipe["constraints"][0], snapshot)
    except AicrError as error:
        return {"outcome": "skipped", **refusal(error)}
    return {"outcome": "pass" if outcome.passed else "fail", "actual": outcome.actual}
