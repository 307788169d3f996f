"""A small client of the OCI distribution protocol: blobs and manifests, whole or not at all.

```
push: blobs (already there? else upload in chunks, resumed after a cut) --> manifest, last
pull: manifest --digest checked--> layer (resumed after a cut) --digest and size checked--> bytes
```
The manifest goes last, so a tag moves only when everything it needs is there. A cut upload or download is
resumed where it got to, a few times; then the upload is cancelled and the error says so.

It must not know what it carries, nor how a request gets its answer (``registry_session``). Source: bundler
spec 7.5; OCI distribution 1.1.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from aicr.artifacts import locations, oci
from aicr.artifacts.registry_session import ATTEMPTS, Session
from aicr.artifacts.wire import CutError
from aicr.errors import SERVICE_UNAVAILABLE, AicrError

#: Answers to a question about an upload that mean: start it anew.
_LOST_UPLOAD: Final = (400, 404, 416)
#: How registries say that a tag, once pushed, stays what it is.
_TAG_STAYS: Final = re.compile(rb"immutable|already exists|overwrit", re.IGNORECASE)


class Registry(Session):
    """One registry: its blobs and manifests."""

    def push(self, address: oci.Address, package: oci.Package) -> str:
        """Push *package* as *address*; the digest of its manifest.

        Raises:
            AicrError: UNAUTHORIZED, RATE_LIMIT_EXCEEDED, TIMEOUT or SERVICE_UNAVAILABLE; the tag
                is as it was then.
        """
        for blob in package.blobs:
            self.push_blob(address.repository, blob.data)
        digest = package.manifest.digest
        answer = self._retried(
            "PUT",
            f"/v2/{address.repository}/manifests/{address.tag or digest}",
            scope=_scope(address.repository, "pull,push"),
            headers={"Content-Type": package.manifest.media_type},
            body=package.manifest.data,
        )
        if answer.status not in (201, 202):
            refusal = self._refusal(answer, f"the manifest of {address} was not accepted")
            if 400 <= answer.status < 500 and _TAG_STAYS.search(answer.body):
                refusal.hint = "the registry keeps a tag as it is: push to another tag"
            raise refusal
        stored = answer.header("docker-content-digest")
        if stored and stored != digest:
            raise oci.wrong_bytes(str(address), digest, stored)
        return digest

    def push_blob(self, repository: str, data: bytes) -> str:
        """Put *data* there unless it is there already; its digest."""
        digest = oci.digest_of(data)
        scope = _scope(repository, "pull,push")
        place = f"/v2/{repository}/blobs/{digest}"
        if self._retried("HEAD", place, scope=scope).status == 200:
            return digest
        location = self._start(repository, scope)
        try:
            location = self._upload(repository, location, data, scope)
            done = self._retried(
                "PUT", locations.with_digest(location, digest), scope=scope, body=b""
            )
            if done.status not in (201, 204):
                # The answer to a finished upload can be lost; the blob then is there all the same.
                if self._retried("HEAD", place, scope=scope).status == 200:
                    return digest
                raise self._refusal(done, f"a blob of {self.host}/{repository} was not accepted")
        except AicrError:
            self._cancel(location, scope)
            raise
        return digest

    def pull_manifest(self, address: oci.Address) -> tuple[bytes, str]:
        """(bytes, digest) of the manifest at *address*, which fit each other."""
        answer = self._retried(
            "GET",
            f"/v2/{address.repository}/manifests/{address.reference}",
            scope=_scope(address.repository, "pull"),
            headers={"Accept": oci.MANIFEST_TYPE},
            limit=oci.MAX_MANIFEST_BYTES,
        )
        if answer.status != 200:
            raise self._refusal(answer, f"{address} cannot be read")
        digest = oci.digest_of(answer.body)
        stated = address.digest or answer.header("docker-content-digest")
        if stated and stated != digest:
            raise oci.wrong_bytes(str(address), stated, digest)
        return answer.body, digest

    def pull_blob(self, repository: str, digest: str, size: int) -> bytes:
        """The blob with *digest*, all *size* bytes of it."""
        held = bytearray()
        source = f"{self.host}/{repository}@{digest}"
        cut = ""
        for attempt in range(ATTEMPTS):
            self._wait(attempt)
            headers = {"Range": f"bytes={len(held)}-"} if held else {}
            try:
                answer = self._call(
                    "GET",
                    f"/v2/{repository}/blobs/{digest}",
                    scope=_scope(repository, "pull"),
                    headers=headers,
                    limit=size,
                    into=held,
                )
            except CutError as error:
                cut = str(error)
                continue
            if answer.status >= 500:
                cut = f"the registry answered {answer.status}"
                continue
            if answer.status not in (200, 206):
                raise self._refusal(answer, f"{source} cannot be read")
            if len(held) < size:
                cut = f"it ended after {len(held)} of {size} bytes"
                continue
            got = f"sha256:{hashlib.sha256(held).hexdigest()}"
            if len(held) != size or got != digest:
                raise oci.wrong_bytes(source, digest, got)
            return bytes(held)
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"{source} could not be received: {cut}",
            hint="nothing was written; check the network and try again",
        )

    def _start(self, repository: str, scope: str) -> str:
        """Where a new upload is sent to."""
        answer = self._retried("POST", f"/v2/{repository}/blobs/uploads/", scope=scope, body=b"")
        if answer.status != 202 or not answer.header("location"):
            raise self._refusal(answer, f"{self.host}/{repository} takes no upload")
        return answer.header("location")

    def _upload(self, repository: str, location: str, data: bytes, scope: str) -> str:
        """Send *data* in chunks to *location*; where the next request goes."""
        sent = failures = 0
        while sent < len(data):
            chunk = data[sent : sent + self._transport.chunk]
            headers = {
                "Content-Type": "application/octet-stream",
                "Content-Range": f"{sent}-{sent + len(chunk) - 1}",
            }
            try:
                answer = self._call("PATCH", location, scope=scope, headers=headers, body=chunk)
            except CutError as error:
                problem = str(error)
            else:
                if answer.status == 202:
                    location = answer.header("location") or location
                    taken = _taken(answer.header("range"))
                    # A registry that does not say how much it has, has what was sent.
                    now = sent + len(chunk) if taken is None else taken
                    if now > sent:
                        sent = now
                        continue
                elif answer.status < 500 and answer.status not in _LOST_UPLOAD:
                    raise self._refusal(answer, f"{self.host} refused a part of an upload")
                problem = f"the registry answered {answer.status}"
            failures += 1
            if failures >= ATTEMPTS:
                raise AicrError(
                    SERVICE_UNAVAILABLE,
                    f"the upload to {self.host} was cut off {failures} times, last after {sent} of "
                    f"{len(data)} bytes: {problem}",
                    hint="check the network and push again",
                )
            self._wait(failures)
            sent, location = self._resume(repository, location, sent, scope)
        return location

    def _resume(self, repository: str, location: str, sent: int, scope: str) -> tuple[int, str]:
        """(bytes that the registry has, where to go on) of an upload that was cut."""
        answer = self._retried("GET", location, scope=scope)
        if answer.status in _LOST_UPLOAD:
            return 0, self._start(repository, scope)
        if answer.status != 204:
            raise self._refusal(answer, f"{self.host} does not say how far an upload got")
        taken = _taken(answer.header("range"))
        # "0-0" is what registries say of an upload that has nothing yet.
        if taken is None or (taken == 1 and not sent):
            taken = 0
        return taken, answer.header("location") or location

    def _cancel(self, location: str, scope: str) -> None:
        try:
            self._call("DELETE", location, scope=scope)
        except (CutError, AicrError):
            # The registry forgets uploads that nobody finishes; the first error is what matters.
            return


def _scope(repository: str, actions: str) -> str:
    return f"repository:{repository}:{actions}"


def _taken(header: str) -> int | None:
    """Bytes that a Range header says are there: ``0-99`` are 100; None when it says nothing."""
    match = re.fullmatch(r"(?:bytes=)?0-(\d+)", header.strip())
    return int(match.group(1)) + 1 if match else None
