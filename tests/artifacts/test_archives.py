"""Archives that come from elsewhere are opened no further than they can be meant."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from aicr.artifacts import archives
from aicr.bundle import chart_archive, chart_render
from aicr.diff import crds
from aicr.errors import INVALID_REQUEST, AicrError

MIB = 1 << 20


def packed(*members: tuple[str, bytes], **headers: str) -> bytes:
    """A tar.gz of files; *headers* are further ones of each."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size, member.pax_headers = len(data), headers
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def header_of(size: int) -> bytes:
    """A tar.gz that is one header of so many bytes."""
    header = tarfile.TarInfo("long")
    header.type, header.size = tarfile.XHDTYPE, size
    return gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + b"\0" * size, mtime=0)


def read(data: bytes, most: int = 64 * MIB) -> dict[str, bytes]:
    """All members of an archive."""
    with archives.opened(data, most=most) as archive:
        return {member.name: archives.content(archive, member) for member in archive}


def test_a_sound_archive_is_read_whole() -> None:
    """Files of several blocks, empty ones, and names longer than a plain header holds."""
    files = {"a": b"", "b/" + "x" * 300: b"1", "c": b"y" * (3 * MIB + 7)}
    assert read(packed(*files.items())) == files


@pytest.mark.parametrize(
    ("data", "most", "said"),
    [
        (header_of(8 * MIB), 64 * MIB, f"a header of {8 * MIB} bytes"),
        (packed(("a", b"0" * 100_000)), 50_000, "more than 50000 bytes"),
        (packed(*((f"{n}", b"") for n in range(200))), 50_000, "more than 50000 bytes"),
    ],
    ids=["one header", "one file", "nothing but headers"],
)
def test_what_unpacks_without_measure_is_refused(data: bytes, most: int, said: str) -> None:
    """Whatever it is that grows, and before it is held in memory."""
    with pytest.raises(AicrError, match=said) as caught:
        read(data, most)
    assert caught.value.code == INVALID_REQUEST


def test_a_header_that_makes_no_sense_is_a_broken_archive() -> None:
    """The library trips over it with an error of its own kind."""
    odd = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    with pytest.raises(archives.BROKEN):
        read(packed(("a", b"x"), **odd))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no archive",
        gzip.compress(b"no tar" * 1000, mtime=0),
        packed(("app/Chart.yaml", b"0" * 5000))[:-30],
        packed(("app/x", b"x"), **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}),
        header_of(8 * MIB),
    ],
    ids=["empty", "text", "gzip of no tar", "cut short", "odd header", "large header"],
)
def test_a_chart_that_is_no_archive_is_refused_by_component(data: bytes) -> None:
    """A chart comes from a repository, so nothing in it may end the run in another way."""
    with pytest.raises(AicrError, match="the chart archive of component 'app'") as caught:
        chart_archive.read(data, component="app")
    assert (caught.value.code, caught.value.where) == (INVALID_REQUEST, "app")


def test_whoever_only_looks_into_a_chart_sees_nothing_in_one_without_measure() -> None:
    """The comparison of CRDs and the version of an application: such a chart is the verifier's."""
    bomb = header_of(8 * MIB)
    assert crds.definitions({"charts/a.tgz": bomb}, []) == {}
    assert chart_render.app_version(bomb) == ""
    sound = packed(
        ("a/Chart.yaml", b"appVersion: 1.2\n"),
        ("a/crds/x.yaml", b"kind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\n"),
    )
    assert list(crds.definitions({"charts/a.tgz": sound}, [])) == ["xs.example.com"]
    assert chart_render.app_version(sound) == "1.2"
