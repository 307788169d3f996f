"""The writer of Terraform's language: strings that mean their text, layout that fmt leaves alone."""

from __future__ import annotations

import pytest
from tests.deployers.chain_parsers import hcl_text

from aicr.bundle.deployers.terraform_hcl import Attribute, Block, Comment, listed, render, string


@pytest.mark.covers("B10-58", "F2")
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("${var.x}", '"$${var.x}"'),
        ("%{if}", '"%%{if}"'),
        ("$${X}", '"$$${X}"'),
        ("100%% $5 ${", '"100%% $5 $${"'),
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'),
        ("a\tb\nc\r", r'"a\tb\nc\r"'),
        ("\x07\x7f", r'"\u0007\u007f"'),
        ("é 中 😀", '"é 中 😀"'),
        ("\u2028", r'"\u2028"'),
        ("", '""'),
    ],
)
def test_a_string_is_written_so_that_it_means_its_text(text: str, written: str) -> None:
    """Quotes, backslashes, control characters and both template openers are escaped (5.6)."""
    assert string(text) == written
    assert hcl_text(written) == text


def test_neighbours_are_lined_up_and_groups_are_apart() -> None:
    """An empty line, a comment, an object and a block each start a new group (terraform fmt)."""
    body = [
        Attribute("a", "1"),
        Attribute("long_name", listed(["x", "y"])),
        Attribute("object", [Attribute("k", "1"), Attribute("key", "2")]),
        Attribute("b", "2"),
        None,
        Comment("why\nthis"),
        Attribute("ccc", "3"),
        Block("lifecycle", [], []),
        Attribute("d", "4"),
    ]
    assert render([Block("module", ["m"], body)]) == (
        'module "m" {\n'
        "  a         = 1\n"
        "  long_name = [x, y]\n"
        "  object = {\n"
        "    k   = 1\n"
        "    key = 2\n"
        "  }\n"
        "  b = 2\n"
        "\n"
        "  # why this\n"
        "  ccc = 3\n"
        "  lifecycle {}\n"
        "  d = 4\n"
        "}\n"
    )
