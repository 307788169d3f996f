"""How many recipes a second one process resolves, over criteria from cheap to rich.

Start-up is left out on purpose (bench_cli.py has it): this is the figure that a server or a test
that walks the whole matrix cares for. A report, no verdict.
"""

from __future__ import annotations

import argparse
import statistics
import time

import aicr

CASES = {
    "eks": aicr.Criteria(service="eks"),
    "eks h100 training ubuntu": aicr.Criteria(
        service="eks", accelerator="h100", intent="training", os="ubuntu"
    ),
    "eks h100 training ubuntu kubeflow": aicr.Criteria(
        service="eks", accelerator="h100", intent="training", os="ubuntu", platform="kubeflow"
    ),
    "gke h100 training cos": aicr.Criteria(
        service="gke", accelerator="h100", intent="training", os="cos"
    ),
}


def rates(catalog: aicr.Catalog, criteria: aicr.Criteria, batches: int, size: int) -> list[float]:
    """Resolutions per second of each batch."""
    found = []
    for _ in range(batches):
        begin = time.perf_counter()
        for _ in range(size):
            aicr.resolve(catalog, criteria, coverage=False)
        found.append(size / (time.perf_counter() - begin))
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Resolutions per second in one process.")
    parser.add_argument("--batches", type=int, default=7, help="batches a case (7)")
    parser.add_argument("--size", type=int, default=200, help="resolutions a batch (200)")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    catalog = aicr.Catalog.builtin()
    print(f"built-in catalogue opened in {(time.perf_counter() - begin) * 1e3:.2f} ms")
    print(f"{'criteria':<36}{'median /s':>11}{'best /s':>10}")
    for name, criteria in CASES.items():
        rates(catalog, criteria, 1, arguments.size)
        found = rates(catalog, criteria, arguments.batches, arguments.size)
        print(f"{name:<36}{statistics.median(found):>11.0f}{max(found):>10.0f}")


if __name__ == "__main__":
    main()
