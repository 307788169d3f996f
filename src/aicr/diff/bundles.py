"""Two bundles: what a recipe comparison finds, and what lies in the releases' folders.

```
bundle-info.yaml ─► deployer, settings, releases (matched by name, so that numbers do not matter)
recipe.yaml      ─► ``recipes.compare`` without values
NNN-x/           ─► values.yaml, cluster-values.yaml, or the values inside the deployer's own object:
                    path by path
                    objects in YAML: by kind and name, path by path; CRDs by name and versions
everything else  ─► named when it differs
```
Pages for people (README.md, checksums.txt) follow from the rest and are not compared, nor are the
numbers of folders. Bundles of different deployers are compared in what all deployers share.
Source: decisions 30 and 59.
"""

from __future__ import annotations

import re

from aicr.bundle import info
from aicr.bundle.upgrades import UPGRADING
from aicr.diff import crds, recipes, trees
from aicr.diff.changes import ABSENT, Change, Comparison, of_sides
from aicr.errors import AicrError, invalid
from aicr.yamlio import decode, read_fast, read_fast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any, Final

    Files = Mapping[str, bytes]

_PAGES: Final = (info.README, UPGRADING, "checksums.txt", info.RECIPE, info.BUNDLE_INFO)
_DEFERRED: Final = "cluster-values.yaml"
_VALUES: Final = ("values.yaml", _DEFERRED)
_NUMBER: Final = re.compile(rb"\b\d{3}-(?=[a-z0-9])")
_OBJECT: Final = ("apiVersion", "kind")
#: Where a deployer's own object has the values of a release, by its kind.
_INLINE: Final = (
    ("HelmRelease", ("spec", "values")),
    ("Application", ("spec", "source", "helm", "valuesObject")),
)
#: What every deployer keeps in a release's folder.
_SHARED: Final = ("templates/", "charts/", "crds/")
_CRD: Final = "CustomResourceDefinition"


def compare(before: Files, after: Files, *, bring_crds: Collection[str] = ()) -> Comparison:
    """The differences between two bundles, given as relative path -> bytes.

    Args:
        before, after: all files of each.
        bring_crds: components whose chart brings CRDs, as in ``recipes.compare``.

    Raises:
        AicrError: INVALID_REQUEST for a bundle without bundle-info.yaml or recipe.yaml, or with one
            that cannot be read.
    """
    old, new = _info(before), _info(after)
    found = recipes.compare(_recipe(before), _recipe(after), bring_crds=bring_crds)
    notes = list(found.notes)
    changes = [change for change in found.changes if change.area != "values"]
    same_deployer = old["build"]["deployer"] == new["build"]["deployer"]
    changes += _settings(old, new)
    if not same_deployer:
        notes.append("the deployers differ: files that belong to a deployer are not compared")
    releases = {release["name"]: release for release in old["layout"]["releases"]}
    others = {release["name"]: release for release in new["layout"]["releases"]}
    folders_before, folders_after = set(), set()
    for name in [*releases, *(name for name in others if name not in releases)]:
        one, other = releases.get(name), others.get(name)
        if one is not None:
            folders_before.add(one["path"])
        if other is not None:
            folders_after.add(other["path"])
        if one is None or other is None:
            changes.append(_release(name, one, other))
            continue
        if one["namespace"] != other["namespace"]:
            changes.append(
                _changed("releases", name, "namespace", one["namespace"], other["namespace"])
            )
        left, right = _Release(before, one), _Release(after, other)
        changes += _folder(name, left, right, notes, whole=same_deployer)
    if same_deployer:
        changes += _rest(
            _outside(before, folders_before, releases), _outside(after, folders_after, others)
        )
    changes += _data(before, after)
    return Comparison("bundle", changes, notes)


def _info(files: Files) -> dict[str, Any]:
    return info.read(_text(files, info.BUNDLE_INFO))


def _recipe(files: Files) -> dict[str, Any]:
    document = read_fast(_text(files, info.RECIPE), source=info.RECIPE, mode="v3")
    if not isinstance(document, dict) or not isinstance(document.get("componentRefs"), list):
        raise invalid("the bundle's recipe has no componentRefs", where=info.RECIPE)
    return document


def _text(files: Files, path: str) -> str:
    if path not in files:
        raise invalid(f"this is no bundle: it has no {path}", where=path)
    return decode(files[path], source=path)


def _settings(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    def said(document: dict[str, Any]) -> dict[str, Any]:
        build = document["build"]
        return {"deployer": build["deployer"], **build["settings"]}

    return [
        _changed("settings", "", path, left, right)
        for path, left, right in trees.compare(said(before), said(after))
    ]


def _release(name: str, before: Any, after: Any) -> Change:
    left = ABSENT if before is None else f"of {before['component']} in {before['namespace']}"
    right = ABSENT if after is None else f"of {after['component']} in {after['namespace']}"
    return Change(
        "releases", component=name, change=of_sides(left, right), before=left, after=right
    )


class _Release:
    """One release on one side.

    Attributes:
        files: what lies in its folder, by path in it.
        folder: that folder's path in the bundle.
        values: what its chart is given when the bundle is made.
        manifest: path of the deployer's own object in the folder, or "".
    """

    __slots__ = ("files", "folder", "manifest", "values")

    def __init__(self, files: Files, release: dict[str, Any]) -> None:
        self.folder: str = release["path"]
        self.files = _below(files, self.folder)
        place = str(release.get("manifest") or "")
        self.manifest = place.removeprefix(f"{self.folder}/")
        inline = self._inline()
        if inline is None:
            held = self.files.get("values.yaml")
            inline = {} if held is None else _values(held, f"{self.folder}/values.yaml")
        self.values = inline

    def _inline(self) -> Any:
        """The values inside the deployer's own object; None when it has none, or is none."""
        data = self.files.get(self.manifest, b"")
        if not any(key.encode() in data for _, trail in _INLINE for key in trail[-1:]):
            return None
        try:
            documents = read_fast_all(decode(data, source=self.manifest), source=self.manifest)
        except AicrError:
            return None
        for document in documents:
            for kind, trail in _INLINE:
                if isinstance(document, dict) and document.get("kind") == kind:
                    held: Any = document
                    for key in trail:
                        held = held.get(key) if isinstance(held, dict) else None
                    if held is not None:
                        return held
        return None


def _below(files: Files, folder: str) -> dict[str, bytes]:
    prefix = f"{folder}/"
    return {
        path.removeprefix(prefix): data for path, data in files.items() if path.startswith(prefix)
    }


def _outside(
    files: Files, folders: set[str], releases: Mapping[str, dict[str, Any]]
) -> dict[str, bytes]:
    """What belongs to the deployer: not to a release's folder, no page, no copy of its values."""
    copied = {
        f"{name}.yaml": files.get(f"{release['path']}/values.yaml")
        for name, release in releases.items()
    }
    return {
        path: data
        for path, data in files.items()
        if path not in _PAGES
        if path.partition("/")[0] not in (*folders, info.DATA, "attestation")
        if copied.get(path.rpartition("/")[2]) != data
    }


def _folder(
    name: str, left: _Release, right: _Release, notes: list[str], *, whole: bool
) -> list[Change]:
    """One release on both sides; with *whole*, also the files that are the deployer's own."""
    changes = [
        _changed("values", name, path, a, b)
        for path, a, b in trees.compare(left.values, right.values)
    ]
    before, after = left.files, right.files
    if _DEFERRED in before and _DEFERRED in after:
        one = _values(before[_DEFERRED], f"{left.folder}/{_DEFERRED}")
        other = _values(after[_DEFERRED], f"{right.folder}/{_DEFERRED}")
        changes += [
            _changed("values", name, f"{path} ({_DEFERRED})", a, b)
            for path, a, b in trees.compare(one, other)
        ]
    if not whole:
        before, after = _shared(before), _shared(after)
    old, new = _objects(before), _objects(after)
    unread = sorted(old.unread | new.unread)
    if unread:
        # What can be read on one side only would seem to come or go.
        old, new = _objects(before, unread), _objects(after, unread)
    changes += _compare_objects(name, old.found, new.found)
    changes += crds.compare(
        name, crds.definitions(before, old.crds), crds.definitions(after, new.crds)
    )
    if whole:
        known = {*old.read, *new.read, *_VALUES}
        for path in sorted({*before, *after} - known):
            one, other = before.get(path), after.get(path)
            if one is None or other is None or _NUMBER.sub(b"", one) != _NUMBER.sub(b"", other):
                changes.append(_file(f"{name}: {path}", one, other))
    notes += [
        f"{name}: {path} is compared as text, because it is not plain YAML" for path in unread
    ]
    return changes


def _shared(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if path.startswith(_SHARED)}


def _values(data: bytes, source: str) -> Any:
    return read_fast(data.decode("utf-8", "replace"), source=source) or {}


class _Objects:
    """What the YAML files of a folder hold: objects by identity, CRDs apart."""

    __slots__ = ("crds", "found", "read", "unread")

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self.crds: list[Any] = []
        self.read: set[str] = set()
        self.unread: set[str] = set()


def _objects(files: dict[str, bytes], without: Collection[str] = ()) -> _Objects:
    made = _Objects()
    for path in sorted(files):
        if path in _VALUES or path in without or not path.endswith((".yaml", ".yml")):
            continue
        try:
            documents = read_fast_all(decode(files[path], source=path), source=path)
        except AicrError:
            made.unread.add(path)
            continue
        if not all(isinstance(d, dict) and all(key in d for key in _OBJECT) for d in documents):
            continue
        made.read.add(path)
        for document in documents:
            if document["kind"] == _CRD:
                made.crds.append(document)
            else:
                made.found.setdefault(_identity(document), _without_values(document))
    return made


def _without_values(document: dict[str, Any]) -> dict[str, Any]:
    """The object without the values of a release in it, which are compared as values."""
    for kind, trail in _INLINE:
        if document["kind"] == kind:
            return _without(document, trail)
    return document


def _without(tree: dict[str, Any], trail: tuple[str, ...]) -> dict[str, Any]:
    key, *below = trail
    if not below:
        return {name: value for name, value in tree.items() if name != key}
    inner = tree.get(key)
    return {**tree, key: _without(inner, tuple(below))} if isinstance(inner, dict) else tree


def _identity(document: dict[str, Any]) -> str:
    metadata = document.get("metadata") or {}
    group = str(document["apiVersion"]).rpartition("/")[0]
    kind = f"{document['kind']}.{group}" if group else str(document["kind"])
    namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _compare_objects(name: str, before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    changes = []
    for identity in sorted({*before, *after}):
        left, right = before.get(identity, ABSENT), after.get(identity, ABSENT)
        if left is ABSENT or right is ABSENT:
            change = of_sides(left, right)
            changes.append(Change("manifests", component=name, path=identity, change=change))
            continue
        for path, one, other in trees.compare(left, right):
            changes.append(_changed("manifests", name, f"{identity}: {path}", one, other))
    return changes


def _rest(before: dict[str, bytes], after: dict[str, bytes]) -> list[Change]:
    """The deployer's own files; a folder number inside them is no difference."""
    changes = []
    for path in sorted({*before, *after}):
        left, right = before.get(path), after.get(path)
        if left is None or right is None or _NUMBER.sub(b"", left) != _NUMBER.sub(b"", right):
            changes.append(_file(path, left, right))
    return changes


def _data(before: Files, after: Files) -> list[Change]:
    left, right = _below(before, info.DATA), _below(after, info.DATA)
    return [
        _file(f"{info.DATA}/{path}", left.get(path), right.get(path))
        for path in sorted({*left, *right})
        if left.get(path) != right.get(path)
    ]


def _file(path: str, before: bytes | None, after: bytes | None) -> Change:
    left = ABSENT if before is None else f"{len(before)} bytes"
    right = ABSENT if after is None else f"{len(after)} bytes"
    return _changed("files", "", path, left, right)


def _changed(area: str, component: str, path: str, before: Any, after: Any) -> Change:
    """A difference whose kind follows from which of the two sides there is."""
    change = of_sides(before, after)
    return Change(area, component=component, path=path, change=change, before=before, after=after)
