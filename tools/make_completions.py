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
from types import ModuleType
from typing import Final

import shtab

from aicr.artifacts import trust
from aicr.bundle import mirror
from aicr.bundle.deployers import names
from aicr.bundle.flag_rules import FLEET_MODES
from aicr.catalog.criteria_values import FIELDS, VALUES
from aicr.checks import registry
from aicr.checks.sdk.check import PHASES
from aicr.cli import preflight_run
from aicr.cli.completion import SHELLS
from aicr.cli.formats import FORMATS
from aicr.cli.main import COMMANDS, SUBCOMMANDS
from aicr.fabric import thresholds
from aicr.lint import schema_files
from aicr.lint.run import ALL_RULES
from aicr.preflight.gang.presets import PRESETS
from aicr.preflight.health.events import STRATEGIES
from aicr.recipe.configuration import ACCOUNTING_MODES, RUNTIME_INVENTORY
from aicr.recipe.graph import FORMS

FOLDER: Final = Path(__file__).parent.parent / "src" / "aicr" / "cli" / "completions"

#: What a shell offers for a value, by what the help calls it.
PLACES: Final[dict[str, object]] = {
    "A": shtab.FILE,
    "B": shtab.FILE,
    "BUNDLE": shtab.DIRECTORY,
    "DIR": shtab.DIRECTORY,
    "FILE": shtab.FILE,
    "FILE|DIR": shtab.FILE,
    "SOURCE": shtab.FILE,
}
#: Formats of commands whose module has no FORMATS, where they are not the usual ones.
OTHER_FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "mirror list": mirror.FORMATS,
    "preflight explain": ("text", "json", "yaml"),
    "preflight inject": ("yaml", "json"),
}
_BOOL: Final = ("true", "false")
#: Words of a command, by destination, beside those that every command shares.
WORDS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "checks list": {"phase": PHASES},
    "checks show": {"name": tuple(registry.names())},
    "diff": {"fail_on_drift": _BOOL},
    "lint": {"rule": tuple(ALL_RULES), "ignore": tuple(ALL_RULES)},
    "cluster": {"word": ("demo",)},
    "preflight config": {"word": ("check",)},
    "preflight gangs": {"discovery": tuple(PRESETS)},
    "preflight inject": {"show": ("pod", "patch")},
    "preflight run": {
        "check": preflight_run.CHECKS,
        "backend": ("nccl", "gloo"),
        "level": ("1", "2", "3", "4"),
        "strategy": STRATEGIES,
    },
    "preflight thresholds": {
        "check": tuple(thresholds.DEFAULTS),
        "fabric": tuple(thresholds.FABRICS),
    },
    "schema": {"kind": tuple(schema_files.kinds())},
    "snapshot": {"os": ("talos",), "privileged": _BOOL},
    "upgrade-check": {"fail_on_error": _BOOL},
    "validate": {
        "phase": (*PHASES, "all"),
        "runner": ("job", "local"),
        "fail_on_error": _BOOL,
    },
    "verify": {"min_trust_level": (*trust.LEVELS, trust.MAX)},
}


def choices(command: str, module: ModuleType) -> dict[str, tuple[str, ...]]:
    """Words that a flag or argument takes, by destination."""
    found = {field: tuple(VALUES[field]) for field in FIELDS}
    found["format"] = getattr(module, "FORMATS", OTHER_FORMATS.get(command, FORMATS))
    found["shell"] = SHELLS
    found["graph"] = FORMS
    found["deployer"] = tuple(names())
    found["fleet_mode"] = FLEET_MODES
    found["slurm_accounting_mode"] = ACCOUNTING_MODES
    found["runtime_inventory"] = RUNTIME_INVENTORY
    return found | WORDS.get(command, {})


def full_parser() -> argparse.ArgumentParser:
    """All commands in one parser, as shtab wants them."""
    parser = argparse.ArgumentParser(prog="aicr", description="AI cluster runtime")
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command")
    for name, (module, line) in COMMANDS.items():
        below = {full: entry for full, entry in SUBCOMMANDS.items() if full.startswith(f"{name} ")}
        own = command_parser(name, module)
        if below:
            _drop_word(own)
        added = commands.add_parser(name, help=line, parents=[own], add_help=False)
        if below:
            seconds = added.add_subparsers()
            for full, (second, about) in below.items():
                own = command_parser(full, second)
                word = full.partition(" ")[2]
                seconds.add_parser(word, help=about, parents=[own], add_help=False)
    return parser


def _drop_word(parser: argparse.ArgumentParser) -> None:
    """Take away the word by which the program finds the sub-command: here that is argparse's work.

    Left in, it would be the first word, and the sub-commands would be offered for the second.
    """
    parser._actions[:] = [action for action in parser._actions if action.dest != "word"]
    for group in parser._action_groups:
        group._group_actions[:] = [
            action for action in group._group_actions if action.dest != "word"
        ]


def command_parser(name: str, path: str) -> argparse.ArgumentParser:
    """The parser of one command, with what a shell may offer."""
    module = importlib.import_module(path)
    own: argparse.ArgumentParser = module.parser().full()
    words = choices(name, module)
    for action in own._actions:
        if action.dest in words:
            action.choices = words[action.dest]
        place = PLACES.get(str(action.metavar))
        if place is not None and action.choices is None:
            action.complete = place  # type: ignore[attr-defined]
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
