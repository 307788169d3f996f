"""A Slinky Slurm cluster as checks see it: its sets, the pods of its nodes, and commands in a login pod.

The three Slurm checks are about what the recipe declares and skip without it, because their jobs take
resources of somebody's queue. Nodes that KWOK plays run nothing, so there is nothing to ask. A command
that ran and failed is an answer; one that could not be run is not, and neither is a job for which there
was no room at that moment. Source: validators spec 6.2 (slinky-slurm-*); requirement V-249.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.conformance.required import listed, unread
from aicr.checks.sdk import Context, Skip, failed
from aicr.checks.sdk.nodes import GPU
from aicr.errors import NOT_FOUND, SERVICE_UNAVAILABLE, AicrError
from aicr.kube import kinds
from aicr.values.quantities import whole_units

COMPONENT: Final = "slinky-slurm"
NAMESPACE: Final = "slurm"
API: Final = "slinky.slurm.net/v1beta1"
LOGIN_SET: Final = f"{API}/LoginSet"
NODE_SET: Final = f"{API}/NodeSet"
KWOK: Final = "kwok.x-k8s.io/node"
_INSTANCE: Final = "app.kubernetes.io/instance"
_LOGIN_CONTAINER: Final = "login"
#: What Slurm says when a job that may not wait finds no room.
_NO_ROOM: Final = (
    "requested nodes are busy",
    "immediate execution impossible",
    "requested node configuration is not available now",
)

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """A Slurm cluster.

    Attributes:
        ref: its componentRef.
        namespace: where it is.
        login_sets, node_sets: its sets.
        node_pods: the pods that are its nodes.
        nodes: name → Node of every Kubernetes node.
    """

    ref: Document
    namespace: str
    login_sets: tuple[Document, ...]
    node_sets: tuple[Document, ...]
    node_pods: tuple[Document, ...]
    nodes: Mapping[str, Document]


@dataclass(frozen=True, slots=True)
class Login:
    """A container in which commands of Slurm run."""

    pod: str
    namespace: str
    container: str


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def words(self) -> str:
        """The command's last words, or its exit status."""
        for text in (self.stderr, self.stdout):
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return f"exit status {self.status}: {lines[-1][:300]}"
        return f"exit status {self.status}"

    @property
    def no_room(self) -> bool:
        """Whether a job did not run because there was no room for it at that moment."""
        text = self.stderr.lower()
        return self.status != 0 and any(words in text for words in _NO_ROOM)


async def find_site(context: Context) -> Site:
    """The recipe's Slurm cluster.

    Raises:
        Skip: when the recipe does not declare it, or KWOK plays all of its nodes.
        AicrError: NOT_FOUND, a verdict, when a set or every pod is absent; INTERNAL when it cannot be read.
    """
    ref = context.component(COMPONENT)
    if ref is None:
        raise Skip(f"the recipe does not declare {COMPONENT}")
    namespace = str(ref.get("namespace") or NAMESPACE)
    login_sets = await _sets(context, LOGIN_SET, namespace)
    node_sets = await _sets(context, NODE_SET, namespace)
    pods = await _pods(context, node_sets, namespace)
    if not pods:
        raise failed(
            f"the NodeSets of {namespace} have no pods",
            code=NOT_FOUND,
            hint=f"kubectl describe nodesets.slinky.slurm.net -n {namespace}",
        )
    nodes = {str(node["metadata"]["name"]): node for node in await listed(context, kinds.NODE)}
    if all(is_kwok(nodes.get(node_of(pod))) for pod in pods):
        raise Skip("every NodeSet pod is on a node that KWOK plays, where nothing runs")
    return Site(ref, namespace, tuple(login_sets), tuple(node_sets), tuple(pods), nodes)


async def find_login(context: Context, site: Site) -> Login:
    """A ready login pod.

    Raises:
        AicrError: SERVICE_UNAVAILABLE, a verdict, when none is ready.
    """
    pods = await _pods(context, site.login_sets, site.namespace)
    ready = sorted((pod for pod in pods if is_ready(pod)), key=lambda pod: pod["metadata"]["name"])
    if not ready:
        raise failed(
            f"no login pod in {site.namespace} is ready ({len(pods)} there)",
            code=SERVICE_UNAVAILABLE,
            hint=f"kubectl describe pods -n {site.namespace} -l app.kubernetes.io/component=login",
        )
    names = [str(each["name"]) for each in ready[0]["spec"]["containers"]]
    container = _LOGIN_CONTAINER if _LOGIN_CONTAINER in names else names[0]
    return Login(str(ready[0]["metadata"]["name"]), site.namespace, container)


async def execute(context: Context, login: Login, command: Sequence[str]) -> Ran:
    """Run a command in the login pod.

    Raises:
        AicrError: INTERNAL with its cause when it could not be run.
    """
    try:
        result = await context.cluster.exec(
            login.pod,
            command,
            namespace=login.namespace,
            container=login.container,
            timeout=context.timeout(context.timeouts.diagnostic),
        )
    except AicrError as error:
        raise unread(f"what {command[0]} says in pod {login.pod}", error) from error
    return Ran(
        result.exit_code,
        result.stdout.decode("utf-8", "replace"),
        result.stderr.decode("utf-8", "replace"),
    )


def job_error(what: str, ran: Ran) -> AicrError:
    """The error for a job that did not end with 0: a verdict unless there was no room."""
    if ran.no_room:
        return AicrError(
            SERVICE_UNAVAILABLE,
            f"{what} found no room: {ran.words}",
            hint="run the check again when the queue has room; sinfo and squeue show what is taken",
        )
    return failed(f"{what} failed: {ran.words}", hint="sinfo -R and scontrol show nodes say more")


async def _sets(context: Context, kind: str, namespace: str) -> list[dict[str, Any]]:
    word = kind.rpartition("/")[2]
    try:
        found = await context.cluster.list(kind, namespace=namespace)
    except AicrError as error:
        if error.code != NOT_FOUND:
            raise unread(f"{word} objects", error) from error
        raise failed(
            f"the cluster serves no {word} of {API}",
            code=NOT_FOUND,
            hint="install slinky-slurm-operator-crds",
        ) from error
    if not found:
        raise failed(
            f"no {word} in {namespace}",
            code=NOT_FOUND,
            hint=f"{COMPONENT} makes them; is its release installed in {namespace}?",
        )
    return sorted(of_cluster(found), key=lambda each: str(each["metadata"]["name"]))


async def _pods(context: Context, sets: Iterable[Document], namespace: str) -> list[dict[str, Any]]:
    """The pods of sets, each once, by name."""
    found: dict[str, dict[str, Any]] = {}
    for each in sets:
        for pod in await listed(context, kinds.POD, namespace, selector_of(each)):
            found[str(pod["metadata"]["name"])] = pod
    return [found[name] for name in sorted(found)]


def of_cluster(sets: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sets that belong to the recipe's controller; all of them when none says so."""
    mine = [
        each
        for each in sets
        if ((each.get("spec") or {}).get("controllerRef") or {}).get("name") == COMPONENT
    ]
    return mine or list(sets)


def selector_of(document: Document) -> str:
    """By which labels the pods of a set are found: what its controller reports, else its name."""
    reported = str((document.get("status") or {}).get("selector") or "")
    return reported or f"{_INSTANCE}={document['metadata']['name']}"


def node_of(pod: Document) -> str:
    """The Kubernetes node of a pod, "" if it has none."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def is_kwok(node: Document | None) -> bool:
    """Whether KWOK plays a node."""
    return node is not None and KWOK in (node["metadata"].get("annotations") or {})


def is_ready(pod: Document) -> bool:
    """Whether a pod is ready and not on its way out."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return "deletionTimestamp" not in pod["metadata"] and any(
        each.get("type") == "Ready" and each.get("status") == "True" for each in conditions
    )


def gpus_of(pods: Iterable[Document]) -> int:
    """How many ``nvidia.com/gpu`` pods have."""
    return sum(
        whole_units(amount, GPU)
        for pod in pods
        for container in pod["spec"].get("containers") or []
        if (amount := ((container.get("resources") or {}).get("limits") or {}).get(GPU)) is not None
    )
