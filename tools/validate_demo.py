"""Validation from end to end on this machine: snapshot, recipe, checks as real Jobs, three reports.

```
a control plane, 8 hollow GPU nodes, 1 that runs pods
  ─► aicr snapshot --agent ─► aicr recipe -s ─► aicr validate
```

The cluster is that of the tests: a real API server with real controllers, and nodes without GPUs whose
programs are stand-ins. It holds a GPU operator and a DCGM exporter and none of the recipe's other
components, so checks that need those fail and say which: a report in which everything is green would
show less.

Usage, as root on Linux: ``python -m tools.validate_demo [--out DIR]``; the folder is made anew. With
Chromium on PATH the HTML report is also drawn as report.png. It must not know what a check looks at.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.cluster.check_runs import Stage
from tests.controlplane import build
from tests.controlplane.demo import MACHINES, gpu_node
from tests.controlplane.nodes import Node
from tests.controlplane.plane import ControlPlane

ACCELERATOR: Final = "h100"
HOLLOW: Final = 8
#: Waits of the product, shortened: nothing here takes minutes.
FACTOR: Final = "0.1"
#: `aicr validate` when a check did not pass.
NOT_PASSED: Final = 8


def nodes() -> list[Node]:
    """Eight nodes that only play GPU nodes, and one that runs what it is given."""
    machine = MACHINES[ACCELERATOR]
    hollow = [gpu_node(f"gpu-{number}", machine, hollow=True) for number in range(1, HOLLOW + 1)]
    runs = gpu_node("runs-1", machine, hollow=False)
    return [*hollow, Node(runs.name, {**runs.labels, "test.aicr.run/pool": "runs"}, gpus=8)]


def step(words: list[str], environ: dict[str, str], *, may_end: tuple[int, ...] = (0,)) -> None:
    """Run one command of the product as a person would, and show it."""
    print(f"\n== aicr {' '.join(words)}", flush=True)
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "aicr", *words], env=environ, check=False)
    print(f"   exit {done.returncode} after {time.monotonic() - begun:.1f} s", flush=True)
    if done.returncode not in may_end:
        raise SystemExit(f"validate_demo: that was not expected; {may_end} would have been")


def draw(page: Path, picture: Path) -> str:
    """Let Chromium draw a page; what came of it, in words."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        return "no picture: chromium is not installed"
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1100,1500"]
    subprocess.run(
        [program, *words, f"--screenshot={picture}", page.resolve().as_uri()],
        capture_output=True,
        check=True,
        timeout=120,
    )
    return f"drawn: {picture}"


def install_ubuntu(plane: ControlPlane) -> None:
    """Give the node that runs pods the file that says which system it has."""
    place = plane.folder / "nodes" / "runs-1" / "disk/etc/os-release"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text('ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04 LTS"\n')


def play(plane: ControlPlane, out: Path) -> None:
    """The whole demo on a running plane."""
    environ = {
        **os.environ,
        "KUBECONFIG": str(plane.kubeconfig),
        "AICR_TIMEOUT_FACTOR": FACTOR,
    }
    snapshot, recipe = str(out / "snapshot.yaml"), str(out / "recipe.yaml")
    with Stage(plane.client()) as stage:
        operator = stage.namespace("gpu-operator")
        labels = {"app": "gpu-operator", "app.kubernetes.io/version": "v26.7.0"}
        stage.workload("Deployment", operator, "gpu-operator", labels)
        stage.serve(operator, "nvidia-dcgm-exporter", 9400, "metrics")
        step(["snapshot", "--agent", "--timeout", "10m", "-o", snapshot], environ)
        criteria = ["--service", "eks", "--accelerator", ACCELERATOR, "--intent", "training"]
        step(["recipe", *criteria, "-s", snapshot, "-o", recipe], environ)
        flags = ["--phase", "deployment", "--phase", "conformance", "--parallel", "4"]
        # It would wait seven minutes for components that nobody installs here.
        flags += ["--skip-check", "expected-resources"]
        files = ["-o", str(out / "ctrf.json"), "--report", str(out / "report.html")]
        step(
            ["validate", "-r", recipe, "-s", snapshot, *flags, *files],
            environ,
            may_end=(0, NOT_PASSED),
        )
    print(f"\n{draw(out / 'report.html', out / 'report.png')}", flush=True)
    for file in sorted(out.iterdir()):
        print(f"{file.stat().st_size:>9}  {file}")


def main() -> int:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description="Validation from end to end on this machine.")
    parser.add_argument("--out", type=Path, default=Path("demo-out/validate"))
    out: Path = parser.parse_args().out
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        raise SystemExit("validate_demo: pods get namespaces of their own: root on Linux is needed")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    build.binaries(say=print)
    plane = ControlPlane(nodes())
    plane.start()
    install_ubuntu(plane)
    try:
        play(plane, out)
    finally:
        plane.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
