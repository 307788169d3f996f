"""Settings of preflight-nccl-allreduce: defaults, message sizes, and what the chart sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from aicr.errors import INVALID_REQUEST, SERVICE_UNAVAILABLE, AicrError
from aicr.preflight.checks.allreduce.settings import (
    Benchmark,
    parse_sizes,
    read_benchmark,
    read_gang,
)

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30


def gpus(count: int = 8) -> Sequence[str]:
    """Products as nvidia-smi lists them."""
    return ["NVIDIA H100 80GB HBM3"] * count


def read(**environ: str) -> Benchmark:
    """Settings from variables, on a node with eight GPUs."""
    return read_benchmark(environ, gpus)


@pytest.mark.covers("P-074", "P-075", "P-076", "P-077", "P-078", "P-079")
def test_the_defaults_are_the_seeds() -> None:
    """100 GB/s, 4G and 8G, 20 iterations after 5, sum, no skip; a worker for each GPU."""
    found = read()
    assert (found.threshold, found.sizes) == (100.0, (4 * GIB, 8 * GIB))
    assert (found.iterations, found.warm_up, found.operation) == (20, 5, "sum")
    assert (found.skip, found.localize, found.backend, found.processes) == (False, True, "nccl", 8)
    gang = read_gang({"POD_NAME": "w-0"})
    assert (gang.directory, gang.timeout, gang.reporting) == ("/etc/preflight", 600, None)


@pytest.mark.covers("P-075", "P-080", "P-081", "P-082")
@pytest.mark.parametrize("place", ["chart", "default"])
def test_the_chart_asks_for_4g_and_may_lock_memory_and_leaves_nccl_quiet(place: str) -> None:
    """NCCL_DEBUG and NCCL_DEBUG_SUBSYS are nobody's but the operator's (decision 75)."""
    path = {
        "chart": ROOT / "charts" / "preflight" / "values.yaml",
        "default": ROOT / "src" / "aicr" / "preflight" / "default_config.yaml",
    }[place]
    entries: list[dict[str, Any]] = yaml.safe_load(path.read_text())["initContainers"]
    (entry,) = [one for one in entries if one["name"] == "preflight-nccl-allreduce"]
    assert {one["name"]: one["value"] for one in entry["env"]} == {
        "BW_THRESHOLD_GBPS": "100",
        "MESSAGE_SIZES": "4G",
    }
    assert entry["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert entry["gangOnly"] is True


@pytest.mark.covers("P11-116")
@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4G", (4294967296,)),
        ("512mb", (536870912,)),
        (" 0.5gb ", (536870912,)),
        ("4G,8g", (4 * GIB, 8 * GIB)),
        ("1 M, .5M", (1 << 20, 1 << 19)),
        ("1e-3G", (1073741,)),
    ],
)
def test_sizes_are_written_in_g_and_m(text: str, sizes: tuple[int, ...]) -> None:
    """Powers of 1024, upper or lower case, fractions cut off."""
    assert parse_sizes(text) == sizes


@pytest.mark.covers("P11-116")
@pytest.mark.parametrize(
    "text",
    ["4", "4K", "", "4G,", "GB", "4GiB", "x", "-1G", "0M", "0.000001M", "1e400G", "1_0G", "٤G"],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    """Blank entries, other suffixes, nothing below one element."""
    with pytest.raises(AicrError) as caught:
        parse_sizes(text)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.message.startswith("invalid MESSAGE_SIZES: ")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("BW_THRESHOLD_GBPS", "nan", "invalid BW_THRESHOLD_GBPS: nan is not a positive"),
        ("BW_THRESHOLD_GBPS", "0", "not a positive"),
        ("BW_THRESHOLDS_GBPS", "ether=3", "invalid BW_THRESHOLDS_GBPS"),
        ("BENCHMARK_ITERS", "0", "BENCHMARK_ITERS must be at least 1, got 0"),
        ("WARMUP_ITERS", "-1", "WARMUP_ITERS must be at least 0, got -1"),
        ("NCCL_REDUCE_OP", "bor", "invalid NCCL_REDUCE_OP: bor"),
        ("LOCALIZE", "maybe", "invalid LOCALIZE: maybe"),
        ("LOCALIZE_BUDGET_SECONDS", "0", "must be positive"),
        ("ALLREDUCE_BACKEND", "mpi", "invalid ALLREDUCE_BACKEND: mpi"),
        ("MESSAGE_SIZES", "many", "'many' is no size"),
    ],
)
def test_a_value_that_is_none_is_named(name: str, value: str, text: str) -> None:
    """With the variable and what was given."""
    with pytest.raises(AicrError, match=text) as caught:
        read(**{name: value})
    assert caught.value.code == INVALID_REQUEST


def test_an_average_needs_nccl() -> None:
    """gloo cannot do it, and would fail only when it runs."""
    assert read(NCCL_REDUCE_OP=" AVG ").operation == "avg"
    with pytest.raises(AicrError, match="gloo has no average"):
        read(NCCL_REDUCE_OP="avg", ALLREDUCE_BACKEND="gloo")


@pytest.mark.covers("P-079")
@pytest.mark.parametrize(
    ("text", "skips"),
    [("TRUE", True), ("1", True), ("Yes", True), ("on", False), ("", False), ("false", False)],
)
def test_what_skips_the_threshold(text: str, skips: bool) -> None:
    """Three words; everything else does not."""
    assert read(SKIP_BANDWIDTH_CHECK=text).skip is skips


def test_gpus_that_cannot_be_counted_are_eight_with_a_note() -> None:
    """A number that was given is not counted at all."""

    def broken() -> Sequence[str]:
        raise AicrError(SERVICE_UNAVAILABLE, "nvidia-smi failed")

    found = read_benchmark({}, broken)
    assert found.processes == 8
    assert "nvidia-smi failed" in found.notes[0]
    assert read_benchmark({"NPROCS_PER_NODE": "4"}, broken).processes == 4
