"""Shapes of explanations, for type checkers only (never imported at run time).

They are what ``aicr explain --format json`` prints; docs/explain.md describes them for people.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Origin(TypedDict):
    """A layer that names another: for a values file, who chose it."""

    kind: str
    name: str
    where: str


class Step(TypedDict):
    """What one layer says about one thing; steps are listed lowest layer first."""

    kind: str
    name: str
    where: str
    action: str
    value: NotRequired[Any]
    at: NotRequired[str]
    namedBy: NotRequired[Origin]
    inForce: bool


class Item(TypedDict):
    """One thing with its final value and the layers that had a say in it."""

    selector: str
    state: str
    value: NotRequired[Any]
    steps: list[Step]


class Edge(TypedDict):
    """One dependency, and the layer that declared it first."""

    component: str
    dependsOn: str
    kind: str
    name: str
    where: str


class OrderRow(TypedDict):
    """One component of the deployment order."""

    component: str
    position: int
    tier: int
    waitsFor: list[str]


class Failure(TypedDict):
    """A constraint that the snapshot does not meet."""

    constraint: str
    expected: str
    actual: NotRequired[str]
    reason: str
    where: str


class OverlayRow(TypedDict):
    """Why one overlay is in a recipe, or is not."""

    overlay: str
    state: str
    because: str
    where: str
    failures: NotRequired[list[Failure]]


class Explanation(TypedDict, total=False):
    """One answer of ``aicr explain``; which keys there are depends on ``about``."""

    about: str
    selector: str
    criteria: dict[str, Any]
    items: list[Item]
    notes: list[str]
    component: str
    other: str
    order: list[OrderRow]
    edges: list[Edge]
    overlays: list[OverlayRow]
