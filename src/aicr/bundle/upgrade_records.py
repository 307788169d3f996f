"""ComponentUpgrades: what it takes to get from one range of a chart's versions to another.

```
text --read--> Record( component, [ Transition(from, to, verdict, steps …) ] )
```
A record tells people what to do to a running cluster, so it is read strictly: an unknown key, an
unquoted version, a hole between transitions, a proof that is missing or steps that leave a deployer
out are errors with file, line and column.

It must not know bundles or commands. Source: recipe spec 3.9, bundler spec 9.1, decision 43.
"""

from __future__ import annotations

from aicr.bundle import upgrade_ranges
from aicr.errors import AicrError, invalid, nearest
from aicr.values import versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final, NoReturn

    from aicr.bundle.upgrade_ranges import Range
    from aicr.yamlio.positions import Positions

    Path = tuple[str | int, ...]

KIND: Final = "ComponentUpgrades"
SAFE: Final = "safe"
MANUAL: Final = "manual"
BLOCKED: Final = "blocked"
VERDICTS: Final = (SAFE, MANUAL, BLOCKED)

#: Deployers that the steps of a transition must reach (recipe spec 3.9).
COVERED: Final = ("argocd", "argocd-helm", "flux", "helm", "helmfile")
#: Deployers that a group may name.
KNOWN: Final = ("argocd", "argocd-helm", "fleet", "flux", "helm", "helmfile", "terraform")

_TOP: Final = ("kind", "apiVersion", "component", "transitions")
_TEXTS: Final = ("precondition", "reversibleNotes", "verifiedBy")
_TRANSITION: Final = (
    *("from", "to", "verdict", "summary", "precondition", "reversible", "reversibleNotes"),
    *("affectedResources", "stepsByDeployer", "verifiedBy", "references"),
)


class Step:
    """One thing to do."""

    __slots__ = ("description", "id", "reason")

    def __init__(self, id: str, description: str, reason: str) -> None:
        self.id = id
        self.description = description
        self.reason = reason


class Transition:
    """One way from a range of versions to another.

    Attributes:
        from_range, to_range: the ranges.
        verdict: one of ``VERDICTS``.
        summary, precondition, reversible_notes, verified_by: texts, "" when not given.
        reversible: whether the way back is open; None when the record does not say.
        affected: (API group, kinds) of what changes.
        groups: (deployers, steps); no deployers means all that no other group names.
        references: addresses to read.
    """

    __slots__ = (
        "affected",
        "from_range",
        "groups",
        "precondition",
        "references",
        "reversible",
        "reversible_notes",
        "summary",
        "to_range",
        "verdict",
        "verified_by",
    )

    def __init__(
        self,
        *,
        from_range: Range,
        to_range: Range,
        verdict: str,
        summary: str,
        precondition: str,
        reversible: bool | None,
        reversible_notes: str,
        affected: list[tuple[str, list[str]]],
        groups: list[tuple[list[str], list[Step]]],
        verified_by: str,
        references: list[str],
    ) -> None:
        self.from_range = from_range
        self.to_range = to_range
        self.verdict = verdict
        self.summary = summary
        self.precondition = precondition
        self.reversible = reversible
        self.reversible_notes = reversible_notes
        self.affected = affected
        self.groups = groups
        self.verified_by = verified_by
        self.references = references

    def steps(self, deployer: str) -> list[Step]:
        """The steps for a deployer; [] when the record has none for it."""
        remainder: list[Step] = []
        for deployers, steps in self.groups:
            if deployer in deployers:
                return steps
            if not deployers:
                remainder = steps
        return remainder


class Record:
    """The transitions of one component, in the order of the file."""

    __slots__ = ("component", "transitions")

    def __init__(self, component: str, transitions: list[Transition]) -> None:
        self.component = component
        self.transitions = transitions


def read(text: str, *, source: str, component: str = "", pin: str = "") -> Record:
    """The record in *text*.

    Args:
        text: the YAML document.
        source: what messages call it.
        component: the component it must be of; "" takes what it says.
        pin: the catalogue's version of the component; "" leaves out the rule that needs it.

    Raises:
        AicrError: INVALID_REQUEST with ``source:line:column`` for everything that the rules of recipe
            spec 3.9 refuse.
    """
    from aicr.contract.documents import check_header
    from aicr.yamlio import read as yaml_read

    document, positions = yaml_read.load_with_positions(text, source=source, mode="v3")
    check_header(document, KIND, source=source)
    reader = _Reader(positions)
    reader.keys(document, (), _TOP, _TOP)
    named = reader.text(document, (), "component")
    if component and named != component:
        reader.refuse(("component",), f'the record is of "{named}", not of "{component}"')
    items = reader.listed(document, (), "transitions")
    if not items:
        reader.refuse(("transitions",), "a record needs a transition")
    transitions = [
        _transition(item, ("transitions", index), reader, pin) for index, item in enumerate(items)
    ]
    for index in range(1, len(transitions)):
        first, second = transitions[index - 1], transitions[index]
        if not first.to_range.reaches(second.from_range):
            reader.refuse(
                ("transitions", index, "from"),
                f'"{second.from_range.text}" leaves a hole after "{first.to_range.text}": no '
                f"transition says how to get on from there",
                "start where the transition before ends",
            )
    return Record(named, transitions)


def _transition(item: Any, place: Path, reader: _Reader, pin: str) -> Transition:
    reader.keys(item, place, _TRANSITION, ("from", "to", "verdict", "summary"))
    from_range, to_range = (reader.range(item, place, key) for key in ("from", "to"))
    if from_range.upper is None:
        reader.refuse((*place, "from"), f'"{from_range.text}" has no upper bound')
    if to_range.upper is None or to_range.lower is None:
        reader.refuse((*place, "to"), f'"{to_range.text}" needs a lower and an upper bound')
    verdict = reader.text(item, place, "verdict")
    if verdict not in VERDICTS:
        near = nearest(verdict, list(VERDICTS))
        reader.refuse(
            (*place, "verdict"),
            f'unknown verdict "{verdict}", expected one of {", ".join(VERDICTS)}',
            f"did you mean {near}?" if near else "",
        )
    texts = {key: reader.text(item, place, key) if key in item else "" for key in _TEXTS}
    reversible = item.get("reversible")
    if "reversible" in item and not isinstance(reversible, bool):
        reader.refuse((*place, "reversible"), "reversible must be true or false")
    groups = _groups(item, place, reader)
    if verdict == SAFE:
        _check_safe(place, reader, texts["verifiedBy"], bool(groups), to_range, pin)
    else:
        _check_covered(place, reader, verdict, groups)
    return Transition(
        from_range=from_range,
        to_range=to_range,
        verdict=verdict,
        summary=reader.text(item, place, "summary"),
        precondition=texts["precondition"],
        reversible=reversible,
        reversible_notes=texts["reversibleNotes"],
        affected=_affected(item, place, reader),
        groups=groups,
        verified_by=texts["verifiedBy"],
        references=reader.texts(item, place, "references"),
    )


def _check_safe(
    place: Path, reader: _Reader, proof: str, has_steps: bool, to_range: Range, pin: str
) -> None:
    if not proof:
        reader.refuse(
            place, "a safe transition needs verifiedBy", "name the test that made the upgrade"
        )
    if has_steps:
        reader.refuse(
            (*place, "stepsByDeployer"), "a safe transition has no steps", "call it manual instead"
        )
    if pin and to_range.upper is not None:
        try:
            pinned = versions.parse(pin)
        except AicrError:
            return
        if upgrade_ranges.order(to_range.upper.version, pinned) > 0:
            reader.refuse(
                (*place, "to"),
                f'"{to_range.text}" calls versions above the pin {pin} safe, which nobody can know yet',
            )


def _check_covered(
    place: Path, reader: _Reader, verdict: str, groups: list[tuple[list[str], list[Step]]]
) -> None:
    named = {deployer for deployers, _ in groups for deployer in deployers}
    remainder = any(not deployers for deployers, _ in groups)
    missing = [deployer for deployer in COVERED if deployer not in named]
    if missing and not remainder:
        reader.refuse(
            (*place, "stepsByDeployer") if groups else place,
            f"a {verdict} transition needs steps for every deployer; missing: {', '.join(missing)}",
            "add a group without deployers for those that no other group names",
        )


def _groups(item: Any, place: Path, reader: _Reader) -> list[tuple[list[str], list[Step]]]:
    groups: list[tuple[list[str], list[Step]]] = []
    taken: set[str] = set()
    where: Path = (*place, "stepsByDeployer")
    for index, group in enumerate(reader.listed(item, place, "stepsByDeployer")):
        here = (*where, index)
        reader.keys(group, here, ("deployers", "steps"), ("steps",))
        deployers = reader.texts(group, here, "deployers")
        if not deployers and any(not others for others, _ in groups):
            reader.refuse(here, "only one group may be without deployers")
        for position, deployer in enumerate(deployers):
            spot = (*here, "deployers", position)
            if deployer not in KNOWN:
                near = nearest(deployer, list(KNOWN))
                reader.refuse(
                    spot,
                    f'unknown deployer "{deployer}", expected one of {", ".join(KNOWN)}',
                    f"did you mean {near}?" if near else "",
                )
            if deployer in taken:
                reader.refuse(spot, f"deployer {deployer} is in two groups")
            taken.add(deployer)
        groups.append((deployers, _steps(group, here, reader)))
    return groups


def _steps(group: Any, place: Path, reader: _Reader) -> list[Step]:
    steps: list[Step] = []
    seen: set[str] = set()
    fields = ("id", "description", "reason")
    for index, item in enumerate(reader.listed(group, place, "steps")):
        here = (*place, "steps", index)
        reader.keys(item, here, fields, fields)
        step = Step(*(reader.text(item, here, field) for field in fields))
        if step.id in seen:
            reader.refuse((*here, "id"), f'two steps have the id "{step.id}"')
        seen.add(step.id)
        steps.append(step)
    if not steps:
        reader.refuse((*place, "steps"), "a group needs a step")
    return steps


def _affected(item: Any, place: Path, reader: _Reader) -> list[tuple[str, list[str]]]:
    found = []
    for index, entry in enumerate(reader.listed(item, place, "affectedResources")):
        here = (*place, "affectedResources", index)
        reader.keys(entry, here, ("group", "kinds"), ("group", "kinds"))
        # The core group is written as an empty text.
        group = reader.text(entry, here, "group", empty=True)
        found.append((group, reader.texts(entry, here, "kinds")))
    return found


class _Reader:
    """Takes fields out of a document, or says where and why that cannot be done."""

    __slots__ = ("_positions",)

    def __init__(self, positions: Positions) -> None:
        self._positions = positions

    def refuse(self, path: Path, message: str, hint: str = "") -> NoReturn:
        raise invalid(message, where=self._positions.where(path), hint=hint)

    def keys(self, value: Any, path: Path, known: Sequence[str], needed: Sequence[str]) -> None:
        if not isinstance(value, dict):
            self.refuse(path, f"{_named(path)} must be a map")
        for key in value:
            if key not in known:
                near = nearest(key, list(known))
                self.refuse(
                    (*path, key),
                    f'unknown field "{key}" in {_named(path)}',
                    f'did you mean "{near}"?' if near else f"known: {', '.join(known)}",
                )
        for key in needed:
            if key not in value:
                self.refuse(path, f"{_named(path)} needs {key}")

    def text(self, holder: Any, path: Path, key: str, *, empty: bool = False) -> str:
        from aicr.yamlio.positions import require_string

        place = (*path, key)
        value = require_string(holder[key], self._positions, place, _named(place))
        if not value.strip() and not empty:
            self.refuse(place, f"{_named(place)} is empty")
        return value

    def texts(self, holder: Any, path: Path, key: str) -> list[str]:
        from aicr.yamlio.positions import require_string

        return [
            require_string(item, self._positions, (*path, key, index), _named((*path, key, index)))
            for index, item in enumerate(self.listed(holder, path, key))
        ]

    def listed(self, holder: Any, path: Path, key: str) -> list[Any]:
        value = holder.get(key, [])
        if not isinstance(value, list):
            self.refuse((*path, key), f"{_named((*path, key))} must be a list")
        return value

    def range(self, holder: Any, path: Path, key: str) -> Range:
        text = self.text(holder, path, key)
        try:
            return upgrade_ranges.parse(text)
        except AicrError as error:
            place = (*path, key)
            raise AicrError(
                error.code,
                f"{_named(place)} cannot be read",
                where=self._positions.where(place),
                hint=error.hint,
            ) from error


def _named(path: Path) -> str:
    made = ""
    for part in path:
        made += f"[{part}]" if isinstance(part, int) else f"{'.' if made else ''}{part}"
    return made or "the record"
