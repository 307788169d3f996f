"""Load and check a data tree: walk, decode, lint, and only then hand out a catalogue.

The walk order is the sorted path order, and nothing of a tree is used before all of it parsed: a bad file
leaks nothing (recipe spec 1.4, 2.2). Two overlays or mixins of one name are refused with both paths,
because the originals let one of them win silently.
"""

from __future__ import annotations

from aicr.catalog import decode, fields
from aicr.catalog.catalog import Catalog
from aicr.catalog.criteria_values import ALIASES, ANY
from aicr.catalog.decoder import Decoder
from aicr.catalog.dependencies import check_dependencies
from aicr.catalog.directory_tree import DirectoryTree
from aicr.catalog.registry import Registry, check_entries
from aicr.catalog.tree import EMBEDDED, EXTERNAL, LayeredTree
from aicr.constraints.evaluate import check_constraint
from aicr.contract.documents import (
    ACCEPTED,
    V1BETA1,
    V1BETA2,
    check_header,
    is_legacy,
    legacy_notice,
)
from aicr.errors import INTERNAL, AicrError, invalid, nearest
from aicr.yamlio import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.catalog.decoder import Path
    from aicr.catalog.tree import Tree
    from aicr.catalog.types import Constraint, Mixin, Overlay, RegistryEntry

#: Kinds that may lie in a data tree without being part of the catalogue.
SKIPPED_KINDS: Final = (
    "AICRConfig",
    "BundleProvenance",
    "BundleInfo",
    "ComponentRegistry",
    "ComponentUpgrades",
    "RecipeCriteria",
    "RecipeMixin",
    "RecipeResult",
    "Recipe",
    "Snapshot",
    "ValidatorCatalog",
)
REGISTRY_PATH: Final = "registry.yaml"
_REGISTRY_HEADER: Final = f"begin the file with: kind: ComponentRegistry, apiVersion: {V1BETA1}"


class Parts:
    """What one directory contributes, before it is combined with anything."""

    __slots__ = ("entries", "mixins", "notices", "overlays")

    def __init__(self) -> None:
        self.overlays: list[Overlay] = []
        self.mixins: list[Mixin] = []
        self.entries: list[RegistryEntry] = []
        self.notices: list[str] = []


def read_parts(tree: DirectoryTree, origin: str) -> Parts:
    """Parse and check every document of a directory (recipe spec 2.2).

    Raises:
        AicrError: INVALID_REQUEST with file, line and column of the first problem.
    """
    parts = Parts()
    parts.entries = _read_registry(tree, parts)
    for path in tree.paths():
        if not path.endswith(".yaml") or path == REGISTRY_PATH or path == "data-v1.yaml":
            continue
        if path.startswith(("checks/", "components/", "validators/", "evidence/")):
            continue
        if "/checks/" in path:
            continue
        if path.startswith("mixins/"):
            parts.mixins.append(_read_mixin(tree, path, parts))
        else:
            _read_overlay(tree, path, origin, parts)
    return parts


def _open(tree: DirectoryTree, path: str) -> tuple[Any, read.Positions]:
    source = tree.place(path)
    try:
        return read.load_with_positions(tree.read_text(path), source=source, mode=tree.yaml_mode)
    except AicrError as error:
        raise AicrError(error.code, f"failed to parse {path}") from error


def _decoder(tree: DirectoryTree, value: Any, positions: Any, *, strict: bool) -> Decoder:
    return Decoder(value, positions, strict=strict, require_quotes=tree.yaml_mode != "v3")


def _read_registry(tree: DirectoryTree, parts: Parts) -> list[RegistryEntry]:
    value, positions = _open(tree, REGISTRY_PATH)
    source = tree.place(REGISTRY_PATH)
    if not isinstance(value, dict):
        raise invalid("registry.yaml must be a ComponentRegistry document", where=source)
    kind, version = value.get("kind"), value.get("apiVersion")
    if kind not in ("ComponentRegistry", None, "") or (not kind and version):
        raise invalid(
            f'registry.yaml has kind "{kind or ""}", expected "ComponentRegistry"; update the '
            f"registry header for this aicr release",
            where=source,
            hint=_REGISTRY_HEADER,
        )
    if is_legacy(version):
        parts.notices.append(legacy_notice("ComponentRegistry", version, source))
    elif version not in ACCEPTED["ComponentRegistry"]:
        raise invalid(
            f'registry.yaml has apiVersion "{version}", expected "{V1BETA1}"; update the registry '
            f"header for this aicr release",
            where=source,
            hint=_REGISTRY_HEADER,
        )
    entries = decode.registry_entries(_decoder(tree, value, positions, strict=False))
    check_entries(entries, source)
    return entries


def _read_mixin(tree: DirectoryTree, path: str, parts: Parts) -> Mixin:
    value, positions = _open(tree, path)
    found = value.get("kind") if isinstance(value, dict) else None
    if found != "RecipeMixin":
        raise invalid(
            f'mixin file {path} has kind "{found or ""}", expected "RecipeMixin"; use a RecipeMixin '
            f"document compatible with this aicr release",
            where=tree.place(path),
            hint="the folder mixins/ holds mixins only; overlays go into overlays/",
        )
    notice = check_header(value, "RecipeMixin", source=tree.place(path))
    if notice:
        parts.notices.append(notice)
    try:
        mixin = decode.mixin(_decoder(tree, value, positions, strict=True), path)
    except AicrError as error:
        if error.message.startswith("unknown field"):
            raise invalid(
                f"failed to parse mixin {path} (unknown fields are not allowed)"
            ) from error
        raise
    for earlier in parts.mixins:
        if earlier["name"] == mixin["name"]:
            raise invalid(
                f'duplicate mixin name "{mixin["name"]}" in {path}',
                where=tree.place(path),
                hint=f"it is also declared in {earlier['path']}",
            )
    _lint(mixin["spec"].get("constraints") or [], positions, ("spec", "constraints"))
    return mixin


def _read_overlay(tree: DirectoryTree, path: str, origin: str, parts: Parts) -> None:
    value, positions = _open(tree, path)
    if not isinstance(value, dict):
        return
    kind, version = value.get("kind"), value.get("apiVersion")
    if kind != "RecipeMetadata":
        ours = isinstance(version, str) and version.startswith(("aicr.run/", "aicr.nvidia.com/"))
        if kind in SKIPPED_KINDS or not ours:
            return
        near = nearest(str(kind), ["RecipeMetadata", *SKIPPED_KINDS])
        raise invalid(
            f'AICR catalog file {path} has kind "{kind or ""}", expected "RecipeMetadata"; fix the '
            f"wire kind or move the unrelated document outside the recipe catalog",
            where=tree.place(path),
            hint=f'did you mean "{near}"?' if near else "",
        )
    notice = check_header(value, "RecipeMetadata", source=tree.place(path))
    if notice:
        parts.notices.append(notice)
    strict = version == V1BETA2
    spec = value.get("spec")
    has_profile = isinstance(spec, dict) and spec.get("profile") is not None
    if strict and not has_profile:
        raise invalid(
            f"{V1BETA2} is for overlays that declare spec.profile, and this one has none",
            where=positions.where(("apiVersion",)),
            hint=f"write apiVersion: {V1BETA1}",
        )
    if has_profile and not strict:
        raise invalid(
            f'spec.profile needs apiVersion "{V1BETA2}", found "{version or ""}"',
            where=positions.where(("apiVersion",)),
        )
    overlay = decode.overlay(_decoder(tree, value, positions, strict=strict), path, origin)
    for earlier in parts.overlays:
        if earlier["name"] == overlay["name"]:
            raise invalid(
                f'overlay name "{overlay["name"]}" is declared twice: in {earlier["path"]} and {path}',
                where=positions.where(("metadata", "name")),
                hint="rename one of them",
            )
    _lint_overlay(overlay, positions)
    if origin == EXTERNAL and overlay["spec"].get("criteria", {}).get("nodes", 0) != 0:
        nodes = overlay["spec"]["criteria"]["nodes"]
        raise invalid(
            f'external overlay "{overlay["name"]}" sets criteria.nodes={nodes} which is no longer '
            f"used for overlay selection (#1781): nodes is metadata-only and the overlay would "
            f"silently match every query; remove or zero criteria.nodes in your --data catalog",
            where=positions.where(("spec", "criteria", "nodes")),
        )
    parts.overlays.append(overlay)


def _lint_overlay(overlay: Overlay, positions: read.Positions) -> None:
    spec = overlay["spec"]
    _lint(spec.get("constraints") or [], positions, ("spec", "constraints"))
    readiness = (spec.get("validation") or {}).get("readiness") or {}
    here = ("spec", "validation", "readiness", "constraints")
    _lint(readiness.get("constraints") or [], positions, here)
    profile = spec.get("profile")
    if profile:
        for name, value in profile["values"].items():
            for key in ("constraints", "readinessConstraints"):
                place = ("spec", "profile", "values", name, key)
                found: list[Constraint] = value.get(key) or []  # type: ignore[assignment]
                _lint(found, positions, place)


def _lint(constraints: list[Constraint], positions: read.Positions, place: Path) -> None:
    """Names must address a catalogued reading, values must be expressions (recipe spec 2.2 step 7)."""
    for index, constraint in enumerate(constraints):
        try:
            check_constraint(constraint)
        except AicrError as error:
            raise AicrError(
                error.code,
                f'constraint "{constraint["name"]}" with value "{constraint["value"]}" is refused',
                where=positions.where((*place, index)),
                hint=error.hint,
            ) from error


def from_directory(path: str, *, origin: str, yaml_mode: str) -> Catalog:
    """The catalogue of one directory alone."""
    tree = DirectoryTree(path, origin=origin, yaml_mode=yaml_mode)
    parts = read_parts(tree, EMBEDDED)
    overlays = {overlay["name"]: overlay for overlay in parts.overlays}
    base = overlays.pop("base", None)
    if base is None:
        raise AicrError(
            INTERNAL,
            "base.yaml not found",
            where=path,
            hint="a catalogue needs overlays/base.yaml with metadata.name: base",
        )
    catalog = Catalog(
        base=base,
        overlays=overlays,
        mixins={mixin["name"]: mixin for mixin in parts.mixins},
        registry=Registry(parts.entries),
        tree=tree,
        taught=taught_values([base, *overlays.values()]),
        notices=_summarised(parts.notices, path),
    )
    _check_base(catalog)
    return catalog


def overlaid(lower: Catalog, path: str) -> Catalog:
    """*lower* with the directory *path* laid over it (recipe spec 2.3)."""
    try:
        tree = DirectoryTree(path, origin=EXTERNAL, yaml_mode=_mode_of(lower.tree))
    except AicrError as error:
        raise AicrError(error.code, "failed to initialize external data") from error
    parts = read_parts(tree, EXTERNAL)
    replaced = set(tree.paths())
    overlays = {
        overlay["name"]: overlay
        for overlay in [lower.base, *lower.overlays.values()]
        if overlay["path"] not in replaced
    }
    for overlay in parts.overlays:
        if overlay["name"] in overlays:
            raise invalid(
                f'overlay name "{overlay["name"]}" is declared twice: in '
                f"{lower.tree.place(overlays[overlay['name']]['path'])} and "
                f"{tree.place(overlay['path'])}",
                hint="to replace a built-in overlay, put the file at the same relative path",
            )
        overlays[overlay["name"]] = overlay
    mixins = {name: mixin for name, mixin in lower.mixins.items() if mixin["path"] not in replaced}
    for mixin in parts.mixins:
        if mixin["name"] in mixins:
            raise invalid(
                f'duplicate mixin name "{mixin["name"]}" in {mixin["path"]}',
                where=tree.place(mixin["path"]),
                hint="to replace a built-in mixin, put the file at the same relative path",
            )
        mixins[mixin["name"]] = mixin
    base = overlays.pop("base", None)
    if base is None:
        raise AicrError(INTERNAL, "base.yaml not found", where=path)
    registry = lower.registry.merged(parts.entries)
    check_entries(registry.entries, tree.place(REGISTRY_PATH))
    ordered = dict(sorted(overlays.items(), key=lambda item: item[1]["path"]))
    catalog = Catalog(
        base=base,
        overlays=ordered,
        mixins=dict(sorted(mixins.items())),
        registry=registry,
        tree=LayeredTree(lower.tree, tree),
        taught=taught_values([base, *ordered.values()]),
        notices=[*lower.notices, *_summarised(parts.notices, path)],
        external=tuple(sorted({*lower.external, *tree.paths()})),
    )
    _check_base(catalog)
    return catalog


def _summarised(notices: list[str], path: str) -> list[str]:
    """One deprecation line a tree, however many of its files are of the old form."""
    if len(notices) <= 1:
        return notices
    return [f"{notices[0]} (and {len(notices) - 1} more files under {path})"]


def _mode_of(tree: Tree) -> str:
    """How the files of a tree are read; what is laid over it is read the same way."""
    if isinstance(tree, DirectoryTree):
        return tree.yaml_mode
    if isinstance(tree, LayeredTree):
        return _mode_of(tree.lower)
    return "helm"


def taught_values(overlays: list[Overlay]) -> dict[str, dict[str, str]]:
    """Per criteria field, every value that an overlay states, with its strongest origin.

    An embedded value stays embedded however often it is taught again (recipe spec 1.4). Aliases are
    taught as what they stand for, because that is what a query is turned into.
    """
    taught: dict[str, dict[str, str]] = {field: {} for field in fields.CRITERIA_STRINGS}
    for overlay in overlays:
        for field in fields.CRITERIA_STRINGS:
            value = overlay["spec"].get("criteria", {}).get(field)
            value = ALIASES[field].get(value, value) if value else ""
            if value and value != ANY and taught[field].get(value) != EMBEDDED:
                taught[field][value] = overlay["origin"]
    return taught


def _check_base(catalog: Catalog) -> None:
    try:
        check_dependencies(catalog.base["spec"].get("componentRefs") or [])
    except AicrError as error:
        raise AicrError(
            error.code,
            "base recipe validation failed",
            where=catalog.tree.place(catalog.base["path"]),
        ) from error
