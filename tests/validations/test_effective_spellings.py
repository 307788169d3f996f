"""Validations judge final values: it does not matter which flag, name or layer a value came from."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from tools.validation_table import ADVICE, EKS, FIRES, GB300, SILENT, Situation

from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.errors import INVALID_REQUEST
from tools import validation_table

GRANULE = "CheckGB300HostKernelGranule"
OWNERSHIP = "CheckDriverOwnershipCoherence"
NAMES = {GRANULE: ("nodewright-customizations", "nodewrightcustomizations"),
         OWNERSHIP: ("gpu-operator", "gpuoperator")}  # fmt: skip
#: What keeps the other validations of a recipe without an operator's driver content.
BESIDE = (
    "nvidia-dra-driver-gpu:nvidiaDriverRoot=/",
    "nvsentinel:labeler.assumeDriverInstalled=true",
)


def outcome(function: str, flag: str, name: int, value: str) -> str:
    """What comes of a value given in one of the ways there are."""
    path = "tuningEnabled" if function == GRANULE else "driver.enabled"
    component = NAMES[function][name]
    flags: dict[str, tuple[str, ...]] = {} if function == GRANULE else {"set": BESIDE}
    overrides = {}
    if flag == "recipe":
        held = value == "true"
        overrides[component] = (
            {path: held} if function == GRANULE else {"driver": {"enabled": held}}
        )
    else:
        flags[flag] = (*flags.get(flag, ()), f"{component}:{path}={value}")
    situation = Situation(
        function,
        FIRES,
        GB300 if function == GRANULE else EKS,
        "",
        "64k pages" if function == GRANULE else "saw no NVIDIA driver",
        flags=flags,
        metadata={"gpuDriverState": "absent"} if function == OWNERSHIP else {},
        overrides=overrides,
    )
    found = validation_table.run(situation)
    if function == OWNERSHIP and found.outcome != SILENT:
        assert situation.said in found.said
    return found.outcome


WAYS = [("set", 0), ("set", 1), ("set_json", 0), ("set_json", 1), ("recipe", 0)]


@pytest.mark.covers("V-362")
@pytest.mark.parametrize(("flag", "name"), WAYS)
def test_tuning_is_off_however_it_was_switched_off(flag: str, name: int) -> None:
    """Advice about the kernel is for a profile that applies: scalar, typed, by alias, in the recipe."""
    assert outcome(GRANULE, flag, name, "true") == ADVICE
    assert outcome(GRANULE, flag, name, "false") == SILENT


@pytest.mark.covers("V-363", "V-364")
@pytest.mark.parametrize(("flag", "name"), WAYS)
def test_a_driver_that_nobody_installs_is_found_however_it_was_switched_off(
    flag: str, name: int
) -> None:
    """A snapshot saw no driver; the operator's is off by whatever flag, name or layer."""
    assert outcome(OWNERSHIP, flag, name, "false") == INVALID_REQUEST


@pytest.mark.covers("V-362")
@pytest.mark.parametrize("name", NAMES[GRANULE])
@pytest.mark.parametrize(("value", "told"), [("true", True), ("false", False)])
def test_a_value_from_a_file_counts_as_well(
    value: str, told: bool, name: str, tmp_path: Path
) -> None:
    """``--set-file``, under both names; advice is told with ``--debug``."""
    file, recipe, out, err = tmp_path / "value.yaml", tmp_path / "r.yaml", StringIO(), StringIO()
    file.write_text(value, encoding="utf-8")
    criteria = [word for key, given in GB300.items() for word in (f"--{key}", given)]
    assert main(["recipe", *criteria, "-o", str(recipe)], Console(out, err)) == 0
    flags = ["--set-file", f"{name}:tuningEnabled={file}", "--debug"]
    status = main(
        ["bundle", "-r", str(recipe), "-o", str(tmp_path / "b"), *flags], Console(out, err)
    )
    assert status == 0, err.getvalue()
    assert ("64k pages" in err.getvalue()) is told
