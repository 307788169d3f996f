"""The examples of docs/library.md work as they stand (issue: public API with tested examples)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"


def test_the_examples_of_the_library_page_run_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each block continues where the last one stopped, as a reader would type them."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    for block in blocks:
        # Blank lines in front make a failing line's number that of the page.
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), names)
    assert "invalid accelerator type: h1oo" in capsys.readouterr().out
