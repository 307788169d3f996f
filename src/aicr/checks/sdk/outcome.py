"""The three ways a check ends: it returns, it skips, it fails.

A skip claims that what the check is about does not apply to this cluster. It never stands for "we could
not look": that is a failure with its own code. Whether an error is a skip is decided by its chain of
causes, so one that was wrapped on the way up still skips. Source: validators spec 5.2, 5.3; decisions
62, 63, 64.
"""

from __future__ import annotations

from typing import Any, Final

from aicr.contract.sentinels import COULD_NOT_TELL, SKIP_REASONS
from aicr.errors import INTERNAL, RATE_LIMIT_EXCEEDED, SERVICE_UNAVAILABLE, AicrError

NO_GPU_NODES: Final = "no-gpu-nodes"
NO_SCHEDULABLE_GPU_NODES: Final = "no-schedulable-gpu-nodes"
NODES_BUSY: Final = "nodes-busy"

_OBSERVED: Final = "observed"


class Skip(AicrError):  # noqa: N818 - it is no error
    """Raise to end a check as skipped.

    Args:
        reason: why it does not apply, for people; it reaches the report.
        code: one of the published skip codes, or "" when none fits.
    """

    def __init__(self, reason: str, code: str = "") -> None:
        if code and code not in SKIP_REASONS:
            raise AicrError(INTERNAL, f'"{code}" is not a published skip code')
        super().__init__(INTERNAL, reason)
        self.reason = reason
        self.reason_code = code


def skip_in(error: BaseException) -> Skip | None:
    """The skip in the chain of *error*, outermost first, or None."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, Skip):
            return found
        found = found.__cause__
    return None


def failed(
    message: str,
    *,
    code: str = INTERNAL,
    where: str = "",
    hint: str = "",
    context: dict[str, Any] | None = None,
) -> AicrError:
    """An error for a verdict: the cluster was looked at, and is not as it must be.

    Its code is not published as "could not tell", which any other INTERNAL, TIMEOUT, UNAUTHORIZED or
    SERVICE_UNAVAILABLE error of a check is (decision 62).
    """
    return AicrError(
        code, message, where=where, hint=hint, context={**(context or {}), _OBSERVED: True}
    )


def could_not_tell(error: AicrError) -> str:
    """The code to publish for an error that means "could not look"; "" for a verdict.

    The most telling code of the chain: an INTERNAL "failed to list" because of an UNAUTHORIZED is
    published as UNAUTHORIZED. A server that puts us off (429) is unavailable.
    """
    if any(link.context.get(_OBSERVED) for link in error.chain()):
        return ""
    codes = [
        SERVICE_UNAVAILABLE if link.code == RATE_LIMIT_EXCEEDED else link.code
        for link in error.chain()
    ]
    if codes[0] not in COULD_NOT_TELL:
        return ""
    telling = [code for code in codes if code in COULD_NOT_TELL and code != INTERNAL]
    return telling[0] if telling else INTERNAL
