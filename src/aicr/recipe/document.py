"""Reading a recipe file for bundling: header, shape, and the checks that resolution would make.

A recipe may come from an older release or from an editor, so nothing of it is taken on trust: kinds,
types, names, dependencies and coherence are checked again (recipe spec 4.10, 5.4). The fast path reads
what ``aicr recipe`` wrote; only when something is wrong is the text parsed again with positions, to say
where.
"""

from __future__ import annotations

from aicr.catalog.criteria_values import FIELDS
from aicr.catalog.dependencies import check_dependencies, deployment_order
from aicr.catalog.fields import (
    CONSTRAINT_KEYS,
    PHASES,
    REF_BOOLS,
    REF_LISTS,
    REF_ORDER,
    REF_STRINGS,
)
from aicr.catalog.registry import component_type
from aicr.contract.documents import V1, V1BETA2, check_header, type_name
from aicr.errors import AicrError, invalid, nearest
from aicr.recipe.coherence import canonical_type, check_coherence, check_duplicates
from aicr.recipe.merge import as_written
from aicr.recipe.recipe import Recipe
from aicr.values.merge import copy_tree
from aicr.yamlio import read_fast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog
    from aicr.yamlio.read import Positions

TOP_LEVEL: Final = (
    "kind",
    "apiVersion",
    "metadata",
    "criteria",
    "configuration",
    "constraints",
    "componentRefs",
    "deploymentOrder",
    "validation",
)

_QUOTE: Final = "quote it"
_AGAIN: Final = 'correct the file, or run "aicr recipe" to generate it again'


class _ShapeError(Exception):
    """Where a document has the wrong shape: a path into it and the words for it."""

    def __init__(self, path: tuple[str | int, ...], message: str, hint: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.hint = hint or _AGAIN


def load_recipe(text: str, source: str, catalog: Catalog, *, mode: str = "helm") -> Recipe:
    """The recipe in a file, ready to be bundled.

    A RecipeMetadata overlay with criteria is resolved first. Notices about old headers and about an
    order that no longer holds are in ``warnings``.

    Raises:
        AicrError: INVALID_REQUEST with file, line and column for a wrong kind, shape, name or
            dependency; what resolution raises for an overlay file.
    """
    value = _parse(text, source, mode)
    if not isinstance(value, dict):
        raise invalid(
            f"a recipe file must be a map, found {type_name(value)}",
            where=source,
            hint='run "aicr recipe" to generate one',
        )
    if value.get("kind") == "RecipeMetadata":
        return _resolve_overlay(value, text, source, catalog, mode)
    if value.get("kind") not in ("RecipeResult", "Recipe", None, ""):
        raise invalid(
            f'recipe file has kind "{value["kind"]}", but "RecipeResult" is required; run "aicr '
            f'recipe" to generate a hydrated RecipeResult first',
            where=source,
            hint='pass this file to "aicr recipe" (--criteria or --snapshot), and its output here',
        )
    legacy_kind = value.get("kind") == "Recipe"
    header = {**value, "kind": "RecipeResult"} if legacy_kind else value
    notice = check_header(header, "RecipeResult", source=source)
    warnings = [notice] if notice else []
    if legacy_kind and not notice:
        warnings.append(
            f'{source}: kind "Recipe" is read as "RecipeResult"; rewrite it with aicr migrate'
        )
    try:
        _check_shape(value)
    except _ShapeError as problem:
        raise _placed(problem, text, source, mode) from None
    # Header first: this is also the order in which a bundle writes it.
    document: Any = {"kind": "RecipeResult", "apiVersion": _api_version(value)}
    document.update((key, copy_tree(value[key])) for key in value if key not in document)
    refs = document.get("componentRefs") or []
    if not refs:
        raise invalid(
            "recipe has no componentRefs; there is nothing to bundle",
            where=source,
            hint='run "aicr recipe" to generate one',
        )
    for ref in refs:
        ref["type"] = canonical_type(ref.get("type") or "")
        entry = catalog.registry.get(ref["name"])
        if not ref["type"] and entry is not None:
            ref["type"] = component_type(entry)
    document["componentRefs"] = refs = [as_written(ref) for ref in refs]
    try:
        check_duplicates(refs)
        check_coherence(refs)
        check_dependencies(refs)
    except AicrError as error:
        raise AicrError(
            error.code, "recipe cannot be bundled", where=source, hint=error.hint or _AGAIN
        ) from error
    order = deployment_order(refs)
    stated = document.get("deploymentOrder")
    if stated and stated != order:
        warnings.append(
            f"{source}: deploymentOrder is derived from dependencyRefs, and the file's own order "
            f"differs from it: the derived order is used"
        )
    document["deploymentOrder"] = order
    return Recipe(document, catalog, warnings=warnings)


def _api_version(document: dict[str, Any]) -> str:
    """The track that a recipe with this content belongs to, whatever an older release wrote."""
    selected = (document.get("metadata") or {}).get("selectedProfile")
    return V1BETA2 if selected or document.get("configuration") else V1


def _parse(text: str, source: str, mode: str) -> Any:
    if text.lstrip()[:1] == "{":
        from aicr.yamlio import jsontext

        if jsontext.is_json(text):
            return jsontext.load_json(text, source=source)
    return read_fast(text, source=source, mode=mode)


def _placed(problem: _ShapeError, text: str, source: str, mode: str) -> AicrError:
    """The error for a wrong shape: only now is the text read with its places, and its spellings."""
    positions = _positions(text, source, mode)
    hint, written = problem.hint, positions.plain(problem.path)
    if hint.startswith(_QUOTE) and written:
        # What was read has lost it: 24.10 is the number 24.1.
        hint = f'{_QUOTE}: "{written}"'
    return invalid(problem.message, where=positions.where(problem.path), hint=hint)


def _positions(text: str, source: str, mode: str) -> Positions:
    from aicr.yamlio import jsontext, read

    if jsontext.is_json(text):
        return jsontext.positions(text, source=source)
    return read.load_with_positions(text, source=source, mode=mode)[1]


def _resolve_overlay(
    value: dict[str, Any], text: str, source: str, catalog: Catalog, mode: str
) -> Recipe:
    from aicr.recipe.criteria import Criteria
    from aicr.recipe.resolve import resolve

    notice = check_header(value, "RecipeMetadata", source=source)
    try:
        _expect(value.get("spec"), dict, ("spec",))
        criteria = (value.get("spec") or {}).get("criteria")
        _expect(criteria, dict, ("spec", "criteria"))
        for key in FIELDS:
            _expect_text((criteria or {}).get(key), ("spec", "criteria", key))
    except _ShapeError as problem:
        raise _placed(problem, text, source, mode) from None
    if not criteria:
        raise invalid(
            f'overlay "{source}" has no criteria; only leaf overlays can be bundled',
            where=source,
            hint='run "aicr recipe" with the criteria that you want',
        )
    words: dict[str, Any] = {key: criteria.get(key) or "" for key in FIELDS}
    recipe = resolve(catalog, Criteria(**words))
    if notice:
        recipe.warnings.insert(0, notice)
    return recipe


def _check_shape(document: dict[str, Any]) -> None:
    for key in document:
        if key not in TOP_LEVEL:
            near = nearest(str(key), list(TOP_LEVEL))
            raise _ShapeError(
                (key,),
                f'unknown field "{key}" in a recipe',
                f'did you mean "{near}"?' if near else f"known: {', '.join(TOP_LEVEL)}",
            )
    for key in ("metadata", "criteria", "configuration", "validation"):
        _expect(document.get(key), dict, (key,))
    for key in ("constraints", "componentRefs", "deploymentOrder"):
        _expect(document.get(key), list, (key,))
    _check_profile((document.get("metadata") or {}).get("selectedProfile"))
    criteria = document.get("criteria") or {}
    for key in FIELDS:
        _expect_text(criteria.get(key), ("criteria", key))
    if not isinstance(criteria.get("nodes") or 0, int) or isinstance(criteria.get("nodes"), bool):
        raise _ShapeError(("criteria", "nodes"), "nodes must be a whole number")
    for index, ref in enumerate(document.get("componentRefs") or ()):
        _check_ref(ref, ("componentRefs", index))
    _check_constraints(document.get("constraints"), ("constraints",))
    for index, name in enumerate(document.get("deploymentOrder") or ()):
        _expect_item(name, ("deploymentOrder", index))
    for phase, block in (document.get("validation") or {}).items():
        _check_phase(phase, block, ("validation", phase))


def _check_profile(profile: Any) -> None:
    """The profile that was selected says which paths a bundle locks (recipe spec 4.11)."""
    place = ("metadata", "selectedProfile")
    _expect(profile, dict, place)
    for key in ("name", "value", "advertiser"):
        _expect_text((profile or {}).get(key), (*place, key))
    if profile and not (profile.get("name") and profile.get("value")):
        raise _ShapeError(place, "selectedProfile needs a name and a value")
    owned = (profile or {}).get("ownedPaths")
    _expect(owned, dict, (*place, "ownedPaths"))
    for component, paths in (owned or {}).items():
        here = (*place, "ownedPaths", component)
        _expect(paths, list, here)
        for index, path in enumerate(paths or ()):
            _expect_item(path, (*here, index))


def _check_phase(phase: str, block: Any, place: tuple[str | int, ...]) -> None:
    """A phase is copied into the bundle and judged there later, so its texts must be texts by now."""
    if phase not in PHASES:
        near = nearest(phase, list(PHASES))
        hint = f'did you mean "{near}"?' if near else f"phases: {', '.join(PHASES)}"
        raise _ShapeError(place, f'unknown validation phase "{phase}"', hint)
    _expect(block, dict, place)
    found = block or {}
    for key in ("timeout", "infrastructure"):
        _expect_text(found.get(key), (*place, key))
    for key, kind in (("checks", list), ("constraints", list), ("nodeSelection", dict)):
        _expect(found.get(key), kind, (*place, key))
    for index, check in enumerate(found.get("checks") or ()):
        _expect_item(check, (*place, "checks", index))
    _check_constraints(found.get("constraints"), (*place, "constraints"))


def _check_constraints(constraints: Any, place: tuple[str | int, ...]) -> None:
    for index, constraint in enumerate(constraints or ()):
        here = (*place, index)
        if not isinstance(constraint, dict):
            raise _ShapeError(here, f"a constraint must be a map, found {type_name(constraint)}")
        if not constraint.get("name"):
            raise _ShapeError(here, "a constraint needs a name")
        for key in CONSTRAINT_KEYS:
            _expect_text(constraint.get(key), (*here, key))


def _check_ref(ref: Any, place: tuple[str | int, ...]) -> None:
    if not isinstance(ref, dict):
        raise _ShapeError(place, f"a componentRef must be a map, found {type_name(ref)}")
    name = ref.get("name")
    if not name:
        raise _ShapeError(place, "a componentRef needs a name")
    for key, value in ref.items():
        here = (*place, key)
        if key not in REF_ORDER:
            near = nearest(str(key), list(REF_ORDER))
            raise _ShapeError(
                here,
                f'unknown field "{key}" in componentRef "{name}"',
                f'did you mean "{near}"?' if near else f"known: {', '.join(REF_ORDER)}",
            )
        if key in REF_STRINGS:
            _expect_text(value, here)
        elif key in REF_LISTS:
            _expect(value, list, here)
            for index, item in enumerate(value or ()):
                _expect_item(item, (*here, index))
        elif key in REF_BOOLS:
            _expect(value, bool, here)
        elif key == "overrides":
            _expect(value, dict, here)
    for key in ("manifestFiles", "preManifestFiles", "valuesFile"):
        files = ref.get(key) or ()
        for file in [files] if isinstance(files, str) else files:
            if file.startswith("/") or "\\" in file or ".." in file.split("/"):
                raise _ShapeError(
                    (*place, key),
                    f"path traversal or non-local path detected: {file}",
                    "name a file inside the catalogue, for example components/NAME/values.yaml",
                )
    if not _is_name(name):
        raise _ShapeError(
            (*place, "name"),
            f'component name "{name}" is not a lower-case DNS name (a-z, 0-9, "-" and ".")',
        )


def _is_name(name: str) -> bool:
    inner = name.replace("-", "").replace(".", "")
    return (
        bool(inner)
        and inner.isascii()
        and inner.isalnum()
        and inner == inner.lower()
        and name[0] not in "-."
        and name[-1] not in "-."
        and len(name) <= 63
    )


def _expect(value: Any, kind: type, path: tuple[str | int, ...]) -> None:
    if value is None or isinstance(value, kind):
        return
    wanted = {dict: "a map", list: "a list", bool: "true or false"}[kind]
    raise _ShapeError(path, f"{path[-1]} must be {wanted}, found {type_name(value)}")


def _expect_item(value: Any, path: tuple[str | int, ...]) -> None:
    if value is None or value == "":
        raise _ShapeError(path, f"an entry of {path[-2]} is empty", "remove the entry")
    _expect_text(value, path)


def _expect_text(value: Any, path: tuple[str | int, ...]) -> None:
    if value is None or isinstance(value, str):
        return
    shown = str(value).lower() if isinstance(value, bool) else value
    field = path[-1] if isinstance(path[-1], str) else f"an entry of {path[-2]}"
    hint = "" if isinstance(value, (dict, list)) else f'{_QUOTE}: "{shown}"'
    raise _ShapeError(path, f"{field} must be text, found {type_name(value)}", hint)
