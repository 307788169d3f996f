"""Plans for the tests of deployers, and bundles of the real catalogue."""

from __future__ import annotations

from functools import cache
from typing import Any

from tests.bundle.sample_plans import CONFIG_MAP, chart, component, namespace_manifest, plan_of

from aicr.bundle import deployers, layout
from aicr.bundle.api import make_bundle
from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Plan
from aicr.catalog.catalog import Catalog
from aicr.recipe.criteria import Criteria
from aicr.recipe.resolve import resolve

Files = dict[str, tuple[bytes, int]]

#: Values that some tool takes for a template of its own (field case F2).
TEMPLATE_EATERS: dict[str, Any] = {
    "rule": "GPU {{ $labels.gpu }} hot, value {{ $value }}",
    "s3": "s3://${ACCESS_KEY}:$${X}@bucket",
    "hcl": '100%{if}% done %% ${upper("x")}',
    "sh": 'for i in $(seq 1 3); do echo "${i:-none}" $NODE_NAME; done\n',
    "k8s": "$(POD_IP):29500",
    "backtick": "a `b` ${`c`}",
    "heredoc": "EOT\nEOF",
    "quotes": "a\"b\\c 'd'\ttab \u0007bell é 中",
}

CATALOGUE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "eks-training": (
        {
            "service": "eks",
            "accelerator": "h100",
            "intent": "training",
            "os": "ubuntu",
            "platform": "kubeflow",
        },
        {"system_node_selector": ["pool=system"], "accelerated_node_selector": ["pool=gpu"]},
    ),
    "gke-inference": (
        {
            "service": "gke",
            "accelerator": "h100",
            "intent": "inference",
            "os": "cos",
            "platform": "dynamo",
        },
        {
            "system_node_selector": ["pool=system"],
            "accelerated_node_selector": ["pool=gpu"],
            "storage_class": "standard-rwo",
        },
    ),
}


def diamond() -> Plan:
    """cert-manager, then gpu-operator with manifests on both sides, then two that need it; one free."""
    return plan_of(
        chart("aws-efa"),
        chart("cert-manager", entry=owner("cert-manager")),
        component(
            "gpu-operator",
            source="oci://registry.example:5000/charts",
            chart="gpu-operator",
            version="v26.3.1+build.2",
            dependencyRefs=["cert-manager"],
            pre_manifests=[("ns.yaml", namespace_manifest("gpu-operator"))],
            manifests=[("policy.yaml", CONFIG_MAP)],
            values=TEMPLATE_EATERS,
            entry={"manifestsUseChartCRDs": True},
        ),
        chart("dynamo", dependencyRefs=["gpu-operator"], entry={"hasSelfRefCRDs": True}),
        chart("kai-scheduler", dependencyRefs=["gpu-operator"], manifests=[("q.yaml", CONFIG_MAP)]),
    )


def owner(name: str) -> dict[str, Any]:
    """A registry entry that owns the CRDs of the chart that ``chart`` makes."""
    return {
        "ownsCRDs": True,
        "helm": {
            "defaultRepository": "https://charts.example.com",
            "defaultChart": name,
            "defaultVersion": "1.2.3",
        },
    }


def generate(name: str, plan: Plan, **flags: Any) -> Files:
    """The files of a plan with a deployer; flags are those of ``BundleOptions``."""
    options = BundleOptions(deployer=name, **flags)
    plan.options, plan.serial = options, options.serial
    return deployers.load(name).generate(plan, layout.folders(plan))


@cache
def real_files(recipe: str, deployer: str, serial: bool = False) -> Files:
    """The files of a bundle of the catalogue; a test must not change them."""
    criteria, flags = CATALOGUE[recipe]
    found = resolve(Catalog.builtin(), Criteria(**criteria))
    return make_bundle(found, BundleOptions(deployer=deployer, serial=serial, **flags)).files


@cache
def real_plan(recipe: str) -> Plan:
    """The plan of such a bundle."""
    criteria, flags = CATALOGUE[recipe]
    found = resolve(Catalog.builtin(), Criteria(**criteria))
    return make_bundle(found, BundleOptions(**flags)).plan
