"""The shape of the webhook's configuration file: TypedDicts with the file's own keys.

They are what `config` judges a file by and what the JSON Schema is made of. A check entry is a
core/v1 Container with some keys of ours; of a container only those fields have a type here that
the webhook reads or that people mistype, and everything else passes through as it is written.
This module must not hold defaults or rules. Source: preflight spec 1.2 to 1.4.
"""

from __future__ import annotations

from typing import Any, TypedDict

Texts = list[str]
#: A quantity may be written as a number, as Kubernetes reads it.
Amounts = dict[str, str | int | float]


class EnvVar(TypedDict, total=False):
    """A variable of a container; `valueFrom` is not looked into."""

    name: str
    value: str | None
    valueFrom: dict[str, Any] | None


class VolumeMount(TypedDict, total=False):
    """Where a container sees a volume."""

    name: str
    mountPath: str
    subPath: str
    subPathExpr: str
    readOnly: bool
    mountPropagation: str | None
    recursiveReadOnly: str | None


class ClaimReference(TypedDict, total=False):
    """A claim of the pod that a container uses, or one request of it."""

    name: str
    request: str


class Resources(TypedDict, total=False):
    """What a container asks for and may use."""

    limits: Amounts | None
    requests: Amounts | None
    claims: list[ClaimReference] | None


class InitContainer(TypedDict, total=False):
    """A check: a container and the webhook's own four switches."""

    name: str
    image: str
    imagePullPolicy: str
    command: Texts | None
    args: Texts | None
    workingDir: str
    env: list[EnvVar] | None
    envFrom: list[dict[str, Any]] | None
    ports: list[dict[str, Any]] | None
    resources: Resources | None
    resizePolicy: list[dict[str, Any]] | None
    restartPolicy: str | None
    restartPolicyRules: list[dict[str, Any]] | None
    volumeMounts: list[VolumeMount] | None
    volumeDevices: list[dict[str, Any]] | None
    livenessProbe: dict[str, Any] | None
    readinessProbe: dict[str, Any] | None
    startupProbe: dict[str, Any] | None
    lifecycle: dict[str, Any] | None
    securityContext: dict[str, Any] | None
    stdin: bool
    stdinOnce: bool
    tty: bool
    terminationMessagePath: str
    terminationMessagePolicy: str
    defaultEnabled: bool | None
    inheritUserEnv: bool | None
    inheritUserVolumeMounts: bool | None
    gangOnly: bool | None


class GroupResource(TypedDict, total=False):
    """The resource that holds the size of a group of pods."""

    group: str
    version: str
    resource: str


class GangDiscovery(TypedDict, total=False):
    """How pods of one gang are recognised; all empty means the native API of Kubernetes."""

    name: str
    annotationKeys: Texts | None
    labelKeys: Texts | None
    podGroupGVR: GroupResource | None
    minCountExpr: str


class HostPathMount(TypedDict, total=False):
    """A directory of the node that checks of gang pods see."""

    name: str
    hostPath: str
    mountPath: str
    readOnly: bool | None
    hostPathType: str


class PodVolumeMount(TypedDict, total=False):
    """A volume that the pod has anyway and that checks of gang pods see."""

    name: str
    mountPath: str
    readOnly: bool | None


class GangCoordination(TypedDict, total=False):
    """Whether and how pods of a gang find each other."""

    enabled: bool | None
    timeout: str
    masterPort: int | None
    configMapMountPath: str
    ncclTopoConfigMap: str
    ncclTopoData: str
    extraHostPathMounts: list[HostPathMount] | None
    extraVolumeMounts: list[PodVolumeMount] | None
    mirrorResourceClaims: bool | None


class PullSecret(TypedDict, total=False):
    """A secret of the pod's namespace that images are pulled with."""

    name: str


class PreflightFile(TypedDict, total=False):
    """``config.yaml`` of the webhook."""

    initContainers: list[InitContainer] | None
    gpuResourceNames: Texts | None
    networkResourceNames: Texts | None
    gpuDraEnabled: bool | None
    gpuDeviceClassNames: Texts | None
    connectorSocket: str
    processingStrategy: str
    connectorTokenAudience: str
    connectorTokenMountPath: str
    connectorTokenExpirationSeconds: int
    gangDiscovery: GangDiscovery | None
    gangCoordination: GangCoordination | None
    initContainerPlacement: str
    imagePullSecrets: list[PullSecret] | None
    ncclEnvPatterns: Texts | None
    volumeMountPatterns: Texts | None
    failurePolicy: str
    events: bool | None
