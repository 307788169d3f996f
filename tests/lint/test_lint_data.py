"""A data directory is judged as it will be used: over the built-in catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import base, chart, data, entry, overlay, registry

from aicr.lint.findings import ERROR
from aicr.lint.run import Report, lint


def about(report: Report, root: Path) -> list[str]:
    """Rule and place of each finding, with the directory left out."""
    return [
        f"{finding.file.removeprefix(str(root) + '/')}:{finding.line} {finding.rule}"
        for finding in report.findings
    ]


def judged(tmp_path: Path, files: dict[str, str], **options: Any) -> list[str]:
    """What lint says about a data directory with these files."""
    data(tmp_path, files)
    return about(lint(str(tmp_path), **options), tmp_path)


def test_a_stub_with_one_overlay_is_clean(tmp_path: Path) -> None:
    """Nothing is said about the built-in catalogue, whatever it could be told."""
    own = overlay("site", {"service": "mycloud-1"}, componentRefs=[{"name": "gpu-operator"}])
    assert judged(tmp_path, {"overlays/site.yaml": own}) == []


def test_an_overlay_may_inherit_from_a_built_in_one(tmp_path: Path) -> None:
    """Parents, mixins and components are looked for in both trees."""
    own = overlay("site", {"service": "eks", "platform": "my-own"}, base="eks")
    assert judged(tmp_path, {"overlays/site.yaml": own}) == []
    assert judged(tmp_path, {"overlays/site.yaml": own}, alone=True) == [
        "overlays/base.yaml:1 base-missing",
        "overlays/site.yaml:12 parent-missing",
    ]


@pytest.mark.covers("R11-31", "R11-32", "R11-41")
def test_what_only_a_query_would_show_is_shown_at_once(tmp_path: Path) -> None:
    """Missing parents, circles and node counts, before anybody asks for the overlay."""
    files = {
        "overlays/a.yaml": overlay("a", {"service": "aa-cloud"}, base="zzz"),
        "overlays/b.yaml": overlay("b", {"service": "bb-cloud"}, base="b"),
        "overlays/c.yaml": overlay("c", {"service": "cc-cloud", "nodes": 8}),
    }
    assert judged(tmp_path, files) == [
        "overlays/a.yaml:11 parent-missing",
        "overlays/b.yaml:11 parent-circle",
        "overlays/c.yaml:10 document-shape",
    ]


@pytest.mark.covers("R11-35")
def test_an_entry_that_replaces_a_built_in_one_names_what_is_lost(tmp_path: Path) -> None:
    """Entries are replaced as a whole, so the chart of the operator is gone."""
    data(tmp_path, {"registry.yaml": registry(entry("gpu-operator"))})
    report = lint(str(tmp_path), rules=["entry-replaced"])
    assert about(report, tmp_path) == ["registry.yaml:5 entry-replaced"]
    assert 'replaces the built-in "gpu-operator" and drops its' in report.findings[0].message
    assert "helm" in report.findings[0].message


def test_a_copy_of_all_fields_loses_nothing(tmp_path: Path) -> None:
    """The warning is about fields, not about the replacement."""
    fields = ("valueOverrideKeys", "helm", "nodeScheduling", "validations", "healthCheck")
    more = ("gkeCriticalPriority", "hasSelfRefCRDs", "mixinSafeOverridePaths", "upgrades")
    flags = ("ownsCRDs", "manifestsUseChartCRDs", "podScheduling", "storageClassPaths", "testTier")
    same = entry("gpu-operator", **{field: {} for field in (*fields, *more, *flags)})
    data(tmp_path, {"registry.yaml": registry(same)})
    assert lint(str(tmp_path), rules=["entry-replaced"]).findings == []


def test_the_name_of_a_built_in_overlay_is_taken(tmp_path: Path) -> None:
    """Under another path it collides; under the same path it replaces."""
    own = overlay("eks", {"service": "eks"})
    assert "overlays/mine.yaml:5 duplicate-name" in judged(tmp_path, {"overlays/mine.yaml": own})


def test_what_the_directory_breaks_below_it_is_reported_there(tmp_path: Path) -> None:
    """A base without components leaves built-in overlays with dependencies on nothing."""
    data(tmp_path, {"overlays/base.yaml": base(componentRefs=[chart("nfd")])})
    report = lint(str(tmp_path))
    broken = [finding for finding in report.findings if finding.file.startswith("recipes/")]
    assert {finding.severity for finding in broken} >= {ERROR}
    assert any(finding.rule == "dependency-unknown" for finding in broken)


def test_a_check_of_the_directory_replaces_the_built_in_one(tmp_path: Path) -> None:
    """validators/catalog.yaml is merged by name, so a check may move to another phase."""
    catalogue = (
        "apiVersion: validator.nvidia.com/v1alpha1\nkind: ValidatorCatalog\nvalidators:\n"
        "  - {name: my-check, phase: deployment, image: 'repo.example.com/c:v1'}\n"
    )
    phases = {"performance": {"checks": ["my-check"]}}
    own = overlay("site", {"service": "mycloud-1"}, validation=phases)
    files = {"overlays/site.yaml": own, "validators/catalog.yaml": catalogue}
    found = judged(tmp_path, files)
    assert found == ["overlays/site.yaml:14 declared-check"]


def test_a_circle_is_told_where_the_directory_closes_it(tmp_path: Path) -> None:
    """The built-in edge was there before, and is nobody's mistake."""
    ref = {"name": "nfd", "dependencyRefs": ["gpu-operator"]}
    own = overlay("site", {"service": "mycloud-1"}, componentRefs=[ref])
    found = judged(tmp_path, {"overlays/site.yaml": own}, rules=["dependency-circle"])
    assert found == ["overlays/site.yaml:15 dependency-circle"]


@pytest.mark.parametrize(
    ("other", "told"),
    [({"service": "gke"}, True), ({"service": "eks", "os": "ubuntu"}, False)],
    ids=["never together", "perhaps together"],
)
def test_a_repetition_counts_when_no_recipe_needs_it(
    tmp_path: Path, other: dict[str, str], told: bool
) -> None:
    """Another overlay that sets the path matters only if a query can select both."""
    app = entry("app", helm={"defaultRepository": "https://charts.example.com"})
    files = {
        "registry.yaml": registry(app),
        "components/app/values.yaml": "driver: {mode: fast}\n",
        "overlays/base.yaml": base(componentRefs=[chart("app")]),
        "overlays/one.yaml": overlay("one", {"service": "eks"}, componentRefs=[_mode("fast")]),
        "overlays/two.yaml": overlay("two", other, componentRefs=[_mode("slow")]),
    }
    found = judged(tmp_path, files, alone=True, rules=["override-redundant"])
    assert bool(found) == told


def _mode(word: str) -> dict[str, Any]:
    return {"name": "app", "overrides": {"driver": {"mode": word}}}
