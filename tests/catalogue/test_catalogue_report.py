"""The report counts what is there, says what lacks a source, and its page is current."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.catalogue.catalogue_files import RECIPES, SOURCES, load, mixins, overlays, registry
from tools.catalogue_report import PAGE, VALUES, report

from tools import catalogue_report

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_is_current() -> None:
    """A page that differs from its source is stale: run `make catalogue-report`."""
    assert PAGE.read_text(encoding="utf-8") == report().page()


def test_it_counts_the_whole_catalogue() -> None:
    """Its rows are the registry, the overlays and the mixins, and nothing lacks a source."""
    found = report()
    assert set(found.components) == set(registry())
    assert (set(found.overlays), set(found.mixins)) == (set(overlays()), set(mixins()))
    assert all(facts.there == facts.sourced for facts in found.components.values())
    assert found.benchmarks
    assert all(found.benchmarks.values())
    assert len(found.unknown) == len(load(SOURCES)["unknown"])


def test_it_tells_what_lacks_a_source(tmp_path: Path) -> None:
    """A value and an overlay nobody accounts for are counted as being without."""
    shutil.copytree(RECIPES, tmp_path / "recipes")
    values = tmp_path / "recipes" / "components" / "gpu-operator" / "values.yaml"
    values.write_text(values.read_text(encoding="utf-8") + "madeUp:\n  a: [1, 2]\n  b: {}\n")
    sources = yaml.safe_load(SOURCES.read_text(encoding="utf-8"))
    del sources["overlays"]["eks"]
    del sources["benchmarks"]["h100/gke/runtime.yaml"]
    (tmp_path / "sources.yaml").write_text(yaml.safe_dump(sources))

    found = report(tmp_path / "recipes", tmp_path / "sources.yaml")
    facts = found.components["gpu-operator"]
    assert facts.there[VALUES] - facts.sourced[VALUES] == 2
    assert facts.cell(VALUES).endswith("(2 without)")
    assert [name for name, sourced in found.overlays.items() if not sourced] == ["eks"]
    lacking = [name for name, sourced in found.benchmarks.items() if not sourced]
    assert lacking == ["h100/gke/runtime.yaml"]


def test_check_fails_on_a_stale_page_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` ends 1; a plain run writes the page."""
    monkeypatch.setattr(catalogue_report, "ROOT", tmp_path)
    monkeypatch.setattr(catalogue_report, "PAGE", tmp_path / "report.md")
    monkeypatch.setattr("sys.argv", ["catalogue_report", "--check"])
    assert catalogue_report.main() == 1
    assert not (tmp_path / "report.md").exists()
    monkeypatch.setattr("sys.argv", ["catalogue_report"])
    assert catalogue_report.main() == 0
    assert "report.md written" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["catalogue_report", "--check"])
    assert catalogue_report.main() == 0
