"""Run `kustomize build` for one component at bundle time; its output becomes a manifest.

Kustomize has its own loader for git sources, so the real tool is run: `kubectl kustomize` or
`kustomize build`, whichever is installed. The process is started by a function that is passed in,
so what this module decides (the target, the command, the words of each failure) is tested without
one.

It must not know folders, charts or deployers. Source: bundler spec 2.2, components seed
(Kustomize).
"""

from __future__ import annotations

import os

from aicr.bundle.addresses import holds_secret
from aicr.errors import CANCELED, INTERNAL, TIMEOUT, AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    #: Runs argv within so many seconds: (exit status, stdout, stderr). Raises TimeoutError when the
    #: time is over and OSError when it cannot start.
    Run = Callable[[list[str], float], tuple[int, bytes, bytes]]
    #: The path of an installed program, or None.
    Find = Callable[[str], str | None]

#: Programs that can build, in order of preference, with the words before the target.
TOOLS: Final = (("kubectl", ("kustomize",)), ("kustomize", ("build",)))

_STDERR_LINES: Final = 12


def target(ref: Mapping[str, Any]) -> str:
    """What to build for a Kustomize ref: `<source>//<path>?ref=<tag>`, or the local path alone.

    Raises:
        AicrError: INVALID_REQUEST for a tag without path or source, for no path at all, for a
            source that holds a password or token, and for text that a command line would read as
            an option (bundler spec 2.2).
    """
    name = ref["name"]
    source, path, tag = (ref.get(key) or "" for key in ("source", "path", "tag"))
    for field, text in (("source", source), ("path", path), ("tag", tag)):
        if text.startswith("-") or any(char.isspace() or not char.isprintable() for char in text):
            raise invalid(
                f"component {name!r} has the {field} {text!r}, which kustomize cannot read",
                where=name,
            )
    if holds_secret(source):
        raise invalid(
            f"Kustomize component {name!r} has a password or token in its source, which would be "
            f"stored in the bundle",
            where=name,
            hint="take it out, and give git the credentials: git credential, or ssh",
        )
    if not path:
        what = "a tag but no path" if tag else "no path"
        raise invalid(
            f"Kustomize component {name!r} has {what}",
            where=name,
            hint="set path to the folder of the kustomization inside its source",
        )
    if not source:
        if tag:
            raise invalid(
                f"Kustomize component {name!r} has a tag but no source",
                where=name,
                hint="set source to the repository that the tag belongs to",
            )
        return path
    return f"{source.rstrip('/')}//{path.strip('/')}{'?ref=' + tag if tag else ''}"


def build(
    ref: Mapping[str, Any],
    *,
    run: Run | None = None,
    find: Find | None = None,
    timeout: float | None = None,
) -> str:
    """The objects of a Kustomize component, as YAML text.

    Args:
        ref: the componentRef, with path and, for a remote source, source and tag.
        run: starts the process; the default is a real one.
        find: finds an installed program; the default looks along PATH.
        timeout: seconds for fetch and build together; None for `ToolTimes.kustomize`.

    Raises:
        AicrError: INVALID_REQUEST for an unusable ref, a missing tool or an empty result; TIMEOUT
            when it takes too long; INTERNAL when the build fails (bundler spec 2.2).
    """
    from aicr.bundle.tool_times import ToolTimes

    timeout = ToolTimes().kustomize if timeout is None else timeout
    name = ref["name"]
    what = target(ref)
    command = [*_tool(name, find or _which), what]
    shown = " ".join(command[:-1]) + " " + what
    try:
        status, out, err = (run or run_process)(command, timeout)
    except TimeoutError as error:
        raise AicrError(
            TIMEOUT,
            f"kustomize build of component {name!r} did not finish within {timeout:g} s",
            where=name,
            hint=f"check that the source can be reached, with: {shown}",
        ) from error
    except OSError as error:
        raise AicrError(
            INTERNAL, f"kustomize build of component {name!r} could not start: {error}", where=name
        ) from error
    if status < 0:
        raise AicrError(
            CANCELED,
            f"kustomize build of component {name!r} was ended by signal {-status}",
            where=name,
        )
    if status != 0:
        said = err.decode(errors="replace").strip().splitlines()[-_STDERR_LINES:]
        raise AicrError(
            INTERNAL,
            f"kustomize build of component {name!r} failed with exit status {status}: "
            + ("\n".join(said) or "it said nothing"),
            where=name,
            hint=f"see it fail by itself with: {shown}",
        )
    try:
        text = out.decode()
    except UnicodeDecodeError as error:
        raise AicrError(
            INTERNAL, f"kustomize build of component {name!r} is not UTF-8 text", where=name
        ) from error
    if not text.strip():
        raise invalid(
            f"kustomize build of component {name!r} holds no object",
            where=name,
            hint=f"the kustomization at {what} lists no resources",
        )
    return text


def _tool(component: str, find: Find) -> list[str]:
    for program, words in TOOLS:
        path = find(program)
        if path:
            return [path, *words]
    raise invalid(
        f"component {component!r} is a Kustomize source, "
        "and neither kubectl nor kustomize is installed",
        where=component,
        hint="install one of them where bundles are made, or leave the component out with "
        f"--set {component}:enabled=false",
    )


def _which(program: str) -> str | None:
    import shutil

    return shutil.which(program)


def run_process(command: list[str], timeout: float) -> tuple[int, bytes, bytes]:
    """Run *command* without input, and end it with all it started when *timeout* seconds are over.

    Raises:
        TimeoutError: the time is over.
        OSError: the program cannot be started.
    """
    import signal
    import subprocess

    # git must fail rather than wait at a password prompt that nobody sees.
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException as error:
            # Its own session, so that a git it started does not outlive it.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"{command[0]} ran longer than {timeout:g} s") from error
            raise
        return process.returncode, out, err
