"""Laws of version order and of constraint intersection, for any versions."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from aicr.constraints import expression, ranges
from aicr.errors import INVALID_REQUEST, AicrError
from aicr.values import versions

VENDOR_BUILDS = ["", "-eks-3025e55", "-aks", "+k3s1", "-1028-aws", "-gke.5", "-gke.1318000"]
PRERELEASES = ["-rc.1", "-rc.2", "-alpha.3", "-beta.0+abc", "-rc.1-eks-9", "-rc.2-gke.7"]
SUFFIXES = st.sampled_from([*VENDOR_BUILDS, *PRERELEASES])
NUMBERS = st.lists(st.integers(0, 3), min_size=1, max_size=3)
FULL_NUMBERS = st.lists(st.integers(0, 2), min_size=3, max_size=3)


def text_of(numbers: list[int], suffix: str) -> str:
    """A version's text."""
    return ".".join(map(str, numbers)) + suffix


ANY = st.builds(text_of, NUMBERS, SUFFIXES)
FULL = st.builds(text_of, FULL_NUMBERS, SUFFIXES)
PLAIN = st.builds(text_of, FULL_NUMBERS, st.just(""))


@given(ANY, ANY)
def test_order_is_antisymmetric(a: str, b: str) -> None:
    """Swapping the sides negates the order, at any precision."""
    left, right = versions.parse(a), versions.parse(b)
    assert versions.compare(left, right) == -versions.compare(right, left)
    assert versions.compare(left, left) == 0
    assert versions.equal(left, right) == versions.equal(right, left)


@given(FULL, FULL, FULL)
def test_full_versions_are_totally_ordered(a: str, b: str, c: str) -> None:
    """With all three components, order is transitive and agrees with equality."""
    one, two, three = sorted(map(versions.parse, (a, b, c)), key=_key)
    assert versions.compare(one, two) <= 0
    assert versions.compare(two, three) <= 0
    assert versions.compare(one, three) <= 0
    assert (versions.compare(one, two) == 0) == versions.equal(one, two)


@given(FULL, st.sampled_from(["-eks-1", "+k3s1", "-1028-aws", "+67d3387"]))
def test_a_vendor_build_never_changes_the_order(a: str, build: str) -> None:
    """A build of a release is that release (decision 10)."""
    release = text_of([*versions.parse(a).numbers], "")
    assert versions.compare(versions.parse(release + build), versions.parse(release)) == 0


@given(FULL, FULL)
def test_the_six_operators_agree_with_each_other(a: str, b: str) -> None:
    """At full precision exactly one of <, ==, > holds, and <=, >=, != follow from them.

    The exception is a GKE build that only the cluster has: it is newer than its release, and still
    equal to it (`== 1.34.1` must be able to hold on GKE).
    """
    assume("-gke." in b or "-gke." not in a)
    holds = {
        operator: expression.evaluate(expression.parse(f"{operator} {b}"), a).passed
        for operator in expression.OPERATORS
    }
    assert [holds["<"], holds["=="], holds[">"]].count(True) == 1
    assert holds["<="] == (holds["<"] or holds["=="])
    assert holds[">="] == (holds[">"] or holds["=="])
    assert holds["!="] != holds["=="]


COMPARISON = st.builds(
    lambda operator, version: f"{operator} {version}",
    st.sampled_from(expression.OPERATORS),
    PLAIN,
)
ARM = st.lists(COMPARISON, min_size=1, max_size=3).map(" ".join)
EXPRESSION = st.lists(ARM, min_size=1, max_size=3).map(" || ".join)


@given(EXPRESSION, EXPRESSION, st.lists(FULL, min_size=1, max_size=20))
def test_an_intersection_holds_exactly_where_both_do(a: str, b: str, actual: list[str]) -> None:
    """The intersection is never wider or narrower than both together (recipe spec 4.11)."""
    both = [text for text in actual if _holds(a, text) and _holds(b, text)]
    try:
        joined = ranges.intersect(a, b)
    except AicrError:
        assert both == []
        return
    assert [text for text in actual if _holds(joined, text)] == both
    assert ranges.intersect(joined, joined) == joined


@given(st.text(alphabet="<>=!~^|, .v19xgke-+１≥", max_size=14))
def test_any_text_is_an_expression_or_a_coded_error(text: str) -> None:
    """No input escapes as another exception, in parsing or in evaluation."""
    try:
        parsed = expression.parse(text)
        expression.evaluate(parsed, "1.32.4")
        expression.evaluate(parsed, text)
        code = INVALID_REQUEST
    except AicrError as error:
        code = error.code
    assert code == INVALID_REQUEST


def _holds(text: str, actual: str) -> bool:
    return expression.evaluate(expression.parse(text), actual).passed


class _key:  # noqa: N801 - a sort key reads as a function
    def __init__(self, version: versions.Version) -> None:
        self.version = version

    def __lt__(self, other: _key) -> bool:
        return versions.compare(self.version, other.version) < 0
