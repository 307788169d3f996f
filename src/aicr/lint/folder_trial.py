"""What the bundler's layout refuses of a component, whatever flags a bundle is made with.

Names, namespaces, chart addresses and the names of manifests are judged by the layout itself, on a
component without values. A Kustomize source is left out: its folder takes a build. It must not know
overlays.

Source: bundler spec 2.1 to 2.3.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from aicr.bundle import layout
from aicr.bundle.plan import Component
from aicr.errors import AicrError

if TYPE_CHECKING:
    from aicr.catalog.types import ComponentRef, RegistryEntry


def refusal(ref: ComponentRef, entry: RegistryEntry | None) -> AicrError | None:
    """Why a component cannot have a folder in a bundle, or None."""
    if layout.is_kustomize(ref):
        return None
    component = Component(
        name=ref["name"],
        ref=ref,
        entry=entry or {"name": ref["name"]},
        namespace=ref.get("namespace") or ref["name"],
        values={},
        manifests=[(_basename(path), "") for path in ref.get("manifestFiles") or ()],
        pre_manifests=[(_basename(path), "") for path in ref.get("preManifestFiles") or ()],
        changes=[],
    )
    plan: Any = SimpleNamespace(components=[component])
    try:
        layout.folders(plan)
    except AicrError as error:
        return error
    return None


def _basename(path: str) -> str:
    return path.rpartition("/")[2]
