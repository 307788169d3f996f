"""The loader's decoder, made to go on after a problem.

Every method of :class:`aicr.catalog.decoder.Decoder` that would raise notes the problem instead and
answers with an empty value of the right type, so one pass over a document finds all of its problems.
What is decoded is remembered with its path, because rules have to say where a thing stands.

It must not know which files there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aicr.catalog.decoder import Decoder
from aicr.catalog.fields import CONSTRAINT_KEYS, PHASES
from aicr.errors import AicrError, invalid, nearest
from aicr.lint.findings import Problem

if TYPE_CHECKING:
    from aicr.catalog.types import ComponentRef, Constraint, Phase
    from aicr.yamlio.positions import Positions

    Path = tuple[str | int, ...]

#: Rules that decoding feeds.
SHAPE = "document-shape"
UNQUOTED = "unquoted-text"
UNKNOWN_STRICT = "unknown-field-strict"
PROFILE = "profile-invalid"


class CollectingDecoder(Decoder):
    """Reads one document to its end.

    Attributes:
        noted: (rule, problem) pairs in the order in which they were met.
        constraints_at: every constraint that could be read as it stands, with its path.
        refs_at: every component ref with its path.
    """

    def __init__(
        self, value: Any, positions: Positions, *, strict: bool, require_quotes: bool = True
    ) -> None:
        super().__init__(value, positions, strict=strict, require_quotes=require_quotes)
        self.noted: list[tuple[str, Problem]] = []
        self.constraints_at: list[tuple[Path, Constraint]] = []
        self.refs_at: list[tuple[Path, ComponentRef]] = []

    def note(self, rule: str, error: AicrError) -> None:
        """Remember the innermost reason of an error, with the best place its chain gives."""
        self.noted.append((rule, problem_of(error, self.where(()))))

    def as_map(self, value: Any, path: Path, field: str) -> dict[str, Any]:
        """A map; what is none is noted, and empty."""
        try:
            return super().as_map(value, path, field)
        except AicrError as error:
            self.note(SHAPE, error)
            return {}

    def as_list(self, value: Any, path: Path, field: str) -> list[Any]:
        """A list; what is none is noted, and empty."""
        try:
            return super().as_list(value, path, field)
        except AicrError as error:
            self.note(SHAPE, error)
            return []

    def as_text(self, value: Any, path: Path, field: str) -> str:
        """A text; what is none is noted, and stands for itself as it was written."""
        try:
            return super().as_text(value, path, field)
        except AicrError as error:
            written = self.positions.plain(path)
            self.note(UNQUOTED if written else SHAPE, error)
            return written or "?"

    def as_bool(self, value: Any, path: Path, field: str) -> bool:
        """A boolean; what is none is noted, and false."""
        try:
            return super().as_bool(value, path, field)
        except AicrError as error:
            self.note(SHAPE, error)
            return False

    def as_count(self, value: Any, path: Path, field: str) -> int:
        """A whole number; what is none is noted, and nought."""
        try:
            return super().as_count(value, path, field)
        except AicrError as error:
            self.note(SHAPE, error)
            return 0

    def known_keys(self, value: dict[str, Any], known: tuple[str, ...], path: Path) -> None:
        """Note every unknown key of a document that is read strictly."""
        if not self.strict:
            return
        for key in value:
            if key not in known:
                near = nearest(key, list(known))
                hint = f'did you mean "{near}"?' if near else f"known: {', '.join(known)}"
                where = self.positions.key((*path, key))
                self.noted.append((UNKNOWN_STRICT, Problem(where, f'unknown field "{key}"', hint)))

    def constraints(self, value: Any, path: Path, field: str) -> list[Constraint]:
        """All constraints that have a name."""
        found: list[Constraint] = []
        for index, item in enumerate(self.as_list(value, path, field)):
            place = (*path, index)
            before = len(self.noted)
            entry = self.as_map(item, place, f"{field}[{index}]")
            if len(self.noted) > before:
                continue
            self.known_keys(entry, CONSTRAINT_KEYS, place)
            before = len(self.noted)
            constraint: Any = {
                key: self.as_text(entry.get(key), (*place, key), f"{field}[{index}].{key}")
                for key in CONSTRAINT_KEYS
                if entry.get(key) is not None or key in ("name", "value")
            }
            if not constraint["name"]:
                self.note(SHAPE, self._nameless(field, index, place))
                continue
            found.append(constraint)
            if len(self.noted) == before:
                self.constraints_at.append((place, constraint))
        return found

    def refs(self, value: Any, path: Path, *, kind: str) -> list[ComponentRef]:
        """All component refs that have a name, each name once."""
        found: list[ComponentRef] = []
        seen: dict[str, int] = {}
        for index, item in enumerate(self.as_list(value, path, "componentRefs")):
            place = (*path, index)
            before = len(self.noted)
            entry = self.as_map(item, place, f"componentRefs[{index}]")
            if len(self.noted) > before:
                continue
            ref = self.ref(entry, place)
            name = ref.get("name", "")
            if not name:
                self.note(SHAPE, self._nameless("componentRefs", index, place))
            elif name in seen:
                message = f'component "{name}" is listed twice (entries {seen[name]} and {index})'
                if self.strict and kind:
                    message = (
                        f'mixin "{kind}" declares component "{name}" more than once in its own '
                        f"componentRefs list"
                    )
                self.note(SHAPE, invalid(message, where=self.where(place), hint="keep one entry"))
            else:
                seen[name] = index
                found.append(ref)
                self.refs_at.append((place, ref))
        return found

    def _nameless(self, field: str, index: int, place: Path) -> AicrError:
        return invalid(f"{field}[{index}]: name is required", where=self.where(place))

    def check_local(self, files: Any, place: Path) -> None:
        """Note file paths that could leave the tree, each on its own."""
        for index, file in enumerate(files):
            try:
                super().check_local([file], place)
            except AicrError as error:
                where = self.where((*place, index))
                self.noted.append((SHAPE, Problem(where, error.message, error.hint)))

    def check_local_file(self, file: str | None, place: Path) -> None:
        """Nothing: the rule missing-file tells of a single file that leaves the tree."""

    def phase(self, value: Any, path: Path) -> Phase:
        """A phase; a timeout that is none is noted and left out."""
        try:
            return super().phase(value, path)
        except AicrError as error:
            self.note(SHAPE, error)
            kept = {key: item for key, item in value.items() if key != "timeout"}
            return super().phase(kept, path)

    def criteria(self, value: Any, path: Path) -> dict[str, Any]:
        """Criteria; a node count that is none is noted and left out."""
        try:
            return super().criteria(value, path)
        except AicrError as error:
            self.note(SHAPE, error)
            kept = {key: item for key, item in value.items() if key != "nodes"}
            return super().criteria(kept, path)


def without_unknown_phases(decoder: CollectingDecoder) -> None:
    """Note phases that do not exist and take them out of what is decoded next."""
    spec = decoder.value.get("spec")
    phases = spec.get("validation") if isinstance(spec, dict) else None
    if not isinstance(phases, dict):
        return
    for phase in phases:
        if phase not in PHASES:
            near = nearest(phase, list(PHASES))
            hint = f'did you mean "{near}"?' if near else f"phases: {', '.join(PHASES)}"
            where = decoder.positions.key(("spec", "validation", phase))
            decoder.noted.append(
                (SHAPE, Problem(where, f'unknown validation phase "{phase}"', hint))
            )
    known = {phase: block for phase, block in phases.items() if phase in PHASES}
    decoder.value = {**decoder.value, "spec": {**spec, "validation": known}}


def without_odd_shapes(entry: Any) -> Any:
    """A registry entry without the blocks that are no such blocks.

    The decoder looks into scheduling and validations but hands them on as they are, because it raises
    otherwise. Here it did not raise, and what reads the entry later expects the right types.
    """
    kept = dict(entry)
    if "nodeScheduling" in kept:
        scheduling = _as_map(kept["nodeScheduling"])
        kept["nodeScheduling"] = {
            **{tier: _paths(scheduling.get(tier)) for tier in ("system", "accelerated")},
            "nodeCountPaths": _texts(scheduling.get("nodeCountPaths")),
        }
    if "podScheduling" in kept:
        workload = _as_map(_as_map(kept["podScheduling"]).get("workload"))
        kept["podScheduling"] = {"workload": _paths(workload)}
    if "validations" in kept:
        blocks = kept["validations"] if isinstance(kept["validations"], list) else []
        kept["validations"] = [block for block in blocks if isinstance(block, dict)]
    return kept


def _as_map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _paths(value: Any) -> dict[str, Any]:
    """A block of path lists and switches."""
    return {
        key: item if isinstance(item, bool) else _texts(item)
        for key, item in _as_map(value).items()
    }


def problem_of(error: AicrError, fallback: str) -> Problem:
    """The innermost reason of an error, at the innermost place its chain names."""
    chain = error.chain()
    places = [link.where for link in chain if link.where]
    hints = [link.hint for link in chain if link.hint]
    return Problem(
        places[-1] if places else fallback, chain[-1].message, hints[-1] if hints else ""
    )
