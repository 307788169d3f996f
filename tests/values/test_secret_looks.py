"""What looks like a secret, by its key or by itself."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.values import secrets

PEM = "-----BEGIN EC PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("adminPassword", True),
        ("POSTGRES_PASSWORD", True),
        ("apiKey", True),
        ("ngc-api-key", True),
        ("token", True),
        ("secret", True),
        ("clientSecret", True),
        ("aws_secret_access_key", True),
        ("existingSecret", False),
        ("passwordKeyRef", False),
        ("secretName", False),
        ("tokenFile", False),
        ("imagePullSecrets", False),
        ("maxTokens", False),
        ("tokenizer", False),
        ("compass", False),
        ("key", False),
    ],
)
def test_a_key_that_holds_a_secret_is_known_by_its_name(name: str, secret: bool) -> None:
    """However words are joined; a key that names where a secret is holds none."""
    assert secrets.is_secret_name(name) is secret


@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        ("x", ["password"], [["password"]]),
        (12345, ["password"], [["password"]]),
        ("", ["password"], []),
        (None, ["password"], []),
        (True, ["serviceAccountToken"], []),
        ("$__file{/etc/s}", ["password"], []),
        ("${DB_PASSWORD}", ["password"], []),
        ({"name": "s", "key": "password"}, ["passwordKeyRef"], []),
        (["x", "y"], ["tokens"], [["tokens", 0], ["tokens", 1]]),
        (100, ["maxTokens"], []),
        (PEM, ["tls", "data"], [["tls", "data"]]),
        ("postgres://u:p@h/d", ["url"], [["url"]]),
        ("postgres://u:$(PW)@h/d", ["url"], []),
        ("https://h/a:b@c", ["url"], []),
        ([{"name": "DB_PASSWORD", "value": "x"}], ["env"], [["env", 0, "value"]]),
        ([{"name": "DB_HOST", "value": "x"}], ["env"], []),
        ({"b": {"apiKey": "x"}, "a": 1}, ["c"], [["c", "b", "apiKey"]]),
    ],
)
def test_secrets_in_clear_are_found_where_they_are(
    value: Any, path: list[str | int], found: list[list[str | int]]
) -> None:
    """By key, by the name of an environment variable, by the text itself; references are none."""
    assert list(secrets.places(value, path)) == found


def test_a_shown_value_has_everything_but_its_secrets_and_leaves_the_given_one() -> None:
    """One word stands where each was."""
    value = {"DB_PASSWORD": "x", "DB_HOST": "h", "users": [{"token": "t"}]}
    assert secrets.shown(value, ["env"]) == {
        "DB_PASSWORD": secrets.HIDDEN,
        "DB_HOST": "h",
        "users": [{"token": secrets.HIDDEN}],
    }
    assert value["DB_PASSWORD"] == "x"
    assert secrets.shown("x", ["a", "password"]) == secrets.HIDDEN
    assert secrets.shown("x", ["a", "host"]) == "x"
