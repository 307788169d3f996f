"""Versions: what is read, what is refused, how two compare."""

from __future__ import annotations

import pytest

from aicr.errors import INVALID_REQUEST, AicrError
from aicr.values import versions


@pytest.mark.parametrize(
    ("text", "numbers", "precision", "pre", "build", "gke", "normalised"),
    [
        ("1.32.4", (1, 32, 4), 3, "", "", None, "1.32.4"),
        ("v1.32.4", (1, 32, 4), 3, "", "", None, "1.32.4"),
        ("  1.32.4 ", (1, 32, 4), 3, "", "", None, "1.32.4"),
        ("1.32", (1, 32, 0), 2, "", "", None, "1.32"),
        ("10", (10, 0, 0), 1, "", "", None, "10"),
        ("0", (0, 0, 0), 1, "", "", None, "0"),
        ("01.002.0003", (1, 2, 3), 3, "", "", None, "1.2.3"),
        ("v1.33.5-eks-3025e55", (1, 33, 5), 3, "", "-eks-3025e55", None, "1.33.5"),
        ("v1.33.2-aks", (1, 33, 2), 3, "", "-aks", None, "1.33.2"),
        ("v1.31.4+k3s1", (1, 31, 4), 3, "", "+k3s1", None, "1.31.4"),
        ("v1.30.5+rke2r1", (1, 30, 5), 3, "", "+rke2r1", None, "1.30.5"),
        ("v1.29.8+f10c92d", (1, 29, 8), 3, "", "+f10c92d", None, "1.29.8"),
        ("6.8.0-1028-aws", (6, 8, 0), 3, "", "-1028-aws", None, "6.8.0"),
        ("5.14.0-427.el9", (5, 14, 0), 3, "", "-427.el9", None, "5.14.0"),
        ("6.6.93+", (6, 6, 93), 3, "", "+", None, "6.6.93"),
        ("1.2-3.4", (1, 2, 0), 2, "", "-3.4", None, "1.2"),
        ("v1.34.3-gke.1318000", (1, 34, 3), 3, "", "-gke.1318000", 1318000, "1.34.3-gke.1318000"),
        ("1.34.3-gke.7+x", (1, 34, 3), 3, "", "-gke.7+x", 7, "1.34.3-gke.7"),
        ("v1.35.0-rc.1", (1, 35, 0), 3, "rc.1", "", None, "1.35.0-rc.1"),
        ("v1.35.0-RC.1", (1, 35, 0), 3, "rc.1", "", None, "1.35.0-rc.1"),
        ("1.35.0-alpha.3+abcdef", (1, 35, 0), 3, "alpha.3", "+abcdef", None, "1.35.0-alpha.3"),
        ("1.36.0-beta", (1, 36, 0), 3, "beta", "", None, "1.36.0-beta"),
        ("v1.35.0-rc1", (1, 35, 0), 3, "rc1", "", None, "1.35.0-rc1"),
        ("v1.35.0-rc.1-eks-123", (1, 35, 0), 3, "rc.1", "-eks-123", None, "1.35.0-rc.1"),
        ("v1.35.0-rc.1-gke.5", (1, 35, 0), 3, "rc.1", "-gke.5", 5, "1.35.0-rc.1-gke.5"),
        ("1.35.0-rcx", (1, 35, 0), 3, "", "-rcx", None, "1.35.0"),
        ("1.35.0+rc.1", (1, 35, 0), 3, "", "+rc.1", None, "1.35.0"),
        ("1.35.0-eks-rc.1", (1, 35, 0), 3, "", "-eks-rc.1", None, "1.35.0"),
    ],
)
def test_a_version_is_numbers_then_a_prerelease_or_a_build(
    text: str,
    numbers: tuple[int, int, int],
    precision: int,
    pre: str,
    build: str,
    gke: int | None,
    normalised: str,
) -> None:
    """Vendor suffixes are builds of the release; -alpha, -beta and -rc are not (decision 10)."""
    version = versions.parse(text)
    assert (version.major, version.minor, version.patch) == numbers
    assert version.numbers == numbers
    assert (version.precision, version.pre, version.build) == (precision, pre, build)
    assert version.gke == gke
    assert not version.malformed_gke
    assert version.normalised == normalised
    assert version.text == text.strip()
    assert repr(version) == f"Version('{text.strip()}')"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "version string is empty"),
        ("   ", "version string is empty"),
        ("v", "version component is not numeric"),
        ("vv1.33.0", "version component is not numeric"),
        ("V1.33.0", "version component is not numeric"),
        ("unknown", "version component is not numeric"),
        ("1.x", "version component is not numeric"),
        ("1..3", "version component is not numeric"),
        ("1.33.", "version component is not numeric"),
        (".1", "version component is not numeric"),
        ("1. 2", "version component is not numeric"),
        ("１.32", "version component is not numeric"),
        ("1.٣", "version component is not numeric"),
        ("1.2²", "version component is not numeric"),
        ("1_000", "version component is not numeric"),
        ("+1.2", "version component is not numeric"),
        ("1." + "9" * 5000, "version component is not numeric"),
        ("1.2.3.4", "version has more than 3 components"),
        ("-1", "version component cannot be negative"),
        ("-1.2", "version component cannot be negative"),
        ("1.-2", "version component cannot be negative"),
    ],
)
def test_what_is_no_version_is_refused_with_the_reason(text: str, message: str) -> None:
    """Only one to three ASCII numbers are a version (recipe spec 8.6)."""
    with pytest.raises(AicrError) as caught:
        versions.parse(text)
    assert caught.value.code == INVALID_REQUEST
    assert message in caught.value.message


@pytest.mark.parametrize("suffix", ["-gke.", "-gke.x", "-gke.-1", "-gke", "-gke7", "-gke.1.2"])
def test_a_gke_suffix_without_a_number_is_marked_malformed(suffix: str) -> None:
    """Callers decide whether a malformed build matters; it is never read as a number."""
    version = versions.parse(f"1.34.3{suffix}")
    assert version.malformed_gke
    assert version.gke is None
    assert version.normalised == "1.34.3"


@pytest.mark.parametrize(
    ("a", "b", "order"),
    [
        ("1.32.4", "1.32.4", 0),
        ("1.32.3", "1.32.4", -1),
        ("1.9", "1.10", -1),
        ("2", "1.99", 1),
        # the common precision decides
        ("1.33", "1.33.5", 0),
        ("1", "1.99.99", 0),
        ("1.32", "1.33.5", -1),
        # builds do not count
        ("1.33.5-eks-1", "1.33.5-eks-2", 0),
        ("1.33.5+k3s1", "1.33.5", 0),
        # a pre-release is below its release, at every precision
        ("1.35.0-rc.1", "1.35.0", -1),
        ("1.35.0-rc.1", "1.35", -1),
        ("1.35.0-rc.1", "1", 0),
        ("1.35.1-rc.1", "1.35", 0),
        ("1.35.1-rc.1", "1.35.0", 1),
        ("1.35-rc.1", "1.35.4", -1),
        ("1.35.0-rc.1-eks-123", "1.35.0-eks-123", -1),
        ("1.35.0-alpha.3", "1.35.0-beta.1", -1),
        ("1.35.0-beta.9", "1.35.0-rc.1", -1),
        ("1.35.0-rc.2", "1.35.0-rc.10", -1),
        ("1.35.0-rc1", "1.35.0-rc.1", 0),
        ("1.35.0-rc", "1.35.0-rc.1", -1),
        ("1.35.0-alpha.1", "1.35.0-alpha.x", -1),
        ("1.35.0-rc.1", "1.34.9", 1),
        # GKE builds break ties, as numbers; no build is older than any
        ("1.34.3-gke.999999", "1.34.3-gke.1318000", -1),
        ("1.34.3", "1.34.3-gke.1", -1),
        ("1.34.3-eks-1", "1.34.3-gke.1", -1),
        ("1.34.9-gke.1", "1.34.3-gke.1318000", 1),
        ("1.34.3-gke.5", "1.34", 0),
    ],
)
def test_ordering_looks_at_what_both_sides_give(a: str, b: str, order: int) -> None:
    """Precision first, then pre-release, then GKE build (recipe spec 8.5, 8.6; decision 10)."""
    left, right = versions.parse(a), versions.parse(b)
    assert versions.compare(left, right) == order
    assert versions.compare(right, left) == -order


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("1.33", "1.33.0", True),
        ("1.33", "1.33.5", False),
        ("v1.33.5", "1.33.5-eks-1", True),
        ("24.04", "24.4", True),
        ("1.35.0-rc.1", "1.35.0", False),
        ("1.35.0-rc.1", "1.35.0-rc1", True),
        ("1.34.1", "1.34.1-gke.5", False),
        ("1.34.1-gke.5", "1.34.1-gke.5", True),
    ],
)
def test_equality_fills_missing_components_with_zero(a: str, b: str, same: bool) -> None:
    """Equality ignores precision and builds, not pre-releases and GKE builds."""
    assert versions.equal(versions.parse(a), versions.parse(b)) is same
    assert versions.equal(versions.parse(b), versions.parse(a)) is same


@pytest.mark.covers("V-023")
@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("1.32", True),
        ("v1.32.0", True),
        ("5.14.0.1", True),
        ("1.x", True),
        ("132", False),
        ("v", False),
        ("", False),
        ("ubuntu22.04", False),
        ("vv1.2", False),
        (".5", False),
    ],
)
def test_a_version_claim_is_a_digit_first_and_a_dot(text: str, looks: bool) -> None:
    """Text with digits and dots elsewhere is text (decision 65)."""
    assert versions.looks_like_version(text) is looks
