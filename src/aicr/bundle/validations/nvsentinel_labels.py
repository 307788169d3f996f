"""NVSentinel's labeler has to learn that nodes have a driver (bundler spec 6.4.10).

It looks for driver pods. Where the node image brings the driver there are none, so the label
``nvsentinel.dgxc.nvidia.com/driver.installed`` is never set, and the DaemonSets that wait for it
want 0 pods without anybody being told.
"""

from __future__ import annotations

from aicr.bundle.validations.effective import ABSENT, Finding, look, truth
from aicr.errors import AicrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.bundle.validations.effective import Context, Verdict

REMEDY: Final = "labeler.assumeDriverInstalled"

#: Switch of a consumer of the label -> its DaemonSets.
_CONSUMERS: Final[dict[str, tuple[str, ...]]] = {
    "global.metadataCollector.enabled": ("metadata-collector",),
    "global.syslogHealthMonitor.enabled": (
        "syslog-health-monitor-regular",
        "syslog-health-monitor-kata",
    ),
}


def driver_label(context: Context) -> Verdict:
    """Without driver pods of the GPU operator, ``labeler.assumeDriverInstalled`` is set.

    Else the metadata collector and both syslog monitors come up with no pods at all.

    Remedy: ``--set nvsentinel:labeler.assumeDriverInstalled=true``, or switch its consumers off.
    """
    operator = context.gpu_operator()
    if not operator:
        return [], []
    try:
        driver = look(context.values(operator), "driver.enabled")
    except AicrError as error:
        return [], [error]
    if driver is ABSENT or driver is True:
        return [], []
    if driver is not False and operator in context.rendered:
        # The operator's own validation refuses what cannot be read.
        return [], []
    if (
        context.criteria.get("service") == "gke"
        and context.criteria.get("os") == "cos"
        and context.profile("gpuStack") == "bundle-installer"
    ):
        return [], []
    return _judge(context), []


def _judge(context: Context) -> list[Finding]:
    values = context.values()
    on = [path for path in _CONSUMERS if look(values, path) is not False]
    late = [path for path in _CONSUMERS if path not in on and context.is_dynamic(path)]
    if not on and not late:
        return []
    remedied = truth(look(values, REMEDY))
    if remedied and not context.is_dynamic(REMEDY):
        return []
    if remedied or context.is_dynamic(REMEDY):
        return [
            Finding(
                f"{context.name}: {REMEDY} is given at install time, but no GPU driver pod will "
                f"exist, so without it {_sets(on + late)} never start",
                f"drop --dynamic for it and pass --set {context.name}:{REMEDY}=true",
            )
        ]
    when = "" if on else f", once {' or '.join(late)} is switched on at install time"
    return [
        Finding(
            f"{context.name}: no GPU driver pod will exist (the node image brings the driver), so "
            f"these DaemonSets want 0 pods{when}: {_sets(on or late)}",
            f"pass --set {context.name}:{REMEDY}=true",
        )
    ]


def _sets(paths: list[str]) -> str:
    return ", ".join(name for path in paths for name in _CONSUMERS[path])
