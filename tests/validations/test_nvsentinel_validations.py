"""NVSentinel: labels, runtime class, tracing, adapters, preflight and gangs, each verdict."""

from __future__ import annotations

from typing import Any

import pytest
from tests.validations.situations import context, disabled, error_of, merged, nested, only

from aicr.bundle.validations.effective import Context
from aicr.bundle.validations.nvsentinel_gang import gang_scheduler
from aicr.bundle.validations.nvsentinel_labels import driver_label
from aicr.bundle.validations.nvsentinel_nic import nic_health_monitor
from aicr.bundle.validations.nvsentinel_preflight import dcgm_reachable
from aicr.bundle.validations.nvsentinel_runtime_class import runtime_class
from aicr.bundle.validations.nvsentinel_tracing import tracing_endpoint
from aicr.errors import INTERNAL, AicrError

NVS, OPERATOR = "nvsentinel", "gpu-operator"
HOST_DRIVER = nested("driver.enabled", False)
COLLECTOR = "global.metadataCollector.enabled"
SYSLOG = "global.syslogHealthMonitor.enabled"
ASSUME = "labeler.assumeDriverInstalled"


def sentinel(values: Any = None, operator: Any = None, **more: Any) -> Context:
    """NVSentinel with these values, and the GPU operator when it has some."""
    made = {NVS: values or {}}
    if operator is not None:
        made[OPERATOR] = operator
    return context(NVS, made, **more)


def says(found: str, said: str) -> None:
    """A finding holds these words; "" asks for silence."""
    assert bool(found) is bool(said), found
    assert said in found


OFF = {COLLECTOR: False, SYSLOG: False}
REGULAR, KATA = "syslog-health-monitor-regular", "syslog-health-monitor-kata"
EVERYTHING = f"metadata-collector, {REGULAR}, {KATA}"


@pytest.mark.covers("V-371", "B10-71")
@pytest.mark.parametrize(
    ("values", "dynamic", "said"),
    [
        # both consumers off
        ({**OFF}, [], ""),
        ({**OFF}, [ASSUME], ""),
        ({**OFF, ASSUME: True}, [], ""),
        ({**OFF, ASSUME: True}, ["labeler"], ""),
        ({**OFF, ASSUME: True}, [COLLECTOR], ""),
        ({**OFF, ASSUME: True}, [COLLECTOR, ASSUME], "is given at install time"),
        ({**OFF}, [COLLECTOR], "metadata-collector"),
        ({**OFF}, ["global.syslogHealthMonitor"], f"{REGULAR}, {KATA}"),
        ({**OFF}, ["global", "labeler"], "is given at install time"),
        # any on
        ({}, ["labeler"], "is given at install time"),
        ({ASSUME: True}, [ASSUME], "is given at install time"),
        ({ASSUME: True}, [], ""),
        ({ASSUME: True}, ["global"], ""),
        ({}, [], EVERYTHING),
        ({COLLECTOR: False}, [], f"want 0 pods: {REGULAR}, {KATA}"),
        ({SYSLOG: False}, [], "want 0 pods: metadata-collector"),
        # Go truth, and switches that are off for a literal false only
        ({ASSUME: "false"}, [], ""),
        ({ASSUME: ""}, [], EVERYTHING),
        ({COLLECTOR: "false", SYSLOG: None}, [], EVERYTHING),
    ],
)
def test_the_driver_label_table(values: dict[str, Any], dynamic: list[str], said: str) -> None:
    """Consumers, remedy and what is left to install time (6.4.10)."""
    held = merged(*(nested(path, value) for path, value in values.items()))
    found = only(driver_label(sentinel(held, HOST_DRIVER, dynamic={NVS: dynamic})))
    says(found, said)
    if "want 0 pods" in said:
        assert found.endswith(said)


@pytest.mark.parametrize(
    ("operator", "more", "fires"),
    [
        (HOST_DRIVER, {}, True),
        (nested("driver.enabled", True), {}, False),
        ({}, {}, False),
        ({"driver": {}}, {}, False),
        # Unreadable, rendered here: the operator's own validation reports it.
        (nested("driver.enabled", "no"), {}, False),
        ({"driver": None}, {}, False),
        (None, {}, False),
        (None, {"removed": disabled(OPERATOR)}, False),
        # Declared but filtered out of this bundle: evidence all the same.
        (None, {"left_out": {OPERATOR: HOST_DRIVER}}, True),
        (None, {"left_out": {OPERATOR: nested("driver.enabled", True)}}, False),
        (None, {"left_out": {OPERATOR: {}}}, False),
        (None, {"left_out": {OPERATOR: nested("driver.enabled", "no")}}, True),
        (None, {"left_out": {OPERATOR: {"driver": None}}}, True),
    ],
)
def test_what_the_operator_says_about_driver_pods(
    operator: dict[str, Any] | None, more: dict[str, Any], fires: bool
) -> None:
    """Only an operator that is there and runs no driver pods makes the label a problem."""
    assert bool(only(driver_label(sentinel({}, operator, **more)))) is fires


@pytest.mark.parametrize(
    ("service", "os", "profile", "silent"),
    [
        ("gke", "cos", "bundle-installer", True),
        ("gke", "cos", "gke-default", False),
        ("gke", "ubuntu", "bundle-installer", False),
        ("eks", "cos", "bundle-installer", False),
    ],
)
def test_the_installer_of_gke_has_driver_pods_to_see(
    service: str, os: str, profile: str, silent: bool
) -> None:
    """Another source of observable driver pods (6.4.10 step 3)."""
    made = sentinel(
        {},
        HOST_DRIVER,
        criteria={"service": service, "os": os},
        metadata={"selectedProfile": {"name": "gpuStack", "value": profile}},
    )
    assert (only(driver_label(made)) == "") is silent


@pytest.mark.parametrize("check", [driver_label, runtime_class])
def test_values_that_cannot_be_read_are_an_error(check: Any) -> None:
    """A hard failure, whatever the severity of findings is (6.3)."""
    broken = AicrError(INTERNAL, "failed to read values file", hint="add it")
    made = sentinel({}, None, left_out={OPERATOR: broken})
    assert error_of(check(made)) is broken


CLASS, MADE = "metadata-collector.runtimeClassName", "operator.runtimeClass"


@pytest.mark.covers("V-372")
@pytest.mark.parametrize(
    ("values", "operator", "dynamic", "said"),
    [
        ({}, {}, {}, ""),
        ({}, nested(MADE, ""), {}, ""),
        ({}, nested(MADE, "nvidia"), {}, ""),
        (nested(CLASS, "nvidia"), {}, {}, ""),
        (nested(CLASS, "a"), nested(MADE, "a"), {}, ""),
        (nested(CLASS, ""), nested(MADE, "a"), {}, ""),
        (nested(CLASS, "a"), {}, {}, 'is "a", but gpu-operator creates the RuntimeClass "nvidia"'),
        ({}, nested(MADE, "b"), {}, 'is "nvidia", but gpu-operator creates the RuntimeClass "b"'),
        (nested(CLASS, "a"), nested(MADE, "b"), {}, 'is "a", but'),
        # something that is no text on either side
        (nested(CLASS, None), nested(MADE, "b"), {}, ""),
        (nested(CLASS, 1), {}, {}, ""),
        (nested(CLASS, "a"), nested(MADE, ["b"]), {}, ""),
        (nested(CLASS, "a"), {"operator": None}, {}, ""),
        # the collector is off
        (merged(nested(COLLECTOR, False), nested(CLASS, "a")), {}, {}, ""),
        (merged(nested(COLLECTOR, False), nested(CLASS, "a")), {}, {NVS: [CLASS]}, ""),
        (nested(COLLECTOR, False), {}, {NVS: ["global.metadataCollector"]}, "may bring back"),
        (nested(COLLECTOR, "false"), nested(MADE, "b"), {}, 'is "nvidia"'),
        # left to install time while it matters
        ({}, {}, {NVS: ["metadata-collector"]}, f"{NVS}: {CLASS} is given at install time"),
        ({}, {}, {OPERATOR: [MADE]}, f"{OPERATOR}: {MADE} is given at install time"),
        (nested(CLASS, ""), {}, {NVS: [CLASS]}, "is given at install time"),
        (nested(CLASS, ""), {}, {OPERATOR: [MADE]}, ""),
        ({}, {}, {NVS: ["metadata-collector.resources"]}, ""),
    ],
)
def test_the_runtime_class_table(
    values: dict[str, Any], operator: dict[str, Any], dynamic: Any, said: str
) -> None:
    """The collector asks for the class that the operator makes, or for none (6.4.11)."""
    says(only(runtime_class(sentinel(values, operator, dynamic=dynamic))), said)


def test_without_an_operator_nobody_makes_a_class_to_compare_with() -> None:
    """A cluster with a class of its own is the user's business."""
    assert only(runtime_class(sentinel(nested(CLASS, "x")))) == ""
    assert only(runtime_class(sentinel(nested(CLASS, "x"), removed=disabled(OPERATOR)))) == ""
    made = sentinel(nested(CLASS, "x"), left_out={OPERATOR: nested(MADE, "y")})
    assert 'the RuntimeClass "y"' in only(runtime_class(made))


TRACING, ENDPOINT = "global.tracing.enabled", "global.tracing.endpoint"


@pytest.mark.covers("V-373", "B10-72")
@pytest.mark.parametrize(
    ("on", "endpoint", "dynamic", "said"),
    [
        (False, None, [], ""),
        (False, "", [], ""),
        (True, "otel:4317", [], ""),
        ("false", "", [], "is blank"),
        (True, "  ", [], "is blank"),
        (True, "", [], "is blank"),
        (True, ..., [], "is not set"),
        (1, ..., [], "is not set"),
        (True, None, [], "is null, not text"),
        (True, 4317, [], "is 4317, not text"),
        (True, ["otel:4317"], [], "not text"),
        (False, ..., [TRACING], "may be switched on at install time"),
        (False, "otel:4317", [TRACING], ""),
        (True, "otel:4317", [TRACING], ""),
        (True, "otel:4317", [ENDPOINT], "is given at install time and may be empty"),
        (False, "otel:4317", [ENDPOINT], ""),
        (False, "otel:4317", ["global.tracing"], "is given at install time and may be empty"),
    ],
)
def test_the_tracing_table(on: Any, endpoint: Any, dynamic: list[str], said: str) -> None:
    """Tracing that is on, or may be, needs an address that is there for sure (6.4.12)."""
    values = nested(TRACING, on)
    if endpoint is not ...:
        values = merged(values, nested(ENDPOINT, endpoint))
    says(only(tracing_endpoint(sentinel(values, dynamic={NVS: dynamic}))), said)


NIC, OVERRIDE = "global.nicHealthMonitor.enabled", "nic-health-monitor.nicInclusionRegexOverride"
ON, BLIND = {NIC: True}, {NIC: True, COLLECTOR: False}


@pytest.mark.covers("V-374")
@pytest.mark.parametrize(
    ("values", "dynamic", "said"),
    [
        ({}, [], ""),
        ({COLLECTOR: False}, [], ""),
        ({NIC: False, COLLECTOR: False}, [], ""),
        (ON, [], ""),
        ({NIC: True, COLLECTOR: "false"}, [], ""),
        (BLIND, [], "is not set"),
        # Helm takes only a literal false for "off"
        ({NIC: "false", COLLECTOR: False}, [], "is not set"),
        ({NIC: None, COLLECTOR: False}, [], "is not set"),
        ({NIC: {"a": 1}, COLLECTOR: False}, [], "is not set"),
        ({"global.nicHealthMonitor": None, COLLECTOR: False}, [], "is not set"),
        # the list of adapters
        ({**BLIND, OVERRIDE: "^mlx5_"}, [], ""),
        ({**BLIND, OVERRIDE: "^mlx5_[0-3]$, ^bnxt"}, [], ""),
        ({**BLIND, OVERRIDE: ",^mlx5_,"}, [], ""),
        ({**BLIND, OVERRIDE: ""}, [], "holds no pattern"),
        ({**BLIND, OVERRIDE: " , ,"}, [], "holds no pattern"),
        ({**BLIND, OVERRIDE: "mlx5_[0"}, [], 'holds "mlx5_[0", which is no regular expression'),
        ({**BLIND, OVERRIDE: "mlx5_(?!0)"}, [], "(?! is not supported"),
        ({**BLIND, OVERRIDE: ["mlx5_0"]}, [], "not text"),
        ({**BLIND, OVERRIDE: None}, [], "is null, not text"),
        # left to install time
        ({COLLECTOR: False}, [NIC], "is not set"),
        (ON, [COLLECTOR], "is not set"),
        ({}, ["global"], "is not set"),
        ({**BLIND, OVERRIDE: "^mlx5_"}, [OVERRIDE], "is given at install time"),
        ({**BLIND, OVERRIDE: "^mlx5_"}, ["global"], ""),
        (ON, [OVERRIDE], ""),
        ({COLLECTOR: False}, [OVERRIDE], ""),
    ],
)
def test_the_adapter_table(values: dict[str, Any], dynamic: list[str], said: str) -> None:
    """The monitor runs with the collector or with patterns that compile (6.4.13)."""
    held = merged(*(nested(path, value) for path, value in values.items()))
    says(only(nic_health_monitor(sentinel(held, dynamic={NVS: dynamic}))), said)


PREFLIGHT, CONTAINERS = "global.preflight.enabled", "preflight.initContainers"
SERVED = nested("dcgm.enabled", True)


def checked(*env: Any, container: Any = None, **more: Any) -> dict[str, Any]:
    """Values with preflight on and these env variables of the DCGM check."""
    made = {"name": "preflight-dcgm-diag", "env": list(env), **more}
    return merged(
        nested(PREFLIGHT, True), nested(CONTAINERS, [made] if container is None else container)
    )


def address(text: Any) -> dict[str, Any]:
    """The env variable with the address."""
    return {"name": "DCGM_HOSTENGINE_ADDR", "value": text}


SOUND = address("nvidia-dcgm.gpu-operator.svc:5555")


@pytest.mark.covers("V-375", "B10-73")
@pytest.mark.parametrize(
    ("values", "said"),
    [
        (checked(SOUND), ""),
        (checked(), ""),
        (checked({"name": "OTHER", "value": "1"}), ""),
        (nested(PREFLIGHT, True), ""),
        (nested(PREFLIGHT, "false"), ""),
        (checked(container=[{"name": "preflight-dcgm-diag"}]), ""),
        (checked(address("nvidia-dcgm.gpu-operator:5555")), ""),
        (checked(address("nvidia-dcgm.gpu-operator.svc.cluster.local:5555")), ""),
        (checked(address("NVIDIA-DCGM.gpu-operator.svc.cluster.local.:5555")), ""),
        # somebody else's host engine
        (checked(address("10.0.0.1:6666")), ""),
        (checked(address("dcgm.example.com:6666")), ""),
        (checked(address("nvidia-dcgm.example.com:6666")), ""),
        (checked(address("localhost:5555")), ""),
        # no such check
        (checked(container=[]), ""),
        (checked(container=[{"name": "preflight-nccl-loopback", "env": "odd"}]), ""),
        # the operator's own Service, wrongly
        (checked(address("nvidia-dcgm.gpu-operator.svc:6666")), "listens on port 5555"),
        (checked(address("nvidia-dcgm.gpu-operator.svc")), "listens on port 5555"),
        (checked(address("nvidia-dcgm.other.svc:5555")), 'in namespace "other", and gpu-operator'),
        (checked(address("nvidia-dcgm:5555")), "in the namespace of each pod"),
        # malformed
        (checked(container=None, env="A=1"), 'env of preflight-dcgm-diag: "A=1" is not a list'),
        (checked(container={}), "init container: {} is not a list"),
        (checked(container="text"), "is not a list of maps"),
        (checked(container=["text"]), "is not a list of maps"),
        (merged(nested(PREFLIGHT, True), {"preflight": None}), "is not a list of maps"),
        (merged(nested(PREFLIGHT, True), nested(CONTAINERS, None)), "is not a list of maps"),
        (checked(SOUND, SOUND), "is there 2 times"),
        (checked(container=[{"name": "preflight-dcgm-diag"}] * 2), "is there 2 times"),
        (checked({"name": "DCGM_HOSTENGINE_ADDR"}), "has no value"),
        (checked({"name": "DCGM_HOSTENGINE_ADDR", "valueFrom": {}}), "has no value"),
        (checked(address("")), "has no value"),
        (checked(address(5555)), "has no value"),
        (checked(container=None, env=None), "is not a list of maps"),
        # preflight off
        (merged(checked(address("nvidia-dcgm:1")), nested(PREFLIGHT, False)), ""),
        ({}, ""),
    ],
)
def test_the_dcgm_address_table(values: dict[str, Any], said: str) -> None:
    """Only the operator's own Service is judged; what cannot be read is refused (6.4.14)."""
    says(only(dcgm_reachable(sentinel(values, SERVED))), said)


@pytest.mark.parametrize(
    ("values", "operator", "more", "said"),
    [
        (checked(SOUND), None, {}, "the GPU operator, which serves it, is not in the bundle"),
        (checked(SOUND), None, {"removed": disabled(OPERATOR)}, "is not in the bundle"),
        (checked(SOUND), {}, {}, "dcgm.enabled of gpu-operator is unset"),
        (checked(SOUND), nested("dcgm.enabled", False), {}, "is false, so nothing serves it"),
        (checked(SOUND), nested("dcgm.enabled", "true"), {}, 'is "true", so nothing serves it'),
        (checked(SOUND), {"dcgm": None}, {}, "is below something that is not a map"),
        (checked(SOUND), SERVED, {"namespaces": {OPERATOR: "gpu"}}, 'gpu-operator runs in "gpu"'),
        (checked(address("nvidia-dcgm.gpu:5555")), SERVED, {"namespaces": {OPERATOR: "gpu"}}, ""),
        (checked(SOUND), None, {"left_out": {OPERATOR: SERVED}}, ""),
        (checked(SOUND), None, {"left_out": {OPERATOR: {}}}, "is unset"),
        (checked(address("other:1")), None, {}, ""),
        (
            checked(SOUND),
            None,
            {"left_out": {OPERATOR: SERVED}, "refs": {OPERATOR: {"namespace": "gpu"}}},
            'runs in "gpu"',
        ),
        # left to install time
        (checked(SOUND), SERVED, {"dynamic": {NVS: [PREFLIGHT]}}, "which DCGM"),
        (checked(SOUND), SERVED, {"dynamic": {NVS: ["preflight"]}}, "which DCGM"),
        ({}, SERVED, {"dynamic": {NVS: [PREFLIGHT]}}, "which DCGM"),
        ({}, SERVED, {"dynamic": {NVS: [CONTAINERS]}}, ""),
        (checked(SOUND), SERVED, {"dynamic": {OPERATOR: ["dcgm"]}}, "given at install time"),
        (checked(address("other:1")), SERVED, {"dynamic": {OPERATOR: ["dcgm"]}}, ""),
    ],
)
def test_the_service_behind_the_address_is_served(
    values: dict[str, Any], operator: Any, more: dict[str, Any], said: str
) -> None:
    """Operator there, in that namespace, with DCGM, and none of it left open (6.4.14)."""
    says(only(dcgm_reachable(sentinel(values, operator, **more))), said)


def test_of_two_operators_the_enabled_one_serves_dcgm() -> None:
    """Both variants may be declared (6.4.14)."""
    made = context(
        NVS,
        {NVS: checked(address("nvidia-dcgm.ocp.svc:5555")), "gpu-operator-ocp": SERVED},
        removed=disabled(OPERATOR),
        namespaces={"gpu-operator-ocp": "ocp"},
    )
    assert only(dcgm_reachable(made)) == ""


def test_every_reason_why_the_service_is_not_there_is_told() -> None:
    """Wrong port, wrong namespace and no DCGM at once."""
    findings, errors = dcgm_reachable(sentinel(checked(address("nvidia-dcgm.x:1")), {}))
    assert len(findings) == 3
    assert errors == []


def test_values_of_an_operator_that_cannot_be_read_are_an_error_here_as_well() -> None:
    """A hard failure (6.3)."""
    broken = AicrError(INTERNAL, "failed to read values file", hint="add it")
    made = sentinel(checked(SOUND), None, left_out={OPERATOR: broken})
    assert error_of(dcgm_reachable(made)) is broken


GANG, GVR = "preflight.gangCoordination.enabled", "preflight.gangDiscovery.podGroupGVR"
KAI_GVR = {"group": "scheduling.run.ai", "version": "v2alpha2", "resource": "podgroups"}
KAI = merged(nested(PREFLIGHT, True), nested(GVR, KAI_GVR))


LATE = "is given at install time"


@pytest.mark.covers("V-376", "B10-74")
@pytest.mark.parametrize(
    ("values", "scheduler", "dynamic", "said"),
    [
        (KAI, "enabled", [], []),
        (KAI, "disabled", [], ["kai-scheduler, which serves it, is disabled"]),
        (KAI, "undeclared", [], ["is not part of the recipe"]),
        # not applicable
        ({}, "disabled", [], []),
        (merged(KAI, nested(PREFLIGHT, False)), "disabled", [], []),
        (merged(KAI, nested(GANG, False)), "disabled", [], []),
        (merged(KAI, nested(f"{GVR}.group", "scheduling.x-k8s.io")), "disabled", [], []),
        (nested(PREFLIGHT, True), "disabled", [], []),
        (merged(KAI, nested(f"{GVR}.group", None)), "disabled", [], []),
        # only a literal false switches coordination off, and "false" is true to a template
        (merged(KAI, nested(GANG, "false")), "disabled", [], ["is disabled"]),
        (merged(KAI, nested(PREFLIGHT, "false")), "disabled", [], ["is disabled"]),
        # another kind than the group serves
        (merged(KAI, nested(f"{GVR}.version", "v1")), "enabled", [], ['version is "v1"']),
        (merged(KAI, nested(f"{GVR}.resource", "pods")), "enabled", [], ['resource is "pods"']),
        (merged(KAI, nested(f"{GVR}.version", None)), "disabled", [], ["is null", "is disabled"]),
        (
            merged(nested(PREFLIGHT, True), nested(f"{GVR}.group", KAI_GVR["group"])),
            "enabled",
            [],
            ["version is unset", "resource is unset"],
        ),
        # left to install time: what could make it apply, and what could break it
        (merged(KAI, nested(PREFLIGHT, False)), "disabled", [PREFLIGHT], ["is disabled"]),
        (merged(KAI, nested(PREFLIGHT, False)), "enabled", [PREFLIGHT], []),
        (merged(KAI, nested(GANG, False)), "disabled", [GANG], ["is disabled"]),
        (merged(KAI, nested(GANG, False)), "disabled", [PREFLIGHT], []),
        (nested(PREFLIGHT, True), "enabled", ["preflight.gangDiscovery"], [LATE, LATE]),
        (KAI, "enabled", [f"{GVR}.version"], [f"version {LATE}"]),
        (KAI, "enabled", [f"{GVR}.group"], []),
        (merged(KAI, nested(GANG, False)), "enabled", [f"{GVR}.version"], []),
    ],
)
def test_the_gang_table(
    values: dict[str, Any], scheduler: str, dynamic: list[str], said: list[str]
) -> None:
    """KAI's pod groups need KAI and the kind that it serves, now and at install time (6.4.15)."""
    made = context(
        NVS,
        {NVS: values, **({"kai-scheduler": {}} if scheduler == "enabled" else {})},
        removed=disabled("kai-scheduler") if scheduler == "disabled" else {},
        dynamic={NVS: dynamic},
    )
    findings, errors = gang_scheduler(made)
    assert errors == []
    assert len(findings) == len(said), findings
    for finding, words in zip(findings, said, strict=True):
        assert words in finding.text
        assert finding.hint


def test_a_scheduler_that_a_filter_leaves_out_counts_as_there() -> None:
    """Evidence comes from what the recipe declares; it may be installed by another bundle (6.3)."""
    assert only(gang_scheduler(sentinel(KAI, left_out={"kai-scheduler": {}}))) == ""
