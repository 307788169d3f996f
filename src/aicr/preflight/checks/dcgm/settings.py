"""Settings of preflight-dcgm-diag: its variables, the diagnostic levels, and what is complained about.

It must not know: DCGM's bindings, health events.
Source: preflight specification 6.1; preflight seed, preflight-dcgm-diag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aicr.errors import invalid
from aicr.fabric import dcgm_codes
from aicr.preflight.checks import environment
from aicr.values.waiting import factor_of

ADDRESSES: Final = "DCGM_HOSTENGINE_ADDR"
LEVEL: Final = "DCGM_DIAG_LEVEL"
ATTEMPTS: Final = "DCGM_DIAG_STATUS_RETRY_MAX_ATTEMPTS"
INTERVAL: Final = "DCGM_DIAG_STATUS_RETRY_INTERVAL_SECONDS"
MAPPING: Final = "DCGM_ERROR_MAPPING_PATH"
TIMEOUT: Final = "DCGM_DIAG_TIMEOUT_SECONDS"

#: What the chart sets: the service of GPU Operator's GPUCluster mode, then the usual one. One exists.
DEFAULT_ADDRESSES: Final = "nvidia-dcgm-dra.gpu-operator.svc:5555,nvidia-dcgm.gpu-operator.svc:5555"
DEFAULT_LEVEL: Final = 2
DEFAULT_ATTEMPTS: Final = 10
DEFAULT_INTERVAL: Final = 10.0
DEFAULT_MAPPING: Final = "/etc/dcgm/dcgmerrorsmapping.csv"


@dataclass(frozen=True)
class Level:
    """A diagnostic level."""

    #: Constant of the bindings.
    constant: str
    name: str
    #: How long it takes, in words.
    takes: str
    adds: str
    #: Longest that one run may last, in seconds: a degrading GPU stalls DCGM without end.
    limit: float


LEVELS: Final[Mapping[int, Level]] = {
    1: Level("DCGM_DIAG_LVL_SHORT", "short", "about 30 s", "software deployment checks", 600),
    2: Level("DCGM_DIAG_LVL_MED", "medium", "about 2 min", "PCIe and basic GPU stress", 1800),
    3: Level("DCGM_DIAG_LVL_LONG", "long", "about 15 min", "the stress of plugin Diagnostic", 5400),
    4: Level("DCGM_DIAG_LVL_XLONG", "xlong", "1 to 2 hours", "extended stress", 14400),
}


@dataclass(frozen=True)
class Settings:
    """How to run the diagnostic."""

    addresses: tuple[str, ...]
    level: int = DEFAULT_LEVEL
    attempts: int = DEFAULT_ATTEMPTS
    #: Pause between attempts, in seconds.
    interval: float = DEFAULT_INTERVAL
    #: Longest that one run may last, in seconds.
    limit: float = LEVELS[DEFAULT_LEVEL].limit
    #: Mnemonic → action.
    mapping: Mapping[str, str] = field(default_factory=lambda: dcgm_codes.BUILT_IN)
    #: What the log is to say about the settings.
    notes: tuple[str, ...] = ()


def read(
    environ: Mapping[str, str], *, sends: bool = True
) -> tuple[Settings, environment.Reporting | None]:
    """Settings, and how to reach the connector, from the environment.

    Args:
        environ: the variables.
        sends: whether events are sent, so that socket and node are needed.

    Raises:
        AicrError: INVALID_REQUEST with the original's texts, in the original's order.
    """
    level = environment.whole_number(environ, LEVEL, DEFAULT_LEVEL)
    attempts = environment.whole_number(environ, ATTEMPTS, DEFAULT_ATTEMPTS)
    interval = environment.number(environ, INTERVAL, DEFAULT_INTERVAL)
    limit = environment.number(environ, TIMEOUT, 0)
    addresses = tuple(filter(None, map(str.strip, environ.get(ADDRESSES, "").split(","))))
    if not addresses:
        raise invalid(
            f"{ADDRESSES} is required",
            where=ADDRESSES,
            hint=f"a comma list, tried in order, for example {DEFAULT_ADDRESSES}",
        )
    reporting = environment.reporting_place(environ) if sends else None
    if level not in LEVELS:
        raise invalid(f"{LEVEL} must be 1-4, got {level}", where=LEVEL)
    if attempts < 1:
        raise invalid(f"{ATTEMPTS} must be >= 1, got {attempts}", where=ATTEMPTS)
    if interval <= 0:
        raise invalid(f"{INTERVAL} must be > 0, got {interval}", where=INTERVAL)
    if limit < 0:
        raise invalid(f"{TIMEOUT} must be > 0, got {limit}", where=TIMEOUT)
    if reporting is not None:
        reporting = environment.with_strategy(reporting, environ)
    factor = factor_of(environ)
    mapping, notes = read_mapping(environ)
    return (
        Settings(
            addresses,
            level,
            attempts,
            interval * factor,
            (limit or LEVELS[level].limit) * factor,
            mapping,
            tuple(notes),
        ),
        reporting,
    )


def read_mapping(environ: Mapping[str, str]) -> tuple[Mapping[str, str], list[str]]:
    """Mnemonic → action: the operator's file, or the built-in table.

    A file that is named and cannot be read maps nothing: every failure then needs a person, which is
    the safe side (preflight specification 6.1).
    """
    named = environ.get(MAPPING, "").strip()
    path = Path(named or DEFAULT_MAPPING)
    try:
        found, notes = dcgm_codes.parse_mapping(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        if not named:
            return dcgm_codes.BUILT_IN, []
        return {}, [f"{path} cannot be read ({error}): every failure asks for CONTACT_SUPPORT"]
    return found, [f"{path}: {note}" for note in notes]
