"""Constraint expressions: grammar, refusals, verdicts and what the outcome says."""

from __future__ import annotations

import pytest

from aicr.constraints import expression
from aicr.errors import INVALID_REQUEST, AicrError

EKS = "v1.33.5-eks-3025e55"
GKE_FLOOR = ">= 1.34.3-gke.1318000 < 1.35.0 || >= 1.35.0-gke.2745000"


def verdict(text: str, actual: str) -> bool:
    """Whether *actual* satisfies the expression."""
    return expression.evaluate(expression.parse(text), actual).passed


def refusal(text: str) -> AicrError:
    """The error of parsing an expression."""
    with pytest.raises(AicrError) as caught:
        expression.parse(text)
    assert caught.value.code == INVALID_REQUEST
    return caught.value


@pytest.mark.covers("A1", "R11-57", "V-028")
@pytest.mark.parametrize(
    ("actual", "passed"),
    [
        (EKS, True),
        ("v1.32.4-gke.1386000", True),
        ("v1.32.4+k3s1", True),
        ("v1.32.4+rke2r1", True),
        ("v1.32.10+67d3387", True),
        ("v1.32.3-eks-ac2d5a0", False),
        # two components stand for the whole series, so they meet a floor inside it
        ("v1.32", True),
        ("1.32.4 ", True),
    ],
)
def test_vendor_suffixes_do_not_matter_to_a_floor(actual: str, passed: bool) -> None:
    """A vendor suffix is a build of the release, not a pre-release."""
    assert verdict(">= 1.32.4", actual) is passed


@pytest.mark.covers("A1", "R11-60", "V-018", "V-027")
@pytest.mark.parametrize("actual", ["", "unknown", "v1.x", "abc", "1.2.3.4", "-3", "１.40"])
@pytest.mark.parametrize("text", [">= 1.28", "< 1.28", "> 1", "<= 9 || == x"])
def test_an_ordering_never_turns_an_unreadable_version_into_a_verdict(
    text: str, actual: str
) -> None:
    """An actual value that is no version is an error, not false (decision 9)."""
    with pytest.raises(AicrError, match="cannot parse actual version") as caught:
        verdict(text, actual)
    assert caught.value.code == INVALID_REQUEST
    assert "version" in caught.value.chain()[-1].message


@pytest.mark.covers("A2", "V-028")
@pytest.mark.parametrize(
    ("text", "actual", "passed"),
    [
        (">= 1.35.0", "v1.35.0-rc.1", False),
        (">= 1.35.0", "v1.35.0-alpha.3+abcdef", False),
        (">= 1.35.0", "v1.36.0-beta.0", True),
        (">= 1.35.0", "v1.35.0-rc.1-eks-123", False),
        (">= 1.35", "v1.35.0-rc.1", False),
        (">= 1.35", "v1.35.1-rc.1", True),
        ("< 1.35.0", "v1.35.0-rc.1", True),
        ("== 1.35.0", "v1.35.0-rc.1", False),
        (">= 1.35.0-rc.1", "v1.35.0-rc.2", True),
        (">= 1.35.0-rc.1", "v1.35.0", True),
        (">= 1.35.0-rc.2", "v1.35.0-rc.1", False),
    ],
)
def test_a_prerelease_does_not_satisfy_its_release(text: str, actual: str, passed: bool) -> None:
    """A release candidate is below its release (decision 10)."""
    assert verdict(text, actual) is passed


@pytest.mark.covers("A3", "R11-58", "V-018")
@pytest.mark.parametrize(
    ("text", "actual", "passed"),
    [
        (">= 1.33", EKS, True),
        ("<= 1.33", EKS, True),
        ("> 1.33", EKS, False),
        ("< 1.33", EKS, False),
        ("== 1.33", EKS, False),
        ("!= 1.33", EKS, True),
        ("== 1.33.5", EKS, True),
        ("!= 1.33.5", EKS, False),
        ("1.33.5", EKS, False),
        (EKS, EKS, True),
        ("> 1.32", "1.32.4", False),
        ("== 1.32", "1.32.4", False),
        (">= 1.32", "1.32.4", True),
        (">= 570", "570.133.20", True),
        (">= 12.10", "12.8", False),
        ("< 2.1", "2", False),
    ],
)
def test_short_versions_order_by_series_and_equal_by_value(
    text: str, actual: str, passed: bool
) -> None:
    """Ordering compares what both give; equality fills with zero (recipe spec 8.5)."""
    assert verdict(text, actual) is passed


@pytest.mark.covers("A4")
@pytest.mark.parametrize(
    ("actual", "passed"),
    [
        ("v1.34.3-gke.1318000", True),
        ("v1.34.3-gke.999999", False),
        ("v1.34.3", False),
        ("v1.34.9-gke.1", True),
        ("v1.35.0-gke.500", False),
        ("v1.35.0-gke.2745000", True),
        ("v1.35.0-eks-1", False),
        ("v1.36.1", True),
    ],
)
def test_gke_build_floors_hold_on_each_track(actual: str, passed: bool) -> None:
    """Builds compare as numbers and only break ties (recipe spec 8.6, decision 11)."""
    assert verdict(GKE_FLOOR, actual) is passed


@pytest.mark.covers("A4")
def test_the_upper_end_of_a_track_excludes_the_next_release() -> None:
    """A vendor build of 1.35.0 is not below 1.35.0."""
    assert not verdict("< 1.35.0", "v1.35.0-eks-1")


@pytest.mark.parametrize("build", ["-gke.-1", "-gke.x", "-gke.", "-gke"])
@pytest.mark.parametrize("operator", [">=", "<", "==", "!="])
@pytest.mark.covers("A4")
def test_a_malformed_gke_build_is_refused_when_parsed(operator: str, build: str) -> None:
    """A build floor that cannot be read must not silently become no floor."""
    error = refusal(f"{operator} 1.34.3{build}")
    assert f'malformed GKE build in "1.34.3{build}"' in error.chain()[-1].message


def test_a_gke_build_needs_a_full_version() -> None:
    """A build belongs to one release, not to a series."""
    assert "GKE build without a full version" in str(refusal(">= 1.34-gke.5"))


def test_a_malformed_actual_build_cannot_meet_a_build_floor() -> None:
    """Where the build decides, an unreadable one is an error; elsewhere it does not matter."""
    with pytest.raises(AicrError, match="cannot parse actual version"):
        verdict(">= 1.34.3-gke.5", "v1.34.3-gke.x")
    assert verdict(">= 1.34.3", "v1.34.3-gke.x")


@pytest.mark.covers("A5", "V-022", "V-029")
@pytest.mark.parametrize(
    ("text", "token"),
    [
        (">=", ">="),
        ("> ", ">"),
        ("|| >= 1.3", "||"),
        (">= 1.3 ||", "||"),
        (">= 1.3 || || < 2", "||"),
        ("||", "||"),
        (">= 1.32, < 1.36", ","),
        ("== 1.32,1.33", ","),
        ("!= 1.32, != 1.33", ","),
        ("=> 1.32", "=>"),
        ("=< 1.32", "=<"),
        ("= 1.32", "="),
        ("=1.32", "="),
        ("=== 1.32", "==="),
        ("<> 1.32", "<>"),
        (">>1", ">>"),
        ("~1.32", "~"),
        ("~> 1.32", "~>"),
        ("^1.32", "^"),
        ("!foo", "!"),
        ("! foo", "!"),
        (">= > 1.3", ">"),
        ("== ~1.3", "~"),
        ("== = x", "="),
        (">= 1.3 ~1.4", "~"),
        (">= 1.3 !foo", "!"),
        (">= 1.3 1.4", "1.4"),
        ("ubuntu >= 1.3", ">="),
        (">=1.32.4.7", "1.32.4.7"),
        (">= 1..3", "1..3"),
        (">= -1", "-1"),
        (">= １.32", "１"),
        (">= latest", "latest"),
        (">= 1.30<1.35", "30<1"),
        ("<nil>", "nil>"),
        ("≥ 1.32", "≥"),
        ("＝ 1.32", "＝"),
        (">= ＝1.32", "＝"),
    ],
)
def test_a_malformed_expression_is_refused_and_the_token_named(text: str, token: str) -> None:
    """Nothing that looks like a rule is read as an exact text that never matches."""
    error = refusal(text)
    said = f"{error} {error.hint}"
    assert token in said
    assert error.hint


@pytest.mark.covers("V-026")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "constraint expression cannot be empty"),
        ("   ", "constraint expression cannot be empty"),
        (">=", "constraint value cannot be empty after operator"),
        ("==   ", "constraint value cannot be empty after operator"),
        ("!=", "constraint value cannot be empty after operator"),
        ("!foo", "bare '!' prefix is invalid; use '!=' or the separate node-set form"),
        (">= ubuntu", "cannot parse expected version"),
    ],
)
def test_the_refusals_of_the_specification_keep_their_words(text: str, message: str) -> None:
    """Programs and people search for these sentences (recipe spec 8.5)."""
    assert refusal(text).message == message


@pytest.mark.covers("A5", "V-025")
@pytest.mark.parametrize("text", [">=1.32.4", ">=   v1.32.4", "\t>= 1.32.4\n", ">=1.2||>=1.3"])
def test_blanks_around_operands_do_not_matter(text: str) -> None:
    """No blank, many blanks and surrounding blanks read the same."""
    assert verdict(text, "1.32.4")


@pytest.mark.covers("V-020", "V-024")
@pytest.mark.parametrize(
    ("text", "actual", "passed"),
    [
        ("ubuntu", "ubuntu", True),
        ("ubuntu", " ubuntu ", True),
        ("ubuntu", "Ubuntu", False),
        ("24.04", "24.4", False),
        ("24.04", "24.04", True),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3", True),
        ("a|b,c", "a|b,c", True),
        ("-3", "-3", True),
        ("ubuntu || rhel", "rhel", True),
        ("ubuntu || rhel", "sles", False),
        ("== ubuntu", "ubuntu", True),
        ("!= ubuntu", "ubuntu", False),
        ("!= x", "", True),
        ("== NVIDIA H100", "NVIDIA H100", True),
        ("== a,b", "a,b", True),
    ],
)
def test_texts_compare_exactly(text: str, actual: str, passed: bool) -> None:
    """Without an operator, and without a version, equality is of texts, case and all."""
    assert verdict(text, actual) is passed


@pytest.mark.covers("R11-59", "V-019", "V-023", "V-024")
@pytest.mark.parametrize(
    ("text", "actual", "passed"),
    [
        ("1.32.0", "v1.32.0", False),
        ("== 1.32.0", "v1.32.0", True),
        ("== 24.4", "24.04", True),
        ("== 5.14.0.1", "5.14.0.1", True),
        ("!= 5.14", "5.14.0.1", True),
        ("== 1.0", "unknown", False),
        ("== ubuntu22.04", "ubuntu22.04", True),
        ("== 8", "8.0", False),
        ("== 8.0", "8", True),
    ],
)
def test_equality_is_of_versions_only_when_both_sides_are(
    text: str, actual: str, passed: bool
) -> None:
    """An unparsable side makes == and != a comparison of texts (decision 65)."""
    assert verdict(text, actual) is passed


@pytest.mark.parametrize(
    ("text", "actual", "passed"),
    [
        (">= 1.30 < 1.34", "1.33.5", True),
        (">= 1.30 < 1.34", "1.34.0", False),
        (">= 1.30 < 1.34 != 1.33.5", "1.33.5", False),
        ("< 1.30 || > 1.34", "1.33.5", False),
        ("< 1.30 || > 1.34", "1.35", True),
        (">= 1.30   <\t1.34", "1.31", True),
    ],
)
def test_alternatives_and_joined_comparisons_combine(text: str, actual: str, passed: bool) -> None:
    """Blanks join what must all hold, || what may hold (decision 11)."""
    assert verdict(text, actual) is passed


def test_an_unreadable_value_does_not_hide_behind_a_comparison_that_fails() -> None:
    """Every comparison of an alternative is evaluated, so an error in one is not skipped."""
    with pytest.raises(AicrError, match="cannot parse actual version"):
        verdict("== x >= 1.3", "unknown")


def test_the_outcome_says_what_was_compared_and_what_decided() -> None:
    """Both normalised values and the deciding alternative are there for messages (decision 10)."""
    outcome = expression.evaluate(expression.parse(GKE_FLOOR), "v1.35.0-gke.2745000")
    assert outcome.passed
    assert outcome.actual == "v1.35.0-gke.2745000"
    assert outcome.expected == GKE_FLOOR
    assert outcome.actual_normalised == "1.35.0-gke.2745000"
    assert outcome.arm == ">= 1.35.0-gke.2745000"
    failed = expression.evaluate(expression.parse(">= v1.34"), EKS)
    assert failed.reason == f"expected >= v1.34, got {EKS}"
    assert failed.explanation == f"{failed.reason} (compared 1.33.5 with >= 1.34)"
    assert failed.arm == ">= 1.34"


def test_an_outcome_of_texts_is_not_explained_twice() -> None:
    """Where nothing was normalised the explanation is the reason."""
    outcome = expression.evaluate(expression.parse("24.04"), "22.04")
    assert outcome.explanation == outcome.reason == "expected 24.04, got 22.04"


def test_the_actual_text_is_reported_as_it_was_read() -> None:
    """Blanks are ignored in comparing, not dropped from what was measured."""
    outcome = expression.evaluate(expression.parse("1.33.0"), "  1.33.0  ")
    assert outcome.passed
    assert outcome.actual == "  1.33.0  "
    assert outcome.actual_normalised == "1.33.0"


@pytest.mark.parametrize(
    ("text", "actual", "passed"),
    [
        ("== 1.34.1", "v1.34.1-gke.1318000", True),
        ("!= 1.34.1", "v1.34.1-gke.1318000", False),
        ("== 1.34.1-gke.5", "v1.34.1-gke.5", True),
        ("== 1.34.1-gke.5", "v1.34.1-gke.6", False),
        ("== 1.34.1-gke.5", "v1.34.1", False),
    ],
)
def test_equality_looks_at_the_gke_build_only_if_the_constraint_names_one(
    text: str, actual: str, passed: bool
) -> None:
    """Every GKE version has a build, so `== 1.34.1` could otherwise never hold on GKE."""
    assert verdict(text, actual) is passed
