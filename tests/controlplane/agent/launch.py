"""The small shell script that turns into a container: it makes the file system, then becomes the
container's first process.

The root is an overlay: this machine's files below, a scratch layer in memory above. /dev and /proc
are set up as a container expects, volumes are bind mounts. Everything happens in a mount namespace
that ends with its last process, so there is nothing to clean up.

The script reports through files: `up` has content once the container's own program takes over,
`setup` has the reason when it does not get that far.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.controlplane.network import program

DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")


@dataclass(frozen=True)
class Mount:
    """A file or folder of the agent's that a container sees at *target*."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Launch:
    """What a container's first process is, and where."""

    folder: Path
    namespace: str | None
    hostname: str
    argv: list[str]
    workdir: str
    mounts: list[Mount]
    visible: list[str]
    user: int | None = None
    group: int | None = None
    read_only_root: bool = False


#: Runs inside the new root. Descriptor 2 still leads to `setup`, 3 to the container's standard
#: error, 4 to `up`.
_INNER: Final = """
cd "$1" || exit 128
shift
command -v "$1" >/dev/null || {
  echo "exec: \\"$1\\": executable file not found in \\$PATH" >&2
  exit 128
}
echo up >&4
exec "$@" 2>&3 3>&- 4>&-
"""


def command(launch: Launch) -> list[str]:
    """Write the script into the launch's folder, and return the command that runs it."""
    script = launch.folder / "launch.sh"
    script.write_text(_script(launch), encoding="utf-8")
    words = []
    if launch.namespace is not None:
        words = [program("nsenter"), f"--net=/run/netns/{launch.namespace}", "--"]
    return [
        *words,
        *(program("unshare"), "--mount", "--uts", "--propagation", "private", "--"),
        *("/bin/sh", str(script)),
    ]


def _script(launch: Launch) -> str:
    mount, mkdir, touch = program("mount"), program("mkdir"), program("touch")
    scratch = launch.folder / "scratch"
    root = scratch / "root"
    up, setup = _quoted(launch.folder / "up"), _quoted(launch.folder / "setup")
    lines = ["set -eu", f"exec 3>&2 2>{setup} 4>{up}", f"{mkdir} -p {_quoted(scratch)}"]

    def inside(path: str) -> str:
        # Links are followed here and now: an absolute one, such as /var/run, would lead the shell
        # out of the new root and into this machine. Both have the same links.
        # /dev is our own and has none on the way.
        path = os.path.normpath("/" + path.lstrip("/"))
        if not path.startswith("/dev/"):
            path = os.path.realpath(path)
        return _quoted(f"{root}/{path.lstrip('/')}")

    def bind(source: str, target: str, *, folder: bool, read_only: bool) -> None:
        place = inside(target)
        if folder:
            lines.append(f"{mkdir} -p {place}")
        else:
            lines.append(f"{mkdir} -p {inside(target.rpartition('/')[0])}")
            lines.append(f"[ -e {place} ] || {touch} {place}")
        lines.append(f"{mount} --bind {_quoted(source)} {place}")
        if read_only:
            lines.append(f"{mount} -o remount,bind,ro {place}")

    # In memory, because an overlay's upper layer must not lie in the file system that is below it.
    lines.append(f"{mount} -t tmpfs -o mode=755 scratch {_quoted(scratch)}")
    lines.append(" ".join([mkdir, *(_quoted(scratch / one) for one in ("up", "work", "root"))]))
    layers = f"lowerdir=/,upperdir={scratch}/up,workdir={scratch}/work"
    lines.append(f"{mount} -t overlay -o {_quoted(layers)} overlay {_quoted(root)}")
    lines.append(f"{mount} --rbind /proc {inside('proc')}")
    # A network namespace has a view of its own of /sys.
    lines.append(f"{mount} -t sysfs -o ro sysfs {inside('sys')}")
    lines.append(f"{mount} -t tmpfs -o mode=755 dev {inside('dev')}")
    for device in DEVICES:
        bind(f"/dev/{device}", f"/dev/{device}", folder=False, read_only=False)
    lines.append(f"{mkdir} {inside('dev/pts')} {inside('dev/shm')}")
    lines.append(
        f"{mount} -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts {inside('dev/pts')}"
    )
    links = {"fd": "/proc/self/fd", "ptmx": "pts/ptmx"}
    links |= {name: f"/proc/self/fd/{n}" for n, name in enumerate(("stdin", "stdout", "stderr"))}
    for name, target in links.items():
        lines.append(f"{program('ln')} -s {target} {inside(f'dev/{name}')}")
    for path in launch.visible:
        bind(path, path, folder=True, read_only=False)
    # Outer ones first, or they would cover what lies in them.
    for one in sorted(launch.mounts, key=lambda one: one.target.count("/")):
        bind(str(one.source), one.target, folder=one.source.is_dir(), read_only=one.read_only)
    lines.append(f"{mkdir} -p {inside(launch.workdir)}")
    if launch.read_only_root:
        lines.append(f"{mount} -o remount,bind,ro {_quoted(root)}")
    lines.append(f"{program('hostname')} {shlex.quote(launch.hostname)}")
    chroot = [program("chroot")]
    if launch.user is not None or launch.group is not None:
        chroot.append(f"--userspec={launch.user or 0}:{launch.group or 0}")
    words = [*chroot, str(root), "/bin/sh", "-c", _INNER, "sh", launch.workdir, *launch.argv]
    lines.append(f"exec {shlex.join(words)}")
    return "\n".join([*lines, ""])


def _quoted(path: Path | str) -> str:
    return shlex.quote(str(path))
