"""A snapshot from where the command runs: this machine, and the cluster that it is a node of.

A machine that is no node of the configured cluster is refused: its operating system and its GPUs would be
taken for the cluster's, and a recipe would follow from somebody's laptop. The refusal names the three ways
out: the agent, leaving the cluster out, or saying which node this is.

Source: recipe spec 8.4, decision 9.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from aicr.collectors import kubernetes, projections, taking
from aicr.collectors.limits import Limits
from aicr.collectors.ports import Commands, Files, Machine, Programs
from aicr.collectors.readings import Document
from aicr.collectors.taking import Taken
from aicr.errors import invalid
from aicr.kube import connect
from aicr.kube.config import SERVICE_ACCOUNT_FOLDER
from aicr.kube.reader import Reader


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """What a caller may say.

    Attributes:
        cluster: None to use the cluster that applies if there is one, False to leave it out.
        root: where the machine's files are.
        provider: subtypes of cloud dumps to merge into the snapshot.
    """

    kubeconfig: str = ""
    context: str = ""
    cluster: bool | None = None
    os: str = ""
    most_names: int = 0
    require_gpu: bool = False
    partial: bool = False
    root: Path = Path("/")
    provider: tuple[Document, ...] = ()
    commands: Commands = field(default_factory=Programs)

    def __post_init__(self) -> None:
        """INVALID_REQUEST for a number of names that is none."""
        if self.most_names < 0:
            raise invalid(
                f"{self.most_names} names are not possible", where="--max-nodes-per-entry"
            )


def cluster_applies(options: LocalOptions, environ: Mapping[str, str]) -> bool:
    """Whether there is a cluster to ask: one that was named, a pod's own, or a standard kubeconfig.

    A file that was asked for counts although it may not exist, because that is an error to be told.
    """
    if options.cluster is not None:
        return options.cluster
    if options.kubeconfig or options.context or environ.get("KUBECONFIG"):
        return True
    # os.path, because pathlib raises for a home that this user may not look into.
    token = os.path.join(SERVICE_ACCOUNT_FOLDER, "token")
    if environ.get("KUBERNETES_SERVICE_HOST") and os.path.isfile(token):
        return True
    home = environ.get("HOME")
    return bool(home) and os.path.isfile(os.path.join(str(home), ".kube", "config"))


async def snapshot(
    options: LocalOptions,
    environ: Mapping[str, str],
    *,
    say: Callable[[str], None],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Taken:
    """Take the snapshot.

    Raises:
        AicrError: no access to the configured cluster, or a required reading that is missing.
    """
    if not cluster_applies(options, environ):
        say("no cluster is configured: only this machine is measured")
        return _with_provider(await _take(options, environ, None, now), options)
    async with connect(
        kubeconfig=options.kubeconfig, context=options.context, environ=environ
    ) as cluster:
        say(f"cluster: {cluster.config.describe()}")
        return _with_provider(await _take(options, environ, cluster, now), options)


async def _take(
    options: LocalOptions,
    environ: Mapping[str, str],
    cluster: Reader | None,
    now: Callable[[], datetime],
) -> Taken:
    required = taking.REQUIRED_OF_MACHINE
    if cluster is not None:
        required |= taking.REQUIRED_OF_CLUSTER | {"K8s.node"}
    host = socket.gethostname()
    plan = taking.Plan(
        machine=Machine(Files(options.root), options.commands),
        cluster=cluster,
        # A shell does not pass HOSTNAME on; kubelets name nodes after the host unless told otherwise.
        node=kubernetes.node_name(environ) or host.lower(),
        host=host,
        os=options.os,
        most_names=options.most_names,
        require_gpu=options.require_gpu,
        required=frozenset() if options.partial else required,
        limits=Limits.from_environment(environ),
    )
    return await taking.take(plan, now=now)


def _with_provider(taken: Taken, options: LocalOptions) -> Taken:
    document = projections.merged(taken.document, list(options.provider))
    return Taken(document, taken.missing, taken.remarks)
