"""The agent's HTTPS server: what the API server asks of a kubelet, logs and exec, over mutual TLS."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from tests.controlplane.agent import execution
from tests.controlplane.agent.handlers import Place
from tests.controlplane.agent.logs import Log, Wanted, stream
from tests.controlplane.agent.websocket import WebSocket, accept
from tests.controlplane.client import Document


class NotThereError(Exception):
    """No such pod or container, or none that runs; the text is for the person who asked."""


class Pods(Protocol):
    """What the server needs to know of the node."""

    def log(
        self, namespace: str, pod: str, container: str, previous: bool
    ) -> tuple[Log, Callable[[], bool]]:
        """A log, and whether it is complete by now; NotThereError."""

    def place(self, namespace: str, pod: str, container: str) -> Place:
        """How to reach a running container; NotThereError."""

    def documents(self) -> list[Document]:
        """The pods of the node."""


class Server(ThreadingHTTPServer):
    """Serves one node."""

    daemon_threads = True
    # Several connections may come while a thread is still in its handshake.
    request_queue_size = 64

    def __init__(
        self, address: tuple[str, int], certificate: Path, key: Path, ca: Path, pods: Pods
    ):
        super().__init__(address, Handler)
        self.pods = pods
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate, key)
        # Only who has a certificate of the plane's authority may run commands here.
        self._tls.load_verify_locations(ca)
        self._tls.verify_mode = ssl.CERT_REQUIRED

    def get_request(self) -> tuple[ssl.SSLSocket, tuple[str, int]]:
        """Accept, and leave the handshake to the connection's own thread."""
        connection, address = self.socket.accept()
        wrapped = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return wrapped, address

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no news."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        """Logs, exec, health, pods."""
        address = urlsplit(self.path)
        query = parse_qs(address.query, keep_blank_values=True)
        words = [unquote(word) for word in address.path.strip("/").split("/")]
        try:
            if words[0] == "containerLogs" and len(words) == 4:
                self._logs(words[1], words[2], words[3], query)
            elif words[0] == "exec" and len(words) in (4, 5):
                self._exec(words[1], words[2], words[-1], query)
            elif words == ["healthz"]:
                self._text(200, "ok")
            elif words == ["pods"]:
                listed = {
                    "apiVersion": "v1",
                    "kind": "PodList",
                    "items": self.server.pods.documents(),
                }
                self._text(200, json.dumps(listed))
            else:
                self._text(404, f"the test node agent serves no {address.path}")
        except NotThereError as error:
            self._text(400, str(error))

    def do_POST(self) -> None:
        """As GET: clients use either for exec."""
        self.do_GET()

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""

    def _text(self, code: int, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _logs(self, namespace: str, pod: str, container: str, query: dict[str, list[str]]) -> None:
        try:
            wanted = Wanted.of(query)
        except ValueError as error:
            self._text(400, f"log options: {error}")
            return
        log, ended = self.server.pods.log(
            namespace, pod, container, query.get("previous") == ["true"]
        )
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):
            for data in stream(log, ended, wanted):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

    def _exec(self, namespace: str, pod: str, container: str, query: dict[str, list[str]]) -> None:
        place = self.server.pods.place(namespace, pod, container)
        asked = self.headers.get("Sec-WebSocket-Protocol", "").replace(" ", "").split(",")
        protocol = next((one for one in execution.PROTOCOLS if one in asked), None)
        if self.headers.get("Upgrade", "").lower() != "websocket" or protocol is None:
            self._text(
                400, f"exec is over a WebSocket that speaks {' or '.join(execution.PROTOCOLS)}"
            )
            return

        def on(name: str) -> bool:
            return query.get(name, ["0"])[0] in ("1", "true")

        wanted = execution.Wanted(
            query.get("command", []), on("input"), on("output"), on("error"), on("tty")
        )
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", accept(self.headers["Sec-WebSocket-Key"]))
        self.send_header("Sec-WebSocket-Protocol", protocol)
        self.end_headers()
        self.close_connection = True
        execution.run(WebSocket(self.rfile, self.wfile), place, wanted)
