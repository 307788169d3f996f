"""Whatever cuts a watch, no change of a collection is lost and none comes twice.

A model of an API server keeps every version. Hypothesis draws what happens on it and to the connection;
the machine is driven against it without sockets, clock or sleep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aicr.errors import (
    CONFLICT,
    INVALID_REQUEST,
    RATE_LIMIT_EXCEEDED,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    AicrError,
)
from aicr.kube.timeouts import Timeouts
from aicr.kube.watching import (
    ADDED,
    DELETED,
    MODIFIED,
    SYNCED,
    Event,
    Identity,
    ListPage,
    OpenWatch,
    Pause,
    WatchMachine,
)

NAMES = ["a", "b", "c", "d"]
GONE = AicrError(CONFLICT, "too old", context={"status": 410, "reason": "Expired"})
FAILURES = {
    "refused": AicrError(SERVICE_UNAVAILABLE, "connection refused"),
    "internal": AicrError(SERVICE_UNAVAILABLE, "internal error", context={"status": 500}),
    "busy": AicrError(RATE_LIMIT_EXCEEDED, "busy", context={"status": 429, "retry_after": 2.0}),
    "silent": AicrError(TIMEOUT, "no byte for a while"),
}


class Thing(NamedTuple):
    """An object of the model."""

    name: str
    uid: str
    version: int


def identify(thing: Thing) -> Identity:
    """What the machine is told of a `Thing`."""
    return Identity(("", thing.name), thing.uid, str(thing.version))


@dataclass
class Server:
    """The collection with its history."""

    version: int = 100
    oldest: int = 100
    things: dict[str, Thing] = field(default_factory=dict)
    log: list[tuple[int, str, Thing]] = field(default_factory=list)

    def change(self, name: str, what: str) -> None:
        """Create, modify, delete or replace (delete and create) the thing called *name*."""
        old = self.things.get(name)
        if what in {"delete", "replace"} and old:
            self._record(DELETED, old)
            del self.things[name]
            old = None
        if what in {"put", "replace"}:
            uid = old.uid if old else f"{name}-{self.version + 1}"
            self.things[name] = Thing(name, uid, 0)
            self._record(MODIFIED if old else ADDED, self.things[name])
            self.things[name] = self.log[-1][2]

    def _record(self, type_: str, thing: Thing) -> None:
        self.version += 1
        self.log.append((self.version, type_, thing._replace(version=self.version)))

    def compact(self) -> None:
        """Forget the history."""
        self.oldest = self.version
        self.log.clear()

    def since(self, version: int) -> Iterator[tuple[int, str, Thing]]:
        """Changes after *version*."""
        return (entry for entry in self.log if entry[0] > version)


class Consumer:
    """Checks that events fit each other, and holds what they add up to."""

    def __init__(self) -> None:
        self.state: dict[str, tuple[str, int]] = {}
        self.events: list[Event[Thing]] = []
        self.synced = 0

    def take(self, events: Iterable[Event[Thing]]) -> None:
        """Apply events, each of which must be possible after those before."""
        for event in events:
            self.events.append(event)
            name = event.key[1]
            before = self.state.get(name)
            if event.type == SYNCED:
                self.synced += 1
            elif event.type == DELETED:
                assert before is not None, "deleted what was not there"
                assert before[0] == event.uid
                del self.state[name]
            else:
                assert event.object is not None
                if event.type == ADDED:
                    assert before is None, "added twice"
                else:
                    assert before is not None, "modified what was not there"
                    assert before[0] == event.uid
                    assert before[1] < event.object.version, "an old state after a newer one"
                self.state[name] = (event.uid, event.object.version)


class Driver:
    """Does what the machine asks, on the model, and lets faults happen at each step."""

    def __init__(self, *, limit: int, streaming: bool, supported: bool) -> None:
        self.server = Server()
        self.consumer = Consumer()
        self.now = 0.0
        self.supported = supported
        self.machine: WatchMachine[Thing] = WatchMachine(
            identify=identify,
            clock=lambda: self.now,
            random=lambda: 0.5,
            timeouts=Timeouts(),
            limit=limit,
            initial_events=streaming,
            fatal=frozenset(),
        )
        self.open_at: int | None = None
        self.initial: list[Thing] | None = None
        self.listing: tuple[int, list[Thing]] | None = None
        self.gaps = 0

    def advance(self, fault: str = "") -> None:
        """One step of the machine, which *fault* hits; or, while a watch is open, one delivery."""
        if self.open_at is not None:
            self._deliver(fault)
            return
        step = self.machine.step()
        if isinstance(step, Pause):
            assert 0 < step.seconds <= 60
            self.now += step.seconds
        elif fault in FAILURES:
            self.listing = None if isinstance(step, OpenWatch) else self.listing
            self.machine.ended(FAILURES[fault])
        elif isinstance(step, ListPage):
            self._page(step)
        else:
            self._open(step)

    def _page(self, step: ListPage) -> None:
        if not step.continue_token:
            things = [self.server.things[name] for name in sorted(self.server.things)]
            self.listing = (self.server.version, things)
        elif self.listing is None or self.listing[0] < self.server.oldest:
            self.machine.ended(GONE)
            return
        assert self.listing is not None
        version, things = self.listing
        start = int(step.continue_token or 0)
        end = start + step.limit if step.limit else len(things)
        token = str(end) if end < len(things) else ""
        self.consumer.take(self.machine.page(things[start:end], str(version), token))

    def _open(self, step: OpenWatch) -> None:
        if step.initial_events:
            if not self.supported:
                refusal = AicrError(INVALID_REQUEST, "unknown", context={"status": 422})
                self.machine.ended(refusal)
                return
            self.initial = list(self.server.things.values())
            self.open_at = self.server.version
        else:
            version = int(step.resource_version)
            if version < self.server.oldest:
                self.gaps += 1
                self.machine.ended(GONE)
                return
            self.open_at = version
        self.machine.opened()

    def _deliver(self, fault: str) -> None:
        assert self.open_at is not None
        if fault in FAILURES or fault == "eof":
            self.open_at = self.initial = None
            self.now += 40 if fault == "silent" else 1
            self.machine.ended(FAILURES.get(fault))
        elif self.initial is not None:
            if self.initial:
                self.consumer.take(self.machine.received(ADDED, self.initial.pop()))
                return
            self.initial = None
            self.consumer.take(self.machine.bookmark(str(self.open_at), initial_end=True))
        elif self.open_at < self.server.oldest:
            self.open_at = None
            self.gaps += 1
            self.machine.ended(GONE)
        else:
            for version, type_, thing in self.server.since(self.open_at):
                self.open_at = version
                self.consumer.take(self.machine.received(type_, thing))
                return
            if fault == "bookmark":
                self.open_at = self.server.version
                self.consumer.take(self.machine.bookmark(str(self.open_at)))

    def settle(self) -> None:
        """Let everything arrive, with no more faults."""
        for _ in range(300):
            if self.open_at == self.server.version and self.initial is None:
                return
            self.advance()
        raise AssertionError("the machine does not come to rest")


CHANGES = st.tuples(st.sampled_from(NAMES), st.sampled_from(["put", "put", "delete", "replace"]))
ACTIONS = st.one_of(
    CHANGES,
    st.sampled_from(["", "", "", "bookmark", "eof", "compact", *FAILURES]),
)


@given(
    st.lists(ACTIONS, min_size=25, max_size=60),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
@pytest.mark.covers("J12")
def test_no_event_is_lost_or_doubled(
    actions: list[str | tuple[str, str]], limit: int, streaming: bool, supported: bool
) -> None:
    """All events applied give the server's state; each fits the one before; none is repeated."""
    driver = Driver(limit=limit, streaming=streaming, supported=supported)
    for name in NAMES:
        driver.server.change(name, "put")
    for action in actions:
        if isinstance(action, tuple):
            driver.server.change(*action)
        elif action == "compact":
            driver.server.compact()
        else:
            driver.advance(action)
    driver.settle()
    expected = {name: (thing.uid, thing.version) for name, thing in driver.server.things.items()}
    assert driver.consumer.state == expected
    assert driver.consumer.synced >= 1
    assert driver.machine.synced
    assert driver.machine.stale_since is None


@given(
    st.lists(st.one_of(CHANGES, st.sampled_from(["", "bookmark", "eof", *FAILURES])), max_size=60)
)
@settings(max_examples=200, deadline=None)
def test_without_a_gap_every_single_change_arrives_in_order(
    actions: list[str | tuple[str, str]],
) -> None:
    """As long as the server can resume, the events are its history, one for one."""
    driver = Driver(limit=500, streaming=False, supported=False)
    while driver.open_at is None:
        driver.advance()
    for action in actions:
        if isinstance(action, tuple):
            driver.server.change(*action)
        else:
            # Three refusals in a row make the machine list, which may skip states; leave that out.
            driver.advance("refused" if action == "internal" else action)
    driver.settle()
    got = [
        (event.type, event.object)
        for event in driver.consumer.events
        if event.type != SYNCED and event.object is not None
    ]
    assert got == [(type_, thing) for _, type_, thing in driver.server.log]
    assert driver.consumer.synced == 1
