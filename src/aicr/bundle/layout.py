"""The local format: one numbered folder for each Helm release, the same for all deployers.

```
component --classify--> [pre] primary [post]  --number--> 001-a-pre, 002-a, 003-a-post, 004-b …
```
A primary is a reference to an upstream chart, or a local chart that wraps manifests or the output
of a Kustomize build. Manifests that belong before or after the chart become local charts of their
own, so every deployer meets only Helm releases. The presence of Chart.yaml is what tells the two
kinds apart on disk.

It must not know any deployer, and it never branches on a component's name. Source: bundler spec 2.1
to 2.3, components seed (Local Format), requirements C-095 to C-098.
"""

from __future__ import annotations

from aicr.bundle import charts, scripts
from aicr.contract.object_names import has_label_form, has_subdomain_form
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final

    from aicr.bundle.kustomize import Run
    from aicr.bundle.plan import Component, Plan
    from aicr.bundle.vendor import VendoredChart

    Manifests = list[tuple[str, str]]
    Files = dict[str, tuple[bytes, int]]

UPSTREAM_HELM: Final = "upstream-helm"
LOCAL_HELM: Final = "local-helm"

#: Folder phases, in the order in which they come within a component (bundler spec 5.0.3).
PHASES: Final = ("pre", "primary", "post", "readiness")
MAX_FOLDERS: Final = 999
#: Helm keeps its records in labels of release name plus suffixes, hence its cap (field case F4).
MAX_RELEASE: Final = 53
MAX_NAMESPACE: Final = 63

_EMPTY_TEMPLATE: Final = "templates/empty.yaml"
_EMPTY_TEXT: Final = b"# With these values no manifest of the component holds an object.\n"
_WRAPPER_TEXT: Final = b"# Everything that is installed comes from the chart in charts/.\n"


class Folder:
    """One numbered folder, that is one Helm release.

    Attributes:
        dir: the folder's name, `NNN-<release>`.
        release: Helm release name.
        parent: name of the component it belongs to; deployers key their special cases by it.
        phase: one of ``PHASES``; found from the parent, because a component may be called `x-post`.
        kind: ``UPSTREAM_HELM`` or ``LOCAL_HELM``.
        namespace: release namespace.
        create_namespace: whether helm may create it; not so when a template declares a Namespace.
        files: path inside the folder -> (bytes, mode).
        chart: chart name, or the whole reference of an OCI chart; "" for a local chart.
        repo: chart repository over HTTP(S); "" for an OCI or local chart.
        version: chart version as pinned; "" for a local chart.
        values: content of values.yaml: what is known when the bundle is made.
        cluster_values: content of cluster-values.yaml: what the cluster's owner fills in.
        crd_owner: whether apply-crds.sh may bring the chart's CRDs up to date (bundler spec 2.6).
        crd_subcharts: whether that holds for the CRDs of the charts inside the chart too.
        vendored: the chart inside a local chart that wraps it; its values lie below its name.
    """

    __slots__ = (
        "chart",
        "cluster_values",
        "crd_owner",
        "crd_subcharts",
        "create_namespace",
        "dir",
        "files",
        "kind",
        "namespace",
        "parent",
        "phase",
        "release",
        "repo",
        "values",
        "vendored",
        "version",
    )

    def __init__(
        self,
        *,
        dir: str,
        release: str,
        parent: str,
        phase: str,
        kind: str,
        namespace: str,
        create_namespace: bool,
        files: Files,
        chart: str = "",
        repo: str = "",
        version: str = "",
        values: dict[str, Any] | None = None,
        cluster_values: dict[str, Any] | None = None,
        crd_owner: bool = False,
        crd_subcharts: bool = True,
        vendored: VendoredChart | None = None,
    ) -> None:
        self.dir = dir
        self.release = release
        self.parent = parent
        self.phase = phase
        self.kind = kind
        self.namespace = namespace
        self.create_namespace = create_namespace
        self.files = files
        self.chart = chart
        self.repo = repo
        self.version = version
        self.values = values if values is not None else {}
        self.cluster_values = cluster_values if cluster_values is not None else {}
        self.crd_owner = crd_owner
        self.crd_subcharts = crd_subcharts
        self.vendored = vendored


class _Part:
    """What will be one folder: the outcome of the classification."""

    __slots__ = ("cluster_values", "files", "kind", "namespaces", "phase", "values")

    def __init__(
        self,
        phase: str,
        kind: str,
        files: Files,
        namespaces: list[str] | None = None,
        values: tuple[dict[str, Any], dict[str, Any]] | None = None,
    ) -> None:
        self.phase = phase
        self.kind = kind
        self.files = files
        self.namespaces = namespaces or []
        self.values: dict[str, Any] = values[0] if values else {}
        self.cluster_values: dict[str, Any] = values[1] if values else {}


def folders(plan: Plan, *, run: Run | None = None) -> list[Folder]:
    """The folders of a bundle, numbered in deployment order.

    Args:
        plan: components in deployment order, with final values and rendered manifests.
        run: starts the process of a Kustomize build (see ``bundle.kustomize``).

    Raises:
        AicrError: INVALID_REQUEST for a component that cannot be classified, an unusable or
            colliding name, clashing manifests, or more than 999 folders (bundler spec 2.1, 2.2).
    """
    names = {component.name for component in plan.components}
    made: list[Folder] = []
    for component in plan.components:
        _guard_component(component)
        parts = _releases(component, run)
        if component.readiness is not None:
            parts.append(_gate(component, plan))
        for part in parts:
            release = component.name
            if part.phase != "primary":
                release = f"{component.name}-{part.phase}"
                if release in names:
                    raise invalid(
                        f"component {release!r} collides with the folder that is made for the "
                        f"{part.phase} manifests of component {component.name!r}",
                        where=release,
                        hint="rename one of the two components",
                    )
            number = len(made) + 1
            if number > MAX_FOLDERS:
                raise invalid(
                    f"the bundle needs more than {MAX_FOLDERS} folders; "
                    f"their numbers have three digits",
                    hint="disable components with --set <component>:enabled=false",
                )
            made.append(_folder(number, release, component, part))
    return made


def is_kustomize(ref: Mapping[str, Any]) -> bool:
    """Whether a ref is a Kustomize source: by its type, or by the fields only such a ref has."""
    return bool(ref.get("type") == "Kustomize" or ref.get("tag") or ref.get("path"))


def _releases(component: Component, run: Run | None) -> list[_Part]:
    """The parts of a component, in order, without its gate: the classification."""
    ref, name = component.ref, component.name
    manifests = list(component.manifests)
    made: list[_Part] = []

    pre = list(component.pre_manifests)
    templates = charts.template_files(pre, component=name)
    if templates:
        declared = charts.declared_namespaces(pre, component=name)
        for namespace in declared:
            if namespace != component.namespace:
                raise invalid(
                    f"a pre-manifest of component {name!r} declares the Namespace {namespace!r}, "
                    f"but the component's namespace is {component.namespace!r}",
                    where=name,
                    hint="use the release namespace in the manifest, or ship it as a post-manifest",
                )
        made.append(_Part("pre", LOCAL_HELM, templates, declared))

    if is_kustomize(ref):
        if ref.get("chart"):
            raise invalid(
                f"component {name!r} has both Helm and Kustomize material: a chart, and "
                f"{'a path' if ref.get('path') else 'a tag' if ref.get('tag') else 'its type'}",
                where=name,
                hint="keep chart and version, or path and tag",
            )
        if manifests:
            raise invalid(
                f"Kustomize component {name!r} has manifestFiles as well",
                where=name,
                hint="add the manifests to the kustomization, or to a component of their own",
            )
        from aicr.bundle import kustomize

        manifests = [("manifest.yaml", kustomize.build(ref, run=run))]
        made.append(_local(component, "primary", manifests))
    elif ref.get("source"):
        made.append(_chart(component))
        post = _local(component, "post", manifests)
        if post.files:
            made.append(post)
    elif manifests:
        primary = _local(component, "primary", manifests)
        if not primary.files:
            # The values switch everything off; helm lint --strict wants a templates/ all the same.
            primary.files[_EMPTY_TEMPLATE] = (_EMPTY_TEXT, charts.MODE)
        made.append(primary)
    else:
        raise invalid(
            f"component {name!r} has nothing to install: "
            "no source, no manifests, no path and no tag",
            where=name,
            hint="give it a chart source or manifestFiles, or disable it with "
            f"--set {name}:enabled=false",
        )
    return made


def _local(component: Component, phase: str, manifests: Manifests) -> _Part:
    templates = charts.template_files(manifests, component=component.name)
    declared = charts.declared_namespaces(manifests, component=component.name)
    # Manifests are rendered already, so an injected chart has no use for the component's values,
    # and copying them would store its secrets a second time in the cluster.
    values: tuple[dict[str, Any], dict[str, Any]] | None = None
    if phase == "primary":
        values = (component.values, {})
    return _Part(phase, LOCAL_HELM, templates, declared, values)


def _chart(component: Component) -> _Part:
    """The primary of a component with a chart: a reference to it, or a chart around it."""
    both: tuple[dict[str, Any], dict[str, Any]] = (component.values, {})
    if component.dynamic:
        from aicr.bundle import dynamic

        both = dynamic.split(component.values, component.dynamic)
    owner = charts.owns_crds(component.ref, component.entry)
    files: Files = {}
    if owner:
        files[scripts.APPLY_CRDS] = (
            scripts.apply_crds_sh(
                component.name,
                component.namespace,
                local=component.vendored is not None,
                subcharts=charts.owns_subchart_crds(component.entry),
            ),
            scripts.MODE,
        )
    vendored = component.vendored
    if vendored is None:
        files["upstream.env"] = (charts.upstream_env(component.ref), charts.SECRET_MODE)
        return _Part("primary", UPSTREAM_HELM, files, values=both)
    files[f"charts/{vendored.tarball}"] = (vendored.content, charts.MODE)
    files[_EMPTY_TEMPLATE] = (_WRAPPER_TEXT, charts.MODE)
    files["Chart.yaml"] = (
        charts.wrapper_yaml(component.name, vendored.chart, vendored.version),
        charts.MODE,
    )
    static, deferred = ({vendored.chart: held} if held else {} for held in both)
    return _Part("primary", LOCAL_HELM, files, vendored.namespaces, (static, deferred))


def _gate(component: Component, plan: Plan) -> _Part:
    from aicr.bundle import readiness

    templates = readiness.gate(component, plan.options, plan.deployer)
    files: Files = {path: (text, charts.MODE) for path, text in templates.items()}
    return _Part("readiness", LOCAL_HELM, files, values=(readiness.gate_values(plan.options), {}))


def _folder(number: int, release: str, component: Component, part: _Part) -> Folder:
    if len(release) > MAX_RELEASE:
        raise invalid(
            f"release name {release!r} has {len(release)} characters; "
            f"helm allows at most {MAX_RELEASE}",
            where=component.name,
            hint="shorten the component's name",
        )
    files: Files = {
        "values.yaml": (charts.values_yaml(part.values), charts.MODE),
        "cluster-values.yaml": (charts.values_yaml(part.cluster_values), charts.MODE),
    }
    namespace, declared = component.namespace, part.namespaces
    crd_owner = scripts.APPLY_CRDS in part.files
    chart, repo, version = "", "", ""
    if part.kind == LOCAL_HELM:
        files["Chart.yaml"] = (charts.chart_yaml(release), charts.MODE)
        install = scripts.local_install_sh(
            release,
            namespace,
            create_namespace=not declared,
            owns_namespace=namespace in declared,
            crd_owner=crd_owner,
        )
    else:
        chart, repo, version = charts.chart_source(component.ref)
        install = scripts.upstream_install_sh(release, namespace)
    files[scripts.INSTALL] = (install, scripts.MODE)
    files.update(part.files)
    return Folder(
        dir=f"{number:03d}-{release}",
        release=release,
        parent=component.name,
        phase=part.phase,
        kind=part.kind,
        namespace=namespace,
        create_namespace=not declared,
        files=files,
        chart=chart,
        repo=repo,
        version=version,
        values=part.values,
        cluster_values=part.cluster_values,
        crd_owner=crd_owner,
        crd_subcharts=charts.owns_subchart_crds(component.entry),
        vendored=component.vendored if part.phase == "primary" else None,
    )


def _guard_component(component: Component) -> None:
    """Refuse names that cannot be folders, releases or namespaces (bundler spec 2.2)."""
    name, namespace = component.name, component.namespace
    if not has_subdomain_form(name):
        raise invalid(
            f"component name {name!r} is not safe as a folder and release name",
            where=name,
            hint="use lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
        )
    if name.endswith("-readiness"):
        raise invalid(
            f"component name {name!r} ends in '-readiness', which is kept for readiness gates",
            where=name,
            hint="rename the component",
        )
    if not namespace:
        raise invalid(
            f"component {name!r} has no namespace",
            where=name,
            hint="set namespace on the componentRef or in the registry",
        )
    if len(namespace) > MAX_NAMESPACE or not has_label_form(namespace):
        raise invalid(
            f"component {name!r} has the namespace {namespace!r}, which is no valid namespace name",
            where=name,
            hint=f"use lower-case letters, digits and '-', at most {MAX_NAMESPACE} characters",
        )
