"""A bundle that is not as it was made is refused, and what was done to it is named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.program import aicr
from tests.integrity.signed_bundles import KEYS, bundle_files, signed, write_key, written

from aicr.artifacts import signing


def edit_recipe(bundle: Path) -> None:
    """Change one listed file."""
    with (bundle / "recipe.yaml").open("a") as stream:
        stream.write("extra: 1\n")


def add_file(bundle: Path) -> None:
    """Add a file that nobody listed."""
    (bundle / "001-driver" / "templates").mkdir()
    (bundle / "001-driver" / "templates" / "x.yaml").write_text("a: 1\n")


def delete_file(bundle: Path) -> None:
    """Delete a listed file."""
    (bundle / "001-driver" / "values.yaml").unlink()


def link_to_the_same(bundle: Path) -> None:
    """Put a link to equal content in the place of a file."""
    place = bundle / "001-driver" / "values.yaml"
    twin = bundle.parent / "twin.yaml"
    twin.write_bytes(place.read_bytes())
    place.unlink()
    place.symlink_to(twin)


def list_outside(bundle: Path) -> None:
    """List a path outside of the bundle."""
    with (bundle / "checksums.txt").open("a") as stream:
        stream.write(f"{'0' * 64}  ../outside\n")


def add_empty_folder(bundle: Path) -> None:
    """Add a folder without a file."""
    (bundle / "void").mkdir()


def add_link(bundle: Path) -> None:
    """Add a link beside the listed files."""
    (bundle / "more").symlink_to("recipe.yaml")


def add_pipe(bundle: Path) -> None:
    """Add what is neither file nor folder."""
    os.mkfifo(bundle / "pipe")


def delete_list(bundle: Path) -> None:
    """Delete checksums.txt."""
    (bundle / "checksums.txt").unlink()


def list_twice(bundle: Path) -> None:
    """Say one line again."""
    place = bundle / "checksums.txt"
    text = place.read_text()
    place.write_text(text + text.splitlines()[0] + "\n")


TAMPERINGS: dict[str, tuple[Callable[[Path], None], str]] = {
    "edited recipe": (edit_recipe, "recipe.yaml: content differs from its checksum"),
    "extra file": (add_file, "001-driver/templates/x.yaml: file is not listed in checksums.txt"),
    "deleted file": (delete_file, "001-driver/values.yaml: listed file is missing"),
    "link to the same": (link_to_the_same, "001-driver/values.yaml: symbolic link"),
    "listed outside": (list_outside, "path '../outside' leads out of the tree"),
    "empty folder": (add_empty_folder, "void: folder is empty"),
    "extra link": (add_link, "more: symbolic link"),
    "pipe": (add_pipe, "pipe: special file"),
    "no list": (delete_list, "checksums.txt: is missing"),
    "listed twice": (list_twice, "is listed twice"),
}


@pytest.mark.covers("F12", "B10-75")
@pytest.mark.parametrize("kind", ["unsigned", "signed"])
@pytest.mark.parametrize(("tamper", "said"), TAMPERINGS.values(), ids=list(TAMPERINGS))
def test_each_tampering_is_refused_and_named(
    tamper: Callable[[Path], None], said: str, kind: str, tmp_path: Path
) -> None:
    """Exit 8, level unknown, and the path with what is wrong; a signature changes nothing of it."""
    private, public = write_key(tmp_path, KEYS["Ed25519"]())
    files = bundle_files()
    bundle = Path(written(tmp_path / "b", files if kind == "unsigned" else signed(files, private)))
    key = [] if kind == "unsigned" else ["--key", public]
    assert aicr("verify", bundle, *key).status == 0
    tamper(bundle)
    result = aicr("verify", bundle, *key, "--format", "json")
    report = json.loads(result.out)
    assert (result.status, report["trustLevel"], report["checksumsPassed"]) == (8, "unknown", False)
    assert any(said in error for error in report["errors"]), report["errors"]
    assert not report["bundleAttested"]
    text = aicr("verify", bundle, *key)
    assert said in text.out
    assert text.out.endswith("verify: FAILED\n")


@pytest.mark.covers("F12")
def test_line_ends_of_windows_in_the_list_are_read(tmp_path: Path) -> None:
    """A checkout that turned the list's line ends does not make a bundle bad."""
    bundle = Path(written(tmp_path / "b", bundle_files()))
    place = bundle / "checksums.txt"
    place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))
    assert aicr("verify", bundle).status == 0


def test_line_ends_of_windows_in_a_signed_list_are_named(tmp_path: Path) -> None:
    """The signature is over the bytes, so it does not hold, and the reason is not "another list"."""
    private, public = write_key(tmp_path, KEYS["P-256"]())
    bundle = Path(written(tmp_path / "b", signed(bundle_files(), private)))
    place = bundle / "checksums.txt"
    place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))
    result = aicr("verify", bundle, "--key", public)
    assert result.status == 8
    assert "the line ends of checksums.txt were changed to those of Windows" in result.out


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"x\nverify: PASSED", r"x\nverify: PASSED"),
        (b"\x1b[2Jx", r"\x1b[2Jx"),
        ("a\u202ehs.b".encode(), r"a\u202ehs.b"),
        (b"\xff\xfe", r"\udcff\udcfe"),
    ],
    ids=["line feed", "escape", "right to left", "no text"],
)
def test_the_name_of_a_file_cannot_write_the_report(
    name: bytes, shown: str, tmp_path: Path
) -> None:
    """Whoever adds a file chooses its name; it stays one line, and is told in both forms."""
    bundle = written(tmp_path / "b", bundle_files())
    with open(os.path.join(os.fsencode(bundle), name), "w"):
        pass
    text = aicr("verify", bundle)
    assert text.status == 8
    assert f"  - {shown}: file is not listed in checksums.txt\n" in text.out
    assert [line for line in text.out.splitlines() if line.startswith("verify:")] == [
        "verify: FAILED"
    ]
    report = json.loads(aicr("verify", bundle, "--format", "json").out)
    assert len(report["errors"]) == 1


def test_the_words_of_an_attestation_cannot_write_the_report(tmp_path: Path) -> None:
    """The name of the key is outside of what is signed, so a stranger chooses it."""
    private, _ = write_key(tmp_path, KEYS["P-256"]())
    bundle = Path(written(tmp_path / "b", signed(bundle_files(), private)))
    place = bundle / "attestation" / "bundle-attestation.sigstore.json"
    document = json.loads(place.read_text())
    document["verificationMaterial"]["publicKey"]["hint"] = "x\nverify: PASSED\n"
    place.write_text(json.dumps(document))
    lines = aicr("verify", bundle).out.splitlines()
    assert [line for line in lines if line.startswith("verify:")] == ["verify: FAILED"]


@pytest.mark.covers("F12")
def test_a_bundle_below_a_linked_folder_is_verified(tmp_path: Path) -> None:
    """How the folder is reached does not matter; only links inside of it do."""
    (tmp_path / "real").mkdir()
    written(tmp_path / "real" / "b", bundle_files())
    (tmp_path / "link").symlink_to("real")
    assert aicr("verify", tmp_path / "link" / "b").status == 0


@pytest.mark.covers("B10-76")
def test_an_untouched_bundle_without_attestation_passes_as_unverified(tmp_path: Path) -> None:
    """The default asks for the most that this bundle can reach, which is unverified."""
    bundle = written(tmp_path / "b", bundle_files())
    result = aicr("verify", bundle, "--min-trust-level", "max", "--format", "json")
    assert result.status == 0
    assert json.loads(result.out) == {
        "trustLevel": "unverified",
        "checksumsPassed": True,
        "checksumFiles": 4,
        "bundleAttested": False,
        "binaryAttested": False,
        "identityPinned": False,
        "bundleCreator": "",
        "binaryBuilder": "",
        "toolVersion": "",
        "hasExternalData": False,
        "errors": [],
    }


def test_new_checksums_over_a_change_are_caught_by_the_signature(tmp_path: Path) -> None:
    """Whoever changes a file and lists it anew has another list than the signed one."""
    private, public = write_key(tmp_path, KEYS["P-256"]())
    files = signed(bundle_files(), private)
    other = bundle_files()
    other["deploy.sh"] = (b"#!/bin/sh\nevil\n", 0o755)
    from aicr.artifacts import checksums, dsse

    changed = dict(files) | {"deploy.sh": other["deploy.sh"]}
    changed["checksums.txt"] = (checksums.checksums_txt(changed), 0o600)
    assert dsse.PATH in changed
    bundle = written(tmp_path / "b", changed)
    result = aicr("verify", bundle, "--key", public)
    assert result.status == 8
    assert "the attestation is about another checksums.txt" in result.out


def test_taking_the_attestation_away_does_not_satisfy_a_pinned_key(tmp_path: Path) -> None:
    """With --key there is no way down to unverified."""
    private, public = write_key(tmp_path, KEYS["P-256"]())
    bundle = Path(written(tmp_path / "b", signed(bundle_files(), private)))
    (bundle / "attestation" / "bundle-attestation.sigstore.json").unlink()
    (bundle / "attestation").rmdir()
    result = aicr("verify", bundle, "--key", public)
    assert result.status == 8
    assert "the bundle carries no attestation, so --key cannot be met" in result.out


def test_another_key_is_refused_by_name(tmp_path: Path) -> None:
    """The error names the key that signed and the one that was given."""
    private, _ = write_key(tmp_path, KEYS["P-256"]())
    _, other = write_key(tmp_path, KEYS["P-256"](), "other")
    bundle = written(tmp_path / "b", signed(bundle_files(), private))
    result = aicr("verify", bundle, "--key", other)
    assert result.status == 8
    for name in ("key.pub", "other.pub"):
        assert signing.load_public_key(str(tmp_path / name)).key_id in result.out
    assert "the attestation's signature was not made with this key; it names the key" in result.out
    assert "trust level:   unknown" in result.out


def test_a_signed_bundle_without_a_key_to_check_it_is_unknown(tmp_path: Path) -> None:
    """An attestation that nobody could check is no reason for trust, whatever level is asked."""
    private, _ = write_key(tmp_path, KEYS["P-256"]())
    bundle = written(tmp_path / "b", signed(bundle_files(), private))
    result = aicr("verify", bundle, "--min-trust-level", "unverified")
    assert result.status == 8
    assert "pass --key with the public key of whoever signed the bundle" in result.out


def test_a_smuggled_binary_attestation_is_an_error(tmp_path: Path) -> None:
    """The list leaves that file out, so its content could be anything; it is not believed."""
    bundle = Path(written(tmp_path / "b", bundle_files()))
    (bundle / "attestation").mkdir()
    (bundle / "attestation" / "aicr-attestation.sigstore.json").write_text("{}")
    result = aicr("verify", bundle)
    assert result.status == 8
    assert "an attestation of a binary is not checked" in result.out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not valid JSON"),
        (b"{}", "no usable mediaType"),
        (b'{"mediaType": "x"}', "has the media type 'x'"),
        (b"\xff", "is not UTF-8"),
        (b'{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}', "dsseEnvelope"),
        (
            b'{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": '
            b'{"signatures": []}}',
            "has no signature",
        ),
    ],
)
def test_a_broken_attestation_is_named(content: bytes, said: str, tmp_path: Path) -> None:
    """A file that is no attestation leaves the bundle unknown, with the reason."""
    private, public = write_key(tmp_path, KEYS["P-256"]())
    bundle = Path(written(tmp_path / "b", signed(bundle_files(), private)))
    (bundle / "attestation" / "bundle-attestation.sigstore.json").write_bytes(content)
    result = aicr("verify", bundle, "--key", public)
    assert result.status == 8
    assert said in result.out


def test_a_missing_bundle_is_not_found_and_a_file_is_no_bundle(tmp_path: Path) -> None:
    """What cannot be judged exits 3 and 2, not 8 (decision 46)."""
    found = aicr("verify", tmp_path / "none")
    found.refused(3, "no such folder")
    assert "next: name the folder that aicr bundle wrote" in found.err
    (tmp_path / "file").write_text("")
    aicr("verify", tmp_path / "file").refused(2, "not a folder")
    aicr("verify").refused(2, "name the bundle to verify")
