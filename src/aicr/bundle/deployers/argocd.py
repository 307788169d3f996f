"""The argocd deployer: one Application for each release, under a parent that reads the bundle.

```
app-of-apps.yaml ─directory */application.yaml─► 001-a/application.yaml  wave 1
                                                 002-b/application.yaml  wave 5 …
```
The bundle lies in a Git repository, or in a registry as an OCI artifact; then values are inlined,
because Argo CD reads values files of other sources from Git only (field pain 34).

Values are those of the bundle: with `--dynamic` the argocd-helm deployer is the one to use.
Source: bundler spec 1.5, 5.0, 5.3.
"""

from __future__ import annotations

from aicr.bundle import info, readme
from aicr.bundle.deployers import argocd_apps, argocd_page, argocd_settings, drift, gitops
from aicr.errors import invalid
from aicr.yamlio import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.deployers import Files
    from aicr.bundle.deployers.argocd_settings import Settings
    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Plan

NAME: Final = "argocd"
BUILD_TYPE: Final = "argocd-applications"
ENTRYPOINT: Final = "app-of-apps.yaml"
MANIFEST: Final = "application.yaml"
STEPS: Final = (
    "push the content of <output folder> to the root of the repository",
    "cd <output folder>",
    argocd_page.HEALTH_STEP,
    f"kubectl apply -f {ENTRYPOINT}",
)
PARENT: Final = "nvidia-stack"
PLACEHOLDER: Final = "https://github.com/YOUR-ORG/YOUR-REPO.git"
#: Files of a folder that Argo CD has no use for; apply-crds.sh because Argo CD applies CRDs itself.
LEFT_OUT: Final = ("apply-crds.sh", "cluster-values.yaml", "install.sh", "upstream.env")
#: A parent whose child is degraded for a moment tries again, for about an hour.
RETRY: Final[dict[str, Any]] = {
    "limit": 20,
    "backoff": {"duration": "30s", "factor": 2, "maxDuration": "3m"},
}


def generate(plan: Plan, folders: list[Folder]) -> Files:
    """The complete file set of an argocd bundle: relative path -> (bytes, mode).

    Raises:
        AicrError: INVALID_REQUEST for dynamic values, and for names
            or addresses that Argo CD would refuse.
    """
    options = plan.options
    _refuse_dynamic(plan)
    settings = argocd_settings.read(options, PARENT)
    argocd_settings.check_names(settings, folders)
    repository = gitops.repository(options, PLACEHOLDER)

    files: Files = {}
    for folder in folders:
        files.update(gitops.content(folder, LEFT_OUT))
    for path, document in applications(plan, folders, settings, repository).items():
        files[path] = (gitops.text(document, write.dump), info.MODE)
    files[argocd_page.HEALTH_FILE] = (
        gitops.text(argocd_page.health_patch(), write.dump),
        info.MODE,
    )
    files[info.README] = (
        readme.readme(
            plan,
            folders,
            deploy=STEPS[2:],
            uninstall=(),
            hooks=argocd_page.HOOKS,
            files={
                ENTRYPOINT: "the parent Application, which brings all others",
                argocd_page.HEALTH_FILE: "makes Argo CD wait for each wave",
            },
            sections=argocd_page.sections(
                settings,
                folders,
                before=[
                    *argocd_page.placeholder_note(repository),
                    *argocd_page.registry_note(options, repository.url),
                ],
                values=_values_text(repository),
            ),
        ),
        info.MODE,
    )
    return info.complete(
        files, plan, folders, deployer=NAME, entrypoint=ENTRYPOINT, manifest=MANIFEST
    )


def applications(
    plan: Plan, folders: list[Folder], settings: Settings, repository: gitops.Repository
) -> dict[str, dict[str, Any]]:
    """The Applications by path in the bundle, the parent first."""
    components = {component.name: component for component in plan.components}
    contested = drift.contested(plan)
    waves = argocd_apps.waves(plan, folders)
    made = {ENTRYPOINT: _parent(settings, repository)}
    for folder in folders:
        name = settings.child(folder.release)
        made[f"{folder.dir}/{MANIFEST}"] = argocd_apps.application(
            name=name,
            wave=waves[folder.dir],
            namespace=folder.namespace,
            project=settings.project,
            server=settings.destination_server,
            source=argocd_apps.bundle_source(folder, repository, application_name=name),
            sync_options=argocd_apps.sync_options(folder, components[folder.parent], contested),
            ignore=drift.argo(folder, contested),
            cascade_delete=settings.cascade_delete,
        )
    return made


def _parent(settings: Settings, repository: gitops.Repository) -> dict[str, Any]:
    return {
        "apiVersion": argocd_apps.API_VERSION,
        "kind": argocd_apps.KIND,
        "metadata": argocd_apps.metadata(settings.parent, cascade_delete=settings.cascade_delete),
        "spec": {
            "project": argocd_settings.DEFAULT_PROJECT,
            "source": {
                "repoURL": repository.url,
                "targetRevision": repository.revision,
                "path": ".",
                "directory": {"recurse": True, "include": f"*/{MANIFEST}"},
            },
            "destination": {
                "server": argocd_settings.IN_CLUSTER,
                "namespace": argocd_apps.NAMESPACE,
            },
            "syncPolicy": {"automated": {"prune": True, "selfHeal": True}, "retry": RETRY},
        },
    }


def _refuse_dynamic(plan: Plan) -> None:
    for component in plan.components:
        if component.dynamic:
            raise invalid(
                f"component {component.name!r} has --dynamic values, which the deployer {NAME} "
                f"cannot leave open",
                where="--dynamic",
                hint="use --deployer argocd-helm, whose chart takes values when it is installed",
            )


def _values_text(repository: gitops.Repository) -> list[str]:
    where = (
        f"in `{MANIFEST}` of its folder (`valuesObject`)"
        if repository.is_oci
        else "in `values.yaml` of its folder"
    )
    return [
        f"The values of an upstream chart are {where}. A changed bundle no longer matches",
        "`checksums.txt`, so keep the changes in the recipe or in the flags of `aicr bundle` where",
        "you can. To leave values open until installation, use `--deployer argocd-helm`.",
    ]


def steps(options: BundleOptions) -> tuple[str, ...]:
    """The commands that deploy a bundle made with these flags."""
    repository = gitops.repository(options, PLACEHOLDER)
    return (*gitops.publish_step(repository, options), *STEPS[1:])


def notes(plan: Plan) -> list[str]:
    """What to know before the bundle is deployed."""
    if not gitops.repository(plan.options, PLACEHOLDER).placeholder:
        return []
    return [
        f"{PLACEHOLDER} in {ENTRYPOINT} and in each {MANIFEST} is a placeholder: pass --repo, or "
        f"edit it"
    ]
