"""``aicr lint``: exit statuses, formats, choosing rules, allowing warnings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.recipe.trees import base, chart, command, refused, tree, write

from aicr.lint.run import ALL_RULES

ALLOWED = """\
kind: RecipeMetadata
apiVersion: aicr.run/v1beta1
metadata:
  name: base
spec:
  componentRefs:
    # aicr-lint: allow component-unregistered, unused-file (it comes with the next registry)
    - name: app
      type: Helm
      source: https://charts.example.com
      chart: app
      version: "^1.2"{comment}
"""


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """A tree without a finding."""
    return tree(tmp_path)


@pytest.fixture
def warned(tmp_path: Path) -> Path:
    """A tree with one warning: a component that the registry lacks."""
    return tree(tmp_path, {"overlays/base.yaml": base(componentRefs=[chart("app")])})


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A tree with one error and one warning."""
    wrong = [{"name": "K8s.serverr.version", "value": ">= 1.32"}]
    refs = [chart("app")]
    return tree(tmp_path, {"overlays/base.yaml": base(constraints=wrong, componentRefs=refs)})


def test_a_clean_tree_exits_0_and_prints_nothing(clean: Path) -> None:
    """The count goes to stderr, so that stdout is empty for a pipeline."""
    ran = command("lint", str(clean), "--alone", "--strict")
    assert ran == (0, "", "lint: 0 errors, 0 warnings in 2 files\n")


def test_warnings_alone_exit_0_unless_strict(warned: Path) -> None:
    """A warning is said, and fails the run only if asked to."""
    ran = command("lint", str(warned), "--alone")
    assert ran.status == 0
    assert "warning [component-unregistered]" in ran.out
    assert ran.err == "lint: 0 errors, 1 warning in 2 files\n"
    assert command("lint", str(warned), "--alone", "--strict").status == 8


def test_errors_exit_8(broken: Path) -> None:
    """It ran and found something (decision 46); the findings are still the output."""
    ran = command("lint", str(broken), "--alone")
    assert ran.status == 8
    assert ran.err == "lint: 1 error, 1 warning in 2 files\n"
    place = f"{broken}/overlays/base.yaml:10:13"
    assert ran.out.splitlines()[0].startswith(f"{place}: error [constraint-path]: constraint")
    assert ran.out.splitlines()[1].startswith("    subtypes of K8s: ")


def test_json_has_the_same_findings_and_a_summary(broken: Path) -> None:
    """One document for machines, whatever was found."""
    ran = command("lint", str(broken), "--alone", "--format", "json")
    assert ran.status == 8
    document = json.loads(ran.out)
    assert document["summary"] == {"errors": 1, "warnings": 1, "files": 2}
    first = document["findings"][0]
    assert list(first) == ["file", "line", "column", "severity", "rule", "message", "hint"]
    assert (first["line"], first["column"], first["rule"]) == (10, 13, "constraint-path")


def test_rules_can_be_chosen_and_left_out(broken: Path) -> None:
    """Several in one word or in several, and the rest is silent."""
    only = command("lint", str(broken), "--alone", "--rule", "component-unregistered,yaml")
    assert only.status == 0
    assert only.err.startswith("lint: 0 errors, 1 warning")
    without = command(
        *(
            "lint",
            str(broken),
            "--alone",
            "--ignore",
            "constraint-path",
            "--ignore",
            "tree-refused",
        ),
        *("--ignore", "component-unregistered"),
    )
    assert without == (0, "", "lint: 0 errors, 0 warnings in 2 files\n")


def test_the_loader_is_not_silenced_by_leaving_out_a_rule(broken: Path) -> None:
    """Ignoring the rule does not make the tree load, and lint says so."""
    ran = command("lint", str(broken), "--alone", "--ignore", "constraint-path")
    assert ran.status == 8
    assert "[tree-refused]" in ran.out


def test_the_rules_can_be_listed() -> None:
    """Id, severity and reason, one a line, as many as there are."""
    ran = command("lint", "--list-rules")
    assert ran.status == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == list(ALL_RULES)
    assert len(command("lint", "--list-rules", "--rule", "yaml").out.splitlines()) == 1


def test_a_comment_allows_a_warning_on_its_line_or_the_next(tmp_path: Path) -> None:
    """The reason stands beside what it is about; other warnings stay."""
    root = tree(tmp_path, {"overlays/base.yaml": ALLOWED.format(comment="")})
    assert "unpinned-version" in command("lint", str(root), "--alone").out
    comment = "  # aicr-lint: allow unpinned-version (a mirror with one version)"
    write(tmp_path, {"overlays/base.yaml": ALLOWED.format(comment=comment)})
    assert command("lint", str(root), "--alone", "--strict").status == 0


def test_a_comment_does_not_allow_an_error(tmp_path: Path) -> None:
    """What the product refuses cannot be waved through."""
    text = ALLOWED.format(comment="").replace('"^1.2"', "1.10  # aicr-lint: allow unquoted-text")
    root = tree(tmp_path, {"overlays/base.yaml": text})
    ran = command("lint", str(root), "--alone")
    assert ran.status == 8
    assert "[unquoted-text]" in ran.out


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--rule", "yml"], 2, 'there is no rule "yml"'),
        (["--ignore", "constraint-paths"], 2, "did you mean constraint-path?"),
        (["--rule", " , "], 2, "names no rule"),
        (["--rule", "yaml", "--ignore", "yaml"], 2, "no rule is left to run"),
        (["--format", "yaml"], 2, 'unknown output format: "yaml", valid formats are: text, json'),
        (["--alone"], 2, "--alone needs a directory"),
        (["nowhere"], 3, "data directory not found: nowhere"),
        (["a", "--data", "b"], 2, "the directory is named twice"),
        ([""], 2, "the name of the directory is empty"),
        (["a", "b"], 2, "unexpected argument 'b'"),
    ],
)
def test_a_wrong_command_line_is_refused(words: list[str], status: int, message: str) -> None:
    """Nothing is printed to stdout, and the status is not that of findings."""
    ran = refused("lint", *words)
    assert ran.status == status
    assert message in ran.err


def test_data_is_the_same_as_the_directory(warned: Path) -> None:
    """The flag that the other commands have works here too."""
    one = command("lint", str(warned), "--alone")
    assert command("lint", "--data", str(warned), "--alone") == one


def test_the_built_in_catalogue_has_no_error() -> None:
    """What ships passes its own judge; places are relative to the catalogue on every machine."""
    ran = command("lint")
    assert ran.status == 0, ran.out
    assert all(line.startswith(("recipes/", "    ")) for line in ran.out.splitlines())
    assert ran.err.startswith("lint: 0 errors, ")


def test_the_built_in_catalogue_has_nothing_left_to_say() -> None:
    """What is meant carries its reason in the file, so that a new warning is seen."""
    assert command("lint", "--strict").out == ""
