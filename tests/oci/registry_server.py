"""A real registry on loopback, and a proxy in front of it that cuts connections."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests import tools
from tests.ports import reserved_port

from aicr.artifacts.oci import MANIFEST_TYPE

#: The password is "secret" (bcrypt, as the registry wants it).
HTPASSWD = "user:$2y$05$WehkVxGcXNIpy3oVvpaqCeHm7kl0SY2t5vpfVXSS7ecRkAlOrNLIm"
SECONDS = 60


@contextlib.contextmanager
def serving(
    folder: Path, *, extra: str = "", tls: tuple[Path, Path] | None = None
) -> Iterator[str]:
    """``host:port`` of Debian's docker-registry, its blobs below *folder*; stopped afterwards."""
    program = tools.program("docker-registry", "run: apt-get install docker-registry")
    port = reserved_port()
    http = f"  addr: 127.0.0.1:{port}\n"
    if tls is not None:
        http += f"  tls: {{certificate: {tls[0]}, key: {tls[1]}}}\n"
    config = folder / "registry.yml"
    folder.mkdir(parents=True, exist_ok=True)
    config.write_text(
        "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n"
        f"storage: {{filesystem: {{rootdirectory: {folder / 'blobs'}}}, delete: {{enabled: true}}}}\n"
        f"http:\n{http}{extra}"
    )
    log = (folder / "registry.log").open("wb")
    process = subprocess.Popen(
        [program, "serve", str(config)],
        stdout=log,
        stderr=log,
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(folder)},
    )
    try:
        _wait(port, process, folder)
        yield f"127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def _wait(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"the registry did not start: {(folder / 'registry.log').read_text()}")


def ask(host: str, method: str, path: str) -> tuple[int, bytes]:
    """(status, body) of one plain request, past our own client."""
    connection = http.client.HTTPConnection(host, timeout=SECONDS)
    try:
        connection.request(method, path, headers={"Accept": f"{MANIFEST_TYPE}, */*"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class CuttingProxy:
    """Passes bytes on to a registry, and cuts connections as it is told.

    Args:
        target: ``host:port`` of the registry.
        cut: told (number of the connection, bytes so far to the registry, bytes so far from it)
            before each block is passed on; True ends the connection at once.
    """

    def __init__(self, target: str, cut: Callable[[int, int, int], bool]) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._cut = cut
        self._server = socket.create_server(("127.0.0.1", 0))
        self.cuts = 0
        self._number = 0
        self._threads: list[threading.Thread] = []
        accepting = threading.Thread(target=self._accept, daemon=True)
        accepting.start()
        self._threads.append(accepting)

    @property
    def host(self) -> str:
        """Where the proxy listens."""
        return f"127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        # shutdown wakes the thread that waits in accept.
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join(SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            self._number += 1
            far = socket.create_connection(self._target)
            counts = [0, 0]
            for source, sink, way in ((near, far, 0), (far, near, 1)):
                thread = threading.Thread(
                    target=self._pump, args=(source, sink, way, counts, self._number), daemon=True
                )
                thread.start()
                self._threads.append(thread)

    def _pump(
        self, source: socket.socket, sink: socket.socket, way: int, counts: list[int], number: int
    ) -> None:
        # Small blocks, so that a cut falls into the middle of a body.
        while True:
            try:
                block = source.recv(4096)
            except OSError:
                block = b""
            if not block:
                break
            counts[way] += len(block)
            if self._cut(number, counts[0], counts[1]):
                self.cuts += 1
                break
            try:
                sink.sendall(block)
            except OSError:
                break
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def tls_files(folder: Path, name: str = "one") -> tuple[Path, Path, Path]:
    """(certificate, key, authority) for 127.0.0.1, as PEM files."""
    import trustme

    authority = trustme.CA(organization_name=name)
    leaf = authority.issue_cert("127.0.0.1")
    folder.mkdir(parents=True, exist_ok=True)
    paths = tuple(folder / f"{name}-{part}.pem" for part in ("cert", "key", "ca"))
    paths[0].write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    paths[1].write_bytes(leaf.private_key_pem.bytes())
    paths[2].write_bytes(authority.cert_pem.bytes())
    assert ssl.create_default_context(cafile=str(paths[2]))
    return paths[0], paths[1], paths[2]
