"""Build hook: compiles the catalogue, ships its sources and stamps the build.

What it does for every wheel, editable or not (an sdist gets the stamp only):

* calls :func:`aicr.catalog.compile.compile_tree` of *this* source tree and writes the modules it
  returns to ``src/aicr/catalog/`` (git-ignored; decision 38), so that a start reads Python instead
  of parsing some eighty YAML files;
* puts ``aicr/_stamp.py`` with the commit and its date into the archive (decision 40). It is never
  written into the source tree, and an editable install has none: a working tree moves on after it
  was installed, so a commit noted then would soon be a false statement.

A standard wheel also carries ``recipes/`` as ``aicr/catalog/_recipes/``; an editable install finds
the folder beside ``src/``.

The build is reproducible: the date is the commit's, never the clock's, and nothing of the machine
enters a file. The hook knows nothing of the catalogue's format; a data error stops the build with
the compiler's own message.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Generated files carry this prefix, so that leftovers of an older compiler can be recognised.
GENERATED_PREFIX = "_builtin"
STAMP = "src/aicr/_stamp.py"


class CatalogueBuildHook(BuildHookInterface[Any]):
    """Generates what the package needs at run time but does not keep in version control."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the generated modules and register them with the builder.

        *version* is hatchling's name of the build flavour: ``standard`` or ``editable``.
        """
        root = Path(self.root)
        self._stamp_folder = Path(tempfile.mkdtemp())
        if version != "editable":
            text = stamp_text(root)
            if text:
                stamp = self._stamp_folder / "_stamp.py"
                stamp.write_text(text, encoding="utf-8", newline="\n")
                inside = STAMP if self.target_name == "sdist" else STAMP.removeprefix("src/")
                build_data["force_include"][str(stamp)] = inside
        if self.target_name == "sdist":
            return
        catalog = root / "src" / "aicr" / "catalog"
        for name in write_modules(catalog, compile_catalogue(root)):
            build_data["artifacts"].append(f"/src/aicr/catalog/{name}")
        if version != "editable":
            build_data["force_include"][str(root / "recipes")] = "aicr/catalog/_recipes"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what only the build needed."""
        shutil.rmtree(self._stamp_folder)


def compile_catalogue(root: Path) -> dict[str, str]:
    """The modules that this source tree's compiler makes of ``recipes/``: name → text.

    A data error comes out as the compiler raised it, with file and line.
    """
    source = str(root / "src")
    sys.path.insert(0, source)
    try:
        from aicr.catalog.compile import compile_tree

        return compile_tree(str(root / "recipes"))
    finally:
        sys.path.remove(source)


def write_modules(target: Path, modules: dict[str, str]) -> list[str]:
    """Write generated modules below *target*; returns their names, sorted.

    Generated files that the compiler no longer produces are removed. Unchanged ones are written all
    the same: a checkout tells a stale catalogue by its age before it compares content.
    """
    for name, text in modules.items():
        if not name.startswith(GENERATED_PREFIX):
            raise RuntimeError(
                f"generated file {name!r} does not start with {GENERATED_PREFIX!r}: version "
                "control would not ignore it; rename it in aicr.catalog.compile"
            )
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for old in sorted(target.glob(f"{GENERATED_PREFIX}*")):
        for file in sorted(old.rglob("*.py")) if old.is_dir() else [old]:
            if file.relative_to(target).as_posix() not in modules:
                file.unlink()
    return sorted(modules)


def stamp_text(root: Path) -> str:
    """The text of the stamp module, or "" for a build that will call itself ``dev``.

    ``AICR_COMMIT`` and ``AICR_DATE`` win, then the commit of the checkout, then the stamp that an
    unpacked sdist carries.
    """
    commit = os.environ.get("AICR_COMMIT", "").strip()
    date = os.environ.get("AICR_DATE", "").strip()
    if bool(commit) != bool(date):
        raise RuntimeError("AICR_COMMIT and AICR_DATE belong together: set both or neither")
    checkout = (root / ".git").exists()
    if not commit and checkout:
        commit, date = read_git(root)
    if commit:
        return (
            '"""Written by the build hook: the commit this build was made from."""\n\n'
            "from __future__ import annotations\n\n"
            f"COMMIT = {commit!r}\n"
            f"DATE = {date!r}\n"
        )
    carried = root / STAMP
    return carried.read_text(encoding="utf-8") if carried.is_file() and not checkout else ""


def read_git(root: Path) -> tuple[str, str]:
    """The checkout's commit and its time in UTC, or two empty strings without a usable git.

    A tree with changed tracked files gets ``-dirty`` after the commit. A machine without git can
    still build; the reason for the missing stamp is printed.
    """
    environment = dict(os.environ, TZ="UTC", GIT_OPTIONAL_LOCKS="0")

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        )
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        date = git("log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ")
        dirty = git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or str(error)
        print(f"hatch_build: unstamped build, git says: {reason.strip()}", file=sys.stderr)
        return "", ""
    return (f"{commit}-dirty" if dirty else commit), date
