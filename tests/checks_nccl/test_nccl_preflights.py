"""Preflights of the NCCL checks by platform (validators spec 7.2 "Preflights")."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.checks_nccl.bench import NETWORK, Bench, Launcher, driver, gpu_node, validation, whole
from tests.checks_nccl.delivered import gke_nodes, installer_pods, networks

from aicr.checks.performance import nccl_preflights as preflights
from aicr.checks.performance.nccl_variants import DEFAULT, NET, Variant
from aicr.checks.sdk.outcome import could_not_tell
from aicr.errors import INTERNAL, NOT_FOUND
from aicr.kube import kinds

Document = dict[str, Any]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (driver(), ""),
        (driver(parameter="0"), "is 0, it must be 1"),
        (driver(version="595.10.01"), "R595 is not known to work"),
        (driver(version="610.10.01"), "R610 is not known to work"),
        (driver(version="594.99.99"), ""),
        (driver().replace("GrdmaPciTopoCheckOverride", "Other"), "cannot be determined"),
        (driver().replace("NVRM version", "no driver"), "its driver cannot be determined"),
        (driver().removesuffix("END"), "its driver cannot be determined"),
        ("", "its driver cannot be determined"),
    ],
    ids=[
        "on",
        "off",
        "r595",
        "later",
        "just before",
        "parameter unsaid",
        "no driver",
        "cut",
        "empty",
    ],
)
def test_the_drivers_parameter_must_be_on_and_known(text: str, problem: str) -> None:
    """From R595 on, and where it cannot be told, the run fails."""
    found = preflights.judge_driver(text)
    assert (problem in found) if problem else found == ""


@pytest.mark.parametrize(
    ("variant", "service", "accelerator", "environ", "probed"),
    [
        (NET, "eks", "gb200", {}, True),
        (NET, "oke", "gb200", {}, True),
        (NET, "eks", "gb200", {"AICR_NCCL_FABRIC": "roce"}, False),
        (DEFAULT, "eks", "h100", {}, False),
    ],
    ids=["eks", "oke", "roce", "default"],
)
def test_the_parameter_is_read_where_it_matters(
    variant: Variant, service: str, accelerator: str, environ: dict[str, str], probed: bool
) -> None:
    """On every target node, before the TrainJob; a wrong one names the nodes."""
    given = validation({variant.check: ">= 40"}, service, accelerator)
    text = whole("450.00", "NCCL INFO Using network IB")
    scene = Bench(
        variant,
        given,
        launcher=Launcher(text),
        driver=driver(parameter="0"),
        settings={"environ": environ},
    )
    error = scene.judge()
    if not probed:
        assert error is None
        return
    assert error is not None
    assert "n1: NVreg_GrdmaPciTopoCheckOverride is 0" in error.message
    assert "n2: NVreg" in error.message
    assert could_not_tell(error) == ""
    assert "trainjobs.trainer.kubeflow.org" not in scene.made
    assert scene.left == []


def gke(nics: int = 8, installed: tuple[str, ...] = ("n1", "n2")) -> Bench:
    """H100 on GKE without a delivered runtime."""
    scene = Bench(DEFAULT, validation({"nccl-all-reduce-bw": ">= 300"}, "gke"), gke_nodes())
    scene.put(NETWORK, *networks()[:nics])
    return scene.put(kinds.POD, *installer_pods(installed))


def test_tcpxo_needs_networks_and_an_installer_on_every_node() -> None:
    """With both the workers get an interface for each NIC and the devices of each GPU."""
    scene = gke()
    assert scene.judge() is None
    jobs = scene.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (pods,) = [job["template"]["spec"]["template"] for job in jobs if job["name"] == "node"]
    mapped = json.loads(pods["metadata"]["annotations"]["networking.gke.io/interfaces"])
    assert mapped[0] == {"interfaceName": "eth0", "network": "default"}
    assert mapped[8] == {"interfaceName": "eth8", "network": "gpu-nic-7"}
    paths = json.loads(pods["metadata"]["annotations"]["devices.gke.io/container.tcpxo-daemon"])
    assert {"path": "/dev/nvidia7"} in paths
    assert pods["spec"]["nodeSelector"] == {
        "cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"
    }


@pytest.mark.parametrize(
    ("scene", "code", "said"),
    [
        (gke(nics=7), NOT_FOUND, "7 GPU NIC network(s) found, 8 are needed"),
        (gke(nics=0), NOT_FOUND, "0 GPU NIC network(s) found"),
        (gke(installed=("n1",)), INTERNAL, "installer is not ready on n2"),
    ],
    ids=["seven", "none", "installer"],
)
def test_tcpxo_that_is_not_ready_fails_before_anything_is_created(
    scene: Bench, code: str, said: str
) -> None:
    """A verdict, and no write."""
    error = scene.judge()
    assert error is not None
    assert (error.code, could_not_tell(error), scene.writes) == (code, "", [])
    assert said in error.message


def test_a_daemon_that_dies_ends_the_wait() -> None:
    """Workers are watched: the launcher would only hang."""
    dead = {"terminated": {"exitCode": 255, "reason": "Error"}}
    worker = {
        "phase": "Running",
        "initContainerStatuses": [{"name": "tcpxo-daemon", "state": dead}],
    }
    scene = gke()
    scene.launcher = Launcher(phase="Running", worker=worker)
    error = scene.judge()
    assert error is not None
    assert "tcpxo-daemon of nccl-all-reduce-tj-node-0-0-abcde ended with 255" in error.message


def test_eks_without_adapters_runs_smaller_messages_and_asks_for_none() -> None:
    """The largest sizes would take too long over TCP."""
    nodes = [gpu_node(name, efa=0) for name in ("n1", "n2")]
    scene = Bench(nodes=nodes)
    assert scene.judge() is None
    text = json.dumps(scene.runtime)
    assert "-e 4G" in text
    assert "vpc.amazonaws.com/efa" not in text
    scene = Bench()
    assert scene.judge() is None
    text = json.dumps(scene.runtime)
    assert "-e 16G" in text
    assert '"vpc.amazonaws.com/efa": 32' in text
