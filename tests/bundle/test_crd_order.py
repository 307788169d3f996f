"""Every custom resource has its CRD earlier, or the bundle is not made."""

from __future__ import annotations

from typing import Any

import pytest
from tests.bundle.sample_plans import chart, component

from aicr.bundle import crd_order, layout, objects
from aicr.bundle.chart_facts import ChartFacts
from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Component, Plan
from aicr.errors import AicrError

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foos.example.com
spec:
  group: example.com
  names:
    plural: foos
    kind: Foo
  scope: Namespaced
"""
FOO = "apiVersion: example.com/v1\nkind: Foo\nmetadata:\n  name: one\n"


def plan_of(*components: Component, deployer: str = "flux", **flags: Any) -> Plan:
    """A plan for a deployer."""
    return Plan(
        components=list(components),
        notes=[],
        recipe={},
        deployer=deployer,
        options=BundleOptions(deployer=deployer, **flags),
    )


def check(plan: Plan) -> list[str]:
    """The notes of the check over a plan."""
    return crd_order.check(plan, layout.folders(plan))


def user(**ref: Any) -> Component:
    """A chart whose post-manifest is a Foo."""
    return chart("user", manifests=[("foo.yaml", FOO)], **ref)


PROVIDER = component("maker", manifests=[("crd.yaml", CRD)])


@pytest.mark.covers("F5")
@pytest.mark.parametrize("deployer", ["argocd", "argocd-helm", "flux", "helmfile", "terraform"])
def test_a_custom_resource_beside_its_crd_is_refused(deployer: str) -> None:
    """Nothing makes the CRD come first when both are installed side by side."""
    with pytest.raises(AicrError) as caught:
        check(plan_of(PROVIDER, user(), deployer=deployer))
    assert caught.value.code == "INVALID_REQUEST"
    assert "Foo" in caught.value.message
    assert "add maker to dependencyRefs of user" in caught.value.hint


@pytest.mark.covers("F5")
@pytest.mark.parametrize("deployer", ["flux", "helm", "argocd"])
def test_a_dependency_makes_it_right_directly_or_through_another(deployer: str) -> None:
    """The edge may lead through other components."""
    assert check(plan_of(PROVIDER, user(dependencyRefs=["maker"]), deployer=deployer)) == []
    middle = chart("middle", dependencyRefs=["maker"])
    made = plan_of(PROVIDER, middle, user(dependencyRefs=["middle"]), deployer=deployer)
    assert check(made) == []


@pytest.mark.covers("F5")
@pytest.mark.parametrize(
    ("deployer", "flags"), [("helm", {}), ("fleet", {}), ("flux", {"serial": True})]
)
def test_where_folders_come_one_after_another_the_order_is_enough(
    deployer: str, flags: dict[str, Any]
) -> None:
    """Numbers decide there; a CRD that comes later is refused all the same."""
    assert check(plan_of(PROVIDER, user(), deployer=deployer, **flags)) == []
    with pytest.raises(AicrError):
        check(plan_of(user(), PROVIDER, deployer=deployer, **flags))


def test_within_a_component_the_phases_are_the_order() -> None:
    """pre before primary before post."""
    good = chart("x", pre_manifests=[("crd.yaml", CRD)], manifests=[("foo.yaml", FOO)])
    assert check(plan_of(good)) == []
    bad = chart("x", pre_manifests=[("foo.yaml", FOO)], manifests=[("crd.yaml", CRD)])
    with pytest.raises(AicrError) as caught:
        check(plan_of(bad))
    assert "move the objects to manifestFiles" in caught.value.hint


def test_a_crd_and_its_resource_in_one_release_are_refused() -> None:
    """helm looks all kinds up before it creates anything."""
    both = component("x", manifests=[("crd.yaml", CRD), ("foo.yaml", FOO)])
    with pytest.raises(AicrError, match="first install fails"):
        check(plan_of(both, deployer="helm"))


def test_a_kind_that_nothing_brings_is_the_clusters_business() -> None:
    """The cluster may serve it already."""
    assert check(plan_of(user())) == []


def facts(crds: set[str], custom: set[str]) -> ChartFacts:
    """Facts of a chart at hand."""
    made = ChartFacts()
    made.crds, made.custom = crds, custom
    return made


def test_the_crds_of_a_chart_at_hand_count() -> None:
    """Both what it brings and what it uses of others; its own mix is its authors' business."""
    maker = chart("maker")
    maker.facts = facts({"example.com/Foo"}, {"example.com/Foo"})
    with pytest.raises(AicrError, match="folder 003-user-post"):
        check(plan_of(maker, user()))
    other = chart("other")
    other.facts = facts(set(), {"example.com/Foo"})
    with pytest.raises(AicrError, match="folder 002-other"):
        check(plan_of(maker, other))
    assert check(plan_of(maker)) == []


def test_a_chart_that_is_not_at_hand_but_known_to_bring_the_group_is_a_note() -> None:
    """Evidence about published charts is enough for words, not for a refusal."""
    policy = "apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata:\n  name: i\n"
    lone = chart("user", manifests=[("i.yaml", policy)])
    (note,) = check(plan_of(chart("cert-manager"), lone))
    assert "Issuer (cert-manager.io)" in note
    assert "cert-manager" in note
    after = chart("user", manifests=[("i.yaml", policy)], dependencyRefs=["cert-manager"])
    assert check(plan_of(chart("cert-manager"), after)) == []
    assert check(plan_of(chart("cert-manager"), lone, deployer="helm")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (FOO, {"example.com/Foo"}),
        ("# c\n---\n\n---\n" + FOO, {"example.com/Foo"}),
        ("kind: Foo # c\napiVersion: 'example.com/v1'\n", {"example.com/Foo"}),
        ('{"apiVersion": "example.com/v1", "kind": "Foo"}\n', {"example.com/Foo"}),
        (
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: example.com/v1\n  kind: Foo\n",
            {"example.com/Foo"},
        ),
        ("apiVersion: v1\nkind: ConfigMap\ndata:\n  x: |\n    kind: Foo\n", set()),
        ("apiVersion: apps/v1\nkind: Deployment\n", set()),
        ("apiVersion: v1\nkind: ConfigMap\ndata:\n  x: |\n    ---\n    kind: Foo\n", set()),
        ("kind: Foo\n", set()),
        ("", set()),
        ("a: [\n", set()),
    ],
)
def test_kinds_are_read_from_any_spelling(text: str, found: set[str]) -> None:
    """Block, flow, lists, comments and block scalars."""
    assert objects.custom_types(text) == found


@pytest.mark.parametrize(
    "text",
    [
        CRD,
        CRD.replace("example.com\n  names", '"example.com"\n  names'),
        '{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",'
        '"spec":{"group":"example.com","names":{"kind":"Foo"}}}',
        FOO + "---\n" + CRD,
    ],
)
def test_what_a_crd_defines_is_read_from_any_spelling(text: str) -> None:
    """Group and kind, whatever the order of keys."""
    assert objects.defined_types(text) == {"example.com/Foo"}


def test_the_name_of_an_object_is_that_of_its_metadata() -> None:
    """Not of a label that is called name."""
    text = "apiVersion: v1\nkind: A\nmetadata:\n  labels:\n    name: no\n  name: yes-it-is\n"
    assert [head.name for head in objects.heads(text)] == ["yes-it-is"]


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ("metadata: {name: x, annotations: {}}", "x"),
        ("metadata:\n    labels: {}\n    name: x", "x"),
        ('"metadata":\n  "name": x', "x"),
        ("metadata:\n  generateName: x-", ""),
        ("metadata: {{ no yaml", ""),
    ],
)
def test_a_name_is_found_however_it_is_written(metadata: str, name: str) -> None:
    """Charts write block and flow style, and any indentation; what has no name is still an object."""
    [head] = objects.heads(f"apiVersion: batch/v1\nkind: Job\n{metadata}\n")
    assert (head.type, head.name) == ("batch/Job", name)
