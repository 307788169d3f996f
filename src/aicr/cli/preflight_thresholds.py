"""``aicr preflight thresholds``: bandwidths on record by fabric and GPU, and where they come from."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.cli.formats import check_format, render
from aicr.cli.sources import write_output
from aicr.errors import invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from aicr.cli.console import Console

FORMATS: Final = ("table", "json", "yaml")
_EXAMPLES = """\
examples:
  aicr preflight thresholds
  aicr preflight thresholds --check nccl-allreduce --fabric efa
  aicr preflight thresholds --format json

"suggested" is a rule of ours, 85 % of the lowest figure on record; it is
printed and never applied. A check uses BW_THRESHOLD_GBPS, or an entry of
BW_THRESHOLDS_GBPS (efa=300,mnnvl/gb200=500) that fits. A fabric or GPU that is
not listed has no figure on record: measure a node that you trust.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr preflight thresholds",
        description="List bus bandwidths on record, by check, fabric and GPU, with their sources.",
        epilog=_EXAMPLES,
    )
    found.once("--check", metavar="NAME", help="only nccl-loopback or nccl-allreduce")
    found.once("--fabric", metavar="NAME", help="only this fabric, for example efa")
    found.once("--gpu", metavar="NAME", help="only this GPU, for example h100")
    found.once("--format", "-t", metavar="FORMAT", help="table (default), json or yaml")
    found.once("--output", "-o", metavar="FILE", help="write here instead of to stdout")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Print the figures that fit; none is an answer, not an error."""
    from aicr.fabric import thresholds

    chosen = check_format(arguments.format, FORMATS)
    check = _known("--check", arguments.check, list(thresholds.DEFAULTS))
    fabric = _known("--fabric", arguments.fabric, list(thresholds.FABRICS))
    gpu = (arguments.gpu or "").strip().lower()
    document = listing(check, fabric, gpu)
    text = draw(document) if chosen == "table" else render(document, chosen)
    write_output(text, arguments.output or "", console)
    console.flush()
    if not document["references"]:
        console.say("no figure is on record for this; measure a node that you trust")
    return 0


def listing(check: str, fabric: str, gpu: str) -> dict[str, Any]:
    """What is on record, as a plain document."""
    from aicr.fabric import thresholds

    rows = [
        {
            "check": one.check,
            "fabric": one.fabric,
            "gpu": one.gpu or "any",
            "busbwGBps": one.gbps,
            "kind": one.kind,
            "suggestedGBps": thresholds.suggested(one.check, one.fabric, one.gpu),
            "source": one.source,
        }
        for one in thresholds.REFERENCES
        if check in ("", one.check)
        and fabric in ("", one.fabric)
        and (not gpu or one.gpu in ("", gpu))
    ]
    return {"defaults": dict(thresholds.DEFAULTS), "references": rows}


def draw(document: dict[str, Any]) -> str:
    """The document for people."""
    from aicr.diff.text import grid

    cells = [
        (
            row["check"],
            row["fabric"],
            row["gpu"],
            f"{row['busbwGBps']:g}",
            row["kind"],
            f"{row['suggestedGBps']:g}",
            row["source"],
        )
        for row in document["references"]
    ]
    head = ("check", "fabric", "gpu", "GB/s", "what", "suggested", "source")
    lines = grid(head, cells, [""] * len(cells)) if cells else []
    lines += [f"default of {name}: {value:g} GB/s" for name, value in document["defaults"].items()]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _known(flag: str, given: str | None, known: list[str]) -> str:
    if given is None:
        return ""
    name = given.strip().lower()
    if name not in known:
        near = nearest(name, known)
        raise invalid(
            f"{given!r} is not known",
            where=flag,
            hint=f"did you mean {near}?" if near else f"known: {', '.join(known)}",
        )
    return name
