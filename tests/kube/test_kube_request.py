"""Paths, queries and bodies: what is asked of an API server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aicr.errors import INVALID_REQUEST, AicrError
from aicr.kube import exec, logs, request
from aicr.kube.kinds import DEPLOYMENT, NODE, POD, WELL_KNOWN, Resource
from aicr.kube.logs import LogOptions


def error_of(call: Any) -> AicrError:
    """The error that *call* must raise."""
    with pytest.raises(AicrError) as caught:
        call()
    assert caught.value.code == INVALID_REQUEST
    return caught.value


@pytest.mark.parametrize(
    ("made", "target"),
    [
        (request.get(POD, "p", namespace="n"), "/api/v1/namespaces/n/pods/p"),
        (request.get(NODE, "n1", namespace="ignored"), "/api/v1/nodes/n1"),
        (
            request.get(DEPLOYMENT, "d", namespace="n", subresource="scale"),
            "/apis/apps/v1/namespaces/n/deployments/d/scale",
        ),
        (
            request.get(NODE, "n1", subresource="proxy/metrics"),
            "/api/v1/nodes/n1/proxy/metrics",
        ),
        (request.list_page(POD), "/api/v1/pods"),
        (
            request.list_page(POD, namespace="n", labels="a=b,c!=d", limit=5),
            "/api/v1/namespaces/n/pods?labelSelector=a%3Db%2Cc%21%3Dd&limit=5",
        ),
        (
            request.list_page(POD, continue_token="x=", limit=5),
            "/api/v1/pods?limit=5&continue=x%3D",
        ),
        (
            request.watch(POD, resource_version="7", timeout_seconds=60),
            "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=60",
        ),
        (
            request.watch(POD, initial_events=True),
            "/api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
            "&resourceVersionMatch=NotOlderThan",
        ),
        (request.get(POD, "system:x y", namespace="n"), "/api/v1/namespaces/n/pods/system:x%20y"),
        (
            exec.exec_request("p", ["sh", "-c", "a b&c"], "n", "main", stdin=True),
            "/api/v1/namespaces/n/pods/p/exec?command=sh&command=-c&command=a+b%26c&container=main"
            "&stdout=true&stderr=true&stdin=true",
        ),
        (
            logs.log_request("p", "n", LogOptions("c", tail=0, follow=True, limit_bytes=9)),
            "/api/v1/namespaces/n/pods/p/log?container=c&follow=true&tailLines=0&limitBytes=9",
        ),
    ],
)
def test_a_target_is_the_path_and_query_of_the_resource(made: request.Request, target: str) -> None:
    """Core and named groups, namespaced and not, subresources, selectors, paging."""
    assert made.target == target


@pytest.mark.parametrize("name", ["../secrets/x", "a/b", "..", ".", "%2e%2e", "a%2Fb"])
@pytest.mark.parametrize("place", ["name", "namespace", "group"])
def test_a_name_cannot_lead_to_another_path(name: str, place: str) -> None:
    """Segments come from documents of users; each is refused if it would not stay one segment."""
    resource = Resource(name, "v1", "pods", "Pod", True) if place == "group" else POD
    own = name if place == "name" else "p"
    error = error_of(
        lambda: request.get(resource, own, namespace=name if place == "namespace" else "n")
    )
    assert name in error.message


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: request.get(POD, ""), "name of Pod is missing"),
        (lambda: request.get(POD, "p"), 'Pod "p" needs a namespace'),
        (lambda: request.create(POD, {}), "creating a Pod needs a namespace"),
        (lambda: request.delete(POD, "", namespace="n"), "name of Pod is missing"),
        (lambda: request.patch(POD, "", {}, namespace="n"), "name of Pod is missing"),
        (lambda: request.update(POD, {}, namespace="n"), "metadata.name of Pod is missing"),
        (lambda: request.path_of(POD, namespace="n", subresource="log"), "needs a name"),
        (
            lambda: request.create(POD, {}, namespace="n", subresource="eviction"),
            "subresource eviction of pods needs a name",
        ),
        (lambda: request.apply(POD, {}, field_manager=""), "needs a field manager"),
        (
            lambda: request.apply(POD, {"metadata": {"generateName": "x-"}}, field_manager="m"),
            "metadata.name of Pod is missing",
        ),
        (lambda: request.patch(POD, "p", [], namespace="n"), "a merge patch is a mapping"),
        (lambda: request.patch(POD, "p", {}, form="json", namespace="n"), "is a list"),
        (
            lambda: request.list_page(POD, continue_token="x", resource_version="1"),
            "takes no resourceVersion",
        ),
        (lambda: request.delete(POD, "p", namespace="n", grace_seconds=-1), "-1 is negative"),
        (lambda: request.encode({"x": object()}), "cannot be written as JSON"),
        (lambda: exec.exec_request("p", "ls -l", "n"), "a command is a list"),
        (lambda: exec.exec_request("p", [], "n"), "a command is a list"),
        (lambda: logs.log_request("p", "n", LogOptions(tail=-1)), "tail -1 is negative"),
    ],
)
def test_what_no_server_would_take_is_refused_before_it_is_sent(call: Any, said: str) -> None:
    """INVALID_REQUEST that names what is wrong."""
    assert said in error_of(call).message


def test_unknown_words_come_with_the_nearest_known_one() -> None:
    """Kinds of patch and propagation policies are closed lists."""
    error = error_of(lambda: request.patch(POD, "p", {}, form="merg", namespace="n"))
    assert 'did you mean "merge"?' in error.hint
    error = error_of(lambda: request.delete(POD, "p", namespace="n", propagation="foreground"))
    assert "Foreground" in error.hint


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, ""),
        ("", ""),
        ("a in (b,c)", "a in (b,c)"),
        ({"b": "2", "a": "1"}, "a=1,b=2"),
        ({"matchLabels": {"a": "1"}}, "a=1"),
        (
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [
                    {"key": "k", "operator": "In", "values": ["y", "x"]},
                    {"key": "l", "operator": "NotIn", "values": ["z"]},
                    {"key": "m", "operator": "Exists"},
                    {"key": "n", "operator": "DoesNotExist"},
                ],
            },
            "a=1,k in (x,y),l notin (z),m,!n",
        ),
    ],
)
def test_label_selectors_of_every_shape(selector: Any, text: str) -> None:
    """Text, equalities and LabelSelectors, in a fixed order."""
    assert request.label_selector(selector) == text


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ({"a": 1}, "must be text, not 1"),
        ({"matchExpressions": [{"operator": "In"}]}, "has no key"),
        ({"matchExpressions": [{"key": "k", "operator": "In"}]}, "In needs values"),
        (
            {"matchExpressions": [{"key": "k", "operator": "Exists", "values": ["x"]}]},
            "Exists takes no values",
        ),
        ({"matchExpressions": [{"key": "k", "operator": "Gt"}]}, "unknown operator 'Gt'"),
    ],
)
def test_a_selector_that_would_select_something_else_is_refused(selector: Any, said: str) -> None:
    """A selector is never widened in silence."""
    assert said in error_of(lambda: request.label_selector(selector)).message


def test_field_selectors_escape_what_separates_them() -> None:
    """Comma, equals sign and backslash in a value."""
    assert request.field_selector({"metadata.name": r"a,b=c\d"}) == r"metadata.name=a\,b\=c\\d"
    assert request.field_selector("status.phase!=Running") == "status.phase!=Running"


def test_apply_leaves_managed_fields_out_and_the_document_alone() -> None:
    """What was read can be applied; the input is not changed."""
    document = {
        "metadata": {"name": "p", "managedFields": [{"manager": "x"}], "labels": {"a": "b"}},
        "spec": {},
    }
    before = msgspec.json.encode(document)
    made = request.apply(POD, document, field_manager="m", namespace="n", force=True, dry_run=True)
    assert made.method == "PATCH"
    assert made.content_type == "application/apply-patch+yaml"
    assert dict(made.query) == {"fieldManager": "m", "dryRun": "All", "force": "true"}
    sent = msgspec.json.decode(made.body)
    assert sent == {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {}}
    assert msgspec.json.encode(document) == before


def test_delete_options_hold_what_was_asked() -> None:
    """Preconditions, propagation, grace of zero, dry run."""
    made = request.delete(
        *(POD, "p"),
        namespace="n",
        uid="u",
        resource_version="7",
        propagation="Foreground",
        grace_seconds=0,
        dry_run=True,
    )
    assert msgspec.json.decode(made.body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }


def test_a_request_shows_neither_body_nor_secret() -> None:
    """The repr of a request may end in a log; a Secret's data must not."""
    secret = WELL_KNOWN["v1", "Secret"]
    made = request.create(secret, {"data": {"password": "aHVudGVyMg=="}}, namespace="n")
    assert "aHVudGVyMg" in made.body.decode()
    assert "aHVudGVyMg" not in repr(made)


def test_a_request_says_what_it_is_about() -> None:
    """The words of error messages."""
    assert request.get(POD, "p", namespace="n").subject == 'pods "p" in namespace "n"'
    assert request.list_page(DEPLOYMENT).subject == "deployments.apps"
    assert exec.exec_request("p", ["ls"], "n").subject == 'pods/exec "p" in namespace "n"'
    assert request.raw("/version").subject == "/version"
