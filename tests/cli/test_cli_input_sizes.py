"""Input that is far larger than its kind ever is: refused at once, by every way in."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from tests.cli.program import aicr

from aicr.cli.sources import MAX_DOCUMENT_BYTES

HEAD = b"kind: RecipeCriteria\napiVersion: aicr.run/v1\nspec:\n  service: eks\n"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["recipe", "--criteria"], "criteria file"),
        (["recipe", "--config"], "config file"),
        (["bundle", "-o", "never", "-r"], "recipe file"),
    ],
    ids=["criteria", "config", "recipe"],
)
def test_a_document_that_is_too_large_is_refused_before_it_is_parsed(
    words: list[str], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing one of 60 MB with its places took minutes and gigabytes; the limit is said in bytes."""
    monkeypatch.chdir(tmp_path)
    limit = MAX_DOCUMENT_BYTES[what]
    large = tmp_path / "large.yaml"
    large.write_bytes(HEAD + b"#" * limit)
    aicr(*words, large).refused(
        2, f"{what} {large} is larger than {limit} bytes", "is it the right file?"
    )
    assert not (tmp_path / "never").exists()


def test_standard_input_is_read_up_to_the_limit_and_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An endless stream is not waited for."""

    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            assert 0 < size <= MAX_DOCUMENT_BYTES["criteria file"] + 1
            self.given += size
            return b"y" * size

    class Terminal:
        buffer = Endless()

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stdin", Terminal())
    aicr("recipe", "--criteria", "-").refused(2, "criteria file - is larger than")
    assert Terminal.buffer.given == MAX_DOCUMENT_BYTES["criteria file"] + 1


def test_a_document_of_the_largest_size_is_read(tmp_path: Path) -> None:
    """The limit itself is allowed."""
    path = tmp_path / "criteria.yaml"
    path.write_bytes(HEAD + b"#" * (MAX_DOCUMENT_BYTES["criteria file"] - len(HEAD)))
    assert aicr("recipe", "--criteria", path).status == 0
