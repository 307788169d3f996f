"""Ranges of chart versions, as upgrade records write them: ``>=0.18.0 <=0.19.1``.

A range is one list of comparisons that must all hold, with ``<``, ``<=``, ``>``, ``>=``, ``=`` or a bare
version, separated by blanks or commas. There is no "or". Missing components are zero, so ``<26`` means
``<26.0.0``; a pre-release is below its release.

It knows versions; it must not know records. Source: recipe spec 3.9, bundler spec 9.1.
"""

from __future__ import annotations

from aicr.errors import AicrError, invalid
from aicr.values import versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.values.versions import Version

_OPERATORS: Final = ("<=", ">=", "<", ">", "=")
#: What ends a version, beside blanks.
_AFTER_VERSION: Final = frozenset(",<>=|!~^*")
_HINT: Final = "for example: >=0.18.0 <=0.19.1"


class Bound:
    """One end of a range: a version, and whether it belongs to the range."""

    __slots__ = ("inclusive", "version")

    def __init__(self, version: Version, inclusive: bool) -> None:
        self.version = version
        self.inclusive = inclusive


class Range:
    """A range of versions; a bound that is None is open.

    Attributes:
        text: as written.
        lower, upper: the bounds.
    """

    __slots__ = ("lower", "text", "upper")

    def __init__(self, text: str, lower: Bound | None, upper: Bound | None) -> None:
        self.text = text
        self.lower = lower
        self.upper = upper

    def contains(self, version: Version) -> bool:
        """Whether *version* is in the range."""
        point = Bound(version, True)
        return _starts_within(self.lower, point) and _starts_within(point, self.upper)

    def meets(self, other: Range) -> bool:
        """Whether some version is in both ranges."""
        return _starts_within(self.lower, other.upper) and _starts_within(other.lower, self.upper)

    def reaches(self, other: Range) -> bool:
        """Whether *other* starts no later than this range ends, so that nothing lies between them."""
        if self.upper is None or other.lower is None:
            return True
        sign = order(other.lower.version, self.upper.version)
        return sign < 0 or (sign == 0 and (other.lower.inclusive or self.upper.inclusive))


def parse(text: str) -> Range:
    """The range that *text* writes.

    Raises:
        AicrError: INVALID_REQUEST for text that is no range, a version that cannot be read, and a range
            that no version is in.
    """
    lower: Bound | None = None
    upper: Bound | None = None
    rest = text.strip()
    while True:
        operator, spelt, rest = _comparison(rest, text)
        try:
            version = versions.parse(spelt)
        except AicrError as error:
            raise _no_range(text) from error
        bound = Bound(version, "=" in operator)
        if operator in (">", ">=", "=") and (lower is None or _tighter(bound, lower, 1)):
            lower = bound
        if operator in ("<", "<=", "=") and (upper is None or _tighter(bound, upper, -1)):
            upper = bound
        if not rest:
            break
    if not _starts_within(lower, upper):
        raise invalid(f'no version is in the range "{text}"', hint=_HINT)
    return Range(text, lower, upper)


def _comparison(rest: str, text: str) -> tuple[str, str, str]:
    """The first operator and version of *rest*, and what follows them and their separator.

    By hand, as every bundle reads a few ranges and a pattern costs more to compile than they do.
    """
    operator = next((known for known in _OPERATORS if rest.startswith(known)), "")
    rest = rest[len(operator) :].lstrip()
    end = 0
    while end < len(rest) and not rest[end].isspace() and rest[end] not in _AFTER_VERSION:
        end += 1
    spelt, after = rest[:end], rest[end:]
    following = after.lstrip()
    if following.startswith(","):
        following = following[1:].lstrip()
    elif following and following == after:
        raise _no_range(text)
    if not (spelt[:1].isascii() and spelt[:1].isalnum()):
        raise _no_range(text)
    return operator or "=", spelt, following


def _no_range(text: str) -> AicrError:
    return invalid(f'"{text}" is not a range of versions', hint=_HINT)


def order(a: Version, b: Version) -> int:
    """-1, 0 or 1: as ``versions.compare``, with missing components taken as zero."""
    if a.numbers != b.numbers:
        return -1 if a.numbers < b.numbers else 1
    return versions.compare(a, b)


def _tighter(bound: Bound, current: Bound, sign: int) -> bool:
    relation = order(bound.version, current.version)
    return relation == sign or (relation == 0 and not bound.inclusive)


def _starts_within(lower: Bound | None, upper: Bound | None) -> bool:
    """Whether a lower bound leaves room below an upper one."""
    if lower is None or upper is None:
        return True
    sign = order(lower.version, upper.version)
    return sign < 0 or (sign == 0 and lower.inclusive and upper.inclusive)
