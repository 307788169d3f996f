"""Why each overlay of the catalogue is in a recipe, or is not.

```
applied    it matches, a matching overlay inherits from it, or it is the root
excluded   it matches, and the snapshot fails one of its constraints
unmatched  it asks for something else, for something that was not stated, or for nothing at all
```

It must not know how selectors are written or how answers are drawn.
"""

from __future__ import annotations

from aicr.errors import nearest, not_found
from aicr.recipe.criteria import ANY
from aicr.recipe.match import ROOT, candidates, chain, maximal_leaves, stated_words
from aicr.recipe.provenance import applied_mixins, declaring_overlay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog
    from aicr.recipe.explain_types import Explanation, Failure, Item, OverlayRow
    from aicr.recipe.places import Places
    from aicr.recipe.provenance import Origins

APPLIED: Final = "applied"
EXCLUDED: Final = "excluded"
UNMATCHED: Final = "unmatched"

#: Short of one word only, an overlay is worth a line of the summary.
_ONE_WORD: Final = 1


def applied(origins: Origins) -> list[OverlayRow]:
    """The overlays of the recipe in merge order."""
    metadata = origins.recipe.document["metadata"]
    return [overlay(origins, name) for name in metadata.get("appliedOverlays") or ()]


def excluded(origins: Origins) -> list[OverlayRow]:
    """The overlays that the snapshot ruled out, with the constraints it fails."""
    metadata = origins.recipe.document["metadata"]
    return [overlay(origins, entry["name"]) for entry in metadata.get("excludedOverlays") or ()]


def everything(origins: Origins) -> list[OverlayRow]:
    """All overlays of the catalogue: those of the recipe first."""
    first = [*applied(origins), *excluded(origins)]
    named = {row["overlay"] for row in first}
    rest = sorted(name for name in origins.recipe.catalog.overlays if name not in named)
    return [*first, *(overlay(origins, name) for name in rest)]


def overlay(origins: Origins, name: str) -> OverlayRow:
    """One overlay.

    Raises:
        AicrError: NOT_FOUND with the nearest name.
    """
    catalog = origins.recipe.catalog
    if name == ROOT:
        where = origins.places.at(catalog.base["path"])
        return _row(ROOT, APPLIED, "root of every recipe", where)
    if name not in catalog.overlays:
        near = nearest(name, list(catalog.overlays))
        raise not_found(
            f'the catalogue has no overlay "{name}"',
            hint=f'did you mean "{near}"?' if near else "list them: aicr explain … overlays",
        )
    metadata = origins.recipe.document["metadata"]
    found = catalog.overlays[name]
    where = origins.places.at(found["path"], ("spec", "criteria"))
    words = stated_words(found)
    if name in (metadata.get("appliedOverlays") or ()):
        return _row(name, APPLIED, _why_applied(origins, name, words), where)
    if any(entry["name"] == name for entry in metadata.get("excludedOverlays") or ()):
        warnings = [w for w in metadata.get("constraintWarnings") or () if w["overlay"] == name]
        row = _row(name, EXCLUDED, f"matches {_words(words)}, but not the snapshot", where)
        row["failures"] = failures(catalog, origins.places, warnings)
        return row
    return _row(name, UNMATCHED, _why_not(origins, name, words), where)


def _row(name: str, state: str, because: str, where: str) -> OverlayRow:
    return {"overlay": name, "state": state, "because": because, "where": where}


def _why_applied(origins: Origins, name: str, words: dict[str, str]) -> str:
    catalog, query = origins.recipe.catalog, _query(origins)
    heirs = [leaf for leaf in maximal_leaves(catalog, query) if name in chain(catalog, leaf)[:-1]]
    if name not in candidates(catalog, query):
        return _heirs(heirs)
    matching = f"matches {_words(words)}"
    return f"{matching}, and {_heirs(heirs)}" if heirs else matching


def _heirs(names: list[str]) -> str:
    return f"{' and '.join(names)} inherit{'s' if len(names) == 1 else ''} from it"


def _why_not(origins: Origins, name: str, words: dict[str, str]) -> str:
    catalog, query = origins.recipe.catalog, _query(origins)
    if catalog.overlays[name]["spec"].get("criteria") is None:
        return "has no criteria: only there to inherit from"
    wrong = [f"{d}={v} and not {query[d]}" for d, v in words.items() if query.get(d, v) != v]
    if wrong:
        return f"is for {', '.join(wrong)}"
    missing = {d: v for d, v in words.items() if d not in query}
    if missing:
        return f"needs {_words(missing)} as well, which was not asked for"
    heirs = [leaf for leaf in maximal_leaves(catalog, query) if name in chain(catalog, leaf)]
    return f"matches, but {' and '.join(heirs)}, which stands for it, was ruled out"


def failures(catalog: Catalog, places: Places, warnings: list[Any]) -> list[Failure]:
    """The constraints behind constraint warnings, each with the file that states it.

    Args:
        catalog: where overlays and mixins are.
        places: their positions.
        warnings: ``constraintWarnings`` of a recipe, or of an error's context.
    """
    found: list[Failure] = []
    for warning in warnings:
        failure: Failure = {
            "constraint": warning["constraint"],
            "expected": warning["expected"],
            "reason": warning["reason"],
            "where": _stated_at(catalog, places, warning),
        }
        if warning.get("actual"):
            failure["actual"] = warning["actual"]
        found.append(failure)
    return found


def _stated_at(catalog: Catalog, places: Places, warning: Any) -> str:
    """The overlay's own constraint, else that of the mixin which its chain lists."""
    chained = [catalog.overlays[name] for name in chain(catalog, warning["overlay"])]
    mixins = [name for member in chained for name in member["spec"].get("mixins") or ()]
    brought = [catalog.mixins[name] for name in mixins if name in catalog.mixins]
    for document in (chained[-1], *brought):
        for index, constraint in enumerate(document["spec"].get("constraints") or ()):
            if constraint["name"] == warning["constraint"]:
                return places.at(document["path"], ("spec", "constraints", index, "value"))
    return ""


def criteria(origins: Origins) -> list[Item]:
    """Each stated word and the applied overlays that are written for it."""
    found: list[Item] = []
    for word, value in _query(origins).items():
        item: Item = {
            "selector": f"criteria.{word}",
            "state": "set",
            "value": value,
            "steps": [],
        }
        for source in origins.sources:
            stated = source.content.get("criteria") or {}
            if stated.get(word) not in (None, "", ANY):
                item["steps"].append(
                    {
                        "kind": source.kind,
                        "name": source.name,
                        "where": origins.where(source, "criteria", word),
                        "action": "matches",
                        "value": stated[word],
                        "inForce": True,
                    }
                )
        found.append(item)
    return found


def summary(origins: Origins) -> Explanation:
    """What a recipe is made of, and which overlays one more word would add."""
    document = origins.recipe.document
    notes = [
        f"mixin {name}, listed by {' and '.join(overlays)} "
        f"({origins.places.at(origins.recipe.catalog.mixins[name]['path'])})"
        for name, overlays in applied_mixins(origins.recipe)
    ]
    selected = document["metadata"].get("selectedProfile")
    if selected:
        declared = declaring_overlay(origins.recipe)
        profile = declared["spec"]["profile"]
        others = [value for value in profile["values"] if value != selected["value"]]
        trail = ("spec", "profile", "values", selected["value"])
        notes.append(
            f"profile {selected['name']}={selected['value']}"
            f"{' (the default)' if profile['default'] == selected['value'] else ''}, "
            f"declared by {declared['name']} ({origins.places.at(declared['path'], trail)}); "
            f"other values: {', '.join(others)}"
        )
    notes += [f"configuration {choice}" for choice in _flat(document.get("configuration") or {})]
    notes += _one_word_more(origins)
    order = document.get("deploymentOrder") or []
    notes.append(
        f"{len(order)} components, {len(document.get('constraints') or ())} constraints; "
        f"ask on with components.NAME, constraints.NAME or deploymentOrder"
    )
    return {
        "criteria": {word: value for word, value in document["criteria"].items() if value != ANY},
        "overlays": [*applied(origins), *excluded(origins)],
        "notes": notes,
    }


def _one_word_more(origins: Origins) -> list[str]:
    """One line for each word that would bring in further overlays."""
    query = _query(origins)
    metadata = origins.recipe.document["metadata"]
    known = {entry["name"] for entry in metadata.get("excludedOverlays") or ()}
    known.update(metadata.get("appliedOverlays") or ())
    further: dict[str, list[str]] = {}
    for name, found in origins.recipe.catalog.overlays.items():
        words = stated_words(found)
        missing = [d for d in words if d not in query]
        agrees = all(query.get(d, v) == v for d, v in words.items())
        if name not in known and agrees and len(missing) == _ONE_WORD:
            further.setdefault(f"--{missing[0]} {words[missing[0]]}", []).append(name)
    return [f"{flag} would add {', '.join(sorted(further[flag]))}" for flag in sorted(further)]


def _flat(value: Any, trail: str = "") -> list[str]:
    if isinstance(value, dict):
        return [
            line
            for key, item in value.items()
            for line in _flat(item, f"{trail}.{key}" if trail else key)
        ]
    return [f"{trail}={value if not isinstance(value, list) else f'({len(value)} entries)'}"]


def _query(origins: Origins) -> dict[str, str]:
    return {
        word: value
        for word, value in origins.recipe.document["criteria"].items()
        if word != "nodes" and value != ANY
    }


def _words(words: dict[str, str]) -> str:
    return ", ".join(f"{word}={value}" for word, value in words.items()) or "every query"
