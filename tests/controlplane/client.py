"""A small Kubernetes client for tests and the test node agent, on the standard library alone.

Deliberately not the product's client: tests of that one need a second pair of eyes, and the agent
has to stay small. One connection a thread; a request that found its connection closed by the server
is sent once more.

Everything is plain documents. Paths are given as they are in the API, for example
"/api/v1/namespaces/default/pods".
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

Document = dict[str, Any]
Answer = TypeVar("Answer")
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
#: Kinds that tests make, with the API that serves them and whether they live in a namespace.
RESOURCES: Final[Mapping[str, tuple[str, str, bool]]] = {
    "ConfigMap": ("/api/v1", "configmaps", True),
    "DaemonSet": ("/apis/apps/v1", "daemonsets", True),
    "Deployment": ("/apis/apps/v1", "deployments", True),
    "DeviceClass": ("/apis/resource.k8s.io/v1", "deviceclasses", False),
    "Event": ("/api/v1", "events", True),
    "Job": ("/apis/batch/v1", "jobs", True),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases", True),
    "MutatingWebhookConfiguration": (
        *("/apis/admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"),
        False,
    ),
    "Namespace": ("/api/v1", "namespaces", False),
    "Node": ("/api/v1", "nodes", False),
    "Pod": ("/api/v1", "pods", True),
    "PodGroup": ("/apis/scheduling.k8s.io/v1alpha2", "podgroups", True),
    "ResourceClaim": ("/apis/resource.k8s.io/v1", "resourceclaims", True),
    "ResourceClaimTemplate": ("/apis/resource.k8s.io/v1", "resourceclaimtemplates", True),
    "ResourceSlice": ("/apis/resource.k8s.io/v1", "resourceslices", False),
    "Secret": ("/api/v1", "secrets", True),
    "ServiceAccount": ("/api/v1", "serviceaccounts", True),
}


class ApiError(Exception):
    """The API server refused: HTTP status, reason and message of its Status document."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message = status, reason, message


def path_of(kind: str, namespace: str | None = None, name: str | None = None) -> str:
    """API path of a collection, or of one object when *name* is given."""
    root, plural, namespaced = RESOURCES[kind]
    parts = [root]
    if namespaced and namespace is not None:
        parts.append(f"namespaces/{namespace}")
    parts.append(plural)
    if name is not None:
        parts.append(name)
    return "/".join(parts)


class Client:
    """Requests to one API server as one user."""

    def __init__(
        self, server: str, authority: Path, *, token: str | None = None, timeout: float = 30.0
    ) -> None:
        address = urlsplit(server)
        self._host, self._port = address.hostname or "", address.port or 443
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        """Close the connections of all threads; the next request opens one again."""
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()
            self._local = threading.local()

    def _connection(self, timeout: float | None) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self._host, self._port, context=self._tls, timeout=timeout
        )

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        """The body of the answer.

        Raises:
            ApiError: the answer is not a success.
            OSError: the server cannot be reached.
        """
        url = f"{path}?{urlencode(query)}" if query else path
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Accept": accept}
        if data is not None:
            headers["Content-Type"] = content_type
        for attempt in (0, 1):
            fresh = getattr(self._local, "connection", None) is None
            if fresh:
                self._local.connection = self._connection(self._timeout)
                with self._lock:
                    self._open.append(self._local.connection)
            connection: http.client.HTTPSConnection = self._local.connection
            try:
                connection.request(method, url, data, headers)
                answer = connection.getresponse()
                text = answer.read()
                break
            except (http.client.HTTPException, OSError):
                connection.close()
                self._local.connection = None
                if fresh or attempt:
                    raise
        if answer.status >= 300:
            raise _refusal(answer.status, text)
        return text

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Document:
        """Like `request`, for an answer that is a JSON document."""
        text = self.request(method, path, body, query=query, content_type=content_type)
        answer: Document = json.loads(text)
        return answer

    def get(self, kind: str, name: str, namespace: str | None = None) -> Document:
        """One object."""
        return self.call("GET", path_of(kind, namespace, name))

    def list(self, kind: str, namespace: str | None = None, **query: str) -> list[Document]:
        """All objects of a kind, in one namespace or in all."""
        answer = self.call("GET", path_of(kind, namespace), query=query)
        items: list[Document] = answer.get("items") or []
        return items

    def create(self, document: Document, namespace: str | None = None) -> Document:
        """Create an object from a document with a kind that `RESOURCES` knows."""
        return self.call("POST", path_of(document["kind"], namespace), document)

    def apply(self, document: Document, namespace: str | None = None, part: str = "") -> Document:
        """Server-side apply of an object, or of its subresource *part*."""
        path = path_of(document["kind"], namespace, document["metadata"]["name"])
        query = {"fieldManager": "aicr-test", "force": "true"}
        return self.call(
            "PATCH", f"{path}/{part}".rstrip("/"), document, query=query, content_type=APPLY
        )

    def delete(
        self, kind: str, name: str, namespace: str | None = None, options: Document | None = None
    ) -> None:
        """Ask for an object's deletion; one that is not there is as good as deleted."""
        try:
            self.request("DELETE", path_of(kind, namespace, name), options)
        except ApiError as error:
            if error.status != 404:
                raise

    def logs(self, namespace: str, pod: str, **query: str) -> str:
        """A container's log, through the API server."""
        return self.request("GET", f"{path_of('Pod', namespace, pod)}/log", query=query).decode()

    def watch(
        self,
        path: str,
        query: Mapping[str, str],
        opened: Callable[[http.client.HTTPSConnection], None] = lambda _: None,
    ) -> Iterator[Document]:
        """Events of a watch, until the server ends it.

        *opened* gets the connection, so that another thread can end the watch by closing it.

        Raises:
            ApiError: refused, or an ERROR event (410 among them).
            OSError: the connection broke.
        """
        connection = self._connection(None)
        opened(connection)
        try:
            connection.request(
                "GET", f"{path}?{urlencode({**query, 'watch': '1'})}", None, self._headers
            )
            answer = connection.getresponse()
            if answer.status >= 300:
                raise _refusal(answer.status, answer.read())
            while line := answer.readline():
                event: Document = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise ApiError(
                        status.get("code", 0), status.get("reason", ""), status.get("message", "")
                    )
                yield event
        except http.client.HTTPException as error:
            raise OSError(f"watch of {path} broke: {error!r}") from error
        finally:
            connection.close()


def _refusal(status: int, text: bytes) -> ApiError:
    try:
        document = json.loads(text)
        return ApiError(status, str(document.get("reason", "")), str(document.get("message", "")))
    except (ValueError, AttributeError):
        return ApiError(status, "", text.decode(errors="replace")[:500])


def eventually(
    what: str, ask: Callable[[], Answer | None], seconds: float = 60.0, pause: float = 0.1
) -> Answer:
    """Ask again and again until the answer is neither None nor False; refusals count as None.

    Raises:
        AssertionError: there was no answer within *seconds*; says *what* was waited for.
    """
    deadline = time.monotonic() + seconds
    refused: Exception | None = None
    while True:
        try:
            answer = ask()
            refused = None
        except (ApiError, OSError, http.client.HTTPException) as error:
            answer, refused = None, error
        if answer is not None and answer is not False:
            return answer
        if time.monotonic() > deadline:
            because = f"; last refusal: {refused}" if refused else ""
            raise AssertionError(f"after {seconds:g} s still waiting for: {what}{because}")
        time.sleep(pause)
