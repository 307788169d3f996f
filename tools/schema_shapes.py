"""Shapes of whole documents, where the types of the product leave a map open or start below the header.

The product's own TypedDicts (``aicr.catalog.types``, ``aicr.recipe.types``) describe what it works
with; a file that a person writes also has a header, and maps whose keys are known although the product
passes them on. Both are TypedDicts too, so that ``tools/gen_schemas.py`` needs one walk.
Sources: recipe spec 1.8, 2.4, 3.1 to 3.9, 4.1; bundler spec 9.1; validators spec 2.1 and 8.2.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from aicr.catalog.types import MixinSpec, OverlaySpec, Phase, RegistryEntry, SchedulingPaths


class Named(TypedDict):
    """What the document is called."""

    name: str


class Criteria(TypedDict, total=False):
    """What a cluster is: five words and a node count."""

    service: str
    accelerator: str
    intent: str
    os: str
    platform: str
    nodes: int


class NodeSelection(TypedDict, total=False):
    """Which nodes a phase runs on."""

    selector: dict[str, str]
    maxNodes: int
    excludeNodes: list[str]


class Phases(TypedDict, total=False):
    """Validation phases of a recipe, each with checks and constraints."""

    readiness: Phase
    deployment: Phase
    performance: Phase
    conformance: Phase


class RecipeMetadata(TypedDict):
    """An overlay: what a recipe gets where its criteria hold."""

    kind: Literal["RecipeMetadata"]
    apiVersion: Literal["aicr.run/v1beta1", "aicr.run/v1beta2"]
    metadata: Named
    spec: OverlaySpec


class RecipeMixin(TypedDict):
    """A mixin: a piece that several overlays use."""

    kind: Literal["RecipeMixin"]
    apiVersion: Literal["aicr.run/v1beta1"]
    metadata: Named
    spec: MixinSpec


class HelmSource(TypedDict, total=False):
    """The chart of a component."""

    defaultRepository: str
    defaultChart: str
    defaultVersion: str
    defaultNamespace: str


class KustomizeSource(TypedDict, total=False):
    """The kustomization of a component."""

    defaultSource: str
    defaultPath: str
    defaultTag: str


class NodeScheduling(TypedDict, total=False):
    """Value paths that place the pods of a component."""

    system: SchedulingPaths
    accelerated: SchedulingPaths
    nodeCountPaths: list[str]


class WorkloadPaths(TypedDict, total=False):
    """Value paths that say which pods are workload."""

    workloadSelectorPaths: list[str]


class PodScheduling(TypedDict, total=False):
    """Value paths that concern pods of the user."""

    workload: WorkloadPaths


class Validation(TypedDict):
    """A check that is made when a bundle is made."""

    function: str
    severity: Literal["error", "warning", "info"]
    conditions: NotRequired[dict[str, list[str]]]
    message: NotRequired[str]


class HealthCheckFile(TypedDict):
    """The health check of a component."""

    assertFile: str


class UpgradesFile(TypedDict):
    """The upgrade record of a component."""

    file: str


class ComponentRegistry(TypedDict):
    """The components that recipes can pull."""

    kind: Literal["ComponentRegistry"]
    apiVersion: Literal["aicr.run/v1beta1"]
    components: list[RegistryEntry]


class RecipeCriteria(TypedDict):
    """Criteria in a file, for ``--criteria``."""

    kind: Literal["RecipeCriteria"]
    apiVersion: Literal["aicr.run/v1"]
    metadata: NotRequired[Named]
    spec: Criteria


class CatalogMetadata(TypedDict, total=False):
    """Name and version of a validator catalogue."""

    name: str
    version: str


class Affinity(TypedDict):
    """A component beside whose pods a check wants to run."""

    componentRef: str
    podLabelSelector: dict[str, str]
    requirement: NotRequired[Literal["preferred", "required"]]
    topologyKey: NotRequired[str]


class EnvVar(TypedDict):
    """An environment variable of a check."""

    name: str
    value: NotRequired[str]


class Resources(TypedDict):
    """What a check's container asks for."""

    cpu: str
    memory: str


class Validator(TypedDict):
    """A check that a recipe may declare."""

    name: str
    phase: Literal["deployment", "conformance", "performance"]
    description: NotRequired[str]
    image: str
    timeout: NotRequired[str]
    args: NotRequired[list[str]]
    env: NotRequired[list[EnvVar]]
    resources: NotRequired[Resources]
    dependencyAffinity: NotRequired[list[Affinity]]


class ValidatorCatalog(TypedDict):
    """The checks that recipes may declare, in the order in which a phase runs them."""

    kind: Literal["ValidatorCatalog"]
    apiVersion: Literal["validator.nvidia.com/v1alpha1"]
    metadata: NotRequired[CatalogMetadata]
    validators: list[Validator]


class GroupKinds(TypedDict):
    """Kinds of one API group."""

    group: str
    kinds: list[str]


class UpgradeStep(TypedDict):
    """One step of an upgrade by hand."""

    id: str
    description: str
    reason: NotRequired[str]


class DeployerSteps(TypedDict):
    """Steps for some deployers; without deployers, for all that no other entry names."""

    deployers: NotRequired[list[str]]
    steps: list[UpgradeStep]


# Keys that are words of Python can only be written this way.
Transition = TypedDict(
    "Transition",
    {
        "from": str,
        "to": str,
        "verdict": Literal["safe", "manual", "blocked"],
        "summary": str,
        "precondition": NotRequired[str],
        "reversible": NotRequired[bool],
        "reversibleNotes": NotRequired[str],
        "affectedResources": NotRequired[list[GroupKinds]],
        "stepsByDeployer": NotRequired[list[DeployerSteps]],
        "verifiedBy": NotRequired[str],
        "references": NotRequired[list[str]],
    },
)


class ComponentUpgrades(TypedDict):
    """The upgrade record of a component."""

    kind: Literal["ComponentUpgrades"]
    apiVersion: Literal["aicr.run/v1beta1"]
    component: str
    transitions: list[Transition]


class CheckMetadata(TypedDict):
    """Name of a health check, and whether it is empty on purpose."""

    name: str
    annotations: NotRequired[dict[str, str]]


AssertTimeouts = TypedDict("AssertTimeouts", {"assert": str}, total=False)


class Expectation(TypedDict):
    """An object, header and assertion in one."""

    resource: dict[str, Any]


Operation = TypedDict("Operation", {"assert": Expectation, "error": Expectation}, total=False)

CheckStep = TypedDict(
    "CheckStep",
    {"name": NotRequired[str], "description": NotRequired[str], "try": list[Operation]},
)


class CheckSpec(TypedDict):
    """Steps of a health check, one after another."""

    description: NotRequired[str]
    timeouts: NotRequired[AssertTimeouts]
    steps: list[CheckStep]


class HealthCheck(TypedDict):
    """A health check: a Chainsaw Test that only reads (validators spec 8.2)."""

    apiVersion: str
    kind: Literal["Test"]
    metadata: CheckMetadata
    spec: CheckSpec


class MeasuredItem(TypedDict, total=False):
    """One of several equal things: readings, and texts that tell which it is."""

    data: dict[str, str | int | float | bool]
    context: dict[str, str]


class Subtype(TypedDict):
    """A group of readings."""

    subtype: str
    data: NotRequired[dict[str, str | int | float | bool]]
    context: NotRequired[dict[str, str]]
    items: NotRequired[list[MeasuredItem]]


class Measurement(TypedDict):
    """What one part of a node or cluster was found to be."""

    type: Literal["K8s", "GPU", "OS", "SystemD", "NodeTopology", "NetworkTopology"]
    subtypes: list[Subtype]


class NotCollected(TypedDict):
    """A reading that could not be taken, and why."""

    reading: str
    code: str
    reason: str


SnapshotMetadata = TypedDict(
    "SnapshotMetadata",
    {"timestamp": NotRequired[str], "version": NotRequired[str], "source-node": NotRequired[str]},
)


class SnapshotFile(TypedDict):
    """What was measured on a node and in its cluster (recipe spec 8.1)."""

    kind: Literal["Snapshot"]
    apiVersion: Literal["aicr.run/v1"]
    metadata: NotRequired[SnapshotMetadata]
    measurements: list[Measurement]
    notCollected: NotRequired[list[NotCollected]]
