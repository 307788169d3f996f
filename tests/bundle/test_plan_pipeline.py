"""The plan: every layer of values in order, manifests, notes, and refusals before anything exists."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Component, Plan, plan
from aicr.bundle.value_files import read_value_file
from aicr.catalog.catalog import Catalog
from aicr.catalog.registry import Registry
from aicr.catalog.types import RegistryEntry
from aicr.errors import INVALID_REQUEST, NOT_FOUND, AicrError, not_found

REGISTRY: list[RegistryEntry] = [
    {
        "name": "app",
        "displayName": "App",
        "valueOverrideKeys": ["theapp"],
        "helm": {
            "defaultRepository": "https://charts.example.com",
            "defaultChart": "example/app-chart",
            "defaultVersion": "v1.2.3",
            "defaultNamespace": "app-system",
        },
        "nodeScheduling": {
            "system": {"nodeSelectorPaths": ["pod.nodeSelector"], "tolerationPaths": ["pod.tol"]}
        },
        "storageClassPaths": ["volume.storageClassName"],
        "manifestFiles": ["components/app/manifests/default.yaml"],
        "gkeCriticalPriority": True,
    },
    {
        "name": "dep",
        "displayName": "Dep",
        "helm": {
            "defaultRepository": "https://charts.example.com",
            "defaultChart": "dep",
            "defaultVersion": "0.1.0",
        },
    },
    {
        "name": "kapp",
        "displayName": "Kustomize app",
        "kustomize": {
            "defaultSource": "https://git.example.com/app",
            "defaultPath": "deploy",
            "defaultTag": "v1",
        },
    },
]
FILES = {
    "components/app/values.yaml": "base: 1\nlayer: base\nfree: base\n",
    "components/app/values-x.yaml": "layer: file\nfile: true\nenabled: true\n",
    "components/app/manifests/default.yaml": "kind: Default\n",
    "components/app/manifests/own.yaml": (
        'kind: Own\nname: {{ index .Values "app" "layer" }}\nns: {{ .Release.Namespace }}\n'
        "chart: {{ .Chart.Name }}-{{ .Chart.Version }}\n"
    ),
    "components/app/manifests/hooked.yaml": (
        "apiVersion: v1\nkind: Job\nmetadata:\n  name: j\n  annotations:\n"
        "    helm.sh/hook: post-install\n    keep: me\n"
    ),
    "components/app/manifests/bad.yaml": "a: {{ nonsense\n",
}


class MemoryTree:
    """A catalogue tree in memory."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def paths(self) -> list[str]:
        """All files, sorted."""
        return sorted(self.files)

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        return path in self.files

    def read_text(self, path: str) -> str:
        """The text of a file."""
        if path not in self.files:
            raise not_found(path)
        return self.files[path]

    def values(self, path: str) -> dict[str, Any]:
        """A values file as a fresh map."""
        return yaml.safe_load(self.read_text(path)) or {}

    def label(self, path: str) -> str:
        """The origin of a path."""
        return "embedded"

    def place(self, path: str) -> str:
        """The path to print."""
        return path


CATALOG = Catalog(
    base=cast("Any", {}),
    overlays={},
    mixins={},
    registry=Registry(REGISTRY),
    tree=MemoryTree(FILES),
    taught={},
)


def recipe(*refs: dict[str, Any], **parts: Any) -> Any:
    """A RecipeResult."""
    return {
        "kind": "RecipeResult",
        "apiVersion": "aicr.run/v1",
        "metadata": {"version": "1.0.0"},
        "criteria": {"service": "eks"},
        "componentRefs": list(refs),
        "deploymentOrder": [ref["name"] for ref in refs],
        **parts,
    }


def planned(made: Any, **flags: Any) -> Plan:
    """Plan with the given flags."""
    return plan(made, CATALOG, BundleOptions(**flags), read_file=read_value_file)


def only(made: Any, **flags: Any) -> Component:
    """The single component of a plan."""
    (component,) = planned(made, **flags).components
    return component


APP = {"name": "app", "type": "Helm"}


@pytest.mark.covers("C-067", "C-069", "C-071", "C-072", "C-073")
def test_values_come_in_layers_and_the_later_layer_wins(tmp_path: Path) -> None:
    """Base file, values file, overlay, --set, flags, --set-file, --set-json, in this order."""
    (tmp_path / "f.yaml").write_text("from: file\nboth: file\n")
    made = recipe(
        {
            **APP,
            "valuesFile": "components/app/values-x.yaml",
            "overrides": {"layer": "overlay", "inline": {"a": 1}, "enabled": True},
        }
    )
    component = only(
        made,
        set=["theapp:inline.a=2", "app:free=set"],
        set_file=[f"app:typed={tmp_path}/f.yaml"],
        set_json=['app:pod.nodeSelector={"json":"wins"}'],
        system_node_selector=["flag=yes"],
        storage_class="gp3",
    )
    assert component.values == {
        "base": 1,
        "layer": "overlay",
        "free": "set",
        "file": True,
        "inline": {"a": 2},
        "pod": {"nodeSelector": {"flag": "yes", "json": "wins"}, "tol": [{"operator": "Exists"}]},
        "volume": {"storageClassName": "gp3"},
        "typed": {"from": "file", "both": "file"},
    }


def test_the_enabled_switch_never_reaches_the_chart() -> None:
    """It selects the component and is stripped from values."""
    component = only(recipe({**APP, "overrides": {"enabled": True}}), set=["app:enabled=true"])
    assert "enabled" not in component.values
    assert component.changes == []


def test_every_override_appears_in_the_changes_of_its_component() -> None:
    """One line each, in the order in which they were applied, under the component's own name."""
    made = recipe(APP, {"name": "dep", "type": "Helm"})
    result = planned(made, set=["theapp:base=2", "dep:x.y=z"], set_json=["app:free=[1]"])
    assert result.changes == [
        "app:base: 1 → 2",
        'app:free: "base" → [1]',
        'dep:x.y: (unset) → "z"',
    ]


@pytest.mark.covers("B10-5")
def test_components_come_in_deployment_order() -> None:
    """Dependencies first, ties alphabetical, whatever order the refs are written in."""
    helm = {"type": "Helm", "source": "https://x.example", "version": "1"}
    made = recipe(
        {"name": "b", **helm}, {"name": "a", "dependencyRefs": ["b"], **helm}, {"name": "c", **helm}
    )
    result = planned(made)
    assert [component.name for component in result.components] == ["b", "a", "c"]
    assert result.recipe["deploymentOrder"] == ["b", "a", "c"]


def test_the_recipe_of_the_bundle_holds_rendered_components_only() -> None:
    """It is the filtered recipe with defaults filled in; flags do not show in it."""
    made = recipe(APP, {"name": "dep", "dependencyRefs": ["app"]})
    result = planned(made, set=["app:enabled=false", "dep:x=1"])
    assert result.recipe["deploymentOrder"] == ["dep"]
    assert result.recipe["componentRefs"] == [
        {
            "name": "dep",
            "type": "Helm",
            "source": "https://charts.example.com",
            "version": "0.1.0",
            "chart": "dep",
        }
    ]
    assert list(result.recipe) == list(made)


def test_inputs_are_never_changed() -> None:
    """Recipe and catalogue are as before, so both can serve the next bundle."""
    made = recipe(
        {**APP, "overrides": {"pod": {"tol": [{"key": "a"}]}}, "manifestFiles": []},
        {"name": "dep", "dependencyRefs": ["app"]},
        criteria={"service": "gke"},
    )
    before, files = copy.deepcopy(made), dict(FILES)
    planned(
        made,
        set=["app:base=2"],
        set_json=['app:pod={"x":1}'],
        system_node_tolerations=["b"],
        storage_class="gp3",
    )
    assert made == before
    assert files == FILES
    assert REGISTRY[0]["manifestFiles"] == ["components/app/manifests/default.yaml"]


def test_names_and_namespaces_come_from_ref_then_registry_then_component() -> None:
    """A ref's namespace wins, and a component without any gets one of its own name."""
    made = recipe(APP, {"name": "dep"})
    assert [component.namespace for component in planned(made).components] == ["app-system", "dep"]
    assert only(recipe({**APP, "namespace": "other"})).namespace == "other"
    assert only(recipe(APP)).ref["chart"] == "app-chart"


@pytest.mark.covers("B10-13", "C-024", "C-026")
def test_registry_manifests_apply_only_when_the_ref_declares_none() -> None:
    """A declared list replaces the registry's."""
    assert only(recipe(APP)).manifests == [("default.yaml", "kind: Default\n")]
    own = {**APP, "manifestFiles": ["components/app/manifests/own.yaml"]}
    assert [name for name, _ in only(recipe(own)).manifests] == ["own.yaml"]


@pytest.mark.covers("C-023")
def test_manifests_are_rendered_with_final_values() -> None:
    """Values, namespace and chart are those of this bundle; the version has no leading v."""
    ref = {**APP, "manifestFiles": ["components/app/manifests/own.yaml"]}
    ((name, text),) = only(recipe(ref), set=["app:layer=last"]).manifests
    assert (name, text) == (
        "own.yaml",
        "kind: Own\nname: last\nns: app-system\nchart: app-chart-1.2.3\n",
    )


def test_sync_hooks_are_stripped_from_manifests_before_and_after() -> None:
    """Every deployer orders releases itself, so install hooks would only get in its way."""
    path = "components/app/manifests/hooked.yaml"
    component = only(recipe({**APP, "manifestFiles": [path], "preManifestFiles": [path]}))
    for _, text in (*component.manifests, *component.pre_manifests):
        assert "helm.sh/hook" not in text
        assert "keep: me" in text


def test_a_manifest_the_catalogue_does_not_have_asks_for_a_new_recipe() -> None:
    """The recipe was made with another catalogue."""
    made = recipe({**APP, "manifestFiles": ["components/app/manifests/gone.yaml"]})
    with pytest.raises(AicrError, match=r"components/app/manifests/gone\.yaml") as caught:
        planned(made)
    assert caught.value.code == INVALID_REQUEST
    assert "regenerate the recipe" in caught.value.hint


def test_a_manifest_that_cannot_be_rendered_names_file_and_component() -> None:
    """The cause stays visible."""
    path = "components/app/manifests/bad.yaml"
    with pytest.raises(AicrError, match=f'manifest {path} of component "app"') as caught:
        planned(recipe({**APP, "manifestFiles": [path]}))
    assert caught.value.__cause__ is not None


@pytest.mark.covers("B10-83", "C-030")
@pytest.mark.parametrize(("nodes", "pods"), [(4, "128"), (0, "32"), (1, "32"), (None, "32")])
def test_gke_gets_a_quota_for_critical_pods(nodes: int | None, pods: str) -> None:
    """32 pods a node, and never fewer than 32, in the component's namespace."""
    criteria = {"service": "gke"} if nodes is None else {"service": "gke", "nodes": nodes}
    ((name, text),) = only(recipe(APP, criteria=criteria)).pre_manifests
    quota = yaml.safe_load(text)
    assert name == "gke-critical-pods-quota.yaml"
    assert quota["metadata"] == {"name": "aicr-gke-critical-pods", "namespace": "app-system"}
    assert quota["spec"]["hard"] == {"pods": pods}


@pytest.mark.covers("C-030")
def test_the_quota_is_for_gke_and_flagged_components_only() -> None:
    """Other services and other components get none."""
    assert only(recipe(APP)).pre_manifests == []
    assert only(recipe({"name": "dep"}, criteria={"service": "gke"})).pre_manifests == []


@pytest.mark.covers("B8", "B10-17", "C-008", "C-009")
@pytest.mark.parametrize("flag", ["set", "set_json"])
def test_values_of_a_kustomize_component_cannot_be_overridden(flag: str) -> None:
    """The override would be ignored, which is a trap, so it is an error."""
    with pytest.raises(AicrError, match="Kustomize source, which has no values") as caught:
        planned(recipe({"name": "kapp"}), **{flag: ["kapp:foo=1"]})
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.covers("C-009", "C-012", "C-013")
def test_a_kustomize_component_has_a_source_and_no_values() -> None:
    """Flags for nodes and storage do not reach it; the switch does."""
    component = only(recipe({"name": "kapp"}), system_node_selector=["a=b"], storage_class="gp3")
    assert component.values == {}
    assert (component.ref["type"], component.ref["tag"]) == ("Kustomize", "v1")
    with pytest.raises(AicrError, match="no enabled components"):
        planned(recipe({"name": "kapp"}), set=["kapp:enabled=false"])


def test_a_component_outside_the_registry_is_bundled_as_written() -> None:
    """Without an entry there is no routing, and an override finds it by name."""
    ref = {"name": "mine", "type": "helm", "source": "https://x.example", "version": "1"}
    component = only(recipe(ref), set=["mine:a=1"], system_node_selector=["a=b"])
    assert component.values == {"a": 1}
    assert component.entry == {}
    assert component.ref["type"] == "Helm"


def test_notes_start_with_warning_and_come_in_a_fixed_order(tmp_path: Path) -> None:
    """Flags first, then selection, then components in deployment order."""
    (tmp_path / "f.yaml").write_text("a: 1\n---\nb: 2\n")
    made = recipe(
        {**APP, "overrides": {"volume": {"size": "1Gi"}, "enabled": "yes"}},
        {"name": "gpu-operator", "source": "https://x.example", "version": "1", "type": "Helm"},
        metadata={"gpuDriverState": "absent"},
    )
    result = planned(
        made,
        set=["gpu-operator:enabled=false"],
        set_file=[f"app:x={tmp_path}/f.yaml"],
        set_json=["app:nothing=null"],
    )
    assert all(note.startswith("Warning: ") for note in result.notes)
    texts = ["first YAML document", "not true or false", "no GPU driver", "allocates GPUs"]
    texts += ["deletes nothing", "PVC without storageClassName"]
    assert len(result.notes) == len(texts)
    for note, text in zip(result.notes, texts, strict=True):
        assert text in note


@pytest.mark.covers("B10-1")
def test_an_empty_recipe_is_refused() -> None:
    """There is nothing to plan."""
    with pytest.raises(AicrError) as caught:
        planned(recipe())
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.parametrize(
    ("ref", "problem"),
    [
        (
            {
                "name": "x",
                "type": "Helm",
                "source": "https://x.example",
                "version": "1",
                "tag": "t",
            },
            "tag",
        ),
        ({"name": "x", "type": "Helm"}, "no deployable primary"),
        ({"name": "x", "type": "Jsonnet"}, "unsupported type"),
    ],
)
def test_a_recipe_that_cannot_be_deployed_is_refused(ref: dict[str, Any], problem: str) -> None:
    """Refs that are incoherent are found before any value is resolved."""
    with pytest.raises(AicrError, match=problem) as caught:
        planned(recipe(ref))
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"deployer": "kustomize"}, "invalid deployer"),
        ({"nodes": -1}, "invalid --nodes"),
        ({"system_node_tolerations": ["a:b:NoSchedule"]}, "invalid --system-node-toleration"),
        ({"set": ["app:a=1", "theapp:a=1"]}, "conflict"),
        ({"set": ["ap:a=1"]}, "unknown component"),
        ({"set": ["app:enabled=maybe"]}, "invalid --set enabled value"),
        ({"set": ["app:enabled=false", "app:a=1"]}, "an enabled=false value override removed it"),
        ({"set": ["deployer:project=x"]}, "argocd and argocd-helm"),
    ],
)
def test_flags_that_cannot_take_effect_are_refused(flags: dict[str, Any], message: str) -> None:
    """Each is an invalid request of the caller."""
    with pytest.raises(AicrError, match=message) as caught:
        planned(recipe(APP, {"name": "dep"}), **flags)
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.covers("B10-23")
def test_a_missing_value_file_ends_the_plan_with_not_found() -> None:
    """The reader's error is not wrapped into another code."""
    with pytest.raises(AicrError) as caught:
        planned(recipe(APP), set_file=["app:p=/nope/never"])
    assert caught.value.code == NOT_FOUND


def test_owned_paths_are_guarded_before_and_after_values() -> None:
    """Configuration and profile both refuse an override."""
    slurm = {"name": "slinky-slurm", "type": "Helm", "source": "https://x.example", "version": "1"}
    made = recipe(slurm, configuration={"slurm": {"accounting": {"mode": "disabled"}}})
    with pytest.raises(AicrError, match="configuration"):
        planned(made, set=["slinky-slurm:accounting.enabled=true"])
    profile = {"name": "p", "value": "v", "ownedPaths": {"app": ["base"]}}
    with pytest.raises(AicrError, match="profile p=v"):
        planned(recipe(APP, metadata={"selectedProfile": profile}), set=["app:base=2"])


@pytest.mark.covers("F10", "B10-78")
def test_equal_inputs_give_equal_plans_whatever_the_hash_seed() -> None:
    """No set or hash order reaches values, changes or notes."""
    code = (
        "from aicr.catalog.catalog import Catalog\n"
        "from aicr.bundle.options import BundleOptions\n"
        "from aicr.bundle.plan import plan\n"
        "from tests.bundle.test_plan_pipeline import APP, CATALOG, recipe\n"
        "p = plan(recipe(APP, {'name': 'dep', 'dependencyRefs': ['app']}), CATALOG,"
        " BundleOptions(set=['app:z=1', 'dep:a=2', 'app:b.c=x'],"
        " set_json=['dep:m={\"q\":1,\"a\":[1]}'], system_node_selector=['b=1', 'a=2']))\n"
        "print([(c.name, c.values, c.changes, c.manifests) for c in p.components], p.notes)\n"
    )
    root = Path(__file__).resolve().parents[2]
    outputs = set()
    for seed in ("0", "1", "2"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]),
        }
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, check=True
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
