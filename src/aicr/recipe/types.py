"""Shapes of recipe documents, for type checkers only (never imported at run time)."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from aicr.catalog.types import ComponentRef, Constraint, Phase


class ExcludedOverlay(TypedDict):
    """An overlay that a snapshot ruled out."""

    name: str
    reason: str


class ConstraintWarning(TypedDict):
    """A constraint that a snapshot does not meet, and the overlay it ruled out."""

    overlay: str
    constraint: str
    expected: str
    actual: NotRequired[str]
    reason: str


class SelectedProfile(TypedDict):
    """The profile value in force and the value paths it owns."""

    name: str
    value: str
    advertiser: NotRequired[str]
    ownedPaths: dict[str, list[str]]


class RecipeMetadataBlock(TypedDict, total=False):
    """``metadata`` of a RecipeResult; it never holds a time."""

    version: str
    appliedOverlays: list[str]
    excludedOverlays: list[ExcludedOverlay]
    constraintWarnings: list[ConstraintWarning]
    gpuDriverState: str
    selectedProfile: SelectedProfile
    mariaDBOperatorState: str
    defaultStorageClassState: str
    perconaOperatorState: str


class RecipeResult(TypedDict, total=False):
    """A resolved recipe, in wire order (recipe spec 5.1)."""

    kind: str
    apiVersion: str
    metadata: RecipeMetadataBlock
    criteria: dict[str, Any]
    configuration: dict[str, Any]
    constraints: list[Constraint]
    componentRefs: list[ComponentRef]
    deploymentOrder: list[str]
    validation: dict[str, Phase]
