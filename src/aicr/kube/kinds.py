"""The kinds that this product names itself, so that using them needs no discovery.

Only built-in kinds whose path never changes: every cluster of the supported versions serves them.
Kinds of others (CRDs, gang schedulers, DRA) go through `discovery`, because whether they are served is
the question. It must not know how requests are sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Resource:
    """Where objects of one kind live: what discovery finds out about it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """As written in documents: ``apps/v1``, or ``v1`` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As kubectl and RBAC messages write it: ``deployments.apps``, ``pods``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


POD: Final = Resource("", "v1", "pods", "Pod", True, "pod", ("po",))
NODE: Final = Resource("", "v1", "nodes", "Node", False, "node", ("no",))
NAMESPACE: Final = Resource("", "v1", "namespaces", "Namespace", False, "namespace", ("ns",))
CONFIG_MAP: Final = Resource("", "v1", "configmaps", "ConfigMap", True, "configmap", ("cm",))
SECRET: Final = Resource("", "v1", "secrets", "Secret", True, "secret")
SERVICE: Final = Resource("", "v1", "services", "Service", True, "service", ("svc",))
SERVICE_ACCOUNT: Final = Resource(
    "", "v1", "serviceaccounts", "ServiceAccount", True, "serviceaccount", ("sa",)
)
EVENT: Final = Resource("", "v1", "events", "Event", True, "event", ("ev",))
DEPLOYMENT: Final = Resource(
    "apps", "v1", "deployments", "Deployment", True, "deployment", ("deploy",)
)
DAEMON_SET: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", True, "daemonset", ("ds",))
STATEFUL_SET: Final = Resource(
    "apps", "v1", "statefulsets", "StatefulSet", True, "statefulset", ("sts",)
)
JOB: Final = Resource("batch", "v1", "jobs", "Job", True, "job")
LEASE: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", True, "lease")
CLUSTER_ROLE: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False, "clusterrole"
)
CLUSTER_ROLE_BINDING: Final = Resource(
    *("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"),
    *(False, "clusterrolebinding"),
)
ROLE: Final = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", True, "role")
ROLE_BINDING: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True, "rolebinding"
)
CUSTOM_RESOURCE_DEFINITION: Final = Resource(
    *("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    *(False, "customresourcedefinition", ("crd", "crds")),
)
SELF_SUBJECT_ACCESS_REVIEW: Final = Resource(
    *("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    *(False, "selfsubjectaccessreview"),
)

#: (apiVersion, kind) → resource of every constant above: also of those that nothing names elsewhere.
WELL_KNOWN: Final[dict[tuple[str, str], Resource]] = {
    (found.api_version, found.kind): found
    for found in list(globals().values())
    if isinstance(found, Resource)
}
