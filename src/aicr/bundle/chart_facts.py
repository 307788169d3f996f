"""What a chart at hand tells about a bundle: hooks, CRDs, namespaces, size, paths without effect.

The real `helm template` renders the chart with the values of the bundle, and once more with a
probe at every registry path that routes placement or storage. A probe that comes out nowhere shows
a path that the chart drops, so that a selector or toleration there would change nothing (decision
60, requirement C-075).

It must not know how a chart was had, folders or deployers.
"""

from __future__ import annotations

import re

from aicr import yamlio
from aicr.bundle import objects, sizes
from aicr.bundle.charts import values_yaml
from aicr.bundle.value_slots import fill
from aicr.errors import AicrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final, Protocol

    from aicr.bundle.chart_archive import Archive
    from aicr.bundle.plan import Component

    class Renderer(Protocol):
        """What runs `helm template`."""

        def template(self, arguments: list[str]) -> tuple[int, str, str]:
            """(exit status, stdout, stderr)."""
            ...

        def scratch_file(self, name: str, content: bytes) -> str:
            """Path of a new file."""
            ...


HOOK: Final = "helm.sh/hook"
WEIGHT: Final = "helm.sh/hook-weight"
#: Cannot occur in a chart.
PROBE: Final = "aicr-probe"

#: What the registry calls the lists of placement paths, and the words for them.
_TIER_LISTS: Final = (
    ("nodeSelectorPaths", "node selector"),
    ("tolerationPaths", "tolerations"),
    ("taintStrPaths", "taint"),
    ("taintPaths", "taints"),
)


class Hook:
    """A hook of a chart: object, phases as written, and weight."""

    __slots__ = ("kind", "name", "phases", "weight")

    def __init__(self, kind: str, name: str, phases: str, weight: str) -> None:
        self.kind = kind
        self.name = name
        self.phases = phases
        self.weight = weight


class ChartFacts:
    """What a chart renders with the values of a bundle.

    Attributes:
        crds: ``group/Kind`` that it defines.
        custom: ``group/Kind`` of custom resources that it makes.
        hooks: its hooks, in the order of their phases' names.
        namespaces: Namespaces that it declares.
        release_bytes: estimated size of Helm's record of the release.
    """

    __slots__ = ("crds", "custom", "hooks", "namespaces", "release_bytes")

    def __init__(self) -> None:
        self.crds: set[str] = set()
        self.custom: set[str] = set()
        self.hooks: list[Hook] = []
        self.namespaces: list[str] = []
        self.release_bytes = 0


def look(
    component: Component, archive: Archive, content: bytes, helm: Renderer
) -> tuple[ChartFacts, list[str]]:
    """The facts of one chart, and notes.

    Args:
        component: for its values and its registry entry.
        archive: the chart, read. content: the same, as bytes.
        helm: renders charts.
    """
    facts = ChartFacts()
    facts.crds = archive.crds()
    name = component.name
    chart = helm.scratch_file(f"{name}.tgz", content)
    manifest, problem = _render(component, chart, component.values, helm)
    if problem:
        return facts, [
            f"{name}: its chart {archive.name} {archive.version} does not render with the values of "
            f"this bundle: {problem}"
        ]
    for head in objects.heads(manifest):
        if head.kind == "Namespace" and head.group == "" and head.name not in facts.namespaces:
            facts.namespaces.append(head.name)
        if head.group not in objects.BUILT_IN:
            facts.custom.add(head.type)
        if HOOK in head.text:
            facts.hooks += _hook(head)
    facts.crds |= objects.defined_types(manifest)
    facts.hooks.sort(key=lambda hook: (hook.phases, hook.weight, hook.kind, hook.name))
    facts.release_bytes = sizes.estimate(archive.files, manifest.encode(), component.values)
    notes = _dropped_paths(component, archive, chart, helm)
    if facts.release_bytes > sizes.LIMIT and component.vendored is None:
        notes.append(
            f"{name}: helm's record of the release would have about "
            f"{facts.release_bytes >> 10} KiB, and a Secret holds {sizes.LIMIT >> 10} KiB; "
            f"helm will fail to install it"
        )
    return facts, notes


#: What becomes of hooks where Helm installs the releases.
RUN_BY_HELM: Final = (
    "Helm runs these objects of the charts at the phases named, and a release waits for them; those",
    "of `test` run when somebody asks for them.",
)


def report(components: list[Component], fate: Iterable[str] = RUN_BY_HELM) -> list[str]:
    """Markdown lines on the hooks of the charts that were looked at; empty when there are none.

    Args:
        components: those of the bundle.
        fate: what the tool that installs the bundle does with hooks.
    """
    rows = [
        f"| {component.name} | {hook.phases} | {hook.kind} | {hook.name} | {hook.weight} |"
        for component in components
        if component.facts is not None
        for hook in component.facts.hooks
    ]
    if not rows:
        return []
    return [
        *fate,
        "",
        "| component | phases | kind | name | weight |",
        "|---|---|---|---|---|",
        *rows,
    ]


def _render(
    component: Component, chart: str, values: dict[str, Any], helm: Renderer
) -> tuple[str, str]:
    """(manifest, "") or ("", why it does not render)."""
    path = helm.scratch_file(f"{component.name}.yaml", values_yaml(values))
    try:
        status, out, err = helm.template(
            [component.name, chart, "--namespace", component.namespace, "--values", path]
        )
    except (OSError, TimeoutError) as error:
        return "", str(error)
    if status == 0:
        return out, ""
    lines = [line for line in err.strip().splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("Error: ")] or lines
    return "", told[0].removeprefix("Error: ") if told else f"exit status {status}"


def _hook(head: objects.Head) -> list[Hook]:
    try:
        document = yamlio.read_fast(head.text, source=head.name)
    except AicrError:
        return []
    metadata = document.get("metadata") if isinstance(document, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or HOOK not in annotations:
        return []
    phases = ", ".join(part.strip() for part in str(annotations[HOOK]).split(","))
    return [Hook(head.kind, head.name, phases, str(annotations.get(WEIGHT, "0")))]


def _dropped_paths(component: Component, archive: Archive, chart: str, helm: Renderer) -> list[str]:
    probes = _probes(component)
    if not probes:
        return []
    values = component.values
    for number, (path, _, form) in enumerate(probes):
        values, _ = fill(values, path, _probe(form, number))
    manifest, problem = _render(component, chart, values, helm)
    if problem:
        return [
            f"{component.name}: whether its chart renders the paths of placement and storage could "
            f"not be checked: {problem}"
        ]
    seen = set(re.findall(rf"{PROBE}-(\d+)\b", manifest))
    dropped = [
        f"{words} at {path}"
        for number, (path, words, _) in enumerate(probes)
        if str(number) not in seen
    ]
    if not dropped:
        return []
    return [
        f"{component.name}: chart {archive.name} {archive.version} renders nothing of what is "
        f"written there, with the values of this bundle: {'; '.join(dropped)}"
    ]


def _probes(component: Component) -> list[tuple[str, str, str]]:
    """(path, words, form) of every path of the registry that a chart should render."""
    found: dict[str, tuple[str, str]] = {}
    scheduling: Any = component.entry.get("nodeScheduling") or {}
    for tier in ("system", "accelerated"):
        group = scheduling.get(tier) or {}
        for field, words in _TIER_LISTS:
            for path in group.get(field) or ():
                found.setdefault(path, (words, field))
    workload: Any = (component.entry.get("podScheduling") or {}).get("workload") or {}
    for path in workload.get("workloadSelectorPaths") or ():
        found.setdefault(path, ("workload selector", "nodeSelectorPaths"))
    for field, words in (
        ("storageClassPaths", "storage class"),
        ("sharedStorageClassPaths", "shared storage class"),
    ):
        for path in component.entry.get(field) or ():  # type: ignore[attr-defined]
            found.setdefault(path, (words, field))
    return [(path, words, form) for path, (words, form) in found.items()]


def _probe(form: str, number: int) -> Any:
    name = f"{PROBE}-{number}"
    if form == "nodeSelectorPaths":
        return {name: "true"}
    if form == "tolerationPaths":
        return [{"key": name, "operator": "Exists"}]
    if form == "taintPaths":
        return [{"key": name, "effect": "NoSchedule"}]
    return f"{name}:NoSchedule" if form == "taintStrPaths" else name
