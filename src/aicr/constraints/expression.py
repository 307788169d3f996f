"""The constraint expression: what a recipe says a measured text must be.

```
expression  = arm { "||" arm }                    any arm may hold
arm         = exact | comparison { blank comparison }     all comparisons must hold
comparison  = (">=" | "<=" | "!=" | "==" | ">" | "<") operand
```

Design: everything that can be known without a measured value is decided by ``parse``, including
whether the expected version of an ordering is one, so that a typo is an error when the recipe is
read and never a comparison that is false for ever. What looks like an operator and is none (``=>``,
``~``, ``^``, a lone ``=``) is refused for the same reason.

This module must not know paths, snapshots or recipes. It is on the hot path.
Source of the rules: recipe spec 8.5, decisions 10, 11 and 65, field cases A1 to A5.
"""

from __future__ import annotations

from aicr.errors import AicrError, invalid
from aicr.values import versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.values.versions import Version

#: The ordering operators; with ``==`` and ``!=`` these are all there are.
ORDERING: Final = (">=", "<=", ">", "<")
OPERATORS: Final = (">=", "<=", "!=", "==", ">", "<")
EXACT: Final = ""

_OPERATOR_CHARS: Final = frozenset("<>=!~^")
#: Characters people paste for an operator; as exact text they could never match anything.
_LOOKALIKES: Final = {"≥": ">=", "≤": "<=", "≠": "!=", "＞": ">", "＜": "<", "＝": "==", "！": "!="}
_MEANT: Final = {"=>": ">=", "=<": "<=", "=": "==", "===": "==", "!==": "!=", "<>": "!="}
_GRAMMAR: Final = "operators are >=, <=, >, <, == and !=; no operator means exactly this text"


class Comparison:
    """One operator with its operand.

    Attributes:
        operator: one of OPERATORS, or EXACT.
        operand: the expected text.
        version: the operand as a version when the comparison is one of versions, else None.
    """

    __slots__ = ("operand", "operator", "version")

    def __init__(self, operator: str, operand: str, version: Version | None) -> None:
        self.operator = operator
        self.operand = operand
        self.version = version

    @property
    def text(self) -> str:
        """The comparison in canonical spelling."""
        return f"{self.operator} {self.operand}" if self.operator else self.operand

    @property
    def normalised(self) -> str:
        """The comparison with its version normalised, for messages."""
        shown = self.version.normalised if self.version is not None else self.operand
        return f"{self.operator} {shown}" if self.operator else shown


class Expression:
    """A parsed expression: ``arms`` of comparisons, and the ``text`` it was read from."""

    __slots__ = ("arms", "text")

    def __init__(self, text: str, arms: tuple[tuple[Comparison, ...], ...]) -> None:
        self.text = text
        self.arms = arms


class Outcome:
    """Whether a measured value satisfies an expression, with what a message needs.

    Attributes:
        passed: the verdict.
        actual: the measured text as read.
        expected: the expression as written.
        actual_normalised: what was compared, such as ``1.33.5`` for ``v1.33.5-eks-3025e55``.
        expected_normalised: the expression with normalised versions.
        arm: the alternative that decided: the first one that holds, else the last one tried.
    """

    __slots__ = ("actual", "actual_normalised", "arm", "expected", "expected_normalised", "passed")

    def __init__(
        self,
        *,
        passed: bool,
        actual: str,
        expected: str,
        actual_normalised: str = "",
        expected_normalised: str = "",
        arm: str = "",
    ) -> None:
        self.passed = passed
        self.actual = actual
        self.expected = expected
        self.actual_normalised = actual_normalised or actual.strip()
        self.expected_normalised = expected_normalised or expected.strip()
        self.arm = arm or self.expected_normalised

    @property
    def reason(self) -> str:
        """``expected <value>, got <actual>`` (recipe spec 4.8)."""
        return f"expected {self.expected.strip()}, got {self.actual.strip()}"

    @property
    def explanation(self) -> str:
        """The reason, with the values that were compared where they differ (decision 10)."""
        compared = (self.actual_normalised, self.expected_normalised)
        if compared == (self.actual.strip(), self.expected.strip()):
            return self.reason
        return f"{self.reason} (compared {compared[0]} with {compared[1]})"


def parse(text: str) -> Expression:
    """Read an expression (recipe spec 8.5; grammar in the module docstring).

    Raises:
        AicrError: INVALID_REQUEST with ``constraint expression cannot be empty``, ``constraint
            value cannot be empty after operator``, ``cannot parse expected version``, or naming the
            token that is not part of the grammar.
    """
    stripped = text.strip()
    if not stripped:
        raise invalid("constraint expression cannot be empty")
    pieces = [piece.strip() for piece in stripped.split("||")]
    for index, piece in enumerate(pieces):
        if not piece:
            side = "before" if index == 0 else "after"
            raise invalid(
                f'constraint expression has an empty alternative {side} "||" in "{stripped}"',
                hint='put a comparison on both sides of "||", or leave it out',
            )
    return Expression(stripped, tuple(_parse_arm(piece) for piece in pieces))


def evaluate(expression: Expression, actual: str) -> Outcome:
    """Compare a measured text with an expression.

    Every alternative up to the first that holds is evaluated, and an error in one of them is an
    error of the whole: an unreadable value never hides behind a later alternative.

    Raises:
        AicrError: INVALID_REQUEST ``cannot parse actual version`` when an ordering meets a text
            that is no version (recipe spec 8.5, decision 9).
    """
    trimmed = actual.strip()
    shown = ""
    decided = ""
    passed = False
    for arm in expression.arms:
        decided = " ".join(comparison.normalised for comparison in arm)
        verdicts = []
        for comparison in arm:
            verdict, compared = _holds(comparison, trimmed)
            verdicts.append(verdict)
            shown = compared or shown
        if all(verdicts):
            passed = True
            break
    return Outcome(
        passed=passed,
        actual=actual,
        expected=expression.text,
        actual_normalised=shown,
        expected_normalised=" || ".join(
            " ".join(comparison.normalised for comparison in arm) for arm in expression.arms
        ),
        arm=decided,
    )


def _parse_arm(text: str) -> tuple[Comparison, ...]:
    if text[0] in _LOOKALIKES:
        raise invalid(
            f'"{text[0]}" is not an operator in "{text}"', hint=f"write {_LOOKALIKES[text[0]]}"
        )
    if text[0] not in _OPERATOR_CHARS:
        stray = _next_operator(text, 0)
        if stray < len(text):
            raise invalid(
                f'unexpected "{_operator_run(text, stray)}" after the text '
                f'"{text[:stray].strip()}"',
                hint=f'join comparisons with "||" or blanks, each with its operator; {_GRAMMAR}',
            )
        return (Comparison(EXACT, text, None),)
    comparisons = []
    start = 0
    while start < len(text):
        operator = _operator_run(text, start)
        start += len(operator)
        _check_operator(operator, text)
        end = _next_operator(text, start)
        operand = text[start:end].strip()
        comparisons.append(_comparison(operator, operand, text))
        start = end
    return tuple(comparisons)


def _operator_run(text: str, start: int) -> str:
    end = start
    while end < len(text) and text[end] in _OPERATOR_CHARS:
        end += 1
    return text[start:end]


def _next_operator(text: str, start: int) -> int:
    """Index of the next operator that follows a blank after an operand, else the length."""
    while start < len(text) and text[start].isspace():
        start += 1
    for index in range(start + 1, len(text)):
        if text[index] in _OPERATOR_CHARS and text[index - 1].isspace():
            return index
    return len(text)


def _check_operator(operator: str, text: str) -> None:
    if operator in OPERATORS:
        return
    if operator == "!":
        raise invalid(
            "bare '!' prefix is invalid; use '!=' or the separate node-set form",
            hint=f'in "{text}": write != for "not equal"',
        )
    meant = _MEANT.get(operator)
    raise invalid(
        f'"{operator}" is not an operator in "{text}"',
        hint=f"write {meant}; {_GRAMMAR}" if meant else _GRAMMAR,
    )


def _comparison(operator: str, operand: str, text: str) -> Comparison:
    if not operand:
        raise invalid(
            "constraint value cannot be empty after operator",
            hint=f'"{operator}" in "{text}" needs a value',
        )
    if operand[0] in _OPERATOR_CHARS or operand[0] in _LOOKALIKES:
        raise invalid(
            f'unexpected "{operand[0]}" after "{operator}" in "{text}"',
            hint=_GRAMMAR,
        )
    head, comma, _ = operand.partition(",")
    if comma and (operator in ORDERING or versions.looks_like_version(head.strip())):
        raise invalid(
            f'unexpected "," after "{operator} {head}" in "{text}"',
            hint='comparisons that must all hold are separated by blanks: ">= 1.32 < 1.36"',
        )
    if operator in ORDERING:
        return Comparison(operator, operand, _expected_version(operator, operand))
    if not versions.looks_like_version(operand):
        return Comparison(operator, operand, None)
    try:
        version = versions.parse(operand)
    except AicrError:
        # Equality alone falls back to text (decision 65): 5.14.0.1 can still be meant literally.
        return Comparison(operator, operand, None)
    _refuse_malformed_build(version)
    return Comparison(operator, operand, version)


def _expected_version(operator: str, operand: str) -> Version:
    try:
        words = operand.split()
        if len(words) > 1:
            raise invalid(f'unexpected "{words[1]}" after "{operator} {words[0]}"')
        version = versions.parse(operand)
        _refuse_malformed_build(version)
    except AicrError as error:
        raise invalid(
            "cannot parse expected version",
            hint=f'"{operator} {operand}" compares versions: {error.hint or _VERSION_HINT}',
        ) from error
    return version


def _refuse_malformed_build(version: Version) -> None:
    if version.malformed_gke:
        raise invalid(
            f'malformed GKE build in "{version.text}"',
            hint="write -gke.<number>, for example 1.34.3-gke.1318000",
        )
    if version.gke is not None and version.precision < 3:
        raise invalid(
            f'GKE build without a full version in "{version.text}"',
            hint="a build belongs to one release: write major.minor.patch-gke.<number>",
        )


_VERSION_HINT: Final = "write one to three numbers with dots, such as 1.32.4"


def _holds(comparison: Comparison, actual: str) -> tuple[bool, str]:
    """(verdict, normalised actual version or "" when texts were compared)."""
    expected = comparison.version
    operator = comparison.operator
    if operator not in ORDERING:
        version = _version_or_none(actual) if expected is not None else None
        if expected is not None and version is not None:
            # Every GKE version has a build: without one in the constraint, `==` would never hold there.
            same = versions.equal(version, expected, builds=expected.gke is not None)
            shown = version.normalised
        else:
            same, shown = comparison.operand == actual, ""
        return (same != (operator == "!="), shown)
    assert expected is not None
    version = _actual_version(actual, expected, comparison)
    order = versions.compare(version, expected)
    verdict = {">=": order >= 0, "<=": order <= 0, ">": order > 0, "<": order < 0}[operator]
    return (verdict, version.normalised)


def _version_or_none(actual: str) -> Version | None:
    try:
        return versions.parse(actual)
    except AicrError:
        return None


def _actual_version(actual: str, expected: Version, comparison: Comparison) -> Version:
    try:
        version = versions.parse(actual)
        if expected.gke is not None and version.malformed_gke:
            raise invalid(f'malformed GKE build in "{actual}"')
    except AicrError as error:
        raise invalid(
            "cannot parse actual version",
            hint=f'"{comparison.text}" compares versions, and the measured text is "{actual}"',
        ) from error
    return version
