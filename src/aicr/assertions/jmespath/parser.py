"""Tokens → syntax tree of a JMESPath expression (community edition), by operator precedence.

A node is a tuple ``(kind, column, *parts)``. The tree keeps projections as the reference
implementation does: ``("projection", column, source, each)``. It knows nothing of values.
Source: validators spec 8.8.4; where that is silent, jmespath-community/go-jmespath.
"""

from __future__ import annotations

from typing import Any, Final

from aicr.assertions.jmespath import lexer
from aicr.assertions.jmespath.lexer import NAME, NUMBER, QUOTED, VARIABLE, Token
from aicr.errors import AicrError

Node = tuple[Any, ...]

POWERS: Final = {
    "|": 1,
    "||": 2,
    "&&": 3,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 5),
    "+": 6,
    "-": 6,
    **dict.fromkeys(("*", "times", "/", "//", "%"), 7),
    "[]": 9,
    "[?": 21,
    ".": 40,
    "!": 45,
    "{": 50,
    "[": 55,
    "(": 60,
}
#: ``*`` as a projection binds tighter than as a multiplication; its infix power is that of a projection.
STAR: Final = 20
_COMPARATORS: Final = frozenset(("==", "!=", "<", "<=", ">", ">="))
_ARITHMETIC: Final = frozenset(("+", "-", "*", "times", "/", "//", "%"))
_INFIX: Final = {**POWERS, "*": STAR}
#: Deeper nesting is refused; each level costs some Python frames.
DEEPEST: Final = 60
#: Operators of one expression; a chain of them nests as deep when it is evaluated.
MOST_OPERATORS: Final = 200
_IDENTITY: Final = ("current", 0)


def parse(expression: str) -> Node:
    """The syntax tree of *expression*.

    Raises:
        AicrError: INVALID_REQUEST with the column of what cannot be read.
    """
    parser = _Parser(expression)
    node = parser.expression(0)
    if parser.kind != lexer.END:
        raise parser.unexpected("nothing can follow here")
    return node


class _Parser:
    def __init__(self, expression: str) -> None:
        self.text = expression
        self.tokens = lexer.tokens(expression)
        self.index = 0
        self.depth = 0
        self.operators = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def kind(self) -> str:
        return self.tokens[self.index].kind

    def ahead(self, count: int) -> str:
        return self.tokens[min(self.index + count, len(self.tokens) - 1)].kind

    def advance(self) -> Token:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def match(self, kind: str) -> Token:
        if self.kind != kind:
            raise self.unexpected(f'expected "{kind}"')
        return self.advance()

    def unexpected(self, why: str) -> AicrError:
        token = self.token
        found = "the end" if token.kind == lexer.END else f'"{token.value}"'
        return lexer.syntax_error(self.text, token.column, f"found {found}; {why}")

    def expression(self, power: int) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.unexpected(f"nested deeper than {DEEPEST} levels")
        left = self.prefix()
        while power < _INFIX.get(self.kind, 0):
            left = self.infix(left)
        self.depth -= 1
        return left

    def prefix(self) -> Node:
        token = self.token
        kind, column = token.kind, token.column
        if kind == lexer.END:
            raise self.unexpected("the expression is incomplete")
        self.index += 1
        match kind:
            case "name" if token.value == "let" and self.kind == VARIABLE:
                return self.let(column)
            case "name":
                return ("field", column, token.value)
            case "quoted name":
                if self.kind == "(":
                    raise self.unexpected("a quoted name cannot be a function")
                return ("field", column, token.value)
            case "variable":
                return ("variable", column, token.value)
            case "literal":
                return ("literal", column, token.value)
            case "@":
                return ("current", column)
            case "$":
                return ("root", column)
            case "+" | "-":
                return ("sign", column, kind, self.expression(POWERS[kind]))
            case "!":
                return ("not", column, self.expression(POWERS["!"]))
            case "&":
                return ("reference", column, self.expression(0))
            case "(":
                inner = self.expression(0)
                self.match(")")
                return inner
            case "{":
                return self.multi_hash(column)
            case "*":
                each = _IDENTITY if self.kind == "]" else self.projected(STAR)
                return ("values", column, _IDENTITY, each)
            case "[?":
                return self.filter(column, _IDENTITY)
            case "[]":
                flat = ("flatten", column, _IDENTITY)
                return ("projection", column, flat, self.projected(POWERS["[]"]))
            case "[":
                if self.kind in (NUMBER, ":"):
                    return self.index_or_slice(column, _IDENTITY)
                if self.kind == "*" and self.ahead(1) == "]":
                    self.index += 2
                    return ("projection", column, _IDENTITY, self.projected(STAR))
                return self.multi_list(column)
        self.index -= 1
        hint = "write numbers between backticks: `1`" if kind == NUMBER else "an operand is missing"
        raise self.unexpected(hint)

    def infix(self, left: Node) -> Node:
        self.operators += 1
        if self.operators > MOST_OPERATORS:
            raise self.unexpected(f"more than {MOST_OPERATORS} operators in one expression")
        token = self.advance()
        kind, column = token.kind, token.column
        if kind == ".":
            if self.kind == "*":
                self.advance()
                return ("values", column, left, self.projected(POWERS["."]))
            return ("chain", column, left, self.after_dot(POWERS["."]))
        if kind == "|":
            return ("pipe", column, left, self.expression(POWERS["|"]))
        if kind == "||":
            return ("or", column, left, self.expression(POWERS["||"]))
        if kind == "&&":
            return ("and", column, left, self.expression(POWERS["&&"]))
        if kind in _COMPARATORS:
            return ("compare", column, kind, left, self.expression(POWERS[kind]))
        if kind in _ARITHMETIC:
            return ("arithmetic", column, kind, left, self.expression(_INFIX[kind]))
        if kind == "(":
            if left[0] != "field":
                self.index -= 1
                raise self.unexpected("only a name can be called")
            return ("call", left[1], left[2], self.arguments())
        if kind == "[?":
            return self.filter(column, left)
        if kind == "[]":
            flat = ("flatten", column, left)
            return ("projection", column, flat, self.projected(POWERS["[]"]))
        if kind == "[":
            if self.kind in (NUMBER, ":"):
                return self.index_or_slice(column, left)
            self.match("*")
            self.match("]")
            return ("projection", column, left, self.projected(STAR))
        self.index -= 1
        raise self.unexpected("this cannot follow an operand")

    def let(self, column: int) -> Node:
        bindings: list[tuple[str, Node]] = []
        while True:
            name = self.match(VARIABLE).value
            self.match("=")
            bindings.append((name, self.expression(0)))
            if self.kind != ",":
                break
            self.advance()
        if self.kind != NAME or self.token.value != "in":
            raise self.unexpected('expected "in" after the bindings of let')
        self.advance()
        return ("let", column, bindings, self.expression(0))

    def arguments(self) -> list[Node]:
        found: list[Node] = []
        if self.kind != ")":
            found.append(self.expression(0))
            while self.kind == ",":
                self.advance()
                found.append(self.expression(0))
        self.match(")")
        return found

    def filter(self, column: int, source: Node) -> Node:
        condition = self.expression(0)
        self.match("]")
        each = _IDENTITY if self.kind == "[]" else self.projected(POWERS["[?"])
        return ("filter", column, source, each, condition)

    def index_or_slice(self, column: int, source: Node) -> Node:
        if ":" not in (self.kind, self.ahead(1)):
            number = self.integer()
            self.match("]")
            return ("chain", column, source, ("index", column, number))
        parts: list[int | None] = [None, None, None]
        part = 0
        while self.kind != "]":
            if self.kind == ":":
                part += 1
                if part == 3:
                    raise self.unexpected("a slice has at most two colons")
                self.advance()
            elif self.kind == NUMBER and parts[part] is None:
                parts[part] = self.integer()
            else:
                raise self.unexpected("expected a number, a colon or a bracket")
        self.match("]")
        cut = ("chain", column, source, ("slice", column, parts))
        return ("projection", column, cut, self.projected(STAR))

    def integer(self) -> int:
        token = self.match(NUMBER)
        if len(token.value) > 18:
            raise lexer.syntax_error(self.text, token.column, "the number is out of range")
        return int(token.value)

    def multi_list(self, column: int) -> Node:
        found = [self.expression(0)]
        while self.kind == ",":
            self.advance()
            found.append(self.expression(0))
        self.match("]")
        return ("list", column, found)

    def multi_hash(self, column: int) -> Node:
        found: list[tuple[str, Node]] = []
        while True:
            if self.kind not in (NAME, QUOTED):
                raise self.unexpected("expected a key")
            key = self.advance().value
            self.match(":")
            found.append((key, self.expression(0)))
            if self.kind != ",":
                break
            self.advance()
        self.match("}")
        return ("hash", column, found)

    def after_dot(self, power: int) -> Node:
        column = self.token.column
        if self.kind in (NAME, QUOTED, "*"):
            return self.expression(power)
        if self.kind == "[":
            self.advance()
            return self.multi_list(column)
        if self.kind == "{":
            self.advance()
            return self.multi_hash(column)
        raise self.unexpected("after a dot comes a name, [ or {")

    def projected(self, power: int) -> Node:
        """What is done with each element of a projection."""
        if _INFIX.get(self.kind, 0) < 10:
            return _IDENTITY
        if self.kind in ("[", "[?"):
            return self.expression(power)
        if self.kind == ".":
            self.advance()
            return self.after_dot(power)
        raise self.unexpected("this cannot follow a projection")
