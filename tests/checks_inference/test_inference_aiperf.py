"""The load generator of inference-perf: its command line, its Job, its report."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from tests.checks_inference.perf_scene import report, settings

from aicr.checks.performance.inference_aiperf import MARKER, arguments, image, job, measurement
from aicr.checks.performance.inference_sizing import Load
from aicr.checks.performance.inference_verdict import Measurement
from aicr.errors import INTERNAL, AicrError

LOAD = Load(gpus=2, node_gpus=8, concurrency=512, requests=4096, warmup=256)


@pytest.mark.covers("V-299", "V-330")
def test_the_load_is_pinned() -> None:
    """Seed, prompt pool, token counts without spread, temperature 0, streaming, warm-up first."""
    words = arguments(settings(), LOAD, "http://svc:8000", "0123abcd")
    assert shlex.join(words) == (
        "--model Qwen/Qwen3-8B --url http://svc:8000 --endpoint-type chat --streaming "
        "--concurrency 512 --request-count 4096 --warmup-request-count 256 "
        "--synthetic-input-tokens-mean 128 --synthetic-input-tokens-stddev 0 "
        "--output-tokens-mean 128 --output-tokens-stddev 0 "
        "--num-dataset-entries 100 --random-seed 100 --extra-inputs temperature:0 --ui none"
    )


def test_behind_the_gateway_requests_carry_the_run_s_header() -> None:
    """So that only the run's own route takes them."""
    words = arguments(settings(routing_mode="gateway-epp"), LOAD, "http://g:80", "0123abcd")
    assert words[-2:] == ["--header", "x-aicr-inference-perf:0123abcd"]


@pytest.mark.covers("V-116")
@pytest.mark.parametrize(
    ("environ", "reference", "policy"),
    [
        ({}, "aicr.local/aiperf-bench:latest", "Never"),
        ({"AICR_CLI_VERSION": "1.2.3"}, "aicr.local/aiperf-bench:v1.2.3", "Never"),
        (
            {"AICR_CLI_COMMIT": "ABC1234", "AICR_VALIDATOR_IMAGE_REGISTRY": "r.io/x"},
            *("r.io/x/aiperf-bench:sha-abc1234", "IfNotPresent"),
        ),
        (
            {"AICR_VALIDATOR_IMAGE_TAG": "edge", "AICR_VALIDATOR_IMAGE_REGISTRY": "localhost:5001"},
            *("localhost:5001/aiperf-bench:edge", "Always"),
        ),
    ],
    ids=["development", "release", "commit", "overrides"],
)
def test_its_image_follows_the_rules_of_all_check_images(
    environ: dict[str, str], reference: str, policy: str
) -> None:
    """Version or commit, then tag, then registry; and the pull policy of the result."""
    assert image(environ) == (reference, policy)


@pytest.mark.covers("V-336")
def test_the_job_runs_beside_the_workers_without_a_gpu() -> None:
    """Tolerates everything, may pull what the check may pull, and is tried once."""
    found = job("aicr-aiperf-x", ["--model", "m"], ("i:1", "Always"), "gpu-1", [{"name": "s"}], {})
    assert found["spec"]["backoffLimit"] == 0
    pod = found["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "gpu-1"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["imagePullSecrets"] == [{"name": "s"}]
    (container,) = pod["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("i:1", "Always")
    assert set(container["resources"]) == {"requests"}
    assert "nvidia.com/gpu" not in json.dumps(found)
    # Words reach the program as arguments, so that a shell never reads them.
    assert container["args"] == ["--model", "m"]
    assert '"$@"' in container["command"][2]


def test_a_report_is_read_with_its_counts() -> None:
    """Also when the log has markers of an earlier attempt before it."""
    expected = Measurement(41000.5, 812.25, 4096, None)
    assert measurement(report(41000.5, 812.25)) == expected
    assert measurement(f"{MARKER}\nold\n{MARKER}\n{report(41000.5, 812.25)}") == expected
    with_errors = report(error_request_count={"unit": "requests", "avg": 7.0})
    assert measurement(with_errors).errors == 7


def changed(metric: str, value: Any) -> str:
    """A report with one entry changed."""
    return report(**{metric: value})


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("", "the log has none of the two"),
        (
            "Error: no such model\n",
            "none of the two ===AIPERF-RESULT=== markers; it ends: Error: no",
        ),
        (f"{MARKER}\n{{}}\n", "the log has only one of the two"),
        (f"{MARKER}\n{{ cut\n{MARKER}\n", "the report is no JSON"),
        (f"{MARKER}\n[]\n{MARKER}\n", "the report is no JSON object"),
        (f"{MARKER}\n{{}}\n{MARKER}\n", "output_token_throughput.avg is None"),
        (changed("output_token_throughput", {"avg": 0}), "output_token_throughput.avg is 0"),
        (changed("output_token_throughput", {"avg": "9"}), "output_token_throughput.avg is '9'"),
        (changed("output_token_throughput", {"avg": True}), "output_token_throughput.avg is True"),
        (changed("output_token_throughput", {"avg": float("nan")}), "avg is nan"),
        (changed("time_to_first_token", {"avg": 3}), "time_to_first_token.p99 is None"),
        (changed("time_to_first_token", {"p99": float("inf")}), "p99 is inf"),
        (changed("time_to_first_token", {"unit": "s", "p99": 1}), "time_to_first_token is in s"),
        (changed("error_request_count", {"avg": -1}), "error_request_count.avg is -1"),
        (changed("was_cancelled", True), "AIPerf was cancelled"),
    ],
)
def test_what_is_no_measurement_is_internal_and_never_a_number(log: str, message: str) -> None:
    """Missing markers, broken JSON, missing or impossible numbers, another unit, a run cut short."""
    with pytest.raises(AicrError) as caught:
        measurement(log)
    assert caught.value.code == INTERNAL
    assert caught.value.message.startswith("cannot read AIPerf's result: ")
    assert message in caught.value.message
