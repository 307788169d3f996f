"""Addresses of artifacts, and archives that come from elsewhere."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import pytest

from aicr.artifacts import oci
from aicr.bundle import publish
from aicr.errors import AicrError


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("oci://registry.example/a/b:v1", ("registry.example", "a/b", "v1", "")),
        ("oci://registry.example:5000/a", ("registry.example:5000", "a", "1.2.3_x", "")),
        ("oci://localhost:5000/a:latest", ("localhost:5000", "a", "latest", "")),
        ("oci://[::1]:5000/a:v1", ("[::1]:5000", "a", "v1", "")),
        (f"oci://h.example/a@sha256:{'0' * 64}", ("h.example", "a", "", f"sha256:{'0' * 64}")),
        (f"oci://h/a:v1@sha256:{'0' * 64}", ("h", "a", "v1", f"sha256:{'0' * 64}")),
    ],
)
def test_an_address_is_taken_apart(text: str, parts: tuple[str, str, str, str]) -> None:
    """A port is no tag, and an address without a tag gets the version, "+" written as "_"."""
    address = oci.parse_address(text, default_tag="1.2.3+x")
    assert (address.registry, address.repository, address.tag, address.digest) == parts
    if address.tag in text:
        assert str(address) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("https://h.example/a", "is not an oci:// address"),
        ("oci://", "'' is not a registry"),
        ("oci://user@h/a:v1", "given with a user name or password"),
        ("oci://h.example", "'' is not a repository"),
        ("oci://h.example/", "'' is not a repository"),
        ("oci://h.example/A/b:v1", "'A/b' is not a repository"),
        ("oci://h.example/a//b", "is not a repository"),
        ("oci://h.example/../b", "is not a repository"),
        ("oci://h.example/a:", "'' is not a tag"),
        ("oci://h.example/a:1+2", "'1+2' is not a tag"),
        ("oci://h.example:0/a", "0 is not a port"),
        ("oci://h.example:99999/a", "99999 is not a port"),
        ("oci://h.example/a@sha256:abc", "is not sha256: and 64 hex digits"),
        ("oci://-h/a", "is not a registry"),
    ],
)
def test_a_wrong_address_names_its_wrong_part(text: str, said: str) -> None:
    """Host, repository, tag and digest each have their rule (7.5)."""
    with pytest.raises(AicrError, match=r".") as caught:
        oci.parse_address(text)
    assert said in caught.value.message
    assert caught.value.exit_status == 2


def test_an_archive_is_the_same_for_the_same_files() -> None:
    """Order of the mapping, time and owner do not show; modes do."""
    files = {"b/x": (b"1", 0o755), "a": (b"2", 0o600)}
    made = oci.archive(files)
    assert made == oci.archive(dict(reversed(files.items())))
    assert oci.unpack(made) == files
    with tarfile.open(fileobj=io.BytesIO(made)) as tar:
        assert [(m.name, m.mtime, m.uid, m.uname) for m in tar] == [
            ("a", 0, 0, ""),
            ("b/x", 0, 0, ""),
        ]


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A tar.gz with these members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    """One entry of an archive."""
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (member("../evil"), "leads out of the tree"),
        (member("/etc/passwd"), "is absolute"),
        (member("a\\b"), "holds a backslash"),
        (member("a", tarfile.SYMTYPE, "/etc/passwd"), "is neither a file nor a folder"),
        (member("a", tarfile.LNKTYPE, "b"), "is neither a file nor a folder"),
        (member("a", tarfile.CHRTYPE), "is neither a file nor a folder"),
        (member("a", tarfile.FIFOTYPE), "is neither a file nor a folder"),
    ],
)
def test_an_archive_with_anything_but_plain_files_is_refused(
    entry: tarfile.TarInfo, said: str
) -> None:
    """Links, devices and paths out of the tree refuse the whole archive."""
    with pytest.raises(AicrError, match=said):
        oci.unpack(packed((member("ok"), b"x"), (entry, b"")))


def test_an_archive_with_one_name_twice_is_refused() -> None:
    """Which of the two would count is anybody's guess."""
    with pytest.raises(AicrError, match="is there twice"):
        oci.unpack(packed((member("a"), b"1"), (member("a"), b"2")))


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small archive cannot fill the disk."""
    monkeypatch.setattr(oci, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(AicrError, match="more than 1000 bytes"):
        oci.unpack(packed((member("a"), b"0" * 2000)))


def test_a_header_of_an_archive_cannot_fill_the_memory() -> None:
    """Headers are held in memory, and a few KiB of archive can make one of any size."""
    header = member("long", tarfile.XHDTYPE)
    header.size = 8 << 20
    plain = header.tobuf(tarfile.USTAR_FORMAT) + b"\0" * header.size
    with pytest.raises(AicrError, match=f"header of {8 << 20} bytes"):
        oci.unpack(gzip.compress(plain, mtime=0))


def test_a_file_with_holes_that_make_no_sense_is_refused() -> None:
    """The library's own complaint about such a map is no crash of ours."""
    holes = member("a")
    holes.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    with pytest.raises(AicrError, match=r"not a tar\.gz archive"):
        oci.unpack(packed((holes, b"x")))


@pytest.mark.parametrize(
    ("mode", "kept"),
    [(0o644, 0o644), (0o600, 0o600), (0o4755, 0o755), (0o222, 0o600), (0, 0o600), (0o666, 0o644)],
)
def test_of_a_mode_only_running_and_reading_count(mode: int, kept: int) -> None:
    """No archive makes a file that runs as its owner, that anybody may write, or nobody can read."""
    entry = member("a")
    entry.mode = mode
    assert oci.unpack(packed((entry, b"x"))) == {"a": (b"x", kept)}


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive", gzip.compress(b"no tar" * 1000, mtime=0), None],
    ids=["empty", "text", "gzip of no tar", "cut short"],
)
def test_what_is_no_archive_is_refused(data: bytes | None) -> None:
    """Also one that ends early."""
    broken = packed((member("a"), b"0" * 5000))[:-30] if data is None else data
    with pytest.raises(AicrError, match=r"not a tar\.gz archive"):
        oci.unpack(broken)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mediaType": "x"}, "is not an OCI image manifest"),
        ({"artifactType": "x"}, "is not a bundle"),
        ({"artifactType": None, "config": [1]}, "is not a bundle: its type is None"),
        ({"artifactType": None, "config": "x"}, "is not a bundle: its type is None"),
        (
            {"artifactType": oci.CHART_CONFIG_TYPE, "annotations": [1], "layers": [{}]},
            "the layer has the type None",
        ),
        ({"layers": []}, "exactly one layer"),
        ({"layers": [{}, {}]}, "exactly one layer"),
        ({"layers": [{"mediaType": "x"}]}, "the layer has the type 'x'"),
        ({"layers": [{"mediaType": oci.LAYER_TYPE, "digest": "md5:1"}]}, "digest is not sha256"),
        (
            {"layers": [{"mediaType": oci.LAYER_TYPE, "digest": f"sha256:{'0' * 64}", "size": -1}]},
            "size -1 is not that of a bundle",
        ),
    ],
)
def test_a_manifest_that_is_not_of_a_bundle_is_refused(
    change: dict[str, object], said: str
) -> None:
    """Type, number of layers, digest and size are checked before anything is fetched."""
    document = json.loads(oci.bundle_package({"a": (b"", 0o644)}, version="1").manifest.data)
    with pytest.raises(AicrError, match=said):
        oci.layer_of(json.dumps(document | change).encode(), source="x")


@pytest.mark.covers("B10-52")
@pytest.mark.parametrize(
    ("tag", "version"),
    [
        ("1.0.0", "1.0.0"),
        ("1.0.0_rc1", "1.0.0+rc1"),
        ("1.0_rc", ""),
        ("v1.0.0", ""),
        ("01.0.0", ""),
    ],
)
def test_a_tag_stands_for_the_version_of_a_chart(tag: str, version: str) -> None:
    """ "_" is "+", and what is not strict SemVer is refused (1.5)."""
    if version:
        assert publish.chart_version(tag) == version
    else:
        with pytest.raises(AicrError, match="not strict SemVer"):
            publish.chart_version(tag)


def chart(name: str = "bundle", version: str = "1.0.0") -> dict[str, tuple[bytes, int]]:
    """A bundle that is a chart."""
    text = f"apiVersion: v2\nname: {name}\nversion: {version}\n"
    return {"Chart.yaml": (text.encode(), 0o644), "values.yaml": (b"{}\n", 0o644)}


def test_a_bundle_for_argocd_helm_is_pushed_as_a_chart() -> None:
    """Helm's media types, the chart's folder inside of the archive, its content as config."""
    made = publish.package(
        chart(), "1.0.0", deployer="argocd-helm", version="0.1.0", repository="team/bundle"
    )
    config, layer = made.blobs
    assert config.media_type == "application/vnd.cncf.helm.config.v1+json"
    assert json.loads(config.data) == {"apiVersion": "v2", "name": "bundle", "version": "1.0.0"}
    assert layer.media_type == "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
    kind, digest, _, root = oci.layer_of(made.manifest.data, source="x")
    assert (kind, digest, root) == (layer.media_type, layer.digest, "bundle")
    assert oci.unpack(layer.data, strip=root) == chart()


@pytest.mark.parametrize(
    ("files", "tag", "said"),
    [
        (chart(name="other"), "1.0.0", "the chart's name is 'other'"),
        (chart(version="2.0.0"), "1.0.0", "the chart's version is '2.0.0'"),
        ({}, "1.0.0", "holds no Chart.yaml"),
        (chart(), "", "needs a tag"),
        (chart(), "v1", "not strict SemVer"),
    ],
)
def test_a_chart_that_does_not_fit_its_address_is_refused(
    files: dict[str, tuple[bytes, int]], tag: str, said: str
) -> None:
    """Repository and chart have one name, tag and chart one version (7.5)."""
    with pytest.raises(AicrError, match=said):
        publish.package(
            files, tag, deployer="argocd-helm", version="0.1.0", repository="team/bundle"
        )
