"""The dependency graph of a recipe as a self-contained SVG picture (decision 32).

Layout: a column a tier, from left to right, names in alphabetical order. All edges of one component
leave it as one line, which runs through the gaps between the boxes of the columns in between and
branches off to each component that waits; so no line crosses a box. Sizes of text are computed from a
table that is wide enough for the usual sans-serif fonts, and all numbers are whole, so that the same
recipe gives the same bytes everywhere.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final

    from aicr.recipe.graph import Graph, Node

_NAME_SIZE: Final = 13
_DETAIL_SIZE: Final = 11
_BOX_HEIGHT: Final = 44
_BOX_PADDING: Final = 14
#: Distance between two boxes of a column, without lines between them.
_ROW_GAP: Final = 18
#: Distance between two lines in one gap.
_LANE: Final = 6
_COLUMN_GAP: Final = 76
_MARGIN: Final = 24
#: How far an edge inside a column reaches to its left, before the curve takes a quarter back.
_BOW: Final = 28
_HEAD: Final = 92

#: Widths in thousandths of the size of the font, of bold letters in a wide font.
_NARROW: Final = (380, "ijl.,:;|!'`")
_SLIM: Final = (480, "frt-()[]/\\ ")
_WIDE: Final = (1050, "mwMW@%")
_CAPITAL: Final = 790
_OTHER: Final = 700

#: What is drawn, and how in a light and in a dark page; a rule that is the same in both stands once.
_RULES: Final = (
    (
        "text",
        'font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Arial, sans-serif',
    ),
    (".head", "font-size: 12px"),
    (".title", "font-size: 17px; font-weight: 600"),
    (".name", "font-size: 13px; font-weight: 600"),
    (".detail", "font-size: 11px"),
    (".box", "stroke-width: 1.2"),
    (".line", "fill: none; stroke-width: 1.4"),
    (".off .box, .line.off", "stroke-dasharray: 5 4"),
)
_COLOURS: Final = (
    ("text", "fill: #1f2933", "fill: #e4e7eb"),
    (".page", "fill: #ffffff", "fill: #16191d"),
    (".tier", "fill: #f3f5f7", "fill: #1e2227"),
    (".head, .detail", "fill: #5b6774", "fill: #a3aeb9"),
    (".box", "fill: #ffffff; stroke: #8895a3", "fill: #262b31; stroke: #6b7785"),
    (".line", "stroke: #7b8794", "stroke: #8793a0"),
    (".tip", "fill: #7b8794", "fill: #8793a0"),
    (".off .box", "fill: none", "fill: none"),
    (".off text", "fill: #66727f", "fill: #98a3ae"),
)


def _style() -> str:
    """The style sheet; every rule is kept to this picture, which may be part of a page."""

    def rule(selector: str, body: str) -> str:
        own = ", ".join(f".aicr-graph {part}" for part in selector.split(", "))
        return f"{own} {{ {body} }}"

    dark = [rule(selector, colour) for selector, _, colour in _COLOURS]
    return "\n".join(
        [
            *(rule(*entry) for entry in _RULES),
            *(rule(selector, colour) for selector, colour, _ in _COLOURS),
            "@media (prefers-color-scheme: dark) {",
            *dark,
            "}",
        ]
    )


class _Column:
    """A tier on the page."""

    __slots__ = ("lanes", "left", "nodes", "width")

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.width = max(
            max(text_width(node.name, _NAME_SIZE), text_width(node.detail, _DETAIL_SIZE))
            for node in nodes
        )
        self.width += 2 * _BOX_PADDING
        self.left = 0
        #: For each gap, from above the first box to below the last, the names whose line runs there.
        self.lanes: list[list[str]] = [[] for _ in range(len(nodes) + 1)]

    @property
    def right(self) -> int:
        return self.left + self.width

    def gap(self, index: int) -> int:
        """Height of a gap between two boxes, or of the room above or below them all."""
        room = _LANE * (len(self.lanes[index]) + 1) if self.lanes[index] else 0
        inner = 0 < index < len(self.nodes)
        return max(_ROW_GAP, room) if inner else room

    def height(self) -> int:
        return len(self.nodes) * _BOX_HEIGHT + sum(self.gap(n) for n in range(len(self.lanes)))


class _Page:
    """The columns with every box and line in its place."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.columns = [_Column(tier) for tier in graph.tiers]
        self.column_of = {
            node.name: number for number, c in enumerate(self.columns) for node in c.nodes
        }
        left = _MARGIN
        for column in self.columns:
            column.left = left
            left += column.width + _COLUMN_GAP
        self.width = max(
            left - _COLUMN_GAP + _MARGIN,
            2 * _MARGIN + text_width(graph.title, 17),
            2 * _MARGIN + text_width(graph.summary(), 12),
        )
        self.middle: dict[str, int] = {}
        self.lane: dict[tuple[str, int], int] = {}
        self._place()
        self._choose_lanes()
        self._place()

    def _place(self) -> None:
        """Give every box and every lane its height on the page; columns are centred."""
        tallest = max((column.height() for column in self.columns), default=0)
        self.height = _HEAD + tallest + _MARGIN + 12
        for number, column in enumerate(self.columns):
            y = _HEAD + 6 + (tallest - column.height()) // 2
            for index, lanes in enumerate(column.lanes):
                room = column.gap(index)
                first = y + room // 2 - _LANE * (len(lanes) - 1) // 2
                for position, name in enumerate(lanes):
                    self.lane[name, number] = first + _LANE * position
                y += room
                if index < len(column.nodes):
                    self.middle[column.nodes[index].name] = y + _BOX_HEIGHT // 2
                    y += _BOX_HEIGHT

    def _choose_lanes(self) -> None:
        """Lead each component's line through the gap nearest to its straight way."""
        for node in self.graph.nodes():
            start = self.column_of[node.name]
            targets = [t for before, t in self.graph.edges if before is node]
            last = max((self.column_of[t.name] for t in targets), default=start)
            height = self.middle[node.name]
            for number in range(start + 1, last):
                beyond = [t for t in targets if self.column_of[t.name] > number]
                goal = sum(self.middle[t.name] for t in beyond) // len(beyond)
                height += (goal - height) // (last - number + 1)
                column = self.columns[number]
                gaps = range(len(column.lanes))
                nearest = min(gaps, key=lambda n: (abs(self._gap_middle(column, n) - height), n))
                column.lanes[nearest].append(node.name)
                height = self._gap_middle(column, nearest)
        for column in self.columns:
            for lanes in column.lanes:
                lanes.sort(key=lambda name: (self.middle[name], name))

    def _gap_middle(self, column: _Column, index: int) -> int:
        half = (_BOX_HEIGHT + _ROW_GAP) // 2
        if index == 0:
            return self.middle[column.nodes[0].name] - half
        return self.middle[column.nodes[index - 1].name] + half


def svg(graph: Graph) -> str:
    """The picture, as text of an SVG file."""
    page = _Page(graph)
    described = f"{graph.summary()}. " + " ".join(_sentence(node) for node in graph.nodes())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{page.width}" height="{page.height}" '
        f'viewBox="0 0 {page.width} {page.height}" class="aicr-graph" role="img" '
        'aria-labelledby="aicr-graph-title aicr-graph-text">',
        f'<title id="aicr-graph-title">{_text(graph.title)}</title>',
        f'<desc id="aicr-graph-text">{_text(described)}</desc>',
        f"<style>\n{_style()}\n</style>",
        '<defs><marker id="aicr-graph-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect class="page" width="{page.width}" height="{page.height}"/>',
        f'<text class="title" x="{_MARGIN}" y="36">{_text(graph.title)}</text>',
        f'<text class="head" x="{_MARGIN}" y="56">{_text(graph.summary())}</text>',
        *_bands(page),
        *_lines(page),
        *_boxes(page),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def text_width(text: str, size: int) -> int:
    """An upper estimate of the width of a text in pixels, for a font of *size* pixels."""
    total = 0
    for char in text:
        for width, chars in (_NARROW, _SLIM, _WIDE):
            if char in chars:
                total += width
                break
        else:
            # Beyond Latin letters a character may be as wide as it is high, and wider.
            total += _CAPITAL if char.isupper() else _OTHER if ord(char) < 0x250 else 1050
    return -(-total * size // 1000)


def _bands(page: _Page) -> Iterable[str]:
    for column in page.columns:
        tier = column.nodes[0].tier
        yield (
            f'<rect class="tier" x="{column.left - 10}" y="{_HEAD - 22}" width="{column.width + 20}" '
            f'height="{page.height - _HEAD + 22 - _MARGIN // 2}" rx="8"/>'
        )
        yield (
            f'<text class="head" x="{column.left + column.width // 2}" y="{_HEAD - 6}" '
            f'text-anchor="middle">tier {tier}</text>'
        )


def _lines(page: _Page) -> Iterable[str]:
    for node in page.graph.nodes():
        for off in (False, True):
            targets = [
                after
                for before, after in page.graph.edges
                if before is node and (before.enabled and after.enabled) is not off
            ]
            style = "line off" if off else "line"
            trunk: dict[str, None] = {}
            for after in targets:
                *way, last = _way(page, node, after)
                trunk.update(dict.fromkeys(way))
                title = f"{after.name} waits for {node.name}"
                yield (
                    f'<path class="{style}" d="{last}" marker-end="url(#aicr-graph-tip)">'
                    f"<title>{_text(title)}</title></path>"
                )
            if trunk:
                yield f'<path class="{style}" d="{"".join(trunk)}"/>'


def _way(page: _Page, before: Node, after: Node) -> Sequence[str]:
    """The pieces of one edge, from the right side of a box to the left side of another."""
    start, end = page.column_of[before.name], page.column_of[after.name]
    if start == end:
        return [_bow(page, before, after)]
    x, y = page.columns[start].right, page.middle[before.name]
    pieces = []
    for number in range(start + 1, end):
        column, lane = page.columns[number], page.lane[before.name, number]
        pieces.append(_curve(x, y, column.left, lane))
        pieces.append(f"M{column.left} {lane}H{column.right}")
        x, y = column.right, lane
    return [*pieces, _curve(x, y, page.columns[end].left, page.middle[after.name])]


def _curve(x: int, y: int, to_x: int, to_y: int) -> str:
    half = (to_x - x) // 2
    return f"M{x} {y}C{x + half} {y} {to_x - half} {to_y} {to_x} {to_y}"


def _bow(page: _Page, before: Node, after: Node) -> str:
    """An edge inside a column, which only disabled components have: it leaves and enters on the left."""
    x = page.columns[page.column_of[after.name]].left
    y, to_y = page.middle[before.name], page.middle[after.name]
    return f"M{x} {y}C{x - _BOW} {y} {x - _BOW} {to_y} {x} {to_y}"


def _boxes(page: _Page) -> Iterable[str]:
    for column in page.columns:
        for node in column.nodes:
            middle = page.middle[node.name]
            x = column.left + column.width // 2
            top = middle - _BOX_HEIGHT // 2
            yield "<g>" if node.enabled else '<g class="off">'
            yield f"<title>{_text(_sentence(node))}</title>"
            yield (
                f'<rect class="box" x="{column.left}" y="{top}" width="{column.width}" '
                f'height="{_BOX_HEIGHT}" rx="6"/>'
            )
            name_y = middle - 2 if node.detail else middle + 5
            yield (
                f'<text class="name" x="{x}" y="{name_y}" text-anchor="middle">'
                f"{_text(node.name)}</text>"
            )
            if node.detail:
                yield (
                    f'<text class="detail" x="{x}" y="{middle + 14}" text-anchor="middle">'
                    f"{_text(node.detail)}</text>"
                )
            yield "</g>"


def _sentence(node: Node) -> str:
    said = f"{node.name} {node.detail}".strip()
    where = f"tier {node.tier}" if node.enabled else "disabled"
    waits = f", waits for {', '.join(node.waits_for)}" if node.waits_for else ""
    return f"{said}: {where}{waits}."


def _text(text: str) -> str:
    """Free text in XML: marked characters by name, those that XML cannot hold by a replacement."""
    kept = "".join(char if char.isprintable() else "\ufffd" for char in text)
    kept = kept.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return kept.replace('"', "&quot;")
