"""Which values look like secrets, so that no message repeats them and a bundle that holds one says so.

Found by the name of the key (``adminPassword``, ``DB_PASSWORD``, ``apiKey``, ``token``), by that of an
entry ``{name: DB_PASSWORD, value: …}``, and by the value: a private key, an address with a password.
Not by the name are keys that name a Secret or an entry in one (``existingSecret``, ``passwordKeyRef``,
``tokenFile``), switches and numbers of something, and texts that refer to a secret (``$__file{…}``).

It must not know documents, nor who prints. Source: issue 5 ("secrets never in Git outputs").
"""

from __future__ import annotations

from aicr.values import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    Segments = list[str | int]

#: Stands where a secret would.
HIDDEN: Final = "(hidden)"

#: Ends of names, without marks between words and in lower case.
_ENDINGS: Final = (
    *("password", "passwd", "passphrase", "token", "credential", "credentials", "connectionstring"),
    *(
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "encryptionkey",
        "signingkey",
        "licensekey",
    ),
    *("accountkey", "sharedkey", "masterkey", "clientsecret", "sharedsecret", "jwtsecret"),
)
_WHOLE: Final = ("secret", "pass", "pwd", "psk")
_REFERENCES: Final = ("$", "{{", "ref+", "vault:")


def is_secret_name(name: str) -> bool:
    """Whether a key called *name* holds a secret.

    >>> [is_secret_name(name) for name in ("adminPassword", "NGC_API_KEY", "existingSecret")]
    [True, True, False]
    """
    plain = "".join(char for char in name if char.isalnum()).lower()
    return plain in _WHOLE or plain.endswith(_ENDINGS)


def places(value: Any, segments: Segments) -> Iterator[Segments]:
    """The paths of secrets in clear in *value*, which lies at *segments*; in the order of the keys."""
    if isinstance(value, dict):
        named = value.get("name")
        for key, item in value.items():
            entry = key == "value" and isinstance(named, str) and is_secret_name(named)
            if entry and _is_clear(item):
                yield [*segments, key]
            else:
                yield from places(item, [*segments, key])
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, [*segments, index])
    elif (isinstance(value, str) and _speaks(value)) or (_is_clear(value) and _is_named(segments)):
        yield segments


def shown(value: Any, segments: Segments) -> Any:
    """*value* with ``HIDDEN`` in the place of each secret in clear; the value given is not changed."""
    for place in places(value, segments):
        if len(place) == len(segments):
            return HIDDEN
        value = paths.put(value, place[len(segments) :], HIDDEN)
    return value


def shown_flag(text: str) -> str:
    """A flag ``COMPONENT:PATH=VALUE`` that could not be read, without a value that may be a secret.

    >>> shown_flag("a.adminPassword=x"), shown_flag("a:b=x")
    ('a.adminPassword=(hidden)', 'a:b=x')
    """
    path, equals, value = text.partition("=")
    words = path.replace(":", ".").replace("[", ".").split(".")
    secret = any(is_secret_name(word) for word in words) or _speaks(value)
    return f"{path}={HIDDEN}" if equals and value and secret else text


def _is_named(segments: Segments) -> bool:
    name = next((segment for segment in reversed(segments) if isinstance(segment, str)), "")
    # The entries of a list are called by its plural: tokens, passwords.
    return is_secret_name(name if not segments or segments[-1] == name else name.removesuffix("s"))


def _is_clear(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value) and not value.startswith(_REFERENCES)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _speaks(text: str) -> bool:
    """Whether a text is a secret whatever its key: a private key, an address with a password."""
    if "-----BEGIN" in text and "PRIVATE KEY-----" in text:
        return True
    _, slashes, rest = text.partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    _, colon, password = user.partition(":")
    return bool(slashes and at and colon) and _is_clear(password)
