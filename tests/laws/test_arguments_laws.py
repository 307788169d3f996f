"""Laws of the reader of plain command lines: it says what argparse says, or leaves the line to argparse.

The two are given the same words for every command of the program; the words are its own flags with
values, and what people and scripts do to them.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aicr.cli.arguments import Once, Parser, Switch, whole_number
from aicr.cli.main import COMMANDS, SUBCOMMANDS
from aicr.errors import AicrError

EVERY = {name: module for name, (module, _) in {**COMMANDS, **SUBCOMMANDS}.items()}
SETTINGS = settings(deadline=None, max_examples=60)
VALUES = st.one_of(
    st.sampled_from(
        [
            "true",
            "false",
            "",
            "-",
            "--",
            "-1",
            "5",
            "1.5",
            "a=b",
            "a b",
            "-a b",
            "x",
            "9" * 12,
            "=",
            "é",
        ]
    ),
    st.text(max_size=4),
)


@functools.cache
def parser(name: str) -> Parser:
    """The parser of one command."""
    found: Parser = __import__(EVERY[name], fromlist=["parser"]).parser()
    return found


def toy() -> Parser:
    """A parser with one flag of each kind."""
    found = Parser(prog="aicr toy", description="Every kind of flag.")
    found.once("--output", "-o", metavar="FILE", help="once")
    found.many("--set", help="many")
    group = found.add_argument_group("more")
    group.add_argument("--nodes", action=Once, type=whole_number, help="converted")
    group.add_argument("--plain", "-p", help="the last one counts")
    group.add_argument("--debug", action="store_true", help="true")
    group.add_argument("--wide", action=Switch, const=True, help="a switch")
    group.add_argument("--yes", dest="answer", action=Switch, const="yes", help="one of two")
    group.add_argument("--no", dest="answer", action=Switch, const="no", help="the other")
    return found


def told(parser: Parser, words: list[str]) -> dict[str, Any] | None:
    """What argparse reads, or None when it refuses the words or prints the help."""
    try:
        return dict(vars(parser.full().parse(words)))
    except (AicrError, SystemExit):
        return None


def lines(flags: list[str]) -> st.SearchStrategy[list[str]]:
    """Command lines of these flags: apart from their values, with ``=``, with one dash."""
    flag = st.sampled_from(
        [*flags, *(each[1:] for each in flags if each.startswith("--"))] or ["-x"]
    )
    words = st.one_of(
        st.tuples(flag, VALUES),
        st.builds(lambda name, value: (f"{name}={value}",), flag, VALUES),
        st.tuples(flag),
        st.tuples(VALUES),
        st.sampled_from([("--help",), ("--unknown",), ("-z",)]),
    )
    return st.lists(words, max_size=5).map(lambda parts: [word for part in parts for word in part])


def agree(found: Parser, words: list[str]) -> None:
    """The reader's answer is argparse's, or it has none."""
    plain = found.read_plain(words)
    # argparse reads no value in --flag=--, and the whole parser refuses that.
    if plain is not None and not any(word.endswith("=--") for word in words):
        assert vars(plain) == told(found, words)


@SETTINGS
@given(lines(toy().names()))
@example(["--output=", "--set", ""])
@example(["-o=x", "-output"])
@example(["--nodes", "-5"])
@example(["--yes", "--no"])
@example(["--yes", "--yes", "--debug", "--debug"])
@example(["--debug=true", "--debug"])
@example(["--debug=false", "--debug"])
@example(["-debug=false", "--yes", "--no"])
@example(["-p", "1", "--plain", "2"])
@example(["--set", "a", "--set", "--", "b"])
def test_a_plain_line_is_read_as_argparse_reads_it(words: list[str]) -> None:
    """For each kind of flag: the same attributes with the same values, or no answer."""
    agree(toy(), words)


@pytest.mark.parametrize("name", EVERY)
@SETTINGS
@given(st.data())
def test_every_command_has_one_reading_of_its_lines(name: str, data: st.DataObject) -> None:
    """The program's own parsers, positional words and defaults included."""
    found = parser(name)
    if found._plain:
        agree(found, data.draw(lines(found.names())))
        agree(found, [])


@pytest.mark.parametrize(
    "words",
    [
        ["--output", "x", "--set", "a=b", "--set=c", "--nodes", "3", "--debug", "--yes"],
        ["-o", "-", "-p", ""],
        ["-output", "x", "-set=a"],
        ["--debug=false", "--wide=true", "--set", "a"],
        [],
    ],
    ids=["all kinds", "a dash and nothing", "one dash", "booleans", "no words"],
)
def test_a_usual_line_is_plain(words: list[str]) -> None:
    """What people type does not need argparse: otherwise the reader would be of no use."""
    found = toy()
    plain = found.read_plain(words)
    assert plain is not None
    assert vars(plain) == told(found, words)


@pytest.mark.parametrize(
    "words",
    [
        *(["--help"], ["-h"], ["word"], ["--"], ["--unknown"], ["-ox"], ["-pd"]),
        *(["--output"], ["--output", "-x"], ["--output", "a", "--output", "b"]),
        *(["--nodes", "many"], ["--debug=yes"], ["--yes", "--no"], ["--yes=no"], ["--outpu", "x"]),
    ],
    ids=" ".join,
)
def test_an_unusual_line_is_left_to_argparse(words: list[str]) -> None:
    """Help, mistakes and whatever could be read in two ways."""
    assert toy().read_plain(words) is None


def test_a_value_of_two_dashes_is_a_value_and_never_an_empty_list() -> None:
    """argparse would lose it: the reader takes it, and a line that needs argparse is refused."""
    assert toy().parse(["--output=--"]).output == "--"
    with pytest.raises(AicrError, match="flag -output with the value -- cannot stand beside"):
        toy().parse(["-output=--", "--yes", "--no"])


@pytest.mark.parametrize("beside", [[], ["--yes", "--yes"], ["-p=--x"]])
@pytest.mark.parametrize("flag", ["--debug", "--wide", "-wide"])
def test_a_switch_can_be_denied(flag: str, beside: list[str]) -> None:
    """``=false`` is no, and counts as said: a config file does not win over it."""
    found = toy().parse([f"{flag}=false", *beside])
    name = flag.lstrip("-")
    assert getattr(found, name) is False
    assert name in found._given
    assert toy().full().parse([f"{flag}=false", *beside])._given >= {name}


def test_a_switch_that_is_said_and_denied_is_refused() -> None:
    """Neither of the two is the obvious one."""
    for words in (["--debug", "--debug=false"], ["--wide=false", "--wide=true"]):
        with pytest.raises(AicrError, match="contradicts an earlier one"):
            toy().parse(words)
    with pytest.raises(AicrError, match="flag --debug takes no value"):
        toy().parse(["--debug=maybe"])


def test_a_default_is_never_shared_between_two_readings() -> None:
    """Values of one command line do not come back in the next."""
    found = toy()
    first = found.parse(["--set", "a"])
    assert first.set == ["a"]
    assert found.parse([]).set == []
    assert found.parse(["--set", "b"]).set == ["b"]
