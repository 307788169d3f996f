"""PodGroup discovery: schedulers that mark pods with an annotation or label and keep PodGroup objects.

Volcano, OSMO with KAI and the like: the first configured annotation with a value, else the first
label, names the PodGroup; an expression over that object gives the minimum size. The GVR is resolved
against the API server when the discoverer is built, so that a missing CRD is said once and at once.
It must not know which schedulers exist; `presets` does. Source: preflight spec 3.3.
"""

from __future__ import annotations

from aicr.errors import NOT_FOUND, AicrError, not_found
from aicr.kube.discovery import Catalogue
from aicr.kube.kinds import Resource
from aicr.kube.port import Cluster
from aicr.preflight.gang.expression import MinCount
from aicr.preflight.gang.groups import Anchor, Group
from aicr.preflight.gang.pods import GangPod
from aicr.preflight.gang_discovery import GangDiscovery


def resolve(settings: GangDiscovery, catalogue: Catalogue) -> Resource:
    """The kind behind ``podGroupGVR``.

    Raises:
        AicrError: ``gangDiscovery.podGroupGVR validation failed: ...``, NOT_FOUND when the server
            does not serve it and SERVICE_UNAVAILABLE when that cannot be told.
    """
    api_version = f"{settings.group}/{settings.version}"
    for resource in catalogue.served.get(api_version, ()):
        if resource.plural == settings.resource:
            return resource
    shown = f"{api_version}, Resource={settings.resource}"
    message = (
        f'gangDiscovery.podGroupGVR validation failed: resource "{shown}" not found '
        "(is the CRD installed?)"
    )
    if api_version in catalogue.unreachable:
        reason = catalogue.unreachable[api_version]
        cause = AicrError(
            "SERVICE_UNAVAILABLE", f"the API group cannot be asked at the moment: {reason}"
        )
        raise AicrError(cause.code, message) from cause
    others = catalogue.group_versions(settings.group)
    raise not_found(
        message,
        hint=f"the group is served as {', '.join(others)}" if others else "install the scheduler",
    ) from not_found(f"the server does not serve {settings.resource} in {api_version}")


class PodGroupDiscoverer:
    """See the module.

    Raises:
        AicrError: INVALID_REQUEST when the expression does not compile.
    """

    def __init__(self, cluster: Cluster, settings: GangDiscovery, resource: Resource) -> None:
        self.name = settings.name
        self._cluster = cluster
        self._settings = settings
        self._resource = resource
        self._minimum = MinCount(settings.min_count_expr)

    def anchor(self, pod: GangPod) -> Anchor | None:
        """The PodGroup that the pod's annotations, or else labels, name; empty values do not count."""
        for key in self._settings.annotation_keys:
            if value := pod.annotations.get(key):
                return Anchor(self.name, pod.namespace, value)
        for key in self._settings.label_keys:
            if value := pod.labels.get(key):
                return Anchor(self.name, pod.namespace, value)
        return None

    async def locate(self, pod: GangPod) -> Anchor | None:
        """As `anchor`: these groups have nothing above them."""
        return self.anchor(pod)

    async def read(self, anchor: Anchor) -> Group:
        """As `Discoverer.read`; a size that cannot be evaluated is an error, and is tried again."""
        kind, name = self._resource, anchor.object_name
        place = f"{anchor.namespace}/{name}"
        failed = f"failed to get PodGroup {place} minMember (check RBAC)"
        # A cluster-scoped CRD is read as one; its objects then serve every namespace.
        namespace = anchor.namespace if kind.namespaced else ""
        try:
            found = await self._cluster.get(kind, name, namespace=namespace)
        except AicrError as error:
            if error.code == NOT_FOUND and "absent" not in error.context:
                return Group(found=False, name=name, reason=f"{failed}: it is not there")
            raise AicrError(error.code, failed, hint=error.hint, context=error.context) from error
        try:
            minimum = self._minimum.of(found)
        except AicrError as error:
            raise AicrError(error.code, failed, hint=error.hint) from error
        return Group(
            found=True,
            name=name,
            minimum=minimum,
            api_version=kind.api_version,
            kind=kind.kind,
            uid=str((found.get("metadata") or {}).get("uid") or ""),
        )
