"""``aicr preflight probe``: what a good answer is, and how every other one is told."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from aicr.cli.main import main
from aicr.cli.preflight_probe import judge, review
from aicr.errors import AicrError
from aicr.preflight.admission import review as admission
from aicr.preflight.admission.prepared import prepare
from aicr.preflight.config import Config

GOOD = {"response": {"uid": "preflight-probe", "allowed": True}}


@contextmanager
def webhook(status: int, body: bytes, authority: trustme.CA, name: str) -> Iterator[int]:
    """The port of an HTTPS server on loopback that gives one answer to everything."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "name", "exit_status", "words"),
    [
        (200, json.dumps(GOOD).encode(), "127.0.0.1", 0, "admits pods as it should"),
        (200, b"<html>", "127.0.0.1", 8, "its answer is no JSON"),
        (500, b"", "127.0.0.1", 8, "it answers HTTP 500"),
        (200, json.dumps(GOOD).encode(), "other.example", 6, "cannot be reached"),
    ],
    ids=["good", "no-json", "http-500", "certificate-of-another"],
)
def test_a_webhook_is_asked_over_tls(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    status: int,
    body: bytes,
    name: str,
    exit_status: int,
    words: str,
) -> None:
    """The exit status tells right, wrong and out of reach apart."""
    authority = trustme.CA()
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    with webhook(status, body, authority, name) as port:
        found = main(["preflight", "probe", f"https://127.0.0.1:{port}", "--ca-file", str(file)])
    said = capsys.readouterr()
    assert found == exit_status
    assert words in said.out + said.err


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "does not answer the review"),
        ({"response": {"uid": "another", "allowed": True}}, "does not answer the review"),
        ({"response": {"uid": "preflight-probe", "allowed": "yes"}}, "refuses a pod without GPUs"),
        (
            {"response": {"uid": "preflight-probe", "allowed": True, "patch": "W10="}},
            "changes a pod",
        ),
    ],
    ids=["no-response", "other-uid", "not-allowed", "patched"],
)
def test_a_wrong_answer_is_named(answer: Any, words: str) -> None:
    """Admitted unchanged is the only right answer."""
    with pytest.raises(AicrError, match=words):
        judge(answer)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["http://preflight.x.svc"], "is no https address"),
        (["https://x", "--timeout", "0"], "next: 1 to 3600"),
        (["https://x", "--ca-file", "/no/such/file"], "next: check the path"),
        (["https://x", "--ca-file", "/"], "next: it must be a readable PEM file"),
        (["https://x", "--ca-file", __file__], "next: it must be a readable PEM file"),
    ],
    ids=["plain-http", "no-time", "no-authority", "folder", "no-certificate"],
)
def test_wrong_flags_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage errors exit 2 before anything is sent, and say what to do."""
    assert main(["preflight", "probe", *words]) == 2
    err = capsys.readouterr().err
    assert "INVALID_REQUEST" in err
    assert said in err
    assert "Errno" not in err


def test_the_path_of_the_webhook_may_be_there_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    """An address that is copied from a webhook configuration ends with the path."""
    for address in ("https://127.0.0.1:1", "https://127.0.0.1:1/", "https://127.0.0.1:1/mutate"):
        assert main(["preflight", "probe", address]) == 6
        assert "where: https://127.0.0.1:1/mutate\n" in capsys.readouterr().err


def test_our_own_webhook_answers_right() -> None:
    """The question is one that the webhook admits unchanged."""
    judge(json.loads(admission.review(json.dumps(review()).encode(), prepare(Config()))))
