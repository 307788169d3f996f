"""What a server's refusal means: HTTP status, Status document and foreign bodies → `AicrError`.

Pure. The rule behind the table (field case G2): only the API server itself may say that something is
absent. A page in HTML, whatever its HTTP status, comes from a proxy or a login page in between, and
means that we could not tell. It must not know transports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec

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
from aicr.kube.request import Request

#: HTTP status → code, for answers that the API server gave. 5xx not listed: SERVICE_UNAVAILABLE.
CODES: Final[dict[int, str]] = {
    400: INVALID_REQUEST,
    401: UNAUTHORIZED,
    403: UNAUTHORIZED,
    404: NOT_FOUND,
    405: METHOD_NOT_ALLOWED,
    406: INVALID_REQUEST,
    408: TIMEOUT,
    409: CONFLICT,
    410: CONFLICT,
    412: CONFLICT,
    413: INVALID_REQUEST,
    415: INVALID_REQUEST,
    422: INVALID_REQUEST,
    429: RATE_LIMIT_EXCEEDED,
}
#: Reasons of the API server that say more than the HTTP status.
REASONS: Final[dict[str, str]] = {"Timeout": TIMEOUT, "ServerTimeout": TIMEOUT}

#: The API server's own words for a path that it does not serve at all.
PLAIN_NOT_FOUND: Final = b"404 page not found"
LONGEST_QUOTE: Final = 300
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
_RBAC = re.compile(r"cannot (?P<verb>\S+) (resource|path) ")


def media_type(content_type: str) -> str:
    """The media type of a Content-Type header without its parameters, in lower case."""
    return content_type.split(";", 1)[0].strip().lower()


def is_html(content_type: str, body: bytes) -> bool:
    """Whether an answer is a page for people, by its header or by how it begins."""
    start = body[:256].lstrip().lower()
    return media_type(content_type) in {"text/html", "application/xhtml+xml"} or start.startswith(
        (b"<!doctype html", b"<html")
    )


def check_success(request: Request, content_type: str, body: bytes) -> None:
    """Raise SERVICE_UNAVAILABLE if a 2xx answer is not what an API server sends (case G2)."""
    if is_html(content_type, body):
        raise _foreign(request, 200, body)
    wanted_json = request.accept.startswith("application/json")
    if wanted_json and "json" not in media_type(content_type):
        raise _foreign(request, 200, body, content_type)


def error_of(
    request: Request, http_status: int, headers: Mapping[str, str], body: bytes
) -> AicrError:
    """The error for an answer that is not 2xx.

    The context has ``status`` (HTTP), and where known ``reason``, ``details``, ``retry_after``
    (seconds), ``denied`` (verb, group, resource, subresource, namespace, name) and ``by``
    (authentication, authorization or admission).
    """
    content_type = headers.get("Content-Type", "")
    if is_html(content_type, body) or 300 <= http_status < 400:
        return _foreign(request, http_status, body, location=headers.get("Location", ""))
    document = status_document(body)
    if document is None:
        return _without_status(request, http_status, headers, body)
    return from_status(request, document, http_status, retry_after(headers))


def status_document(body: bytes) -> dict[str, Any] | None:
    """The Status document in *body*, or None if there is none."""
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    if isinstance(document, dict) and document.get("kind") == "Status":
        return document
    return None


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds of a Retry-After header, 0 if there is none; a date counts from the Date header."""
    text = headers.get("Retry-After", "").strip()
    if not text:
        return 0.0
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
        now = parsedate_to_datetime(headers.get("Date", ""))
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError):
        return 1.0


def from_status(
    request: Request, document: Mapping[str, Any], http_status: int = 0, wait: float = 0.0
) -> AicrError:
    """The error for a Status document, from an answer or from an ERROR event of a watch."""
    status = int(document.get("code") or http_status or 500)
    reason = str(document.get("reason") or "")
    details = document.get("details") or {}
    said = str(document.get("message") or reason or f"HTTP {status}")
    code = REASONS.get(reason) or CODES.get(status)
    if code is None:
        code = SERVICE_UNAVAILABLE if status >= 500 else INTERNAL
    context: dict[str, Any] = {"status": status, "reason": reason, "details": details}
    wait = wait or float(details.get("retryAfterSeconds") or 0)
    if wait:
        context["retry_after"] = wait
    if code == UNAUTHORIZED:
        return _denied(request, status, said, context)
    hint = ""
    if code == RATE_LIMIT_EXCEEDED:
        hint = f"try again in {wait:g} s" if wait else "try again later"
    elif code == CONFLICT:
        hint = _conflict_hint(request, reason, details)
    elif code == NOT_FOUND and not details.get("name"):
        context["absent"] = "resource"
    return AicrError(
        code,
        f"cannot {request.verb} {request.subject}: {said}",
        hint=hint,
        context=context,
    )


def is_gone(error: AicrError) -> bool:
    """Whether the version asked for is no longer (410), or not yet, known to the server.

    "Too large" happens after etcd was restored from a backup: waiting does not help, listing does.
    """
    if error.context.get("status") == 410 or error.context.get("reason") in {"Expired", "Gone"}:
        return True
    causes = (error.context.get("details") or {}).get("causes") or []
    return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes)


def _conflict_hint(request: Request, reason: str, details: Mapping[str, Any]) -> str:
    if reason == "AlreadyExists":
        return "use apply, or delete the existing object first"
    causes = details.get("causes") or []
    fields = [str(cause.get("field", "")) for cause in causes]
    if any(cause.get("reason") == "FieldManagerConflict" for cause in causes):
        owned = ", ".join(field for field in fields if field)
        return f"another manager owns {owned}; force takes it over"
    if reason in {"Expired", "Gone"}:
        return "list again from the start"
    return "read the object again and repeat the change"


def _denied(request: Request, status: int, said: str, context: dict[str, Any]) -> AicrError:
    resource = request.resource
    context["denied"] = {
        "verb": request.verb,
        "group": resource.group if resource else "",
        "resource": resource.plural if resource else request.path,
        "subresource": request.subresource,
        "namespace": request.namespace,
        "name": request.name,
    }
    if status == 401:
        context["by"] = "authentication"
        message = f"the server did not accept our credentials to {request.verb} {request.subject}"
        hint = "the token or certificate is missing, expired or for another cluster; log in again"
        return AicrError(UNAUTHORIZED, f"{message}: {said}", hint=hint, context=context)
    by_rbac = _RBAC.search(said) is not None
    context["by"] = "authorization" if by_rbac else "admission"
    hint = ""
    if by_rbac and resource is not None:
        where = f" -n {request.namespace}" if request.namespace else " --all-namespaces"
        flag = f" --subresource={request.subresource}" if request.subresource else ""
        place = where if resource.namespaced else ""
        asked = f"kubectl auth can-i {request.verb} {resource.qualified}{flag}{place}"
        hint = f"the role lacks this verb; check with: {asked}"
    return AicrError(
        UNAUTHORIZED, f"cannot {request.verb} {request.subject}: {said}", hint=hint, context=context
    )


def _without_status(
    request: Request, http_status: int, headers: Mapping[str, str], body: bytes
) -> AicrError:
    """An answer without a Status document: plain text of the server, or of something in between."""
    said = quoted(body) or f"HTTP {http_status}"
    wait = retry_after(headers)
    if http_status == 404 and not body.strip().startswith(PLAIN_NOT_FOUND):
        return _foreign(request, http_status, body, headers.get("Content-Type", ""))
    document = {"code": http_status, "message": said}
    return from_status(request, document, http_status, wait)


def _foreign(
    request: Request, http_status: int, body: bytes, content_type: str = "", location: str = ""
) -> AicrError:
    """Something that is not the API server answered."""
    title = _TITLE.search(body)
    page = title.group(1).decode("utf-8", "replace").strip() if title else quoted(body)
    what = f"a redirect to {location.split('?', 1)[0]}" if location else "a page for people"
    if content_type and not location:
        what = f"content of type {media_type(content_type)}"
    about = f' ("{page}")' if page and not location else ""
    return AicrError(
        SERVICE_UNAVAILABLE,
        f"cannot {request.verb} {request.subject}: HTTP {http_status} with {what}{about}"
        " instead of an answer of the API server",
        hint="a proxy or login page stands in between; check the server address, HTTPS_PROXY and NO_PROXY",
        context={"status": http_status, "foreign": True},
    )


def quoted(body: bytes) -> str:
    """The beginning of *body* as one line of text."""
    text = " ".join(body[: LONGEST_QUOTE * 4].decode("utf-8", "replace").split())
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…"
