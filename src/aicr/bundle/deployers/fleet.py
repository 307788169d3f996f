"""The fleet deployer: one Bundle for each release, each waiting for the one before it.

```
gitrepo (default)   gitrepo.yaml ─paths─► 001-a/fleet.yaml ◄─dependsOn─ 002-b/fleet.yaml …
helmop              helmops.yaml: one HelmOp for each release, without a repository
```
Fleet has no order but `dependsOn`, and a graph of many Bundles is hard to follow in it, so the
order is the folder order and `--serial` changes nothing. A HelmOp has no files: it can install an
upstream chart and nothing else.

Fleet would read `${ }` in values as templates of its own; that is switched off everywhere (field
case F2). Source: bundler spec 5.0, 5.7; field pain 28.
"""

from __future__ import annotations

from aicr.bundle import info, layout, readme
from aicr.bundle.deployers import drift, fleet_page, gitops, waiting
from aicr.errors import invalid
from aicr.values.merge import deep_merge
from aicr.yamlio import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.deployers import Files
    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Plan

NAME: Final = "fleet"
BUILD_TYPE: Final = "fleet-bundle"
GITREPO: Final = "gitrepo"
HELMOP: Final = "helmop"
#: The root file of each mode.
ENTRYPOINTS: Final = {GITREPO: "gitrepo.yaml", HELMOP: "helmops.yaml"}
STEPS: Final = (
    "push the content of <output folder> to the root of the repository",
    "cd <output folder>",
    "kubectl apply -f gitrepo.yaml",
    "kubectl label clusters.fleet.cattle.io <cluster> --namespace fleet-default "
    "aicr.run/bundle=aicr",
)
PLACEHOLDER: Final = "https://github.com/YOUR_ORG/YOUR_REPO.git"
APP: Final = "aicr"
LABEL: Final = "aicr.run/bundle"
#: The workspace whose one cluster is the one that Fleet runs in.
LOCAL_WORKSPACE: Final = "fleet-local"
IGNORE_FILE: Final = ".fleetignore"
#: Files of a folder that are no content of a Bundle.
IGNORED: Final = ("install.sh", "upstream.env", "apply-crds.sh")

_API: Final = "fleet.cattle.io/v1alpha1"
_VALUES_FILES: Final = ("values.yaml", "cluster-values.yaml")


def generate(plan: Plan, folders: list[Folder]) -> Files:
    """The complete file set of a fleet bundle: relative path -> (bytes, mode).

    Raises:
        AicrError: INVALID_REQUEST for an unknown mode, for a chart
            inside the bundle in helmop mode, and for content that Fleet could not store.
    """
    options = plan.options
    mode = options.fleet_mode
    if mode not in ENTRYPOINTS:
        raise invalid(
            f"invalid --fleet-mode {mode!r}: must be one of {', '.join(sorted(ENTRYPOINTS))}",
            where="--fleet-mode",
        )
    app = options.app_name or APP
    gitops.check_name(app, "--app-name", limit=gitops.MAX_LABEL, subdomain=False)
    repository = gitops.repository(options, PLACEHOLDER, output=False)

    files: Files = {}
    for folder in folders:
        files.update(gitops.content(folder, ()))
    if mode == HELMOP:
        documents = helm_ops(folders, app, options.fleet_workspace, drift.contested(plan))
        text = "---\n".join(write.dump(document) for document in documents)
        files[ENTRYPOINTS[mode]] = ((gitops.GENERATED + text).encode(), info.MODE)
    else:
        ignored = "".join(f"{path}\n" for path in IGNORED).encode()
        made = bundles(folders, app, drift.contested(plan))
        for folder, document in zip(folders, made, strict=True):
            files[f"{folder.dir}/fleet.yaml"] = (gitops.text(document, write.dump), info.MODE)
            files[f"{folder.dir}/{IGNORE_FILE}"] = (ignored, info.MODE)
            _check_size(folder)
        document = git_repo(folders, app, options.fleet_workspace, repository)
        files[ENTRYPOINTS[mode]] = (gitops.text(document, write.dump), info.MODE)
    files[info.README] = (
        readme.readme(
            plan,
            folders,
            deploy=fleet_page.deploy(options, app, ENTRYPOINTS[mode]),
            uninstall=(),
            files={
                ENTRYPOINTS[mode]: "what is given to the cluster that Fleet runs in",
            },
            sections=fleet_page.sections(
                folders,
                options,
                repository if mode == GITREPO else None,
                names=[bundle_name(app, folder) for folder in folders],
                entrypoint=ENTRYPOINTS[mode],
            ),
        ),
        info.MODE,
    )
    return info.complete(
        files,
        plan,
        folders,
        deployer=NAME,
        entrypoint=ENTRYPOINTS[mode],
        manifest="fleet.yaml" if mode == GITREPO else "",
    )


def bundle_name(app: str, folder: Folder) -> str:
    """Name of the Bundle of a folder; a long one keeps a digest (field case F4)."""
    return gitops.fitted(f"{app}-{folder.release}", gitops.MAX_LABEL)


def bundles(
    folders: list[Folder], app: str, contested: frozenset[str] = frozenset()
) -> list[dict[str, Any]]:
    """fleet.yaml of each folder; *contested* components share a CRD (``drift.contested``)."""
    made: list[dict[str, Any]] = []
    for folder in folders:
        helm = _helm(folder)
        helm["valuesFiles"] = [path for path in _VALUES_FILES if path in folder.files]
        document: dict[str, Any] = {
            "name": bundle_name(app, folder),
            "defaultNamespace": folder.namespace,
            "labels": {LABEL: app},
            "helm": _finished(helm, folder),
            **_diff(folder, contested),
        }
        if made:
            document["dependsOn"] = [{"name": made[-1]["name"]}]
        made.append(document)
    return made


def git_repo(
    folders: list[Folder], app: str, workspace: str, repository: gitops.Repository
) -> dict[str, Any]:
    """The GitRepo that makes Bundles of the folders.

    Raises:
        AicrError: INVALID_REQUEST for a repository that is not Git.
    """
    if repository.is_oci:
        raise invalid(
            f"Fleet reads the bundle from Git, and not from {repository.url}",
            where="--repo",
            hint="name a Git repository with --repo",
        )
    reference = gitops.git_reference(repository.revision)
    revision = reference.get("commit") or reference.get("name")
    return {
        "apiVersion": _API,
        "kind": "GitRepo",
        "metadata": {"name": app, "namespace": workspace},
        "spec": {
            "repo": repository.url,
            **({"revision": revision} if revision else reference),
            "paths": [folder.dir for folder in folders],
            "targets": _targets(app, workspace),
        },
    }


def helm_ops(
    folders: list[Folder], app: str, workspace: str, contested: frozenset[str] = frozenset()
) -> list[dict[str, Any]]:
    """One HelmOp for each release; *contested* components share a CRD (``drift.contested``).

    Raises:
        AicrError: INVALID_REQUEST for a chart inside the bundle, and for values that do not fit
            into one object.
    """
    made: list[dict[str, Any]] = []
    for folder in folders:
        if folder.kind != layout.UPSTREAM_HELM:
            raise invalid(
                f"release {folder.release!r} is a chart inside the bundle, which a HelmOp cannot "
                f"install",
                where=folder.parent,
                hint="use --fleet-mode gitrepo",
            )
        helm = _helm(folder)
        values = deep_merge(folder.values, folder.cluster_values, null_deletes=False)
        if values:
            helm["values"] = values
        spec: dict[str, Any] = {
            "defaultNamespace": folder.namespace,
            "helm": _finished(helm, folder),
            **_diff(folder, contested),
        }
        if made:
            spec["dependsOn"] = [{"name": made[-1]["metadata"]["name"]}]
        spec["targets"] = _targets(app, workspace)
        spec["labels"] = {LABEL: app}
        document = {
            "apiVersion": _API,
            "kind": "HelmOp",
            "metadata": {
                "name": bundle_name(app, folder),
                "namespace": workspace,
                "labels": {LABEL: app},
            },
            "spec": spec,
        }
        size = len(write.dump(document))
        if size > gitops.MAX_STORED:
            raise _too_large(folder, size)
        made.append(document)
    return made


def _helm(folder: Folder) -> dict[str, Any]:
    """The chart of a folder, as both modes name it."""
    made: dict[str, Any] = {"releaseName": folder.release}
    if folder.kind != layout.UPSTREAM_HELM:
        made["chart"] = "."
    elif folder.repo:
        made["repo"] = folder.repo
        made["chart"] = folder.chart
    else:
        made["repo"] = folder.chart
    if folder.version:
        made["version"] = folder.version
    return made


def _finished(helm: dict[str, Any], folder: Folder) -> dict[str, Any]:
    helm["disablePreProcess"] = True
    if not folder.create_namespace:
        # Fleet makes the namespace first, and helm would then refuse the chart's own.
        helm["takeOwnership"] = True
    if folder.phase == waiting.GATE:
        # With a time limit Fleet waits for the release, and so for the hook that is the gate.
        helm["timeoutSeconds"] = waiting.GATE_TIMEOUT
    return helm


def _diff(folder: Folder, contested: frozenset[str]) -> dict[str, Any]:
    patches = drift.fleet(folder, contested)
    return {"diff": {"comparePatches": patches}} if patches else {}


def _targets(app: str, workspace: str) -> list[dict[str, Any]]:
    if workspace == LOCAL_WORKSPACE:
        return [{"clusterName": "local"}]
    return [{"clusterSelector": {"matchLabels": {LABEL: app}}}]


def _check_size(folder: Folder) -> None:
    kept = {path: held for path, held in folder.files.items() if path not in IGNORED}
    size = gitops.stored_size(kept)
    if size > gitops.MAX_STORED:
        raise _too_large(folder, size)


def _too_large(folder: Folder, size: int) -> Exception:
    return invalid(
        f"release {folder.release!r} takes about {size:,} bytes in the cluster's store, and Fleet "
        f"has to keep each Bundle in one object of at most {gitops.MAX_STORED:,}",
        where=folder.dir,
        hint="split the component's manifests over two components, or use another --deployer",
    )


def steps(options: BundleOptions) -> tuple[str, ...]:
    """The commands that deploy a bundle made with these flags."""
    commands = fleet_page.deploy(options, options.app_name or APP, ENTRYPOINTS[options.fleet_mode])
    return (*(STEPS[:2] if options.fleet_mode == GITREPO else STEPS[1:2]), *commands)


def notes(plan: Plan) -> list[str]:
    """What to know before the bundle is deployed."""
    options = plan.options
    repository = gitops.repository(options, PLACEHOLDER, output=False)
    if options.fleet_mode != GITREPO or not repository.placeholder:
        return []
    return [f"{PLACEHOLDER} in {ENTRYPOINTS[GITREPO]} is a placeholder: pass --repo, or edit it"]
