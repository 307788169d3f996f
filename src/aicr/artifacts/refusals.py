"""What a registry's refusal means to the person who asked: code, the registry's own words, the next step.

```
Answer (status, body) --refusal--> AicrError
                      --pause----> seconds that a busy registry asks to be left alone
why no answer came    --unreachable--> AicrError
```
Registries explain themselves in JSON, whose messages are shown instead of the JSON. Pages in HTML are
from something that stands in between.

Pure. It must not know requests. Source: bundler spec 1.7, 7.5; OCI distribution 1.1 (error codes).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from aicr.artifacts.wire import Answer
from aicr.errors import (
    NOT_FOUND,
    RATE_LIMIT_EXCEEDED,
    SERVICE_UNAVAILABLE,
    UNAUTHORIZED,
    AicrError,
)

#: Most of the registry's words that is shown.
_LONGEST: Final = 300
_CODES: Final = {
    401: UNAUTHORIZED,
    403: UNAUTHORIZED,
    404: NOT_FOUND,
    429: RATE_LIMIT_EXCEEDED,
}


def refusal(answer: Answer, what: str, *, host: str, logged_in: bool) -> AicrError:
    """The error for an answer that is not the one that was asked for.

    Args:
        answer: of the registry.
        what: what has not come about, with its address.
        host: the registry.
        logged_in: whether the request had a log-in.
    """
    said = _words(answer)
    return AicrError(
        _CODES.get(answer.status, SERVICE_UNAVAILABLE),
        f"{what}: it answered {answer.status}" + (f" {said}" if said else ""),
        hint=_hint(answer, host, logged_in),
    )


def unreachable(host: str, why: str, *, plain_http: bool) -> AicrError:
    """The error for a registry that gave no answer, however often it was asked."""
    return AicrError(
        SERVICE_UNAVAILABLE,
        f"the registry {host} cannot be used: {why}",
        hint="check the address and the network"
        + ("" if plain_http else "; a registry without TLS needs --plain-http"),
    )


def pause(answer: Answer) -> float | None:
    """Seconds that a busy registry asks to be left alone (429, 503), None when it does not say."""
    if answer.status not in (429, 503):
        return None
    said = answer.header("retry-after").strip()
    return float(said) if re.fullmatch(r"[0-9]{1,9}", said) else None


def _hint(answer: Answer, host: str, logged_in: bool) -> str:
    if answer.status == 403 and logged_in:
        return f"ask its owner for access, or log in as somebody else: docker login {host}"
    if answer.status in (401, 403):
        return f"log in: docker login {host}"
    if answer.status == 404:
        if "MANIFEST_UNKNOWN" in _said_codes(answer):
            return "the repository is there, this tag or digest is not: check it"
        return "check the repository; some registries want it to be created first"
    if answer.status == 429:
        said = answer.header("retry-after").strip()
        wait = f"wait {said} s" if pause(answer) is not None else "wait"
        return f"{wait}, then try again" + (
            "" if logged_in else f"; with a log-in: docker login {host}"
        )
    if answer.status in (413, 507):
        return "the registry has no room for it, or allows no uploads of that size; ask its owner"
    if _is_page(answer):
        return f"is {host} a registry? A proxy or a login page may stand in between"
    return "look at the registry's log"


def _words(answer: Answer) -> str:
    """The registry's own explanation, on one line."""
    said = [
        f"{error.get('message') or error.get('code')}"
        + (f" ({error['code']})" if error.get("code") and error.get("message") else "")
        for error in _errors(answer)
        if error.get("message") or error.get("code")
    ]
    text = "; ".join(said)
    if not text and not _is_page(answer):
        text = answer.body.decode("utf-8", "replace")
    return "".join(char if char.isprintable() else " " for char in " ".join(text.split()))[
        :_LONGEST
    ]


def _said_codes(answer: Answer) -> list[str]:
    return [str(error.get("code")) for error in _errors(answer)]


def _errors(answer: Answer) -> list[dict[str, Any]]:
    try:
        document = json.loads(answer.body)
    except ValueError:
        return []
    found = document.get("errors") if isinstance(document, dict) else None
    return [error for error in found if isinstance(error, dict)] if isinstance(found, list) else []


def _is_page(answer: Answer) -> bool:
    return answer.header("content-type").partition(";")[0].strip() == "text/html" or (
        answer.body.lstrip()[:1] == b"<"
    )
