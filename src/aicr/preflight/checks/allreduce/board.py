"""Where the programs of a gang leave short texts for each other: rank 0's store, behind a port.

`TorchBoard` is a TCPStore of torch, which the program on rank 0 serves at the master port and which lives
as long as that program, also when a worker of it dies. The workers meet at the same one. Reading never
blocks, so that signals and dead workers are noticed while waiting.
It must not know: what the texts mean.
Source: preflight specification 7.3 (rendezvous by environment), decision 20.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, Protocol

from aicr.errors import SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.checks.allreduce.clock import Clock
from aicr.preflight.checks.times import CheckTimes

_TIMES: Final = CheckTimes()
_NOTHING: Final = "\x00"


class Board(Protocol):
    """Texts by name."""

    def put(self, name: str, text: str) -> None:
        """Leave a text; an earlier one of that name is replaced.

        Raises:
            AicrError: SERVICE_UNAVAILABLE when rank 0 cannot be reached.
        """

    def get(self, name: str) -> str | None:
        """A text, or None at once if nobody has left it.

        Raises:
            AicrError: SERVICE_UNAVAILABLE when rank 0 cannot be reached.
        """


class Meeting(Protocol):
    """A way to the board of a gang."""

    def __call__(
        self, address: str, port: int, *, serves: bool, limit: float, clock: Clock
    ) -> Board:
        """Serve the board, or connect to it within *limit* seconds.

        Raises:
            AicrError: SERVICE_UNAVAILABLE saying why not.
        """


class TorchBoard:
    """A board in a TCPStore."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def put(self, name: str, text: str) -> None:
        """See `Board`."""
        try:
            self._store.set(name, text)
        except RuntimeError as error:
            raise _lost(error) from error

    def get(self, name: str) -> str | None:
        """See `Board`."""
        try:
            # `check` came late to Python. This compares with what nobody leaves and so changes nothing.
            found = self._store.compare_set(name, _NOTHING, _NOTHING)
        except RuntimeError as error:
            raise _lost(error) from error
        text = found.decode() if isinstance(found, bytes) else str(found)
        return None if text == _NOTHING else text


def meet(address: str, port: int, *, serves: bool, limit: float, clock: Clock) -> Board:
    """Serve or find the board with torch; see `Meeting`."""
    try:
        from torch.distributed import TCPStore  # type: ignore[import-not-found]
    except ImportError as error:
        raise AicrError(
            SERVICE_UNAVAILABLE,
            "torch.distributed is not installed",
            hint="run it in the image of this check, or install torch",
        ) from error
    deadline = clock.now() + limit
    while True:
        try:
            store = TCPStore(
                address,
                port,
                is_master=serves,
                timeout=timedelta(seconds=min(_TIMES.connect, max(limit, 0.1))),
                wait_for_workers=False,
            )
        except (RuntimeError, ValueError) as error:
            if clock.now() >= deadline or serves:
                what = "cannot be served" if serves else "cannot be reached"
                raise AicrError(
                    SERVICE_UNAVAILABLE,
                    f"the store of rank 0 at {address} port {port} {what}: {_first_line(error)}",
                    hint="check network policies between the pods, and that the port is free",
                ) from error
            clock.sleep(_TIMES.connect_again)
        else:
            store.set_timeout(timedelta(seconds=_TIMES.board))
            return TorchBoard(store)


def _lost(error: RuntimeError) -> AicrError:
    return AicrError(
        SERVICE_UNAVAILABLE,
        f"the store of rank 0 is gone: {_first_line(error)}",
        hint="read the log of rank 0's pod: it ended first",
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
