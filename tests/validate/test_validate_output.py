"""What a check writes, taken apart, and how a recipe hands out GPUs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aicr.errors import AicrError
from aicr.validate import output
from aicr.validate.gpu_policy import DEVICE_PLUGIN, DRA_CLAIM, resolve_policy

RECORD = {"time": "t", "level": "WARNING", "msg": "slow", "module": "m", "version": "1"}


@pytest.mark.parametrize(
    "line",
    [
        "plain",
        "",
        "{",
        '{"msg": 1',
        json.dumps({"msg": "an object of the check's own"}),
        json.dumps([RECORD]),
        "## {}",
    ],
)
def test_only_our_own_log_records_are_told_from_evidence(line: str) -> None:
    """Everything else in a container's log is evidence, JSON or not."""
    found = output.Collected()
    assert found.mixed(line) == ""
    assert found.parsed().lines == ([line] if line else [])


def test_a_log_record_is_shown_and_is_no_evidence() -> None:
    """Level, message and fields on one line."""
    found = output.Collected()
    assert found.mixed(json.dumps({**RECORD, "node": "n1"})) == "warning slow node=n1"
    assert found.parsed().lines == []


def test_sentinels_outlive_text_that_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the evidence is kept, and what was lost is counted."""
    monkeypatch.setattr(output, "LARGEST", 100)
    found = output.Collected()
    found.evidence('##AICR-EXTRA## {"nodesTotal":"3"}')
    for number in range(30):
        found.evidence(f"line {number}")
    parsed = found.parsed()
    assert parsed.extra == {"nodesTotal": "3"}
    assert parsed.lines[-1] == "line 29"
    assert found.lost == 30 - len(parsed.lines)


OPERATOR: dict[str, Any] = {"devicePlugin": {"enabled": True}}
WITHOUT: dict[str, Any] = {"devicePlugin": {"enabled": False}}
CLAIMS: dict[str, Any] = {
    "resources": {"gpus": {"enabled": True}},
    "gpuResourcesEnabledOverride": True,
}
NO_CLAIMS: dict[str, Any] = {"resources": {"gpus": {"enabled": False}}}


@pytest.mark.covers("V-245")
@pytest.mark.parametrize(
    ("values", "advertiser", "policy"),
    [
        ({"gpu-operator": OPERATOR}, "", DEVICE_PLUGIN),
        ({"gpu-operator": {}}, "", DEVICE_PLUGIN),
        ({"gpu-operator-ocp": {}}, "", DEVICE_PLUGIN),
        ({"gpu-operator": OPERATOR, "nvidia-dra-driver-gpu": NO_CLAIMS}, "", DEVICE_PLUGIN),
        ({"gpu-operator": WITHOUT, "nvidia-dra-driver-gpu": CLAIMS}, "", DRA_CLAIM),
        ({"nvidia-dra-driver-gpu": CLAIMS}, "", DRA_CLAIM),
        ({"gpu-operator": WITHOUT}, "external", DEVICE_PLUGIN),
        ({"gpu-operator": WITHOUT, "nvidia-dra-driver-gpu": NO_CLAIMS}, "external", DEVICE_PLUGIN),
        ({}, "external", DEVICE_PLUGIN),
    ],
)
def test_the_policy_of_values_that_agree(
    values: dict[str, Any], advertiser: str, policy: str
) -> None:
    """One advertiser: the operator's plugin, the DRA driver, or the provider."""
    assert resolve_policy(values, advertiser=advertiser)[0] == policy


@pytest.mark.parametrize(
    ("values", "advertiser", "said"),
    [
        ({"gpu-operator": OPERATOR, "nvidia-dra-driver-gpu": CLAIMS}, "", "both advertise"),
        ({"gpu-operator": {}, "nvidia-dra-driver-gpu": CLAIMS}, "", "both advertise"),
        ({"nvidia-dra-driver-gpu": CLAIMS}, "external", "both advertise"),
        ({"gpu-operator": OPERATOR}, "external", "both advertise"),
        ({"gpu-operator": WITHOUT, "gpu-operator-ocp": {}}, "external", "both advertise"),
        ({"gpu-operator": WITHOUT}, "", "no component advertises GPUs"),
        ({}, "", "no component advertises GPUs"),
        ({"gpu-operator": {}, "nvidia-dra-driver-gpu": {}}, "", "does not say"),
        (
            {"nvidia-dra-driver-gpu": {"resources": {"gpus": {"enabled": True}}}},
            "",
            "gpuResourcesEnabledOverride false",
        ),
        (
            {
                "gpu-operator": {},
                "nvidia-dra-driver-gpu": {**NO_CLAIMS, "gpuResourcesEnabledOverride": True},
            },
            "",
            "waives nothing",
        ),
        ({"gpu-operator": {"devicePlugin": {"enabled": "yes"}}}, "", "must be true or false"),
        ({"gpu-operator": {"devicePlugin": True}}, "", "is no map"),
        ({"gpu-operator": {}}, "cloud", 'unknown GPU advertiser "cloud"'),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    values: dict[str, Any], advertiser: str, said: str
) -> None:
    """Two advertisers of one GPU, none, or a value that is no boolean."""
    with pytest.raises(AicrError) as raised:
        resolve_policy(values, advertiser=advertiser)
    assert raised.value.code == "INVALID_REQUEST"
    assert said in raised.value.message


def test_two_operators_are_a_warning() -> None:
    """The first decides."""
    policy, warnings = resolve_policy({"gpu-operator": {}, "gpu-operator-ocp": {}})
    assert policy == DEVICE_PLUGIN
    assert len(warnings) == 1
