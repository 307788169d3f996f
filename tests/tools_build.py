"""kubeconform, built once from Go modules; `make test-tools` runs our bundles through it.

`tools_gomod/` pins every module by checksum. The build, its cache and its lock are those of the test
control plane (see ``tests.controlplane.build``).

Usage: `python -m tests.tools_build` prints the folder. Exit 1 with the reason if there is none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.controlplane import build

MODULE: Final = Path(__file__).resolve().with_name("tools_gomod")
#: Program → the Go package that it is built from.
PACKAGES: Final[Mapping[str, str]] = {
    "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform",
}


def version(program: str) -> str:
    """The pinned release of a program, for example "v0.8.0".

    Raises:
        BuildError: go.mod requires no module that has the program's package.
    """
    text = (MODULE / "go.mod").read_text(encoding="utf-8")
    for name, found in re.findall(r"^(?:require)?\s*(\S+) (v\S+)$", text, re.MULTILINE):
        if PACKAGES[program].startswith(name):
            return str(found)
    raise build.BuildError(f"{MODULE / 'go.mod'} requires no module of {program}")


def pins() -> build.Pins:
    """What the programs are built from, with their releases stamped in."""
    return build.Pins(
        module=MODULE,
        packages=PACKAGES,
        built_as={},
        release="tools",
        flags=(
            *("-trimpath", "-buildvcs=false"),
            f"-ldflags=-s -w -X main.version={version('kubeconform')}",
        ),
        cache="aicr-tools",
        minutes=1,
    )


def report(line: str) -> None:
    """Write one line of progress to standard error."""
    print(f"tools: {line}", file=sys.stderr, flush=True)


def program(name: str) -> Path:
    """Path of a program, built with the others first if need be.

    Raises:
        BuildError: Go is missing or too old, or the build failed.
    """
    return build.built(pins(), say=report) / name


def main() -> int:
    """Print the folder with the programs, building them first if need be."""
    try:
        print(build.built(pins(), say=report))
    except build.BuildError as error:
        report(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
