"""What the bundler makes the DRA driver and the GPU operator agree on, with and without opt-in."""

from __future__ import annotations

from typing import Any

import pytest
from tests.bundle.sample_catalogues import World

import aicr
from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Plan
from aicr.yamlio import read

DRA, OPERATOR, LABELER = "nvidia-dra-driver-gpu", "gpu-operator", "dra-node-labeler"
ENV = "NODE_LABEL_FOR_GPU_POD_EVICTION"
ANNOTATION = "aicr.run/gpu-operator-chart-version"
LABEL = {"dra_eviction_node_label": "k=v"}
MANIFEST = 'kind: A\nlabel: {{ index .Values "dra-node-labeler" "labelKey" }}\n'
OFF: dict[str, Any] = {
    "name": LABELER,
    "overrides": {"enabled": False},
    "manifestFiles": ["l.yaml"],
}


def world(*refs: str | dict[str, Any], dra: str = "", operator: str = "", **parts: Any) -> World:
    """A world of these components; *dra* and *operator* are their values files."""
    files = {"l.yaml": MANIFEST}
    names = [ref if isinstance(ref, str) else ref["name"] for ref in refs]
    for name in names:
        if name.startswith(DRA):
            files[f"components/{name}/values.yaml"] = dra
        elif name.startswith(OPERATOR):
            files[f"components/{name}/values.yaml"] = operator
    return World(*refs, entries={LABELER: {"local": True}}, files=files, **parts)


def values(made: Plan, name: str) -> dict[str, Any]:
    """Final values of one component."""
    return next(item.values for item in made.components if item.name == name)


@pytest.mark.covers("B10-41", "C-086", "C-087", "C-090")
def test_without_the_flag_neither_side_is_written_and_a_note_says_what_is_missing() -> None:
    """No selector, no environment, and one note, as the operator manages the driver (4.1, 4.2)."""
    made = world(DRA, OPERATOR, OFF).plan()
    assert "nodeSelector" not in values(made, DRA)["kubeletPlugin"]
    assert values(made, OPERATOR) == {}
    assert [item.name for item in made.components] == [OPERATOR, DRA]
    (note,) = made.notes
    assert note.startswith(
        f"Warning: {DRA}: upgrades of the GPU driver by {OPERATOR} will not evict"
    )
    assert "--dra-eviction-node-label" in note


def test_no_note_where_the_operator_does_not_manage_the_driver() -> None:
    """A driver of the node image is upgraded by other means (bundler spec 4.2)."""
    assert world(DRA, OPERATOR, operator="driver: {enabled: false}").plan().notes == []


@pytest.mark.covers("C-087")
def test_without_the_flag_the_paths_belong_to_the_user() -> None:
    """No override protection and no refusal of --dynamic (bundler spec 4.1)."""
    made = world(DRA, OPERATOR).plan(
        set_json=[f'{DRA}:kubeletPlugin.nodeSelector={{"a":"b"}}'],
        dynamic=[f"{OPERATOR}:driver.manager.env"],
    )
    assert values(made, DRA)["kubeletPlugin"]["nodeSelector"] == {"a": "b"}


@pytest.mark.covers("B10-42", "C-078", "C-079", "C-088")
def test_with_the_flag_both_sides_agree() -> None:
    """Merged into the selector; the first entry updated, its valueFrom dropped, later ones gone (4.3)."""
    env = (
        "driver:\n  manager:\n    env:\n    - {name: A, value: x}\n"
        f"    - {{name: {ENV}, valueFrom: {{fieldRef: {{fieldPath: a}}}}}}\n"
        f"    - {{name: {ENV}, value: old}}\n    - {{name: Z, value: z}}\n"
    )
    dra = "kubeletPlugin: {nodeSelector: {mine: 'yes', nvidia.com/dra-kubelet-plugin: 'true'}}"
    made = world(DRA, OPERATOR, OFF, dra=dra, operator=env).plan(**LABEL)
    assert values(made, DRA)["kubeletPlugin"]["nodeSelector"] == {"mine": "yes", "k": "v"}
    assert values(made, OPERATOR)["driver"]["manager"]["env"] == [
        {"name": "A", "value": "x"},
        {"name": ENV, "value": "k"},
        {"name": "Z", "value": "z"},
    ]
    ref = next(ref for ref in made.recipe["componentRefs"] if ref["name"] == LABELER)
    assert ref["overrides"] == {"enabled": True}
    assert [line.split(" ")[0] for line in made.changes] == [
        f"{OPERATOR}:driver.manager.env:",
        f"{DRA}:kubeletPlugin.nodeSelector:",
    ]


def test_the_default_key_stays_when_it_is_the_key() -> None:
    """Only a key of one's own takes the historical one's place (bundler spec 4.3)."""
    key = "nvidia.com/dra-kubelet-plugin"
    dra = f"kubeletPlugin: {{nodeSelector: {{{key}: 'old'}}}}"
    made = world(DRA, OPERATOR, dra=dra).plan(dra_eviction_node_label=f"{key}=true")
    assert values(made, DRA)["kubeletPlugin"]["nodeSelector"] == {key: "true"}


@pytest.mark.covers("C-077")
def test_the_contract_comes_after_every_override_and_wins() -> None:
    """A typed override at a managed path is overwritten, what lies beside it is kept (4.3)."""
    made = world(DRA, OPERATOR).plan(
        **LABEL,
        accelerated_node_selector=["pool=gpu"],
        set_json=[f'{OPERATOR}:driver.manager.env=[{{"name":"{ENV}","value":"mine"}}]'],
    )
    assert values(made, OPERATOR)["driver"]["manager"]["env"] == [{"name": ENV, "value": "k"}]
    assert values(made, DRA)["kubeletPlugin"]["nodeSelector"]["k"] == "v"


def test_the_labeler_is_rendered_with_the_label() -> None:
    """labelKey, labelValue and enabled are derived from the flag, and a note says so (4.5)."""
    made = world(DRA, OPERATOR, OFF).plan(**LABEL)
    assert values(made, LABELER) == {"enabled": True, "labelKey": "k", "labelValue": "v"}
    labeler = next(item for item in made.components if item.name == LABELER)
    assert labeler.manifests == [("l.yaml", "kind: A\nlabel: k\n")]
    assert any("k=v" in note and "--dra-eviction-node-label" in note for note in made.notes)


def test_an_override_that_the_contract_replaces_is_said_to_be_replaced() -> None:
    """A line that tells of a value must not be the last word when the value is another (4.3, 4.4)."""
    escaped = ANNOTATION.replace(".", "\\.")
    made = world({"name": OPERATOR, "version": "v1.2.3"}, DRA, OFF).plan(
        **LABEL,
        set=[
            f"{LABELER}:labelKey=x",
            f"{DRA}:controller.podAnnotations.{escaped}=mine",
        ],
    )
    assert f'{LABELER}:labelKey: "x" → "k" (--dra-eviction-node-label)' in made.changes
    replaced = f'controller.podAnnotations.{escaped}: "mine" → "v1.2.3"'
    assert f"{DRA}:{replaced} (the GPU operator's version)" in made.changes
    assert not any("kubeletPlugin.podAnnotations" in line for line in made.changes)


def test_without_a_labeler_the_nodes_must_carry_the_label() -> None:
    """Nothing in the bundle sets it, which the user must know (bundler spec 4.5)."""
    (note,) = world(DRA, OPERATOR).plan(**LABEL).notes
    assert "label every GPU node before you install" in note


@pytest.mark.covers("B10-45")
def test_openshift_gets_the_contract_and_no_labeler() -> None:
    """The labeler goes with the plain components only (bundler spec 4.5)."""
    made = world(f"{DRA}-ocp", f"{OPERATOR}-ocp", OFF).plan(**LABEL)
    assert values(made, f"{DRA}-ocp")["kubeletPlugin"]["nodeSelector"] == {"k": "v"}
    assert values(made, f"{OPERATOR}-ocp")["driver"]["manager"]["env"] == [
        {"name": ENV, "value": "k"}
    ]
    assert [item.name for item in made.components] == [f"{OPERATOR}-ocp", f"{DRA}-ocp"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"set": [f"{LABELER}:enabled=true"]}, "--dra-eviction-node-label"),
        ({"set": [f"{LABELER}:labelKey=x"]}, "only with --dra-eviction-node-label"),
        (
            {**LABEL, "set": [f"{DRA}:enabled=false", f"{LABELER}:enabled=true"]},
            "beside both gpu-operator and nvidia-dra-driver-gpu",
        ),
    ],
)
def test_the_labeler_cannot_be_had_without_its_reason(flags: dict[str, Any], words: str) -> None:
    """A request for it names what decides about it (bundler spec 0.5, 4.5)."""
    assert words in world(DRA, OPERATOR, OFF).refused(**flags).message


def test_the_labeler_can_be_left_out() -> None:
    """enabled=false wins; the nodes are then labelled by other means."""
    made = world(DRA, OPERATOR, OFF).plan(**LABEL, set=[f"{LABELER}:enabled=false"])
    assert LABELER not in [item.name for item in made.components]
    assert any("label every GPU node" in note for note in made.notes)


@pytest.mark.covers("C-080")
@pytest.mark.parametrize("off", [DRA, OPERATOR])
def test_nothing_is_written_unless_both_are_rendered(off: str) -> None:
    """One side alone has nobody to agree with (bundler spec 4.2)."""
    made = world(DRA, OPERATOR, OFF).plan(**LABEL, set=[f"{off}:enabled=false"])
    (left,) = made.components
    assert left.values == {}
    assert any("changes nothing" in note for note in made.notes)


@pytest.mark.covers("B10-43", "C-081")
@pytest.mark.parametrize(
    ("component", "path"),
    [
        (OPERATOR, "driver"),
        (OPERATOR, "driver.manager"),
        (OPERATOR, "driver.manager.env"),
        (DRA, "kubeletPlugin"),
        (DRA, "kubeletPlugin.nodeSelector"),
        (DRA, "kubeletPlugin.nodeSelector.k"),
    ],
)
def test_a_managed_path_cannot_be_left_to_the_installation(component: str, path: str) -> None:
    """Equal, above or below: the two sides could drift apart (bundler spec 4.6)."""
    error = world(DRA, OPERATOR, OFF).refused(**LABEL, dynamic=[f"{component}:{path}"])
    assert f"--dynamic {component}:{path} is not allowed" in error.message


@pytest.mark.parametrize("path", ["labelKey", "labelValue"])
def test_the_labelers_values_are_not_dynamic(path: str) -> None:
    """They come from the flag (bundler spec 4.6)."""
    error = world(DRA, OPERATOR, OFF).refused(**LABEL, dynamic=[f"{LABELER}:{path}"])
    assert path in error.message


@pytest.mark.covers("B10-44")
@pytest.mark.parametrize("text", ["key", "=v", "k=", "a=b=c", "a b=c", "k=v w", "-k=v", " "])
def test_the_flag_takes_exactly_one_label(text: str) -> None:
    """key=value of a label that a node can carry (bundler spec 1.2)."""
    error = world(DRA, OPERATOR).refused(dra_eviction_node_label=text)
    assert "--dra-eviction-node-label" in error.message


@pytest.mark.parametrize(
    ("dra", "operator", "words"),
    [
        ("kubeletPlugin: {nodeSelector: text}", "", "nodeSelector"),
        ("kubeletPlugin: [1]", "", "kubeletPlugin is a list"),
        (
            "",
            "driver: {manager: {env: text}}",
            "driver.manager.env of the GPU operator is a string",
        ),
        ("", "driver: {manager: [1]}", "driver.manager is a list"),
    ],
)
def test_values_of_another_shape_are_refused(dra: str, operator: str, words: str) -> None:
    """A selector that is no map, an environment that is no list (bundler spec 4.3)."""
    assert words in world(DRA, OPERATOR, dra=dra, operator=operator).refused(**LABEL).message


def test_the_driver_pods_carry_the_operators_version_in_any_case() -> None:
    """Not opt-in, and a user's own value of the key is not honoured (bundler spec 4.4)."""
    made = world(DRA, {"name": OPERATOR, "version": "v9.9.9"}).plan(
        set_json=[f'{DRA}:controller.podAnnotations={{"{ANNOTATION}":"mine","keep":"this"}}']
    )
    held = values(made, DRA)
    assert held["controller"]["podAnnotations"] == {ANNOTATION: "v9.9.9", "keep": "this"}
    assert held["kubeletPlugin"]["podAnnotations"] == {ANNOTATION: "v9.9.9"}


def test_on_openshift_the_subscription_channel_stands_for_the_version() -> None:
    """The operator comes by a channel there (bundler spec 4.4); without one nothing is written."""
    olm = {"name": f"{OPERATOR}-ocp-olm", "overrides": {"subscription": {"channel": "v25.3"}}}
    made = world(f"{DRA}-ocp", f"{OPERATOR}-ocp", olm).plan()
    annotations = values(made, f"{DRA}-ocp")["kubeletPlugin"]["podAnnotations"]
    assert annotations == {ANNOTATION: "v25.3"}
    assert values(world(f"{DRA}-ocp", f"{OPERATOR}-ocp").plan(), f"{DRA}-ocp") == {}


@pytest.mark.covers("C-082")
@pytest.mark.parametrize("path", ["controller", "kubeletPlugin.podAnnotations"])
def test_the_version_annotation_is_not_dynamic_either(path: str) -> None:
    """Any contract of this kind refuses to be moved to install time (components seed)."""
    assert "podAnnotations" in world(DRA, OPERATOR).refused(dynamic=[f"{DRA}:{path}"]).message


@pytest.mark.covers("C-083", "C-088", "C-089")
@pytest.mark.parametrize(
    "deployer", ["helm", "helmfile", "argocd", "argocd-helm", "flux", "terraform", "fleet"]
)
def test_the_contract_holds_under_every_deployer(deployer: str) -> None:
    """The same plan goes to all formats, and no cluster is asked (components seed)."""
    catalog = aicr.Catalog.builtin()
    recipe = aicr.resolve(
        catalog, aicr.Criteria(service="eks", accelerator="h100", intent="training", os="ubuntu")
    )
    options = BundleOptions(deployer=deployer, dra_eviction_node_label="example.com/dra=on")
    bundle = aicr.bundle(recipe, options)
    values = {item.name: item.values for item in bundle.plan.components}
    assert values[DRA]["kubeletPlugin"]["nodeSelector"] == {"example.com/dra": "on"}
    text = b"".join(content for content, _ in bundle.files.values()).decode()
    assert ENV in text
    assert "example.com/dra" in text
    recipe_yaml = read.load(bundle.files["recipe.yaml"][0].decode(), source="recipe.yaml")
    labeler = next(ref for ref in recipe_yaml["componentRefs"] if ref["name"] == LABELER)
    assert labeler["overrides"]["enabled"] is True
