"""Every waiting time for registries and other hosts that files come from (decision 67).

It must not know who waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aicr.values.waiting import Waits


@dataclass(frozen=True, slots=True)
class NetworkTimes(Waits):
    """Registries, and files at an address."""

    FIXED: ClassVar[str] = "the factor is about clusters; these hosts are others"

    #: Without a byte, after which a registry counts as gone.
    silence: float = 60.0
    #: Before the first repetition of a request; doubled each time.
    retry: float = 0.5
    #: All pauses that a registry may ask for before one request is answered (429 or 503, Retry-After).
    busy: float = 30.0
    #: A credential helper of docker.
    helper: float = 30.0
    #: For the host of a recipe, a snapshot or a configuration to answer.
    document: float = 30.0
