"""Reads a written bundle back: which release comes surely after which others.

Nothing here looks at the plan or calls a deployer: the files are read as the deployment tool reads
them, so the order that is found is the order that will be followed. `before` gives, for each
release, every release that has to be up first; `expected` gives what the recipe asks for.

A deployer is added with a function that gives direct edges, and its line in ``READERS``.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, cast

from tests import tools

from aicr.catalog import dependencies
from aicr.yamlio import read

Edges = dict[str, set[str]]

WAVE: Final = "argocd.argoproj.io/sync-wave"


def document(path: Path) -> Any:
    """The one YAML document of a file."""
    return read.load(path.read_text(encoding="utf-8"), source=str(path))


def before(bundle: Path) -> Edges:
    """For each release, all releases that the tool deploys before it."""
    deployer = document(bundle / "bundle-info.yaml")["build"]["deployer"]
    return closure(READERS[deployer](bundle))


def expected(bundle: Path, refs: Iterable[Any] | None = None) -> Edges:
    """For each release, all releases that the recipe puts before it.

    Args:
        bundle: a written bundle.
        refs: the componentRefs that the order comes from; those of the bundle's recipe by default.
    """
    owners: dict[str, list[str]] = {}
    for release in document(bundle / "bundle-info.yaml")["layout"]["releases"]:
        owners.setdefault(release["component"], []).append(release["name"])
    listed = list(refs) if refs is not None else document(bundle / "recipe.yaml")["componentRefs"]
    graph = dependencies.effective_dependencies(cast("Any", listed))
    edges: Edges = {}
    for component, names in owners.items():
        for index, name in enumerate(names):
            others = {other for needed in graph[component] for other in owners[needed]}
            edges[name] = others.union(names[:index])
    return closure(edges)


def releases(bundle: Path) -> list[str]:
    """Names of the releases in the order of their folders, as bundle-info.yaml has them."""
    listed = document(bundle / "bundle-info.yaml")["layout"]["releases"]
    return [release["name"] for release in listed]


def closure(edges: Edges) -> Edges:
    """The transitive closure; a circle would make a release come before itself."""
    found: Edges = {}

    def reach(name: str, trail: tuple[str, ...]) -> set[str]:
        assert name not in trail, f"circle: {' -> '.join((*trail, name))}"
        if name not in found:
            direct = edges[name]
            found[name] = direct.union(*(reach(each, (*trail, name)) for each in direct))
        return found[name]

    for name in edges:
        reach(name, ())
    return found


def staged(stages: dict[str, int]) -> Edges:
    """Edges of releases that come in numbered stages: each waits for all of lower ones."""
    return {
        name: {other for other, number in stages.items() if number < stage}
        for name, stage in stages.items()
    }


def chained(names: Iterable[str]) -> Edges:
    """Edges of releases that come one after another."""
    edges: Edges = {}
    for name in names:
        edges[name] = {list(edges)[-1]} if edges else set()
    return edges


def helm_edges(bundle: Path) -> Edges:
    """deploy.sh goes through the folders in the order of a shell glob."""
    return chained(folder.name[4:] for folder in sorted(bundle.glob("[0-9][0-9][0-9]-*/")))


def argocd_waves(bundle: Path) -> dict[str, int]:
    """Sync-wave by release, from the Applications that the parent's include pattern finds."""
    return {
        path.parent.name[4:]: int(document(path)["metadata"]["annotations"][WAVE])
        for path in bundle.glob("*/application.yaml")
    }


def argocd_helm_waves(bundle: Path) -> dict[str, int]:
    """Sync-wave by release, from what helm renders of the chart."""
    return {
        item["spec"]["source"]["helm"]["releaseName"]: int(item["metadata"]["annotations"][WAVE])
        for item in rendered(bundle, "--set", "deployer.includeRootApp=false")
    }


def flux_edges(bundle: Path) -> Edges:
    """dependsOn of every HelmRelease in the kustomization."""
    edges: Edges = {}
    for path in document(bundle / "kustomization.yaml")["resources"]:
        item = document(bundle / path)
        if item["kind"] == "HelmRelease":
            needed = {each["name"] for each in item["spec"].get("dependsOn", ())}
            edges[item["metadata"]["name"]] = needed
    return edges


def fleet_edges(bundle: Path) -> Edges:
    """dependsOn of the Bundles, by the release that each installs."""
    if (bundle / "helmops.yaml").exists():
        text = (bundle / "helmops.yaml").read_text(encoding="utf-8")
        items = [
            (item["metadata"]["name"], item["spec"])
            for item in read.load_all(text, source="helmops.yaml")
        ]
    else:
        paths = document(bundle / "gitrepo.yaml")["spec"]["paths"]
        loaded = [document(bundle / path / "fleet.yaml") for path in paths]
        items = [(item["name"], item) for item in loaded]
    release_of = {name: spec["helm"]["releaseName"] for name, spec in items}
    return {
        release_of[name]: {release_of[each["name"]] for each in spec.get("dependsOn", ())}
        for name, spec in items
    }


def chain_edges(deployer: str) -> Callable[[Path], Edges]:
    """The reader of a deployer that ``chain_parsers`` parses."""

    def edges(bundle: Path) -> Edges:
        from tests.deployers.chain_parsers import PARSERS

        files = {
            path.relative_to(bundle).as_posix(): (path.read_bytes(), 0o644)
            for path in bundle.rglob("*")
            if path.is_file()
        }
        return PARSERS[deployer](files).waits

    return edges


READERS: Final[dict[str, Callable[[Path], Edges]]] = {
    "argocd": lambda bundle: staged(argocd_waves(bundle)),
    "argocd-helm": lambda bundle: staged(argocd_helm_waves(bundle)),
    "fleet": fleet_edges,
    "flux": flux_edges,
    "helm": helm_edges,
    "helmfile": chain_edges("helmfile"),
    "terraform": chain_edges("terraform"),
}


def run_helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real helm with a home of its own and no cluster."""
    with tempfile.TemporaryDirectory() as home:
        folders = {f"HELM_{kind}_HOME": f"{home}/{kind}" for kind in ("CACHE", "CONFIG", "DATA")}
        return subprocess.run(
            [tools.helm(), *arguments],
            env={"PATH": os.environ["PATH"], "HOME": home, **folders},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def rendered(chart: Path, *arguments: str) -> list[dict[str, Any]]:
    """The objects that helm renders of a chart; the chart counts as published."""
    published = ("--set", "repoURL=oci://registry.example/team")
    done = run_helm("template", "stack", str(chart), *published, *arguments)
    assert done.returncode == 0, done.stderr
    text = re.sub(r"(?m)^# Source: .*$", "", done.stdout)
    found: list[dict[str, Any]] = read.load_all(text, source="helm template")
    return found
