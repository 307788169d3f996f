"""A small client of the OCI distribution protocol: blobs and manifests, whole or not at all.

```
push: blobs (already there? else upload in chunks, resumed after a cut) --> manifest, last
pull: manifest --digest checked--> layer (resumed after a cut) --digest and size checked--> bytes
```
The manifest goes last, so a tag moves only when everything it needs is there. A cut connection is
resumed where the registry says it got to, a few times; then the upload is cancelled and the error
says so. Credentials come from docker's configuration (``registry_auth``).

It must not know what it carries. Source: bundler spec 7.5; OCI distribution 1.1.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

from aicr.artifacts import locations, oci
from aicr.artifacts.registry_auth import (
    Challenge,
    Credentials,
    basic,
    parse_challenge,
    token_in,
    token_url,
)
from aicr.artifacts.wire import MAX_ANSWER, Answer, CutError, Transport, connect, fetch, talk
from aicr.errors import (
    NOT_FOUND,
    RATE_LIMIT_EXCEEDED,
    SERVICE_UNAVAILABLE,
    UNAUTHORIZED,
    AicrError,
    invalid,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import http.client
    import ssl

ATTEMPTS: Final = 4
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_MAX_REDIRECTS: Final = 5
#: Answers to a question about an upload that mean: start it anew.
_LOST_UPLOAD: Final = (400, 404, 416)
#: How registries say that a tag, once pushed, stays what it is.
_TAG_STAYS: Final = re.compile(rb"immutable|already exists|overwrit", re.IGNORECASE)


class Registry:
    """One registry, over one connection that is opened again when it breaks."""

    def __init__(
        self,
        host: str,
        transport: Transport | None = None,
        credentials: Callable[[str], Credentials] | None = None,
    ) -> None:
        self.host = host
        self._netloc = locations.served_at(host)
        self._transport = transport or Transport()
        self._context = self._transport.context()
        self._credentials = credentials
        self._connection: http.client.HTTPConnection | None = None
        self._authorization: dict[str, str] = {}
        self._scheme = "http" if self._transport.plain_http else "https"

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

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

    def _wait(self, attempt: int) -> None:
        if attempt:
            time.sleep(self._transport.pause * 2 ** (attempt - 1))

    def _retried(
        self,
        method: str,
        target: str,
        *,
        scope: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        limit: int = MAX_ANSWER,
    ) -> Answer:
        """A request that does no harm when it is sent twice, sent until it is answered."""
        cut = ""
        for attempt in range(ATTEMPTS):
            self._wait(attempt)
            try:
                answer = self._call(
                    method, target, scope=scope, headers=headers, body=body, limit=limit
                )
            except CutError as error:
                cut = str(error)
                continue
            if answer.status not in (502, 503, 504):
                return answer
            cut = f"it answered {answer.status}"
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"the registry {self.host} cannot be used: {cut}",
            hint="check the address and the network; plain HTTP needs --plain-http",
        )

    def _call(
        self,
        method: str,
        target: str,
        *,
        scope: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        limit: int = MAX_ANSWER,
        into: bytearray | None = None,
    ) -> Answer:
        """One request, with whatever authorization the registry asks for."""
        sent = dict(headers or {})
        known = self._authorization.get(scope)
        if known:
            sent["Authorization"] = known
        answer = self._send(method, target, sent, body, limit, into)
        if answer.status != 401:
            return answer
        granted = self._authorize(parse_challenge(answer.header("www-authenticate")), scope)
        if not granted or granted == known:
            return answer
        self._authorization[scope] = granted
        sent["Authorization"] = granted
        return self._send(method, target, sent, body, limit, into)

    def _authorize(self, challenge: Challenge, scope: str) -> str:
        """The Authorization that answers a challenge, "" when there is none to give."""
        held = self._credentials(self.host) if self._credentials else Credentials()
        if challenge.scheme == "basic":
            return basic(held)
        if challenge.scheme != "bearer" or not challenge.realm:
            return ""
        if self._scheme == "https" and locations.parts(challenge.realm).scheme != "https":
            raise invalid(
                f"{self.host} asks for a log-in at {challenge.realm}, which is without TLS",
                hint="its owner must give its token service an https address; no log-in was sent",
            )
        method, url, headers, body = token_url(challenge, scope, held)
        answer = fetch(method, url, headers, body, self._context_for(url), self._transport.timeout)
        if answer.status in (401, 403):
            raise AicrError(
                UNAUTHORIZED,
                f"{self.host} refuses a token for {scope}",
                hint=f"log in: docker login {self.host}",
            )
        if answer.status != 200:
            raise self._refusal(answer, f"the token service of {self.host} cannot be used")
        return f"Bearer {token_in(answer.body, self.host)}"

    def _context_for(self, url: str) -> ssl.SSLContext | None:
        if not url.startswith("https:"):
            return None
        return self._context or Transport().context()

    def _send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        limit: int,
        into: bytearray | None,
    ) -> Answer:
        """One exchange; another host that we are sent to neither gets nor asks for a log-in."""
        base = f"{self._scheme}://{self._netloc}"
        own = locations.place(locations.parts(base))
        url = locations.joined(base, target)
        for _ in range(_MAX_REDIRECTS):
            parts = locations.parts(url)
            if self._scheme == "https" and parts.scheme != "https":
                raise invalid(
                    f"{self.host} sends us from https to {url}",
                    hint="its owner must give it its outer address; nothing was sent there",
                )
            if locations.place(parts) == own:
                path = parts.path + (f"?{parts.query}" if parts.query else "")
                answer = self._exchange(method, path, headers, body, limit, into)
            else:
                answer = fetch(
                    method,
                    url,
                    _without_credentials(headers),
                    body,
                    self._context_for(url),
                    self._transport.timeout,
                    limit,
                    into,
                )
                if answer.status == 401:
                    # Its challenge would name whom to send our password to.
                    answer = dataclasses.replace(answer, headers={})
            if answer.status not in _REDIRECTS or not answer.header("location"):
                return answer
            url = locations.joined(url, answer.header("location"))
        raise AicrError(SERVICE_UNAVAILABLE, f"{self.host} redirects in circles")

    def _exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        limit: int,
        into: bytearray | None,
    ) -> Answer:
        fresh = self._connection is None
        if self._connection is None:
            self._connection = connect(self._netloc, self._context, self._transport.timeout)
        try:
            return talk(self._connection, self.host, method, path, headers, body, limit, into)
        except CutError:
            self.close()
            if fresh or into or method not in ("GET", "HEAD"):
                raise
        except BaseException:
            self.close()
            raise
        # A kept connection that the other side has closed meanwhile is no failure.
        self._connection = connect(self._netloc, self._context, self._transport.timeout)
        try:
            return talk(self._connection, self.host, method, path, headers, body, limit, into)
        except BaseException:
            self.close()
            raise

    def _refusal(self, answer: Answer, what: str) -> AicrError:
        codes = {
            401: UNAUTHORIZED,
            403: UNAUTHORIZED,
            404: NOT_FOUND,
            429: RATE_LIMIT_EXCEEDED,
        }
        code = codes.get(answer.status, SERVICE_UNAVAILABLE)
        said = re.sub(r"\s+", " ", answer.body.decode("utf-8", "replace")).strip()[:300]
        hint = {
            UNAUTHORIZED: f"log in: docker login {self.host}",
            NOT_FOUND: "check the address",
            RATE_LIMIT_EXCEEDED: "wait, then try again",
        }.get(code, "look at the registry's log")
        return AicrError(
            code, f"{what}: it answered {answer.status}" + (f" {said}" if said else ""), hint=hint
        )


def _scope(repository: str, actions: str) -> str:
    return f"repository:{repository}:{actions}"


def _taken(header: str) -> int | None:
    """Bytes that a Range header says are there: ``0-99`` are 100; None when it says nothing."""
    match = re.fullmatch(r"(?:bytes=)?0-(\d+)", header.strip())
    return int(match.group(1)) + 1 if match else None


def _without_credentials(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "Authorization"}
