"""Comparing two documents by structure, and the paths that say where they differ.

The kit brings a ``compare.py`` of its own beside it; where that file is there it does the comparing and
reads the goldens, so that the judge is not ours. ``own_diff`` is the stand-in for a kit without it, and
a test holds the two equal on every golden.

Paths are dotted: ``*`` is any one key or index, ``**`` any number of keys, ``{a,b}`` either, ``[3]`` an
index, and a key that holds dots is quoted. This module must not know the product or the rules.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """One place at which two documents differ.

    Attributes:
        path: where, in the syntax of this module.
        kind: ``missing`` (only expected), ``extra`` (only actual), ``type`` or ``value``.
        expected: what the golden has there; None when it has nothing.
        actual: what the product has there; None when it has nothing.
    """

    path: str
    kind: str
    expected: Any
    actual: Any

    def __str__(self) -> str:
        sides = {"missing": f"- {_short(self.expected)}", "extra": f"+ {_short(self.actual)}"}
        both = f"{_short(self.expected)} -> {_short(self.actual)}"
        return f"{self.path}: {sides.get(self.kind, both)}"


def _short(value: Any, limit: int = 300) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else text[: limit - 1] + "…"


@functools.cache
def _kits_own(folder: Path) -> Any:
    """The kit's comparison module, or None where the kit comes without it."""
    file = folder / "compare.py"
    if not file.is_file():
        return None
    spec = importlib.util.spec_from_file_location("aicr_kit_compare", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Comparer:
    """Reads goldens and compares with them.

    Args:
        folder: where the kit's ``compare.py`` may lie.
    """

    def __init__(self, folder: Path) -> None:
        self.kits_own = _kits_own(folder)

    def load(self, path: Path) -> Any:
        """The content of a YAML or JSON file; a list when it holds several documents."""
        return self.loads(path.read_text(encoding="utf-8"), is_json=path.suffix == ".json")

    def loads(self, text: str, *, is_json: bool = False) -> Any:
        """The content of YAML or JSON text, scalars as yaml.v3 reads them."""
        if self.kits_own is not None:
            return self.kits_own.loads(text, is_json=is_json)
        if is_json:
            return json.loads(text)
        from aicr.yamlio.read import load_all

        documents = load_all(text, source="golden", mode="v3")
        return documents[0] if len(documents) == 1 else documents or None

    def diff(
        self, expected: Any, actual: Any, *, by: Mapping[str, str], sets: Sequence[str]
    ) -> list[Difference]:
        """Where *actual* departs from *expected*; the options are those of ``own_diff``."""
        if self.kits_own is None:
            return own_diff(expected, actual, by=by, sets=sets)
        found = self.kits_own.diff(expected, actual, by=dict(by), sets=list(sets))
        return [Difference(*entry) for entry in found]


# ------------------------------------------------------------------------------------------ paths
_STEP = re.compile(
    r'\.?"(?P<quoted>(?:[^"\\]|\\.)*)"|\.?\{(?P<any>[^}]*)\}|\[(?P<index>[^\]]*)\]|\.?(?P<key>[^.\["{]+)'
)

Step = str | frozenset[str]


@functools.cache
def steps(path: str) -> tuple[Step, ...]:
    """The steps of a path or pattern; a set of names for ``{a,b}``.

    >>> steps('a."x.y"[3].*')
    ('a', 'x.y', '3', '*')
    """
    found: list[Step] = []
    at = 0
    while path != "(root)" and at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise ValueError(f"cannot read path {path!r} at {path[at:]!r}")
        at = match.end()
        if match["quoted"] is not None:
            found.append(json.loads(f'"{match["quoted"]}"'))
        elif match["any"] is not None:
            found.append(frozenset(match["any"].split(",")))
        else:
            found.append(match["index"] if match["index"] is not None else match["key"])
    return tuple(found)


def matches(pattern: str, path: str) -> bool:
    """Whether *pattern* names exactly the place *path*."""
    return _matches(steps(pattern), steps(path))


def _matches(pattern: tuple[Step, ...], trail: tuple[Step, ...]) -> bool:
    if not pattern:
        return not trail
    if pattern[0] == "**":
        return any(_matches(pattern[1:], trail[n:]) for n in range(len(trail) + 1))
    if not trail:
        return False
    wanted = pattern[0]
    hit = trail[0] in wanted if isinstance(wanted, frozenset) else wanted in ("*", trail[0])
    return hit and _matches(pattern[1:], trail[1:])


def join(trail: Iterable[str]) -> str:
    """The path of a sequence of keys and indices.

    >>> join(["a", "x.y", "3"])
    'a."x.y"[3]'
    """
    out = ""
    for name in trail:
        if name.isdigit():
            out += f"[{name}]"
        elif re.fullmatch(r'[^.\[\]{}"\s]+', name):
            out += f".{name}" if out else name
        else:
            out += ("." if out else "") + json.dumps(name, ensure_ascii=False)
    return out or "(root)"


def at(document: Any, path: str) -> Any:
    """The value at a path, or None when there is none."""
    for step in steps(path):
        if isinstance(document, list) and isinstance(step, str) and step.isdigit():
            document = document[int(step)] if int(step) < len(document) else None
        elif isinstance(document, dict):
            document = document.get(step)
        else:
            return None
    return document


# -------------------------------------------------------------------------------------- comparing
def own_diff(
    expected: Any,
    actual: Any,
    *,
    by: Mapping[str, str] | None = None,
    sets: Sequence[str] = (),
) -> list[Difference]:
    """Where *actual* departs from *expected*.

    Types count: ``true`` is not 1, and 2 is not 2.0. A null is not an absent key.

    Args:
        expected: the golden.
        actual: what the product gave.
        by: list path → key by which its entries are paired, in any order.
        sets: paths of lists whose order does not count.
    """
    return list(_walk(expected, actual, (), by or {}, sets))


def _walk(
    want: Any, got: Any, trail: tuple[str, ...], by: Mapping[str, str], sets: Sequence[str]
) -> Iterator[Difference]:
    path = join(trail)
    if isinstance(want, dict) and isinstance(got, dict):
        for key in [*want, *(key for key in got if key not in want)]:
            yield from _entry(want, got, key, (*trail, str(key)), by, sets)
    elif isinstance(want, list) and isinstance(got, list):
        key = next((key for pattern, key in by.items() if matches(pattern, path)), None)
        if key is not None:
            left, right = _grouped(want, key), _grouped(got, key)
            for name in [*left, *(name for name in right if name not in left)]:
                yield from _entry(left, right, name, (*trail, name), by, sets)
        elif any(matches(pattern, path) for pattern in sets):
            yield from _as_sets(want, got, trail, by, sets)
        else:
            left = {str(n): item for n, item in enumerate(want)}
            right = {str(n): item for n, item in enumerate(got)}
            for n in left if len(left) >= len(right) else right:
                yield from _entry(left, right, n, (*trail, n), by, sets)
    elif type(want) is not type(got):
        yield Difference(path, "type", want, got)
    elif want != got and (want == want or got == got):
        yield Difference(path, "value", want, got)


def _entry(
    want: Mapping[Any, Any],
    got: Mapping[Any, Any],
    key: Any,
    trail: tuple[str, ...],
    by: Mapping[str, str],
    sets: Sequence[str],
) -> Iterator[Difference]:
    if key not in got:
        yield Difference(join(trail), "missing", want[key], None)
    elif key not in want:
        yield Difference(join(trail), "extra", None, got[key])
    else:
        yield from _walk(want[key], got[key], trail, by, sets)


def _grouped(items: list[Any], key: str) -> dict[str, Any]:
    """List entries by the value of *key*; a repeated one is numbered ``name#2``."""
    grouped: dict[str, Any] = {}
    for item in items:
        name = str(item.get(key)) if isinstance(item, dict) else str(item)
        count = sum(1 for known in grouped if known == name or known.startswith(f"{name}#"))
        grouped[name if not count else f"{name}#{count + 1}"] = item
    return grouped


def _as_sets(
    want: list[Any],
    got: list[Any],
    trail: tuple[str, ...],
    by: Mapping[str, str],
    sets: Sequence[str],
) -> Iterator[Difference]:
    rest = list(got)
    for n, item in enumerate(want):
        twin = next(
            (i for i, other in enumerate(rest) if not [*_walk(item, other, trail, by, sets)]), None
        )
        if twin is None:
            yield Difference(join((*trail, str(n))), "missing", item, None)
        else:
            del rest[twin]
    for item in rest:
        yield Difference(join((*trail, "+")), "extra", None, item)
