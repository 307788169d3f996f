"""Logs of containers: once, or followed until the container ends, over cut connections.

A followed log breaks when the API server or a node restarts. It is asked for again from the second
of the newest line, since the interface knows seconds only, and lines that were given already are
dropped: none is lost, none comes twice (V-086). A container that was started again meanwhile has a
new log; what the one before had still written is asked for first. It must not know what the lines
say.

Source: Kubernetes API reference, pods/log.
"""

from __future__ import annotations

import re
from collections import Counter
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

    The interface gives lines from a whole second on, in the order in which they were written. That is
    nearly, but not always, the order of their times: stdout and stderr are stamped apart and written
    to one file. So nothing is concluded from the order. Lines of the newest second are remembered,
    and each of them is dropped once when it comes again.
    """

    def __init__(self) -> None:
        self._second = b""
        self._zone = b""
        #: The second that was asked from: whatever is older was given, and is not wanted again.
        self._from = b""
        #: Lines of that second that were given, by their hashes: a second may hold megabytes.
        self._given: Counter[int] = Counter()
        self._again: Counter[int] = Counter()

    @property
    def since_time(self) -> str:
        """The second to ask from, "" for the beginning."""
        return (self._second + self._zone).decode()

    def reconnected(self) -> None:
        """The next lines are from `since_time` on."""
        self._from = self._second
        self._again = self._given.copy()

    def new(self, line: bytes) -> bytes | None:
        """The text of a line with its time stamp, or None if it was given before."""
        stamp, space, text = line.partition(b" ")
        match = _TIME.fullmatch(stamp)
        if not (match and space):
            return line  # a line of the node agent itself, such as that a log was rotated
        known, second = hash(line), match["second"]
        if second < self._from:
            return None
        if self._again[known] > 0:
            self._again[known] -= 1
            return None
        if second > self._second:
            self._second, self._zone = second, match["zone"]
            self._given.clear()
        if second == self._second:
            self._given[known] += 1
        return text


async def follow(
    source: LogSource, name: str, *, namespace: str, container: str = ""
) -> AsyncIterator[bytes]:
    """Each line of a container from its beginning to its end.

    Raises NOT_FOUND if the pod goes away, UNAUTHORIZED if the log may not be read; waits for a
    container that has not started yet and for servers that are away.
    """
    resumption = Resumption()
    failures = 0
    started: int | None = None
    while True:
        wait = 0.0
        try:
            state, restarts = await _state(source, name, namespace, container)
            if started is not None and restarts > started:
                async for text in _previous(source, name, namespace, container, resumption):
                    yield text
            started = max(restarts, started or 0) if state != UNKNOWN else started
            resumption.reconnected()
            options = LogOptions(
                container, follow=True, timestamps=True, since_time=resumption.since_time
            )
            async with source.transport.stream(log_request(name, namespace, options)) as stream:
                async for batch in stream.batches():
                    for line in batch:
                        new = resumption.new(line)
                        if new is not None:
                            failures = 0
                            yield new
            # The container had ended before the stream began, so the stream has had all of it.
            if state == ENDED:
                return
        except AicrError as error:
            # Of a container that has not started the server says "bad request".
            if error.code in _FINAL:
                raise
            if error.code == INVALID_REQUEST and state in (RUNNING, ENDED):
                raise
            wait = float(error.context.get("retry_after") or 0.0)
        pause = delay(
            *(failures,),
            base=source.timeouts.backoff,
            cap=source.timeouts.backoff_cap,
            random=source.random,
        )
        failures += 1
        await source.sleep(max(pause, wait))


async def _previous(
    source: LogSource, name: str, namespace: str, container: str, resumption: Resumption
) -> AsyncIterator[bytes]:
    """What a container that was started again had written and nobody was given yet."""
    resumption.reconnected()
    options = LogOptions(
        container, previous=True, timestamps=True, since_time=resumption.since_time
    )
    asked = log_request(name, namespace, options)
    try:
        body = await source.transport.send(asked, timeout=source.timeouts.page)
    except AicrError as error:
        if error.code == INVALID_REQUEST:
            return  # its log is gone: nodes keep that of one container, and not for ever
        raise
    # Not splitlines, which would also split at the carriage returns of progress bars.
    for line in body.removesuffix(b"\n").split(b"\n") if body else ():
        text = resumption.new(line)
        if text is not None:
            yield text


async def _state(source: LogSource, name: str, namespace: str, container: str) -> tuple[str, int]:
    """As `state_of`, and how often it was started again; UNKNOWN while the server cannot be asked."""
    try:
        pod = await source.get(POD, name, namespace=namespace)
    except AicrError as error:
        if error.code in _FINAL:
            raise
        return UNKNOWN, 0
    return state_of(pod, container), restarts_of(pod, container)


def state_of(pod: dict[str, Any], container: str) -> str:
    """Whether *container* (or the only one) is WAITING to start (again), RUNNING, or has ENDED for
    good.

    NOT_FOUND if the pod has no such container.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    init = spec.get("initContainers") or []
    declared = [*init, *(spec.get("containers") or ())]
    wanted = _wanted(pod, container)
    own = next((entry for entry in declared if entry.get("name") == wanted), None)
    if own is None:
        raise not_found(f'pod "{pod["metadata"]["name"]}" has no container "{wanted}"')
    if status.get("phase") in {"Succeeded", "Failed"}:
        return ENDED
    policy = own.get("restartPolicy") or spec.get("restartPolicy", "Always")
    state = _status(pod, wanted).get("state") or {}
    if "running" in state:
        return RUNNING
    ended = state.get("terminated")
    if ended:
        succeeded = ended.get("exitCode") == 0
        for_good = policy == "Never" or (succeeded and (policy == "OnFailure" or own in init))
        return ENDED if for_good and own.get("restartPolicy") != "Always" else WAITING
    return WAITING


def restarts_of(pod: dict[str, Any], container: str) -> int:
    """How often *container* (or the first one) was started again."""
    return int(_status(pod, _wanted(pod, container)).get("restartCount") or 0)


def _wanted(pod: dict[str, Any], container: str) -> str:
    containers = (pod.get("spec") or {}).get("containers") or [{}]
    return container or str(containers[0].get("name", ""))


def _status(pod: dict[str, Any], container: str) -> dict[str, Any]:
    status = pod.get("status") or {}
    for part in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(part) or ():
            if one.get("name") == container:
                found: dict[str, Any] = one
                return found
    return {}
