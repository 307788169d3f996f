"""``--data``: one directory laid over a catalogue, and every way in which it is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.recipe.trees import (
    base,
    catalog,
    chart,
    command,
    data,
    entry,
    innermost,
    mixin,
    overlay,
    refs_of,
    refusal,
    refused,
    registry,
    resolved,
    write,
)

from aicr.catalog import tree as trees_module
from aicr.catalog.catalog import Catalog
from aicr.catalog.directory_tree import DirectoryTree
from aicr.catalog.tree import BuiltinTree, LayeredTree, check_relative

LIMIT = 10 * 1024 * 1024


@pytest.fixture
def lower(tmp_path: Path) -> Catalog:
    """A small built-in catalogue."""
    return catalog(
        tmp_path / "lower",
        {
            "registry.yaml": registry(entry("a", helm={"defaultNamespace": "ns"}), entry("b")),
            "overlays/base.yaml": base(componentRefs=[chart("a")]),
            "overlays/eks.yaml": overlay("eks", {"service": "eks"}),
            "mixins/m.yaml": mixin("m"),
            "components/a/values.yaml": "from: lower\n",
            "validators/catalog.yaml": "kind: ValidatorCatalog\n",
        },
    )


def refused_both_ways(
    lower: Catalog, folder: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, Any]:
    """The error of the library, and what the command line makes of it."""
    error = refusal(lambda: lower.overlay(folder))
    monkeypatch.setattr(Catalog, "builtin", classmethod(lambda cls: lower))
    return error, refused("recipe", "--service", "eks", "--data", folder)


@pytest.mark.covers("R11-27")
def test_an_absent_directory_is_not_found(
    lower: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 3 with the path as given."""
    folder = str(tmp_path / "nonexistent")
    error, ran = refused_both_ways(lower, folder, monkeypatch)
    assert error.code == "NOT_FOUND"
    assert error.message == "failed to initialize external data"
    assert innermost(error).message == f"external data directory not found: {folder}"
    assert ran.status == 3
    assert f"external data directory not found: {folder}" in ran.err


def test_a_file_is_no_directory(
    lower: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a link that leads nowhere."""
    file = tmp_path / "file"
    file.write_text("x")
    error, ran = refused_both_ways(lower, str(file), monkeypatch)
    assert innermost(error).message == f"external data path is not a directory: {file}"
    assert ran.status == 2
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    error = refusal(lambda: lower.overlay(str(dangling)))
    assert innermost(error).message == f"external data path is not a directory: {dangling}"


@pytest.mark.covers("R11-28")
def test_a_registry_is_required(
    lower: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without registry.yaml it is probably the wrong directory; the stub to write is shown."""
    folder = write(tmp_path / "data", {"overlays/x.yaml": overlay("x")})
    error, ran = refused_both_ways(lower, str(folder), monkeypatch)
    expected = f"registry.yaml is required in external data directory: {folder}"
    assert innermost(error).message == expected
    assert error.code == "INVALID_REQUEST"
    assert ran.status == 2
    assert expected in ran.err
    assert "components: []" in ran.err


@pytest.mark.covers("R11-29")
@pytest.mark.parametrize("target", ["inside.yaml", "/etc/hostname", "nowhere", "overlays"])
def test_links_are_refused_wherever_they_lead(
    lower: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """A link to a file, a directory, outside, or nowhere: the link itself is the problem."""
    folder = data(tmp_path / "data", {"inside.yaml": "a: 1\n", "overlays/x.yaml": overlay("x")})
    (folder / "a.yaml").symlink_to(target)
    error, ran = refused_both_ways(lower, str(folder), monkeypatch)
    assert innermost(error).message == "symlinks not allowed: a.yaml"
    assert [link.message for link in error.chain()][:2] == [
        "failed to initialize external data",
        f"external directory validation failed: {folder}",
    ]
    assert ran.status == 2


def test_a_link_deep_in_the_tree_is_named_by_its_path(lower: Catalog, tmp_path: Path) -> None:
    """Also where the loader would never have read the file, and for the registry itself."""
    folder = data(tmp_path / "data", {"components/a/values.yaml": "a: 1\n"})
    (folder / "components/a/manifests").symlink_to("/etc")
    error = refusal(lambda: lower.overlay(str(folder)))
    assert innermost(error).message == "symlinks not allowed: components/a/manifests"
    other = write(tmp_path / "other", {"real.txt": registry()})
    (other / "registry.yaml").symlink_to("real.txt")
    error = refusal(lambda: lower.overlay(str(other)))
    assert innermost(error).message == "symlinks not allowed: registry.yaml"


def test_the_directory_itself_may_be_reached_through_links_and_parents(
    lower: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only entries inside are checked: `../x` and a linked root are fine."""
    folder = data(tmp_path / "data", {"overlays/x.yaml": overlay("x")})
    (tmp_path / "link").symlink_to(folder)
    assert "x" in lower.overlay(str(tmp_path / "link")).overlays
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    assert "x" in lower.overlay("../data").overlays


@pytest.mark.covers("R11-30")
def test_a_file_over_the_limit_is_refused(
    lower: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """11 MB is too large whatever the file is; the limit itself is allowed."""
    folder = data(tmp_path / "data")
    with (folder / "big.yaml").open("wb") as file:
        file.truncate(11_000_000)
    error, ran = refused_both_ways(lower, str(folder), monkeypatch)
    expected = "file too large (11000000 bytes, max 10485760): big.yaml"
    assert innermost(error).message == expected
    assert ran.status == 2
    (folder / "big.yaml").unlink()
    with (folder / "notes.txt").open("wb") as file:
        file.truncate(LIMIT)
    lower.overlay(str(folder))


def test_a_file_that_grew_after_the_check_is_refused_when_read(
    lower: Catalog, tmp_path: Path
) -> None:
    """The limit holds again at the moment of reading."""
    folder = data(tmp_path / "data", {"components/a/values.yaml": "a: 1\n"})
    found = lower.overlay(str(folder))
    with (folder / "components/a/values.yaml").open("wb") as file:
        file.truncate(LIMIT + 1)
    error = refusal(lambda: found.tree.read_text("components/a/values.yaml"))
    assert error.code == "INVALID_REQUEST"
    assert "file too large (10485761 bytes, max 10485760)" in error.message


@pytest.mark.parametrize(
    "swap", [lambda path: path.symlink_to("/etc/hostname"), lambda path: os.mkfifo(path)]
)
def test_a_file_swapped_after_the_check_is_not_followed(
    lower: Catalog, tmp_path: Path, swap: Callable[[Path], None]
) -> None:
    """What was a file when the tree was checked must be one when it is read."""
    folder = data(tmp_path / "data", {"components/a/values.yaml": "a: 1\n"})
    found = lower.overlay(str(folder))
    target = folder / "components/a/values.yaml"
    target.unlink()
    swap(target)
    assert refusal(lambda: found.tree.read_text("components/a/values.yaml")).code == (
        "INVALID_REQUEST"
    )


def test_a_file_removed_after_the_check_is_not_found(lower: Catalog, tmp_path: Path) -> None:
    """And the embedded file of the same path does not quietly take its place."""
    folder = data(tmp_path / "data", {"components/a/values.yaml": "a: 1\n"})
    found = lower.overlay(str(folder))
    (folder / "components/a/values.yaml").unlink()
    error = refusal(lambda: found.tree.values("components/a/values.yaml"))
    assert error.code == "NOT_FOUND"


def test_what_is_no_regular_file_is_refused(lower: Catalog, tmp_path: Path) -> None:
    """A pipe would hang the reader."""
    folder = data(tmp_path / "data")
    os.mkfifo(folder / "pipe.yaml")
    error = refusal(lambda: lower.overlay(str(folder)))
    assert innermost(error).message == "not a regular file: pipe.yaml"


def test_a_directory_that_is_called_registry_is_refused(lower: Catalog, tmp_path: Path) -> None:
    """It is there, and it is no registry."""
    (tmp_path / "data/registry.yaml").mkdir(parents=True)
    error = refusal(lambda: lower.overlay(str(tmp_path / "data")))
    assert error.code == "NOT_FOUND"
    assert error.message == "failed to parse registry.yaml"


def test_the_folder_of_git_is_no_data(lower: Catalog, tmp_path: Path) -> None:
    """A data directory is usually a repository; links in .git are Git's business."""
    folder = data(tmp_path / "data", {".git/config": "x"})
    (folder / ".git/link").symlink_to("config")
    assert lower.overlay(str(folder)).external == ("registry.yaml",)


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../b", "a/..", "./a", "a//b", "a/", "a\\b", "a\0b", "..", "."],
)
def test_paths_that_are_not_plain_and_relative_are_refused(lower: Catalog, path: str) -> None:
    """Every tree refuses them, whether or not such a file exists."""
    expected = f"path traversal or non-local path detected: {path!r}"
    for action in (
        lambda: check_relative(path),
        lambda: lower.tree.read_text(path),
        lambda: lower.tree.values(path),
    ):
        error = refusal(action)
        assert error.code == "INVALID_REQUEST"
        assert error.message == expected
    assert not lower.tree.exists(path)


def test_an_external_file_replaces_the_embedded_one_at_its_path(
    lower: Catalog, tmp_path: Path
) -> None:
    """Values, overlays and mixins alike; everything else stays, and labels tell which is which."""
    folder = data(
        tmp_path / "data",
        {
            "overlays/eks.yaml": overlay("eks", {"service": "eks"}, componentRefs=[chart("b")]),
            "overlays/new.yaml": overlay("new", {"service": "kind"}),
            "mixins/m.yaml": mixin("m", componentRefs=[chart("b")]),
            "components/a/values.yaml": "from: upper\n",
        },
    )
    found = lower.overlay(str(folder))
    assert found.tree.values("components/a/values.yaml") == {"from": "upper"}
    assert lower.tree.values("components/a/values.yaml") == {"from": "lower"}
    assert found.overlays["eks"]["origin"] == "external"
    assert lower.overlays["eks"]["origin"] == "embedded"
    assert found.mixins["m"]["spec"]["componentRefs"][0]["name"] == "b"
    assert sorted(found.overlays) == ["eks", "new"]
    assert found.tree.label("overlays/eks.yaml") == "external"
    assert found.tree.label("overlays/base.yaml") == "embedded"
    assert found.tree.label("registry.yaml") == "merged (embedded + external)"
    assert found.tree.place("overlays/eks.yaml") == str(folder / "overlays/eks.yaml")
    assert "overlays/eks.yaml" in found.external
    assert "overlays/base.yaml" in found.tree.paths()


def test_a_file_of_the_same_path_replaces_it_even_if_it_is_no_overlay(
    lower: Catalog, tmp_path: Path
) -> None:
    """Replacing is by path: what replaced an overlay by something else removed the overlay."""
    folder = data(tmp_path / "data", {"overlays/eks.yaml": "# withdrawn\n"})
    assert "eks" not in lower.overlay(str(folder)).overlays


def test_an_external_base_replaces_the_embedded_one(lower: Catalog, tmp_path: Path) -> None:
    """At the same path it is the root; a base that is gone is an error."""
    folder = data(tmp_path / "data", {"overlays/base.yaml": base(componentRefs=[chart("b")])})
    found = lower.overlay(str(folder))
    assert list(refs_of(resolved(found, service="eks"))) == ["b"]
    gone = data(tmp_path / "gone", {"overlays/base.yaml": overlay("bass")})
    error = refusal(lambda: lower.overlay(str(gone)))
    assert (error.code, error.message) == ("INTERNAL", "base.yaml not found")


@pytest.mark.parametrize("name", ["eks", "base"])
def test_an_external_overlay_of_a_taken_name_elsewhere_is_refused(
    lower: Catalog, tmp_path: Path, name: str
) -> None:
    """In the original one of the two wins by walk order; here the fix is named."""
    folder = data(tmp_path / "data", {"overlays/mine.yaml": overlay(name)})
    error = refusal(lambda: lower.overlay(str(folder)))
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith(f'overlay name "{name}" is declared twice: in ')
    assert str(folder / "overlays/mine.yaml") in error.message
    assert "same relative path" in error.hint


def test_an_external_mixin_of_a_taken_name_elsewhere_is_refused(
    lower: Catalog, tmp_path: Path
) -> None:
    """As for overlays."""
    folder = data(tmp_path / "data", {"mixins/mine.yaml": mixin("m")})
    error = refusal(lambda: lower.overlay(str(folder)))
    assert error.message == 'duplicate mixin name "m" in mixins/mine.yaml'
    assert "same relative path" in error.hint


@pytest.mark.covers("R11-41")
@pytest.mark.parametrize("nodes", [8, 1])
def test_an_external_overlay_with_a_node_count_is_refused(
    lower: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    """It would match every query; zero and an embedded count are harmless."""
    text = overlay("mine", {"nodes": nodes})
    folder = data(tmp_path / "data", {"overlays/mine.yaml": text})
    error, ran = refused_both_ways(lower, str(folder), monkeypatch)
    expected = (
        f'external overlay "mine" sets criteria.nodes={nodes} which is no longer used for overlay '
        f"selection (#1781): nodes is metadata-only and the overlay would silently match every "
        f"query; remove or zero criteria.nodes in your --data catalog"
    )
    assert error.message == expected
    assert error.code == "INVALID_REQUEST"
    assert "overlays/mine.yaml:" in error.where
    assert ran.status == 2
    zero = data(tmp_path / "zero", {"overlays/mine.yaml": overlay("mine", {"nodes": 0})})
    lower.overlay(str(zero))
    catalog(tmp_path / "alone", {"overlays/mine.yaml": text})


@pytest.mark.covers("R11-35")
def test_an_external_entry_replaces_the_embedded_one_wholesale(
    lower: Catalog, tmp_path: Path
) -> None:
    """No field is merged: a bare entry loses the namespace; what the overlay says stays."""
    folder = data(tmp_path / "data", {"registry.yaml": registry(entry("a"), entry("new"))})
    found = lower.overlay(str(folder))
    before, after = (refs_of(resolved(which, service="eks"))["a"] for which in (lower, found))
    assert before["namespace"] == "ns"
    assert "namespace" not in after
    assert {**after, "namespace": "ns"} == before
    assert found.registry.names() == ["a", "b", "new"]
    assert lower.registry.names() == ["a", "b"]


def test_the_merged_registry_is_checked_as_a_whole(lower: Catalog, tmp_path: Path) -> None:
    """An external alias may not take an embedded component's name."""
    folder = data(
        tmp_path / "data", {"registry.yaml": registry(entry("new", valueOverrideKeys=["a"]))}
    )
    error = refusal(lambda: lower.overlay(str(folder)))
    assert 'duplicate valueOverrideKey "a": used by both a and new' in error.message


def test_a_bad_external_file_leaks_nothing(lower: Catalog, tmp_path: Path) -> None:
    """The good overlay beside the bad one teaches nothing, and the lower catalogue is as it was."""
    folder = data(
        tmp_path / "data",
        {
            "overlays/a-good.yaml": overlay("mine", {"service": "mycloud"}),
            "overlays/b-bad.yaml": overlay("bad", constraints=[{"name": "K8s.x", "value": "1"}]),
        },
    )
    refusal(lambda: lower.overlay(str(folder)))
    assert sorted(lower.overlays) == ["eks"]
    assert lower.taught["service"] == {"eks": "embedded"}


def test_two_directories_can_be_stacked(lower: Catalog, tmp_path: Path) -> None:
    """The library may overlay twice; the files of both are external."""
    first = data(tmp_path / "1", {"overlays/x.yaml": overlay("x")})
    second = data(tmp_path / "2", {"overlays/y.yaml": overlay("y")})
    found = lower.overlay(str(first)).overlay(str(second))
    assert sorted(found.overlays) == ["eks", "x", "y"]
    assert found.external == ("overlays/x.yaml", "overlays/y.yaml", "registry.yaml")
    assert found.tree.label("overlays/x.yaml") == "external"


def test_the_command_line_resolves_from_the_merged_tree(
    lower: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--data brings overlay, registry entry and values; without it nothing of that is there."""
    monkeypatch.setattr(Catalog, "builtin", classmethod(lambda cls: lower))
    folder = data(
        tmp_path / "data",
        {
            "registry.yaml": registry(
                entry("mine", helm={"defaultRepository": "oci://r.example.com/c",
                                    "defaultChart": "repo/mine", "defaultVersion": "2.0.0"})
            ),
            "overlays/mine.yaml": overlay(
                "mine", {"service": "mycloud"},
                componentRefs=[{"name": "mine", "type": "helm",
                                "valuesFile": "components/mine/values.yaml"}],
            ),
            "components/mine/values.yaml": "answer: 42\n",
        },
    )  # fmt: skip
    argv = ("query", "--service", "mycloud", "--selector", "components.mine.values.answer")
    assert command(*argv, "--data", str(folder)).out == "42\n"
    assert refused(*argv).status == 2


def test_values_files_are_maps(lower: Catalog, tmp_path: Path) -> None:
    """An empty file is an empty map; a list is none."""
    folder = data(
        tmp_path / "data", {"components/a/values.yaml": "", "components/b/values.yaml": "- 1\n"}
    )
    found = lower.overlay(str(folder))
    assert found.tree.values("components/a/values.yaml") == {}
    error = refusal(lambda: found.tree.values("components/b/values.yaml"))
    assert error.message == "a values file must be a map"
    assert error.where.endswith("components/b/values.yaml")


def test_values_are_handed_out_fresh(lower: Catalog) -> None:
    """Changing what one caller got changes nothing for the next."""
    lower.tree.values("components/a/values.yaml")["from"] = "changed"
    assert lower.tree.values("components/a/values.yaml") == {"from": "lower"}


def test_the_built_in_tree_reads_what_is_parsed_and_what_is_not(tmp_path: Path) -> None:
    """Parsed values are copied out; other files come from the source folder, once asked for."""
    root = write(tmp_path, {"components/a/values.yaml": "x: file\n", "checks/a.yaml": "text\n",
                            "components/b/values.yaml": "z: 1\n"})  # fmt: skip
    asked: list[str] = []

    def values() -> dict[str, dict[str, Any]]:
        asked.append("values")
        return {"components/a/values.yaml": {"x": {"deep": [1]}}}

    def texts() -> dict[str, str]:
        asked.append("texts")
        return {"checks/a.yaml": "parsed\n"}

    files = ("checks/a.yaml", "components/a/values.yaml", "components/b/values.yaml", "gone.yaml")
    found = BuiltinTree(str(root), files, values, texts)
    assert asked == []
    first = found.values("components/a/values.yaml")
    first["x"]["deep"].append(2)
    assert found.values("components/a/values.yaml") == {"x": {"deep": [1]}}
    assert found.values("components/b/values.yaml") == {"z": 1}
    assert found.read_text("checks/a.yaml") == "parsed\n"
    assert asked == ["values", "texts"]
    assert found.paths() == list(files)
    assert found.label("checks/a.yaml") == "embedded"
    assert found.place("checks/a.yaml") == "recipes/checks/a.yaml"
    assert refusal(lambda: found.read_text("gone.yaml")).code == "INTERNAL"
    assert refusal(lambda: found.read_text("other.yaml")).code == "NOT_FOUND"
    assert refusal(lambda: found.values("other.yaml")).code == "NOT_FOUND"
    assert refusal(lambda: found.read_text("../checks/a.yaml")).code == "INVALID_REQUEST"


def test_a_layered_tree_lists_each_path_once(tmp_path: Path) -> None:
    """Both trees' files, sorted, the upper one's text winning."""
    lower = DirectoryTree(str(data(tmp_path / "l", {"b.yaml": "l", "a.yaml": "l"})))
    upper = DirectoryTree(str(data(tmp_path / "u", {"b.yaml": "u", "c.yaml": "u"})))
    found = LayeredTree(lower, upper)
    assert found.paths() == ["a.yaml", "b.yaml", "c.yaml", "registry.yaml"]
    assert [found.read_text(path) for path in found.paths()[:3]] == ["l", "u", "u"]
    assert found.exists("a.yaml")
    assert not found.exists("d.yaml")
    assert trees_module.MAX_FILE_BYTES == LIMIT
