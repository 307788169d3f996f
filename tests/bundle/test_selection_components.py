"""Which components a bundle holds, and what is said about those it leaves out."""

from __future__ import annotations

from typing import Any, cast

import pytest

from aicr import Catalog, Criteria, resolve
from aicr.bundle.api import make_bundle
from aicr.bundle.options import BundleOptions
from aicr.bundle.overrides import Override, parse_overrides
from aicr.bundle.selection import (
    FILTER_EXCLUDES,
    OVERRIDE_REMOVED,
    RECIPE_DISABLES,
    Selection,
    check_present,
    select,
)
from aicr.catalog.types import ComponentRef
from aicr.errors import INVALID_REQUEST, AicrError
from aicr.recipe.types import RecipeResult
from aicr.yamlio import read


def ref(name: str, *dependencies: str, enabled: bool = True) -> ComponentRef:
    """A component ref."""
    made: ComponentRef = {"name": name, "type": "Helm"}
    if dependencies:
        made["dependencyRefs"] = list(dependencies)
    if not enabled:
        made["overrides"] = {"enabled": False}
    return made


def recipe(*refs: ComponentRef, **metadata: Any) -> RecipeResult:
    """A recipe of these refs."""
    return cast("RecipeResult", {"componentRefs": list(refs), "metadata": metadata})


def overrides(*texts: str, json: bool = False) -> list[Override]:
    """Overrides whose key is the component's name."""
    found, _ = parse_overrides(
        scalars=() if json else texts, files=(), jsons=texts if json else (), read_file=None
    )
    for override in found:
        override.component = override.key
    return found


def chosen(made: RecipeResult, *texts: str) -> Selection:
    """Select with `--set` switches."""
    return select(made, overrides(*texts))


@pytest.mark.covers("B10-1")
@pytest.mark.parametrize("made", [{}, {"componentRefs": []}, {"componentRefs": None}])
def test_a_recipe_without_components_is_refused(made: dict[str, Any]) -> None:
    """There is nothing to bundle."""
    with pytest.raises(AicrError, match="no component references") as caught:
        select(cast("RecipeResult", made), [])
    assert caught.value.code == INVALID_REQUEST


def test_a_disabled_component_is_left_out_with_its_reason() -> None:
    """The recipe's own switch and the flag are told apart."""
    selection = chosen(recipe(ref("a"), ref("b", enabled=False), ref("c")), "c:enabled=false")
    assert [kept["name"] for kept in selection.refs] == ["a"]
    assert selection.removed == {"b": RECIPE_DISABLES, "c": OVERRIDE_REMOVED}


@pytest.mark.parametrize("text", ["1", "t", "T", "true", "TRUE", "True"])
def test_switching_on_what_is_on_changes_nothing(text: str) -> None:
    """Every spelling that Go reads as true is fine."""
    selection = chosen(recipe(ref("a")), f"a:enabled={text}")
    assert (selection.removed, len(selection.refs)) == ({}, 1)


@pytest.mark.parametrize("text", ["0", "f", "F", "false", "FALSE", "False"])
def test_every_go_spelling_of_false_switches_off(text: str) -> None:
    """The set of spellings is that of ParseBool."""
    assert chosen(recipe(ref("a"), ref("b")), f"a:enabled={text}").removed == {
        "a": OVERRIDE_REMOVED
    }


@pytest.mark.covers("B10-20")
@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "", "tRUE", "null", " true", "2", "y"])
def test_other_spellings_of_a_switch_are_refused(text: str) -> None:
    """A misread switch would ship or drop a component by accident."""
    with pytest.raises(AicrError, match="invalid --set enabled value") as caught:
        chosen(recipe(ref("a")), f"a:enabled={text}")
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.covers("B10-19", "R11-51", "C-072")
def test_what_the_recipe_disables_cannot_be_enabled_for_one_bundle() -> None:
    """Its values were never resolved for use; the message names the component and the flag."""
    with pytest.raises(AicrError) as caught:
        chosen(recipe(ref("a"), ref("b", enabled=False)), "b:enabled=true")
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message == (
        'component "b" is disabled by the recipe and cannot be re-enabled with --set b:enabled=true'
    )


def test_switching_off_what_the_recipe_disables_is_allowed() -> None:
    """The one override of an absent component that means something harmless."""
    assert chosen(recipe(ref("a"), ref("b", enabled=False)), "b:enabled=false").removed == {
        "b": RECIPE_DISABLES
    }


def test_a_bundle_of_nothing_is_refused() -> None:
    """At least one component has to remain."""
    with pytest.raises(AicrError, match="recipe has no enabled components after filtering"):
        chosen(recipe(ref("a")), "a:enabled=false")


def test_order_passes_through_what_is_left_out() -> None:
    """A dependent waits for what the removed component waited for, at any depth."""
    selection = chosen(
        recipe(
            ref("cert-manager"),
            ref("nfd", "cert-manager"),
            ref("middle", "nfd", enabled=False),
            ref("gpu-operator", "middle", "other"),
            ref("other"),
        ),
        "nfd:enabled=false",
    )
    by_name = {kept["name"]: kept for kept in selection.refs}
    assert by_name["gpu-operator"]["dependencyRefs"] == ["cert-manager", "other"]


def test_a_dependency_that_leads_nowhere_disappears() -> None:
    """No ref of a bundle names a component that is not in it."""
    selection = chosen(recipe(ref("a"), ref("b", "a")), "a:enabled=false")
    assert selection.refs == [{"name": "b", "type": "Helm"}]


def test_untouched_refs_keep_the_order_of_their_dependencies() -> None:
    """Only refs that lose a dependency are rewritten, and the input never is."""
    made = recipe(ref("a"), ref("b"), ref("c", "b", "a"), ref("d", "a"))
    selection = chosen(made, "d:enabled=false")
    assert selection.refs[2]["dependencyRefs"] == ["b", "a"]
    assert made == recipe(ref("a"), ref("b"), ref("c", "b", "a"), ref("d", "a"))


@pytest.mark.parametrize(
    ("refs", "message"),
    [
        ([ref("a", "zz")], 'component "a" references unknown dependency "zz"'),
        ([ref("a", "b"), ref("b", "c"), ref("c", "a")], "circular dependency detected: [a b c a]"),
        ([ref("a"), ref("a")], 'duplicate component ref name "a"'),
    ],
)
def test_a_broken_graph_is_refused(refs: list[ComponentRef], message: str) -> None:
    """Unknown edges, circles and double names are errors of the recipe."""
    with pytest.raises(AicrError) as caught:
        select(recipe(*refs), [])
    assert message in str(caught.value)


@pytest.mark.covers("B10-18", "B8")
@pytest.mark.parametrize("json", [False, True])
@pytest.mark.parametrize("reason", [RECIPE_DISABLES, OVERRIDE_REMOVED])
def test_an_override_of_an_absent_component_is_refused_with_the_reason(
    reason: str, json: bool
) -> None:
    """An override that cannot take effect is never dropped in silence."""
    with pytest.raises(AicrError) as caught:
        check_present(overrides("foo:x=1", json=json), {"foo": reason})
    flag = "--set-json" if json else "--set"
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message == (
        f'{flag} foo:x cannot take effect: component "foo" is not in the generated bundle because '
        f"{reason}. Drop the override, or keep the component in the bundle"
    )


def test_the_first_absent_component_in_key_order_is_reported_scalars_first() -> None:
    """The report does not depend on the order of flags."""
    removed = {"a": RECIPE_DISABLES, "b": RECIPE_DISABLES, "c": RECIPE_DISABLES}
    found = [*overrides("a:x=1", json=True), *overrides("c:x=1", "b:x=1")]
    with pytest.raises(AicrError, match="--set b:x"):
        check_present(found, removed)


def test_leaving_out_the_gpu_operator_on_nodes_without_driver_is_worth_a_note() -> None:
    """Somebody else has to bring the driver then."""
    refs = [ref("a"), ref("gpu-operator")]
    (note,) = chosen(recipe(*refs, gpuDriverState="absent"), "gpu-operator:enabled=false").notes
    assert "no GPU driver" in note
    preinstalled = recipe(*refs, gpuDriverState="preinstalled")
    assert chosen(preinstalled, "gpu-operator:enabled=false").notes == []
    assert chosen(recipe(*refs, gpuDriverState="absent")).notes == []


REFS = (ref("a"), ref("b", "a"), ref("c", "b"), ref("off", enabled=False))


def test_a_filter_names_what_the_bundle_holds() -> None:
    """The rest is left out with its reason, and order goes through it (bundler spec 0.4, F1)."""
    found = select(recipe(*REFS), [], bundlers=("c", "a", "a"))
    assert [each["name"] for each in found.refs] == ["a", "c"]
    assert found.refs[1]["dependencyRefs"] == ["a"]
    assert found.removed == {"b": FILTER_EXCLUDES, "off": RECIPE_DISABLES}


def test_an_empty_filter_is_no_filter() -> None:
    """Nothing was asked for, so nothing is left out."""
    assert len(select(recipe(*REFS), [], bundlers=()).refs) == 3


@pytest.mark.parametrize(
    ("bundlers", "switches", "message"),
    [
        (("x",), (), 'unknown component "x" in bundlers filter; recipe declares: a, b, c, off'),
        (("",), (), 'unknown component "" in bundlers filter; recipe declares: a, b, c, off'),
        (
            ("off",),
            (),
            'component "off" is disabled and cannot be selected via the bundlers filter',
        ),
        (
            ("a", "b"),
            ("b:enabled=false",),
            'component "b" is disabled and cannot be selected via the bundlers filter: '
            f"{OVERRIDE_REMOVED}",
        ),
        (
            ("a",),
            ("b:enabled=true",),
            f'component "b" cannot be enabled with --set b:enabled=true: {FILTER_EXCLUDES}',
        ),
    ],
    ids=["unknown", "blank", "disabled", "switched off", "switched on but left out"],
)
def test_a_filter_that_cannot_take_effect_is_refused(
    bundlers: tuple[str, ...], switches: tuple[str, ...], message: str
) -> None:
    """The message names the component and what the recipe declares (bundler spec 0.4)."""
    with pytest.raises(AicrError) as caught:
        select(recipe(*REFS), overrides(*switches), bundlers=bundlers)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message == message


def test_an_override_of_what_a_filter_leaves_out_is_refused() -> None:
    """With the filter as the reason (bundler spec 0.5)."""
    found = select(recipe(*REFS), [], bundlers=("a",))
    with pytest.raises(AicrError, match="because the bundlers filter excludes it"):
        check_present(overrides("b:x=1"), found.removed)


def test_a_component_switched_off_may_be_left_out_as_well() -> None:
    """Two ways of saying the same."""
    found = select(recipe(*REFS), overrides("b:enabled=false"), bundlers=("a",))
    assert [each["name"] for each in found.refs] == ["a"]


@pytest.mark.parametrize(
    ("mode", "needed"),
    [
        ("disabled", ()),
        ("customer-managed", ("slinky-slurm",)),
        (
            "aicr-provided",
            (
                "slinky-slurm",
                "mariadb-operator-crds",
                "mariadb-operator",
                "slurm-accounting-mariadb",
            ),
        ),
    ],
)
def test_a_filter_must_keep_what_the_accounting_mode_needs(
    mode: str, needed: tuple[str, ...]
) -> None:
    """Accounting that was promised would lose its database (bundler spec 0.6)."""
    names = (
        *("mariadb-operator", "mariadb-operator-crds", "slinky-slurm", "slurm-accounting-mariadb"),
        "other",
    )
    made = recipe(*(ref(name) for name in names))
    made["configuration"] = {"slurm": {"accounting": {"mode": mode}}}
    for name in names:
        wanted = tuple(each for each in names if each != name)
        if name in needed:
            with pytest.raises(AicrError, match=f'leaves out component "{name}", which') as caught:
                select(made, [], bundlers=wanted)
            assert "configuration.slurm.accounting.mode" in caught.value.message
        else:
            assert len(select(made, [], bundlers=wanted).refs) == 4


def test_the_node_labeler_is_asked_for_by_its_flag_alone() -> None:
    """Named in a filter without the opt-in it is refused, not dropped (bundler spec 4.5)."""
    made = recipe(
        ref("gpu-operator"), ref("nvidia-dra-driver-gpu"), ref("dra-node-labeler", enabled=False)
    )
    names = ("gpu-operator", "nvidia-dra-driver-gpu", "dra-node-labeler")
    with pytest.raises(AicrError, match="--dra-eviction-node-label"):
        select(made, [], bundlers=names)
    assert len(select(made, [], bundlers=names, dra_eviction=True).refs) == 3
    # Without the driver there is nothing to label nodes for.
    with pytest.raises(AicrError, match="cannot be selected via the bundlers filter"):
        select(made, [], bundlers=("gpu-operator", "dra-node-labeler"), dra_eviction=True)


def test_leaving_the_gpu_operator_out_where_nodes_have_no_driver_is_worth_a_word() -> None:
    """By filter as by switch (bundler spec 0.4)."""
    made = recipe(ref("a"), ref("gpu-operator"), gpuDriverState="absent")
    (note,) = select(made, [], bundlers=("a",)).notes
    assert "no GPU driver" in note


def test_a_bundle_tells_which_components_it_was_asked_for() -> None:
    """The filter reaches the folders and bundle-info.yaml (bundler spec 2.10)."""
    found = resolve(Catalog.builtin(), Criteria(service="eks", accelerator="h100", os="ubuntu"))
    bundle = make_bundle(found, BundleOptions(bundlers=["nfd", "cert-manager"]))
    assert [each.name for each in bundle.plan.components] == ["cert-manager", "nfd"]
    info = read.load(bundle.files["bundle-info.yaml"][0].decode(), source="bundle-info.yaml")
    assert info["build"]["settings"]["components"] == ["cert-manager", "nfd"]
    assert {each["component"] for each in info["layout"]["releases"]} == {"cert-manager", "nfd"}
