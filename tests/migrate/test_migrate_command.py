"""`aicr migrate`: diffs, folders, atomic writes, and exit statuses."""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from tests.cli.program import EKS, aicr, left_over, tree
from tests.explain.test_explain_output import Terminal

from aicr.cli.console import Console
from aicr.cli.main import main

OLD = "kind: Snapshot\napiVersion: aicr.nvidia.com/v1alpha1 # old\nmeasurements: []\n"
NEW = "kind: Snapshot\napiVersion: aicr.run/v1 # old\nmeasurements: []\n"


def put(folder: Path, files: dict[str, str]) -> Path:
    """Write files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def test_a_diff_is_shown_and_nothing_written(tmp_path: Path) -> None:
    """Without --write the command judges: exit 8 if something would change (decision 46)."""
    path = put(tmp_path, {"s.yaml": OLD}) / "s.yaml"
    found = aicr("migrate", path)
    assert found.status == 8
    assert found.out == (
        f"--- {path}\n+++ {path}\n@@ -1,3 +1,3 @@\n kind: Snapshot\n"
        "-apiVersion: aicr.nvidia.com/v1alpha1 # old\n+apiVersion: aicr.run/v1 # old\n"
        " measurements: []\n"
    )
    assert found.lines == ["migrate: 1 document of aicr looked at, 1 file to rewrite"]
    assert path.read_text() == OLD


def test_a_clean_file_is_status_0(tmp_path: Path) -> None:
    """Nothing to do is success, in all three ways."""
    path = put(tmp_path, {"s.yaml": NEW}) / "s.yaml"
    for flags in ((), ("--check",), ("--write",)):
        found = aicr("migrate", path, *flags)
        assert (found.status, found.out) == (0, "")
        assert found.lines == ["migrate: 1 document of aicr looked at, nothing to rewrite"]
    assert path.read_text() == NEW


def test_writing_is_status_0_and_once_is_enough(tmp_path: Path) -> None:
    """--write does it, says what it did, and leaves nothing to do."""
    path = put(tmp_path, {"s.yaml": OLD}) / "s.yaml"
    found = aicr("migrate", path, "--write")
    assert found.status == 0
    assert found.out == (
        f'{path}:2:13: Snapshot: apiVersion "aicr.nvidia.com/v1alpha1" -> aicr.run/v1\n'
    )
    assert path.read_text() == NEW
    assert left_over(tmp_path, "s.yaml") == []
    assert aicr("migrate", path).status == 0


def test_check_names_the_headers_without_a_diff(tmp_path: Path) -> None:
    """One line for each header, for a pipeline."""
    path = put(tmp_path, {"s.yaml": OLD}) / "s.yaml"
    found = aicr("migrate", path, "--check")
    assert found.status == 8
    assert found.out.count("\n") == 1
    assert path.read_text() == OLD


def test_the_diff_can_be_applied_by_patch(tmp_path: Path) -> None:
    """Also where the file has no line end at its end, or those of Windows."""
    patch = shutil.which("patch")
    if patch is None:
        pytest.skip("needs the program patch")
    files = {"a.yaml": "kind: Snapshot", "b.yaml": OLD.replace("\n", "\r\n"), "c.yaml": OLD}
    put(tmp_path / "shown", files)
    put(tmp_path / "written", files)
    out = io.StringIO()
    here = Path.cwd()
    os.chdir(tmp_path / "shown")
    try:
        assert main(["migrate", "."], Console(out, io.StringIO())) == 8
    finally:
        os.chdir(here)
    done = subprocess.run(
        [patch, "-p0", "--binary"],
        cwd=tmp_path / "shown",
        input=out.getvalue().encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert aicr("migrate", tmp_path / "written", "--write").status == 0
    assert tree(tmp_path / "shown") == tree(tmp_path / "written")


def test_a_folder_is_searched_and_files_of_others_are_left_alone(tmp_path: Path) -> None:
    """YAML and JSON, sorted; not templates, hidden folders, links to folders, or other endings."""
    put(
        tmp_path,
        {
            "b/two.yml": OLD,
            "a/one.yaml": OLD,
            "a/three.json": '{"kind": "Snapshot"}\n',
            "values.yaml": "image: {tag: 24.10}\n",
            "chart/templates/x.yaml": "{{- if .Values.x }}\nkind: ConfigMap\n{{- end }}\n",
            ".git/x.yaml": OLD,
            "note.txt": OLD,
        },
    )
    (tmp_path / "link").symlink_to(tmp_path / "b")
    found = aicr("migrate", tmp_path, "--check")
    assert found.status == 8
    assert [line.partition(":")[0] for line in found.out.splitlines()] == [
        f"{tmp_path}/a/one.yaml",
        f"{tmp_path}/a/three.json",
        f"{tmp_path}/b/two.yml",
    ]
    assert found.lines == ["migrate: 3 documents of aicr looked at, 3 files to rewrite"]


def test_a_file_that_is_named_twice_is_migrated_once(tmp_path: Path) -> None:
    """By name, through its folder, and through a link."""
    put(tmp_path, {"s.yaml": OLD})
    (tmp_path / "link.yaml").symlink_to("s.yaml")
    found = aicr("migrate", tmp_path, tmp_path / "s.yaml", "--write")
    assert found.status == 0
    assert found.out.count("\n") == 1
    assert (tmp_path / "s.yaml").read_text() == NEW
    assert (tmp_path / "link.yaml").is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_a_file_keeps_its_mode_and_a_byte_order_mark(mode: int, tmp_path: Path) -> None:
    """What is rewritten is the header alone, also outside the text."""
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + OLD.encode())
    path.chmod(mode)
    assert aicr("migrate", path, "--write").status == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + NEW.encode()
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_nothing_is_written_when_one_file_does_not_parse(tmp_path: Path) -> None:
    """All files are read before the first is written."""
    put(tmp_path, {"a.yaml": OLD, "b.yaml": "apiVersion: aicr.run/v1\nkind: [\n"})
    found = aicr("migrate", tmp_path, "--write")
    found.refused(2, f"{tmp_path}/b.yaml:3:1")
    assert (tmp_path / "a.yaml").read_text() == OLD


def test_what_is_left_to_a_person_keeps_the_status_at_8(tmp_path: Path) -> None:
    """The rest is written all the same, and the line says what to write."""
    put(
        tmp_path,
        {"a.yaml": OLD, "b.yaml": "kind: AICRConfig\napiVersion: aicr.run/v1alpha2\nspec: {}\n"},
    )
    found = aicr("migrate", tmp_path, "--write")
    assert found.status == 8
    assert (tmp_path / "a.yaml").read_text() == NEW
    assert f"  where: {tmp_path}/b.yaml:2:13" in found.lines
    assert "write apiVersion: aicr.run/v1beta1, then let" in found.err
    assert found.lines[-1].endswith("1 file rewritten, 1 left to you")


def test_old_component_names_are_one_note_each(tmp_path: Path) -> None:
    """Many places, one line; the status does not depend on it."""
    body = "kind: RecipeMixin\napiVersion: aicr.run/v1beta1\nspec:\n  componentRefs:\n"
    text = body + "    - name: skyhook-operator\n"
    put(tmp_path, {f"{n}.yaml": text for n in range(5)})
    found = aicr("migrate", tmp_path)
    assert (found.status, found.out) == (0, "")
    (note,) = [line for line in found.lines if line.startswith("note: ")]
    assert 'component "skyhook-operator" is called "nodewright-operator" today' in note
    assert note.endswith(f"{tmp_path}/2.yaml:5:13 and 2 more")


def test_files_of_a_bundle_are_left_alone(tmp_path: Path) -> None:
    """A bundle whose files change no longer verifies, so it is made again instead."""
    recipe, bundle = tmp_path / "recipe.yaml", tmp_path / "bundle"
    assert aicr("recipe", *EKS, "-o", recipe).status == 0
    assert aicr("bundle", "-r", recipe, "-o", bundle).status == 0
    before = tree(bundle)
    assert aicr("migrate", bundle, "--write").status == 0
    inner = bundle / "recipe.yaml"
    inner.write_text(inner.read_text().replace("aicr.run/v1", "aicr.nvidia.com/v1alpha1"))
    for path in (bundle, inner):
        found = aicr("migrate", path, "--write")
        assert (found.status, found.out) == (8, "")
        assert f"{inner} is listed in " in found.err
        assert "make the bundle again from a migrated recipe" in found.err
    inner.write_bytes(before["recipe.yaml"][1] or b"")
    assert tree(bundle) == before


def test_a_data_directory_of_v0_11_1_reads_without_a_notice_afterwards(tmp_path: Path) -> None:
    """What migrate writes is what the loader wants (decision 1)."""
    header = "apiVersion: aicr.nvidia.com/v1alpha1\n"
    put(
        tmp_path,
        {
            "registry.yaml": f"kind: ComponentRegistry\n{header}components: []\n",
            "overlays/mine.yaml": f"kind: RecipeMetadata\n{header}metadata: {{name: mine}}\n"
            "spec: {criteria: {service: mycloud}}\n",
        },
    )
    words = ("recipe", "--data", tmp_path, "--service", "mycloud")
    before = aicr(*words)
    assert "aicr.nvidia.com/v1alpha1" in before.err
    assert aicr("migrate", tmp_path, "--write").status == 0
    after = aicr(*words)
    assert (after.status, after.out) == (0, before.out)
    assert "warning" not in after.err


def test_colour_is_for_terminals_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words are the same."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    path = put(tmp_path, {"s.yaml": OLD}) / "s.yaml"
    plain, terminal = io.StringIO(), Terminal()
    assert main(["migrate", str(path)], Console(plain, io.StringIO())) == 8
    assert main(["migrate", str(path)], Console(terminal, io.StringIO())) == 8
    assert "\033[31m-apiVersion" in terminal.getvalue()
    assert re.sub(r"\033\[\d+m", "", terminal.getvalue()) == plain.getvalue()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 2, "name the files or folders to migrate"),
        (("s.yaml", "--check", "--write"), 2, "--check and --write exclude each other"),
        (("absent.yaml",), 3, "file not found: absent.yaml"),
        (("-",), 2, "standard input cannot be rewritten"),
        (("other.yaml",), 2, "other.yaml holds no document of aicr"),
        (("s.yaml", "--wirte"), 2, "did you mean --write?"),
        (("cm://a/b",), 2, "ConfigMaps are not read"),
    ],
)
def test_wrong_use_is_refused(
    words: tuple[str, ...],
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Usage errors change nothing."""
    put(tmp_path, {"s.yaml": OLD, "other.yaml": "kind: ConfigMap\napiVersion: v1\n"})
    monkeypatch.chdir(tmp_path)
    aicr("migrate", *words).refused(status, said)
    assert (tmp_path / "s.yaml").read_text() == OLD


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_an_error(tmp_path: Path) -> None:
    """The file is as it was."""
    path = put(tmp_path, {"s.yaml": OLD}) / "s.yaml"
    tmp_path.chmod(0o500)
    try:
        found = aicr("migrate", path, "--write")
    finally:
        tmp_path.chmod(0o700)
    assert found.status == 2
    assert path.read_text() == OLD
