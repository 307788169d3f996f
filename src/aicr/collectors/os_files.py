"""The ``OS`` measurement of a machine: release, boot parameters, kernel settings, modules.

Everything comes from text files of the kernel and of the distribution, read by pure functions:

==========  ==========================================================
subtype     from
==========  ==========================================================
release     ``/etc/os-release``, else ``/usr/lib/os-release``
grub        ``/proc/cmdline`` without ``root``
sysctl      ``/proc/sys`` but for network and CD-ROM settings
kmod        first column of ``/proc/modules``
extensions  Talos only: labels of the node (see `talos`)
==========  ==========================================================

Source: recipe spec 8.4, rows OS.*.
"""

from __future__ import annotations

import os
from typing import Final

from aicr.collectors.ports import Files
from aicr.collectors.readings import OS, Collected
from aicr.errors import AicrError, not_found

RELEASE: Final = ("/etc/os-release", "/usr/lib/os-release")
SYSCTL: Final = "/proc/sys"
#: Thousands of values a network interface and connection, and a table that is no setting.
SYSCTL_SKIPPED: Final = frozenset({"/proc/sys/net", "/proc/sys/dev/cdrom"})
#: Boot parameters that differ from machine to machine by nature.
_PER_MACHINE: Final = frozenset({"root"})


def collect(files: Files) -> Collected:
    """The measurement; what could not be read is said, subtype by subtype."""
    found = Collected(OS)
    for name, read in (
        ("release", _release),
        ("grub", _grub),
        ("sysctl", _sysctl),
        ("kmod", _kmod),
    ):
        try:
            found.add(name, read(files))
        except AicrError as error:
            found.lacks(name, error)
    return found


def parse_release(text: str) -> dict[str, str]:
    """Keys and values of an os-release file; comments, blanks and empty values are left out."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if not equals or key.startswith("#") or not key:
            continue
        value = _unquoted(value.strip())
        if value:
            found[key.strip()] = value
    return found


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    return text


def parse_cmdline(text: str) -> dict[str, str]:
    """Boot parameters; a flag without ``=`` has the value "", the last of several wins."""
    found: dict[str, str] = {}
    for word in text.split():
        key, _, value = word.partition("=")
        if key and key not in _PER_MACHINE:
            found[key] = value
    return found


def parse_modules(text: str) -> dict[str, bool]:
    """Loaded kernel modules: name → true."""
    return {words[0]: True for line in text.splitlines() if (words := line.split())}


def parse_setting(path: str, text: str) -> dict[str, str]:
    """One file below ``/proc/sys``: its value, or ``<path>/<key>`` for each line of ``key value``."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) < 2:
        return {path: lines[0] if lines else ""}
    found = {}
    for line in lines:
        key, _, value = line.partition(" ")
        found[f"{path}/{key}"] = value.strip()
    return found


def _release(files: Files) -> dict[str, str]:
    for path in RELEASE:
        text = files.text(path)
        if text is not None:
            return parse_release(text)
    raise not_found(f"there is neither {RELEASE[0]} nor {RELEASE[1]}", where=RELEASE[0])


def _needed(files: Files, path: str) -> str:
    text = files.text(path)
    if text is None:
        raise not_found(f"there is no {path}", where=path, hint="only Linux has it")
    return text


def _grub(files: Files) -> dict[str, str]:
    return parse_cmdline(_needed(files, "/proc/cmdline"))


def _kmod(files: Files) -> dict[str, bool]:
    if files.text("/proc/modules") is None and files.exists("/proc/sys"):
        # A kernel built without loadable modules has no such file, and no modules.
        return {}
    return parse_modules(_needed(files, "/proc/modules"))


def _sysctl(files: Files) -> dict[str, str]:
    if not files.exists(SYSCTL):
        raise not_found(f"there is no {SYSCTL}", where=SYSCTL, hint="only Linux has it")
    found: dict[str, str] = {}
    failure: AicrError | None = None
    for path in files.walk(SYSCTL, SYSCTL_SKIPPED):
        # Many settings can only be written, or only read by root; the rest is still worth having.
        if not os.access(files.place(path), os.R_OK):
            continue
        try:
            text = files.text(path)
        except AicrError as error:
            failure = error
            continue
        if text is not None:
            found |= parse_setting(path, text)
    if not found:
        raise failure or not_found(f"no file below {SYSCTL} can be read", where=SYSCTL)
    return found
