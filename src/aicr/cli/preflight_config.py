"""``aicr preflight config check``: judge a configuration file of the webhook before it is rolled out."""

from __future__ import annotations

from aicr.cli.arguments import Parser
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from aicr.cli.console import Console

_EXAMPLES = """\
examples:
  aicr preflight config check config.yaml
  kubectl -n nvsentinel get configmap preflight \\
      -o jsonpath='{.data.config\\.yaml}' | aicr preflight config check -

The messages are those with which the webhook would end. For this command exit
status 8 means that the file works and has entries without effect, or that are
probably not meant; --no-warnings turns it off.
"""
#: Status of a run that found something (decision 46).
FOUND = 8


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr preflight config",
        usage="aicr preflight config check FILE [flags]",
        description="Check a configuration file of the preflight webhook.",
        epilog=_EXAMPLES,
    )
    found.add_argument("word", nargs="?", default=None, metavar="check", help="what to do")
    found.add_argument("file", nargs="?", default=None, metavar="FILE", help="the file, or -")
    found.add_argument(
        "--no-warnings", action="store_true", help="exit 0 also when there are warnings"
    )
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Read, judge, say what was found."""
    if arguments.word != "check":
        said = f"unknown word {arguments.word!r}" if arguments.word else "name what to do"
        raise invalid(said, where="aicr preflight config", hint="aicr preflight config check FILE")
    if arguments.file is None:
        raise invalid("name the file", where="aicr preflight config check", hint="or - for stdin")
    from aicr.cli.sources import read_input
    from aicr.preflight.admission.prepared import prepare
    from aicr.preflight.config import load

    text = read_input(arguments.file, what="configuration")
    config, warnings = load(text, source=arguments.file)
    prepare(config)
    for warning in warnings:
        console.warn(warning)
    gangs = "on" if config.gangs.enabled else "off"
    checks = ", ".join(check.name for check in config.checks) or "none"
    console.write(f"{arguments.file}: valid; checks: {checks}; gang coordination: {gangs}\n")
    return FOUND if warnings and not arguments.no_warnings else 0
