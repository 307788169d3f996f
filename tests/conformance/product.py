"""Running the product on a case: the kit's own argument list in, an observation out.

The command line runs in this process with three seams held open: the built-in catalogue is the kit's data
tree, documents are read as yaml.v3 reads them (decision 43), and the coverage refusal can be switched
off (decision 50). An observation is a plain
document that the kit's goldens can be brought into as well::

    {"document": …}                                     accepted: what came out
    {"refused": {"code": "NOT_FOUND", "message": "…"}}   refused: innermost code and message

This module must not know the rules.
"""

from __future__ import annotations

import io
import re
from functools import partial
from typing import Any

import pytest
from tests.conformance.kit import Kit

from aicr.catalog.catalog import Catalog
from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.errors import AicrError
from aicr.recipe.document import load_recipe

#: Codes in an error chain of the original, and where its own words stop and Go's begin.
_LINK = re.compile(r"\[([A-Z_]+)\] ")
_GO_WORDS = re.compile(r":? ?\b(yaml:|strconv\.|(open|stat|read|mkdir) \S+:).*", re.DOTALL)
#: Code of what the original's flag library refuses, without one of its own codes.
USAGE = "usage"


class Listener(Console):
    """A console that keeps what is said, and the errors as objects."""

    __slots__ = ("errors",)

    def __init__(self) -> None:
        super().__init__(io.StringIO(), io.StringIO())
        self.errors: list[AicrError] = []

    def error(self, error: AicrError) -> None:
        """Keep the error as well as print it."""
        self.errors.append(error)
        super().error(error)

    @property
    def stdout(self) -> str:
        """Everything that was printed for machines."""
        return str(self.out.getvalue())  # type: ignore[attr-defined]

    @property
    def stderr(self) -> str:
        """Everything that was said to people."""
        return str(self.err.getvalue())  # type: ignore[attr-defined]


class Product:
    """The product over the kit's catalogue, for one test.

    Args:
        kit: the kit.
        patch: undoes the seams after the test; the working directory is the kit's until then.
    """

    def __init__(self, kit: Kit, patch: pytest.MonkeyPatch) -> None:
        self.kit = kit
        self._patch = patch
        patch.chdir(kit.root)
        patch.setattr(Catalog, "builtin", classmethod(lambda _: kit.catalog))
        patch.delenv("AICR_CRITERIA_STRICT", raising=False)
        # The kit's documents were written by yaml.v3, for which an unquoted n is a name.
        for place, reader in (
            ("aicr.recipe.document.load_recipe", partial(load_recipe, mode="v3")),
        ):
            patch.setattr(place, reader)

    def without_coverage(self) -> None:
        """Switch the coverage refusal off (decision 50)."""
        self._patch.setattr("aicr.recipe.resolve.check_coverage", lambda *_, **__: None)

    def run(self, args: list[str]) -> tuple[int, Listener]:
        """Run one command line of the kit."""
        console = Listener()
        return main(args, console), console

    def observe(self, args: list[str], *, plain: bool = False) -> dict[str, Any]:
        """Run one command line and observe its output.

        Args:
            args: the command line.
            plain: take the output as one line of text instead of a document.
        """
        status, console = self.run(args)
        if console.errors:
            assert status == console.errors[0].exit_status
            return refusal(console.errors[0])
        assert status == 0, console.stderr
        if plain:
            return {"document": console.stdout.removesuffix("\n")}
        is_json = console.stdout[:1] in ("{", "[", '"') or console.stdout == "null\n"
        return {"document": self.kit.comparer.loads(console.stdout, is_json=is_json)}


def refusal(error: AicrError) -> dict[str, Any]:
    """The observation of an error: what its innermost link says, and the code it exits with."""
    innermost = error.chain()[-1]
    said = {"code": innermost.code, "message": innermost.message, "exit": error.exit_status}
    return {"refused": {**said, "whole": str(error)}}


def golden_refusal(text: str, exit_status: int | None = None) -> dict[str, Any]:
    """The observation of an error of the original, without what Go's libraries say.

    An exit status of 8 is left out: there the outermost code decides, which says nothing.
    """
    links = [*_LINK.finditer(text)]
    code = links[-1][1] if links else USAGE
    message = text[links[-1].end() :] if links else text
    refused: dict[str, Any] = {"code": code, "message": _GO_WORDS.sub("", message)}
    if exit_status not in (None, 8):
        refused["exit"] = exit_status
    return {"refused": refused}


def settle_words(expected: dict[str, Any], actual: dict[str, Any]) -> None:
    """Where both refuse and ours holds the original's words, take the messages for equal."""
    if "refused" not in actual:
        return
    whole = _LINK.sub("", actual["refused"].pop("whole"))
    theirs = expected.get("refused", {})
    if theirs.get("message") and theirs["message"] in whole:
        actual["refused"]["message"] = theirs["message"]
    if "exit" not in theirs:
        del actual["refused"]["exit"]


def option(args: list[str], *names: str) -> str | None:
    """The value of a flag in a command line of the kit, or None."""
    for place, word in enumerate(args[:-1]):
        if word in names:
            return args[place + 1]
    return None
