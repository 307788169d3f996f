"""What the admission webhook needs to know of gangs, and what it tells them: the port between the two.

```
admission ──asks──► GangLookup.identify ──► Membership ──► decision (pure)
          ──tells─► GangLookup.register            (nothing is written on a dry run)
server    ──runs──► GangService: start, run, unready
```

The admission side owns this file; `aicr.preflight.controller` implements it and hands out an
implementation by ``aicr.preflight.controller.service.build(cluster, config)``. This module must not
know discoverers, ConfigMaps or the API server. Source: preflight spec 2.6, 4.3, decisions 21, 22, 70.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from aicr.errors import CONFLICT, AicrError

#: Key in an error's context that makes a failure of `GangLookup.register` a refusal of the pod.
REFUSAL: Final = "gangRefusal"


@dataclass(frozen=True, slots=True)
class Membership:
    """Which gang a pod belongs to, as far as that is known when it is admitted."""

    gang_id: str
    """The unsanitised id, ``{discoverer}-{namespace}-{group}``; env ``GANG_ID``."""
    config_map: str
    """Name of the ConfigMap, in the pod's namespace, that its checks mount."""
    discoverer: str
    """Name of what recognised the gang (``kubernetes``, ``volcano``, ...), for logs and texts."""
    expected: int | None = None
    """Members that the group asks for; None while that is not known."""
    checks: tuple[str, ...] | None = None
    """The checks that earlier members agreed on, in order; None while there is no earlier member."""
    agreed_by: str = ""
    """Name of a member that stands for `checks`, for the text of a refusal."""
    mismatch: str = ""
    """Why this pod cannot join at all, whatever it selects; "" if it can. It denies the pod."""


class GangLookup(Protocol):
    """What one admission asks and tells."""

    async def identify(self, pod: Mapping[str, Any], namespace: str) -> Membership | None:
        """The gang of a raw *pod* that is being created in *namespace*; None if it is in none.

        The id needs no request to the API server. What does (expected, checks) is left None when it
        cannot be read: a gang pod is not admitted as a single pod because of a slow API server.
        """

    async def register(
        self,
        membership: Membership,
        pod: Mapping[str, Any],
        checks: Sequence[str],
        dry_run: bool,
    ) -> None:
        """Create or complete the gang's ConfigMap for a pod that gets *checks*, in that order.

        With *dry_run* everything is checked and nothing is written. Raises `refusal` when another
        member, admitted meanwhile, has agreed on other checks; the pod is then denied. Any other
        AicrError is logged and counted, and the pod is admitted (spec 2.4).
        """


class GangService(GangLookup, Protocol):
    """The look-up together with the controllers that keep gangs up to date."""

    async def start(self) -> None:
        """Validate the default discoverer against the API server.

        Raises AicrErrors whose messages, outermost first, read as spec 1.1 quotes them:
        ``failed to create gang discoverer resolver`` and so on. The process then ends.
        """

    async def run(self) -> None:
        """Run the controllers until cancelled; returning or raising ends the process."""

    def unready(self) -> str:
        """Why the service cannot be relied on yet or any more, for ``/readyz``; "" if it can."""


def refusal(message: str) -> AicrError:
    """The error with which `GangLookup.register` has a pod denied; *message* names both members."""
    return AicrError(CONFLICT, message, context={REFUSAL: True})


def is_refusal(error: AicrError) -> bool:
    """Whether *error* is a `refusal`, and not a failure of the API server."""
    return error.context.get(REFUSAL) is True
