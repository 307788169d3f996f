"""Argo CD Applications as plain documents: waves and sources.

```
folder ─┬─ upstream chart ─┬─ values from Git ($values)   two sources
        │                  └─ values inlined              one source, for a bundle that is not Git
        └─ local chart ────── a path in the repository
```
Both Argo CD deployers build their children here. Order is in the sync-wave alone: a band of four
waves for each tier, one wave for each phase in it, so that a tier's readiness gate comes before
the next tier (requirements C-119 to C-121). With `--serial` the wave is the folder's number.

Source: bundler spec 5.0.3, 5.0.4, 5.0.6, 5.3; field cases F5, F7.
"""

from __future__ import annotations

from aicr.bundle import layout
from aicr.bundle.deployers import drift, gitops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.layout import Folder
    from aicr.bundle.plan import Component, Plan

API_VERSION: Final = "argoproj.io/v1alpha1"
KIND: Final = "Application"
#: Applications live where Argo CD itself does.
NAMESPACE: Final = "argocd"
WAVE: Final = "argocd.argoproj.io/sync-wave"
FINALIZER: Final = "resources-finalizer.argocd.argoproj.io"
VALUES_REF: Final = "values"
#: For a chart without a pinned version: the newest, which is what helm would take.
ANY_VERSION: Final = "*"

#: Waves in the band of one tier: as many as there are phases in a component.
_BAND: Final = len(layout.PHASES)


def waves(plan: Plan, folders: list[Folder]) -> dict[str, int]:
    """The sync-wave of each folder, by folder name (bundler spec 5.0.3, 5.0.4)."""
    if plan.serial:
        return {folder.dir: index for index, folder in enumerate(folders)}
    tier = plan.tiers
    return {
        folder.dir: tier[folder.parent] * _BAND + layout.PHASES.index(folder.phase)
        for folder in folders
    }


def application(
    *,
    name: str,
    wave: int,
    namespace: str,
    project: str,
    server: str,
    source: dict[str, Any],
    sync_options: list[str],
    ignore: list[dict[str, Any]],
    cascade_delete: bool,
) -> dict[str, Any]:
    """A child Application.

    Args:
        name: of the object.
        wave: its sync-wave within the parent.
        namespace: where the chart goes.
        project: Argo CD project.
        server: API server of the cluster that the chart goes to.
        source: `{"source": …}` or `{"sources": […]}`.
        sync_options: see ``sync_options``.
        ignore: see ``drift.argo``.
        cascade_delete: whether deleting the object deletes what it deployed.
    """
    spec: dict[str, Any] = {
        "project": project,
        **source,
        "destination": {"server": server, "namespace": namespace},
        "syncPolicy": {
            "automated": {"prune": True, "selfHeal": True},
            "syncOptions": sync_options,
        },
    }
    if ignore:
        spec["ignoreDifferences"] = ignore
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata(name, wave=wave, cascade_delete=cascade_delete),
        "spec": spec,
    }


def metadata(name: str, *, cascade_delete: bool, wave: int | None = None) -> dict[str, Any]:
    """metadata of an Application."""
    made: dict[str, Any] = {"name": name, "namespace": NAMESPACE}
    if wave is not None:
        made["annotations"] = {WAVE: str(wave)}
    if cascade_delete:
        made["finalizers"] = [FINALIZER]
    return made


def upstream_chart(folder: Folder) -> dict[str, Any]:
    """repoURL, chart and targetRevision of an upstream chart (field case F7).

    For a chart in an OCI registry Argo CD wants the registry path without scheme and chart, and
    the version literally; over HTTP(S) a leading `v` of the version is dropped.
    """
    if not folder.repo:
        where, _, chart = folder.chart.removeprefix(gitops.OCI).rpartition("/")
        return {
            "repoURL": where,
            "chart": chart,
            "targetRevision": folder.version or ANY_VERSION,
        }
    return {
        "repoURL": folder.repo,
        "chart": folder.chart,
        "targetRevision": folder.version.removeprefix("v") or ANY_VERSION,
    }


def bundle_source(
    folder: Folder, repository: gitops.Repository, *, application_name: str
) -> dict[str, Any]:
    """The source or sources of a folder of a bundle in *repository*.

    The release is named whenever the Application is not named after it: other components know it
    by the release name, for example in the address of a Service.
    """
    helm: dict[str, Any] = {}
    if application_name != folder.release:
        helm["releaseName"] = folder.release
    if folder.kind != layout.UPSTREAM_HELM:
        source = {
            "repoURL": repository.url,
            "targetRevision": repository.revision,
            "path": folder.dir,
        }
        return {"source": {**source, "helm": helm} if helm else source}
    chart = upstream_chart(folder)
    if repository.is_oci:
        # $values can name a file of a Git repository only.
        if folder.values:
            helm["valuesObject"] = folder.values
        return {"source": {**chart, "helm": helm} if helm else chart}
    helm["valueFiles"] = [f"${VALUES_REF}/{folder.dir}/values.yaml"]
    return {
        "sources": [
            {**chart, "helm": helm},
            {
                "repoURL": repository.url,
                "targetRevision": repository.revision,
                "ref": VALUES_REF,
            },
        ]
    }


def sync_options(folder: Folder, component: Component, contested: frozenset[str]) -> list[str]:
    """syncOptions of a folder's Application.

    Objects are applied by the server, because large CRDs do not fit into the annotation that
    client-side apply writes. Objects whose CRD the same chart brings, or the chart before them,
    are not tried out first, since the dry run would not find their kind (field case F5).
    """
    made = ["CreateNamespace=true"] if folder.create_namespace else []
    made.append("ServerSideApply=true")
    entry = component.entry
    if (folder.phase == "primary" and entry.get("hasSelfRefCRDs") is True) or (
        folder.phase == "post" and entry.get("manifestsUseChartCRDs") is True
    ):
        made.append("SkipDryRunOnMissingResource=true")
    if folder.phase == "readiness":
        made.append("ApplyOutOfSyncOnly=true")
    if drift.is_contested(folder, contested):
        made.append("RespectIgnoreDifferences=true")
    return made
