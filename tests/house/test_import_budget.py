"""What the hot commands may import (decision 35, design "Speed rules").

Every module of the standard library costs milliseconds at each start, so the allow-list is a test.
Allowed: what an empty program loads anyway, C modules that are built into the interpreter, and our
own modules. argparse is not: with `re`, `enum` and the rest under it, it costs as much as the
interpreter itself, and a plain command line does not need it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from aicr.bundle.deployers import names

ROOT = Path(__file__).resolve().parents[2]
CRITERIA = (
    *("--service", "eks", "--accelerator", "h100", "--intent", "training"),
    *("--os", "ubuntu", "--platform", "kubeflow"),
)

#: Nothing beyond what starting the interpreter brings.
BASELINE = "import os, sys"

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

#: The expensive ones by name, so that an interpreter that starts to load one does not hide it.
NEVER = [
    *("argparse", "asyncio", "collections", "enum", "functools", "gettext", "locale", "re"),
    *("concurrent.futures", "dataclasses", "hashlib", "importlib.metadata", "inspect"),
    *("json", "logging", "msgspec", "pathlib", "shutil", "socket", "subprocess", "tempfile"),
    *("threading", "traceback", "typing", "yaml"),
]

#: The C module behind sha256 is an extension file in some builds of Python; `__future__` is what
#: postponed annotations cost.
FREE = {"__future__", "_sha256", "_sha2"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel lays it out.

    Not the checkout, which also compares the age of `recipes/` with that of the compiled form and
    reads the sources when they are younger.
    """
    found = tmp_path_factory.mktemp("site")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "aicr", found / "aicr", ignore=ignore)
    shutil.copytree(ROOT / "recipes", found / "aicr" / "catalog" / "_recipes")
    return found


def loaded(site: Path, tmp_path: Path, body: str, arguments: Sequence[str] = ()) -> set[str]:
    """The modules in memory after *body* ran in a fresh isolated interpreter."""
    target = tmp_path / "modules"
    code = "\n".join(
        [
            f"import os, sys; sys.path.insert(0, {str(site)!r})",
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
        and name not in FREE
    )


@pytest.fixture(scope="module")
def baseline(site: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What a program loads that does nothing."""
    return loaded(site, tmp_path_factory.mktemp("baseline"), BASELINE)


@pytest.fixture(scope="module")
def recipe_file(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe as our own writer prints it."""
    folder = tmp_path_factory.mktemp("recipe")
    loaded(site, folder, RUN, ["recipe", *CRITERIA, "-o", "recipe.yaml"])
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
def test_resolving_imports_nothing_but_ours(
    arguments: list[str], site: Path, baseline: set[str], tmp_path: Path
) -> None:
    """recipe and query load only C built-ins and our modules."""
    names = loaded(site, tmp_path, RUN, arguments)
    extra = surplus(names, baseline)
    assert not extra, f"loaded beyond the allow-list: {', '.join(extra)}"
    assert sorted(names.intersection(NEVER)) == []


@pytest.mark.parametrize("deployer", names())
def test_bundling_our_own_recipe_imports_nothing_but_ours(
    deployer: str, recipe_file: Path, site: Path, baseline: set[str], tmp_path: Path
) -> None:
    """Bundle reads a recipe that we wrote without a YAML library and without hashlib."""
    arguments = ["bundle", "-r", str(recipe_file), "--deployer", deployer, "-o", "out"]
    names = loaded(site, tmp_path, RUN, arguments)
    extra = surplus(names, baseline)
    assert not extra, f"loaded beyond the allow-list: {', '.join(extra)}"
    assert sorted(names.intersection(NEVER)) == []


def test_a_recipe_run_loads_no_part_of_the_bundler(site: Path, tmp_path: Path) -> None:
    """Each command imports its own layers only."""
    names = loaded(site, tmp_path, RUN, ["recipe", *CRITERIA, "-o", "recipe.yaml"])
    assert sorted(name for name in names if name.startswith("aicr.bundle")) == []


def test_importing_the_package_loads_nothing_of_it(site: Path, tmp_path: Path) -> None:
    """`import aicr` is free: its attributes load their modules when they are first used."""
    names = loaded(site, tmp_path, "import aicr")
    assert sorted(name for name in names if name.startswith("aicr.")) == []
