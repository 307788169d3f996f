"""The checks of Kubernetes objects find what an API server would refuse."""

from __future__ import annotations

from typing import Any

import pytest
from tests.leaves.kubernetes_objects import duplicates, problems

VERSIONS = ("1.25", "1.36")


def config_map(**metadata: Any) -> dict[str, Any]:
    """A small valid object with this metadata."""
    named = {"name": "a", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"k": "v"}}


def pod_template(**metadata: Any) -> dict[str, Any]:
    """A DaemonSet whose pods have this metadata."""
    container = {"name": "c", "image": "registry.example/c:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}, **metadata},
                "spec": {"containers": [container]},
            },
        },
    }


RESOURCE = {"apiVersion": "example.com/v1alpha1", "kind": "Thing", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    "item",
    [
        config_map(),
        config_map(namespace="ns"),
        config_map(labels={"app.kubernetes.io/name": "x-1.2_3", "empty": ""}),
        config_map(annotations={"example.com/any": "text: of {any} kind -"}),
        pod_template(),
        {**RESOURCE, "spec": {"whatever": None}},
    ],
)
def test_a_valid_object_has_no_problem(item: dict[str, Any]) -> None:
    """No false alarm."""
    assert problems(item, "ns", VERSIONS) == []


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({**config_map(), "dta": {}}, "'dta' was unexpected"),
        ({**config_map(), "data": {"k": 1}}, "1 is not of type"),
        ({**config_map(), "kind": "ConfigMapp"}, "Couldn't find schema"),
        ({**config_map(), "apiVersion": "v1/"}, "apiVersion 'v1/'"),
        ({**config_map(), "apiVersion": "1"}, "apiVersion '1'"),
        ({"kind": "ConfigMap", "metadata": {"name": "a"}}, "apiVersion None"),
        ({**config_map(), "kind": "configmap"}, "kind 'configmap'"),
        ({**RESOURCE, "metadata": None}, "no metadata"),
        (config_map(name="A_b"), "metadata.name 'A_b'"),
        (config_map(name=""), "metadata.name ''"),
        (config_map(name=7), "metadata.name 7"),
        (config_map(namespace="other"), "metadata.namespace 'other' in a release in 'ns'"),
        (config_map(namespace=None), "metadata.namespace None"),
        ({**RESOURCE, "metadata": {"name": "a", "namespace": "b"}}, "metadata.namespace 'b'"),
        (
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "a", "namespace": "ns"},
            },
            "on a kind without namespaces",
        ),
        (config_map(labels={"helm.sh/chart": "tuning-"}), "labels: helm.sh/chart: 'tuning-'"),
        (config_map(labels={"helm.sh/chart": "a/b-1"}), "labels: helm.sh/chart: 'a/b-1'"),
        (config_map(labels={"v": "1.2.3+build"}), "labels: v: '1.2.3+build'"),
        (config_map(labels={"on": True}), "True is no text"),
        (config_map(labels={"a/b/c": "x"}), "key 'a/b/c'"),
        (config_map(labels={"k": "x" * 64}), "labels: k"),
        (config_map(annotations={"/x": "y"}), "annotations: key '/x'"),
        (config_map(annotations={"count": 3}), "annotations: count: 3 is no text"),
        (pod_template(labels={"app": "a-"}), "labels: app: 'a-'"),
        (pod_template(lables={}), "'lables' was unexpected"),
    ],
)
def test_what_an_api_server_refuses_is_a_problem(item: dict[str, Any], said: str) -> None:
    """Each kind of mistake is found, and the text names it."""
    found = problems(item, "ns", VERSIONS)
    assert any(said in text for text in found), found


def test_the_same_object_twice_is_found_across_versions_of_a_group() -> None:
    """Kind and name within a group are what tells objects apart."""
    newer = {**RESOURCE, "apiVersion": "example.com/v1"}
    assert duplicates([config_map(), RESOURCE, newer]) == ["example.com/Thing a"]
