"""Where ``aicr bom`` and ``aicr mirror`` take a bill of materials from: a bundle or a recipe."""

from __future__ import annotations

import os

from aicr.errors import AicrError, invalid, some_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.bundle.api import Bundle
    from aicr.bundle.bom import Bom
    from aicr.cli.arguments import Parser
    from aicr.cli.console import Console


def add_flags(parser: Parser) -> None:
    """Add DIR, ``--recipe``, ``--set`` and ``--data``."""
    parser.add_argument("directory", nargs="?", default=None, metavar="BUNDLE", help="a bundle")
    parser.once("--recipe", "-r", metavar="FILE", help="recipe file or address, - for stdin")
    parser.many("--set", metavar="COMPONENT:PATH=TEXT", help="with --recipe: override one value")
    parser.once("--data", metavar="DIR", help="directory laid over the built-in catalogue")


def is_named(arguments: argparse.Namespace) -> bool:
    """Whether a bundle or a recipe was named.

    Raises:
        AicrError: INVALID_REQUEST for both, or for flags that only go with a recipe.
    """
    if arguments.directory is not None and arguments.recipe is not None:
        raise invalid("a bundle and a recipe are named", where="--recipe", hint="keep one of them")
    if arguments.directory is not None:
        for flag, given in (("--set", arguments.set), ("--data", arguments.data)):
            if given:
                raise invalid(
                    f"{flag} does not change a finished bundle",
                    where=flag,
                    hint="drop it, or name a recipe with --recipe instead of the bundle",
                )
    return arguments.directory is not None or arguments.recipe is not None


def bill(arguments: argparse.Namespace, console: Console) -> Bom:
    """The bill of the bundle or recipe that was named.

    Raises:
        AicrError: INVALID_REQUEST when neither was; what keeps it from being read.
    """
    from aicr.bundle import bom
    from aicr.bundle.chart_render import Helm
    from aicr.version import __version__

    if not is_named(arguments):
        raise invalid("name a bundle or a recipe", hint="aicr … ./bundle, or aicr … -r recipe.yaml")
    if arguments.directory is not None:
        files = read_bundle(arguments.directory, console)
    else:
        files = {path: data for path, (data, _) in made_bundle(arguments, console).files.items()}
    return bom.of_bundle(files, Helm(), version=__version__)


def made_bundle(arguments: argparse.Namespace, console: Console) -> Bundle:
    """The bundle of the recipe that was named, in memory."""
    from aicr.bundle.api import make_bundle
    from aicr.bundle.options import BundleOptions
    from aicr.cli.catalogs import load_catalog
    from aicr.cli.sources import read_input
    from aicr.recipe.document import load_recipe
    from aicr.version import __version__

    catalog = load_catalog(arguments, console)
    text = read_input(arguments.recipe, what="recipe file")
    recipe = load_recipe(text, arguments.recipe, catalog)
    for warning in recipe.warnings:
        console.warn(warning)
    try:
        return make_bundle(recipe, BundleOptions(set=arguments.set, version=__version__))
    except AicrError as error:
        raise AicrError(
            error.code,
            "the recipe cannot be bundled with these flags; aicr bundle takes all that it needs, and "
            "the bundle can then be named here",
        ) from error


def _unreadable(error: OSError) -> None:
    # A list that leaves a folder out would be believed.
    raise invalid(f"the folder {error.filename} cannot be read: {error.strerror}") from error


def read_bundle(directory: str, console: Console) -> dict[str, bytes]:
    """The files of the bundle at *directory*; that it was changed is a warning.

    Raises:
        AicrError: NOT_FOUND or INVALID_REQUEST when there is no folder, or it cannot be read.
    """
    from aicr.artifacts import checksums

    problems = checksums.verify_tree(directory)
    if problems:
        console.warn(f"the bundle is not as it was made: {some_of(problems, 1)}")
    files: dict[str, bytes] = {}
    for folder, _, names in os.walk(directory, onerror=_unreadable):
        for name in sorted(names):
            place = os.path.join(folder, name)
            data, fault = checksums.read_plain(place)
            path = os.path.relpath(place, directory).replace(os.sep, "/")
            if fault:
                raise invalid(f"{path}: {fault}", where=directory)
            files[path] = data
    return files
