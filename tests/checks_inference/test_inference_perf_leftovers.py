"""What inference-perf leaves behind: nothing, unless it is asked to; and never what is not its own."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.checks_inference.perf_scene import HOME, RUN, PerfScene, failing, report

from aicr.checks.performance.inference_knobs import NO_CLEANUP
from aicr.checks.performance.inference_namespace import suffix
from aicr.errors import CONFLICT, TIMEOUT
from aicr.kube import kinds


@pytest.mark.covers("V-341")
def test_everything_stays_when_asked_and_the_log_says_how_to_remove_it() -> None:
    """Namespace, graph and load generator; the verdict is the same."""
    scene = PerfScene(environ={NO_CLEANUP: "1"})
    assert scene.judge() is None
    assert scene.left == [HOME]
    assert f"kubectl delete namespaces {HOME}" in scene.seen.log
    assert ("aicr-validation", f"aicr-aiperf-{suffix(RUN)}") in scene.api.objects["jobs.batch"]
    assert (HOME, "aicr-inference-perf") in scene.api.objects["dynamographdeployments.nvidia.com"]


def test_a_namespace_of_that_name_that_is_not_ours_stays_and_is_a_conflict() -> None:
    """Another process of the run may be at work in it."""
    scene = PerfScene().put(kinds.NAMESPACE, {"metadata": {"name": HOME, "uid": "uid-theirs"}})
    error = failing(scene)
    assert error.code == CONFLICT
    assert scene.left == [HOME]


def test_a_namespace_that_cannot_be_removed_fails_a_run_that_passed() -> None:
    """It holds the GPUs of a node."""
    scene = PerfScene().fault(f"DELETE .*/namespaces/{HOME}$", 403, "Forbidden")
    error = failing(scene)
    assert f"its namespace {HOME} could not be removed" in error.message
    assert "RESULT: Inference throughput: 50000.00 tokens/s" in scene.seen.lines


def test_a_namespace_that_cannot_be_removed_does_not_hide_a_verdict() -> None:
    """The reason for the failure is worth more than what was left."""
    scene = PerfScene(aiperf=report(1.0)).fault(f"DELETE .*/namespaces/{HOME}$", 403, "Forbidden")
    assert "1.00 tokens/s are below" in failing(scene).message
    assert "remove it with" in scene.seen.log


@pytest.mark.parametrize("passes", [True, False], ids=["passed", "failed"])
def test_a_namespace_that_stays_terminating_is_said(passes: bool) -> None:
    """A finalizer that nobody clears: a failure of a run that passed, a warning beside a verdict."""
    scene = PerfScene(aiperf=report(50000.0 if passes else 1.0), stuck_namespace=True)
    scene.timeouts = replace(scene.timeouts, inference_namespace_termination=0.2)
    error = failing(scene)
    if passes:
        assert error.code == TIMEOUT
        assert f"its namespace {HOME} is still terminating" in error.message
    else:
        assert "1.00 tokens/s are below" in error.message
        assert f"namespace {HOME} is still terminating and holds GPUs" in scene.seen.log


def test_a_cancelled_run_takes_everything_back() -> None:
    """The budget ends, or somebody asks it to end: namespace and load generator go all the same."""
    scene = PerfScene(aiperf=None, cancel_after=True)
    with pytest.raises(asyncio.CancelledError):
        scene.judge()
    assert scene.left == []
    assert not [key for key in scene.api.objects["jobs.batch"] if key[0] == "aicr-validation"]


def test_the_namespace_is_named_after_the_run() -> None:
    """The same run gives the same name; without an id it is random."""
    assert suffix(RUN) == suffix(RUN) != suffix("another")
    assert suffix("") != suffix("")
    assert len(suffix("")) == len(suffix(RUN)) == 8


def test_a_load_generator_of_that_name_that_is_not_ours_stays() -> None:
    """The creation is refused, and what is there has another token."""
    name = f"aicr-aiperf-{suffix(RUN)}"
    theirs = {"metadata": {"name": name, "namespace": "aicr-validation", "uid": "uid-theirs"}}
    scene = PerfScene().put(kinds.JOB, theirs)
    assert failing(scene).code == CONFLICT
    assert ("aicr-validation", name) in scene.api.objects["jobs.batch"]
    assert scene.left == []
