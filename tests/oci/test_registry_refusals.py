"""What a registry says when it refuses reaches the user in words, with a next step that fits."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.kube.loopback import closed_port
from tests.oci.test_registry_logins import TokenRegistry, answering

from aicr.artifacts import oci
from aicr.artifacts.registry import Registry
from aicr.artifacts.registry_auth import Credentials
from aicr.artifacts.wire import Transport
from aicr.errors import AicrError

PLAIN = Transport(plain_http=True, pause=0.01)
NOBODY = Credentials()
BASIC = ("WWW-Authenticate", 'Basic realm="r"')


def errors(code: str, message: str) -> bytes:
    """A body as the distribution protocol has it."""
    return json.dumps({"errors": [{"code": code, "message": message, "detail": None}]}).encode()


def registry_that(answer: Callable[[TokenRegistry], None]) -> type[TokenRegistry]:
    """A registry that gives one answer to everything."""

    def do(handler: TokenRegistry) -> None:
        handler.seen.append((handler.command, handler.path, ""))
        answer(handler)

    return type("Refusing", (TokenRegistry,), {"seen": [], "do_GET": do, "do_HEAD": do})


def pulled(handler: type[TokenRegistry], held: Credentials = NOBODY) -> AicrError:
    """The error of a pull."""
    with (
        answering(handler) as host,
        Registry(host, PLAIN, lambda _: held) as client,
        pytest.raises(AicrError) as caught,
    ):
        client.pull_manifest(oci.Address(host, "team/x", "v1"))
    return caught.value


@pytest.mark.parametrize(
    ("status", "body", "said", "hint"),
    [
        (403, errors("DENIED", "not yours"), "403 not yours (DENIED)", "docker login"),
        (
            404,
            errors("MANIFEST_UNKNOWN", "manifest unknown"),
            "404 manifest unknown (MANIFEST_UNKNOWN)",
            "this tag or digest is not",
        ),
        (404, errors("NAME_UNKNOWN", "no such"), "404 no such (NAME_UNKNOWN)", "repository"),
        (404, b"404 page not found\n", "answered 404 404 page not found", "repository"),
        (413, b"", "answered 413", "no room"),
        (507, b"full", "answered 507 full", "no room"),
        (500, b"<html>\n<title>x</title></html>", "answered 500", "login page"),
        (500, b"boom\x1b[31m", "answered 500 boom [31m", "log"),
        (400, b'{"errors": "odd"}', 'answered 400 {"errors": "odd"}', "log"),
    ],
)
def test_a_refusal_is_in_words_with_a_step_that_fits(
    status: int, body: bytes, said: str, hint: str
) -> None:
    """No JSON, no page and no control characters of a stranger."""
    error = pulled(registry_that(lambda handler: handler._answer(status, body)))
    assert error.message.endswith(said)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("held", "hint"),
    [
        (NOBODY, "log in: docker login"),
        (Credentials("user", "secret"), "ask its owner for access"),
    ],
    ids=["nobody", "logged in"],
)
def test_who_is_logged_in_is_not_told_to_log_in(held: Credentials, hint: str) -> None:
    """A log-in that may not do this is another matter than none."""

    def answer(handler: TokenRegistry) -> None:
        if held.user and not handler.headers.get("Authorization"):
            handler._answer(401, b"", BASIC)
        else:
            handler._answer(403, b"")

    error = pulled(registry_that(answer), held)
    assert error.code == "UNAUTHORIZED"
    assert error.hint.startswith(hint)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_registry_is_asked_again_when_it_says_when(status: int) -> None:
    """Retry-After is obeyed, as for the API server."""
    manifest = TokenRegistry.manifest

    def answer(handler: TokenRegistry) -> None:
        if len(handler.seen) < 3:
            handler._answer(status, b"", ("Retry-After", "0"))
        else:
            handler._answer(200, manifest)

    handler = registry_that(answer)
    with answering(handler) as host, Registry(host, PLAIN) as client:
        assert client.pull_manifest(oci.Address(host, "team/x", "v1"))[0] == manifest
    assert len(handler.seen) == 3


@pytest.mark.parametrize(
    ("after", "hint", "asked"),
    [
        ("3600", "wait 3600 s, then try again", 1),
        ("0", "wait 0 s, then try again", 4),
        ("Wed, 21 Oct 2015 07:28:00 GMT", "wait, then try again", 1),
        ("-5", "wait, then try again", 1),
        ("", "wait, then try again", 1),
    ],
)
def test_a_registry_that_stays_busy_is_not_waited_for_without_end(
    after: str, hint: str, asked: int
) -> None:
    """Longer than our patience, or without a time: the user is told."""
    handler = registry_that(
        lambda handler: handler._answer(429, b"", *([("Retry-After", after)] if after else []))
    )
    error = pulled(handler)
    assert error.code == "RATE_LIMIT_EXCEEDED"
    assert error.hint.startswith(hint)
    assert len(handler.seen) == asked


def test_a_web_page_in_the_place_of_a_manifest_is_called_one() -> None:
    """A login page with status 200; the rules of JSON would help nobody."""
    page = b"<html><title>Log in</title></html>"
    with answering(registry_that(lambda handler: handler._answer(200, page))) as host:
        source = f"oci://{host}/team/x:v1"
        with Registry(host, PLAIN) as client:
            manifest, _ = client.pull_manifest(oci.Address(host, "team/x", "v1"))
        with pytest.raises(AicrError, match="no manifest") as caught:
            oci.layer_of(manifest, source=source)
    assert source in caught.value.message
    assert "login page" in caught.value.hint


def test_another_host_that_does_not_answer_is_named() -> None:
    """A registry that sends us elsewhere is not the one that is down."""
    gone = f"127.0.0.1:{closed_port()}"
    error = pulled(
        registry_that(lambda handler: handler._answer(307, b"", ("Location", f"http://{gone}/x")))
    )
    assert f"{gone}: Connection refused" in error.message
    assert "--plain-http" not in error.hint


@pytest.mark.parametrize(
    "address", ["oci://me:hunter2@r.example/team/x:v1", "oci://hunter2@r.example/team/x:v1"]
)
def test_an_address_with_a_password_is_refused_and_not_repeated(address: str) -> None:
    """Log-ins are docker's; an address is printed and recorded."""
    with pytest.raises(AicrError, match="user name or password") as caught:
        oci.parse_address(address)
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"
    assert "r.example" in caught.value.message
