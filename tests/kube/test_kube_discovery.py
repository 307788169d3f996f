"""Which kinds a server has, and what cannot be told (case G2)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.kube import fakeapi

from aicr.errors import NOT_FOUND, SERVICE_UNAVAILABLE, AicrError
from aicr.kube import discovery, kinds
from aicr.kube.discovery import Catalogue, Discovery
from aicr.kube.kinds import Resource
from aicr.kube.request import Request
from aicr.kube.timeouts import Timeouts

METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", False)
OLD = Resource("example.test", "v1alpha1", "widgets", "Widget", True, "widget", ("wd",))
BETA = Resource("example.test", "v1beta1", "gadgets", "Gadget", True, "gadget")


class Server:
    """Answers discovery from a list of resources; counts the questions."""

    def __init__(self, resources: list[Resource], *, aggregated: bool, stale: set[str]) -> None:
        self.resources = resources
        self.aggregated = aggregated
        self.stale = stale
        self.asked: list[str] = []

    async def fetch(self, asked: Request) -> bytes:
        """One answer."""
        self.asked.append(asked.path)
        return msgspec.json.encode(self._document(asked))

    def _document(self, asked: Request) -> dict[str, Any]:
        core = asked.path.startswith("/api/") or asked.path == "/api"
        mine = [found for found in self.resources if (found.group == "") == core]
        if asked.path in {"/api", "/apis"}:
            if self.aggregated:
                return fakeapi.aggregated(mine, self.stale)
            return fakeapi.legacy_root(mine, core, self.stale)
        group_version = asked.path.removeprefix("/apis/").removeprefix("/api/")
        if group_version in self.stale:
            raise AicrError(SERVICE_UNAVAILABLE, "error trying to reach service")
        return fakeapi.legacy_group(mine, group_version)


def catalogue(*more: Resource, aggregated: bool = True, stale: set[str] | None = None) -> Catalogue:
    """What a server with the built-in kinds, widgets and *more* has."""
    server = Server([*fakeapi.SERVED, *more], aggregated=aggregated, stale=stale or set())
    return asyncio.run(discovery.discover(server.fetch))


def refused(call: Any) -> AicrError:
    """The error that *call* must raise."""
    with pytest.raises(AicrError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("aggregated", [True, False])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pods", kinds.POD),
        ("pod", kinds.POD),
        ("po", kinds.POD),
        ("Pod", kinds.POD),
        ("v1/Pod", kinds.POD),
        ("deploy", kinds.DEPLOYMENT),
        ("deployments.apps", kinds.DEPLOYMENT),
        ("deployments.v1.apps", kinds.DEPLOYMENT),
        ("Deployment.apps", kinds.DEPLOYMENT),
        ("apps/v1/Deployment", kinds.DEPLOYMENT),
        ("wd", fakeapi.WIDGET),
        ("widgets.example.test", fakeapi.WIDGET),
        ("widgets.v1alpha1.example.test", OLD),
        ("example.test/v1alpha1/Widget", OLD),
        ("gadgets.example.test", BETA),
    ],
)
def test_a_name_is_read_as_kubectl_reads_it(
    name: str, expected: Resource, aggregated: bool
) -> None:
    """Plural, singular, short name, kind, with group and version; the preferred version first."""
    found = catalogue(OLD, BETA, aggregated=aggregated).named(name)
    assert (found.api_version, found.kind) == (expected.api_version, expected.kind)
    assert (found.plural, found.namespaced) == (expected.plural, expected.namespaced)


def test_the_core_group_is_asked_before_the_others() -> None:
    """``nodes`` are nodes, not their metrics."""
    found = catalogue(METRICS).named("nodes")
    assert found.kind == "Node"
    assert catalogue(METRICS).named("nodes.metrics.k8s.io").kind == "NodeMetrics"


@pytest.mark.parametrize("aggregated", [True, False])
def test_subresources_and_verbs_belong_to_their_resource(aggregated: bool) -> None:
    """Both discoveries give the same resource."""
    found = catalogue(aggregated=aggregated).kind("example.test/v1", "Widget")
    assert found == fakeapi.WIDGET


@pytest.mark.parametrize("aggregated", [True, False])
@pytest.mark.parametrize(
    ("api_version", "kind", "absent", "hint"),
    [
        ("example.test/v1", "Widgit", "kind", 'did you mean "Widget"?'),
        ("example.test/v2", "Widget", "version", "it serves example.test/v1"),
        ("exampel.test/v1", "Widget", "group", 'did you mean "example.test"?'),
        ("scheduling.run.ai/v2", "PodGroup", "group", "may not be installed"),
    ],
)
@pytest.mark.covers("G2")
def test_what_a_server_does_not_have_is_not_found(
    api_version: str, kind: str, absent: str, hint: str, aggregated: bool
) -> None:
    """NOT_FOUND says whether kind, version or group is absent."""
    error = refused(lambda: catalogue(aggregated=aggregated).kind(api_version, kind))
    assert (error.code, error.context["absent"]) == (NOT_FOUND, absent)
    assert hint in error.hint


@pytest.mark.parametrize("aggregated", [True, False])
@pytest.mark.parametrize("name", ["metrics.k8s.io/v1beta1/NodeMetrics", "NodeMetrics", "whatever"])
@pytest.mark.covers("G2")
def test_what_cannot_be_told_is_not_an_absence(name: str, aggregated: bool) -> None:
    """While a group is unreachable, a kind that could be in it is SERVICE_UNAVAILABLE."""
    known = catalogue(METRICS, aggregated=aggregated, stale={"metrics.k8s.io/v1beta1"})
    error = refused(lambda: known.named(name))
    assert error.code == SERVICE_UNAVAILABLE
    assert "metrics.k8s.io/v1beta1" in error.message
    assert "apiservices" in error.hint


@pytest.mark.parametrize("aggregated", [True, False])
def test_a_group_that_is_unreachable_does_not_hide_the_others(aggregated: bool) -> None:
    """Kinds elsewhere are found; a name with another group is absent for certain."""
    known = catalogue(METRICS, aggregated=aggregated, stale={"metrics.k8s.io/v1beta1"})
    assert known.named("pods") == known.kind("v1", "Pod")
    assert refused(lambda: known.named("nothing.apps")).code == NOT_FOUND


def test_a_legacy_group_that_went_between_two_questions_is_absent() -> None:
    """404 for a group version that the list of groups still had."""

    async def fetch(asked: Request) -> bytes:
        if asked.path == "/apis/example.test/v1":
            raise AicrError(NOT_FOUND, "404 page not found")
        server = Server(fakeapi.SERVED, aggregated=False, stale=set())
        return await server.fetch(asked)

    found = asyncio.run(discovery.discover(fetch))
    assert "example.test/v1" not in found.served
    assert found.unreachable == {}


def test_answers_are_kept_and_asked_again_when_old_or_shortly_after_a_miss() -> None:
    """A kind that is missing may just have been installed; a storm of misses is one question."""
    now = 0.0
    server = Server(list(fakeapi.SERVED), aggregated=True, stale=set())

    async def body() -> None:
        nonlocal now
        times = Timeouts()
        found = Discovery(server.fetch, clock=lambda: now, timeouts=times)
        await found.named("pods")
        await found.named("deploy")
        assert len(server.asked) == 2
        for _ in range(3):
            with pytest.raises(AicrError):
                await found.named("gadgets")
        assert len(server.asked) == 2
        server.resources.append(BETA)
        now += 3
        assert (await found.named("gadgets")).kind == "Gadget"
        assert len(server.asked) == 4
        now += 601
        await asyncio.gather(found.named("pods"), found.named("nodes"))
        assert len(server.asked) == 6
        found.forget()
        await found.named("pods")
        assert len(server.asked) == 8

    asyncio.run(body())


def test_a_document_without_kind_is_refused() -> None:
    """Before anything is asked."""
    server = Server([], aggregated=True, stale=set())
    found = Discovery(server.fetch, clock=lambda: 0.0, timeouts=Timeouts())
    for call in (found.kind("v1", ""), found.kind("", "Pod"), found.named("")):
        with pytest.raises(AicrError):
            asyncio.run(call)
    assert server.asked == []


def test_the_known_kinds_are_as_servers_serve_them() -> None:
    """The table that saves discovery agrees with itself."""
    assert kinds.WELL_KNOWN["apps/v1", "Deployment"] is kinds.DEPLOYMENT
    assert len({found.qualified for found in kinds.WELL_KNOWN.values()}) == len(kinds.WELL_KNOWN)
    for found in kinds.WELL_KNOWN.values():
        assert found.plural.startswith(found.kind.lower()[:4])
