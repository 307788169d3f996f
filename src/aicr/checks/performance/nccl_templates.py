"""Runtime templates: from text with placeholders to the object that is applied.

```
text ──fill──► text ──parse──► TrainingRuntime ──stamp──► with name, namespace, image, placement
```

Placeholders are replaced in the text, so that ``${WORKER_COUNT}`` without quotes becomes a number and a
quoted one stays text. What a template of ours names must have a value; a supplied runtime may hold
``${HOME}`` of a shell, which is left alone. Pure; nothing given is changed.
Source: validators spec 7.2 "Execution"; requirements V-207, V-288, V-293, V-294.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aicr.checks.conformance.gpu_pods import on_nodes
from aicr.errors import AicrError, invalid
from aicr.yamlio import read

API_VERSION: Final = "trainer.kubeflow.org/v1alpha1"
KIND: Final = "TrainingRuntime"
RUNTIME: Final = "nccl-all-reduce-runtime"
TRAIN_JOB: Final = "nccl-all-reduce-tj"
COMPUTE_DOMAIN: Final = "nccl-all-reduce-cd"
IMEX_TEMPLATE: Final = "nccl-all-reduce-imex"
NODE: Final = "node"
LAUNCHER: Final = "launcher"
EFA_RESOURCE: Final = "vpc.amazonaws.com/efa"
TEST: Final = "all_reduce_perf"
MIN_SIZE: Final = "1K"
MAX_SIZE: Final = "16G"
#: Without EFA the largest sizes take longer than the run may.
MAX_SIZE_WITHOUT_EFA: Final = "4G"
#: Name → a value of its kind, for a look at a template before the real ones are known.
VARIABLES: Final[Mapping[str, str]] = {
    "NAMESPACE": "default",
    "WORKER_COUNT": "2",
    "GPU_COUNT_PER_NODE": "8",
    "GPU_COUNT": "16",
    "TEST_TYPE": TEST,
    "MIN_MESSAGE_SIZE": MIN_SIZE,
    "MAX_MESSAGE_SIZE": MAX_SIZE,
    "GKE_NETWORK_INTERFACES": "[]",
    "NRI_DEVICE_ANNOTATION": "[]",
    "EFA_COUNT": "1",
    "INSTANCE_TYPE": "",
}
#: Among how many nodes the launcher may choose; enough to find one that takes it.
_LAUNCHER_NODES: Final = 16
_PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

Document = dict[str, Any]


def variables(
    namespace: str,
    workers: int,
    gpus: int,
    *,
    efa: int = 0,
    largest: str = MAX_SIZE,
    interfaces: str = "[]",
    devices: str = "[]",
    instance_type: str = "",
) -> dict[str, str]:
    """The values of a run; *gpus* is per node, *efa* the adapters of a node."""
    return {
        **VARIABLES,
        "NAMESPACE": namespace,
        "WORKER_COUNT": str(workers),
        "GPU_COUNT_PER_NODE": str(gpus),
        "GPU_COUNT": str(workers * gpus),
        "MAX_MESSAGE_SIZE": largest,
        "GKE_NETWORK_INTERFACES": interfaces,
        "NRI_DEVICE_ANNOTATION": devices,
        "EFA_COUNT": str(efa),
        "INSTANCE_TYPE": instance_type,
    }


def fill(text: str, values: Mapping[str, str]) -> str:
    """*text* with each placeholder that has a value replaced; others stay."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def unfilled(text: str) -> list[str]:
    """The placeholders of *text* that this product has no value for."""
    return sorted({name for name in _PLACEHOLDER.findall(text) if name not in VARIABLES})


def sample(text: str) -> str:
    """*text* with values of the right kind, for checking its shape."""
    return fill(text, VARIABLES)


def parse(text: str, source: str) -> Document:
    """The one document in *text*.

    Raises:
        AicrError: INVALID_REQUEST for what is not one map.
    """
    found = [one for one in read.load_all(text, source=source) if one is not None]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise invalid(f"it holds {len(found)} documents, not one TrainingRuntime", where=source)
    document: Document = found[0]
    return document


def check(runtime: Mapping[str, Any]) -> None:
    """Check that *runtime* is a TrainingRuntime with workers.

    Raises:
        AicrError: INVALID_REQUEST otherwise.
    """
    api_version, kind = runtime.get("apiVersion"), runtime.get("kind")
    if (api_version, kind) != (API_VERSION, KIND):
        raise invalid(
            f"it is {api_version} {kind}, not {API_VERSION} {KIND}",
            hint="only a TrainingRuntime can be applied",
        )
    spec = node_template(runtime).get("spec")
    if not isinstance(spec, Mapping) or not spec:
        raise invalid(f"its replicated job {NODE} has no pod spec at template.spec.template.spec")


def node_template(runtime: Mapping[str, Any]) -> Document:
    """The pod template of the workers.

    Raises:
        AicrError: INVALID_REQUEST when there is no replicated job of that name.
    """
    return _pods(runtime, NODE)


def launcher_template(runtime: Mapping[str, Any]) -> Document:
    """The pod template of the launcher; errors as `node_template`."""
    return _pods(runtime, LAUNCHER)


def has_job(runtime: Mapping[str, Any], name: str) -> bool:
    """Whether *runtime* has a replicated job called *name*."""
    return any(job.get("name") == name for job in _jobs(runtime))


def with_pods(runtime: Mapping[str, Any], name: str, pods: Mapping[str, Any]) -> Document:
    """*runtime* with the pod template of job *name* replaced."""
    made = copy.deepcopy(dict(runtime))
    for job in _jobs(made):
        if job.get("name") == name:
            job["template"]["spec"]["template"] = copy.deepcopy(dict(pods))
    return made


def worker_container(pods: Mapping[str, Any]) -> Document:
    """The container of the benchmark in a pod template: the one called `NODE`, else the only one.

    Raises:
        AicrError: INVALID_REQUEST when it cannot be told.
    """
    containers = (pods.get("spec") or {}).get("containers") or []
    named = [each for each in containers if each.get("name") == NODE]
    if len(named) == 1 or (not named and len(containers) == 1):
        found: Document = (named or containers)[0]
        return found
    raise invalid(f"the worker has no single container called {NODE}")


def owned(runtime: Mapping[str, Any], namespace: str) -> Document:
    """*runtime* under the run's own name, in the run's namespace, whatever it said itself."""
    made = copy.deepcopy(dict(runtime))
    metadata = {
        key: value
        for key, value in (made.get("metadata") or {}).items()
        if key in ("labels", "annotations")
    }
    made["metadata"] = {**metadata, "name": RUNTIME, "namespace": namespace}
    return made


def with_image(runtime: Mapping[str, Any], image: str) -> Document:
    """*runtime* with *image* in the containers of the benchmark, launcher and worker alike."""
    made = copy.deepcopy(dict(runtime))
    for name in (LAUNCHER, NODE):
        if has_job(made, name):
            worker_container(_pods(made, name))["image"] = image
    return made


def without_efa(runtime: Mapping[str, Any]) -> Document:
    """*runtime* that asks for no EFA adapters, for instances that have none."""
    made = copy.deepcopy(dict(runtime))
    resources = worker_container(node_template(made)).get("resources") or {}
    for kind in ("limits", "requests"):
        (resources.get(kind) or {}).pop(EFA_RESOURCE, None)
    return made


def placed(
    runtime: Mapping[str, Any],
    selector: Mapping[str, str] | None,
    tolerations: Sequence[Mapping[str, Any]] | None,
) -> Document:
    """*runtime* with workers placed like that; None leaves what is there."""
    made = copy.deepcopy(dict(runtime))
    spec = node_template(made)["spec"]
    if selector is not None:
        spec["nodeSelector"] = dict(selector)
    if tolerations is not None:
        spec["tolerations"] = [dict(each) for each in tolerations]
    return made


def with_launcher_on(runtime: Mapping[str, Any], nodes: Sequence[str]) -> Document:
    """*runtime* with the launcher on one of *nodes*, unless it says itself where it belongs.

    It tolerates everything and needs no GPU: left alone, it could land on a node where nothing runs.
    """
    made = copy.deepcopy(dict(runtime))
    if not has_job(made, LAUNCHER):
        return made
    spec = launcher_template(made)["spec"]
    if not any(spec.get(key) for key in ("nodeSelector", "affinity", "nodeName")):
        spec["affinity"] = on_nodes(nodes[:_LAUNCHER_NODES])
    return made


def train_job(namespace: str, labels: Mapping[str, str]) -> Document:
    """The TrainJob that runs the runtime."""
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": TRAIN_JOB, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "runtimeRef": {"apiGroup": API_VERSION.partition("/")[0], "kind": KIND, "name": RUNTIME}
        },
    }


def compute_domain(namespace: str, workers: int) -> Document:
    """The ComputeDomain of the run: one IMEX channel for each worker's node."""
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": COMPUTE_DOMAIN, "namespace": namespace},
        "spec": {
            "numNodes": workers,
            "channel": {"resourceClaimTemplate": {"name": IMEX_TEMPLATE}},
        },
    }


def _jobs(runtime: Mapping[str, Any]) -> list[Document]:
    found: Any = runtime
    for key in ("spec", "template", "spec", "replicatedJobs"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return [job for job in found or [] if isinstance(job, dict)] if isinstance(found, list) else []


def _pods(runtime: Mapping[str, Any], name: str) -> Document:
    for job in _jobs(runtime):
        if job.get("name") == name:
            found = ((job.get("template") or {}).get("spec") or {}).get("template")
            if isinstance(found, dict):
                return found
    raise _absent(name)


def _absent(name: str) -> AicrError:
    return invalid(f'it has no replicated job "{name}" with a pod template')
