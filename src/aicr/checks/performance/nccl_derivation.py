"""From the runtime that the recipe delivered to the one that is measured, and the proof of how they relate.

```
shipped node template ─┐
                       ├─ derive ──► derived template ──► placed, created, read back
MPI skeleton ──────────┘                                          │
shipped ──────────────────────────── provenance ◄─────────────────┘
```

The shipped template of the workers is copied whole. Only what the benchmark must own is put in from the
skeleton (`OWNED`), volumes and mounts are added, and a guard fails the run when anything else differs.
What is put in must hide nothing: a shipped command, another GPU request or missing fabric variables
fail before, because the skeleton would silently repair them. The measurement runs with the variables of
the container: the bootstrap no longer reads the host's profile, and the launcher exports no tuning.

Pure; documents that are given stay as they are. It must not know how a run goes on.
Source: validators spec 7.2 "Delivered artifact"; requirements V-184, V-195 to V-212.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from aicr.checks.performance import nccl_templates
from aicr.checks.performance.nccl_paths import differing, inherited
from aicr.checks.sdk import failed
from aicr.checks.sdk.nodes import GPU
from aicr.errors import AicrError
from aicr.values.quantities import whole_units

#: Fields of the worker's container that come from the skeleton; one that the skeleton lacks is removed.
OWNED: Final = ("image", "command", "args", "resources", "terminationMessagePolicy")
#: Variables without which the shipped worker would not use the fabric that it is shipped for.
FABRIC_ENV: Final = ("NCCL_FASTRAK_IFNAME", "NCCL_SOCKET_IFNAME")
#: The file by which the fixture takes the host's variables.
HOST_PROFILE: Final = "nccl-env-profile.sh"
#: An export of the launcher that would override what the container says; NCCL_DEBUG= is no wiring.
_EXPORT: Final = re.compile(
    r"[ \t]*-x[ \t]+(?:NCCL_(?!DEBUG=)\w+|CUDA_\w+|LD_LIBRARY_PATH)(?:=\S*)?(?=\s|$)"
)
_EMPTY_CONTINUATION: Final = re.compile(r"^[ \t]*\\\n", re.MULTILINE)

Document = dict[str, Any]


def unmet(shipped: Mapping[str, Any], gpus: int) -> list[str]:
    """What keeps a shipped worker template from being measured, a line each; empty when nothing does.

    *gpus* is what each target node has to give.
    """
    try:
        worker = nccl_templates.worker_container(shipped)
    except AicrError as error:
        return [error.message]
    found = [f"the worker sets {key}" for key in ("command", "args") if worker.get(key)]
    if worker.get("terminationMessagePolicy"):
        found.append("the worker sets terminationMessagePolicy")
    declared = {each.get("name") for each in worker.get("env") or []}
    found += [f"the worker does not declare {name}" for name in FABRIC_ENV if name not in declared]
    resources = worker.get("resources") or {}
    if set(resources) - {"limits", "requests"}:
        found.append(f"the worker's resources hold {', '.join(sorted(resources))}")
    for kind in ("limits", "requests"):
        stated = resources.get(kind) or {}
        if set(stated) != {GPU}:
            names = ", ".join(sorted(stated)) or "nothing"
            found.append(f"the worker's {kind} hold {names}, not {GPU} alone")
        elif _units(stated[GPU]) != gpus:
            found.append(f"the worker's {kind} ask for {stated[GPU]} GPUs, the nodes have {gpus}")
    return found


def derive(
    shipped: Mapping[str, Any], skeleton: Mapping[str, Any], runtime: str, gpus: int
) -> Document:
    """The skeleton's TrainingRuntime with workers derived from the shipped template.

    Args:
        shipped: PodTemplateSpec of the delivered runtime's workers.
        skeleton: TrainingRuntime rendered with the run's values.
        runtime: name of the delivered runtime, for messages.
        gpus: what each target node has to give.

    Raises:
        AicrError: INTERNAL, a verdict, when the shipped template cannot be measured without changing
            more than the benchmark owns.
    """
    problems = unmet(shipped, gpus)
    if problems:
        raise failed(
            f"the delivered runtime {runtime} cannot be measured: {'; '.join(problems)}",
            hint="install the recipe's kubeflow-trainer again, unchanged",
        )
    bench = nccl_templates.node_template(skeleton)
    pods = derived_pods(shipped, bench)
    foreign = unexpected(shipped, pods, bench)
    if foreign:
        raise failed(
            f"the derived runtime differs from {runtime} at {', '.join(foreign[:5])}",
            hint="only the benchmark's own fields may differ; a volume of the same name is in the way",
        )
    made = nccl_templates.with_pods(skeleton, nccl_templates.NODE, pods)
    launcher = nccl_templates.launcher_template(made)
    container = nccl_templates.worker_container(launcher)
    for key in ("command", "args"):
        if container.get(key):
            container[key] = [stripped(word) for word in container[key]]
    return made


def derived_pods(shipped: Mapping[str, Any], bench: Mapping[str, Any]) -> Document:
    """The shipped pod template with the benchmark's fields, volumes and mounts put in."""
    pods = copy.deepcopy(dict(shipped))
    worker, ours = nccl_templates.worker_container(pods), nccl_templates.worker_container(bench)
    for key in OWNED:
        worker.pop(key, None)
        if key in ours:
            worker[key] = copy.deepcopy(ours[key])
    for key in ("command", "args"):
        if worker.get(key):
            worker[key] = [without_host_profile(word) for word in worker[key]]
    _add(worker, "volumeMounts", ours.get("volumeMounts") or [], lambda one: one.get("mountPath"))
    volumes = (bench.get("spec") or {}).get("volumes") or []
    _add(pods["spec"], "volumes", volumes, lambda one: one.get("name"))
    return pods


def unexpected(
    shipped: Mapping[str, Any], derived: Mapping[str, Any], bench: Mapping[str, Any]
) -> list[str]:
    """Where *derived* differs from *shipped* although the benchmark owns nothing there, sorted."""
    name = nccl_templates.worker_container(shipped).get("name")
    place = f"spec.containers[{name}]"
    owned = tuple(f"{place}.{key}" for key in OWNED)
    rest = [path for path in differing(shipped, derived) if not _under(path, owned)]
    kept = {
        f"{place}.volumeMounts": _only_added(
            nccl_templates.worker_container(shipped).get("volumeMounts"),
            nccl_templates.worker_container(derived).get("volumeMounts"),
            nccl_templates.worker_container(bench).get("volumeMounts"),
        ),
        "spec.volumes": _only_added(
            (shipped.get("spec") or {}).get("volumes"),
            (derived.get("spec") or {}).get("volumes"),
            (bench.get("spec") or {}).get("volumes"),
        ),
    }
    added = tuple(path for path, only in kept.items() if only)
    return [path for path in rest if not _under(path, added)]


def provenance(shipped: Mapping[str, Any], stored: Mapping[str, Any]) -> Document:
    """The record of what was measured, with *stored* as the API server gave it back.

    Digests are of the normalised templates; paths hold keys only, never a value.
    """
    return {
        "shippedDigest": digest(shipped),
        "derivedDigest": digest(stored),
        "overriddenPaths": differing(normalised(shipped), normalised(stored)),
        "inheritedPaths": inherited(normalised(shipped), normalised(stored)),
    }


def digest(template: Mapping[str, Any]) -> str:
    """sha256 in hex of a normalised pod template."""
    text = json.dumps(normalised(template), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def normalised(value: Any) -> Any:
    """*value* without what says nothing: nulls, and maps and lists that are empty."""
    if isinstance(value, Mapping):
        parts = {str(key): normalised(inner) for key, inner in value.items()}
        return {key: inner for key, inner in parts.items() if inner not in (None, {}, [])}
    if isinstance(value, list | tuple):
        return [normalised(inner) for inner in value]
    return value


def stripped(script: str) -> str:
    """A launcher's command without the exports that would override the container's variables."""
    return _EMPTY_CONTINUATION.sub("", _EXPORT.sub("", script))


def without_host_profile(script: str) -> str:
    """A bootstrap without the lines that take the host's variables."""
    lines = script.splitlines(keepends=True)
    return "".join(line for line in lines if HOST_PROFILE not in line)


def _under(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith((f"{place}.", f"{place}[")) for place in places)


def _add(
    owner: Document,
    key: str,
    entries: Sequence[Mapping[str, Any]],
    identity: Callable[[Mapping[str, Any]], Any],
) -> None:
    """Append what is not there; what is there under the same identity stays the shipped one."""
    present = list(owner.get(key) or [])
    known = {identity(one) for one in present}
    added = [copy.deepcopy(dict(one)) for one in entries if identity(one) not in known]
    if added:
        owner[key] = [*present, *added]


def _only_added(before: Any, after: Any, ours: Any) -> bool:
    """Whether *after* is *before* with entries of *ours* behind it."""
    before, after, ours = list(before or []), list(after or []), list(ours or [])
    return after[: len(before)] == before and all(one in ours for one in after[len(before) :])


def _units(quantity: Any) -> int:
    try:
        return whole_units(quantity, GPU)
    except AicrError:
        return -1
