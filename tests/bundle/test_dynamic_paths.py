"""--dynamic: what moves to cluster-values.yaml, and every path that must not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.bundle.sample_catalogues import World

from aicr.bundle import dynamic, layout
from aicr.bundle.plan import Plan
from aicr.errors import AicrError
from aicr.yamlio import read

FILES = {"components/app/values.yaml": "a:\n  b: 1\n  c: 2\nlist: [1, 2]\n"}


def files_of(plan: Plan, directory: str) -> tuple[Any, Any]:
    """(values.yaml, cluster-values.yaml) of a folder, parsed."""
    folder = next(item for item in layout.folders(plan) if item.dir == directory)
    static, deferred = (
        read.load(folder.files[name][0].decode(), source=name)
        for name in ("values.yaml", "cluster-values.yaml")
    )
    assert (static, deferred) == (folder.values, folder.cluster_values)
    return static, deferred


@pytest.mark.covers("C-070")
@pytest.mark.parametrize(
    ("paths", "static", "deferred"),
    [
        (["app:a.b"], {"a": {"c": 2}, "list": [1, 2]}, {"a": {"b": 1}}),
        (["app:a"], {"list": [1, 2]}, {"a": {"b": 1, "c": 2}}),
        (["app:a.b", "app:a.c"], {"a": {}, "list": [1, 2]}, {"a": {"b": 1, "c": 2}}),
        (["app:x.y"], {"a": {"b": 1, "c": 2}, "list": [1, 2]}, {"x": {"y": ""}}),
        (["app:list"], {"a": {"b": 1, "c": 2}}, {"list": [1, 2]}),
        (
            [r"app:a.example\.com/gpu"],
            {"a": {"b": 1, "c": 2}, "list": [1, 2]},
            {"a": {"example.com/gpu": ""}},
        ),
    ],
)
def test_a_dynamic_value_moves_and_an_absent_one_leaves_a_stub(
    paths: list[str], static: Any, deferred: Any
) -> None:
    """What is there moves; what is not becomes an empty text; empty parents stay (2.4)."""
    made = World("app", files=FILES).plan(dynamic=paths)
    assert files_of(made, "001-app") == (static, deferred)


def test_paths_are_canonical_sorted_and_deduplicated() -> None:
    """An alias and a repetition are the same path said twice (bundler spec 0.3, step 9)."""
    world = World("app", entries={"app": {"valueOverrideKeys": ["theapp"]}}, files=FILES)
    component = world.component("app", dynamic=["theapp:z.y", "app:a.b", "app:z.y", "app:a.b"])
    assert component.dynamic == [["a", "b"], ["z", "y"]]


def test_a_bundle_without_dynamic_paths_has_an_empty_cluster_values_file() -> None:
    """cluster-values.yaml is always written (bundler spec 2.3)."""
    assert files_of(World("app", files=FILES).plan(), "001-app")[1] == {}


def test_splitting_changes_nothing_that_is_passed_in() -> None:
    """The recipe's values are shared between deployers."""
    values = {"a": {"b": [1]}}
    static, deferred = dynamic.split(values, [["a", "b"]])
    deferred["a"]["b"].append(2)
    assert values == {"a": {"b": [1]}}
    assert static == {"a": {}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("app", "the ':' after the component is missing"),
        (":a", "its name is missing"),
        ("app:", "the path is missing"),
        ("app:a=1", "cannot be set here"),
        ("app:a..b", "cannot be read"),
        ("app:list[0]", "helm replaces a list as a whole"),
        ("app:enabled", "is no value of its chart"),
        ("app:enabled.x", "is no value of its chart"),
    ],
)
def test_a_malformed_dynamic_path_is_refused(text: str, words: str) -> None:
    """--dynamic is component:path, without a value (bundler spec 1.2)."""
    with pytest.raises(AicrError, match="--dynamic") as caught:
        dynamic.parse_dynamic([text])
    assert caught.value.code == "INVALID_REQUEST"
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"dynamic": ["ap:a"]}, 'unknown component "ap"'),
        ({"dynamic": ["off:a"]}, "the recipe disables it"),
        ({"dynamic": ["k:a"]}, "which has no values"),
        ({"dynamic": ["app:a"], "set": ["app:enabled=false"]}, "enabled=false value override"),
        ({"dynamic": ["app:a.b"], "set": ["app:a.b=1"]}, "conflict"),
        ({"dynamic": ["app:a"], "set": ["app:a.b=1"]}, "conflict"),
        ({"dynamic": ["app:a.b"], "set_json": ["app:a={}"]}, "conflict"),
        ({"dynamic": ["app:a", "app:a.b"]}, "one path contains the other"),
        ({"dynamic": ["app:list.x"]}, "a value cannot be given there"),
        ({"dynamic": ["local:a"]}, "no chart that a value could reach"),
        ({"dynamic": ["app:a"], "deployer": "argocd"}, "argocd-helm"),
    ],
)
def test_a_dynamic_path_that_cannot_take_effect_is_refused(
    flags: dict[str, Any], words: str
) -> None:
    """Absent components, other flags on the path, and places without a chart (0.5, decision 7)."""
    world = World(
        "app",
        "keep",
        {"name": "off", "overrides": {"enabled": False}},
        {"name": "k", "type": "Kustomize", "source": "https://git.example.com/k", "path": "p"},
        {"name": "local", "manifestFiles": ["m.yaml"]},
        entries={"local": {"local": True}, "k": {"local": True}},
        files={**FILES, "m.yaml": "kind: A\n"},
    )
    error = world.refused(**flags)
    text = " ".join(f"{link.message} {link.hint}" for link in error.chain())
    assert "--dynamic" in text
    assert words in text


@pytest.mark.covers("B10-48")
def test_argocd_refuses_dynamic_values_and_names_the_deployer_that_takes_them() -> None:
    """Applications carry all values, so nothing is left open (bundler spec 1.8)."""
    error = World("app").refused(dynamic=["app:a"], deployer="ArgoCD")
    assert "argocd-helm" in error.hint


REQUIRED = {
    "nodeScheduling": {
        "system": {
            "nodeSelectorPaths": ["controller.podSpec.nodeSelector"],
            "requireNodeSelector": True,
        }
    }
}
CONDITIONAL = {
    "nodeScheduling": {
        "system": {
            "nodeSelectorPaths": ["pod.nodeSelector"],
            "requireNodeSelectorIfStorageClassSet": True,
        }
    },
    "storageClassPaths": ["volume.storageClassName"],
    "sharedStorageClassPaths": ["shared.storageClassName"],
}


@pytest.mark.covers("B10-36", "C-052")
@pytest.mark.parametrize(
    "path",
    [
        "controller",
        "controller.podSpec",
        "controller.podSpec.nodeSelector",
        "controller.podSpec.nodeSelector.pool",
    ],
)
def test_a_required_node_selector_cannot_be_left_to_the_installation(path: str) -> None:
    """Equal, above and below a required path are refused, with the flag given too (3.5)."""
    world = World("slinky-slurm", entries={"slinky-slurm": REQUIRED})
    error = world.refused(dynamic=[f"slinky-slurm:{path}"], system_node_selector=["a=b"])
    assert f"--dynamic slinky-slurm:{path}" in error.message
    assert "--system-node-selector" in error.message
    assert "controller.podSpec.nodeSelector" in error.message


def test_a_path_beside_a_required_one_may_be_dynamic() -> None:
    """Only what decides the selector is guarded."""
    world = World("slinky-slurm", entries={"slinky-slurm": REQUIRED})
    component = world.component(
        "slinky-slurm",
        dynamic=["slinky-slurm:controller.podSpec.priority"],
        system_node_selector=["a=b"],
    )
    assert component.dynamic == [["controller", "podSpec", "priority"]]


def test_an_overlay_that_opted_out_may_leave_the_selector_open() -> None:
    """A path that is opted out with an empty map is not required (C-051)."""
    ref = {"name": "app", "overrides": {"controller": {"podSpec": {"nodeSelector": {}}}}}
    world = World(ref, entries={"app": REQUIRED})
    assert world.component("app", dynamic=["app:controller.podSpec.nodeSelector"]).dynamic


@pytest.mark.covers("B10-38", "C-058")
@pytest.mark.parametrize(
    "path",
    ["pod.nodeSelector", "pod", "volume.storageClassName", "volume", "shared.storageClassName"],
)
@pytest.mark.parametrize("flags", [{}, {"storage_class": "gp3", "system_node_selector": ["a=b"]}])
def test_a_conditional_selector_and_its_storage_paths_cannot_be_dynamic(
    path: str, flags: dict[str, Any]
) -> None:
    """Refused whether or not a class is set, since one could be added later (3.5)."""
    error = World("kps", entries={"kps": CONDITIONAL}).refused(dynamic=[f"kps:{path}"], **flags)
    assert f"--dynamic kps:{path} is not allowed" in error.message
    assert "--system-node-selector" in error.message


PLACED = {
    "nodeScheduling": {
        "system": {"nodeSelectorPaths": ["pod.nodeSelector"], "tolerationPaths": ["pod.tol"]}
    },
    "storageClassPaths": ["volume.storageClassName"],
}


@pytest.mark.parametrize(
    ("path", "flags", "deferred", "said"),
    [
        ("pod.tol", {}, {"pod": {"tol": ""}}, ""),
        (
            "pod.tol",
            {"system_node_tolerations": ["a:NoSchedule"]},
            {"pod": {"tol": ""}},
            "--system-node-toleration is not written to app:pod.tol",
        ),
        (
            "pod.nodeSelector",
            {"system_node_selector": ["a=b"]},
            {"pod": {"nodeSelector": ""}},
            "--system-node-selector is not written to app:pod.nodeSelector",
        ),
        (
            "volume.storageClassName",
            {"storage_class": "gp3"},
            {"volume": {"storageClassName": ""}},
            "--storage-class is not written to app:volume.storageClassName",
        ),
    ],
)
def test_no_flag_is_written_to_a_dynamic_placement_path(
    path: str, flags: dict[str, Any], deferred: Any, said: str
) -> None:
    """The installation decides there; a flag that was given says that it is not written (3.4)."""
    made = World("app", entries={"app": PLACED}).plan(dynamic=[f"app:{path}"], **flags)
    assert files_of(made, "001-app")[1] == deferred
    assert any(said in note for note in made.notes) if said else not made.notes


def test_what_the_recipe_says_at_a_dynamic_placement_path_goes_along() -> None:
    """cluster-values.yaml shows the recipe's current value (bundler spec 3.4)."""
    files = {"components/app/values.yaml": "pod:\n  nodeSelector:\n    pool: x\n"}
    made = World("app", entries={"app": PLACED}, files=files).plan(
        dynamic=["app:pod.nodeSelector"], system_node_selector=["a=b"]
    )
    static, deferred = files_of(made, "001-app")
    assert deferred == {"pod": {"nodeSelector": {"pool": "x"}}}
    assert static == {"pod": {"tol": [{"operator": "Exists"}]}}


@pytest.mark.parametrize(
    ("component", "path"),
    [
        ("nvidia-dra-driver-gpu", "resources.gpus.enabled"),
        ("nvidia-dra-driver-gpu", "resources"),
        ("nvidia-dra-driver-gpu", "gpuResourcesEnabledOverride"),
        ("gpu-operator", "devicePlugin.enabled"),
        ("gpu-operator", "devicePlugin"),
    ],
)
def test_who_allocates_gpus_is_decided_now(component: str, path: str) -> None:
    """The allocation mode may not be dynamic, but a static override is a note (0.3, step 6)."""
    world = World(component)
    error = world.refused(dynamic=[f"{component}:{path}"])
    assert "allocates GPUs" in error.message
    made = world.plan(set_json=[f"{component}:{path}={{}}"])
    assert any("allocates GPUs" in note for note in made.notes)


@pytest.mark.parametrize("path", ["accounting", "accounting.enabled", "accounting.enabled.x"])
def test_paths_that_the_configuration_owns_are_not_dynamic(path: str) -> None:
    """Accounting is decided by the recipe (bundler spec 0.6)."""
    world = World("slinky-slurm", configuration={"slurm": {"accounting": {"mode": "disabled"}}})
    error = world.refused(dynamic=[f"slinky-slurm:{path}"])
    assert "owned by configuration.slurm.accounting.mode" in error.message


def test_paths_that_the_profile_owns_are_not_dynamic() -> None:
    """A profile's values agree with each other (bundler spec 0.8)."""
    profile = {"name": "gpuStack", "value": "x", "ownedPaths": {"app": ["a.b"]}}
    world = World("app", metadata={"version": "1", "selectedProfile": profile})
    assert "gpuStack=x" in world.refused(dynamic=["app:a"]).message


def test_a_manifest_that_uses_a_dynamic_value_is_pointed_out() -> None:
    """It is rendered with the bundle, so what is filled in reaches the chart alone."""
    files = {
        **FILES,
        "used.yaml": 'kind: A\nb: {{ index .Values "app" "a" "b" }}\n',
        "other.yaml": 'kind: A\nc: {{ index .Values "app" "a" "c" }}\n',
    }
    ref = {"name": "app", "manifestFiles": ["used.yaml", "other.yaml"]}
    made = World(ref, files=files).plan(dynamic=["app:a.b"])
    assert [note for note in made.notes if "--dynamic" in note] == [
        "Warning: used.yaml of app uses a value that --dynamic leaves to the installation, but is "
        "rendered now with the recipe's value; what is filled in reaches the chart alone"
    ]
