"""One constraint against one snapshot: order of steps, codes, wording."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.constraints.evaluate import check_constraint, evaluate_constraint
from aicr.errors import CONFLICT, INVALID_REQUEST, NOT_FOUND, AicrError
from aicr.yamlio import read

SNAPSHOT: dict[str, Any] = {
    "metadata": {"source-node": "node-x"},
    "measurements": [
        {
            "type": "K8s",
            "subtypes": [{"subtype": "server", "data": {"version": "v1.33.5-eks-3025e55"}}],
        },
        {
            "type": "NetworkTopology",
            "subtypes": [
                {"subtype": "pfs", "items": [{"data": {"rail": 1}}, {"data": {"rail": 1}}]}
            ],
        },
    ],
}


def failure(name: Any, value: Any) -> AicrError:
    """The error of evaluating a constraint."""
    with pytest.raises(AicrError) as caught:
        evaluate_constraint({"name": name, "value": value}, SNAPSHOT)
    return caught.value


@pytest.mark.covers("V-010")
def test_a_constraint_compares_a_reading_with_an_expression() -> None:
    """The outcome carries verdict, actual and expected text."""
    outcome = evaluate_constraint({"name": "K8s.server.version", "value": ">= 1.32.4"}, SNAPSHOT)
    assert outcome.passed
    assert outcome.actual == "v1.33.5-eks-3025e55"
    assert outcome.expected == ">= 1.32.4"
    assert outcome.actual_normalised == "1.33.5"


@pytest.mark.covers("A9", "R11-61")
def test_a_missing_measurement_is_not_found_and_names_node_and_collector() -> None:
    """Absent is neither passed nor skipped (decision 9)."""
    error = failure("GPU.smi.driver-version", ">= 570")
    assert (error.code, error.message) == (NOT_FOUND, "value not found in snapshot")
    assert error.where == "GPU.smi.driver-version"
    assert error.chain()[-1].message == "measurement type not found in snapshot"
    assert "node node-x" in error.hint
    assert "GPU collector" in error.hint


@pytest.mark.covers("R11-64")
def test_an_ambiguous_predicate_is_a_conflict_and_not_an_absence() -> None:
    """Callers exclude on NOT_FOUND only; two matching items must stop them."""
    error = failure("NetworkTopology.pfs[rail=1].rail", "1")
    assert error.code == CONFLICT
    assert error.chain()[-1].message == "item predicate matches multiple entries"


@pytest.mark.covers("V-031")
@pytest.mark.parametrize(
    ("name", "value", "outer", "inner"),
    [
        ("Foo.a.b", "x", "invalid constraint path", "invalid measurement type"),
        ("", "x", "invalid constraint path", "constraint path cannot be empty"),
        (None, "x", "invalid constraint path", "constraint path cannot be empty"),
        ("K8s.server.version", "", "invalid constraint expression", "cannot be empty"),
        ("K8s.server.version", None, "invalid constraint expression", "cannot be empty"),
        ("K8s.server.version", "=> 1", "invalid constraint expression", '"=>" is not'),
        ("K8s.server.version", 24.1, "invalid constraint expression", "must be text"),
        ("K8s.server.version", True, "invalid constraint expression", "must be text"),
        ("NetworkTopology.pfs[0].rail", ">= x", "invalid constraint expression", "not numeric"),
    ],
)
def test_a_wrong_rule_is_an_invalid_request(name: Any, value: Any, outer: str, inner: str) -> None:
    """Path, then expression: each failure says which step it was (recipe spec 8.8)."""
    error = failure(name, value)
    assert (error.code, error.message) == (INVALID_REQUEST, outer)
    assert inner in error.chain()[-1].message


@pytest.mark.covers("V-031")
def test_the_path_is_looked_up_before_the_expression_is_read() -> None:
    """Of two mistakes the one in the path is reported (recipe spec 8.8)."""
    assert failure("K8s.server.nope", "=> 1").code == NOT_FOUND


@pytest.mark.covers("V-027", "V-031")
def test_an_unreadable_actual_version_is_an_error_of_the_evaluation() -> None:
    """The chain ends in why the text is no version."""
    document = {
        "measurements": [
            {"type": "K8s", "subtypes": [{"subtype": "server", "data": {"version": "abc"}}]}
        ]
    }
    with pytest.raises(AicrError) as caught:
        evaluate_constraint({"name": "K8s.server.version", "value": ">= 1.28"}, document)
    messages = [error.message for error in caught.value.chain()]
    assert caught.value.code == INVALID_REQUEST
    assert messages[1] == "cannot parse actual version"
    assert "version component is not numeric" in messages[2]


def test_nothing_is_written_into_the_snapshot() -> None:
    """Evaluation is pure."""
    before = repr(SNAPSHOT)
    evaluate_constraint({"name": "K8s.server.version", "value": ">= 1.32.4"}, SNAPSHOT)
    assert repr(SNAPSHOT) == before


@pytest.mark.covers("A8")
def test_an_unquoted_number_is_refused_and_never_loses_its_zero() -> None:
    """24.10 reads as 24.1 in YAML; the error asks for quotes and offers no wrong text."""
    entry = read.load("{name: OS.release.VERSION_ID, value: 24.10}", source="f.yaml")
    with pytest.raises(AicrError) as caught:
        check_constraint(entry)
    assert "quote it" in caught.value.hint
    assert '"24.1"' not in str(caught.value) + caught.value.hint


@pytest.mark.covers("A8")
@pytest.mark.parametrize("text", ["'== 24.10'", "== 24.10", "< 1.35.0", "'>= 1.32.4'"])
def test_expressions_that_yaml_reads_as_text_are_fine(text: str) -> None:
    """Quoted ones always; some unquoted ones too."""
    entry = read.load(f"name: OS.release.VERSION_ID\nvalue: {text}\n", source="f.yaml")
    check_constraint(entry)


@pytest.mark.covers("A8")
@pytest.mark.parametrize(
    "text",
    [
        "name: K8s.server.version\nvalue: >= 1.32.4\n",
        "name: NodeTopology.gpu-nodes.label\nvalue: !example.com/plugin\n",
    ],
)
def test_expressions_that_yaml_eats_are_refused_with_a_hint_to_quote(text: str) -> None:
    """A block scalar or a tag swallows the rule; the reader must not hand over what is left."""
    with pytest.raises(AicrError) as caught:
        read.load(text, source="f.yaml")
    assert caught.value.code == INVALID_REQUEST
    assert "quote" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("K8s.server.version", ">= 1.32.4"),
        ("NodeTopology.gpu-nodes.label", "!a/b"),
        ("NodeTopology.gpu-nodes.label", "a/b=c"),
    ],
)
def test_a_sound_constraint_passes_the_check_without_a_snapshot(name: str, value: str) -> None:
    """Path, known reading and expression are all that can be checked."""
    check_constraint({"name": name, "value": value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("K8s.serverr.version", ">= 1.32.4", "did you mean"),
        ("K8s.server.version", "~1.32", "invalid constraint expression"),
        ("NodeTopology.gpu-nodes.label", ">= 1.32", "invalid node-set constraint value"),
        ("NodeTopology.gpu-nodes.label", None, "cannot be empty"),
        ("K8s", "x", "invalid constraint path"),
    ],
)
def test_the_check_without_a_snapshot_finds_every_mistake_of_the_rule(
    name: str, value: Any, message: str
) -> None:
    """A data tree is refused before any cluster is looked at."""
    with pytest.raises(AicrError, match=message) as caught:
        check_constraint({"name": name, "value": value})
    assert caught.value.code == INVALID_REQUEST
