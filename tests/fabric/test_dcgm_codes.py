"""What DCGM's codes mean: mnemonic, action, check name."""

from __future__ import annotations

import pytest

from aicr.fabric import dcgm_codes


@pytest.mark.parametrize(
    ("mnemonic", "action"),
    [
        ("DCGM_FR_XID_ERROR", "NONE"),
        ("DCGM_FR_MEMORY_ALLOC", "RESTART_VM"),
        ("DCGM_FR_FALLEN_OFF_BUS", "RESTART_BM"),
        ("DCGM_FR_CORRUPT_INFOROM", "COMPONENT_RESET"),
        ("DCGM_FR_PENDING_PAGE_RETIREMENTS", "COMPONENT_RESET"),
        ("DCGM_FR_UNCORRECTABLE_ROW_REMAP", "COMPONENT_RESET"),
        ("DCGM_FR_PERSISTENCE_MODE", "CONTACT_SUPPORT"),
        ("DCGM_FR_OF_NEXT_YEAR", "CONTACT_SUPPORT"),
        ("", "CONTACT_SUPPORT"),
    ],
)
def test_a_mnemonic_leads_to_an_action(mnemonic: str, action: str) -> None:
    """What is not in the table needs a person."""
    assert dcgm_codes.action_for(mnemonic) == action


def test_the_table_has_all_exceptions_and_only_known_actions() -> None:
    """14 harmless codes, 9 for a reset, 25 for a restart of the machine, 2 of the host."""
    counts = {
        action: list(dcgm_codes.BUILT_IN.values()).count(action)
        for action in set(dcgm_codes.BUILT_IN.values())
    }
    assert counts == {"NONE": 14, "COMPONENT_RESET": 9, "RESTART_VM": 25, "RESTART_BM": 2}
    assert set(counts) <= set(dcgm_codes.ACTIONS)


def test_aliases_give_one_name_always() -> None:
    """The current spelling, in whatever order the bindings list them; messages are no codes."""
    constants: list[tuple[str, int]] = [
        ("DCGM_FR_CLOCK_THROTTLE_THERMAL", 10),
        ("DCGM_FR_CLOCKS_EVENT_THERMAL", 10),
        ("DCGM_FR_XID_ERROR", 101),
        ("DCGM_ST_OK", 0),
    ]
    expected = {10: "DCGM_FR_CLOCKS_EVENT_THERMAL", 101: "DCGM_FR_XID_ERROR"}
    assert dcgm_codes.mnemonics(constants) == expected
    assert dcgm_codes.mnemonics(reversed(constants)) == expected
    text: list[tuple[str, object]] = [("DCGM_FR_OK_MSG", "fine"), ("DCGM_FR_EC_NONE", 0.5)]
    assert dcgm_codes.mnemonics(text) == {}  # type: ignore[arg-type]


def test_only_failures_are_statuses() -> None:
    """Negative numbers with the right prefix."""
    constants = [("DCGM_ST_OK", 0), ("DCGM_ST_IN_USE", -34), ("DCGM_GROUP_EMPTY", -1)]
    assert dcgm_codes.statuses(constants) == {-34: "DCGM_ST_IN_USE"}


def test_a_mapping_file_is_read_and_odd_rows_are_named() -> None:
    """A row with an unknown action is left out, so its code needs a person."""
    found, notes = dcgm_codes.parse_mapping(
        "# name,action\nDCGM_FR_A,none\n\nDCGM_FR_B , RESTART_VM # why\nDCGM_FR_C,REBOOT\nDCGM_FR_D\n"
    )
    assert found == {"DCGM_FR_A": "NONE", "DCGM_FR_B": "RESTART_VM"}
    assert [note.split(":")[0] for note in notes] == ["line 5", "line 6"]


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("", "DcgmDiagnostic"),
        ("memory", "DcgmDiagnosticMemory"),
        ("targeted_power", "DcgmDiagnosticTargetedPower"),
        ("targeted-stress", "DcgmDiagnosticTargetedStress"),
        ("PCIE", "DcgmDiagnosticPcie"),
        ("memory bandwidth", "DcgmDiagnosticMemory bandwidth"),
    ],
)
def test_check_names_are_made_from_test_names(test: str, name: str) -> None:
    """Split at underscores and hyphens; a blank stays."""
    assert dcgm_codes.check_name(test) == name


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0, "pass"),
        (1, "skip"),
        (2, "warn"),
        (3, "fail"),
        (4, "not_run"),
        (5, "unknown"),
        (-1, "unknown"),
    ],
)
def test_result_numbers_have_names(number: int, name: str) -> None:
    """A number of a later DCGM is unknown, never a pass."""
    assert dcgm_codes.result_name(number) == name
