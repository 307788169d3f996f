"""Every leaf of the catalogue becomes a bundle whose parts agree with its recipe."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.leaves.bundle_folders import document, folders, tree
from tests.leaves.conftest import Outcomes
from tests.leaves.leaf_cases import BUNDLED, ROWS, each
from tools.leaf_table import Outcome

from aicr.artifacts.checksums import verify_tree
from tools import leaf_table


def parts(refs: list[dict[str, Any]]) -> tuple[set[str], dict[str, set[str]]]:
    """Enabled components, and for each everything it depends on, disabled ones passed through."""
    direct = {ref["name"]: list(ref.get("dependencyRefs") or ()) for ref in refs}
    reached: dict[str, set[str]] = {}
    for name in direct:
        found: set[str] = set()
        waiting = list(direct[name])
        while waiting:
            other = waiting.pop()
            if other not in found:
                found.add(other)
                waiting += direct[other]
        reached[name] = found
    switches = ("enabled", "install")
    enabled = {
        ref["name"]
        for ref in refs
        if not any((ref.get("overrides") or {}).get(switch) is False for switch in switches)
    }
    return enabled, reached


@each(ROWS)
def test_a_row_ends_with_the_exit_status_of_the_table(outcome: Outcome) -> None:
    """Exit 0 leaves a bundle; any other status leaves none and says what to do next (52)."""
    assert outcome.status == outcome.leaf.exit, outcome.said
    assert outcome.bundle.is_dir() == (outcome.leaf.exit == 0)
    if outcome.leaf.exit:
        assert re.search(r"^error: \[", outcome.said, re.MULTILINE)
        assert "\n  next: " in outcome.said
    assert "Traceback" not in outcome.said


@each(BUNDLED)
def test_folders_are_the_enabled_components_after_what_they_depend_on(outcome: Outcome) -> None:
    """One run of folders for each enabled component; edges pass through disabled ones (F1)."""
    enabled, reached = parts(document(outcome.recipe)["componentRefs"])
    found = folders(outcome.bundle)
    assert [folder.order for folder in found] == list(range(1, len(found) + 1))
    runs = [
        folder.component
        for before, folder in zip([None, *found], found, strict=False)
        if before is None or before.component != folder.component
    ]
    assert len(runs) == len(set(runs)), "the folders of a component are apart"
    assert set(runs) == enabled
    for place, name in enumerate(runs):
        assert reached[name] & enabled <= set(runs[:place]), name


@each(BUNDLED)
def test_every_list_of_the_order_is_the_same(outcome: Outcome) -> None:
    """Recipe, folders and deploy.sh do not tell different stories."""
    found = folders(outcome.bundle)
    order = list(dict.fromkeys(folder.component for folder in found))
    for recipe in (outcome.recipe, outcome.bundle / "recipe.yaml"):
        assert document(recipe)["deploymentOrder"] == order
    script = (outcome.bundle / "deploy.sh").read_text(encoding="utf-8")
    listed = re.search(r"^FOLDERS=\(\n(.*?)^\)$", script, re.MULTILINE | re.DOTALL)
    assert listed is not None
    assert re.findall(r"^  '(.*)'$", listed[1], re.MULTILINE) == [
        folder.path.name for folder in found
    ]


@each(BUNDLED)
def test_a_component_has_its_own_folder_between_pre_and_post(outcome: Outcome) -> None:
    """Extra folders of a component are -pre before and -post after the one of its name (2.2)."""
    names: dict[str, list[str]] = {}
    for folder in folders(outcome.bundle):
        names.setdefault(folder.component, []).append(folder.release)
        assert folder.path.name.partition("-")[2] == folder.release
        assert (folder.path / "install.sh").is_file()
        assert folder.is_chart != (folder.path / "upstream.env").is_file()
    for component, releases in names.items():
        whole = [f"{component}-pre", component, f"{component}-post"]
        assert component in releases
        assert releases == [name for name in whole if name in releases]


@pytest.mark.covers("F12")
@each(BUNDLED)
def test_checksums_of_a_fresh_bundle_verify(outcome: Outcome) -> None:
    """The list is the whole truth about the bundle (7.1, 7.2)."""
    assert verify_tree(str(outcome.bundle)) == []


@each(BUNDLED)
def test_two_readers_see_the_same_values(outcome: Outcome) -> None:
    """Each values file is a map, and an independent YAML 1.1 reader reads no scalar otherwise."""
    for folder in folders(outcome.bundle):
        for name in ("values.yaml", "cluster-values.yaml"):
            path = folder.path / name
            values = document(path)
            assert isinstance(values, dict), path
            text = path.read_text(encoding="utf-8")
            assert yaml.load(text, Loader=yaml.CSafeLoader) == values, path
            assert "<no value>" not in text, path


@each(BUNDLED)
def test_no_template_action_is_left_in_a_chart(outcome: Outcome) -> None:
    """The only action in our templates is the one that prints two braces (2.2, F2)."""
    for path in outcome.bundle.glob("*/templates/*"):
        text = path.read_text(encoding="utf-8")
        assert "<no value>" not in text, path
        assert "{{" not in text.replace('{{ "{{" }}', ""), path


@each(BUNDLED)
def test_the_recipe_in_a_bundle_makes_that_bundle_again(
    outcome: Outcome, way: str, tmp_path: Path
) -> None:
    """What was installed can be made again from the bundle alone, byte for byte."""
    from io import StringIO

    from aicr.cli.console import Console
    from aicr.cli.main import main

    extra = (*(outcome.leaf.bundle or ()), *(leaf_table.PLACEMENT if way == "placed" else ()))
    heard = StringIO()
    again = tmp_path / "again"
    words = ["bundle", "-r", str(outcome.bundle / "recipe.yaml"), *extra, "-o", str(again)]
    assert main(words, Console(StringIO(), heard)) == 0, heard.getvalue()
    assert tree(again) == tree(outcome.bundle)


def test_the_report_names_every_row_and_counts_them(plain: Outcomes) -> None:
    """`make leaves` shows what the tests check."""
    lines = leaf_table.report(list(plain.values())).splitlines()
    assert [line.split()[:2] for line in lines[1:-1]] == [
        [row.overlay, str(row.exit)] for row in ROWS
    ]
    assert lines[-1].startswith(
        f"{len(ROWS)} rows: {len(BUNDLED)} bundled, {len(ROWS) - len(BUNDLED)} refused, 0 otherwise"
    )
