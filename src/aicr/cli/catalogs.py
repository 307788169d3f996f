"""The catalogue that a command works with: built in, or with ``--data`` laid over it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.catalog.catalog import Catalog
    from aicr.cli.console import Console


def load_catalog(arguments: argparse.Namespace, console: Console) -> Catalog:
    """The built-in catalogue, with ``--data`` over it; deprecation lines go to the console."""
    from aicr.catalog.catalog import Catalog

    catalog = Catalog.builtin()
    if arguments.data is not None:
        catalog = catalog.overlay(arguments.data)
    for notice in catalog.notices:
        console.warn(notice)
    return catalog
