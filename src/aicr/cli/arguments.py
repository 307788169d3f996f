"""Argument parsing shared by the commands: one parser class, and flags that may be given once.

Usage errors are ordinary AicrErrors with exit status 2 (decision 46); argparse never prints and exits by
itself except for ``--help``.
"""

from __future__ import annotations

import argparse

from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn


class Once(argparse.Action):
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
            raise invalid(f"flag {self.option_strings[0]} can only be specified once")
        seen.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises AicrError and never abbreviates."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        """Turn argparse's complaint into ours."""
        raise invalid(message, hint=f"see {self.prog} --help")

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse all of *argv*; unknown flags name the nearest known one.

        A long flag may be written with one dash, as the original's flag library allowed.
        """
        known = [option for action in self._actions for option in action.option_strings]
        namespace, extra = self.parse_known_args([_two_dashes(word, known) for word in argv])
        if extra:
            word = extra[0]
            if word.startswith("-") and word != "-":
                flag = word.partition("=")[0]
                near = nearest(flag, [option for option in known if option.startswith("--")])
                raise invalid(
                    f"unknown flag {flag}",
                    hint=f"did you mean {near}?" if near else f"see {self.prog} --help",
                )
            raise invalid(
                f"unexpected argument {word!r}",
                hint=f"{self.prog} takes flags only; see {self.prog} --help",
            )
        return namespace

    def once(self, *flags: str, **options: Any) -> None:
        """Add a single-value flag that may be given once."""
        self.add_argument(*flags, action=Once, **options)

    def many(self, *flags: str, **options: Any) -> None:
        """Add a repeatable flag; values are never split on commas."""
        self.add_argument(*flags, action="append", default=[], **options)


def _two_dashes(word: str, known: list[str]) -> str:
    if word.startswith("-") and not word.startswith("--") and len(word) > 2:
        flag = word.partition("=")[0]
        if "-" + flag in known:
            return "-" + word
    return word


def whole_number(text: str) -> int:
    """An integer as a person types one.

    Raises:
        argparse.ArgumentTypeError: for anything else.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise argparse.ArgumentTypeError(f"invalid nodes value: {text} (a whole number is needed)")
    return int(text)
