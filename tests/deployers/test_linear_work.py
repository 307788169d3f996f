"""Work grows with the number of components, and not with its square.

Counted and not timed: the lines of our code that run, repeats of a comprehension included, are the
same on every machine. Doubling the components must then add twice what the doubling before added.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from benchmarks.bench_deployers import synthetic

from aicr import Catalog
from aicr.bundle import deployers
from aicr.bundle.api import make_bundle
from aicr.bundle.options import BundleOptions
from aicr.recipe.document import load_recipe
from aicr.yamlio import write

SIZES = (60, 120, 240)


def lines_run(deployer: str, count: int) -> int:
    """How many lines run while a recipe of *count* components is read and made into a bundle."""
    text = write.dump(synthetic(count))
    # What the writer remembers of other documents would make this one cheaper.
    write._WORDS.clear()
    catalog = Catalog.builtin()
    found = 0

    def count_lines(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal found
        del frame, argument
        found += event == "line"
        return count_lines

    before = sys.gettrace()
    sys.settrace(count_lines)
    try:
        make_bundle(load_recipe(text, "recipe", catalog), BundleOptions(deployer=deployer))
    finally:
        sys.settrace(before)
    return found


@pytest.mark.parametrize("deployer", deployers.names())
def test_twice_the_components_are_twice_the_work(deployer: str) -> None:
    """For each deployer, 240 components add twice what 120 added; a square would add four times."""
    lines_run(deployer, SIZES[0])  # What is loaded once must not count for one size only.
    small, middle, large = (lines_run(deployer, size) for size in SIZES)
    growth = (large - middle) / (middle - small)
    assert 1.95 < growth < 2.05, (small, middle, large)
