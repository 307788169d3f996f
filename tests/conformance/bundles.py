"""One shape for a bundle, ours or the original's, below what the two lay out differently.

::

    order       component names in deployment order; for Argo CD in the order of their sync waves
    components  by name: chart, repo, version, namespace (or build), values, manifests by file name
    recipe      the recipe that the bundle carries
    data        files that were copied from --data
    parent      Argo CD only: the app of apps, what it reads and where it goes
    notes       what the checks at bundle time warn of: component, missing flag, advice

Folders, scripts, checksums, reports, the second source of Applications and the numbers of their waves
differ by design and are not in it (kit README, not comparable). Manifests are in it for helm only,
because the original drops them for Argo CD.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from tests.conformance.kit import Kit

from aicr.bundle.kustomize import TOOLS

_ESCAPED = '{{ "{{" }}'
_NOTE = re.compile(
    r"(?:\bWarning: |\bwarning: )(\S+?):? (?:is enabled but )?(--\S+) is not set\. (.*?)\.?$"
)
_ASSIGNMENT = re.compile(r"^([A-Z]+)='(.*)'$", re.MULTILINE)
_OCI = "oci://"
#: Kind of the one object that stands for the output of a Kustomize build, named after its target.
BUILT = "KustomizeBuild"


def build_nothing(command: list[str], _: float) -> tuple[int, bytes, bytes]:
    """Stands in for the Kustomize tool: an object that names what was to be built."""
    assert tuple(command[1:-1]) in [words for _, words in TOOLS]
    built = {"apiVersion": "example.com/v1", "kind": BUILT, "metadata": {"name": command[-1]}}
    return 0, yaml.safe_dump(built).encode(), b""


def golden_files(index: dict[str, Any], case: dict[str, Any]) -> dict[str, str]:
    """Path in the original's bundle → kit file, of a base or of a variant of one."""
    if "base" not in case:
        return dict(case["files"])
    base = next(entry for entry in index["bases"] if entry["id"] == case["base"])
    files = {**base["files"], **case.get("changed", {}), **case.get("added", {})}
    return {path: file for path, file in files.items() if path not in case.get("removed", [])}


def golden_steps(kit: Kit, index: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """The steps of a base, or of a variant: those of its base but for what is listed."""
    steps: dict[str, Any] = {}
    if "base" in case:
        base = next(entry for entry in index["bases"] if entry["id"] == case["base"])
        steps |= kit.load(base["order"])
    return steps | (kit.load(case["order"]) if "order" in case else {})


def golden_stdout(index: dict[str, Any], case: dict[str, Any]) -> list[str]:
    """What the original printed; a variant keeps its base's output unless it has one of its own."""
    base = next((entry for entry in index["bases"] if entry["id"] == case.get("base")), case)
    return list(case.get("stdout", base.get("stdout", ())))


def notes(lines: list[str]) -> list[list[str]]:
    """The warnings about flags that are not set, in the words that both have."""
    return [list(found.groups()) for line in lines if (found := _NOTE.search(line))]


def golden_bundle(kit: Kit, index: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """A bundle of the original."""
    files = golden_files(index, case)
    steps = golden_steps(kit, index, case)
    argocd = "syncWaves" in steps
    components = _applications(kit, files) if argocd else _releases(steps)
    for path, file in sorted(files.items()):
        name, _, rest = path.partition("/")
        if rest == "values.yaml":
            components[name]["values"] = kit.load(file) or {}
        elif rest.startswith("manifests/"):
            manifests = components[name].setdefault("manifests", {})
            manifests[rest.removeprefix("manifests/")] = documents(kit, kit.text(file))
    bundle: dict[str, Any] = {
        "order": [*components],
        "components": components,
        "data": sorted(path for path in files if path.startswith("data/")),
    }
    if "recipe.yaml" in files:
        bundle["recipe"] = kit.load(files["recipe.yaml"])
    bundle["notes"] = notes(golden_stdout(index, case))
    if argocd:
        bundle["parent"] = _parent(kit.load(files["app-of-apps.yaml"]))
    return bundle


def _releases(steps: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The components of deploy.sh, in order."""
    built = [step["release"] for step in steps["undeploy"] if step["do"] == "kustomize"]
    found: dict[str, dict[str, Any]] = {}
    for step in steps["deploy"]:
        if step["do"] == "helm":
            found.setdefault(step["release"], {}).update(
                chart=step["chart"],
                repo=step.get("repo", ""),
                version=str(step.get("version", "")),
                namespace=step.get("namespace", ""),
            )
        elif step["do"] in ("kustomize", "other"):
            found[built.pop()] = {
                "build": step.get("build", ""),
                "namespace": step.get("namespace", ""),
            }
        elif "component" in step:
            found.setdefault(step["component"], {})
    return found


def _applications(kit: Kit, files: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The components of the original's Applications in sync order."""
    applications = [kit.load(file) for path, file in files.items() if "/application.y" in path]
    return {
        application["metadata"]["name"]: _charted(application)
        for application in sorted(applications, key=_wave)
    }


def _charted(application: dict[str, Any]) -> dict[str, Any]:
    """Chart, repo, version and namespace of an Application; nothing where it has no chart.

    A registry may be written with its scheme or without (field case F7).
    """
    spec = application["spec"]
    namespace = spec["destination"]["namespace"]
    source = spec["source"] if "source" in spec else spec["sources"][0]
    repo, version = source["repoURL"] or "", str(source["targetRevision"])
    if "chart" not in source:
        built = f"{repo}//{source['path']}?ref={version}"
        return {"build": built, "namespace": namespace}
    if not repo:
        return {}
    chart = source["chart"]
    if not repo.startswith(("https://", "http://")):
        repo, chart = "", f"{_OCI}{repo.removeprefix(_OCI)}/{chart}"
    return {"chart": chart, "repo": repo, "version": version, "namespace": namespace}


def _wave(application: dict[str, Any]) -> int:
    return int(application["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])


def _parent(application: dict[str, Any]) -> dict[str, Any]:
    """What the app of apps is called, what it reads and where it goes."""
    metadata, spec = application["metadata"], application["spec"]
    return {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        **{key: spec[key] for key in ("project", "source", "destination")},
    }


def our_bundle(kit: Kit, folder: Path, *, argocd: bool) -> dict[str, Any]:
    """A bundle that we wrote, read from its files.

    Args:
        kit: reads YAML as the kit does.
        folder: the written bundle.
        argocd: whether it is one of Applications; see the module's docstring for what differs.
    """
    info = kit.comparer.load(folder / "bundle-info.yaml")
    components: dict[str, dict[str, Any]] = {}
    for release in info["layout"]["releases"]:
        place = folder / release["path"]
        component = components.setdefault(release["component"], {})
        if release["name"] == release["component"]:
            component["namespace"] = release["namespace"]
            values = place / "values.yaml"
            component["values"] = kit.comparer.load(values) or {}
            if argocd:
                component |= _child(kit.comparer.load(place / "application.yaml"))
            else:
                component |= _upstream(place / "upstream.env")
        _templates(kit, place / "templates", component)
    for component in components.values():
        if argocd:
            component.pop("manifests", None)
        if not {"chart", "build"} & component.keys():
            # What only has manifests is applied as they say: there is no namespace to compare.
            del component["namespace"]
    data = folder / "data"
    bundle: dict[str, Any] = {
        "order": [*components],
        "components": components,
        "data": sorted(str(p.relative_to(folder)) for p in data.rglob("*") if p.is_file()),
    }
    if argocd:
        waves = our_waves(kit, folder)
        bundle["order"].sort(key=lambda name: waves[name][0])
        bundle["parent"] = _parent(kit.comparer.load(folder / "app-of-apps.yaml"))
    else:
        bundle["recipe"] = kit.comparer.load(folder / "recipe.yaml")
    return bundle


def our_waves(kit: Kit, folder: Path) -> dict[str, list[int]]:
    """The sync waves of each component's Applications, in the order of their folders."""
    found: dict[str, list[int]] = {}
    for release in kit.comparer.load(folder / "bundle-info.yaml")["layout"]["releases"]:
        application = kit.comparer.load(folder / release["manifest"])
        assert application["spec"]["destination"]["namespace"] == release["namespace"]
        found.setdefault(release["component"], []).append(_wave(application))
    return found


def _child(application: dict[str, Any]) -> dict[str, Any]:
    """An Application of ours with a chart; one of a folder of the bundle says nothing more."""
    sources = application["spec"].get("sources") or [application["spec"]["source"]]
    return _charted(application) if "chart" in sources[0] else {}


def _upstream(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    said = dict(_ASSIGNMENT.findall(file.read_text(encoding="utf-8")))
    return {"chart": said["CHART"], "repo": said["REPO"], "version": said["VERSION"]}


def _templates(kit: Kit, folder: Path, component: dict[str, Any]) -> None:
    for file in sorted(folder.glob("*")):
        found = documents(kit, file.read_text(encoding="utf-8").replace(_ESCAPED, "{{"))
        if found and found[0]["kind"] == BUILT:
            component["build"] = found[0]["metadata"]["name"]
        else:
            component.setdefault("manifests", {})[file.name] = found


def documents(kit: Kit, text: str) -> list[Any]:
    """All documents of a manifest as a list, also when there is one."""
    loaded = kit.comparer.loads(text)
    return loaded if isinstance(loaded, list) else [loaded]
