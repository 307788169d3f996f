"""Broken trees, each with everything that is wrong with it, at its line and column."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lint.broken_trees import NAMES, files, golden, printed, shown
from tests.recipe.trees import write

from aicr.catalog.catalog import Catalog
from aicr.errors import AicrError
from aicr.lint.findings import ERROR
from aicr.lint.run import ALL_RULES, lint

#: Rules that no tree judged alone can show, with the test that does.
ELSEWHERE = {
    "entry-replaced": "test_lint_data.py",
    "file-refused": "test_lint_files.py",
    "tree-refused": "test_lint_nets.py",
    "recipe-unresolvable": "test_lint_nets.py",
}


@pytest.mark.covers("A5", "A8", "E1", "H8")
@pytest.mark.parametrize("name", NAMES)
def test_a_broken_tree_is_told_in_full(name: str, tmp_path: Path) -> None:
    """Every problem has its place, rule, words and next step, in a fixed order."""
    assert printed(name, tmp_path) == golden(name).read_text(encoding="utf-8")


def test_every_rule_has_a_tree_that_breaks_it() -> None:
    """A rule that no test can make speak might as well not be there."""
    text = "".join(golden(name).read_text(encoding="utf-8") for name in NAMES)
    silent = {id for id in ALL_RULES if f"[{id}]" not in text}
    assert silent == set(ELSEWHERE)


def test_there_is_a_golden_file_for_each_tree_and_no_other() -> None:
    """A tree that was renamed leaves no expectation behind."""
    folder = Path(__file__).parent / "golden"
    assert sorted(path.stem for path in folder.iterdir()) == NAMES
    assert len(NAMES) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_what_the_loader_refuses_lint_calls_an_error(name: str, tmp_path: Path) -> None:
    """Lint never says less than the loader: its first problem is among ours."""
    write(tmp_path, files(name))
    try:
        Catalog.from_dir(str(tmp_path))
    except AicrError as error:
        report = lint(str(tmp_path), alone=True)
        assert report.count(ERROR)
        places = [link.where for link in error.chain() if ":" in link.where.rpartition("/")[2]]
        found = {f"{finding.file}:{finding.line}" for finding in report.findings}
        for place in places[-1:]:
            assert place.rpartition(":")[0] in found


@pytest.mark.parametrize("name", NAMES)
def test_the_order_in_which_files_were_written_does_not_matter(name: str, tmp_path: Path) -> None:
    """The same tree gives the same bytes."""
    content = files(name)
    one = write(tmp_path / "one", content)
    other = write(tmp_path / "other", dict(reversed(content.items())))
    first = shown(lint(str(one), alone=True), one)
    assert first == shown(lint(str(other), alone=True), other)


def test_a_finding_stands_on_one_line_whatever_is_in_the_file(tmp_path: Path) -> None:
    """A name with control characters cannot move the cursor or fake a finding."""
    content = files("05-lineage")
    content["overlays/odd.yaml"] = content["overlays/orphan.yaml"].replace(
        "base: ekss", 'base: "a\\nb\\e[2Jc"'
    )
    write(tmp_path, content)
    report = lint(str(tmp_path), alone=True, rules=["parent-missing"])
    odd = [finding.text() for finding in report.findings if "odd.yaml" in finding.file]
    assert odd[0].startswith(f"{tmp_path}/overlays/odd.yaml:6:9: error [parent-missing]: ")
    assert r"a\nb\x1b[2Jc" in odd[0]
    assert odd[0].count("\n") == 2
