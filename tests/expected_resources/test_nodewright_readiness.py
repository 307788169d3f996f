"""Value gates and Nodewright readiness: which objects must be there, on which clusters, and when."""

from __future__ import annotations

from typing import Any

import pytest
from tests.assertions.fake_cluster import check as chainsaw
from tests.expected_resources.deployed_cluster import (
    DeployedCluster,
    check,
    customizations,
    gpu_node,
    made,
    namespace,
    node_wright,
    operator,
    skyhook,
)

from aicr.checks.deployment import nodewright, value_gates
from aicr.checks.sdk.outcome import could_not_tell
from aicr.errors import CONFLICT, INTERNAL, NOT_FOUND, SERVICE_UNAVAILABLE, TIMEOUT, AicrError

COMPLETE = (
    "{apiVersion: nodewright.nvidia.com/v1alpha1, kind: NodeWright, status: {status: complete}}"
)
ASSERT = chainsaw("assert", COMPLETE)
READY = "  [gpuReadiness] Nodewright customizations: ready"
LEGACY = {"key": "skyhook.nvidia.com", "value": "runtime-required", "effect": "NoSchedule"}
CURRENT = {**LEGACY, "key": "nodewright.nvidia.com"}
PLACE = namespace("skyhook")
HEALTHY = "All deployment resources and required readiness signals are healthy"


def manager(taint: str = "", name: str = "manager", place: str = "skyhook") -> dict[str, Any]:
    """The operator's Deployment, under any name."""
    env = [{"name": "RUNTIME_REQUIRED_TAINT", "value": taint}] if taint else []
    return made(
        *("apps/v1", "Deployment", name, place),
        metadata={"labels": dict(nodewright.OPERATOR_LABELS)},
        spec={"template": {"spec": {"containers": [{"name": "manager", "env": env}]}}},
    )


def gated(manifest: str = "tuning.yaml", **overrides: Any) -> dict[str, Any]:
    """The customizations with a health check."""
    return {**customizations(manifest, **overrides), "healthCheckAsserts": ASSERT}


@pytest.mark.covers("V-405", "V-407")
@pytest.mark.parametrize(
    "manifest", ["tuning-generic.yaml", "tuning-rke2.yaml", "tuning-gb300.yaml"]
)
def test_values_that_switch_the_object_off_withhold_check_and_probe(manifest: str) -> None:
    """The render yields no such object: the assert is skipped, and readiness expects none."""
    off = gated(manifest, tuningEnabled=False)
    found = check(DeployedCluster(PLACE), off, operator())
    assert found.error is None
    assert found.lines == [
        "  [chainsaw] nodewright-customizations: skipped — the recipe's values switch its "
        "Nodewright objects off",
        "  Namespace skyhook: Active",
        HEALTHY,
    ]


@pytest.mark.covers("V-406")
@pytest.mark.parametrize("value", [True, "", None, 0])
def test_while_the_values_keep_the_object_it_must_be_there(value: Any) -> None:
    """Only the value that suppresses it does; a missing object fails after the wait."""
    cluster = DeployedCluster(PLACE)
    cluster.served.add("skyhook.nvidia.com/v1alpha1/Skyhook")
    kept = gated("tuning-generic.yaml", tuningEnabled=value)
    found = check(cluster, kept, operator())
    assert found.error is not None
    assert found.error.code == TIMEOUT
    assert found.error.message == (
        "Nodewright customizations not ready within 8m0s: Skyhook tuning does not exist"
    )
    assert not could_not_tell(found.error)


@pytest.mark.covers("V-408", "V-409")
def test_only_what_the_recipe_says_counts() -> None:
    """The ref's overrides, wherever they came from; there is no other way in, so --set is not honoured."""
    kept, off = (
        customizations("tuning-generic.yaml"),
        customizations("tuning-generic.yaml", tuningEnabled=False),
    )
    tree = value_gates.embedded_tree()
    assert value_gates.nodewright_names(value_gates.rendered(kept, tree)) == ["tuning"]
    assert value_gates.rendered(off, tree) == []


@pytest.mark.covers("V-426")
@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (
            {"manifestFiles": ["components/x/mine.yaml"]},
            "INVALID_REQUEST",
            "components/x/mine.yaml",
        ),
        ({"valuesFile": "components/x/mine.yaml"}, INTERNAL, "failed to read overlay values file"),
    ],
)
def test_a_file_that_is_only_in_a_data_directory_fails_closed(
    change: dict[str, Any], code: str, words: str
) -> None:
    """The pod has the built-in files alone: an error, never a pass and never a skip."""
    cluster = DeployedCluster(PLACE, node_wright("tuning"))
    found = check(cluster, {**gated(), **change}, operator("v0.18.0"))
    assert found.error is not None
    assert found.error.code == code
    assert words in str(found.error)
    assert not any("skipped" in line for line in found.lines)


def test_customizations_without_manifests_are_an_error() -> None:
    """They would change no node."""
    bare = {key: value for key, value in customizations().items() if key != "manifestFiles"}
    error = check(DeployedCluster(PLACE), bare, operator()).error
    assert error is not None
    assert (error.code, "lists no manifests" in error.message) == (NOT_FOUND, True)


def test_complete_and_untainted_for_a_minute_is_ready() -> None:
    """Sampled every 10 s; ready after a window of 60 s without a break."""
    cluster = DeployedCluster(PLACE, node_wright("tuning"), gpu_node("n1"))
    found = check(cluster, gated(), operator("v0.18.0"))
    assert found.error is None
    assert found.seconds == 60
    assert found.lines[1:] == [
        READY,
        "  [chainsaw] nodewright-customizations: health check passed",
        HEALTHY,
    ]


def test_a_relapse_starts_the_minute_anew() -> None:
    """Not complete between 30 and 40 s."""
    cluster = DeployedCluster(PLACE)
    cluster.plans["nodewright.nvidia.com/v1alpha1/NodeWright"] = lambda now: [
        node_wright("tuning", "in_progress" if 30 <= now < 45 else "complete")
    ]
    assert check(cluster, gated(), operator("v0.18.0")).seconds == 110


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([node_wright("other")], "NodeWright tuning does not exist"),
        ([node_wright("tuning", "in_progress")], "NodeWright tuning is in_progress, not complete"),
        (
            [node_wright("tuning", deletionTimestamp="2026-01-01T00:00:00Z")],
            "NodeWright tuning is being removed",
        ),
        (
            [made("nodewright.nvidia.com/v1alpha1", "NodeWright", "tuning")],
            "NodeWright tuning is without a status, not complete",
        ),
    ],
)
def test_what_is_not_complete_is_named_at_the_deadline(objects: list[Any], words: str) -> None:
    """TIMEOUT after 8 m with the last reason."""
    found = check(DeployedCluster(PLACE, *objects), customizations(), operator("v0.18.0"))
    assert found.error is not None
    assert (found.error.code, found.seconds) == (TIMEOUT, 480)
    assert found.error.message == f"Nodewright customizations not ready within 8m0s: {words}"


@pytest.mark.covers("V-420")
@pytest.mark.parametrize("pin", ["v0.17.1", "", "latest"])
def test_an_old_cluster_is_judged_by_its_skyhooks_and_the_assert_is_withheld(pin: str) -> None:
    """Pin below 0.18, absent or unreadable, and only Skyhook served."""
    refs = [gated()] + ([operator(pin)] if pin else [])
    found = check(DeployedCluster(PLACE, skyhook("tuning"), gpu_node("n1")), *refs)
    assert found.error is None
    assert READY in found.lines
    assert (
        "  [chainsaw] nodewright-customizations: skipped — the cluster's operator predates the "
        "NodeWright kind; each Skyhook was verified by name"
    ) in found.lines
    broken = check(DeployedCluster(PLACE, skyhook("tuning", "erroring")), *refs)
    assert broken.error is not None
    assert "Skyhook tuning is erroring, not complete" in broken.error.message


@pytest.mark.covers("V-421")
def test_a_new_operator_on_a_cluster_without_its_kind_fails_closed() -> None:
    """A Skyhook that is left over does not stand in for the missing NodeWright."""
    found = check(DeployedCluster(PLACE, skyhook("tuning")), gated(), operator("v0.18.0"))
    assert found.error is not None
    assert found.error.code == TIMEOUT
    assert "must serve nodewright.nvidia.com" in found.error.message
    assert not any("skipped" in line for line in found.lines)


def test_a_cluster_that_serves_both_is_judged_by_the_new_kind() -> None:
    """Whatever the pin says."""
    cluster = DeployedCluster(PLACE, skyhook("tuning", "erroring"), node_wright("tuning"))
    found = check(cluster, gated(), operator("v0.17.1"))
    assert found.error is None
    assert "  [chainsaw] nodewright-customizations: health check passed" in found.lines


@pytest.mark.covers("V-422")
def test_a_discovery_error_neither_passes_nor_skips() -> None:
    """It is no absence: the probe times out, the assert runs and is unknown."""
    cluster = DeployedCluster(PLACE, skyhook("tuning"))
    down = AicrError(SERVICE_UNAVAILABLE, "an API group cannot be reached")
    cluster.plans["nodewright.nvidia.com/v1alpha1/NodeWright"] = lambda now: down
    found = check(cluster, gated(), operator("v0.17.1"), budget=1200)
    assert found.error is not None
    assert found.error.code == TIMEOUT
    assert "an API group cannot be reached" in found.error.message
    assert could_not_tell(found.error) == TIMEOUT
    assert not any("skipped" in line for line in found.lines)
    assert any(line.startswith("  [chainsaw] nodewright-customizations:") for line in found.lines)


@pytest.mark.covers("V-423", "V-424")
def test_what_is_served_is_asked_at_every_look() -> None:
    """A CRD that comes while the check waits is seen; one that never comes fails at the deadline."""
    cluster = DeployedCluster(PLACE)
    absent = AicrError(NOT_FOUND, "no such resource")
    cluster.plans["nodewright.nvidia.com/v1alpha1/NodeWright"] = lambda now: (
        [node_wright("tuning")] if now >= 95 else absent
    )
    assert check(cluster, customizations(), operator("v0.18.0")).seconds == 160
    never = check(DeployedCluster(PLACE), customizations(), operator("v0.18.0"))
    assert never.error is not None
    assert (never.error.code, never.seconds) == (TIMEOUT, 480)
    assert "serves neither nodewright.nvidia.com nor skyhook.nvidia.com" in never.error.message


@pytest.mark.covers("V-425")
def test_the_old_cluster_rule_is_for_this_component_alone() -> None:
    """Another component's assert on a kind that is not served runs, and fails."""
    other = {"name": "app", "namespace": "skyhook", "healthCheckAsserts": ASSERT}
    cluster = DeployedCluster(PLACE, skyhook("tuning"))
    found = check(cluster, gated(), operator("v0.17.1"), other)
    assert found.error is not None
    assert any(
        line.startswith("  [chainsaw] app: ") and "skipped" not in line for line in found.lines
    )
    # The probes came first: the minute of the window had passed before the skip was printed.
    assert found.seconds == 90


@pytest.mark.covers("V-416", "V-417")
@pytest.mark.parametrize(
    ("deployments", "taints", "held"),
    [
        ([], [CURRENT], [nodewright.DEFAULT_TAINT]),
        ([], [LEGACY], [nodewright.LEGACY_TAINT]),
        ([manager()], [CURRENT, LEGACY], [nodewright.DEFAULT_TAINT, nodewright.LEGACY_TAINT]),
        ([manager("gpu.example/wait=yes:NoExecute")], [CURRENT], []),
        (
            [manager("gpu.example/wait=yes:NoExecute")],
            [{"key": "gpu.example/wait", "value": "yes", "effect": "NoExecute"}],
            ["gpu.example/wait=yes:NoExecute"],
        ),
        (
            [manager("gpu.example/wait=yes:NoExecute")],
            [{"key": "gpu.example/wait", "value": "yes", "effect": "NoSchedule"}],
            [],
        ),
        ([manager("gpu.example/wait:NoSchedule")], [LEGACY], [nodewright.LEGACY_TAINT]),
        (
            [manager("gpu.example/wait:NoSchedule")],
            [{"key": "gpu.example/wait", "effect": "NoSchedule"}],
            ["gpu.example/wait:NoSchedule"],
        ),
    ],
)
def test_exactly_the_operators_taint_and_the_legacy_one_must_be_gone(
    deployments: list[Any], taints: list[Any], held: list[str]
) -> None:
    """Any key, value and effect; without the Deployment or its variable, the chart's defaults."""
    cluster = DeployedCluster(
        PLACE, node_wright("tuning"), gpu_node("n1", taints=taints), gpu_node("n2"), *deployments
    )
    found = check(cluster, customizations(), operator("v0.18.0"))
    if not held:
        assert found.error is None
        return
    assert found.error is not None
    assert found.error.message == (
        "Nodewright customizations not ready within 8m0s: GPU nodes still carry the start-up taint: "
        f"n1 ({', '.join(held)})"
    )


@pytest.mark.covers("V-415", "V-418")
def test_the_operator_is_found_by_labels_and_must_be_one() -> None:
    """Under any name; two of them end the wait at once, one elsewhere does not count."""
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    named = DeployedCluster(
        PLACE,
        node_wright("tuning"),
        gpu_node("n1", taints=[taint]),
        manager("k=v:NoSchedule", "anything"),
    )
    error = check(named, customizations(), operator("v0.18.0")).error
    assert error is not None
    assert "n1 (k=v:NoSchedule)" in error.message
    two = DeployedCluster(PLACE, node_wright("tuning"), manager(name="a"), manager(name="b"))
    found = check(two, customizations(), operator("v0.18.0"))
    assert found.error is not None
    assert (found.error.code, found.seconds) == (CONFLICT, 0)
    assert found.error.message == "2 Deployments could be the Nodewright operator: a, b"
    elsewhere = DeployedCluster(PLACE, node_wright("tuning"), manager(), manager(place="other"))
    assert check(elsewhere, customizations(), operator("v0.18.0")).error is None


@pytest.mark.covers("V-418")
def test_a_list_of_deployments_that_fails_fails_closed() -> None:
    """No defaults are assumed when the operator cannot be looked for."""
    cluster = DeployedCluster(PLACE, node_wright("tuning"), gpu_node("n1"))
    cluster.plans["apps/v1/Deployment"] = lambda now: AicrError(SERVICE_UNAVAILABLE, "down")
    error = check(cluster, customizations(), operator("v0.18.0")).error
    assert error is not None
    assert (error.code, error.message.endswith(": down")) == (TIMEOUT, True)


@pytest.mark.parametrize(
    ("name", "path", "overrides", "shown"),
    [
        ("gcp-driver-installer", "installer.yaml", {}, True),
        ("gcp-driver-installer", "installer.yaml", {"installer": {"enabled": True}}, False),
        ("dra-node-labeler", "labeler.yaml", {}, True),
        ("dra-node-labeler", "labeler.yaml", {"labelKey": "a/b", "labelValue": "c"}, False),
    ],
)
@pytest.mark.covers("V-405")
def test_components_that_render_to_nothing_are_not_asserted(
    name: str, path: str, overrides: dict[str, Any], shown: bool
) -> None:
    """And run as soon as they render to something."""
    text = chainsaw("assert", "{apiVersion: v1, kind: Pod, metadata: {name: gone}}")
    ref = {
        "name": name,
        "namespace": "skyhook",
        "overrides": overrides,
        "manifestFiles": [f"components/{name}/manifests/{path}"],
        "healthCheckAsserts": text,
    }
    found = check(DeployedCluster(PLACE), ref)
    skipped = f"  [chainsaw] {name}: skipped — the recipe's values switch its objects off"
    assert (skipped in found.lines) is shown
    assert (found.error is None) is shown


@pytest.mark.parametrize(
    ("pin", "old"),
    [
        ("v0.17.9", True),
        ("0.18.0", False),
        ("v0.18.0-rc.1", True),
        ("1.0.0", False),
        ("", True),
        ("x", True),
    ],
)
def test_pins_are_compared_as_versions(pin: str, old: bool) -> None:
    """0.18.0 is the first that serves NodeWright."""
    assert nodewright.is_old(pin) is old
