"""Ready ``gangDiscovery`` blocks for known schedulers (preflight spec 3.3).

They are documents, as they are written in Helm values and in a PreflightConfig, so that what
``aicr preflight gangs --discovery`` prints can be pasted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aicr.errors import invalid, nearest

_MINIMUM: Final = "podGroup.spec.minMember"
_KAI: Final = {"group": "scheduling.run.ai", "version": "v2alpha2", "resource": "podgroups"}

PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "kubernetes": {},
    "volcano": {
        "name": "volcano",
        "annotationKeys": ["scheduling.k8s.io/group-name"],
        "podGroupGVR": {
            "group": "scheduling.volcano.sh",
            "version": "v1beta1",
            "resource": "podgroups",
        },
        "minCountExpr": _MINIMUM,
    },
    "osmo-with-kai": {
        "name": "osmo-with-kai",
        "labelKeys": ["osmo.group_uuid"],
        "podGroupGVR": _KAI,
        "minCountExpr": _MINIMUM,
    },
    # Only where something sets the annotation before admission: KAI by itself does so afterwards.
    "run-ai": {
        "name": "run-ai",
        "annotationKeys": ["pod-group-name", "scheduling.run.ai/pod-group"],
        "podGroupGVR": _KAI,
        "minCountExpr": _MINIMUM,
    },
}


def preset(name: str) -> Mapping[str, Any]:
    """The block for a scheduler.

    Raises:
        AicrError: INVALID_REQUEST for a name that there is no preset for.
    """
    if name in PRESETS:
        return PRESETS[name]
    near = nearest(name, list(PRESETS))
    raise invalid(
        f'no gang discovery preset "{name}"',
        hint=f"did you mean {near}?" if near else f"there are {', '.join(PRESETS)}",
    )
