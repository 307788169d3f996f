"""From a recipe and the caller's flags to the files of a bundle.

```
options, overrides ─► selection ─► placement, storage, typed overrides ─► plan ─► layout ─►
deployers ─► output
```

Everything up to the files is pure: documents in, documents out. Reading (catalogue, value files) and
writing (the bundle folder) happen at the two ends. Nothing here talks to a cluster.

The package can be called: ``aicr.bundle(recipe, options)`` makes a bundle in memory, and its ``write``
puts it on disk as a whole (decision 37). Submodules are imported when they are used.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aicr.bundle.api import Bundle
    from aicr.bundle.options import BundleOptions
    from aicr.recipe.recipe import Recipe


class _CallableModule(type(sys)):  # type: ignore[misc]
    """This module's type: the public function and its home share one name."""

    def __call__(self, recipe: Recipe, options: BundleOptions | None = None) -> Bundle:
        """Make the bundle of a recipe in memory; see ``aicr.bundle.api.make_bundle``."""
        from aicr.bundle.api import make_bundle

        return make_bundle(recipe, options)


sys.modules[__name__].__class__ = _CallableModule
