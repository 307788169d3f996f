"""The networks of GKE's TCPXO are those that the recipe recorded (bundler spec 6.4.9)."""

from __future__ import annotations

from aicr.bundle.validations.effective import Finding, look, shown
from aicr.recipe.configuration import TCPXO_RUNTIME, ships_tcpxo_runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.validations.effective import Context, Verdict

_PATH: Final = "tcpxoInterfaces"
_RECORD: Final = "configuration.gke.tcpxoInterfaces"
_FIELDS: Final = {"interfaceName", "network"}
_REMEDY: Final = (
    "generate the recipe again with --gke-tcpxo-interfaces eth1=<network>,…,eth8=<network>"
)


def interfaces(context: Context) -> Verdict:
    """The trainer's ``tcpxoInterfaces`` is the mapping in ``configuration.gke.tcpxoInterfaces``.

    Only where the recipe ships the ``torch-distributed-tcpxo`` runtime, which puts it on pods.

    Remedy: generate the recipe again with ``--gke-tcpxo-interfaces``.
    """
    if not ships_tcpxo_runtime(dict(context.refs)):
        return [], []
    recorded = (context.configuration.get("gke") or {}).get(_PATH)
    if not recorded:
        return [
            Finding(f"{context.name} ships {TCPXO_RUNTIME}, but {_RECORD} is missing", _REMEDY)
        ], []
    value = look(context.values(), _PATH)
    if not _is_mapping(value):
        problem = f"is {shown(value)}, not a list of interfaceName and network"
    elif value != recorded:
        problem = f"is {shown(value)}, but the recipe records {shown(recorded)}"
    elif context.is_dynamic(_PATH):
        problem = "is given at install time, so nothing keeps it equal to the recipe's record"
    else:
        return [], []
    return [Finding(f"{context.name}: {_PATH} {problem} ({_RECORD})", _REMEDY)], []


def _is_mapping(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and entry.keys() == _FIELDS
        and all(isinstance(text, str) for text in entry.values())
        for entry in value
    )
