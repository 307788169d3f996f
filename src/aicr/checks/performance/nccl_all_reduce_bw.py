"""nccl-all-reduce-bw: bus bandwidth of an all-reduce over whatever transport NCCL chooses.

Source: validators spec 7.2.
"""

from __future__ import annotations

from aicr.checks.performance.nccl_run import check_of
from aicr.checks.performance.nccl_variants import DEFAULT

CHECK = check_of(
    DEFAULT,
    "NCCL all-reduce bus bandwidth reaches the threshold",
    "NCCL chooses the transport.",
)
