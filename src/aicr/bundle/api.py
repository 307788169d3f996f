"""Make a bundle in one call; nothing is written until ``write``.

```
plan ─► charts, with --vendor-charts or --chart-dir ─► folders ─► CRD order, sizes ─► deployer ─► Bundle
```
"""

from __future__ import annotations

import os

from aicr.bundle import crd_order, deployers, layout, output, sizes, upgrades
from aicr.bundle.options import BundleOptions
from aicr.bundle.plan import WARNING
from aicr.bundle.plan import plan as make_plan
from aicr.errors import invalid
from aicr.recipe.recipe import Recipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from aicr.bundle.kustomize import Run
    from aicr.bundle.plan import Plan
    from aicr.catalog.catalog import Catalog


class Bundle:
    """A bundle in memory.

    Attributes:
        files: relative path to (bytes, mode), sorted by path.
        plan: what went into it: components with final values, notes, changes.
        build_type: words for what this is, for example ``helm-bundle``.
        steps: the commands that deploy it, in order.
    """

    __slots__ = ("build_type", "files", "plan", "steps")

    def __init__(
        self,
        files: dict[str, tuple[bytes, int]],
        plan: Plan,
        build_type: str,
        steps: tuple[str, ...],
    ) -> None:
        self.files = files
        self.plan = plan
        self.build_type = build_type
        self.steps = steps

    def write(self, target: str | os.PathLike[str]) -> None:
        """Write the whole bundle to the folder *target*, a name or a path, or nothing.

        Raises:
            AicrError: the folder holds something that is not a bundle of ours, or cannot be written.
        """
        output.write_bundle(self.files, os.fspath(target))


def make_bundle(
    recipe: Recipe,
    options: BundleOptions | None = None,
    *,
    read_file: Callable[[str], str] | None = None,
    run: Run | None = None,
) -> Bundle:
    """The bundle of a resolved recipe.

    What a directory laid over the built-in catalogue brought goes into the bundle as ``data/``
    (bundler spec 1.1), unless the options name such files themselves.

    Args:
        recipe: what ``aicr.resolve`` returned.
        options: the flags; defaults to a helm bundle without overrides.
        read_file: gives the text of a ``--set-file`` file.
        run: starts the processes of helm and kustomize; the default starts real ones.

    Raises:
        AicrError: what keeps the bundle from being made; nothing has been written then.
    """
    if not isinstance(recipe, Recipe):
        raise invalid(
            f"only what aicr.resolve gives can be bundled, found {type(recipe).__name__}",
            hint="recipe = aicr.resolve(catalog, criteria); a file is read by aicr bundle -r FILE",
        )
    options = BundleOptions() if options is None else options
    if not isinstance(options, BundleOptions):
        raise invalid(
            f"options must be aicr.BundleOptions, found {type(options).__name__}",
            hint='for example aicr.BundleOptions(deployer="helm")',
        )
    options = _with_data(options, recipe.catalog)
    deployer = deployers.load(options.deployer)
    planned = make_plan(recipe.document, recipe.catalog, options, read_file=read_file)
    notices = upgrades.collect(planned, recipe.catalog)
    notes: list[str] = []
    if options.vendor_charts or options.chart_dir:
        from aicr.bundle import vendor

        notes += vendor.attach(planned, run=run)
    folders = layout.folders(planned, run=run)
    notes += crd_order.check(planned, folders)
    notes += sizes.check(folders)
    notes += deployers.notes(deployer, planned)
    # A deployer writes the notes into its README.
    planned.notes += [WARNING + note for note in notes]
    files = deployer.generate(planned, folders)
    files = upgrades.add_files(files, notices, planned.deployer)
    return Bundle(
        dict(sorted(files.items())),
        planned,
        deployer.BUILD_TYPE,
        deployers.steps(deployer, options),
    )


def _with_data(options: BundleOptions, catalog: Catalog) -> BundleOptions:
    if options.data_files or not catalog.external:
        return options
    flags: dict[str, Any] = {name: getattr(options, name) for name in BundleOptions.__slots__}
    flags["data_files"] = {
        path: catalog.tree.read_text(path).encode("utf-8") for path in catalog.external
    }
    return BundleOptions(**flags)
