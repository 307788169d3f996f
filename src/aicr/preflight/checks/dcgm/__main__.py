"""The program `preflight-dcgm-diag`: ``python -m aicr.preflight.checks.dcgm``.

It reads its variables, runs the check, sends the events, and exits with the code of the table in
`exit_codes`. A signal stops the diagnostic; no event is sent then.
Source: preflight specification 6.3 and 6.5.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TextIO

from aicr.errors import AicrError
from aicr.preflight.checks import environment, environment_process, exit_codes
from aicr.preflight.checks.dcgm import settings as dcgm_settings
from aicr.preflight.checks.dcgm.bindings import Bindings
from aicr.preflight.checks.dcgm.hostengine import Hostengine
from aicr.preflight.checks.dcgm.run import Run
from aicr.preflight.checks.ending import guarded
from aicr.preflight.checks.environment import Report, Reporting, fields
from aicr.preflight.checks.environment_gpus import list_gpus
from aicr.preflight.checks.environment_process import Process

COMPONENT_CLASS: Final = "GPU"


def main(
    environ: Mapping[str, str],
    stream: TextIO,
    *,
    engine: Hostengine | None = None,
    process: Process = environment_process.run,
    sleep: Callable[[float], None] = time.sleep,
    report: Report | None = None,
) -> int:
    """Run the check as the program does, and return its exit code.

    Args:
        environ: the variables.
        stream: where the log goes.
        engine, process, sleep, report: what tests replace.
    """
    log = environment.plain_log(exit_codes.DCGM_DIAG, stream)
    try:
        log = environment.log_for(exit_codes.DCGM_DIAG, environ, stream)
        settings, reporting = dcgm_settings.read(environ)
    except AicrError as error:
        log.error("Configuration error", extra=fields(error=environment.as_text(error)))
        return exit_codes.FAILED
    assert reporting is not None
    strategy, make_sender = reporting.strategy, partial(_sender, reporting, environ, log)

    def diagnose() -> int:
        outcome = Run(
            settings,
            engine or Bindings(environ),
            lambda: list_gpus(process, environ),
            report or make_sender(),
            log,
            sleep,
        ).go()
        tell = log.info if outcome.exit_code == exit_codes.PASSED else log.error
        tell(
            f"Check {outcome.verdict}",
            extra=fields(reason=outcome.message, unsent=len(outcome.unsent)),
        )
        return exit_codes.gate(outcome.exit_code, strategy, log.warning)

    return guarded(diagnose, log, interrupted="the diagnostic was stopped", strategy=strategy)


def _sender(reporting: Reporting, environ: Mapping[str, str], log: logging.Logger) -> Report:
    return reporting.client(exit_codes.DCGM_DIAG, COMPONENT_CLASS, environ, log.warning).send


if __name__ == "__main__":
    sys.exit(main(os.environ, sys.stderr))
