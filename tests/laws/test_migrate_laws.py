"""Laws of `aicr migrate`: the header changes, the rest does not, and once is enough."""

from __future__ import annotations

from difflib import ndiff
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.contract.documents import ACCEPTED, LEGACY
from aicr.contract.migrate import migrate
from aicr.yamlio import read
from aicr.yamlio.jsontext import dump_json
from aicr.yamlio.write import dump

TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=8
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A document of ours with an old header, its keys in any order, and free content."""
    kind = draw(st.sampled_from(sorted(ACCEPTED)))
    found: dict[str, Any] = {"kind": kind}
    old = draw(st.sampled_from([*LEGACY, "", None, "absent"]))
    if old != "absent":
        found["apiVersion"] = old
    content = draw(st.dictionaries(TEXT.map(lambda text: f"x{text}"), VALUES, max_size=4))
    keys = draw(st.permutations([*found, *content]))
    return {key: {**content, **found}[key] for key in keys}


@given(documents(), st.booleans())
def test_migrating_changes_the_header_and_nothing_else(
    document: dict[str, Any], json: bool
) -> None:
    """Read again, the text is the same document under today's header; at most two lines differ."""
    text = dump_json(document) if json else dump(document)
    found = migrate(text, "f")
    assert found.problems == []
    target = ACCEPTED[document["kind"]][0]
    assert read.load(found.text, source="f") == {**document, "apiVersion": target}
    changed = [
        line for line in ndiff(text.splitlines(), found.text.splitlines()) if line[0] in "+-"
    ]
    assert 1 <= len(changed) <= 4
    assert all("apiVersion" in line or "kind" in line for line in changed)


@given(documents())
def test_migrating_again_changes_nothing(document: dict[str, Any]) -> None:
    """The result is what today's readers want."""
    once = migrate(dump(document), "f").text
    again = migrate(once, "f")
    assert (again.text, again.changes, again.problems) == (once, [], [])


@given(st.text(max_size=60))
def test_any_text_is_answered_with_an_error_of_ours_or_left_alone(text: str) -> None:
    """Whatever a file holds, nothing but an AicrError comes out."""
    from aicr.errors import AicrError

    try:
        found = migrate(text, "f")
    except AicrError:
        return
    assert found.text == text or found.changes
