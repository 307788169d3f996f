"""The fields that Argo CD, Flux and Fleet publish for the objects we write, as far as we use them.

A shape is a type, a list of one shape, a tuple of alternatives, or a map of fields: `name?` may be
missing, `*` allows any other key. `problems` names every place where an object does not fit: an
unknown field is one, since the API server would drop or refuse it.

Sources: the CRDs argoproj.io/v1alpha1 (Argo CD 3), helm.toolkit.fluxcd.io/v2,
source.toolkit.fluxcd.io/v1 and source.extensions.fluxcd.io/v1beta1 (Flux 2.7),
fleet.cattle.io/v1alpha1 and the reference of fleet.yaml (Fleet 0.14).
"""

from __future__ import annotations

from typing import Any, Final

TEXT: Final = str
ANY: Final = object
MAP: Final[dict[str, Any]] = {"*": ANY}
LABELS: Final[dict[str, Any]] = {"*": TEXT}
METADATA: Final[dict[str, Any]] = {
    "name": TEXT,
    "namespace": TEXT,
    "annotations?": LABELS,
    "labels?": LABELS,
    "finalizers?": [TEXT],
}

_ARGO_HELM: Final[dict[str, Any]] = {
    "releaseName?": TEXT,
    "valueFiles?": [TEXT],
    "values?": TEXT,
    "valuesObject?": MAP,
}
_ARGO_SOURCE: Final[dict[str, Any]] = {
    "repoURL": TEXT,
    "targetRevision": TEXT,
    "chart?": TEXT,
    "path?": TEXT,
    "ref?": TEXT,
    "helm?": _ARGO_HELM,
    "directory?": {"recurse": bool, "include": TEXT},
}
_APPLICATION: Final[dict[str, Any]] = {
    "project": TEXT,
    "source?": _ARGO_SOURCE,
    "sources?": [_ARGO_SOURCE],
    "destination": {"server": TEXT, "namespace": TEXT},
    "syncPolicy": {
        "automated": {"prune": bool, "selfHeal": bool},
        "syncOptions?": [TEXT],
        "retry?": {
            "limit": int,
            "backoff": {"duration": TEXT, "factor": int, "maxDuration": TEXT},
        },
    },
    "ignoreDifferences?": [
        {
            "group": TEXT,
            "kind": TEXT,
            "name?": TEXT,
            "jsonPointers?": [TEXT],
            "jqPathExpressions?": [TEXT],
        }
    ],
}
_SOURCE_REF: Final[dict[str, Any]] = {"kind": TEXT, "name": TEXT, "namespace": TEXT}
_HELM_RELEASE: Final[dict[str, Any]] = {
    "interval": TEXT,
    "releaseName": TEXT,
    "targetNamespace": TEXT,
    "timeout?": TEXT,
    "dependsOn?": [{"name": TEXT}],
    "chart?": {
        "spec": {
            "chart": TEXT,
            "version?": TEXT,
            "interval": TEXT,
            "reconcileStrategy?": TEXT,
            "sourceRef": _SOURCE_REF,
        }
    },
    "chartRef?": _SOURCE_REF,
    "install": {
        "createNamespace?": bool,
        "crds?": TEXT,
        "remediation": {"retries": int},
    },
    "upgrade": {"crds?": TEXT, "remediation": {"retries": int}},
    "valuesFrom?": [{"kind": TEXT, "name": TEXT}],
    "values?": MAP,
}
_TARGETS: Final[list[Any]] = [({"clusterName": TEXT}, {"clusterSelector": {"matchLabels": LABELS}})]
_FLEET_HELM: Final[dict[str, Any]] = {
    "releaseName": TEXT,
    "repo?": TEXT,
    "chart?": TEXT,
    "version?": TEXT,
    "valuesFiles?": [TEXT],
    "values?": MAP,
    "disablePreProcess": bool,
    "takeOwnership?": bool,
    "timeoutSeconds?": int,
}
_FLEET_DIFF: Final[dict[str, Any]] = {
    "comparePatches": [
        {"apiVersion": TEXT, "kind": TEXT, "name?": TEXT, "jsonPointers": [TEXT]},
    ]
}
#: fleet.yaml is no object of the cluster and has no kind.
FLEET_YAML: Final[dict[str, Any]] = {
    "name": TEXT,
    "defaultNamespace": TEXT,
    "labels": LABELS,
    "helm": _FLEET_HELM,
    "diff?": _FLEET_DIFF,
    "dependsOn?": [{"name": TEXT}],
}

#: Spec of each (apiVersion, kind).
SPECS: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("argoproj.io/v1alpha1", "Application"): _APPLICATION,
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease"): _HELM_RELEASE,
    ("source.toolkit.fluxcd.io/v1", "HelmRepository"): {"interval": TEXT, "url": TEXT},
    ("source.toolkit.fluxcd.io/v1", "GitRepository"): {
        "interval": TEXT,
        "url": TEXT,
        "ref": ({"branch": TEXT}, {"commit": TEXT}, {"name": TEXT}),
    },
    ("source.toolkit.fluxcd.io/v1", "OCIRepository"): {
        "interval": TEXT,
        "url": TEXT,
        "ref": ({"tag": TEXT}, {"semver": TEXT}),
        "layerSelector": {"mediaType": TEXT, "operation": TEXT},
    },
    ("source.extensions.fluxcd.io/v1beta1", "ArtifactGenerator"): {
        "sources": [{"alias": TEXT, "kind": TEXT, "name": TEXT}],
        "artifacts": [{"name": TEXT, "copy": [{"from": TEXT, "to": TEXT}]}],
    },
    ("fleet.cattle.io/v1alpha1", "GitRepo"): {
        "repo": TEXT,
        "branch?": TEXT,
        "revision?": TEXT,
        "paths": [TEXT],
        "targets": _TARGETS,
    },
    ("fleet.cattle.io/v1alpha1", "HelmOp"): {
        "defaultNamespace": TEXT,
        "helm": _FLEET_HELM,
        "diff?": _FLEET_DIFF,
        "dependsOn?": [{"name": TEXT}],
        "targets": _TARGETS,
        "labels": LABELS,
    },
}
CONFIG_MAP: Final[dict[str, Any]] = {
    "apiVersion": TEXT,
    "kind": TEXT,
    "metadata": METADATA,
    "data": LABELS,
}


def object_problems(item: dict[str, Any]) -> list[str]:
    """Where an object of the cluster does not have the shape of its kind."""
    if item.get("kind") == "ConfigMap":
        return problems(item, CONFIG_MAP)
    spec = SPECS[item["apiVersion"], item["kind"]]
    shape = {"apiVersion": TEXT, "kind": TEXT, "metadata": METADATA, "spec": spec}
    return problems(item, shape)


def problems(value: Any, shape: Any, place: str = "") -> list[str]:
    """Where a value does not have a shape; empty when it has."""
    if isinstance(shape, tuple):
        tried = [problems(value, each, place) for each in shape]
        return [] if [] in tried else tried[0]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{place} is no list"]
        found = [problems(each, shape[0], f"{place}[{at}]") for at, each in enumerate(value)]
        return [problem for each in found for problem in each]
    if not isinstance(shape, dict):
        wrong_bool = isinstance(value, bool) and shape is int
        return [] if isinstance(value, shape) and not wrong_bool else [f"{place} is {value!r}"]
    if not isinstance(value, dict):
        return [f"{place} is no map"]
    fields = {key.removesuffix("?"): key for key in shape}
    missing = [key for key in shape if key not in value and key != "*" and key[-1] != "?"]
    made = [f"{place}.{key} is missing" for key in missing]
    for key, held in value.items():
        if key not in fields and "*" not in shape:
            made.append(f"{place}.{key} is unknown")
        else:
            made += problems(held, shape[fields.get(key, "*")], f"{place}.{key}")
    return made
