"""The catalogue object that resolution reads: base, overlays, mixins, registry, files.

A catalogue is immutable after loading and may be shared; everything that is handed out for change is
copied by the caller. ``cache`` is scratch space for derived facts of this very catalogue (merged
compositions, parent chains) and carries no meaning of its own.
"""

from __future__ import annotations

import os

from aicr.catalog.registry import Registry
from aicr.catalog.tree import EMBEDDED, BuiltinTree
from aicr.errors import INTERNAL, AicrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aicr.catalog.tree import Tree
    from aicr.catalog.types import Mixin, Overlay


class Catalog:
    """Everything that resolution may combine.

    Attributes:
        base: the root overlay, merged under every recipe.
        overlays: all others, by name.
        mixins: by name.
        registry: the component registry.
        tree: the files behind it all.
        taught: per criteria field, the values that overlays brought, with their origin.
        notices: deprecation lines met while loading, for people.
        external: relative paths that came from ``--data``.
    """

    __slots__ = (
        "base",
        "cache",
        "external",
        "mixins",
        "notices",
        "overlays",
        "registry",
        "taught",
        "tree",
    )

    def __init__(
        self,
        *,
        base: Overlay,
        overlays: dict[str, Overlay],
        mixins: dict[str, Mixin],
        registry: Registry,
        tree: Tree,
        taught: dict[str, dict[str, str]],
        notices: list[str] | None = None,
        external: tuple[str, ...] = (),
    ) -> None:
        self.base = base
        self.overlays = overlays
        self.mixins = mixins
        self.registry = registry
        self.tree = tree
        self.taught = taught
        self.notices: list[str] = notices or []
        self.external = external
        self.cache: dict[Any, Any] = {}

    @classmethod
    def builtin(cls) -> Catalog:
        """The catalogue that ships with the product, already checked when it was built.

        Raises:
            AicrError: INTERNAL when a source checkout's ``recipes/`` no longer match the build
                ("stale: reinstall", decision 38), or the build step never ran.
        """
        try:
            from aicr.catalog import _builtin
        except ImportError as error:
            raise AicrError(
                INTERNAL,
                "this installation has no built-in catalogue: the build step did not run",
                hint="install with: pip install -e . (or pip install aicr)",
            ) from error
        root = _source_root(_builtin)
        return cls(
            base=_builtin.BASE,
            overlays=_builtin.OVERLAYS,
            mixins=_builtin.MIXINS,
            registry=Registry(_builtin.REGISTRY),
            tree=BuiltinTree(root, _builtin.FILES, _load_values, _load_asserts),
            taught=_builtin.TAUGHT,
        )

    @classmethod
    def from_dir(cls, path: str, *, yaml_mode: str = "helm") -> Catalog:
        """The catalogue of one directory alone (conformance, and people who own the whole tree).

        Args:
            path: a directory laid out as ``recipes/`` (recipe spec 2.1).
            yaml_mode: ``helm``, or ``v3`` for trees written for yaml.v3, where ``yes`` is text.

        Raises:
            AicrError: what is wrong with the tree, with file, line and column.
        """
        from aicr.catalog import load

        return load.from_directory(path, origin=EMBEDDED, yaml_mode=yaml_mode)

    def overlay(self, path: str) -> Catalog:
        """This catalogue with the directory *path* (``--data``) laid over it.

        Raises:
            AicrError: as recipe spec 2.3 says.
        """
        from aicr.catalog import load

        return load.overlaid(self, path)


def _load_values() -> dict[str, dict[str, Any]]:
    from aicr.catalog._builtin import values

    loaded: dict[str, dict[str, Any]] = values.VALUES
    return loaded


def _load_asserts() -> dict[str, str]:
    from aicr.catalog._builtin import asserts

    loaded: dict[str, str] = asserts.ASSERTS
    return loaded


def _source_root(builtin: Any) -> str:
    """Directory of the catalogue's source files; checks a source checkout for staleness."""
    here = os.path.dirname(os.path.abspath(__file__))
    shipped = os.path.join(here, "_recipes")
    if os.path.isdir(shipped):
        return shipped
    checkout = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(here))), "recipes")
    if not os.path.isfile(os.path.join(checkout, "registry.yaml")):
        raise AicrError(
            INTERNAL,
            "this installation lost the catalogue's source files",
            hint="reinstall aicr",
        )
    built = os.path.join(here, "_builtin", "__init__.py")
    if _newest(checkout) > os.stat(built).st_mtime:
        from aicr.catalog import compile as compiler

        if compiler.digest(checkout) != builtin.DIGEST:
            raise AicrError(
                INTERNAL,
                "the built-in catalogue is stale: recipes/ changed since it was built",
                hint="reinstall: pip install -e . (or: make install)",
            )
    return checkout


def _newest(folder: str) -> float:
    newest = os.stat(folder).st_mtime
    with os.scandir(folder) as entries:
        for entry in entries:
            seen = _newest(entry.path) if entry.is_dir() else entry.stat().st_mtime
            newest = max(newest, seen)
    return newest
