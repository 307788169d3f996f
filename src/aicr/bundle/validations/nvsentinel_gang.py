"""Gang coordination over KAI's pod groups needs KAI (bundler spec 6.4.15)."""

from __future__ import annotations

from aicr.bundle.validations.effective import Finding, look, shown, truth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.bundle.validations.effective import Context, Verdict

PREFLIGHT: Final = "global.preflight.enabled"
COORDINATION: Final = "preflight.gangCoordination.enabled"
GVR: Final = "preflight.gangDiscovery.podGroupGVR"

_GROUP: Final = "scheduling.run.ai"
_SCHEDULER: Final = "kai-scheduler"
#: What KAI's group serves: field of the GVR -> value.
_SERVED: Final[dict[str, str]] = {"version": "v2alpha2", "resource": "podgroups"}


def gang_scheduler(context: Context) -> Verdict:
    """Preflight gangs of group ``scheduling.run.ai`` come with ``kai-scheduler``.

    The group serves ``podgroups`` in ``v2alpha2`` and nothing else. Values that are given at
    install time count whichever way would break it.

    Remedy: keep ``kai-scheduler``, or pass
    ``--set nvsentinel:preflight.gangCoordination.enabled=false``.
    """
    values = context.values()
    group = f"{GVR}.group"
    conditions = (
        (truth(look(values, PREFLIGHT)), PREFLIGHT),
        (look(values, COORDINATION) is not False, COORDINATION),
        (look(values, group) == _GROUP, group),
    )
    late = [path for holds, path in conditions if not holds]
    if not all(context.is_dynamic(path) for path in late):
        return [], []
    when = f" (once {' and '.join(late)} is given at install time)" if late else ""
    found = []
    for field, served in _SERVED.items():
        path = f"{GVR}.{field}"
        if context.is_dynamic(path):
            problem = "is given at install time"
        elif look(values, path) != served:
            problem = f"is {shown(look(values, path))}"
        else:
            continue
        found.append(
            Finding(
                f"{context.name}: gangs are looked up in {_GROUP}{when}, which serves "
                f"{_SERVED['resource']} in {_SERVED['version']}, but {path} {problem}",
                f"pass --set {context.name}:{path}={served}",
            )
        )
    if not context.enabled(_SCHEDULER):
        state = "disabled" if _SCHEDULER in context.refs else "not part of the recipe"
        found.append(
            Finding(
                f"{context.name}: gangs are looked up in {_GROUP}{when}, but {_SCHEDULER}, which "
                f"serves it, is {state}",
                f"keep {_SCHEDULER}, or pass --set {context.name}:{COORDINATION}=false",
            )
        )
    return found, []
