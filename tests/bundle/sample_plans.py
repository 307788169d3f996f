"""Small plans for tests of what comes after planning: layout, deployers, output."""

from __future__ import annotations

from typing import Any, Final, cast

from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import Component, Plan

GPU_CHART: Final[dict[str, Any]] = {
    "source": "https://charts.example.com/nvidia",
    "chart": "gpu-operator",
    "version": "v25.3.3",
}


def component(
    name: str,
    *,
    namespace: str = "",
    values: dict[str, Any] | None = None,
    manifests: list[tuple[str, str]] | None = None,
    pre_manifests: list[tuple[str, str]] | None = None,
    entry: dict[str, Any] | None = None,
    **ref: Any,
) -> Component:
    """A component of this name; what else its ref holds is given by keyword."""
    return Component(
        name=name,
        ref=cast("Any", {"name": name, "type": "Helm", "source": "", **ref}),
        entry=cast("Any", entry or {}),
        namespace=namespace or name,
        values=values or {},
        manifests=manifests or [],
        pre_manifests=pre_manifests or [],
        changes=[],
    )


def chart(name: str, **more: Any) -> Component:
    """A component from an upstream chart of its own name."""
    ref = {"source": "https://charts.example.com", "chart": name, "version": "1.2.3"}
    return component(name, **{**ref, **more})


def plan_of(*components: Component, notes: tuple[str, ...] = (), **recipe: Any) -> Plan:
    """A plan of these components, in this order."""
    document = {
        "kind": "RecipeResult",
        "apiVersion": "aicr.run/v1",
        "metadata": {"version": "1.0.0"},
        "criteria": {"service": "eks", "accelerator": "h100", "intent": "any"},
        "componentRefs": [dict(item.ref) for item in components],
        "deploymentOrder": [item.name for item in components],
        **recipe,
    }
    return Plan(
        components=list(components),
        notes=list(notes),
        recipe=cast("Any", document),
        deployer="helm",
        options=BundleOptions(version="dev"),
    )


CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  key: value
"""


def namespace_manifest(name: str) -> str:
    """A Namespace with Pod Security labels."""
    return (
        f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n  labels:\n"
        "    pod-security.kubernetes.io/enforce: privileged\n"
    )
