"""Six operators and one node-set rule: which there are, how they are told apart, what they never do."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.checks.performance import nccl_settings
from aicr.constraints import expression, nodeset
from aicr.constraints.evaluate import evaluate_constraint
from aicr.errors import INVALID_REQUEST, NOT_FOUND, AicrError


@pytest.mark.covers("V-022")
def test_there_are_six_operators_and_the_exact_text() -> None:
    """Ranges and tolerances are no operators; an addition to this set is a decision (decision 65)."""
    assert set(expression.OPERATORS) == {">=", "<=", ">", "<", "==", "!="}
    assert expression.EXACT == ""


@pytest.mark.covers("V-021")
@pytest.mark.parametrize("blank", ["", " ", "   "])
@pytest.mark.parametrize("operator", expression.OPERATORS)
def test_the_longest_operator_that_fits_is_the_one(operator: str, blank: str) -> None:
    """``>=1.30`` is not ``>`` with the operand ``=1.30``."""
    ((comparison,),) = expression.parse(f"{operator}{blank}1.30").arms
    assert (comparison.operator, comparison.operand) == (operator, "1.30")


@pytest.mark.covers("V-030")
@pytest.mark.parametrize(
    ("measured", "strictly", "with_tolerance"),
    [(450, True, True), (449, False, True), (405, False, True), (404, False, False)],
)
def test_an_operator_has_no_tolerance_and_the_check_that_measures_has(
    measured: int, strictly: bool, with_tolerance: bool
) -> None:
    """Nine tenths of a bandwidth do for the NCCL checks; the same expression alone is strict."""
    stated = ">= 450"
    outcome = expression.evaluate(expression.parse(stated), str(measured))
    assert outcome.passed is strictly
    assert nccl_settings.threshold(stated, "nccl-all-reduce-bw").is_met(measured) is with_tolerance


def snapshot(provider: str, labels: dict[str, str], **subtypes: dict[str, str]) -> dict[str, Any]:
    """A snapshot with these label readings, and more subtypes of NodeTopology."""
    topology = [{"subtype": "label", "data": labels}]
    topology += [
        {"subtype": name.replace("_", "-"), "data": data} for name, data in subtypes.items()
    ]
    return {
        "measurements": [
            {"type": "K8s", "subtypes": [{"subtype": "node", "data": {"provider": provider}}]},
            {"type": "NodeTopology", "subtypes": topology},
        ]
    }


@pytest.mark.covers("V-033")
def test_the_name_of_the_node_set_rule_never_reaches_the_readings() -> None:
    """Exactly this name is the rule, even beside a reading of that path; any other name is a path."""
    gpus = {"cloud.google.com/gke-accelerator": "h100|n1"}
    found = snapshot("gke", gpus, gpu_nodes={"label": "a=b", "labels": "a=b"})
    rule = evaluate_constraint({"name": nodeset.NAME, "value": "a=b"}, found)
    assert not rule.passed
    assert rule.actual == "1 of 1 GPU node(s) missing a=b: n1"
    path = evaluate_constraint({"name": "NodeTopology.gpu-nodes.labels", "value": "a=b"}, found)
    assert path.passed
    assert path.actual == "a=b"
    with pytest.raises(AicrError) as caught:
        evaluate_constraint({"name": nodeset.NAME.lower(), "value": "a=b"}, found)
    assert caught.value.message == "invalid constraint path"
    with pytest.raises(AicrError) as caught:
        evaluate_constraint({"name": f"{nodeset.NAME}s.x", "value": "a=b"}, found)
    assert caught.value.code == NOT_FOUND


#: Labels that an operator or feature discovery sets, so that a new pool lacks them.
LATE = ("nvidia.com/", "feature.node.kubernetes.io/", "beta.amd.com/")


@pytest.mark.covers("V-036", "V-044")
def test_the_label_of_gpu_nodes_is_one_that_pools_are_created_with() -> None:
    """GKE's is its accelerator label; no service's may be one that comes with the GPU operator or NFD."""
    assert nodeset.UNIVERSE_LABELS == {"gke": "cloud.google.com/gke-accelerator"}
    assert not [label for label in nodeset.UNIVERSE_LABELS.values() if label.startswith(LATE)]


@pytest.mark.covers("V-044")
def test_a_service_is_added_by_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before, judged after, by its own label and no other's."""
    found = snapshot("newcloud", {"new.cloud/gpu": "x|n1", "a": "b|n1,n2"})
    constraint = {"name": nodeset.NAME, "value": "a=b"}
    with pytest.raises(AicrError) as caught:
        evaluate_constraint(constraint, found)
    assert caught.value.code == INVALID_REQUEST
    monkeypatch.setitem(nodeset.UNIVERSE_LABELS, "newcloud", "new.cloud/gpu")
    assert evaluate_constraint(constraint, found).actual == "all 1 GPU node(s) carry a=b"
