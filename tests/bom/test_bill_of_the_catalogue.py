"""The committed page of images, and the gate that keeps it current (requirements C-135 to C-138)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.program import aicr

from aicr.bundle import bom, bom_page
from aicr.catalog.catalog import Catalog

PAGE = Path(__file__).resolve().parents[2] / "docs" / "container-images.md"


@pytest.fixture(scope="module")
def bill() -> bom.Bom:
    """A fresh bill of the built-in catalogue."""
    return bom.of_catalog(Catalog.builtin(), version="x")


@pytest.mark.covers("C-137")
def test_the_committed_page_has_the_components_and_versions_of_the_registry() -> None:
    """A stale version column or component set fails here, which is the merge gate (8.3)."""
    result = aicr("bom", "--check", PAGE)
    assert result.status == 0, f"run: aicr bom --format markdown -o {PAGE}\n{result.out}"


@pytest.mark.covers("C-135", "C-136")
def test_every_component_and_every_pin_is_in_the_bill(bill: bom.Bom) -> None:
    """Registry, overlays and mixins: a pin that moves anywhere moves the version column."""
    catalog = Catalog.builtin()
    assert [entry.name for entry in bill.entries] == sorted(
        entry["name"] for entry in catalog.registry.entries
    )
    for entry in bill.entries:
        found = catalog.registry.get(entry.name)
        assert found is not None
        assert entry.version == (found.get("helm") or {}).get("defaultVersion", "")


@pytest.mark.covers("C-136", "C-137")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("v26.7.0", "v26.7.1"), "gpu-operator: the page says version v26.7.1, it is v26.7.0"),
        (("`gpu-operator`", "`gpu-operators`"), "gpu-operator: is not in the page"),
        (("`gpu-operator`", "`gpu-operators`"), "gpu-operators: is no component any more"),
    ],
)
def test_a_page_that_fell_behind_is_named_line_by_line(
    change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    """Exit 8: added, removed, and moved."""
    text = aicr("bom", "--format", "markdown").out
    row = next(line for line in text.splitlines() if line.startswith("| `gpu-operator` "))
    page = tmp_path / "page.md"
    page.write_text(text.replace(row, row.replace(*change)))
    result = aicr("bom", "--check", page)
    assert result.status == 8
    assert said in result.out.splitlines()


@pytest.mark.covers("C-138")
def test_images_that_drift_below_an_unmoved_pin_are_for_the_full_comparison(
    tmp_path: Path,
) -> None:
    """--check passes, --check --full does not and shows both sides."""
    text = aicr("bom", "--format", "markdown").out
    image = re.search(r"- `(\S+/pause:)(\S+)`", text)
    assert image is not None
    page = tmp_path / "page.md"
    page.write_text(text.replace(image.group(0), f"- `{image.group(1)}0.0`", 1))
    assert aicr("bom", "--check", page).status == 0
    result = aicr("bom", "--check", page, "--full")
    assert result.status == 8
    assert f"no longer so: - `{image.group(1)}0.0`" in result.out
    page.write_text(text)
    assert aicr("bom", "--check", page, "--full").status == 0


@pytest.mark.covers("C-136", "C-137")
def test_another_pin_of_an_overlay_stands_in_the_version_column(
    bill: bom.Bom, tmp_path: Path
) -> None:
    """A mixin or overlay that pins another version is seen by the gate."""
    entry = next(entry for entry in bill.entries if entry.name == "gpu-operator")
    moved = bom.Bom("catalogue", "x", [entry])
    before = bom_page.page(moved, title="t")
    entry.other_versions.append("v99.1.0")
    after = bom_page.stale(before, moved)
    entry.other_versions.remove("v99.1.0")
    assert len(after) == 1
    assert "v99.1.0" in after[0]


def test_data_that_is_laid_over_counts(tmp_path: Path) -> None:
    """--data brings its components and images."""
    (tmp_path / "components" / "mine").mkdir(parents=True)
    (tmp_path / "registry.yaml").write_text(
        "apiVersion: aicr.run/v1beta1\nkind: ComponentRegistry\ncomponents:\n"
        "  - name: mine\n    displayName: Mine\n    helm:\n"
        "      defaultRepository: https://charts.example\n      defaultChart: mine\n"
        '      defaultVersion: "1.0.0"\n      defaultNamespace: mine\n'
    )
    (tmp_path / "components" / "mine" / "values.yaml").write_text(
        "image: {repository: ghcr.io/acme/mine, tag: v3}\n"
    )
    result = aicr("bom", "--data", tmp_path, "--format", "markdown")
    assert "| `mine` | helm | mine | 1.0.0 | mine | no (not pulled) | 1 |" in result.out
    assert "`ghcr.io/acme/mine:v3`" in result.out
