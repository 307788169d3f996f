"""Headers of documents: kind, apiVersion, the old forms that are read, the retired ones."""

from __future__ import annotations

import pytest
from tests.recipe.trees import refusal

from aicr.contract.documents import ACCEPTED, check_header, is_legacy, legacy_notice, type_name


@pytest.mark.parametrize("kind", sorted(ACCEPTED))
def test_every_kind_accepts_its_own_versions_without_a_word(kind: str) -> None:
    """What we write we read, silently."""
    for api in ACCEPTED[kind]:
        assert check_header({"kind": kind, "apiVersion": api}, kind, source="f") == ""


@pytest.mark.parametrize("kind", sorted(ACCEPTED))
@pytest.mark.parametrize("api", [None, "", "aicr.nvidia.com/v1alpha1", "aicr.nvidia.com/v1"])
def test_old_forms_are_read_with_one_line(kind: str, api: str | None) -> None:
    """Decisions 1 and 48: the line names file, kind, what was said and what it was read as."""
    notice = check_header({"kind": kind, "apiVersion": api}, kind, source="f.yaml")
    said = f'apiVersion "{api}"' if api else "no apiVersion"
    assert notice.startswith(f'f.yaml: {kind} has {said}, read as "{ACCEPTED[kind][0]}"')
    assert "\n" not in notice
    assert notice == legacy_notice(kind, api, "f.yaml")
    assert is_legacy(api)


@pytest.mark.parametrize("kind", sorted(ACCEPTED))
@pytest.mark.parametrize("api", ["aicr.run/v1alpha2", "aicr.run/v1alpha3"])
def test_retired_versions_are_refused_by_name(kind: str, api: str) -> None:
    """They were never released for use, so they are not converted."""
    error = refusal(lambda: check_header({"kind": kind, "apiVersion": api}, kind, source="f"))
    expected = " or ".join(f'"{known}"' for known in ACCEPTED[kind])
    assert error.code == "INVALID_REQUEST"
    assert error.message == (
        f'invalid apiVersion "{api}", expected {expected} ({api} was retired in v1.0.0)'
    )
    assert error.where == "f"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"kind": "Other", "apiVersion": "aicr.run/v1"}, 'invalid kind "Other", expected "Snapshot"'),
        ({"kind": "snapshot"}, 'invalid kind "snapshot", expected "Snapshot"'),
        ({"kind": ["Snapshot"]}, "invalid kind"),
        ({"apiVersion": "aicr.run/v1"}, 'invalid kind "", expected "Snapshot"'),
        ({"kind": "Snapshot", "apiVersion": "aicr.run/v2"},
         'invalid apiVersion "aicr.run/v2", expected "aicr.run/v1"'),
        ({"kind": "Snapshot", "apiVersion": "aicr.run/v1beta1"}, "invalid apiVersion"),
        ({"kind": "Snapshot", "apiVersion": "v1"}, "invalid apiVersion"),
        ({"kind": "Snapshot", "apiVersion": 1}, "invalid apiVersion"),
        ({"kind": "Snapshot", "apiVersion": ["aicr.run/v1"]}, "invalid apiVersion"),
        ([], "expected a Snapshot document, found a list"),
        (None, "expected a Snapshot document, found nothing"),
        ("x", "expected a Snapshot document, found text"),
    ],
)  # fmt: skip
def test_everything_else_is_refused(document: object, message: str) -> None:
    """Never a guess about what a document may be."""
    error = refusal(lambda: check_header(document, "Snapshot", source="f", where="f:1:1"))
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith(message)
    assert error.where == "f:1:1"


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("Snapshot", "aicr snapshot makes one"),
        ("RecipeResult", "aicr recipe makes one"),
        ("RecipeMixin", "write kind: RecipeMixin, or name another file"),
    ],
)
def test_who_passes_another_kind_learns_where_the_right_one_comes_from(
    kind: str, hint: str
) -> None:
    """The mistake is a file of another command."""
    error = refusal(lambda: check_header({"kind": "Pod"}, kind, source="f"))
    assert error.hint == hint


def test_a_document_without_any_header_is_an_old_one() -> None:
    """v0.11.1 wrote criteria files without kind and apiVersion."""
    assert "no apiVersion" in check_header({}, "RecipeCriteria", source="f")


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "nothing"), (True, "a boolean"), ({}, "a map"), ([], "a list"), ("", "text"),
     (1, "a number"), (1.5, "a number")],
)  # fmt: skip
def test_values_are_named_in_words(value: object, words: str) -> None:
    """For messages to people."""
    assert type_name(value) == words
