"""Laws of tolerations: what merging keeps, and what it must never add."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aicr.bundle.options import EFFECTS, BundleOptions, parse_scheduling, parse_toleration
from aicr.bundle.placement import Target, append_unique, merge_shared, write_placement
from aicr.errors import AicrError

KEYS = st.sampled_from(["a", "b.io/c", "nvidia.com/gpu"])
TOLERATIONS = st.fixed_dictionaries(
    {"operator": st.just("Exists")},
    optional={
        "key": KEYS,
        "effect": st.sampled_from(EFFECTS),
        "tolerationSeconds": st.sampled_from([60, 60.0, 61]),
    },
)
LISTS = st.lists(TOLERATIONS, max_size=5)
FLAGS = st.lists(st.sampled_from(["a", "b:NoSchedule", "c=d:NoExecute"]), max_size=3)

SHARED = {
    "nodeScheduling": {
        "system": {"tolerationPaths": ["t"]},
        "accelerated": {"tolerationPaths": ["t"]},
    }
}


def outcome(text: str) -> dict[str, Any] | AicrError:
    """The toleration of a text, or the error it is refused with."""
    try:
        return parse_toleration(text, "--system-node-toleration")
    except AicrError as error:
        return error


@given(LISTS, LISTS)
def test_a_shared_list_never_tolerates_more_than_the_accelerated_list_allows(
    system: list[dict[str, Any]], accelerated: list[dict[str, Any]]
) -> None:
    """A keyless entry comes out only if the accelerated list has it, or has no entries at all."""
    merged = merge_shared(system, accelerated)
    keyless = [entry for entry in merged if "key" not in entry]
    assert all(entry in (accelerated or system) for entry in keyless)
    assert all(entry in merged for entry in accelerated)
    assert all(entry in merged for entry in system if "key" in entry)


@given(LISTS, LISTS)
def test_appending_keeps_order_loses_nothing_and_repeats_nothing(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    """Every entry is there once, the first list's entries before new ones, and again is the same."""
    merged = append_unique(first, second)
    assert all(entry in merged for entry in [*first, *second])
    assert all(merged.count(entry) == 1 for entry in merged)
    assert append_unique(merged, second) == merged
    positions = [([*first, *second]).index(entry) for entry in merged]
    assert positions == sorted(positions)


@given(LISTS.filter(bool), FLAGS, FLAGS, st.booleans())
def test_flags_never_widen_a_restricted_list_of_the_recipe(
    held: list[dict[str, Any]], system: list[str], accelerated: list[str], inline: bool
) -> None:
    """A shared path whose recipe list has keys only never gets a keyless entry."""
    restricted = [entry for entry in held if "key" in entry]
    if not restricted:
        return
    values = {"t": restricted}
    target = Target("x", SHARED, values if inline else {}, values)
    write_placement(
        target,
        parse_scheduling(
            BundleOptions(system_node_tolerations=system, accelerated_node_tolerations=accelerated)
        ),
    )
    assert all("key" in entry for entry in target.values["t"])
    if inline:
        kept = append_unique(restricted, [])
        assert append_unique(target.values["t"], [])[: len(kept)] == kept


@given(st.text(alphabet="aA1*=:,-./ é\n", max_size=12))
def test_any_text_is_a_toleration_or_an_invalid_request(text: str) -> None:
    """What is accepted has a key and prints back to the text it came from."""
    parsed = outcome(text)
    if isinstance(parsed, AicrError):
        assert (parsed.code, parsed.where) == ("INVALID_REQUEST", "--system-node-toleration")
        return
    assert parsed["key"]
    equals = "=" if parsed["operator"] == "Equal" else ""
    effect = ":" + parsed["effect"] if "effect" in parsed else ""
    assert f"{parsed['key']}{equals}{parsed.get('value', '')}{effect}" == text
