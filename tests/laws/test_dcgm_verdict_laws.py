"""Laws of judging a diagnostic: nothing passes by being overlooked, and only a failed test is fatal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.preflight_dcgm.scripted import CODES, FAIL, PASS, Result, answer, uuid

from aicr.preflight.checks import exit_codes
from aicr.preflight.checks.dcgm.response import interpret
from aicr.preflight.checks.dcgm.verdict import judge

OURS = {0: uuid(0), 3: uuid(3)}
TESTS = st.sampled_from(["software", "memory", "pcie"])
#: Two GPUs of ours, one of another tenant, and a switch.
ENTITIES = st.sampled_from([0, 3, 5, "switch"])
RESULTS = st.lists(
    st.tuples(TESTS, ENTITIES, st.integers(0, 5)), max_size=12, unique_by=lambda one: one[:2]
)
ERRORS = st.lists(
    st.tuples(TESTS, ENTITIES, st.sampled_from([0, *CODES, 999]), st.text(max_size=8)), max_size=6
)


@given(RESULTS, ERRORS)
def test_a_clean_pass_needs_a_pass_on_every_gpu_and_no_trouble(
    results: list[Result], errors: list[tuple[str, int | str, int, str]]
) -> None:
    """Whatever else an answer holds."""
    found = judge(interpret(answer(*results, errors=errors), OURS, CODES), list(OURS.values()))
    if found.verdict == exit_codes.PASS:
        for number in OURS:
            assert PASS in [one[2] for one in results if one[1] == number], "a GPU without a pass"
        assert not any(one[2] in (2, FAIL) for one in results if one[1] in OURS)
        assert all(event.is_healthy for event in found.events)
    if any(one[2] == FAIL and one[1] in (*OURS, "switch") for one in results):
        assert any(not event.is_healthy for event in found.events)


@given(RESULTS, ERRORS)
def test_fatal_names_a_gpu_of_ours_that_failed_a_test(
    results: list[Result], errors: list[tuple[str, int | str, int, str]]
) -> None:
    """Nobody else is blamed; and a fatal event holds the pod."""
    found = judge(interpret(answer(*results, errors=errors), OURS, CODES), list(OURS.values()))
    failed = {uuid(one[1]) for one in results if one[2] == FAIL and isinstance(one[1], int)}
    for event in found.events:
        if event.is_fatal:
            (entity,) = event.entities
            assert entity.value in failed & set(OURS.values())
            assert event.action != "NONE"
            assert found.exit_code == exit_codes.FAILED
        assert not (event.is_healthy and event.is_fatal)
