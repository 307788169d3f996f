"""What a component deploys once its manifests are rendered with the values that the recipe gives it.

A health check is a fixed text; it cannot see that a value switches off the very object that it asserts. So
the manifests are rendered here as the bundler renders them, and a check is withheld when the render holds
no such object. The only values that count are those of the recipe (overlay or inline overrides, already
merged into the ref): what was passed to ``aicr bundle --set`` is not in it and is not honoured. Whatever
cannot be rendered is an error and never "nothing is deployed".

Source: validators spec 6.1 step 2; requirements V-405 to V-409, V-426.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from aicr.bundle import component_values, manifests
from aicr.catalog.catalog import Catalog
from aicr.recipe.hydrate import resolve_values

if TYPE_CHECKING:
    from aicr.catalog.tree import Tree

CUSTOMIZATIONS: Final = "nodewright-customizations"
OPERATOR: Final = "nodewright-operator"
#: Components whose check is withheld when nothing at all is rendered.
EMPTY_MEANS_OFF: Final = ("gcp-driver-installer", "dra-node-labeler")
#: API groups of the objects that the Nodewright operator works on: today's, and the one before 0.18.
NODEWRIGHT_GROUP: Final = "nodewright.nvidia.com"
SKYHOOK_GROUP: Final = "skyhook.nvidia.com"
_NODEWRIGHT_KINDS: Final = {NODEWRIGHT_GROUP: "NodeWright", SKYHOOK_GROUP: "Skyhook"}

Document = dict[str, Any]


def embedded_tree() -> Tree:
    """The files that a check can read: those built into this program (V-426)."""
    return Catalog.builtin().tree


def rendered(ref: Mapping[str, Any], tree: Tree) -> list[Document]:
    """The objects of a ref's manifests, rendered with its effective values.

    Raises:
        AicrError: INVALID_REQUEST for a manifest that is not there or cannot be rendered, INTERNAL for a
            values file that is not there.
    """
    found: list[Document] = []
    # As the bundler has it: the switch of the component itself is no value of its chart.
    typed: Any = ref
    values = {key: value for key, value in resolve_values(typed, tree).items() if key != "enabled"}
    for path in [*(ref.get("preManifestFiles") or ()), *(ref.get("manifestFiles") or ())]:
        _, text = component_values.rendered(
            path, typed, ref.get("namespace") or ref["name"], values, tree
        )
        found += manifests.documents(text, path)
    return found


def nodewright_names(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """Names of the Nodewright objects among rendered ones, whichever group they are written for."""
    names = []
    for document in documents:
        group = str(document.get("apiVersion") or "").rpartition("/")[0]
        if document.get("kind") == _NODEWRIGHT_KINDS.get(group):
            names.append(str((document.get("metadata") or {}).get("name") or ""))
    return sorted(names)


def withheld(name: str, documents: Iterable[Mapping[str, Any]]) -> str:
    """Why the health check of a component is withheld, "" if it is not.

    Args:
        name: of the component.
        documents: what its manifests render to.
    """
    if name == CUSTOMIZATIONS and not nodewright_names(documents):
        return "the recipe's values switch its Nodewright objects off"
    if name in EMPTY_MEANS_OFF and not list(documents):
        return "the recipe's values switch its objects off"
    return ""


def is_gated(name: str) -> bool:
    """Whether values decide if a component's check applies, so that its manifests must be rendered."""
    return name == CUSTOMIZATIONS or name in EMPTY_MEANS_OFF
