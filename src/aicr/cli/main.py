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
    from typing import Any, Final, NoReturn

#: Command -> (module, one line for the overview).
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "snapshot": ("aicr.cli.snapshot", "measure a machine or a cluster"),
    "recipe": ("aicr.cli.recipe", "resolve criteria to a recipe"),
    "query": ("aicr.cli.query", "print one value of a hydrated recipe"),
    "explain": ("aicr.cli.explain", "say where a part of a recipe comes from"),
    "bundle": ("aicr.cli.bundle", "make a deployable bundle from a recipe"),
    "validate": ("aicr.cli.validate", "hold a cluster against a recipe: run its checks"),
    "evidence": ("aicr.cli.evidence", "verify and publish evidence of validated recipes"),
    "verify": ("aicr.cli.verify", "check that a bundle is whole and signed by whom you expect"),
    "pull": ("aicr.cli.pull", "fetch a bundle from a registry"),
    "diff": ("aicr.cli.diff", "compare two recipes, bundles or snapshots by meaning"),
    "upgrade-check": ("aicr.cli.upgrade_check", "say what an upgrade asks for"),
    "bom": ("aicr.cli.bom", "list components, charts and container images"),
    "mirror": ("aicr.cli.mirror", "prepare an air-gapped installation"),
    "migrate": ("aicr.cli.migrate", "bring files that v0.11.1 wrote up to date"),
    "preflight": ("aicr.cli.preflight", "check GPUs in a pod before its workload starts"),
    "lint": ("aicr.cli.lint", "judge a data directory, or the built-in catalogue"),
    "schema": ("aicr.cli.schema", "print the JSON Schema of a kind of document"),
    "checks": ("aicr.cli.checks", "say which checks there are and what they do"),
    "check-health": ("aicr.cli.check_health", "run health checks of components on a cluster"),
    "gate": ("aicr.cli.gate", "wait until readiness tests have passed for a while"),
    "doctor": ("aicr.cli.doctor", "say what keeps each command from working here"),
    "cluster": ("aicr.cli.cluster", "keep a Kubernetes cluster with GPU nodes to try things on"),
    "completion": ("aicr.cli.completion", "print a shell completion script"),
    "version": ("aicr.cli.version", "print the version"),
}

#: Second words with a parser of their own: (module, one line for the overview).
SUBCOMMANDS: Final[dict[str, tuple[str, str]]] = {
    "recipe list": ("aicr.cli.recipe_list", "list what the catalogue supports"),
    "evidence verify": ("aicr.cli.evidence_verify", "say whether evidence is valid and by whom"),
    "evidence publish": ("aicr.cli.evidence_publish", "push evidence to a registry and sign it"),
    "checks list": ("aicr.cli.checks_list", "list the checks that a recipe can declare"),
    "checks show": ("aicr.cli.checks_show", "say what one check does"),
    "mirror list": ("aicr.cli.mirror_list", "list the images and charts to mirror"),
    "mirror rewrite": ("aicr.cli.mirror_rewrite", "print overrides that use a mirror"),
    "mirror check": ("aicr.cli.mirror_check", "say what would fail behind an air gap"),
    "preflight serve": ("aicr.cli.preflight_serve", "run the admission webhook"),
    "preflight config": ("aicr.cli.preflight_config", "judge the webhook's configuration"),
    "preflight inject": ("aicr.cli.preflight_inject", "print a pod with its checks"),
    "preflight explain": ("aicr.cli.preflight_explain", "say why a pod gets checks or not"),
    "preflight gangs": ("aicr.cli.preflight_gangs", "list gangs, their members and who is missing"),
    "preflight run": ("aicr.cli.preflight_run", "run a check on the GPUs of this machine"),
    "preflight thresholds": ("aicr.cli.preflight_thresholds", "list bandwidths on record"),
    "preflight probe": ("aicr.cli.preflight_probe", "ask a running webhook for one decision"),
    "preflight connector": ("aicr.cli.preflight_connector", "show the health events of checks"),
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
    every = [*COMMANDS.items(), *SUBCOMMANDS.items()]
    # A sub-command stands below its command; the sort leaves the commands in their own order.
    order = list(COMMANDS)
    every.sort(key=lambda item: order.index(item[0].partition(" ")[0]))
    width = max(len(name) for name, _ in every)
    lines = [f"  {name:<{width}}  {line}" for name, (_, line) in every]
    return OVERVIEW.format(commands="\n".join(lines))


def main(argv: Sequence[str], console: Console | None = None) -> int:
    """Run one command line and return the exit status."""
    console = console or Console.standard()
    try:
        status = _answer(argv, console)
    except AicrError as error:
        console.error(error)
        status = error.exit_status
    except SystemExit as exit_request:
        status = exit_request.code if isinstance(exit_request.code, int) else 1
    except BrokenPipeError:
        # The reader of our output went away (for example `| head`): nothing is left to say.
        status = 0
    except KeyboardInterrupt:
        console.error(
            AicrError(CANCELED, "interrupted; nothing was left half written", hint="run it again")
        )
        status = 130
    except Exception as error:
        explained = _without_folder(error) or _as_bug(error)
        console.error(explained)
        status = explained.exit_status
    else:
        return status
    _close(console)
    return status


def _answer(argv: Sequence[str], console: Console) -> int:
    """The status of the command; what it printed, help as well, is out when it is 0."""
    try:
        status = _dispatch(_checked(argv), console)
    except SystemExit as end:
        # argparse ends this way after --help; a signal asks for another status.
        if end.code != 0:
            raise
        status = 0
    console.flush()
    return status


def _close(console: Console) -> None:
    """Bring out what was printed before a failure, or drop it if that fails as well."""
    try:
        console.flush()
    except (AicrError, OSError):
        console.abandon()


def _checked(argv: Sequence[str]) -> list[str]:
    """The words of the command line, all of them text that can be written to a file."""
    for number, word in enumerate(argv, 1):
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            raise invalid(
                f"word {number} of the command line is not UTF-8 text: {word!a}",
                hint="use a UTF-8 terminal, or rename the file",
            ) from None
        if "\0" in word:
            raise invalid(f"word {number} of the command line holds a NUL character")
    return list(argv)


def _dispatch(argv: list[str], console: Console) -> int:
    if argv[:1] == ["help"] and argv[1:2] and not argv[1].startswith("-"):
        names = argv[1:3] if " ".join(argv[1:3]) in SUBCOMMANDS else argv[1:2]
        argv = [*names, "--help"]
    if not argv or argv[0] in ("-h", "--help", "help"):
        console.write(overview())
        return 0
    name = argv[0]
    if name in ("-v", "-V", "--version"):
        name = "version"
    if name not in COMMANDS:
        raise invalid(f"unknown command {name!r}", hint=_way_to(name))
    path, words = COMMANDS[name][0], argv[1:]
    if words and not words[0].startswith("-"):
        second = f"{name} {words[0]}"
        if second in SUBCOMMANDS:
            path, words, name = SUBCOMMANDS[second][0], words[1:], second
        else:
            _check_second(name, words[0])
    module = __import__(path, fromlist=["execute"])
    parser = module.parser()
    parser.stream = console
    arguments = parser.parse(words)
    if getattr(arguments, "config", None) is not None:
        from aicr.cli import config

        return config.run(name, module.execute, arguments, console)
    status: int = module.execute(arguments, console)
    return status


def _check_second(name: str, word: str) -> None:
    """Refuse a second word that is nearly a sub-command; another word is the parser's business."""
    known = [second.partition(" ")[2] for second in SUBCOMMANDS if second.startswith(f"{name} ")]
    near = nearest(word, known)
    if near:
        raise invalid(
            f"unknown sub-command {word!r} of aicr {name}", hint=f"did you mean {name} {near}?"
        )


def _way_to(name: str) -> str:
    if name.startswith("-"):
        return "name a command first, for example: aicr recipe --service eks; see aicr --help"
    near = nearest(name, list(COMMANDS))
    return f"did you mean {near}?" if near else f"commands: {', '.join(COMMANDS)}"


def _without_folder(error: Exception) -> AicrError | None:
    """The error for a current folder that was removed, which makes every relative path fail."""
    import os

    if not isinstance(error, FileNotFoundError):
        return None
    try:
        os.getcwd()
    except FileNotFoundError:
        return invalid(
            "the current folder has been removed, so no relative path leads anywhere",
            hint="change to another folder and run it again",
        )
    return None


def _as_bug(error: Exception) -> AicrError:
    place = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        _, ours, name = code.co_filename.replace("\\", "/").rpartition("/aicr/")
        if ours:
            # The last of our own lines: what a library did below it says less.
            place = f"aicr/{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return AicrError(
        INTERNAL,
        f"unexpected {type(error).__name__}: {error}",
        where=place,
        hint="this is a bug in aicr; please report it with the command line",
    )


def run() -> None:
    """The console script: run, flush, exit with the status."""
    import gc

    # A command lives for milliseconds and makes no cycles worth collecting.
    gc.disable()
    _end_on_signals()
    try:
        _leave(main(sys.argv[1:]))
    except KeyboardInterrupt:
        # Ctrl-C when all was done, or while an error was being reported.
        _leave(130)


def _leave(status: int) -> NoReturn:
    """End now: everything is written, and taking the interpreter apart would cost milliseconds."""
    import os

    for stream in (sys.stdout, sys.stderr):
        try:
            # None stands for a stream that was closed before we came.
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            # The status says it already.
            continue
    os._exit(status)


def _end_on_signals() -> None:
    """Make Ctrl-C and a request to end unwind once, so that cleaning up is not interrupted itself.

    A signal that whoever started us has switched off (``nohup``, a job in the background) stays off.
    """
    # The C module: ``signal`` itself would import enum.
    import _signal  # type: ignore[import-not-found]

    def pass_over(number: int, frame: object) -> None:
        # Not SIG_IGN: Python complains about a signal that is switched off while it is pending.
        del number, frame

    def unwind(number: int, frame: object) -> NoReturn:
        del frame
        for taken in (_signal.SIGINT, _signal.SIGTERM):
            _signal.signal(taken, pass_over)
        raise KeyboardInterrupt if number == _signal.SIGINT else SystemExit(128 + number)

    def thrown_away(found: Any) -> None:
        # The interpreter drops what is raised in some of its callbacks, such as those of import locks.
        # There the signal would count for nothing, and the next one too: ask again, a moment later.
        if isinstance(found.exc_value, (KeyboardInterrupt, SystemExit)):
            number = _signal.SIGINT
            if isinstance(found.exc_value, SystemExit):
                number = _signal.SIGTERM
            _signal.signal(_signal.SIGALRM, lambda *_: unwind(number, None))
            _signal.setitimer(_signal.ITIMER_REAL, 0.001)
        else:
            sys.__unraisablehook__(found)

    for number in (_signal.SIGINT, _signal.SIGTERM):
        if _signal.getsignal(number) in (_signal.SIG_DFL, _signal.default_int_handler):
            _signal.signal(number, unwind)
            sys.unraisablehook = thrown_away
