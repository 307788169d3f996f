"""What an answer means: absence, denial, trouble, and pages that no API server sent (case G2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.kube.fakeapi import status_document

from aicr.errors import (
    CONFLICT,
    INTERNAL,
    INVALID_REQUEST,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    RATE_LIMIT_EXCEEDED,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
)
from aicr.kube import exec, request, status
from aicr.kube.kinds import POD

LIST = request.list_page(POD, namespace="n")
GET = request.get(POD, "p", namespace="n")
HTML = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>hello</body></html>"


def answered(code: int, reason: str = "", message: str = "m", **more: Any) -> AicrError:
    """The error for a Status document."""
    body = json.dumps(status_document(code, reason, message, **more)).encode()
    return status.error_of(LIST, code, {"Content-Type": "application/json"}, body)


@pytest.mark.parametrize(
    ("http_status", "reason", "code"),
    [
        (400, "BadRequest", INVALID_REQUEST),
        (401, "Unauthorized", UNAUTHORIZED),
        (403, "Forbidden", UNAUTHORIZED),
        (404, "NotFound", NOT_FOUND),
        (405, "MethodNotAllowed", METHOD_NOT_ALLOWED),
        (408, "", TIMEOUT),
        (409, "Conflict", CONFLICT),
        (409, "AlreadyExists", CONFLICT),
        (410, "Expired", CONFLICT),
        (413, "RequestEntityTooLarge", INVALID_REQUEST),
        (415, "UnsupportedMediaType", INVALID_REQUEST),
        (418, "", INTERNAL),
        (422, "Invalid", INVALID_REQUEST),
        (429, "TooManyRequests", RATE_LIMIT_EXCEEDED),
        (500, "InternalError", SERVICE_UNAVAILABLE),
        (500, "ServerTimeout", TIMEOUT),
        (502, "", SERVICE_UNAVAILABLE),
        (503, "ServiceUnavailable", SERVICE_UNAVAILABLE),
        (504, "Timeout", TIMEOUT),
        (504, "", SERVICE_UNAVAILABLE),
    ],
)
@pytest.mark.covers("G2")
def test_each_answer_of_the_api_server_has_its_code(
    http_status: int, reason: str, code: str
) -> None:
    """The code, the words of the server, and what was asked."""
    error = answered(http_status, reason, "because of m")
    assert error.code == code
    assert "because of m" in error.message
    assert 'pods in namespace "n"' in error.message
    assert error.context["status"] == http_status
    assert error.context["reason"] == reason


@pytest.mark.parametrize("http_status", [200, 401, 403, 404, 500, 502, 503])
@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "application/json", ""])
@pytest.mark.covers("G2")
def test_a_page_for_people_is_trouble_whatever_its_status(
    http_status: int, content_type: str
) -> None:
    """HTML is from a proxy: neither success, nor absence, nor a denial of the API server."""
    headers = {"Content-Type": content_type}
    if http_status == 200:
        with pytest.raises(AicrError) as caught:
            status.check_success(LIST, content_type, HTML)
        error = caught.value
    else:
        error = status.error_of(LIST, http_status, headers, HTML)
    assert error.code == SERVICE_UNAVAILABLE
    assert "Sign in" in error.message
    assert "proxy" in error.hint
    assert error.context == {"status": http_status, "foreign": True}


@pytest.mark.covers("G2")
def test_only_the_api_server_says_that_something_is_absent() -> None:
    """404 counts with a Status or the server's own plain words; anything else is in between."""
    plain = {"Content-Type": "text/plain"}
    ours = status.error_of(LIST, 404, plain, b"404 page not found\n")
    assert ours.code == NOT_FOUND
    assert ours.context["absent"] == "resource"
    for body in (b"", b"no such upstream", b'{"error": "route not found"}'):
        other = status.error_of(LIST, 404, plain, body)
        assert other.code == SERVICE_UNAVAILABLE, body


def test_a_redirect_is_not_followed_and_its_query_not_told() -> None:
    """Logins redirect; the query may hold a token."""
    headers = {"Location": "https://login.example.test/start?token=abc", "Content-Type": ""}
    error = status.error_of(LIST, 302, headers, b"")
    assert error.code == SERVICE_UNAVAILABLE
    assert "https://login.example.test/start" in error.message
    assert "abc" not in error.message


def test_success_that_is_not_json_is_not_success() -> None:
    """A 200 in plain text, where a document was asked for."""
    with pytest.raises(AicrError) as caught:
        status.check_success(LIST, "text/plain", b"OK")
    assert caught.value.code == SERVICE_UNAVAILABLE
    status.check_success(LIST, "application/json;charset=utf-8", b"{}")
    log = request.Request("get", "GET", "/x", accept="*/*")
    status.check_success(log, "text/plain", b"OK")


def test_a_denial_by_rbac_says_what_was_denied_and_how_to_check() -> None:
    """Verb, group, resource, subresource, namespace and name."""
    said = 'pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "n"'
    error = answered(403, "Forbidden", said)
    assert error.context["denied"] == {
        "verb": "list",
        "group": "",
        "resource": "pods",
        "subresource": "",
        "namespace": "n",
        "name": "",
    }
    assert error.context["by"] == "authorization"
    assert "kubectl auth can-i list pods -n n" in error.hint
    asked = exec.exec_request("p", ["ls"], "n")
    body = json.dumps(status_document(403, "Forbidden", 'cannot create resource "pods/exec"'))
    denied = status.error_of(asked, 403, {}, body.encode())
    assert "can-i create pods --subresource=exec -n n" in denied.hint


def test_a_denial_by_admission_is_not_blamed_on_roles() -> None:
    """Quota and webhooks answer 403 too."""
    error = answered(403, "Forbidden", 'admission webhook "w" denied the request: no')
    assert error.code == UNAUTHORIZED
    assert error.context["by"] == "admission"
    assert "role" not in error.hint


def test_refused_credentials_say_so() -> None:
    """401 is about who we are, not about what we may."""
    error = answered(401, "Unauthorized", "Unauthorized")
    assert error.context["by"] == "authentication"
    assert "log in again" in error.hint


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({"Retry-After": "7"}, {}, 7.0),
        ({}, {"retryAfterSeconds": 3}, 3.0),
        ({}, {}, None),
        (
            {
                "Date": "Mon, 30 Nov 2026 10:00:00 GMT",
                "Retry-After": "Mon, 30 Nov 2026 10:00:09 GMT",
            },
            {},
            9.0,
        ),
        ({"Retry-After": "soon"}, {}, 1.0),
    ],
)
def test_how_long_to_wait_is_passed_on(
    headers: dict[str, str], details: dict[str, Any], seconds: float | None
) -> None:
    """Header in seconds or as a date, or a field of the Status."""
    document = status_document(429, "TooManyRequests", "slow down", details=details)
    error = status.error_of(LIST, 429, headers, json.dumps(document).encode())
    assert error.code == RATE_LIMIT_EXCEEDED
    assert error.context.get("retry_after") == seconds


def test_conflicts_say_what_to_do() -> None:
    """Exists, changed meanwhile, owned by another manager, list again."""
    assert "delete the existing" in answered(409, "AlreadyExists").hint
    assert "read the object again" in answered(409, "Conflict").hint
    causes = [{"reason": "FieldManagerConflict", "field": ".spec.replicas"}]
    assert ".spec.replicas" in answered(409, "Conflict", details={"causes": causes}).hint
    assert "list again" in answered(410, "Expired").hint


def test_versions_that_cannot_be_resumed_from_are_recognised() -> None:
    """Too old, and newer than the server knows after a restore."""
    assert status.is_gone(answered(410, "Expired"))
    assert status.is_gone(answered(410, "Gone"))
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    assert status.is_gone(answered(504, "Timeout", details={"causes": causes}))
    assert not status.is_gone(answered(504, "Timeout"))
    assert not status.is_gone(AicrError(SERVICE_UNAVAILABLE, "refused"))


def test_an_object_that_is_absent_and_a_path_that_is_absent_differ() -> None:
    """Only the second makes discovery ask again."""
    document = status_document(404, "NotFound", "gone", details={"name": "p"})
    found = status.error_of(GET, 404, {}, json.dumps(document).encode())
    assert "absent" not in found.context
    assert answered(404, "NotFound").context["absent"] == "resource"


def test_long_answers_are_cut() -> None:
    """A page of text does not fill the terminal."""
    error = status.error_of(LIST, 500, {"Content-Type": "text/plain"}, b"word " * 10_000)
    assert len(error.message) < 500
