"""Who brings the GPU driver and where it lies: every rule of the validation (6.4.7)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.validations.situations import context, disabled, merged, nested

from aicr.bundle.validations.driver_ownership import clean, driver_ownership
from aicr.bundle.validations.effective import Context

OPERATOR, DRA, INSTALLER = "gpu-operator", "nvidia-dra-driver-gpu", "gcp-driver-installer"
MANAGED = {"driver": {"enabled": True}, "toolkit": {"enabled": True}}
PREINSTALLED = {"driver": {"enabled": False}, "toolkit": {"enabled": False}}
ROOT = "/run/nvidia/driver"


def judged(operator: Any = None, dra: Any = None, **more: Any) -> list[str]:
    """Texts of the findings; the DRA driver is rendered when it has values."""
    values = {OPERATOR: operator if operator is not None else MANAGED}
    if dra is not None:
        values[DRA] = dra
    values.update(more.pop("others", {}))
    return findings(context(OPERATOR, values, **more))


def findings(made: Context) -> list[str]:
    """Texts of the findings, each of which says what to do."""
    found, errors = driver_ownership(made)
    assert errors == []
    assert all(finding.hint for finding in found)
    return [finding.text for finding in found]


@pytest.mark.covers("V-363", "V-365")
@pytest.mark.parametrize(
    ("operator", "dra"),
    [
        ({}, {"nvidiaDriverRoot": ROOT}),
        (MANAGED, {"nvidiaDriverRoot": ROOT}),
        (MANAGED, {"nvidiaDriverRoot": f"{ROOT}/"}),
        (MANAGED, None),
        (nested("hostPaths.driverInstallDir", ""), {"nvidiaDriverRoot": ROOT}),
        (nested("hostPaths.driverInstallDir", "/opt/nv/."), {"nvidiaDriverRoot": "/opt/nv"}),
        (PREINSTALLED, {"nvidiaDriverRoot": "/"}),
        (PREINSTALLED, {}),
        (PREINSTALLED, {"nvidiaDriverRoot": "/home/kubernetes/bin/nvidia"}),
        (
            merged(PREINSTALLED, nested("hostPaths.driverInstallDir", "/opt/nv")),
            {"nvidiaDriverRoot": "/somewhere/else"},
        ),
    ],
)
def test_one_story_is_silent(operator: dict[str, Any], dra: dict[str, Any] | None) -> None:
    """Managed: root and directory agree. Preinstalled: anywhere but the container root."""
    assert judged(operator, dra) == []
    assert judged(operator, dra, metadata={"gpuDriverState": "preinstalled"}) == []


@pytest.mark.covers("V-365", "V-366", "B10-68")
@pytest.mark.parametrize(
    ("operator", "dra", "said"),
    [
        (MANAGED, {"nvidiaDriverRoot": "/"}, "is /, but gpu-operator puts the driver at"),
        (MANAGED, {}, "is not set, but gpu-operator puts the driver at /run/nvidia/driver"),
        (
            nested("hostPaths.driverInstallDir", "/opt/nv"),
            {"nvidiaDriverRoot": ROOT},
            "puts the driver at /opt/nv",
        ),
        (PREINSTALLED, {"nvidiaDriverRoot": ROOT}, "which only a driver container fills"),
        (PREINSTALLED, {"nvidiaDriverRoot": "/run//nvidia/driver/"}, "only a driver container"),
        (PREINSTALLED, {"nvidiaDriverRoot": ""}, 'is "", not an absolute path'),
        (PREINSTALLED, {"nvidiaDriverRoot": None}, "is null, not an absolute path"),
        (PREINSTALLED, {"nvidiaDriverRoot": 1}, "is 1, not an absolute path"),
        (MANAGED, {"nvidiaDriverRoot": "run/nvidia/driver"}, "not an absolute path"),
        (MANAGED, {"nvidiaDriverRoot": [ROOT]}, "not an absolute path"),
    ],
)
def test_the_dra_driver_must_look_where_the_driver_is(
    operator: dict[str, Any], dra: dict[str, Any], said: str
) -> None:
    """Rule B, in both directions."""
    (text,) = judged(operator, dra)
    assert text.startswith(f"{DRA}: nvidiaDriverRoot ")
    assert said in text


@pytest.mark.covers("V-364", "B10-67")
@pytest.mark.parametrize(
    ("operator", "off"),
    [
        (PREINSTALLED, "driver.enabled and toolkit.enabled are false"),
        (nested("driver.enabled", False), "driver.enabled is false"),
        (nested("toolkit.enabled", False), "toolkit.enabled is false"),
    ],
)
@pytest.mark.parametrize("state", ["absent", "preinstalled", ""])
def test_nodes_without_a_driver_must_not_be_treated_as_if_they_had_one(
    operator: dict[str, Any], off: str, state: str
) -> None:
    """Rule A: only the state absent, and either switch."""
    found = judged(operator, metadata={"gpuDriverState": state} if state else {})
    if state != "absent":
        assert found == []
        return
    (text,) = found
    assert "saw no NVIDIA driver" in text
    assert off in text


@pytest.mark.parametrize(
    ("installer", "dynamic", "silent"),
    [
        (nested("installer.enabled", True), [], True),
        (nested("installer.enabled", True), ["installer"], False),
        (nested("installer.enabled", False), [], False),
        (nested("installer.enabled", "true"), [], False),
        ({}, [], False),
        (None, [], False),
    ],
)
def test_the_installer_of_gke_is_another_way_to_bring_a_driver(
    installer: dict[str, Any] | None, dynamic: list[str], silent: bool
) -> None:
    """Rule A is met by gcp-driver-installer, if it is rendered and surely on."""
    others = {} if installer is None else {INSTALLER: installer}
    found = judged(
        nested("driver.enabled", False),
        others=others,
        dynamic={INSTALLER: dynamic},
        removed=disabled(INSTALLER) if installer is None else {},
        metadata={"gpuDriverState": "absent"},
    )
    assert (found == []) is silent


@pytest.mark.parametrize(
    ("criteria", "profile", "said"),
    [
        ({"service": "aks"}, "gpuStack", "--profile gpuStack=operator-managed"),
        ({"service": "aks"}, "", "--gpu-driver Install"),
        ({"service": "gke", "os": "cos"}, "gpuStack", "gpuStack=bundle-installer"),
        ({"service": "gke", "os": "ubuntu"}, "", "gpu-driver-version=default"),
        ({"service": "gke", "os": "any"}, "", "--os cos or --os ubuntu"),
        ({"service": "oke"}, "gpuStack", "gpuStack=operator-managed"),
        ({"service": "ocp"}, "", "OpenShift"),
        ({"service": "eks"}, "", "--set gpu-operator:driver.enabled=true"),
        (None, "", "--set gpu-operator:driver.enabled=true"),
    ],
)
def test_the_remedy_speaks_the_language_of_the_provider(
    criteria: dict[str, Any] | None, profile: str, said: str
) -> None:
    """A flag that the profile owns would be refused, so the profile is named instead."""
    metadata: dict[str, Any] = {"gpuDriverState": "absent"}
    if profile:
        metadata["selectedProfile"] = {"name": profile, "value": "x"}
    made = context(OPERATOR, {OPERATOR: PREINSTALLED}, metadata=metadata, criteria=criteria)
    (finding,), _ = driver_ownership(made)
    assert said in finding.hint


@pytest.mark.parametrize("path", ["driver", "driver.enabled", "toolkit.enabled", "hostPaths"])
def test_deciding_values_must_not_be_left_to_install_time(path: str) -> None:
    """A dynamic path at, above or below a switch or the directory; rule B trusts none of it."""
    found = judged(MANAGED, {"nvidiaDriverRoot": "/wrong"}, dynamic={OPERATOR: [path]})
    assert len(found) == 1
    assert "is given at install time" in found[0]


@pytest.mark.parametrize("path", ["driver.version", "toolkit.env", "operator", "hostPaths.rootFS"])
def test_other_values_may_be_left_to_install_time(path: str) -> None:
    """Only what decides the verdict has to be static."""
    assert judged(MANAGED, {"nvidiaDriverRoot": ROOT}, dynamic={OPERATOR: [path]}) == []


def test_a_dynamic_driver_root_is_refused() -> None:
    """The DRA side has to be static as well, even when its value of today is right."""
    found = judged(MANAGED, {"nvidiaDriverRoot": ROOT}, dynamic={DRA: ["nvidiaDriverRoot"]})
    assert len(found) == 1
    assert "is given at install time" in found[0]


@pytest.mark.parametrize("state", ["Absent", "unknown", "mixed"])
def test_an_unknown_state_is_refused(state: str) -> None:
    """What cannot be understood is not taken for "preinstalled"."""
    (text,) = judged(metadata={"gpuDriverState": state})
    assert f'records the GPU driver as "{state}"' in text


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ({"driver": None}, "driver.enabled cannot be read: driver is null"),
        ({"driver": True}, "driver.enabled cannot be read: driver is true"),
        ({"driver": ["enabled"]}, "driver.enabled cannot be read"),
        ({"driver": {"enabled": None}}, "driver.enabled is null, not true or false"),
        ({"driver": {"enabled": "false"}}, 'driver.enabled is "false", not true or false'),
        ({"driver": {"enabled": 1}}, "driver.enabled is 1, not true or false"),
        ({"toolkit": None}, "toolkit.enabled cannot be read: toolkit is null"),
    ],
)
def test_a_switch_that_is_no_boolean_ends_the_check(operator: dict[str, Any], said: str) -> None:
    """What cannot be read is reported alone: every later rule would have to trust it."""
    found = judged(
        merged(operator, nested("hostPaths.driverInstallDir", "relative")),
        {"nvidiaDriverRoot": "/wrong"},
        metadata={"gpuDriverState": "absent"},
    )
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ({"driverInstallDir": None}, "is null, not a path"),
        ({"driverInstallDir": 7}, "is 7, not a path"),
        ({"driverInstallDir": "run/nvidia"}, "a relative path"),
        ({"driverInstallDir": "/"}, "is the root of the node"),
        ({"driverInstallDir": "//"}, "is the root of the node"),
        ({"driverInstallDir": "/run/.."}, "is the root of the node"),
        (None, "is below something that is not a map, not a path"),
        ("text", "is below something that is not a map, not a path"),
    ],
)
def test_a_directory_that_is_none_is_refused_and_rule_b_keeps_quiet(paths: Any, said: str) -> None:
    """Null, another type, relative, and the root of the node."""
    found = judged({"hostPaths": paths}, {"nvidiaDriverRoot": "/wrong"})
    assert len(found) == 1
    assert said in found[0]


def test_the_openshift_variants_are_judged_by_the_same_rules() -> None:
    """gpu-operator-ocp with its DRA driver."""
    made = context(
        "gpu-operator-ocp",
        {
            "gpu-operator-ocp": MANAGED,
            "nvidia-dra-driver-gpu-ocp": {"nvidiaDriverRoot": "/"},
        },
    )
    (text,) = findings(made)
    assert text.startswith("nvidia-dra-driver-gpu-ocp: nvidiaDriverRoot is /, but gpu-operator-ocp")


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/", "/"), ("//", "/"), ("///a//b/", "/a/b"), ("/a/./b/../c", "/a/c"), ("a/b/", "a/b")],
)
def test_paths_are_cleaned_by_their_text_alone(path: str, expected: str) -> None:
    """As the chart's programs compare them; no file is looked up."""
    assert clean(path) == expected
