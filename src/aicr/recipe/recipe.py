"""The recipe object that resolution returns and bundling takes: a document and its catalogue.

Apart from resolution, so that bundling a finished recipe does not load the resolver.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aicr.catalog.catalog import Catalog
    from aicr.recipe.types import RecipeResult


class Recipe:
    """A resolved recipe: the document, and the catalogue its files are in.

    Attributes:
        document: the RecipeResult in wire form and order.
        catalog: where values files and manifests of the refs are found.
        warnings: what a person should know about this resolution, in order.
        relaxed: criteria that a snapshot implied and that were dropped to find a recipe.
    """

    __slots__ = ("catalog", "document", "relaxed", "warnings")

    def __init__(
        self,
        document: RecipeResult,
        catalog: Catalog,
        *,
        warnings: list[str] | None = None,
        relaxed: list[str] | None = None,
    ) -> None:
        self.document = document
        self.catalog = catalog
        self.warnings: list[str] = warnings or []
        self.relaxed: list[str] = relaxed or []

    def to_yaml(self) -> str:
        """The document as YAML: the same bytes for the same inputs."""
        from aicr.yamlio.write import dump

        return dump(self.document)
