from __future__ import annotations

from typing import Any

from tests.bundle.sample_plans import CONFIG_MAP, chart, component, plan_of

from aicr.bundle import layout
from aicr.bundle.deployers import helm
from aicr.bundle.readme import readme


def text() -> str:
    """README.md of a bundle of three components."""
    plan = plan_of(
        chart("a", namespace="ns", manifests=[("m.yaml", CONFIG_MAP)]),
        component("b", manifests=[("m.yaml", CONFIG_MAP)]),
        notes=("Warning: first\nline", "Warning: second"),
    )
    return helm.generate(plan, layout.folders(plan))["README.md"][0].decode()


def test_the_table_names_each_release_and_its_chart() -> None:
    """One row a folder: folder, release, namespace, component, chart, version (2.9)."""
    rows = [line for line in text().splitlines() if line.startswith("| 0")]
    assert rows == [
        "| 001-a | a | ns | a | a from https://charts.example.com | 1.2.3 |",
        "| 002-a-post | a-post | ns | a | in this bundle |  |",
        "| 003-b | b | b | b | in this bundle |  |",
    ]


def test_uninstall_is_in_reverse_folder_order() -> None:
    """What was installed last is removed first (5.1)."""
    lines = [line for line in text().splitlines() if line.startswith("helm uninstall")]
    assert lines == [
        "helm uninstall b --namespace b --wait --timeout 15m",
        "helm uninstall a-post --namespace ns --wait --timeout 15m",
        "helm uninstall a --namespace ns --wait --timeout 15m",
    ]


def test_criteria_and_notes_are_told() -> None:
    """Wildcards are not; a note is one line."""
    page = text()
    assert "Made for service eks, accelerator h100." in page
    assert "- Warning: first line\n- Warning: second\n" in page


def test_a_bar_does_not_break_the_table() -> None:
    """Cells are escaped."""
    plan = plan_of(chart("a", version="1|2"))
    page = readme(plan, layout.folders(plan), deploy=(), uninstall=(), files={}).decode()
    assert "| 1\\|2 |" in page


def test_a_kustomization_names_its_path_and_tag() -> None:
    """The source of a wrapped Kustomize build is its path."""
    ref: dict[str, Any] = {
        "type": "Kustomize",
        "source": "https://git.example.com/k",
        "path": "deploy",
        "tag": "v2",
    }
    plan = plan_of(component("k", **ref))
    folders = layout.folders(plan, run=lambda _command, _time: (0, CONFIG_MAP.encode(), b""))
    page = readme(plan, folders, deploy=(), uninstall=(), files={}).decode()
    assert "| kustomization deploy | v2 |" in page


def test_a_recipe_without_criteria_says_nothing_of_them() -> None:
    """No empty sentence."""
    plan = plan_of(chart("a"), criteria={"service": "any", "nodes": 0})
    page = readme(plan, layout.folders(plan), deploy=(), uninstall=(), files={}).decode()
    assert "Made for" not in page
    assert "1 component in 1 Helm release," in page
