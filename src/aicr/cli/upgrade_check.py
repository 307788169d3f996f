"""``aicr upgrade-check``: what it takes to get from one recipe or bundle to another."""

from __future__ import annotations

from aicr.cli.arguments import Once, Parser
from aicr.cli.diff import truth
from aicr.cli.formats import check_format, render
from aicr.cli.sources import write_output
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from aicr.bundle.upgrade_paths import Assessment
    from aicr.catalog.catalog import Catalog
    from aicr.cli.console import Console
    from aicr.cli.states import State

FORMATS: Final = ("table", "json", "yaml")
#: Status of a run that found something (decision 46).
FOUND: Final = 8
_EXAMPLES = """\
examples:
  aicr upgrade-check --from running-bundle --to new-bundle
  aicr upgrade-check --from recipe-1.0.yaml
  aicr upgrade-check --from recipe-1.0.yaml --deployer argocd --format json

Without --to the criteria of --from are resolved again with this version's
catalogue.

verdicts: safe was tried; manual needs the steps shown; blocked must not be
done; unknown is a way that nobody recorded; unversioned has a version that
cannot be compared. All but safe need attention.

For this command exit status 8 means that something needs attention.
"""

_COLOURS: Final = {
    "safe": "\033[32m",
    "manual": "\033[33m",
    "blocked": "\033[31m",
    "unknown": "\033[35m",
    "unversioned": "\033[35m",
}
_BOLD: Final = "\033[1m"
_OFF: Final = "\033[0m"


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr upgrade-check",
        description="Say what an upgrade from one recipe or bundle to another asks for.",
        epilog=_EXAMPLES,
    )
    found.add_argument(
        "--from",
        "-f",
        action=Once,
        dest="before",
        metavar="FILE|DIR",
        help="recipe, bundle or cm://NAMESPACE/NAME that runs now",
    )
    found.add_argument(
        "--to",
        action=Once,
        dest="after",
        metavar="FILE|DIR",
        help="recipe or bundle that is to run",
    )
    found.once(
        "--deployer",
        "-d",
        metavar="NAME",
        help="whose steps to show (default: the bundle's, or helm)",
    )
    found.add_argument(
        "--fail-on-error",
        action=Once,
        nargs="?",
        const="true",
        metavar="BOOL",
        help="false: exit 0 also when something needs attention (default true)",
    )
    found.once("--data", metavar="DIR", help="directory laid over the built-in catalogue")
    found.once(
        "--kubeconfig",
        "-k",
        metavar="FILE",
        help="cluster of a cm://NAMESPACE/NAME (KUBECONFIG)",
    )
    found.once("--output", "-o", metavar="FILE", help="write to a file")
    found.once("--format", "-t", metavar="NAME", help="table (default), json or yaml")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Read both states, look each change up, print."""
    chosen = check_format(arguments.format, FORMATS)
    fail = truth(arguments.fail_on_error, "--fail-on-error")
    if arguments.before is None:
        raise invalid("flag --from is required", hint="name the recipe or bundle that runs now")
    from aicr.bundle import upgrade_paths, upgrades
    from aicr.catalog.dependencies import is_enabled
    from aicr.cli.catalogs import load_catalog
    from aicr.cli.states import read_state

    if arguments.before == arguments.after == "-":
        raise invalid(
            "only one side can come from standard input", hint="name a file for the other"
        )
    catalog = load_catalog(arguments, console)

    def read(source: str, flag: str) -> State:
        state = read_state(source, catalog, kubeconfig=arguments.kubeconfig or "")
        return _deployable(state, flag, console)

    before = read(arguments.before, "--from")
    to = arguments.after
    after = _today(before, catalog) if to is None else read(to, "--to")
    deployer = _deployer(arguments.deployer, before, after)
    rows = upgrade_paths.compare(
        [ref for ref in before.document["componentRefs"] if is_enabled(ref)],
        [ref for ref in after.document["componentRefs"] if is_enabled(ref)],
        lambda name: upgrades.load_record(name, catalog),
    )
    attention = [row for row in rows if row.needs_attention]
    if chosen == "table":
        from aicr.cli.explain_text import wants_colour

        text = draw(rows, deployer, colour=wants_colour(console.out) and not arguments.output)
    else:
        text = render(document(rows, before.name, after.name, deployer), chosen)
    write_output(text, arguments.output or "", console)
    console.flush()
    console.say(
        f"upgrade-check: {len(rows)} component{'s' * (len(rows) != 1)}, "
        f"{len(attention)} need{'s' * (len(attention) == 1)} attention"
    )
    return FOUND if fail and attention else 0


def document(rows: list[Assessment], before: str, after: str, deployer: str) -> dict[str, Any]:
    """The result as a plain document."""
    components = []
    for row in rows:
        made: dict[str, Any] = {"component": row.component}
        if row.before:
            made["from"] = row.before
        if row.after:
            made["to"] = row.after
        made["verdict"] = row.verdict
        if row.reason:
            made["reason"] = row.reason
        if row.path:
            made["transitions"] = [_transition(item, deployer) for item in row.path]
        components.append(made)
    return {
        "before": before,
        "after": after,
        "deployer": deployer,
        "needsAttention": any(row.needs_attention for row in rows),
        "components": components,
    }


def draw(rows: list[Assessment], deployer: str, *, colour: bool = False) -> str:
    """The result for people: a table of what changes, then the steps."""
    from aicr.diff.text import grid

    shown = [row for row in rows if row.verdict != "unchanged"]
    if not shown:
        return "no component changes its version\n"
    cells = [
        (row.component, row.before, row.after, row.verdict, _short(row.reason)) for row in shown
    ]
    paints = [_COLOURS.get(row.verdict, "") if colour else "" for row in shown]
    lines = grid(("component", "from", "to", "verdict", "why"), cells, paints)
    for row in shown:
        if row.path and row.verdict != "safe":
            title = f"{row.component} {row.before} → {row.after}: {row.verdict}"
            lines += ["", f"{_BOLD}{title}{_OFF}" if colour else title]
            for transition in row.path:
                lines += _section(transition, deployer)
    return "".join(f"{_clean(line, colour)}\n" for line in lines)


def _section(transition: Any, deployer: str) -> list[str]:
    lines = [f"  {_line(transition.summary)}"]
    if transition.precondition:
        lines.append(f"  before: {_line(transition.precondition)}")
    steps = transition.steps(deployer)
    for number, step in enumerate(steps, 1):
        lines += [f"  {number}. {_line(step.description)}", f"     why: {_line(step.reason)}"]
    if not steps:
        lines.append(f"  no steps are recorded for {deployer}")
    if transition.reversible is not None:
        word = "the way back is open" if transition.reversible else "there is no way back"
        lines.append(f"  {word}. {_line(transition.reversible_notes)}".rstrip(". "))
    lines += [f"  see {address}" for address in transition.references]
    return lines


def _transition(transition: Any, deployer: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "from": transition.from_range.text,
        "to": transition.to_range.text,
        "verdict": transition.verdict,
        "summary": transition.summary,
    }
    if transition.precondition:
        made["precondition"] = transition.precondition
    if transition.reversible is not None:
        made["reversible"] = transition.reversible
    if transition.reversible_notes:
        made["reversibleNotes"] = transition.reversible_notes
    if transition.affected:
        made["affectedResources"] = [
            {"group": group, "kinds": kinds} for group, kinds in transition.affected
        ]
    made["steps"] = [
        {"id": step.id, "description": step.description, "reason": step.reason}
        for step in transition.steps(deployer)
    ]
    if transition.references:
        made["references"] = transition.references
    return made


def _deployable(state: State, flag: str, console: Console) -> State:
    if state.kind == "snapshot":
        raise invalid(
            f"{state.name} is a snapshot, which does not say what is deployed",
            where=flag,
            hint="name a recipe file or the folder of a bundle",
        )
    for notice in state.notices:
        console.warn(notice)
    return state


def _today(before: State, catalog: Catalog) -> State:
    """The recipe for the same criteria, profile and configuration with this catalogue."""
    from aicr.catalog.criteria_values import FIELDS
    from aicr.cli.states import RECIPE, State
    from aicr.recipe.criteria import Criteria
    from aicr.recipe.resolve import resolve

    document = before.document
    stated = document.get("criteria") or {}
    words: dict[str, Any] = {field: stated.get(field) or "" for field in FIELDS}
    if not any(words.values()):
        raise invalid(
            f"{before.name} states no criteria, so its newer form cannot be worked out",
            where="--from",
            hint="name the new recipe or bundle with --to",
        )
    selected = (document.get("metadata") or {}).get("selectedProfile") or {}
    profile = f"{selected['name']}={selected['value']}" if selected.get("value") else ""
    recipe = resolve(
        catalog,
        Criteria(**words, nodes=stated.get("nodes") or 0),
        profile=profile,
        configuration=document.get("configuration") or None,
    )
    return State(RECIPE, "the catalogue", recipe.document, [])


def _deployer(given: str | None, before: State, after: State) -> str:
    from aicr.bundle.deployers import canonical_name

    if given is not None:
        return canonical_name(given)
    for state in (after, before):
        if state.info:
            deployer: str = state.info["build"]["deployer"]
            return deployer
    return canonical_name("")


def _short(text: str) -> str:
    return text if len(text) <= 70 else f"{text[:69]}…"


def _line(text: str) -> str:
    return " ".join(text.split())


def _clean(line: str, colour: bool) -> str:
    """*line* without control characters, but for the colours that were put in here."""
    keep = "\033" if colour else ""
    return "".join(c if c.isprintable() or c == keep else ascii(c)[1:-1] for c in line)
