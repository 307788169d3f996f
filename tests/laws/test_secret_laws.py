"""Laws of what is shown of values: no secret, everything else, and nothing changed."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.values import paths, secrets

SECRET = "hunter2"
SECRET_KEY = st.sampled_from(["password", "apiKey", "DB_PASSWORD", "client-secret", "token"])
PLAIN_KEY = st.sampled_from(["replicas", "existingSecret", "image", "a.b/c", "passwordKeyRef"])
PLAIN = st.one_of(st.integers(), st.booleans(), st.none(), st.text(max_size=6))
#: Documents in which the secret stands only where a key says that it is one.
DOCUMENT = st.recursive(
    st.one_of(PLAIN, st.dictionaries(SECRET_KEY, st.just(SECRET), min_size=1)),
    lambda inner: st.one_of(st.dictionaries(PLAIN_KEY, inner), st.lists(inner, max_size=3)),
    max_leaves=12,
)


def without(document: Any, found: list[list[str | int]]) -> Any:
    """The document with the same word in each of these places."""
    for place in found:
        document = paths.put(document, place, "x") if place else "x"
    return document


@given(DOCUMENT)
def test_a_shown_document_has_no_secret_and_all_the_rest(document: Any) -> None:
    """Every secret is replaced where it was found; showing twice changes nothing more."""
    kept = copy.deepcopy(document)
    shown = secrets.shown(document, ["values"])
    assert document == kept
    assert SECRET not in json.dumps(shown)
    assert secrets.shown(shown, ["values"]) == shown
    found = list(secrets.places(document, []))
    assert without(shown, found) == without(document, found)


@given(SECRET_KEY, PLAIN_KEY, st.sampled_from(["--", ":", ".", ""]))
def test_a_flag_that_cannot_be_read_never_shows_what_stands_behind_a_secret_key(
    key: str, above: str, joint: str
) -> None:
    """However the path before the value is written."""
    assert SECRET not in secrets.shown_flag(f"c:{above}.{key}={SECRET}")
    assert SECRET not in secrets.shown_flag(f"c{joint}.{key}={SECRET}")
