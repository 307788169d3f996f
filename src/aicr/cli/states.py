"""Inputs that may be a recipe, a bundle or a snapshot: found out by looking at them.

A folder is a bundle; a file says by its `kind` what it is.
"""

from __future__ import annotations

import os

from aicr.artifacts import checksums
from aicr.cli.sources import read_input
from aicr.errors import AicrError, invalid, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog

RECIPE: Final = "recipe"
BUNDLE: Final = "bundle"
SNAPSHOT: Final = "snapshot"
_LARGEST: Final = 512 << 20


class State:
    """One input, read.

    Attributes:
        kind: ``recipe``, ``bundle`` or ``snapshot``.
        name: as the person wrote it.
        document: the recipe or snapshot; of a bundle its recipe.
        files: of a bundle, relative path -> bytes; else {}.
        info: of a bundle, its BundleInfo; else {}.
        notices: what to tell the person about it.
    """

    __slots__ = ("document", "files", "info", "kind", "name", "notices")

    def __init__(self, kind: str, name: str, document: Any, notices: list[str]) -> None:
        self.kind = kind
        self.name = name
        self.document = document
        self.notices = notices
        self.files: dict[str, bytes] = {}
        self.info: dict[str, Any] = {}


def read_state(
    source: str, catalog: Catalog, *, kubeconfig: str = "", in_config_map: str = RECIPE
) -> State:
    """The input that *source* names.

    Args:
        source: a folder, a file, ``-``, an address, or ``cm://namespace/name``.
        catalog: what a recipe is read against.
        kubeconfig: which cluster a ConfigMap is in; "" for the one that applies here.
        in_config_map: what is looked for in a ConfigMap of several keys: recipe or snapshot.

    Raises:
        AicrError: NOT_FOUND for something that is not there, INVALID_REQUEST for a folder that is no
            bundle, another kind of document, and what the readers refuse.
    """
    if os.path.isdir(source):
        return _bundle(source, catalog)
    what = f"{in_config_map} file" if source.startswith("cm://") else "input"
    text = read_input(source, what=what, kubeconfig=kubeconfig)
    kind = _kind(text, source)
    if kind == "Snapshot":
        from aicr.snapshot import document

        snapshot, notices = document.load(text, source)
        return State(SNAPSHOT, source, snapshot, notices)
    if kind not in ("RecipeResult", "Recipe", "RecipeMetadata", None, ""):
        raise invalid(
            f'{source} has kind "{kind}"; a recipe, a bundle or a snapshot is needed',
            where=source,
            hint="name a RecipeResult or Snapshot file, or the folder of a bundle",
        )
    from aicr.recipe.document import load_recipe

    recipe = load_recipe(text, source, catalog)
    return State(RECIPE, source, recipe.document, recipe.warnings)


def read_folder(folder: str) -> dict[str, bytes]:
    """Every file below *folder*: relative path -> bytes. Links are not followed.

    Raises:
        AicrError: INVALID_REQUEST for a file that cannot be read, and for more than 512 MiB.
    """
    found: dict[str, bytes] = {}
    size = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            try:
                with open(path, "rb") as stream:
                    content = stream.read(_LARGEST + 1)
            except OSError as error:
                raise invalid(f"cannot read {path}: {error.strerror}", where=path) from None
            size += len(content)
            if size > _LARGEST:
                raise invalid(
                    f"{folder} holds more than {_LARGEST >> 20} MiB", hint="is it the right folder?"
                )
            found[os.path.relpath(path, folder).replace(os.sep, "/")] = content
    return found


def _bundle(folder: str, catalog: Catalog) -> State:
    from aicr.bundle import info
    from aicr.recipe.document import load_recipe
    from aicr.yamlio import decode

    # Before anything is read: a folder that is something else may be large.
    for needed in (info.BUNDLE_INFO, info.RECIPE):
        if not os.path.isfile(os.path.join(folder, needed)):
            raise not_found(
                f"{folder} is no bundle: it has no {needed}",
                where=folder,
                hint="name the folder that aicr bundle wrote, or a recipe file",
            )
    files = read_folder(folder)
    source = os.path.join(folder, info.RECIPE)
    # Read as any recipe file is: what is wrong with it has a place, and is no finding.
    recipe = load_recipe(decode(files[info.RECIPE], source=source), source, catalog, mode="v3")
    state = State(BUNDLE, folder, recipe.document, [*_unverified(folder), *recipe.warnings])
    place = os.path.join(folder, info.BUNDLE_INFO)
    state.info = info.read(decode(files[info.BUNDLE_INFO], source=place), source=place)
    state.files = files
    return state


def _unverified(folder: str) -> list[str]:
    try:
        problems = checksums.verify_tree(folder)
    except AicrError as error:
        problems = [error.message]
    if not problems:
        return []
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return [f"{folder} is not as it was made: {problems[0]}{more}"]


def _kind(text: str, source: str) -> Any:
    from aicr.yamlio import jsontext, read_fast

    if jsontext.is_json(text):
        document = jsontext.load_json(text, source=source)
    else:
        document = read_fast(text, source=source)
    return document.get("kind") if isinstance(document, dict) else None
