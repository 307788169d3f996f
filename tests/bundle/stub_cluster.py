"""Runs generated scripts for real against stand-ins for helm and kubectl.

The stand-ins are found on a PATH that holds nothing else but what the scripts may use. Each call is
written to a log. What they answer lies in files: `answer("get-namespaces", "a Active\\n")` is printed
by `kubectl get namespaces …`; `fail("upgrade-x", 2)` lets the next two `helm upgrade --install x` fail.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from tests import tools

#: Programs that the scripts may call besides helm, kubectl and sleep.
ALLOWED: Final = (
    "bash", "awk", "cat", "dirname", "env", "grep", "jq", "paste", "tail", "timeout",
)  # fmt: skip

_STUB: Final = r"""#!/usr/bin/env bash
tool="${0##*/}"
printf '%s\n' "$tool $*" >>"$STUB/calls"
case "$1" in --context | --kube-context) shift 2 ;; esac
case "$tool/$1" in
  helm/upgrade) key=upgrade detail="$3" ;;
  helm/*) key="$tool-$1" detail="$2" ;;
  kubectl/apply) key=apply detail='' && cat >"$STUB/applied" ;;
  *) key="$1-$2" detail="$3" ;;
esac
for name in "$key-$detail" "$key"; do
  if [ -f "$STUB/fail/$name" ]; then
    left="$(cat "$STUB/fail/$name")"
    if [ "$left" -gt 0 ]; then
      printf '%s\n' "$((left - 1))" >"$STUB/fail/$name"
      echo "stub: $name fails" >&2
      exit 1
    fi
  fi
done
for name in "$key-$detail" "$key"; do
  if [ -f "$STUB/answer/$name" ]; then
    cat "$STUB/answer/$name"
    exit 0
  fi
done
"""


class StubCluster:
    """A cluster that answers what a test says, and remembers what was asked."""

    def __init__(self, root: Path, *, without: tuple[str, ...] = ()) -> None:
        self.root = root
        self.bin = root / "bin"
        for folder in (self.bin, root / "fail", root / "answer"):
            folder.mkdir(parents=True)
        for name in ALLOWED:
            if name not in without:
                (self.bin / name).symlink_to(tools.program(name, f"install {name}"))
        for name in ("helm", "kubectl", "sleep"):
            if name not in without:
                (self.bin / name).write_text(_STUB)
                (self.bin / name).chmod(0o755)
        self.answer("helm-version", "v4.3.1")
        self.answer("get-namespaces", "default Active\n")
        webhooks = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
        self.answer(f"get-{webhooks}", '{"items": []}')

    def answer(self, call: str, text: str) -> None:
        """What a call prints: `get-nodes`, `get-service-NAME`, `helm-list`, `upgrade-RELEASE`."""
        (self.root / "answer" / call).write_text(text)

    def fail(self, call: str, times: int = 1000) -> None:
        """Let a call fail the next so many times."""
        (self.root / "fail" / call).write_text(str(times))

    def run(
        self, script: Path, *args: str, cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script with the stand-ins alone on PATH."""
        return self.run_with(script, *args, cwd=cwd, env=env)

    def run_with(
        self, script: Path, *args: str, env: dict[str, str], cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a script, its variables given as a map."""
        return subprocess.run(
            [str(self.bin / "bash"), str(script), *args],
            cwd=cwd or self.root,
            env={"PATH": str(self.bin), "STUB": str(self.root), "HOME": str(self.root), **env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def calls(self, start: str = "") -> list[str]:
        """The calls so far, or those that start so."""
        log = self.root / "calls"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if line.startswith(start)]

    def installs(self) -> list[str]:
        """Releases in the order in which helm was asked to install them, tries included."""
        return [line.split()[3] for line in self.calls("helm upgrade")]


def place(files: dict[str, tuple[bytes, int]], folder: Path) -> Path:
    """Write a file set as it is, without the care of `bundle.output`."""
    for path, (data, mode) in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        os.chmod(target, mode)
    return folder
