"""nccl-cre-all-reduce-bw: bus bandwidth as the Cluster Readiness Engine measures it.

Source: validators spec 7.4.
"""

from __future__ import annotations

from aicr.checks.performance.cre_plan import NCCL
from aicr.checks.performance.cre_run import check_of

CHECK = check_of(
    NCCL,
    "NCCL all-reduce bus bandwidth by a Certification of the Cluster Readiness Engine",
    "the bus bandwidth reaches the constraint over a network other than plain TCP",
)
