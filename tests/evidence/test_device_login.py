"""Logging in on another device, against a service on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from aicr.errors import AicrError
from aicr.validate.evidence import identity

BEGUN = {
    "device_code": "device",
    "user_code": "ABCD-EFGH",
    "verification_uri": "https://login.example/device",
    "expires_in": 60,
    "interval": 5,
}


@contextmanager
def service(*answers: tuple[int, Any]) -> Iterator[tuple[str, list[str]]]:
    """(address, bodies received) of a service that answers in order."""
    left = list(answers)
    bodies: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer what comes next."""
            length = int(self.headers["Content-Length"])
            bodies.append(f"{self.path} {self.rfile.read(length).decode()}")
            status, document = left.pop(0)
            data = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/auth", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Time:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.slept.append(seconds)
        self.at += seconds


def logged_in(address: str, said: list[str], time: Time) -> str:
    """The token of a log-in."""
    return identity.from_device(said.append, issuer=address, now=lambda: time.at, sleep=time.sleep)


def test_the_code_is_told_at_once_and_the_token_comes_when_it_was_entered() -> None:
    """Pending is waited for, slower when the service asks for it."""
    said: list[str] = []
    time = Time()
    answers = [(400, {"error": "authorization_pending"}), (400, {"error": "slow_down"})]
    with service((200, BEGUN), *answers, (200, {"id_token": "token"})) as (address, bodies):
        assert logged_in(address, said, time) == "token"
    assert said == ["open https://login.example/device on any device and enter the code ABCD-EFGH"]
    assert time.slept == [5, 5, 10]
    assert bodies[0].startswith("/auth/device/code client_id=sigstore&scope=openid")
    assert "device_code=device" in bodies[1]


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([(200, BEGUN), (400, {"error": "access_denied"})], "UNAUTHORIZED"),
        (
            [(200, {**BEGUN, "expires_in": 6}), *[(400, {"error": "authorization_pending"})] * 2],
            "TIMEOUT",
        ),
        ([(500, {})], "SERVICE_UNAVAILABLE"),
        ([(200, b"<html>")], "SERVICE_UNAVAILABLE"),
        ([(200, {"user_code": "x"})], "SERVICE_UNAVAILABLE"),
        ([(200, BEGUN), (200, {"access_token": "x"})], "SERVICE_UNAVAILABLE"),
    ],
    ids=["refused", "nobody", "down", "page", "no code", "no token"],
)
def test_a_log_in_that_fails_says_why(answers: list[tuple[int, Any]], code: str) -> None:
    """Refused, nobody came, or the service cannot be used."""
    with service(*answers) as (address, _), pytest.raises(AicrError) as caught:
        logged_in(address, [], Time())
    assert caught.value.code == code
