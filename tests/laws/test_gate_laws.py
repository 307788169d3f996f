"""Laws of the readiness gate: whatever samples come, it opens only on a streak, and ends in time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aicr.assertions.gate import FAIL, PASS, UNKNOWN, Settings, State, Step, Verdict, step

VERDICTS = st.sampled_from((PASS, PASS, PASS, FAIL, UNKNOWN))
SAMPLES = st.lists(st.lists(VERDICTS, min_size=1, max_size=4), min_size=1, max_size=30)
SECONDS = st.floats(min_value=0.5, max_value=60.0, allow_nan=False)
SETTINGS = st.builds(
    Settings,
    poll=SECONDS,
    window=st.floats(min_value=0.0, max_value=90.0),
    max_wait=st.one_of(st.just(0.0), st.floats(min_value=1.0, max_value=900.0)),
)


def walk(
    settings: Settings, samples: list[list[str]], cost: float
) -> list[tuple[float, bool, Step]]:
    """Each step with its time and whether all passed; an evaluation takes *cost* seconds."""
    state, now, found = State(0.0), 0.0, []
    for results in samples:
        now += cost
        verdicts = [Verdict(f"c{number}", result) for number, result in enumerate(results)]
        made = step(settings, state, now, verdicts)
        found.append((now, all(result == PASS for result in results), made))
        if made.ended:
            break
        state, now = made.state, now + made.requeue
    return found


@given(SETTINGS, SAMPLES, SECONDS)
def test_a_gate_opens_only_after_a_window_of_nothing_but_passes(
    settings: Settings, samples: list[list[str]], cost: float
) -> None:
    """Ready means that every sample since the streak's start passed, and that it is long enough."""
    steps = walk(settings, samples, cost)
    now, passed, last = steps[-1]
    if not last.ready:
        return
    since = last.state.passing_since
    assert since is not None
    assert now - since >= settings.window
    assert all(good for at, good, _ in steps if at >= since)
    assert passed


@given(SETTINGS, SAMPLES, SECONDS)
def test_a_gate_that_is_not_ready_ends_exactly_at_its_limit(
    settings: Settings, samples: list[list[str]], cost: float
) -> None:
    """Not before, and with no pause that leads beyond it; never without a limit."""
    for now, _, made in walk(settings, samples, cost):
        if made.ready:
            assert made.ended
            continue
        late = settings.max_wait > 0 and now >= settings.max_wait
        assert made.ended is late
        assert (made.reason == "DeadlineExceeded") is late
        if not late:
            assert 0 < made.requeue <= settings.poll
            assert not settings.max_wait or now + made.requeue <= settings.max_wait + 1e-6


@given(SETTINGS, SAMPLES, SECONDS)
def test_unknown_and_fail_make_no_difference_to_the_walk(
    settings: Settings, samples: list[list[str]], cost: float
) -> None:
    """Times, reasons and ends are those of the same samples with every Unknown a Fail."""
    failing = [[FAIL if result == UNKNOWN else result for result in results] for results in samples]
    one, two = walk(settings, samples, cost), walk(settings, failing, cost)
    assert [(now, made.reason, made.ended) for now, _, made in one] == [
        (now, made.reason, made.ended) for now, _, made in two
    ]


@given(st.lists(st.tuples(st.text(max_size=300), VERDICTS), min_size=1, max_size=40))
def test_a_summary_is_one_short_line(parts: list[tuple[str, str]]) -> None:
    """At most 256 characters and three dots, whatever the messages hold."""
    sample = [Verdict(f"c{number}", result, text) for number, (text, result) in enumerate(parts)]
    made = step(Settings(1.0, 0.0, 0.0), State(0.0), 1.0, sample)
    assert len(made.message) <= 259
    assert "\n" not in made.message
