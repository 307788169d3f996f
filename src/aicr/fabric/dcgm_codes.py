"""What DCGM's numbers and names mean: error code → mnemonic → recommended action; results; statuses.

DCGM's own bindings know the numbers; which action follows a mnemonic is the table of this module, or a
file of the same form that an operator mounts. What no table knows needs a person (CONTACT_SUPPORT):
a new code is never taken for harmless.

It must not know: how the bindings are found, what an event looks like on the wire.
Source: preflight specification 5.2, 6.3 and 6.4, preflight known bugs (#1358, #1827), field case K7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

#: Names as health events use them (preflight specification 5.1).
NONE: Final = "NONE"
COMPONENT_RESET: Final = "COMPONENT_RESET"
CONTACT_SUPPORT: Final = "CONTACT_SUPPORT"
RESTART_VM: Final = "RESTART_VM"
RESTART_BM: Final = "RESTART_BM"
#: Every action a mapping file may name.
ACTIONS: Final = (
    *(NONE, COMPONENT_RESET, CONTACT_SUPPORT, "RUN_FIELDDIAG", RESTART_VM, RESTART_BM),
    *("REPLACE_VM", "RUN_DCGMEUD", "CUSTOM", "UNKNOWN"),
)
PREFIX: Final = "DCGM_FR_"
STATUS_PREFIX: Final = "DCGM_ST_"

_BY_ACTION: Final[Mapping[str, str]] = {
    NONE: """VOLATILE_SBE_DETECTED CLOCKS_EVENT_THERMAL CLOCK_THROTTLE_THERMAL CLOCKS_EVENT_POWER
        CLOCK_THROTTLE_POWER NVLINK_ERROR_THRESHOLD NVSWITCH_NON_FATAL_ERROR ABORTED TEST_DISABLED
        TARGET_POWER NO_GRAPHICS_CLOCKS XID_ERROR TEST_SKIPPED ERROR_SENTINEL""",
    # The two that upstream once took for harmless, PENDING_PAGE_RETIREMENTS and
    # UNCORRECTABLE_ROW_REMAP, need a reset (#1827).
    COMPONENT_RESET: """VOLATILE_DBE_DETECTED CORRUPT_INFOROM NVSWITCH_DOWN PENDING_ROW_REMAP
        GPU_RECOVERY_RESET GPU_RECOVERY_DRAIN_RESET NCCL_ERROR PENDING_PAGE_RETIREMENTS
        UNCORRECTABLE_ROW_REMAP""",
    RESTART_VM: """POWER_UNREADABLE NVLINK_DOWN FIELD_QUERY FIELD_VIOLATION FIELD_THRESHOLD
        FIELD_VIOLATION_DBL FIELD_THRESHOLD_DBL UNSUPPORTED_FIELD_TYPE FIELD_THRESHOLD_TS
        FIELD_THRESHOLD_TS_DBL CLOCKS_EVENT_VIOLATION THROTTLING_VIOLATION STRESS_LEVEL
        CANNOT_SET_WATCHES CUDA_UNBOUND MEMORY_ALLOC MEMORY_ALLOC_HOST ECC_PENDING MEMORY_BANDWIDTH
        API_FAIL API_FAIL_GPU HAD_TO_RESTORE_STATE UNCONTAINED_ERROR DBE_PENDING_PAGE_RETIREMENTS
        SXID_ERROR""",
    RESTART_BM: "FALLEN_OFF_BUS GPU_RECOVERY_REBOOT",
}
#: Mnemonic → action, for all that differ from CONTACT_SUPPORT.
BUILT_IN: Final[Mapping[str, str]] = {
    f"{PREFIX}{name}": action for action, names in _BY_ACTION.items() for name in names.split()
}

#: Results of one test on one GPU, by DCGM's number (DCGM_DIAG_RESULT_*).
RESULTS: Final = ("pass", "skip", "warn", "fail", "not_run")
#: A number that DCGM did not have when this was written.
UNKNOWN_RESULT: Final = "unknown"

#: How bad an action is, so that the worst of several errors decides (preflight known bugs, S4).
_SEVERITY: Final = (
    *(NONE, "UNKNOWN", "CUSTOM", "RUN_DCGMEUD", "RUN_FIELDDIAG", COMPONENT_RESET, RESTART_VM),
    *(RESTART_BM, "REPLACE_VM", CONTACT_SUPPORT),
)


def result_name(number: int) -> str:
    """`pass`, `skip`, `warn`, `fail`, `not_run`, or `unknown`."""
    return RESULTS[number] if 0 <= number < len(RESULTS) else UNKNOWN_RESULT


def action_for(mnemonic: str, mapping: Mapping[str, str] = BUILT_IN) -> str:
    """The recommended action; CONTACT_SUPPORT for a mnemonic, or no mnemonic, that nothing maps."""
    return mapping.get(mnemonic, CONTACT_SUPPORT)


def severity(action: str) -> int:
    """A rank to compare actions by; larger is worse."""
    return _SEVERITY.index(action)


def parse_mapping(text: str) -> tuple[dict[str, str], list[str]]:
    """Read a mapping file: lines `name,ACTION`, `#` comments.

    Returns:
        The mapping, and a note for each row that was left out because its action is not known.
    """
    found: dict[str, str] = {}
    notes: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        name, _, action = (part.strip() for part in content.partition(","))
        action = action.upper()
        if action not in ACTIONS:
            notes.append(f"line {number}: {action!r} is no action; {name} needs a person")
        else:
            found[name] = action
    return found, notes


def mnemonics(constants: Iterable[tuple[str, int]]) -> dict[int, str]:
    """Error code → mnemonic, from the DCGM_FR_* constants of the bindings.

    Several names may share a number after a renaming; the choice among them is stable: the one that
    our table maps, then the alphabetically first, which is the current spelling of the renamed ones.
    """
    found: dict[int, str] = {}
    named = [item for item in constants if item[0].startswith(PREFIX)]
    for name, code in sorted(named, key=lambda item: (item[0] not in BUILT_IN, item[0])):
        # Messages and priorities share the prefix; only the codes are whole numbers.
        if isinstance(code, int) and not name.endswith(("_MSG", "_NEXT")):
            found.setdefault(code, name)
    return found


def statuses(constants: Iterable[tuple[str, int]]) -> dict[int, str]:
    """Status number → name, for the failures (negative numbers) among the DCGM_ST_* constants."""
    return {
        value: name
        for name, value in sorted(constants)
        if name.startswith(STATUS_PREFIX) and isinstance(value, int) and value < 0
    }


def check_name(test: str = "") -> str:
    """The checkName of an event: `targeted_power` → `DcgmDiagnosticTargetedPower`.

    Source: preflight specification 5.2; a blank in a name stays (`memory bandwidth`).
    """
    parts = test.replace("-", "_").split("_")
    return "DcgmDiagnostic" + "".join(part[:1].upper() + part[1:].lower() for part in parts)
