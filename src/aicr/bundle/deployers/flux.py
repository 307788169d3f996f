"""The flux deployer: one HelmRelease for each release, tied together by the recipe's own graph.

```
kustomization.yaml ─► sources/helmrepo-*.yaml   chart repositories
                      sources/ocirepo-*.yaml    charts in OCI registries, at their exact tag
                      sources/gitrepo-*.yaml    this bundle, for the charts inside it
                      NNN-x/helmrelease.yaml    dependsOn the last release of each dependency
                      NNN-x/configmap-values.yaml        with --dynamic
                      NNN-x/artifactgenerator.yaml       for a bundle that is an OCI artifact
```
Flux waits for what `dependsOn` names and for nothing else, so the graph is written down as it is
(requirements C-109, C-110); `--serial` puts a chain in its place (C-131).

Values stand in the HelmRelease. Flux lets them win over `valuesFrom`, which is why a dynamic path
must not be among them. Should the bundle be applied by a Flux Kustomization with variable
substitution, an annotation keeps Flux from touching objects with a `$` (field case F2).

Source: bundler spec 1.5, 5.0, 5.5; decision 54; field cases F5, F7.
"""

from __future__ import annotations

from aicr.bundle import info, layout, readme
from aicr.bundle.deployers import flux_page, flux_sources, gitops, waiting
from aicr.values import durations
from aicr.yamlio import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.deployers import Files
    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Plan

NAME: Final = "flux"
BUILD_TYPE: Final = "flux-manifests"
ENTRYPOINT: Final = "kustomization.yaml"
MANIFEST: Final = "helmrelease.yaml"
STEPS: Final = (
    "push the content of <output folder> to the root of the repository",
    "cd <output folder>",
    "kubectl apply -k .",
)
PLACEHOLDER: Final = "https://github.com/YOUR_ORG/YOUR_REPO.git"
#: Files of a folder that Flux has no use for: it reads upstream charts and values elsewhere.
LEFT_OUT: Final = ("apply-crds.sh", "cluster-values.yaml", "install.sh", "upstream.env")

_CONFIG_MAP: Final = "configmap-values.yaml"
_GENERATOR: Final = "artifactgenerator.yaml"
_INTERVAL: Final = "10m"
#: Annotation that keeps Flux from substituting variables in an object.
_NO_SUBSTITUTION: Final = {"kustomize.toolkit.fluxcd.io/substitute": "disabled"}
#: Without it a release that failed once, say on a slow image, is never tried again. A gate has waited
#: long enough by itself, so it gets one more try, as it does in deploy.sh.
_RETRIES: Final = 3
_GATE_RETRIES: Final = 1


def steps(options: BundleOptions) -> tuple[str, ...]:
    """The commands that deploy a bundle made with these flags."""
    return tuple(flux_page.deploy(options)) if options.oci_reference else STEPS


def generate(plan: Plan, folders: list[Folder]) -> Files:
    """The complete file set of a flux bundle: relative path -> (bytes, mode).

    Raises:
        AicrError: INVALID_REQUEST for addresses that Flux cannot
            read or cannot tell apart.
    """
    options = plan.options
    sources = flux_sources.Sources(folders, options, gitops.repository(options, PLACEHOLDER))
    documents = objects(plan, folders, options, sources)

    files: Files = {}
    for folder in folders:
        if folder.kind != layout.UPSTREAM_HELM:
            files.update(gitops.content(folder, LEFT_OUT))
    for path, document in documents.items():
        files[path] = (_text(document), info.MODE)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": sorted(documents),
    }
    files[ENTRYPOINT] = (gitops.text(kustomization, write.dump), info.MODE)
    files[info.README] = (
        readme.readme(
            plan,
            folders,
            deploy=flux_page.deploy(options),
            uninstall=(),
            files={
                ENTRYPOINT: "the list of all objects, for kubectl and for Flux",
                "sources/": "where charts come from",
            },
            sections=flux_page.sections(plan, folders, options, sources),
        ),
        info.MODE,
    )
    return info.complete(
        files, plan, folders, deployer=NAME, entrypoint=ENTRYPOINT, manifest=MANIFEST
    )


def objects(
    plan: Plan, folders: list[Folder], options: BundleOptions, sources: flux_sources.Sources
) -> dict[str, dict[str, Any]]:
    """Every Flux object of the bundle by path."""
    made = dict(sources.documents)
    depends = dependencies(plan, folders)
    for folder in folders:
        made[f"{folder.dir}/{MANIFEST}"] = _helm_release(
            folder, depends[folder.release], options, sources
        )
        if folder.cluster_values:
            made[f"{folder.dir}/{_CONFIG_MAP}"] = _config_map(folder, options)
        if sources.is_generated(folder):
            made[f"{folder.dir}/{_GENERATOR}"] = sources.artifact_generator(folder)
    return made


def dependencies(plan: Plan, folders: list[Folder]) -> dict[str, list[str]]:
    """For each release, the releases that it waits for, sorted.

    The first release of a component waits for the last one of each dependency, or with `--serial`
    for the last one of the component before; every other release waits for the one before it in
    its component.
    """
    terminal = gitops.terminals(folders)
    made: dict[str, list[str]] = {}
    previous: Folder | None = None
    for folder in folders:
        if previous is not None and previous.parent == folder.parent:
            needed = [previous]
        elif plan.serial:
            needed = [previous] if previous is not None else []
        else:
            needed = [
                terminal[name] for name in plan.dependencies[folder.parent] if name in terminal
            ]
        made[folder.release] = sorted(item.release for item in needed)
        previous = folder
    return made


def _helm_release(
    folder: Folder,
    depends: list[str],
    options: BundleOptions,
    sources: flux_sources.Sources,
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "interval": _INTERVAL,
        # Without a name of its own, a release would be called after its namespace as well.
        "releaseName": folder.release,
        "targetNamespace": folder.namespace,
    }
    rule = waiting.rule(folder.parent, folder.phase)
    # Flux would give up after five minutes, and install anew what was about to be ready.
    spec["timeout"] = _duration(rule[1] if rule is not None else waiting.TIMEOUT)
    if depends:
        spec["dependsOn"] = [{"name": name} for name in depends]
    spec.update(sources.chart(folder))
    remediation = {"retries": _GATE_RETRIES if folder.phase == waiting.GATE else _RETRIES}
    spec["install"] = {
        **({"createNamespace": True} if folder.create_namespace else {}),
        **({"crds": "Create"} if folder.crd_owner else {}),
        "remediation": remediation,
    }
    spec["upgrade"] = {
        # Flux cannot tell a chart's own CRDs from its subcharts', and must not replace the latter.
        **({"crds": "CreateReplace"} if folder.crd_owner and folder.crd_subcharts else {}),
        "remediation": remediation,
    }
    if folder.cluster_values:
        spec["valuesFrom"] = [{"kind": "ConfigMap", "name": _config_map_name(folder)}]
    if folder.values:
        spec["values"] = folder.values
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": folder.release, "namespace": options.flux_namespace},
        "spec": spec,
    }


def _duration(seconds: int) -> str:
    """Whole minutes as people write them: Go would say 20m0s."""
    text = durations.format(seconds * durations.SECOND)
    return text.removesuffix("0s") if text.endswith("m0s") else text


def _config_map(folder: Folder, options: BundleOptions) -> dict[str, Any]:
    """The values that the cluster's owner fills in."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _config_map_name(folder), "namespace": options.flux_namespace},
        "data": {"values.yaml": write.dump(folder.cluster_values, sort_keys=True)},
    }


def _config_map_name(folder: Folder) -> str:
    return f"{folder.release}-values"


def _text(document: dict[str, Any]) -> bytes:
    """The document as a file, marked when Flux's substitution of variables could change it."""
    made = gitops.text(document, write.dump)
    if b"$" not in made:
        return made
    metadata = {**document["metadata"], "annotations": _NO_SUBSTITUTION}
    return gitops.text({**document, "metadata": metadata}, write.dump)


def notes(plan: Plan) -> list[str]:
    """What to know before the bundle is deployed."""
    repository = gitops.repository(plan.options, PLACEHOLDER)
    if not repository.placeholder:
        return []
    return [f"{PLACEHOLDER} in sources/ is a placeholder: pass --repo, or edit it"]
