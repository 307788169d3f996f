"""Rules about files that documents refer to: is each there, and is each referred to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aicr.catalog.tree import check_relative
from aicr.errors import AicrError, nearest
from aicr.lint.findings import ERROR, WARNING, Problem, rule

if TYPE_CHECKING:
    from aicr.lint.ground import Ground


def references(ground: Ground) -> Iterator[tuple[str, str, str]]:
    """Every file that the tree refers to: path, what it is, and where it is named."""
    for source in ground.sources():
        for name in source.refs:
            ref = source.ref(name)
            if ref is None:
                continue
            if ref.get("valuesFile"):
                yield ref["valuesFile"], "values file", source.ref_where(name, "valuesFile")
            for index, path in enumerate(ref.get("manifestFiles") or ()):
                yield path, "manifest", source.ref_where(name, "manifestFiles", index)
            for index, path in enumerate(ref.get("preManifestFiles") or ()):
                yield path, "manifest", source.ref_where(name, "preManifestFiles", index)
    for entry in ground.entries.values():
        check = (entry.entry.get("healthCheck") or {}).get("assertFile")
        if check:
            yield check, "health check", entry.where("healthCheck", "assertFile")
        upgrades = (entry.entry.get("upgrades") or {}).get("file")
        if upgrades:
            yield upgrades, "upgrade record", entry.where("upgrades", "file")
        for index, path in enumerate(entry.entry.get("manifestFiles") or ()):
            yield path, "manifest", entry.where("manifestFiles", index)


@rule(
    "missing-file",
    ERROR,
    "A file that is named but absent stops the command that needs it, often only the next one.",
)
def missing_file(ground: Ground) -> Iterator[Problem]:
    """Values files, manifests, health checks and upgrade records that are not in the tree."""
    for path, what, where in references(ground):
        if ground.tree.exists(path):
            continue
        if _leaves_the_tree(path):
            # Manifests that leave the tree are refused while they are read.
            if what != "manifest":
                yield Problem(where, f"path traversal or non-local path detected: {path!r}")
            continue
        near = _near(path, ground.tree.paths())
        hint = f'did you mean "{near}"?' if near else "correct the path, or add the file"
        yield Problem(where, f"{what} {path} is not in the tree", hint)


def _leaves_the_tree(path: str) -> bool:
    """Whether a path is refused as such."""
    try:
        check_relative(path)
    except AicrError:
        return True
    return False


def _near(path: str, known: list[str]) -> str:
    """The file that is probably meant: nearly that name in its folder, or that name elsewhere."""
    folder, _, name = path.rpartition("/")
    names = [other.rpartition("/")[2] for other in known if other.rpartition("/")[0] == folder]
    near = nearest(name, names)
    if near:
        return f"{folder}/{near}"
    return next((other for other in known if other.rpartition("/")[2] == name), "")


@rule(
    "unused-file",
    WARNING,
    "A values file, manifest or health check that nothing names has no effect, however right it is.",
)
def unused_file(ground: Ground) -> Iterator[Problem]:
    """Files of components and checks that nothing refers to."""
    named = {path for path, _, _ in references(ground)}
    components = {*ground.entries, *(name for source in ground.sources() for name in source.refs)}
    for path in ground.tree.paths():
        parts = path.split("/")
        if path in named or parts[0] not in ("components", "checks") or len(parts) < 3:
            continue
        if parts[1] not in components:
            hint = "add the component to registry.yaml, or remove the folder"
            message = f'{path} belongs to "{parts[1]}", which is no component'
        elif parts[0] == "components" and parts[2:] == ["values.yaml"]:
            continue
        elif parts[0] == "components" and parts[2:] == ["upgrades.yaml"]:
            hint = f"name it as upgrades.file of {parts[1]} in registry.yaml"
            message = f"nothing refers to {path}"
        elif path.endswith(".yaml"):
            hint = "name it where it should be used, or remove it"
            message = f"nothing refers to {path}"
        else:
            continue
        yield Problem(ground.tree.place(path), message, hint)
