"""Assertions on trees and operations: nodes, keys, comparisons, look-ups; by hand and by chance.

Chance takes a part of the sample, writes a tree that matches it, and breaks half of the trees in one
place: another value, a missing key, a list that is too long, another type.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from tests.chainsaw.chainsaw_case import Case, on_spec
from tests.chainsaw.chainsaw_sample import API_VERSION, KIND, NAME, SPEC

#: Least number of cases of each construct that chance makes.
EACH: Final = 8

#: Construct → trees about the sample's spec.
BY_HAND: Final[dict[str, list[Any]]] = yaml.safe_load(
    Path(__file__).with_name("trees.yaml").read_text(encoding="utf-8")
)


def cases(seed: int) -> Iterator[Case]:
    """All cases of trees and operations; the same for the same *seed*."""
    for construct, trees in BY_HAND.items():
        for tree in trees:
            yield on_spec(construct, tree)
    rng = random.Random(f"{seed}/trees")
    for construct in ("node map", "node list", "node scalar", "several keys"):
        for _ in range(EACH):
            yield on_spec(construct, _chosen(construct, rng), by_hand=False)
    yield from _operations()


def _chosen(construct: str, rng: random.Random) -> dict[str, Any]:
    """A tree on some of the spec's fields, broken in one place half of the time."""
    plain = {key: value for key, value in SPEC.items() if not key.startswith("(")}
    wanted = {"node map": dict, "node list": list}.get(construct)
    names = [
        name
        for name, value in plain.items()
        if (isinstance(value, wanted) if wanted else not isinstance(value, (dict, list)))
        or construct == "several keys"
    ]
    picked = rng.sample(names, 3 if construct == "several keys" else 1)
    tree = copy.deepcopy({name: plain[name] for name in picked})
    if rng.random() < 0.5:
        name = rng.choice(picked)
        tree[name] = _broken(tree[name], rng)
    return tree


def _broken(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.7:
        key = rng.choice(sorted(value))
        return {**value, key: _broken(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.5:
        place = rng.randrange(len(value))
        return [*value[:place], _broken(value[place], rng), *value[place + 1 :]]
    if isinstance(value, list):
        return [*value, 1]
    if isinstance(value, dict):
        return {**value, "absent": 1}
    if isinstance(value, str):
        return rng.choice((f"{value}!", 1, None))
    return rng.choice((7, "x", not value))


def _operations() -> Iterator[Case]:
    """Named and unnamed look-ups, with labels and without; asserts and errors."""
    named: dict[str, Any] = {"name": NAME}
    other = {"name": "other"}
    for kind in ("assert", "error"):
        for construct, metadata, rest in (
            ("named", named, {}),
            ("named", named, {"spec": {"int": 3}}),
            ("named", named, {"spec": {"int": 4}}),
            ("named", named, {"spec": {"int": "3"}}),
            ("named", named, {"spec": {"(int >": True}}),
            ("named", named, {"metadata": {"labels": {"app": "web"}}}),
            ("named", named, {"metadata": {"labels": {"app": "db"}}}),
            ("named", {"name": "nobody"}, {}),
            ("named", {"name": "nobody"}, {"spec": {"int": 3}}),
            ("named", other, {"spec": {"text": "other"}}),
            ("named", other, {"spec": {"missing": 1}}),
            ("named", {"name": "leaving"}, {}),
            ("named", {"name": "leaving"}, {"spec": {"int": 0}}),
            ("named", {"name": "leaving"}, {"spec": {"int": 7}}),
            ("unnamed", {}, {}),
            ("unnamed", {}, {"spec": {"text": "other"}}),
            ("unnamed", {}, {"spec": {"text": "nobody"}}),
            ("unnamed", {}, {"spec": {"(text != 'nobody')": True}}),
            ("unnamed", {}, {"spec": {"text": 1}}),
            ("unnamed", {}, {"spec": {"missing": 1}}),
            ("unnamed", {}, {"spec": {"(text": 1}}),
            ("unnamed", {}, {"spec": {"(int > `2`)": True}}),
            ("unnamed", {}, {"spec": {"(int < `0`)": True}}),
            ("unnamed", {}, {"metadata": {"(name)": "other"}}),
            ("labelled", {"labels": {"app": "web"}}, {}),
            ("labelled", {"labels": {"app": "db"}}, {}),
            ("labelled", {"labels": {"app": "web"}}, {"spec": {"int": 3}}),
            ("labelled", {"labels": {"app": "web"}}, {"spec": {"text": "other"}}),
            ("labelled", {"labels": {"app": "db"}}, {"spec": {"int": 3}}),
            ("labelled", {"labels": {"app": "web", "tier": "front"}}, {}),
            ("labelled", {"labels": {"app": "web", "tier": "back"}}, {}),
            ("labelled", {"labels": {"color": "red"}}, {"spec": {"text": "other"}}),
            ("labelled", {"labels": {"color": "red"}}, {"spec": {"int": "1"}}),
            ("labelled", {"labels": {"color": "blue"}}, {"spec": {"int": "1"}}),
        ):
            inner = rest.get("metadata", {})
            resource = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {**metadata, **inner}}
            resource |= {key: value for key, value in rest.items() if key != "metadata"}
            yield Case(f"{construct} {kind}", resource, kind)
        for api, what in (
            (API_VERSION, "Nothing"),
            ("nowhere.aicr.run/v1", "Gadget"),
            ("v1", "ConfigMap"),
        ):
            yield Case(
                f"named {kind}", {"apiVersion": api, "kind": what, "metadata": {"name": "x"}}, kind
            )
