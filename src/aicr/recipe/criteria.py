"""Criteria: what a person says they have, normalised, and whether it is something we know.

A criterion that is empty or ``any`` is not stated. Matching is asymmetric and lives in ``match``; this
module only knows words (recipe spec 1.1 to 1.6).
"""

from __future__ import annotations

from aicr.catalog.criteria_values import ALIASES, FIELDS, VALUES
from aicr.contract.documents import type_name
from aicr.errors import INVALID_REQUEST, AicrError, invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog

ANY: Final = "any"

#: Values that are recognised but whose recipes are still a preview.
_LABELS: Final = {"os": "OS"}


class Criteria:
    """The query of a resolution: five words and a node count.

    >>> Criteria(service=" EKS ", accelerator="h100").as_text()
    'criteria(service=eks, accelerator=h100)'

    Words are trimmed, lower-cased and de-aliased here; whether a catalogue knows them is checked by
    ``check`` when they are resolved.
    """

    __slots__ = ("accelerator", "intent", "nodes", "os", "platform", "service")

    def __init__(
        self,
        *,
        service: str = "",
        accelerator: str = "",
        intent: str = "",
        os: str = "",
        platform: str = "",
        nodes: int = 0,
    ) -> None:
        self.service = normalise("service", service)
        self.accelerator = normalise("accelerator", accelerator)
        self.intent = normalise("intent", intent)
        self.os = normalise("os", os)
        self.platform = normalise("platform", platform)
        if type(nodes) is not int or nodes < 0:
            raise invalid(
                f"invalid nodes count: {nodes} (must be >= 0)",
                hint="nodes is a whole number from 0",
            )
        self.nodes = nodes

    def get(self, field: str) -> str:
        """The value of one of the five words; ``any`` when it is not stated."""
        value: str = getattr(self, field)
        return value

    def stated(self) -> dict[str, str]:
        """The stated words, in field order."""
        return {field: self.get(field) for field in FIELDS if self.get(field) != ANY}

    def specificity(self) -> int:
        """Number of stated fields among the six."""
        return len(self.stated()) + (self.nodes > 0)

    def replaced(self, **changes: Any) -> Criteria:
        """A copy with some fields changed."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in (*FIELDS, "nodes")}
        fields.update(changes)
        return Criteria(**fields)

    def as_text(self) -> str:
        """``criteria(service=eks, accelerator=h100)``; ``criteria(any)`` when nothing is stated."""
        parts = [f"{field}={value}" for field, value in self.stated().items()]
        if self.nodes > 0:
            parts.append(f"nodes={self.nodes}")
        return f"criteria({', '.join(parts) or ANY})"

    def document(self) -> dict[str, Any]:
        """The ``criteria`` block of a recipe: all five words, nodes only when stated."""
        block: dict[str, Any] = {field: self.get(field) for field in FIELDS}
        if self.nodes > 0:
            block["nodes"] = self.nodes
        return block

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Criteria) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__slots__))

    def __repr__(self) -> str:
        return self.as_text()


#: What people call a thing, and the word of ours that they mean; for hints only, never taken as it. The
#: nearest word by spelling would send a user of AWS to aks.
_MEANT: Final[dict[str, dict[str, str]]] = {
    "service": {
        "amazon": "eks",
        "aws": "eks",
        "azure": "aks",
        "gcp": "gke",
        "google": "gke",
        "linode": "lke",
        "oci": "oke",
        "oracle": "oke",
    },
    "os": {"amazon": "amazonlinux", "oracle": "ol", "oraclelinux": "ol", "redhat": "rhel"},
    "intent": {"serving": "inference", "train": "training"},
}


def normalise(field: str, raw: str) -> str:
    """Trim, lower-case and de-alias one word; empty becomes ``any`` (recipe spec 1.3).

    Raises:
        AicrError: INVALID_REQUEST for something that is no text.
    """
    if not isinstance(raw, str):
        raise invalid(f"{field} must be text, found {type_name(raw)}")
    word = raw.strip().lower()
    if not word or word == ANY:
        return ANY
    return ALIASES.get(field, {}).get(word, word)


def known_values(field: str, catalog: Catalog, *, strict: bool = False) -> list[str]:
    """Values of a field that this catalogue accepts, sorted.

    Strict leaves out what only ``--data`` overlays brought (recipe spec 1.4).
    """
    taught = catalog.taught.get(field, {})
    return sorted(
        {*VALUES[field], *(v for v, origin in taught.items() if not strict or origin == "embedded")}
    )


def check_value(
    field: str, raw: str, catalog: Catalog, *, strict: bool = False, where: str = ""
) -> None:
    """Refuse a word that neither the product nor the catalogue knows.

    Raises:
        AicrError: INVALID_REQUEST ``invalid <field> type: <raw>`` with the nearest and all values.
    """
    word = normalise(field, raw)
    if word == ANY:
        return
    known = known_values(field, catalog, strict=strict)
    if word in known:
        return
    near = _MEANT.get(field, {}).get(word) or nearest(word, [*known, *ALIASES.get(field, {})])
    suggestion = f'did you mean "{near}"? ' if near else ""
    raise invalid(
        f"invalid {field} type: {raw.strip()}",
        where=where,
        hint=f"{suggestion}allowed: {', '.join(known)}",
        context={"field": field, "value": raw, "allowed": known},
    )


def check(criteria: Criteria, catalog: Catalog, *, strict: bool = False, where: str = "") -> None:
    """Check all five words of *criteria* against *catalog*.

    Raises:
        AicrError: INVALID_REQUEST ``failed to parse <field> type`` caused by the word at fault.
    """
    if not isinstance(criteria, Criteria):
        # A map has a get of its own, and would be refused for a word that nobody wrote.
        raise invalid(
            f"criteria must be aicr.Criteria, found {type(criteria).__name__}",
            hint='for example aicr.Criteria(service="eks", intent="training")',
        )
    for field in FIELDS:
        try:
            check_value(field, criteria.get(field), catalog, strict=strict)
        except AicrError as error:
            raise AicrError(
                INVALID_REQUEST,
                f"failed to parse {_LABELS.get(field, field)} type",
                where=where,
            ) from error


def check_not_empty(criteria: Criteria, message: str) -> None:
    """Refuse criteria that state nothing (recipe spec 1.5).

    Raises:
        AicrError: INVALID_REQUEST ``no criteria provided: …``.
    """
    if criteria.specificity() == 0:
        raise invalid(
            f"no criteria provided: specify at least one of {message}",
            hint="for example: --service eks --accelerator h100 --intent training --os ubuntu",
        )
