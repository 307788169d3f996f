"""The bill of materials of a bundle or of the catalogue: components, charts, images.

```
bundle files ──┐ local charts: templates       ┐
               │ vendored charts: helm template ├─ image_scan, downloads ─> Bom ─> parts (CycloneDX)
catalogue ─────┤ other charts: values alone     │                            └──> page (bom_page)
               └ pinned charts, if asked for    ┘
```
A chart that is not at hand cannot be looked into, and that is said with each such component instead
of passing the list off as whole (decision 58). Every image carries the places it was found at.

It must not know how a bundle is deployed. Source: bundler spec 8; field cases L1, L3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

from aicr import yamlio
from aicr.artifacts import cyclonedx
from aicr.artifacts.images import Reference
from aicr.bundle import image_scan, info
from aicr.bundle.chart_render import Renderer, app_version
from aicr.bundle.downloads import Download, downloads, object_name
from aicr.errors import AicrError, invalid
from aicr.values import paths
from aicr.yamlio import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aicr.bundle.pinned_charts import PinnedCharts
    from aicr.catalog.catalog import Catalog

NAME: Final = "aicr"
YES: Final = "yes"
NOT_PULLED: Final = "no (not pulled)"
HELM: Final = "helm"
KUSTOMIZE: Final = "kustomize"
MANIFESTS: Final = "manifests"

#: Objects that have images installed which nobody can see in them.
_CATALOGUE_KINDS: Final = ("Subscription", "CatalogSource", "ClusterCatalog", "ClusterExtension")
_DEPTH_SHOWN: Final = 6
_END_SHOWN: Final = 3
_VALUES_FILES: Final = ("values.yaml", "cluster-values.yaml")
#: Fields of a component of a recipe that the bill shows.
_TEXTS: Final = ("type", "source", "chart", "version", "tag", "path")


@dataclasses.dataclass(slots=True)
class Entry:
    """One component of the bill.

    Attributes:
        name: component name.
        kind: ``HELM``, ``KUSTOMIZE`` or ``MANIFESTS``.
        repository, chart, version: the chart, "" where there is none.
        namespace: where it is installed.
        rendered: ``YES``, or "no" with the reason.
        images: image -> the places it was found at, in order.
        partial: places at which images are decided elsewhere: by the defaults of a chart of which
            only a tag or registry is changed, or by an operator catalogue.
        downloads: what its pods fetch when they start.
        other_versions: versions that overlays or mixins pin instead (catalogue only).
    """

    name: str
    kind: str
    repository: str = ""
    chart: str = ""
    version: str = ""
    namespace: str = ""
    rendered: str = YES
    images: dict[Reference, list[str]] = dataclasses.field(default_factory=dict)
    partial: list[str] = dataclasses.field(default_factory=list)
    downloads: list[Download] = dataclasses.field(default_factory=list)
    texts: set[Reference] = dataclasses.field(default_factory=set)
    other_versions: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Bom:
    """A whole bill: what it is of, and its components in order."""

    subject: str
    version: str
    entries: list[Entry]

    @property
    def images(self) -> list[Reference]:
        """Every image once, sorted."""
        return sorted({image for entry in self.entries for image in entry.images})

    @property
    def unrendered(self) -> list[Entry]:
        """Components whose charts could not be looked into."""
        return [entry for entry in self.entries if entry.rendered != YES]


def of_bundle(files: Mapping[str, bytes], renderer: Renderer | None, *, version: str) -> Bom:
    """The bill of a bundle.

    Args:
        files: its files by relative path.
        renderer: renders vendored charts; None leaves them unrendered.
        version: version of this program.

    Raises:
        AicrError: INVALID_REQUEST when it is no bundle, a file in it is no YAML, or an image
            descriptor is malformed.
    """
    if info.BUNDLE_INFO not in files or info.RECIPE not in files:
        missing = info.BUNDLE_INFO if info.BUNDLE_INFO not in files else info.RECIPE
        raise invalid(f"this is no bundle: it has no {missing}", hint="name a bundle's folder")
    about = info.read(_decoded(files, info.BUNDLE_INFO))
    refs = _refs(_decoded(files, info.RECIPE))
    entries: dict[str, Entry] = {}
    for release in about["layout"]["releases"]:
        name = release["component"]
        entry = entries.get(name)
        if entry is None:
            entry = entries[name] = _entry(name, refs.get(name, {}), release["namespace"])
        prefix = f"{release['path']}/"
        folder = {
            path.removeprefix(prefix): data
            for path, data in files.items()
            if path.startswith(prefix)
        }
        _add_folder(entry, release, folder, renderer)
    return Bom("bundle", version, list(entries.values()))


def of_catalog(catalog: Catalog, *, version: str, charts: PinnedCharts | None = None) -> Bom:
    """The bill of every component that recipes can pull, with its own values (bundler spec 8.1).

    Args:
        catalog: the registry and its files.
        version: version of this program.
        charts: renders the sources at their pins; without it only values and manifests are seen.

    Raises:
        AicrError: INVALID_REQUEST for a malformed image descriptor; what *charts* raises.
    """
    pins = _other_pins(catalog)
    entries = []
    for found in sorted(catalog.registry.entries, key=lambda item: item["name"]):
        name = found["name"]
        helm = found.get("helm") or {}
        kustomize = found.get("kustomize") or {}
        ref = {
            "name": name,
            "type": "Kustomize" if kustomize.get("defaultSource") else "Helm",
            "source": helm.get("defaultRepository") or kustomize.get("defaultSource"),
            "chart": (helm.get("defaultChart") or "").rpartition("/")[2],
            "version": helm.get("defaultVersion"),
            "tag": kustomize.get("defaultTag"),
            "path": kustomize.get("defaultPath"),
        }
        entry = _entry(name, ref, helm.get("defaultNamespace") or "")
        entry.other_versions = sorted(pins.get(name, set()) - {entry.version})
        path = f"components/{name}/values.yaml"
        values = catalog.tree.values(path) if catalog.tree.exists(path) else {}
        text = None
        if entry.kind != MANIFESTS:
            text = charts.render(ref, entry.namespace, values) if charts else None
            entry.rendered = NOT_PULLED if text is None else YES
        if text is None:
            _add_document(entry, values, path)
        else:
            _add_yaml(entry, text, f"chart of {name}", "")
        prefix = f"components/{name}/manifests/"
        for path in sorted(catalog.tree.paths()):
            if path.startswith(prefix) and path.endswith((".yaml", ".yml")):
                _add_template(entry, catalog.tree.read_text(path), path)
        entries.append(entry)
    return Bom("catalogue", version, entries)


def _other_pins(catalog: Catalog) -> dict[str, set[str]]:
    """Component -> versions that overlays and mixins pin."""
    found: dict[str, set[str]] = {}
    for document in (*catalog.overlays.values(), *catalog.mixins.values(), catalog.base):
        spec: Any = document.get("spec") or {}
        for ref in spec.get("componentRefs") or ():
            if ref.get("version"):
                found.setdefault(ref["name"], set()).add(str(ref["version"]))
    return found


def _refs(text: str) -> dict[str, dict[str, Any]]:
    """The components of a bundle's recipe by name; nothing of it is taken on trust."""
    recipe = yamlio.read_fast(text, source=info.RECIPE, mode="v3")
    refs = recipe.get("componentRefs") if isinstance(recipe, dict) else None
    if not isinstance(refs, list) or not all(map(_is_ref, refs)):
        raise invalid(
            "the bundle's recipe has no list of components with text in their fields",
            where=info.RECIPE,
            hint="aicr bundle writes this file: make the bundle again",
        )
    return {ref["name"]: ref for ref in refs}


def _is_ref(ref: Any) -> bool:
    return (
        isinstance(ref, dict)
        and isinstance(ref.get("name"), str)
        and all(isinstance(ref.get(key), str | None) for key in _TEXTS)
    )


def _entry(name: str, ref: Mapping[str, Any], namespace: str) -> Entry:
    source = ref.get("source") or ""
    if ref.get("type") == "Kustomize" or ref.get("tag") or ref.get("path"):
        return Entry(
            name,
            KUSTOMIZE,
            repository=source,
            chart=ref.get("path") or "",
            version=ref.get("tag") or "",
            namespace=namespace,
        )
    if not source:
        return Entry(name, MANIFESTS, namespace=namespace)
    chart = (ref.get("chart") or name).rpartition("/")[2]
    return Entry(name, HELM, source, chart, str(ref.get("version") or ""), namespace)


def _add_folder(
    entry: Entry, release: Mapping[str, Any], folder: Mapping[str, bytes], renderer: Renderer | None
) -> None:
    """Add what one release's folder shows."""
    place = release["path"]
    if "Chart.yaml" not in folder:
        entry.rendered = NOT_PULLED
        for path in _yaml_files(folder):
            _add_yaml(entry, _decoded(folder, path), f"{place}/{path}", "")
        return
    archives = [path for path in folder if path.startswith("charts/") and path.endswith(".tgz")]
    if not archives:
        for path in sorted(folder):
            if path.startswith("templates/"):
                # Our own charts hold rendered manifests, in which only "{{" was escaped.
                text = _decoded(folder, path).replace('{{ "{{" }}', "{{")
                _add_yaml(entry, text, f"{place}/{path}", "")
        return
    try:
        if renderer is None:
            raise invalid("rendering is switched off")
        text = renderer.render(release["name"], release["namespace"], folder)
    except AicrError as error:
        entry.rendered = f"no ({error.message})"
        version = app_version(folder[archives[0]])
        for path in _VALUES_FILES:
            if path in folder:
                _add_yaml(entry, _decoded(folder, path), f"{place}/{path}", version)
        return
    _add_yaml(entry, text, place, "")


def _yaml_files(folder: Mapping[str, bytes]) -> list[str]:
    """The values of a chart that is not here; where a deployer has no such file, all it wrote."""
    values = [path for path in _VALUES_FILES if path in folder]
    return values or sorted(path for path in folder if path.endswith((".yaml", ".yml")))


def _add_yaml(entry: Entry, text: str, source: str, version: str) -> None:
    for document in read.load_all(text, source=source):
        _add_document(entry, document, source, version)
        for inner in _embedded(document):
            _add_document(entry, inner, source, version)


def _embedded(node: Any) -> Iterator[Any]:
    """Values files inside of a document, as GitOps objects carry them."""
    if isinstance(node, dict):
        for key, value in node.items():
            if isinstance(value, str) and (key == "values" or key.endswith("values.yaml")):
                try:
                    inner = read.load(value, source=key)
                except AicrError:
                    continue
                if isinstance(inner, dict):
                    yield inner
            else:
                yield from _embedded(value)
    elif isinstance(node, list):
        for item in node:
            yield from _embedded(item)


def _add_document(entry: Entry, document: Any, source: str, version: str = "") -> None:
    place = object_name(document) or source
    found = image_scan.scan(document, source=source, app_version=version)
    for image in found.found:
        spot = f"{place}: {_short(image.path)}" if image.path else place
        places = entry.images.setdefault(image.reference, [])
        if spot not in places:
            places.append(spot)
        if image.form == image_scan.TEXT:
            entry.texts.add(image.reference)
    entry.partial += [f"{place}: {paths.join(list(path))}" for path in found.partial]
    if isinstance(document, dict) and document.get("kind") in _CATALOGUE_KINDS:
        entry.partial.append(f"{place}: an operator catalogue decides the images")
    entry.downloads += [
        item for item in downloads(document, where=place) if item not in entry.downloads
    ]


def _short(path: image_scan.Path) -> str:
    """A path for people: of the depths of a pod template, the end says enough."""
    if len(path) <= _DEPTH_SHOWN:
        return paths.join(list(path))
    start = len(path) - _END_SHOWN
    while isinstance(path[start], int):
        start -= 1
    return f"…{paths.join(list(path[start:]))}"


def _add_template(entry: Entry, text: str, source: str) -> None:
    """Add what a manifest of the catalogue shows, lines with template directives left out."""
    lines = [line for line in text.splitlines() if "{{" not in line and "}}" not in line]
    try:
        _add_yaml(entry, "\n".join(lines) + "\n", source, "")
        return
    except AicrError:
        # Without its directives the text need not be YAML; its image lines still are.
        pass
    for line in lines:
        key, colon, value = line.strip().removeprefix("- ").partition(":")
        if colon and image_scan.is_image_key(key.strip()):
            _add_document(entry, {key.strip(): value.strip().strip("\"'")}, source)


def _decoded(files: Mapping[str, bytes], path: str) -> str:
    return yamlio.decode(files[path], source=path)


def parts(bom: Bom) -> list[cyclonedx.Part]:
    """The bill as parts of a CycloneDX document: components, then images (bundler spec 8.2)."""
    made = []
    for entry in bom.entries:
        properties: dict[str, Any] = {"aicr:component:type": entry.kind}
        if entry.kind == HELM:
            properties |= {
                "aicr:helm:repository": entry.repository,
                "aicr:helm:chart": entry.chart,
                "aicr:version:pinned": "true" if entry.version else "false",
            }
            if entry.version:
                properties["aicr:helm:version"] = entry.version
        if entry.kind == KUSTOMIZE:
            properties |= {"aicr:kustomize:source": entry.repository}
            properties |= {"aicr:kustomize:path": entry.chart} if entry.chart else {}
        if entry.namespace:
            properties["aicr:helm:namespace"] = entry.namespace
        properties["aicr:rendered"] = entry.rendered
        if entry.rendered != YES:
            properties["aicr:render:warning"] = (
                "the chart was not looked into; images that its templates name are not listed"
            )
        made.append(
            cyclonedx.Part(
                cyclonedx.APPLICATION,
                f"{NAME}/{entry.name}",
                entry.name,
                version=entry.version,
                properties=properties,
                depends=[f"img:{image}" for image in entry.images],
            )
        )
    for image in bom.images:
        holders = [entry for entry in bom.entries if image in entry.images]
        found: dict[str, Any] = {
            "aicr:image:registry": image.registry,
            "aicr:image:repository": image.repository,
            "aicr:image:source": sorted(
                {place for entry in holders for place in entry.images[image]}
            ),
        }
        if image.tag:
            found["aicr:image:tag"] = image.tag
        if image.digest:
            found["aicr:image:digest"] = image.digest
        if image.floating:
            found["aicr:image:floating"] = image.floating
        made.append(
            cyclonedx.Part(
                cyclonedx.CONTAINER,
                f"img:{image}",
                f"{image.registry}/{image.repository}",
                version=image.digest or image.tag,
                purl=image.purl,
                properties=found,
            )
        )
    return made
