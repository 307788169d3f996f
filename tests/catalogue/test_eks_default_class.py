"""What an EKS cluster gets from us that it has not by itself."""

from __future__ import annotations

import pytest

import aicr


@pytest.mark.covers("V-315")
def test_an_eks_cluster_gets_a_default_class_of_gp3_volumes() -> None:
    """Claims that name no class are met, once a pod says in which zone."""
    recipe = aicr.resolve(aicr.Catalog.builtin(), aicr.Criteria(service="eks", intent="training"))
    (found,) = aicr.hydrate(recipe)["components"]["aws-ebs-csi-driver"]["values"]["storageClasses"]
    assert (found["name"], found["parameters"]) == ("gp3", {"type": "gp3"})
    assert found["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert found["volumeBindingMode"] == "WaitForFirstConsumer"
