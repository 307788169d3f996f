"""Versions as clusters, drivers and charts print them: read, compared, and shown normalised.

What is read: an optional ``v``, one to three numeric components, then a suffix. The suffix decides
nothing in general, because distributions append builds to a release (``-eks-3025e55``, ``+k3s1``,
``-1028-aws``). Two suffixes do count:

* a pre-release (``-alpha``, ``-beta``, ``-rc``) sorts below its release (decision 10);
* a GKE build (``-gke.1318000``) breaks a tie between equal releases (recipe spec 8.6).

Two comparisons exist, because the constraint language has two. ``compare`` looks only at the
components both sides give, so ``1.33`` stands for the whole 1.33 series. ``equal`` fills missing
components with zero, so ``1.33`` is exactly 1.33.0.

This module must not know constraints, documents or operators. It is on the hot path: no imports
beyond the error tree. Only ASCII digits are digits here; Python's ``int`` accepts more than Go
does.
"""

from __future__ import annotations

from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.errors import AicrError

    #: Sort key of a pre-release: its stage, then its identifiers as (is text, number, text).
    PreKey = tuple[int, tuple[tuple[bool, int, str], ...]]

_DIGITS: Final = frozenset("0123456789")
_STAGES: Final = ("alpha", "beta", "rc")
_GKE: Final = "-gke"
#: Longest run of digits read as a number; longer ones are garbage, and slow to convert.
_MAX_DIGITS: Final = 18


class Version:
    """One parsed version.

    Attributes:
        major, minor, patch: the components; those not given are 0.
        precision: how many components were given, 1 to 3.
        pre: the pre-release in lower case (``rc.1``), or "".
        build: everything else of the suffix, as written (``-eks-3025e55``), or "".
        gke: the GKE build number, or None.
        malformed_gke: whether a ``-gke`` suffix is there that is not ``-gke.<number>``.
        text: the input without surrounding blanks.
    """

    __slots__ = (
        "build",
        "gke",
        "major",
        "malformed_gke",
        "minor",
        "patch",
        "pre",
        "precision",
        "text",
    )

    def __init__(self, text: str, numbers: list[int], suffix: str) -> None:
        self.text = text
        self.precision = len(numbers)
        self.major, self.minor, self.patch = (*numbers, 0, 0)[:3]
        self.pre = _prerelease(suffix)
        self.build = suffix[1 + len(self.pre) :] if self.pre else suffix
        self.gke, self.malformed_gke = _gke_build(self.build)

    @property
    def numbers(self) -> tuple[int, int, int]:
        """(major, minor, patch), missing components as 0."""
        return (self.major, self.minor, self.patch)

    @property
    def normalised(self) -> str:
        """What takes part in comparisons: ``1.33.5``, ``1.35.0-rc.1``, ``1.34.3-gke.7``."""
        shown = ".".join(map(str, self.numbers[: self.precision]))
        if self.pre:
            shown += f"-{self.pre}"
        return shown if self.gke is None else f"{shown}-gke.{self.gke}"

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


def parse(text: str) -> Version:
    """Read a version (recipe spec 8.6, decision 10).

    Raises:
        AicrError: INVALID_REQUEST ``version string is empty``, ``version has more than 3
            components``, ``version component is not numeric`` or ``version component cannot be
            negative``.
    """
    text = text.strip()
    if not text:
        raise invalid("version string is empty")
    bare = text[1:] if text[0] == "v" else text
    end = _suffix_start(bare)
    parts = bare[:end].split(".")
    if len(parts) > 3:
        raise invalid("version has more than 3 components", hint=_MALFORMED_HINT)
    return Version(text, [_component(part) for part in parts], bare[end:])


def looks_like_version(text: str) -> bool:
    """Whether a text claims to be a version: a digit after an optional ``v``, and a dot.

    Source: decision 65.
    """
    bare = text[1:] if text[:1] == "v" else text
    return bare[:1] in _DIGITS and "." in bare


def is_semver(text: str) -> bool:
    """Whether a text is strict Semantic Versioning 2.0.0, which chart versions have to be.

    Source: bundler spec 1.5, test 52.
    """
    rest, plus, build = text.partition("+")
    core, dash, pre = rest.partition("-")
    numbers = core.split(".")
    return (
        len(numbers) == 3
        and all(map(_is_plain_number, numbers))
        and (not dash or all(map(_is_pre_identifier, pre.split("."))))
        and (not plus or all(map(_is_identifier, build.split("."))))
    )


def compare(a: Version, b: Version) -> int:
    """Order two versions by the components both give: -1, 0 or 1 (recipe spec 8.5, 8.6).

    Equal components are then separated by pre-release, and, when both sides give all three, by GKE
    build: a missing build is older than any. A pre-release is below its release at every precision:
    ``1.35.0-rc.1`` is below ``1.35``, while ``1.35.1-rc.1`` belongs to the series ``1.35``.
    """
    precision = min(a.precision, b.precision)
    left, right = a.numbers[:precision], b.numbers[:precision]
    if left != right:
        return -1 if left < right else 1
    if a.pre or b.pre:
        # Components that only one side gives put a pre-release inside the other's series.
        if any(v.pre and any(v.numbers[precision:]) for v in (a, b)):
            return 0
        order = _sign(_pre_key(a.pre), _pre_key(b.pre))
        if order:
            return order
    if precision == 3:
        return _sign(_gke_key(a), _gke_key(b))
    return 0


def equal(a: Version, b: Version, *, builds: bool = True) -> bool:
    """Whether two versions are the same release: missing components are 0, other builds are
    ignored.

    Pre-release (decision 10) and, unless *builds* is false, GKE build (recipe spec 8.6) take part,
    so that at full precision exactly one of below, equal and above holds.
    """
    return (
        a.numbers == b.numbers
        and _pre_key(a.pre) == _pre_key(b.pre)
        and (not builds or _gke_key(a) == _gke_key(b))
    )


_MALFORMED_HINT: Final = "a version is one to three numbers with dots, such as 1.32.4 or 570"


def _is_plain_number(text: str) -> bool:
    return bool(text) and _DIGITS.issuperset(text) and (text == "0" or text[0] != "0")


def _is_identifier(text: str) -> bool:
    return bool(text) and text.isascii() and text.replace("-", "0").isalnum()


def _is_pre_identifier(text: str) -> bool:
    return _is_plain_number(text) or (_is_identifier(text) and not _DIGITS.issuperset(text))


def _suffix_start(bare: str) -> int:
    """Index of the first ``-`` or ``+`` that follows a digit, else the length."""
    for index in range(1, len(bare)):
        if bare[index] in "-+" and bare[index - 1] in _DIGITS:
            return index
    return len(bare)


def _component(part: str) -> int:
    if part and len(part) <= _MAX_DIGITS and _DIGITS.issuperset(part):
        return int(part)
    if part[:1] == "-" and part[1:] and _DIGITS.issuperset(part[1:]):
        raise invalid(
            f"negative component: {part}: version component cannot be negative",
            hint=_MALFORMED_HINT,
        )
    raise _not_numeric(part)


def _not_numeric(part: str) -> AicrError:
    said = f'non-numeric component: "{part}"' if part else "empty component"
    return invalid(f"{said}: version component is not numeric", hint=_MALFORMED_HINT)


def _prerelease(suffix: str) -> str:
    """The pre-release at the start of a suffix, in lower case, or "" (a build)."""
    if suffix[:1] != "-":
        return ""
    end = len(suffix)
    for index in range(1, len(suffix)):
        if suffix[index] in "-+":
            end = index
            break
    label = suffix[1:end].lower()
    for stage in _STAGES:
        if label.startswith(stage):
            rest = label[len(stage) :]
            if not rest or rest[0] == "." or rest[0] in _DIGITS:
                return label
    return ""


def _pre_key(pre: str) -> PreKey:
    """Sort key of a pre-release; a release sorts above every pre-release."""
    if not pre:
        return (len(_STAGES), ())
    rank = [pre.startswith(stage) for stage in _STAGES].index(True)
    # rc1 and rc.1 are the same candidate.
    rest = pre[len(_STAGES[rank]) :].strip(".")
    identifiers = rest.split(".") if rest else []
    return (rank, tuple(map(_identifier_key, identifiers)))


def _identifier_key(identifier: str) -> tuple[bool, int, str]:
    # Numbers order as numbers and below texts, as SemVer orders pre-release identifiers.
    if identifier and len(identifier) <= _MAX_DIGITS and _DIGITS.issuperset(identifier):
        return (False, int(identifier), "")
    return (True, 0, identifier)


def _gke_build(build: str) -> tuple[int | None, bool]:
    """(build number, malformed) of a build suffix."""
    start = build.find(_GKE)
    if start < 0:
        return (None, False)
    rest = build[start + len(_GKE) :]
    digits = rest[1:].partition("+")[0]
    if rest[:1] == "." and digits and len(digits) <= _MAX_DIGITS and _DIGITS.issuperset(digits):
        return (int(digits), False)
    return (None, True)


def _gke_key(version: Version) -> int:
    return -1 if version.gke is None else version.gke


def _sign(left: PreKey | int, right: PreKey | int) -> int:
    if left == right:
        return 0
    return -1 if left < right else 1  # type: ignore[operator]
