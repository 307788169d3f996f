"""One assertion that both engines judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.chainsaw.chainsaw_sample import API_VERSION, KIND, NAME


@dataclass(frozen=True)
class Case:
    """An operation of a Test.

    Attributes:
        construct: what of the language it is about; a difference is excused by this name only.
        resource: what is asserted.
        kind: ``assert`` or ``error``.
        by_hand: whether a person wrote it, and not the generator.
    """

    construct: str
    resource: dict[str, Any]
    kind: str = "assert"
    by_hand: bool = True


def on_spec(construct: str, tree: Any, *, kind: str = "assert", by_hand: bool = True) -> Case:
    """A case whose tree is about the sample's spec."""
    metadata = {"name": NAME}
    resource = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": tree}
    return Case(construct, resource, kind, by_hand)
