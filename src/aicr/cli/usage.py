"""The argparse form of a command's flags: it prints the help and judges every unusual command line.

`aicr.cli.arguments` holds what a command declares and reads plain command lines by itself; everything
else (help, mistakes, positional words, values that begin with a dash) comes here, so there is one
authority on what a command line means. Usage errors are ordinary AicrErrors with exit status 2
(decision 46); argparse never prints and exits by itself except for ``--help``.

It must not be imported by a plain command line: argparse and the ten modules under it cost as much as
a bare interpreter takes to start.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from aicr.cli.arguments import BOOLEANS, Namespace, Once, Switch
from aicr.errors import invalid, nearest

if TYPE_CHECKING:
    from aicr.cli.arguments import Parser, Writer

_DEFAULT_WIDTH: Final = 98
#: Closes the help of every command (decision 46).
EXIT_NOTES: Final = """
exit status: 0 done; 2 the input is wrong; 3 something named was not found; 4
access refused; 5 no answer in time; 6 a service is unreachable; 8 the disk or
aicr itself failed; 130 Ctrl-C.
"""


class _Once(argparse.Action):
    """A flag with one value that may be given once."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Store the value, or refuse the second one."""
        seen = namespace.__dict__.setdefault("_given", set())
        if self.dest in seen:
            flag = self.option_strings[0]
            raise invalid(
                f"flag {flag} can only be specified once", where=flag, hint="keep one of the two"
            )
        seen.add(self.dest)
        setattr(namespace, self.dest, values)


class _Switch(argparse.Action):
    """A flag without a value: *const* when given, None (not False) when not; it may be repeated."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Store the constant, or refuse the opposite of what was said before."""
        seen = namespace.__dict__.setdefault("_given", set())
        if self.dest in seen and getattr(namespace, self.dest) != self.const:
            raise invalid(
                f"flag {self.option_strings[0]} contradicts an earlier one",
                where=self.option_strings[0],
                hint="keep one of the two",
            )
        seen.add(self.dest)
        setattr(namespace, self.dest, self.const)


class _True(_Switch):
    """A switch that is False when it is not given."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, **{"default": False, **options, "const": True})


class FullParser(argparse.ArgumentParser):
    """An argparse parser that raises AicrError and never abbreviates.

    Attributes:
        stream: where ``--help`` goes; the process's stdout until somebody says otherwise.
    """

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", _fixed_width)
        options["epilog"] = f"{options.get('epilog') or ''}{EXIT_NOTES}"
        super().__init__(**options)
        self.register("action", Once, _Once)
        self.register("action", Switch, _Switch)
        self.register("action", "store_true", _True)
        self.stream: Writer | None = None

    def format_help(self) -> str:
        """The help text, as wide as the terminal."""
        self.formatter_class = _terminal_width
        return super().format_help()

    def print_help(self, file: Any = None) -> None:
        """Print the help; that it cannot be written is an error, which argparse would swallow."""
        (file or self.stream or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Turn argparse's complaint into ours: about a flag, and with what to write instead."""
        hint = f"see {self.prog} --help"
        argument, colon, problem = message.partition(": ")
        if not (colon and argument.startswith("argument ")):
            raise invalid(message, hint=hint)
        flag = next(
            (name for name in argument[9:].split("/") if name.startswith("--")), argument[9:]
        )
        if problem == "expected one argument":
            raise invalid(
                f"flag {flag} needs a value",
                where=flag,
                hint=f"a value that starts with - is written {flag}=-value; {hint}",
            )
        if problem.startswith("ignored explicit argument"):
            raise invalid(
                f"flag {flag} takes no value",
                where=flag,
                hint=f"write {flag} alone, or {flag}=false to take it back from the config file",
            )
        raise invalid(problem, where=flag, hint=hint)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse all of *argv*; unknown flags name the nearest known one.

        A long flag may be written with one dash, as the original's flag library allowed.

        Raises:
            AicrError: INVALID_REQUEST for a command line that the command does not understand.
        """
        known = [option for action in self._actions for option in action.option_strings]
        for word in argv:
            flag, _, value = word.partition("=")
            if value == "--" and _two_dashes(flag, known) in known:
                # argparse would make an empty list of it.
                raise invalid(
                    f"flag {flag} with the value -- cannot stand beside other words",
                    where=flag,
                    hint="leave the other words out, or take another value",
                )
        words, denied = self._booleans([_two_dashes(word, known) for word in argv])
        namespace, extra = self.parse_known_args(words, Namespace())
        for dest in denied:
            setattr(namespace, dest, False)
        if extra:
            word = extra[0]
            if word.startswith("-") and word != "-":
                flag = word.partition("=")[0]
                near = nearest(flag, [option for option in known if option.startswith("--")])
                raise invalid(
                    f"unknown flag {flag}",
                    hint=f"did you mean {near}?" if near else f"see {self.prog} --help",
                )
            raise invalid(f"unexpected argument {word!r}", hint=self._no_place_for(word, known))
        return namespace

    def _booleans(self, words: list[str]) -> tuple[list[str], list[str]]:
        """*words* with ``--switch=true`` and ``--switch=false`` as the bare switch, and the
        destinations of those that were denied.

        Raises:
            AicrError: INVALID_REQUEST for a switch that is said and denied.
        """
        end = words.index("--") if "--" in words else len(words)
        found: dict[str, bool] = {}
        for at, word in enumerate(words[:end]):
            flag, equals, value = word.partition("=")
            action = self._option_string_actions.get(flag)
            if not isinstance(action, _Switch) or action.const is not True:
                continue
            if equals and value not in BOOLEANS:
                continue
            said = BOOLEANS[value] if equals else True
            if found.setdefault(action.dest, said) != said:
                raise invalid(
                    f"flag {flag} contradicts an earlier one",
                    where=flag,
                    hint="keep one of the two",
                )
            words[at] = flag
        return words, [dest for dest, said in found.items() if not said]

    def _no_place_for(self, word: str, known: list[str]) -> str:
        """What to write instead of a word that is one too many."""
        if any(not action.option_strings for action in self._actions):
            return f"leave it out, or put quotes around a value with blanks; see {self.prog} --help"
        if "--recipe" in known and word.endswith((".yaml", ".yml", ".json")):
            return f"{self.prog} takes flags only; did you mean --recipe {word}?"
        return f"{self.prog} takes flags only; see {self.prog} --help"


def full_parser(declared: Parser) -> FullParser:
    """The argparse parser of what a command declares."""
    found = FullParser(
        prog=declared.prog,
        usage=declared.usage,
        description=declared.description,
        epilog=declared.epilog,
    )
    found.stream = declared.stream
    for group in declared.groups:
        target: Any = found.add_argument_group(group.title) if group.title else found
        for names, options in group.arguments:
            target.add_argument(*names, **options)
    return found


def _fixed_width(prog: str) -> argparse.HelpFormatter:
    """The formatter that argparse makes for each flag added: it need not look for a terminal."""
    return argparse.RawDescriptionHelpFormatter(prog, width=_DEFAULT_WIDTH)


def _terminal_width(prog: str) -> argparse.HelpFormatter:
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        width = int(columns)
    else:
        try:
            width = os.get_terminal_size(1).columns or _DEFAULT_WIDTH
        except OSError:
            width = _DEFAULT_WIDTH
    return argparse.RawDescriptionHelpFormatter(prog, width=max(40, min(width, 120) - 2))


def _two_dashes(word: str, known: list[str]) -> str:
    if word.startswith("-") and not word.startswith("--") and len(word) > 2:
        flag = word.partition("=")[0]
        if "-" + flag in known:
            return "-" + word
    return word
