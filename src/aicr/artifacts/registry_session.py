"""Talks with one registry: a request gets its answer, with what log-in and redirects it takes.

```
request --_retried--> _call (Authorization) --_send (redirects)--> _exchange (kept connection) --> Answer
             ^ 502-504, cut    ^ 401: challenge --> token
```
A request that does no harm when it is sent twice is sent again where the line was cut. Only the registry
itself gets a log-in: no other host that it sends us to, and nothing without TLS when it was asked with TLS.
Credentials come from docker's configuration (``registry_auth``).

It must not know blobs and manifests (``registry``). Source: bundler spec 7.5; OCI distribution 1.1.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Final, Self

from aicr.artifacts import locations, refusals
from aicr.artifacts.registry_auth import (
    Challenge,
    Credentials,
    basic,
    parse_challenge,
    token_in,
    token_url,
)
from aicr.artifacts.wire import MAX_ANSWER, Answer, CutError, Transport, connect, fetch, talk
from aicr.errors import SERVICE_UNAVAILABLE, UNAUTHORIZED, AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import http.client
    import ssl

ATTEMPTS: Final = 4
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_MAX_REDIRECTS: Final = 5


class Session:
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
        self._logged_in = False
        self._scheme = "http" if self._transport.plain_http else "https"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

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
        patience = self._transport.busy
        for attempt in range(ATTEMPTS):
            self._wait(attempt)
            try:
                answer = self._call(
                    method, target, scope=scope, headers=headers, body=body, limit=limit
                )
            except CutError as error:
                cut = str(error)
                continue
            put_off = refusals.pause(answer)
            if put_off is not None and put_off <= patience and attempt < ATTEMPTS - 1:
                time.sleep(put_off)
                patience -= put_off
            elif answer.status not in (502, 503, 504):
                return answer
            cut = f"it answered {answer.status}"
        raise refusals.unreachable(self.host, cut, plain_http=self._transport.plain_http)

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
        self._logged_in = held != Credentials()
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
            whom = " to this log-in" if self._logged_in else ""
            raise AicrError(
                UNAUTHORIZED,
                f"{self.host} refuses a token for {scope}{whom}",
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
        return refusals.refusal(answer, what, host=self.host, logged_in=self._logged_in)


def _without_credentials(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "Authorization"}
