"""A forward proxy on loopback, for hosts that exist nowhere else: CONNECT, and whole addresses."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_SECONDS = 20
#: Headers of one hop, which a proxy does not pass on.
_HOP = ("proxy-authorization", "proxy-connection", "connection", "transfer-encoding", "host")


class Seen:
    """What a proxy was asked: request lines, and the log-ins that came with them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.logins: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: Seen
    #: ``host:port`` as it is asked for -> where it really is.
    hosts: Mapping[str, str] = {}
    refusal = 0
    login = ""

    def __getattr__(self, name: str) -> Callable[[], None]:
        # How the base class finds what answers a method.
        if not name.startswith("do_"):
            raise AttributeError(name)
        return self._tunnel if name == "do_CONNECT" else self._relay

    def _tunnel(self) -> None:
        if not self._admitted():
            return
        far = socket.create_connection(_split(self.hosts[self.path]), _SECONDS)
        self.send_response_only(200)
        self.end_headers()
        back = threading.Thread(target=_pump, args=(far, self.connection), daemon=True)
        back.start()
        _pump(self.connection, far)
        back.join(_SECONDS)
        far.close()
        self.close_connection = True

    def _relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self._admitted():
            return
        place, _, path = self.path.removeprefix("http://").partition("/")
        far = http.client.HTTPConnection(self.hosts[place], timeout=_SECONDS)
        sent = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        far.request(self.command, f"/{path}", body or None, {**sent, "Host": place})
        answer = far.getresponse()
        data = answer.read()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in (*_HOP, "content-length"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
        if answer.status != 204:
            self.send_header("Content-Length", length or "0")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        far.close()

    def _admitted(self) -> bool:
        self.seen.lines.append(f"{self.command} {self.path}")
        given = self.headers.get("Proxy-Authorization", "")
        self.seen.logins.append(given)
        status = self.refusal or (407 if self.login and given != self.login else 0)
        if status:
            self.send_response_only(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            self.close_connection = True
        return not status

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def proxying(
    hosts: Mapping[str, str], *, refusal: int = 0, login: str = ""
) -> Iterator[tuple[str, Seen]]:
    """``host:port`` of the proxy, and what it was asked.

    Args:
        hosts: ``host:port`` as it is asked for -> where it really is.
        refusal: status that everybody gets, 0 for none.
        login: Proxy-Authorization that it wants, "" for none.
    """
    seen = Seen()
    handler = type(
        "Handler",
        (_Handler,),
        {"seen": seen, "hosts": hosts, "refusal": refusal, "login": login},
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _split(place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    return host, int(port)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while block := source.recv(65536):
            sink.sendall(block)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
