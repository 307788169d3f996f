"""Every resolution of the kit: the 329 command lines, and the matrix of all criteria."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.conftest import Judge
from tests.conformance.kit import Kit, kit
from tests.conformance.product import Product, golden_refusal, option, refusal, settle_words

from aicr.errors import AicrError
from aicr.recipe.criteria import Criteria
from aicr.recipe.resolve import resolve
from aicr.snapshot import document as snapshots

KIT: Kit = kit()
CASES: list[dict[str, Any]] = KIT.load("resolve/index.yaml")["cases"]
MATRIX: dict[str, Any] = KIT.load("resolve/matrix.yaml")
FIELDS = ("service", "accelerator", "intent", "os", "platform")

#: The original's recipe for each list of applied overlays.
BODIES = {tuple(b["overlays"]): KIT.load(b["file"]) for b in MATRIX["bodies"].values()}

#: Read by functions, not through the command: what is detected in a snapshot has changed, and only how
#: overlays are held against it is comparable.
BELOW_THE_SURFACE = "snapshot"
#: Groups that agree with the coverage refusal on.
COVERED = ("overlay-exact", "error")


def arguments(case: dict[str, Any]) -> list[str]:
    """The command line of a case, as words."""
    return [str(word) for word in case["args"]]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_recipe_agrees_with_the_original(
    case: dict[str, Any], product: Product, conformance: Judge
) -> None:
    """A recipe is the original's, or is refused as there, but for what a rule names."""
    if case["group"] not in COVERED:
        product.without_coverage()
    args = arguments(case)
    if not args:
        actual = {"document": product.run(args)[1].stdout.partition("\n")[0]}
        expected: dict[str, Any] = {"document": "usage: aicr COMMAND [flags]"}
        assert case["stdout"] == "help text (not kept)"
    elif option(args, "--format", "-t") == "table":
        actual = _table(product, args)
        expected = {"document": _rows(KIT.text(case["file"]))}
    else:
        through = case["group"] == BELOW_THE_SURFACE and "file" in case
        actual = _filtered(case) if through else product.observe(args)
        expected = _golden(case, actual)
    settle_words(expected, actual)
    conformance(
        "resolve",
        case["id"],
        expected,
        actual,
        sets=[f"document.{path}" for path in case.get("unordered", [])],
        facts={"catalog": KIT.catalog, "bodies": BODIES},
    )


def _golden(case: dict[str, Any], actual: dict[str, Any]) -> dict[str, Any]:
    if "files" in case:
        # The original prints one of these at random; take the nearest.
        choices = [{"document": KIT.load(name)} for name in case["files"]]
        return min(choices, key=lambda one: len(KIT.comparer.diff(one, actual, by={}, sets=())))
    if "file" in case:
        return {"document": KIT.load(case["file"])}
    return golden_refusal(case.get("error") or "", case["exit"])


def _filtered(case: dict[str, Any]) -> dict[str, Any]:
    """Resolve for the criteria that the original detected, with the snapshot deciding overlays."""
    source = option(arguments(case), "--snapshot", "-s")
    assert source is not None
    snapshot, _ = snapshots.load(KIT.text(source), source, mode="v3")
    criteria = Criteria(**KIT.load(case["file"])["criteria"])
    try:
        recipe = resolve(KIT.catalog, criteria, snapshot=snapshot, coverage=False)
    except AicrError as error:
        return refusal(error)
    return {"document": recipe.document}


def _table(product: Product, args: list[str]) -> dict[str, Any]:
    status, console = product.run(args)
    assert status == 0
    return {"document": _rows(console.stdout)}


def _rows(table: str) -> dict[str, str]:
    """A table by its field names, which are compared whatever their letter case."""
    pairs = [line.split(None, 1) for line in table.splitlines()[2:]]
    return {words[0].lower(): words[1].strip() if len(words) > 1 else "" for words in pairs}


@pytest.mark.parametrize("body", MATRIX["bodies"], ids=str)
def test_matrix_body_agrees_with_the_original(body: str, conformance: Judge) -> None:
    """All criteria of a body give that body: the same overlays and the same merged recipe."""
    rows = [row for row, name in MATRIX["matrix"].items() if name == body]
    golden = {k: v for k, v in KIT.load(MATRIX["bodies"][body]["file"]).items() if k != "criteria"}
    bodies = [_body(row) for row in rows]
    first = bodies[0]
    assert [row for row, found in zip(rows, bodies, strict=True) if found != first] == []
    assert len(rows) == MATRIX["bodies"][body]["criteria_count"]
    assert first["metadata"]["appliedOverlays"] == MATRIX["bodies"][body]["overlays"]
    conformance(
        "matrix", body, {"document": golden}, {"document": first}, facts={"catalog": KIT.catalog}
    )


def _criteria(row: str) -> Criteria:
    service, accelerator, intent, os, platform = row.split("/")
    return Criteria(
        service=service, accelerator=accelerator, intent=intent, os=os, platform=platform
    )


def _body(row: str) -> dict[str, Any]:
    document = dict(resolve(KIT.catalog, _criteria(row), coverage=False).document)
    assert document.pop("criteria") == dict(zip(FIELDS, row.split("/"), strict=True))
    return document


def test_coverage_refuses_all_but_the_covered_rows_of_the_matrix() -> None:
    """With the coverage refusal on, exactly the rows that the kit lists as covered resolve."""
    codes = {row: _code(row) for row in MATRIX["matrix"]}
    nothing_stated = "any/any/any/any/any"
    assert codes.pop(nothing_stated) == ""
    assert sorted(row for row in codes if not codes[row]) == sorted(MATRIX["covered"])
    assert {codes[row] for row in codes if codes[row]} == {"INVALID_REQUEST"}


def _code(row: str) -> str:
    try:
        resolve(KIT.catalog, _criteria(row))
    except AicrError as error:
        return error.code
    return ""
