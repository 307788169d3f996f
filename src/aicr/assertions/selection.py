"""Which health checks a person means: by name or all, from the catalogue or from a recipe.

A recipe carries the text of each component's check; what it says goes. Without a recipe the registry links
components to files, and a file ``checks/<name>/health-check.yaml`` that nothing links is an opt-in: it runs
only when it is asked for by name. Pure but for reading the catalogue's files.
Source: validators spec 8.1; requirements V-377 to V-380; decision 68.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aicr.catalog.catalog import Catalog
from aicr.errors import AicrError, invalid, nearest, not_found

_FILE: Final = "checks/{}/health-check.yaml"

#: ``name``, ``yaml`` and ``source`` of a check, as `aicr.assertions.runner.run` takes it.
Check = dict[str, str]


def from_catalog(catalog: Catalog, names: Sequence[str] | None = None) -> list[Check]:
    """Checks of the named components in the order given, or of all that the registry links.

    Raises:
        AicrError: NOT_FOUND for a name that has no check, with the nearest that has one.
    """
    linked = {
        entry["name"]: path
        for entry in catalog.registry.entries
        if (path := (entry.get("healthCheck") or {}).get("assertFile"))
    }
    if names is None:
        return [_check(catalog, name, path) for name, path in linked.items()]
    found = []
    for name in _once(names):
        path = linked.get(name) or _FILE.format(name)
        if not catalog.tree.exists(path):
            raise _no_check(name, {*linked, *_opt_in(catalog)}, name in catalog.registry.names())
        found.append(_check(catalog, name, path))
    return found


def from_recipe(
    document: Mapping[str, Any], catalog: Catalog, names: Sequence[str] | None = None
) -> list[Check]:
    """Checks of the named components of a recipe, or of all its enabled components that have one.

    Raises:
        AicrError: NOT_FOUND for a name that the recipe does not have or that has no check,
            INVALID_REQUEST for a component that the recipe switches off.
    """
    refs = {ref["name"]: ref for ref in document.get("componentRefs") or ()}
    if names is None:
        return [
            _own(ref) for ref in refs.values() if _enabled(ref) and ref.get("healthCheckAsserts")
        ]
    found = []
    for name in _once(names):
        ref = refs.get(name)
        if ref is None:
            if name in _opt_in(catalog):
                found += from_catalog(catalog, [name])
                continue
            near = nearest(name, list(refs))
            raise not_found(
                f'the recipe has no component "{name}"',
                hint=f'did you mean "{near}"?' if near else f"it has {', '.join(refs)}",
            )
        if not _enabled(ref):
            raise invalid(
                f'component "{name}" is switched off in the recipe',
                hint="its overrides say enabled: false; leave --recipe out to check it anyway",
            )
        if ref.get("healthCheckAsserts"):
            found.append(_own(ref))
        else:
            found += from_catalog(catalog, [name])
    return found


def _once(names: Sequence[str]) -> Iterable[str]:
    return dict.fromkeys(names)


def _own(ref: Mapping[str, Any]) -> Check:
    return {
        "name": ref["name"],
        "yaml": ref["healthCheckAsserts"],
        "source": f"{ref['name']}: healthCheckAsserts",
    }


def _check(catalog: Catalog, name: str, path: str) -> Check:
    return {"name": name, "yaml": catalog.tree.read_text(path), "source": path}


def _opt_in(catalog: Catalog) -> list[str]:
    """Names with a file that no component of the registry links."""
    before, _, after = _FILE.partition("{}")
    linked = {
        (entry.get("healthCheck") or {}).get("assertFile") for entry in catalog.registry.entries
    }
    return [
        path[len(before) : -len(after)]
        for path in catalog.tree.paths()
        if path.startswith(before) and path.endswith(after) and path not in linked
    ]


def _no_check(name: str, known: Iterable[str], is_component: bool) -> AicrError:
    near = nearest(name, sorted(known))
    if is_component:
        return not_found(
            f'component "{name}" has no health check',
            hint=f"write {_FILE.format(name)} in a data directory, and pass it with --data",
        )
    return not_found(
        f'there is no component "{name}"',
        hint=f'did you mean "{near}"?' if near else f"with a check: {', '.join(sorted(known))}",
    )


def _enabled(ref: Mapping[str, Any]) -> bool:
    overrides = ref.get("overrides")
    return not (isinstance(overrides, dict) and overrides.get("enabled") is False)
