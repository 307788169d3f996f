"""Laws of the token reader of templates, and of the other readers that do without regular expressions.

Each is held to the regular expression that says the same: the expressions are slow to load, and a
grammar is easier to judge in them.
"""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from aicr.bundle.gotemplate import lexer
from aicr.contract.object_names import has_label_form, has_subdomain_form
from aicr.errors import AicrError
from aicr.values.versions import is_semver

TOKEN = re.compile(
    r"[ \t\r\n]*(?:"
    r"(?P<close>\}\}|(?<=[ \t\r\n])-\}\})"
    r"|(?P<number>[+-]?\.?[0-9](?:[eEpP][+-]|[\w.])*)"
    r"|(?P<name>(?:[.$]\w*|\w+)(?=[ \t\r\n.,|:()]|\}\}|\Z))"
    r'|(?P<string>"(?:[^"\\\n]|\\[^\n])*")'
    r"|(?P<raw>`[^`]*`)"
    r"|(?P<char>'(?:[^'\\\n]|\\[^\n])+')"
    r"|(?P<mark>:=|[=|,()])"
    r")"
)
NUMBER = r"(?:0|[1-9][0-9]*)"
IDENTIFIER = rf"(?:{NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
SEMVER = (
    rf"{NUMBER}\.{NUMBER}\.{NUMBER}(?:-{IDENTIFIER}(?:\.{IDENTIFIER})*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
LAW = settings(deadline=None, max_examples=400)


def by_expression(text: str) -> list[tuple[str, str]] | None:
    """Kind and text of the tokens of one action that begins at once; None if it cannot be read."""
    found: list[tuple[str, str]] = []
    at = 0
    while True:
        match = TOKEN.match(text, at)
        if match is None:
            return None
        kind = match.lastgroup
        assert kind is not None
        if kind == "close":
            return found
        found.append((kind, match.group(kind)))
        at = match.end()


ACTIONS = st.one_of(
    st.text(st.sampled_from(" \t\n-+.$_=|,():}{'\"`\\0123456789abexpEP²٣é"), max_size=24),
    st.lists(
        st.sampled_from(
            [
                *(
                    ".",
                    ".a",
                    "$",
                    "$x",
                    "if",
                    "1",
                    "-1.5e+3",
                    "+.5",
                    '"a\\"b"',
                    '"',
                    "`x\ny`",
                    "'x'",
                ),
                *(
                    "''",
                    "'\\''",
                    ":=",
                    "=",
                    "|",
                    ",",
                    "(",
                    ")",
                    " ",
                    "-",
                    "}}",
                    " -}}",
                    "-}}",
                    "\n",
                ),
            ]
        ),
        max_size=10,
    ).map("".join),
)


@LAW
@given(ACTIONS, st.sampled_from(["}}", " }}", " -}}", ""]))
@example('"a\\', "}}")
@example("'\\", "")
@example(".a-", "}}")
@example("- ", "-}}")
def test_the_tokens_of_an_action_are_those_of_the_expression(body: str, close: str) -> None:
    """Same kinds, same texts, and refused where the expression finds no token."""
    # A body that begins as a trim mark or a comment is dealt with before tokens are read.
    text = "x" + body.lstrip("/") + close
    wanted = by_expression(text)
    try:
        pieces = lexer.lex("{{" + text, "t")
    except AicrError:
        pieces = []
    if wanted is None:
        assert pieces == []
        return
    tokens = pieces[0][2] if pieces else []
    assert isinstance(tokens, list)
    kinds = {"word": "name", "field": "name", "dot": "name", "variable": "name"}
    told = [(kinds.get(kind, kind), text) for kind, text, _, _ in tokens]
    assert [("mark" if kind == text else kind, text) for kind, text in told] == wanted


@LAW
@given(
    st.one_of(
        st.text(st.sampled_from("0123.-+aZ٣é\n"), max_size=16),
        st.from_regex(SEMVER, fullmatch=True),
        st.from_regex(SEMVER, fullmatch=True).map(lambda text: f"{text}\n"),
    )
)
def test_a_semantic_version_is_what_its_grammar_says(text: str) -> None:
    """Three numbers without leading zeros, identifiers after - and +, ASCII alone, no newline."""
    assert is_semver(text) == bool(re.fullmatch(SEMVER, text))


@LAW
@given(st.one_of(st.text(st.sampled_from("ab0-.A_\n é"), max_size=10), st.text(max_size=4)))
def test_a_name_of_an_object_is_what_kubernetes_says(text: str) -> None:
    """Lower-case ASCII letters, digits and dashes, with neither dash nor newline at an end (F4)."""
    assert has_label_form(text) == bool(re.fullmatch(LABEL, text))
    assert has_subdomain_form(text) == bool(re.fullmatch(rf"{LABEL}(?:\.{LABEL})*", text))
