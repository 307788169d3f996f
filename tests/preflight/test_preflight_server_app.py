"""The webhook's HTTP surface: paths, probes, bodies, and what a failure answers (preflight spec 2.1)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from aicr.errors import invalid
from aicr.preflight import server_app
from aicr.preflight.server_app import MetricsApp, WebhookApp


class Echo:
    """Answers with what it was sent, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.seen: list[bytes] = []

    async def review(self, body: bytes) -> bytes:
        """The body."""
        self.seen.append(body)
        if self.error is not None:
            raise self.error
        return body


def ask(
    app: Callable[..., Any], path: str, *messages: dict[str, Any], hang: bool = False
) -> tuple[int, dict[bytes, bytes], bytes] | None:
    """Status, headers and body; None if nothing was answered."""
    incoming = list(messages) or [{"type": "http.request", "body": b""}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not incoming and hang:
            await asyncio.sleep(60)
        return incoming.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "path": path, "method": "POST"}
    asyncio.run(app(scope, receive, send))
    if not sent:
        return None
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    """One piece of a request's body."""
    return {"type": "http.request", "body": body, "more_body": more}


def app_of(reviewer: Any, problem: str = "", **more: Any) -> WebhookApp:
    """An application that is ready unless there is a *problem*."""
    return WebhookApp(reviewer, unready=lambda: problem, **more)


@pytest.mark.covers("P-179")
@pytest.mark.parametrize(
    ("path", "problem", "draining", "status", "body"),
    [
        ("/healthz", "", False, 200, b"ok"),
        ("/healthz", "caches are not synced", False, 200, b"ok"),
        ("/healthz", "", True, 200, b"ok"),
        ("/readyz", "", False, 200, b"ok"),
        ("/readyz", "caches are not synced", False, 503, b"caches are not synced"),
        ("/readyz", "", True, 503, b"shutting down"),
        ("/", "", False, 404, b"not found"),
        ("/mutate/x", "", False, 404, b"not found"),
        ("/metrics", "", False, 404, b"not found"),
    ],
)
def test_probes_tell_the_process_from_its_readiness(
    path: str, problem: str, draining: bool, status: int, body: bytes
) -> None:
    """Decision 23: /healthz is the process, /readyz says why it cannot be relied on."""
    app = app_of(Echo(), problem)
    app.draining = draining
    answer = ask(app, path)
    assert answer is not None
    assert (answer[0], answer[2]) == (status, body)


def test_a_body_in_pieces_is_one_review() -> None:
    """However it arrives, the review is judged as a whole, and the answer is JSON."""
    echo = Echo()
    answer = ask(app_of(echo), "/mutate", part(b"ab", more=True), part(b"", more=True), part(b"c"))
    assert echo.seen == [b"abc"]
    assert answer is not None
    status, headers, body = answer
    assert (status, body) == (200, b"abc")
    assert headers[b"content-type"] == b"application/json"
    assert headers[b"content-length"] == b"3"
    assert b"connection" not in headers


@pytest.mark.covers("P11-57")
def test_a_body_that_is_no_review_is_a_bad_request() -> None:
    """Status 400 with the words of the original."""
    error = invalid("failed to unmarshal admission review", context={"detail": "x"})
    answer = ask(app_of(Echo(error)), "/mutate", part(b"{"))
    assert answer is not None
    assert (answer[0], answer[2]) == (400, b"failed to unmarshal admission review")


def test_a_bug_is_an_internal_error_and_no_admission(caplog: pytest.LogCaptureFixture) -> None:
    """The failure policy decides then, and the log names the bug."""
    with caplog.at_level(logging.ERROR):
        answer = ask(app_of(Echo(KeyError("oops"))), "/mutate", part(b"{}"))
    assert answer is not None
    assert (answer[0], answer[2]) == (500, b"internal error")
    assert "Admission failed" in caplog.text


def test_a_client_that_goes_away_is_not_answered() -> None:
    """Neither a review nor an error comes of half a request."""
    echo = Echo()
    assert ask(app_of(echo), "/mutate", part(b"a", more=True), {"type": "http.disconnect"}) is None
    assert echo.seen == []


def test_a_body_that_never_ends_is_given_up_on() -> None:
    """Slow senders cannot hold the webhook's memory."""
    answer = ask(app_of(Echo(), read_timeout=0.01), "/mutate", part(b"a", more=True), hang=True)
    assert answer is not None
    status, headers, body = answer
    assert (status, body) == (400, b"failed to read request body")
    assert headers[b"connection"] == b"close"


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_body_that_is_too_large_is_refused(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No object of an API server is larger; the rest is not even read."""
    monkeypatch.setattr(server_app, "LARGEST_BODY", 10)
    size = 12 // pieces
    messages = [part(b"x" * size, more=i < pieces - 1) for i in range(pieces)]
    answer = ask(app_of(Echo()), "/mutate", *messages)
    assert answer is not None
    assert answer[0] == 413


def test_while_draining_every_answer_asks_for_another_connection() -> None:
    """Clients go elsewhere by themselves before the port closes, and are answered until then."""
    app = app_of(Echo())
    app.draining = True
    answer = ask(app, "/mutate", part(b"x"))
    assert answer is not None
    assert answer[0] == 200
    assert answer[1][b"connection"] == b"close"


@pytest.mark.parametrize(("path", "status"), [("/metrics", 200), ("/", 404)])
def test_metrics_have_a_server_of_their_own(path: str, status: int) -> None:
    """And nothing else is served there."""
    answer = ask(MetricsApp(lambda: (b"a 1\n", "text/plain; version=0.0.4")), path)
    assert answer is not None
    assert answer[0] == status
    assert (answer[2] == b"a 1\n") is (status == 200)


def test_other_protocols_are_not_served() -> None:
    """A websocket or lifespan scope is answered with silence, which ASGI servers take as refusal."""

    async def nothing() -> dict[str, Any]:
        raise AssertionError("read")

    async def no_answer(message: dict[str, Any]) -> None:
        raise AssertionError("answered")

    for app in (app_of(Echo()), MetricsApp(lambda: (b"", ""))):
        asyncio.run(app({"type": "lifespan"}, nothing, no_answer))  # type: ignore[arg-type]
