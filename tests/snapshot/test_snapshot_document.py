"""Snapshot documents: reading, header, shape, notices."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aicr.errors import INVALID_REQUEST, AicrError
from aicr.snapshot import document

GOOD = """\
kind: Snapshot
apiVersion: aicr.run/v1
metadata:
  timestamp: "2026-01-01T00:00:00Z"
  source-node: node-a
measurements:
  - type: K8s
    subtypes:
      - subtype: server
        data:
          version: v1.33.5
          count: 4
          ready: true
  - type: NetworkTopology
    subtypes:
      - subtype: pfs
        items:
          - context: {traffic: east-west}
            data: {rail: 0}
"""


def refusal(text: str) -> AicrError:
    """The error of reading a snapshot."""
    with pytest.raises(AicrError) as caught:
        document.load(text, "s.yaml")
    assert caught.value.code == INVALID_REQUEST
    return caught.value


def snapshot(*measurements: Any, **fields: Any) -> str:
    """A snapshot as JSON text."""
    header = {"kind": "Snapshot", "apiVersion": "aicr.run/v1", "measurements": list(measurements)}
    return json.dumps(header | fields)


def test_yaml_and_json_read_the_same() -> None:
    """The content decides the reader, and both give the same document (recipe spec 8.1)."""
    from_yaml, notices = document.load(GOOD, "s.yaml")
    assert notices == []
    assert from_yaml["measurements"][0]["subtypes"][0]["data"] == {
        "version": "v1.33.5",
        "count": 4,
        "ready": True,
    }
    assert document.load(json.dumps(from_yaml), "s.yaml") == (from_yaml, [])
    assert document.load("\ufeff\n " + json.dumps(from_yaml, indent=2), "x") == (from_yaml, [])


def test_yaml_in_braces_is_still_yaml() -> None:
    """A flow map whose keys are not quoted is no JSON."""
    text = "{kind: Snapshot, apiVersion: aicr.run/v1, measurements: []}"
    assert document.load(text, "s")[0]["measurements"] == []


@pytest.mark.parametrize(
    "header",
    ["", "apiVersion: aicr.nvidia.com/v1alpha1\nkind: Snapshot\n", "kind: Snapshot\n"],
)
def test_what_the_first_version_wrote_is_read_with_one_notice(header: str) -> None:
    """A legacy or absent apiVersion is converted in memory (decisions 1 and 48)."""
    found, notices = document.load(header + "measurements: []\n", "old.yaml")
    assert (found["kind"], found["apiVersion"]) == ("Snapshot", "aicr.run/v1")
    assert list(found) == ["kind", "apiVersion", "measurements"]
    assert len(notices) == 1
    assert "old.yaml" in notices[0]


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3"])
def test_retired_versions_are_refused_by_name(version: str) -> None:
    """The error says when the version went (recipe spec 0.4)."""
    error = refusal(snapshot(apiVersion=f"aicr.run/{version}"))
    assert error.message == (
        f'invalid apiVersion "aicr.run/{version}", expected "aicr.run/v1" '
        f"(aicr.run/{version} was retired in v1.0.0)"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "RecipeResult"}, 'invalid kind "RecipeResult", expected "Snapshot"'),
        ({"apiVersion": "aicr.run/v1beta1"}, 'invalid apiVersion "aicr.run/v1beta1"'),
        ({"apiVersion": "aicr.run/v2"}, 'invalid apiVersion "aicr.run/v2"'),
        ({"apiVersion": 1}, 'invalid apiVersion "1"'),
    ],
)
def test_another_kind_or_version_is_refused(fields: dict[str, Any], message: str) -> None:
    """A snapshot accepts exactly one current version (recipe spec 0.3)."""
    assert message in refusal(snapshot(**fields)).message


OS_RELEASE = {"subtype": "release", "data": {"ID": "ubuntu"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "snapshot is empty"),
        ("# only a comment\n", "snapshot is empty"),
        ("[]", "expected a Snapshot document, found a list"),
        ("text", "expected a Snapshot document, found text"),
        ("kind: Snapshot\napiVersion: aicr.run/v1\n", "snapshot has no measurements"),
        ("{}", "snapshot has no measurements"),
        (snapshot(metadata=[]), "metadata must be a map, found a list"),
        (snapshot(measurements={}), "measurements must be a list, found a map"),
        (snapshot("x"), "measurements[0] must be a map, found text"),
        (snapshot({"type": "Quantum"}), 'invalid measurement type "Quantum"'),
        (snapshot({"type": "k8s"}), 'invalid measurement type "k8s"'),
        (snapshot({}), 'invalid measurement type "None"'),
        (snapshot({"type": []}), 'invalid measurement type "[]"'),
        (snapshot({"type": "OS", "subtypes": {}}), "measurements[0].subtypes must be a list"),
        (snapshot({"type": "OS", "subtypes": [1]}), "subtypes[0] must be a map, found a number"),
        (
            snapshot({"type": "OS", "subtypes": [{"subtype": 1, "data": {}}]}),
            "subtypes[0].subtype must be text, found a number",
        ),
        (
            snapshot({"type": "OS", "subtypes": [OS_RELEASE, {"subtype": "x"}]}),
            "subtype has neither data nor items",
        ),
        (
            snapshot({"type": "OS", "subtypes": [{"subtype": "x", "items": []}]}),
            "subtype has neither data nor items",
        ),
        (
            snapshot({"type": "OS", "subtypes": [{"subtype": "x", "data": ["a"]}]}),
            "subtypes[0].data must be a map, found a list",
        ),
        (
            snapshot({"type": "OS", "subtypes": [OS_RELEASE | {"context": "x"}]}),
            "subtypes[0].context must be a map, found text",
        ),
        (
            snapshot({"type": "OS", "subtypes": [{"subtype": "x", "items": {"a": 1}}]}),
            "subtypes[0].items must be a list, found a map",
        ),
        (
            snapshot({"type": "OS", "subtypes": [{"subtype": "x", "items": [{}, 1]}]}),
            "subtypes[0].items[1] must be a map, found a number",
        ),
        (
            snapshot({"type": "OS", "subtypes": [{"subtype": "x", "items": [{"data": []}]}]}),
            "subtypes[0].items[0].data must be a map, found a list",
        ),
    ],
)
def test_a_wrong_shape_is_refused_with_its_place(text: str, message: str) -> None:
    """The schema of recipe spec 8.1, entry by entry; never another exception."""
    error = refusal(text)
    assert message in error.message
    assert "s.yaml" in error.where
    assert error.hint


def test_an_unknown_type_lists_the_valid_ones() -> None:
    """Type names are case-sensitive, so the list helps (recipe spec 8.1)."""
    error = refusal(snapshot({"type": "k8s"}))
    assert "K8s" in error.hint
    assert error.where == "s.yaml: measurements[0].type"


@pytest.mark.parametrize(
    ("text", "message", "where"),
    [
        ('{"kind": "Snapshot",', "not valid JSON", "s.yaml:1:21"),
        ('{"a": 1}\n{"b": 2}', "not valid JSON: extra data", "s.yaml:2:1"),
        ('{"a": 1, "a": 2}', 'duplicate key "a"', "s.yaml"),
        ('{"a": {"b": 1, "b": 1}}', 'duplicate key "b"', "s.yaml"),
        ('{"a": NaN}', "NaN is not JSON; numbers must be finite", "s.yaml"),
        ('{"a": -Infinity}', "-Infinity is not JSON; numbers must be finite", "s.yaml"),
        ('{"a": ' + "9" * 5000 + "}", "a number is too long", "s.yaml"),
        ('{"a": ' + "[" * 200_000, "nested too deeply", "s.yaml"),
        ("measurements: [unclosed\n", "", "s.yaml"),
        ("a: 1\na: 2\n", "", "s.yaml"),
    ],
)
def test_text_that_does_not_parse_is_refused_with_its_place(
    text: str, message: str, where: str
) -> None:
    """Broken, repeated, endless and infinite things are errors with a place, not tracebacks."""
    error = refusal(text)
    assert message in str(error)
    assert error.where.startswith(where)


def test_unknown_fields_are_left_alone() -> None:
    """A newer collector may write more than this version knows."""
    text = snapshot({"type": "OS", "flavour": 1, "subtypes": [OS_RELEASE | {"taste": 2}]}, x=3)
    found, notices = document.load(text, "s")
    assert found["x"] == 3
    assert notices == []


def test_an_empty_subtype_is_a_measurement_of_nothing() -> None:
    """Without an API server the collector writes empty subtypes (recipe spec 8.4)."""
    text = snapshot({"type": "K8s", "subtypes": [{"subtype": "server", "data": {}}]})
    assert document.load(text, "s")[1] == []


def test_what_is_hidden_by_an_earlier_entry_is_said() -> None:
    """The first of a name wins (recipe spec 8.2); the rest is not dropped in silence."""
    text = snapshot(
        {"type": "OS", "subtypes": [OS_RELEASE, OS_RELEASE, {"name": "release", "data": {}}]},
        {"type": "OS", "subtypes": []},
    )
    _, notices = document.load(text, "s")
    assert len(notices) == 3
    assert "subtypes[1] is a second subtype release" in notices[0]
    assert 'the key is "subtype:"' in notices[1]
    assert "measurements[1] is a second OS measurement" in notices[2]


def test_loading_in_the_v3_mode_keeps_words_as_text() -> None:
    """The kit was written by yaml.v3, where yes is text (decision 43)."""
    text = GOOD.replace("ready: true", "ready: yes")
    data = document.load(text, "s", mode="v3")[0]["measurements"][0]["subtypes"][0]["data"]
    assert data["ready"] == "yes"
    data = document.load(text, "s")[0]["measurements"][0]["subtypes"][0]["data"]
    assert data["ready"] is True


def test_validate_never_changes_the_document() -> None:
    """Checking is pure, also for a legacy header."""
    raw = {"measurements": [{"type": "OS", "subtypes": [OS_RELEASE]}]}
    before = repr(raw)
    document.validate(raw, "s")
    assert repr(raw) == before
