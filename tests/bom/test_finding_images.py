"""Images are found in every form that charts and operators use."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.bundle import image_scan
from aicr.errors import AicrError
from aicr.values import paths

DIGEST = f"sha256:{'b' * 64}"


def found(document: Any, **options: str) -> list[tuple[str, str, str]]:
    """(image, path, form) of everything that was found."""
    return [
        (str(item.reference), paths.join(list(item.path)) if item.path else "", item.form)
        for item in image_scan.scan(document, source="values.yaml", **options).found
    ]


@pytest.mark.covers("L1")
@pytest.mark.parametrize(
    ("document", "images"),
    [
        ({"image": "busybox:1"}, [("docker.io/library/busybox:1", "image", "scalar")]),
        ({"initImage": "ghcr.io/a/b"}, [("ghcr.io/a/b:latest", "initImage", "scalar")]),
        ({"image": "driver"}, []),
        (
            {"containers": [{"name": "c", "image": "busybox"}]},
            [("docker.io/library/busybox:latest", "containers[0].image", "scalar")],
        ),
        ({"image": ""}, []),
        ({"image": None}, []),
        (
            {"driver": {"repository": "nvcr.io/nvidia", "image": "driver", "version": "580"}},
            [("nvcr.io/nvidia/driver:580", "driver", "split")],
        ),
        (
            {"repository": "nvcr.io/nvidia", "image": "driver", "version": DIGEST},
            [(f"nvcr.io/nvidia/driver@{DIGEST}", "", "split")],
        ),
        (
            {"p": {"image": "ghcr.io/a/setup", "version": "0.2.1", "containerSHA": DIGEST}},
            [(f"ghcr.io/a/setup:0.2.1@{DIGEST}", "p", "split")],
        ),
        (
            {"image": {"registry": "ghcr.io", "repository": "a/b", "tag": "", "digest": DIGEST}},
            [(f"ghcr.io/a/b@{DIGEST}", "image", "split")],
        ),
        (
            {"image": {"repository": "quay.io/a/b", "tag": "1", "sha": "b" * 64}},
            [(f"quay.io/a/b:1@{DIGEST}", "image", "split")],
        ),
        (
            {"scalingPodImage": {"name": "pod", "repository": "nvcr.io/x", "tag": "2"}},
            [("nvcr.io/x/pod:2", "scalingPodImage", "split")],
        ),
        (
            {"image": {"name": "pod", "repository": "nvcr.io/x", "tag": ""}},
            [("nvcr.io/x/pod", "image", "split")],
        ),
        (
            {"image": {"name": "ghcr.io/a/b", "tag": 5}},
            [("ghcr.io/a/b:5", "image", "split")],
        ),
        (
            {"kubectl": {"repository": "docker.io/alpine/kubectl", "tag": "1.36.2"}},
            [("docker.io/alpine/kubectl:1.36.2", "kubectl", "split")],
        ),
        ({"repo": {"repository": "https://charts.example", "tag": "x"}}, []),
        (
            {"args": ["--image=quay.io/x/y:1", "-v"]},
            [("quay.io/x/y:1", "args[0]", "text")],
        ),
        (
            {"data": {"x": f"run ghcr.io/a/b@{DIGEST}, then (h.example:5000/a/b:2)."}},
            [
                (f"ghcr.io/a/b@{DIGEST}", "data.x", "text"),
                ("h.example:5000/a/b:2", "data.x", "text"),
            ],
        ),
        (
            {"volumes": [{"image": {"reference": "quay.io/a/model:v1", "pullPolicy": "Always"}}]},
            [("quay.io/a/model:v1", "volumes[0].image.reference", "scalar")],
        ),
        (
            {"image": {"repository": "ghcr.io/a/b", "tag": f"v1@{DIGEST}"}},
            [(f"ghcr.io/a/b:v1@{DIGEST}", "image", "split")],
        ),
        (
            {"prefetch": {"images": ["busybox:1", "ghcr.io/a/b:2"]}},
            [
                ("docker.io/library/busybox:1", "prefetch.images[0]", "scalar"),
                ("ghcr.io/a/b:2", "prefetch.images[1]", "scalar"),
            ],
        ),
        (
            {"args": ["--init-image=busybox:1", "--imagePullPolicy=Always", "image:tag"]},
            [("docker.io/library/busybox:1", "args[0]", "text")],
        ),
        (
            {"data": {"pod.yaml": 'image: "busybox:1"\nsideImage: quay.io/a/b\nimage: none\n'}},
            [
                ("docker.io/library/busybox:1", r"data.pod\.yaml", "text"),
                ("quay.io/a/b:latest", r"data.pod\.yaml", "text"),
            ],
        ),
        (
            {"script": "RUN_IMAGE=busybox:1 ./go"},
            [("docker.io/library/busybox:1", "script", "text")],
        ),
        (
            {"note": "It is ghcr.io/a/b:1.2. See there."},
            [("ghcr.io/a/b:1.2", "note", "text")],
        ),
        ({"taint": "nvidia.com/gpu:NoSchedule"}, []),
        ({"url": "https://docs.example/a/b:1"}, []),
        ({"label": "nvidia.com/gpu"}, []),
    ],
)
def test_each_form_is_found_at_its_path(document: Any, images: list[tuple[str, str, str]]) -> None:
    """Scalar, split and inside of text; and what only looks like one is left alone."""
    assert found(document) == images


@pytest.mark.covers("L1")
def test_an_empty_tag_takes_the_version_of_the_application() -> None:
    """The rule of charts, as far as the chart is at hand."""
    document = {"image": {"repository": "ghcr.io/a/b", "tag": ""}}
    assert found(document, app_version="v7") == [("ghcr.io/a/b:v7", "image", "split")]
    assert found(document) == [("ghcr.io/a/b", "image", "split")]


@pytest.mark.covers("B10-85")
@pytest.mark.parametrize(
    ("image", "said", "where"),
    [
        ({"name": "x", "repository": "", "tag": "1"}, "needs a repository", "image.repository"),
        ({"name": "x", "repository": None, "tag": "1"}, "needs a repository", "image.repository"),
        ({"name": "", "repository": "a", "tag": "1"}, "needs a name", "image.name"),
        ({"name": None, "repository": "a"}, "needs a name", "image.name"),
        (
            {"name": "x", "repository": "a", "registry": "h.example"},
            "has no registry",
            "image.registry",
        ),
        ({"name": "x", "repository": "a", "digest": DIGEST}, "has no digest", "image.digest"),
        ("ghcr.io/A/b:1", "upper case", "image"),
        ({"repository": "ghcr.io/a/b", "tag": "a b"}, "has the tag 'a b'", "image"),
    ],
)
def test_a_malformed_descriptor_is_an_error_with_its_path(
    image: Any, said: str, where: str
) -> None:
    """A list that left it out would be believed (8.1)."""
    with pytest.raises(AicrError) as caught:
        found({"image": image})
    assert said in caught.value.message
    assert caught.value.where == f"values.yaml: {where}"


def test_a_container_hash_must_be_a_whole_digest() -> None:
    """containerSHA is sha256: and 64 hex digits (8.1)."""
    with pytest.raises(AicrError, match="containerSHA 'abc'"):
        found({"image": "ghcr.io/a/b", "version": "1", "containerSHA": "abc"})


def test_a_part_of_a_charts_own_image_is_reported_as_partial() -> None:
    """A tag alone changes an image whose name only the chart knows."""
    scan = image_scan.scan(
        {"a": {"image": {"tag": "v9"}}, "b": {"image": {"pullPolicy": "x"}}}, source="x"
    )
    assert (scan.found, scan.partial) == ([], [("a", "image")])


@pytest.mark.covers("L1")
@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"image": "{{ .Values.image }}"}, "image"),
        ({"image": {"repository": "{{ .Values.hub }}/a", "tag": "1"}}, "image"),
        ({"image": {"repository": "ghcr.io/a/b", "tag": "${TAG}"}}, "image"),
        ({"d": {"repository": "nvcr.io/nvidia", "image": "d", "version": "$(V)"}}, "d"),
        ({"kubectl": {"repository": "docker.io/alpine/kubectl", "tag": "{{ x }}"}}, "kubectl"),
    ],
)
def test_what_is_filled_in_later_is_no_image_and_is_told(document: Any, path: str) -> None:
    """A placeholder disqualifies a value (8.1); it neither ends the run nor goes unmentioned."""
    scan = image_scan.scan(document, source="x")
    assert (scan.found, scan.partial) == ([], [tuple(path.split("."))])


def test_a_schema_describes_images_and_holds_none() -> None:
    """CRDs are passed over."""
    crd = {"kind": "CustomResourceDefinition", "spec": {"image": "ghcr.io/a/b:1"}}
    assert found(crd) == []
