"""Read the pieces of a template into a tree.

Design: the grammar of Go's ``text/template/parse``, one function for each rule. The tree is made of
plain tuples, whose first item names the node, because they are cheap to build and never leave this
package:

```
body      tuple of: str (literal text)
          ("action", pipe, start, end)
          ("if" | "with" | "range", pipe, body, else body or None, start, end)
          ("break",) ("continue",)
pipe      (declared names, is assignment, commands)      a command is a tuple of operands
operand   ("field", names) ("variable", name, names) ("chain", operand, names) ("dot",) ("nil",)
          ("value", constant) ("call", function name) ("pipe", pipe)
```

Variables are checked for being declared, as Go does when it parses; which declaration counts is
settled when the template runs. Every error is INVALID_REQUEST at ``source:line``.

It must not know what a value or a function does.
"""

from __future__ import annotations

from aicr.bundle.gotemplate.lexer import lex, syntax_error
from aicr.bundle.gotemplate.literals import LiteralError, number, rune, string
from aicr.errors import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aicr.bundle.gotemplate.lexer import Piece, Token
    from aicr.errors import AicrError

    Body = tuple[Any, ...]
    Pipe = tuple[tuple[str, ...], bool, tuple[tuple[Any, ...], ...]]
    Operand = tuple[Any, ...]

#: How deep controls and parentheses may nest; a manifest needs five or six.
MAX_DEPTH = 60

_KEYWORDS = ("break", "continue", "else", "end", "if", "range", "with")
_REFUSED = ("block", "define", "template")
#: Stands after the last token of each action.
_END: Token = ("end of action", "end of action", -1, True)
_ENDS_OF_COMMAND = ("end of action", "|", ")")


def parse(text: str, source: str, functions: list[str]) -> Body:
    """The tree of a template.

    Args:
        text: the template.
        source: its name in errors.
        functions: the names that a pipeline may call.

    Raises: AicrError INVALID_REQUEST with ``where`` as ``source:line``.
    """
    parser = _Parser(text, source, functions)
    body, closer = parser.body(0)
    if closer is not None:
        raise parser.error(f"unexpected {{{{{closer[1]}}}}}", closer[2])
    return body


class _Parser:
    """The state of one parse: the next piece and token, and the variables in scope."""

    __slots__ = (
        "at", "depth", "functions", "loops", "next_piece", "pieces", "source", "start", "text",
        "tokens", "variables",
    )  # fmt: skip

    def __init__(self, text: str, source: str, functions: list[str]) -> None:
        self.text = text
        self.source = source
        self.functions = functions
        self.pieces: list[Piece] = lex(text, source)
        self.next_piece = 0
        self.tokens: list[Token] = []
        self.at = 0
        self.start = 0
        self.variables = ["$"]
        self.loops = 0
        self.depth = 0

    def error(self, message: str, offset: int = -1, hint: str = "") -> AicrError:
        """The error at an offset, or at the action in hand."""
        return syntax_error(
            self.text, self.start if offset < 0 else offset, self.source, message, hint
        )

    def unexpected(self, token: Token, context: str) -> AicrError:
        return self.error(f"unexpected {token[1]!r} in {context}", token[2])

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH} levels")

    # -- text and controls ---------------------------------------------------------------------

    def body(self, opened: int, context: str = "") -> tuple[Body, Token | None]:
        """Nodes up to ``{{end}}`` or ``{{else``, whose token is returned, or to the end of text."""
        nodes: list[Any] = []
        pieces = self.pieces
        while self.next_piece < len(pieces):
            start, end, content = pieces[self.next_piece]
            self.next_piece += 1
            if isinstance(content, str):
                nodes.append(content)
                continue
            content.append(_END)
            self.tokens, self.at, self.start = content, 0, start
            first = content[0]
            if first[0] != "word":
                nodes.append(("action", self.pipe("command"), start, end))
                continue
            word = first[1]
            if word in ("end", "else"):
                return tuple(nodes), first
            if word in ("if", "with", "range"):
                self.at = 1
                nodes.append(self.control(word, start, end))
            elif word in ("break", "continue"):
                if not self.loops:
                    raise self.error(f"{{{{{word}}}}} outside {{{{range}}}}")
                self.at = 1
                self.finish(word)
                nodes.append((word,))
            elif word in _REFUSED:
                raise self.error(
                    f"{{{{{word}}}}} is not supported: a manifest is one template",
                    hint="write the text where it is used",
                )
            else:
                nodes.append(("action", self.pipe("command"), start, end))
        if context:
            raise self.error(
                f"unexpected EOF: {{{{{context}}}}} is not closed", opened, "add {{ end }}"
            )
        return tuple(nodes), None

    def control(self, word: str, start: int, end: int) -> tuple[Any, ...]:
        """The rest of an ``if``, ``with`` or ``range`` whose keyword has just been read."""
        self.deeper()
        known = len(self.variables)
        pipe = self.pipe(word)
        self.loops += word == "range"
        body, closer = self.body(start, word)
        self.loops -= word == "range"
        otherwise: Body | None = None
        assert closer is not None
        self.at = 1
        if closer[1] == "else":
            again = self.tokens[1]
            if word in ("if", "with") and again[0] == "word" and again[1] == word:
                self.at = 2
                here = self.start
                stop = self.pieces[self.next_piece - 1][1]
                otherwise = (self.control(word, here, stop),)
                del self.variables[known:]
                self.depth -= 1
                return (word, pipe, body, otherwise, start, end)
            self.finish("else")
            otherwise, closer = self.body(start, word)
            assert closer is not None
            if closer[1] == "else":
                raise self.error("expected {{end}}; found {{else}}", closer[2])
            self.at = 1
        self.finish("end")
        del self.variables[known:]
        self.depth -= 1
        return (word, pipe, body, otherwise, start, end)

    def finish(self, context: str) -> None:
        """Nothing may follow in the action in hand."""
        if self.tokens[self.at] is not _END:
            raise self.unexpected(self.tokens[self.at], context)

    # -- pipelines -----------------------------------------------------------------------------

    def pipe(self, context: str, closing: str = "end of action") -> Pipe:
        """A pipeline up to the closing token, which is consumed."""
        tokens = self.tokens
        names: tuple[str, ...] = ()
        assigns = False
        if tokens[self.at][0] == "variable":
            names, assigns = self.declarations(context)
        commands = [self.command(context)]
        while tokens[self.at][0] == "|":
            self.at += 1
            command = self.command(context)
            if command[0][0] in ("value", "dot", "nil"):
                stage = len(commands) + 1
                raise self.error(f"non executable command in pipeline stage {stage}")
            commands.append(command)
        token = tokens[self.at]
        if token[0] != closing:
            if token is _END:
                raise self.error("unclosed left paren")
            raise self.unexpected(token, context)
        self.at += token is not _END
        return names, assigns, tuple(commands)

    def declarations(self, context: str) -> tuple[tuple[str, ...], bool]:
        """The variables that a pipeline declares or assigns before its value."""
        names: list[str] = []
        while self.tokens[self.at][0] == "variable":
            name = self.tokens[self.at][1]
            after = self.tokens[self.at + 1][0]
            if after in (":=", "="):
                names.append(name)
                self.variables.append(name)
                self.at += 2
                return tuple(names), after == "="
            if after != ",":
                break
            if context != "range" or names:
                raise self.error(f"too many declarations in {context}")
            names.append(name)
            self.variables.append(name)
            self.at += 2
            if self.tokens[self.at][0] != "variable":
                raise self.error("range can only initialize variables")
        if names:
            raise self.error("range declares two variables with := or assigns them with =")
        return (), False

    def command(self, context: str) -> tuple[Operand, ...]:
        """Operands separated by white space."""
        tokens = self.tokens
        operands: list[Operand] = []
        while tokens[self.at][0] not in _ENDS_OF_COMMAND:
            if operands and not tokens[self.at][3]:
                raise self.unexpected(tokens[self.at], "operand")
            operands.append(self.operand(context))
        if not operands:
            raise self.error(f"missing value for {context}")
        return tuple(operands)

    def operand(self, context: str) -> Operand:
        """A term with the fields that follow it without a space."""
        term = self.term(context)
        token = self.tokens[self.at]
        if token[0] != "field" or token[3]:
            return term
        names: list[str] = []
        while token[0] == "field" and not token[3]:
            names.append(token[1][1:])
            self.at += 1
            token = self.tokens[self.at]
        kind = term[0]
        if kind == "field":
            return ("field", (*term[1], *names))
        if kind == "variable":
            return ("variable", term[1], (*term[2], *names))
        if kind in ("value", "nil", "dot"):
            raise self.error("unexpected . after a term that has no fields")
        return ("chain", term, tuple(names))

    def term(self, context: str) -> Operand:
        """One value without what follows it."""
        kind, token, offset, _ = self.tokens[self.at]
        self.at += 1
        if kind == "field":
            return ("field", (token[1:],))
        if kind == "variable":
            if token not in self.variables:
                raise self.error(f"undefined variable {token!r}", offset)
            return ("variable", token, ())
        if kind == "dot":
            return ("dot",)
        if kind == "word":
            return self.word(token, offset, context)
        if kind == "(":
            self.deeper()
            pipe = self.pipe("parenthesized pipeline", ")")
            self.depth -= 1
            return ("pipe", pipe)
        try:
            if kind == "string":
                return ("value", string(token))
            if kind == "raw":
                return ("value", token[1:-1].replace("\r", ""))
            if kind == "number":
                return ("value", number(token))
            if kind == "char":
                return ("value", rune(token))
        except LiteralError as error:
            raise self.error(str(error), offset) from None
        raise self.unexpected((kind, token, offset, False), context)

    def word(self, token: str, offset: int, context: str) -> Operand:
        """A boolean, nil or the name of a function."""
        if token in ("true", "false"):
            return ("value", token == "true")
        if token == "nil":
            return ("nil",)
        if token in self.functions:
            return ("call", token)
        if token in _KEYWORDS or token in _REFUSED:
            raise self.error(f"unexpected <{token}> in {context}", offset)
        close = nearest(token, self.functions)
        raise self.error(
            f'function "{token}" not defined',
            offset,
            f'did you mean "{close}"?' if close else "known: " + ", ".join(self.functions),
        )
