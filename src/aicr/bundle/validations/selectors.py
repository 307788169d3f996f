"""Node changes want to know which nodes and which pods they are about (bundler spec 6.4.1, 6.4.2)."""

from __future__ import annotations

from aicr.bundle.validations.effective import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aicr.bundle.validations.effective import Context, Verdict


def workload_selector(context: Context) -> Verdict:
    """``--workload-selector`` names the training pods that node changes must not interrupt.

    Remedy: pass ``--workload-selector key=value`` with a label of the training pods.
    """
    if context.scheduling.workload_selector:
        return [], []
    return [
        Finding(
            f"{context.name}: --workload-selector is not set",
            "pass --workload-selector key=value with a label of the training pods",
        )
    ], []


def accelerated_selector(context: Context) -> Verdict:
    """``--accelerated-node-selector`` names the GPU nodes that node changes are for.

    Remedy: pass ``--accelerated-node-selector key=value`` with a label of the GPU nodes.
    """
    if context.scheduling.accelerated_selector:
        return [], []
    return [
        Finding(
            f"{context.name}: --accelerated-node-selector is not set",
            "pass --accelerated-node-selector key=value with a label of the GPU nodes",
        )
    ], []
