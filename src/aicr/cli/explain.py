"""``aicr explain``: where a part of a recipe comes from, with file and line."""

from __future__ import annotations

from aicr.cli import bundle, criteria
from aicr.cli.arguments import Once, Parser
from aicr.cli.formats import check_format, render
from aicr.errors import AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from aicr.bundle.options import BundleOptions
    from aicr.cli.console import Console
    from aicr.recipe.explain_types import Explanation

FORMATS: Final = ("text", "json")

#: Groups of ``aicr bundle`` whose flags set values.
_BUNDLE_GROUPS: Final = ("values", "placement")
_EXAMPLES = """\
examples:
  aicr explain --service eks --accelerator h100 --intent training --os ubuntu
  aicr explain --service eks --accelerator h100 --intent training --os ubuntu \\
      gpu-operator:driver.enabled
  aicr explain --service eks --intent training constraints.K8s.server.version
  aicr explain --service eks \\
      --intent training deploymentOrder.gpu-operator.cert-manager
  aicr explain --service gke --os cos components.gpu-operator.values \\
      --format json

Selectors: components.NAME.values.PATH (or NAME:PATH), components.NAME.FIELD,
constraints.NAME, deploymentOrder[.NAME[.OTHER]], validation.PHASE, criteria,
overlays[.NAME], metadata.appliedOverlays, metadata.excludedOverlays. Without
one: a summary of the recipe.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr explain",
        description="Say where a part of a recipe comes from: every layer, with file and line.",
        epilog=_EXAMPLES,
    )
    found.add_argument("part", nargs="?", metavar="SELECTOR", help="what to explain")
    criteria.add_flags(found)
    taken = set(found.names())
    for theirs in bundle.parser().groups:
        if theirs.title in _BUNDLE_GROUPS:
            ours = found.add_argument_group(f"{theirs.title} of the bundle")
            for names, options in theirs.arguments:
                if taken.isdisjoint(names):
                    ours.add_argument(*names, **options)
    output = found.add_argument_group("output")
    output.add_argument(
        "--selector", action=Once, metavar="PATH", help="the same as a flag, as aicr query has it"
    )
    output.add_argument(
        "--format", "-t", action=Once, metavar="NAME", help="text (default) or json"
    )
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Resolve, explain, print."""
    chosen = check_format(arguments.format or None, FORMATS)
    if arguments.part is not None and arguments.selector is not None:
        raise invalid(
            "the selector is given twice",
            where="--selector",
            hint="give it as a word or with --selector",
        )
    selector = arguments.part if arguments.part is not None else arguments.selector or ""
    try:
        recipe = criteria.resolve_arguments(arguments, console)
    except AicrError as error:
        raise _with_places(error, arguments) from error.__cause__

    from aicr.bundle.flag_layers import bundle_layers
    from aicr.cli.sources import read_input
    from aicr.recipe.explain import explain

    layers = bundle_layers(
        recipe, _options(arguments), read_file=lambda path: read_input(path, what="values file")
    )
    explanation = explain(recipe, selector, extend=layers)
    if "configured" in arguments:
        arguments.configured.relocate(explanation)
    _hide_secrets(explanation)
    if chosen == "json":
        console.write(render(explanation, "json"))
    else:
        from aicr.cli.explain_text import draw, wants_colour, width_of

        out = console.out
        console.write(draw(explanation, colour=wants_colour(out), width=width_of(out)))
    return 0


def _hide_secrets(explanation: Explanation) -> None:
    """Where a secret comes from is the question; what it is, stays in the files."""
    from aicr.values import paths, secrets

    for item in explanation.get("items", []):
        # Selectors of anything else need not be paths, and name no values of charts.
        if not item["selector"].partition(".")[2].partition(".")[2].startswith("values."):
            continue
        segments = paths.split(item["selector"])
        if "value" in item:
            item["value"] = secrets.shown(item["value"], segments)
        for step in item["steps"]:
            if "value" in step:
                step["value"] = secrets.shown(step["value"], segments)


def _options(arguments: argparse.Namespace) -> BundleOptions:
    from aicr.bundle.options import BundleOptions

    given: Any = arguments
    return BundleOptions(
        set=given.set,
        set_json=given.set_json,
        set_file=given.set_file,
        system_node_selector=given.system_node_selector,
        system_node_tolerations=given.system_node_toleration,
        accelerated_node_selector=given.accelerated_node_selector,
        accelerated_node_tolerations=given.accelerated_node_toleration,
        workload_selector=given.workload_selector,
        workload_gate=given.workload_gate or "",
        nodes=given.nodes or (given.configured.gpu_nodes if "configured" in given else 0),
        storage_class=_typed(given.storage_class),
        shared_storage_class=_typed(given.shared_storage_class),
    )


def _typed(value: str | None) -> str:
    """A blank that was typed is an error with a message of its own; nothing typed is nothing."""
    return "" if value is None else value or " "


def _with_places(error: AicrError, arguments: argparse.Namespace) -> AicrError:
    """A refusal because of a snapshot, with the file and line of every constraint that failed."""
    warnings = next(
        (
            e.context["constraintWarnings"]
            for e in error.chain()
            if e.context.get("constraintWarnings")
        ),
        None,
    )
    if not warnings:
        return error
    from aicr.catalog.catalog import Catalog
    from aicr.recipe.explain_overlays import failures
    from aicr.recipe.places import places_of

    catalog = Catalog.builtin()
    if arguments.data is not None:
        catalog = catalog.overlay(arguments.data)
    found = failures(catalog, places_of(catalog), warnings)
    lines = [
        f"overlay {warning['overlay']} was left out: {failure['constraint']} {failure['reason']} "
        f"({failure['where']})"
        for warning, failure in zip(warnings, found, strict=True)
    ]
    return AicrError(
        error.code,
        f"{error.message}; {'; '.join(lines)}",
        where=found[0]["where"],
        hint=error.hint,
        context={**error.context, "failures": found},
    )
