"""``aicr preflight serve``: the admission webhook as a process; the chart runs it in a container."""

from __future__ import annotations

from aicr.cli.arguments import Once, Parser
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console
    from aicr.kube.client import Client

_EXAMPLES = """\
examples:
  aicr preflight serve
  aicr preflight serve --port 9443 --cert-dir ./certs --config config.yaml \\
      --metrics-port 0

Serves POST /mutate, /healthz and /readyz over HTTPS and /metrics on a port of
its own; logs JSON to stderr. A failure at the start is one line "Fatal error"
and exit status 1. On SIGTERM it goes on answering for --drain-seconds, then
answers what has arrived, and ends with status 0. With gang coordination and
gpuDraEnabled off it never talks to a cluster.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr preflight serve",
        description="Run the preflight admission webhook until a signal ends it.",
        epilog=_EXAMPLES,
    )
    found.once("--port", metavar="N", help="HTTPS port (8443)")
    found.once("--host", metavar="ADDRESS", help="address to listen on (all)")
    found.once("--metrics-port", metavar="N", help="0 for none (8080)")
    found.once("--cert-dir", metavar="DIR", help="directory with tls.crt and tls.key (/certs)")
    found.add_argument(
        "--config",
        action=Once,
        dest="settings",
        metavar="FILE",
        help="configuration file (/etc/preflight/config.yaml)",
    )
    found.once("--drain-seconds", metavar="N", help="see below; 0 to end at once (5)")
    found.once("--kubeconfig", metavar="FILE", help="kubeconfig, outside a cluster")
    found.once("--context", metavar="NAME", help="context of the kubeconfig")
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Serve until a signal; failures are logged and not raised, since a log is all there is."""
    ports = {
        "port": _number(arguments.port, "--port", 65535),
        "metrics_port": _number(arguments.metrics_port, "--metrics-port", 65535),
        "drain": _number(arguments.drain_seconds, "--drain-seconds", 3600),
    }
    from dataclasses import replace

    from aicr import kube, version
    from aicr.preflight import logs, server
    from aicr.preflight.controller import service

    given = {
        "config": arguments.settings,
        "certificates": arguments.cert_dir,
        "host": arguments.host,
        **ports,
    }
    options = replace(
        server.Options(), **{key: value for key, value in given.items() if value is not None}
    )
    console.flush()
    logs.set_up(version.__version__)

    def connect() -> Client:
        return kube.connect(kubeconfig=arguments.kubeconfig or "", context=arguments.context or "")

    return server.run(options, server.Access(connect, service.build), _stamp())


def _number(text: str | None, flag: str, most: int) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text[:9]) > most or len(text) > 9:
        raise invalid(f"invalid number {text!r}", where=flag, hint=f"0 to {most}")
    return int(text)


def _stamp() -> dict[str, str]:
    """Commit and date of this build, for the first line of the log."""
    try:
        from aicr import _stamp
    except ImportError:
        return {"commit": "dev", "date": ""}
    return {"commit": _stamp.COMMIT, "date": _stamp.DATE}
