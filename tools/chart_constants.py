"""What our code, manifests and health checks rely on in upstream charts, and what is pinned.

```
scripts, constants, recipes/*/manifests, recipes/checks --constants()--> [Constant]
registry, base overlay                                  --pins()------> {component: Pin}
```
It must not know: what a chart really renders, nor the file in which that is recorded; see
`record_chart_facts`. Source: requirements V-428, V-429.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aicr.bundle import crd_groups, dra, readiness
from aicr.bundle.charts import values_yaml
from aicr.bundle.deployers import helm_install
from aicr.catalog.catalog import Catalog
from aicr.recipe.hydrate import resolve_values
from aicr.yamlio import read

TOP: Final = Path(__file__).resolve().parent.parent

CUSTOM: Final = "customResources"
TAINTS: Final = "taints"
SELECTORS: Final = "selectors"
DAEMON_SETS: Final = "daemonSets"
RUNTIME: Final = "runtime"

_MANIFEST_TYPE: Final = re.compile(r"^apiVersion: ([\w.-]+)/(\w+)\nkind: (\w+)$", re.MULTILINE)


class RecordError(Exception):
    """Why nothing was recorded, in words for the person at the terminal."""


@dataclass(frozen=True)
class Pin:
    """Which chart a component has, and the digest of the values that the base overlay gives it."""

    component: str
    chart: str
    version: str
    namespace: str
    values: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the values file."""
        return "sha256:" + hashlib.sha256(self.values).hexdigest()


@dataclass(frozen=True)
class Constant:
    """A fact about a chart that we rely on.

    Attributes:
        component: whose chart. fact: which list of the record. place: where it is used.
        value: for ``customResources`` the fields that we rely on, for ``selectors`` an object's name and
        labels, for ``daemonSets`` how its name ends, for ``runtime`` a name and text, else the text.
    """

    component: str
    fact: str
    place: str
    value: Any


def constants(top: Path = TOP) -> list[Constant]:
    """Every constant in code, manifests and health checks that a chart of the record defines.

    Raises:
        RecordError: a script no longer holds what is looked for, so this table is out of date.
    """
    gpu, driver, nodewright = dra.OPERATOR, dra.DRIVER, crd_groups.NODEWRIGHT
    shared_resource, _, shared_group = crd_groups.SHARED_CRD.partition(".")
    shared = {"group": shared_group, "resource": shared_resource}
    suffix = _in_script(r"grep -e '(-[a-z-]+)\$'")
    state = _in_script(r"\.metadata\.labels\.(nvidia\\\.com/[a-z-]+)").replace("\\", "")
    done = _in_script(r'\$2 != "([a-z-]+)"')
    install = "aicr.bundle.deployers.helm_install:INSTALL"
    argocd = "aicr.bundle.crd_groups:SHARED_CRD"
    policies = {"group": readiness._NIC_GROUP, "resource": "nicclusterpolicies"}
    return [
        *(
            Constant(name, CUSTOM, "aicr.bundle.crd_groups:CRD_GROUPS", {"group": group})
            for name, groups in crd_groups.CRD_GROUPS.items()
            for group in groups
        ),
        *_manifest_constants(top),
        *_check_constants(top),
        Constant(driver, CUSTOM, argocd, shared),
        Constant(gpu, CUSTOM, argocd, shared),
        Constant("network-operator", CUSTOM, "aicr.bundle.readiness:_NIC_GROUP", policies),
        Constant(
            nodewright,
            TAINTS,
            "aicr.bundle.crd_groups:NODEWRIGHT_TAINT",
            crd_groups.NODEWRIGHT_TAINT,
        ),
        Constant(driver, DAEMON_SETS, install, suffix),
        Constant(gpu, RUNTIME, install, {"driverUpgradeLabel": state}),
        Constant(gpu, RUNTIME, install, {"driverUpgradeDone": done}),
        Constant(gpu, RUNTIME, "aicr.bundle.dra:EVICTION_ENV", {"evictionEnv": dra.EVICTION_ENV}),
        Constant(driver, RUNTIME, "aicr.bundle.dra:DEFAULT_KEY", {"pluginLabel": dra.DEFAULT_KEY}),
    ]


def _in_script(pattern: str) -> str:
    found = set(re.findall(pattern, helm_install.INSTALL))
    if len(found) != 1:
        raise RecordError(f"helm_install.INSTALL holds {sorted(found)} for {pattern!r}, not one")
    return str(found.pop())


def _manifest_constants(top: Path) -> Iterator[Constant]:
    for path in sorted((top / "recipes" / "components").glob("*/manifests/*.yaml")):
        place = path.relative_to(top).as_posix()
        for group, version, kind in _MANIFEST_TYPE.findall(path.read_text(encoding="utf-8")):
            yield from _custom(place, {"group": group, "version": version, "kind": kind})


def _check_constants(top: Path) -> Iterator[Constant]:
    """What health checks ask a cluster for: kinds, CRDs, the operator's labels, the plugin's name."""
    for path in sorted((top / "recipes" / "checks").glob("*/health-check.yaml")):
        place, name = path.relative_to(top).as_posix(), path.parent.name
        document = read.load(path.read_text(encoding="utf-8"), source=place)
        asked = list(_resources(document))
        for item in asked:
            group, _, version = item["apiVersion"].rpartition("/")
            kind = item["kind"]
            if kind == "CustomResourceDefinition":
                resource, _, group = item["metadata"]["name"].partition(".")
                yield from _custom(place, {"group": group, "resource": resource}, asked_by=name)
            else:
                fields = {"group": group, "version": version, "kind": kind}
                yield from _custom(place, fields, asked_by=name)
        if name in (crd_groups.NODEWRIGHT, dra.DRIVER):
            yield from _names(name, place, asked)


def _custom(place: str, fields: dict[str, str], *, asked_by: str = "") -> Iterator[Constant]:
    """A custom resource, for the charts that bring its group: the asking component's own, else all."""
    owners = [name for name, held in crd_groups.CRD_GROUPS.items() if fields["group"] in held]
    for owner in [asked_by] if asked_by in owners else owners:
        yield Constant(owner, CUSTOM, place, fields)


def _names(component: str, place: str, asked: list[dict[str, Any]]) -> Iterator[Constant]:
    labels: dict[str, str] = {}
    for item in asked:
        if item["kind"] == "Pod":
            labels |= item["metadata"].get("labels") or {}
    for item in asked:
        if item["kind"] == "DaemonSet":
            yield Constant(component, DAEMON_SETS, place, item["metadata"]["name"])
        elif item["kind"] == "Deployment" and labels and "name" in item["metadata"]:
            value = {"name": item["metadata"]["name"], "labels": labels}
            yield Constant(component, SELECTORS, place, value)


def _resources(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if isinstance(node.get("resource"), dict):
            yield node["resource"]
        for held in node.values():
            yield from _resources(held)
    elif isinstance(node, list):
        for held in node:
            yield from _resources(held)


def pins(catalog: Catalog | None = None) -> dict[str, Pin]:
    """Component -> its pin, for every component of the registry that has a pinned chart."""
    catalog = catalog or Catalog.builtin()
    refs = {ref["name"]: ref for ref in catalog.base["spec"]["componentRefs"]}
    found = {}
    for entry in catalog.registry.entries:
        helm = entry.get("helm") or {}
        if not helm.get("defaultVersion"):
            continue
        name = entry["name"]
        values = resolve_values(refs.get(name) or {"name": name}, catalog.tree)
        found[name] = Pin(
            component=name,
            chart=helm["defaultChart"].rpartition("/")[2],
            version=helm["defaultVersion"],
            namespace=helm.get("defaultNamespace") or name,
            values=values_yaml(values),
        )
    return found
