"""Values are brought into a mirror, with a proof of what was left (field case L2)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tests.bom.sample_bundle import contents, sample
from tests.cli.program import EKS, aicr

from aicr.artifacts import images
from aicr.bundle import airgap, bom
from aicr.bundle.output import write_bundle
from aicr.errors import AicrError
from aicr.values import paths

MIRROR = "mirror.local/pfx"
DIGEST = f"sha256:{'c' * 64}"

#: The images of L1, a text and an argument.
VALUES: dict[str, Any] = {
    "driver": {"repository": "nvcr.io/nvidia", "image": "driver", "version": "580.95.05"},
    "plain": {"image": "registry.example:5000/a/b"},
    "hub": {"image": "library/busybox:1"},
    "bare": {"image": {"repository": "busybox", "tag": "1"}},
    "pinned": {"image": f"ghcr.io/a/b:1@{DIGEST}"},
    "split": {"image": {"registry": "ghcr.io", "repository": "c/d", "tag": "", "digest": DIGEST}},
    "hubsplit": {"image": {"registry": "docker.io", "repository": "nginx", "tag": "2"}},
    "named": {"image": {"name": "pod", "repository": "nvcr.io/x", "tag": "2"}},
    "tagged": {"image": {"repository": "quay.io/e/f:3"}},
    "args": ["--image=quay.io/x/y:1"],
    "configMap": {"text": "run quay.io/x/z:2 here\n"},
}


def applied(values: dict[str, Any], made: airgap.Rewrite) -> dict[str, Any]:
    """The values with the changes put in."""
    changed = copy.deepcopy(values)
    for path, (old, new) in made.changes.items():
        segments = paths.split(path)
        assert paths.get(changed, segments) == old
        holder: Any = paths.get(changed, segments[:-1]) if len(segments) > 1 else changed
        holder[segments[-1]] = new
    return changed


@pytest.mark.covers("L2")
def test_every_image_is_rewritten_or_listed_and_twice_is_once() -> None:
    """Tags and digests stay; text is listed; the second run finds nothing to do."""
    before = copy.deepcopy(VALUES)
    made = airgap.rewrite(VALUES, MIRROR, source="values")
    assert before == VALUES
    once = applied(VALUES, made)
    assert made.left == [
        "args[0]: quay.io/x/y:1 (inside of text)",
        "configMap.text: quay.io/x/z:2 (inside of text)",
    ]
    again = airgap.rewrite(once, MIRROR, source="values")
    assert (again.changes, again.left) == ({}, made.left)
    assert "pfx/mirror.local" not in json.dumps(once)
    found = {str(old): str(new) for old, new in made.images.items()}
    assert found == {
        "nvcr.io/nvidia/driver:580.95.05": "mirror.local/pfx/nvidia/driver:580.95.05",
        "registry.example:5000/a/b:latest": "mirror.local/pfx/a/b:latest",
        "docker.io/library/busybox:1": "mirror.local/pfx/library/busybox:1",
        f"ghcr.io/a/b:1@{DIGEST}": f"mirror.local/pfx/a/b:1@{DIGEST}",
        f"ghcr.io/c/d@{DIGEST}": f"mirror.local/pfx/c/d@{DIGEST}",
        "docker.io/library/nginx:2": "mirror.local/pfx/library/nginx:2",
        "nvcr.io/x/pod:2": "mirror.local/pfx/x/pod:2",
        "quay.io/e/f:3": "mirror.local/pfx/e/f:3",
    }


@pytest.mark.covers("L2")
def test_what_the_changed_values_name_is_what_was_promised() -> None:
    """Reading the result again gives the images of the mirror, so no part was forgotten."""
    from aicr.bundle import image_scan

    made = airgap.rewrite(VALUES, MIRROR, source="values")
    scanned = image_scan.scan(applied(VALUES, made), source="values").found
    now = {item.reference for item in scanned if item.form != image_scan.TEXT}
    assert now == set(made.images.values())


def test_two_images_of_one_name_in_the_mirror_clash() -> None:
    """Registries are dropped, so a pair that differs only there cannot share a mirror."""
    made = airgap.rewrite(
        {"a": {"image": "gcr.io/x/y:1"}, "b": {"image": "quay.io/x/y:1"}}, MIRROR, source="v"
    )
    assert airgap.clashes(made.images) == [
        "gcr.io/x/y:1 and quay.io/x/y:1 would both be mirror.local/pfx/x/y:1"
    ]


@pytest.mark.parametrize(
    "text", ["", "mirror", "https://mirror.local", "mirror.local/A", "mirror.local//a", "a b.c/d"]
)
def test_what_is_no_mirror_is_refused(text: str) -> None:
    """A host with a dot or port, and a path in lower case."""
    with pytest.raises(AicrError, match="is not a mirror"):
        airgap.check_mirror(text)


@pytest.mark.parametrize(
    ("text", "mirror"),
    [
        ("mirror.local/pfx/", "mirror.local/pfx"),
        ("oci://localhost:5000", "localhost:5000"),
        ("10.0.0.1:5000/a", "10.0.0.1:5000/a"),
    ],
)
def test_a_mirror_is_written_one_way(text: str, mirror: str) -> None:
    """Scheme and slash at the end do not matter."""
    assert airgap.check_mirror(text) == mirror


@pytest.mark.covers("L2", "L3")
def test_the_report_names_image_object_and_reason(tmp_path: Path) -> None:
    """Outside of the mirror, moving tags, downloads, and charts that nobody looked into."""
    write_bundle(sample(vendored=False), str(tmp_path / "b"))
    result = aicr("mirror", "check", tmp_path / "b", "--mirror", MIRROR)
    assert result.status == 8
    for line in (
        "driver: nvcr.io/nvidia/driver:580.95.05-ubuntu24.04 is not rewritten "
        "(001-driver/values.yaml: driver)",
        "driver: not to be seen from here: 001-driver/values.yaml: node.image",
        "driver: chart not looked into, rendered: no (not pulled)",
        "driver: its chart comes from https://charts.example/nvidia, outside of the mirror, when "
        "it is installed; bundle it with --vendor-charts",
        "tools: quay.io/x/y:1 is not rewritten, inside of text "
        "(Deployment tools/tools: …containers[0].args[0])",
        "tools: registry.example:5000/a/b:2 is not rewritten, inside of text "
        "(ConfigMap script: data.run\\.sh)",
        "tools: Deployment tools/tools fetches with apt when it starts: apt-get update",
    ):
        assert line in result.out.splitlines(), result.out
    assert "is not pinned: tag latest" in result.out
    assert "localhost" not in result.out
    document = json.loads(aicr("mirror", "check", tmp_path / "b", "--format", "json").out)
    assert not any("is not rewritten" in line for line in document["findings"])


@pytest.mark.covers("L2")
@pytest.mark.parametrize(
    ("repository", "inside"),
    [
        ("oci://mirror.local/pfx", True),
        ("oci://mirror.local/pfx/charts", True),
        ("oci://mirror.local/pfx2", False),
        ("https://mirror.local/helm", True),
        ("https://mirror.local.evil/helm", False),
        ("oci://ghcr.io/nvidia", False),
    ],
)
def test_a_chart_is_as_good_as_an_image_outside_of_the_mirror(
    repository: str, inside: bool
) -> None:
    """What is fetched when it is installed fails behind the gap, chart or image."""
    entry = bom.Entry("x", bom.HELM, repository=repository, rendered=bom.NOT_PULLED)
    found = airgap.gaps(bom.Bom("bundle", "1", [entry]), MIRROR)
    assert any("its chart comes from" in line for line in found) is not inside


@pytest.mark.parametrize("text", ["mirror.local:0/a", "mirror.local:65536"])
def test_a_mirror_at_a_port_that_is_none_is_refused(text: str) -> None:
    """As for an image."""
    with pytest.raises(AicrError, match="has the port") as caught:
        airgap.check_mirror(text)
    assert caught.value.where == "--mirror"


def test_a_bundle_with_nothing_to_find_passes(tmp_path: Path) -> None:
    """Exit 0 when every image is in the mirror and every chart was looked into."""
    text = f"kind: Pod\nspec: {{containers: [{{image: mirror.local/pfx/a@{DIGEST}}}]}}\n"
    files = sample(vendored=False)
    files["002-tools/templates/all.yaml"] = (text.encode(), 0o644)
    made = bom.of_bundle(contents(files), None, version="1")
    (tools,) = [entry for entry in made.entries if entry.name == "tools"]
    assert airgap.gaps(bom.Bom("bundle", "1", [tools]), MIRROR) == []


def test_the_command_prints_overrides_that_bundle_takes(tmp_path: Path) -> None:
    """What rewrite prints goes to aicr bundle as it is, and the bundle then names the mirror."""
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(aicr("recipe", *EKS).out, encoding="utf-8")
    result = aicr("mirror", "rewrite", "-r", recipe, "--mirror", MIRROR)
    assert result.status == 8, "charts that are not at hand cannot be promised"
    assert "not rewritten: gpu-operator: images that only its chart names" in result.err
    flags = result.out.splitlines()
    assert "--set=aws-efa:image.repository=mirror.local/pfx/eks/aws-efa-k8s-device-plugin" in flags
    assert aicr("bundle", "-r", recipe, "-o", tmp_path / "b", *flags).status == 0
    again = aicr("mirror", "rewrite", "-r", recipe, "--mirror", MIRROR, *flags)
    assert again.out == ""


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["mirror"], 2, "name a sub-command"),
        (["mirror", "lst"], 2, "did you mean mirror list?"),
        (["mirror", "publish"], 2, "unknown sub-command 'publish'"),
        (["mirror", "rewrite", "--mirror", "m.example"], 2, "--recipe is required"),
        (["mirror", "rewrite", "-r", "x"], 2, "--mirror is required"),
        (["mirror", "list"], 2, "name a bundle or a recipe"),
        (["mirror", "list", "none"], 3, "no such folder"),
        (["mirror", "check", "x", "--mirror", "m"], 2, "is not a mirror"),
        (["mirror", "list", "x", "-r", "y"], 2, "a bundle and a recipe are named"),
        (["mirror", "list", "x", "--set", "a:b=c"], 2, "does not change a finished bundle"),
        (["mirror", "list", "x", "--format", "jsn"], 2, "did you mean json?"),
    ],
)
def test_usage_errors_of_the_mirror_commands(words: list[str], status: int, said: str) -> None:
    """Each says what to write instead."""
    aicr(*words).refused(status, said)


def test_an_image_of_the_mirror_is_recognised_by_whole_path() -> None:
    """A prefix of a name is not a prefix of a path."""
    assert not images.parse("mirror.local/pfx2/a:1").is_in(MIRROR)
