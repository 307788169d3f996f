"""Placement, required selectors and storage classes of the real catalogue, entry by entry."""

from __future__ import annotations

from typing import Any, Final

import pytest
from tests.catalogue.catalogue_files import RECIPES
from tests.catalogue.component_plans import REGISTRY, TIERS, at, leaves, planned, routed, values_of

from aicr.errors import AicrError

SYSTEM_FLAGS: Final[dict[str, Any]] = {
    "system_node_selector": ["pool=system"],
    "system_node_tolerations": ["system-only:NoSchedule"],
}
ACCELERATED_FLAGS: Final[dict[str, Any]] = {
    "accelerated_node_selector": ["pool=gpu"],
    "accelerated_node_tolerations": ["gpu-only:NoSchedule"],
}
FLAGS: Final[dict[str, Any]] = {**SYSTEM_FLAGS, **ACCELERATED_FLAGS}
SYSTEM_TOLERATION: Final = {"key": "system-only", "operator": "Exists", "effect": "NoSchedule"}
GPU_TOLERATION: Final = {"key": "gpu-only", "operator": "Exists", "effect": "NoSchedule"}
ALL: Final = {"operator": "Exists"}

#: Workloads that have to be on GPU nodes, by the path below which the chart places them.
ON_GPU_NODES: Final[dict[str, set[str]]] = {
    "aws-ebs-csi-driver": {"node.tolerations"},
    "aws-efa": {"nodeSelector", "tolerations"},
    "dra-node-labeler": {"nodeSelector", "tolerations"},
    "gpu-operator": {"daemonsets.tolerations"},
    "kubeflow-trainer": {"acceleratedNodeSelector", "acceleratedTolerations"},
    "nfd": {"topologyUpdater.tolerations", "worker.tolerations"},
    "nodewright-customizations": {"acceleratedNodeSelector", "acceleratedTolerations"},
    "nodewright-operator": {"controllerManager.manager.env.runtimeRequiredTaint"},
    "nvidia-dra-driver-gpu": {"kubeletPlugin.nodeSelector", "kubeletPlugin.tolerations"},
    "nvidia-dra-driver-gpu-ocp": {"kubeletPlugin.nodeSelector", "kubeletPlugin.tolerations"},
    "slinky-slurm": {
        "nodesets.slinky.podSpec.nodeSelector",
        "nodesets.slinky.podSpec.tolerations",
    },
    "slinky-topograph": {
        "nodeDataBroker.nodeSelector",
        "nodeDataBroker.tolerations",
        "nodeObserver.topograph.trigger.nodeSelector",
    },
}
#: Workloads that run on every node, whatever its class.
ON_EVERY_NODE: Final = {
    "aws-ebs-csi-driver": {"node.tolerations"},
    "nfd": {"topologyUpdater.tolerations", "worker.tolerations"},
}

PLACED: Final = sorted(
    name
    for name in REGISTRY
    if any(
        routed(name, tier, field)
        for tier in TIERS
        for field in ("nodeSelectorPaths", "tolerationPaths")
    )
)


@pytest.mark.covers("C-016", "C-033", "C-035")
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_workloads_of_gpu_nodes_are_routed_as_accelerated_and_all_others_as_system(
    name: str,
) -> None:
    """Device plugins, exporters and what works on the nodes on one side; operators on the other."""
    scheduling = REGISTRY[name].get("nodeScheduling", {})
    assert set(scheduling) <= {*TIERS, "nodeCountPaths"}
    found = {
        tier: {
            path
            for field, paths in scheduling.get(tier, {}).items()
            if field.endswith("Paths")
            for path in paths
        }
        for tier in TIERS
    }
    assert found["accelerated"] == ON_GPU_NODES.get(name, set())
    assert found["system"] & found["accelerated"] == ON_EVERY_NODE.get(name, set())
    for tier in TIERS:
        for path in routed(name, tier, "nodeSelectorPaths"):
            assert path.rpartition(".")[2].lower().endswith(("selector", "selectors")), path
        for path in routed(name, tier, "tolerationPaths"):
            assert path.rpartition(".")[2].lower().endswith("tolerations"), path


@pytest.mark.covers("C-016", "C-034", "C-036", "C-064", "C-065", "C-074", "C-084")
@pytest.mark.parametrize("name", PLACED)
def test_placement_flags_write_every_declared_path_and_no_other_value(name: str) -> None:
    """Four flags place all workloads of all components; no chart has a flag of its own."""
    stops = {
        path
        for tier in TIERS
        for field in ("nodeSelectorPaths", "tolerationPaths")
        for path in routed(name, tier, field)
    }
    # Slurm and its database cannot be without a selector, so the plain bundle has another one.
    plain = values_of(name, system_node_selector=["plain=1"], accelerated_node_selector=["plain=1"])
    placed = values_of(name, **FLAGS)
    before, after = leaves(plain, stops), leaves(placed, stops)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed == stops
    for tier, pool in (("system", "system"), ("accelerated", "gpu")):
        for path in routed(name, tier, "nodeSelectorPaths"):
            assert at(placed, path) == {"pool": pool}, path
    for path in routed(name, "system", "tolerationPaths"):
        shared = path in routed(name, "accelerated", "tolerationPaths")
        expected = [SYSTEM_TOLERATION, GPU_TOLERATION] if shared else [SYSTEM_TOLERATION]
        assert at(placed, path)[-len(expected) :] == expected, path
    for path in routed(name, "accelerated", "tolerationPaths"):
        assert at(placed, path)[-1] == GPU_TOLERATION, path


@pytest.mark.covers("C-037", "C-038")
def test_controller_and_plugin_of_the_dra_driver_are_placed_apart() -> None:
    """The worked example of the seed, with the real entry."""
    scheduling = REGISTRY["nvidia-dra-driver-gpu"]["nodeScheduling"]
    assert scheduling == {
        "system": {
            "nodeSelectorPaths": ["controller.nodeSelector"],
            "tolerationPaths": ["controller.tolerations"],
        },
        "accelerated": {
            "nodeSelectorPaths": ["kubeletPlugin.nodeSelector"],
            "tolerationPaths": ["kubeletPlugin.tolerations"],
        },
    }
    values = values_of("nvidia-dra-driver-gpu", **FLAGS)
    assert values["controller"]["nodeSelector"] == {"pool": "system"}
    assert values["controller"]["tolerations"] == [SYSTEM_TOLERATION]
    assert values["kubeletPlugin"]["nodeSelector"] == {"pool": "gpu"}
    assert values["kubeletPlugin"]["tolerations"] == [GPU_TOLERATION]


@pytest.mark.covers("C-039", "C-040", "C-041", "C-043", "C-044")
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("nfd", "worker.tolerations"),
        ("nfd", "topologyUpdater.tolerations"),
        ("aws-ebs-csi-driver", "node.tolerations"),
    ],
)
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (FLAGS, [SYSTEM_TOLERATION, GPU_TOLERATION]),
        (ACCELERATED_FLAGS, [GPU_TOLERATION]),
        (SYSTEM_FLAGS, [SYSTEM_TOLERATION, ALL]),
        ({}, [ALL]),
    ],
    ids=["both", "accelerated", "system", "neither"],
)
def test_a_daemon_set_for_every_node_gets_one_list_of_both_classes(
    name: str, path: str, flags: dict[str, Any], expected: list[dict[str, str]]
) -> None:
    """Keyed system entries first; the tolerate-all default never widens a GPU list."""
    assert at(values_of(name, **flags), path) == expected


@pytest.mark.covers("C-047", "C-048")
def test_operands_of_the_gpu_operator_get_tolerations_and_never_a_selector() -> None:
    """They place themselves by deploy labels, so no flag writes a selector for them."""
    placed = values_of("gpu-operator", **FLAGS)
    assert placed["daemonsets"]["tolerations"] == [GPU_TOLERATION]
    assert "nodeSelector" not in placed["daemonsets"]
    assert placed["operator"]["nodeSelector"] == {"pool": "system"}
    assert at(values_of("gpu-operator"), "operator.nodeSelector") is None


@pytest.mark.covers("C-049", "C-050", "B10-34")
@pytest.mark.parametrize(
    ("name", "given", "flag"),
    [
        ("slinky-slurm", ACCELERATED_FLAGS, "--system-node-selector"),
        ("slinky-slurm", SYSTEM_FLAGS, "--accelerated-node-selector"),
        ("slurm-accounting-mariadb", {}, "--system-node-selector"),
    ],
)
def test_components_whose_volumes_are_bound_to_a_zone_demand_their_nodes(
    name: str, given: dict[str, Any], flag: str
) -> None:
    """Slurm in both classes, its accounting database in the system class."""
    tier = flag.removeprefix("--").partition("-")[0]
    assert REGISTRY[name]["nodeScheduling"][tier]["requireNodeSelector"] is True
    with pytest.raises(AicrError) as caught:
        values_of(name, **given)
    assert caught.value.code == "INVALID_REQUEST"
    assert f'component "{name}" requires {flag} to be set' in caught.value.message
    for path in routed(name, tier, "nodeSelectorPaths"):
        assert path in caught.value.message


@pytest.mark.covers("C-053", "C-054", "C-055", "C-059", "B10-37")
@pytest.mark.parametrize("source", ["nothing", "flag", "--set", "overlay"])
def test_prometheus_needs_its_nodes_only_once_it_has_a_volume(source: str) -> None:
    """On emptyDir a bare bundle passes; a class from flag, --set or overlay demands the selector."""
    name, path = (
        "kube-prometheus-stack",
        "prometheus.prometheusSpec.storageSpec.volumeClaimTemplate.spec.storageClassName",
    )
    assert REGISTRY[name]["storageClassPaths"] == [path]
    ref: dict[str, Any] = {"name": name}
    flags: dict[str, Any] = {}
    if source == "flag":
        flags["storage_class"] = "gp3"
    elif source == "--set":
        flags["set"] = [f"prometheus:{path}=gp3"]
    elif source == "overlay":
        held: Any = "gp3"
        for part in reversed(path.split(".")):
            held = {part: held}
        ref["overrides"] = held
    if source == "nothing":
        (component,) = planned(ref, **flags).components
        assert at(component.values, path) is None
        return
    with pytest.raises(AicrError, match="requires --system-node-selector") as caught:
        planned(ref, **flags)
    assert caught.value.code == "INVALID_REQUEST"
    (component,) = planned(ref, **flags, **SYSTEM_FLAGS).components
    assert at(component.values, path) == "gp3"
    assert at(component.values, "prometheus.prometheusSpec.nodeSelector") == {"pool": "system"}


def nested(paths: list[str], value: Any) -> dict[str, Any]:
    """A map with *value* at each of the dotted paths."""
    made: dict[str, Any] = {}
    for path in paths:
        *parents, last = path.split(".")
        level = made
        for part in parents:
            level = level.setdefault(part, {})
        level[last] = value
    return made


@pytest.mark.covers("C-051", "B10-35")
def test_an_overlay_takes_slurm_out_of_the_requirement() -> None:
    """An explicit empty selector on every required path; one path that is left asks for the flag."""
    paths = [path for tier in TIERS for path in routed("slinky-slurm", tier, "nodeSelectorPaths")]
    assert len(paths) == 5
    (component,) = planned({"name": "slinky-slurm", "overrides": nested(paths, {})}).components
    assert all(at(component.values, path) == {} for path in paths)
    with pytest.raises(AicrError, match="requires --system-node-selector") as caught:
        planned({"name": "slinky-slurm", "overrides": nested(paths[1:], {})})
    assert f"(paths: {paths[0]})" in caught.value.message


@pytest.mark.covers("C-052", "C-058", "B10-36", "B10-38")
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("slinky-slurm", "controller.podSpec"),
        ("slinky-slurm", "nodesets.slinky.podSpec.nodeSelector"),
        ("slurm-accounting-mariadb", "mariadb.nodeSelector.pool"),
        ("kube-prometheus-stack", "prometheus.prometheusSpec.nodeSelector"),
        (
            "kube-prometheus-stack",
            "prometheus.prometheusSpec.storageSpec.volumeClaimTemplate.spec.storageClassName",
        ),
    ],
)
def test_a_selector_that_is_required_cannot_be_given_at_install_time(name: str, path: str) -> None:
    """Equal, above or below; for Prometheus although no storage class is set."""
    with pytest.raises(AicrError, match=f"--dynamic {name}:") as caught:
        values_of(name, dynamic=[f"{name}:{path}"], **FLAGS)
    assert caught.value.code == "INVALID_REQUEST"
    assert "node-selector" in caught.value.message


@pytest.mark.covers("C-027", "B10-40")
def test_one_component_can_have_another_storage_class_than_all_others() -> None:
    """--set on exactly the path wins over the flag there, and the flag fills the other paths."""
    made = planned(
        {"name": "kube-prometheus-stack"},
        {"name": "slurm-accounting-mariadb"},
        storage_class="gp3",
        set=["slurmaccountingmariadb:mariadb.storage.storageClassName=io2"],
        **FLAGS,
    )
    found = {
        item.name: at(item.values, REGISTRY[item.name]["storageClassPaths"][0])
        for item in made.components
    }
    assert found == {"kube-prometheus-stack": "gp3", "slurm-accounting-mariadb": "io2"}


@pytest.mark.covers("C-075", "C-076")
def test_a_selector_that_the_chart_drops_is_not_declared_and_the_registry_says_so() -> None:
    """slinky-slurm-operator: tolerations alone, and the limit stands in a comment above the entry."""
    assert REGISTRY["slinky-slurm-operator"]["nodeScheduling"] == {
        "system": {"tolerationPaths": ["operator.tolerations", "webhook.tolerations"]}
    }
    text = (RECIPES / "registry.yaml").read_text(encoding="utf-8")
    above, _, _ = text.partition("  - name: slinky-slurm-operator\n")
    comment = " ".join(
        line.strip("# ") for line in above.rpartition("\n\n")[2].splitlines() if "#" in line
    )
    assert "drops a node selector" in comment
    values = values_of("slinky-slurm-operator", **FLAGS)
    assert values["operator"] == {"tolerations": [SYSTEM_TOLERATION]}
    assert values["webhook"] == {"tolerations": [SYSTEM_TOLERATION]}


@pytest.mark.covers("C-066")
def test_a_routed_path_keeps_the_layers_values_when_no_flag_is_given() -> None:
    """Routing says where a flag goes and is no layer itself: file, overlay and --set decide as ever."""
    name, path = "cert-manager", "webhook.nodeSelector"
    overlay = {"name": name, "overrides": {"webhook": {"nodeSelector": {"from": "overlay"}}}}
    (component,) = planned(overlay).components
    assert at(component.values, path) == {"from": "overlay"}
    (component,) = planned(overlay, set=[f"certmanager:{path}.from=set"]).components
    assert at(component.values, path) == {"from": "set"}
    (component,) = planned({"name": name}).components
    assert at(component.values, path) is None
