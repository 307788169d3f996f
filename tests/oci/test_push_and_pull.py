"""Bundles travel through a real registry and come out as they went in."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from tests.cli.program import EKS, aicr
from tests.integrity.signed_bundles import KEYS, bundle_files, write_key
from tests.oci.registry_server import ask, serving, tls_files

from aicr.artifacts import oci
from aicr.artifacts.registry import Registry
from aicr.artifacts.wire import Transport
from aicr.version import __version__

PLAIN = Transport(plain_http=True, pause=0.01)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of its own, with a recipe in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.yaml").write_text(aicr("recipe", *EKS).out, encoding="utf-8")
    return tmp_path


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Path -> (bytes, mode) of every file below a folder."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_bundle_is_pushed_materialised_and_pulled_by_tag_and_digest(
    registry: str, work: Path
) -> None:
    """The digest goes to stdout and to --image-refs; ./bundle, tag and digest are one tree (1.5)."""
    private, public = write_key(work, KEYS["P-256"]())
    address = f"oci://{registry}/team/bundle:v1"
    pushed = aicr(
        *("bundle", "-r", "recipe.yaml", "-o", address, "--plain-http"),
        *("--image-refs", "refs.txt", "--attest", "--signing-key", private),
    )
    assert pushed.status == 0, pushed.err
    digest = (work / "refs.txt").read_text()
    assert digest.startswith("sha256:")
    assert digest.endswith("\n")
    assert stat.S_IMODE((work / "refs.txt").stat().st_mode) == 0o600
    assert f"pushed {address}@{digest}" in pushed.out
    bare = f"oci://{registry}/team/bundle@{digest.strip()}"
    for name, place in (("tag", address), ("digest", bare)):
        pulled = aicr("pull", place, "-o", name, "--plain-http")
        assert (pulled.status, pulled.out) == (0, digest), pulled.err
        assert tree(work / name) == tree(work / "bundle")
        assert aicr("verify", name, "--key", public).status == 0


def test_the_manifest_is_the_one_of_the_specification(registry: str, work: Path) -> None:
    """OCI 1.1, our artifact type, one layer, the annotations, no time (7.5)."""
    address = f"oci://{registry}/team/manifest"
    assert aicr("bundle", "-r", "recipe.yaml", "-o", address, "--plain-http").status == 0
    status, body = ask(registry, "GET", f"/v2/team/manifest/manifests/{__version__}")
    document = json.loads(body)
    assert status == 200
    assert document["artifactType"] == "application/vnd.nvidia.aicr.artifact"
    assert document["config"]["mediaType"] == "application/vnd.oci.empty.v1+json"
    assert [layer["mediaType"] for layer in document["layers"]] == [
        "application/vnd.oci.image.layer.v1.tar+gzip"
    ]
    annotations = document["annotations"]
    assert annotations["org.opencontainers.image.title"] == "AICR Bundle"
    assert annotations["org.opencontainers.image.vendor"] == "NVIDIA"
    assert annotations["org.opencontainers.image.version"] == __version__
    assert annotations["org.opencontainers.image.created"] == "1970-01-01T00:00:00Z"


def test_the_same_bundle_has_the_same_digest_each_time(registry: str, work: Path) -> None:
    """Archive and manifest depend on the files alone."""
    digests = []
    for tag in ("a", "b"):
        address = f"oci://{registry}/team/same:{tag}"
        out = aicr("bundle", "-r", "recipe.yaml", "-o", address, "--plain-http").out
        digests.append(out.splitlines()[0].partition("@")[2])
    assert digests[0] == digests[1]


def test_a_blob_that_is_there_is_not_sent_again(registry: str) -> None:
    """A second push of the same content only moves the tag."""
    package = oci.bundle_package(bundle_files(), version="1")
    for tag in ("one", "two"):
        with Registry(registry, PLAIN) as client:
            address = oci.Address(registry, "team/again", tag)
            assert client.push(address, package) == package.manifest.digest


def test_a_large_bundle_goes_up_in_chunks(registry: str) -> None:
    """The registry joins the parts; the digest says that none is missing."""
    files = {"large.bin": (os.urandom(300_000), 0o644)}
    package = oci.bundle_package(files, version="1")
    with Registry(registry, Transport(plain_http=True, chunk=65_536, pause=0.01)) as client:
        client.push(oci.Address(registry, "team/large", "v1"), package)
        layer = package.blobs[1]
        got = client.pull_blob("team/large", layer.digest, len(layer.data))
    assert oci.unpack(got) == files


def test_blobs_of_one_byte_and_of_none_are_pushed(registry: str) -> None:
    """The smallest blobs, whose Range header could mean either."""
    with Registry(registry, PLAIN) as client:
        for data in (b"x", b""):
            digest = client.push_blob("team/small", data)
            assert digest == oci.digest_of(data)
            assert ask(registry, "HEAD", f"/v2/team/small/blobs/{digest}")[0] == 200


def test_tls_with_a_private_authority(tmp_path: Path, work: Path) -> None:
    """--ca-file believes it, --insecure-tls believes anybody, and nothing else does."""
    certificate, key, authority = tls_files(tmp_path / "tls")
    _, _, other = tls_files(tmp_path / "tls", "two")
    with serving(tmp_path / "registry", tls=(certificate, key)) as host:
        push = ("bundle", "-r", "recipe.yaml", "-o", f"oci://{host}/team/bundle:v1")
        refused = aicr(*push)
        refused.refused(6, "was not pushed", "is not who its certificate says", "--ca-file")
        aicr(*push, "--ca-file", other).refused(6, "is not who its certificate says")
        missing = aicr(*push, "--ca-file", tmp_path / "nope.pem")
        missing.refused(3, "there is no file", "nope.pem", "where: --ca-file")
        assert aicr(*push, "--ca-file", authority).status == 0
        pull = ("pull", f"oci://{host}/team/bundle:v1", "-o", "out")
        aicr(*pull).refused(6, "is not who its certificate says")
        assert aicr(*pull, "--insecure-tls").status == 0
        assert tree(work / "out") == tree(work / "bundle")


def test_plain_http_has_to_be_asked_for(registry: str, work: Path) -> None:
    """A registry without TLS fails with the flag that would allow it."""
    result = aicr("pull", f"oci://{registry}/team/bundle:v1", "-o", "out")
    result.refused(6, "cannot be used", "--plain-http")
    assert not (work / "out").exists()


def test_what_is_not_there_is_not_found(registry: str, work: Path) -> None:
    """Exit 3 names the address."""
    result = aicr("pull", f"oci://{registry}/team/none:v9", "-o", "out", "--plain-http")
    result.refused(3, "team/none:v9")
    assert sorted(path.name for path in work.iterdir()) == ["recipe.yaml"]


def test_an_artifact_that_is_no_bundle_is_refused(registry: str, work: Path) -> None:
    """Somebody else's image is not unpacked."""
    config = oci.Blob("application/vnd.oci.image.config.v1+json", b"{}")
    layer = oci.Blob(oci.LAYER_TYPE, oci.archive({"a": (b"", 0o644)}))
    manifest = {
        "schemaVersion": 2,
        "mediaType": oci.MANIFEST_TYPE,
        "config": config.descriptor(),
        "layers": [layer.descriptor()],
    }
    package = oci.Package(
        (config, layer), oci.Blob(oci.MANIFEST_TYPE, json.dumps(manifest).encode())
    )
    with Registry(registry, PLAIN) as client:
        client.push(oci.Address(registry, "team/image", "v1"), package)
    result = aicr("pull", f"oci://{registry}/team/image:v1", "-o", "out", "--plain-http")
    result.refused(2, "is not a bundle: its type is 'application/vnd.oci.image.config.v1+json'")
    assert not (work / "out").exists()


def test_a_bundle_that_was_pushed_incomplete_is_not_written(registry: str, work: Path) -> None:
    """The tree is held against its checksums before anything reaches the disk."""
    files = dict(bundle_files())
    del files["deploy.sh"]
    files["extra"] = (b"", 0o644)
    with Registry(registry, PLAIN) as client:
        package = oci.bundle_package(files, version="1")
        client.push(oci.Address(registry, "team/broken", "v1"), package)
    result = aicr("pull", f"oci://{registry}/team/broken:v1", "-o", "out", "--plain-http")
    result.refused(2, "deploy.sh: listed file is missing", "extra: file is not listed")
    assert not (work / "out").exists()


def test_a_failed_push_leaves_the_bundle_and_no_digest(work: Path) -> None:
    """Nobody listens: the folder is there, --image-refs is not, and the error says so."""
    address = "oci://127.0.0.1:1/team/bundle:v1"
    result = aicr(
        *("bundle", "-r", "recipe.yaml", "-o", address, "--plain-http", "--image-refs", "refs")
    )
    result.refused(6, "was not pushed; it lies in bundle, and the tag is as it was")
    assert not (work / "refs").exists()
    assert aicr("verify", "bundle").status == 0


@pytest.mark.covers("B10-77")
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("bundle/refs", "is not an existing folder"),
        ("none/refs", "is not an existing folder"),
        ("link/refs", "is not an existing folder"),
        ("real", "is not a plain file"),
        ("point", "is not a plain file"),
        ("", "is blank"),
    ],
)
def test_image_refs_needs_a_real_place_outside_of_the_bundle(
    place: str, said: str, work: Path
) -> None:
    """Checked before anything is made (1.5)."""
    (work / "real").mkdir()
    (work / "link").symlink_to("real")
    (work / "point").symlink_to("recipe.yaml")
    address = "oci://127.0.0.1:1/team/bundle:v1"
    result = aicr(
        *("bundle", "-r", "recipe.yaml", "-o", address, "--plain-http", "--image-refs", place)
    )
    result.refused(2, said)
    assert not (work / "bundle").exists()


def test_image_refs_inside_of_an_older_bundle_is_refused(work: Path) -> None:
    """A file more would make the bundle fail its own check."""
    assert aicr("bundle", "-r", "recipe.yaml", "-o", "bundle").status == 0
    result = aicr(
        *("bundle", "-r", "recipe.yaml", "-o", "oci://127.0.0.1:1/team/bundle:v1"),
        *("--plain-http", "--image-refs", "bundle/refs"),
    )
    result.refused(2, "lies inside the bundle")


def test_tls_flags_contradict_plain_http(work: Path) -> None:
    """A usage error of both commands."""
    address = "oci://127.0.0.1:1/team/bundle:v1"
    flags = ("--plain-http", "--insecure-tls")
    aicr("bundle", "-r", "recipe.yaml", "-o", address, *flags).refused(2, "--plain-http goes")
    aicr("pull", address, "-o", "out", *flags).refused(2, "--plain-http goes without")


def test_pull_needs_an_address_with_tag_or_digest_and_a_folder() -> None:
    """Usage errors of pull."""
    aicr("pull").refused(2, "name the address")
    aicr("pull", "oci://h.example/a:v1").refused(2, "--output is required")
    aicr("pull", "oci://h.example/a", "-o", "x").refused(2, "neither a tag nor a digest")
    aicr("pull", "h.example/a:v1", "-o", "x").refused(2, "is not an oci:// address")
