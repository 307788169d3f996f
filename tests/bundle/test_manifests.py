"""Manifests: rendered with their component's values, checked, and escaped for Helm."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.bundle.manifests import (
    GKE_QUOTA_MANIFEST,
    declares_namespace,
    documents,
    escape_for_helm,
    gke_critical_pods_quota,
    is_empty,
    render_manifest,
)
from aicr.errors import INTERNAL, INVALID_REQUEST, AicrError

TUNING = """\
# What the nodes are tuned for
{{- $tuning := index .Values "node-tuning" }}
{{- if ne (toString (index $tuning "enabled")) "false" }}
---
apiVersion: tuning.example.com/v1
kind: Profile
metadata:
  labels:
    app.kubernetes.io/managed-by: {{ .Release.Service }}
    helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
  name: tuned
  namespace: {{ .Release.Namespace }}
spec:
  taintNewNodes: {{ ne (toString ($tuning.taint | default true)) "false" }}
  tolerations:
    {{- if $tuning.tolerations }}
    {{- toYaml $tuning.tolerations | nindent 4 }}
    {{- else }}
    - key: dedicated
      operator: Exists
    {{- end }}
  {{- if $tuning.selector }}
  nodeSelector:
    {{- toYaml $tuning.selector | nindent 4 }}
  {{- end }}
  accelerator: {{ $tuning.accelerator }}
{{- end }}
"""

TUNED = """\
# What the nodes are tuned for
---
apiVersion: tuning.example.com/v1
kind: Profile
metadata:
  labels:
    app.kubernetes.io/managed-by: Helm
    helm.sh/chart: node-tuning-0.7.0
  name: tuned
  namespace: tuning
spec:
  taintNewNodes: true
  tolerations:
    - operator: Exists
  nodeSelector:
    gpu: "true"
  accelerator: h100
"""


def rendered(text: str, values: dict[str, Any], version: str = "v0.7.0") -> str:
    """A manifest of the component node-tuning, rendered for the namespace tuning."""
    return render_manifest(
        text,
        source="node-tuning/tuning.yaml",
        component="node-tuning",
        values=values,
        namespace="tuning",
        chart_name="node-tuning",
        chart_version=version,
    )


def test_a_manifest_is_rendered_with_values_release_and_chart() -> None:
    """The data are the component's values, the release and the chart, its version without v."""
    values = {
        "tolerations": [{"operator": "Exists"}],
        "selector": {"gpu": "true"},
        "accelerator": "h100",
    }
    assert rendered(TUNING, values) == TUNED
    assert rendered(TUNING, values, version="0.7.0") == TUNED


def test_values_that_are_left_out_take_the_branch_of_the_template() -> None:
    """Missing keys are nil: conditions are false and defaults apply."""
    text = rendered(TUNING, {"accelerator": "gb200", "taint": False})
    assert documents(text, "m")[0]["spec"] == {
        "taintNewNodes": False,
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "accelerator": "gb200",
    }


def test_a_manifest_that_is_switched_off_is_empty() -> None:
    """Only the comment is left, which is no object."""
    text = rendered(TUNING, {"enabled": False})
    assert text == "# What the nodes are tuned for\n"
    assert is_empty(text)


def test_a_value_that_the_manifest_needs_and_the_component_lacks_is_an_error() -> None:
    """Nothing is never printed; the error names file, line and expression."""
    with pytest.raises(AicrError) as caught:
        rendered(TUNING, {})
    assert caught.value.code == INTERNAL
    assert caught.value.where == "node-tuning/tuning.yaml:26"
    assert "{{ $tuning.accelerator }}" in caught.value.message


def test_values_of_other_components_are_out_of_reach() -> None:
    """A manifest sees only the values of its own component."""
    with pytest.raises(AicrError):
        rendered('{{ index .Values "gpu-operator" }}', {})


def test_a_manifest_without_actions_is_returned_as_it_is() -> None:
    """Plain YAML is not touched, whatever it looks like."""
    text = "a: '}} $x %d'\r\n\n# {x}\n"
    assert rendered(text, {}) is text


@pytest.mark.covers("B10-10")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \t\n",
        "# only a comment\n",
        "---\n",
        "---\n# a\n---\n\n...\n",
        "--- # remark\n",
        "null\n",
        "---\n~\n",
        "{}\n",
    ],
)
def test_text_without_an_object_is_empty(text: str) -> None:
    """A set whose manifests all render to nothing gets no folder (bundler spec 2.2)."""
    assert is_empty(text)


@pytest.mark.parametrize("text", ["a: 1\n", "# c\n---\nkind: X\n", "--- {a: 1}\n", "{a: 1}", "- 1"])
def test_text_with_content_is_not_empty(text: str) -> None:
    """Anything that could be an object keeps the file."""
    assert not is_empty(text)


def test_documents_are_the_objects_without_the_empty_ones() -> None:
    """Empty documents are dropped, and the order is kept."""
    text = "# c\n---\nkind: A\n---\n---\n# d\n---\nkind: B\nspec: {deep: [1, true]}\n"
    assert documents(text, "m.yaml") == [{"kind": "A"}, {"kind": "B", "spec": {"deep": [1, True]}}]


@pytest.mark.parametrize("text", ["a: [1\n", "a: 1\n b: 2\n", "\tx: 1\n", "a: 1\na: 2\n"])
def test_text_that_is_not_yaml_is_an_invalid_request(text: str) -> None:
    """A manifest that no reader accepts must not get into a bundle."""
    with pytest.raises(AicrError) as caught:
        documents(text, "m.yaml")
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.where.startswith("m.yaml")


@pytest.mark.parametrize("text", ["- a\n", "word\n", "kind: A\n---\n3\n"])
def test_a_document_that_is_not_a_mapping_is_an_invalid_request(text: str) -> None:
    """A list or a scalar is no Kubernetes object."""
    with pytest.raises(AicrError, match="is not a Kubernetes object") as caught:
        documents(text, "m.yaml")
    assert caught.value.code == INVALID_REQUEST


def test_namespaces_are_found_among_objects_and_in_lists() -> None:
    """Static Namespaces decide on --create-namespace and on the guard of pre-manifests (2.2)."""
    found = documents(
        "kind: Namespace\nmetadata: {name: a}\n---\nkind: ConfigMap\nmetadata: {name: b}\n---\n"
        "kind: List\nitems:\n- kind: Namespace\n  metadata: {name: c}\n- 1\n---\nkind: Namespace\n"
        "---\nkind: List\n",
        "m",
    )
    assert declares_namespace(found) == ["a", "c", ""]
    assert declares_namespace([]) == []


@pytest.mark.covers("B10-83")
@pytest.mark.parametrize(("nodes", "pods"), [(4, "128"), (0, "32"), (1, "32"), (2, "64")])
def test_the_gke_quota_allows_32_pods_a_node_and_never_fewer_than_32(nodes: int, pods: str) -> None:
    """The quota is max(32, nodes * 32), written as text (bundler spec 0.9)."""
    assert documents(gke_critical_pods_quota("gpu-operator", nodes), "q") == [
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "aicr-gke-critical-pods", "namespace": "gpu-operator"},
            "spec": {
                "hard": {"pods": pods},
                "scopeSelector": {
                    "matchExpressions": [
                        {
                            "operator": "In",
                            "scopeName": "PriorityClass",
                            "values": ["system-node-critical", "system-cluster-critical"],
                        }
                    ]
                },
            },
        }
    ]


def test_the_gke_quota_quotes_a_namespace_that_looks_like_a_number() -> None:
    """A namespace may be all digits and must stay text."""
    quota = documents(gke_critical_pods_quota("123", 1), "q")[0]
    assert quota["metadata"]["namespace"] == "123"


def test_a_negative_number_of_nodes_is_refused() -> None:
    """No quota can be made for fewer than no nodes."""
    with pytest.raises(AicrError) as caught:
        gke_critical_pods_quota("gpu-operator", -1)
    assert caught.value.code == INVALID_REQUEST


def test_the_synthesized_manifest_has_the_key_of_the_specification() -> None:
    """Error texts and file names go by this key (bundler spec 0.9)."""
    assert GKE_QUOTA_MANIFEST == "aicr/synthesized/gke-critical-pods-quota.yaml"


@pytest.mark.covers("F2")
@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("GPU {{ $labels.gpu }} hot", 'GPU {{ "{{" }} $labels.gpu }} hot'),
        ("{{{", '{{ "{{" }}{'),
        ("{{{{", '{{ "{{" }}{{ "{{" }}'),
        ("}}", "}}"),
        ("{ { $x }", "{ { $x }"),
        ("", ""),
    ],
)
def test_braces_are_escaped_for_helm(text: str, escaped: str) -> None:
    """Only the opening braces mean something to Helm outside an action."""
    assert escape_for_helm(text) == escaped


def test_text_that_helm_deletes_is_refused() -> None:
    """Helm removes this text from all that it renders, so it cannot get through."""
    with pytest.raises(AicrError) as caught:
        escape_for_helm("a: <no value>\n")
    assert caught.value.code == INVALID_REQUEST


def test_the_chart_version_of_a_manifest_can_stand_in_a_label() -> None:
    """A build's plus sign is written as an underscore, because labels refuse it."""
    text = "a: {{ .Chart.Version }}\n"
    rendered = render_manifest(
        text,
        source="m.yaml",
        component="c",
        values={},
        namespace="n",
        chart_name="c",
        chart_version="v1.2.3+build.4",
    )
    assert rendered == "a: 1.2.3_build.4\n"
