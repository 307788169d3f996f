"""The build hook: generated modules, the stamp, and what a wheel holds (decisions 38 and 40)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatch_build import STAMP, compile_catalogue, stamp_text, write_modules

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty source tree, with no stamp in the environment."""
    monkeypatch.delenv("AICR_COMMIT", raising=False)
    monkeypatch.delenv("AICR_DATE", raising=False)
    (tmp_path / STAMP).parent.mkdir(parents=True)
    return tmp_path


def commit_all(tree: Path) -> str:
    """Make *tree* a checkout with one commit of a known time; returns the commit."""
    who = {"NAME": "A", "EMAIL": "a@example.invalid", "DATE": "2026-02-03T04:05:06+02:00"}
    identity = {
        f"GIT_{role}_{key}": text for role in ("AUTHOR", "COMMITTER") for key, text in who.items()
    }
    environment = dict(os.environ, GIT_CONFIG_GLOBAL=os.devnull, **identity)
    (tree / "file").write_text("one")
    for arguments in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", str(tree), *arguments], check=True, env=environment)
    return subprocess.run(
        ["git", "-C", str(tree), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()


def stamp_of(tree: Path) -> dict[str, str]:
    """COMMIT and DATE as the program would read them."""
    names: dict[str, str] = {}
    exec(stamp_text(tree), names)
    return {key: names[key] for key in ("COMMIT", "DATE")}


def test_the_environment_decides_the_stamp(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AICR_COMMIT and AICR_DATE win over git."""
    commit_all(tree)
    monkeypatch.setenv("AICR_COMMIT", "abc123")
    monkeypatch.setenv("AICR_DATE", "2026-01-01T00:00:00Z")
    assert stamp_of(tree) == {"COMMIT": "abc123", "DATE": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("name", ["AICR_COMMIT", "AICR_DATE"])
def test_half_a_stamp_is_refused(name: str, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit without its date, or the reverse, is a mistake of the build."""
    monkeypatch.setenv(name, "abc123")
    with pytest.raises(RuntimeError, match="belong together"):
        stamp_text(tree)


def test_the_date_is_the_commits_time_in_utc(tree: Path) -> None:
    """A build of the same commit has the same stamp whenever and wherever it runs."""
    commit = commit_all(tree)
    assert stamp_of(tree) == {"COMMIT": commit, "DATE": "2026-02-03T02:05:06Z"}


def test_a_changed_tree_is_stamped_dirty(tree: Path) -> None:
    """A build of uncommitted changes does not claim to be the commit."""
    commit = commit_all(tree)
    (tree / "file").write_text("two")
    assert stamp_of(tree)["COMMIT"] == f"{commit}-dirty"


def test_a_build_without_commit_or_environment_has_no_stamp(tree: Path) -> None:
    """It will call itself dev."""
    assert stamp_text(tree) == ""


def test_an_unpacked_sdist_keeps_the_stamp_it_carries(tree: Path) -> None:
    """Without git and environment, the stamp made for the sdist still holds."""
    (tree / STAMP).write_text("COMMIT = 'abc'\nDATE = 'then'\n")
    assert stamp_of(tree) == {"COMMIT": "abc", "DATE": "then"}


def test_generated_modules_replace_what_an_older_compiler_left(tmp_path: Path) -> None:
    """Only what the compiler returns remains; files of other names are not touched."""
    write_modules(tmp_path, {"_builtin/__init__.py": "A = 1\n", "_builtin/x.py": "X = 1\n"})
    (tmp_path / "load.py").write_text("hand-written")
    assert write_modules(tmp_path, {"_builtin/__init__.py": "A = 2\n"}) == ["_builtin/__init__.py"]
    assert (tmp_path / "_builtin/__init__.py").read_text() == "A = 2\n"
    assert not (tmp_path / "_builtin" / "x.py").exists()
    assert (tmp_path / "load.py").exists()


def test_an_unchanged_module_becomes_young_again(tmp_path: Path) -> None:
    """A build makes the generated files newer than their sources, which is what a start looks at."""
    write_modules(tmp_path, {"_builtin/__init__.py": "A = 1\n"})
    os.utime(tmp_path / "_builtin" / "__init__.py", (1, 1))
    write_modules(tmp_path, {"_builtin/__init__.py": "A = 1\n"})
    assert (tmp_path / "_builtin" / "__init__.py").stat().st_mtime > 1


def test_a_generated_name_that_version_control_would_see_is_refused(tmp_path: Path) -> None:
    """Generated modules carry the prefix that .gitignore knows."""
    with pytest.raises(RuntimeError, match=r"'other\.py' does not start with '_builtin'"):
        write_modules(tmp_path, {"other.py": ""})


def test_the_compiled_catalogue_is_current() -> None:
    """What is installed in this checkout is what the compiler makes of recipes/ now."""
    catalog = ROOT / "src" / "aicr" / "catalog"
    for name, text in compile_catalogue(ROOT).items():
        path = catalog / name
        assert path.is_file(), f"{name} is missing: run `make install`"
        assert path.read_text(encoding="utf-8") == text, f"{name} is stale: run `make install`"


def test_a_wheel_has_data_and_licence_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    """The wheel carries the compiled and the source form of the catalogue, reproducibly."""
    wheels: list[Path] = []
    for number in ("one", "two"):
        tree = tmp_path / number / "tree"
        tree.mkdir(parents=True)
        ignore = shutil.ignore_patterns("__pycache__", "_builtin*", "_stamp.py")
        for folder in ("src", "recipes"):
            shutil.copytree(ROOT / folder, tree / folder, ignore=ignore)
        for file in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
            shutil.copy(ROOT / file, tree / file)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "hatchling",
                "build",
                "-t",
                "wheel",
                "-d",
                str(tmp_path / number),
            ],
            cwd=tree,
            env=dict(os.environ, PYTHONHASHSEED=str(len(wheels)), AICR_COMMIT="c", AICR_DATE="d"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (wheel,) = (tmp_path / number).glob("*.whl")
        wheels.append(wheel)
    with zipfile.ZipFile(wheels[0]) as archive:
        names = set(archive.namelist())
    wanted = {
        "aicr/_stamp.py",
        "aicr/catalog/_builtin/__init__.py",
        "aicr/catalog/_recipes/registry.yaml",
        "aicr/py.typed",
    }
    assert wanted <= names
    assert not (tmp_path / "one" / "tree" / STAMP).exists()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
