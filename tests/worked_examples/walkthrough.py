"""Reads a page of docs/contributing as a list of steps, and does them in a folder as a reader would.

Three kinds of fenced block are steps; a block of any other kind is refused, so that nothing on a page is
merely claimed:

- ``yaml title=PATH``: the file is written. The lines above the block must name the path, because the
  title is not shown by every viewer.
- ``diff title=PATH``: the file is changed, in several places when ``@@`` stands between them; ``diff
  title=PATH tried``: it is changed until the next console block is over.
- ``console``: lines after ``$`` are run, and what they print must be the lines below. A line ``…`` stands
  for any lines or none, a line that ends in ``…`` for one that starts with the words before it. A command
  that fails must be followed by ``$ echo $?``.

``python -m tests.worked_examples.walkthrough`` replaces the outputs that are no longer right; read the
difference before it is committed.
"""

from __future__ import annotations

import glob
import io
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from aicr.cli.console import Console
from aicr.cli.main import main as aicr

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "contributing").glob("*.md"))
FENCE = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
ELLIPSIS = "…"
#: What a page may change of a checkout.
CHECKOUT = ("recipes", "docs/catalogue")
#: Programs that may stand beside ``aicr``: they look at files and move them about.
BESIDE = frozenset({"cat", "cp", "grep", "ls", "mkdir", "rm"})


@dataclass(frozen=True)
class Written:
    """A file of the page, whole."""

    path: str
    text: str
    line: int


@dataclass(frozen=True)
class Changed:
    """A change of a file: for each hunk, lines that must be there once, and what takes their place."""

    path: str
    hunks: list[tuple[str, str]]
    tried: bool
    line: int


@dataclass(frozen=True)
class Command:
    """One command with the output that the page shows; *start* and *end* are its offsets."""

    text: str
    shown: str
    line: int
    start: int
    end: int


@dataclass(frozen=True)
class Session:
    """A console block."""

    commands: list[Command]
    line: int


Step = Written | Changed | Session


@dataclass
class Run:
    """What doing a page showed: each command with what it printed, and the files at the end."""

    printed: list[tuple[Command, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def steps(text: str) -> list[Step]:
    """The steps of a page, in order.

    Raises:
        ValueError: for a block that would not be executed, with its line.
    """
    found: list[Step] = []
    for block in FENCE.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        kind, *words = block["info"].split()
        titles = [word.removeprefix("title=") for word in words if word.startswith("title=")]
        rest = [word for word in words if not word.startswith("title=")]
        if kind == "console" and not words:
            found.append(
                Session(list(_commands(text, block.start("body"), block.end("body"))), line)
            )
            continue
        if kind not in ("yaml", "diff") or len(titles) != 1:
            raise ValueError(f"line {line}: a block {block['info']!r} is no step")
        path = titles[0]
        above = text[: block.start()].rstrip().rpartition("\n\n")[2]
        if f"`{path}`" not in above:
            raise ValueError(f"line {line}: the words above the block do not name `{path}`")
        if kind == "yaml" and not rest:
            found.append(Written(path, block["body"], line))
        elif kind == "diff" and rest in ([], ["tried"]):
            hunks = [_sides(hunk, line) for hunk in block["body"].split("@@\n")]
            found.append(Changed(path, hunks, bool(rest), line))
        else:
            raise ValueError(f"line {line}: {' '.join(rest)!r} means nothing here")
    return found


def _sides(body: str, line: int) -> tuple[str, str]:
    """The lines before and after a change."""
    old, new = "", ""
    for row in body.splitlines():
        sign, content = row[:1], row[1:] + "\n"
        if sign not in ("", " ", "-", "+"):
            raise ValueError(f"line {line}: a line of a diff starts with -, + or a blank")
        old += "" if sign == "+" else content
        new += "" if sign == "-" else content
    return old, new


def _commands(text: str, start: int, end: int) -> Iterator[Command]:
    """The commands of a console block; a backslash at the end of a line joins the next one to it."""
    prompts = [
        match.start() for match in re.compile(r"^\$ ", re.MULTILINE).finditer(text, start, end)
    ]
    if not prompts or prompts[0] != start:
        line = text.count("\n", 0, start)
        raise ValueError(f"line {line}: a console block starts with a command")
    for here, following in zip(prompts, [*prompts[1:], end], strict=True):
        whole = text[here:following]
        typed = re.match(r"\$ (?:.*\\\n)*.*\n", whole)
        assert typed is not None
        yield Command(
            text=typed[0][2:].replace("\\\n", " ").strip(),
            shown=whole[typed.end() :],
            line=text.count("\n", 0, here) + 1,
            start=here + typed.end(),
            end=following,
        )


def matches(shown: str, printed: str) -> bool:
    """Whether what a page shows is what was printed, apart from what it leaves out with ``…``."""
    pattern = ""
    for line in shown.splitlines():
        if line.strip() == ELLIPSIS:
            pattern += r"(?:[^\n]*\n)*?"
        elif line.endswith(ELLIPSIS):
            pattern += re.escape(line.removesuffix(ELLIPSIS)) + r"[^\n]*\n"
        else:
            pattern += re.escape(line) + r"\n"
    return re.fullmatch(pattern, printed) is not None


def perform(page: list[Step], folder: Path) -> Run:
    """Do all steps in *folder* and collect what is not as the page says."""
    run = Run()
    if any(isinstance(step, Changed) and step.path.startswith("recipes/") for step in page) or any(
        isinstance(step, Session) and any(" recipes" in command.text for command in step.commands)
        for step in page
    ):
        for part in CHECKOUT:
            shutil.copytree(ROOT / part, folder / part)
    undo: list[tuple[Path, str]] = []
    for step in page:
        if isinstance(step, Session):
            _session(step, folder, run)
            for path, text in reversed(undo):
                path.write_text(text, encoding="utf-8")
            undo.clear()
            continue
        path = folder / step.path
        if isinstance(step, Written):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, encoding="utf-8")
            continue
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        after = "\n" + before
        for old, new in step.hunks:
            if after.count("\n" + old) != 1:
                run.problems.append(f"line {step.line}: not exactly once in {step.path}:\n{old}")
            after = after.replace("\n" + old, "\n" + new)
        path.write_text(after[1:], encoding="utf-8")
        if step.tried:
            undo.append((path, before))
    if undo:
        run.problems.append("the page ends with a change that is only tried")
    return run


def _session(session: Session, folder: Path, run: Run) -> None:
    status = 0
    for index, command in enumerate(session.commands):
        if command.text == "echo $?":
            printed, following = f"{status}\n", 0
        else:
            printed, following = run_command(command.text, folder)
        run.printed.append((command, printed))
        if not matches(command.shown, printed):
            run.problems.append(f"line {command.line}: {command.text} printed:\n{printed}")
        after = session.commands[index + 1].text if index + 1 < len(session.commands) else ""
        if following and after != "echo $?":
            run.problems.append(f"line {command.line}: {command.text} ended with {following}")
        status = following


def run_command(text: str, folder: Path) -> tuple[str, int]:
    """What a command prints, stdout and stderr as a terminal shows them, and its exit status."""
    words = shlex.split(text)
    if words[0] == "aicr":
        shown = io.StringIO()
        with chdir(folder):
            status = aicr(words[1:], Console(shown, shown))
        return shown.getvalue(), status
    if words[0] not in BESIDE:
        raise ValueError(f"{words[0]} is not one of: aicr, {', '.join(sorted(BESIDE))}")
    expanded = [
        found for word in words for found in sorted(glob.glob(word, root_dir=folder)) or [word]
    ]
    done = subprocess.run(
        expanded,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout, done.returncode


def renewed(text: str) -> str:
    """A page with the outputs that are no longer right replaced by what is printed now."""
    with tempfile.TemporaryDirectory() as folder:
        run = perform(steps(text), Path(folder))
    for command, printed in reversed(run.printed):
        if not matches(command.shown, printed):
            text = text[: command.start] + printed + text[command.end :]
    return text


def main() -> None:
    """Renew every page."""
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"{page.name}: renewed")


if __name__ == "__main__":
    main()
