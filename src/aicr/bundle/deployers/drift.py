"""What a cluster writes into objects of a bundle by itself, for GitOps tools to overlook.

```
one table ─┬─ ignoreDifferences    of an Argo CD Application
           └─ diff.comparePatches  of a Fleet Bundle
```
Certificates that a controller writes into webhooks are no drift. Neither is what the other chart wrote
into a CRD that two charts bring. Without the rules Argo CD would undo both for ever, and a Fleet Bundle
would stay Modified and hold up those that depend on it (field pain 46). The drift of webhooks shows because
they are a list; a map that has more keys than the chart says is none to either tool.

It must not know how a deployer writes the rest. Source: bundler spec 5.3; field pains 5, 46.
"""

from __future__ import annotations

from aicr.bundle import crd_groups, layout
from aicr.bundle.deployers import gitops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.layout import Folder
    from aicr.bundle.plan import Plan

_WEBHOOKS_GROUP: Final = "admissionregistration.k8s.io"
_WEBHOOKS_VERSION: Final = "v1"
_WEBHOOK_KINDS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
#: (list, path in each of its entries) of what controllers write into webhooks.
_INJECTED: Final = ("webhooks", ("clientConfig", "caBundle"))
#: Webhooks that one configuration may have, for a tool that has to name each: the charts of the
#: catalogue have up to two dozen, and a pointer to one that is not there does nothing.
_MOST_WEBHOOKS: Final = 32

_CRD_GROUP: Final = "apiextensions.k8s.io"
_CRD_VERSION: Final = "v1"
_CRD_KIND: Final = "CustomResourceDefinition"
#: Where two charts that bring one CRD would undo what the other wrote.
_SHARED: Final = ("/metadata/annotations", "/metadata/labels", "/spec/conversion", "/spec/versions")


def contested(plan: Plan) -> frozenset[str]:
    """Components of the plan that ship one and the same CRD; empty when at most one does."""
    return crd_groups.sharers(component.name for component in plan.components)


def is_contested(folder: Folder, contested: frozenset[str]) -> bool:
    """Whether a folder's chart is one of those that share a CRD."""
    return folder.phase == "primary" and folder.parent in contested


def argo(folder: Folder, contested: frozenset[str]) -> list[dict[str, Any]]:
    """ignoreDifferences of a folder's Application."""
    made: list[dict[str, Any]] = []
    if _has_webhooks(folder):
        entries, path = _INJECTED
        expression = f".{entries}[]?.{'.'.join(path)}"
        made += [
            {"group": _WEBHOOKS_GROUP, "kind": kind, "jqPathExpressions": [expression]}
            for kind in _WEBHOOK_KINDS
        ]
    if is_contested(folder, contested):
        made.append(
            {
                "group": _CRD_GROUP,
                "kind": _CRD_KIND,
                "name": crd_groups.SHARED_CRD,
                "jsonPointers": list(_SHARED),
            }
        )
    return made


def fleet(folder: Folder, contested: frozenset[str]) -> list[dict[str, Any]]:
    """comparePatches of a folder's Bundle. Without a name they are about every object of the kind."""
    made: list[dict[str, Any]] = []
    if _has_webhooks(folder):
        entries, path = _INJECTED
        made += [
            {
                "apiVersion": f"{_WEBHOOKS_GROUP}/{_WEBHOOKS_VERSION}",
                "kind": kind,
                "jsonPointers": [
                    f"/{entries}/{number}/{'/'.join(path)}" for number in range(_MOST_WEBHOOKS)
                ],
            }
            for kind in _WEBHOOK_KINDS
        ]
    if is_contested(folder, contested):
        made.append(
            {
                "apiVersion": f"{_CRD_GROUP}/{_CRD_VERSION}",
                "kind": _CRD_KIND,
                "name": crd_groups.SHARED_CRD,
                "jsonPointers": list(_SHARED),
            }
        )
    return made


def _has_webhooks(folder: Folder) -> bool:
    """Whether a folder may hold webhooks that a controller completes: a published chart may."""
    if folder.phase != "primary":
        return False
    return folder.kind == layout.UPSTREAM_HELM or gitops.is_vendored(folder)
