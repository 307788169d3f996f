"""Rules about single overlays and mixins: parents, criteria, and whether they are ever used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aicr.catalog.criteria_values import ANY, FIELDS, VALUES
from aicr.errors import nearest
from aicr.lint.findings import ERROR, WARNING, Problem, rule
from aicr.recipe.criteria import normalise
from aicr.recipe.match import stated_words

if TYPE_CHECKING:
    from aicr.lint.ground import Ground
    from aicr.lint.reading import Source


def words(source: Source) -> dict[str, str]:
    """The words that an overlay states, normalised."""
    return stated_words(source.document)


def selectable(source: Source) -> bool:
    """Whether a query can select the overlay: it has criteria."""
    return source.spec.get("criteria") is not None


def _overlays(ground: Ground) -> Iterator[Source]:
    """All overlays but the base."""
    return (source for name, source in sorted(ground.overlays.items()) if name != "base")


@rule(
    "parent-missing",
    ERROR,
    "An overlay whose parent does not exist fails every query that selects it.",
)
def parent_missing(ground: Ground) -> Iterator[Problem]:
    """``spec.base`` of an overlay that is not there (recipe spec 4.2), selected or not."""
    for source in _overlays(ground):
        parent = source.spec.get("base") or ""
        if parent and parent != "base" and parent not in ground.overlays:
            near = nearest(parent, sorted(ground.overlays))
            yield Problem(
                source.where("spec", "base"),
                f'recipe "{parent}" not found (referenced in inheritance chain)',
                f'did you mean "{near}"?' if near else "correct spec.base",
            )


@rule("parent-circle", ERROR, "Overlays that inherit from each other in a circle have no order.")
def parent_circle(ground: Ground) -> Iterator[Problem]:
    """Circles of ``spec.base`` (recipe spec 4.2)."""
    for source in _overlays(ground):
        trail = [source.name]
        current = source.spec.get("base") or ""
        while current in ground.overlays and current not in trail and current != "base":
            trail.append(current)
            current = ground.overlays[current].spec.get("base") or ""
        if current == source.name:
            yield Problem(
                source.where("spec", "base"),
                f'circular inheritance detected: recipe "{current}" references itself in '
                f"inheritance chain",
                "the chain is " + " -> ".join([*trail, current]),
            )


@rule(
    "overlay-dead",
    WARNING,
    "An overlay without criteria that no selectable overlay inherits from is in no recipe.",
)
def overlay_dead(ground: Ground) -> Iterator[Problem]:
    """Overlays that can never be applied."""
    alive = set()
    for name, source in ground.overlays.items():
        if selectable(source):
            alive |= {member.name for member in ground.chain(name) or [source]}
    for source in _overlays(ground):
        if source.name not in alive:
            yield Problem(
                source.where("metadata", "name"),
                f'overlay "{source.name}" has no criteria, and no overlay with criteria inherits '
                f"from it",
                "add spec.criteria, name it as spec.base of another overlay, or remove it",
            )


@rule("mixin-unused", WARNING, "A mixin that no overlay names is in no recipe.")
def mixin_unused(ground: Ground) -> Iterator[Problem]:
    """Mixins that nothing refers to."""
    used = {name for source in ground.overlays.values() for name in source.spec.get("mixins") or ()}
    for name, source in sorted(ground.mixins.items()):
        if name not in used:
            hint = "name it in spec.mixins of an overlay, or remove it"
            yield Problem(
                source.where("metadata", "name"), f'mixin "{name}" is in no overlay', hint
            )


@rule("mixin-unknown", ERROR, "An overlay that names a mixin that is not there cannot be resolved.")
def mixin_unknown(ground: Ground) -> Iterator[Problem]:
    """Names in ``spec.mixins`` without a mixin (recipe spec 4.7)."""
    for name, source in sorted(ground.overlays.items()):
        for index, mixin in enumerate(source.spec.get("mixins") or ()):
            if mixin not in ground.mixins:
                near = nearest(mixin, sorted(ground.mixins))
                yield Problem(
                    ground.overlays[name].where("spec", "mixins", index),
                    f'mixin "{mixin}" not found in recipes/mixins/',
                    f'did you mean "{near}"?'
                    if near
                    else f"known: {', '.join(sorted(ground.mixins)) or 'none'}",
                )


@rule(
    "criteria-typo",
    WARNING,
    "Any word in criteria becomes an allowed value, so a misspelt one makes an overlay unreachable.",
)
def criteria_typo(ground: Ground) -> Iterator[Problem]:
    """Words that the product does not know and that are close to one it knows."""
    for source in _overlays(ground):
        for field, word in words(source).items():
            near = nearest(word, list(VALUES[field]))
            if word not in VALUES[field] and near:
                yield Problem(
                    source.where("spec", "criteria", field),
                    f'{field} "{word}" is a new word, close to the known "{near}"',
                    f'write "{near}" if that is meant; otherwise only queries that say "{word}" '
                    f"select this overlay",
                )


@rule(
    "criteria-empty",
    WARNING,
    "Criteria that state nothing match every query, which an overlay should say out loud.",
)
def criteria_empty(ground: Ground) -> Iterator[Problem]:
    """Criteria without a word, not even ``any``."""
    for source in _overlays(ground):
        criteria = source.spec.get("criteria")
        if criteria is not None and not any(criteria.get(field) for field in FIELDS):
            yield Problem(
                source.where("spec", "criteria"),
                f'overlay "{source.name}" states no criterion, so it joins every recipe',
                "write for example intent: any if that is meant; remove criteria if the overlay is "
                "only a parent",
            )


@rule(
    "criteria-not-restated",
    WARNING,
    "Criteria are not inherited: a child that leaves out its parent's words is selected without them.",
)
def criteria_not_restated(ground: Ground) -> Iterator[Problem]:
    """Children that state less than, or otherwise than, an ancestor (recipe spec 4.2)."""
    for source in _overlays(ground):
        chain = ground.chain(source.name)
        if chain is None or not selectable(source):
            continue
        own = words(source)
        for ancestor in reversed(chain[:-1]):
            missing = {f: w for f, w in words(ancestor).items() if own.get(f) != w}
            if missing:
                said = ", ".join(
                    f"{field}: {word}" + (f" (but {own[field]})" if field in own else "")
                    for field, word in missing.items()
                )
                yield Problem(
                    source.where("spec", "criteria"),
                    f'overlay "{source.name}" inherits from "{ancestor.name}" but does not state '
                    f"its {said}",
                    "add it to the criteria, or inherit from an overlay that does not ask for it",
                )
                break


@rule(
    "criteria-twins",
    WARNING,
    "Two overlays with equal criteria are always merged together, in the order of their names.",
)
def criteria_twins(ground: Ground) -> Iterator[Problem]:
    """Equal criteria, neither inheriting from the other."""
    first: dict[tuple[tuple[str, str], ...], list[Source]] = {}
    for source in _overlays(ground):
        if not selectable(source):
            continue
        same = first.setdefault(tuple(words(source).items()), [])
        lineage = {member.name for member in ground.chain(source.name) or ()}
        for earlier in same:
            other = {member.name for member in ground.chain(earlier.name) or ()}
            if earlier.name not in lineage and source.name not in other:
                yield Problem(
                    source.where("spec", "criteria"),
                    f'overlay "{source.name}" has the same criteria as "{earlier.name}"; it is '
                    f"merged after it and wins where both set something",
                    "join them, or let one inherit from the other",
                )
                break
        same.append(source)


@rule(
    "criteria-spelling",
    WARNING,
    "A word that is an alias of another selects by that other, which the file does not show.",
)
def criteria_spelling(ground: Ground) -> Iterator[Problem]:
    """Aliases in criteria (recipe spec 1.3)."""
    for source in _overlays(ground):
        spec = source.raw.get("spec")
        written = spec.get("criteria") if isinstance(spec, dict) else None
        criteria: dict[str, object] = written if isinstance(written, dict) else {}
        for field in FIELDS:
            word = criteria.get(field)
            read = normalise(field, word) if isinstance(word, str) else ""
            if read and read != ANY and read != str(word).strip().lower():
                yield Problem(
                    source.where("spec", "criteria", field),
                    f'{field} "{word}" is read as "{read}"',
                    f"write {read}",
                )
