"""The post-condition of every resolution: what was asked for is what was applied (recipe spec 4.9).

Every stated word must be carried by an applied overlay, and together they must be one supported
combination; else the answer would be a generic recipe with a specific name. The node count never counts.
``os`` is the only strict dimension: naming one may be demanded when it would change the outcome.
"""

from __future__ import annotations

from aicr.catalog.criteria_values import FIELDS
from aicr.errors import INVALID_REQUEST, AicrError
from aicr.recipe.match import chain, maximal_leaves, stated_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog
    from aicr.recipe.criteria import Criteria

STRICT_DIMENSIONS: Final = ("os",)
_SHOWN_NEIGHBOURS: Final = 3


def check_coverage(
    catalog: Catalog,
    criteria: Criteria,
    applied: Iterable[str],
    *,
    excluded: list[dict[str, str]] | None = None,
    warnings: list[dict[str, str]] | None = None,
) -> None:
    """Refuse a recipe that does not cover the criteria it was asked for.

    Args:
        catalog: where the overlays are.
        criteria: the query.
        applied: names of the merged overlays.
        excluded: overlays that a snapshot ruled out (``name``, ``reason``).
        warnings: the constraint warnings that go with them.

    Raises:
        AicrError: INVALID_REQUEST; ``context`` holds ``uncovered`` or ``strictDimensions``.
    """
    query = criteria.stated()
    if not query:
        return
    applied = [name for name in applied if name != "base"]
    extra: dict[str, Any] = {}
    if excluded:
        extra["excludedOverlays"] = excluded
    if warnings:
        extra["constraintWarnings"] = warnings
    uncovered = _uncovered(catalog, query, applied)
    if uncovered:
        _refuse_uncovered(catalog, criteria, query, uncovered, excluded or [], extra)
    reachable = _reachable(catalog, query, applied)
    if reachable:
        _refuse_vague(catalog, criteria, query, reachable, extra)


def _uncovered(catalog: Catalog, query: dict[str, str], applied: list[str]) -> list[str]:
    """Stated dimensions whose value no applied overlay carries (recipe spec 4.9 A)."""
    carried = [stated_words(catalog.overlays[name]) for name in applied]
    return [
        dimension
        for dimension in query
        if not any(words.get(dimension) == query[dimension] for words in carried)
    ]


def _refuse_uncovered(
    catalog: Catalog,
    criteria: Criteria,
    query: dict[str, str],
    uncovered: list[str],
    excluded: list[dict[str, str]],
    extra: dict[str, Any],
) -> None:
    clauses = []
    details = []
    for dimension in uncovered:
        wanted = query[dimension]
        completions = completion_tuples(catalog, query, dimension)
        ruled_out = any(
            stated_words(catalog.overlays[member]).get(dimension) == wanted
            for entry in excluded
            for member in chain(catalog, entry["name"])
        )
        clauses.append(_clause(criteria, dimension, wanted, completions, ruled_out))
        details.append(
            {
                "dimension": dimension,
                "requestedValue": wanted,
                "validCompletions": completions,
                "constraintExcluded": ruled_out,
            }
        )
    raise AicrError(
        INVALID_REQUEST,
        "; ".join(clauses),
        hint=_neighbours_hint(catalog, query),
        context={"uncovered": details, **extra},
    )


def _clause(
    criteria: Criteria,
    dimension: str,
    wanted: str,
    completions: list[dict[str, str]],
    ruled_out: bool,
) -> str:
    if not completions:
        if ruled_out:
            return (
                f"{dimension} '{wanted}' for {criteria.as_text()} is provided only by overlays "
                f"excluded by failing constraints (see excludedOverlays)"
            )
        return f"no recipe provides {dimension} '{wanted}' for {criteria.as_text()}"
    keys = {tuple(completion) for completion in completions}
    if len(keys) == 1 and len(completions[0]) == 1:
        other = next(iter(completions[0]))
        valid = ", ".join(sorted({completion[other] for completion in completions}))
        return f"{dimension} '{wanted}' for {criteria.as_text()} requires {other} (valid: {valid})"
    shown = ", ".join(f"({_tuple_text(completion)})" for completion in completions)
    return f"{dimension} '{wanted}' requires additional criteria; supported combinations: {shown}"


def completion_tuples(
    catalog: Catalog, query: dict[str, str], dimension: str
) -> list[dict[str, str]]:
    """The smallest sets of further words with which some overlay would carry a stated word.

    Duplicates, empty sets and strict supersets are dropped; sorted by size, then by text.
    """
    wanted = query[dimension]
    found: dict[tuple[tuple[str, str], ...], None] = {}
    for overlay in catalog.overlays.values():
        if overlay["spec"].get("criteria") is None:
            continue
        words = stated_words(overlay)
        if words.get(dimension) != wanted:
            continue
        if any(query[d] != words[d] for d in words if d in query):
            continue
        further = tuple((d, v) for d, v in words.items() if d not in query)
        if further:
            found[further] = None
    minimal = [entry for entry in found if not any(set(other) < set(entry) for other in found)]
    minimal.sort(key=lambda entry: (len(entry), _tuple_text(dict(entry))))
    return [dict(entry) for entry in minimal]


def _tuple_text(words: dict[str, str]) -> str:
    return ", ".join(f"{field}={words[field]}" for field in FIELDS if field in words)


def _reachable(catalog: Catalog, query: dict[str, str], applied: list[str]) -> dict[str, list[str]]:
    """Strict dimensions left out that would select more, with their values (recipe spec 4.9 B).

    Nothing is demanded where one applied overlay carries all that was stated.
    """
    carried = [stated_words(catalog.overlays[name]) for name in applied]
    if any(all(words.get(d) == v for d, v in query.items()) for words in carried):
        return {}
    reachable = {}
    for dimension in STRICT_DIMENSIONS:
        if dimension in query:
            continue
        declared = sorted(
            {
                words[dimension]
                for words in map(stated_words, catalog.overlays.values())
                if dimension in words
            }
        )
        valid = [
            value
            for value in declared
            if _reaches_more(catalog, {**query, dimension: value}, applied)
        ]
        if valid:
            reachable[dimension] = valid
    return reachable


def _refuse_vague(
    catalog: Catalog,
    criteria: Criteria,
    query: dict[str, str],
    reachable: dict[str, list[str]],
    extra: dict[str, Any],
) -> None:
    asked = " and ".join(
        f"{dimension} (valid: {', '.join(values)})" for dimension, values in reachable.items()
    )
    completed = [
        {**query, dimension: value} for dimension, values in reachable.items() for value in values
    ]
    raise AicrError(
        INVALID_REQUEST,
        f"{criteria.as_text()} has no recipe covering that combination; specify {asked}",
        hint=_neighbours_hint(catalog, query, completed),
        context={
            "strictDimensions": [
                {"dimension": dimension, "validValues": values}
                for dimension, values in reachable.items()
            ],
            **extra,
        },
    )


def _reaches_more(catalog: Catalog, query: dict[str, str], applied: list[str]) -> bool:
    """Whether a query selects an overlay that was not applied."""
    try:
        return any(
            member not in applied
            for leaf in maximal_leaves(catalog, query)
            for member in chain(catalog, leaf)
        )
    except AicrError:
        # The probe hit an overlay whose own chain is broken. The person did not ask for it, so its
        # error waits until they do; that there is more to reach is certain all the same.
        return True


def neighbours(
    catalog: Catalog, query: dict[str, str], completed: Iterable[dict[str, str]] = ()
) -> list[dict[str, str]]:
    """Combinations near the query that do resolve, nearest first; at most three.

    Those of *completed* come first: the query with a word that it lacked. Then come the words of
    overlays, and the query with one word less: those that keep the service, because nobody changes
    their cloud for a recipe, then the fewest changes of what was asked for, then the fewest
    additions (field cases E3, E4).
    """
    ranked: dict[str, tuple[tuple[int, ...], dict[str, str]]] = {}
    for words in completed:
        ranked[_tuple_text(words)] = ((0, 0, 0, 0, 0), words)
    offered = [
        stated_words(overlay)
        for overlay in catalog.overlays.values()
        if overlay["spec"].get("criteria") is not None
    ]
    offered += [{d: v for d, v in query.items() if d != dropped} for dropped in query]
    for words in offered:
        if any(words.get(d) == v for d, v in query.items()):
            ranked.setdefault(_tuple_text(words), ((1, *_distance(query, words)), words))
    found: list[dict[str, str]] = []
    for _, (_, words) in sorted(ranked.items(), key=lambda entry: (entry[1][0], entry[0])):
        if _resolves(catalog, words):
            found.append(words)
            if len(found) == _SHOWN_NEIGHBOURS:
                break
    return found


def _distance(query: dict[str, str], words: dict[str, str]) -> tuple[int, int, int, int]:
    """How far *words* are from the query: a changed service, changed words, added, dropped ones."""
    changed = [d for d, v in query.items() if words.get(d) != v]
    return (
        int("service" in changed),
        len(changed),
        sum(d not in query for d in words),
        sum(d not in words for d in changed),
    )


def _resolves(catalog: Catalog, query: dict[str, str]) -> bool:
    """Whether these words select overlays that cover them."""
    try:
        applied = [
            member for leaf in maximal_leaves(catalog, query) for member in chain(catalog, leaf)
        ]
    except AicrError:
        # A broken chain is reported to whoever asks for it; here it only may not be recommended.
        return False
    return not _uncovered(catalog, query, applied) and not _reachable(catalog, query, applied)


def _neighbours_hint(
    catalog: Catalog, query: dict[str, str], completed: Iterable[dict[str, str]] = ()
) -> str:
    near = neighbours(catalog, query, completed)
    if not near:
        words = [stated_words(overlay) for overlay in catalog.overlays.values()]
        there = {field: sorted({each[field] for each in words if field in each}) for field in query}
        known = [f"{field} {', '.join(values)}" for field, values in there.items() if values]
        return f"recipes exist for {'; '.join(known)}" if known else ""
    shown = " | ".join(
        " ".join(f"--{field} {words[field]}" for field in FIELDS if field in words)
        for words in near
    )
    return f"nearest that resolve: {shown}"
