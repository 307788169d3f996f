"""Broken data trees as text, and what lint says about them.

A tree is one file: ``=== path`` starts a file of the tree. What lint must print stands in a file of the
same name under ``golden/``. ``python -m tests.lint.broken_trees`` writes what is printed now; read the
difference before it is committed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.recipe.trees import write

from aicr.lint.run import Report, lint

HERE = Path(__file__).resolve().parent
NAMES = sorted(path.stem for path in (HERE / "trees").glob("*.txt"))


def files(name: str) -> dict[str, str]:
    """The files of a tree by relative path."""
    found: dict[str, str] = {}
    path = ""
    for line in (HERE / "trees" / f"{name}.txt").read_text(encoding="utf-8").splitlines(True):
        if line.startswith("=== "):
            path = line[4:].strip()
            found[path] = ""
        else:
            found[path] += line
    return found


def golden(name: str) -> Path:
    """The file with what must be printed."""
    return HERE / "golden" / f"{name}.txt"


def shown(report: Report, root: Path) -> str:
    """The findings as text, with the directory called DIR."""
    return "".join(finding.text() for finding in report.findings).replace(str(root), "DIR")


def printed(name: str, root: Path) -> str:
    """What lint says about a tree that is written below *root* and judged alone."""
    write(root, files(name))
    return shown(lint(str(root), alone=True), root)


def main() -> None:
    """Write all golden files."""
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            text = printed(name, Path(folder))
        golden(name).write_text(text, encoding="utf-8")
        print(f"{name}: {text.count('[')} findings")


if __name__ == "__main__":
    main()
