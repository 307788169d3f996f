"""How the program of a check ends when something comes in between: a signal, or a bug of ours.

The exit code is then one that a pod can rely on, and the log says what happened; no traceback is printed.
What a check finds is for the check itself (`exit_codes`). Source: preflight specification 6.5 and 7.4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from aicr.preflight.checks import environment, exit_codes
from aicr.preflight.checks.environment import Interrupted, fields


def guarded(
    action: Callable[[], int], log: logging.Logger, *, interrupted: str, strategy: str
) -> int:
    """The exit code of *action*, or the one of what ended it.

    Args:
        action: runs the check and gives its exit code.
        log: where it is said.
        interrupted: what became of the work on a signal, for example "the workers were ended".
        strategy: the processing strategy; STORE_ONLY lets the pod start in spite of a bug.
    """
    try:
        with environment.interruptible():
            return action()
    except Interrupted as signal:
        log.warning(f"Interrupted: {interrupted}", extra=fields(signal=str(signal)))
        return exit_codes.of_signal(signal.signal)
    except Exception as error:
        log.error("Unexpected error: this is a bug of the check", extra=environment.bug(error))
        return exit_codes.gate(exit_codes.FAILED, strategy, log.warning)
