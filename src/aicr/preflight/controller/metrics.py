"""What the controllers report in figures: a port, so that they need no metrics library.

The server hands in an implementation; `NO_METRICS` is for tests and commands.
"""

from __future__ import annotations

from typing import Final, Protocol


class GangMetrics(Protocol):
    """What happens to gangs, as it happens."""

    def written(self, result: str) -> None:
        """A gang's ConfigMap was ``created``, ``updated``, ``deleted``, or it was a ``conflict``."""

    def completed(self, members: int, seconds: float) -> None:
        """A membership of *members* became complete, *seconds* after its gang was first seen."""

    def leading(self, leads: bool) -> None:
        """This replica leads from now on, or does not any more."""

    def conflicting(self, namespaces: int) -> None:
        """So many namespaces have a PreflightConfig that is not in force."""


class _None:
    def written(self, result: str) -> None:
        """Nobody listens."""

    def completed(self, members: int, seconds: float) -> None:
        """Nobody listens."""

    def leading(self, leads: bool) -> None:
        """Nobody listens."""

    def conflicting(self, namespaces: int) -> None:
        """Nobody listens."""


NO_METRICS: Final[GangMetrics] = _None()
