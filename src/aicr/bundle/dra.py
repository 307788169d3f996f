"""What the bundler makes the DRA driver and the GPU operator agree on.

Both charts come from one bundle, and each has to know something of the other (components seed, the
narrow exception; bundler spec 4):

* always: the DRA driver's pods carry the operator's version as an annotation, so that they are
  rolled when the operator changes the driver below them;
* opted in with ``--dra-eviction-node-label key=value``: the kubelet plugin runs on nodes with that
  label, and the operator's driver manager takes the label away while it changes a node's driver.
  Nodes without the label then run no plugin at all, which is why it is never a default.

What is written here comes after every ordinary override and wins over it; ``--dynamic`` paths that
would take a managed value out of the bundle are refused. This is the one place that knows these
components by name; it must not know files or deployers.
"""

from __future__ import annotations

from aicr.errors import invalid
from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

    from aicr.bundle.overrides import Override
    from aicr.catalog.types import ComponentRef

    Segments = list[str | int]
    Values = dict[str, Any]

FLAG: Final = "--dra-eviction-node-label"
#: The label that charts and older versions use; a label of one's own replaces it.
DEFAULT_KEY: Final = "nvidia.com/dra-kubelet-plugin"
EVICTION_ENV: Final = "NODE_LABEL_FOR_GPU_POD_EVICTION"
VERSION_ANNOTATION: Final = "aicr.run/gpu-operator-chart-version"

DRIVER: Final = "nvidia-dra-driver-gpu"
DRIVERS: Final = (DRIVER, "nvidia-dra-driver-gpu-ocp")
OPERATOR: Final = "gpu-operator"
OPERATORS: Final = (OPERATOR, "gpu-operator-ocp")
#: On OpenShift the operator is installed by a subscription, whose channel stands for a version.
OLM: Final = "gpu-operator-ocp-olm"
LABELER: Final = "dra-node-labeler"

LABELER_REASON: Final = (
    f"it is part of a bundle only with {FLAG}, beside both {OPERATOR} and {DRIVER}"
)
RECIPE_DISABLES: Final = "the recipe disables it"

SELECTOR: Final[Segments] = ["kubeletPlugin", "nodeSelector"]
ENV: Final[Segments] = ["driver", "manager", "env"]
#: Where the operator's version is written: on both kinds of pods.
ANNOTATIONS: Final[tuple[Segments, ...]] = tuple(
    [part, "podAnnotations", VERSION_ANNOTATION] for part in ("controller", "kubeletPlugin")
)


class Pair:
    """The rendered DRA driver and GPU operator components of a bundle, by name, in order."""

    __slots__ = ("drivers", "operators")

    def __init__(self, names: Iterable[str]) -> None:
        held = set(names)
        self.drivers: list[str] = [name for name in DRIVERS if name in held]
        self.operators: list[str] = [name for name in OPERATORS if name in held]

    def __bool__(self) -> bool:
        """Whether both sides are there."""
        return bool(self.drivers and self.operators)


def parse_label(text: str) -> tuple[str, str] | None:
    """(key, value) of ``--dra-eviction-node-label``; None when it was not given.

    Raises:
        AicrError: INVALID_REQUEST when it is no ``key=value``, or no label a node can carry
            (bundler spec 1.2).
    """
    if not text:
        return None
    from aicr.bundle.options import check_label

    key, equals, value = text.partition("=")
    if not equals or not value or "=" in value:
        raise invalid(
            f'invalid {FLAG} "{text}": expected exactly one key=value',
            where=FLAG,
            hint=f"for example {FLAG} {DEFAULT_KEY}=true",
        )
    check_label(key, value, text, FLAG)
    return key, value


def select_labeler(
    refs: Iterable[ComponentRef], removed: dict[str, str], off: Iterable[str], *, opted_in: bool
) -> None:
    """Decide whether the node labeler is rendered, in *removed*, in place (bundler spec 4.5).

    Args:
        refs: all refs of the recipe.
        removed: component -> why it is not rendered, as the recipe says.
        off: components that a ``--set …:enabled=false`` takes out as well.
        opted_in: whether ``--dra-eviction-node-label`` was given.
    """
    names = {ref["name"] for ref in refs}
    if LABELER not in names:
        return
    rendered = names - set(removed) - set(off)
    if not (opted_in and OPERATOR in rendered and DRIVER in rendered):
        removed[LABELER] = LABELER_REASON
    elif removed.get(LABELER) == RECIPE_DISABLES:
        del removed[LABELER]


def check_dynamic(
    dynamic: Iterable[Override], names: Iterable[str], *, opted_in: bool, annotated: bool
) -> None:
    """Refuse dynamic paths at, above or below what is written here (bundler spec 4.6; C-081, C-082).

    Args:
        dynamic: all dynamic paths.
        names: the rendered components.
        opted_in: whether ``--dra-eviction-node-label`` was given.
        annotated: whether the version annotation is written.

    Raises:
        AicrError: INVALID_REQUEST naming the path.
    """
    pair = Pair(names)
    if not pair:
        return
    managed: dict[str, list[Segments]] = {}
    for name in pair.drivers:
        if annotated:
            managed[name] = list(ANNOTATIONS)
        if opted_in:
            managed.setdefault(name, []).append(SELECTOR)
    if opted_in:
        for name in pair.operators:
            managed[name] = [ENV]
        managed[LABELER] = [["labelKey"], ["labelValue"]]
    for override in dynamic:
        for path in managed.get(override.component, ()):
            if paths.conflict(override.segments, path):
                shown = paths.join(path)
                raise invalid(
                    f'{override.label} is not allowed: "{shown}" of component '
                    f'"{override.component}" is what the DRA driver and the GPU operator of this '
                    f"bundle have to agree on",
                    where=override.flag,
                    hint=f"drop {override.label}"
                    + (f", or {FLAG}" if path in (SELECTOR, ENV) else ""),
                )


def operator_version(refs: Mapping[str, ComponentRef], values: Mapping[str, Values]) -> str:
    """What stands for the operator's version: its chart's, or its channel on OpenShift; or ""."""
    if OPERATOR in refs:
        return refs[OPERATOR].get("version") or ""
    channel = paths.get(values.get(OLM) or {}, ["subscription", "channel"], "")
    return channel if isinstance(channel, str) else ""


def annotate(values: Values, version: str) -> Values:
    """A DRA driver's values with the operator's version on both kinds of pods (bundler spec 4.4).

    Raises:
        AicrError: INVALID_REQUEST when the annotations are no map.
    """
    for segments in ANNOTATIONS:
        values = _put(values, segments, version, "podAnnotations")
    return values


def write_label(values: Values, label: tuple[str, str]) -> Values:
    """A DRA driver's values with the label in the kubelet plugin's node selector (bundler spec 4.3).

    Raises:
        AicrError: INVALID_REQUEST when the node selector is no map.
    """
    key, value = label
    selector = paths.get(values, SELECTOR, None)
    if isinstance(selector, dict) and key != DEFAULT_KEY and DEFAULT_KEY in selector:
        values = paths.delete(values, [*SELECTOR, DEFAULT_KEY])
    return _put(values, [*SELECTOR, key], value, "nodeSelector")


def write_env(values: Values, key: str) -> Values:
    """A GPU operator's values with the label's key in its driver manager's environment.

    The first entry of that name is changed where it stands, later ones are dropped, and others are
    left alone (bundler spec 4.3).

    Raises:
        AicrError: INVALID_REQUEST when the environment is no list.
    """
    entries = paths.get(values, ENV, None)
    if entries is not None and not isinstance(entries, list):
        raise invalid(
            f"{paths.join(ENV)} of the GPU operator is {paths.a_type(entries)}, so "
            f"{EVICTION_ENV} cannot be added to it",
            where=FLAG,
            hint="correct it to a list of name and value",
        )
    written: list[Any] = []
    found = False
    for entry in entries or ():
        if isinstance(entry, dict) and entry.get("name") == EVICTION_ENV:
            if not found:
                kept = {field: held for field, held in entry.items() if field != "valueFrom"}
                written.append({**kept, "value": key})
            found = True
        else:
            written.append(entry)
    if not found:
        written.append({"name": EVICTION_ENV, "value": key})
    return _put(values, ENV, written, "driver")


def overridden(
    component: str, places: Iterable[Segments], before: Values, after: Values, why: str
) -> list[str]:
    """A line for each of these values that was set to something else before.

    What somebody has set is printed as applied, so that it was replaced afterwards must be too.
    """
    return [
        change_line(component, segments, before, after, why)
        for segments in places
        if paths.get(before, segments, None) not in (None, paths.get(after, segments, None))
    ]


def change_line(
    component: str, segments: Segments, before: Values, after: Values, why: str = FLAG
) -> str:
    """What the contract changed, as overrides print it: ``component:path: old → new``."""
    from aicr.bundle.override_values import UNSET, show

    missing: Final = object()
    old, new = (paths.get(values, segments, missing) for values in (before, after))
    shown = UNSET if old is missing else show(old)
    return f"{component}:{paths.join(segments)}: {shown} → {show(new)} ({why})"


def labeler_values(values: Values, label: tuple[str, str]) -> Values:
    """The node labeler's values (bundler spec 4.5)."""
    return {**values, "enabled": True, "labelKey": label[0], "labelValue": label[1]}


def notes(
    names: Iterable[str], values: Mapping[str, Values], label: tuple[str, str] | None
) -> list[str]:
    """What the user should know about the contract (bundler spec 4.2, 4.5)."""
    held = set(names)
    pair = Pair(held)
    if label is None:
        managed = [name for name in pair.operators if _manages_driver(values[name])]
        return [
            f"{name}: upgrades of the GPU driver by {managed[0]} will not evict pods that use GPUs "
            f"through DRA; label the nodes and pass {FLAG} key=value to have them evicted"
            for name in (pair.drivers if managed else ())
        ]
    shown = "=".join(label)
    if not pair:
        return [
            f"{FLAG} {shown} changes nothing: the bundle does not hold both a DRA driver and a "
            f"GPU operator"
        ]
    if LABELER in held:
        return [f"{LABELER}: the label {shown} that it gives to GPU nodes comes from {FLAG}"]
    return [
        f"{name}: its kubelet plugin runs only on nodes with the label {shown}, and nothing in this "
        f"bundle sets it; label every GPU node before you install"
        for name in pair.drivers
    ]


def _manages_driver(values: Values) -> bool:
    return paths.get(values, ["driver", "enabled"], True) is not False


def _put(values: Values, segments: Segments, value: Any, what: str) -> Values:
    for depth in range(1, len(segments)):
        above = paths.get(values, segments[:depth], None)
        if above is not None and not isinstance(above, dict):
            raise invalid(
                f"{paths.join(segments[:depth])} is {paths.a_type(above)} and not a map, so "
                f"the {what} that the DRA driver and the GPU operator share cannot be written",
                where=paths.join(segments[:depth]),
                hint="correct the value, or drop the override that set it",
            )
    written: Values = paths.put(values, segments, value)
    return written
