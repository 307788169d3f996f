"""Whole bundles kept as files: what a deployer writes for a small plan, byte for byte.

`pytest tests/deployers --update-golden` writes them anew; the change is then read in the diff.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).resolve().parents[1] / "golden" / "deployers"


def compare(name: str, files: dict[str, tuple[bytes, int]], request: pytest.FixtureRequest) -> None:
    """Compare the files of a bundle with the tree of that name, or write the tree."""
    folder = FOLDER / name
    if request.config.getoption("--update-golden", default=False):
        shutil.rmtree(folder, ignore_errors=True)
        for path, (data, _) in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    kept = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert sorted(kept) == sorted(files)
    for path, (data, _) in sorted(files.items()):
        assert data.decode() == kept[path].decode(), f"{name}/{path}"
