"""Laws of image references, rewriting and archives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aicr.artifacts import images, oci
from aicr.artifacts.images import Reference
from aicr.bundle import airgap

SEGMENT = st.from_regex(r"[a-z0-9]{1,6}(?:[._-][a-z0-9]{1,4})?", fullmatch=True)
HOST = st.sampled_from(["docker.io", "nvcr.io", "registry.example:5000", "localhost:5000"])
TAG = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,10}", fullmatch=True)
DIGEST = st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True)
REPOSITORY = st.lists(SEGMENT, min_size=1, max_size=3).map("/".join)
MIRRORS = st.sampled_from(["mirror.local", "mirror.local/pfx", "10.0.0.1:5000/a/b"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A reference as a person may write it."""
    host = draw(st.one_of(st.just(""), HOST))
    tag = draw(st.one_of(st.just(""), TAG.map(lambda tag: f":{tag}")))
    digest = draw(st.one_of(st.just(""), DIGEST.map(lambda digest: f"@{digest}")))
    return f"{host}{'/' if host else ''}{draw(REPOSITORY)}{tag}{digest}"


def parsed(text: str) -> Reference:
    """The reference; the strategies draw no text that is none."""
    return images.parse(text)


@given(texts())
def test_a_normalised_reference_reads_as_itself(text: str) -> None:
    """Parsing what was printed changes nothing, and nothing is lost."""
    found = parsed(text)
    assert parsed(str(found)) == found
    assert found.digest == text.partition("@")[2]


@given(texts(), MIRRORS)
def test_mirroring_is_done_once_and_keeps_tag_and_digest(text: str, mirror: str) -> None:
    """The second time changes nothing."""
    found = parsed(text)
    target = found.mirrored(mirror)
    assert target.is_in(mirror)
    assert target.mirrored(mirror) == target
    assert (target.tag, target.digest) == (found.tag, found.digest)


@given(st.dictionaries(SEGMENT, texts(), max_size=4), MIRRORS)
def test_rewriting_scalars_leaves_none_outside(values: dict[str, str], mirror: str) -> None:
    """After the changes are put in, a second run finds nothing to do."""
    tree = {f"k-{key}": {"containers": [{"image": text}]} for key, text in sorted(values.items())}
    made = airgap.rewrite(tree, mirror, source="values")
    assert made.left == []
    after = {
        key: {
            "containers": [{"image": str(parsed(item["containers"][0]["image"]).mirrored(mirror))}]
        }
        for key, item in tree.items()
    }
    assert airgap.rewrite(after, mirror, source="values").changes == {}


@given(
    st.dictionaries(
        SEGMENT.map(lambda name: f"d/{name}"),
        st.tuples(st.binary(max_size=200), st.sampled_from([0o644, 0o755, 0o600])),
        max_size=5,
    )
)
def test_an_archive_gives_back_what_went_in(files: dict[str, tuple[bytes, int]]) -> None:
    """Bytes and modes, and the same archive for the same files."""
    made = oci.archive(files)
    assert oci.unpack(made) == files
    assert oci.archive(dict(reversed(files.items()))) == made
