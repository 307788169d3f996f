"""nccl-all-reduce-bw-net: bus bandwidth of an all-reduce over the network between nodes.

Source: validators spec 7.2.
"""

from __future__ import annotations

from aicr.checks.performance.nccl_run import check_of
from aicr.checks.performance.nccl_variants import NET

CHECK = check_of(
    NET,
    "NCCL all-reduce bus bandwidth over the network, NVLink between nodes left out",
    "The log has to prove that NCCL used a network other than `Socket`.",
)
