"""The shape of an AICRConfig document: one TypedDict a block, the source of the strict reader.

The keys are wire names (recipe spec 6.5, bundler spec 1.1, validators spec 1.1). A block that no
command reads yet is here too, so that a file written for all commands is judged as a whole. What a
value may say (which deployer, which format) is the business of the command that uses it.
"""

from __future__ import annotations

from typing import Literal, TypedDict

Texts = list[str]
Labels = dict[str, str]


class Criteria(TypedDict, total=False):
    """What the person has; a flag wins over each word alone."""

    service: str
    accelerator: str
    intent: str
    os: str
    platform: str
    nodes: int


class Interface(TypedDict, total=False):
    """A GPU network interface of a GKE node and the network behind it."""

    interfaceName: str
    network: str


class Gke(TypedDict, total=False):
    """Typed choices for GKE."""

    tcpxoInterfaces: list[Interface]


class Accounting(TypedDict, total=False):
    """How Slurm keeps accounts."""

    mode: str


class Slurm(TypedDict, total=False):
    """Typed choices for Slurm."""

    accounting: Accounting


class Configuration(TypedDict, total=False):
    """Typed choices of a recipe (recipe spec 4.12)."""

    slurm: Slurm
    gke: Gke
    runtimeInventory: str


class RecipeInput(TypedDict, total=False):
    """Where criteria are read from instead of stating them."""

    snapshot: str


class FileOutput(TypedDict, total=False):
    """A file to write, and how."""

    path: str
    format: str


class Recipe(TypedDict, total=False):
    """``spec.recipe``."""

    criteria: Criteria
    profile: str
    configuration: Configuration
    input: RecipeInput
    output: FileOutput
    data: str
    criteriaStrict: bool


class BundleInput(TypedDict, total=False):
    """What is bundled."""

    recipe: str


class BundleOutput(TypedDict, total=False):
    """Where the bundle goes."""

    target: str
    imageRefs: str


class Deployment(TypedDict, total=False):
    """Form and values of the bundle."""

    deployer: str
    repo: str
    set: Texts
    dynamic: Texts
    vendorCharts: bool
    appName: str


class Scheduling(TypedDict, total=False):
    """Where things run and store."""

    systemNodeSelector: Labels
    systemNodeTolerations: Texts
    acceleratedNodeSelector: Labels
    acceleratedNodeTolerations: Texts
    workloadGate: str
    workloadSelector: Labels
    nodes: int
    storageClass: str
    sharedStorageClass: str
    draEvictionNodeLabel: str


class Attestation(TypedDict, total=False):
    """Who signs the bundle."""

    enabled: bool
    certificateIdentityRegexp: str
    oidcDeviceFlow: bool
    fulcioURL: str
    rekorURL: str
    signingKey: str


class Registry(TypedDict, total=False):
    """Transport of a push."""

    insecureTLS: bool
    plainHTTP: bool


class Bundle(TypedDict, total=False):
    """``spec.bundle``."""

    input: BundleInput
    output: BundleOutput
    deployment: Deployment
    scheduling: Scheduling
    attestation: Attestation
    registry: Registry


class SnapshotOutput(FileOutput, total=False):
    """A file to write, and how."""

    template: str


class Agent(TypedDict, total=False):
    """The pod that looks at the cluster."""

    namespace: str
    image: str
    imagePullSecrets: Texts
    jobName: str
    serviceAccountName: str
    nodeSelector: Labels
    tolerations: Texts
    requireGpu: bool


class SnapshotAgent(Agent, total=False):
    """The pod that takes a snapshot."""

    runtimeClassName: str
    os: str
    requests: str
    limits: str


class SnapshotExecution(TypedDict, total=False):
    """How a snapshot is taken."""

    timeout: str
    noCleanup: bool
    privileged: bool
    maxNodesPerEntry: int


class Snapshot(TypedDict, total=False):
    """``spec.snapshot``."""

    output: SnapshotOutput
    agent: SnapshotAgent
    execution: SnapshotExecution


class ValidateInput(TypedDict, total=False):
    """What is validated."""

    recipe: str
    snapshot: str


class ValidateExecution(TypedDict, total=False):
    """How checks run."""

    phases: list[Literal["deployment", "conformance", "performance", "all"]]
    failOnError: bool
    failFast: bool
    noCluster: bool
    noCleanup: bool
    timeout: str
    skipChecks: Texts


class CncfEvidence(TypedDict, total=False):
    """Evidence for the CNCF."""

    dir: str
    cncfSubmission: bool
    features: Texts


class AttestationEvidence(TypedDict, total=False):
    """Signed evidence about a recipe."""

    out: str
    bom: str
    push: str
    plainHTTP: bool
    insecureTLS: bool


class Evidence(TypedDict, total=False):
    """What a run leaves as evidence."""

    cncf: CncfEvidence
    attestation: AttestationEvidence


class Validate(TypedDict, total=False):
    """``spec.validate``."""

    input: ValidateInput
    agent: Agent
    execution: ValidateExecution
    evidence: Evidence


class Policy(TypedDict, total=False):
    """What a bundle must fulfil."""

    minTrustLevel: str
    requireCreator: str
    cliVersionConstraint: str


class Trust(TypedDict, total=False):
    """What a bundle is verified against."""

    certificateIdentityRegexp: str
    key: str
    trustRoot: str


class Verify(TypedDict, total=False):
    """``spec.verify``."""

    policy: Policy
    trust: Trust


class Spec(TypedDict, total=False):
    """One block a command; a file has at least one."""

    snapshot: Snapshot
    recipe: Recipe
    bundle: Bundle
    validate: Validate
    verify: Verify


class Named(TypedDict, total=False):
    """What the document is called."""

    name: str


class AICRConfig(TypedDict, total=False):
    """Flags of the commands as a document."""

    kind: Literal["AICRConfig"]
    apiVersion: str
    metadata: Named
    spec: Spec
