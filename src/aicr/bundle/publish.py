"""What happens to a finished bundle: it is attested, and pushed to a registry.

```
files --attested(sign)--> files with an attestation    (pure but for the signer)
files --packaged--> manifest and blobs --push--> digest (see ``artifacts.oci``)
```
Both work on the files in memory, so that a bundle which cannot be signed or named is never written.
This module must not know deployers; what a chart needs of its name is asked by the caller.

Source: bundler spec 1.5, 7.1, 7.4, 7.5; decision 57.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from aicr.artifacts import checksums, dsse, oci, statements, whole_files
from aicr.artifacts.registry import Registry
from aicr.bundle import info
from aicr.errors import AicrError, invalid
from aicr.values.versions import is_semver
from aicr.yamlio import write

Files = dict[str, tuple[bytes, int]]

#: Everybody may read an attestation: it holds no secret.
ATTESTATION_MODE = 0o644


def attested(
    files: Mapping[str, tuple[bytes, int]], sign: Callable[[bytes], bytes], *, tool_version: str
) -> Files:
    """*files* with ``settings.attested: true``, a new checksums.txt, and its attestation.

    Args:
        files: a whole bundle.
        sign: makes the attestation file of a statement.
        tool_version: version of this program.

    Raises:
        AicrError: INVALID_REQUEST for a bundle without checksums; what *sign* raises.
    """
    if checksums.CHECKSUMS not in files or info.BUNDLE_INFO not in files:
        raise invalid("a bundle without checksums cannot be attested", where="--attest")
    made: Files = dict(files)
    document = info.read(files[info.BUNDLE_INFO][0].decode())
    document["build"]["settings"]["attested"] = True
    made[info.BUNDLE_INFO] = (write.dump(document).encode(), info.MODE)
    listing = checksums.checksums_txt(made)
    made[checksums.CHECKSUMS] = (listing, checksums.MODE)
    inputs = [path for path in made if path == info.RECIPE or path.startswith(f"{info.DATA}/")]
    facts = statements.Facts(
        recipe=document["build"]["recipe"]["path"],
        deployer=document["build"]["deployer"],
        components=list(dict.fromkeys(r["component"] for r in document["layout"]["releases"])),
        tool_version=tool_version,
        dependencies={path: checksums.sha256_hex(made[path][0]) for path in inputs},
        external=any(path.startswith(f"{info.DATA}/") for path in made),
    )
    subject = {checksums.CHECKSUMS: checksums.sha256_hex(listing)}
    made[dsse.PATH] = (sign(statements.statement(subject, facts)), ATTESTATION_MODE)
    return dict(sorted(made.items()))


def chart_version(tag: str) -> str:
    """The version of the chart that an OCI tag stands for (bundler spec 1.5, test 52).

    Raises:
        AicrError: INVALID_REQUEST when it is not strict SemVer.
    """
    version = tag.replace("_", "+")
    if not is_semver(version):
        raise invalid(
            f"the tag {tag!r} stands for the chart version {version!r}, which is not strict SemVer",
            where="--output",
            hint="tag with three numbers, for example :1.2.0 or :1.2.0_build1",
        )
    return version


def check_image_refs(path: str, bundle_folder: str) -> None:
    """Refuse a place for the digest before anything is made (bundler spec 1.5).

    Raises:
        AicrError: INVALID_REQUEST when its folder is not an existing real folder, it is a folder or
            a link itself, or it lies inside the bundle.
    """
    flag = "--image-refs"
    if not path.strip():
        raise invalid("the name of the file is blank", where=flag, hint="name a file")
    place = os.path.abspath(path)
    parent = os.path.dirname(place)
    if os.path.islink(parent) or not os.path.isdir(parent):
        raise invalid(
            f"{parent} is not an existing folder", where=flag, hint=f"create it: mkdir -p {parent}"
        )
    if os.path.islink(place) or (os.path.lexists(place) and not os.path.isfile(place)):
        raise invalid(f"{path} is not a plain file", where=flag, hint="name a file")
    inside = os.path.realpath(bundle_folder)
    if os.path.commonpath([os.path.realpath(parent), inside]) == inside:
        raise invalid(
            f"{path} lies inside the bundle {bundle_folder}, whose files are all listed",
            where=flag,
            hint="name a file beside the bundle",
        )


def write_image_refs(path: str, digest: str) -> None:
    """Write the digest and a newline to *path*, whole, readable by the owner alone.

    Raises:
        AicrError: INVALID_REQUEST when it cannot be written.
    """
    try:
        whole_files.replace(os.path.abspath(path), f"{digest}\n".encode(), 0o600)
    except OSError as error:
        raise invalid(
            f"the bundle was pushed as {digest}, but {path} cannot be written: {error.strerror}",
            where="--image-refs",
        ) from error


def package(
    files: Mapping[str, tuple[bytes, int]],
    tag: str,
    *,
    deployer: str,
    version: str,
    repository: str,
) -> oci.Package:
    """The artifact of a bundle: a chart for argocd-helm, else the generic form (spec 7.5).

    Args:
        files: the bundle.
        tag: tag it is pushed as.
        deployer: name of the deployer.
        version: version of this program.
        repository: repository in the registry; a chart takes its name from the last segment.

    Raises:
        AicrError: INVALID_REQUEST for an empty tag, or a chart whose name or version differ from
            the repository and the tag.
    """
    if not tag:
        raise invalid("an artifact needs a tag", where="--output", hint="add :TAG")
    if deployer != "argocd-helm":
        return oci.bundle_package(files, version=version)
    from aicr import yamlio

    name = repository.rpartition("/")[2]
    text = files["Chart.yaml"][0].decode() if "Chart.yaml" in files else ""
    chart = yamlio.read_fast(text, source="Chart.yaml")
    if not isinstance(chart, dict):
        raise invalid("the bundle holds no Chart.yaml, so it cannot be pushed as a chart")
    for field, wanted in (("name", name), ("version", chart_version(tag))):
        if chart.get(field) != wanted:
            raise invalid(
                f"the chart's {field} is {chart.get(field)!r}, and the address says {wanted!r}",
                where="--output",
                hint=f"push to a repository and tag that agree with the chart's {field}",
            )
    return oci.chart_package(files, chart)


def push_failed(error: AicrError, folder: str) -> AicrError:
    """*error* with the line that says what is left: the folder, and no moved tag."""
    return AicrError(
        error.code,
        f"the bundle was not pushed; it lies in {folder}, and the tag is as it was",
        where=error.where,
        hint=error.hint or "push again",
    )


def fetch(registry: Registry, address: oci.Address) -> tuple[Files, str]:
    """(files, digest of the manifest) of the bundle at *address*, held against its checksums.

    Raises:
        AicrError: INVALID_REQUEST when it is no bundle, or not a whole one; what the registry
            raises.
    """
    manifest, digest = registry.pull_manifest(address)
    _, layer, size, root = oci.layer_of(manifest, source=str(address))
    files = oci.unpack(registry.pull_blob(address.repository, layer, size), strip=root)
    problems = checksums.examine_files(files)
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise invalid(
            f"{address} is not a whole bundle: {'; '.join(problems[:3])}{more}",
            hint="nothing was written; push the bundle anew",
        )
    return files, digest
