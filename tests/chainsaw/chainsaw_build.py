"""The chainsaw program, built once from its Go module; our assertion engine is compared with it.

`chainsaw_gomod/` pins the module by checksum, and the module's own go.sum, which that checksum covers,
pins all that it needs. The release was written for an older Go: since Go 1.26 the package `testing` asks
one method more of what chainsaw hands it, so the build is of a copy with that one method added, and
nothing else changed. The result is kept in the user's cache as the programs of the test control plane are
(see ``tests.controlplane.build``). Tests use only a build that exists: no test run starts one.

Usage: `nice python -m tests.chainsaw.chainsaw_build` prints the program's path, and builds it first if
need be; about 8 minutes on 2 cores. Exit 1 with the reason if there is none.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.controlplane import build

MODULE: Final = Path(__file__).resolve().parents[1] / "chainsaw_gomod"
PATH: Final = "github.com/kyverno/chainsaw"
PROGRAM: Final = "chainsaw"
FLAGS: Final = ("-trimpath", "-buildvcs=false", "-ldflags=-s -w")
ADDED: Final = "pkg/runner/internal/module_path.go"
METHOD: Final = """\
package internal

// ModulePath is asked for by package testing since Go 1.26.
func (*TestDeps) ModulePath() string { return "" }
"""


def pins() -> build.Pins:
    """What the program is built from; what we add counts as a flag, so a change builds anew."""
    return build.Pins(
        module=MODULE,
        packages={PROGRAM: PATH},
        built_as={},
        release=PROGRAM,
        flags=(*FLAGS, METHOD),
        cache="aicr-chainsaw",
        minutes=8,
    )


def place(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder that holds the build, or will.

    Raises:
        BuildError: there is no Go, whose version names the folder.
    """
    wanted = pins()
    version = _go(MODULE, "env", "GOVERSION").strip()
    return build.cache_root(environment, wanted.cache) / build.cache_key(version, wanted)


def existing() -> Path:
    """The program, if it has been built and is whole.

    Raises:
        BuildError: it has not, with what to do.
    """
    folder = place()
    broken = build.damage(folder, pins().packages)
    if broken:
        raise build.BuildError(
            f"chainsaw is not built ({broken}): nice python -m tests.chainsaw.chainsaw_build"
        )
    return folder / PROGRAM


def built() -> Path:
    """The program, built first if need be.

    Raises:
        BuildError: Go is missing, the module cannot be had, or the build failed.
    """
    folder = place()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if build.damage(folder, pins().packages):
            shutil.rmtree(folder, ignore_errors=True)
            _build(folder)
    return folder / PROGRAM


def _build(folder: Path) -> None:
    _say(f"building chainsaw with Go, once; about {pins().minutes} minutes on 2 cores")
    source = Path(json.loads(_go(MODULE, "mod", "download", "-json", PATH))["Dir"])
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as scratch:
        copy, made = Path(scratch) / "source", Path(scratch) / "made"
        shutil.copytree(source, copy, copy_function=shutil.copyfile)
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (copy / ADDED).write_text(METHOD, encoding="utf-8")
        made.mkdir()
        _go(copy, "build", *FLAGS, "-o", str(made / PROGRAM), ".")
        with (made / PROGRAM).open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        (made / build.SUMS).write_text(f"{digest}  {PROGRAM}\n", encoding="utf-8")
        made.rename(folder)
    _say(f"kept in {folder}")


def _go(folder: Path, *words: str) -> str:
    program = shutil.which("go")
    if program is None:
        raise build.BuildError("chainsaw is built with Go, and there is no `go` on PATH")
    # No other toolchain behind our back, no workspace of the user's, no C compiler.
    environment = dict(
        os.environ, GOTOOLCHAIN="local", GOWORK="off", GOFLAGS="-mod=readonly", CGO_ENABLED="0"
    )
    done = subprocess.run(
        [program, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise build.BuildError(f"go {words[0]} failed:\n{done.stderr.strip()[-4000:]}")
    return done.stdout


def _say(line: str) -> None:
    print(f"chainsaw: {line}", file=sys.stderr, flush=True)


def main() -> int:
    """Print the path of the program, building it first if need be."""
    try:
        print(built())
    except build.BuildError as error:
        _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
