"""Node changes that drain a node must not tolerate their own drain (bundler spec 6.4.4)."""

from __future__ import annotations

from aicr.bundle.validations.effective import Finding
from aicr.bundle.value_slots import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.validations.effective import Context, Verdict

_FLAG: Final = "--accelerated-node-toleration"
_REMEDY: Final = (
    f"pass {_FLAG} key=value:Effect with the taint of the GPU nodes, for example "
    f"{_FLAG} nvidia.com/gpu=present:NoSchedule"
)


def wildcard_toleration(context: Context) -> Verdict:
    """No accelerated-node toleration is a wildcard, one without a key; no flag at all is one.

    On AKS a pod that tolerates every taint also tolerates the one that an interrupting package
    puts on its node, and both wait for each other. Judged are the flag and, beyond it, what the
    final values hold where the flag is written.

    Remedy: pass ``--accelerated-node-toleration key=value:Effect`` with the GPU nodes' taint.
    """
    entries = context.scheduling.accelerated_tolerations
    if not entries:
        return [
            Finding(
                f"{context.name}: {_FLAG} is not set, so its pods tolerate every taint, and a "
                f"package that drains a node waits for them forever",
                _REMEDY,
            )
        ], []
    if any(_keyless(entry) for entry in entries):
        return [Finding(f"{context.name}: {_FLAG} holds an entry without a key", _REMEDY)], []
    tier = (context.component.entry.get("nodeScheduling") or {}).get("accelerated") or {}
    found = []
    for path in tier.get("tolerationPaths") or ():
        value = held(context.component.values, path)
        if isinstance(value, list) and any(_keyless(entry) for entry in value):
            found.append(
                Finding(
                    f"{context.name}: {path} holds a toleration without a key beside {_FLAG}",
                    f"take it out of the overlay or of the override of {context.name}:{path}",
                )
            )
    return found, []


def _keyless(entry: Any) -> bool:
    return isinstance(entry, dict) and not entry.get("key")
