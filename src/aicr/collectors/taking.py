"""Taking a snapshot: all collectors side by side, each in its own time, one document in the end.

Nothing is lost silently. What a collector could not tell is a `Missing` in the result, a line for the user,
and an entry under ``notCollected`` of the document, with code and reason. Some readings are required, and
without one of them there is no snapshot at all: a recipe made from half a cluster is worse than none.
The others may lack, since a constraint on an absent reading is an error and never passes (decision 9).

Time comes from a clock that is passed in (decision 44). Source: recipe spec 8.1, 8.4.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from aicr.collectors import gpu, kubernetes, network, os_files, systemd, talos, topology
from aicr.collectors.limits import Limits
from aicr.collectors.ports import Machine
from aicr.collectors.readings import (
    GPU,
    K8S,
    NETWORK_TOPOLOGY,
    NODE_TOPOLOGY,
    OS,
    SYSTEMD,
    TYPES,
    Collected,
    Document,
    Missing,
    measurement,
)
from aicr.constraints import paths
from aicr.contract import documents
from aicr.errors import INTERNAL, TIMEOUT, AicrError, not_found
from aicr.kube.reader import Reader
from aicr.version import __version__

#: Key of the document that lists what could not be told.
NOT_COLLECTED: Final = "notCollected"
#: Without these a recipe would be made from nothing, on a machine and in a cluster.
REQUIRED_OF_MACHINE: Final = frozenset({"OS.release"})
REQUIRED_OF_CLUSTER: Final = frozenset({"K8s.server", NODE_TOPOLOGY})

TALOS: Final = "talos"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    #: The machine, None to leave it out.
    machine: Machine | None
    #: The cluster, None to leave it out.
    cluster: Reader | None
    #: Name of the machine's node, "" if it is not known.
    node: str = ""
    #: What to write as ``source-node`` if there is no node of that name.
    host: str = ""
    #: ``talos`` if the machine runs it; otherwise its node is asked.
    os: str = ""
    #: Names in a list of nodes before it is cut; 0 for all.
    most_names: int = 0
    require_gpu: bool = False
    #: Readings without which there is no snapshot.
    required: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot, and what to tell the person who asked for it."""

    document: Document
    missing: tuple[Missing, ...] = ()
    remarks: tuple[str, ...] = ()


async def take(plan: Plan, *, now: Callable[[], datetime], version: str = __version__) -> Taken:
    """Run all collectors and make the document.

    Raises:
        AicrError: that of a required reading that could not be taken; NOT_FOUND if a GPU is required
            and there is none.
    """
    node, node_error = await _node(plan)
    runs = [_safely(*one) for one in _collectors(plan, node)]
    found = list(await asyncio.gather(*runs))
    if node_error is not None:
        next(one for one in found if one.type == K8S).lacks("node", node_error)
    missing = tuple(each for one in found for each in one.missing)
    taken = Taken(
        document(found, now=now(), node=plan.node if node else plan.host, version=version),
        missing,
        tuple(remark for one in found for remark in one.remarks),
    )
    require(taken, plan.required, gpu=plan.require_gpu)
    return taken


def document(found: Collection[Collected], *, now: datetime, node: str, version: str) -> Document:
    """The snapshot document of what collectors found."""
    metadata = {
        "timestamp": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "version": version,
    }
    if node:
        metadata["source-node"] = node
    by_type = {one.type: one for one in found}
    ordered = [by_type[type_] for type_ in TYPES if type_ in by_type]
    result: Document = {
        "kind": "Snapshot",
        "apiVersion": documents.V1,
        "metadata": metadata,
        "measurements": [made for one in ordered if (made := measurement(one)) is not None],
    }
    lacking = [
        {"reading": each.name, "code": each.error.code, "reason": reason(each.error)}
        for one in ordered
        for each in sorted(one.missing, key=lambda missing: missing.name)
    ]
    if lacking:
        result[NOT_COLLECTED] = lacking
    return result


def reason(error: AicrError) -> str:
    """Why, from the outermost statement to the innermost."""
    return ": ".join(link.message for link in error.chain())


def require(taken: Taken, required: Collection[str], *, gpu: bool = False) -> None:
    """Refuse a snapshot that lacks a required reading.

    Raises:
        AicrError: with the code of the first missing one; its message names all. NOT_FOUND if *gpu*
            and the machine shows none.
    """
    lacking = [each for each in taken.missing if _concerns(each.name, required)]
    if lacking:
        named = "; ".join(f"{each.name}: {reason(each.error)}" for each in lacking)
        raise AicrError(
            lacking[0].error.code,
            f"a snapshot must not lack {named}",
            hint=lacking[0].error.hint or "--partial takes what can be had",
            context={"missing": [each.name for each in lacking]},
        ) from lacking[0].error
    if gpu and not _has_gpu(taken.document):
        raise not_found(
            "a GPU is required and none was found",
            where="GPU.hardware.gpu-present",
            hint="choose a node that has one, with --node-selector",
        )


def _concerns(missing: str, required: Collection[str]) -> bool:
    return any(
        missing == name or missing.startswith(f"{name}.") or name.startswith(f"{missing}.")
        for name in required
    )


def _has_gpu(snapshot: Document) -> bool:
    hardware = paths.find_subtype(snapshot, GPU, "hardware") or {}
    return (hardware.get("data") or {}).get("gpu-present") is True


async def _node(plan: Plan) -> tuple[Document | None, AicrError | None]:
    """The machine's Node object, or why there is none; neither without a cluster or a machine."""
    if plan.cluster is None or plan.machine is None:
        return None, None
    try:
        async with asyncio.timeout(plan.limits.kubernetes):
            return await kubernetes.read_node(plan.cluster, plan.node), None
    except AicrError as error:
        return None, error
    except TimeoutError:
        return None, _late("K8s.node", plan.limits.kubernetes)


Collector = tuple[str, float, Callable[[], Awaitable[Collected]]]


def _collectors(plan: Plan, node: Document | None) -> list[Collector]:
    limits = plan.limits
    found: list[Collector] = []
    if plan.cluster is not None:
        cluster = plan.cluster
        provider = str(kubernetes.node_readings(node).get("provider", "")) if node else ""
        found += [
            (
                K8S,
                limits.kubernetes,
                lambda: kubernetes.collect(cluster, node=node, provider=provider),
            ),
            (
                NODE_TOPOLOGY,
                limits.topology,
                lambda: topology.collect(cluster, most_names=plan.most_names),
            ),
        ]
    if plan.machine is None:
        return found
    machine = plan.machine
    labels = ((node or {}).get("metadata") or {}).get("labels") if node else None
    found += [
        (
            GPU,
            limits.machine,
            lambda: gpu.collect(machine, labels=labels, timeout=limits.machine),
        ),
        (NETWORK_TOPOLOGY, limits.machine, lambda: _threaded(network.collect, machine.files)),
    ]
    if plan.os == TALOS or (node is not None and talos.is_talos(node)):
        found.append((OS, limits.machine, lambda: _immediate(talos.collect(node or {}))))
    else:
        found += [
            (OS, limits.machine, lambda: _threaded(os_files.collect, machine.files)),
            (SYSTEMD, limits.machine, lambda: systemd.collect(machine.files)),
        ]
    return found


async def _threaded(read: Callable[[Any], Collected], files: Any) -> Collected:
    """Run *read* in a thread that the process does not wait for at its end.

    A file of a sick device may never answer; the limit then gives up on it, and so must the exit.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Collected] = loop.create_future()

    def deliver(found: Collected | None, error: Exception | None) -> None:
        if result.done():
            return
        if found is not None:
            result.set_result(found)
        elif error is not None:
            result.set_exception(error)

    def work() -> None:
        found: Collected | None = None
        failure: Exception | None = None
        try:
            found = read(files)
        except Exception as error:
            failure = error
        # The loop is closed when everybody has given up.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, found, failure)

    threading.Thread(target=work, daemon=True, name=f"aicr-{read.__module__}").start()
    return await result


async def _immediate(found: Collected) -> Collected:
    return found


async def _safely(
    type_: str, limit: float, collect: Callable[[], Awaitable[Collected]]
) -> Collected:
    """What a collector finds; if it fails as a whole, an empty measurement that says why."""
    error: AicrError
    try:
        async with asyncio.timeout(limit):
            return await collect()
    except AicrError as raised:
        error = raised
    except TimeoutError:
        error = _late(type_, limit)
    except Exception as raised:
        # A bug in one collector must not cost the other measurements, and must not go unseen.
        error = AicrError(
            INTERNAL,
            f"the collector failed unexpectedly: {type(raised).__name__}: {raised}",
            where=type_,
            hint="this is a bug in aicr; please report it",
        )
        error.__cause__ = raised
    return Collected(type_, missing=[Missing(type_, error)])


def _late(name: str, limit: float) -> AicrError:
    return AicrError(TIMEOUT, f"nothing was collected within {limit:g} s", where=name)
