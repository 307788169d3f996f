"""The NIC health monitor has to learn which adapters to watch (bundler spec 6.4.13)."""

from __future__ import annotations

from aicr.bundle.validations.effective import ABSENT, Finding, look, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.validations.effective import Context, Verdict

SWITCH: Final = "global.nicHealthMonitor.enabled"
COLLECTOR: Final = "global.metadataCollector.enabled"
OVERRIDE: Final = "nic-health-monitor.nicInclusionRegexOverride"


def nic_health_monitor(context: Context) -> Verdict:
    """``nic-health-monitor`` runs with ``metadata-collector`` or a list of adapters.

    Without either it finds no adapter and reports nothing, for ever. Helm switches a subchart off
    for a literal false only, so any other value that is there counts as on.

    Remedy: keep the metadata collector, or set ``nic-health-monitor.nicInclusionRegexOverride``.
    """
    values = context.values()
    switch = look(values, SWITCH)
    on = switch is not ABSENT and switch is not False
    if not on and not context.is_dynamic(SWITCH):
        return [], []
    collector_off = look(values, COLLECTOR) is False
    if not collector_off and not context.is_dynamic(COLLECTOR):
        return [], []
    if context.is_dynamic(OVERRIDE):
        problem = "is given at install time"
    else:
        problem = override_problem(look(values, OVERRIDE))
        if not problem:
            return [], []
    late = "" if on and collector_off else " after what is given at install time"
    return [
        Finding(
            f"{context.name}: nic-health-monitor may run without metadata-collector{late}, and "
            f"{OVERRIDE} {problem}, so it would watch no adapter",
            f"keep the collector: --set {context.name}:{COLLECTOR}=true; or name the adapters: "
            f"--set '{context.name}:{OVERRIDE}=^mlx5_'",
        )
    ], []


def override_problem(value: Any) -> str:
    """Why the comma-separated patterns select no adapter, or ""."""
    if value is ABSENT:
        return "is not set"
    if not isinstance(value, str):
        return f"is {shown(value)}, not text"
    from aicr.bundle.validations.go_patterns import pattern_problem

    patterns = [part.strip() for part in value.split(",")]
    for pattern in patterns:
        problem = pattern_problem(pattern)
        if problem:
            return f'holds "{pattern}", which is no regular expression ({problem})'
    return "" if any(patterns) else "holds no pattern"
