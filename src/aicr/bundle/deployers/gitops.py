"""What the GitOps deployers share: where the bundle is read from, and names that fit.

Argo CD, Flux and Fleet read a bundle from a repository instead of a folder, so their objects carry
its address; and they make objects named after a prefix and a release, which can grow too long.

This module must not know the objects of any of them. Source: bundler spec 1.1, 1.5, 5.0.6; field
cases F4, F7.
"""

from __future__ import annotations

from aicr.artifacts import checksums
from aicr.bundle.addresses import holds_secret
from aicr.bundle.options import TARGET_REVISION
from aicr.contract.object_names import (
    LABEL_LENGTH,
    SUBDOMAIN_LENGTH,
    has_label_form,
    has_subdomain_form,
)
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

    from aicr.bundle.layout import Folder
    from aicr.bundle.options import BundleOptions

    Files = dict[str, tuple[bytes, int]]

OCI: Final = "oci://"
#: Longest name that is used as a Helm release (bundler spec 5.3), and longest label value.
MAX_RELEASE: Final = 53
MAX_LABEL: Final = LABEL_LENGTH
MAX_SUBDOMAIN: Final = SUBDOMAIN_LENGTH
#: Bytes of gzipped, base64-coded content that an object of the cluster's store can hold.
MAX_STORED: Final = 1 << 20

_DIGEST: Final = 8
#: A DNS label, and a name of several with dots between them.
LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = rf"{LABEL}(?:\.{LABEL})*"
_SCHEMES: Final = ("https://", "http://", "ssh://", OCI)
#: The short form of ssh that git takes, `git@host:path`; it is no URL.
_SCP: Final = r"([A-Za-z0-9_.-]+)@([A-Za-z0-9.-]+):([^/:].*)"
_COMMIT_LENGTH: Final = 40
_OF_A_COMMIT: Final = frozenset("0123456789abcdef")


class Repository:
    """Where a GitOps tool reads the bundle from.

    Attributes:
        url: address of the Git repository, or `oci://registry/repository` without a tag.
        revision: branch, tag or commit; for OCI the tag.
        placeholder: whether the address is made up and has to be edited first.
    """

    __slots__ = ("placeholder", "revision", "url")

    def __init__(self, url: str, revision: str, *, placeholder: bool = False) -> None:
        self.url = url
        self.revision = revision
        self.placeholder = placeholder

    @property
    def is_oci(self) -> bool:
        """Whether the bundle is an OCI artifact rather than files in Git."""
        return self.url.startswith(OCI)


def repository(options: BundleOptions, placeholder: str, *, output: bool = True) -> Repository:
    """The repository of a run: `--repo`, else the OCI output, else the placeholder.

    Args:
        options: the flags.
        placeholder: address to stand in for one that was not given.
        output: whether the tool can read the bundle from where it is published.

    Raises:
        AicrError: INVALID_REQUEST for an address that no GitOps tool reads, or one that carries a
            password or token, which would then be stored in the bundle.
    """
    if options.repo:
        check_address(options.repo, "--repo")
        if not options.repo.startswith(OCI):
            return Repository(options.repo, options.target_revision or TARGET_REVISION)
        name, tag = split_reference(options.repo)
        given = options.target_revision if options.target_revision != TARGET_REVISION else ""
        return Repository(name, tag or given or version_tag(options.version))
    if options.oci_reference and output:
        name, tag = oci_output(options)
        return Repository(name, tag)
    return Repository(placeholder, options.target_revision or TARGET_REVISION, placeholder=True)


def oci_output(options: BundleOptions) -> tuple[str, str]:
    """(`oci://registry/repository`, tag) that the bundle is published to.

    Without a tag in the reference it is the version of this program (bundler spec 1.5).
    """
    reference = OCI + options.oci_reference.removeprefix(OCI)
    check_address(reference, "--output")
    name, tag = split_reference(reference)
    return name, tag or version_tag(options.version)


def version_tag(version: str) -> str:
    """A version as a tag: registries take no plus, so helm writes `_` for it (field case F7)."""
    return version.replace("+", "_")


def split_reference(reference: str) -> tuple[str, str]:
    """(reference without tag, tag or ""); the port of a registry is no tag (field case F7)."""
    head, slash, last = reference.rpartition("/")
    name, _, tag = last.partition(":")
    return head + slash + name, tag


def git_reference(revision: str) -> dict[str, str]:
    """A Git revision under the key that says what it is: a commit, a full ref, else a branch."""
    if len(revision) == _COMMIT_LENGTH and _OF_A_COMMIT.issuperset(revision):
        return {"commit": revision}
    if revision.startswith("refs/"):
        return {"name": revision}
    return {"branch": revision}


def as_url(address: str) -> str:
    """The address with a scheme: `git@host:path` written out as ssh."""
    short = _scp(address)
    if short is None:
        return address
    user, host, path = short.groups()
    return f"ssh://{user}@{host}/{path}"


def _scp(address: str) -> re.Match[str] | None:
    """The parts of `git@host:path`, or None for an address of another form."""
    if "@" not in address:
        return None
    import re

    return re.fullmatch(_SCP, address)


def check_address(address: str, flag: str) -> None:
    """Refuse an address that cannot be a repository, or that holds a password.

    Raises:
        AicrError: INVALID_REQUEST naming the flag.
    """
    odd = not address.isprintable() or any(char in address for char in " '\"`\\")
    scheme = next((known for known in _SCHEMES if address.startswith(known)), "")
    rest = address.removeprefix(scheme)
    host = rest.partition("/")[0]
    if odd or not (scheme or _scp(address)) or not host.rpartition("@")[2]:
        raise invalid(
            f"invalid {flag} {address!r}: not the address of a repository",
            where=flag,
            hint="write https://host/path.git, ssh://git@host/path.git or oci://registry/path",
        )
    if holds_secret(address):
        raise invalid(
            f"invalid {flag}: the address holds a password or token, which would be stored in the "
            f"bundle",
            where=flag,
            hint="give the tool that reads the repository its credentials in a Secret",
        )


def fitted(name: str, limit: int) -> str:
    """*name*, or when it is longer than *limit*, its beginning and a digest of the whole.

    Names that differ anywhere stay different, the same name is always cut the same way, and the
    cut never leaves a `-` or `.` at the end (field case F4).
    """
    if len(name) <= limit:
        return name
    digest = checksums.sha256_hex(name.encode())[:_DIGEST]
    return f"{name[: limit - _DIGEST - 1].rstrip('-.')}-{digest}"


def check_name(name: str, flag: str, *, limit: int, subdomain: bool = True) -> None:
    """Refuse a name that Kubernetes would refuse.

    Raises:
        AicrError: INVALID_REQUEST naming the flag.
    """
    fits = has_subdomain_form(name) if subdomain else has_label_form(name)
    if len(name) > limit or not fits:
        raise invalid(
            f"invalid {flag} {name!r}: not a valid object name",
            where=flag,
            hint=f"use lower-case letters, digits and '-', at most {limit} characters",
        )


def terminals(folders: Iterable[Folder]) -> dict[str, Folder]:
    """The last folder of each component: what others wait for."""
    return {folder.parent: folder for folder in folders}


def content(folder: Folder, left_out: Iterable[str]) -> Files:
    """The files of a folder by path in the bundle, without those that a deployer has no use for."""
    unused = set(left_out)
    return {
        f"{folder.dir}/{path}": held for path, held in folder.files.items() if path not in unused
    }


def is_vendored(folder: Folder) -> bool:
    """Whether the folder carries the upstream chart itself."""
    return any(path.startswith("charts/") for path in folder.files)


def stored_size(files: Mapping[str, tuple[bytes, int]]) -> int:
    """Bytes that the files take once gzipped and base64-coded.

    A set that is small even uncompressed is not compressed to find out.
    """
    plain = sum(len(data) for data, _ in files.values())
    if plain * 4 // 3 <= MAX_STORED:
        return plain * 4 // 3
    import zlib

    return sum(len(zlib.compress(data, 9)) for data, _ in files.values()) * 4 // 3


def publish_step(source: Repository, options: BundleOptions) -> tuple[str, ...]:
    """What has to be done before the tool can read the bundle; nothing when this run publishes it."""
    if not source.is_oci:
        return ("push the content of <output folder> to the root of the repository",)
    if options.oci_reference and not options.repo:
        return ()
    return (f"publish the content of <output folder> as {source.url}:{source.revision}",)


def publish_note(source: Repository, what: str) -> list[str]:
    """Lines for README.md about where the bundle has to lie before it can be deployed."""
    if source.is_oci:
        return [f"{what} from `{source.url}:{source.revision}`, so publish the bundle there first."]
    lines = [
        f"{what} from `{source.url}` at `{source.revision}`, where this folder's content must lie",
        "at the root of the repository.",
    ]
    if source.placeholder:
        lines += [
            "",
            "That address is a placeholder: make the bundle again with `--repo`, or edit it in the",
            "files that hold it.",
        ]
    return lines


def text(document: Any, dump: Any) -> bytes:
    """A document as the bytes of a generated file, with a line that says where it comes from."""
    made: str = dump(document)
    return (GENERATED + made).encode()


GENERATED: Final = (
    "# Generated by AICR; change the recipe or the flags and make the bundle again.\n"
)
