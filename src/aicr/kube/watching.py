"""Following a collection without losing or doubling a change: a state machine without I/O.

The machine says what to do next (`ListPage`, `OpenWatch`, `Pause`) and is told what came of it; it
turns pages and watch events into `Event`s. Whoever drives it owns sockets and sleeping (`client`),
so that every order of bookmarks, expiries, cut connections and restarts can be tested in memory.

What holds, whatever happens in between (the law in tests/kube):

- Events of one object arrive in the order of the server; none arrives twice.
- Applying all events so far to an empty map gives the server's collection as of the version followed.
- After a gap that the server cannot fill (410), the collection is listed again and compared with
what is
  known: what went in the meantime is reported as deleted (without its last state), what was
  replaced by another object of the same name as deleted and added. Intermediate states are not seen.

It must not know objects beyond name, namespace, UID and version, which a function passed in reads off.

Source: Kubernetes API concepts (efficient detection of changes, bookmarks, 410 Gone, streaming lists).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from aicr.errors import (
    INVALID_REQUEST,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
)
from aicr.kube.backoff import delay
from aicr.kube.status import is_gone
from aicr.kube.timeouts import Timeouts

T = TypeVar("T")

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
#: Everything that existed has been reported; changes follow. Comes again after each listing.
SYNCED: Final = "SYNCED"

#: (namespace, name)
Key = tuple[str, str]

#: Codes that no waiting mends: the caller is told instead.
FATAL: Final = frozenset({INVALID_REQUEST, UNAUTHORIZED, NOT_FOUND, METHOD_NOT_ALLOWED})

#: After this many answers in a row that refuse to resume, the collection is listed again.
REFUSALS_BEFORE_LIST: Final = 3
#: After this many lists whose continuation expired, the list is asked for in one piece.
EXPIRIES_BEFORE_WHOLE: Final = 2


class Identity(NamedTuple):
    """What the machine needs to know of an object."""

    key: Key
    uid: str
    version: str


class Event(NamedTuple, Generic[T]):
    """A change. `object` is None for SYNCED and for a deletion found out by listing."""

    type: str
    key: Key
    uid: str
    object: T | None


@dataclass(frozen=True, slots=True)
class ListPage:
    """List the next page (0 = no limit), with a consistent read."""

    continue_token: str
    limit: int


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """Watch from a version; with `initial_events` the server first sends what exists."""

    resource_version: str
    timeout_seconds: int
    initial_events: bool


@dataclass(frozen=True, slots=True)
class Pause:
    """Do nothing for so many seconds."""

    seconds: float


Step = ListPage | OpenWatch | Pause


def identity_of_document(document: dict[str, Any]) -> Identity:
    """Identity of an object that is a plain document; SERVICE_UNAVAILABLE if it has no name."""
    try:
        metadata = document["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        return Identity(key, metadata.get("uid", ""), metadata.get("resourceVersion", ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise AicrError(
            SERVICE_UNAVAILABLE,
            "the server sent an object without metadata.name",
            hint="an aggregated API server may be broken",
        ) from error


def identity_of_struct(struct: Any) -> Identity:
    """Identity of an object that is one of the projections."""
    metadata = struct.metadata
    return Identity((metadata.namespace, metadata.name), metadata.uid, metadata.resource_version)


class WatchMachine(Generic[T]):
    """See the module. One machine follows one collection; it is told the time and given randomness.

    Args:
        identify: reads an object's identity.
        clock: seconds, monotonic.
        random: numbers in [0, 1), for jitter.
        timeouts: `watch`, `backoff`, `backoff_cap` and `busy` are used.
        limit: objects a page.
        initial_events: try a streaming list first; servers without it are listed in pages.
        fatal: codes on which `ended` raises; an informer passes none and reports itself stale.
    """

    def __init__(
        self,
        *,
        identify: Callable[[T], Identity],
        clock: Callable[[], float],
        random: Callable[[], float],
        timeouts: Timeouts,
        limit: int = 500,
        initial_events: bool = False,
        fatal: frozenset[str] = FATAL,
    ) -> None:
        self.identify = identify
        self._clock = clock
        self._random = random
        self._timeouts = timeouts
        self._limit = limit
        self._stream_first = initial_events
        self._fatal = fatal
        self._known: dict[Key, tuple[str, str]] = {}
        #: Keys met since this listing began; None while changes are followed.
        self._seen: set[Key] | None = None
        self._version = ""
        self._continue = ""
        self._pause = 0.0
        self._failures = 0
        self._refusals = 0
        self._expiries = 0
        self._opened_at: float | None = None
        #: When a server first refused us what it gave before; None while it does not.
        self._denied_at: float | None = None
        self._denied_last = False
        self._watched = False
        self._progress = False
        self.synced = False
        self.stale_since: float | None = clock()
        self.stale_reason = "not listed yet"
        self._begin_listing()

    # What to do next

    def step(self) -> Step:
        """The next thing to do. A pause is handed out once."""
        if self._pause:
            seconds, self._pause = self._pause, 0.0
            return Pause(seconds)
        listing = self._seen is not None
        if listing and not self._stream_first:
            whole = self._expiries >= EXPIRIES_BEFORE_WHOLE
            return ListPage(self._continue, 0 if whole else self._limit)
        lasting = self._timeouts.watch * (1.0 + self._random())
        return OpenWatch("" if listing else self._version, max(1, round(lasting)), listing)

    # What came of it

    def page(
        self, items: Iterable[T], resource_version: str, continue_token: str
    ) -> Iterable[Event[T]]:
        """A page arrived. To be iterated to its end before the next step."""
        identify, upsert = self.identify, self._upsert
        for item in items:
            yield from upsert(item, identify(item))
        self._denied_at = None
        self._continue = continue_token
        if not continue_token:
            self._version = resource_version
            yield from self._finish_listing()

    def opened(self) -> None:
        """The server accepted the watch."""
        self._opened_at = self._clock()
        self._denied_at = None
        self._watched = True
        self._progress = False
        if self._seen is None:
            self._fresh()

    def received(self, type_: str, item: T) -> Iterable[Event[T]]:
        """An ADDED, MODIFIED or DELETED arrived on the watch."""
        self._moved()
        identity = self.identify(item)
        if type_ in (ADDED, MODIFIED):
            events = self._upsert(item, identity)
        elif type_ == DELETED:
            events = self._remove(item, identity)
        else:
            raise AicrError(SERVICE_UNAVAILABLE, f'the watch sent an unknown event "{type_}"')
        # Initial events come in no order of versions; a stream cut among them starts over anyway.
        self._version = identity[2]
        return events

    def bookmark(self, resource_version: str, *, initial_end: bool = False) -> Iterable[Event[T]]:
        """A bookmark arrived: nothing before *resource_version* is outstanding."""
        self._moved()
        if self._seen is not None and not initial_end:
            return ()
        self._version = resource_version
        return () if self._seen is None else self._finish_listing()

    def ended(self, error: AicrError | None = None) -> None:
        """The list failed, or the watch came to its end; None is an end in good order.

        Raises *error* if its code is one of those that no waiting mends. A server that has just started
        may refuse for some seconds what it gave before, since it has not read its roles yet.
        """
        watching, opened_at = self._opened_at is not None, self._opened_at
        self._opened_at = None
        if opened_at is not None and self._clock() - opened_at >= self._timeouts.backoff_cap:
            self._failures = self._refusals = 0
            self._progress = True
        if error is None:
            if not self._progress:
                self._retry_later()
            self._restart_listing_if_streaming()
            return
        self._lost(f"{error.message}")
        self._pace(error)
        if is_gone(error):
            self._expired()
        elif self._streaming_refused(error):
            self._stream_first = False
        elif error.code in self._fatal and not self._may_pass(error):
            raise error
        else:
            self._refused(error)
            at_once = watching and self._progress and error.code == TIMEOUT
            if not at_once:
                self._retry_later(float(error.context.get("retry_after") or 0.0))
            self._restart_listing_if_streaming()

    # Inside

    def _begin_listing(self) -> None:
        self._seen = set()
        self._continue = ""
        self._version = ""

    def _restart_listing_if_streaming(self) -> None:
        """A streamed list that was cut short starts over; a paged one goes on at its page."""
        if self._seen is not None and self._stream_first:
            self._begin_listing()

    def _finish_listing(self) -> list[Event[T]]:
        seen, self._seen = self._seen, None
        assert seen is not None
        events: list[Event[T]] = []
        for key in [key for key in self._known if key not in seen]:
            uid, _ = self._known.pop(key)
            events.append(Event(DELETED, key, uid, None))
        self._expiries = 0
        self.synced = True
        self._fresh()
        events.append(Event(SYNCED, ("", ""), "", None))
        return events

    def _upsert(self, item: T, identity: Identity) -> tuple[Event[T], ...]:
        key, uid, version = identity
        if self._seen is not None:
            self._seen.add(key)
        before = self._known.get(key)
        if before == (uid, version):
            return ()
        self._known[key] = (uid, version)
        if before is None:
            return (Event(ADDED, key, uid, item),)
        if before[0] == uid:
            return (Event(MODIFIED, key, uid, item),)
        return (Event(DELETED, key, before[0], None), Event(ADDED, key, uid, item))

    def _remove(self, item: T, identity: Identity) -> tuple[Event[T], ...]:
        key, uid, _ = identity
        before = self._known.get(key)
        if before is None or before[0] != uid:
            return ()
        del self._known[key]
        return (Event(DELETED, key, uid, item),)

    def _moved(self) -> None:
        self._progress = True
        self._failures = self._refusals = 0

    def _expired(self) -> None:
        if self._seen is not None and not self._stream_first:
            self._expiries += 1
        self._refusals = 0
        self._begin_listing()
        self._retry_later()

    def _streaming_refused(self, error: AicrError) -> bool:
        return self._stream_first and self._seen is not None and error.code == INVALID_REQUEST

    def _may_pass(self, error: AicrError) -> bool:
        """Whether a refusal may be that of a server that has just started and knows no roles yet.

        Only of a collection that could be watched before, and for `Timeouts.busy` seconds.
        """
        if not self._watched or error.context.get("status") not in (401, 403):
            return False
        now = self._clock()
        if self._denied_at is None:
            self._denied_at = now
        return now - self._denied_at < self._timeouts.busy

    def _pace(self, error: AicrError) -> None:
        """The first refusal after something else begins the pauses anew.

        A server that has just started is away first, which makes pauses long; but one that refuses is
        back, and knows its roles in a second or two. Refusals that go on are met with longer pauses.
        """
        denied = self._watched and error.context.get("status") in (401, 403)
        if denied and not self._denied_last:
            self._failures = 0
        self._denied_last = denied

    def _refused(self, error: AicrError) -> None:
        """Answers that refuse to resume, unlike a server that is away, are not repeated for ever."""
        if self._seen is not None or not error.context.get("status"):
            return
        if error.context.get("retry_after") or self._denied_at is not None:
            return
        self._refusals += 1
        if self._refusals >= REFUSALS_BEFORE_LIST:
            self._refusals = 0
            self._begin_listing()

    def _retry_later(self, at_least: float = 0.0) -> None:
        base, cap = self._timeouts.backoff, self._timeouts.backoff_cap
        pause = delay(self._failures, base=base, cap=cap, random=self._random)
        self._failures += 1
        self._pause = max(pause, at_least)

    def _fresh(self) -> None:
        self.stale_since = None
        self.stale_reason = ""

    def _lost(self, reason: str) -> None:
        if self.stale_since is None:
            self.stale_since = self._clock()
        self.stale_reason = reason
