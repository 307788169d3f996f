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
from dataclasses import dataclass
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
CACHE: Final = "aicr-controlplane"
SUMS: Final = "SHA256SUMS"
SECONDS_BETWEEN_LINES: Final = 5.0

Report = Callable[[str], None]


@dataclass(frozen=True)
class Pins:
    """Programs that are built from one Go module of ours.

    Attributes:
        module: folder with go.mod and go.sum.
        packages: program name → the Go package that it is built from.
        built_as: program name → what Go calls it, where that is another name.
        release: names the cache folder, and is said to the person who waits.
        flags: build flags.
        cache: name of the folder in the user's cache that keeps builds.
        minutes: about how long a build takes on 2 cores.
    """

    module: Path
    packages: Mapping[str, str]
    built_as: Mapping[str, str]
    release: str
    flags: tuple[str, ...]
    cache: str
    minutes: int


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
    return built(plane_pins(), environment, say)


def built(pins: Pins, environment: Mapping[str, str] = os.environ, say: Report = report) -> Path:
    """The cache folder that holds the programs of *pins*, built first if need be.

    Raises:
        BuildError: Go is missing or too old, or the build failed.
    """
    go = _Go(environment, pins)
    root = cache_root(environment, pins.cache)
    root.mkdir(parents=True, exist_ok=True)
    key = cache_key(go.version, pins)
    place = root / key
    with _locked(root / f"{key}.lock", say):
        if place.is_dir():
            broken = damage(place, pins.packages)
            if not broken:
                return place
            say(f"{place} is damaged ({broken}); building again")
            shutil.rmtree(place)
        _build(go, pins, place, say)
    return place


def plane_pins() -> Pins:
    """What the programs of the control plane are built from."""
    return Pins(
        MODULE, PACKAGES, BUILT_AS, kubernetes_version(), tuple(_flags()), CACHE, minutes=10
    )


def kubernetes_version() -> str:
    """The pinned Kubernetes release, for example "v1.36.3", from the tool module's go.mod."""
    text = (MODULE / "go.mod").read_text(encoding="utf-8")
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)$", text, re.MULTILINE)
    if found is None:
        raise BuildError(f"{MODULE / 'go.mod'} requires no k8s.io/kubernetes")
    return found[1]


def cache_root(environment: Mapping[str, str], name: str = CACHE) -> Path:
    """The folder under which builds are kept, outside the checkout."""
    base = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / name


def cache_key(go_version: str, pins: Pins | None = None) -> str:
    """Name of the cache folder for these pins (the control plane's by default) and *go_version*."""
    pins = pins or plane_pins()
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((pins.module / name).read_bytes())
    digest.update("\0".join([go_version, *pins.flags, *pins.packages.values()]).encode())
    return f"{pins.release}-{digest.hexdigest()[:16]}"


def damage(place: Path, packages: Mapping[str, str] = PACKAGES) -> str:
    """What is wrong with a cached build, or "" when every file matches its checksum."""
    try:
        lines = (place / SUMS).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        return f"no {SUMS}: {error.strerror}"
    wanted = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name in packages:
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

    def __init__(self, environment: Mapping[str, str], pins: Pins) -> None:
        program = shutil.which("go", path=environment.get("PATH"))
        if program is None:
            raise BuildError(
                "the test control plane is built with Go, and there is no `go` on PATH; install it "
                "or set KUBEBUILDER_ASSETS to a folder with the programs"
                if pins.module == MODULE
                else f"{', '.join(pins.packages)} are built with Go, and there is no `go` on PATH"
            )
        self.program, self.module = program, pins.module
        # A toolchain of another version must not be fetched behind our back, a workspace or a
        # vendor setting of the user must not change what is built, and no C compiler is needed.
        self.environment = dict(
            environment, GOTOOLCHAIN="local", GOWORK="off", GOFLAGS="-mod=readonly", CGO_ENABLED="0"
        )
        self.version = self._ask("env", "GOVERSION")
        wanted = re.search(r"^go (\S+)$", (pins.module / "go.mod").read_text(), re.MULTILINE)
        if wanted and _numbers(self.version) < _numbers(wanted[1]):
            raise BuildError(
                f"{pins.release}: {', '.join(pins.packages)} needs Go {wanted[1]} or newer; "
                f"{program} is {self.version}"
            )

    def _ask(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.program, *arguments],
            cwd=self.module,
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
                cwd=self.module,
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


def _build(go: _Go, pins: Pins, place: Path, say: Report) -> None:
    begun = time.monotonic()
    say(
        f"building {', '.join(pins.packages)} of {pins.release} with {go.version}, once; "
        f"about {pins.minutes} minutes on 2 cores"
    )
    count = 0

    def counted(_: str) -> None:
        nonlocal count
        count += 1

    def seconds() -> int:
        return round(time.monotonic() - begun)

    with _Ticker(lambda: f"{seconds()} s: {count} modules downloaded", say):
        deps = go.follow(["list", "-deps", *pins.packages.values()], counted)
    total, count = len(deps.splitlines()), 0
    place.parent.mkdir(parents=True, exist_ok=True)
    # Beside its final place, so that the rename stays within one file system.
    with tempfile.TemporaryDirectory(prefix=".building-", dir=place.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        # -v prints a package when it is compiled; what Go's own cache holds is not printed.
        command = ["build", "-v", *pins.flags, "-o", f"{made}{os.sep}", *pins.packages.values()]
        with _Ticker(lambda: f"{seconds()} s: {count} of {total} packages compiled", say):
            go.follow(command, counted)
        for name, go_name in pins.built_as.items():
            (made / go_name).rename(made / name)
        with (made / SUMS).open("w", encoding="utf-8") as sums:
            _write_sums(made, sums, pins.packages)
        made.rename(place)
    say(f"built in {seconds()} s, kept in {place}")


def _write_sums(folder: Path, sums: IO[str], packages: Mapping[str, str]) -> None:
    for name in packages:
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
