"""The webhook's configuration: the file's text → one frozen object with every default filled in.

```
text ─► YAML ─► shape (config_types) ─► rules (first failure wins) ─► Config, warnings
```

A check entry stays a plain container document, because fields that this version does not know must
reach the pod. This module must not read files or ask a cluster. Source: preflight spec 1.2, 1.3;
decisions 16 (gangOnly), 17 (GPUs by claim), 73 (failurePolicy), 26 (events).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.errors import AicrError, invalid, nearest
from aicr.preflight import names
from aicr.preflight.config_types import PreflightFile
from aicr.preflight.gang_discovery import GangDiscovery, read_discovery
from aicr.preflight.shapes import conform, unknown_keys
from aicr.values import durations
from aicr.yamlio import read

APPEND: Final = "append"
PREPEND: Final = "prepend"
FAIL: Final = "Fail"
IGNORE: Final = "Ignore"
#: Kubernetes accepts projected tokens of ten minutes to 2^32 seconds.
TOKEN_SECONDS: Final = (600, 1 << 32)
DEFAULT_STRATEGY: Final = "EXECUTE_REMEDIATION"
DEFAULT_TIMEOUT: Final = "10m"
DEFAULT_MASTER_PORT: Final = 29500
DEFAULT_GANG_DIR: Final = "/etc/preflight"
HOST_PATH_TYPES: Final = (
    "",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
    "CharDevice",
    "BlockDevice",
)
#: Keys of a check entry that are the webhook's and never reach the pod.
CONTROLS: Final = ("defaultEnabled", "inheritUserEnv", "inheritUserVolumeMounts", "gangOnly")
_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Check:
    """One entry of ``initContainers``."""

    name: str
    container: Mapping[str, Any]
    """The core/v1 Container, without the webhook's own keys."""
    default_enabled: bool = True
    inherit_env: bool = True
    inherit_mounts: bool = True
    gang_only: bool = False


@dataclass(frozen=True, slots=True)
class HostPathMount:
    """A directory of the node for checks of gang pods; `name` or `mount_path` may be empty."""

    name: str
    host_path: str
    mount_path: str
    read_only: bool = True
    type: str = ""


@dataclass(frozen=True, slots=True)
class PodVolumeMount:
    """A volume of the pod for checks of gang pods."""

    name: str
    mount_path: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class GangCoordination:
    """How pods of a gang find each other; the fields count only when `enabled`."""

    enabled: bool = False
    timeout_seconds: int = 600
    master_port: int = DEFAULT_MASTER_PORT
    mount_path: str = DEFAULT_GANG_DIR
    topology_config_map: str = ""
    topology_data: str = ""
    host_paths: tuple[HostPathMount, ...] = ()
    volume_mounts: tuple[PodVolumeMount, ...] = ()
    mirror_claims: bool = True


@dataclass(frozen=True, slots=True)
class ConnectorToken:
    """The projected service account token with which checks identify themselves."""

    audience: str
    mount_path: str
    expiration_seconds: int


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of the webhook."""

    checks: tuple[Check, ...] = ()
    gpu_resources: tuple[str, ...] = (names.DEFAULT_GPU_RESOURCE,)
    network_resources: tuple[str, ...] = ()
    dra_enabled: bool = True
    device_classes: tuple[str, ...] = (names.DEFAULT_DEVICE_CLASS,)
    connector_socket: str = ""
    strategy: str = DEFAULT_STRATEGY
    token: ConnectorToken | None = None
    gang_discovery: GangDiscovery = field(default_factory=GangDiscovery)
    gangs: GangCoordination = field(default_factory=GangCoordination)
    placement: str = APPEND
    pull_secrets: tuple[str, ...] = ()
    env_patterns: tuple[str, ...] = ()
    mount_patterns: tuple[str, ...] = ()
    failure_policy: str = FAIL
    events: bool = True

    @property
    def needs_cluster(self) -> bool:
        """Whether anything is ever asked of the API server (decision 74)."""
        return self.gangs.enabled or self.dra_enabled


def load(text: str, *, source: str) -> tuple[Config, list[str]]:
    """The configuration in *text*, and warnings about keys and values that have no effect.

    Raises:
        AicrError: INVALID_REQUEST ``failed to parse config file`` when it is no YAML of the right
            types, ``invalid file config`` when a rule of spec 1.2 is broken; the cause says which.
    """
    try:
        document, positions = read.load_with_positions(text, source=source)
        document = {} if document is None else document
        if isinstance(document, dict):
            document = _without_nulls(document)
        try:
            conform(document, PreflightFile)
        except AicrError as error:
            where = positions.where(error.context["path"])
            raise invalid(error.message, where=where, hint=error.hint) from None
    except AicrError as error:
        raise invalid("failed to parse config file", where=source, hint=error.hint) from error
    warnings = list(unknown_keys(document, PreflightFile))
    try:
        config = parse(document)
    except AicrError as error:
        raise invalid("invalid file config", where=source, hint=error.hint) from error
    return config, warnings + list(_doubts(config))


def parse(document: Mapping[str, Any]) -> Config:
    """The configuration in a *document* of the right shape.

    Raises:
        AicrError: INVALID_REQUEST for the first rule of spec 1.2 that is broken, in its order.
    """
    checks = _checks(document.get("initContainers") or [])
    placement = document.get("initContainerPlacement") or APPEND
    if placement not in (APPEND, PREPEND):
        raise invalid(
            f'invalid initContainerPlacement "{placement}": must be "prepend" or "append"',
            hint=_meant(placement, [APPEND, PREPEND]),
        )
    token = _token(document)
    gangs = _coordination(document.get("gangCoordination") or {})
    discovery = read_discovery(document.get("gangDiscovery"), where="gangDiscovery")
    if gangs.enabled:
        problem = discovery.problem()
        if problem is not None:
            raise problem
    policy = document.get("failurePolicy") or FAIL
    if policy not in (FAIL, IGNORE):
        raise invalid(
            f'invalid failurePolicy "{policy}": must be "Fail" or "Ignore"',
            hint=_meant(policy, [FAIL, IGNORE]),
        )
    return Config(
        checks=checks,
        gpu_resources=_texts(document, "gpuResourceNames") or (names.DEFAULT_GPU_RESOURCE,),
        network_resources=_texts(document, "networkResourceNames"),
        dra_enabled=_flag(document, "gpuDraEnabled", True),
        device_classes=_texts(document, "gpuDeviceClassNames") or (names.DEFAULT_DEVICE_CLASS,),
        connector_socket=document.get("connectorSocket") or "",
        strategy=document.get("processingStrategy") or DEFAULT_STRATEGY,
        token=token,
        gang_discovery=discovery,
        gangs=gangs,
        placement=placement,
        pull_secrets=tuple(
            secret["name"]
            for secret in document.get("imagePullSecrets") or []
            if secret.get("name")
        ),
        env_patterns=_texts(document, "ncclEnvPatterns"),
        mount_patterns=_texts(document, "volumeMountPatterns"),
        failure_policy=policy,
        events=_flag(document, "events", True),
    )


def _checks(entries: list[dict[str, Any]]) -> tuple[Check, ...]:
    found: list[Check] = []
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        name = entry.get("name") or ""
        if not name:
            raise invalid(f"initContainers[{index}].name must be set")
        if name in seen:
            raise invalid(f'duplicate init container name "{name}"')
        seen.add(name)
        found.append(
            Check(
                name=name,
                container={
                    key: value
                    for key, value in entry.items()
                    if key not in CONTROLS and value is not None
                },
                default_enabled=_flag(entry, "defaultEnabled", True),
                inherit_env=_flag(entry, "inheritUserEnv", True),
                inherit_mounts=_flag(entry, "inheritUserVolumeMounts", True),
                gang_only=_flag(entry, "gangOnly", False),
            )
        )
    return tuple(found)


def _token(document: Mapping[str, Any]) -> ConnectorToken | None:
    audience = document.get("connectorTokenAudience") or ""
    path = document.get("connectorTokenMountPath") or ""
    seconds = document.get("connectorTokenExpirationSeconds") or 0
    given = {
        "connectorTokenAudience": audience,
        "connectorTokenMountPath": path,
        "connectorTokenExpirationSeconds": seconds,
    }
    present = [key for key, value in given.items() if value]
    missing = [key for key, value in given.items() if not value]
    if not present:
        return None
    if missing:
        raise invalid(
            f"connector token settings are all-or-nothing: {', '.join(present)} set but "
            f"{', '.join(missing)} missing. Set all three, or none to send events without a token"
        )
    low, high = TOKEN_SECONDS
    if not low <= seconds <= high:
        raise invalid(
            f"connectorTokenExpirationSeconds must be between {low} and {high}, got {seconds}: "
            "Kubernetes refuses such a token, and with it every pod"
        )
    if not path.startswith("/"):
        raise invalid(f'connectorTokenMountPath must be an absolute path, got "{path}"')
    return ConnectorToken(audience, path, seconds)


def _coordination(document: Mapping[str, Any]) -> GangCoordination:
    if not document.get("enabled"):
        return GangCoordination()
    text = document.get("timeout") or DEFAULT_TIMEOUT
    try:
        seconds = durations.parse(text) // durations.SECOND
        if seconds < 1:
            raise invalid("the shortest timeout is 1s")
    except AicrError as error:
        message = f'invalid gangCoordination.timeout "{text}": {error.message}'
        raise invalid(message, hint=error.hint or "for example 10m") from None
    port = document.get("masterPort") or DEFAULT_MASTER_PORT
    if not 0 < port < 65536:
        raise invalid(f"invalid gangCoordination.masterPort {port}: must be 1 to 65535")
    mirror = document.get("mirrorResourceClaims")
    return GangCoordination(
        enabled=True,
        timeout_seconds=seconds,
        master_port=port,
        mount_path=document.get("configMapMountPath") or DEFAULT_GANG_DIR,
        topology_config_map=document.get("ncclTopoConfigMap") or "",
        topology_data=document.get("ncclTopoData") or "",
        host_paths=tuple(
            HostPathMount(
                mount.get("name") or "",
                mount.get("hostPath") or "",
                mount.get("mountPath") or "",
                _flag(mount, "readOnly", True),
                mount.get("hostPathType") or "",
            )
            for mount in document.get("extraHostPathMounts") or []
        ),
        volume_mounts=tuple(
            PodVolumeMount(
                mount.get("name") or "",
                mount.get("mountPath") or "",
                _flag(mount, "readOnly", True),
            )
            for mount in document.get("extraVolumeMounts") or []
        ),
        mirror_claims=mirror is None or mirror,
    )


def _doubts(config: Config) -> Iterator[str]:
    """What is legal and probably not meant."""
    if not config.checks:
        yield "initContainers is empty: nothing will ever be injected"
    for check in config.checks:
        if not check.container.get("image"):
            yield f"check {check.name} has no image: the API server will refuse every GPU pod"
        if not _DNS_LABEL.fullmatch(check.name):
            yield f"check {check.name!r} is no valid container name (lower case, digits, -)"
    for mount in config.gangs.host_paths:
        if mount.type not in HOST_PATH_TYPES:
            yield (
                f'extraHostPathMounts {mount.name}: unknown hostPathType "{mount.type}", so it is '
                f"neither added nor mounted (known: {', '.join(HOST_PATH_TYPES[1:])})"
            )
        elif not (mount.name and mount.host_path and mount.mount_path):
            yield f"extraHostPathMounts {mount.name or '?'}: name, hostPath and mountPath are needed"


def _without_nulls(document: dict[str, Any]) -> dict[str, Any]:
    """*document* without keys that have nothing behind them, at the top and in its blocks."""
    return {
        key: {k: v for k, v in value.items() if v is not None} if type(value) is dict else value
        for key, value in document.items()
        if value is not None
    }


def _texts(document: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(document.get(key) or ())


def _flag(document: Mapping[str, Any], key: str, default: bool) -> bool:
    value = document.get(key)
    return default if value is None else bool(value)


def _meant(word: str, known: list[str]) -> str:
    near = nearest(word, known)
    return f"did you mean {near}?" if near else ""
