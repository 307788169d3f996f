"""The readiness gate on a real cluster: the Job of a bundle, and health checks from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests import tools
from tests.assertions.fake_cluster import check
from tests.bundle.sample_catalogues import World
from tests.bundle.test_readiness_gates import gate
from tests.cluster.check_runs import registered
from tests.cluster.workloads import condition, container, deployment
from tests.controlplane.client import Client, Document, eventually
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster

ROOT: Final = Path(__file__).resolve().parents[2]
#: Seconds that the gates of these tests take instead of minutes; the flags are the bundle's.
SHORT: Final = {
    "--timeout": "4s",
    "--poll-interval": "300ms",
    "--stability-window": "1s",
    "--max-wait": "6s",
}
GROUP: Final = "away.test.aicr.run"


def available(name: str, namespace: str = "") -> str:
    """A readiness test: a Deployment is available, and no pod has failed."""
    place = f", namespace: {namespace}" if namespace else ""
    return check(
        "assert",
        f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}{place}}}, "
        "status: {(availableReplicas >= `1`): true}}",
    )


def apply(plane: ControlPlane, *documents: Document) -> None:
    """Apply objects of any kind with the real kubectl."""
    done = subprocess.run(
        [tools.kubectl(), f"--kubeconfig={plane.kubeconfig}", "apply", "--server-side", "-f", "-"],
        input="\n---\n".join(map(json.dumps, documents)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def run_gate(plane: ControlPlane, namespace: str, test: str, **times: str) -> None:
    """Apply the objects of a component's gate as the bundle writes them, with short times."""
    world = World(
        {"name": "app", "namespace": namespace}, files={"components/app/readiness.yaml": test}
    )
    # A gate tolerates every taint, those of hollow nodes as well, on which nothing runs.
    objects = gate(world, version="dev", system_node_selector=["test.aicr.run/pool=runs"])
    pod = objects["Job"]["spec"]["template"]["spec"]
    # The image is this machine's interpreter, whose folder may be closed to the user of the real one.
    assert pod["securityContext"].pop("runAsUser") == 65532
    assert pod["securityContext"].pop("runAsNonRoot") is True
    job = pod["containers"][0]
    assert job["image"] == "aicr.local/aicr-gate:dev"
    chosen = {**SHORT, **times}
    flags = [word.partition("=")[0] for word in job["args"]]
    assert flags == ["--bundle", "--namespace", *SHORT]
    job["args"] = [
        f"{flag}={chosen.get(flag, word.partition('=')[2])}"
        for flag, word in zip(flags, job["args"], strict=True)
    ]
    apply(plane, *objects.values())


def ended(api: Client, namespace: str) -> dict[str, Any]:
    """The first end of the gate's container: exit code and message."""

    def there() -> dict[str, Any] | None:
        for pod in api.list(
            "Pod", namespace, labelSelector="app.kubernetes.io/name=app-readiness-gate"
        ):
            for one in pod["status"].get("containerStatuses") or []:
                for state in (one.get("lastState") or {}, one.get("state") or {}):
                    if "terminated" in state:
                        found: dict[str, Any] = state["terminated"]
                        assert found["exitCode"] != 128, f"it did not start: {found}"
                        return found
        return None

    return eventually("the gate to end", there, 240)


@pytest.mark.covers("V-400", "V-401")
def test_the_job_of_a_bundle_completes_when_the_component_is_ready(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """It waits for the Deployment, lets the window pass, and ends 0; its account can only read."""
    run_gate(plane, namespace, available("app"), **{"--max-wait": "300s"})
    eventually("the gate to wait", lambda: "ComponentsFailing" in logs(api, namespace))
    ready = container(
        "sleep 1; touch /ready; exec sleep 1000",
        readinessProbe={"exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1},
    )
    api.create(deployment("app", 1, ready), namespace)

    def complete() -> bool:
        return condition(api.get("Job", "app-readiness-gate", namespace), "Complete") is not None

    eventually("the Job to complete", complete, 240)
    end = ended(api, namespace)
    assert end["exitCode"] == 0
    assert end["message"].startswith("All 1 component(s) passing (stable for ")
    reasons = [line["reason"] for line in lines(api, namespace) if "reason" in line]
    assert reasons[0] == "ComponentsFailing"
    assert "Stabilizing" in reasons
    assert reasons[-1] == "AllPass"
    account = f"--as=system:serviceaccount:{namespace}:app-readiness-gate"
    for verb, allowed in (("list", "yes"), ("create", "no"), ("delete", "no")):
        said = subprocess.run(
            [
                *(tools.kubectl(), f"--kubeconfig={plane.kubeconfig}", f"--namespace={namespace}"),
                *("auth", "can-i", verb, "deployments.apps", account),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert said.stdout.strip() == allowed


def logs(api: Client, namespace: str) -> str:
    """What the gate has logged."""
    for pod in api.list(
        "Pod", namespace, labelSelector="app.kubernetes.io/name=app-readiness-gate"
    ):
        return api.logs(namespace, pod["metadata"]["name"])
    return ""


def lines(api: Client, namespace: str) -> list[dict[str, Any]]:
    """The gate's log, read as JSON; the last line is its result."""
    found = []
    for line in logs(api, namespace).splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
            assert {"time", "level", "msg", "module", "version"} <= found[-1].keys()
    return found


def test_a_gate_whose_component_never_is_ready_ends_8_at_its_deadline(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """Fail, with the component and the reason in the termination message."""
    run_gate(plane, namespace, available("app"))
    end = ended(api, namespace)
    assert end["exitCode"] == 8
    assert end["message"].startswith(
        "[TIMEOUT] Gate did not become Ready within 6s; 1 component(s) failing: app: Fail ("
    )
    assert 'deployments.apps "app" in namespace' in end["message"]


@pytest.fixture
def group_down(plane: ControlPlane, api: Client) -> Iterator[str]:
    """The name of an API group whose server is away, and of which the API server knows."""
    name = f"v1.{GROUP}"
    apply(
        plane,
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": name},
            "spec": {
                "group": GROUP,
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {"name": "nobody", "namespace": "default", "port": 443},
            },
        },
    )
    registered(api, GROUP)
    yield GROUP
    subprocess.run(
        [tools.kubectl(), f"--kubeconfig={plane.kubeconfig}", "delete", "apiservice", name],
        capture_output=True,
        timeout=60,
        check=True,
    )


@pytest.mark.covers("V-403", "V-404", "V-398", "V-399", "V10-74")
@pytest.mark.parametrize("operation", ["assert", "error"])
def test_a_group_that_is_down_is_unknown_and_holds_the_gate(
    plane: ControlPlane, api: Client, namespace: str, group_down: str, operation: str
) -> None:
    """Also for an error, which an absence would satisfy; the exit code is that of Fail."""
    text = check(operation, f"{{apiVersion: {group_down}/v1, kind: Gadget}}")
    run_gate(plane, namespace, text)
    end = ended(api, namespace)
    assert end["exitCode"] == 8
    assert end["message"].startswith(
        "[TIMEOUT] Gate did not become Ready within 6s; 1 component(s) failing: app: Unknown ("
    )


def test_a_group_that_is_down_does_not_touch_others(
    plane: ControlPlane, api: Client, namespace: str, group_down: str
) -> None:
    """A kind of a group that is fully listed is surely absent: an error on it holds."""
    text = check("error", "{apiVersion: nowhere.test.aicr.run/v1, kind: Gadget}")
    run_gate(plane, namespace, text, **{"--max-wait": "300s"})
    assert ended(api, namespace)["exitCode"] == 0


def test_a_component_that_becomes_healthy_is_told_while_the_command_waits(
    plane: ControlPlane, api: Client, namespace: str, tmp_path: Path
) -> None:
    """`aicr check-health` on the command line, with its own pause of two seconds between looks."""
    folder = tmp_path / "checks" / "app"
    folder.mkdir(parents=True)
    (folder / "health-check.yaml").write_text(available("app", namespace), encoding="utf-8")
    stub = "kind: ComponentRegistry\napiVersion: aicr.run/v1beta1\ncomponents: []\n"
    (tmp_path / "registry.yaml").write_text(stub, encoding="utf-8")
    words = [
        *(sys.executable, "-m", "aicr", "check-health", "app", f"--data={tmp_path}"),
        *(f"--kubeconfig={plane.kubeconfig}", "--timeout=300s", "--format=json"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stderr is not None
        said = [next(child.stderr)]
        while "not found" not in said[-1]:
            said.append(next(child.stderr))
        api.create(deployment("app", 1, container("exec sleep 1000")), namespace)

        def is_available() -> bool:
            found = api.get("Deployment", "app", namespace)
            return bool(found["status"].get("availableReplicas"))

        eventually("the Deployment to be available", is_available)
        out, rest = child.communicate(timeout=300)
    assert child.returncode == 0, rest
    assert "app: healthy after " in rest
    assert json.loads(out)["healthy"] is True
