"""Commands on pages that no other test runs: they work as printed, and print what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.cli.program import aicr

DOCS = Path(__file__).resolve().parents[2] / "docs"


def block(page: str, info: str, after: str = "") -> str:
    """The first fenced block of a kind on a page, behind the words *after*."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^```{info}\n(.*?)^```$", text[text.index(after) :], re.M | re.S)
    assert found is not None
    return found[1]


def test_the_example_of_the_config_page_makes_recipe_and_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both commands of the page, with the file of the page: what a reader tries first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "aicr.yaml").write_text(block("config.md", "yaml"), encoding="utf-8")
    lines = block("config.md", "console").splitlines()
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line.removeprefix("$ aicr "))
        found = aicr(*words)
        assert found.status == 0, found.err
    assert (tmp_path / "bundle" / "deploy.sh").is_file()


def test_the_webhook_page_shows_what_explain_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pod of the page, explained, is the text of the page."""
    monkeypatch.chdir(tmp_path)
    page = "preflight/webhook.md"
    (tmp_path / "pod.yaml").write_text(block(page, "yaml", "file: pod.yaml"), encoding="utf-8")
    command, _, shown = block(page, "console", "file: pod.yaml").partition("\n")
    found = aicr(*shlex.split(command.removeprefix("$ aicr ")))
    assert (found.status, found.out) == (0, shown)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_a_page_of_the_manual_is_in_its_list(page: Path) -> None:
    """Nobody finds a page that docs/README.md does not name."""
    assert page.name == "README.md" or f"]({page.name})" in (DOCS / "README.md").read_text()


def test_a_link_to_a_heading_leads_to_one() -> None:
    """The part behind # is a heading of the page, spelt as it is shown there."""
    wrong = []
    for page in sorted(DOCS.rglob("*.md")):
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for file, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", text):
            target = page.parent / file if file else page
            if target.suffix == ".md" and anchor not in headings(target):
                wrong.append(f"{page.name}: {file}#{anchor}")
    assert wrong == []


def headings(page: Path) -> set[str]:
    """The anchors of a page, as a viewer of Markdown makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found: set[str] = set()
    for title in re.findall(r"^#+ (.*)$", text, re.M):
        plain = re.sub(r"[^\w\- ]", "", title.lower().replace("`", "")).strip()
        found.add(plain.replace(" ", "-"))
    return found
