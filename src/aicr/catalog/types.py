"""Shapes of the catalogue's documents, for type checkers only (never imported at run time).

Key names are the wire names (recipe spec 3.2, 4.1, 4.7, 4.11).
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Constraint(TypedDict):
    """One requirement on a measurement, or on a metric of a phase."""

    name: str
    value: str
    severity: NotRequired[str]
    remediation: NotRequired[str]
    unit: NotRequired[str]


class ExpectedResource(TypedDict, total=False):
    """An object that a deployed component must have in the cluster."""

    kind: str
    name: str
    namespace: str


class ComponentRef(TypedDict, total=False):
    """One component of a recipe, in wire order."""

    name: str
    namespace: str
    chart: str
    type: str
    source: str
    version: str
    tag: str
    valuesFile: str
    overrides: dict[str, Any]
    patches: list[str]
    dependencyRefs: list[str]
    manifestFiles: list[str]
    preManifestFiles: list[str]
    path: str
    cleanup: bool
    expectedResources: list[ExpectedResource]
    healthCheckAsserts: str
    healthCheckSkip: bool


class Phase(TypedDict, total=False):
    """Checks and constraints of one validation phase."""

    timeout: str
    constraints: list[Constraint]
    checks: list[str]
    nodeSelection: dict[str, Any]
    infrastructure: str


class ProfileValue(TypedDict, total=False):
    """One selectable value of a profile."""

    advertiser: str
    constraints: list[Constraint]
    readinessConstraints: list[Constraint]
    componentRefs: list[ComponentRef]


class Profile(TypedDict):
    """A choice between mutually exclusive ways to run a stack (recipe spec 4.11)."""

    name: str
    description: NotRequired[str]
    default: str
    values: dict[str, ProfileValue]


class OverlaySpec(TypedDict, total=False):
    """The ``spec`` of a RecipeMetadata document."""

    base: str
    criteria: dict[str, Any]
    mixins: list[str]
    constraints: list[Constraint]
    componentRefs: list[ComponentRef]
    validation: dict[str, Phase]
    profile: Profile


class Overlay(TypedDict):
    """A RecipeMetadata document as the catalogue holds it."""

    name: str
    path: str
    origin: str
    spec: OverlaySpec


class MixinSpec(TypedDict, total=False):
    """The ``spec`` of a RecipeMixin document."""

    constraints: list[Constraint]
    componentRefs: list[ComponentRef]


class Mixin(TypedDict):
    """A RecipeMixin document as the catalogue holds it."""

    name: str
    path: str
    spec: MixinSpec


class SchedulingPaths(TypedDict, total=False):
    """Value paths of one node class (recipe spec 3.2)."""

    nodeSelectorPaths: list[str]
    tolerationPaths: list[str]
    taintPaths: list[str]
    taintStrPaths: list[str]
    requireNodeSelector: bool
    requireNodeSelectorIfStorageClassSet: bool


class RegistryEntry(TypedDict, total=False):
    """A component of registry.yaml, as written."""

    name: str
    displayName: str
    valueOverrideKeys: list[str]
    helm: dict[str, str]
    kustomize: dict[str, str]
    nodeScheduling: dict[str, Any]
    podScheduling: dict[str, Any]
    storageClassPaths: list[str]
    sharedStorageClassPaths: list[str]
    validations: list[dict[str, Any]]
    healthCheck: dict[str, str]
    upgrades: dict[str, str]
    manifestFiles: list[str]
    gkeCriticalPriority: bool
    hasSelfRefCRDs: bool
    ownsCRDs: bool
    ownsCRDsExcludeSubcharts: bool
    manifestsUseChartCRDs: bool
    mixinSafeOverridePaths: list[str]
    testTier: str
