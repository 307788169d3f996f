"""What of a check can be worked out once, when the configuration is loaded.

An admission then only adds what depends on the pod. The containers that are built share the lists and
maps made here, so nothing may ever change them. Source: preflight spec 2.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.errors import AicrError, invalid
from aicr.preflight import names
from aicr.preflight.admission.amounts import canonical, is_binary, number
from aicr.preflight.admission.globs import matcher
from aicr.preflight.admission.memo import Memo
from aicr.preflight.admission.sizing import Sizes, fit
from aicr.preflight.config import HOST_PATH_TYPES, Check, Config

Document = dict[str, Any]
Amounts = tuple[tuple[str, str], ...]

#: Names that match a pattern and would change what a check measures, not how it gets there.
NEVER_INHERITED: Final = frozenset({"NCCL_REDUCE_OP"})


@dataclass(frozen=True, slots=True)
class Template:
    """One check, as far as it is the same in every pod."""

    check: Check
    head: Document
    """The container without env, resources and volumeMounts."""
    env: list[Document]
    env_names: frozenset[str]
    mounts: list[Document]
    mount_names: frozenset[str]
    mount_paths: frozenset[str]
    resources: Memo[tuple[Sizes, Amounts], Document]
    """``resources`` without claims, for what a pod allows and the devices that it gets."""
    claims: list[Document]
    claim_names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A configuration and all that follows from it alone."""

    config: Config
    templates: Mapping[str, Template]
    checks: Mapping[str, Check]
    gpu_resources: frozenset[str]
    resources: frozenset[str]
    """GPU and network resources."""
    inherits_env: Memo[str, bool]
    """Whether checks take a variable of this name from the workload."""
    inherits_mount: Memo[str, bool]
    """Whether checks take the mount of a volume of this name from the workload."""
    gang_env: list[Document]
    """Env of a gang pod's checks after GANG_ID."""
    gang_mounts: list[Document]
    """Mounts of a gang pod's checks: the ConfigMap, then what stands after ``/dev/shm``."""
    gang_volumes: list[Document]
    """Volumes of a gang pod after the gang's ConfigMap and ``/dev/shm``."""
    socket_volume: Document | None
    token_volume: Document | None


def prepare(config: Config) -> Prepared:
    """Work out everything that no pod has a part in.

    Raises:
        AicrError: INVALID_REQUEST for a quantity in an entry that is none.
    """
    gangs = config.gangs
    env_matches, mount_matches = matcher(config.env_patterns), matcher(config.mount_patterns)
    host_paths = [mount for mount in gangs.host_paths if mount.type in HOST_PATH_TYPES]
    gang_mounts: list[Document] = [
        {"name": names.GANG_VOLUME, "mountPath": gangs.mount_path, "readOnly": True}
    ]
    if gangs.topology_config_map:
        gang_mounts.append(
            {"name": names.TOPOLOGY_VOLUME, "mountPath": names.TOPOLOGY_PATH, "readOnly": True}
        )
    placed = [(mount.name, mount.mount_path, mount.read_only) for mount in host_paths]
    placed += [(mount.name, mount.mount_path, mount.read_only) for mount in gangs.volume_mounts]
    gang_mounts += [
        {"name": name, "mountPath": path, "readOnly": read_only}
        for name, path, read_only in placed
        if name and path
    ]
    return Prepared(
        config=config,
        templates={check.name: _template(check, config) for check in config.checks},
        checks={check.name: check for check in config.checks},
        gpu_resources=frozenset(config.gpu_resources),
        resources=frozenset((*config.gpu_resources, *config.network_resources)),
        inherits_env=Memo(lambda name: name not in NEVER_INHERITED and bool(env_matches(name))),
        inherits_mount=Memo(lambda name: bool(mount_matches(name))),
        gang_env=[
            {"name": names.GANG_CONFIG_DIR, "value": gangs.mount_path},
            {"name": names.GANG_TIMEOUT, "value": str(gangs.timeout_seconds)},
            {"name": names.MASTER_PORT, "value": str(gangs.master_port)},
            _from_field(names.POD_NAME, "metadata.name"),
            _from_field(names.POD_IP, "status.podIP"),
            _from_field(names.POD_UID, "metadata.uid"),
        ],
        gang_mounts=gang_mounts,
        gang_volumes=_gang_volumes(config),
        socket_volume=_socket_volume(config),
        token_volume=_token_volume(config),
    )


def _template(check: Check, config: Config) -> Template:
    container = _without_nulls(check.container)
    env: list[Document] = container.pop("env", [])
    mounts: list[Document] = container.pop("volumeMounts", [])
    resources: Document = container.pop("resources", {})
    head = {key: value for key, value in container.items() if value not in ({}, [])}
    known = {entry.get("name") for entry in env}
    env = env + [entry for entry in _common_env(config) if entry["name"] not in known]
    token = config.token
    if token is not None and all(mount.get("name") != names.TOKEN_VOLUME for mount in mounts):
        mount = {"name": names.TOKEN_VOLUME, "mountPath": token.mount_path, "readOnly": True}
        mounts = [*mounts, mount]
    limits, requests = (_amounts(check, resources, kind) for kind in ("limits", "requests"))
    claims: list[Document] = resources.get("claims", [])
    return Template(
        check=check,
        head=head,
        env=env,
        env_names=frozenset(entry["name"] for entry in env if "name" in entry),
        mounts=mounts,
        mount_names=frozenset(mount["name"] for mount in mounts if "name" in mount),
        mount_paths=frozenset(
            clean(mount["mountPath"]) for mount in mounts if "mountPath" in mount
        ),
        resources=Memo(lambda key: _resources(limits, requests, *key)),
        claims=claims,
        claim_names=frozenset(claim["name"] for claim in claims if "name" in claim),
    )


def _resources(
    limits: Mapping[str, str], requests: Mapping[str, str], sizes: Sizes, amounts: Amounts
) -> Document:
    """``resources`` of a check for which the operator has set *limits* and *requests*."""
    made = {"limits": dict(limits), "requests": dict(requests)}
    fit(made["limits"], made["requests"], sizes)
    made["limits"].update(amounts)
    made["requests"].update(amounts)
    if not made["limits"]:
        del made["limits"]
    return made


def _common_env(config: Config) -> list[Document]:
    found: list[Document] = [_from_field(names.NODE_NAME, "spec.nodeName")]
    if config.connector_socket:
        found.append({"name": names.CONNECTOR_SOCKET, "value": config.connector_socket})
    if config.strategy:
        found.append({"name": names.STRATEGY, "value": config.strategy})
    if config.token is not None:
        path = f"{config.token.mount_path.rstrip('/')}/{names.TOKEN_FILE}"
        found.append({"name": names.TOKEN_PATH, "value": path})
    return found


def _from_field(name: str, path: str) -> Document:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _amounts(check: Check, resources: Document, kind: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in resources.get(kind, {}).items():
        path = f"initContainers {check.name}: resources.{kind}[{name}]"
        try:
            found[name] = canonical(number(text, path), binary=is_binary(text))
        except AicrError as error:
            raise invalid(error.message, hint=error.hint) from None
    return found


def _socket_volume(config: Config) -> Document | None:
    if not config.connector_socket:
        return None
    source = {"path": names.SOCKET_HOST_PATH, "type": "DirectoryOrCreate"}
    return {"name": names.SOCKET_VOLUME, "hostPath": source}


def _token_volume(config: Config) -> Document | None:
    if config.token is None:
        return None
    token = {
        "audience": config.token.audience,
        "expirationSeconds": config.token.expiration_seconds,
        "path": names.TOKEN_FILE,
    }
    return {"name": names.TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}}


def _gang_volumes(config: Config) -> list[Document]:
    gangs = config.gangs
    found: list[Document] = []
    if gangs.topology_config_map:
        source = {"name": gangs.topology_config_map, "optional": True}
        found.append({"name": names.TOPOLOGY_VOLUME, "configMap": source})
    for mount in gangs.host_paths:
        if mount.name and mount.host_path and mount.type in HOST_PATH_TYPES:
            path = {"path": mount.host_path}
            if mount.type:
                path["type"] = mount.type
            found.append({"name": mount.name, "hostPath": path})
    return found


def clean(path: str) -> str:
    """A mount path in the form in which two of them are compared."""
    return path.rstrip("/") or "/"


def _without_nulls(value: Any) -> Any:
    """A copy of *value* without keys that have nothing behind them."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
