"""The CRDs of Argo CD, Flux and Fleet for a test API server, made from ``gitops_shapes``.

The fields are those of the shapes, so an API server refuses any other field under strict validation.
`RULES` adds what the published CRDs ask of a text beside its type. What a shape calls required is
what we always write; the published CRDs ask for less.

`python -m tests.deployers.gitops_crds` writes the files in `crds/` anew, one for each kind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.deployers import gitops_shapes as shapes

from aicr.yamlio import write

FOLDER: Final = Path(__file__).resolve().with_name("crds")
#: Plural of each kind, as its API has it.
PLURALS: Final[dict[str, str]] = {
    "Application": "applications",
    "ArtifactGenerator": "artifactgenerators",
    "ExternalArtifact": "externalartifacts",
    "GitRepo": "gitrepos",
    "GitRepository": "gitrepositories",
    "HelmOp": "helmops",
    "HelmRelease": "helmreleases",
    "HelmRepository": "helmrepositories",
    "OCIRepository": "ocirepositories",
}
#: ArtifactGenerators make these; a HelmRelease only refers to one.
EXTERNAL_ARTIFACT: Final[dict[str, Any]] = {
    "sourceRef?": {
        "apiVersion?": shapes.TEXT,
        "kind": shapes.TEXT,
        "name": shapes.TEXT,
        "namespace?": shapes.TEXT,
    },
}
SPECS: Final[dict[tuple[str, str], dict[str, Any]]] = {
    **shapes.SPECS,
    ("source.toolkit.fluxcd.io/v1", "ExternalArtifact"): EXTERNAL_ARTIFACT,
}
_TIME: Final[dict[str, Any]] = {"pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"}
_CRDS: Final[dict[str, Any]] = {"enum": ["Skip", "Create", "CreateReplace"]}
_NAME: Final[dict[str, Any]] = {"minLength": 1, "maxLength": 253}
#: kind -> path of a field (list items as `[]`) -> what the published CRD asks of it.
RULES: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "ArtifactGenerator": {
        "artifacts[].copy[].from": {"pattern": r"^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)/(.*)$"},
        "artifacts[].copy[].to": {"pattern": r"^@(artifact)/(.*)$"},
        "artifacts[].name": {"pattern": r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "maxLength": 253},
        "sources[].alias": {"pattern": r"^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$", "maxLength": 63},
        "sources[].kind": {"enum": ["Bucket", "GitRepository", "OCIRepository"]},
        "sources[].name": {"pattern": r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "maxLength": 253},
    },
    "GitRepository": {"interval": _TIME, "url": {"pattern": "^(http|https|ssh)://.*$"}},
    "HelmRelease": {
        "chart.spec.interval": _TIME,
        "chart.spec.reconcileStrategy": {"enum": ["ChartVersion", "Revision"]},
        "chart.spec.sourceRef.kind": {"enum": ["HelmRepository", "GitRepository", "Bucket"]},
        "chart.spec.sourceRef.name": _NAME,
        "chartRef.kind": {"enum": ["OCIRepository", "HelmChart", "ExternalArtifact"]},
        "chartRef.name": _NAME,
        "install.crds": _CRDS,
        "interval": _TIME,
        "releaseName": {"minLength": 1, "maxLength": 53},
        "targetNamespace": {"minLength": 1, "maxLength": 63},
        "timeout": _TIME,
        "upgrade.crds": _CRDS,
        "valuesFrom[].kind": {"enum": ["Secret", "ConfigMap"]},
        "valuesFrom[].name": _NAME,
    },
    "HelmRepository": {"interval": _TIME, "url": {"pattern": "^(http|https|oci)://.*$"}},
    "OCIRepository": {
        "interval": _TIME,
        "layerSelector.operation": {"enum": ["extract", "copy"]},
        "url": {"pattern": "^oci://.*$"},
    },
}
#: Rules over several fields of a spec.
TOGETHER: Final[dict[str, dict[str, str]]] = {
    "HelmRelease": {
        "rule": "has(self.chart) != has(self.chartRef)",
        "message": "either chart or chartRef must be set",
    },
}


def definitions() -> dict[str, dict[str, Any]]:
    """Every CustomResourceDefinition, by the name of its file."""
    return {
        f"{PLURALS[kind]}.yaml": _definition(version, kind, spec)
        for (version, kind), spec in SPECS.items()
    }


def _definition(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    group, _, served = version.partition("/")
    plural = PLURALS[kind]
    schema = _schema(spec, RULES.get(kind, {}), "")
    if kind in TOGETHER:
        schema["x-kubernetes-validations"] = [TOGETHER[kind]]
    whole = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": schema,
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": served,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": whole},
                }
            ],
        },
    }


def _schema(shape: Any, rules: dict[str, dict[str, Any]], place: str) -> dict[str, Any]:
    """The structural schema of a shape; *place* is its path for the rules."""
    types = {str: "string", bool: "boolean", int: "integer"}
    if isinstance(shape, type) and shape in types:
        return {"type": types[shape], **rules.get(place, {})}
    if isinstance(shape, list):
        return {"type": "array", "items": _schema(shape[0], rules, f"{place}[]")}
    if isinstance(shape, tuple):
        fields = {f"{key.removesuffix('?')}?": held for each in shape for key, held in each.items()}
        return _schema(fields, rules, place)
    if shape == shapes.MAP:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if set(shape) == {"*"}:
        return {
            "type": "object",
            "additionalProperties": _schema(shape["*"], rules, f"{place}.*"),
        }
    properties = {
        (name := key.removesuffix("?")): _schema(held, rules, f"{place}.{name}".lstrip("."))
        for key, held in sorted(shape.items())
    }
    found: dict[str, Any] = {"type": "object", "properties": properties}
    required = sorted(key for key in shape if not key.endswith("?"))
    return {**found, "required": required} if required else found


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, document in definitions().items():
        (FOLDER / name).write_text(write.dump(document), encoding="utf-8")


if __name__ == "__main__":
    main()
