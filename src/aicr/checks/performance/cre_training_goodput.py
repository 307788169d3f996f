"""cre-training-goodput: share of useful training time, measured by the Cluster Readiness Engine.

Source: validators spec 7.4.
"""

from __future__ import annotations

from aicr.checks.performance.cre_plan import GOODPUT
from aicr.checks.performance.cre_run import check_of

CHECK = check_of(
    GOODPUT,
    "training goodput by a Certification of the Cluster Readiness Engine",
    "the goodput reaches the constraint",
)
