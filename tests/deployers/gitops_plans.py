"""Plans that have what GitOps deployers treat specially, and how they are written to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

from tests.bundle.sample_plans import CONFIG_MAP, chart, component, namespace_manifest

from aicr.bundle import deployers, layout, output
from aicr.bundle.layout import Folder
from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Component, Plan

#: Texts that some template language of some deployer would change (field case F2).
EATEN: Final[dict[str, str]] = {
    "rule": "GPU {{ $labels.gpu }} hot, value {{ $value }}",
    "s3": "s3://${ACCESS_KEY}:$${X}@bucket",
    "hcl": '100%{if}% done %% ${upper("x")}',
    "sh": 'for i in $(seq 1 3); do echo "${i:-none}" $NODE_NAME; done\n',
    "k8s": "$(POD_IP):29500",
    "backtick": "a `b` ${`c`}",
    "heredoc": "EOT\nEOF",
    "braces": "{{{ }}} {{`{{ x }}`}} {{- /* gone? */ -}} {{",
    "blank": "  lead and trail  ",
    "lines": "\n\n  several\n\n\n",
    "number": "24.10",
    "word": "on",
    "quote": 'it\'s "quoted" \\ and a tab\t',
    "unicode": "é 日本 🙂",
    "tokens": "aicr-token-name",
}
OCI_CHART: Final[dict[str, Any]] = {
    "source": "oci://registry.example:5000/charts",
    "chart": "gpu-operator",
    "version": "v26.3.1+build.2",
}


def plan_of(
    *components: Component, notes: tuple[str, ...] = (), recipe: Any = None, **options: Any
) -> Plan:
    """A plan of these components in this order, for a run with these flags."""
    document = {
        "kind": "RecipeResult",
        "apiVersion": "aicr.run/v1",
        "metadata": {"version": "1.4.0"},
        "criteria": {"service": "eks", "accelerator": "h100", "intent": "training"},
        "componentRefs": [dict(item.ref) for item in components],
        "deploymentOrder": [item.name for item in components],
        **(recipe or {}),
    }
    flags = BundleOptions(**{"deployer": "argocd", "version": "1.0.0", **options})
    return Plan(
        components=list(components),
        notes=list(notes),
        recipe=cast("Any", document),
        deployer=flags.deployer,
        options=flags,
    )


def deferred(item: Component, *paths: list[str | int]) -> Component:
    """The component with these paths left to installation."""
    item.dynamic = list(paths)
    return item


def pair() -> list[Component]:
    """Two components: `a`, and `b` that needs it and has a release before and after its chart."""
    return [
        chart("a", values={"texts": EATEN, "replicas": 2}),
        chart(
            "b",
            namespace="b-system",
            source="oci://registry.example:5000/charts",
            version="v26.3.1+build.2",
            dependencyRefs=["a"],
            values={"enabled": {"gpu": True}},
            pre_manifests=[("ns.yaml", namespace_manifest("b-system"))],
            manifests=[("settings.yaml", CONFIG_MAP)],
        ),
    ]


def graph() -> list[Component]:
    """Components of three tiers, in deployment order, with releases of several phases."""
    manifests: list[tuple[str, str]] = [("m.yaml", CONFIG_MAP)]
    return [
        chart("aws-efa"),
        chart("cert-manager", manifests=manifests),
        component("extras", manifests=manifests, dependencyRefs=["aws-efa"]),
        chart("gpu-operator", dependencyRefs=["cert-manager"], manifests=manifests),
        chart("dynamo", dependencyRefs=["gpu-operator"]),
        chart("kai-scheduler", dependencyRefs=["gpu-operator"]),
    ]


def files_of(plan: Plan, folders: list[Folder] | None = None) -> dict[str, tuple[bytes, int]]:
    """The files of a plan with the deployer that it is for."""
    return deployers.load(plan.deployer).generate(plan, folders or layout.folders(plan))


def written(plan: Plan, folder: Path) -> Path:
    """The bundle of a plan, written to a new folder."""
    output.write_bundle(files_of(plan), str(folder))
    return folder
