"""The dependency graph of a recipe, and its form as Mermaid text (decision 32).

Tiers are those that deployment uses; a component stands in the first tier in which all that it waits for
lies before it. Disabled components are shown where they would stand, because edges pass through them.
An arrow leads from a component to the one that waits for it, as time goes.

Text for a picture is free text of a catalogue: whatever it holds, the picture must stay one. This module
must not know files, and ``graph_svg`` draws the same graph as SVG.
"""

from __future__ import annotations

from aicr.catalog.criteria_values import FIELDS
from aicr.catalog.dependencies import is_enabled, levels
from aicr.errors import invalid
from aicr.recipe.criteria import ANY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.catalog.types import ComponentRef
    from aicr.recipe.types import RecipeResult

FORMS: Final = ("mermaid", "svg")

#: Characters of free text that Mermaid would read as its own, by their number.
_MERMAID_OWN: Final = '"#&;<>`\\{}[]()|%'


class Node:
    """A component in the graph.

    Attributes:
        name: of the component.
        detail: its version, or what stands for one.
        tier: the column, from 0.
        enabled: whether it is deployed.
        waits_for: names that it depends on, sorted.
    """

    __slots__ = ("detail", "enabled", "name", "tier", "waits_for")

    def __init__(
        self, name: str, detail: str, tier: int, enabled: bool, waits_for: list[str]
    ) -> None:
        self.name = name
        self.detail = detail
        self.tier = tier
        self.enabled = enabled
        self.waits_for = waits_for


class Graph:
    """Components by tier and the edges between them.

    Attributes:
        title: what the recipe is for.
        tiers: the nodes of each tier, sorted by name.
        edges: pairs (dependency, the node that waits), sorted.
    """

    __slots__ = ("edges", "tiers", "title")

    def __init__(self, title: str, nodes: list[Node]) -> None:
        self.title = title
        self.tiers: list[list[Node]] = [
            [] for _ in range(max((node.tier for node in nodes), default=-1) + 1)
        ]
        for node in sorted(nodes, key=lambda node: node.name):
            self.tiers[node.tier].append(node)
        by_name = {node.name: node for node in nodes}
        self.edges: list[tuple[Node, Node]] = sorted(
            ((by_name[name], node) for node in nodes for name in node.waits_for),
            key=lambda edge: (edge[0].name, edge[1].name),
        )

    def nodes(self) -> list[Node]:
        """All nodes, by tier and name."""
        return [node for tier in self.tiers for node in tier]

    def summary(self) -> str:
        """One line about the size of the graph."""
        nodes = self.nodes()
        disabled = sum(not node.enabled for node in nodes)
        parts = [f"{_count(len(nodes) - disabled, 'component')} in {_count(self._used(), 'tier')}"]
        if disabled:
            parts.append(f"{disabled} disabled and dashed")
        return ", ".join([*parts, "an arrow leads to what waits"])

    def _used(self) -> int:
        return sum(any(node.enabled for node in tier) for tier in self.tiers)


def graph_of(document: RecipeResult) -> Graph:
    """The graph of a recipe.

    Raises:
        AicrError: INVALID_REQUEST when the dependencies form a circle.
    """
    refs = document.get("componentRefs") or []
    tier: dict[str, int] = {}
    for depth, names in enumerate(levels(refs)):
        for name in names:
            tier[name] = depth
    by_name = {ref["name"]: ref for ref in refs}
    _place_disabled(by_name, tier)
    nodes = [
        Node(
            ref["name"],
            _detail(ref),
            tier[ref["name"]],
            is_enabled(ref),
            sorted({name for name in ref.get("dependencyRefs") or () if name in by_name}),
        )
        for ref in refs
    ]
    return Graph(_title(document), nodes)


def _place_disabled(refs: dict[str, ComponentRef], tier: dict[str, int]) -> None:
    """Put components that deployment passes over behind all that they depend on."""
    waiting = sorted(name for name in refs if name not in tier)
    while waiting:
        left = []
        for name in waiting:
            below = [n for n in refs[name].get("dependencyRefs") or () if n in refs]
            if all(n in tier for n in below):
                tier[name] = 1 + max((tier[n] for n in below), default=-1)
            else:
                left.append(name)
        if len(left) == len(waiting):
            raise invalid(f"circular dependency among disabled components: {', '.join(left)}")
        waiting = left


def _detail(ref: ComponentRef) -> str:
    if ref.get("type") == "Kustomize":
        return ref.get("tag") or "kustomize"
    return ref.get("version") or ("manifests" if ref.get("manifestFiles") else "")


def _title(document: RecipeResult) -> str:
    criteria = document.get("criteria") or {}
    words = [
        f"{field} {criteria[field]}"
        for field in FIELDS
        if criteria.get(field) and criteria[field] != ANY
    ]
    return "Recipe for " + (", ".join(words) or "any cluster")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart, which GitHub and GitLab draw in a fenced ``mermaid`` block."""
    lines = [
        "flowchart LR",
        f"  accTitle: {_line(graph.title)}",
        f"  accDescr: {_line(graph.summary())}",
    ]
    ids = _ids(graph)
    for number, tier in enumerate(graph.tiers):
        lines.append(f'  subgraph tier{number}["tier {number}"]')
        for node in tier:
            # Only a line break survives as mark-up everywhere; other tags are shown as text.
            detail = f"<br/>{_escaped(node.detail)}" if node.detail else ""
            off = "" if node.enabled else ":::disabled"
            lines.append(f'    {ids[node.name]}["{_escaped(node.name)}{detail}"]{off}')
        lines.append("  end")
    for before, after in graph.edges:
        arrow = "-->" if before.enabled and after.enabled else "-.->"
        lines.append(f"  {ids[before.name]} {arrow} {ids[after.name]}")
    lines.append("  classDef disabled stroke-dasharray: 5 4,opacity: 0.6")
    return "\n".join(lines) + "\n"


def _ids(graph: Graph) -> dict[str, str]:
    """A Mermaid identifier for each name; the prefix keeps it off the words of the language."""
    ids: dict[str, str] = {}
    taken: set[str] = set()
    for node in graph.nodes():
        plain = "c_" + "".join(
            char if char.isascii() and char.isalnum() else "_" for char in node.name
        )
        unique, number = plain, 2
        while unique in taken:
            unique, number = f"{plain}_{number}", number + 1
        taken.add(unique)
        ids[node.name] = unique
    return ids


def _escaped(text: str) -> str:
    """Free text as a Mermaid label takes it: what could be syntax is written by number."""
    return "".join(
        f"#{ord(char)};" if char in _MERMAID_OWN or not char.isprintable() else char
        for char in text
    )


def _line(text: str) -> str:
    """Free text as the rest of a line, where Mermaid knows no escapes."""
    return "".join(
        char if char.isprintable() and char not in _MERMAID_OWN else " " for char in text
    )
