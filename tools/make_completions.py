"""Write the completion scripts that ``aicr completion`` prints, from the command parsers (shtab).

The parsers of the program take any word and answer a wrong one with the nearest, so they list no
choices; what a shell may offer is added here.

Usage: ``python tools/make_completions.py [--check]``
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Final

import shtab

from aicr.bundle.deployers import names
from aicr.catalog.criteria_values import FIELDS, VALUES
from aicr.cli import diff, explain, query, recipe_list, upgrade_check
from aicr.cli.completion import SHELLS
from aicr.cli.formats import FORMATS
from aicr.cli.main import COMMANDS, SUBCOMMANDS
from aicr.recipe.graph import FORMS

FOLDER: Final = Path(__file__).parent.parent / "src" / "aicr" / "cli" / "completions"

#: Flags whose value is a file or a folder, by command and destination; "" is any command.
PATHS: Final[dict[tuple[str, str], object]] = {
    ("", "recipe"): shtab.FILE,
    ("", "criteria"): shtab.FILE,
    ("", "snapshot"): shtab.FILE,
    ("", "config"): shtab.FILE,
    ("", "data"): shtab.DIRECTORY,
    ("", "paths"): shtab.FILE,
    ("", "before"): shtab.FILE,
    ("", "after"): shtab.FILE,
    ("", "baseline"): shtab.FILE,
    ("", "target"): shtab.FILE,
    ("diff", "output"): shtab.FILE,
    ("upgrade-check", "output"): shtab.FILE,
    ("recipe", "output"): shtab.FILE,
    ("bundle", "output"): shtab.DIRECTORY,
}


def choices(command: str) -> dict[str, tuple[str, ...]]:
    """Words that a flag or argument takes, by destination."""
    found = {field: tuple(VALUES[field]) for field in FIELDS}
    own = {
        "diff": diff.FORMATS,
        "query": query.FORMATS,
        "upgrade-check": upgrade_check.FORMATS,
        "explain": explain.FORMATS,
        "recipe list": recipe_list.FORMATS,
    }
    found["format"] = own.get(command, FORMATS)
    found["shell"] = SHELLS
    found["graph"] = FORMS
    found["deployer"] = tuple(names())
    return found


def full_parser() -> argparse.ArgumentParser:
    """All commands in one parser, as shtab wants them."""
    parser = argparse.ArgumentParser(prog="aicr", description="AI cluster runtime")
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command")
    for name, (module, line) in COMMANDS.items():
        own = command_parser(name, module)
        added = commands.add_parser(name, help=line, parents=[own], add_help=False)
        below = {full: entry for full, entry in SUBCOMMANDS.items() if full.startswith(f"{name} ")}
        if below:
            seconds = added.add_subparsers()
            for full, (second, about) in below.items():
                own = command_parser(full, second)
                word = full.partition(" ")[2]
                seconds.add_parser(word, help=about, parents=[own], add_help=False)
    return parser


def command_parser(name: str, module: str) -> argparse.ArgumentParser:
    """The parser of one command, with what a shell may offer."""
    own: argparse.ArgumentParser = importlib.import_module(module).parser().full()
    words = choices(name)
    for action in own._actions:
        if action.dest in words:
            action.choices = words[action.dest]
        path = PATHS.get((name, action.dest)) or PATHS.get(("", action.dest))
        if path is not None:
            action.complete = path  # type: ignore[attr-defined]
    return own


def scripts() -> dict[str, str]:
    """The text of each script by file name."""
    return {
        f"aicr.{shell}": shtab.complete(full_parser(), shell=shell).rstrip() + "\n"
        for shell in SHELLS
    }


def main() -> int:
    """Write the scripts; with --check, only say whether they are current."""
    stale = []
    for name, text in scripts().items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    print("completion scripts:", ", ".join(stale) + " written" if stale else "current")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
