"""The TCPXO runtime that the catalogue ships can be measured as it is (validators spec 7.2)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from aicr.bundle.gotemplate import render
from aicr.catalog.catalog import Catalog
from aicr.checks.deployment.gke_gpu_nic_networks import miswired, node_annotations
from aicr.checks.performance import nccl_derivation as derivation
from aicr.checks.performance import nccl_preflights as preflights
from aicr.checks.performance import nccl_templates as templates
from aicr.validate.provenance_bound import bound

PATH = "components/kubeflow-trainer/manifests/torch-distributed-tcpxo.yaml"
MAPPING = [{"interfaceName": f"eth{n + 1}", "network": f"gpu-nic-{n}"} for n in range(8)]


def shipped() -> dict[str, Any]:
    """The runtime as a bundle renders it."""
    values = {
        "tcpxoInterfaces": MAPPING,
        "acceleratedNodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"},
    }
    data = {
        "Values": {"kubeflow-trainer": values},
        "Release": {"Namespace": "kubeflow", "Service": "Helm"},
        "Chart": {"Name": "kubeflow-trainer", "Version": "0.1.0"},
    }
    text = render(Catalog.builtin().tree.read_text(PATH), data, source=PATH)
    (found,) = [one for one in yaml.safe_load_all(text) if one]
    runtime: dict[str, Any] = found
    return runtime


@pytest.mark.covers("V-184", "V-199", "V-200", "V-201", "V-203", "V-223")
def test_the_shipped_runtime_meets_every_precondition_and_is_derived() -> None:
    """No repair is needed; every variable that it declares is named in the published record."""
    runtime = shipped()
    assert miswired(node_annotations(runtime), MAPPING) == []
    pods = templates.node_template(runtime)
    assert derivation.unmet(pods, 8) == []
    text = Catalog.builtin().tree.read_text("validators/performance/testdata/h100/gke/runtime.yaml")
    values = templates.variables(
        *("ns", 2, 8),
        interfaces=preflights.interfaces([one["network"] for one in MAPPING]),
        devices=preflights.devices(8),
    )
    skeleton = templates.parse(templates.fill(text, values), "skeleton")
    made = derivation.derive(pods, skeleton, "torch-distributed-tcpxo", 8)
    record = bound(derivation.provenance(pods, templates.node_template(made)))
    assert record is not None
    names = [each["name"] for each in templates.worker_container(pods)["env"]]
    for name in names:
        assert f"spec.containers[*].env[{name}].value" in record["inheritedPaths"]
