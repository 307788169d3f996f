"""platform-health: namespaces and expected resources of components (validators spec 6.2)."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import validation
from tests.checks_conformance.scene import Scene, workload
from tests.checks_deployment.answers import COULD_NOT_LOOK

from aicr.checks.conformance.platform_health import CHECK
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INVALID_REQUEST, NOT_FOUND
from aicr.kube import kinds

Document = dict[str, Any]


def namespace(name: str, phase: str = "Active") -> Document:
    """A namespace in a phase."""
    return {"metadata": {"name": name}, "status": {"phase": phase}}


def recipe(*resources: Document) -> Document:
    """Two enabled components, the first with expected resources, and one that is disabled."""
    document = validation("a", "b", disabled=("c",))
    document["componentRefs"][0]["expectedResources"] = list(resources)
    document["componentRefs"][2]["namespace"] = "never-made"
    return document


DEPLOYED = {"kind": "Deployment", "name": "main"}
CONFIG = {"kind": "ConfigMap", "namespace": "b", "name": "settings"}


def scene(document: Document | None = None, **parts: Document) -> Scene:
    """Both namespaces, a Deployment and a ConfigMap; *parts* replaces some."""
    found = Scene(CHECK, validation=recipe(DEPLOYED, CONFIG) if document is None else document)
    found.put(kinds.NAMESPACE, parts.get("a", namespace("a")), namespace("b"))
    found.put(kinds.DEPLOYMENT, parts.get("main", workload("Deployment", "main", "a")))
    found.put(kinds.CONFIG_MAP, {"metadata": {"name": "settings", "namespace": "b"}})
    return found


def test_active_namespaces_and_healthy_resources_pass_and_disabled_ones_do_not_count() -> None:
    """A resource without a namespace is in its component's."""
    found = scene()
    assert found.judge() is None
    assert found.seen.lines == [
        "  Namespace a: Active",
        "  Namespace b: Active",
        "  Deployment a/main: 1/1 available",
        "  ConfigMap b/settings: exists",
        "2 namespace(s) and 2 resource(s) are healthy",
    ]


def test_all_failures_come_together_as_not_found() -> None:
    """One does not hide another."""
    resources = (DEPLOYED, CONFIG, {"kind": "Secret", "name": "gone"})
    found = scene(
        recipe(*resources),
        a=namespace("a", "Terminating"),
        main=workload("Deployment", "main", "a", ready=0),
    )
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")
    assert error.message.startswith("3 of 5 parts of the platform are not healthy: ")
    for words in ("Namespace a: is Terminating", "0/1 available", "Secret a/gone: not found"):
        assert words in error.message
    assert sum("FAILED" in line for line in found.seen.lines) == 3


def test_a_kind_that_cannot_be_verified_is_a_failure() -> None:
    """Named with the kinds that can."""
    error = scene(recipe({"kind": "Gadget", "name": "x"})).judge()
    assert error is not None
    assert 'kind "Gadget" cannot be verified' in error.message


@pytest.mark.parametrize("document", [None, {"componentRefs": []}, validation(disabled=("a",))])
def test_without_components_there_is_nothing_to_pass(document: Document | None) -> None:
    """INVALID_REQUEST, not a pass over nothing and not a skip."""
    found = Scene(CHECK, validation=document)
    error = found.judge()
    assert error is not None
    assert error.code == INVALID_REQUEST
    assert skip_in(error) is None


@pytest.mark.parametrize("path", ["/namespaces/a$", "/deployments/main"])
@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
def test_what_cannot_be_read_could_not_be_told(path: str, answer: web.Response, code: str) -> None:
    """When nothing is known to be wrong."""
    found = scene().fault(f"GET .*{path}", answer)
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == code
    assert "1 of 4 parts of the platform could not be read" in error.message


def test_a_known_failure_beside_something_unread_is_a_verdict() -> None:
    """That one part is broken is told."""
    (answer, _) = COULD_NOT_LOOK[0].values
    found = scene(main=workload("Deployment", "main", "a", ready=0))
    error = found.fault("GET .*/namespaces/b$", answer).judge()  # type: ignore[arg-type]
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")
