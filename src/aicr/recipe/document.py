"""Reading a recipe file for bundling: header, shape, and the checks that resolution would make.

A recipe may come from an older release or from an editor, so nothing of it is taken on trust: kinds,
types, names, dependencies and coherence are checked again (recipe spec 4.10, 5.4). The fast path reads
what ``aicr recipe`` wrote; only when something is wrong is the text parsed again with positions, to say
where.
"""

from __future__ import annotations

from aicr.catalog.dependencies import check_dependencies, deployment_order
from aicr.catalog.fields import REF_BOOLS, REF_LISTS, REF_ORDER, REF_STRINGS
from aicr.catalog.registry import component_type
from aicr.contract.documents import check_header, type_name
from aicr.errors import AicrError, invalid, nearest
from aicr.recipe.coherence import canonical_type, check_coherence, check_duplicates
from aicr.recipe.resolve import Recipe
from aicr.values.merge import copy_tree
from aicr.yamlio import read_fast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog

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


class _ShapeError(Exception):
    """Where a document has the wrong shape: a path into it and the words for it."""

    def __init__(self, path: tuple[str | int, ...], message: str, hint: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.hint = hint


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
        return _resolve_overlay(value, source, catalog)
    if value.get("kind") not in ("RecipeResult", "Recipe", None, ""):
        raise invalid(
            f'recipe file has kind "{value["kind"]}", but "RecipeResult" is required; run "aicr '
            f'recipe" to generate a hydrated RecipeResult first',
            where=source,
        )
    legacy_kind = value.get("kind") == "Recipe"
    header = {**value, "kind": "RecipeResult"} if legacy_kind else value
    notice = check_header(header, "RecipeResult", source=source)
    warnings = [notice] if notice else []
    try:
        _check_shape(value)
    except _ShapeError as problem:
        raise invalid(
            problem.message, where=_place(text, source, mode, problem.path), hint=problem.hint
        ) from None
    document: Any = copy_tree(value)
    document["kind"] = "RecipeResult"
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
        ref.setdefault("source", "")
    try:
        check_duplicates(refs)
        check_coherence(refs)
        check_dependencies(refs)
    except AicrError as error:
        raise AicrError(
            error.code, "recipe cannot be bundled", where=source, hint=error.hint
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


def _parse(text: str, source: str, mode: str) -> Any:
    if text.lstrip()[:1] == "{":
        from aicr.yamlio.jsontext import load_json

        return load_json(text, source=source)
    return read_fast(text, source=source, mode=mode)


def _place(text: str, source: str, mode: str, path: tuple[str | int, ...]) -> str:
    from aicr.yamlio import read

    return read.load_with_positions(text, source=source, mode=mode)[1].where(path)


def _resolve_overlay(value: dict[str, Any], source: str, catalog: Catalog) -> Recipe:
    from aicr.recipe.criteria import Criteria
    from aicr.recipe.resolve import resolve

    check_header(value, "RecipeMetadata", source=source)
    criteria = (value.get("spec") or {}).get("criteria")
    if not criteria:
        raise invalid(
            f'overlay "{source}" has no criteria; only leaf overlays can be bundled',
            where=source,
            hint='run "aicr recipe" with the criteria that you want',
        )
    fields = ("service", "accelerator", "intent", "os", "platform")
    stated: dict[str, Any] = {key: str(criteria.get(key) or "") for key in fields}
    return resolve(catalog, Criteria(**stated))


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
    for index, ref in enumerate(document.get("componentRefs") or ()):
        _check_ref(ref, ("componentRefs", index))
    for index, constraint in enumerate(document.get("constraints") or ()):
        place = ("constraints", index)
        _expect(constraint, dict, place)
        for key in ("name", "value"):
            _expect_text((constraint or {}).get(key), (*place, key))


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
                _expect_text(item, (*here, index))
        elif key in REF_BOOLS:
            _expect(value, bool, here)
        elif key == "overrides":
            _expect(value, dict, here)
    for key in ("manifestFiles", "preManifestFiles", "valuesFile"):
        files = ref.get(key) or ()
        for file in [files] if isinstance(files, str) else files:
            if file.startswith("/") or "\\" in file or ".." in file.split("/"):
                raise _ShapeError(
                    (*place, key), f"path traversal or non-local path detected: {file}"
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


def _expect_text(value: Any, path: tuple[str | int, ...]) -> None:
    if value is None or isinstance(value, str):
        return
    shown = str(value).lower() if isinstance(value, bool) else value
    raise _ShapeError(
        path, f"{path[-1]} must be text, found {type_name(value)}", f'quote it: "{shown}"'
    )
