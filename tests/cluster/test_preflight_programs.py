"""The check programs as init containers of real pods: codes, events on a socket, and the gate."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cluster.workloads import PYTHON, config_map, container, pod, pod_becomes
from tests.controlplane.client import Client, Document
from tests.fabric.tables import Measured, table
from tests.preflight_dcgm.fake_bindings import MODULES

pytestmark = pytest.mark.cluster

SOCKET = "/run/hc/connector.sock"
SMI = """\
#!/bin/sh
case "$1" in
*uuid*) echo "GPU-3, Disabled, NVIDIA H100 80GB HBM3" ;;
*) for gpu in 0 1 2 3 4 5 6 7; do echo "NVIDIA H100 80GB HBM3"; done ;;
esac
"""


def programs(busbw: str) -> Document:
    """nvidia-smi, a benchmark that prints a real table, and bindings of DCGM's shape."""
    output = table(Measured(busbw=busbw))
    benchmark = f"#!/bin/sh\ncat <<'END'\n{output}END\n"
    data = {"nvidia-smi": SMI, "all_reduce_perf": benchmark}
    return config_map(
        "programs", {**data, **{f"{name}.py": text for name, text in MODULES.items()}}
    )


def check(name: str, strategy: str = "EXECUTE_REMEDIATION") -> Document:
    """A check as the webhook injects it."""
    variables = {
        "DCGM_HOSTENGINE_ADDR": "bad:5555,good:5555",
        "DCGM_BINDINGS_PATH": "/programs",
        "NCCL_TEST_BINARY_PATH": "/programs/all_reduce_perf",
        "PATH": "/programs:/usr/bin:/bin",
        "PLATFORM_CONNECTOR_SOCKET": f"unix://{SOCKET}",
        "PROCESSING_STRATEGY": strategy,
        "AICR_TIMEOUT_FACTOR": "0.2",
    }
    node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    return {
        "name": name,
        "image": f"aicr.local/{name}:dev",
        "imagePullPolicy": "Never",
        "env": [node, *({"name": key, "value": value} for key, value in variables.items())],
        "volumeMounts": [
            {"name": "programs", "mountPath": "/programs"},
            {"name": "socket", "mountPath": "/run/hc"},
        ],
    }


def checked_pod(*checks: Document) -> Document:
    """A pod with a connector beside it, its checks, and a workload."""
    listener = {
        "name": "connector",
        "image": PYTHON,
        "imagePullPolicy": "Never",
        "restartPolicy": "Always",
        "args": [
            *("-m", "aicr", "preflight", "connector", "--print"),
            *("--socket", SOCKET, "--format", "json"),
        ],
        "startupProbe": {
            "exec": {"command": ["test", "-S", SOCKET]},
            "periodSeconds": 1,
            "failureThreshold": 30,
        },
        "volumeMounts": [{"name": "socket", "mountPath": "/run/hc"}],
    }
    volumes = [
        {"name": "programs", "configMap": {"name": "programs", "defaultMode": 0o755}},
        {"name": "socket", "emptyDir": {}},
    ]
    return pod(
        "checked", container("echo started"), initContainers=[listener, *checks], volumes=volumes
    )


def events(api: Client, namespace: str) -> list[dict[str, Any]]:
    """What the connector printed."""
    lines = api.logs(namespace, "checked", container="connector").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def codes(found: Document) -> dict[str, int]:
    """Exit codes of the checks, by name."""
    return {
        status["name"]: status["state"]["terminated"]["exitCode"]
        for status in found["status"]["initContainerStatuses"]
        if status["name"].startswith("preflight-") and "terminated" in status["state"]
    }


@pytest.mark.covers("P-183", "P-188", "P-206")
def test_checks_that_pass_let_the_workload_start(api: Client, namespace: str) -> None:
    """Both exit 0; the non-fatal finding on GPU 3 is an event with the node's name."""
    api.create(programs("197.87"), namespace)
    pair = [check("preflight-dcgm-diag"), check("preflight-nccl-loopback")]
    api.create(checked_pod(*pair), namespace)
    found = pod_becomes(api, namespace, "checked", "Succeeded")
    assert codes(found) == {"preflight-dcgm-diag": 0, "preflight-nccl-loopback": 0}
    assert api.logs(namespace, "checked", container="main") == "started\n"
    dcgm, loopback = events(api, namespace)
    assert dcgm["checkName"] == "DcgmDiagnosticMemory"
    assert (dcgm["isHealthy"], dcgm["isFatal"]) == (False, False)
    assert dcgm["entitiesImpacted"] == [{"entityType": "GPU_UUID", "entityValue": "GPU-3"}]
    assert (loopback["checkName"], loopback["isHealthy"]) == ("NCCLLoopbackTest", True)
    assert {dcgm["nodeName"], loopback["nodeName"]} == {found["spec"]["nodeName"]}


@pytest.mark.covers("P-183", "P-189", "P-202")
@pytest.mark.parametrize(
    ("strategy", "code", "phase"),
    [("EXECUTE_REMEDIATION", 1, "Failed"), ("STORE_ONLY", 0, "Succeeded")],
)
def test_a_check_that_fails_holds_the_pod_unless_it_only_stores(
    api: Client, namespace: str, strategy: str, code: int, phase: str
) -> None:
    """The code stands under the check's name; the workload never ran, or did."""
    api.create(programs("17.00"), namespace)
    api.create(checked_pod(check("preflight-nccl-loopback", strategy)), namespace)
    found = pod_becomes(api, namespace, "checked", phase)
    assert codes(found) == {"preflight-nccl-loopback": code}
    (event,) = events(api, namespace)
    assert (event["isFatal"], event["processingStrategy"]) == (True, strategy)
    main = found["status"]["containerStatuses"][0]["state"]
    assert ("terminated" in main) is (code == 0)
