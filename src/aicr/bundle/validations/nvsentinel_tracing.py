"""Traces have to go somewhere (bundler spec 6.4.12)."""

from __future__ import annotations

from aicr.bundle.validations.effective import ABSENT, Finding, look, shown, truth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.bundle.validations.effective import Context, Verdict

SWITCH: Final = "global.tracing.enabled"
ENDPOINT: Final = "global.tracing.endpoint"


def tracing_endpoint(context: Context) -> Verdict:
    """``global.tracing.enabled`` comes with a collector address in ``global.tracing.endpoint``.

    Remedy: ``--set nvsentinel:global.tracing.endpoint=host:4317``, or switch tracing off.
    """
    values = context.values()
    on = truth(look(values, SWITCH))
    if not on and not context.is_dynamic(SWITCH):
        return [], []
    endpoint = look(values, ENDPOINT)
    if context.is_dynamic(ENDPOINT):
        problem = "is given at install time and may be empty"
    elif endpoint is ABSENT or (isinstance(endpoint, str) and not endpoint.strip()):
        problem = "is not set" if endpoint is ABSENT else "is blank"
    elif not isinstance(endpoint, str):
        problem = f"is {shown(endpoint)}, not text"
    else:
        return [], []
    why = "tracing is on" if on else "tracing may be switched on at install time"
    return [
        Finding(
            f"{context.name}: {why}, but {ENDPOINT} {problem}",
            f"name the OTLP collector: --set {context.name}:{ENDPOINT}=collector.example:4317; or "
            f"pass --set {context.name}:{SWITCH}=false",
        )
    ], []
