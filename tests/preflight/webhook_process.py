"""A preflight webhook as a process, for tests: its files, its log, and ways to ask it."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import trustme
from tests.ports import reserved_port
from tests.preflight.admission_cases import document

from aicr.yamlio.write import dump

OFFLINE = {"gangCoordination": {"enabled": False}, "gpuDraEnabled": False}


class Webhook:
    """A running webhook, and where it keeps its files."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.port, self.metrics_port = reserved_port(), reserved_port()
        (folder / "config.yaml").write_text(dump(document(**{**OFFLINE, **config})))
        self.certify()
        self.process: subprocess.Popen[bytes]

    def certify(self, *, until: datetime | None = None) -> None:
        """Write a new certificate."""
        pair = self.authority.issue_cert("localhost", "127.0.0.1", not_after=until)
        pair.cert_chain_pems[0].write_to_path(str(self.folder / "tls.crt"))
        pair.private_key_pem.write_to_path(str(self.folder / "tls.key"))

    def start(self, *flags: str) -> None:
        """Start the process with *flags*; again on the same port, if it has ended."""
        words = [
            *("--host", "127.0.0.1", "--port", str(self.port)),
            *("--metrics-port", str(self.metrics_port), "--cert-dir", str(self.folder)),
            *("--config", str(self.folder / "config.yaml"), *flags),
        ]
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "aicr", "preflight", "serve", *words], stderr=log
            )

    def lines(self) -> list[dict[str, Any]]:
        """The log so far, up to a line that is still being written."""
        text = (self.folder / "log").read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def wait_for(self, message: str) -> dict[str, Any]:
        """The first log line with *message*."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            # Read before the log: what has ended says nothing after that.
            ended = self.process.poll() is not None
            for found in self.lines():
                if found["msg"] == message:
                    return found
            if ended:
                break
            time.sleep(0.02)
        raise AssertionError(f"no {message!r} in:\n{(self.folder / 'log').read_text()}")

    def connection(self) -> http.client.HTTPSConnection:
        """A connection that trusts the authority."""
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return http.client.HTTPSConnection("localhost", self.port, context=context, timeout=60)

    def ask(self, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body of one request on a connection of its own."""
        connection = self.connection()
        try:
            connection.request("POST" if body else "GET", path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def metrics(self) -> str:
        """What a scraper reads."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=60)
        try:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()
        finally:
            connection.close()


@contextmanager
def serving(folder: Path, *flags: str, **config: Any) -> Iterator[Webhook]:
    """A webhook that serves, and is ended whatever happens."""
    webhook = Webhook(folder, **config)
    webhook.start(*flags)
    try:
        webhook.wait_for("Serving")
        yield webhook
    finally:
        if webhook.process.poll() is None:
            webhook.process.kill()
        webhook.process.wait(60)
