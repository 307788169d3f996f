"""Runs ``aicr validate`` against a control plane, with checks that are one line of shell each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHECK_IMAGE = "test.local/check:v1"
RUN_ID = "aicr.run/run-id"
#: Kinds that a run makes, with the API path of all of them.
MADE = {
    "Job": "/apis/batch/v1/jobs",
    "Pod": "/api/v1/pods",
    "ConfigMap": "/api/v1/configmaps",
    "ServiceAccount": "/api/v1/serviceaccounts",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
SNAPSHOT = {
    "kind": "Snapshot",
    "apiVersion": "aicr.run/v1",
    "measurements": [
        {"type": "K8s", "subtypes": [{"subtype": "server", "data": {"version": "v1.36.2"}}]}
    ],
}


def shell(name: str, script: str, *, timeout: str = "20s", **fields: Any) -> dict[str, Any]:
    """A catalogue entry that runs a shell script."""
    entry = {"name": name, "phase": "deployment", "image": CHECK_IMAGE, "timeout": timeout}
    return {**entry, "args": [script], **fields}


def recipe(**checks: Sequence[str]) -> dict[str, Any]:
    """A recipe with one component that declares checks: phase → names."""
    return {
        "kind": "RecipeResult",
        "apiVersion": "aicr.run/v1",
        "metadata": {"version": "0.1.0"},
        "criteria": {"service": "eks"},
        "constraints": [{"name": "K8s.server.version", "value": ">= 1.30"}],
        "componentRefs": [
            {
                "name": "gpu-operator",
                "namespace": "gpu-operator",
                "type": "Helm",
                "chart": "gpu-operator",
                "source": "https://helm.ngc.nvidia.com/nvidia",
                "version": "v25.3.0",
            }
        ],
        "deploymentOrder": ["gpu-operator"],
        "validation": {phase: {"checks": list(names)} for phase, names in checks.items()},
    }


@dataclass
class Ended:
    """How a run ended."""

    status: int
    report: dict[str, Any]
    err: str
    seconds: float

    @property
    def tests(self) -> dict[str, dict[str, Any]]:
        """Report entries by check."""
        return {test["name"]: test for test in self.report["results"]["tests"]}

    @property
    def run_id(self) -> str:
        """The run's id, as it was printed."""
        return next(line[4:] for line in self.err.splitlines() if line.startswith("run "))


class Started:
    """A run that goes on; what it says goes into a file, so that it can be read meanwhile."""

    def __init__(self, process: subprocess.Popen[str], said: Path, began: float) -> None:
        self.process, self._said, self._began = process, said, began

    @property
    def err(self) -> str:
        """What it has said so far."""
        return self._said.read_text(encoding="utf-8", errors="replace")

    def ended(self, seconds: float = 240) -> Ended:
        """Wait for its end."""
        try:
            out, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            self.process.communicate()
            raise AssertionError(f"still running after {seconds:g} s:\n{self.err}") from error
        spent = time.monotonic() - self._began
        report = json.loads(out) if out.strip() else {"results": {"tests": [], "summary": {}}}
        return Ended(self.process.returncode, report, self.err, spent)


class Case:
    """Files of one test, and the command line on them."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder, self.kubeconfig = folder, kubeconfig
        self._runs = 0

    def write(self, document: Mapping[str, Any], entries: Sequence[Mapping[str, Any]] = ()) -> None:
        """Write recipe, snapshot and a data directory with *entries*."""
        (self.folder / "recipe.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        (self.folder / "snapshot.yaml").write_text(yaml.safe_dump(SNAPSHOT))
        data = self.folder / "data"
        (data / "validators").mkdir(parents=True, exist_ok=True)
        header = {"kind": "ComponentRegistry", "apiVersion": "aicr.run/v1beta1", "components": []}
        (data / "registry.yaml").write_text(yaml.safe_dump(header))
        catalog = {
            "apiVersion": "validator.nvidia.com/v1alpha1",
            "kind": "ValidatorCatalog",
            "validators": list(entries),
        }
        (data / "validators" / "catalog.yaml").write_text(yaml.safe_dump(catalog))

    def start(
        self,
        *flags: str,
        factor: str = "0.3",
        kubeconfig: Path | None = None,
        sources: bool = True,
        **variables: str,
    ) -> Started:
        """Begin a run; *sources* says whether recipe and snapshot are those of the folder."""
        folder = self.folder
        words = [sys.executable, "-m", "aicr", "validate", "--data", str(folder / "data")]
        if sources:
            words += ["-r", str(folder / "recipe.yaml"), "-s", str(folder / "snapshot.yaml")]
        words += flags
        environ = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig or self.kubeconfig),
            "AICR_TIMEOUT_FACTOR": factor,
            **variables,
        }
        began = time.monotonic()
        self._runs += 1
        said = folder / f"stderr-{self._runs}"
        with said.open("wb") as stream:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
                env=environ,
                # A test run in the background inherits a Ctrl-C that is switched off.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        return Started(process, said, began)

    def run(self, *flags: str, **options: Any) -> Ended:
        """Run to the end."""
        return self.start(*flags, **options).ended()


def left_of(call: Any, run_id: str) -> list[str]:
    """What a run has left: ``Kind/name`` of every object with its id, reports apart.

    *call* is `tests.controlplane.client.Client.call` of a second client.
    """
    found = []
    for kind, path in MADE.items():
        answer = call("GET", path, query={"labelSelector": f"{RUN_ID}={run_id}"})
        for one in answer.get("items") or ():
            if "aicr.run/report-type" not in one["metadata"].get("labels", {}):
                found.append(f"{kind}/{one['metadata']['name']}")
    return found
