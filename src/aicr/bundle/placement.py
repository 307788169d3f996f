"""Node classes, written to the value paths that the registry routes them to.

A registry entry says which value paths of a chart place which pods; a flag is written to every
path of its class. The rules that decide between flag, recipe and override live here (bundler spec
3, decision 49):

* a selector is written only when its flag was given, and then replaces what is there;
* a toleration flag replaces what values files say and is appended to what an overlay says inline;
* an overlay that says null, ``[]`` or ``{}`` opts the path out of both;
* without a flag, tolerate-all is written to a toleration path that nobody else has set;
* a flag and a ``--set`` on one path is an error, as is any other pair of flags (decision 7);
* a path that ``--dynamic`` leaves to the installation is not written, and a note says so.

Kustomize components have no values and never get here. This module knows values, paths and registry
entries; it must not know the catalogue's files, recipes as a whole, or deployers.
"""

from __future__ import annotations

from aicr.bundle.options import taint_text, tolerate_all
from aicr.bundle.value_slots import fill, held
from aicr.errors import invalid
from aicr.values import paths
from aicr.values.merge import copy_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Final

    from aicr.bundle.options import Scheduling
    from aicr.bundle.overrides import Override

    Segments = list[str | int]
    Toleration = dict[str, Any]

SYSTEM: Final = "system"
ACCELERATED: Final = "accelerated"
TIERS: Final = (SYSTEM, ACCELERATED)

#: What an overlay's inline overrides say about a path.
_UNMENTIONED: Final = "unmentioned"
_OPTED_OUT: Final = "opted out"
_POPULATED: Final = "populated"

_ABSENT: Final = object()


class Target:
    """One component while flags are written to it; ``values`` and ``notes`` hold the outcome.

    Args:
        name: the component.
        entry: its registry entry.
        overrides: the recipe ref's inline overrides.
        values: its values so far, ``--set`` applied.
        scalars: its ``--set`` overrides.
        dynamic: its paths whose values are given at install time.
    """

    __slots__ = ("dynamic", "entry", "name", "notes", "overrides", "scalars", "values")

    def __init__(
        self,
        name: str,
        entry: Mapping[str, Any],
        overrides: dict[str, Any],
        values: dict[str, Any],
        scalars: Sequence[Override] = (),
        dynamic: Sequence[Segments] = (),
    ) -> None:
        self.name = name
        self.entry = entry
        self.overrides = overrides
        self.values = values
        self.scalars = scalars
        self.dynamic = dynamic
        self.notes: list[str] = []

    def paths(self, tier: str, field: str) -> list[str]:
        """A path list of one node class, without repetitions."""
        group = (self.entry.get("nodeScheduling") or {}).get(tier) or {}
        return list(dict.fromkeys(group.get(field) or ()))

    def state(self, path: str) -> str:
        """What the overlay says inline about exactly this path (bundler spec 3.3)."""
        value = paths.get(self.overrides, paths.split(path), _ABSENT)
        if value is _ABSENT:
            return _UNMENTIONED
        return _OPTED_OUT if value is None or value == [] or value == {} else _POPULATED

    def opted_out(self, path: str) -> bool:
        """Whether the overlay keeps flags off this path."""
        return self.state(path) == _OPTED_OUT

    def deferred(self, path: str) -> bool:
        """Whether the path, or one above it, is given at install time (bundler spec 3.4)."""
        segments = paths.split(path)
        return any(segments[: len(above)] == above for above in self.dynamic)

    def takes(self, path: str, flag: str) -> bool:
        """Whether a flag that was given may write to this path; says so if ``--dynamic`` forbids."""
        if self.opted_out(path):
            return False
        if self.deferred(path):
            self.notes.append(
                f"{flag} is not written to {self.name}:{path}, which --dynamic leaves to the "
                f"installation"
            )
            return False
        return True

    def touched_by(self, path: str) -> Override | None:
        """The ``--set`` at, above or below this path, if any."""
        segments = paths.split(path)
        for override in self.scalars:
            if paths.conflict(override.segments, segments):
                return override
        return None

    def write(self, path: str, value: Any, flag: str) -> None:
        """Put a flag's value at a path; maps on the way are created, anything else is replaced.

        Raises:
            AicrError: INVALID_REQUEST when a ``--set`` touches the path (decision 7).
        """
        override = self.touched_by(path)
        if override is not None:
            raise invalid(
                f'{flag} and {override.label} conflict: both set "{path}" of component '
                f'"{self.name}"',
                where=override.flag,
                hint=f"keep one of them; --set-json {override.key}:… is applied after {flag}",
            )
        self.values, replaced = fill(self.values, path, value)
        if replaced:
            self.notes.append(
                f"{flag} replaces what {self.name} holds at {replaced}, which is not a map"
            )


def write_placement(target: Target, scheduling: Scheduling) -> None:
    """Write selectors, tolerations, the workload gate and the node estimate of one component.

    Raises:
        AicrError: INVALID_REQUEST when a ``--set`` touches a path that a given flag writes, or the
            recipe holds something other than a list where tolerations are appended.
    """
    for tier, selector in (
        (SYSTEM, scheduling.system_selector),
        (ACCELERATED, scheduling.accelerated_selector),
    ):
        _write_selector(
            target, target.paths(tier, "nodeSelectorPaths"), selector, f"--{tier}-node-selector"
        )
    _write_tolerations(target, scheduling)
    gate = scheduling.workload_gate
    if gate is not None:
        for path in target.paths(ACCELERATED, "taintStrPaths"):
            if target.takes(path, "--workload-gate"):
                target.write(path, taint_text(gate), "--workload-gate")
        for path in target.paths(ACCELERATED, "taintPaths"):
            if target.takes(path, "--workload-gate"):
                target.write(path, [dict(gate)], "--workload-gate")
    workload = (target.entry.get("podScheduling") or {}).get("workload") or {}
    _write_selector(
        target,
        workload.get("workloadSelectorPaths") or (),
        scheduling.workload_selector,
        "--workload-selector",
    )
    if scheduling.nodes > 0:
        counts = (target.entry.get("nodeScheduling") or {}).get("nodeCountPaths") or ()
        for path in counts:
            if target.takes(path, "--nodes"):
                target.write(path, scheduling.nodes, "--nodes")


def check_required_selectors(target: Target) -> None:
    """Refuse final values in which a required node selector is empty (bundler spec 3.5).

    Whatever filled the map counts: the flag, a values file, an overlay or a typed override. Paths
    that the overlay opted out are not asked for.

    Raises:
        AicrError: INVALID_REQUEST naming the component, the flag and the paths.
    """
    scheduling = target.entry.get("nodeScheduling") or {}
    for tier in TIERS:
        group = scheduling.get(tier) or {}
        required = bool(group.get("requireNodeSelector"))
        if group.get("requireNodeSelectorIfStorageClassSet"):
            required = required or has_storage_class(target)
        if not required:
            continue
        missing = [
            path
            for path in target.paths(tier, "nodeSelectorPaths")
            if not target.opted_out(path) and not _filled_map(target.values, path)
        ]
        if missing:
            flag = f"--{tier}-node-selector"
            raise invalid(
                f'component "{target.name}" requires {flag} to be set '
                f"(paths: {', '.join(missing)}); pass a selector, opt this component's paths out "
                f"with an explicit empty overlay override, or check whether a later "
                f"--set-json/--set-file override cleared it",
                where=flag,
                hint=f"for example {flag} key=value, with a label of the nodes that may host it",
            )


def check_kinds(target: Target) -> None:
    """Refuse final values that no pod could be placed by: a selector is a map, tolerations a list.

    The registry says what is at these paths, so a text there is a mistake whatever wrote it; a chart
    would render it into something that the API server refuses hours later, or into nothing.

    Raises:
        AicrError: INVALID_REQUEST naming the component, the path and what is there.
    """
    for tier in TIERS:
        for field, kind, example in (
            ("nodeSelectorPaths", dict, '{"key":"value"}'),
            ("tolerationPaths", list, '[{"operator":"Exists"}]'),
        ):
            for path in target.paths(tier, field):
                value = held(target.values, path)
                if not value or isinstance(value, kind) or target.deferred(path):
                    continue
                override = target.touched_by(path)
                raise invalid(
                    f'component "{target.name}" holds {paths.a_type(value)} at "{path}", which '
                    f"has to be a {'map of labels' if kind is dict else 'list of tolerations'}",
                    where=override.flag if override is not None else target.name,
                    hint=f"pass JSON: --set-json '{target.name}:{path}={example}'",
                )


def has_storage_class(target: Target) -> bool:
    """Whether any storage class path of a component holds a non-empty value."""
    return any(
        held(target.values, path)
        for field in ("storageClassPaths", "sharedStorageClassPaths")
        for path in target.entry.get(field) or ()
    )


def merge_shared(system: list[Toleration], accelerated: list[Toleration]) -> list[Toleration]:
    """The tolerations of a path that both node classes claim (components seed, bundler spec 3.2).

    Without accelerated entries the system list stands as it is. Otherwise: keyed system entries,
    then accelerated entries, each once. Keyless system entries are left out, so that they cannot
    widen a restricted accelerated list.
    """
    if not accelerated:
        return list(system)
    return append_unique([entry for entry in system if entry.get("key")], accelerated)


def append_unique(first: list[Any], second: Iterable[Any]) -> list[Any]:
    """Both lists in order, without entries that equal an earlier one field by field.

    Empty fields count as absent, and 60 equals 60.0 (field case D3).
    """
    merged: list[Any] = []
    seen: list[Any] = []
    for entry in [*first, *second]:
        fields = _fields(entry)
        if fields not in seen:
            seen.append(fields)
            merged.append(entry)
    return merged


def _fields(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    return {name: value for name, value in entry.items() if value is not None and value != ""}


def _write_selector(
    target: Target, routed: Iterable[str], selector: dict[str, str], flag: str
) -> None:
    if not selector:
        return
    for path in routed:
        if target.takes(path, flag):
            target.write(path, dict(selector), flag)


def _write_tolerations(target: Target, scheduling: Scheduling) -> None:
    system = target.paths(SYSTEM, "tolerationPaths")
    accelerated = target.paths(ACCELERATED, "tolerationPaths")
    given = {
        SYSTEM: scheduling.system_tolerations,
        ACCELERATED: scheduling.accelerated_tolerations,
    }
    for path in dict.fromkeys([*system, *accelerated]):
        tiers = [
            tier
            for tier, routed in ((SYSTEM, system), (ACCELERATED, accelerated))
            if path in routed
        ]
        if target.opted_out(path):
            continue
        flags = [f"--{tier}-node-toleration" for tier in tiers if given[tier]]
        if not flags:
            _write_default(target, path)
        elif target.takes(path, " and ".join(flags)):
            _write_given(target, path, [given[tier] for tier in tiers], " and ".join(flags))


def _write_default(target: Target, path: str) -> None:
    """Tolerate-all where neither the recipe nor the user has set anything (decision 49)."""
    if target.deferred(path) or target.touched_by(path) or held(target.values, path):
        return
    target.values, _ = fill(target.values, path, [tolerate_all()])


def _write_given(target: Target, path: str, lists: list[list[Toleration]], flag: str) -> None:
    current = held(target.values, path)
    partly = any(not entries for entries in lists)
    if not current:
        lists = [entries or [tolerate_all()] for entries in lists]
    injected = lists[0] if len(lists) == 1 else merge_shared(lists[0], lists[1])
    injected = [dict(entry) for entry in injected]
    # On a shared path with one flag missing, the recipe's own list stands for the other class: it
    # must neither be lost nor widened by the default (field case D3).
    if current and (partly or target.state(path) == _POPULATED):
        if not isinstance(current, list):
            raise invalid(
                f'component "{target.name}" holds no list at "{path}", so {flag} cannot be added '
                f"to it",
                where=flag,
                hint="correct the overlay's override, or replace the value with --set-json",
            )
        injected = append_unique(copy_tree(current), injected)
    elif current:
        before = current if isinstance(current, list) else [current]
        dropped = len(append_unique(injected, before)) - len(injected)
        if dropped:
            target.notes.append(
                f"{flag} replaces the tolerations that the recipe's values files give "
                f"{target.name} at {path} ({dropped} dropped)"
            )
    target.write(path, injected, flag)


def _filled_map(values: dict[str, Any], path: str) -> bool:
    return isinstance(held(values, path), dict)
