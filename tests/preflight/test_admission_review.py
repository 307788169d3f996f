"""Requests and replies: AdmissionReview as the API server writes and reads it (preflight spec 11.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.preflight.admission_cases import (
    DCGM,
    GANG,
    gpu_container,
    pod,
    prepared,
    request_for,
    send,
    without_gangs,
)

from aicr.errors import AicrError
from aicr.preflight.admission.patch import apply
from aicr.preflight.admission.review import LONGEST_WARNING, review


@pytest.mark.covers("P11-57")
@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b"[]",
        b'"x"',
        b"\xff",
        b'{"kind":"Pod","apiVersion":"v1"}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}',
        b'{"request":[]}',
        b'{"request":{"uid":7}}',
        b'{"request":' * 3000,
        b"[" * 100_000,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_what_is_no_review_is_an_error_and_not_an_answer(body: bytes) -> None:
    """The server turns it into status 400; no pod is admitted by a body that nobody understood."""
    with pytest.raises(AicrError) as caught:
        review(body, without_gangs())
    assert caught.value.message == "failed to unmarshal admission review"


@pytest.mark.covers("P11-58")
def test_a_review_without_a_request_is_allowed() -> None:
    """There is nothing to refuse."""
    answer = review(
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', without_gangs()
    )
    assert json.loads(answer) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "", "allowed": True},
    }


@pytest.mark.covers("P11-59")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("x", "expected a map, found text"),
        (None, "expected a map, found nothing"),
        (7, "expected a map, found a number"),
        ({"spec": []}, "spec: expected a map, found a list"),
        ({"metadata": "x"}, "metadata: expected a map, found text"),
        ({"metadata": {"name": 5}}, "metadata.name: expected text, found a number"),
        ({"metadata": {"annotations": []}}, "metadata.annotations: expected a map, found a list"),
        ({"spec": {"containers": {}}}, "spec.containers: expected a list, found a map"),
        ({"spec": {"containers": [1]}}, "spec.containers[0]: expected a map, found a number"),
        ({"spec": {"containers": [{}]}}, "spec.containers[0].name: expected text, found nothing"),
        ({"spec": {"volumes": [{"name": True}]}}, "spec.volumes[0].name: expected text"),
        (
            pod({**gpu_container(), "env": "x"}),
            "spec.containers[0].env: expected a list, found text",
        ),
        (pod({**gpu_container(), "env": [{}]}), "spec.containers[0].env[0].name: expected text"),
        (pod({**gpu_container(), "env": [1]}), "spec.containers[0].env[0]: expected a map"),
        (
            pod({**gpu_container(), "env": [{"name": ["x"]}]}),
            "spec.containers[0].env[0].name: expected text, found a list",
        ),
        (
            pod({**gpu_container(), "volumeMounts": [{"name": "nccl-x"}]}),
            "volumeMounts mountPath: expected text, found nothing",
        ),
        (pod({"name": "c", "resources": []}), "spec.containers[0].resources: expected a map"),
        (pod(gpu_container("lots")), 'resources.limits[nvidia.com/gpu]: invalid quantity "lots"'),
        (pod(gpu_container([1])), "resources.limits[nvidia.com/gpu]: expected a quantity"),
        (
            pod(annotations={"nvsentinel.nvidia.com/preflight-checks": 7}),  # type: ignore[dict-item]
            "metadata.annotations[nvsentinel.nvidia.com/preflight-checks]: expected text",
        ),
    ],
)
def test_an_object_that_is_no_pod_is_denied_with_the_place(made: Any, said: str) -> None:
    """Allowed is false and the message says which field; nothing is guessed."""
    reply = send(made)
    assert not reply.allowed
    assert reply.message.startswith("failed to unmarshal pod: ")
    assert said in reply.message
    assert reply.response["status"]["code"] == 422


@pytest.mark.covers("P11-66")
@pytest.mark.parametrize("uid", ["705ab4f5-6393-11e8", "", 'ü"\\\u2028'])
def test_the_uid_comes_back_exactly(uid: str) -> None:
    """Of allowed and denied requests alike, and the request itself is not sent back."""
    for made in (pod(), "x"):
        reply = send(made, uid=uid)
        assert reply.response["uid"] == uid
        assert set(reply.document) == {"apiVersion", "kind", "response"}


@pytest.mark.covers("P11-61", "I7")
def test_a_pod_with_a_generated_name_is_like_any_other() -> None:
    """No name is needed for the patch; odd annotation keys are left in peace."""
    made = pod(metadata={"name": None, "generateName": "job-", "namespace": None})
    made["metadata"]["annotations"] = {"a/b~c": "1"}
    reply = send(made)
    assert reply.patch
    assert reply.pod["metadata"] == made["metadata"]


@pytest.mark.covers("P11-62", "I10")
def test_a_dry_run_gets_the_same_patch() -> None:
    """What `kubectl --dry-run=server` shows is what would be created."""
    assert send(pod(), prepared(), GANG, dryRun=True).patch == send(pod(), prepared(), GANG).patch


def test_nulls_are_as_good_as_absent() -> None:
    """Go programs write null for empty lists and maps."""
    made = pod(initContainers=None, volumes=None, imagePullSecrets=None, resourceClaims=None)
    made["metadata"]["annotations"] = None
    reply = send(made, without_gangs(imagePullSecrets=[{"name": "s"}]))
    assert reply.paths == ["/spec/initContainers", "/spec/volumes", "/spec/imagePullSecrets"]
    assert reply.order[0] == DCGM


def test_a_pod_of_five_megabytes_is_patched_like_a_small_one() -> None:
    """The largest objects that reach an API server neither fail nor slow the patch down."""
    env = [{"name": f"V{number}", "value": "x" * 1000} for number in range(5000)]
    made = pod(gpu_container(env=env))
    assert len(request_for(made)) > 5_000_000
    assert len(json.dumps(send(made).patch)) < 10_000


def test_long_warnings_are_cut_for_the_header_that_carries_them() -> None:
    """The API server drops what is longer than a header may be."""
    made = pod(gpu_container(), initContainers=[{"name": DCGM, "image": "x"}])
    made["spec"]["hostNetwork"] = True
    checks = [{"name": DCGM, "image": "x"}] + [
        {"name": f"c{'x' * 50}{i}", "image": "x"} for i in range(9)
    ]
    made["spec"]["initContainers"] += checks[2:]
    reply = send(made, without_gangs(initContainers=checks))
    assert reply.warnings
    assert all(len(warning) <= LONGEST_WARNING for warning in reply.warnings)
    assert any(warning.endswith("...") for warning in reply.warnings)


@pytest.mark.parametrize(
    ("path", "document"),
    [("/a/b", {}), ("/a/1", {"a": []}), ("/a/-/x", {"a": []}), ("/a/b", {"a": 1})],
)
def test_a_patch_without_a_place_is_a_bug_and_says_so(path: str, document: Any) -> None:
    """Applying never invents parents."""
    with pytest.raises(AicrError, match="has no place to go"):
        apply(document, [{"op": "add", "path": path, "value": 1}])


def test_escapes_in_paths_are_undone() -> None:
    """RFC 6901: ~1 is a slash and ~0 a tilde."""
    patch = [{"op": "add", "path": "/m/a~1b~0c", "value": 1}]
    assert apply({"m": {"x": 2}}, patch) == {"m": {"x": 2, "a/b~c": 1}}
