"""Where the identity token for signing without a key comes from, asked in order and as late as possible.

```
--identity-token, COSIGN_IDENTITY_TOKEN   handed in
the environment (a CI job)                found by the signing library itself
device flow                               a code that a person types in on another device
browser                                   a page that opens here
```
The last two need a person, who was asked first, and end after five minutes. The device flow is RFC 8628
over the module that talks to registries; the browser's is the signing library's. A token is never
written anywhere. Source: validators spec 9.5, 11.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aicr.artifacts import wire
from aicr.artifacts.signing import missing_extra
from aicr.errors import CANCELED, SERVICE_UNAVAILABLE, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.validate.evidence.times import EvidenceTimes

ISSUER: Final = "https://oauth2.sigstore.dev/auth"
CLIENT: Final = "sigstore"
_SCOPE: Final = "openid email"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
#: How long a code is said to be good for when nobody says.
_GOOD: Final = 300.0
CONSENT: Final = (
    "signing without a key writes who you are (for example your e-mail address) into a public log "
    "for good"
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """How a person is reached.

    Attributes:
        say: takes a line for people.
        confirm: asks, and says whether the answer was yes; None when nobody can be asked.
        interactive: whether somebody sits there.
    """

    say: Callable[[str], None]
    confirm: Callable[[str], bool] | None = None
    interactive: bool = False


def consent(prompt: Prompt, *, assume_yes: bool) -> None:
    """Make sure that the signer agrees to be named in public.

    Raises:
        AicrError: CANCELED when the answer is no.
    """
    if assume_yes:
        return
    if prompt.confirm is None:
        prompt.say(f"warning: {CONSENT}")
        return
    if not prompt.confirm(CONSENT):
        raise AicrError(
            CANCELED, "nothing was signed", where="--push", hint="pass --yes to agree, or --no-sign"
        )


def token(
    given: str,
    environ: Mapping[str, str],
    prompt: Prompt,
    *,
    device_flow: bool,
    device: Callable[[Callable[[str], None]], str] | None = None,
    browser: Callable[[], str] | None = None,
) -> str:
    """The token to sign with; "" leaves it to the signing library to find one around it.

    Args:
        given: what a flag or variable says.
        environ: the environment, which says whether this is a CI job.
        prompt: how a person is reached.
        device_flow: log in on another device.
        device, browser: stand in for the two flows.

    Raises:
        AicrError: UNAUTHORIZED when the person is not let in, TIMEOUT when nobody comes,
            SERVICE_UNAVAILABLE when the service fails.
    """
    if given:
        return given
    if environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN"):
        return ""
    if device_flow:
        if device is not None:
            return device(prompt.say)
        return from_device(prompt.say, times=EvidenceTimes.from_environment(environ))
    if prompt.interactive:
        return (browser or from_browser)()
    return ""


def from_device(
    say: Callable[[str], None],
    *,
    issuer: str = ISSUER,
    times: EvidenceTimes | None = None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """A token that a person grants on another device.

    Raises:
        AicrError: UNAUTHORIZED when it is refused, TIMEOUT when the code runs out,
            SERVICE_UNAVAILABLE when the service fails.
    """
    times = times or EvidenceTimes()
    begun = _post(f"{issuer}/device/code", {"client_id": CLIENT, "scope": _SCOPE})
    code = _text(begun, "device_code")
    address = str(begun.get("verification_uri_complete") or _text(begun, "verification_uri"))
    say(f"open {address} on any device and enter the code {_text(begun, 'user_code')}")
    end = now() + min(times.login, _seconds(begun, "expires_in", _GOOD))
    pause = _seconds(begun, "interval", times.login_poll)
    while now() < end:
        sleep(pause)
        answer = _post(
            f"{issuer}/token", {"client_id": CLIENT, "grant_type": _GRANT, "device_code": code}
        )
        error = answer.get("error")
        if not error:
            return _text(answer, "id_token")
        if error == "slow_down":
            pause += times.login_poll
        elif error != "authorization_pending":
            raise AicrError(UNAUTHORIZED, f"the log-in was refused: {error}", where="device flow")
    raise AicrError(
        TIMEOUT, "nobody entered the code in time", where="device flow", hint="sign again later"
    )


def from_browser() -> str:
    """A token that a person grants in a browser of this machine.

    Raises:
        AicrError: INVALID_REQUEST without the extra ``sign``; UNAUTHORIZED when none was granted.
    """
    try:
        from sigstore.models import ClientTrustConfig  # type: ignore[import-not-found,unused-ignore]
        from sigstore.oidc import Issuer  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise missing_extra("sign", "signing without a key", error) from None
    try:
        address = ClientTrustConfig.production().signing_config.get_oidc_url()
        return str(Issuer(address).identity_token())
    except Exception as error:
        raise AicrError(
            UNAUTHORIZED,
            f"no identity was granted: {str(error).partition(chr(10))[0][:300]}",
            hint="pass --oidc-device-flow to log in on another device",
        ) from error


def asking(say: Callable[[str], None]) -> Callable[[str], bool]:
    """Asks whoever sits at the terminal, and takes anything but yes for no."""

    def confirm(text: str) -> bool:
        say(f"{text}. Continue? [y/N]")
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return confirm


def somebody_there() -> bool:
    """Whether a person can be asked: both ends are a terminal."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty())


def _post(address: str, fields: Mapping[str, str]) -> dict[str, Any]:
    body = urllib.parse.urlencode(fields).encode()
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    context = wire.Transport().context() if address.startswith("https:") else None
    try:
        answer = wire.fetch("POST", address, headers, body, context, wire.Transport().timeout)
        found = json.loads(answer.body)
    except (wire.CutError, ValueError) as error:
        raise _down(str(error)) from error
    if not isinstance(found, dict) or (answer.status != 200 and not found.get("error")):
        raise _down(f"it answered {answer.status}")
    return found


def _text(document: Mapping[str, Any], key: str) -> str:
    found = document.get(key)
    if not isinstance(found, str) or not found:
        raise _down(f"its answer has no {key}")
    return found


def _seconds(document: Mapping[str, Any], key: str, default: float) -> float:
    found = document.get(key)
    return float(found) if isinstance(found, (int, float)) and found > 0 else default


def _down(why: str) -> AicrError:
    return AicrError(
        SERVICE_UNAVAILABLE, f"the log-in service cannot be used: {why}", hint="try again later"
    )
