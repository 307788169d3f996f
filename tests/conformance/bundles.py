"""One shape for a bundle, ours or the original's, below what the two lay out differently.

::

    order       component names in deployment order
    components  by name: chart, repo, version, namespace (or build), values, manifests by file name
    recipe      the recipe that the bundle carries
    data        files that were copied from --data
    applications  Argo CD files of the original

Folders, scripts, checksums and reports differ by design and are not in it (kit README, not comparable).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from tests.conformance.kit import Kit

from aicr.bundle.kustomize import TOOLS

_ESCAPED = '{{ "{{" }}'
_ASSIGNMENT = re.compile(r"^([A-Z]+)='(.*)'$", re.MULTILINE)
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
    if argocd:
        names = [path for path in files if path.endswith(("application.yaml", "app-of-apps.yaml"))]
        bundle["applications"] = dict.fromkeys(sorted(names), "Application")
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
    """The components of Argo CD's Applications in sync order; versions there lack their v."""
    found: dict[str, dict[str, Any]] = {}
    applications = [kit.load(file) for path, file in files.items() if "/application.y" in path]
    for application in sorted(applications, key=_wave):
        name, spec = application["metadata"]["name"], application["spec"]
        found[name] = {}
        namespace = spec["destination"]["namespace"]
        source = spec["source"] if "source" in spec else spec["sources"][0]
        repo = source["repoURL"] or ""
        if "chart" not in source:
            build = f"{repo}//{source['path']}?ref={source['targetRevision']}"
            found[name] = {"build": build, "namespace": namespace}
        elif repo:
            oci = repo.startswith("oci://")
            found[name] |= {
                "chart": f"{repo}/{source['chart']}" if oci else source["chart"],
                "repo": "" if oci else repo,
                "version": str(source["targetRevision"]),
                "namespace": namespace,
            }
    return found


def _wave(application: dict[str, Any]) -> int:
    return int(application["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])


def our_bundle(kit: Kit, folder: Path, *, argocd: bool) -> dict[str, Any]:
    """A bundle that we wrote, read from its files.

    Args:
        kit: reads YAML as the kit does.
        folder: the written bundle.
        argocd: bring it into what Argo CD bundles of the original show: versions without their v,
            and neither manifests nor recipe.
    """
    info = kit.comparer.load(folder / "bundle-info.yaml")
    components: dict[str, dict[str, Any]] = {}
    for release in info["layout"]["releases"]:
        place = folder / release["path"]
        component = components.setdefault(release["component"], {})
        component["namespace"] = release["namespace"]
        if release["name"] == release["component"]:
            component["values"] = kit.comparer.load(place / "values.yaml") or {}
            component |= _upstream(place / "upstream.env", argocd)
        _templates(kit, place / "templates", component)
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
        bundle["applications"] = {}
    else:
        bundle["recipe"] = kit.comparer.load(folder / "recipe.yaml")
    return bundle


def _upstream(file: Path, argocd: bool) -> dict[str, str]:
    if not file.is_file():
        return {}
    said = dict(_ASSIGNMENT.findall(file.read_text(encoding="utf-8")))
    version = said["VERSION"].removeprefix("v") if argocd else said["VERSION"]
    return {"chart": said["CHART"], "repo": said["REPO"], "version": version}


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
