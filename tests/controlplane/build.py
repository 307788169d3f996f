"""The control plane's programs: found through KUBEBUILDER_ASSETS, or built once from Go modules.

Design: `gomod/` pins every module by checksum. A build is kept in a cache folder whose name is a
hash of go.sum, go.mod, the Go version and the build flags, so a changed pin builds anew and
checkouts with the same pin share. A lock lets parallel runs build once; the folder moves into place
as a whole and carries a checksum file, so a broken cache is built again instead of believed.

It must not know: how the programs are started.

Usage: `python -m tests.controlplane.build` prints the folder. Exit 1 with the reason if there is none.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final

MODULE: Final = Path(__file__).resolve().with_name("gomod")
#: Program name → the Go package that it is built from.
PACKAGES: Final[Mapping[str, str]] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
#: Go names a program after the last element of its package path that is not a version.
BUILT_AS: Final[Mapping[str, str]] = {"etcd": "server"}
SUMS: Final = "SHA256SUMS"
SECONDS_BETWEEN_LINES: Final = 5.0

Report = Callable[[str], None]


class BuildError(Exception):
    """Why there are no programs, in words for the person at the terminal."""


def report(line: str) -> None:
    """Write one line of progress to standard error."""
    print(f"controlplane: {line}", file=sys.stderr, flush=True)


def binaries(environment: Mapping[str, str] = os.environ, say: Report = report) -> Path:
    """The folder that holds every program of `PACKAGES`, built first if need be.

    Raises:
        BuildError: KUBEBUILDER_ASSETS lacks a program, Go is missing or too old, or the build failed.
    """
    assets = environment.get("KUBEBUILDER_ASSETS")
    if assets:
        return _assets(Path(assets))
    go = _Go(environment)
    root = cache_root(environment)
    root.mkdir(parents=True, exist_ok=True)
    key = cache_key(go.version)
    place = root / key
    with _locked(root / f"{key}.lock", say):
        if place.is_dir():
            broken = damage(place)
            if not broken:
                return place
            say(f"{place} is damaged ({broken}); building again")
            shutil.rmtree(place)
        _build(go, place, say)
    return place


def kubernetes_version() -> str:
    """The pinned Kubernetes release, for example "v1.36.3", from the tool module's go.mod."""
    text = (MODULE / "go.mod").read_text(encoding="utf-8")
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)$", text, re.MULTILINE)
    if found is None:
        raise BuildError(f"{MODULE / 'go.mod'} requires no k8s.io/kubernetes")
    return found[1]


def cache_root(environment: Mapping[str, str]) -> Path:
    """The folder under which builds are kept, outside the checkout."""
    base = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "aicr-controlplane"


def cache_key(go_version: str) -> str:
    """Name of the cache folder for the present pins, flags and *go_version*."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((MODULE / name).read_bytes())
    digest.update("\0".join([go_version, *_flags(), *PACKAGES.values()]).encode())
    return f"{kubernetes_version()}-{digest.hexdigest()[:16]}"


def damage(place: Path) -> str:
    """What is wrong with a cached build, or "" when every file matches its checksum."""
    try:
        lines = (place / SUMS).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        return f"no {SUMS}: {error.strerror}"
    wanted = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name in PACKAGES:
        if name not in wanted:
            return f"{SUMS} has no line for {name}"
        try:
            if _sha256(place / name) != wanted[name]:
                return f"{name} does not match its checksum"
        except OSError as error:
            return f"{name}: {error.strerror}"
    return ""


def _assets(folder: Path) -> Path:
    missing = [name for name in PACKAGES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise BuildError(
            f"KUBEBUILDER_ASSETS={folder} has no {', '.join(missing)}; put the programs of one "
            "release there, or unset the variable to have them built"
        )
    return folder


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _flags() -> list[str]:
    """Build flags: no paths of this machine, no symbols, and the release stamped in.

    Without the stamp a program built from modules calls itself v0.0.0-master, and every test of
    server.version means nothing.
    """
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    words = ["-s", "-w"]
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        words += [f"-X {package}.{name}={value}" for name, value in stamps.items()]
    return ["-trimpath", "-buildvcs=false", f"-ldflags={' '.join(words)}"]


@contextlib.contextmanager
def _locked(path: Path, say: Report) -> Iterator[None]:
    """Hold *path* as a lock, telling the person once when another run holds it."""
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another run is building; waiting for {path}")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


class _Go:
    """The Go command with the settings that make a build repeatable."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        program = shutil.which("go", path=environment.get("PATH"))
        if program is None:
            raise BuildError(
                "the test control plane is built with Go, and there is no `go` on PATH; install it "
                "or set KUBEBUILDER_ASSETS to a folder with the programs"
            )
        self.program = program
        # A toolchain of another version must not be fetched behind our back, a workspace or a
        # vendor setting of the user must not change what is built, and no C compiler is needed.
        self.environment = dict(
            environment, GOTOOLCHAIN="local", GOWORK="off", GOFLAGS="-mod=readonly", CGO_ENABLED="0"
        )
        self.version = self._ask("env", "GOVERSION")
        wanted = re.search(r"^go (\S+)$", (MODULE / "go.mod").read_text(), re.MULTILINE)
        if wanted and _numbers(self.version) < _numbers(wanted[1]):
            raise BuildError(
                f"Kubernetes {kubernetes_version()} needs Go {wanted[1]} or newer; "
                f"{program} is {self.version}"
            )

    def _ask(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.program, *arguments],
            cwd=MODULE,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise BuildError(f"go {' '.join(arguments)} failed:\n{done.stderr.strip()}")
        return done.stdout.strip()

    def follow(self, arguments: list[str], on_line: Callable[[str], None]) -> str:
        """Run go, hand each line of its standard error to *on_line*, return standard output."""
        last: deque[str] = deque(maxlen=40)
        with tempfile.TemporaryFile("w+") as out:
            child = subprocess.Popen(
                [self.program, *arguments],
                cwd=MODULE,
                env=self.environment,
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert child.stderr is not None
            try:
                for line in child.stderr:
                    last.append(line)
                    on_line(line)
            finally:
                if child.poll() is None:
                    child.terminate()
                child.wait()
                child.stderr.close()
            if child.returncode != 0:
                raise BuildError(f"go {arguments[0]} failed:\n{''.join(last).strip()}")
            out.seek(0)
            return out.read()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


class _Ticker:
    """Says a line every few seconds while work goes on, so that a long build never looks hung."""

    def __init__(self, line: Callable[[], str], say: Report) -> None:
        self._line, self._say, self._done = line, say, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(SECONDS_BETWEEN_LINES):
            self._say(self._line())


def _build(go: _Go, place: Path, say: Report) -> None:
    begun = time.monotonic()
    say(
        f"building {', '.join(PACKAGES)} of {kubernetes_version()} with {go.version}, once; "
        "about 10 minutes on 2 cores"
    )
    count = 0

    def counted(_: str) -> None:
        nonlocal count
        count += 1

    def seconds() -> int:
        return round(time.monotonic() - begun)

    with _Ticker(lambda: f"{seconds()} s: {count} modules downloaded", say):
        deps = go.follow(["list", "-deps", *PACKAGES.values()], counted)
    total, count = len(deps.splitlines()), 0
    place.parent.mkdir(parents=True, exist_ok=True)
    # Beside its final place, so that the rename stays within one file system.
    with tempfile.TemporaryDirectory(prefix=".building-", dir=place.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        # -v prints a package when it is compiled; what Go's own cache holds is not printed.
        command = ["build", "-v", *_flags(), "-o", f"{made}{os.sep}", *PACKAGES.values()]
        with _Ticker(lambda: f"{seconds()} s: {count} of {total} packages compiled", say):
            go.follow(command, counted)
        for name, built in BUILT_AS.items():
            (made / built).rename(made / name)
        with (made / SUMS).open("w", encoding="utf-8") as sums:
            _write_sums(made, sums)
        made.rename(place)
    say(f"built in {seconds()} s, kept in {place}")


def _write_sums(folder: Path, sums: IO[str]) -> None:
    for name in PACKAGES:
        sums.write(f"{_sha256(folder / name)}  {name}\n")


def main() -> int:
    """Print the folder with the programs, building them first if need be."""
    try:
        print(binaries())
    except BuildError as error:
        report(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
