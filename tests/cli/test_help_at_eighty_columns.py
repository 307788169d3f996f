"""Help is read on a terminal of 80 columns at 3 a.m., and its examples are typed as they stand."""

from __future__ import annotations

import itertools
import re
import shlex

import pytest
from tests.cli.program import aicr

from aicr.artifacts.trust import check_identity_regexp
from aicr.cli.main import COMMANDS, SUBCOMMANDS

NAMES = [*COMMANDS, *SUBCOMMANDS]
#: Commands that are nothing without a sub-command.
GROUPS = {name for name in COMMANDS if any(second.startswith(f"{name} ") for second in SUBCOMMANDS)}
#: Who signs in our examples.
SIGNER = "https://github.com/acme/gpu/.github/workflows/release.yaml@refs/tags/v1"


def commands(text: str) -> list[str]:
    """The command lines in the examples of a help text, each in one piece."""
    block = text[text.index("examples:") :].partition("\n\n")[0].replace("\\\n", " ")
    return [line.strip() for line in block.splitlines()[1:]]


@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_help_text_is_wider_than_the_terminal(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal breaks longer lines in the middle of words."""
    monkeypatch.setenv("COLUMNS", "80")
    text = aicr(*name.split(), "--help").out
    assert [line for line in text.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_flags_of_an_example_are_flags_of_its_command(name: str) -> None:
    """An example is a line that the command's own parser takes."""
    module = {**COMMANDS, **SUBCOMMANDS}[name][0]
    tried = 0
    for line in commands(aicr(*name.split(), "--help").out):
        words = itertools.takewhile(lambda word: word not in ("|", ">"), shlex.split(line))
        start = ["aicr", *name.split()]
        found = list(words)
        if found[: len(start)] != start or " ".join(found[1:3]) in SUBCOMMANDS.keys() - {name}:
            # Another program, or a sub-command, whose own help has the line too.
            continue
        __import__(module, fromlist=["parser"]).parser().parse(found[len(start) :])
        tried += 1
    assert tried or name in GROUPS | {"completion"}


@pytest.mark.parametrize("name", ["verify"])
def test_a_pattern_of_an_example_matches_a_whole_identity(name: str) -> None:
    """A pattern is matched against all of the identity, so one that ends early matches nobody."""
    lines = "\n".join(commands(aicr(name, "--help").out))
    patterns = re.findall(r"--certificate-identity-regexp '([^']+)'", lines)
    assert patterns
    for pattern in patterns:
        assert re.fullmatch(check_identity_regexp(pattern), SIGNER)
