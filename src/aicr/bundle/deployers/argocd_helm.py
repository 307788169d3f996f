"""The argocd-helm deployer: a chart whose templates are the Applications.

```
helm install / Argo CD ─► templates/aicr-stack.yaml     the parent, which is this chart again
                          templates/<release>.yaml      children: upstream charts with values from
                                                        static/, local charts by path in the chart
```
What the argocd deployer writes down is a value here: where the chart is published, the prefix of
names, the cluster, the project, and every value of every upstream chart. So a chart that is made
once can be installed in several places, and `--dynamic` values are asked for at installation.

Source: bundler spec 1.5, 5.0, 5.4.
"""

from __future__ import annotations

from aicr.bundle import info, layout, readme, sizes
from aicr.bundle.deployers import (
    argocd_apps,
    argocd_chart,
    argocd_page,
    argocd_settings,
    argocd_templates,
    drift,
    gitops,
)
from aicr.errors import invalid
from aicr.values import paths
from aicr.yamlio import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from aicr.bundle.deployers import Files
    from aicr.bundle.deployers.argocd_settings import Settings
    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions
    from aicr.bundle.plan import Component, Plan

NAME: Final = "argocd-helm"
BUILD_TYPE: Final = "argocd-helm-chart"
ENTRYPOINT: Final = "Chart.yaml"
VALUES: Final = "values.yaml"
SCHEMA: Final = "values.schema.json"
#: The archive, whose name ends in the recipe's version. Beside the bundle: inside, it would be a file
#: that `aicr verify` does not know, and part of the next archive.
_PACKAGED: Final = f"../{argocd_chart.CHART}-*.tgz"
_NOWHERE: Final = "<registry path>"
STEPS: Final = (
    "cd <output folder>",
    argocd_page.HEALTH_STEP,
    f"helm package . --destination .. && helm push {_PACKAGED} {_NOWHERE}",
    f"helm upgrade --install {argocd_chart.CHART} . --namespace argocd --create-namespace "
    f"--set repoURL={_NOWHERE}",
)
PARENT: Final = "aicr-stack"
LEFT_OUT: Final = ("apply-crds.sh", "cluster-values.yaml", "install.sh", "upstream.env")
#: Files that are no part of the chart: helm would keep them in the cluster with the release.
_IGNORED: Final = ("/attestation/", "/checksums.txt", "/data/", "/recipe.yaml")

_FIXED: Final = (
    "this component is made of manifests that were rendered with the bundle; make the bundle again "
    "to change its values"
)


def generate(plan: Plan, folders: list[Folder]) -> Files:
    """The complete file set of an argocd-helm bundle: relative path -> (bytes, mode).

    Raises:
        AicrError: INVALID_REQUEST for a tag that is no chart version,
            names that Argo CD would refuse, a key of values used twice, dynamic values of a
            component that has no chart, or a value that helm would change.
    """
    options = plan.options
    settings = argocd_settings.read(options, PARENT)
    argocd_settings.check_names(settings, folders)
    target = argocd_chart.chart_target(plan.recipe, options)
    keys = argocd_chart.override_keys(plan)

    files: Files = {}
    components = {component.name: component for component in plan.components}
    for folder in folders:
        _guard(folder, components[folder.parent])
        files.update(gitops.content(folder, LEFT_OUT))
        if folder.kind == layout.UPSTREAM_HELM and folder.values:
            files[_static(folder)] = folder.files["values.yaml"]
    chart = {
        ENTRYPOINT: write.dump(argocd_chart.chart_yaml(target)),
        VALUES: argocd_chart.values_yaml(folders, keys, settings, target, options),
        SCHEMA: argocd_chart.schema(keys),
        ".helmignore": _helmignore(folders),
        argocd_page.HEALTH_FILE: write.dump(argocd_page.health_patch()),
        **templates(plan, folders, keys, settings),
    }
    for path, text in chart.items():
        files[path] = (text.encode(), info.MODE)
    if not options.vendor_charts:
        _check_size(files, folders)
    files[info.README] = (_readme(plan, folders, settings, target, keys), info.MODE)
    return info.complete(files, plan, folders, deployer=NAME, entrypoint=ENTRYPOINT, manifest="")


def _check_size(files: Files, folders: list[Folder]) -> None:
    """Refuse a chart that helm could not record when it is installed.

    What it renders is about the values in `static/` again, and its templates.
    """
    left_out = {folder.dir for folder in folders if folder.kind == layout.UPSTREAM_HELM}
    kept = {
        path: data for path, (data, _) in files.items() if path.partition("/")[0] not in left_out
    }
    if sum(map(len, kept.values())) < sizes.HARMLESS:
        return
    shown = [data for path, data in kept.items() if path.startswith(("static/", "templates/"))]
    size = sizes.estimate(kept, b"".join(shown), {})
    if size > sizes.LIMIT:
        raise invalid(
            f"helm's record of this chart has about {size >> 10} KiB, and a Secret holds "
            f"{sizes.LIMIT >> 10} KiB",
            where=NAME,
            hint="use --deployer argocd, which needs no record, or make values and manifests smaller",
        )


def _helmignore(folders: list[Folder]) -> str:
    """What helm leaves out of the chart; the values of upstream charts are in `static/` already."""
    upstream = [f"/{folder.dir}/" for folder in folders if folder.kind == layout.UPSTREAM_HELM]
    return "".join(f"{path}\n" for path in (*_IGNORED, *upstream))


def templates(
    plan: Plan,
    folders: list[Folder],
    keys: Mapping[str, str],
    settings: Settings,
) -> dict[str, str]:
    """The templates of the chart by path."""
    components = {component.name: component for component in plan.components}
    contested = drift.contested(plan)
    waves = argocd_apps.waves(plan, folders)
    finalizer = argocd_apps.FINALIZER if settings.cascade_delete else ""
    made = {
        argocd_templates.HELPERS_FILE: argocd_templates.helpers(),
        argocd_templates.PARENT_FILE: argocd_templates.parent(finalizer=finalizer),
    }
    for folder in folders:
        source, how = _source(folder, keys[folder.parent])
        document = argocd_apps.application(
            name=argocd_templates.NAME,
            wave=waves[folder.dir],
            namespace=folder.namespace,
            project=argocd_templates.PROJECT,
            server=argocd_templates.SERVER,
            source={"source": source},
            sync_options=argocd_apps.sync_options(folder, components[folder.parent], contested),
            ignore=drift.argo(folder, contested),
            cascade_delete=settings.cascade_delete,
        )
        made[f"templates/{folder.release}.yaml"] = argocd_templates.child(
            document, release=folder.release, key=keys[folder.parent], **how
        )
    profile = (plan.recipe.get("metadata") or {}).get("selectedProfile")
    if profile:
        owned = [
            (keys[name], [str(segment) for segment in paths.split(path)])
            for name, owned_paths in sorted((profile.get("ownedPaths") or {}).items())
            for path in owned_paths
            if name in keys
        ]
        owner = f"{profile['name']}={profile['value']}"
        made[argocd_templates.LOCK_FILE] = argocd_templates.profile_lock(owned, owner)
    return made


def _source(folder: Folder, key: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The source of a child, and how its values are filled in (see ``argocd_templates.child``)."""
    helm: dict[str, Any] = {"releaseName": folder.release}
    if folder.kind == layout.UPSTREAM_HELM:
        helm["values"] = argocd_templates.VALUES
        source = argocd_apps.upstream_chart(folder)
        return {**source, "helm": helm}, {"static": _static(folder)}
    source = {
        "repoURL": argocd_templates.REPOSITORY,
        "targetRevision": argocd_templates.REVISION,
        "path": folder.dir,
        "helm": helm,
    }
    if folder.phase != "primary":
        return source, {}
    subchart = _subchart(folder)
    if not subchart:
        return source, {"fixed": _FIXED}
    helm["values"] = argocd_templates.VALUES
    return source, {"wrap": subchart}


def _subchart(folder: Folder) -> str:
    """Name of the chart that a vendored folder wraps: the one key of its values, or ""."""
    if not gitops.is_vendored(folder):
        return ""
    from aicr import yamlio

    wrapper = yamlio.read_fast(folder.files["Chart.yaml"][0].decode(), source=folder.dir)
    name: str = wrapper["dependencies"][0]["name"]
    return name


def _static(folder: Folder) -> str:
    return f"static/{folder.release}.yaml"


def _guard(folder: Folder, component: Component) -> None:
    if folder.release in argocd_templates.RESERVED:
        raise invalid(
            f"release {folder.release!r} has the name of a template of the chart itself",
            where=folder.release,
            hint="rename the component",
        )
    if folder.phase == "primary" and folder.kind != layout.UPSTREAM_HELM and component.dynamic:
        raise invalid(
            f"component {folder.parent!r} has --dynamic values, but in an {NAME} bundle it is "
            f"a chart inside the bundle, which takes none",
            where="--dynamic",
            hint="set the values when the bundle is made, with --set",
        )
    if b"<no value>" in folder.files["values.yaml"][0]:
        raise invalid(
            f"component {folder.parent!r} has a value with '<no value>', which helm removes from "
            f"what it renders",
            where=folder.parent,
            hint="change the value, or use --deployer argocd",
        )


def _readme(
    plan: Plan,
    folders: list[Folder],
    settings: Settings,
    target: argocd_chart.Target,
    keys: Mapping[str, str],
) -> bytes:
    local = [folder for folder in folders if folder.kind != layout.UPSTREAM_HELM]
    vendored = plan.options.vendor_charts
    packaged = f"../{target.chart}-{target.version}.tgz"
    deploy = [step.replace(_PACKAGED, packaged) for step in _deploy(target, vendored)]
    before = ["The parent Application reads this chart from the registry that `repoURL` names."]
    if local:
        before += [
            f"So do {len(local)} of the children, whose charts are inside this one; publish it first.",
        ]
    else:
        before += [
            "All charts are upstream ones, so `--set deployer.includeRootApp=false` installs it from",
            "this folder, without publishing it.",
        ]
    if vendored:
        before += [
            "",
            "It is rendered and applied, not installed: helm would keep all of it in one Secret, with",
            f"the charts that it carries, and a Secret holds {sizes.LIMIT >> 10} KiB.",
        ]
    if target.repository:
        before += argocd_page.registry_note(plan.options, f"{target.repository}/{target.chart}")
    return readme.readme(
        plan,
        folders,
        deploy=deploy,
        uninstall=(),
        hooks=argocd_page.HOOKS,
        files={
            ENTRYPOINT: "this folder is a Helm chart",
            VALUES: "what can be given when it is installed",
            SCHEMA: "what may be given",
            argocd_page.HEALTH_FILE: "makes Argo CD wait for each wave",
        },
        sections=argocd_page.sections(
            settings,
            folders,
            before=before,
            values=_values_text(plan, folders, keys),
            last=[] if vendored else [f"helm uninstall {target.chart} --namespace argocd"],
        ),
    )


def _values_text(plan: Plan, folders: list[Folder], keys: Mapping[str, str]) -> list[str]:
    manifests = {
        folder.parent
        for folder in folders
        if folder.phase == "primary" and folder.kind != layout.UPSTREAM_HELM
        if not gitops.is_vendored(folder)
    }
    lines = [
        "Any value of an upstream chart can be given when this chart is installed, below the key of",
        "its component; it wins over what the recipe says. null removes a key.",
        "",
        "| component | key | asked for |",
        "|---|---|---|",
    ]
    fixed = []
    for component in plan.components:
        if component.name in manifests:
            fixed.append(component.name)
            continue
        asked = ", ".join(f"`{paths.join(segments)}`" for segments in _dynamic(component))
        lines.append(f"| {component.name} | `{keys[component.name]}` | {asked} |")
    if fixed:
        lines += [
            "",
            f"These are manifests that were rendered with the bundle, and take no values here: "
            f"{', '.join(fixed)}.",
        ]
    return lines


def _dynamic(component: Component) -> list[list[str | int]]:
    return component.dynamic


def steps(options: BundleOptions) -> tuple[str, ...]:
    """The commands that deploy a bundle made with these flags; published, the chart is pulled."""
    return (STEPS[0], *_deploy(argocd_chart.chart_target({}, options), options.vendor_charts))


def _deploy(target: argocd_chart.Target, vendored: bool) -> list[str]:
    """Shell lines that deploy the bundle.

    Helm would keep the whole chart in one Secret, with the charts that it carries, so a chart with
    vendored ones is rendered instead of installed (see ``aicr.bundle.sizes``).
    """
    lines = [argocd_page.HEALTH_STEP]
    chart, place = ".", f" --set repoURL={_NOWHERE}"
    if target.repository:
        chart = f"{target.repository}/{target.chart} --version {target.version}{target.flags}"
        place = ""
    else:
        lines.append(STEPS[2])
    words = f"{target.chart} {chart} --namespace argocd"
    if vendored:
        lines.append(f"helm template {words}{place} | kubectl apply -f -")
    else:
        lines.append(f"helm upgrade --install {words} --create-namespace{place}")
    return lines


def notes(plan: Plan) -> list[str]:
    """What to know before the bundle is deployed."""
    if plan.options.oci_reference:
        return []
    return ["the chart has to be published, and repoURL set to where, when it is installed"]
