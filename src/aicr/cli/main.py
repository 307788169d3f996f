"""Entry point: find the command, build only its parser, run it, and turn every failure into words.

Nothing that a command does not need is imported. No traceback reaches a user: what is not an AicrError
is reported as a bug of ours with the place it came from, and exits 8.
"""

from __future__ import annotations

import sys

from aicr.cli.console import Console
from aicr.errors import CANCELED, INTERNAL, AicrError, invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

#: Command -> (module, one line for the overview).
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "recipe": ("aicr.cli.recipe", "resolve criteria to a recipe"),
    "query": ("aicr.cli.query", "print one value of a hydrated recipe"),
    "bundle": ("aicr.cli.bundle", "make a deployable bundle from a recipe"),
    "completion": ("aicr.cli.completion", "print a shell completion script"),
    "version": ("aicr.cli.version", "print the version"),
}

OVERVIEW: Final = """\
usage: aicr COMMAND [flags]

From what you have (cloud, accelerator, OS, intent) to a GPU cluster that is right.

commands:
{commands}

examples:
  aicr recipe --service eks --accelerator h100 --intent training --os ubuntu \\
      --platform kubeflow -o recipe.yaml
  aicr query --service eks --accelerator h100 --intent training --os ubuntu \\
      --selector components.gpu-operator.version
  aicr bundle -r recipe.yaml -o bundle --system-node-selector pool=system

Each command has --help.
"""


def overview() -> str:
    """The text of ``aicr --help``."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {line}" for name, (_, line) in COMMANDS.items()]
    return OVERVIEW.format(commands="\n".join(lines))


def main(argv: Sequence[str], console: Console | None = None) -> int:
    """Run one command line and return the exit status."""
    console = console or Console.standard()
    try:
        return _dispatch(list(argv), console)
    except AicrError as error:
        console.error(error)
        return error.exit_status
    except SystemExit as exit_request:
        return exit_request.code if isinstance(exit_request.code, int) else 1
    except BrokenPipeError:
        # The reader of our output went away (for example `| head`): nothing is left to say.
        return _silent_exit()
    except KeyboardInterrupt:
        console.error(AicrError(CANCELED, "interrupted; nothing was left half written"))
        return 130
    except Exception as error:
        console.error(_as_bug(error))
        return 8


def _dispatch(argv: list[str], console: Console) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        console.write(overview())
        return 0
    name = argv[0]
    if name in ("-v", "--version"):
        name = "version"
    if name not in COMMANDS:
        near = nearest(name, list(COMMANDS))
        raise invalid(
            f"unknown command {name!r}",
            hint=f"did you mean {near}?" if near else f"commands: {', '.join(COMMANDS)}",
        )
    module = __import__(COMMANDS[name][0], fromlist=["execute"])
    status: int = module.execute(module.parser().parse(argv[1:]), console)
    return status


def _as_bug(error: Exception) -> AicrError:
    place = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        name = code.co_filename.replace("\\", "/").rpartition("/aicr/")[2]
        place = f"aicr/{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return AicrError(
        INTERNAL,
        f"unexpected {type(error).__name__}: {error}",
        where=place,
        hint="this is a bug in aicr; please report it with the command line",
    )


def _silent_exit() -> int:
    import os

    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return 0


def run() -> None:
    """The console script: run, flush, exit with the status."""
    import gc

    # A command lives for milliseconds and makes no cycles worth collecting.
    gc.disable()
    status = main(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = _silent_exit()
    sys.exit(status)
