"""Write the completion scripts that ``aicr completion`` prints, from the command parsers (shtab)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import shtab

from aicr.cli.completion import SHELLS
from aicr.cli.main import COMMANDS

FOLDER = Path(__file__).parent.parent / "src" / "aicr" / "cli" / "completions"


def full_parser() -> argparse.ArgumentParser:
    """All commands in one parser, as shtab wants them."""
    parser = argparse.ArgumentParser(prog="aicr", description="AI cluster runtime")
    commands = parser.add_subparsers(dest="command")
    for name, (module, line) in COMMANDS.items():
        own = __import__(module, fromlist=["parser"]).parser()
        commands.add_parser(name, help=line, parents=[own], add_help=False)
    return parser


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
