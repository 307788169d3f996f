"""`aicr diff`: exit status, formats, kinds, and wrong input."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
import yaml
from tests.cli.program import EKS, aicr

from aicr.diff import text
from aicr.diff.changes import Change, Comparison

SNAPSHOT = """\
kind: Snapshot
apiVersion: aicr.run/v1
measurements:
  - type: K8s
    subtypes:
      - subtype: server
        data:
          version: VERSION
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe, another one, two bundles and two snapshots."""
    folder = tmp_path_factory.mktemp("diff")
    old = folder / "old.yaml"
    assert aicr("recipe", *EKS, "-o", old).status == 0
    document = yaml.safe_load(old.read_text())
    for ref in document["componentRefs"]:
        if ref["name"] == "gpu-operator":
            ref["version"] = "v99.0.0"
            ref.setdefault("overrides", {})["added"] = {"by": "test"}
    (folder / "new.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    place = ("--system-node-selector", "pool=system", "--accelerated-node-selector", "pool=gpu")
    for name in ("old", "new"):
        recipe = folder / f"{name}.yaml"
        done = aicr("bundle", "-r", recipe, "-o", folder / f"bundle-{name}", *place)
        assert done.status == 0, done.err
    (folder / "snap-1.yaml").write_text(SNAPSHOT.replace("VERSION", "v1.33.0"))
    (folder / "snap-2.yaml").write_text(SNAPSHOT.replace("VERSION", "v1.34.0"))
    return folder


@pytest.mark.parametrize("name", ["old.yaml", "bundle-old", "snap-1.yaml"])
def test_the_same_is_the_same(files: Path, name: str) -> None:
    """Exit 0 and one line (decision 46)."""
    done = aicr("diff", files / name, files / name)
    assert done.status == 0
    assert done.out.endswith(": no differences\n")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("old.yaml", "new.yaml", ["versions (1)", "upgraded", "v99.0.0", "added.by"]),
        ("bundle-old", "bundle-new", ["versions (1)", "v99.0.0", "added.by"]),
        ("snap-1.yaml", "snap-2.yaml", ["measurements (1)", "K8s.server", "v1.34.0"]),
    ],
)
def test_differences_are_shown_and_end_in_status_8(
    files: Path, before: str, after: str, words: list[str]
) -> None:
    """By kind: recipe, bundle, snapshot (decisions 46 and 59)."""
    done = aicr("diff", files / before, files / after)
    assert done.status == 8, done.err
    for word in words:
        assert word in done.out
    assert "\033" not in done.out


def test_json_and_yaml_say_the_same(files: Path) -> None:
    """Machine formats hold every change in full."""
    words = ("diff", files / "old.yaml", files / "new.yaml", "--format")
    found = json.loads(aicr(*words, "json").out)
    assert found == yaml.safe_load(aicr(*words, "yaml").out)
    assert found["kind"] == "recipe"
    assert found["same"] is False
    assert {change["area"] for change in found["changes"]} >= {"versions", "values"}
    assert found["summary"]["versions"] == 1


def test_snapshots_can_be_named_by_flags(files: Path) -> None:
    """--baseline and --target stay; --fail-on-drift=false exits 0 (bundler 9.4, decision 59)."""
    flags = ("--baseline", files / "snap-1.yaml", "--target", files / "snap-2.yaml")
    assert aicr("diff", *flags).status == 8
    assert aicr("diff", *flags, "--fail-on-drift").status == 8
    done = aicr("diff", *flags, "--fail-on-drift=false")
    assert done.status == 0
    assert "v1.34.0" in done.out


def test_the_result_can_go_to_a_file(files: Path, tmp_path: Path) -> None:
    """The status stays."""
    target = tmp_path / "out.json"
    words = ("diff", files / "old.yaml", files / "new.yaml", "-t", "json", "-o", target)
    done = aicr(*words)
    assert (done.status, done.out) == (8, "")
    assert json.loads(target.read_text())["kind"] == "recipe"


def test_a_changed_bundle_is_compared_with_a_warning(files: Path, tmp_path: Path) -> None:
    """It is what is there that counts; that it is not as made is said."""
    copy = tmp_path / "bundle"
    shutil.copytree(files / "bundle-old", copy)
    values = next(copy.glob("*-gpu-operator/values.yaml"))
    values.write_text(values.read_text() + "byHand: true\n")
    done = aicr("diff", files / "bundle-old", copy)
    assert done.status == 8
    assert "byHand" in done.out
    assert "is not as it was made" in done.err


@pytest.mark.parametrize("name", ["values.yaml", "cluster-values.yaml"])
def test_a_values_file_that_is_no_yaml_is_named_with_its_folder(
    files: Path, tmp_path: Path, name: str
) -> None:
    """A bundle has one of that name for each release."""
    copy = tmp_path / "bundle"
    shutil.copytree(files / "bundle-old", copy)
    values = next(copy.glob(f"*-gpu-operator/{name}"))
    values.write_text("a: [\n")
    done = aicr("diff", files / "bundle-old", copy)
    done.refused(2, "invalid YAML", f"where: {values.relative_to(copy)}:2:1\n")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["old.yaml"], 2, "the new state is not named"),
        ([], 2, "the old state is not named"),
        (["old.yaml", "snap-1.yaml"], 2, "is a recipe and"),
        (["old.yaml", "bundle-old"], 2, "is a bundle"),
        (["old.yaml", "nonesuch.yaml"], 3, "not found"),
        (["old.yaml", "."], 3, "is no bundle"),
        (["old.yaml", "new.yaml", "--format", "jsn"], 2, "did you mean json?"),
        (["old.yaml", "new.yaml", "--fail-on-drift=maybe"], 2, "--fail-on-drift"),
        (["old.yaml", "new.yaml", "--target", "new.yaml"], 2, "named both ways"),
        (["-", "-"], 2, "standard input"),
    ],
)
def test_wrong_input_is_refused(
    files: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], status: int, said: str
) -> None:
    """One error, nothing on stdout, and a status below 8."""
    monkeypatch.chdir(files)
    aicr("diff", *words).refused(status, said)


@pytest.mark.parametrize(
    "recipe",
    [
        "[]",
        "{}",
        "componentRefs: 3",
        "componentRefs: [3]",
        "componentRefs: [{}]",
        "componentRefs: [{name: 3}]",
        "componentRefs: [{name: a, dependencyRefs: [b]}]",
        "a: [",
    ],
)
@pytest.mark.parametrize("command", ["diff", "upgrade-check"])
def test_a_bundle_whose_recipe_is_none_could_not_be_judged(
    files: Path, tmp_path: Path, command: str, recipe: str
) -> None:
    """Exit 2 and the place: 8 would say that something was found (decision 46)."""
    bundle = tmp_path / "bundle"
    shutil.copytree(files / "bundle-old", bundle)
    (bundle / "recipe.yaml").write_text(recipe)
    words = (bundle, bundle) if command == "diff" else ("--from", bundle, "--to", bundle)
    aicr(command, *words).refused(2, "recipe.yaml")


@pytest.mark.parametrize("kind", ["Pod", "RecipeMixin"])
def test_another_kind_is_refused_by_name(files: Path, tmp_path: Path, kind: str) -> None:
    """A recipe, a bundle or a snapshot is needed."""
    other = tmp_path / "x.yaml"
    other.write_text(f"kind: {kind}\napiVersion: v1\n")
    aicr("diff", files / "old.yaml", other).refused(2, f'kind "{kind}"')


def test_a_terminal_gets_colour_and_a_long_area_is_cut() -> None:
    """Colour only where it is asked for; what is left out is counted."""
    changes = [
        Change("values", component="a", path=f"p{n}", change="added", after=n) for n in range(150)
    ]
    comparison = Comparison("recipe", changes)
    plain, coloured = (text.draw(comparison, "a", "b", colour=c) for c in (False, True))
    assert "\033[32m" in coloured
    assert "\033" not in plain
    assert "… and 50 more" in plain
    assert "150 differences" in plain


def test_control_characters_do_not_reach_the_terminal() -> None:
    """A value or name cannot write over the screen."""
    change = Change(
        "values", component="a\033[2J", path="x\n", change="changed", before="\a", after=1
    )
    drawn = text.draw(Comparison("recipe", [change]), "f\033", "g")
    assert all(char.isprintable() or char == "\n" for char in drawn)
    assert io.StringIO(drawn)
