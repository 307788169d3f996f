"""``aicr diff``: compare two recipes, bundles or snapshots by what they mean."""

from __future__ import annotations

from aicr.cli.arguments import Once, Parser
from aicr.cli.formats import check_format, render
from aicr.cli.sources import write_output
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from aicr.catalog.catalog import Catalog
    from aicr.cli.console import Console
    from aicr.cli.states import State
    from aicr.diff.changes import Comparison

FORMATS: Final = ("text", "json", "yaml")
#: Status of a run that found something (decision 46).
FOUND: Final = 8
_EXAMPLES = """\
examples:
  aicr diff old-recipe.yaml new-recipe.yaml
  aicr diff bundle-1.0 bundle-1.1 --format json
  aicr diff --baseline monday.yaml --target today.yaml

Both sides must be of one kind. Order of keys, comments, folder numbers, times
and the version of aicr that wrote something are no differences. Values are
compared as the charts get them.

For this command exit status 8 means that the two differ, 0 that they mean the
same.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr diff",
        description="Compare two recipes, bundles or snapshots by what they mean.",
        epilog=_EXAMPLES,
    )
    found.add_argument("before", nargs="?", default=None, metavar="A", help="the old state")
    found.add_argument("after", nargs="?", default=None, metavar="B", help="the new state")
    found.once("--baseline", "-b", metavar="FILE", help="the old snapshot, in place of A")
    found.once("--target", metavar="FILE", help="the new snapshot, in place of B")
    found.add_argument(
        "--fail-on-drift",
        action=Once,
        nargs="?",
        const="true",
        metavar="BOOL",
        help="false: exit 0 also when the two differ (default true)",
    )
    found.once("--data", metavar="DIR", help="directory laid over the built-in catalogue")
    found.once(
        "--kubeconfig",
        "-k",
        metavar="FILE",
        help="cluster of a cm://NAMESPACE/NAME (KUBECONFIG)",
    )
    found.once("--output", "-o", metavar="FILE", help="write to a file")
    found.once("--format", "-t", metavar="NAME", help="text (default), json or yaml")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Read both sides, compare, print."""
    from aicr.cli.states import RECIPE, SNAPSHOT, read_state

    chosen = check_format(arguments.format, FORMATS)
    fail = truth(arguments.fail_on_drift, "--fail-on-drift")
    before, after = _sides(arguments)
    from aicr.cli.catalogs import load_catalog

    catalog = load_catalog(arguments, console)
    # The flags are for snapshots, so that is what is meant in a ConfigMap of several keys.
    kept = RECIPE if arguments.baseline is None else SNAPSHOT
    kubeconfig = arguments.kubeconfig or ""
    old, new = (
        read_state(side, catalog, kubeconfig=kubeconfig, in_config_map=kept)
        for side in (before, after)
    )
    for state in (old, new):
        for notice in state.notices:
            console.warn(notice)
    comparison = _compare(old, new, catalog)
    if chosen == "text":
        from aicr.cli.explain_text import wants_colour
        from aicr.diff.text import draw

        coloured = wants_colour(console.out) and not arguments.output
        text = draw(comparison, before, after, colour=coloured)
    else:
        text = render(comparison.document(before, after), chosen)
    write_output(text, arguments.output or "", console)
    return FOUND if fail and not comparison.same else 0


def truth(text: str | None, flag: str) -> bool:
    """The value of a flag that is true unless said otherwise.

    Raises:
        AicrError: INVALID_REQUEST for another word than true or false.
    """
    if text in (None, "true"):
        return True
    if text == "false":
        return False
    raise invalid(
        f'invalid {flag} "{text}"', where=flag, hint=f"write {flag}=false or leave it out"
    )


def _sides(arguments: argparse.Namespace) -> tuple[str, str]:
    sides = []
    for position, flag in (("before", "baseline"), ("after", "target")):
        given = [
            text
            for text in (getattr(arguments, position), getattr(arguments, flag))
            if text is not None
        ]
        sides.append(given)
    named, flags = (arguments.before, arguments.after), (arguments.baseline, arguments.target)
    if any(text is not None for text in named) and any(text is not None for text in flags):
        raise invalid(
            "the two sides are named both ways",
            where="--baseline",
            hint="write aicr diff A B, or --baseline A --target B",
        )
    if not all(sides):
        missing = "the old state" if not sides[0] else "the new state"
        raise invalid(f"{missing} is not named", hint="write aicr diff A B")
    if sides[0] == sides[1] == ["-"]:
        raise invalid(
            "only one side can come from standard input", hint="name a file for the other"
        )
    return sides[0][0], sides[1][0]


def _compare(before: State, after: State, catalog: Catalog) -> Comparison:
    from aicr.cli.states import BUNDLE, SNAPSHOT

    if before.kind != after.kind:
        raise invalid(
            f"{before.name} is a {before.kind} and {after.name} is a {after.kind}",
            hint="compare two of one kind; a bundle's recipe is the file recipe.yaml in it",
        )
    if before.kind == SNAPSHOT:
        from aicr.diff import snapshots

        return snapshots.compare(before.document, after.document)
    bring_crds = {
        entry["name"]
        for entry in catalog.registry.entries
        if entry.get("ownsCRDs")
        or entry.get("hasSelfRefCRDs")
        or entry.get("manifestsUseChartCRDs")
    }
    bring_crds |= {
        entry["name"] for entry in catalog.registry.entries if entry["name"].endswith("-crds")
    }
    if before.kind == BUNDLE:
        from aicr.diff import bundles

        return bundles.compare(before.files, after.files, bring_crds=bring_crds)
    from aicr.diff import recipes
    from aicr.recipe.hydrate import resolve_values

    def values(ref: Any) -> dict[str, Any]:
        return resolve_values(ref, catalog.tree)

    return recipes.compare(
        before.document,
        after.document,
        values_before=values,
        values_after=values,
        bring_crds=bring_crds,
    )
