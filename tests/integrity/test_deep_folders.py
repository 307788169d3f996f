"""Folders nested deeper than the interpreter recurses are looked into like any others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.program import EKS, aicr

#: More than Python's limit of 1,000 calls; the path stays below the system's 4,096 characters.
DEPTH = 1200


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file far below it; made and removed step by step, as long paths need."""
    root = tmp_path / "tree"
    root.mkdir()
    before = Path.cwd()
    os.chdir(root)
    try:
        for _ in range(DEPTH):
            os.mkdir("d")
            os.chdir("d")
        Path("last").write_text("x")
    finally:
        os.chdir(before)
    yield root
    subprocess.run(["rm", "-rf", str(root)], check=True)


def test_a_file_far_below_an_unlisted_folder_is_named(deep: Path) -> None:
    """`aicr verify` ends with a finding, not with an error of its own."""
    (deep / "checksums.txt").write_text("")
    found = aicr("verify", str(deep))
    assert found.status == 8
    assert f"{'d/' * DEPTH}last" in found.out


def test_a_data_directory_that_deep_is_refused_in_words(deep: Path) -> None:
    """Nothing that the catalogue reads lies so far down."""
    (deep / "registry.yaml").write_text(
        "kind: ComponentRegistry\napiVersion: aicr.run/v1beta1\ncomponents: []\n"
    )
    for status, words in ((2, ["recipe", *EKS, "--data", str(deep)]), (8, ["lint", str(deep)])):
        found = aicr(*words)
        assert found.status == status, found.err
        assert "folders nested more than 32 deep: d/d/" in found.out + found.err
