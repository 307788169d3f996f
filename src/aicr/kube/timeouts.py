"""Every waiting time of cluster access in one object (decision 67).

Nothing else in this package holds a number of seconds that a user could want to change. Tests shorten
all of them by one factor; the defaults themselves are asserted. It must not know who waits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from aicr.errors import invalid

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Times = TypeVar("Times", bound=DataclassInstance)

FACTOR_VARIABLE = "AICR_TIMEOUT_FACTOR"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Waiting times in seconds."""

    #: Name resolution, TCP and TLS of one connection.
    connect: float = 10.0
    #: One ordinary request, answer included.
    request: float = 30.0
    #: One page of a list; a page of 500 pods over a slow line is some megabytes.
    page: float = 60.0
    #: How long one watch is asked to last at least; the server is told up to twice this, jittered.
    watch: float = 300.0
    #: A watch or a followed log with no byte for this long counts as broken. Bookmarks come about
    #: once a minute.
    idle: float = 150.0
    #: All repetitions of one request that the server puts off (429 or 503 with Retry-After).
    busy: float = 30.0
    #: First and longest pause between attempts to list or watch again.
    backoff: float = 0.8
    backoff_cap: float = 30.0
    #: A credential plugin; long, because a person may be asked to log in.
    exec_plugin: float = 120.0
    #: Age at which a token file is read again.
    token_reread: float = 60.0
    #: Age at which what the server said about its kinds is asked again.
    discovery: float = 600.0
    #: Least time between two discoveries caused by a kind that was not there.
    discovery_miss: float = 2.0
    #: One command run in a container, unless the caller says otherwise.
    command: float = 300.0

    def scaled(self, factor: float) -> Timeouts:
        """The same times, each multiplied by *factor*; INVALID_REQUEST if it is not positive."""
        return scaled(self, factor)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Timeouts:
        """The defaults, scaled by ``AICR_TIMEOUT_FACTOR`` if it is set (tests, slow links)."""
        return cls().scaled(factor_of(environ))


def scaled(times: Times, factor: float, *, keep: Collection[str] = ()) -> Times:
    """A dataclass of waiting times with each multiplied by *factor*, those of inner ones too.

    Args:
        times: fields are numbers, or dataclasses of such.
        factor: a positive number.
        keep: fields that stay as they are.

    Raises:
        AicrError: INVALID_REQUEST for a factor that is not positive and finite.
    """
    _check(factor)
    changes: dict[str, Any] = {}
    for field in fields(times):
        value = getattr(times, field.name)
        if field.name not in keep:
            changes[field.name] = (
                value * factor if isinstance(value, int | float) else scaled(value, factor)
            )
    return replace(times, **changes)


def factor_of(environ: Mapping[str, str]) -> float:
    """The number in ``AICR_TIMEOUT_FACTOR``, 1 if it is not set; INVALID_REQUEST if it is none."""
    text = environ.get(FACTOR_VARIABLE, "").strip()
    if not text:
        return 1.0
    try:
        factor = float(text)
    except ValueError as error:
        raise invalid(
            f"{FACTOR_VARIABLE} must be a positive number, not {text!r}",
            where=FACTOR_VARIABLE,
            hint=f"{FACTOR_VARIABLE}=1 keeps the defaults",
        ) from error
    _check(factor)
    return factor


def _check(factor: float) -> None:
    if not (factor > 0 and math.isfinite(factor)):
        raise invalid(f"a timeout factor must be a positive number, not {factor!r}")
