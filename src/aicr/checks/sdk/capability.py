"""Whether what a check is about applies to this cluster: proceed, skip, or fail.

The dividing line is the recipe. What it declares was promised, so its absence fails; what it does not
declare may be absent, and then the check skips. What we could not look at is neither, whoever declared
what: an error of access, time or transport always fails with its code, so that a broken or forbidden
look can never read as "not applicable". Source: validators spec 5.3, decision 64, field case G2.
"""

from __future__ import annotations

from dataclasses import dataclass

from aicr.checks.sdk.context import Context
from aicr.checks.sdk.outcome import Skip, failed
from aicr.errors import (
    INTERNAL,
    NOT_FOUND,
    RATE_LIMIT_EXCEEDED,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    UNAUTHORIZED,
    AicrError,
)

_WORDS = {
    UNAUTHORIZED: "access was refused",
    TIMEOUT: "there was no answer in time",
    SERVICE_UNAVAILABLE: "the API server could not be reached",
    INTERNAL: "it could not be told",
}
_HINTS = {
    UNAUTHORIZED: "the validator cannot see it; grant its service account the access",
    TIMEOUT: "look at the load of the API server, then run the check again",
    SERVICE_UNAVAILABLE: "look at the API server and the network, then run the check again",
}


@dataclass(frozen=True, slots=True)
class Capability:
    """What a check needs, and which component of a recipe supplies it.

    Attributes:
        component: name of the componentRef.
        subject: what is looked for, for example ``CRD podgroups.scheduling.run.ai``.
        absent: why a run fails that declares the component; a sentence is made up if it is empty.
        inapplicable: why a run skips that does not.
    """

    component: str
    subject: str
    absent: str = ""
    inapplicable: str = ""


def declares(context: Context | None, component: str) -> bool:
    """Whether the recipe has *component*, enabled; False without context or input (standalone)."""
    return context is not None and context.component(component) is not None


def require(
    context: Context | None,
    capability: Capability,
    probe_error: BaseException | None,
    present: bool,
) -> None:
    """Return when the check applies.

    Args:
        context: for what the recipe declares.
        capability: what was looked for.
        probe_error: what the look ended with, None if it was clean.
        present: whether it was there; looked at only after a clean look.

    Raises:
        AicrError: NOT_FOUND when the recipe declares what is absent; the code of `classify` when it
            could not be told.
        Skip: when it is absent and not declared.
    """
    if probe_error is not None and (code := classify(probe_error)) != NOT_FOUND:
        raise _blocked(capability, code) from probe_error
    if probe_error is None and present:
        return
    if declares(context, capability.component):
        message = (
            capability.absent or f"{capability.subject} not found, although the recipe declares it"
        )
        raise failed(
            f"{capability.component}: {message}",
            code=NOT_FOUND,
            hint=f"install {capability.component}, or disable it in the recipe",
        ) from probe_error
    raise Skip(
        capability.inapplicable
        or f"{capability.subject} not found, and the recipe does not declare {capability.component}"
    ) from probe_error


def require_list(error: BaseException | None, capability: Capability | None = None) -> None:
    """Return when a list was clean; what an empty list means is the caller's to say.

    Raises:
        AicrError: with the code of `classify` for any error: a collection that is "not found" is an
            anomaly of the server, never the absence of one object, and so never a skip.
    """
    if error is None:
        return
    raise _blocked(capability, classify(error)) from error


def classify(error: BaseException) -> str:
    """Which of the five codes of spec 5.3 a failed look has.

    What the chain says about access, time or transport wins over a NOT_FOUND beside it. An API group
    that discovery cannot reach is INTERNAL; an overloaded server (429) is unavailable.
    """
    codes: set[str] = set()
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, AicrError):
            codes.add(INTERNAL if "unreachable" in found.context else found.code)
        elif isinstance(found, TimeoutError):
            codes.add(TIMEOUT)
        elif isinstance(found, ConnectionError):
            codes.add(SERVICE_UNAVAILABLE)
        found = found.__cause__
    for code in (UNAUTHORIZED, TIMEOUT, SERVICE_UNAVAILABLE):
        if code in codes:
            return code
    if RATE_LIMIT_EXCEEDED in codes:
        return SERVICE_UNAVAILABLE
    return NOT_FOUND if NOT_FOUND in codes else INTERNAL


def _blocked(capability: Capability | None, code: str) -> AicrError:
    what = (
        f"{capability.component}: cannot look for {capability.subject}"
        if capability
        else ("cannot list")
    )
    return AicrError(
        code, f"{what}: {_WORDS.get(code, 'it is not served')}", hint=_HINTS.get(code, "")
    )
