"""Every waiting time for the programs that making a bundle runs (decision 67).

Loaded only when one is run: the hot path has no time for dataclasses. It must not know who waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aicr.values.waiting import Waits


@dataclass(frozen=True, slots=True)
class ToolTimes(Waits):
    """helm and kustomize, while a bundle is made."""

    FIXED: ClassVar[str] = "the factor is about clusters; these programs ask other hosts"

    #: helm: a large chart over a slow line takes a minute; an unanswering host takes for ever.
    helm: float = 300.0
    #: helm, on a chart that is at hand.
    render: float = 120.0
    #: kustomize, which fetches too: a large repository over a slow line takes minutes.
    kustomize: float = 300.0
