"""Stands in for kube-proxy and cluster DNS, for one Service: address and name lead to its ready pods.

The plane has no kube-proxy, and an API server reaches a webhook by its Service's cluster IP. So the
address is put on the plane's bridge, where the API server and all pods find it, and what connects to it
is carried to one pod after the other, as EndpointSlices name them. As with kube-proxy, a connection that
is there stays with its pod, and one to a pod that has just died fails. The name comes into the hosts file
of the pods that ask for it, by a webhook of the test's own.

It must not know: the product.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

import trustme
from tests.controlplane.client import ApiError, Document, eventually
from tests.controlplane.network import NetworkError, ip
from tests.controlplane.plane import ControlPlane

LOOK_SECONDS: Final = 0.2
ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class ServiceProxy:
    """See the module; runs in a thread of its own between `start` and `stop`."""

    def __init__(self, plane: ControlPlane, namespace: str, name: str) -> None:
        self._api = plane.client(timeout=2)
        self._bridge = plane.bridge_name
        service = plane.client().call("GET", f"/api/v1/namespaces/{namespace}/services/{name}")
        #: The Service's address; pods reach it as well.
        self.address = str(service["spec"]["clusterIP"])
        self.port = int(service["spec"]["ports"][0]["port"])
        self._slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self._selector = {"labelSelector": f"kubernetes.io/service-name={name}"}
        self._targets: list[tuple[str, int]] = []
        self._turn = 0
        self._ends: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ending = threading.Event()
        self._serving = threading.Event()
        self._threads = [
            threading.Thread(target=self._look, name="endpoints", daemon=True),
            threading.Thread(target=self._serve, name="service", daemon=True),
        ]

    def start(self) -> None:
        """Take the address and wait for the first ready pod."""
        with contextlib.suppress(NetworkError):
            ip(f"addr del {self.address}/32 dev {self._bridge}")
        ip(f"addr add {self.address}/32 dev {self._bridge}")
        for thread in self._threads:
            thread.start()
        assert self._serving.wait(60)
        eventually("a ready pod of the Service", lambda: self._targets or None)

    def stop(self) -> None:
        """End every connection and give the address back."""
        self._ending.set()
        self._loop.call_soon_threadsafe(self._loop.stop)
        for thread in self._threads:
            thread.join(10)
        with contextlib.suppress(NetworkError):
            ip(f"addr del {self.address}/32 dev {self._bridge}")

    @property
    def pods(self) -> list[str]:
        """Addresses of the pods that get new connections now."""
        return [address for address, _ in self._targets]

    def _look(self) -> None:
        while not self._ending.wait(LOOK_SECONDS):
            # While the API server is away, the last known pods count, as with kube-proxy.
            with contextlib.suppress(ApiError, OSError, http.client.HTTPException):
                found = self._api.call("GET", self._slices, query=self._selector)
                self._targets = [target for one in found["items"] for target in _ready(one)]

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._carry, self.address, self.port)
        )
        self._serving.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        """End every connection; no socket is left for the collector to find."""
        # A connection that was accepted just now is noted a few turns of the loop later.
        for _ in range(5):
            await asyncio.sleep(0)
        left = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        # Closing alone would wait for an end that does not read any more.
        for end in self._ends:
            end.transport.abort()
        await asyncio.gather(*(end.wait_closed() for end in self._ends), return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        targets = self._targets
        if not targets:
            writer.transport.abort()
            return
        self._turn += 1
        address, port = targets[self._turn % len(targets)]
        try:
            there, back = await asyncio.open_connection(address, port)
        except OSError:
            writer.transport.abort()
            return
        self._ends.add(back)
        ways = [
            asyncio.ensure_future(_pipe(reader, back)),
            asyncio.ensure_future(_pipe(there, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (back, writer):
                end.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


def _ready(part: Document) -> list[tuple[str, int]]:
    port = next((one["port"] for one in part.get("ports") or []), None)
    return [
        (endpoint["addresses"][0], port)
        for endpoint in part.get("endpoints") or []
        if endpoint.get("conditions", {}).get("ready") and port is not None
    ]


@contextmanager
def proxied(plane: ControlPlane, namespace: str, name: str) -> Iterator[ServiceProxy]:
    """The Service, reachable."""
    proxy = ServiceProxy(plane, namespace, name)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


@contextmanager
def named(plane: ControlPlane, namespace: str, name: str, address: str) -> Iterator[None]:
    """Pods made in *namespace* find the Service by its name."""
    alias = {"ip": address, "hostnames": [f"{name}.{namespace}.svc"]}
    patch = json.dumps([{"op": "add", "path": "/spec/hostAliases", "value": [alias]}])

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Add the alias to a pod."""
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = {
                "uid": review["request"]["uid"],
                "allowed": True,
                "patchType": "JSONPatch",
                "patch": base64.b64encode(patch.encode()).decode(),
            }
            kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
            body = json.dumps({**kind, "response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(plane.host).configure_cert(context)
    server = HTTPServer((plane.host, 0), Answer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    api, place = plane.client(), f"{ADMISSION}/{namespace}"
    api.call("POST", ADMISSION, _registration(namespace, plane.host, server.server_port, authority))
    try:
        probe = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        pods = f"/api/v1/namespaces/{namespace}/pods"

        def counts() -> bool:
            made = api.call("POST", pods, probe, query={"dryRun": "All"})
            return bool(made["spec"].get("hostAliases"))

        eventually("the name of the Service", counts)
        yield
    finally:
        with contextlib.suppress(ApiError):
            api.request("DELETE", place)
        server.shutdown()
        server.server_close()
        thread.join(10)


def _registration(namespace: str, host: str, port: int, authority: trustme.CA) -> Document:
    bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
    webhook = {
        "name": "names.test.aicr.run",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 30,
        "clientConfig": {"url": f"https://{host}:{port}/", "caBundle": bundle},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
                "operations": ["CREATE"],
            }
        ],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [webhook],
    }
