"""``aicr preflight explain``: why a pod would or would not be given checks."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.cli.formats import check_format, render
from aicr.cli.preflight_inject import add_input, read_case

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from aicr.cli.console import Console

_EXAMPLES = """\
examples:
  aicr preflight explain -f pod.yaml
  aicr preflight explain -f job.yaml --config config.yaml --format json

Says which checks the pod gets and in which order, what it is left without and
why, which gang it is in, and how many GPUs are reserved for it without and
with the checks. It asks no cluster.
"""
_RESULTS = {
    "injected": "gets checks",
    "skipped_no_gpu": "is left alone",
    "skipped_no_checks": "is left alone",
    "rejected": "is refused",
    "error": "is refused",
}


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr preflight explain",
        description="Say why the preflight webhook would or would not give a pod checks.",
        epilog=_EXAMPLES,
    )
    add_input(found)
    found.once("--output", "-o", metavar="FILE", help="write to a file")
    found.once("--format", "-t", metavar="NAME", help="text (default), json or yaml")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Decide, explain; the exit status does not depend on the answer."""
    chosen = check_format(arguments.format, ("text", "json", "yaml"))
    from aicr.cli.sources import write_output
    from aicr.preflight.offline import explanation

    found = explanation(read_case(arguments, console))
    text = draw(found) if chosen == "text" else render(found, chosen)
    write_output(text, arguments.output or "", console)
    return 0


def draw(found: dict[str, Any]) -> str:
    """The explanation for people."""
    lines = [
        f"pod {found['namespace']}/{found['pod']} {_RESULTS[found['result']]} ({found['result']})",
        f"  why      {found['why']}",
    ]
    if "checks" in found:
        lines.append(f"  checks   {', '.join(found['checks'])}")
    if "initContainers" in found:
        lines.append(f"  order    {' → '.join(found['initContainers'])}")
    if "gang" in found:
        gang = found["gang"]
        lines.append(
            f"  gang     {gang['id']} (by {gang['discoverer']}, ConfigMap {gang['configMap']})"
        )
    for name, count in found.get("resources", {}).items():
        lines.append(
            f"  {name}: {count['check']} for each check; reserved for the pod: "
            f"{count['podBefore']} without checks, {count['podAfter']} with them"
        )
    if found.get("volumesAdded"):
        lines.append(f"  volumes  {', '.join(found['volumesAdded'])}")
    lines += [f"  without  {item['check']}: {item['why']}" for item in found.get("leftOut", [])]
    lines += [f"  note     {note}" for note in found.get("notes", [])]
    return "".join(f"{''.join(c if c.isprintable() else '?' for c in line)}\n" for line in lines)
