"""Logs of containers: once, or followed until the container ends, over cut connections.

A followed log breaks when the API server or a node restarts. It is asked for again from the second
of the last line, since the interface knows seconds only, and lines that were given already are
dropped by their time stamps: none is lost, none comes twice (V-086). It must not know what the
lines say.

Source: Kubernetes API reference, pods/log.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from aicr.errors import INVALID_REQUEST, NOT_FOUND, UNAUTHORIZED, AicrError, invalid, not_found
from aicr.kube import request
from aicr.kube.backoff import delay
from aicr.kube.kinds import POD
from aicr.kube.port import Document, Kind, Transport
from aicr.kube.timeouts import Timeouts

_TIME: Final = re.compile(
    rb"(?P<second>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<rest>\.\d+)?(?P<zone>Z|[+-]\d\d:\d\d)"
)
#: Errors that a later attempt will meet again. NOT_FOUND: the pod is gone, and its log with it.
_FINAL: Final = frozenset({NOT_FOUND, UNAUTHORIZED})

WAITING: Final = "waiting"
RUNNING: Final = "running"
ENDED: Final = "ended"
UNKNOWN: Final = "unknown"


class LogSource(Protocol):
    """What `follow` needs of a client."""

    transport: Transport
    timeouts: Timeouts
    random: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]

    async def get(
        self, kind: Kind, name: str, *, namespace: str = "", subresource: str = ""
    ) -> Document:
        """One object."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which part of a container's log, and how."""

    container: str = ""
    tail: int | None = None
    previous: bool = False
    follow: bool = False
    timestamps: bool = False
    since_time: str = ""
    limit_bytes: int = 0


def log_request(name: str, namespace: str, options: LogOptions) -> request.Request:
    """The request for a log; any text, so no media type is asked for."""
    if options.tail is not None and options.tail < 0:
        raise invalid(f"tail {options.tail} is negative")
    query = []
    if options.container:
        query.append(("container", options.container))
    for key, on in (
        ("follow", options.follow),
        ("previous", options.previous),
        ("timestamps", options.timestamps),
    ):
        if on:
            query.append((key, "true"))
    if options.tail is not None:
        query.append(("tailLines", str(options.tail)))
    if options.since_time:
        query.append(("sinceTime", options.since_time))
    if options.limit_bytes:
        query.append(("limitBytes", str(options.limit_bytes)))
    path = request.path_of(POD, namespace=namespace, name=name, subresource="log")
    return request.Request(
        *("get", "GET", path, tuple(query)),
        accept="*/*",
        resource=POD,
        namespace=namespace,
        name=name,
        subresource="log",
    )


class Resumption:
    """Which lines are new after a reconnection. Pure.

    The interface gives lines from a whole second on. Lines of one container come in the order of
    their times; several may share one, so how many of the last time were given is counted.
    """

    def __init__(self) -> None:
        self._last = b""
        self._given_at_last = 0
        self._to_skip = 0

    @property
    def since_time(self) -> str:
        """The second to ask from, "" for the beginning."""
        match = _TIME.match(self._last)
        return f"{match['second'].decode()}{match['zone'].decode()}" if match else ""

    def reconnected(self) -> None:
        """The next lines are from `since_time` on."""
        self._to_skip = self._given_at_last

    def new(self, line: bytes) -> bytes | None:
        """The text of a line with its time stamp, or None if it was given before."""
        stamp, space, text = line.partition(b" ")
        match = _TIME.fullmatch(stamp)
        if not (match and space):
            return line  # a line of the node agent itself, such as that a log was rotated
        place, last = _order(stamp), _order(self._last)
        if self._last and place < last:
            return None
        if self._last and place == last:
            if self._to_skip:
                self._to_skip -= 1
                return None
            self._given_at_last += 1
            return text
        self._last, self._given_at_last, self._to_skip = stamp, 1, 0
        return text


def _order(stamp: bytes) -> tuple[bytes, bytes]:
    """Sorts as time does: trailing zeros of the fraction are left out by writers."""
    match = _TIME.match(stamp)
    if match is None:
        return b"", b""
    return match["second"], (match["rest"] or b".").ljust(10, b"0")


async def follow(
    source: LogSource, name: str, *, namespace: str, container: str = ""
) -> AsyncIterator[bytes]:
    """Each line of a container from its beginning to its end.

    Raises NOT_FOUND if the pod goes away, UNAUTHORIZED if the log may not be read; waits for a
    container that has not started yet and for servers that are away.
    """
    resumption = Resumption()
    failures = 0
    while True:
        options = LogOptions(
            container, follow=True, timestamps=True, since_time=resumption.since_time
        )
        state = await _state(source, name, namespace, container)
        resumption.reconnected()
        try:
            async with source.transport.stream(log_request(name, namespace, options)) as stream:
                async for batch in stream.batches():
                    for line in batch:
                        text = resumption.new(line)
                        if text is not None:
                            failures = 0
                            yield text
            # The container had ended before the stream began, so the stream has had all of it.
            if state == ENDED:
                return
        except AicrError as error:
            # Of a container that has not started the server says "bad request".
            if error.code in _FINAL or (error.code == INVALID_REQUEST and state != WAITING):
                raise
        pause = delay(
            *(failures,),
            base=source.timeouts.backoff,
            cap=source.timeouts.backoff_cap,
            random=source.random,
        )
        failures += 1
        await source.sleep(pause)


async def _state(source: LogSource, name: str, namespace: str, container: str) -> str:
    """As `state_of`; UNKNOWN while the server cannot be asked."""
    try:
        pod = await source.get(POD, name, namespace=namespace)
    except AicrError as error:
        if error.code in _FINAL:
            raise
        return UNKNOWN
    return state_of(pod, container)


def state_of(pod: dict[str, Any], container: str) -> str:
    """Whether *container* (or the only one) is WAITING to start (again), RUNNING, or has ENDED for
    good.

    NOT_FOUND if the pod has no such container.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    init = spec.get("initContainers") or []
    declared = [*init, *(spec.get("containers") or ())]
    wanted = container or next(iter(spec.get("containers") or [{}])).get("name", "")
    own = next((entry for entry in declared if entry.get("name") == wanted), None)
    if own is None:
        raise not_found(f'pod "{pod["metadata"]["name"]}" has no container "{wanted}"')
    if status.get("phase") in {"Succeeded", "Failed"}:
        return ENDED
    policy = own.get("restartPolicy") or spec.get("restartPolicy", "Always")
    statuses = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    state = next((one.get("state") or {} for one in statuses if one.get("name") == wanted), {})
    if "running" in state:
        return RUNNING
    ended = state.get("terminated")
    if ended:
        succeeded = ended.get("exitCode") == 0
        for_good = policy == "Never" or (succeeded and (policy == "OnFailure" or own in init))
        return ENDED if for_good and own.get("restartPolicy") != "Always" else WAITING
    return WAITING
