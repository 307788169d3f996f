"""The judges are judged: our comparer and reader agree with those that the kit brings."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.compare import Comparer, own_diff
from tests.conformance.kit import Kit, kit

KIT: Kit = kit()
GOLDENS = sorted(
    {
        case["file"]
        for index in ("resolve/index.yaml", "query/index.yaml")
        for case in KIT.load(index)["cases"]
        if str(case.get("file", "")).endswith((".yaml", ".json"))
    }
)


@pytest.mark.parametrize("options", [{}, {"by": {"componentRefs": "name"}}], ids=["order", "name"])
def test_our_comparer_agrees_with_the_kits(options: dict[str, Any]) -> None:
    """Every golden against the next gives the same differences from both comparers."""
    if KIT.comparer.kits_own is None:
        pytest.skip("this kit comes without compare.py; ours is used alone")
    for name, other in itertools.pairwise(GOLDENS):
        left, right = KIT.load(name), KIT.load(other)
        theirs = KIT.comparer.diff(left, right, by=options.get("by", {}), sets=["constraints"])
        ours = own_diff(left, right, by=options.get("by"), sets=["constraints"])
        assert [str(d) for d in ours] == [str(d) for d in theirs], f"{name} against {other}"


def test_our_reader_agrees_with_the_kits(tmp_path: Path) -> None:
    """A kit without compare.py is read by the product's own reader, to the same content."""
    without = Comparer(tmp_path)
    assert without.kits_own is None
    for name in GOLDENS:
        assert without.load(KIT.root / name) == KIT.load(name), name


def test_a_changed_copy_of_a_golden_is_noticed() -> None:
    """One value changed deep inside a golden is one difference, at its path."""
    golden = KIT.load("resolve/cases/eks.h100.training.ubuntu.any.yaml")
    changed = copy.deepcopy(golden)
    changed["componentRefs"][3]["version"] = "v0"
    found = KIT.comparer.diff(golden, changed, by={}, sets=())
    assert [d.path for d in found] == ["componentRefs[3].version"]
