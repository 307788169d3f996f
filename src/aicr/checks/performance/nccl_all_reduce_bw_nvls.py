"""nccl-all-reduce-bw-nvls: bus bandwidth of an all-reduce over NVLink between nodes, with NVLS.

Source: validators spec 7.2.
"""

from __future__ import annotations

from aicr.checks.performance.nccl_run import check_of
from aicr.checks.performance.nccl_variants import NVLS

CHECK = check_of(
    NVLS,
    "NCCL all-reduce bus bandwidth with NVLS across an IMEX domain",
    "The log has to prove that NVLS multicast was available and used.",
)
