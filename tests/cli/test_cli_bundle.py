"""`aicr bundle` from the command line: what it says, what it refuses, and what it never touches."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from tests.cli.program import EKS, aicr, left_over, shell, tree

#: A recipe by hand, for the places in its errors.
HEAD = "kind: RecipeResult\napiVersion: aicr.run/v1\ncomponentRefs:\n"
NFD = (
    "  - name: nfd\n    type: Helm\n    source: oci://registry.k8s.io/nfd/charts\n"
    "    chart: node-feature-discovery\n    version: 0.18.3\n"
)


def written(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    """A recipe file with this text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_report_goes_to_stdout_and_the_talk_to_stderr(
    recipe_file: Path, tmp_path: Path
) -> None:
    """Bundler spec 1.5: type, counts and numbered steps on stdout; changes and notes on stderr."""
    target = tmp_path / "out"
    found = aicr(
        *("bundle", "-r", recipe_file, "-o", target),
        *("--set", "gpu-operator:driver.version=580.95.05"),
    )
    assert found.status == 0, found.err
    first, *steps = found.out.splitlines()
    count = sum(1 for path in target.rglob("*") if path.is_file())
    assert first.startswith("helm-bundle: ")
    assert f" {count} files, " in first
    assert first.endswith(f" bytes in {target}")
    assert steps[0] == f"  1. cd {target}"
    assert any(line.startswith("set gpu-operator:driver.version: ") for line in found.lines)
    assert "warning: " not in found.out


def test_the_first_step_can_be_pasted_whatever_the_folder_is_called(
    recipe_file: Path, tmp_path: Path
) -> None:
    """A folder name with blanks and quotes is shown quoted for the shell."""
    target = tmp_path / "it's a 'bundle'"
    found = aicr("bundle", "-r", recipe_file, "-o", target)
    step = found.out.splitlines()[1].partition("1. ")[2]
    assert shlex.split(step) == ["cd", str(target)]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["-o", "x"], ["flag --recipe is required", "aicr recipe"]),
        (["-r", "x"], ["flag --output is required", "-o bundle"]),
        (["-r", "x", "-o", "oci://a/B"], ["'B' is not a repository"]),
        (
            ["-r", "x", "-o", "https://a/b"],
            ["https://a/b is an address", "name a folder, or oci://"],
        ),
        (["-r", "x", "-o", "cm://a/b"], ["cm://a/b is an address", "name a folder, or oci://"]),
        (["-r", "x", "-o", "OCI://a/b"], ["OCI://a/b is an address", "name a folder, or oci://"]),
        (["-r", "cm://a", "-o", "x"], ["does not name a ConfigMap", "cm://NAMESPACE/NAME"]),
        (["-r", "", "-o", "x"], ["recipe file: the name is empty", "- for standard input"]),
        (["-r", ".", "-o", "x"], ["recipe file . is a folder", "name the file in it"]),
        (["--nodes", "many"], ["invalid nodes value: many (a whole number is needed)"]),
        (["--recipe"], ["flag --recipe needs a value", "--recipe=-value"]),
        (["--storageclass", "x"], ["unknown flag --storageclass", "did you mean --storage-class?"]),
        (["recipe.yaml"], ["unexpected argument 'recipe.yaml'", "takes flags only"]),
    ],
)
def test_a_wrong_command_line_is_refused_before_anything_is_read(
    argv: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Usage errors exit 2, name the flag, and leave the folder alone."""
    monkeypatch.chdir(tmp_path)
    aicr("bundle", *argv).refused(2, *words)
    assert left_over(tmp_path) == []


@pytest.mark.covers("B10-4", "R11-52")
@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["--deployer", "hlm"], 2, ['invalid deployer "hlm": must be one of argocd', "helm?"]),
        (["--set", "gpu-operatr:a=1"], 2, ['unknown component "gpu-operatr"', '"gpu-operator"?']),
        (["--set", "gpuoperater:a=1"], 2, ["unknown component", "did you mean"]),
        (["--set", "gpu-operator"], 2, ["--set"]),
        (["--set", "gpu-operator:driver=x"], 2, ["--set-json"]),
        (["--set-json", "gpu-operator:a={"], 2, ["--set-json", "JSON"]),
        (["--set-file", "gpu-operator:a=nope.yaml"], 3, ["value file not found: nope.yaml"]),
        (["--set-file", "gpu-operator:a=."], 2, ["value file . is not a regular file"]),
        (["--nodes", "-1"], 2, ["nodes"]),
        (["--system-node-selector", "pool"], 2, ["--system-node-selector"]),
        (["--accelerated-node-toleration", "a=b:noschedule"], 2, ["NoSchedule"]),
        (["--workload-gate", "x"], 2, ["--workload-gate"]),
        (["--storage-class", " "], 2, ["--storage-class"]),
        (["--storage-class", ""], 2, ["--storage-class"]),
        (["--data", "nope"], 3, ["external data directory not found: nope"]),
    ],
)
def test_a_flag_that_cannot_take_effect_is_refused_and_nothing_is_written(
    argv: list[str],
    status: int,
    words: list[str],
    recipe_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The flag is named, the nearest word is given, and the output folder does not appear."""
    monkeypatch.chdir(tmp_path)
    found = aicr("bundle", "-r", recipe_file, "-o", "out", *argv)
    found.refused(status, *words)
    assert "next: " in found.err
    assert left_over(tmp_path, "in") == []


@pytest.mark.covers("R11-33", "R11-34", "R11-79")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("kind: Foo\n", ['kind "Foo", but "RecipeResult" is required; run "aicr recipe"']),
        ("kind: RecipeMetadata\napiVersion: aicr.run/v1beta1\nspec: {}\n", ["has no criteria;"]),
        (
            "kind: RecipeMetadata\napiVersion: aicr.run/v1beta1\nspec: {criteria: {os: 1}}\n",
            ["os must be text", "mine.yaml:3:"],
        ),
        ("", ["a recipe file must be a map, found nothing", "mine.yaml"]),
        ("- 1\n", ["a recipe file must be a map, found a list"]),
        (HEAD.replace("componentRefs:", "componentRefs: []"), ["nothing to bundle"]),
        (HEAD.replace("componentRefs", "componentRef"), ['did you mean "componentRefs"?', ":3:"]),
        (HEAD + NFD + "    versoin: 1.0.0\n", ['did you mean "version"?', "mine.yaml:9:"]),
        (HEAD + NFD.replace("0.18.3", "0.18"), ["version must be text", ":8:", 'quote it: "0.18"']),
        (HEAD + NFD.replace("name: nfd", "name: NFD"), ["lower-case DNS name", ":4:"]),
        (HEAD + NFD + "    valuesFile: ../../etc/passwd\n", ["path traversal", ":9:", "passwd"]),
        (HEAD + NFD + "    manifestFiles: [/etc/passwd]\n", ["path traversal", ":9:"]),
        (HEAD + NFD + "    manifestFiles: [null]\n", ["manifestFiles", ":9:"]),
        (HEAD + NFD + "    valuesFile: components/nope.yaml\n", ["components/nope.yaml"]),
        (HEAD + NFD + "    dependencyRefs: [nope]\n", ['unknown dependency "nope"']),
        (HEAD + NFD + "    dependencyRefs: [nfd]\n", ["circular dependency", "nfd"]),
        (HEAD + NFD + NFD, ["nfd"]),
        (HEAD + NFD + "constraints: [null]\n", ["a constraint must be a map", ":9:"]),
        (HEAD + NFD + "    version: 0.18.4\n", ["line 8", "line 9", "mine.yaml:9:"]),
        (HEAD + "  - name: [\n", ["invalid YAML", "mine.yaml:"]),
        (HEAD + "  - null\n", ["a componentRef must be a map, found nothing", ":4:"]),
    ],
)
def test_a_wrong_recipe_file_is_refused_with_its_place_and_nothing_is_written(
    body: str, words: list[str], tmp_path: Path
) -> None:
    """Recipe spec 5.4 and everything that an editor can do to a recipe."""
    found = aicr("bundle", "-r", written(tmp_path, body), "-o", tmp_path / "out")
    assert found.status in (2, 3, 8), found
    assert found.out == ""
    for word in (*words, "next: "):
        assert word in found.err, found.err
    assert left_over(tmp_path, "mine.yaml") == []


def test_a_dependency_cycle_is_shown_as_a_path(tmp_path: Path) -> None:
    """The issue: cycles → the path."""
    refs = "".join(
        NFD.replace("name: nfd", f"name: {name}") + f"    dependencyRefs: [{needs}]\n"
        for name, needs in (("a", "b"), ("b", "c"), ("c", "a"))
    )
    found = aicr("bundle", "-r", written(tmp_path, HEAD + refs), "-o", tmp_path / "out")
    found.refused(2, "circular dependency detected: [a b c a]", "mine.yaml")


def test_a_json_recipe_makes_the_same_bundle(tmp_path: Path, recipe_text: str) -> None:
    """What `--format json` writes goes in like YAML, tabs for indents and all."""
    as_json = json.loads(aicr("recipe", *EKS, "--format", "json").out)
    one = written(tmp_path, json.dumps(as_json, indent="\t"), "recipe.json")
    other = written(tmp_path, recipe_text, "recipe.yaml")
    assert aicr("bundle", "-r", one, "-o", tmp_path / "one").status == 0
    assert aicr("bundle", "-r", other, "-o", tmp_path / "two").status == 0
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_a_place_in_a_json_recipe_is_right_with_tabs(tmp_path: Path) -> None:
    """Tabs between JSON words are blanks; they do not make the place get lost."""
    text = '{\n\t"kind": "RecipeResult",\n\t"componentRefs": [\n\t\t{"name": "a", "chart": 5}]}'
    found = aicr("bundle", "-r", written(tmp_path, text), "-o", tmp_path / "out")
    found.refused(2, "chart must be text, found a number", "mine.yaml:4:26", 'quote it: "5"')


def test_a_recipe_comes_through_a_pipe(tmp_path: Path) -> None:
    """`aicr recipe … | aicr bundle -r -` needs no file between."""
    found = shell(
        f"aicr recipe {' '.join(EKS)} 2>/dev/null | aicr bundle -r - -o out", cwd=tmp_path
    )
    assert found.status == 0, found.err
    assert (tmp_path / "out" / "deploy.sh").is_file()


def test_a_folder_that_is_not_ours_is_refused_and_left_byte_for_byte(
    recipe_file: Path, tmp_path: Path
) -> None:
    """Decision 47: somebody's files are neither mixed with ours nor removed."""
    target = tmp_path / "work"
    target.mkdir()
    (target / "notes.txt").write_text("mine")
    os.chmod(target / "notes.txt", 0o640)
    before = tree(target)
    found = aicr("bundle", "-r", recipe_file, "-o", target)
    found.refused(2, "not empty", "notes.txt", "next: name a new folder")
    assert tree(target) == before
    assert left_over(tmp_path, "in", "work") == []


def test_a_bundle_that_somebody_changed_is_refused_and_left(
    recipe_file: Path, tmp_path: Path
) -> None:
    """Decision 47: only a bundle that verifies is replaced; an edit in it is work of somebody."""
    target = tmp_path / "out"
    assert aicr("bundle", "-r", recipe_file, "-o", target).status == 0
    (target / "deploy.sh").write_text("# mine\n")
    before = tree(target)
    aicr("bundle", "-r", recipe_file, "-o", target).refused(2, "deploy.sh")
    assert tree(target) == before


def test_our_own_bundle_is_replaced_as_a_whole(recipe_file: Path, tmp_path: Path) -> None:
    """Decision 47: the new bundle is exactly what an empty place would have got."""
    target = tmp_path / "out"
    small = written(tmp_path, HEAD + NFD)
    assert aicr("bundle", "-r", recipe_file, "-o", target).status == 0
    assert aicr("bundle", "-r", small, "-o", target).status == 0
    assert aicr("bundle", "-r", small, "-o", tmp_path / "fresh").status == 0
    assert tree(target) == tree(tmp_path / "fresh")
    assert left_over(tmp_path, "in", "out", "fresh", "mine.yaml") == []


@pytest.mark.parametrize("place", ["file/out", "file", "file/a/b"])
def test_a_place_below_a_file_is_refused_by_name(
    place: str, recipe_file: Path, tmp_path: Path
) -> None:
    """A folder that cannot be: nothing is written and the file in the way is named."""
    (tmp_path / "file").write_text("x")
    aicr("bundle", "-r", recipe_file, "-o", tmp_path / place).refused(2, "file", "--output")
    assert left_over(tmp_path, "in", "file") == []
    assert (tmp_path / "file").read_text() == "x"


def test_an_old_recipe_is_bundled_with_one_notice(tmp_path: Path) -> None:
    """Decision 1: what v0.11.1 wrote is accepted."""
    old = HEAD.replace("aicr.run/v1", "aicr.nvidia.com/v1alpha1") + NFD
    found = aicr("bundle", "-r", written(tmp_path, old), "-o", tmp_path / "out")
    assert found.status == 0, found.err
    assert found.err.count("aicr.nvidia.com/v1alpha1") == 1
