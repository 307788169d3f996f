"""Write the JSON Schemas that ship in ``src/aicr/schemas``, from the TypedDicts of the product.

One walk over the types makes one schema for each kind of document. What types cannot say (which keys
are required although the product works with parts, suggested words, conditions between keys, a line of
help for the editor) stands in the tables below. The dialect is draft-07, the newest that every editor
understands; there is no ``$id``, so a file works wherever it is put. A test compares the files with
:func:`schemas`.

Usage: ``python -m tools.gen_schemas [--check]``
"""

from __future__ import annotations

import argparse
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any, Final, Literal, NotRequired

from aicr.catalog import fields
from aicr.catalog import types as catalog_types
from aicr.catalog.criteria_values import ANY, VALUES
from aicr.contract import config_types as contract_config
from aicr.preflight import config_types
from aicr.recipe import types as recipe_types
from tools import schema_shapes as shapes

FOLDER: Final = Path(__file__).resolve().parent.parent / "src" / "aicr" / "schemas"

#: Kinds with a schema of their own: name of the file -> the type.
DOCUMENTS: Final[dict[str, Any]] = {
    "AICRConfig": contract_config.AICRConfig,
    "ComponentRegistry": shapes.ComponentRegistry,
    "ComponentUpgrades": shapes.ComponentUpgrades,
    "HealthCheck": shapes.HealthCheck,
    "PreflightFile": config_types.PreflightFile,
    "RecipeCriteria": shapes.RecipeCriteria,
    "RecipeMetadata": shapes.RecipeMetadata,
    "RecipeMixin": shapes.RecipeMixin,
    "RecipeResult": recipe_types.RecipeResult,
    "Snapshot": shapes.SnapshotFile,
    "ValidatorCatalog": shapes.ValidatorCatalog,
}

#: Fields whose type in the product is wider than what a document may hold: (type, field) -> type.
NARROWED: Final[dict[tuple[str, str], Any]] = {
    # Empty in a recipe, for a disabled component that the registry does not know.
    ("ComponentRef", "type"): Literal["Helm", "Kustomize", ""],
    ("OverlaySpec", "criteria"): shapes.Criteria,
    ("OverlaySpec", "validation"): shapes.Phases,
    ("Phase", "nodeSelection"): shapes.NodeSelection,
    ("ProfileValue", "advertiser"): Literal["external"],
    ("RecipeResult", "kind"): Literal["RecipeResult"],
    ("RecipeResult", "apiVersion"): Literal["aicr.run/v1", "aicr.run/v1beta2"],
    ("RecipeResult", "criteria"): shapes.Criteria,
    ("RecipeResult", "validation"): shapes.Phases,
    ("RegistryEntry", "helm"): shapes.HelmSource,
    ("RegistryEntry", "kustomize"): shapes.KustomizeSource,
    ("RegistryEntry", "nodeScheduling"): shapes.NodeScheduling,
    ("RegistryEntry", "podScheduling"): shapes.PodScheduling,
    ("RegistryEntry", "validations"): list[shapes.Validation],
    ("RegistryEntry", "healthCheck"): shapes.HealthCheckFile,
    ("RegistryEntry", "upgrades"): shapes.UpgradesFile,
}

#: Keys that a document must have although the type allows their absence.
REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "ComponentRef": ("name",),
    "RegistryEntry": ("name", "displayName"),
    "RecipeResult": ("kind", "apiVersion", "componentRefs"),
}

#: Fields with words that an editor may offer; others are possible, because data can teach them.
SUGGESTED: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("Criteria", field): (ANY, *VALUES[field]) for field in fields.CRITERIA_STRINGS
}

#: Conditions that no type expresses, added to a definition as they are.
EXTRA: Final[dict[str, dict[str, Any]]] = {
    "RecipeMetadata": {
        "if": {"properties": {"spec": {"required": ["profile"]}}},
        "then": {"properties": {"apiVersion": {"const": "aicr.run/v1beta2"}}},
        "else": {"properties": {"apiVersion": {"const": "aicr.run/v1beta1"}}},
    },
    "RegistryEntry": {"not": {"required": ["helm", "kustomize"]}},
    "Operation": {"minProperties": 1, "maxProperties": 1},
    # The reader of snapshots leaves fields alone that a newer collector writes (recipe spec 8.1).
    **{
        name: {"additionalProperties": True}
        for name in (
            "SnapshotFile",
            "SnapshotMetadata",
            "Measurement",
            "MeasuredItem",
            "NotCollected",
        )
    },
    "Subtype": {
        "additionalProperties": True,
        "anyOf": [{"required": ["data"]}, {"required": ["items"]}],
    },
    # A container of Kubernetes: fields that this version does not know reach the pod as they are.
    **{
        name: {"additionalProperties": True}
        for name in ("InitContainer", "EnvVar", "VolumeMount", "Resources", "ClaimReference")
    },
}

#: Limits of single fields.
LIMITS: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("Criteria", "nodes"): {"minimum": 0},
    ("NodeSelection", "maxNodes"): {"minimum": 1},
    ("CheckSpec", "steps"): {"minItems": 1},
    ("CheckStep", "try"): {"minItems": 1},
    ("Profile", "name"): {"pattern": "^[A-Za-z0-9._-]+$"},
    ("Profile", "values"): {"minProperties": 1},
    ("HealthCheck", "apiVersion"): {"pattern": "^chainsaw\\.kyverno\\.io/"},
    ("Affinity", "podLabelSelector"): {"minProperties": 1},
}

#: One line of help for a field, shown by editors.
HELP: Final[dict[tuple[str, str], str]] = {
    ("Affinity", "requirement"): "preferred (default), or required: the recipe must have it.",
    ("ComponentRef", "chart"): "Chart name; the registry gives it when left out.",
    ("ComponentRef", "cleanup"): "Once true in a chain of overlays, it stays true.",
    ("ComponentRef", "dependencyRefs"): "Components deployed before this one; lists are united.",
    ("ComponentRef", "expectedResources"): "Objects that must exist once it is deployed.",
    (
        "ComponentRef",
        "healthCheckAsserts",
    ): "A health check inline, instead of the registry's file.",
    ("ComponentRef", "healthCheckSkip"): "Do not run the health check of this component.",
    ("ComponentRef", "manifestFiles"): "Manifests deployed after the chart; lists are united.",
    ("ComponentRef", "name"): "Name of the component in the registry.",
    ("ComponentRef", "namespace"): "Release namespace; the registry gives it when left out.",
    ("ComponentRef", "overrides"): "Chart values over the values files; null takes a value away.",
    ("ComponentRef", "patches"): "Applied by no deployer: a recipe that has any is refused.",
    ("ComponentRef", "path"): "Folder of the kustomization in its source (Kustomize only).",
    ("ComponentRef", "preManifestFiles"): "Manifests deployed before the chart; lists are united.",
    ("ComponentRef", "source"): "Chart repository or kustomization; normally from the registry.",
    ("ComponentRef", "tag"): "Git reference of the source (Kustomize only).",
    ("ComponentRef", "valuesFile"): "Values file put over components/<name>/values.yaml.",
    ("ComponentRef", "version"): "Chart version; pin it in the registry, not here.",
    ("Constraint", "name"): "A reading, for example K8s.server.version or OS.release.ID.",
    ("Constraint", "value"): 'What it must be, quoted: ">= 1.32", "24.04", "!= cos".',
    ("Criteria", "nodes"): "Node count; metadata only, it never selects an overlay.",
    ("HealthCheckFile", "assertFile"): "Path in the data tree, checks/<name>/health-check.yaml.",
    ("HelmSource", "defaultChart"): "Chart; what stands before the last slash is dropped.",
    ("HelmSource", "defaultNamespace"): "Release namespace.",
    ("HelmSource", "defaultRepository"): "http(s) repository, or oci:// registry.",
    ("HelmSource", "defaultVersion"): "The pin: one exact version, quoted.",
    ("KustomizeSource", "defaultPath"): "Folder in the source.",
    (
        "KustomizeSource",
        "defaultSource",
    ): "Git or OCI address; makes the component a Kustomize one.",
    ("KustomizeSource", "defaultTag"): "The pin: a tag or commit.",
    ("NodeScheduling", "nodeCountPaths"): "Value paths that receive the number of nodes.",
    ("Operation", "assert"): "An object that must be there and match.",
    ("Operation", "error"): "An object that must not be there; passes when nothing is there.",
    ("OverlaySpec", "base"): "Name of the parent overlay; base or nothing is the root.",
    ("OverlaySpec", "constraints"): "What the cluster must be for this overlay; united by name.",
    ("OverlaySpec", "criteria"): "Not inherited: state every word the overlay is chosen by.",
    ("OverlaySpec", "mixins"): "Mixins applied after all overlays are merged.",
    ("Phase", "checks"): "Names from validators/catalog.yaml; an empty list clears.",
    ("Phase", "infrastructure"): "Component that the phase needs running.",
    ("Phase", "timeout"): "A Go duration such as 10m or 1h30m.",
    ("ProfileValue", "advertiser"): "external: something else advertises nvidia.com/gpu.",
    ("RegistryEntry", "gkeCriticalPriority"): "On GKE, add a quota for critical pods.",
    ("RegistryEntry", "hasSelfRefCRDs"): "The chart has objects of kinds that it also defines.",
    ("RegistryEntry", "manifestFiles"): "Manifests of refs that list none themselves.",
    ("RegistryEntry", "manifestsUseChartCRDs"): "The manifests need the chart's CRDs first.",
    ("RegistryEntry", "mixinSafeOverridePaths"): "Value paths that mixins may set.",
    ("RegistryEntry", "ownsCRDs"): "The chart renders its CRDs from templates.",
    ("RegistryEntry", "sharedStorageClassPaths"): "Value paths that get --shared-storage-class.",
    ("RegistryEntry", "storageClassPaths"): "Value paths that get --storage-class.",
    ("RegistryEntry", "valueOverrideKeys"): "Other names of the component in --set.",
    ("SchedulingPaths", "taintStrPaths"): "Value paths that get a taint as key=value:Effect.",
    ("Subtype", "context"): "Texts that describe the readings; constraints do not see them.",
    ("Subtype", "data"): "Readings: a name and a text, number or boolean each.",
    ("Subtype", "items"): "Several equal things, addressed as Type.subtype[0].key.",
    ("Subtype", "subtype"): "Its name; this key is not called name.",
    ("Transition", "from"): "Versions this starts from; has an upper bound.",
    ("Transition", "to"): "Versions this leads to; has both bounds.",
    ("Validation", "conditions"): "Criteria under which it runs: words by field.",
    ("Validation", "function"): "Name of a check that ships with the product.",
    ("Validator", "timeout"): "A Go duration; 5m when left out.",
}

#: Types written in the functional form, which have no docstring of their own.
DOCS: Final[dict[str, str]] = {
    "AssertTimeouts": "Time budgets; only assert is honoured.",
    "CheckStep": "A step of a health check: operations one after another.",
    "Operation": "Exactly one of assert and error.",
    "SnapshotMetadata": "When, where and by which version it was measured.",
    "Transition": "What it takes to get from one range of versions to another.",
}


def schemas() -> dict[str, str]:
    """The text of every schema by kind."""
    return {
        kind: json.dumps(schema(found), indent=2, ensure_ascii=False) + "\n"
        for kind, found in DOCUMENTS.items()
    }


def schema(root: Any) -> dict[str, Any]:
    """The schema of one document type, with everything it refers to."""
    definitions: dict[str, Any] = {}
    top = definition(root, definitions)
    ordered = {name: definitions[name] for name in sorted(definitions)}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": root.__name__,
        **top,
        "definitions": ordered,
    }


def definition(found: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """A TypedDict as an object schema; types that it uses are added to *definitions*."""
    name = found.__name__
    hints = typing.get_type_hints(found, include_extras=True)
    properties: dict[str, Any] = {}
    required = []
    for field, hint in hints.items():
        optional = typing.get_origin(hint) is NotRequired
        if optional:
            (hint,) = typing.get_args(hint)
        if (found.__total__ and not optional) or field in REQUIRED.get(name, ()):
            required.append(field)
        part = shape(NARROWED.get((name, field), hint), definitions)
        if (name, field) in SUGGESTED:
            part = {"anyOf": [{"enum": list(SUGGESTED[name, field])}, {"type": "string"}]}
        part = {**part, **LIMITS.get((name, field), {})}
        if (name, field) in HELP:
            # A reference swallows its siblings in this dialect.
            part = {"allOf": [part]} if "$ref" in part else part
            part = {"description": HELP[name, field], **part}
        properties[field] = part
    described = DOCS.get(name) or (found.__doc__ or "").strip().partition("\n")[0]
    result: dict[str, Any] = {"description": described, "type": "object"}
    result["properties"] = properties
    if required:
        result["required"] = required
    result["additionalProperties"] = False
    return {**result, **EXTRA.get(name, {})}


def shape(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """A type as a schema.

    Raises:
        TypeError: for a type that documents do not have.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if typing.is_typeddict(hint):
        name = hint.__name__
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = definition(hint, definitions)
        return {"$ref": f"#/definitions/{name}"}
    if origin is list:
        return {"type": "array", "items": shape(arguments[0], definitions)}
    if origin is dict:
        values = shape(arguments[1], definitions)
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [shape(each, definitions) for each in arguments]}
    if hint is type(None):
        return {"type": "null"}
    if origin is Literal:
        words = list(arguments)
        return {"const": words[0]} if len(words) == 1 else {"enum": words}
    plain = {str: "string", bool: "boolean", int: "integer", float: "number"}
    if hint is Any:
        return {}
    if hint in plain:
        return {"type": plain[hint]}
    raise TypeError(f"no schema for {hint!r}")


def unused_rows() -> list[str]:
    """Rows of the tables that speak of a type or field that no document has."""
    seen: set[tuple[str, str]] = set()
    names: set[str] = set()
    for module in (catalog_types, recipe_types, config_types, shapes):
        for found in vars(module).values():
            if typing.is_typeddict(found):
                names.add(found.__name__)
                seen |= {(found.__name__, field) for field in typing.get_type_hints(found)}
    rows = [*NARROWED, *SUGGESTED, *LIMITS, *HELP]
    odd = [".".join(row) for row in rows if row not in seen]
    return odd + [name for name in (*REQUIRED, *EXTRA, *DOCS) if name not in names]


def main() -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description="Generate the JSON Schemas.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    check: bool = parser.parse_args().check
    stale = []
    for kind, text in schemas().items():
        path = FOLDER / f"{kind}.json"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(kind)
            if not check:
                path.write_text(text, encoding="utf-8", newline="\n")
    print(
        "schemas:", ", ".join(stale) + (" stale" if check else " written") if stale else "current"
    )
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
