"""Limits of decision 36 and the naming rule of the house."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HARD_LIMIT = 600
#: Names that say nothing about what lives inside, so that everything ends up there.
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "stuff", "shared", "base"}


def modules() -> list[Path]:
    """Every hand-written Python file, relative to the checkout, sorted."""
    found = []
    for top in ("src", "tests", "tools", "benchmarks"):
        for path in sorted((ROOT / top).rglob("*.py")):
            generated = path.name == "_stamp.py" or "_builtin" in path.parts
            if not generated:
                found.append(path.relative_to(ROOT))
    return found


@pytest.mark.parametrize("module", modules(), ids=str)
def test_a_module_fits_in_the_head(module: Path) -> None:
    """No module is longer than 600 lines; generated code is exempt."""
    lines = (ROOT / module).read_text(encoding="utf-8").count("\n")
    assert lines <= HARD_LIMIT, f"{module} has {lines} lines: split it by what it is about"


@pytest.mark.parametrize("module", modules(), ids=str)
def test_a_module_is_named_after_what_it_is_for(module: Path) -> None:
    """No module or package is called utils, helpers, common or misc."""
    parts = {part.removesuffix(".py").strip("_") for part in module.parts}
    assert not parts & VAGUE, f"{module}: name it after the thing it deals with"


@pytest.mark.parametrize("module", [path for path in modules() if path.parts[0] == "src"], ids=str)
def test_a_module_says_what_it_is_for(module: Path) -> None:
    """Every module has a docstring, and one that defines anything postpones its annotations."""
    source = (ROOT / module).read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert ast.get_docstring(tree), f"{module} has no docstring"
    defines = any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body)
    assert not defines or "from __future__ import annotations" in source


def test_test_files_have_unique_names() -> None:
    """A test file's name alone tells which one it is, whatever folder it lies in."""
    names: dict[str, Path] = {}
    for path in modules():
        if path.parts[0] == "tests" and path.name.startswith("test_"):
            assert path.name not in names, f"{path} and {names[path.name]} share a name"
            names[path.name] = path
