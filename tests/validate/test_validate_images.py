"""Which image a check runs as, and when it is pulled."""

from __future__ import annotations

import pytest

from aicr.contract import images as references
from aicr.contract.container import IMAGE_TAG
from aicr.errors import AicrError
from aicr.validate import images

LATEST = "ghcr.io/nvidia/aicr-validators/aiperf-bench:latest"
BARE = "ghcr.io/nvidia/aicr-validators/aiperf-bench"
HEX40 = "a" * 40
SOME = "localhost:5001/aicr-validators/aiperf-bench"

TABLE = [
    (LATEST, {"version": "dev"}, LATEST),
    (LATEST, {"version": "v0.11.1-next"}, LATEST),
    (LATEST, {"version": "v0.0.0-12-gabc1234", "commit": "abc1234"}, f"{BARE}:sha-abc1234"),
    (LATEST, {"version": "v1.0.0-rc1", "commit": "abc1234"}, f"{BARE}:v1.0.0-rc1"),
    (LATEST, {"version": "v1.0.0-rc1-next"}, LATEST),
    (LATEST, {"version": "0.11.1"}, f"{BARE}:v0.11.1"),
    (LATEST, {"version": "v0.11.1"}, f"{BARE}:v0.11.1"),
    (f"{BARE}:v1.2.3", {"version": "v0.11.1"}, f"{BARE}:v1.2.3"),
    (LATEST, {"version": "dev", "commit": "ABC1234"}, f"{BARE}:sha-abc1234"),
    (LATEST, {"version": "dev", "commit": HEX40}, f"{BARE}:sha-{HEX40}"),
    (LATEST, {"version": "dev", "commit": "abc12"}, LATEST),
    (LATEST, {"version": "dev", "commit": HEX40 + "a"}, LATEST),
    (LATEST, {"version": "dev", "commit": "xyz1234"}, LATEST),
    (LATEST, {"version": "dev", "commit": "unknown"}, LATEST),
    (
        LATEST,
        {"version": "dev", "commit": "abc1234", "registry": "localhost:5001"},
        f"{SOME}:sha-abc1234",
    ),
    (f"{BARE}:v1.2.3", {"version": "v0.11.1", "tag": "latest"}, LATEST),
    (BARE, {"version": "dev", "tag": "latest"}, LATEST),
    (f"{SOME}:sha-abc1234", {"tag": "latest"}, f"{SOME}:latest"),
    (f"{SOME}", {"tag": "latest"}, f"{SOME}:latest"),
    (
        "ghcr.io/foo/bar:v1.0.0@sha256:dead",
        {"tag": "latest"},
        "ghcr.io/foo/bar:v1.0.0@sha256:dead",
    ),
    (
        "ghcr.io/nvidia/aicr-validators/x@sha256:dead",
        {"tag": "latest", "registry": "localhost:5001"},
        "localhost:5001/aicr-validators/x@sha256:dead",
    ),
    ("registry.io/image:tag", {"registry": "newregistry"}, "newregistry/image:tag"),
    ("image", {"registry": "newregistry"}, "image"),
    (
        "ghcr.io/nvidia/aicr-validators/sub/path:v1",
        {"registry": "myregistry.io"},
        "myregistry.io/aicr-validators/sub/path:v1",
    ),
]


@pytest.mark.covers(
    "V10-32", "V-095", "V-096", "V-117", "V-118", "V-119", "V-120", "V-121", "V-122", "V-123"
)
@pytest.mark.parametrize(("image", "given", "expected"), TABLE)
def test_references_resolve_as_the_table_says(
    image: str, given: dict[str, str], expected: str
) -> None:
    """Version, then tag, then registry; digests keep their digest."""
    assert references.resolve(image, **given) == expected


@pytest.mark.covers("V10-37", "V-112", "V-113", "V-114", "V-115", "V-116")
@pytest.mark.parametrize(
    ("image", "tag", "policy"),
    [
        ("ko.localhost:5000/x:v1", "", "IfNotPresent"),
        ("ko.local/x:v1", "edge", "Never"),
        ("kind.local/x:latest", "", "Never"),
        ("aicr.local/aicr-checks-deployment:latest", "", "Never"),
        ("aicr.localhost/x:v1", "", "IfNotPresent"),
        ("r/x@sha256:dead", "edge", "IfNotPresent"),
        ("r/x:v1", "edge", "Always"),
        ("r/x:latest", "", "Always"),
        ("r/x:dev", "", "IfNotPresent"),
    ],
)
def test_pull_policy(image: str, tag: str, policy: str) -> None:
    """Side-loaded images are never pulled; the first rule that matches decides."""
    assert references.pull_policy(image, tag) == policy


@pytest.mark.covers("V-124", "V-127", "V-128")
@pytest.mark.parametrize(
    ("image", "mutable"),
    [
        ("r/x:latest", True),
        ("r/x:edge", True),
        ("r/x:main", True),
        ("localhost:5000/x", True),
        ("r/x:v1", True),
        ("r/x:v1.2.3", False),
        ("r/x:v1.2.3-rc1", False),
        ("r/x:sha-abc1234", False),
        ("r/x:uat-123", False),
        ("r/x@sha256:dead", False),
    ],
)
def test_which_tags_can_move(image: str, mutable: bool) -> None:
    """A release, a commit and a digest stand for one image; every other tag can change."""
    assert references.is_mutable(image) is mutable


def test_evidence_refuses_tags_that_move_by_name() -> None:
    """The error lists each image once and names the way out."""
    with pytest.raises(AicrError) as raised:
        images.refuse_mutable(["r/b:edge", "r/a:v1.0.0", "r/b:edge", "r/a:latest"])
    assert raised.value.code == "INVALID_REQUEST"
    assert raised.value.message.endswith("r/a:latest, r/b:edge")
    assert "--allow-mutable-validator-tags" in raised.value.hint


@pytest.mark.parametrize(
    ("tag", "says", "says_not"),
    [
        ("edge", "AICR_VALIDATOR_IMAGE_TAG asks for edge: unset it", "released"),
        ("", "name it in AICR_VALIDATOR_IMAGE_TAG; a released aicr asks", "unset"),
    ],
    ids=["a variable says so", "a development build"],
)
def test_the_way_out_of_moving_tags_depends_on_where_they_come_from(
    tag: str, says: str, says_not: str
) -> None:
    """Nobody is told to unset a variable that is not set."""
    with pytest.raises(AicrError) as raised:
        images.refuse_mutable(["r/a:latest"], tag)
    assert says in raised.value.hint
    assert says_not not in raised.value.hint


def test_a_missing_side_loaded_image_is_explained() -> None:
    """How to build and load it, and the variable that names a registry instead (decision 41)."""
    said = images.not_on_node("aicr.local/aicr-checks-deployment:latest", "node-1")
    for part in (
        "node-1",
        "kind load docker-image",
        "docs/validate.md",
        "AICR_VALIDATOR_IMAGE_REGISTRY",
    ):
        assert part in said


@pytest.mark.parametrize("text", ["a b", "x;y", "ä", "$(id)"])
def test_an_override_that_is_no_reference_is_refused(text: str) -> None:
    """What cannot be part of a reference would fail in the cluster, minutes later."""
    with pytest.raises(AicrError, match="image reference"):
        images.check_reference(IMAGE_TAG, text)
    assert images.check_reference(IMAGE_TAG, " edge ") == "edge"
