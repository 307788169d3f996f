"""gpu-operator-version (validators spec 6.1)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.contexts import Seen, put, validation
from tests.kube.fakeapi import refuse
from tests.kube.loopback import cluster, refused, run

from aicr.checks.deployment.gpu_operator_version import CHECK, tag_of, version_of
from aicr.checks.sdk.outcome import could_not_tell
from aicr.errors import INTERNAL, INVALID_REQUEST, NOT_FOUND, UNAUTHORIZED, AicrError
from aicr.kube import kinds


def deployment(
    label: str = "",
    *images: str,
    annotation: str = "",
    name: str = "gpu-operator",
    namespace: str = "gpu-operator",
) -> dict[str, Any]:
    """The operator's Deployment."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if label:
        metadata["labels"] = {"app.kubernetes.io/version": label}
    if annotation:
        metadata["annotations"] = {"nvidia.com/gpu-operator-version": annotation}
    containers = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    return {"metadata": metadata, "spec": {"template": {"spec": {"containers": containers}}}}


def judge(stated: str | None, *documents: dict[str, Any]) -> tuple[Seen, AicrError | None]:
    """What the check says about Deployments under a constraint."""
    seen = Seen()
    limits = {} if stated is None else {"Deployment.gpu-operator.version": stated}

    async def scenario() -> AicrError | None:
        async with cluster() as (api, client):
            await put(api, kinds.DEPLOYMENT, *documents)
            given = validation(
                deployment=limits, conformance={"Deployment.gpu-operator.version": ">= 99"}
            )
            try:
                await CHECK.run(seen.context(client, name=CHECK.name, validation=given))
            except AicrError as error:
                return error
            return None

    return seen, run(scenario())


@pytest.mark.parametrize(
    ("document", "version"),
    [
        (deployment("v25.3.0", "x/gpu-operator:v24.1.0"), "v25.3.0"),
        (deployment("25.3.0"), "v25.3.0"),
        (deployment("", "x/nfd:v1.0.0", "nvcr.io/nvidia/gpu-operator:v25.3.0-ubi9"), "v25.3.0"),
        (deployment("", "x/gpu-operator:v25.3.0", annotation="v1.0.0"), "v25.3.0"),
        (deployment("", annotation="25.3.1"), "v25.3.1"),
        (deployment("main", "x/gpu-operator:v25.3.0"), "v25.3.0"),
        (deployment("", "x/gpu-operator:latest", annotation="v25.3.0"), "v25.3.0"),
        (deployment("", "x/gpu-operator@sha256:" + "1" * 64), ""),
        (deployment("", "registry:5000/gpu-operator"), ""),
        (deployment("main"), ""),
        (deployment(), ""),
    ],
    ids=[
        *("label first", "no v", "image tag", "image before annotation", "annotation"),
        *("label no version", "tag no version", "digest", "port", "only words", "nothing"),
    ],
)
def test_the_version_comes_from_label_then_image_then_annotation(
    document: dict[str, Any], version: str
) -> None:
    """The first that is a version, with a leading v."""
    assert version_of(document) == version


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("r:5000/x/gpu-operator:v1.2.3-ubi8", "v1.2.3"),
        ("x/gpu-operator:v1.2.3-rc.1", "v1.2.3-rc.1"),
        ("x/gpu-operator:v1.2.3-rcfoo", "v1.2.3"),
        ("x/gpu-operator:v1.2.3@sha256:abc", "v1.2.3"),
        ("gpu-operator", ""),
    ],
)
def test_a_suffix_of_a_tag_goes_unless_it_is_a_pre_release(image: str, tag: str) -> None:
    """-ubi8 names a base image; -rc.1 is another version (decision 10)."""
    assert tag_of(image) == tag


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("gpu-operator", "gpu-operator"),
        ("nvidia-gpu-operator", "gpu-operator"),
        ("gpu-operator", "nvidia-gpu-operator"),
        ("gpu-operator", "kube-system"),
    ],
)
def test_the_operator_is_looked_for_under_its_names(name: str, namespace: str) -> None:
    """Detection passes without a constraint; one of another phase does not count."""
    seen, error = judge(None, deployment("v25.3.0", name=name, namespace=namespace))
    assert error is None
    assert seen.lines == ["Detected GPU Operator version: v25.3.0"]


def test_the_place_that_the_recipe_states_comes_first() -> None:
    """os-talos moves the operator; what is left in the usual namespace is not what the recipe asks."""
    seen = Seen()
    stated = {"componentRefs": [{"name": "gpu-operator", "namespace": "privileged-gpu-operator"}]}

    async def scenario() -> None:
        async with cluster() as (api, client):
            moved = deployment("v25.3.0", namespace="privileged-gpu-operator")
            await put(api, kinds.DEPLOYMENT, deployment("v1.0.0"), moved)
            await CHECK.run(seen.context(client, name=CHECK.name, validation=stated))

    run(scenario())
    assert seen.lines == ["Detected GPU Operator version: v25.3.0"]


def test_the_first_deployment_in_the_order_of_places_counts() -> None:
    """Namespace gpu-operator before kube-system."""
    seen, _ = judge(*(None, deployment("v1.0.0", namespace="kube-system")), deployment("v25.3.0"))
    assert seen.lines == ["Detected GPU Operator version: v25.3.0"]


@pytest.mark.parametrize(
    ("stated", "passes"),
    [(">= 25.3.0", True), (">= 25.3 < 26", True), ("< 25", False), ("== v25.3.0", True)],
)
def test_the_constraint_of_the_deployment_phase_is_evaluated(stated: str, passes: bool) -> None:
    """Its outcome is evidence; false is INTERNAL and a verdict."""
    seen, error = judge(stated, deployment("v25.3.0"))
    assert seen.lines[1].startswith("Constraint: ")
    assert seen.lines[1].endswith("→ true" if passes else "→ false")
    if passes:
        assert error is None
        return
    assert error is not None
    assert error.code == INTERNAL
    assert "expected < 25, got v25.3.0" in error.message
    assert could_not_tell(error) == ""


def test_a_constraint_that_cannot_be_read_fails_before_the_cluster_is_asked() -> None:
    """INVALID_REQUEST."""
    seen, error = judge("=> 25", deployment("v25.3.0"))
    assert error is not None
    assert error.code == INVALID_REQUEST
    assert seen.lines == []


def test_no_operator_and_no_version_fail() -> None:
    """NOT_FOUND and INTERNAL."""
    _, error = judge(None)
    assert error is not None
    assert error.code == NOT_FOUND
    _, error = judge(None, deployment())
    assert error is not None
    assert error.code == INTERNAL
    assert error.message.startswith("cannot determine the GPU operator's version")


def test_a_read_that_is_refused_is_not_absence() -> None:
    """403 on the first place ends the search."""

    async def scenario() -> str:
        async with cluster() as (api, client):
            await put(api, kinds.DEPLOYMENT, deployment("v25.3.0", namespace="kube-system"))
            api.next("GET .*deployments", refuse(403, "Forbidden", "cannot get resource"))
            return (await refused(CHECK.run(Seen().context(client)))).code

    assert run(scenario()) == UNAUTHORIZED
