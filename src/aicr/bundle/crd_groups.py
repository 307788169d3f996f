"""What published charts define that others must know of: API groups, a shared CRD, nodewright's taint.

Evidence about charts that are not at hand, used for words and for what a deployer must leave alone:
what is left over from an earlier install, what had better come first, and which two charts bring the
same object. It must not decide what is installed. Each fact is in ``docs/catalogue/chart-facts.yaml``
with where it comes from.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

NODEWRIGHT: Final = "nodewright-operator"

#: The GPU operator brings this CRD as well as the DRA driver. Whoever keeps a cluster like a
#: repository, as Argo CD does, would let each of the two undo what the other wrote, for ever.
SHARED_CRD: Final = "computedomains.resource.nvidia.com"
_SHARED_GROUP: Final = SHARED_CRD.partition(".")[2]

#: Component -> API groups whose CRDs it brings.
CRD_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "cert-manager": ("acme.cert-manager.io", "cert-manager.io"),
    "gpu-operator": ("nvidia.com", _SHARED_GROUP),
    "kube-prometheus-stack": ("monitoring.coreos.com",),
    "kubeflow-trainer": ("trainer.kubeflow.org",),
    "kueue": ("kueue.x-k8s.io",),
    "mariadb-operator-crds": ("k8s.mariadb.com",),
    "network-operator": ("mellanox.com",),
    "nfd": ("nfd.k8s-sigs.io",),
    NODEWRIGHT: ("skyhook.nvidia.com",),
    "nvidia-dra-driver-gpu": (_SHARED_GROUP,),
    "prometheus-operator-crds": ("monitoring.coreos.com",),
}
#: The taint of nodes that wait for nodewright, where the values name no other. 0.18 renamed the API
#: group and with it the taint, and takes the old one away too, so from then on both may be found.
NODEWRIGHT_TAINT: Final = "skyhook.nvidia.com=runtime-required:NoSchedule"
NODEWRIGHT_TAINT_018: Final = "nodewright.nvidia.com=runtime-required:NoSchedule"


def sharers(components: Iterable[str]) -> frozenset[str]:
    """Those of some components that bring ``SHARED_CRD``; none when only one of them does.

    On OpenShift the same two programs are components of other names.
    """
    found = frozenset(
        name
        for name in components
        if _SHARED_GROUP in CRD_GROUPS.get(name.removesuffix("-ocp"), ())
    )
    return found if len(found) > 1 else frozenset()
