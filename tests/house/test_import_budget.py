"""What the hot commands may import (decision 35, design "Speed rules").

Every module of the standard library costs milliseconds at each start, so the allow-list is a test.
Allowed: what an empty argparse program loads anyway, C modules that are built into the interpreter,
and our own modules.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"
CRITERIA = (
    *("--service", "eks", "--accelerator", "h100", "--intent", "training"),
    *("--os", "ubuntu", "--platform", "kubeflow"),
)

#: Builds a parser and uses it: argparse loads gettext and locale only then.
BASELINE = """
import argparse, re, os, sys
parser = argparse.ArgumentParser()
parser.add_argument("--x")
parser.parse_args([])
"""

#: Runs one command line in this process, then reports; a hard exit must not skip the report.
RUN = """
def leave(status):
    raise SystemExit(status)
os._exit = leave
sys.argv = ["aicr", *ARGUMENTS]
status = 0
try:
    from aicr.cli.main import run
    status = run() or 0
except SystemExit as end:
    status = end.code or 0
"""

REPORT = """
names = sorted(sys.modules)
with open(TARGET, "w") as report:
    report.write(f"{status}\\n" + "\\n".join(names))
"""

#: The expensive ones by name, so that an argparse that starts to load one does not hide it.
NEVER = [
    *("asyncio", "concurrent.futures", "dataclasses", "hashlib", "importlib.metadata", "inspect"),
    *("json", "logging", "msgspec", "pathlib", "shutil", "socket", "subprocess", "tempfile"),
    *("threading", "traceback", "typing", "yaml"),
]


def loaded(tmp_path: Path, body: str, arguments: Sequence[str] = ()) -> set[str]:
    """The modules in memory after *body* ran in a fresh isolated interpreter."""
    target = tmp_path / "modules"
    code = "\n".join(
        [
            f"import os, sys; sys.path.insert(0, {str(SRC)!r})",
            f"ARGUMENTS = {json.dumps(list(arguments))}; TARGET = {str(target)!r}; status = 0",
            body,
            REPORT,
        ]
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    status, *names = target.read_text().splitlines()
    assert status == "0", f"exit {status}: {done.stderr}"
    return set(names)


def surplus(names: set[str], baseline: set[str]) -> list[str]:
    """Modules beyond the allow-list, sorted."""
    return sorted(
        name
        for name in names - baseline
        if name.partition(".")[0] != "aicr"
        and name not in sys.builtin_module_names
        # The C module behind sha256, an extension file in some builds of Python.
        and name not in {"_sha256", "_sha2"}
    )


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What an argparse program loads without doing anything."""
    return loaded(tmp_path_factory.mktemp("baseline"), BASELINE)


@pytest.fixture(scope="module")
def recipe_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe as our own writer prints it."""
    folder = tmp_path_factory.mktemp("recipe")
    loaded(folder, RUN, ["recipe", *CRITERIA, "-o", "recipe.yaml"])
    return folder / "recipe.yaml"


@pytest.mark.parametrize(
    "arguments",
    [
        ["recipe", *CRITERIA, "-o", "recipe.yaml"],
        ["recipe", *CRITERIA],
        ["query", *CRITERIA, "--selector", "components.gpu-operator.values"],
    ],
    ids=["recipe to a file", "recipe to stdout", "query"],
)
def test_resolving_imports_nothing_beyond_argparse_and_ours(
    arguments: list[str], baseline: set[str], tmp_path: Path
) -> None:
    """recipe and query load only what argparse loads anyway, C built-ins and our modules."""
    names = loaded(tmp_path, RUN, arguments)
    assert surplus(names, baseline) == []
    assert sorted(names.intersection(NEVER)) == []


def test_bundling_our_own_recipe_imports_nothing_beyond_argparse_and_ours(
    recipe_file: Path, baseline: set[str], tmp_path: Path
) -> None:
    """Bundle reads a recipe that we wrote without a YAML library and without hashlib."""
    arguments = ["bundle", "-r", str(recipe_file), "--deployer", "helm", "-o", "out"]
    names = loaded(tmp_path, RUN, arguments)
    assert surplus(names, baseline) == []
    assert sorted(names.intersection(NEVER)) == []


def test_a_recipe_run_loads_no_part_of_the_bundler(tmp_path: Path) -> None:
    """Each command imports its own layers only."""
    names = loaded(tmp_path, RUN, ["recipe", *CRITERIA, "-o", "recipe.yaml"])
    assert sorted(name for name in names if name.startswith("aicr.bundle")) == []


def test_importing_the_package_loads_nothing_of_it(tmp_path: Path) -> None:
    """`import aicr` is free: its attributes load their modules when they are first used."""
    names = loaded(tmp_path, "import aicr")
    assert sorted(name for name in names if name.startswith("aicr.")) == []
