"""Where the parts of a catalogue stand in its files: ``file:line`` of an overlay's key or a value.

The catalogue that resolution reads has no positions, because keeping them would cost every run. Whoever
wants to point at a source asks here, and only the files asked about are parsed again. Not on any hot
path. It knows files and paths into documents; it must not know what the documents mean.
"""

from __future__ import annotations

from aicr.catalog.tree import LayeredTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog
    from aicr.catalog.tree import Tree
    from aicr.yamlio.read import Positions

    Trail = tuple[str | int, ...]

_REGISTRY: Final = "registry.yaml"


def places_of(catalog: Catalog) -> Places:
    """The places of a catalogue; what was parsed is kept with it."""
    found: Places = catalog.cache.setdefault("places", Places(catalog))
    return found


class Places:
    """Looks up places in the files of one catalogue; each file is parsed at most once."""

    __slots__ = ("_known", "_tree")

    def __init__(self, catalog: Catalog) -> None:
        self._tree: Tree = catalog.tree
        self._known: dict[tuple[int, str], tuple[Any, Positions]] = {}

    def at(self, file: str, trail: Trail = ()) -> str:
        """``file:line`` of the value at *trail* in a file of the tree, or of the nearest key above.

        The file is named as messages name it: ``recipes/…`` for the built-in catalogue, the real path
        for a directory. A file that the tree does not have gives "".
        """
        tree = _owner(self._tree, file)
        if not tree.exists(file):
            return ""
        return _line(self._read(tree, file)[1].where(trail))

    def registry(self, component: str, trail: Trail = ()) -> str:
        """``file:line`` in the registry entry of a component; "" for one that has none.

        Where one registry lies over another, the upper one's entry counts (recipe spec 2.3).
        """
        for tree in _uppermost_first(self._tree):
            if not tree.exists(_REGISTRY):
                continue
            document, positions = self._read(tree, _REGISTRY)
            for index, entry in enumerate(document.get("components") or ()):
                if entry.get("name") == component:
                    return _line(positions.where(("components", index, *trail)))
        return ""

    def _read(self, tree: Tree, file: str) -> tuple[Any, Positions]:
        key = (id(tree), file)
        if key not in self._known:
            from aicr.yamlio.read import load_with_positions

            self._known[key] = load_with_positions(
                tree.read_text(file),
                source=tree.place(file),
                mode=getattr(tree, "yaml_mode", "helm"),
            )
        return self._known[key]


def _line(where: str) -> str:
    return where.rpartition(":")[0]


def _owner(tree: Tree, file: str) -> Tree:
    while isinstance(tree, LayeredTree):
        tree = tree.upper if tree.upper.exists(file) else tree.lower
    return tree


def _uppermost_first(tree: Tree) -> list[Tree]:
    if isinstance(tree, LayeredTree):
        return [*_uppermost_first(tree.upper), *_uppermost_first(tree.lower)]
    return [tree]
