"""A cache of one collection that follows the server: store, indexes, handlers, and how fresh it is.

In controller-runtime's words: the informer lists and watches, keeps the last state of each object,
and tells handlers what changed. Handlers are called in order and at once; they should only put keys
into a queue. An error in one ends the informer, because a change that was not handled is lost for
good.

A cache that cannot reach its server still answers, with old truth; so it says since when and why it
is stale, and `require_fresh` is for decisions that must not be made on old truth. It must not know
controllers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, AicrError
from aicr.kube.port import Fields, Kind, Labels
from aicr.kube.reader import Reader
from aicr.kube.watching import DELETED, SYNCED, Event, Key

T = TypeVar("T")

#: Index function: an object → the values under which it can be found.
Index = Callable[[T], Iterable[str]]


class Store(Generic[T]):
    """Objects by key, and keys by what index functions say. Pure.

    Lists come in the order of keys, so that the same state gives the same answers.
    """

    def __init__(self, indexes: Mapping[str, Index[T]] | None = None) -> None:
        self._objects: dict[Key, T] = {}
        self._functions = dict(indexes or {})
        self._indexes: dict[str, dict[str, set[Key]]] = {name: {} for name in self._functions}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object, or None."""
        return self._objects.get((namespace, name))

    def list(self, namespace: str = "") -> Sorted[T]:
        """All objects, or those of a namespace."""
        keys = sorted(key for key in self._objects if not namespace or key[0] == namespace)
        return [self._objects[key] for key in keys]

    def by_index(self, index: str, value: str) -> Sorted[T]:
        """Objects for which the index function *index* gave *value*."""
        return [self._objects[key] for key in sorted(self._indexes[index].get(value, ()))]

    def put(self, key: Key, item: T) -> T | None:
        """Store *item*; the object that it replaces."""
        old = self.remove(key)
        self._objects[key] = item
        for name, function in self._functions.items():
            for value in function(item):
                self._indexes[name].setdefault(value, set()).add(key)
        return old

    def remove(self, key: Key) -> T | None:
        """Forget the object under *key*; the object, or None."""
        old = self._objects.pop(key, None)
        if old is None:
            return None
        for name, function in self._functions.items():
            index = self._indexes[name]
            for value in function(old):
                keys = index.get(value)
                if keys is not None:
                    keys.discard(key)
                    if not keys:
                        del index[value]
        return old


#: A list; inside the class above the name `list` means its method.
Sorted = list


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What handlers are told. For DELETED `new` is None and `old` the last state known."""

    type: str
    key: Key
    old: T | None
    new: T | None


@dataclass(frozen=True, slots=True)
class Freshness:
    """Whether a cache follows its server: not while `reason` says why not, for `seconds` now."""

    synced: bool
    stale: bool
    seconds: float = 0.0
    reason: str = ""


class Informer(Generic[T]):
    """See the module. `run` it in a task; it ends only by cancellation or an error in a handler.

    Args:
        reader: the cluster.
        kind: what to follow.
        into: the projection to keep (2 kB a pod), or `dict` (50 kB).
        namespace, labels, fields: which objects; all by default.
        indexes: name → index function, for `store.by_index`.
        initial_events: ask for a streaming list first.
    """

    def __init__(
        self,
        reader: Reader,
        kind: Kind,
        into: type[T],
        *,
        namespace: str = "",
        labels: Labels = None,
        fields: Fields = None,
        indexes: Mapping[str, Index[T]] | None = None,
        initial_events: bool = False,
    ) -> None:
        self.store: Store[T] = Store(indexes)
        self._reader = reader
        self._kind = kind
        self._into = into
        self._selection: dict[str, Any] = {
            "namespace": namespace,
            "labels": labels,
            "fields": fields,
        }
        # Nothing is fatal to a cache: access may be granted later. It is stale until then, and says so.
        self._machine = reader.machine(into, initial_events=initial_events, fatal=frozenset())
        self._handlers: list[Callable[[Change[T]], None]] = []
        self._synced = asyncio.Event()

    def add_handler(self, handler: Callable[[Change[T]], None]) -> None:
        """Call *handler* with every change; first with ADDED for what is already there."""
        for item in self.store.list():
            handler(Change("ADDED", self._key(item), None, item))
        self._handlers.append(handler)

    def freshness(self) -> Freshness:
        """Whether the cache follows its server at this moment."""
        machine = self._machine
        if machine.stale_since is None:
            return Freshness(machine.synced, stale=False)
        seconds = self._reader.clock() - machine.stale_since
        return Freshness(machine.synced, True, seconds, machine.stale_reason)

    def require_fresh(self, max_age: float = 0.0) -> None:
        """SERVICE_UNAVAILABLE if the cache has been stale for longer than *max_age* seconds."""
        state = self.freshness()
        if not state.synced or (state.stale and state.seconds > max_age):
            raise AicrError(
                SERVICE_UNAVAILABLE,
                f"the cache of {self._kind_name()} has been stale for {state.seconds:.0f} s: "
                f"{state.reason}",
                hint="it recovers by itself once the API server answers",
            )

    async def wait_synced(self, timeout: float) -> None:
        """Wait until everything that existed is in the store; TIMEOUT, with the reason, if it is
        not.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._synced.wait()
        except TimeoutError as error:
            raise AicrError(
                TIMEOUT,
                f"the cache of {self._kind_name()} was not filled within {timeout:g} s: "
                f"{self._machine.stale_reason}",
            ) from error

    async def run(self) -> None:
        """Follow the collection for ever."""
        events = self._reader.follow(self._machine, self._kind, self._into, **self._selection)
        # Closed when a handler fails too, or its connection would stay until the collector finds it.
        async with contextlib.aclosing(events) as following:
            async for event in following:
                self._apply(event)

    def _apply(self, event: Event[T]) -> None:
        if event.type == SYNCED:
            self._synced.set()
            return
        if event.type == DELETED:
            # The last state that handlers saw is what they know; the server's final one may be absent.
            change = Change(DELETED, event.key, self.store.remove(event.key), None)
        else:
            assert event.object is not None
            old = self.store.put(event.key, event.object)
            change = Change(event.type, event.key, old, event.object)
        for handler in self._handlers:
            handler(change)

    def _key(self, item: T) -> Key:
        return self._machine.identify(item).key

    def _kind_name(self) -> str:
        return self._kind if isinstance(self._kind, str) else self._kind.qualified
