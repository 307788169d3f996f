"""The deployers' own programs, built once from Go modules; `make test-tools` runs our bundles through them.

```
go mod download ─checksum as pinned here─► sources/ ─► the build of tests.controlplane.build ─► cache
```
A program is built inside a copy of its own module, so its own go.mod and go.sum decide what it is
made of, replacements included; that copy is pinned by the one checksum that stands here. Cache and
lock are those of the test control plane.

Usage: `python -m tests.tools_build [PROGRAM...]` prints the paths. Exit 1 with the reason if one
cannot be built; the others are built all the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.controlplane import build

CACHE: Final = "aicr-tools"


@dataclass(frozen=True)
class Tool:
    """A program and the module that it is built from.

    Attributes:
        module: path of its Go module.
        version: the pinned release.
        checksum: of the module's content, as go.sum writes it.
        package: its package in the module.
        stamp: linker words that tell the program its release.
        minutes: about how long a build takes on 2 cores.
        added: files that the release has and the module has not, by path in the module.
    """

    module: str
    version: str
    checksum: str
    package: str
    stamp: str
    minutes: int
    added: Mapping[str, str] = field(default_factory=dict)


TOOLS: Final[Mapping[str, Tool]] = {
    "kubeconform": Tool(
        module="github.com/yannh/kubeconform",
        version="v0.8.0",
        checksum="h1:loDYd3a3spjIFrauqW67CDKF55Oo9R6uvC8AvpVd4ug=",
        package="./cmd/kubeconform",
        stamp="-X main.version=v0.8.0",
        minutes=1,
    ),
    "flux": Tool(
        module="github.com/fluxcd/flux2/v2",
        version="v2.9.5",
        checksum="h1:jwCccxvkD+2QnsjN+pl5QqM8KnFUwA8pIoQ1Lf0avkA=",
        package="./cmd/flux",
        stamp="-X main.VERSION=2.9.5",
        minutes=6,
        # A release embeds the objects of `flux install` here. Nothing is installed from this build.
        added={"cmd/flux/manifests/none.yaml": "# Not part of the Go module.\n"},
    ),
    "tofu": Tool(
        module="github.com/opentofu/opentofu",
        version="v1.12.6",
        checksum="h1:0VT4P8pMmGcCUnQ9JDrJ+Qg2d35Vzm4FFd/9+H7oF98=",
        package="./cmd/tofu",
        stamp="-X github.com/opentofu/opentofu/version.dev=no",
        minutes=8,
    ),
    "helmfile": Tool(
        module="github.com/helmfile/helmfile",
        version="v1.8.0",
        checksum="h1:coUoYKmxceeLbm4y43dJ1Dh3crrwniAx8LtBxPcu7+Y=",
        package=".",
        stamp="-X go.szostok.io/version.version=v1.8.0",
        minutes=15,
    ),
}


def report(line: str) -> None:
    """Write one line of progress to standard error."""
    print(f"tools: {line}", file=sys.stderr, flush=True)


def program(name: str) -> Path:
    """Path of a program, built first if need be.

    Raises:
        BuildError: Go is missing or too old, the module is not as pinned, or the build failed.
    """
    return ready(name) or build.built(_pins(name, _source(name)), say=report) / name


def ready(name: str) -> Path | None:
    """Path of a program that has been built before, whichever Go built it; None if there is none."""
    root = build.cache_root(os.environ, CACHE)
    for folder in sorted(root.glob(f"{_release(name)}-*/")):
        if not build.damage(folder, {name: TOOLS[name].package}):
            return folder / name
    return None


def _release(name: str) -> str:
    return f"{name}-{TOOLS[name].version}"


def _pins(name: str, source: Path) -> build.Pins:
    tool = TOOLS[name]
    return build.Pins(
        module=source,
        packages={name: tool.package},
        built_as={},
        release=_release(name),
        flags=("-trimpath", "-buildvcs=false", f"-ldflags=-s -w {tool.stamp}"),
        cache=CACHE,
        minutes=tool.minutes,
    )


def _source(name: str) -> Path:
    """The folder with the program's module, fetched and checked if need be.

    Raises:
        BuildError: there is no go, the module cannot be had, or it is not what is pinned.
    """
    root = build.cache_root(os.environ, CACHE) / "sources"
    place = root / _release(name)
    if place.is_dir():
        return place
    tool = TOOLS[name]
    held = _download(tool)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".copying-", dir=root) as scratch:
        made = Path(scratch) / "made"
        # The module cache is read-only, and what is built must not lie in it.
        shutil.copytree(held, made, copy_function=shutil.copyfile)
        for folder in (made, *(path for path in made.rglob("*") if path.is_dir())):
            folder.chmod(0o755)
        for path, text in tool.added.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_text(text, encoding="utf-8")
        try:
            made.rename(place)
        except OSError:
            if not place.is_dir():
                raise
    return place


def _download(tool: Tool) -> Path:
    go = shutil.which("go")
    if go is None:
        raise build.BuildError(f"{tool.module} is built with Go, and there is no `go` on PATH")
    done = subprocess.run(
        [go, "mod", "download", "-json", f"{tool.module}@{tool.version}"],
        cwd=tempfile.gettempdir(),
        env={**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise build.BuildError(f"go mod download failed:\n{done.stdout}{done.stderr}".strip())
    found = json.loads(done.stdout)
    if found["Sum"] != tool.checksum:
        raise build.BuildError(
            f"{tool.module} {tool.version} has the checksum {found['Sum']}, not {tool.checksum}"
        )
    return Path(found["Dir"])


def main(names: list[str]) -> int:
    """Print the paths of the programs, building what is missing."""
    status = 0
    for name in names or TOOLS:
        if name not in TOOLS:
            report(f"{name}: no such program; there are {', '.join(TOOLS)}")
            status = 1
            continue
        try:
            print(program(name))
        except build.BuildError as error:
            report(f"{name}: {error}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
