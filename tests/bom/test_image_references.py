"""Image references are read as a runtime reads them (field case L1)."""

from __future__ import annotations

import pytest

from aicr.artifacts import images
from aicr.artifacts.images import Reference
from aicr.errors import AicrError

DIGEST = f"sha256:{'0123456789abcdef' * 4}"


@pytest.mark.covers("L1")
@pytest.mark.parametrize(
    ("text", "normal", "floating"),
    [
        (
            "nvcr.io/nvidia/driver:580.95.05-ubuntu24.04",
            "nvcr.io/nvidia/driver:580.95.05-ubuntu24.04",
            "",
        ),
        ("registry.example:5000/a/b", "registry.example:5000/a/b:latest", "tag latest"),
        ("busybox", "docker.io/library/busybox:latest", "tag latest"),
        ("library/busybox:1", "docker.io/library/busybox:1", ""),
        ("docker.io/busybox", "docker.io/library/busybox:latest", "tag latest"),
        ("index.docker.io/a/b:1", "docker.io/a/b:1", ""),
        (f"ghcr.io/a/b@{DIGEST}", f"ghcr.io/a/b@{DIGEST}", ""),
        (f"ghcr.io/a/b:1@{DIGEST}", f"ghcr.io/a/b:1@{DIGEST}", ""),
        ("img:latest", "docker.io/library/img:latest", "tag latest"),
        ("localhost/a:1", "localhost/a:1", ""),
        ("localhost:5000/a", "localhost:5000/a:latest", "tag latest"),
        ("GHCR.io/a/b:1", "ghcr.io/a/b:1", ""),
        ("a_b/c__d-e.f:V1", "docker.io/a_b/c__d-e.f:V1", ""),
    ],
)
def test_a_reference_is_normalised(text: str, normal: str, floating: str) -> None:
    """Two spellings of one image are one; a port is no tag; a moving tag is flagged."""
    found = images.parse(text)
    assert (str(found), found.floating) == (normal, floating)
    assert images.parse(normal) == found


@pytest.mark.covers("L1")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ghcr.io/A/b:1", "upper case in its repository"),
        ("", "is empty"),
        (" busybox", "has blanks around it"),
        ("a/b:", "has the tag ''"),
        ("a/b:-x", "has the tag '-x'"),
        ("a/b@sha256:123", "not sha256: and 64 hex digits"),
        (f"a/b@md5:{'0' * 64}", "not sha256: and 64 hex digits"),
        ("ghcr.io//b", "is not one"),
        ("ghcr.io/", "is not one"),
        ("{{ .Values.image }}", "placeholder that is not filled in"),
        ("${REGISTRY}/a:1", "placeholder that is not filled in"),
        ("nvcr.io/<org>/a:1", "placeholder that is not filled in"),
        ("bad_host.example/a:1", "which is not a host"),
        ("a b/c", "is not one"),
        ("h.example:0/a:1", "has the port 0"),
        ("h.example:65536/a:1", "has the port 65536"),
        (f"ghcr.io/{'a' * 248}:1", "a name of more than 255 characters"),
    ],
)
def test_what_no_runtime_accepts_is_refused(text: str, said: str) -> None:
    """The error names the reference and the part."""
    with pytest.raises(AicrError) as caught:
        images.parse(text, where="x")
    assert said in caught.value.message
    assert caught.value.where == "x"


@pytest.mark.parametrize(
    ("text", "is_image"),
    [
        ("driver", False),
        ("driver:1", True),
        ("nvcr.io/a/b", True),
        ("a/b", False),
        ("localhost/b", True),
        (f"a@{DIGEST}", True),
        ("https://a.example/b:1", False),
        ("/dev/x:1", False),
        ("two words:1", False),
        ("{{ .x }}:1", False),
        ("ghcr.io/", False),
        ("", False),
    ],
)
def test_a_scalar_counts_as_a_reference_when_it_looks_like_one(text: str, is_image: bool) -> None:
    """Tag, digest or a first segment that is a registry (8.1)."""
    assert images.looks_like_image(text) is is_image


@pytest.mark.covers("L1", "B10-85")
@pytest.mark.parametrize(
    ("fields", "joined"),
    [
        ({"repository": "nvcr.io/nvidia", "name": "driver", "tag": "1"}, "nvcr.io/nvidia/driver:1"),
        ({"registry": "ghcr.io", "repository": "a/b", "digest": DIGEST}, f"ghcr.io/a/b@{DIGEST}"),
        ({"repository": "busybox", "tag": "1"}, "docker.io/library/busybox:1"),
        ({"repository": "ghcr.io/a/b", "tag": DIGEST}, f"ghcr.io/a/b@{DIGEST}"),
        ({"repository": "ghcr.io/a/b", "tag": f"v1@{DIGEST}"}, f"ghcr.io/a/b:v1@{DIGEST}"),
        ({"repository": "ghcr.io/a/b", "digest": DIGEST[7:]}, f"ghcr.io/a/b@{DIGEST}"),
        ({"repository": "ghcr.io/a/b:2"}, "ghcr.io/a/b:2"),
        ({"repository": "ghcr.io/a/b"}, "ghcr.io/a/b"),
    ],
)
def test_split_forms_are_joined(fields: dict[str, str], joined: str) -> None:
    """An empty tag stays empty: the chart decides it, and that is flagged."""
    found = images.join(**fields)
    assert str(found) == joined
    assert found.floating == ("" if found.tag or found.digest else "tag left to the chart")


@pytest.mark.parametrize(
    "fields",
    [
        {"repository": "ghcr.io/a/b", "tag": "no tag"},
        {"repository": "ghcr.io/a/b", "digest": "sha256:1"},
        {"repository": "ghcr.io/a/b", "tag": "v1@sha256:1"},
        {"repository": "Ghcr/A"},
    ],
)
def test_a_split_form_that_cannot_be_right_is_refused(fields: dict[str, str]) -> None:
    """Each part is checked."""
    with pytest.raises(AicrError):
        images.join(**fields)


@pytest.mark.covers("L2")
@pytest.mark.parametrize(
    ("text", "mirrored"),
    [
        ("nvcr.io/nvidia/driver:1", "mirror.local/pfx/nvidia/driver:1"),
        ("busybox:1", "mirror.local/pfx/library/busybox:1"),
        (f"ghcr.io/a/b:1@{DIGEST}", f"mirror.local/pfx/a/b:1@{DIGEST}"),
        ("mirror.local/other/a:1", "mirror.local/pfx/other/a:1"),
    ],
)
def test_a_reference_is_brought_into_a_mirror_once(text: str, mirrored: str) -> None:
    """Tag and digest stay, and a second time changes nothing."""
    once = images.parse(text).mirrored("mirror.local/pfx")
    assert str(once) == mirrored
    assert once.mirrored("mirror.local/pfx") == once
    assert once.is_in("mirror.local/pfx/")
    assert not images.parse("mirror.local/pfxother/a:1").is_in("mirror.local/pfx")


@pytest.mark.parametrize(
    ("text", "purl"),
    [
        ("nvcr.io/a/b:1", "pkg:oci/b?repository_url=nvcr.io/a/b&tag=1"),
        (
            f"ghcr.io/a/b@{DIGEST}",
            f"pkg:oci/b@{DIGEST}?repository_url=ghcr.io/a/b",
        ),
        ("h.example:5000/b:1", "pkg:oci/b?repository_url=h.example:5000/b&tag=1"),
        ("[::1]:5000/b:1", "pkg:oci/b?repository_url=%5B::1%5D:5000/b&tag=1"),
    ],
)
def test_an_image_has_a_package_url(text: str, purl: str) -> None:
    """Type oci: name, digest as version, where it lies and its tag as qualifiers.

    The form is the canonical one, which leaves colons unencoded, as the package URL's own library
    writes it.
    """
    from packageurl import PackageURL

    assert images.parse(text).purl == purl
    assert PackageURL.from_string(purl).to_string() == purl


def test_references_sort_by_their_parts() -> None:
    """The order of a list does not depend on where images were found."""
    assert sorted([Reference("b", "a"), Reference("a", "b"), Reference("a", "a", "1")]) == [
        Reference("a", "a", "1"),
        Reference("a", "b"),
        Reference("b", "a"),
    ]
