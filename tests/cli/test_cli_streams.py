"""What goes where: machine output to stdout, talk to stderr, colour only where a person looks."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import stat
from pathlib import Path

import pytest
import yaml
from tests.cli.program import EKS, aicr, command, environment, left_over, spawn, tree

from aicr.cli.console import Console
from aicr.cli.main import main


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


@pytest.mark.parametrize("chosen", ["yaml", "json", "table"])
def test_stdout_holds_the_document_and_nothing_else(chosen: str) -> None:
    """A script can parse stdout; the summary is on stderr."""
    found = aicr("recipe", *EKS, "--format", chosen)
    assert found.status == 0
    assert re.fullmatch(r"recipe: \d+ components from \d+ overlays\n", found.err)
    if chosen == "table":
        assert found.out.startswith("FIELD")
    else:
        document = json.loads(found.out) if chosen == "json" else yaml.safe_load(found.out)
        assert document["kind"] == "RecipeResult"


@pytest.mark.covers("R11-78")
def test_json_escapes_what_html_would_read() -> None:
    """Row 78: `>` is written as an escape, as the original did."""
    found = aicr("recipe", *EKS, "--format", "json")
    assert "\\u003e= " in found.out
    assert ">" not in found.out


@pytest.mark.parametrize("setting", [None, ""])
def test_errors_are_coloured_on_a_terminal(
    setting: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty NO_COLOR is as good as none (no-color.org)."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if setting is not None:
        monkeypatch.setenv("NO_COLOR", setting)
    err = Terminal()
    assert main(["bogus"], Console(io.StringIO(), err)) == 2
    assert "\033[31merror:\033[0m" in err.getvalue()


@pytest.mark.parametrize(
    ("name", "value"), [("NO_COLOR", "1"), ("NO_COLOR", "0"), ("TERM", "dumb")]
)
def test_no_color_and_dumb_terminals_get_plain_text(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any value of NO_COLOR switches colour off, even on a terminal."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)
    out, err = Terminal(), Terminal()
    assert main(["bogus"], Console(out, err)) == 2
    assert main(["recipe", "--help"], Console(out, err)) == 0
    assert "\033" not in err.getvalue() + out.getvalue()


def test_output_that_is_no_terminal_is_never_coloured() -> None:
    """A log file gets plain text."""
    found = aicr("recipe", "--service", "nope")
    assert "\033" not in found.err


def test_a_value_cannot_write_control_characters_to_the_terminal(tmp_path: Path) -> None:
    """A file from somebody else cannot repaint the screen through an error message."""
    path = tmp_path / "recipe.yaml"
    path.write_text('kind: "\\e[2Jevil\\a"\n')
    found = aicr("bundle", "-r", path, "-o", tmp_path / "out")
    found.refused(2, "\\x1b[2Jevil\\x07")
    assert "\033" not in found.err


def test_a_huge_value_does_not_flood_the_terminal(tmp_path: Path) -> None:
    """A message shows the beginning of a value that is as long as a file."""
    path = tmp_path / "recipe.yaml"
    path.write_text(f"kind: {'x' * 1_000_000}\n")
    found = aicr("bundle", "-r", path, "-o", tmp_path / "out")
    found.refused(2, "more characters)")
    assert len(found.err) < 10_000


@pytest.mark.parametrize("target", ["-", "", "/dev/stdout"])
def test_three_names_mean_stdout(target: str) -> None:
    """`-o -` prints; /dev/stdout does too, without replacing what it is redirected to."""
    assert aicr("recipe", *EKS, "-o", target).out == aicr("recipe", *EKS).out


def test_a_file_is_written_whole_with_a_fixed_mode(tmp_path: Path) -> None:
    """Decision 44: 0644, nothing beside it, nothing on stdout."""
    target = tmp_path / "recipe.yaml"
    found = aicr("recipe", *EKS, "-o", target)
    assert (found.status, found.out) == (0, "")
    assert found.err.endswith(f"written to {target}\n")
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    assert target.read_text() == aicr("recipe", *EKS).out
    assert left_over(tmp_path, "recipe.yaml") == []


def test_a_link_goes_on_being_one(tmp_path: Path) -> None:
    """Writing through a link writes to the file it points to."""
    real = tmp_path / "real.yaml"
    real.write_text("old")
    link = tmp_path / "link.yaml"
    link.symlink_to(real)
    assert aicr("recipe", *EKS, "-o", link).status == 0
    assert link.is_symlink()
    assert real.read_text().startswith("kind: RecipeResult")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nope/recipe.yaml", ["does not exist", "mkdir -p "]),
        ("n" * 300, [os.strerror(errno.ENAMETOOLONG), "choose another name"]),
        ("old.yaml/recipe.yaml", ["does not exist", "a file is in the way"]),
        (".", [". is a folder", "name a file in it"]),
        (" ", ["the name of the output file is blank"]),
        ("cm://ns", ["does not name a ConfigMap", "cm://NAMESPACE/NAME"]),
    ],
)
def test_a_place_that_cannot_be_written_is_refused(
    target: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next step is named, and what is there stays."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.yaml").write_text("old")
    before = tree(tmp_path)
    aicr("recipe", *EKS, "-o", target).refused(2, *words, "next: ")
    assert tree(tmp_path) == before


def test_a_link_that_leads_to_itself_is_refused_and_stays(tmp_path: Path) -> None:
    """There is no file behind it that could be written."""
    link = tmp_path / "round"
    link.symlink_to("round")
    found = aicr("recipe", *EKS, "-o", link)
    found.refused(2, "is a link that leads to itself", "next: remove the link")
    assert link.is_symlink()
    assert left_over(tmp_path, "round") == []


def test_a_refused_run_leaves_the_older_file(tmp_path: Path) -> None:
    """An error before or while writing does not cost what was there."""
    target = tmp_path / "recipe.yaml"
    target.write_text("old")
    aicr("recipe", "--service", "nope", "-o", target).refused(2)
    assert target.read_text() == "old"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe\x00", ["is not UTF-8 text", "byte 0xff"]),
        (b"kind: \xe9\n", ["is not UTF-8 text", "in.yaml:1:7"]),
        (b"kind: a\x00b\n", ["U+0000", "in.yaml:1:8"]),
    ],
)
@pytest.mark.parametrize("flag", ["--criteria", "--snapshot", "--recipe"])
def test_a_file_that_is_not_text_is_refused_with_the_place(
    content: bytes, words: list[str], flag: str, tmp_path: Path
) -> None:
    """Line and column of the first byte that cannot be, for every kind of input."""
    path = tmp_path / "in.yaml"
    path.write_bytes(content)
    argv = ("bundle", "-o", tmp_path / "out") if flag == "--recipe" else ("recipe",)
    aicr(*argv, flag, path).refused(2, *words)


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    """Editors of other systems put one in front; it is not part of the text."""
    path = tmp_path / "in.yaml"
    body = "kind: RecipeCriteria\napiVersion: aicr.run/v1\nspec: {service: eks}\n"
    path.write_bytes(b"\xef\xbb\xbf" + body.encode())
    assert aicr("recipe", "--criteria", path, *EKS[2:]).status == 0


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["bogus"], ["unknown command 'bogus'", "commands: snapshot, recipe, "]),
        (["recipes"], ["unknown command 'recipes'", "did you mean recipe?"]),
        (["--service", "eks"], ["unknown command '--service'", "name a command first"]),
        (["recipe", "--servic", "eks"], ["unknown flag --servic", "did you mean --service?"]),
        (["recipe", "--servicing=eks"], ["unknown flag --servicing", "did you mean --service?"]),
        (["recipe", "eks"], ["unexpected argument 'eks'", "takes flags only"]),
        (["bundle", "r.yaml"], ["takes flags only; did you mean --recipe r.yaml?"]),
        (["validate", "r.yaml"], ["takes flags only; did you mean --recipe r.yaml?"]),
        (["diff", "a", "b", "c"], ["unexpected argument 'c'", "next: leave it out, or put quotes"]),
        (
            ["mirror", "rewrite"],
            ["flag --recipe is required", "-r recipe.yaml --mirror mirror.local"],
        ),
        (["recipe", "--criteria-strict=yes"], ["--criteria-strict takes no value"]),
        (["recipe", "--nodes", "9" * 30], ["invalid nodes value: more than 9 digits"]),
        (["recipe", "--nodes", "١"], ["invalid nodes value: ١"]),
        (["recipe", "--os", "\udcff"], ["word 3 of the command line is not UTF-8 text"]),
        (["completion", "elvish"], ["no completion script for shell 'elvish'", "shells: bash"]),
        (["completion", "bsh"], ["did you mean bash?"]),
        (["completion"], ["name the shell", "aicr completion bash"]),
        (["version", "now"], ["unexpected argument 'now'"]),
    ],
)
def test_a_command_line_that_cannot_be_read_is_answered_with_a_way_on(
    argv: list[str], words: list[str]
) -> None:
    """Usage errors exit 2 (decision 46) and name the nearest command or flag."""
    aicr(*argv).refused(2, *words, "next: ")


@pytest.mark.parametrize("form", [["-service", "eks"], ["--service=eks"], ["--service", "eks"]])
def test_a_long_flag_may_be_written_in_three_ways(form: list[str]) -> None:
    """One dash works, as the original's flag library allowed."""
    assert aicr("recipe", *form, *EKS[2:]).status == 0


def test_the_output_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    """Field case F10: an ASCII locale changes no byte of what is printed."""
    ascii_only = environment(LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0", COLUMNS="80")
    plain = environment(COLUMNS="80")
    for argv in (["recipe", "--help"], ["recipe", *EKS]):
        assert spawn(*argv, env=ascii_only) == spawn(*argv, env=plain)


def test_the_module_and_the_console_script_are_the_same_program() -> None:
    """`python -m aicr` is there for environments without the script on the path."""
    assert command("version")[1:3] == ["-m", "aicr"]
    found = spawn("version")
    assert (found.status, found.err) == (0, "")
    assert found.out == aicr("version").out == aicr("--version").out == aicr("-v").out
    assert found.out.startswith("aicr ")
    assert os.linesep not in found.out[:-1]
