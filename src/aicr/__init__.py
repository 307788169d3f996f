"""AI cluster runtime: recipes, bundles, validation and preflight for GPU Kubernetes clusters.

The public interface is the names in ``__all__``; each is imported when it is first used, so that
``import aicr`` costs nothing.

>>> import aicr
>>> recipe = aicr.resolve(
...     aicr.Catalog.builtin(),
...     aicr.Criteria(service="eks", accelerator="h100", intent="training", os="ubuntu"),
... )
>>> recipe.document["kind"]
'RecipeResult'
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aicr.bundle.api import make_bundle as bundle
    from aicr.bundle.options import BundleOptions as BundleOptions
    from aicr.catalog.catalog import Catalog as Catalog
    from aicr.errors import AicrError as AicrError
    from aicr.recipe.criteria import Criteria as Criteria
    from aicr.recipe.hydrate import hydrate as hydrate
    from aicr.recipe.resolve import resolve as resolve

__all__ = [
    "AicrError",
    "BundleOptions",
    "Catalog",
    "Criteria",
    "bundle",
    "hydrate",
    "resolve",
]

_HOMES = {
    "AicrError": "aicr.errors",
    "BundleOptions": "aicr.bundle.options",
    "Catalog": "aicr.catalog.catalog",
    "Criteria": "aicr.recipe.criteria",
    "hydrate": "aicr.recipe.hydrate",
    "resolve": "aicr.recipe.resolve",
}


def __getattr__(name: str) -> Any:
    if name == "bundle":
        return __import__("aicr.bundle", fromlist=["bundle"])
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'aicr' has no attribute {name!r}")
    value = getattr(__import__(home, fromlist=[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
