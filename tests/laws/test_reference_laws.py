"""Laws of the grammar of references (values.references), and of the three readers that go by it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aicr.artifacts import images, oci
from aicr.bundle import airgap
from aicr.checks.performance import nccl_settings
from aicr.errors import AicrError
from aicr.values import references

LABEL = st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,5}[A-Za-z0-9])?", fullmatch=True)
PORT = st.one_of(st.just(""), st.integers(1, 65535).map(lambda port: f":{port}"))
NAME = st.lists(LABEL, min_size=2, max_size=3).map(".".join)
HOST = st.tuples(st.one_of(NAME, st.just("localhost"), st.just("[fd00::1]")), PORT).map("".join)
WORD = st.text("abcz019", min_size=1, max_size=4)
JOINT = st.sampled_from([".", "_", "__", "-", "---"])
SEGMENT = st.tuples(WORD, st.lists(st.tuples(JOINT, WORD).map("".join), max_size=2)).map(
    lambda parts: parts[0] + "".join(parts[1])
)
REPOSITORY = st.lists(SEGMENT, min_size=1, max_size=3).map("/".join)
#: Without a host, nothing may look like one.
BARE = REPOSITORY.filter(lambda path: "." not in path.partition("/")[0] or "/" not in path)
NAMES = st.one_of(st.tuples(st.just(""), BARE), st.tuples(HOST, REPOSITORY))
TAG = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", fullmatch=True)
DIGEST = st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True)


def optional(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[str | None]:
    """A part that may be missing."""
    return st.one_of(st.none(), strategy)


def written(host: str, repository: str, tag: str | None, digest: str | None) -> str:
    """The text of the parts."""
    text = f"{host}/{repository}" if host else repository
    return text + ("" if tag is None else f":{tag}") + ("" if digest is None else f"@{digest}")


def takes_image(text: str) -> bool:
    """Whether *text* reads as an image."""
    try:
        images.parse(text)
    except AicrError:
        return False
    return True


def takes_address(text: str) -> bool:
    """Whether ``oci://`` and *text* read as an address."""
    try:
        oci.parse_address(oci.SCHEME + text)
    except AicrError:
        return False
    return True


def takes_setting(text: str) -> bool:
    """Whether the NCCL checks take *text* as their image."""
    try:
        nccl_settings.image({nccl_settings.IMAGE: text})
    except AicrError:
        return False
    return True


@settings(deadline=None)
@given(NAMES, optional(TAG), optional(DIGEST))
def test_what_the_grammar_writes_is_taken_apart_again(
    name: tuple[str, str], tag: str | None, digest: str | None
) -> None:
    """A port is no tag, and a path without a host has none."""
    host, repository = name
    text = written(host, repository, tag, digest)
    assert references.split(text) == (host, repository, tag, digest)
    assert references.is_reference(text)


@settings(deadline=None)
@given(HOST, REPOSITORY, optional(TAG), optional(DIGEST))
def test_all_readers_take_what_the_grammar_takes(
    host: str, repository: str, tag: str | None, digest: str | None
) -> None:
    """An image, an address and a setting; the setting asks for lower case besides."""
    text = written(host, repository, tag, digest)
    assert takes_image(text)
    assert takes_address(text)
    assert takes_setting(text) == (host == host.lower())
    found = images.parse(text)
    assert found.repository.endswith(repository)
    assert (found.digest, oci.parse_address(oci.SCHEME + text).digest) == (digest or "",) * 2


@settings(deadline=None)
@given(
    st.text(st.sampled_from("aZ0.:/@_-[] \n\u0663é"), max_size=24),
    st.sampled_from(["", f"@sha256:{'0' * 64}", ":v1"]),
)
def test_no_reader_takes_what_the_grammar_refuses(start: str, end: str) -> None:
    """Whatever the text: image and setting agree with it, and an address that names its host as well."""
    text = start + end
    fine = references.is_reference(text)
    assert takes_image(text) == fine
    if text == text.strip() and text:
        host = references.split(text).host
        assert takes_setting(text) == (fine and host == host.lower())
    if references.split(text).host:
        assert takes_address(text) == fine


DIGITS = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("h.example:65535/a", True),
        ("h.example:65536/a", False),
        ("h.example:0/a", False),
        ("h.example:/a", False),
        ("h.example:٣/a", False),
        ("[fd00::1]/a", True),
        ("[fd00::1]:5000/a:1", True),
        ("[fd00::1/a", False),
        ("h..example/a", False),
        ("h.-example/a", False),
        ("h_h.example/a", False),
        ("H.Example/a", True),
        ("h.example/A", False),
        ("h.example/a/", False),
        ("h.example//a", False),
        ("h.example/a___b", False),
        ("h.example/a..b", False),
        ("h.example/a._b", False),
        ("h.example/a__b/c---d", True),
        (f"a:{'t' * 128}", True),
        (f"a:{'t' * 129}", False),
        ("a:.t", False),
        ("a:t\n", False),
        ("a:", False),
        (f"a@sha256:{DIGITS}", True),
        (f"a:t@sha256:{DIGITS}", True),
        (f"a@sha256:{DIGITS.upper()}", False),
        (f"a@sha256:{DIGITS}0", False),
        (f"a@sha512:{DIGITS * 2}", False),
        (f"a@sha256:{DIGITS}:t", False),
        (f"a@sha256:{DIGITS}\n", False),
        ("a@", False),
        (f"h.example/{'a' * 245}", True),
        (f"h.example/{'a' * 246}", False),
        ("a" * 255, True),
        ("a" * 256, False),
        ("", False),
    ],
)
def test_the_grammar_at_its_edges(text: str, fine: bool) -> None:
    """Port, host, path, tag, digest and the length of the whole name each have their rule."""
    assert references.is_reference(text) is fine


def test_a_digest_may_leave_its_algorithm_out() -> None:
    """Only where exactly its hex digits stand there."""
    assert references.with_algorithm(DIGITS) == f"sha256:{DIGITS}"
    for other in ("", DIGITS[1:], DIGITS.upper(), f"sha256:{DIGITS}"):
        assert references.with_algorithm(other) == other


def test_a_name_that_no_client_takes_is_refused_before_it_is_pushed() -> None:
    """Registry and repository have 255 characters at most, in an address as in an image."""
    assert oci.parse_address(f"oci://h.example/{'a' * 245}:1").tag == "1"
    with pytest.raises(AicrError, match="more than 255 characters") as caught:
        oci.parse_address(f"oci://h.example/{'a' * 246}:1")
    assert (caught.value.exit_status, caught.value.where) == (2, "--output")


@settings(deadline=None)
@given(st.one_of(st.just(""), HOST), REPOSITORY, optional(TAG), optional(DIGEST))
def test_the_last_segment_has_the_tag_and_nothing_of_the_host(
    host: str, repository: str, tag: str | None, digest: str | None
) -> None:
    """What a cluster shows is read as the grammar reads it."""
    found = references.last_segment(written(host, repository, tag, digest))
    assert found == (repository.rpartition("/")[2], tag)


@settings(deadline=None)
@given(HOST, st.one_of(st.just(""), REPOSITORY))
def test_a_mirror_is_a_host_in_lower_case_with_or_without_a_path(host: str, path: str) -> None:
    """And what it mirrors is an image again."""
    text = f"{host}/{path}" if path else host
    if host != host.lower():
        with pytest.raises(AicrError, match="is not a mirror"):
            airgap.check_mirror(text)
        return
    mirror = airgap.check_mirror(text)
    assert mirror == text
    assert images.parse(str(images.parse("busybox").mirrored(mirror))).is_in(mirror)
