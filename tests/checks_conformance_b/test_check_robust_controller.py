"""robust-controller: the operator's webhook refuses what is wrong (validators spec 6.2)."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from tests.checks_conformance.scene import endpoints, workload
from tests.checks_conformance_b.bench import Bench, declared
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.kube.fakeapi import refuse

from aicr.checks.conformance.endpoints import ENDPOINT_SLICE
from aicr.checks.conformance.robust_controller import (
    CHECK,
    OPERATORS,
    WEBHOOKS,
    covering,
    webhook_words,
)
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, NOT_FOUND, UNAUTHORIZED, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

Document = dict[str, Any]
DYNAMO, TRAINER = OPERATORS
GRAPH = Resource("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment", True)
TRAIN_JOB = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", True)
RECIPE = declared("dynamo-platform", dynamo_platform={"namespace": "dynamo-system"})
SAID = 'admission webhook "v.dynamo" denied the request: spec.services is empty'
DENIED = refuse(403, "Forbidden", SAID)
RBAC = refuse(
    403,
    "Forbidden",
    'dynamographdeployments.nvidia.com is forbidden: User "x" cannot create resource "y"',
)
SCHEMA = refuse(422, "Invalid", 'DynamoGraphDeployment "x" is invalid: spec.a: Required value')
UNREACHED = refuse(
    500, "InternalError", 'Internal error occurred: failed calling webhook "v": connection refused'
)


def configuration(title: str = "dynamo-webhooks", **hook: Any) -> Document:
    """A webhook configuration with one webhook."""
    rule = {"apiGroups": ["nvidia.com"], "resources": [DYNAMO.plural], "operations": ["CREATE"]}
    service = {"name": "hooks", "namespace": "dynamo-system"}
    standard = {"name": "v.dynamo", "rules": [rule], "clientConfig": {"service": service}}
    return {"metadata": {"name": title}, "webhooks": [{**standard, **hook}]}


def bench(
    *,
    available: int = 1,
    hooks: tuple[Document, ...] | None = None,
    ready: bool = True,
    crd: str = "True",
    answers: tuple[web.Response, ...] = (DENIED,),
    validation: Document | None = RECIPE,
    installed: bool = True,
    **more: Any,
) -> Bench:
    """Dynamo as it should be, but for what is named."""
    found = Bench(CHECK, validation=validation, served=(GRAPH, TRAIN_JOB, WEBHOOKS), **more)
    if installed:
        controller = workload("Deployment", DYNAMO.deployment, "dynamo-system", ready=available)
        found.put(kinds.DEPLOYMENT, controller)
    found.put(WEBHOOKS, *((configuration(),) if hooks is None else hooks))
    found.put(ENDPOINT_SLICE, endpoints("hooks", "dynamo-system", "10.0.0.1:443", ready=ready))
    if crd:
        conditions = [{"type": "Established", "status": crd}]
        definition = {"metadata": {"name": DYNAMO.crd}, "status": {"conditions": conditions}}
        found.put(kinds.CUSTOM_RESOURCE_DEFINITION, definition)
    for answer in answers:
        found.fault("POST .*/dynamographdeployments", answer, times=1)
    return found


def test_a_refusal_by_the_webhook_passes_and_nothing_is_left() -> None:
    """In a namespace of the run; its words are evidence."""
    found = bench()
    assert found.judge() is None
    assert found.left == []
    assert found.seen.lines == [
        f"Deployment dynamo-system/{DYNAMO.deployment}: 1/1 available",
        "Webhook dynamo-webhooks/v.dynamo: Service dynamo-system/hooks, 1 ready endpoint(s)",
        f"CRD {DYNAMO.crd}: established",
        f"Refused by the webhook: {SAID}",
    ]
    (made,) = [line for line in found.api.seen if "POST /apis/nvidia.com" in line]
    assert "/namespaces/robust-test-" in made


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"installed": False}, NOT_FOUND, "dynamo-platform: Deployment dynamo-system/"),
        ({"available": 0}, INTERNAL, "is not ready: 0/1 available"),
        ({"hooks": ()}, NOT_FOUND, "no ValidatingWebhookConfiguration"),
        ({"hooks": (configuration("other"),)}, NOT_FOUND, "no ValidatingWebhookConfiguration"),
        ({"ready": False}, NOT_FOUND, "webhook v.dynamo has no ready endpoint"),
        ({"crd": ""}, NOT_FOUND, f"{DYNAMO.crd} not found"),
        ({"crd": "False"}, INTERNAL, "is not established"),
        ({"answers": (UNREACHED,)}, INTERNAL, "cannot be called"),
        ({"answers": ()}, INTERNAL, "a wrong DynamoGraphDeployment was accepted"),
    ],
    ids=[
        "absent",
        "not ready",
        "no webhook",
        "another's webhook",
        "nobody answers",
        "no CRD",
        "CRD not served",
        "webhook down",
        "accepted",
    ],
)
def test_what_is_absent_or_does_not_judge_fails(settings: Document, code: str, words: str) -> None:
    """A verdict; what was accepted is removed, and so is the namespace."""
    found = bench(**settings)
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (code, "")
    assert words in error.message
    assert found.left == []
    assert found.stored(GRAPH) == []


def test_what_was_accepted_is_removed_by_its_uid() -> None:
    """No other object of that name."""
    found = bench(answers=())
    assert found.judge() is not None
    assert any("DELETE /apis/nvidia.com" in line for line in found.api.seen)


def test_the_schema_refusing_first_is_no_proof_so_another_object_is_tried() -> None:
    """And when the schema refuses all of them, it could not be told."""
    assert bench(answers=(SCHEMA, DENIED)).judge() is None
    error = bench(answers=(SCHEMA, SCHEMA)).judge()
    assert error is not None
    assert could_not_tell(error) == INTERNAL
    assert "refused every wrong object" in error.message


def test_a_refusal_by_rbac_is_none_by_the_webhook() -> None:
    """UNAUTHORIZED, not a pass."""
    found = bench(answers=(RBAC,))
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == UNAUTHORIZED
    assert found.left == []


@pytest.mark.covers("V-143")
def test_an_operator_that_the_recipe_does_not_declare_is_checked_all_the_same() -> None:
    """Decision 64; the second is looked for when the first is absent."""
    assert bench(validation=None).judge() is None
    found = bench(validation=None, installed=False)
    controller = workload("Deployment", TRAINER.deployment, TRAINER.namespace, ready=0)
    error = found.put(kinds.DEPLOYMENT, controller).judge()
    assert error is not None
    assert TRAINER.deployment in error.message


def test_the_trainer_is_judged_when_it_is_what_the_recipe_declares() -> None:
    """By its own kind, although Dynamo is there too."""
    recipe = declared("kubeflow-trainer", kubeflow_trainer={"namespace": "kubeflow"})
    rule = {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "operations": ["*"]}
    hook = {"rules": [rule], "clientConfig": {"url": "https://x/"}}
    found = bench(validation=recipe, hooks=(configuration("trainer-hooks", **hook),))
    found.put(kinds.DEPLOYMENT, workload("Deployment", TRAINER.deployment, "kubeflow"))
    conditions = [{"type": "Established", "status": "True"}]
    found.put(
        kinds.CUSTOM_RESOURCE_DEFINITION,
        {"metadata": {"name": TRAINER.crd}, "status": {"conditions": conditions}},
    )
    found.fault("POST .*/trainjobs", DENIED)
    assert found.judge() is None
    assert "Webhook trainer-hooks/v.dynamo: reached by URL" in found.seen.lines


def test_neither_declared_nor_installed_skips() -> None:
    """Nothing is created."""
    found = bench(validation=declared("gpu-operator"), installed=False)
    error = found.judge()
    assert error is not None
    assert skip_in(error) is not None
    assert not any(line.startswith("POST") for line in found.api.seen)


@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
@pytest.mark.parametrize(
    "what",
    [
        "GET /apis/apps/v1",
        "GET .*validatingwebhookconfigurations",
        "GET .*endpointslices",
        "GET .*customresourcedefinitions/",
        "POST .*/dynamographdeployments",
    ],
)
def test_what_cannot_be_looked_at_is_never_a_verdict_nor_a_skip(
    what: str, answer: web.Response, code: str
) -> None:
    """Declared or not (field case G2)."""
    for validation in (RECIPE, None):
        found = bench(validation=validation, answers=()).fault(what, answer)
        error = found.judge()
        assert error is not None
        assert skip_in(error) is None
        assert could_not_tell(error) == code
        assert found.left == []


@pytest.mark.parametrize(
    ("rule", "covered"),
    [
        ({"apiGroups": ["*"], "resources": ["*"], "operations": ["*"]}, True),
        ({"apiGroups": ["nvidia.com"], "resources": ["other"], "operations": ["*"]}, False),
        ({"apiGroups": ["x"], "resources": ["*"], "operations": ["CREATE"]}, False),
        ({"apiGroups": ["*"], "resources": ["*/*"], "operations": ["UPDATE"]}, False),
        ({}, False),
    ],
)
def test_a_webhook_counts_when_its_rules_cover_creating_the_kind(
    rule: Document, covered: bool
) -> None:
    """Also by wildcards."""
    assert bool(covering([configuration(rules=[rule])], DYNAMO)) is covered


def test_only_the_api_servers_words_about_a_webhook_count() -> None:
    """From its name on."""
    assert webhook_words(AicrError(INTERNAL, f"cannot create x: {SAID}")) == ("v.dynamo", SAID)
    assert webhook_words(AicrError(INTERNAL, "cannot create x: it is invalid")) == ("", "")


def test_a_refusal_by_another_webhook_could_not_tell() -> None:
    """A policy engine says nothing about the operator."""
    policy = 'admission webhook "validation.gatekeeper.sh" denied the request: no labels'
    error = bench(answers=(refuse(403, "Forbidden", policy),)).judge()
    assert error is not None
    assert "validation.gatekeeper.sh" in error.message
    assert could_not_tell(error) != ""
