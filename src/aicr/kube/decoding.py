"""Bytes of an API server → pages, objects and watch lines, as plain documents or as projections.

Pure. Decoders are built once a type, because building one costs more than using it. It must not know
where bytes come from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from aicr.errors import SERVICE_UNAVAILABLE, AicrError
from aicr.kube.projection import Page, WatchLine
from aicr.kube.request import Request
from aicr.kube.status import from_status

T = TypeVar("T")

BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"
#: Annotation that ends the initial events of a streamed list.
INITIAL_END: Final = "k8s.io/initial-events-end"
#: The API server writes the type first. A line that is laid out otherwise is read the slow way.
_CARRIES_OBJECT: Final = (b'{"type":"ADDED"', b'{"type":"MODIFIED"', b'{"type":"DELETED"')


class Bookmark(NamedTuple):
    """A line of a watch that carries no object: how far the watch has come."""

    version: str
    initial_end: bool


#: How a line that carries such an object is decoded. `_decoder` would build and hash the generic type
#: anew for every line, which takes a good part of what decoding does.
_LINES: dict[Any, Callable[[bytes], WatchLine[Any]]] = {}


@functools.cache
def _decoder(of: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(of)


def document(request: Request, body: bytes) -> dict[str, Any]:
    """A JSON object; SERVICE_UNAVAILABLE if the answer is cut short or something else."""
    try:
        found = _decoder(Any).decode(body)
    except msgspec.DecodeError as error:
        raise _unreadable(request, error) from error
    if not isinstance(found, dict):
        raise _unreadable(request, TypeError(f"expected an object, got {type(found).__name__}"))
    return found


def projection(request: Request, body: bytes, into: type[T]) -> T:
    """One object as a projection."""
    try:
        found: T = _decoder(cast(Any, into)).decode(body)
    except msgspec.DecodeError as error:
        raise _unreadable(request, error) from error
    return found


def page(request: Request, body: bytes, into: type[T]) -> Page[T]:
    """One page of a list, its items as projections, or as documents if *into* is `dict`.

    Documents get the apiVersion and kind that servers leave out of items of lists.
    """
    try:
        found: Page[T] = _decoder(Page[into]).decode(body)  # type: ignore[valid-type]
    except msgspec.DecodeError as error:
        raise _unreadable(request, error) from error
    if into is dict and request.resource is not None and found.items:
        about = {"apiVersion": request.resource.api_version, "kind": request.resource.kind}
        items = [cast(T, {**about, **cast(Any, item)}) for item in found.items]
        return Page(found.metadata, items)
    return found


def line(request: Request, text: bytes, into: type[T]) -> WatchLine[T] | Bookmark:
    """One line of a watch. An ERROR event is raised as the error that it reports."""
    if text.startswith(_CARRIES_OBJECT):
        decode = _LINES.get(into)
        if decode is None:
            decode = _LINES[into] = _decoder(WatchLine[into]).decode  # type: ignore[valid-type]
        try:
            return decode(text)
        except msgspec.DecodeError as error:
            raise _unreadable(request, error) from error
    return _other_line(request, text, into)


def _other_line(request: Request, text: bytes, into: type[T]) -> WatchLine[T] | Bookmark:
    found = document(request, text)
    type_, carried = found.get("type"), found.get("object")
    if not isinstance(type_, str) or not isinstance(carried, dict):
        raise _unreadable(request, TypeError("expected an event with type and object"))
    if type_ == ERROR:
        raise from_status(request, carried)
    if type_ == BOOKMARK:
        metadata = carried.get("metadata") or {}
        end = (metadata.get("annotations") or {}).get(INITIAL_END) == "true"
        return Bookmark(str(metadata.get("resourceVersion") or ""), end)
    try:
        return WatchLine(type_, msgspec.convert(carried, into))
    except msgspec.ValidationError as error:
        raise _unreadable(request, error) from error


def _unreadable(request: Request, error: Exception) -> AicrError:
    return AicrError(
        SERVICE_UNAVAILABLE,
        f"cannot {request.verb} {request.subject}: the answer cannot be read: {error}",
        hint="the answer was cut short or changed on its way; try again",
    )
