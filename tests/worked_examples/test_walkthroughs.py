"""The worked examples of docs/contributing do what they say, from the first file to the last error."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.catalogue import test_catalogue_tree as tree_tests
from tests.worked_examples.walkthrough import (
    PAGES,
    Changed,
    Run,
    Session,
    Written,
    matches,
    perform,
    renewed,
    steps,
)
from tools.catalogue_report import leaf_paths, named_objects

from aicr.bundle.api import make_bundle
from aicr.bundle.options import BundleOptions
from aicr.catalog.catalog import Catalog
from aicr.recipe.criteria import Criteria
from aicr.recipe.hydrate import hydrate
from aicr.recipe.resolve import resolve

#: Does a page once, in a folder of its own: name → folder and what happened.
Performed = Callable[[str], tuple[Path, Run]]


@pytest.fixture(scope="module")
def performed(tmp_path_factory: pytest.TempPathFactory) -> Performed:
    """Pages, each done when it is first asked for."""

    @cache
    def perform_page(name: str) -> tuple[Path, Run]:
        folder = tmp_path_factory.mktemp(name)
        (page,) = (page for page in PAGES if page.stem == name)
        return folder, perform(steps(page.read_text(encoding="utf-8")), folder)

    return perform_page


@pytest.mark.parametrize("name", [page.stem for page in PAGES])
def test_a_page_prints_what_it_shows(name: str, performed: Performed) -> None:
    """Every command of a page prints what stands below it, and fails only where the page says so."""
    _, run = performed(name)
    assert not run.problems, "\n".join(run.problems)
    assert run.printed


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (name, command)
        for name in ("add-a-component", "add-an-overlay", "own-data-directory")
        for command in ("aicr lint", "aicr recipe", "aicr explain", "aicr bundle", "echo $?")
    ],
)
def test_a_page_goes_the_whole_way(name: str, command: str, performed: Performed) -> None:
    """From a clean lint over recipe and explanation to a bundle, and through at least one refusal."""
    _, run = performed(name)
    assert any(done.text.startswith(command) for done, _ in run.printed)


def test_the_component_is_the_same_in_the_catalogue_as_in_a_data_directory(
    performed: Performed,
) -> None:
    """The two ways of the page lead to one entry, one set of values and one health check."""
    folder, _ = performed("add-a-component")
    shipped = Catalog.from_dir(str(folder / "recipes"))
    laid_over = Catalog.builtin().overlay(str(folder / "my-recipes"))
    assert shipped.registry.get("metrics-server") == laid_over.registry.get("metrics-server")
    first = hydrate(resolve(shipped, Criteria(service="kind")))
    second = hydrate(resolve(laid_over, Criteria(service="kind", os="ubuntu")))
    assert first["components"]["metrics-server"] == second["components"]["metrics-server"]
    assert first["deploymentOrder"] == second["deploymentOrder"]


def test_the_overlay_is_the_same_in_the_catalogue_as_in_a_data_directory(
    performed: Performed,
) -> None:
    """Moving the file into the catalogue changes not one byte of the recipe."""
    folder, _ = performed("add-an-overlay")
    criteria = Criteria(service="k0s", accelerator="b200", intent="training", os="ubuntu")
    shipped = Catalog.from_dir(str(folder / "recipes"))
    laid_over = Catalog.builtin().overlay(str(folder / "my-recipes"))
    assert resolve(shipped, criteria).to_yaml() == resolve(laid_over, criteria).to_yaml()


def test_the_row_of_the_leaf_table_ends_as_it_says(
    performed: Performed,
) -> None:
    """The arguments in the row select the new leaf, and its bundle needs no flags."""
    folder, _ = performed("add-an-overlay")
    rows = read(folder / "docs" / "catalogue" / "leaves.yaml")["leaves"]
    (row,) = (row for row in rows if row["overlay"] == "b200-k0s-ubuntu-training")
    words = dict(zip(row["recipe"][::2], row["recipe"][1::2], strict=True))
    criteria = {flag.removeprefix("--"): word for flag, word in words.items()}
    catalog = Catalog.from_dir(str(folder / "recipes"))
    recipe = resolve(catalog, Criteria(**criteria))
    assert recipe.document["metadata"]["appliedOverlays"][-1] == row["overlay"]
    assert (row["bundle"], row["exit"]) == ([], 0)
    assert make_bundle(recipe, BundleOptions()).files


def test_the_sources_name_every_fact_of_the_new_component(
    performed: Performed,
) -> None:
    """The entry in sources.yaml would pass the tests of the catalogue."""
    folder, _ = performed("add-a-component")
    sources = read(folder / "docs" / "catalogue" / "sources.yaml")
    entry = sources["components"]["metrics-server"]
    recipes = folder / "recipes"
    values = read(recipes / "components" / "metrics-server" / "values.yaml")
    check = read(recipes / "checks" / "metrics-server" / "health-check.yaml")
    assert sorted(entry["values"]["values.yaml"]) == sorted(leaf_paths(values))
    assert set(entry["objects"]) == named_objects(check)
    cited = {entry["pin"], *entry["values"]["values.yaml"].values(), *entry["objects"].values()}
    assert cited <= sources["sources"].keys()


@pytest.mark.parametrize("name", ["add-a-component", "add-a-mixin", "add-an-overlay"])
def test_the_catalogue_that_a_page_ends_with_passes_the_tests_of_the_catalogue(
    name: str, performed: Performed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists, tables and sources hold at the end of the page, and no test has to be edited."""
    folder, _ = performed(name)
    entries = read(folder / "recipes" / "registry.yaml")["components"]
    documents = {
        kind: [read(path) for path in sorted((folder / "recipes" / kind).rglob("*.yaml"))]
        for kind in ("overlays", "mixins")
    }
    named = {
        kind: {document["metadata"]["name"]: document for document in found}
        for kind, found in documents.items()
    }
    monkeypatch.setattr(tree_tests, "RECIPES", folder / "recipes")
    monkeypatch.setattr(tree_tests, "REGISTRY", {entry["name"]: entry for entry in entries})
    monkeypatch.setattr(tree_tests, "MIXINS", named["mixins"])
    sources = read(folder / "docs" / "catalogue" / "sources.yaml")
    monkeypatch.setattr(tree_tests, "SOURCED", sources)
    tree_tests.test_registry_and_health_checks_are_sorted_and_complete()
    tree_tests.test_every_component_that_the_specification_names_is_there()
    tree_tests.test_the_mixins_are_the_sixteen()
    assert set(sources["overlays"]) == set(named["overlays"])
    assert set(sources["mixins"]) == set(named["mixins"])
    assert set(sources["components"]) == {entry["name"] for entry in entries}
    rows = read(folder / "docs" / "catalogue" / "leaves.yaml")["leaves"]
    assert {row["overlay"] for row in rows if row["exit"] == 0} == set(named["overlays"]) - {"base"}


def test_entries_stay_in_alphabetical_order(performed: Performed) -> None:
    """The places that the pages choose are those that the rules of the catalogue ask for."""
    component, overlay = (performed(name)[0] for name in ("add-a-component", "add-an-overlay"))
    entries = read(component / "recipes" / "registry.yaml")["components"]
    for names in (
        [entry["name"] for entry in entries],
        list(read(component / "docs" / "catalogue" / "sources.yaml")["components"]),
        list(read(overlay / "docs" / "catalogue" / "sources.yaml")["overlays"]),
    ):
        assert names == sorted(names)


def read(path: Path) -> Any:
    """The one document of a file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\n", "a\n", True),
        ("a\n", "a\nb\n", False),
        ("", "a\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("a\n…\n", "b\nc\n", False),
        ("in …\n", "in 12 files\n", True),
        ("in …\n", "on 12 files\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_only_what_is_left_out_with_dots_may_differ(shown: str, printed: str, same: bool) -> None:
    """`…` alone is any lines or none, at the end of a line the rest of it; all else is literal."""
    assert matches(shown, printed) is same


NAMED = "In `f`:\n\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```bash\nrm -r /\n```\n", "is no step"),
        ("```yaml\na: 1\n```\n", "is no step"),
        ("```yaml title=f\na: 1\n```\n", "do not name `f`"),
        (f"{NAMED}```yaml title=f tried\na: 1\n```\n", "means nothing here"),
        (f"{NAMED}```diff title=f\n?a\n```\n", "starts with"),
        ("```console\nout\n$ ls\n```\n", "starts with a command"),
    ],
)
def test_a_block_that_would_not_be_executed_is_refused(text: str, complaint: str) -> None:
    """A page cannot show what the test does not do."""
    with pytest.raises(ValueError, match=complaint):
        steps(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{NAMED}```diff title=f\n-a\n+b\n```\n", "not exactly once in f"),
        ("```console\n$ aicr version --no\n…\n```\n", "ended with 2"),
        ("```console\n$ aicr completion bash\nother\n```\n", "printed:"),
        (
            f"{NAMED}```yaml title=f\na\n```\n\n{NAMED}```diff title=f tried\n-a\n```\n",
            "only tried",
        ),
    ],
)
def test_what_goes_otherwise_than_a_page_says_is_a_problem(
    text: str, problem: str, tmp_path: Path
) -> None:
    """A change that does not fit, a failure that is not shown, another output, a mistake left behind."""
    run = perform(steps(text), tmp_path)
    assert any(problem in found for found in run.problems), run.problems


def test_a_tried_change_is_taken_back_after_its_session(tmp_path: Path) -> None:
    """Mistakes are made one at a time, on files that are right."""
    text = (
        f"{NAMED}```yaml title=f\na\nb\n```\n\n{NAMED}```diff title=f tried\n-a\n+c\n@@\n-b\n```\n\n"
        "```console\n$ cat f\nc\n```\n\n```console\n$ cat f\na\nb\n```\n"
    )
    written, changed, *sessions = steps(text)
    assert isinstance(written, Written)
    assert isinstance(changed, Changed)
    assert changed.tried
    assert all(isinstance(session, Session) for session in sessions)
    assert perform(steps(text), tmp_path).problems == []


def test_renewing_a_page_replaces_only_what_is_no_longer_right() -> None:
    """What is left out stays left out."""
    text = f"{NAMED}```yaml title=f\na\nb\n```\n\n```console\n$ cat f\n…\nb\n$ cat f\nold\n```\n"
    assert renewed(text) == text.replace("old\n", "a\nb\n")
