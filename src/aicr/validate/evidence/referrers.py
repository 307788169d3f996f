"""Artifacts that refer to another one: attaching a signature to a bundle in a registry, and finding it.

```
attach:    blobs, manifest with `subject` ─► the registry says it indexed it, or
                                             we keep the index under the tag sha256-<digest>
referrers: GET /referrers/<digest>        ─► index, or that tag where the registry has no such page
```
Both ways are of the distribution protocol 1.1; the tag is for registries that do not know the first one.
Source: validators spec 9.5; OCI distribution 1.1 "referrers tag schema".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from aicr.artifacts import dsse, oci
from aicr.artifacts.registry import Registry
from aicr.errors import SERVICE_UNAVAILABLE, AicrError, invalid
from aicr.validate.evidence import inventory

INDEX_TYPE: Final = "application/vnd.oci.image.index.v1+json"
#: An attestation as an artifact.
ATTESTATION_TYPE: Final = dsse.MEDIA_TYPE
_FOUND: Final = (200,)
_PUT: Final = (201, 202)

Document = dict[str, Any]


class Referring(Registry):
    """A registry that is also asked for what refers to an artifact."""

    def attach(self, address: oci.Address, subject: oci.Blob, data: bytes) -> str:
        """Attach an attestation to the artifact whose manifest is *subject*; the digest of it.

        Raises:
            AicrError: as ``Registry.push``.
        """
        layer = oci.Blob(ATTESTATION_TYPE, data)
        config = oci.Blob(oci.EMPTY_TYPE, b"{}")
        manifest = oci.Blob(oci.MANIFEST_TYPE, _referrer(layer, config, subject))
        for blob in (config, layer):
            self.push_blob(address.repository, blob.data)
        answer = self._retried(
            "PUT",
            f"/v2/{address.repository}/manifests/{manifest.digest}",
            scope=_scope(address.repository),
            headers={"Content-Type": manifest.media_type},
            body=manifest.data,
        )
        if answer.status not in _PUT:
            raise self._refusal(answer, f"the attestation of {address} was not accepted")
        if not answer.header("oci-subject"):
            self._index(address, subject.digest, manifest)
        return manifest.digest

    def attestations(self, address: oci.Address, digest: str) -> list[bytes]:
        """The attestations that refer to the artifact *digest*; [] when there are none.

        Raises:
            AicrError: as ``Registry.pull_manifest``; INVALID_REQUEST for a referrer that is none.
        """
        found = self._document(address, f"referrers/{digest}")
        if found is None:
            found = self._document(address, f"manifests/{_tag(digest)}")
        made = []
        for entry in (found or {}).get("manifests") or ():
            if isinstance(entry, dict) and entry.get("artifactType") == ATTESTATION_TYPE:
                place = oci.Address(
                    address.registry, address.repository, digest=str(entry.get("digest"))
                )
                made.append(self._attestation(place, digest))
        return made

    def _attestation(self, place: oci.Address, subject: str) -> bytes:
        data, _ = self.pull_manifest(place)
        document = inventory.load(data, str(place))
        layers = document.get("layers") if isinstance(document, dict) else None
        said = document.get("subject") if isinstance(document, dict) else None
        if not isinstance(said, dict) or said.get("digest") != subject:
            raise invalid(f"{place} does not refer to {subject}")
        if not isinstance(layers, list) or len(layers) != 1 or not isinstance(layers[0], dict):
            raise invalid(f"{place}: an attestation has exactly one layer")
        digest, size = layers[0].get("digest"), layers[0].get("size")
        if not isinstance(digest, str) or type(size) is not int or not 0 < size <= dsse.MAX_BYTES:
            raise invalid(f"{place}: the layer is not that of an attestation")
        return self.pull_blob(place.repository, digest, size)

    def _document(self, address: oci.Address, page: str) -> Document | None:
        """An index, or None when there is no such page."""
        answer = self._retried(
            "GET",
            f"/v2/{address.repository}/{page}",
            scope=f"repository:{address.repository}:pull",
            headers={"Accept": INDEX_TYPE},
            limit=oci.MAX_MANIFEST_BYTES,
        )
        if answer.status == 404:
            return None
        if answer.status not in _FOUND:
            raise self._refusal(answer, f"what refers to {address} cannot be read")
        document = inventory.load(answer.body, f"{address} {page}")
        if not isinstance(document, dict) or not isinstance(document.get("manifests"), list):
            raise AicrError(
                SERVICE_UNAVAILABLE, f"{self.host} does not answer with an index for {page}"
            )
        return document

    def _index(self, address: oci.Address, subject: str, manifest: oci.Blob) -> None:
        """Add *manifest* to the index that is kept under a tag."""
        found = self._document(address, f"manifests/{_tag(subject)}") or {"manifests": []}
        entries = [each for each in found["manifests"] if each.get("digest") != manifest.digest]
        entries.append({**manifest.descriptor(), "artifactType": ATTESTATION_TYPE})
        document = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": entries}
        answer = self._retried(
            "PUT",
            f"/v2/{address.repository}/manifests/{_tag(subject)}",
            scope=_scope(address.repository),
            headers={"Content-Type": INDEX_TYPE},
            body=json.dumps(document, separators=(",", ":")).encode(),
        )
        if answer.status not in _PUT:
            raise self._refusal(answer, f"the index of what refers to {address} was not accepted")


def package(files: Mapping[str, bytes], *, version: str) -> oci.Package:
    """The artifact of a bundle: the generic form, titled as evidence."""
    made = oci.bundle_package(
        {path: (data, 0o600) for path, data in files.items()}, version=version
    )
    document = json.loads(made.manifest.data)
    document["annotations"]["org.opencontainers.image.title"] = "AICR Recipe Evidence"
    data = json.dumps(document, separators=(",", ":")).encode()
    return oci.Package(made.blobs, oci.Blob(made.manifest.media_type, data))


def _referrer(layer: oci.Blob, config: oci.Blob, subject: oci.Blob) -> bytes:
    document = {
        "schemaVersion": 2,
        "mediaType": oci.MANIFEST_TYPE,
        "artifactType": ATTESTATION_TYPE,
        "config": config.descriptor(),
        "layers": [layer.descriptor()],
        "subject": subject.descriptor(),
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _tag(digest: str) -> str:
    return digest.replace(":", "-")


def _scope(repository: str) -> str:
    return f"repository:{repository}:pull,push"
