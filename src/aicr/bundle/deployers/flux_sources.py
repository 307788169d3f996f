"""Where Flux gets charts from: repositories, registries, and the bundle itself.

```
https://charts.example/x        HelmRepository   sources/helmrepo-*.yaml, chart by name and version
oci://registry/charts/x 1+b     OCIRepository    sources/ocirepo-*.yaml, tag 1_b, chartRef
chart in a bundle in Git        GitRepository    sources/gitrepo-*.yaml, chart by path
chart in a bundle in a registry ArtifactGenerator, cuts the folder out of the bundle's OCIRepository
```
It must not know the order of releases. Source: bundler spec 1.5, 5.5; field case F7.
"""

from __future__ import annotations

from aicr.bundle import charts, layout
from aicr.bundle.deployers import gitops
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions

_API: Final = "source.toolkit.fluxcd.io/v1"
_GENERATOR_API: Final = "source.extensions.fluxcd.io/v1beta1"
_INTERVAL: Final = "5m"
_SOURCE_INTERVAL: Final = "10m"
#: The layer of an OCI artifact that is a chart; Flux hands it on as it is.
_CHART_LAYER: Final = {
    "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
    "operation": "copy",
}
#: Alias of the bundle in an ArtifactGenerator.
_BUNDLE: Final = "bundle"


class Sources:
    """The sources of a bundle.

    Attributes:
        documents: source objects by path in the bundle.
        repository: where the bundle itself lies.
        published: whether that is an OCI artifact.
    """

    __slots__ = ("_git", "_oci_names", "_options", "documents", "published", "repository")

    def __init__(
        self, folders: list[Folder], options: BundleOptions, repository: gitops.Repository
    ) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.repository = repository
        self.published = bool(options.oci_reference)
        self._options = options
        self._git = ""
        self._oci_names = _oci_names(folders)
        taken: dict[str, str] = {}
        for folder in folders:
            if folder.kind != layout.UPSTREAM_HELM:
                if not self.published:
                    self._add_git()
            elif folder.repo:
                self._add("helmrepo", source_name(folder.repo), folder.repo, taken)
            else:
                self._add_oci(folder)

    def chart(self, folder: Folder) -> dict[str, Any]:
        """`chart` or `chartRef` of a HelmRelease spec."""
        if self.is_generated(folder):
            reference = {"kind": "ExternalArtifact", "name": _artifact(folder)}
            return {"chartRef": {**reference, "namespace": self._namespace}}
        if folder.kind != layout.UPSTREAM_HELM:
            chart = {
                "chart": f"./{folder.dir}",
                "interval": _INTERVAL,
                # The version of a chart in the bundle never moves, so its content has to count.
                "reconcileStrategy": "Revision",
            }
            return {
                "chart": {"spec": {**chart, "sourceRef": self._ref("GitRepository", self._git)}}
            }
        if not folder.repo:
            name = self._oci_names[folder.chart, folder.version]
            return {"chartRef": self._ref("OCIRepository", name)}
        chart = {"chart": folder.chart}
        if folder.version:
            chart["version"] = folder.version.removeprefix("v")
        reference = self._ref("HelmRepository", source_name(folder.repo))
        return {"chart": {"spec": {**chart, "interval": _INTERVAL, "sourceRef": reference}}}

    def is_generated(self, folder: Folder) -> bool:
        """Whether the folder's chart is cut out of the published bundle."""
        return self.published and folder.kind != layout.UPSTREAM_HELM

    def artifact_generator(self, folder: Folder) -> dict[str, Any]:
        """The object that makes a chart of one folder of the bundle.

        The chart keeps a folder around it, because helm wants its archives so.
        """
        copy = {"from": f"@{_BUNDLE}/{folder.dir}/**", "to": f"@artifact/{folder.release}/"}
        return {
            "apiVersion": _GENERATOR_API,
            "kind": "ArtifactGenerator",
            "metadata": {"name": _artifact(folder), "namespace": self._namespace},
            "spec": {
                "sources": [
                    {
                        "alias": _BUNDLE,
                        "kind": "OCIRepository",
                        "name": self._options.flux_oci_source_name,
                    }
                ],
                "artifacts": [{"name": _artifact(folder), "copy": [copy]}],
            },
        }

    @property
    def _namespace(self) -> str:
        return self._options.flux_namespace

    def _ref(self, kind: str, name: str) -> dict[str, str]:
        return {"kind": kind, "name": name, "namespace": self._namespace}

    def _add(self, prefix: str, name: str, url: str, taken: dict[str, str]) -> None:
        if taken.setdefault(name, url) != url:
            raise invalid(
                f"the chart repositories {taken[name]!r} and {url!r} would both be the Flux source "
                f"{name!r}",
                where=url,
                hint="use one spelling of the address for all components",
            )
        self.documents[f"sources/{prefix}-{name}.yaml"] = self._source(
            "HelmRepository", name, {"url": url}
        )

    def _add_oci(self, folder: Folder) -> None:
        name = self._oci_names[folder.chart, folder.version]
        reference = (
            {"tag": gitops.version_tag(folder.version)} if folder.version else {"semver": "*"}
        )
        self.documents[f"sources/ocirepo-{name}.yaml"] = self._source(
            "OCIRepository",
            name,
            {"url": folder.chart, "ref": reference, "layerSelector": _CHART_LAYER},
        )

    def _add_git(self) -> None:
        url = gitops.as_url(self.repository.url)
        if self.repository.is_oci:
            raise invalid(
                f"the bundle holds charts of its own, which Flux cannot read from --repo {url}",
                where="--repo",
                hint="name a Git repository, or write the bundle with --output oci://…",
            )
        self._git = source_name(url)
        self.documents[f"sources/gitrepo-{self._git}.yaml"] = self._source(
            "GitRepository",
            self._git,
            {"url": url, "ref": gitops.git_reference(self.repository.revision)},
        )

    def _source(self, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": _API,
            "kind": kind,
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {"interval": _SOURCE_INTERVAL, **spec},
        }


def source_name(url: str) -> str:
    """Name of the source for an address: lower case, without scheme and `.git`, at most 63
    characters (bundler spec 5.5)."""
    plain = url.partition("://")[2].rstrip("/").removesuffix(".git").lower()
    return gitops.fitted(charts.source_alias(plain), gitops.MAX_LABEL)


def _oci_names(folders: list[Folder]) -> dict[tuple[str, str], str]:
    """Names of the OCIRepositories by (chart reference, version).

    The version is in the name only where one chart is used in several, so that an ordinary upgrade
    changes the object instead of replacing it.
    """
    pairs = {
        (folder.chart, folder.version)
        for folder in folders
        if folder.kind == layout.UPSTREAM_HELM and not folder.repo
    }
    charts = [chart for chart, _ in pairs]
    made: dict[tuple[str, str], str] = {}
    taken: dict[str, str] = {}
    for chart, version in sorted(pairs):
        written = f"{chart}-{version}" if charts.count(chart) > 1 else chart
        name = source_name(written)
        if name in taken:
            raise invalid(
                f"the charts {taken[name]!r} and {written!r} would both be the Flux source {name!r}",
                where=chart,
                hint="use one spelling of the address for all components",
            )
        taken[name] = written
        made[chart, version] = name
    return made


def _artifact(folder: Folder) -> str:
    return f"{folder.release}-chart"
