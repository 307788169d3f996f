"""Pins, version and the promised commands (decisions 39 and 40)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from aicr.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==[A-Za-z0-9.!+_-]+")
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")


def project() -> dict[str, Any]:
    """The `[project]` table of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def pins() -> list[str]:
    """The lines of constraints.txt without comments."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def normal(name: str) -> str:
    """A distribution's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_a_pin_is_a_name_and_a_version_and_nothing_else() -> None:
    """No address, hash, marker or option may enter constraints.txt."""
    assert [line for line in pins() if not PIN.fullmatch(line)] == []


def test_no_leftover_of_a_tool_is_shipped() -> None:
    """Wheel and sdist take folders as a whole, so what patch or an editor left would go with them."""
    endings = (".orig", ".rej", ".bak", ".swp", "~")
    shipped = ("src", "recipes", "charts", "docs", "tests", "tools", "benchmarks", "containers")
    found = [
        path
        for folder in shipped
        for path in (ROOT / folder).rglob("*")
        if path.name.endswith(endings)
    ]
    assert found == []


def test_everything_we_ask_for_is_pinned() -> None:
    """Each requirement of the product, its extras and its build has a pin."""
    table = project()
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    wanted = [*table["dependencies"], *build]
    for name, extra in table["optional-dependencies"].items():
        if name != "all":
            wanted += extra
    names = {normal(re.split(r"[<>=!~\[; ]", line, maxsplit=1)[0]) for line in wanted}
    pinned = {normal(line.split("==")[0]) for line in pins()}
    assert sorted(names - pinned) == []


def test_the_base_install_has_two_dependencies() -> None:
    """A plain install brings PyYAML and msgspec; the rest are extras."""
    names = [re.split(r"[<>=]", line, maxsplit=1)[0] for line in project()["dependencies"]]
    assert names == ["PyYAML", "msgspec"]


def test_the_extra_all_is_every_extra_but_the_tools_of_development() -> None:
    """Decision 39: one name for everything that a user can need."""
    extras = project()["optional-dependencies"]
    named = ",".join(sorted(set(extras) - {"all", "dev"}))
    assert extras["all"] == [f"aicr[{named}]"]


def test_the_version_is_semantic_and_kept_in_one_file() -> None:
    """The wheel's version is derived from version.py."""
    assert SEMVER.fullmatch(__version__)
    assert project()["dynamic"] == ["version"]


@pytest.mark.parametrize("target", ["demo", "test", "lint", "bench", "conformance", "docs"])
def test_a_promised_make_target_exists_and_is_explained(target: str) -> None:
    """`make` lists every target with one line on what it does."""
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE)


def test_the_readme_names_the_two_commands() -> None:
    """One command for the main job and one for the tests."""
    readme = (ROOT / "README.md").read_text()
    assert "$ make demo\n" in readme
    assert "$ make test\n" in readme
