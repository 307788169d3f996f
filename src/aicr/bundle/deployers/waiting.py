"""How long a release is waited for, where that differs from release to release.

One table for the deployers that write it down for each release (helmfile, Terraform, Flux). It goes by the
component, so what is installed before and after a chart shares its rule; a readiness gate is the
exception, because not waiting for a gate would take away what it is for (requirements C-115, C-116).

It must not know how a deployer writes these figures. Source: bundler spec 5.0.5, 5.6.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Seconds for a release without a rule of its own.
TIMEOUT: Final = 600
#: Seconds for a readiness gate: its own limit of 90 minutes, and five for the Job around it.
GATE_TIMEOUT: Final = 5700
#: How long the removal of one release may take, in seconds and as helm and kubectl write it.
TEARDOWN_SECONDS: Final = 900
TEARDOWN: Final = "15m"
#: Component -> seconds; such a component is not waited for.
ASYNC: Final[dict[str, int]] = {"kai-scheduler": 1200}
GATE: Final = "readiness"


def rule(component: str, phase: str) -> tuple[bool, int] | None:
    """(wait, seconds) of a release that has a rule of its own, else None."""
    if phase == GATE:
        return True, GATE_TIMEOUT
    if component in ASYNC:
        return False, ASYNC[component]
    return None
