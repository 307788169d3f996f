"""The tuned profile of bare-metal GB300 sizes memory for one kind of kernel (bundler spec 6.4.5)."""

from __future__ import annotations

from aicr.bundle.validations.effective import Finding, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aicr.bundle.validations.effective import Context, Verdict


def kernel_granule(context: Context) -> Verdict:
    """Hosts run an ARM64 kernel with 64k pages, which the tuned profile's huge pages are sized for.

    True of every such bundle unless ``tuningEnabled`` is false, so it is advice only: a kernel with
    4k pages boots all the same, without that pool.

    Remedy: boot the 64k kernel, or pass ``--set nodewright-customizations:tuningEnabled=false``.
    """
    value = look(context.values(), "tuningEnabled")
    if value is False or value == "false":
        return [], []
    return [
        Finding(
            f"{context.name}: the tuned profile sizes huge pages (512M) for an ARM64 kernel with "
            f"64k pages; a host with 4k pages boots without that pool",
            f"boot the 64k kernel on the hosts, or pass --set {context.name}:tuningEnabled=false",
        )
    ], []
