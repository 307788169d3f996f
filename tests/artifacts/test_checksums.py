from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from aicr.artifacts import checksums
from aicr.errors import AicrError

FILES = {
    "recipe.yaml": b"kind: RecipeResult\n",
    "001-a/values.yaml": b"{}\n",
    "001-a/templates/x.yaml": b"a: 1\n",
    "Z.txt": b"",
}


def written(root: Path, files: dict[str, bytes] = FILES) -> Path:
    """A folder with these files and their checksums.txt."""
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    (root / "checksums.txt").write_bytes(checksums.checksums_txt(files))
    return root


def test_checksums_lists_each_file_with_two_blanks_sorted_by_code_point() -> None:
    """A line is 64 hex digits, two blanks and the path, in code-point order (7.1)."""
    lines = checksums.checksums_txt(FILES).decode().splitlines(keepends=True)
    assert [line[66:] for line in lines] == [
        "001-a/templates/x.yaml\n",
        "001-a/values.yaml\n",
        "Z.txt\n",
        "recipe.yaml\n",
    ]
    assert lines[1] == f"{hashlib.sha256(b'{}' + bytes([10])).hexdigest()}  001-a/values.yaml\n"


def test_checksums_leave_out_themselves_and_the_two_attestations() -> None:
    """What signs the list, and the list itself, cannot be in it; other files are (7.1)."""
    files = dict.fromkeys([*checksums.EXCLUDED, "attestation/other"], b"x")
    assert checksums.checksums_txt(files).decode()[66:] == "attestation/other\n"


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a\\b", "a\nb", "C:/x"]
)
def test_checksums_refuse_a_path_that_is_not_plain(path: str) -> None:
    """A path that leads out of the tree, or has two spellings, is never listed."""
    with pytest.raises(AicrError, match="cannot be listed"):
        checksums.checksums_txt({path: b""})


@pytest.mark.covers("B10-76")
def test_an_untouched_tree_has_no_problems(tmp_path: Path) -> None:
    """A tree verifies as it was written."""
    assert checksums.verify_tree(str(written(tmp_path))) == []


def test_the_excluded_attestation_files_may_be_there(tmp_path: Path) -> None:
    """Attestations come after the list and are no extra files (7.1)."""
    written(tmp_path)
    (tmp_path / "attestation").mkdir()
    (tmp_path / "attestation" / "bundle-attestation.sigstore.json").write_text("{}")
    assert checksums.verify_tree(str(tmp_path)) == []


def edit(root: Path) -> None:
    """F12 a."""
    (root / "recipe.yaml").write_text("kind: Other\n")


def extra(root: Path) -> None:
    """F12 b."""
    (root / "001-a/templates/y.yaml").write_text("b: 2\n")


def delete(root: Path) -> None:
    """F12 c."""
    (root / "001-a/values.yaml").unlink()


def link(root: Path) -> None:
    """F12 d: a link to the same content."""
    content = root.parent / "same"
    content.write_bytes((root / "recipe.yaml").read_bytes())
    (root / "recipe.yaml").unlink()
    (root / "recipe.yaml").symlink_to(content)


def escape(root: Path) -> None:
    """F12 e."""
    (root.parent / "outside").write_text("x")
    digest = hashlib.sha256(b"x").hexdigest()
    with (root / "checksums.txt").open("a") as stream:
        stream.write(f"{digest}  ../outside\n")


def empty_folder(root: Path) -> None:
    """An empty folder is not part of the bundle."""
    (root / "002-b").mkdir()


def linked_folder(root: Path) -> None:
    """A link to a folder."""
    (root / "002-b").symlink_to(root / "001-a")


def dangling(root: Path) -> None:
    """A link to nowhere that nobody lists."""
    (root / "nowhere").symlink_to("gone")


def pipe(root: Path) -> None:
    """A special file."""
    os.mkfifo(root / "pipe")


def listed_pipe(root: Path) -> None:
    """A listed file replaced by a pipe; reading it would wait for ever."""
    (root / "recipe.yaml").unlink()
    os.mkfifo(root / "recipe.yaml")


def folder_for_file(root: Path) -> None:
    """A listed file that is a folder now."""
    (root / "Z.txt").unlink()
    (root / "Z.txt").mkdir()


def no_list(root: Path) -> None:
    """No checksums.txt."""
    (root / "checksums.txt").unlink()


def linked_list(root: Path) -> None:
    """checksums.txt is a link."""
    (root / "checksums.txt").rename(root.parent / "list")
    (root / "checksums.txt").symlink_to(root.parent / "list")


def cut_line(root: Path) -> None:
    """The list ends in the middle of a line."""
    data = (root / "checksums.txt").read_bytes()
    (root / "checksums.txt").write_bytes(data[:-4])


def twice(root: Path) -> None:
    """One path, two lines."""
    data = (root / "checksums.txt").read_bytes()
    (root / "checksums.txt").write_bytes(data + data.splitlines(keepends=True)[0])


def not_text(root: Path) -> None:
    """The list is no text."""
    (root / "checksums.txt").write_bytes(b"\xff\xfe")


def itself(root: Path) -> None:
    """The list lists itself."""
    with (root / "checksums.txt").open("a") as stream:
        stream.write(f"{'0' * 64}  checksums.txt\n")


@pytest.mark.covers("B10-75", "F12")
@pytest.mark.parametrize(
    ("tamper", "problem"),
    [
        (edit, "recipe.yaml: content differs from its checksum"),
        (extra, "001-a/templates/y.yaml: file is not listed in checksums.txt"),
        (delete, "001-a/values.yaml: listed file is missing"),
        (link, "recipe.yaml: symbolic link"),
        (escape, "checksums.txt:5: path '../outside' leads out of the tree"),
        (empty_folder, "002-b: folder is empty"),
        (linked_folder, "002-b: symbolic link"),
        (dangling, "nowhere: symbolic link"),
        (pipe, "pipe: special file"),
        (listed_pipe, "recipe.yaml: special file"),
        (folder_for_file, "Z.txt: folder is empty"),
        (no_list, "checksums.txt: is missing"),
        (linked_list, "checksums.txt: symbolic link"),
        (cut_line, "checksums.txt: the last line is cut off (no newline at its end)"),
        (twice, "checksums.txt:5: path '001-a/templates/x.yaml' is listed twice"),
        (not_text, "checksums.txt: is not UTF-8 text"),
        (itself, "checksums.txt:5: path 'checksums.txt' cannot be covered by the list itself"),
    ],
)
def test_each_kind_of_tampering_is_named(tmp_path: Path, tamper: object, problem: str) -> None:
    """Verification is closed-world and says what differs (bundler spec 7.2)."""
    root = tmp_path / "bundle"
    root.mkdir()
    written(root)
    assert callable(tamper)
    tamper(root)
    assert problem in checksums.verify_tree(str(root))


@pytest.mark.parametrize("line", ["", "abc  recipe.yaml", "# comment", "x" * 64 + "  recipe.yaml"])
def test_an_unparsable_line_is_a_problem(tmp_path: Path, line: str) -> None:
    """A line that is not a checksum is never skipped (7.2)."""
    path = written(tmp_path) / "checksums.txt"
    path.write_text(path.read_text() + line + "\n")
    assert any("unparsable line" in problem for problem in checksums.verify_tree(str(tmp_path)))


@pytest.mark.covers("F12")
def test_crlf_and_another_order_of_lines_do_not_matter(tmp_path: Path) -> None:
    """A checkout that turned newlines of the list into CRLF still verifies (F12 f, 7.2)."""
    path = written(tmp_path) / "checksums.txt"
    lines = path.read_text().splitlines()
    path.write_bytes("".join(f"{line}\r\n" for line in reversed(lines)).encode())
    assert checksums.verify_tree(str(tmp_path)) == []


@pytest.mark.covers("F12")
def test_a_bundle_below_a_linked_folder_verifies(tmp_path: Path) -> None:
    """Links are followed on the way to the bundle, not inside it (F12 g)."""
    (tmp_path / "real" / "bundle").mkdir(parents=True)
    written(tmp_path / "real" / "bundle")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    assert checksums.verify_tree(str(tmp_path / "linked" / "bundle")) == []


def test_a_folder_that_cannot_be_verified_is_an_error(tmp_path: Path) -> None:
    """No folder and no problems must not look alike."""
    with pytest.raises(AicrError) as absent:
        checksums.verify_tree(str(tmp_path / "gone"))
    assert absent.value.code == "NOT_FOUND"
    (tmp_path / "file").write_text("")
    with pytest.raises(AicrError) as no_folder:
        checksums.verify_tree(str(tmp_path / "file"))
    assert no_folder.value.code == "INVALID_REQUEST"


def test_an_unreadable_file_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be read cannot be verified (7.2)."""
    written(tmp_path)
    opened = checksums._open_plain

    def refuse(path: str, flags: int) -> int:
        if path.endswith("recipe.yaml"):
            raise PermissionError(13, "Permission denied")
        return opened(path, flags)

    monkeypatch.setattr(checksums, "_open_plain", refuse)
    assert checksums.verify_tree(str(tmp_path)) == [
        "recipe.yaml: cannot be read: Permission denied"
    ]
