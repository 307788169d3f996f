"""``aicr preflight connector --print``: a stand-in for the platform connector that shows what arrives."""

from __future__ import annotations

from aicr.cli.arguments import Parser, Switch, whole_number
from aicr.cli.formats import check_format
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any, Final

    from aicr.cli.console import Console

FORMATS: Final = ("text", "json")
_SOCKET: Final = "/var/run/nvsentinel.sock"
_EXAMPLES = """\
examples:
  aicr preflight connector --print
  aicr preflight connector --print --socket /tmp/connector.sock --format json
  aicr preflight connector --print --socket /tmp/connector.sock --count 1

It stores nothing and acts on nothing: no node is cordoned. Ctrl-C ends it. The
token that comes with an event is never printed, only whether there was one.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr preflight connector",
        description="Take health events on a Unix socket and print them, to try a check out.",
        epilog=_EXAMPLES,
    )
    found.add_argument(
        "--print", action=Switch, const=True, dest="show", help="print each event (needed)"
    )
    found.once("--socket", metavar="PATH", help=f"where to listen ({_SOCKET})")
    found.once("--format", "-t", metavar="FORMAT", help="text (default), or json: one event a line")
    found.once("--count", metavar="N", type=whole_number, help="end after so many events")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Serve until Ctrl-C, or until the number of events has come."""
    chosen = check_format(arguments.format, FORMATS)
    if not arguments.show:
        raise invalid(
            "say what is to be done with the events",
            where="aicr preflight connector",
            hint="there is one choice: aicr preflight connector --print",
        )
    count = arguments.count
    if count is not None and count < 1:
        raise invalid("a number of events is 1 or more", where="--count")
    import queue

    try:
        from aicr.preflight.health.connector import Connector
    except ModuleNotFoundError as error:
        raise invalid(
            f"this command needs the extra health: {error.name} is not installed",
            where="aicr preflight connector",
            hint="pip install 'aicr[health]'",
        ) from error
    came: queue.SimpleQueue[tuple[dict[str, Any], str]] = queue.SimpleQueue()
    path = _SOCKET if arguments.socket is None else arguments.socket
    connector = Connector(path, lambda event, authorization: came.put((event, authorization)))
    connector.start()
    console.say(f"listening on {connector.path}; Ctrl-C ends")
    seen = status = 0
    try:
        while count is None or seen < count:
            event = came.get()
            seen += 1
            console.write(show(*event, chosen))
            console.flush()
    except KeyboardInterrupt:
        # The ordinary end, so not an error that the caller would report as one.
        status = 130
    finally:
        connector.stop()
        # Whoever sent an event was told that it arrived, so it is shown before we go.
        while (count is None or seen < count) and not came.empty():
            seen += 1
            console.write(show(*came.get(), chosen))
            console.flush()
    if status:
        console.say(f"ended after {seen} event{'' if seen == 1 else 's'}")
    return status


def show(event: dict[str, Any], authorization: str, chosen: str) -> str:
    """An event as it is printed."""
    token = authorization.startswith("Bearer ")
    if chosen == "json":
        import json

        return json.dumps({**event, "token": token}, ensure_ascii=False) + "\n"
    from aicr.preflight.health.events import as_lines

    lines = [*as_lines(event), f"  {'with' if token else 'without'} a token"]
    return "\n".join(lines) + "\n"
