"""Health checks as files: what is read, and what is refused before a cluster is touched."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.assertions.document import FORBIDDEN, HealthCheck, read_check
from aicr.errors import INVALID_REQUEST, AicrError

HEAD = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: t\n"
ASSERT = (
    "        - assert:\n            resource: {apiVersion: v1, kind: Pod, metadata: {name: p}}\n"
)


def steps(entries: str, more: str = "") -> str:
    """A Test with one step of these entries."""
    return f"{HEAD}spec:\n{more}  steps:\n    - name: s\n      try:\n{entries}"


def read(text: str, **more: Any) -> HealthCheck:
    """Read *text* as the check of component c in file f."""
    return read_check(text, source="f.yaml", component="c", **more)


def refusal(text: str, **more: Any) -> AicrError:
    """The error that *text* gives."""
    with pytest.raises(AicrError) as caught:
        read(text, **more)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.where.startswith("f.yaml")
    return caught.value


def test_a_test_is_read_into_operations() -> None:
    """Selector, step, place and parsed tree of each operation, in order."""
    text = steps(
        "        - assert:\n"
        "            resource:\n"
        "              apiVersion: apps/v1\n"
        "              kind: Deployment\n"
        "              metadata: {name: d, namespace: ns}\n"
        "              status: {(availableReplicas >= `1`): true}\n"
        "        - description: no pod hangs\n"
        "          error:\n"
        "            resource:\n"
        "              apiVersion: v1\n"
        "              kind: Pod\n"
        "              metadata: {labels: {app: x, (tier): z}}\n"
        "              status: {phase: Pending}\n",
        "  timeouts: {assert: 90s}\n",
    )
    check = read(text)
    first, second = check.operations
    assert (first.kind, first.api_version, first.resource_kind) == (
        "assert",
        "apps/v1",
        "Deployment",
    )
    assert (first.name, first.namespace, first.labels) == ("d", "ns", {})
    assert first.step == 'step "s" try[0]'
    assert first.where == "f.yaml:11:13"
    assert first.subject() == "Deployment ns/d"
    assert (second.kind, second.name, second.labels) == ("error", "", {"app": "x"})
    assert second.subject("fallback") == "Pod fallback/*"
    assert first.tree.judge({**first.resource, "status": {"availableReplicas": 2}}).passed
    assert check.tests[0].assert_timeout == 90.0


@pytest.mark.covers("H8", "V-387", "V-382", "V10-67", "V-388")
@pytest.mark.parametrize("operation", FORBIDDEN)
def test_every_operation_that_could_change_something_is_refused(operation: str) -> None:
    """The allowlist is assert and error; the message names the operation and the line (row 67)."""
    error = refusal(steps(f"{ASSERT}        - {operation}: {{}}\n"))
    assert f'step "s" try[1] uses operation "{operation}"' in error.message
    assert error.where == "f.yaml:11:11"


@pytest.mark.covers("H8", "V10-68", "V-396")
@pytest.mark.parametrize(
    ("entries", "message", "where"),
    [
        (
            "        - assert: {resource: {apiVersion: v1, kind: Pod}}\n"
            "          error: {resource: {apiVersion: v1, kind: Pod}}\n",
            'step "s" try[0] sets both assert and error',
            "f.yaml:9:11",
        ),
        ("        - asert: {}\n", '<unrecognized> operation "asert"', "f.yaml:9:11"),
        (f"{ASSERT}          asert: {{}}\n", '<unrecognized> operation "asert"', "f.yaml:9:11"),
        ("        - {}\n", '<unrecognized> operation ""', "f.yaml:9:11"),
        ("        - x\n", "an operation must be a map", "f.yaml:9:11"),
        ("        - timeout: 5m\n", '<unrecognized> operation ""', "f.yaml:9:11"),
        ("        []\n", "try is empty", "f.yaml:8:7"),
        ("        {}\n", "try must be a list", "f.yaml:8:7"),
        ("        - assert: {file: x.yaml}\n", "assert.resource is required", "f.yaml:9:11"),
        ("        - error: {}\n", "error.resource is required", "f.yaml:9:11"),
        (
            "        - assert: {resource: {kind: Pod}}\n",
            "assert.resource.apiVersion is required",
            "f.yaml:9:20",
        ),
        (
            "        - error: {resource: {apiVersion: v1}}\n",
            "error.resource.kind is required",
            "f.yaml:9:19",
        ),
        (
            "        - assert: {resource: {apiVersion: v1, kind: Pod, metadata: {name: 5}}}\n",
            "metadata.name must be a text",
            "f.yaml:9:75",
        ),
        (
            "        - assert: {resource: {apiVersion: v1, kind: Pod, metadata: {name: (a)}}}\n",
            "metadata.name must be literal",
            "f.yaml:9:75",
        ),
        (
            "        - assert: {resource: {apiVersion: v1, kind: Pod, metadata: x}}\n",
            "metadata must be a map",
            "f.yaml:9:68",
        ),
        (
            "        - assert: {resource: {apiVersion: v1, kind: Pod, metadata: {labels: [a]}}}\n",
            "metadata.labels must be a map",
            "f.yaml:9:",
        ),
        (
            "        - assert: {resource: {apiVersion: v1, kind: Pod, metadata: {labels: {a: 1}}}}\n",
            "label a must be a text",
            "f.yaml:9:81",
        ),
        (
            "        - assert: {resource: {apiVersion: v1, kind: Pod, status: {(a ==): 1}}}\n",
            "is malformed at column 5",
            "f.yaml:9:",
        ),
        (
            "        - assert: {resource: {apiVersion: v1, kind: Pod, (lenght(a)): 1}}\n",
            "unknown function: lenght",
            "f.yaml:9:",
        ),
    ],
)
def test_wrong_operations_are_refused_with_their_place(
    entries: str, message: str, where: str
) -> None:
    """Shapes that would run nothing, or not what their author thinks (rows 67, 68)."""
    error = refusal(steps(entries))
    assert message in error.message
    assert error.where.startswith(where)
    assert error.hint


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        ("  catch: [{script: {content: x}}]\n", "spec.catch[0]: script"),
        ("  catch: [{x: 1}, {podLogs: {}}]\n", "spec.catch[1]: podLogs"),
        ("  catch: []\n", "spec.catch[0]: <catch-finally-block>"),
        ("  finally: x\n", "spec.finally[0]: <catch-finally-block>"),
        ("  cleanup: [{delete: {}}]\n", "spec.cleanup[0]: delete"),
        ("  steps: [{catch: [{sleep: {}}]}]\n", "step[0].catch[0]: sleep"),
        ("  steps: [{name: s, finally: []}]\n", 'step "s".finally[0]: <catch-finally-block>'),
        ("  steps: [{name: s, cleanup: null}]\n", 'step "s".cleanup[0]: <catch-finally-block>'),
    ],
)
@pytest.mark.covers("H8")
def test_handlers_are_refused_whatever_they_hold(spec: str, label: str) -> None:
    """catch, finally and cleanup could do anything when a check fails."""
    assert label in refusal(f"{HEAD}spec:\n{spec}").message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}spec: {{}}\n", 'chainsaw Test "t" for component "c" declares no assert/error'),
        (f"{HEAD}spec: {{steps: []}}\n", "declares no assert/error operations"),
        (f"{HEAD}spec: {{steps: [{{use: {{template: x}}}}]}}\n", "declares no assert/error"),
        (HEAD, "declares no assert/error operations"),
        (HEAD.replace("name: t", "x: y"), "chainsaw Test doc[0] for component"),
        (f"{HEAD}spec: []\n", "spec must be a map"),
        (f"{HEAD}spec: {{steps: x}}\n", "spec.steps must be a list"),
        (f"{HEAD}spec: {{steps: [x]}}\n", "a step must be a map"),
        (steps(ASSERT, "  timeouts: {assert: 5}\n"), "spec.timeouts.assert must be a duration"),
        (steps(ASSERT, "  timeouts: {assert: 5x}\n"), 'unknown unit "x"'),
        ("a: [\n", "failed to parse document 0"),
        (f"{steps(ASSERT)}---\na: [\n", "failed to parse document 1"),
        (f"{steps(ASSERT)}---\nkind: Test\nkind: Test\n", "failed to parse document 1"),
        ("", 'component "c" declares no resources to assert'),
        ("---\n# comment\n", "declares no resources to assert"),
        ("  \n---\n---\nnull\n", "declares no resources to assert"),
    ],
)
@pytest.mark.covers("H8", "V10-70", "V10-71", "V-390", "V-393")
def test_files_that_check_nothing_are_refused(text: str, message: str) -> None:
    """Nothing passes vacuously (rows 70 and 71)."""
    assert message in refusal(text).message


@pytest.mark.covers("V10-69", "V-394")
@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
            'document 1 has "Deployment", not kind "Test"',
        ),
        ("- x\n", "document 1 is not a Kubernetes-shaped mapping"),
        ("text\n", "document 1 is not a Kubernetes-shaped mapping"),
        ("apiVersion: v1\n", "document 1 has no kind field"),
        (
            "apiVersion: example.com/v1\nkind: Test\n",
            'document 1 has apiVersion "example.com/v1", which is not in the "chainsaw.kyverno.io" group',
        ),
        ("kind: Test\n", 'document 1 has apiVersion ""'),
    ],
)
def test_only_tests_share_a_stream_with_a_test(second: str, message: str) -> None:
    """Nothing else in the stream would be read by anyone (row 69)."""
    text = f"{steps(ASSERT)}---\n{second}"
    error = refusal(text)
    assert message in error.message
    assert int(error.where.split(":")[1]) > 10
    assert "declares no" not in error.message


@pytest.mark.covers("V-395")
def test_punctuation_between_documents_is_no_content() -> None:
    """Empty, comment-only and null documents are skipped; positions hold for the whole file."""
    text = f"---\n# comment\n---\nnull\n---\n{steps(ASSERT)}---\n{steps(ASSERT)}---\n"
    check = read(text)
    assert [test.name for test in check.tests] == ["t", "t"]
    assert [operation.where for operation in check.operations] == ["f.yaml:15:13", "f.yaml:26:13"]


def test_offenders_among_several_documents_are_named() -> None:
    """The label says which document."""
    error = refusal(f"{steps(ASSERT)}---\n{steps('        - script: {}' + chr(10))}")
    assert error.message.startswith('doc[1] step "s" try[0]')


@pytest.mark.covers("V10-70", "V-391")
def test_an_intended_no_op_says_so() -> None:
    """The annotation excuses its own document, and no other (row 70)."""
    note = HEAD + '  annotations: {aicr/no-op-check: "true"}\n'
    check = read(f"{note}spec: {{steps: [{{name: s, try: []}}]}}\n")
    assert check.operations == ()
    assert check.tests[0].no_op
    assert "declares no assert/error" in refusal(f"{note}---\n{HEAD}").message
    assert "declares no assert/error" in refusal(note.replace('"true"', "true")).message


@pytest.mark.covers("V-431")
@pytest.mark.parametrize(
    ("first", "second", "caller", "expected"),
    [
        ("90s", "", 360.0, 90.0),
        ("10m", "", 360.0, 360.0),
        ("", "", 360.0, 360.0),
        ("", "30s", 360.0, 30.0),
        ("5m", "30s", 360.0, 300.0),
        ("0s", "30s", 360.0, 30.0),
        ("-5s", "", 360.0, 360.0),
    ],
)
def test_a_check_may_shorten_the_budget_and_never_extend_it(
    first: str, second: str, caller: float, expected: float
) -> None:
    """The first document that names a positive time counts (row 83)."""
    parts = [
        steps(ASSERT, f"  timeouts: {{assert: {text}}}\n" if text else "")
        for text in (first, second)
    ]
    assert read("---\n".join(parts)).budget(caller) == expected


def test_what_the_engine_ignores_is_no_error() -> None:
    """Settings of chainsaw that do not change what is asserted (8.3)."""
    more = "  concurrent: true\n  skip: false\n  namespace: x\n  bindings: []\n  template: true\n"
    entry = ASSERT + "          timeout: 5s\n          continueOnError: true\n"
    assert len(read(steps(entry, more)).operations) == 1


def test_raw_objects_are_compared_by_name() -> None:
    """Files without a Test hold objects to compare with (8.6)."""
    check = read("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nstatus: {phase: Running}\n")
    assert check.tests == ()
    assert [operation.name for operation in check.raw] == ["p"]
    assert check.operations == check.raw


@pytest.mark.parametrize(
    "text", ["apiVersion: v1\nkind: Pod\n", "a: 1\n", "- x\n", "kind: Pod\nmetadata: {name: p}\n"]
)
def test_raw_objects_need_a_name(text: str) -> None:
    """They are looked up one by one."""
    error = refusal(text)
    assert "document 0 needs apiVersion, kind and metadata.name" in error.message


def test_raw_objects_can_be_forbidden() -> None:
    """A caller that wants Tests only says so."""
    error = refusal("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", allow_raw=False)
    assert "holds no Chainsaw Test" in error.message
