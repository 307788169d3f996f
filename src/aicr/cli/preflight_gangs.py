"""``aicr preflight gangs``: gangs on a cluster, who is in them and who is missing."""

from __future__ import annotations

from aicr.cli.arguments import Parser, Switch
from aicr.cli.formats import check_format, render
from aicr.errors import invalid, some_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any, Final

    from aicr.cli.console import Console
    from aicr.kube.client import Client

FORMATS: Final = ("table", "json", "yaml")
_EXAMPLES = """\
examples:
  aicr preflight gangs
  aicr preflight gangs --namespace team-a --watch
  aicr preflight gangs --gang volcano-team-a-train --format yaml
  aicr preflight gangs --discovery volcano

states: complete; forming, members are waited for; unsized, the group does not
say how many there must be (is its PodGroup there?); losing, a member of a
complete gang is dead; empty, nobody is alive.

--watch prints a line for each gang that changes, until Ctrl-C; with --format
json a document a line. --discovery prints the gangDiscovery block for a
scheduler and asks no cluster: kubernetes, volcano, osmo-with-kai or run-ai.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr preflight gangs",
        description="List gangs: their members, who is missing, and generations.",
        epilog=_EXAMPLES,
    )
    found.once("--namespace", "-n", metavar="NAME", help="only this namespace (default: all)")
    found.once("--gang", metavar="ID", help="only the gang with this id")
    found.add_argument("--watch", "-w", action=Switch, const=True, help="go on and show changes")
    found.once("--discovery", metavar="NAME", help="print the gangDiscovery block of a scheduler")
    found.once("--kubeconfig", metavar="FILE", help="the cluster (default: KUBECONFIG)")
    found.once("--context", metavar="NAME", help="context of the kubeconfig")
    found.once("--format", "-t", metavar="NAME", help="table (default), json or yaml")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Read ConfigMaps and pods, and print what they say; no gang is an answer, not an error."""
    chosen = check_format(arguments.format, FORMATS)
    if arguments.discovery is not None:
        from aicr.preflight.gang import presets

        block = {"gangDiscovery": dict(presets.preset(arguments.discovery))}
        console.write(render(block, "json" if chosen == "json" else "yaml"))
        return 0
    if arguments.watch and chosen == "yaml":
        raise invalid(
            "--watch prints lines, and YAML is not one",
            where="--format",
            hint="leave --format out, or take json",
        )
    import asyncio

    from aicr import kube

    client = kube.connect(kubeconfig=arguments.kubeconfig or "", context=arguments.context or "")
    console.say(f"preflight gangs: {client.config.describe()}")
    namespace = arguments.namespace or ""
    work = _watch(client, namespace, arguments, chosen, console) if arguments.watch else None
    if work is not None:
        try:
            asyncio.run(work)
        except KeyboardInterrupt:
            # The ordinary end of a watch, so not an error that the caller would report as one.
            return 130
        return 0
    rows = _wanted(asyncio.run(_read(client, namespace)), arguments.gang)
    console.write(draw(rows) if chosen == "table" else render({"gangs": rows}, chosen))
    console.flush()
    if not rows:
        console.say("no gang" if arguments.gang is None else f"no gang {arguments.gang}")
    return 0


def draw(rows: Sequence[dict[str, Any]]) -> str:
    """Gangs for people: a table of gangs, then the members of each."""
    from aicr.diff.text import grid

    if not rows:
        return ""
    head = ("namespace", "gang", "state", "generation", "members", "missing", "late", "master")
    cells = [
        (
            row["namespace"],
            row["gang"],
            row["state"],
            str(row["generation"]),
            f"{len(row['members'])}/{row['expected'] or '?'}",
            some_of(row["missing"], 3),
            some_of(row["late"], 3),
            row.get("master", ""),
        )
        for row in rows
    ]
    lines = grid(head, cells, [""] * len(cells))
    for row in rows:
        if not row["members"]:
            continue
        lines += ["", f"{row['namespace']}/{row['gang']}: {', '.join(row['checks'])}"]
        members = [
            (str(one["rank"]), one["name"], one["ip"], one["phase"], one.get("node", ""))
            for one in row["members"]
        ]
        lines += grid(("rank", "pod", "ip", "phase", "node"), members, [""] * len(members))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _wanted(rows: list[dict[str, Any]], gang: str | None) -> list[dict[str, Any]]:
    return [row for row in rows if gang in (None, row["gang"])]


async def _read(client: Client, namespace: str) -> list[dict[str, Any]]:
    from aicr.preflight.controller.listing import read

    async with client:
        return await read(client, namespace)


async def _watch(
    client: Client, namespace: str, arguments: argparse.Namespace, chosen: str, console: Console
) -> None:
    """A line for each gang as it is, and then for each that changes."""
    from contextlib import aclosing

    from aicr.preflight.controller.listing import follow
    from aicr.preflight.gang.report import line

    async with client, aclosing(follow(client, namespace)) as rows:
        async for row in rows:
            if arguments.gang not in (None, row["gang"]):
                continue
            if chosen == "json":
                import json

                console.write(f"{json.dumps(row, ensure_ascii=False)}\n")
            else:
                console.write(f"{line(row)}\n")
            console.flush()
