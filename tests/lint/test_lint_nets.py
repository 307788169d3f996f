"""When every rule is content, the real loader and resolver are asked: lint never says less than they."""

from __future__ import annotations

from pathlib import Path

from tests.recipe.trees import base, chart, overlay, tree

from aicr.lint.run import ALL_RULES, lint


def test_what_the_loader_alone_refuses_is_reported(tmp_path: Path) -> None:
    """The base must stand by itself, even if an overlay that joins every recipe completes it."""
    files = {
        "overlays/base.yaml": base(componentRefs=[chart("app", dependencyRefs=["database"])]),
        "overlays/every.yaml": overlay(
            "every", {"intent": "any"}, componentRefs=[chart("database")]
        ),
    }
    report = lint(str(tree(tmp_path, files)), alone=True, rules=["tree-refused"])
    assert [finding.rule for finding in report.findings] == ["tree-refused"]
    assert 'references unknown dependency "database"' in report.findings[0].message


def test_a_sound_tree_gets_no_finding_from_the_nets(tmp_path: Path) -> None:
    """They speak only when something is refused."""
    files = {"overlays/base.yaml": base(componentRefs=[chart("app")])}
    nets = ["tree-refused", "recipe-unresolvable"]
    assert lint(str(tree(tmp_path, files)), alone=True, rules=nets).findings == []


def test_the_nets_stand_in_the_table() -> None:
    """They can be chosen and left out as every rule."""
    assert {"tree-refused", "recipe-unresolvable"} <= ALL_RULES.keys()
