"""Who tells Kubernetes about GPUs on GKE: judged by a snapshot, and again before a validation."""

from __future__ import annotations

from typing import Any

import pytest
from tests.recipe.trees import refusal, resolved, snapshot

from aicr.catalog.catalog import Catalog
from aicr.recipe.recipe import Recipe
from aicr.validate.readiness import check_readiness, constraints_of

RULE = "NodeTopology.gpu-nodes.label"
LABEL = "gke-no-default-nvidia-gpu-device-plugin"
WORDS = {"service": "gke", "accelerator": "h100", "intent": "training", "os": "cos"}
#: Profile value → what it says about the label.
RULES = {"gke-default": f"!{LABEL}", "bundle-installer": f"{LABEL}=true"}


def cluster(labelled: bool) -> dict[str, Any]:
    """A snapshot of a GKE cluster whose GPU nodes carry the label, or do not."""
    labels = {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb|n1,n2"}
    if labelled:
        labels[LABEL] = "true|n1,n2"
    return snapshot(
        {
            "K8s.server": {"version": "v1.34.3-gke.1318000"},
            "K8s.node": {"provider": "gke"},
            "NodeTopology.label": labels,
            "OS.release": {"ID": "cos", "VERSION_ID": "121"},
            "OS.sysctl": {"/proc/sys/kernel/osrelease": "6.6.93+"},
        }
    )


def made(value: str, **options: Any) -> Recipe:
    """The recipe of the shipped GKE leaf with a profile value."""
    return resolved(Catalog.builtin(), options={"profile": f"gpuStack={value}", **options}, **WORDS)


@pytest.mark.covers("V-016", "V-017")
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("value", RULES)
def test_the_rule_of_the_profile_is_judged_when_a_snapshot_is_there(
    value: str, labelled: bool
) -> None:
    """At generation with a snapshot, and by the gate again; criteria alone leave it all to the gate."""
    holds = labelled is (value == "bundle-installer")
    deferred = made(value)
    stated = [one for one in constraints_of(deferred.document) if one["name"] == RULE]
    assert [one["value"] for one in stated] == [RULES[value]]
    if holds:
        judged = made(value, snapshot=cluster(labelled))
        assert judged.document["metadata"]["selectedProfile"]["value"] == value
        for recipe in (deferred, judged):
            lines = check_readiness(recipe.document, cluster(labelled))
            assert [line for line in lines if line.startswith(f"{RULE} holds")]
        return
    error = refusal(lambda: made(value, snapshot=cluster(labelled)))
    assert error.code == "INVALID_REQUEST"
    assert error.message.startswith(f'profile gpuStack={value} constraint "{RULE}" failed')
    error = refusal(lambda: check_readiness(deferred.document, cluster(labelled)))
    assert error.message.startswith(f"readiness check failed: {RULE} expected {RULES[value]}")
