"""Kubeflow Trainer: there because the recipe installs it, or installed for the length of a run.

A recipe that declares Trainer promised it, so a part that is missing fails. One that does not may still
be measured: what is missing is then created from manifests that the operator hands over, awaited, and
removed afterwards in the opposite order, unless another NCCL run is there that may use it. Nothing is
downloaded, and an object that was there before is neither changed nor removed.
Source: validators spec 7.2 "Execution"; capability contract 5.3.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from aicr.checks.performance.nccl_settings import TRAINER as MANIFESTS
from aicr.checks.sdk import Capability, Context, declares, failed, require, require_list, resources
from aicr.checks.sdk.cluster_reads import established, find, probe_crd, probe_list
from aicr.checks.sdk.removal import remove
from aicr.errors import CONFLICT, INTERNAL, NOT_FOUND, AicrError, invalid
from aicr.kube import kinds
from aicr.yamlio import read

COMPONENT: Final = "kubeflow-trainer"
CRDS: Final = ("trainjobs.trainer.kubeflow.org", "trainingruntimes.trainer.kubeflow.org")
#: What the controller's Deployment is called: exactly, or behind the name of a release.
CONTROLLER: Final = "kubeflow-trainer-controller-manager"

Document = dict[str, Any]


@contextlib.asynccontextmanager
async def present(
    context: Context, in_use: Callable[[], Any], read_text: Callable[[str], str] | None = None
) -> AsyncIterator[list[str]]:
    """Trainer for the length of a block; gives what was installed for it, ``Kind/name`` each.

    Args:
        context: of the check.
        in_use: awaitable of the names of other runs' namespaces, asked before anything is removed.
        read_text: reads the manifests' file.

    Raises:
        AicrError: NOT_FOUND, a verdict, when Trainer is incomplete and cannot be installed; TIMEOUT or
            INTERNAL when it does not come up.
    """
    missing = await _missing(context)
    made: list[Document] = []
    try:
        if missing:
            _refuse_declared(context, missing)
            await _install(context, missing, made, read_text or _read_file)
        await _wait(context)
        yield [_title(one) for one in made]
    finally:
        if made:
            await _uninstall(context, made, in_use)


def manifests(text: str, source: str) -> list[Document]:
    """The objects of a stream of manifests, in its order.

    Raises:
        AicrError: INVALID_REQUEST for an entry that is no object, and for a stream without one.
    """
    found = [one for one in read.load_all(text, source=source) if one is not None]
    for number, one in enumerate(found, 1):
        fine = isinstance(one, dict) and one.get("apiVersion") and one.get("kind")
        if not fine or not (one.get("metadata") or {}).get("name"):
            raise invalid(f"document {number} is no object", where=source)
    if not found:
        raise invalid("it holds no object", where=source)
    return found


async def _missing(context: Context) -> list[str]:
    """The parts that are not there."""
    found = []
    for name in CRDS:
        crd, error = await probe_crd(context, name)
        if error is not None and error.code != NOT_FOUND:
            require(context, Capability(COMPONENT, f"CRD {name}"), error, False)
        if crd is None:
            found.append(f"CRD {name}")
    deployments, error = await probe_list(context, kinds.DEPLOYMENT)
    require_list(error, Capability(COMPONENT, "its controller"))
    if _controller(deployments) is None:
        found.append(f"Deployment {CONTROLLER}")
    return found


def _controller(deployments: list[Document]) -> Document | None:
    """The Deployment of Trainer's controller, in whatever namespace."""
    named = [each for each in deployments if _is(each, CONTROLLER)]
    return min(named, key=lambda each: str(each["metadata"].get("namespace")), default=None)


def _is(document: Mapping[str, Any], name: str) -> bool:
    has = str(document["metadata"]["name"])
    return has == name or has.endswith(f"-{name}")


def _refuse_declared(context: Context, missing: list[str]) -> None:
    if declares(context, COMPONENT):
        raise failed(
            f"{COMPONENT}: the recipe declares it, and it is incomplete: {', '.join(missing)} not found",
            code=NOT_FOUND,
            hint=f"install {COMPONENT} of this recipe again",
        )


async def _install(
    context: Context, missing: list[str], made: list[Document], read_text: Callable[[str], str]
) -> None:
    path = context.environ.get(MANIFESTS, "").strip()
    if not path:
        raise failed(
            f"Kubeflow Trainer is not installed ({', '.join(missing)}), and the recipe does not bring it",
            code=NOT_FOUND,
            hint=f"install {COMPONENT}, or name its manifests in {MANIFESTS} of the check's catalogue "
            "entry: they are applied for the length of the run",
        )
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(f"{MANIFESTS} cannot be read: {error}", where=path) from error
    for wanted in manifests(text, path):
        namespace = str(wanted["metadata"].get("namespace") or "")
        try:
            made.append(await context.cluster.create(wanted, namespace=namespace))
        except AicrError as error:
            if error.code != CONFLICT:
                raise AicrError(
                    INTERNAL, f"cannot install {_title(wanted)} of Kubeflow Trainer"
                ) from error
    context.out(f"Kubeflow Trainer installed for this run: {len(made)} objects")


async def _uninstall(context: Context, made: list[Document], in_use: Callable[[], Any]) -> None:
    try:
        others = await in_use()
    except AicrError as error:
        context.log.warning("Kubeflow Trainer stays: cannot tell who uses it: %s", error)
        return
    if others:
        context.log.warning("Kubeflow Trainer stays: %s may use it", ", ".join(others))
        return
    for one in reversed(made):
        metadata = one["metadata"]
        kind = f"{one['apiVersion']}/{one['kind']}"
        await remove(
            *(context, kind, metadata["name"], str(metadata.get("namespace") or "")),
            str(metadata.get("uid") or ""),
        )


async def _wait(context: Context) -> None:
    """Wait until the CRDs are served and the controller is available."""
    limit = context.timeout(context.timeouts.trainer_crd_established)
    for name in CRDS:
        if not await _until(context, limit, lambda name=name: _served(context, name)):  # type: ignore[misc]
            raise failed(f"CustomResourceDefinition {name} was not established within {limit:g} s")
    limit = context.timeout(context.timeouts.trainer_controller)
    if not await _until(context, limit, lambda: _available(context)):
        raise failed(
            f"the controller of Kubeflow Trainer was not available within {limit:g} s",
            hint=f"kubectl describe deployment -A -l app.kubernetes.io/name={COMPONENT}",
        )


async def _until(context: Context, seconds: float, done: Callable[[], Any]) -> bool:
    end = context.clock.now() + seconds
    while not await done():
        if context.clock.now() >= end:
            return False
        await context.clock.sleep(min(context.timeouts.poll, seconds / 20))
    return True


async def _served(context: Context, name: str) -> bool:
    found = await find(context, kinds.CUSTOM_RESOURCE_DEFINITION, name)
    return found is not None and established(found)


async def _available(context: Context) -> bool:
    found = _controller(await context.cluster.list(kinds.DEPLOYMENT))
    return found is not None and resources.state("Deployment", found)[0]


def _title(document: Mapping[str, Any]) -> str:
    return f"{document['kind']}/{document['metadata']['name']}"


def _read_file(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")
