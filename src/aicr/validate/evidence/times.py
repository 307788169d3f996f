"""Every waiting time of evidence in one object (decision 67): building, publishing, signing, a submission.

It must not know who waits. Source: validators spec 9.2, 9.5, 11.
"""

from __future__ import annotations

from dataclasses import dataclass

from aicr.values.waiting import Waits


@dataclass(frozen=True, slots=True)
class EvidenceTimes(Waits):
    """Evidence of a validated recipe."""

    #: Writing the pages of a submission.
    render: float = 30.0
    #: Building a bundle.
    bundle: float = 60.0
    #: Pushing one artifact.
    push: float = 120.0
    #: All attempts to sign.
    sign: float = 120.0
    #: One attempt.
    attempt: float = 35.0
    #: Before the second and the third attempt.
    backoff: tuple[float, ...] = (1.0, 5.0)
    #: For a person to log in.
    login: float = 300.0
    #: Between two questions whether one has, unless the service asks for another pause.
    login_poll: float = 5.0
    #: One section of a submission.
    section: float = 300.0
    #: All of them.
    overall: float = 1200.0
