"""Which API groups a component's chart defines, for charts that are not at hand.

Evidence about published charts, used for words only: what is left over from an earlier install, and
what had better come first. It must not decide what is installed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

NODEWRIGHT: Final = "nodewright-operator"

#: Component -> API groups whose CRDs it brings.
CRD_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "cert-manager": ("acme.cert-manager.io", "cert-manager.io"),
    "gpu-operator": ("nvidia.com",),
    "kube-prometheus-stack": ("monitoring.coreos.com",),
    "kubeflow-trainer": ("trainer.kubeflow.org",),
    "kueue": ("kueue.x-k8s.io",),
    "mariadb-operator-crds": ("k8s.mariadb.com",),
    "network-operator": ("mellanox.com",),
    "nfd": ("nfd.k8s-sigs.io",),
    NODEWRIGHT: ("skyhook.nvidia.com",),
    "nvidia-dra-driver-gpu": ("resource.nvidia.com",),
    "prometheus-operator-crds": ("monitoring.coreos.com",),
}
