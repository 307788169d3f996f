"""Labels that are kept once are the labels that came: for every sequence of mappings, in every order."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from aicr.kube import projection

#: Few keys and values, so that mappings with the same keys and other values come often.
WORDS = st.sampled_from(["a", "b", "c", "feature.node.example.test/a-rather-long-key-of-a-label"])
MAPPINGS = st.lists(st.dictionaries(WORDS, WORDS, min_size=1), max_size=12)


@given(MAPPINGS)
def test_what_is_shared_equals_what_was_given_and_belongs_to_the_taker(
    mappings: list[dict[str, str]],
) -> None:
    """Keys, values and their order; a change of one that was given out reaches no other."""
    originals = copy.deepcopy(mappings)
    shared = []
    for mapping in mappings:
        found = projection._shared_texts(mapping)
        assert found is not None
        shared.append(list(found.items()))
        found.clear()
        found["spoilt"] = "spoilt"
    assert shared == [list(original.items()) for original in originals]
    assert mappings == originals


@given(MAPPINGS)
def test_equal_texts_are_one_text(mappings: list[dict[str, str]]) -> None:
    """Which is what it is for: the texts themselves are most of the memory."""
    # Or the pool might be full and begin anew in the middle.
    projection._POOL.clear()
    projection._TEMPLATES.clear()
    known: dict[str, str] = {}
    for mapping in mappings:
        # Texts of their own, as from a decoder.
        fresh = {"".join(list(key)): "".join(list(value)) for key, value in mapping.items()}
        found = projection._shared_texts(fresh) or {}
        for text in (*found, *found.values()):
            assert known.setdefault(text, text) is text


def test_mappings_that_never_repeat_do_not_fill_the_memory() -> None:
    """Keys made from a counter, as some controllers write them."""
    for number in range(3 * projection._TEMPLATES_LIMIT):
        projection._shared_texts({f"key-{number}": "x"})
    assert len(projection._TEMPLATES) <= projection._TEMPLATES_LIMIT
