"""Build step: from the source tree ``recipes/`` to Python modules that import in about a millisecond.

The tree is loaded and checked by the ordinary loader, then written out as literals; so what ships has
passed everything that a directory must pass, and start-up parses no YAML (decision 38). The generated
package is ``aicr/catalog/_builtin``; it is never committed.
"""

from __future__ import annotations

import os
from pprint import pformat
from typing import Any

from aicr.catalog import load
from aicr.catalog.catalog import Catalog
from aicr.catalog.directory_tree import DirectoryTree
from aicr.catalog.tree import EMBEDDED

_HEADER = '''\
"""Generated from recipes/ by aicr.catalog.compile; do not edit."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

'''


def digest(root: str) -> str:
    """SHA-256 over the names and bytes of all files of a tree, in hex."""
    import hashlib

    total = hashlib.sha256()
    for path in DirectoryTree(root, origin=EMBEDDED).paths():
        with open(os.path.join(root, path), "rb") as file:
            content = file.read()
        total.update(f"{path}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def compile_tree(root: str) -> dict[str, str]:
    """Texts of the generated modules, by path relative to ``aicr/catalog/``.

    The same tree gives the same bytes.

    Raises:
        AicrError: whatever is wrong with the tree.
    """
    catalog = load.from_directory(root, origin=EMBEDDED, yaml_mode="helm")
    main = {
        "DIGEST": digest(root),
        "FILES": tuple(catalog.tree.paths()),
        "BASE": catalog.base,
        "OVERLAYS": catalog.overlays,
        "MIXINS": catalog.mixins,
        "REGISTRY": catalog.registry.entries,
        "TAUGHT": catalog.taught,
    }
    return {
        "_builtin/__init__.py": _HEADER + "".join(_assign(k, v) for k, v in main.items()),
        "_builtin/values.py": _HEADER + _assign("VALUES", _values(catalog)),
        "_builtin/asserts.py": _HEADER + _assign("ASSERTS", _asserts(catalog)),
    }


def _assign(name: str, value: Any) -> str:
    return f"{name}: Any = {pformat(value, width=120, sort_dicts=False)}\n"


def _values(catalog: Catalog) -> dict[str, Any]:
    return {
        path: catalog.tree.values(path)
        for path in catalog.tree.paths()
        if path.startswith("components/")
        and path.count("/") == 2
        and path.rpartition("/")[2].startswith("values")
        and path.endswith(".yaml")
    }


def _asserts(catalog: Catalog) -> dict[str, str]:
    files = {
        (entry.get("healthCheck") or {}).get("assertFile") for entry in catalog.registry.entries
    }
    return {file: catalog.tree.read_text(file) for file in sorted(filter(None, files))}
