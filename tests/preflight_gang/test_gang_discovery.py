"""Which gang a pod is in, and what its group says: native APIs and PodGroup CRDs."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.kube.fakeapi import SERVED, FakeApi, refuse
from tests.kube.loopback import cluster, refused, run
from tests.preflight_gang.builders import VOLCANO, VOLCANO_KEY, pod, pod_document

from aicr.errors import INVALID_REQUEST, NOT_FOUND, SERVICE_UNAVAILABLE, UNAUTHORIZED, AicrError
from aicr.kube.kinds import Resource
from aicr.preflight.gang import presets, resolver
from aicr.preflight.gang.expression import MinCount, compile_cel
from aicr.preflight.gang.groups import Discoverer, Group
from aicr.preflight.gang.pods import gang_pod
from aicr.preflight.gang_discovery import read_discovery

Document = dict[str, Any]
FATAL = (
    "failed to create gang discoverer resolver: failed to create default gang discoverer: "
    "kubernetes native gang API not available (requires K8s 1.35 Workload or K8s 1.36+ PodGroup)"
)


def served(group: str, version: str, plural: str, kind: str) -> Resource:
    """A namespaced kind."""
    return Resource(group, version, plural, kind, True, kind.lower())


NATIVE = "scheduling.k8s.io"
WORKLOAD = served(NATIVE, "v1alpha1", "workloads", "Workload")
POD_GROUP = served(NATIVE, "v1alpha2", "podgroups", "PodGroup")
BETA = served(NATIVE, "v1beta1", "podgroups", "PodGroup")
COMPOSITE = served(NATIVE, "v1alpha3", "compositepodgroups", "CompositePodGroup")
VOLCANO_KIND = served("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")


def api_with(*kinds: Resource) -> FakeApi:
    """A server that has these gang kinds besides the usual ones."""
    return FakeApi(resources=[*SERVED, *kinds])


def stored(kind: Resource, name: str, spec: Document) -> Document:
    """An object of namespace team-a."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": "team-a", "uid": f"uid-of-{name}"},
        "spec": spec,
    }


async def read(discoverer: Discoverer, document: Document, *, gang_id: str | None = None) -> Group:
    """The group of a pod."""
    anchor = await discoverer.locate(gang_pod(document))
    assert anchor is not None
    if gang_id is not None:
        assert anchor.gang_id == gang_id
    return await discoverer.read(anchor)


# Native


@pytest.mark.covers("P-008", "P-015", "P-016", "P11-11", "J13")
@pytest.mark.parametrize("kinds", [(), (COMPOSITE,)], ids=["neither", "only composites"])
def test_a_server_without_a_native_gang_api_is_refused_in_the_published_words(
    kinds: tuple[Resource, ...],
) -> None:
    """The process ends with this one line."""

    async def body() -> None:
        async with cluster(api_with(*kinds)) as (_, client):
            error = await refused(resolver.build_default(client, read_discovery({})))
            assert error.code == NOT_FOUND
            assert resolver.said(error) == FATAL
            assert "gangCoordination.enabled: false" in error.hint

    run(body())


def test_a_gang_api_that_cannot_be_asked_is_not_absent() -> None:
    """Could-not-tell is another error, so that nobody removes the configuration for it."""

    async def body() -> None:
        api = api_with(POD_GROUP)
        api.stale = {POD_GROUP.api_version}
        async with cluster(api) as (_, client):
            error = await refused(resolver.build_default(client, read_discovery({})))
            assert error.code == SERVICE_UNAVAILABLE
            assert "cannot tell whether the server has the native gang API" in resolver.said(error)

    run(body())


NATIVE_PODS = [
    pytest.param((POD_GROUP,), {"schedulingGroup": {"podGroupName": "g"}}, "g", id="1.36"),
    pytest.param((BETA, COMPOSITE), {"schedulingGroup": {"podGroupName": "g"}}, "g", id="1.37"),
    pytest.param((WORKLOAD,), {"workloadRef": {"name": "w", "podGroup": "g"}}, "w-g", id="1.35"),
    pytest.param((WORKLOAD,), {"workloadRef": {"name": "w"}}, "w", id="1.35 without podGroup"),
    pytest.param(
        (WORKLOAD, POD_GROUP),
        {"workloadRef": {"name": "w"}, "schedulingGroup": {"podGroupName": "g"}},
        "g",
        id="both, PodGroup wins",
    ),
    pytest.param((WORKLOAD,), {"schedulingGroup": {"podGroupName": "g"}}, None, id="not served"),
    pytest.param((POD_GROUP,), {"workloadRef": {"name": "w"}}, None, id="no longer served"),
    pytest.param((POD_GROUP,), {}, None, id="neither"),
    pytest.param((POD_GROUP,), {"schedulingGroup": {}}, None, id="empty"),
    pytest.param((POD_GROUP,), {"schedulingGroup": None}, None, id="null"),
]


@pytest.mark.covers("J13", "P11-73", "P-014", "P-091", "P-093", "P-095", "P-097")
@pytest.mark.parametrize(("kinds", "spec", "expected"), NATIVE_PODS)
def test_the_native_anchor_is_read_by_what_the_server_serves(
    kinds: tuple[Resource, ...], spec: Document, expected: str | None
) -> None:
    """Off the raw pod as it is admitted; never by version numbers (decision 25)."""

    async def body() -> None:
        async with cluster(api_with(*kinds)) as (_, client):
            found = await resolver.build(client, read_discovery({}))
            assert found.name == "kubernetes"
            anchor = found.anchor(gang_pod(pod_document("p", **spec)))
            wanted = None if expected is None else f"kubernetes-team-a-{expected}"
            assert (anchor and anchor.gang_id) == wanted

    run(body())


@pytest.mark.parametrize(
    ("kind", "spec", "anchor", "minimum", "reason"),
    [
        (POD_GROUP, {"schedulingPolicy": {"gang": {"minCount": 4}}}, {}, 4, ""),
        (BETA, {"schedulingPolicy": {"gang": {"minCount": 4.0}}}, {}, 4, ""),
        (POD_GROUP, {"schedulingPolicy": {"basic": {}}}, {}, None, "has no gang policy"),
        (
            POD_GROUP,
            {"schedulingPolicy": {"gang": {"minCount": "4"}}},
            {},
            None,
            "is no number: '4'",
        ),
        (
            WORKLOAD,
            {
                "podGroups": [
                    {"name": "a", "policy": {"gang": {"minCount": 2}}},
                    {"name": "g", "policy": {"gang": {"minCount": 3}}},
                ]
            },
            {"podGroup": "g"},
            3,
            "",
        ),
        (
            WORKLOAD,
            {"podGroups": [{"name": "a"}, {"name": "b", "policy": {"gang": {"minCount": 5}}}]},
            {},
            5,
            "",
        ),
        (WORKLOAD, {"podGroups": [{"name": "a"}]}, {"podGroup": "g"}, None, "no gang policy"),
    ],
    ids=["v1alpha2", "v1beta1", "basic", "text", "by part", "any part", "no such part"],
)
@pytest.mark.covers("P-096", "P-098")
def test_the_native_minimum_is_read_from_the_policy(
    kind: Resource, spec: Document, anchor: Document, minimum: int | None, reason: str
) -> None:
    """Anything that is no number is unknown, and said; the owner is the object."""

    async def body() -> None:
        api = api_with(kind)
        await api.store("ADDED", kind, stored(kind, "g", spec))
        where = (
            {"workloadRef": {"name": "g", **anchor}}
            if kind is WORKLOAD
            else {"schedulingGroup": {"podGroupName": "g"}}
        )
        async with cluster(api) as (_, client):
            discoverer = await resolver.build(client, read_discovery({}))
            found = await read(discoverer, pod_document("p", **where))
            assert (found.found, found.minimum) == (True, minimum)
            assert reason in found.reason
            assert bool(found.reason) == bool(reason)
            assert found.owner() == {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "name": "g",
                "uid": "uid-of-g",
            }

    run(body())


def test_an_absent_group_is_an_answer_and_a_forbidden_one_an_error() -> None:
    """Only the server may say that something is not there."""

    async def body() -> None:
        async with cluster(api_with(POD_GROUP)) as (api, client):
            discoverer = await resolver.build(client, read_discovery({}))
            document = pod_document("p", schedulingGroup={"podGroupName": "g"})
            found = await read(discoverer, document)
            assert (found.found, found.reason) == (False, "PodGroup team-a/g is not there")
            api.next("podgroups", refuse(403, "Forbidden", "cannot get"))
            error = await refused(read(discoverer, document))
            assert error.code == UNAUTHORIZED
            assert error.message == "failed to get PodGroup team-a/g minCount (check RBAC)"

    run(body())


@pytest.mark.parametrize("ancestors", [False, True])
def test_of_nested_groups_the_innermost_is_the_gang(ancestors: bool) -> None:
    """Those above come into the id only if configured (decision 25)."""

    async def body() -> None:
        api = api_with(BETA, COMPOSITE)
        gang = {"schedulingPolicy": {"gang": {"minCount": 4}}}
        parent = "parentCompositePodGroupName"
        await api.store("ADDED", BETA, stored(BETA, "g", {**gang, parent: "mid"}))
        await api.store("ADDED", COMPOSITE, stored(COMPOSITE, "mid", {parent: "top"}))
        await api.store("ADDED", COMPOSITE, stored(COMPOSITE, "top", {}))
        async with cluster(api) as (_, client):
            discoverer = await resolver.build(client, read_discovery({}), ancestors=ancestors)
            gang_id = "kubernetes-team-a-top-mid-g" if ancestors else "kubernetes-team-a-g"
            document = pod_document("p", schedulingGroup={"podGroupName": "g"})
            found = await read(discoverer, document, gang_id=gang_id)
            assert (found.kind, found.minimum) == ("PodGroup", 4)
            if ancestors:
                circle = stored(COMPOSITE, "top", {parent: "mid"})
                await api.store("MODIFIED", COMPOSITE, circle)
                error = await refused(discoverer.locate(gang_pod(document)))
                assert "have no end: mid > top > mid" in error.message

    run(body())


# PodGroup CRDs


@pytest.mark.covers("P-101", "P-102", "P-103", "P-108", "P11-67", "P11-68")
@pytest.mark.parametrize(
    ("annotations", "labels", "expected"),
    [
        ({"first": "pg1"}, {"l": "x"}, "pg1"),
        ({"second": "pg2"}, {"l": "x"}, "pg2"),
        ({"first": "pg1", "second": "pg2"}, {}, "pg1"),
        ({"first": ""}, {"l": "x"}, "x"),
        ({}, {"l": ""}, None),
        (None, None, None),
    ],
    ids=["annotation", "second annotation", "order", "empty annotation", "empty label", "none"],
)
def test_annotations_come_before_labels_and_empty_values_do_not_count(
    annotations: Document | None, labels: Document | None, expected: str | None
) -> None:
    """In the order of the configured keys."""

    async def body() -> None:
        settings = {**VOLCANO, "annotationKeys": ["first", "second"], "labelKeys": ["l"]}
        async with cluster(api_with(VOLCANO_KIND)) as (_, client):
            discoverer = await resolver.build(client, read_discovery(settings))
            document = pod_document("p")
            document["metadata"] |= {"annotations": annotations, "labels": labels}
            anchor = discoverer.anchor(gang_pod(document))
            wanted = None if expected is None else f"volcano-team-a-{expected}"
            assert (anchor and anchor.gang_id) == wanted

    run(body())


@pytest.mark.covers("P-104", "P-105", "P-106", "P-107", "P-111", "P11-10")
def test_the_minimum_is_what_the_expression_says_by_default_spec_min_member() -> None:
    """The PodGroup is fetched, and its owner reference is what the server calls it."""

    async def body() -> None:
        api = api_with(VOLCANO_KIND)
        await api.store("ADDED", VOLCANO_KIND, stored(VOLCANO_KIND, "train", {"minMember": 3}))
        async with cluster(api) as (_, client):
            settings = read_discovery(VOLCANO)
            assert settings.min_count_expr == "podGroup.spec.minMember"
            discoverer = await resolver.build(client, settings)
            found = await read(discoverer, pod_document("p"), gang_id="volcano-team-a-train")
            assert found.minimum == 3
            assert found.owner() == {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "name": "train",
                "uid": "uid-of-train",
            }

    run(body())


@pytest.mark.covers("P-092", "P-109", "P-110", "P-113")
def test_the_presets_find_their_schedulers_pods() -> None:
    """Volcano by annotation; OSMO with KAI by the label alone; KAI alone not at all."""

    async def body() -> None:
        kai = served("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup")
        async with cluster(api_with(kai, VOLCANO_KIND, POD_GROUP)) as (_, client):
            build = resolver.build
            osmo = await build(client, read_discovery(presets.preset("osmo-with-kai")))
            volcano = await build(client, read_discovery(presets.preset("volcano")))
            native = await build(client, read_discovery(presets.preset("kubernetes")))
            run_ai = await build(client, read_discovery(presets.preset("run-ai")))
            document = pod_document("p", group="")
            document["metadata"]["labels"] = {"osmo.group_uuid": "myjob"}
            anchor = osmo.anchor(gang_pod(document))
            assert anchor is not None
            assert anchor.gang_id == "osmo-with-kai-team-a-myjob"
            marked = pod_document("p", group="")
            marked["metadata"]["annotations"] = {VOLCANO_KEY: "pg"}
            anchor = volcano.anchor(gang_pod(marked))
            assert anchor is not None
            assert anchor.gang_id == "volcano-team-a-pg"
            # KAI marks a pod only after its admission, and Grove's groups are nested.
            grove = pod_document("p", group="")
            grove["metadata"]["labels"] = {"grove.io/podgang": "g", "grove.io/podclique": "c"}
            for discoverer in (osmo, volcano, native, run_ai):
                assert discoverer.anchor(gang_pod(grove)) is None
            for discoverer in (osmo, volcano, native, run_ai):
                assert discoverer.anchor(pod("p", group="")) is None

    run(body())
    with pytest.raises(AicrError) as caught:
        presets.preset("volcanoo")
    assert caught.value.hint == "did you mean volcano?"


@pytest.mark.covers("P-150")
def test_a_podgroup_kind_that_is_not_served_is_said_at_once() -> None:
    """With the GVR, and whether the CRD may be missing; an API that is away is another error."""

    async def body() -> None:
        async with cluster(api_with()) as (_, client):
            error = await refused(resolver.build_default(client, read_discovery(VOLCANO)))
            assert error.code == NOT_FOUND
            assert (
                'gangDiscovery.podGroupGVR validation failed: resource "scheduling.volcano.sh/'
                'v1beta1, Resource=podgroups" not found (is the CRD installed?): '
            ) in resolver.said(error)
        api = api_with(VOLCANO_KIND)
        api.stale = {VOLCANO_KIND.api_version}
        async with cluster(api) as (_, client):
            error = await refused(resolver.build_default(client, read_discovery(VOLCANO)))
            assert error.code == SERVICE_UNAVAILABLE

    run(body())


@pytest.mark.covers("P11-9")
def test_a_block_that_says_too_little_is_refused() -> None:
    """A name alone is neither native nor a PodGroup."""

    async def body() -> None:
        async with cluster(api_with(VOLCANO_KIND)) as (_, client):
            settings = read_discovery({"name": "volcano"})
            error = await refused(resolver.build(client, settings))
            assert error.message == (
                'invalid gangDiscovery config: name "volcano" requires annotationKeys/labelKeys, '
                "podGroupGVR, and minCountExpr"
            )

    run(body())


@pytest.mark.covers("P11-71", "P-157")
def test_a_size_that_cannot_be_told_is_an_error_to_be_tried_again() -> None:
    """Text, a missing field and a forbidden read; an absent group is an answer."""

    async def body() -> None:
        api = api_with(VOLCANO_KIND)
        async with cluster(api) as (_, client):
            discoverer = await resolver.build(client, read_discovery(VOLCANO))
            found = await read(discoverer, pod_document("p"))
            assert not found.found
            failed = "failed to get PodGroup team-a/train minMember (check RBAC)"
            assert found.reason == f"{failed}: it is not there"
            await api.store(
                "ADDED", VOLCANO_KIND, stored(VOLCANO_KIND, "train", {"minMember": "3"})
            )
            error = await refused(read(discoverer, pod_document("p")))
            assert resolver.said(error) == (
                f'{failed}: minCountExpr "podGroup.spec.minMember" returned non-numeric type string'
            )
            api.next("podgroups", refuse(403, "Forbidden", "cannot get"))
            error = await refused(read(discoverer, pod_document("p")))
            assert (error.code, error.message) == (UNAUTHORIZED, failed)

    run(body())


# Expressions

GROUP: Document = {
    "spec": {
        "minMember": 3,
        "fraction": 2.9,
        "whole": 2.0,
        "text": "3",
        "yes": True,
        "nothing": None,
        "list": [{"n": 1}, {"n": 2}],
        "zero": 0,
    }
}


@pytest.mark.covers("P11-72", "P-105")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("podGroup.spec.minMember", 3),
        (" podGroup . spec . minMember ", 3),
        ("podGroup.spec.whole", 2),
        ("podGroup.spec.fraction", 2),
        ("podGroup.spec.zero", 0),
        ("podGroup.spec.minMember * 2 - 1", 5),
        ("has(podGroup.spec.other) ? podGroup.spec.other : 1", 1),
        ("size(podGroup.spec.list)", 2),
        ('podGroup["spec"]["minMember"]', 3),
        ("-1", -1),
    ],
)
def test_expressions_give_whole_numbers(expression: str, expected: int) -> None:
    """A chain of fields without CEL, the rest with it; fractions are cut off."""
    assert MinCount(expression).of(GROUP) == expected


@pytest.mark.covers("P11-71")
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("podGroup.spec.text", "returned non-numeric type string"),
        ("podGroup.spec.yes", "returned non-numeric type bool"),
        ("podGroup.spec.nothing", "returned non-numeric type null_type"),
        ("podGroup.spec.list", "returned non-numeric type list"),
        ("podGroup.spec", "returned non-numeric type map"),
        ("uint(3)", "returned non-numeric type uint"),
        ("1.0 / 0.0", "returned inf, which is no size"),
        ("podGroup.spec.other", "failed to evaluate minCountExpr"),
        ("podGroup.spec.text.more", "failed to evaluate minCountExpr"),
        ("podGroup.spec.list[9].n", "failed to evaluate minCountExpr"),
    ],
)
def test_what_is_no_number_is_an_error(expression: str, message: str) -> None:
    """With the expression in it."""
    with pytest.raises(AicrError) as caught:
        MinCount(expression).of(GROUP)
    assert caught.value.code == INVALID_REQUEST
    assert message in caught.value.message
    assert f'minCountExpr "{expression}"' in caught.value.message


@pytest.mark.covers("P11-13")
@pytest.mark.parametrize("expression", ["podGroup.spec.(", "pg.spec.x", "", "podGroup.spec.true"])
def test_a_wrong_expression_is_refused_when_it_is_compiled(expression: str) -> None:
    """Syntax, and variables that there are not; wrong fields show only with an object."""
    with pytest.raises(AicrError) as caught:
        MinCount(expression)
    assert caught.value.message == f'failed to compile minCountExpr "{expression}"'
    assert caught.value.__cause__ is not None
    assert "\n" not in str(caught.value)


def test_a_chain_of_fields_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else says which extra it needs."""
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    assert MinCount("podGroup.spec.minMember").of(GROUP) == 3
    with pytest.raises(AicrError) as caught:
        MinCount("podGroup.spec.minMember + 1")
    assert 'pip install "aicr[cel]"' in caught.value.hint
    with pytest.raises(AicrError):
        compile_cel("podGroup.spec.minMember")
