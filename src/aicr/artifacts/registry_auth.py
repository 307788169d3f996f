"""How a registry is told who asks: docker's configuration, and the token protocol.

```
config.json (auths, credHelpers, credsStore) --credentials(host)--> Credentials
WWW-Authenticate --parse_challenge--> Challenge --token_url--> request --token_in--> bearer token
```
What docker or podman logged in to works here without doing anything. A store that cannot be asked
is a warning, because many registries can be read by anybody.

It sends nothing itself (``registry_session`` does). Source: bundler spec 7.5.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import os
import re
import subprocess
import urllib.parse
from collections.abc import Callable
from typing import Any, Final

from aicr.artifacts.times import NetworkTimes
from aicr.errors import UNAUTHORIZED, AicrError
from aicr.values import basic_login, references
from aicr.yamlio.jsontext import load_json

_TOKEN_USER: Final = "<token>"
#: Docker's configuration knows its own hub by this name only.
_HUB_ENTRY: Final = "https://index.docker.io/v1/"


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """A name with its password, or a refresh token; empty for nobody."""

    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    identity_token: str = dataclasses.field(default="", repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Challenge:
    """What a registry asks for."""

    scheme: str = ""
    realm: str = ""
    service: str = ""


def docker_credentials(warn: Callable[[str], None]) -> Callable[[str], Credentials]:
    """Looks up the credentials of a registry in docker's configuration.

    Args:
        warn: told why a configuration or store could not be used.
    """
    folder = os.environ.get("DOCKER_CONFIG") or os.path.join(os.path.expanduser("~"), ".docker")
    path = os.path.join(folder, "config.json")

    def look_up(host: str) -> Credentials:
        if not os.path.isfile(path):
            return Credentials()
        try:
            with open(path, encoding="utf-8") as stream:
                config = load_json(stream.read(), source=path)
        except (OSError, UnicodeDecodeError, AicrError) as error:
            warn(f"docker's configuration {path} cannot be read: {error}")
            return Credentials()
        if not isinstance(config, dict):
            return Credentials()
        return _from_config(config, host, warn)

    return look_up


def _from_config(config: dict[str, Any], host: str, warn: Callable[[str], None]) -> Credentials:
    names = [host, f"https://{host}", f"http://{host}"]
    if host in references.HUB_NAMES:
        names = [_HUB_ENTRY, *references.HUB_NAMES]
    helpers = config.get("credHelpers")
    for name in names:
        helper = helpers.get(name) if isinstance(helpers, dict) else None
        if isinstance(helper, str) and helper:
            return _from_helper(helper, name, warn)
    auths = config.get("auths")
    for name in names:
        entry = auths.get(name) if isinstance(auths, dict) else None
        if isinstance(entry, dict):
            found = _from_entry(entry, host, warn)
            if found != Credentials():
                return found
    store = config.get("credsStore")
    if isinstance(store, str) and store:
        return _from_helper(store, names[0], warn)
    return Credentials()


def _from_entry(entry: dict[str, Any], host: str, warn: Callable[[str], None]) -> Credentials:
    token = entry.get("identitytoken")
    if isinstance(token, str) and token:
        return Credentials(identity_token=token)
    auth = entry.get("auth")
    if not isinstance(auth, str) or not auth:
        return Credentials()
    try:
        user, colon, password = base64.b64decode(auth, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        colon = ""
    if not colon:
        warn(f"docker's configuration has an unusable login for {host}; go on without it")
        return Credentials()
    return Credentials(user, password.rstrip("\0"))


def _from_helper(helper: str, name: str, warn: Callable[[str], None]) -> Credentials:
    program = f"docker-credential-{helper}"
    try:
        done = subprocess.run(
            [program, "get"],
            input=name.encode(),
            capture_output=True,
            timeout=NetworkTimes().helper,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        warn(f"{program} cannot be asked for the login of {name}: {error}; go on without it")
        return Credentials()
    if done.returncode != 0:
        # This is how a store says that it knows nobody.
        return Credentials()
    try:
        answer = json.loads(done.stdout)
        user, secret = str(answer["Username"]), str(answer["Secret"])
    except (ValueError, KeyError, TypeError):
        warn(f"{program} gave an unusable answer for {name}; go on without it")
        return Credentials()
    if user == _TOKEN_USER:
        return Credentials(identity_token=secret)
    return Credentials(user, secret)


def basic(held: Credentials) -> str:
    """The Authorization header of a name and a password, "" for nobody."""
    if not held.user:
        return ""
    return basic_login.basic(held.user, held.password)


def parse_challenge(header: str) -> Challenge:
    """The challenge in a WWW-Authenticate header; an empty one when it says nothing usable."""
    scheme, _, rest = header.strip().partition(" ")
    pairs = dict(re.findall(r'(\w+)="([^"]*)"', rest))
    return Challenge(scheme.lower(), pairs.get("realm", ""), pairs.get("service", ""))


def token_url(
    challenge: Challenge, scope: str, held: Credentials
) -> tuple[str, str, dict[str, str], bytes | None]:
    """(method, address, headers, body) of the request for a bearer token."""
    query = {"scope": scope}
    if challenge.service:
        query["service"] = challenge.service
    if held.identity_token:
        form = {
            **query,
            "grant_type": "refresh_token",
            "refresh_token": held.identity_token,
            "client_id": "aicr",
        }
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return "POST", challenge.realm, kind, urllib.parse.urlencode(form).encode()
    joint = "&" if "?" in challenge.realm else "?"
    headers = {"Authorization": basic(held)} if held.user else {}
    return "GET", f"{challenge.realm}{joint}{urllib.parse.urlencode(query)}", headers, None


def token_in(body: bytes, host: str) -> str:
    """The token in the answer of a token service.

    Raises:
        AicrError: UNAUTHORIZED when there is none.
    """
    try:
        answer = json.loads(body)
        token = answer.get("token") or answer.get("access_token")
    except (ValueError, AttributeError):
        token = None
    if not isinstance(token, str) or not token or re.search(r"[^\x21-\x7e]", token):
        raise AicrError(UNAUTHORIZED, f"the token service of {host} gave no usable token")
    return token
