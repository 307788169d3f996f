"""HTTPS servers that the API server of a test plane calls: metrics for autoscalers, admission webhooks.

    with serving(plane, answers) as port:
        ...

An API server dials the address that a Service of type ExternalName names, so these run in the test's
process, on the plane's own address.
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.controlplane.plane import ControlPlane

Document = dict[str, Any]
#: Method, path without query, body → status and answer.
Answers = Callable[[str, str, Document], tuple[int, Document]]

METRIC = "dcgm_gpu_power_usage"


@contextlib.contextmanager
def serving(plane: ControlPlane, answers: Answers, *names: str) -> Iterator[int]:
    """Serve on a free port of the plane's address, with a certificate for it and *names*."""

    class Handler(BaseHTTPRequestHandler):
        # A connection for each request: one that is kept would be answered after the server has gone.
        protocol_version = "HTTP/1.0"

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}") if length else {}
            status, document = answers(self.command, self.path.partition("?")[0], body)
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    pair = plane.authority.issue(
        f"standin-{'-'.join(names) or 'metrics'}",
        common_name="standin",
        addresses=[plane.host],
        names=names,
    )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    server = ThreadingHTTPServer((plane.host, 0), Handler)
    server.daemon_threads = True
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def metrics(value: str) -> Answers:
    """The custom and external metrics APIs with one GPU metric; without any for an empty *value*."""

    def answer(_: str, path: str, __: Document) -> tuple[int, Document]:
        parts = path.strip("/").split("/")
        if len(parts) < 3 or parts[0] != "apis" or not parts[1].endswith(".metrics.k8s.io"):
            return 404, _status(404, "NotFound", "the server could not find the requested resource")
        group_version = f"{parts[1]}/{parts[2]}"
        if len(parts) == 3:
            return 200, _resources(group_version)
        if parts[1].startswith("external") and parts[-1] == METRIC and value:
            return 200, _values("ExternalMetricValueList", group_version, value)
        return 404, _status(404, "NotFound", "the server could not find the metric")

    return answer


def _resources(group_version: str) -> Document:
    external = group_version.startswith("external")
    found = {
        "name": METRIC if external else "pods/gpu_utilization",
        "singularName": "",
        "namespaced": True,
        "kind": "ExternalMetricValueList" if external else "MetricValueList",
        "verbs": ["get"],
    }
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": [found],
    }


def _values(kind: str, group_version: str, value: str) -> Document:
    item = {
        "metricName": METRIC,
        "metricLabels": {"gpu": "0"},
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "value": value,
    }
    return {"kind": kind, "apiVersion": group_version, "metadata": {}, "items": [item]}


def refusing(message: str) -> Answers:
    """A validating webhook that refuses everything."""

    def answer(_: str, __: str, review: Document) -> tuple[int, Document]:
        uid = review["request"]["uid"]
        said = {"uid": uid, "allowed": False, "status": {"message": message, "code": 422}}
        return 200, {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": said,
        }

    return answer


def _status(code: int, reason: str, message: str) -> Document:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


def outside(name: str, namespace: str, host: str) -> Document:
    """A Service that stands for an address outside the cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": "ExternalName", "externalName": host},
    }


def bundle(plane: ControlPlane) -> str:
    """The plane's authority, as webhook configurations want it."""
    return base64.b64encode(plane.ca_file.read_bytes()).decode()
