"""Single steps of the watch machine: what it asks for next, how long it waits, when it gives up.

That nothing is lost or doubled is the law in tests/laws.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from aicr.errors import (
    CONFLICT,
    INVALID_REQUEST,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
)
from aicr.kube.backoff import delay
from aicr.kube.projection import FullMetadata, Meta
from aicr.kube.timeouts import Timeouts
from aicr.kube.watching import (
    FATAL,
    Event,
    ListPage,
    OpenWatch,
    Pause,
    WatchMachine,
    identity_of_document,
    identity_of_struct,
)

GONE = AicrError(CONFLICT, "too old", context={"status": 410})
REFUSED = AicrError(SERVICE_UNAVAILABLE, "connection refused")
BROKEN = AicrError(SERVICE_UNAVAILABLE, "internal", context={"status": 500})


def item(name: str, version: int, uid: str = "u") -> dict[str, Any]:
    """An object as a document."""
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}}


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def machine(clock: Clock | None = None, **options: Any) -> WatchMachine[dict[str, Any]]:
    """A machine on documents, without jitter."""
    options.setdefault("timeouts", Timeouts())
    return WatchMachine(
        identify=identity_of_document, clock=clock or Clock(), random=lambda: 0.0, **options
    )


def types(events: Iterable[Event[Any]]) -> list[tuple[str, str]]:
    """(type, name) of events."""
    return [(event.type, event.key[1]) for event in events]


def following(clock: Clock | None = None, **options: Any) -> WatchMachine[dict[str, Any]]:
    """A machine that has listed at version 5 and opened its watch."""
    made = machine(clock, **options)
    made.step()
    list(made.page([item("a", 3)], "5", ""))
    made.step()
    made.opened()
    return made


def test_it_lists_page_by_page_and_then_watches_from_the_list() -> None:
    """Consistent reads, continue tokens, and the version of the list."""
    made = machine(limit=2)
    assert made.step() == ListPage("", 2)
    assert types(made.page([item("a", 1), item("b", 2)], "9", "t1")) == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]
    assert made.step() == ListPage("t1", 2)
    assert types(made.page([item("c", 3)], "9", "")) == [("ADDED", "c"), ("SYNCED", "")]
    assert made.step() == OpenWatch("9", 300, False)


def test_it_resumes_from_the_last_event_or_bookmark() -> None:
    """After an end in good order there is no pause."""
    made = following()
    assert types(made.received("MODIFIED", item("a", 7))) == [("MODIFIED", "a")]
    made.ended()
    assert made.step() == OpenWatch("7", 300, False)
    made.opened()
    assert list(made.bookmark("12")) == []
    made.ended()
    assert made.step() == OpenWatch("12", 300, False)


def test_a_version_that_is_gone_means_a_pause_and_a_new_list() -> None:
    """What went or was replaced meanwhile is told; what stayed as it was is not."""
    made = following()
    list(made.received("ADDED", item("b", 6, "old")))
    list(made.received("ADDED", item("c", 7)))
    made.ended(GONE)
    assert made.step() == Pause(0.8)
    assert made.step() == ListPage("", 500)
    events = list(made.page([item("a", 3), item("b", 9, "new"), item("d", 9)], "9", ""))
    assert types(events) == [
        ("DELETED", "b"),
        ("ADDED", "b"),
        ("ADDED", "d"),
        ("DELETED", "c"),
        ("SYNCED", ""),
    ]
    assert events[0].uid == "old"
    assert events[0].object is None


def test_pauses_double_up_to_their_limit_and_start_anew_after_progress() -> None:
    """Failures without a change in between."""
    made = following()
    pauses = []
    for _ in range(8):
        made.ended(REFUSED)
        step = made.step()
        assert isinstance(step, Pause)
        pauses.append(step.seconds)
        assert made.step() == OpenWatch("5", 300, False)
    assert pauses == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    made.opened()
    list(made.bookmark("6"))
    made.ended(REFUSED)
    assert made.step() == Pause(0.8)


def test_a_server_that_closes_each_watch_at_once_is_not_hammered() -> None:
    """An end without anything in between is like a failure, unless the watch had lasted."""
    clock = Clock()
    made = following(clock)
    made.ended()
    assert made.step() == Pause(0.8)
    made.step()
    made.opened()
    made.ended()
    assert made.step() == Pause(1.6)
    made.step()
    made.opened()
    clock.now += 300
    made.ended()
    assert made.step() == OpenWatch("5", 300, False)


def test_silence_is_answered_by_a_new_connection_at_once() -> None:
    """A dead connection costs the idle time already."""
    clock = Clock()
    made = following(clock)
    clock.now += 150
    made.ended(AicrError(TIMEOUT, "no byte"))
    assert made.step() == OpenWatch("5", 300, False)
    assert made.stale_since == clock.now


def test_a_server_that_keeps_refusing_to_resume_is_listed_again() -> None:
    """Three answers that are errors; a server that is away does not count."""
    made = following()
    for _ in range(2):
        made.ended(BROKEN)
        made.step()
        assert isinstance(made.step(), OpenWatch)
    made.ended(BROKEN)
    assert isinstance(made.step(), Pause)
    assert made.step() == ListPage("", 500)


def test_a_list_goes_on_at_its_page_after_a_failure_and_anew_after_expiry() -> None:
    """The second time that pages expire, the list is asked for in one piece."""
    made = machine(limit=1)
    made.step()
    list(made.page([item("a", 1)], "1", "t"))
    made.ended(REFUSED)
    assert isinstance(made.step(), Pause)
    assert made.step() == ListPage("t", 1)
    made.ended(GONE)
    made.step()
    assert made.step() == ListPage("", 1)
    list(made.page([item("a", 1)], "4", "t2"))
    made.ended(GONE)
    made.step()
    assert made.step() == ListPage("", 0)
    assert types(made.page([item("a", 1), item("b", 2)], "5", "")) == [
        ("ADDED", "b"),
        ("SYNCED", ""),
    ]


def test_a_busy_server_says_how_long_to_wait() -> None:
    """Retry-After, if longer than the pause would be."""
    made = following()
    made.ended(AicrError(SERVICE_UNAVAILABLE, "busy", context={"status": 429, "retry_after": 9.0}))
    assert made.step() == Pause(9.0)


@pytest.mark.parametrize("code", [UNAUTHORIZED, NOT_FOUND, INVALID_REQUEST])
def test_what_waiting_does_not_mend_is_raised(code: str) -> None:
    """To whoever watches; a cache passes no fatal codes and goes on trying."""
    error = AicrError(code, "no", context={"status": 400})
    with pytest.raises(AicrError) as caught:
        following().ended(error)
    assert caught.value is error
    patient = following(fatal=frozenset())
    patient.ended(error)
    assert isinstance(patient.step(), Pause)
    assert patient.stale_reason == "no"


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_has_just_started_may_refuse_for_a_while(status: int) -> None:
    """It has not read its roles yet. What it gave before is asked for again, and not listed anew."""
    clock = Clock()
    made = following(clock)
    denied = AicrError(UNAUTHORIZED, "forbidden", context={"status": status})
    made.ended(REFUSED)
    made.step()
    for _ in range(4):
        made.ended(denied)
        assert isinstance(made.step(), Pause)
        assert made.step() == OpenWatch("5", 300, False)
        assert made.stale_reason == "forbidden"
        clock.now += Timeouts().busy / 4 - 0.01
    made.opened()
    assert made.stale_since is None
    made.ended(denied)
    clock.now += Timeouts().busy
    with pytest.raises(AicrError) as caught:
        made.ended(denied)
    assert caught.value is denied


@pytest.mark.parametrize("fatal", [FATAL, frozenset()], ids=["watch", "cache"])
def test_a_server_that_refuses_is_back_and_is_asked_again_soon(fatal: frozenset[str]) -> None:
    """While it was away pauses grew to half a minute; its first refusal begins them anew."""
    made = following(fatal=fatal)
    times = Timeouts()
    for _ in range(9):
        made.ended(REFUSED)
        away = made.step()
        made.step()
    assert away == Pause(times.backoff_cap)
    pauses = []
    for _ in range(9):
        made.ended(AicrError(UNAUTHORIZED, "forbidden", context={"status": 403}))
        pauses.append(made.step())
        made.step()
    doubled = (min(times.backoff_cap, times.backoff * 2.0**power) for power in range(9))
    assert pauses == [Pause(seconds) for seconds in doubled]


@pytest.mark.parametrize("context", [{}, {"by": "exec plugin"}, {"status": 404}])
def test_other_refusals_are_not_waited_out(context: dict[str, Any]) -> None:
    """A plugin that cannot log in is not run again and again."""
    with pytest.raises(AicrError):
        following().ended(AicrError(UNAUTHORIZED, "no", context=context))


def test_an_object_without_a_name_is_an_error_and_no_traceback() -> None:
    """What a broken aggregated server may send."""
    for document in ({}, {"metadata": None}, {"metadata": {"uid": "u"}}):
        with pytest.raises(AicrError) as caught:
            identity_of_document(document)
        assert caught.value.code == SERVICE_UNAVAILABLE


def test_a_streamed_list_ends_with_its_bookmark() -> None:
    """Initial events are known at the annotated bookmark only; one cut short starts over."""
    made = machine(initial_events=True)
    assert made.step() == OpenWatch("", 300, True)
    made.opened()
    assert types(made.received("ADDED", item("a", 3))) == [("ADDED", "a")]
    assert made.stale_since is not None
    made.ended(REFUSED)
    made.step()
    assert made.step() == OpenWatch("", 300, True)
    made.opened()
    assert types(made.received("ADDED", item("a", 3))) == []
    assert types(made.received("ADDED", item("b", 2))) == [("ADDED", "b")]
    assert types(made.bookmark("8", initial_end=True)) == [("SYNCED", "")]
    assert made.stale_since is None
    made.ended()
    assert made.step() == OpenWatch("8", 300, False)


def test_a_streamed_list_counts_only_what_its_last_attempt_saw() -> None:
    """An object that went between two attempts is told as deleted; a bookmark is no end."""
    made = machine(initial_events=True)
    made.step()
    made.opened()
    list(made.received("ADDED", item("a", 3)))
    list(made.received("ADDED", item("b", 4)))
    made.ended(REFUSED)
    made.step()
    made.step()
    made.opened()
    assert types(made.received("ADDED", item("b", 4))) == []
    assert types(made.bookmark("9")) == []
    assert types(made.bookmark("9", initial_end=True)) == [("DELETED", "a"), ("SYNCED", "")]


def test_a_server_without_streamed_lists_is_listed_in_pages_at_once() -> None:
    """A refusal of the parameter is no failure."""
    made = machine(initial_events=True)
    made.step()
    made.ended(AicrError(INVALID_REQUEST, "unknown parameter", context={"status": 422}))
    assert made.step() == ListPage("", 500)


def test_it_is_stale_from_the_first_failure_until_the_server_takes_the_watch_again() -> None:
    """After a version that is gone, until the list is complete."""
    clock = Clock()
    made = machine(clock)
    assert made.stale_since == 1000.0
    assert made.stale_reason == "not listed yet"
    made.step()
    list(made.page([item("a", 3)], "5", ""))
    assert made.stale_since is None
    made.step()
    made.opened()
    clock.now = 1010.0
    made.ended(REFUSED)
    clock.now = 1020.0
    made.ended(BROKEN)
    assert made.stale_since == 1010.0
    assert made.stale_reason == "internal"
    made.opened()
    assert made.stale_since is None
    made.ended(GONE)
    made.step()
    made.step()
    assert made.stale_since == 1020.0
    list(made.page([], "9", ""))
    assert made.stale_since is None


def test_repeated_states_and_strangers_are_dropped() -> None:
    """The same version again, and the deletion of an object that was replaced since."""
    made = following()
    assert types(made.received("MODIFIED", item("a", 3))) == []
    assert types(made.received("DELETED", item("x", 6))) == []
    list(made.received("ADDED", item("b", 7, "second")))
    assert types(made.received("DELETED", item("b", 8, "first"))) == []
    assert types(made.received("DELETED", item("b", 9, "second"))) == [("DELETED", "b")]


def test_an_unknown_event_is_an_error_and_not_skipped() -> None:
    """Ignoring it could lose a change."""
    with pytest.raises(AicrError) as caught:
        following().received("RENAMED", item("a", 9))
    assert caught.value.code == SERVICE_UNAVAILABLE


def test_watches_of_many_clients_end_at_different_times() -> None:
    """The time asked for is jittered up to twice."""
    values = iter([0.0, 0.5, 0.999])
    made = WatchMachine(
        identify=identity_of_document,
        clock=Clock(),
        random=lambda: next(values),
        timeouts=Timeouts(),
        initial_events=True,
    )
    steps = [made.step() for _ in range(3)]
    assert [step.timeout_seconds for step in steps if isinstance(step, OpenWatch)] == [
        300,
        450,
        600,
    ]


def test_documents_and_projections_are_identified_alike() -> None:
    """Name, namespace, UID, version."""
    document = {"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1"}}
    struct = Meta(FullMetadata(name="a", namespace="n", uid="u", resource_version="1"))
    assert identity_of_document(document) == identity_of_struct(struct)


@pytest.mark.parametrize(
    ("attempt", "chance", "seconds"),
    [(0, 0.0, 1.0), (0, 0.5, 1.5), (3, 0.0, 8.0), (10, 0.0, 30.0), (10_000, 0.5, 45.0)],
)
def test_a_pause_is_exponential_limited_and_jittered_upwards(
    attempt: int, chance: float, seconds: float
) -> None:
    """Also for attempts whose power would overflow."""
    assert delay(attempt, base=1.0, cap=30.0, random=lambda: chance) == seconds
