"""The gate's state machine: pure, so every case is a list of samples and what follows."""

from __future__ import annotations

import pytest

from aicr.assertions import gate
from aicr.assertions.gate import FAIL, PASS, UNKNOWN, Settings, State, Step, Verdict, step

SETTINGS = Settings(poll=10.0, window=30.0, max_wait=5400.0)
OK = (Verdict("a", PASS), Verdict("b", PASS))
BAD = (Verdict("a", PASS), Verdict("b", FAIL, "no pods"))


def after(*samples: tuple[float, tuple[Verdict, ...]], settings: Settings = SETTINGS) -> Step:
    """The last step of samples taken at seconds since the start."""
    state = State(0.0)
    found: Step | None = None
    for now, sample in samples:
        found = step(settings, state, now, sample)
        state = found.state
    assert found is not None
    return found


def test_a_component_that_does_not_pass_resets_the_streak() -> None:
    """Not ready, ComponentsFailing, ask again after the poll interval."""
    found = after((0, OK), (20, BAD))
    assert found == Step(
        State(0.0),
        False,
        "ComponentsFailing",
        "1 component(s) failing: b: Fail (no pods)",
        10,
        False,
    )
    assert not after((0, OK), (20, BAD), (40, OK)).ready
    assert after((0, OK), (20, BAD), (40, OK), (70, OK)).ready


@pytest.mark.covers("V-404")
@pytest.mark.parametrize("result", [FAIL, UNKNOWN])
def test_unknown_holds_the_gate_exactly_as_fail_does(result: str) -> None:
    """The same condition, pause and end; only the word differs."""
    sample = (Verdict("a", result, "why"),)
    found = after((5, sample))
    assert (found.ready, found.reason, found.requeue, found.ended) == (
        *(False, "ComponentsFailing"),
        *(10, False),
    )
    assert found.message == f"1 component(s) failing: a: {result} (why)"
    ended = after((5400, sample))
    assert (ended.ready, ended.reason, ended.ended) == (False, "DeadlineExceeded", True)


@pytest.mark.parametrize(
    ("now", "message", "requeue"),
    [
        (0, "All components passing; stabilizing for 30s", 10),
        (10, "All components passing; stabilizing for 20s", 10),
        (25, "All components passing; stabilizing for 5s", 6),
        (29.5, "All components passing; stabilizing for 500ms", 1.5),
    ],
)
def test_a_first_pass_starts_the_streak_and_the_last_pause_is_short(
    now: float, message: str, requeue: float
) -> None:
    """Stabilizing, with what remains; asked again a second after the window at the latest."""
    found = after((0, OK), (now, OK))
    assert (found.ready, found.reason, found.message) == (False, "Stabilizing", message)
    assert found.requeue == requeue
    assert found.state == State(0.0, 0)


@pytest.mark.parametrize(("now", "stable"), [(30, "30s"), (31.2, "31s"), (95, "1m35s")])
def test_a_streak_as_long_as_the_window_opens_the_gate(now: float, stable: str) -> None:
    """True, AllPass, the end."""
    found = after((0, OK), (now, OK))
    assert (found.ready, found.reason, found.ended) == (True, "AllPass", True)
    assert found.message == f"All 2 component(s) passing (stable for {stable})"


def test_without_a_window_one_pass_is_enough() -> None:
    """A window of zero."""
    found = after((3, OK), settings=Settings(10.0, 0.0, 60.0))
    assert (found.ready, found.message) == (True, "All 2 component(s) passing (stable for 0s)")


@pytest.mark.parametrize("sample", [OK, BAD], ids=["stabilizing", "failing"])
def test_the_deadline_ends_whatever_is_not_ready(sample: tuple[Verdict, ...]) -> None:
    """DeadlineExceeded is terminal, also in the middle of a streak."""
    found = after((5399, sample), (5400, sample))
    assert (found.ready, found.ended, found.reason) == (False, True, "DeadlineExceeded")
    assert found.message == "Gate did not become Ready within 1h30m0s"


def test_a_gate_that_is_ready_at_the_deadline_is_ready() -> None:
    """The deadline is for what is not."""
    assert after((5370, OK), (5400, OK)).ready


def test_no_deadline_means_no_end() -> None:
    """max-wait 0 switches it off."""
    found = after((1e6, BAD), settings=Settings(10.0, 30.0, 0.0))
    assert (found.ended, found.requeue) == (False, 10)


def test_the_next_evaluation_is_not_put_off_beyond_the_deadline() -> None:
    """An evaluation that comes later could not count any more."""
    assert after((5397, BAD)).requeue == 3


def test_a_sample_of_nothing_opens_nothing() -> None:
    """No components passing is not all components passing."""
    found = after((0, ()))
    assert (found.ready, found.reason, found.state.passing_since) == (
        *(False, "ComponentsFailing"),
        None,
    )


def test_the_summary_is_sorted_and_short() -> None:
    """By name; 80 characters of each message on one line; 256 in all and dots."""
    found = [Verdict("z", UNKNOWN, "down"), Verdict("a", FAIL, "x\n y" + "z" * 100)]
    text = gate.summary(found)
    assert text == f"2 component(s) failing: a: Fail (x y{'z' * 77}); z: Unknown (down)"
    many = [Verdict(f"component-{number}", FAIL, "w" * 90) for number in range(9)]
    text = gate.summary(many)
    assert len(text) == 259
    assert text.startswith("9 component(s) failing: component-0: Fail (wwww")
    assert text.endswith("...")
    assert gate.summary([Verdict("a", FAIL)]) == "1 component(s) failing: a: Fail"


def test_of_a_long_message_the_end_is_kept() -> None:
    """The cause is at the end of a chain."""
    assert gate.tail("a" * 200 + "b") == "a" * 119 + "b"
    assert gate.tail("short") == "short"
