"""What keeps each command from working here: on this machine, with this cluster, for this user.

A command has *needs* (an extra, a program, a reachable API server, permissions); each is looked at once and
is met, not met, or could not be told, which counts as not met. What a need lacks comes with the next
step. Nothing is changed: permissions are asked for with access reviews.

Everything outside comes in through `Surroundings`, so that tests can be any machine. A new need is one
function in `_NEEDS`, a new command one line in `COMMANDS`. Source: decisions 33 and 46.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from aicr.catalog.catalog import Catalog
from aicr.collectors import agent, gpu, permissions
from aicr.collectors.agent_options import AgentOptions
from aicr.collectors.limits import Limits
from aicr.collectors.permissions import Permission, verbs
from aicr.collectors.ports import Files, Machine, Programs
from aicr.errors import AicrError, invalid, nearest
from aicr.kube import connect
from aicr.kube.client import Client

MET: Final = "met"
NOT_MET: Final = "not met"
UNKNOWN: Final = "unknown"


#: Extra → modules that it brings, of which all are needed.
EXTRAS: Final[dict[str, tuple[str, ...]]] = {
    "cluster": ("aiohttp", "kubernetes", "rich", "jinja2"),
    "sign": ("cryptography", "sigstore"),
    "bom": ("cyclonedx",),
    "webhook": ("aiohttp", "httptools", "prometheus_client", "uvicorn", "uvloop"),
    "cel": ("cel_expr_python",),
    "health": ("grpc", "google.protobuf"),
}

_CLUSTER: Final = ("extra cluster", "kubeconfig", "api server")
#: Command → names of what it needs.
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "recipe": ("catalogue",),
    "query": ("catalogue",),
    "bundle": ("catalogue",),
    "bundle --vendor-charts": ("catalogue", "helm"),
    "bundle --attest": ("catalogue", "extra sign"),
    "bom --validate": ("extra bom",),
    "verify keyless signatures": ("extra sign",),
    "snapshot": ("machine",),
    "snapshot --require-gpu": ("machine", "gpu"),
    "snapshot --agent": (*_CLUSTER, "permissions of snapshot --agent"),
    "validate": (*_CLUSTER, "permissions of validate"),
    "check-health": (*_CLUSTER, "permissions of check-health"),
    "gate": (*_CLUSTER, "permissions of check-health"),
    "preflight webhook": ("extra webhook",),
    "preflight gangs with CEL": ("extra webhook", "extra cel"),
    "preflight health events": ("extra health",),
    "apply a bundle by hand": ("kubectl", "helm"),
}

_VALIDATION: Final = "aicr-validation"
_ROLES: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Need:
    """Something that commands need: whether it is there, in words, and the next step if not."""

    name: str
    state: str
    says: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Needs by name, and for each command the names of those that it lacks."""

    needs: Mapping[str, Need]
    lacking: Mapping[str, Sequence[str]]

    @property
    def healthy(self) -> bool:
        """Whether every command that was asked about would work."""
        return not any(self.lacking.values())

    def document(self) -> dict[str, Any]:
        """As a plain document."""
        return {
            "commands": [
                {
                    "command": name,
                    "works": not lacking,
                    **({"lacks": list(lacking)} if lacking else {}),
                }
                for name, lacking in self.lacking.items()
            ],
            "needs": [
                {
                    "need": need.name,
                    "state": need.state,
                    "says": need.says,
                    **({"next": need.hint} if need.hint else {}),
                }
                for need in self.needs.values()
            ],
        }


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


@dataclass
class Surroundings:
    """What the doctor looks at."""

    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    kubeconfig: str = ""
    context: str = ""
    importable: Callable[[str], bool] = _importable
    find: Callable[[str], str | None] = shutil.which
    machine: Machine = field(default_factory=lambda: Machine(Files(), Programs()))
    connect: Callable[..., AbstractAsyncContextManager[Client]] = connect
    load_catalogue: Callable[[], object] = Catalog.builtin
    patience: float = Limits().doctor


def chosen(words: Sequence[str]) -> list[str]:
    """The commands that *words* name; a first word names all of its forms; no words name all.

    Raises:
        AicrError: INVALID_REQUEST for a word that names none.
    """
    if not words:
        return list(COMMANDS)
    found: list[str] = []
    for word in words:
        matching = [name for name in COMMANDS if name == word or name.split(" ")[0] == word]
        if not matching:
            near = nearest(word, [name.split(" ")[0] for name in COMMANDS])
            raise invalid(
                f'nothing is known about the needs of "{word}"',
                hint=f"did you mean {near}?" if near else f"one of {', '.join(COMMANDS)}",
            )
        found += [name for name in matching if name not in found]
    return found


async def examine(around: Surroundings, commands: Sequence[str]) -> Diagnosis:
    """Look at everything that *commands* need, once each."""
    wanted = list(dict.fromkeys(need for name in commands for need in COMMANDS[name]))
    needs: dict[str, Need] = {}
    for name in wanted:
        if name in _LOCAL:
            needs[name] = await _LOCAL[name](around)
    cluster = [name for name in wanted if name not in _LOCAL]
    needs |= await _look_at_cluster(around, cluster)
    return Diagnosis(
        {name: needs[name] for name in wanted},
        {
            command: [name for name in COMMANDS[command] if needs[name].state != MET]
            for command in commands
        },
    )


def _extra(name: str) -> Callable[[Surroundings], Awaitable[Need]]:
    async def look(around: Surroundings) -> Need:
        absent = [module for module in EXTRAS[name] if not around.importable(module)]
        if absent:
            return Need(
                f"extra {name}",
                NOT_MET,
                f"not installed: {', '.join(absent)}",
                f'pip install "aicr[{name}]"',
            )
        return Need(f"extra {name}", MET, "installed")

    return look


def _program(name: str, why: str) -> Callable[[Surroundings], Awaitable[Need]]:
    async def look(around: Surroundings) -> Need:
        place = around.find(name)
        if place is None:
            return Need(name, NOT_MET, f"there is no {name} on the PATH", why)
        return Need(name, MET, place)

    return look


async def _catalogue(around: Surroundings) -> Need:
    try:
        around.load_catalogue()
    except AicrError as error:
        return Need("catalogue", NOT_MET, error.message, error.hint)
    return Need("catalogue", MET, "loads")


async def _machine(around: Surroundings) -> Need:
    absent = [path for path in ("/proc/sys", "/sys") if not around.machine.files.exists(path)]
    if absent:
        return Need(
            "machine",
            NOT_MET,
            f"there is no {' and no '.join(absent)}: only Linux can be measured",
            "measure a node of the cluster: aicr snapshot --agent",
        )
    return Need("machine", MET, "a Linux machine")


async def _gpu(around: Surroundings) -> Need:
    found = await gpu.collect(around.machine, timeout=around.patience)
    if found.missing:
        error = found.missing[0].error
        return Need("gpu", UNKNOWN, error.message, error.hint)
    data = found.subtypes[0]["data"]
    if not data["gpu-present"]:
        return Need(
            "gpu", NOT_MET, gpu.NO_GPU, "aicr snapshot --agent measures a node that has one"
        )
    return Need("gpu", MET, f"{data.get('gpu-count', 'some')} {data.get('model', 'GPU')}")


_LOCAL: Final[dict[str, Callable[[Surroundings], Awaitable[Need]]]] = {
    **{f"extra {name}": _extra(name) for name in EXTRAS},
    "catalogue": _catalogue,
    "machine": _machine,
    "gpu": _gpu,
    "helm": _program("helm", "install helm 3.14 or later"),
    "kubectl": _program("kubectl", "install kubectl"),
}


def permissions_of(name: str) -> list[Permission]:
    """What the caller of a command must be allowed to do."""
    if name == "permissions of snapshot --agent":
        return agent.required_permissions(AgentOptions(), own_account=True)
    if name == "permissions of validate":
        return [
            *verbs("get create patch", "namespaces"),
            *verbs("create get list watch delete", "jobs", group="batch", namespace=_VALIDATION),
            *verbs("get list watch", "pods", namespace=_VALIDATION),
            *verbs("get", "pods", namespace=_VALIDATION, subresource="log"),
            *verbs("create get list delete", "configmaps", namespace=_VALIDATION),
            *verbs("create delete", "serviceaccounts", namespace=_VALIDATION),
            *verbs("create delete", "clusterrolebindings", group=_ROLES),
            # Checks run as cluster-admin, which only somebody who may bind that role can grant.
            *verbs("bind", "clusterroles", group=_ROLES),
        ]
    return [
        *verbs("get list", "namespaces"),
        *verbs("get list", "pods"),
        *verbs("get list", "daemonsets", group="apps"),
        *verbs("get list", "deployments", group="apps"),
        *verbs("get list", "customresourcedefinitions", group="apiextensions.k8s.io"),
    ]


async def _look_at_cluster(around: Surroundings, names: Sequence[str]) -> dict[str, Need]:
    """The needs that a cluster meets, from the first that fails on all are unknown."""
    if not names:
        return {}
    found: dict[str, Need] = {}
    unknown = "not looked at, because {0} is missing"
    try:
        client = around.connect(
            kubeconfig=around.kubeconfig, context=around.context, environ=around.environ
        )
    except AicrError as error:
        found["kubeconfig"] = Need("kubeconfig", NOT_MET, error.message, error.hint)
        return found | {
            name: Need(name, UNKNOWN, unknown.format("a kubeconfig"))
            for name in names
            if name != "kubeconfig"
        }
    async with client as cluster:
        found["kubeconfig"] = Need("kubeconfig", MET, cluster.config.describe())
        try:
            async with asyncio.timeout(around.patience):
                version = await cluster.version()
                found["api server"] = Need("api server", MET, str(version.get("gitVersion", "")))
                for name in names:
                    if name not in found:
                        found[name] = await _permitted(cluster, name)
        except (AicrError, TimeoutError) as error:
            says, hint = _outage(error, around.patience)
            state = NOT_MET if "api server" not in found else UNKNOWN
            first = "api server" if "api server" not in found else ""
            for name in names:
                if name not in found:
                    met = Need(name, state, says, hint) if name == first else None
                    found[name] = met or Need(name, UNKNOWN, says, hint)
    return {name: found[name] for name in names}


def _outage(error: AicrError | TimeoutError, patience: float) -> tuple[str, str]:
    if isinstance(error, AicrError):
        return error.message, error.hint
    return f"no answer within {patience:g} s", "check the address and the network"


async def _permitted(cluster: Client, name: str) -> Need:
    missing = await permissions.refused(cluster, permissions_of(name))
    if missing:
        return Need(
            name,
            NOT_MET,
            f"not allowed: {'; '.join(map(str, missing))}",
            "ask an administrator for these permissions",
        )
    return Need(name, MET, "all granted")
