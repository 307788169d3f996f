"""Generated pages of the manual say what the code says now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.gen_docs import MEANING, pages

from aicr import errors

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "text"), pages().items(), ids=list(pages()))
def test_a_generated_page_is_current(name: str, text: str) -> None:
    """A page that differs from its source is stale: run `make docs`."""
    assert (ROOT / name).read_text(encoding="utf-8") == text


def test_every_error_code_is_explained() -> None:
    """A new error code comes with words for the person who gets it."""
    assert MEANING.keys() == errors.EXIT_STATUS.keys()


def documents() -> list[Path]:
    """Every hand-written or generated Markdown file."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A relative link names a file or folder that exists."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"
