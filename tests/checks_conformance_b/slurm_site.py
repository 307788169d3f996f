"""A Slurm cluster on the fake API server, and a login container that answers as Slurm's commands do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.checks.contexts import node, pod
from tests.checks_conformance_b.bench import Answer, Bench, declared

from aicr.checks.sdk.check import Check
from aicr.errors import AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]
NS = "slurm"
LOGIN_SET = Resource("slinky.slurm.net", "v1beta1", "loginsets", "LoginSet", True)
NODE_SET = Resource("slinky.slurm.net", "v1beta1", "nodesets", "NodeSet", True)
CRITERIA = {
    "service": "eks",
    "accelerator": "gb200",
    "intent": "training",
    "os": "ubuntu",
    "platform": "slurm",
}
BUSY = "srun: error: Unable to allocate resources: Requested nodes are busy\n"
DOWN = "Slurmctld(primary) at slinky-slurm-controller-0 is DOWN\n"
UP = "Slurmctld(primary) at slinky-slurm-controller-0 is UP\n"

Answers = Callable[[Sequence[str]], Answer | AicrError]


def slurm(overrides: Document | None = None, criteria: Document | None = None) -> Document:
    """A validation input that declares the cluster."""
    ref = {"namespace": NS, "overrides": overrides or {}}
    found = declared("slinky-slurm", slinky_slurm=ref)
    return {**found, "criteria": CRITERIA if criteria is None else criteria}


def worker(name: str, on: str, *, gpus: int = 4, claim: str = "slinky-imex") -> Document:
    """A pod that is a Slurm node."""
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    claims = [{"name": "c", "resourceClaimTemplateName": claim}] if claim else []
    return pod(
        name,
        NS,
        labels={"app.kubernetes.io/instance": "workers"},
        spec={
            "nodeName": on,
            "containers": [{"name": "slurmd", "resources": limits}],
            "resourceClaims": claims,
        },
        status={"conditions": [{"type": "Ready", "status": "True"}]},
    )


def login(name: str = "login-0", *, ready: bool = True) -> Document:
    """A login pod."""
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    containers = [{"name": "sidecar"}, {"name": "login"}]
    labels: Any = {"login": "yes"}
    return pod(name, NS, labels=labels, spec={"containers": containers}, status=status)


def site(
    check: Check,
    *,
    answer: Answers = lambda _: Answer(),
    validation: Document | None = None,
    workers: tuple[Document, ...] | None = None,
    logins: tuple[Document, ...] | None = None,
    kwok: bool = False,
    clique: str = "c.1",
    without: str = "",
    **more: Any,
) -> Bench:
    """A cluster with two nodes, but for what is named."""
    served = (LOGIN_SET, NODE_SET)
    found = Bench(
        check,
        validation=slurm() if validation is None else validation,
        answer=answer,
        **{"served": served, **more},
    )
    for name in ("a", "b"):
        document = node(name, gpus=4, labels={"nvidia.com/gpu.clique": clique} if clique else {})
        if kwok:
            document["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
        found.put(kinds.NODE, document)
    ref = {"controllerRef": {"name": "slinky-slurm"}}
    login_set = {
        "metadata": {"name": "logins", "namespace": NS},
        "spec": ref,
        "status": {"selector": "login=yes"},
    }
    if without != "LoginSet":
        found.put(LOGIN_SET, login_set)
    if without != "NodeSet":
        found.put(NODE_SET, {"metadata": {"name": "workers", "namespace": NS}, "spec": ref})
    standard = (worker("slinky-0", "a"), worker("slinky-1", "b"))
    found.put(kinds.POD, *(standard if workers is None else workers))
    return found.put(kinds.POD, *((login(),) if logins is None else logins))
