"""``aicr preflight inject``: the webhook's decision offline, as a patch or as the pod it makes."""

from __future__ import annotations

from aicr.cli.arguments import Once, Parser
from aicr.cli.formats import check_format, render
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console
    from aicr.preflight.offline import Case

_EXAMPLES = """\
examples:
  aicr preflight inject -f pod.yaml
  aicr preflight inject -f job.yaml --show patch --format json
  kubectl get pod train-0 -o yaml | aicr preflight inject -f - \\
      --config config.yaml

The file holds a pod, or a workload that makes pods; ResourceClaims and
ResourceClaimTemplates may stand beside it. Without --config the defaults of
the chart apply. A pod that the webhook would refuse is an error here.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr preflight inject",
        description="Print what the preflight webhook would make of a pod. Needs no cluster.",
        epilog=_EXAMPLES,
    )
    add_input(found)
    found.once("--show", metavar="WHAT", help="pod (default) or patch")
    found.once("--output", "-o", metavar="FILE", help="write to a file")
    found.once("--format", "-t", metavar="NAME", help="yaml (default) or json")
    return found


def add_input(parser: Parser) -> None:
    """The flags that name the pod and the configuration, of ``inject`` and ``explain``."""
    parser.add_argument(
        "--file", "-f", action=Once, dest="file", metavar="FILE", help="pod or workload, or -"
    )
    parser.add_argument(
        "--config",
        action=Once,
        dest="settings",
        metavar="FILE",
        help="configuration file of the webhook (default: the chart's defaults)",
    )
    parser.once("--namespace", "-n", metavar="NAME", help="namespace, if the pod names none")


def read_case(arguments: argparse.Namespace, console: Console) -> Case:
    """Read pod and configuration, and decide."""
    if arguments.file is None:
        raise invalid("flag --file is required", hint="name a file with a pod, or -")
    if arguments.file == "-" and arguments.settings == "-":
        raise invalid(
            "only one of the two can be standard input",
            where="--config",
            hint="name a file for the other",
        )
    from aicr.cli.sources import read_input
    from aicr.preflight.admission.prepared import prepare
    from aicr.preflight.config import load
    from aicr.preflight.offline import default_config, judge, pod_of
    from aicr.yamlio.read import load_all

    if arguments.settings is None:
        config = default_config()
    else:
        text = read_input(arguments.settings, what="configuration")
        config, warnings = load(text, source=arguments.settings)
        for warning in warnings:
            console.warn(warning)
    text = read_input(arguments.file, what="pod")
    pod, beside = pod_of(load_all(text, source=arguments.file), arguments.file)
    return judge(pod, beside, prepare(config), arguments.namespace or "")


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Decide, print."""
    chosen = check_format(arguments.format, ("yaml", "json"))
    show = "pod" if arguments.show is None else arguments.show
    if show not in ("pod", "patch"):
        raise invalid(f"cannot show {show!r}", where="--show", hint="pod or patch")
    from aicr.cli.sources import write_output
    from aicr.preflight.offline import refusal

    case = read_case(arguments, console)
    problem = refusal(case)
    if problem is not None:
        raise problem
    for warning in case.decision.warnings:
        console.warn(warning)
    made = case.decision.patch if show == "patch" else case.admitted()
    write_output(render(made, chosen), arguments.output or "", console)
    if not case.decision.patch:
        console.say(f"not changed: {case.decision.reason}")
    return 0
