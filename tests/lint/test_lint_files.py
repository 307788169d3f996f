"""Files that the loader would refuse at once are noted, and the rest is judged all the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.recipe.trees import data, tree

from aicr.catalog.tree import MAX_FILE_BYTES
from aicr.errors import INVALID_REQUEST, NOT_FOUND, AicrError
from aicr.lint.run import lint


def told(root: Path, *, alone: bool = True) -> list[str]:
    """Place, rule and message of each error about files, with the directory left out."""
    report = lint(str(root), alone=alone, rules=["file-refused", "yaml"])
    return [
        f"{finding.file[len(str(root)) + 1 :]} {finding.rule} {finding.message}"
        for finding in report.findings
    ]


@pytest.mark.covers("R11-29", "R11-30")
def test_every_file_that_is_refused_is_named(tmp_path: Path) -> None:
    """Links, oversized files and bytes that are no text, all in one go."""
    tree(tmp_path)
    (tmp_path / "overlays" / "link.yaml").symlink_to("base.yaml")
    (tmp_path / "folder").symlink_to("overlays")
    (tmp_path / "overlays" / "latin.yaml").write_bytes(b"name: M\xfcnchen\n")
    with (tmp_path / "big.yaml").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    os.mkfifo(tmp_path / "pipe.yaml")
    assert told(tmp_path) == [
        f"big.yaml file-refused file too large ({MAX_FILE_BYTES + 1} bytes, max {MAX_FILE_BYTES}): "
        f"big.yaml",
        "folder file-refused symlinks not allowed: folder",
        "overlays/latin.yaml file-refused overlays/latin.yaml is not UTF-8 text (byte 7)",
        "overlays/link.yaml file-refused symlinks not allowed: overlays/link.yaml",
        "pipe.yaml file-refused not a regular file: pipe.yaml",
    ]


def test_a_file_that_is_no_yaml_by_name_is_left_alone(tmp_path: Path) -> None:
    """A picture or a .git folder in the tree is nobody's business."""
    tree(tmp_path, {".git/config.yaml": "a: 1\na: 2\n"})
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff")
    assert told(tmp_path) == []


@pytest.mark.covers("R11-28")
def test_a_data_directory_needs_its_registry(tmp_path: Path) -> None:
    """Without registry.yaml the loader takes nothing; lint says so and judges the rest."""
    data(tmp_path, {"overlays/broken.yaml": "a: 1\na: 2\n"})
    (tmp_path / "registry.yaml").unlink()
    first, second = told(tmp_path, alone=False)
    assert first.startswith("overlays/broken.yaml yaml duplicate key")
    message = f"registry.yaml is required in external data directory: {tmp_path}"
    assert second == f"registry.yaml file-refused {message}"


@pytest.mark.covers("R11-27")
def test_a_directory_that_is_not_there_cannot_be_judged(tmp_path: Path) -> None:
    """That is no finding: lint could not run."""
    with pytest.raises(AicrError, match="data directory not found") as caught:
        lint(str(tmp_path / "nowhere"))
    assert caught.value.code == NOT_FOUND


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    """Naming registry.yaml instead of its folder is answered with what to name."""
    file = tmp_path / "registry.yaml"
    file.write_text("")
    with pytest.raises(AicrError, match="not a directory") as caught:
        lint(str(file))
    assert caught.value.code == INVALID_REQUEST
