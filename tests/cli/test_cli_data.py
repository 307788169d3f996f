"""`--data` from the command line: what is wrong with a folder is said by name, and nothing is printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.cli.program import EKS, aicr, left_over, spawn, tree
from tests.integrity.signed_bundles import KEYS, write_key

REGISTRY = "kind: ComponentRegistry\napiVersion: aicr.run/v1beta1\ncomponents: []\n"
OVERLAY = (
    "kind: RecipeMetadata\napiVersion: aicr.run/v1beta1\nmetadata: {name: mine}\nspec:\n"
    "  criteria: {service: mycloud}\n"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder that can be laid over the catalogue: an empty registry and one overlay."""
    folder = tmp_path / "data"
    (folder / "overlays").mkdir(parents=True)
    (folder / "registry.yaml").write_text(REGISTRY)
    (folder / "overlays" / "mine.yaml").write_text(OVERLAY)
    return folder


def overlay(text: str, name: str = "mine.yaml") -> Callable[[Path], None]:
    """A change: the overlay of that name says *text*."""

    def change(folder: Path) -> None:
        (folder / "overlays" / name).write_text(text, encoding="utf-8")

    return change


def link_out(folder: Path) -> None:
    """A change: a link that leads out of the folder."""
    (folder / "a.yaml").symlink_to("/etc/passwd")


def big(folder: Path) -> None:
    """A change: a file above the limit, without a byte on the disk."""
    with (folder / "big.yaml").open("wb") as file:
        file.truncate(11_000_000)


REF = "  componentRefs:\n    - name: mine\n      type: Helm\n      source: oci://x/y\n      chart: z\n"


@pytest.mark.covers("R11-27", "R11-28", "R11-29", "R11-30", "R11-32", "R11-37", "R11-41")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "registry.yaml").unlink(), ["registry.yaml is required in ext"]),
        (link_out, ["symlinks not allowed: a.yaml"]),
        (big, ["file too large (11000000 bytes, max 10485760): big.yaml"]),
        (overlay(OVERLAY + "  criteria: {}\n"), ["line 5", "line 6", "overlays/mine.yaml:6:3"]),
        (overlay(OVERLAY.replace("{service", "[service")), ["overlays/mine.yaml:5:"]),
        (
            overlay(OVERLAY.replace("mycloud", "24.10")),
            ["overlays/mine.yaml:5:", 'quote it: "24.1'],
        ),
        (overlay(OVERLAY.replace("name: mine", "nam: x")), ["metadata.name is required", ":3:"]),
        (overlay(OVERLAY.replace("v1beta1", "v9")), ['invalid apiVersion "aicr.run/v9"']),
        (overlay(OVERLAY + "  mixins: nope\n"), ["mixins must be a list", "overlays/mine.yaml:6:"]),
        (
            overlay(OVERLAY.replace("mycloud}", "mycloud, nodes: 8}")),
            ['external overlay "mine" sets criteria.nodes=8', "#1781"],
        ),
        (
            overlay(OVERLAY + "  constraints: [{name: K8s.serverr.version, value: '1'}]\n"),
            ['did you mean "server"?', "mine.yaml"],
        ),
    ],
    ids=lambda value: None if callable(value) else value[0][:30],
)
def test_a_wrong_data_folder_is_refused_by_name(
    change: Callable[[Path], None], words: list[str], data: Path
) -> None:
    """Rows 27 to 41: the file, its place and the reason, whatever the criteria are."""
    change(data)
    found = aicr("recipe", *EKS, "--data", data)
    assert found.status in (2, 3), found
    assert found.out == ""
    for word in words:
        assert word in found.err, found.err


@pytest.mark.covers("R11-31", "R11-32", "R11-33", "R11-34")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (OVERLAY + "  base: zzz\n", ['recipe "zzz" not found (referenced in inheritance chain)']),
        (OVERLAY + "  base: mine\n", ['circular inheritance detected: recipe "mine"']),
        (OVERLAY + "  mixins: [nope]\n", ["nope"]),
        (
            OVERLAY + REF + "      version: 1.0.0\n      dependencyRefs: [nope]\n",
            ['component "mine" references unknown dependency "nope"'],
        ),
        (
            OVERLAY + REF + "      version: 1.0.0\n      dependencyRefs: [mine]\n",
            ["circular dependency detected: [mine mine]"],
        ),
        (OVERLAY + REF, ['Helm component "mine" has no chart version; set version:']),
        (OVERLAY + "  componentRefs: [{name: mine}]\n", ["mine"]),
    ],
)
def test_an_overlay_that_cannot_be_resolved_is_refused_when_it_matches(
    body: str, words: list[str], data: Path
) -> None:
    """Rows 31 to 34: chains, cycles and dependencies are checked for what the criteria select."""
    overlay(body)(data)
    found = aicr("recipe", "--service", "mycloud", "--data", data)
    assert found.status in (2, 3), found
    assert found.out == ""
    for word in words:
        assert word in found.err, found.err


def test_a_longer_inheritance_cycle_is_shown_as_a_path(data: Path) -> None:
    """The issue: cycles → the path."""
    overlay(OVERLAY + "  base: one\n")(data)
    for name, base in (("one", "two"), ("two", "mine")):
        text = OVERLAY.replace("name: mine", f"name: {name}").replace("{service: mycloud}", "{}")
        overlay(text + f"  base: {base}\n", f"{name}.yaml")(data)
    found = aicr("recipe", "--service", "mycloud", "--data", data)
    found.refused(2, "circular inheritance detected")
    for name in ("mine", "one", "two"):
        assert name in found.err


@pytest.mark.covers("R11-47")
@pytest.mark.parametrize("path", ["components/mine/nope.yaml", "../../etc/passwd", "/etc/passwd"])
def test_a_values_file_that_is_missing_or_escapes_is_refused_by_name(path: str, data: Path) -> None:
    """Row 47: a bundle or query names the file; nothing outside the tree is read."""
    overlay(OVERLAY + REF + f"      version: 1.0.0\n      valuesFile: {path}\n")(data)
    found = aicr("query", "--service", "mycloud", "--data", data, "--selector", "components.mine")
    assert found.status in (2, 3, 8), found
    assert found.out == ""
    assert path in found.err
    assert "root:" not in found.err


@pytest.mark.parametrize("path", ["components/mine/nope.yaml", "../../etc/passwd", "/etc/passwd"])
def test_a_manifest_that_is_missing_or_escapes_leaves_no_bundle(path: str, data: Path) -> None:
    """The issue: escaping or missing files in --data are refused by name, and nothing is written."""
    overlay(OVERLAY + REF + f"      version: 1.0.0\n      manifestFiles: [{path}]\n")(data)
    recipe = data.parent / "recipe.yaml"
    made = aicr("recipe", "--service", "mycloud", "--data", data, "-o", recipe)
    if made.status == 0:
        made = aicr("bundle", "-r", recipe, "--data", data, "-o", data.parent / "out")
    assert made.status in (2, 3, 8), made
    assert path in made.err
    assert left_over(data.parent, "data", "recipe.yaml") == []


def test_what_data_brings_goes_into_the_recipe_and_the_bundle(data: Path, tmp_path: Path) -> None:
    """Bundler spec 1.1: the files of the folder lie in the bundle under data/, by name and byte."""
    overlay(OVERLAY + REF + "      version: 1.0.0\n")(data)
    recipe = tmp_path / "recipe.yaml"
    assert aicr("recipe", "--service", "mycloud", "--data", data, "-o", recipe).status == 0
    assert "mine" in yaml.safe_load(recipe.read_text())["deploymentOrder"]
    found = aicr("bundle", "-r", recipe, "--data", data, "-o", tmp_path / "out")
    assert found.status == 0, found.err
    for path in ("registry.yaml", "overlays/mine.yaml"):
        assert (tmp_path / "out" / "data" / path).read_bytes() == (data / path).read_bytes()


@pytest.mark.parametrize("name", ["data/out", "data", "data/../data/a/out", "link/out"])
def test_a_bundle_is_not_written_into_the_data_that_it_holds(
    name: str, data: Path, tmp_path: Path
) -> None:
    """Decision 3: the second bundle would hold the first one, the third both."""
    recipe = tmp_path / "recipe.yaml"
    assert aicr("recipe", *EKS, "-o", recipe).status == 0
    (tmp_path / "link").symlink_to(data)
    before = tree(data)
    found = aicr("bundle", "-r", recipe, "--data", data, "-o", f"{tmp_path}/{name}")
    found.refused(2, "lies in the data directory", "next: choose a place outside of it")
    assert tree(data) == before
    beside = aicr("bundle", "-r", recipe, "--data", data, "-o", tmp_path / "data-out")
    assert beside.status == 0, beside.err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (b"\xff.txt", "the name '\\udcff.txt' is not UTF-8 text"),
        (b"a\\b.txt", "the name 'a\\\\b.txt' holds a backslash"),
        (b"a\nb.txt", "the name 'a\\nb.txt' holds a control character"),
    ],
    ids=["no text", "backslash", "line break"],
)
def test_a_name_that_no_bundle_can_hold_is_refused(
    name: bytes, said: str, data: Path, tmp_path: Path
) -> None:
    """Names of Unix are bytes; the list of checksums is UTF-8, one path a line. lint tells it too."""
    (data / os.fsdecode(name)).touch()
    recipe = tmp_path / "recipe.yaml"
    assert aicr("recipe", *EKS, "-o", recipe).status == 0
    found = spawn("bundle", "-r", recipe, "--data", data, "-o", tmp_path / "out")
    found.refused(2, said, "next: rename it")
    assert left_over(tmp_path, "data", "recipe.yaml") == []
    judged = spawn("lint", data)
    assert judged.status != 0
    assert said in judged.out


def test_the_key_that_signs_a_bundle_does_not_become_part_of_it(data: Path, tmp_path: Path) -> None:
    """Whoever gets the bundle could sign in the name of who made it."""
    key, _ = write_key(data, KEYS["P-256"]())
    recipe = tmp_path / "recipe.yaml"
    assert aicr("recipe", *EKS, "-o", recipe).status == 0
    words = ("bundle", "-r", recipe, "--data", data, "-o", tmp_path / "out")
    found = aicr(*words, "--attest", "--signing-key", key)
    found.refused(2, f"the key {key} lies in the data directory", "where: --signing-key")
    assert left_over(tmp_path, "data", "recipe.yaml") == []


def test_a_data_folder_with_an_old_header_is_read_with_a_notice(data: Path) -> None:
    """Decision 1: overlays of v0.11.1 are accepted, and each is named once."""
    overlay(OVERLAY.replace("aicr.run/v1beta1", "aicr.nvidia.com/v1alpha1"))(data)
    found = aicr("recipe", *EKS, "--data", data)
    assert found.status == 0, found.err
    assert found.err.count("aicr.nvidia.com/v1alpha1") == 1
