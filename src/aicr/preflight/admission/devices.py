"""Which devices a pod's containers get by extended resource, and how many a check may ask for.

A check is given what the workload's containers get together, so that it tests all of it. It must not
raise what the scheduler reserves for the pod, which is, for each resource,

    max( containers + sidecars,  each init container + the sidecars before it )

A check runs where an init container runs: after it has taken what sidecars before it hold, the
workload's own sum is always left. Devices that only sidecars have are held once the sidecars run, so
checks for those stand before the first of them. Devices of ordinary init containers alone make no GPU pod.
Source: preflight spec 2.4.1, decision 17, field case I3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aicr.preflight.admission.amounts import Number, canonical, is_binary, number
from aicr.preflight.admission.pod import Pod, is_sidecar, mapping

Counts = dict[str, Number]


@dataclass(slots=True)
class Devices:
    """Device counts of one pod, by resource name; a resource with count zero is absent."""

    main: Counts = field(default_factory=dict)
    """Sum over ``spec.containers``."""
    sidecars: Counts = field(default_factory=dict)
    """Sum over native sidecars."""
    inits: list[tuple[bool, Counts]] = field(default_factory=list)
    """Of each init container in order: whether it is a sidecar, and its counts."""
    binary: set[str] = field(default_factory=set)
    """Resources whose quantity was written with a binary suffix."""

    def has(self, resources: Collection[str]) -> bool:
        """Whether containers or sidecars get any of *resources*."""
        return any(name in resources for counts in (self.main, self.sidecars) for name in counts)

    def only_in_sidecars(self, resources: Collection[str]) -> bool:
        """Whether sidecars get some of *resources* and containers none."""
        return self.has(resources) and not any(name in resources for name in self.main)

    def first_sidecar(self, resources: Collection[str]) -> int:
        """Index among the init containers of the first sidecar that gets any of *resources*."""
        return next(
            index
            for index, (sidecar, counts) in enumerate(self.inits)
            if sidecar and any(name in resources for name in counts)
        )

    def effective(self, resource: str) -> Number:
        """What the scheduler reserves of *resource* for the pod as it is."""
        before: Number = 0
        most: Number = 0
        for sidecar, counts in self.inits:
            own = counts.get(resource, 0)
            most = max(most, before + own)
            before += own if sidecar else 0
        return max(most, self.main.get(resource, 0) + before)

    def for_checks(self, position: int) -> tuple[tuple[str, str], ...]:
        """Resources and quantities for a check that stands before init container *position*."""
        found = [
            (name, canonical(count, binary=name in self.binary))
            for name, count in self.main.items()
            if count
        ]
        for name, count in self.sidecars.items():
            if not self.main.get(name):
                held = sum(
                    counts.get(name, 0) for sidecar, counts in self.inits[:position] if sidecar
                )
                count = min(count, self.effective(name) - held)
                if count:
                    found.append((name, canonical(count, binary=name in self.binary)))
        return tuple(found)


def devices(pod: Pod, resources: Collection[str]) -> Devices:
    """The counts of *resources* in *pod*.

    Raises:
        AicrError: INVALID_REQUEST with `pod.NOT_A_POD` for a quantity that is none.
    """
    found = Devices()
    for index, container in enumerate(pod.containers):
        if "resources" in container:
            counts = _counts(container, resources, f"spec.containers[{index}]", found.binary)
            _add(found.main, counts)
    for index, container in enumerate(pod.init_containers):
        sidecar = is_sidecar(container)
        counts = _counts(container, resources, f"spec.initContainers[{index}]", found.binary)
        found.inits.append((sidecar, counts))
        if sidecar:
            _add(found.sidecars, counts)
    return found


def _counts(
    container: Mapping[str, Any], resources: Collection[str], path: str, binary: set[str]
) -> Counts:
    """What one container gets: the larger of limit and request of each resource."""
    found: Counts = {}
    stated = mapping(container, "resources", path)
    if not stated:
        return found
    for kind in ("limits", "requests"):
        for name, text in mapping(stated, kind, f"{path}.resources").items():
            if name not in resources:
                continue
            value = number(text, f"{path}.resources.{kind}[{name}]")
            if not value:
                continue
            if name not in found or value > found[name]:
                found[name] = value
            if is_binary(text):
                binary.add(name)
    return found


def _add(total: Counts, counts: Counts) -> None:
    for name, value in counts.items():
        total[name] = total.get(name, 0) + value


def effective_after(found: Devices, added: Sequence[Mapping[str, Number]], position: int) -> Counts:
    """What the scheduler reserves with checks that get *added*, standing at *position*."""
    trial = Devices(
        found.main,
        found.sidecars,
        [
            *found.inits[:position],
            *((False, dict(counts)) for counts in added),
            *found.inits[position:],
        ],
    )
    names = {*found.main, *(name for _, counts in trial.inits for name in counts)}
    return {name: trial.effective(name) for name in sorted(names)}
