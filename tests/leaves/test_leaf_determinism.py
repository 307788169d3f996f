"""Two runs in different surroundings leave the same bytes and modes for every leaf."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.leaves.bundle_folders import tree

import aicr
from tools import leaf_table

ROOT = Path(__file__).resolve().parents[2]
#: A moment, as programs like to write one; versions and kernel releases do not look like it.
MOMENT = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} "
)


class Surroundings(NamedTuple):
    """What a run may differ in without making another bundle."""

    environment: dict[str, str]
    umask: int
    place: str
    absolute: bool


FIRST = Surroundings(
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
    umask=0o000,
    place="a",
    absolute=False,
)
#: An ASCII locale that Python is kept from improving on, a zone of odd minutes, a close umask.
SECOND = Surroundings(
    {
        "PYTHONHASHSEED": "1",
        "TZ": "Pacific/Chatham",
        "LANG": "tr_TR.ISO-8859-9",
        "LC_ALL": "POSIX",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "NO_COLOR": "1",
    },
    umask=0o077,
    place="another place/with a longer name",
    absolute=True,
)


def run(root: Path, surroundings: Surroundings, *options: str) -> Path:
    """Run the whole table in a process of its own; where its trees lie."""
    folder = root / surroundings.place
    folder.mkdir(parents=True)
    kept = folder / "kept"
    script = ROOT / "tools" / "leaf_table.py"
    target = str(kept) if surroundings.absolute else "kept"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *options, "--keep", target],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(Path(aicr.__file__).parents[1]),
            **surroundings.environment,
        },
        cwd=folder,
        umask=surroundings.umask,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return kept


@pytest.fixture(scope="module", params=["table", "placement"])
def trees(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Any, Path]:
    """What the two runs left, and where the first lies."""
    root = tmp_path_factory.mktemp("surroundings")
    options = ["--placement"] if request.param == "placement" else []
    first, second = (run(root, each, *options) for each in (FIRST, SECOND))
    return tree(first), tree(second), root


@pytest.mark.covers("F10")
def test_both_runs_left_the_same_paths(trees: tuple[Any, Any, Path]) -> None:
    """One folder a row, and in it what the row says."""
    first, second, _ = trees
    assert list(first) == list(second)
    rows = {leaf.name for leaf in leaf_table.leaves()}
    assert {path for path in first if "/" not in path} == rows


@pytest.mark.covers("F10")
def test_no_byte_and_no_mode_depends_on_the_surroundings(trees: tuple[Any, Any, Path]) -> None:
    """Hash seed, time zone, locale, umask and working folder change nothing (decisions 3, 44)."""
    first, second, _ = trees
    differing = [
        (path, oct(first[path][1]), oct(second[path][1]), first[path][2] == second[path][2])
        for path in first
        # The folders of the rows are made by the tool, not by the product.
        if "/" in path and first[path] != second[path]
    ]
    assert differing == []


@pytest.mark.covers("F10")
def test_no_file_tells_when_or_where_it_was_made(trees: tuple[Any, Any, Path]) -> None:
    """Neither a moment nor a path of this machine is in any output (decision 3)."""
    first, _, root = trees
    here = [os.fsencode(place) for place in (root, ROOT)]
    telling = [
        path
        for path, (_, _, data) in first.items()
        if MOMENT.search(data) or any(place in data for place in here)
    ]
    assert telling == []
