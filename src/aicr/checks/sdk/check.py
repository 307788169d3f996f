"""What a check says about itself: the one `CHECK` of each check file.

The same data drives the runner, `aicr checks` and the page docs/checks.md, so that none of them can say
something else than the check does. This module must not know contexts or clusters at run time.
Source: validators spec 5.2, 2.1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aicr.errors import INTERNAL, AicrError
from aicr.values import durations

if TYPE_CHECKING:
    from aicr.checks.sdk.context import Context

DEPLOYMENT: Final = "deployment"
CONFORMANCE: Final = "conformance"
PERFORMANCE: Final = "performance"
#: In the order in which they run (validators spec 0.2).
PHASES: Final = (DEPLOYMENT, CONFORMANCE, PERFORMANCE)


@dataclass(frozen=True, slots=True)
class Setting:
    """An environment variable that a check reads."""

    name: str
    #: What holds when it is not set, as text for people.
    default: str
    meaning: str


@dataclass(frozen=True)
class Check:
    """A check: what it is called, what it does, and what it touches.

    Attributes:
        name: as the catalogue and recipes spell it.
        phase: one of `PHASES`.
        summary: one line for lists.
        run: the check. Returning is a pass, `outcome.Skip` a skip, any other AicrError a failure.
        timeout: Go duration that the shipped catalogue gives it.
        details: markdown: what it looks at, and when it passes, fails and skips.
        reads: what it gets, lists or watches.
        writes: what it creates and removes again; empty for a check that only looks.
        capabilities: components whose absence makes it skip unless the recipe declares them.
        settings: environment variables that it reads.
    """

    name: str
    phase: str
    summary: str
    run: Callable[[Context], Awaitable[None]]
    timeout: str
    details: str
    reads: tuple[str, ...]
    writes: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()

    def __post_init__(self) -> None:
        if self.phase not in PHASES:
            raise AicrError(INTERNAL, f'check {self.name} has unknown phase "{self.phase}"')
        durations.parse(self.timeout)
