"""``aicr cluster demo``: a Kubernetes cluster with GPU nodes on this machine, to try things on.

The cluster is the control plane of our own tests, which lives beside the sources in a checkout and is no
part of an installed package. So this module finds the checkout, checks the flags, and hands over; a
package without the checkout says what is missing. Nothing of it is imported before the command runs.
"""

from __future__ import annotations

import os
import sys

from aicr.cli.arguments import Parser, whole_number
from aicr.errors import SERVICE_UNAVAILABLE, AicrError, invalid, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Final

    from aicr.cli.console import Console

_NODES: Final = 4
#: What a checkout has and a package has not, from its root.
_PROGRAM: Final = os.path.join("tests", "controlplane", "demo.py")
_EXAMPLES = """\
examples:
  aicr cluster demo
  aicr cluster demo --nodes 16 --accelerator gb200 --kubeconfig demo.kubeconfig
  aicr cluster demo --nodes 0 --running 2

The line that sets KUBECONFIG goes to stdout, once the cluster can be used;
paste it into another terminal. Ctrl-C ends the cluster and leaves nothing. It
needs Linux and a source checkout, and the first time Go, for about ten
minutes. GPUs are numbers that the scheduler counts: no pod gets one. A pod
comes to a hollow node only if it tolerates aicr.run/hollow. See
docs/testing.md.
"""


def parser() -> Parser:
    """The parser of this command."""
    found = Parser(
        prog="aicr cluster",
        usage="aicr cluster demo [flags]",
        description="Keep a Kubernetes cluster with GPU nodes on this machine until Ctrl-C.",
        epilog=_EXAMPLES,
    )
    found.add_argument("word", nargs="?", default=None, metavar="demo", help="the one sub-command")
    found.once(
        "--nodes",
        metavar="N",
        type=whole_number,
        help="hollow GPU nodes, whose pods only seem to run (4)",
    )
    found.once(
        "--running",
        metavar="N",
        type=whole_number,
        help="GPU nodes that run pods, as processes of this machine (1 as root, else 0)",
    )
    found.once(
        "--accelerator", metavar="NAME", help="what the nodes' labels say that they have (h100)"
    )
    found.once(
        "--kubeconfig", metavar="FILE", help="write the kubeconfig here; the file must not exist"
    )
    return found


def execute(arguments: argparse.Namespace, console: Console) -> int:
    """Keep the cluster until a signal; the exit status is that of the signal."""
    if arguments.word != "demo":
        said = f"unknown sub-command {arguments.word!r}" if arguments.word else "name a sub-command"
        raise invalid(said, where="aicr cluster", hint="there is one: aicr cluster demo")
    root = _checkout()
    if not sys.platform.startswith("linux"):
        raise invalid(
            "a demo cluster needs Linux: its nodes are namespaces of the kernel",
            where="aicr cluster demo",
            hint="run it in a virtual machine or a container with Linux",
        )
    if root not in sys.path:
        sys.path.insert(0, root)
    from pathlib import Path

    from tests.controlplane import demo

    nodes = _within("--nodes", arguments.nodes, _NODES, demo.MOST_HOLLOW)
    running = _running(arguments.running, demo.MOST_RUNNING)
    said = arguments.accelerator
    accelerator = _accelerator("h100" if said is None else said, list(demo.MACHINES))
    file = arguments.kubeconfig
    if file is not None and not file:
        raise invalid("a file name is needed", where="--kubeconfig")

    def show(line: str) -> None:
        console.write(f"{line}\n")
        console.flush()

    _collect_garbage()
    try:
        demo.keep(
            nodes=nodes,
            running=running,
            accelerator=accelerator,
            kubeconfig=None if file is None else Path(os.path.abspath(file)),
            say=console.say,
            show=show,
        )
    except demo.KubeconfigFileError as error:
        raise invalid(str(error), where="--kubeconfig", hint="name a new file") from error
    except demo.DemoError as error:
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"no demo cluster: {error}",
            where="aicr cluster demo",
            hint="docs/testing.md says what it needs",
        ) from error
    except KeyboardInterrupt:
        # The ordinary end, so not an error that the caller would report as one.
        console.say("ended; nothing is left")
        return 130


def _checkout() -> str:
    """The root of the source checkout that this module runs from."""
    root = os.path.abspath(__file__)
    for _ in ("cluster.py", "cli", "aicr", "src"):
        root = os.path.dirname(root)
    if not os.path.isfile(os.path.join(root, _PROGRAM)):
        raise invalid(
            "aicr cluster demo needs a source checkout of aicr, and this is an installed package",
            where="aicr cluster demo",
            hint="get the sources, run `make install` there, and then .venv/bin/aicr cluster demo",
        )
    return root


def _within(flag: str, given: int | None, default: int, most: int) -> int:
    number = default if given is None else given
    if not 0 <= number <= most:
        raise invalid(f"{number} nodes are not possible", where=flag, hint=f"0 to {most}")
    return number


def _running(given: int | None, most: int) -> int:
    is_root = os.geteuid() == 0
    number = _within("--running", given, 1 if is_root else 0, most)
    if number and not is_root:
        raise invalid(
            "nodes that run pods need root: each pod gets namespaces of its own",
            where="--running",
            hint="run as root, or leave --running out for hollow nodes only",
        )
    return number


def _accelerator(text: str, known: list[str]) -> str:
    name = text.strip().lower()
    if name not in known:
        near = nearest(name, known)
        raise invalid(
            f"no node labels are known for accelerator {text!r}",
            where="--accelerator",
            hint=f"did you mean {near}?" if near else f"known: {', '.join(known)}",
        )
    return name


def _collect_garbage() -> None:
    """Switch the collector on, which commands of milliseconds do without: this one may run for days."""
    import gc

    gc.enable()
