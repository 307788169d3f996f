"""The load generator: the Job that runs AIPerf, and what it reports.

The load is pinned, so that a verdict describes the deployment: seed, prompt pool, token counts without
spread, temperature 0. Warm-up requests come first and are in no number. AIPerf needs no GPU; it runs on
the workers' node, where it was measured not to be in their way. Its report stands in the log between
two marker lines, because a log is all that is left of a pod. Pure.
Source: validators spec 7.3 "AIPerf Job"; requirements V-299, V-330, V-336.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aicr.checks.performance import inference_storage as storage
from aicr.checks.performance.inference_knobs import GATEWAY_EPP, Settings
from aicr.checks.performance.inference_sizing import HOSTNAME, Load
from aicr.checks.performance.inference_verdict import Measurement
from aicr.checks.performance.inference_workload import ROUTE_HEADER
from aicr.contract import container, images
from aicr.errors import INTERNAL, AicrError

IMAGE: Final = f"{images.OUR_PREFIX}aiperf-bench:latest"
MARKER: Final = "===AIPERF-RESULT==="
CONTAINER: Final = "aiperf"
SEED: Final = 100
ENTRIES: Final = 100
_ARTIFACTS: Final = "/tmp/aiperf"
_SCRIPT: Final = f"""\
set -eu
aiperf profile "$@" --artifact-dir {_ARTIFACTS}
report=$(find {_ARTIFACTS} -name 'profile_export_aiperf.json' | head -n 1)
[ -n "$report" ] || {{ echo "AIPerf left no report" >&2; exit 3; }}
echo '{MARKER}'
cat "$report"
echo
echo '{MARKER}'
"""

Document = dict[str, Any]


def image(environ: Mapping[str, str]) -> tuple[str, str]:
    """Reference and pull policy of the load generator, by the rules of all check images."""
    tag = environ.get(container.IMAGE_TAG, "")
    found = images.resolve(
        IMAGE,
        version=environ.get(container.CLI_VERSION, ""),
        commit=environ.get(container.CLI_COMMIT, ""),
        tag=tag,
        registry=environ.get(container.IMAGE_REGISTRY, ""),
    )
    return found, images.pull_policy(found, tag)


def arguments(settings: Settings, load: Load, url: str, suffix: str) -> list[str]:
    """What ``aiperf profile`` is told."""
    words = [
        *("--model", settings.model),
        *("--url", url),
        *("--endpoint-type", "chat"),
        "--streaming",
        *("--concurrency", str(load.concurrency)),
        *("--request-count", str(load.requests)),
        *("--warmup-request-count", str(load.warmup)),
        *("--synthetic-input-tokens-mean", str(settings.input_tokens)),
        *("--synthetic-input-tokens-stddev", "0"),
        *("--output-tokens-mean", str(settings.output_tokens)),
        *("--output-tokens-stddev", "0"),
        *("--num-dataset-entries", str(ENTRIES)),
        *("--random-seed", str(SEED)),
        *("--extra-inputs", "temperature:0"),
        *("--ui", "none"),
    ]
    if settings.routing_mode == GATEWAY_EPP:
        words += ["--header", f"{ROUTE_HEADER}:{suffix}"]
    return words


def job(
    name: str,
    words: Sequence[str],
    reference: tuple[str, str],
    node: str,
    pull_secrets: Sequence[Mapping[str, Any]],
    labels: Mapping[str, str],
) -> Document:
    """The Job.

    Args:
        name: of the Job; the Secret with a token, if there is one, has the same.
        words: see `arguments`.
        reference: image and pull policy.
        node: value of the host name label.
        pull_secrets: of the check's own pod.
        labels: of Job and pod.
    """
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": dict(labels)},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "nodeSelector": {HOSTNAME: node},
                    "tolerations": [{"operator": "Exists"}],
                    **(
                        {"imagePullSecrets": [dict(each) for each in pull_secrets]}
                        if pull_secrets
                        else {}
                    ),
                    "containers": [
                        {
                            "name": CONTAINER,
                            "image": reference[0],
                            "imagePullPolicy": reference[1],
                            "command": ["sh", "-c", _SCRIPT, CONTAINER],
                            "args": list(words),
                            "env": [storage.token_variable(name)],
                            "resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
                        }
                    ],
                },
            },
        },
    }


def measurement(log: str) -> Measurement:
    """What AIPerf reports, from the log of its pod.

    Raises:
        AicrError: INTERNAL when a marker is missing, the text between them is no report, a number is
            missing or impossible, or the run was cut short.
    """
    lines = log.splitlines()
    marks = [index for index, line in enumerate(lines) if line.strip() == MARKER]
    if len(marks) < 2:
        found = "none" if not marks else "only one"
        raise _unread(f"the log has {found} of the two {MARKER} markers", log)
    text = "\n".join(lines[marks[-2] + 1 : marks[-1]])
    try:
        report = json.loads(text)
    except ValueError as error:
        raise _unread(f"the report is no JSON: {error}", text) from error
    if not isinstance(report, dict):
        raise _unread("the report is no JSON object", text)
    if report.get("was_cancelled") is True:
        raise _unread("AIPerf was cancelled before it had sent every request", "")
    ttft = _metric(report, "time_to_first_token")
    if ttft.get("unit", "ms") != "ms":
        raise _unread(f"time_to_first_token is in {ttft['unit']}, not ms", "")
    return Measurement(
        throughput=_number(report, "output_token_throughput", "avg"),
        ttft_p99=_number(report, "time_to_first_token", "p99"),
        requests=_count(report, "request_count"),
        errors=_count(report, "error_request_count"),
    )


def _metric(report: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = report.get(name)
    return found if isinstance(found, dict) else {}


def _number(report: Mapping[str, Any], metric: str, key: str) -> float:
    value: Any = _metric(report, metric).get(key)
    # A bool is an int to Python, and NaN is a float: neither is a measurement.
    if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
        raise _unread(f"{metric}.{key} is {value!r}, not a positive number", "")
    return float(value)


def _count(report: Mapping[str, Any], metric: str) -> int | None:
    value: Any = _metric(report, metric).get("avg")
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise _unread(f"{metric}.avg is {value!r}, not a count", "")
    return int(value)


def _unread(message: str, text: str) -> AicrError:
    tail = " | ".join(line.strip() for line in text.splitlines()[-5:] if line.strip())
    said = f"; it ends: {tail[-300:]}" if tail else ""
    return AicrError(
        INTERNAL,
        f"cannot read AIPerf's result: {message}{said}",
        hint="AICR_INFERENCE_PERF_NO_CLEANUP=1 keeps the Job; kubectl logs shows all of it",
    )
