"""From reports to events: who says what, and what is fatal."""

from __future__ import annotations

import pytest

from aicr.errors import AicrError
from aicr.fabric.thresholds import Threshold
from aicr.preflight.checks.allreduce import job as jobs
from aicr.preflight.checks.allreduce import verdict as verdicts
from aicr.preflight.checks.allreduce.job import (
    Found,
    Job,
    Measured,
    Result,
    parse_job,
    parse_result,
)
from aicr.preflight.checks.allreduce.verdict import (
    End,
    Failure,
    Node,
    Verdict,
    failure_of,
    judge,
    parse_end,
    parse_verdict,
)

NODES = [Node(f"w-{n}", f"node-{n}") for n in range(4)]
HUNDRED = (Threshold(100.0, "default"),)
ECC = "CUDA error: uncorrectable ECC error encountered"


def end(busbw: float, found: Found | None = None, wrong: int = 0) -> End:
    """A node with a result."""
    size = Measured(4 << 30, 0.05, busbw, busbw, wrong)
    return End(Result((size,), found or Found()))


def failed(text: str, kind: str = "error", stage: str = "benchmark", steps: int = 4) -> End:
    """A node with a failure."""
    return End(failure=failure_of(stage, kind, text, "", steps, f"step {steps}"))


def rest(first: End, other: End | None = None) -> list[End | None]:
    """Ends of four nodes."""
    return [first, *([other or first] * 3)]


@pytest.mark.covers("P-192", "P-074")
def test_a_gang_that_is_fast_enough_passes_with_one_event_of_rank_0() -> None:
    """The threshold itself is enough; words of the original."""
    found = judge(NODES, rest(end(100.0)), HUNDRED)
    assert (found.exit_code, found.verdict, list(found.events)) == (0, "passed", [0])
    event = found.events[0]
    assert (event.check_name, event.is_healthy) == ("NCCLAllReduceTest", True)
    assert event.message == "NCCL all-reduce bus bandwidth 100.00 GB/s meets threshold 100.00 GB/s"


@pytest.mark.covers("P-079")
def test_with_the_skip_flag_any_bandwidth_passes() -> None:
    """With the same words; wrong values still do not."""
    assert judge(NODES, rest(end(3.0)), HUNDRED, skip=True).exit_code == 0
    assert judge(NODES, rest(end(300.0, wrong=1)), HUNDRED, skip=True).exit_code == 1


@pytest.mark.covers("P11-118", "P-193")
def test_isolated_nodes_tell_it_themselves_and_nobody_else_does() -> None:
    """Fatal, each for itself, rank 0 included only if it is one of them (decision 20)."""
    found = judge(
        NODES, rest(end(99.99, Found((0, 2), rounds=5, reason="slow", ran=True))), HUNDRED
    )
    assert (found.exit_code, found.verdict, sorted(found.events)) == (1, "failed", [0, 2])
    for node, event in found.events.items():
        assert event.is_fatal
        assert (event.action, event.error_codes) == (
            "CONTACT_SUPPORT",
            ("NCCL_ALLREDUCE_BW_DEGRADED",),
        )
        assert event.message.startswith(
            "NCCL all-reduce bus bandwidth 99.99 GB/s is below threshold 100.00 GB/s"
        )
        assert f"w-{node} on node-{node}" in event.message


@pytest.mark.parametrize(
    ("found", "localize", "text"),
    [
        (Found(ran=True, reason="all alike", rounds=2), True, "no node was isolated: all alike"),
        (Found(links=((1, 3),), ran=True, reason="r"), True, "w-1 on node-1 and w-3 on node-3"),
        (Found(suspects=(2,), ran=True, reason="r"), True, "suspected: w-2 on node-2"),
        (Found(), False, "localisation is off, so no node is blamed"),
    ],
    ids=["nothing", "a link", "a suspect", "off"],
)
def test_a_slow_gang_without_an_isolated_node_is_one_event_that_blames_nobody(
    found: Found, localize: bool, text: str
) -> None:
    """From rank 0, not fatal; the pods do not start all the same."""
    verdict = judge(NODES, rest(end(50.0, found)), HUNDRED, localize=localize)
    assert (verdict.exit_code, list(verdict.events)) == (1, [0])
    event = verdict.events[0]
    assert (event.is_fatal, event.is_healthy, event.action) == (False, False, "NONE")
    assert event.error_codes == ("NCCL_ALLREDUCE_BW_DEGRADED",)
    assert text in event.message


@pytest.mark.covers("P11-118")
def test_a_gang_of_one_node_is_isolated_as_it_is() -> None:
    """Its low bandwidth can be nobody else's."""
    found = judge(NODES[:1], [end(50.0)], HUNDRED, workers=8)
    assert found.exit_code == 1
    assert found.events[0].is_fatal


def test_one_gpu_in_all_is_told_as_not_testable() -> None:
    """An all-reduce of one moves nothing (as decision 76 has it for loopback)."""
    found = judge(NODES[:1], [end(0.0)], HUNDRED, workers=1)
    assert (found.exit_code, found.verdict) == (0, "could not test")
    assert (found.events[0].is_fatal, found.events[0].error_codes) == (
        False,
        ("NCCL_NOT_TESTABLE",),
    )


def test_the_size_that_is_furthest_from_its_threshold_decides() -> None:
    """Each size has a threshold of its own."""
    sizes = (Measured(1, 1, 90, 90), Measured(2, 1, 120, 120))
    both = (Threshold(80.0, "ib@1"), Threshold(150.0, "ib@2"))
    found = judge(NODES, rest(End(Result(sizes))), both)
    assert "120.00 GB/s is below threshold 150.00" in found.message
    assert found.details["threshold"] == "ib@2"


@pytest.mark.covers("P-193")
def test_an_init_failure_on_every_rank_is_one_event_that_blames_nobody() -> None:
    """Not one for each GPU, and not fatal (decision 19)."""
    found = judge(NODES, rest(failed("no route to host", stage="init")), ())
    assert (found.exit_code, found.verdict, list(found.events)) == (1, "could not test", [0])
    event = found.events[0]
    assert (event.is_fatal, event.error_codes) == (False, ("NCCL_ALLREDUCE_INIT_FAILED",))
    assert event.message.startswith("Failed to initialize NCCL: no route to host (all nodes)")
    assert "network policies" in event.message


@pytest.mark.covers("P-193")
def test_a_benchmark_that_hangs_names_who_lags_behind() -> None:
    """One event, not fatal: which node hangs is not known from this alone."""
    ends = [failed("no answer within 600 s", "hung", steps=7)] * 4
    ends[2] = failed("no answer within 600 s", "hung", steps=5)
    found = judge(NODES, ends, ())
    event = found.events[0]
    assert (event.is_fatal, event.error_codes) == (False, ("NCCL_ALLREDUCE_TIMEOUT",))
    assert event.message.startswith(
        "NCCL all-reduce benchmark failed: no answer within 600 s (all nodes)"
    )
    assert "behind the others: w-2 on node-2, at step 5" in event.message


@pytest.mark.parametrize("stage", ["init", "benchmark"])
def test_a_gpu_that_is_broken_is_a_finding_of_its_own_node(stage: str) -> None:
    """Memory errors are nobody else's; what its peers saw is only that it was gone."""
    ends = rest(failed("remote process exited"))
    ends[3] = failed(ECC, stage=stage)
    found = judge(NODES, ends, ())
    assert (found.verdict, list(found.events)) == ("failed", [3])
    assert found.events[3].is_fatal
    assert ECC in found.events[3].message


def test_a_killed_worker_is_named_and_its_victims_are_not() -> None:
    """Whatever they report, and whoever reports nothing."""
    ends = rest(failed("Connection closed by peer"))
    ends[1] = failed("killed by SIGKILL", "killed")
    ends[2] = None
    found = judge(NODES, ends, ())
    assert found.message == (
        "NCCL all-reduce benchmark failed: killed by SIGKILL (w-1 on node-1); no report from "
        "w-2 on node-2"
    )


def test_nodes_that_were_only_stopped_are_not_named_beside_the_cause() -> None:
    """They are, if there is nobody else."""
    ends = rest(failed("stopped because of w-1", "stopped"))
    assert "stopped because of w-1 (all nodes)" in judge(NODES, ends, ()).message
    ends[1] = failed("bad")
    assert judge(NODES, ends, ()).message == "NCCL all-reduce benchmark failed: bad (w-1 on node-1)"


def test_a_job_that_cannot_be_run_is_a_wrong_configuration() -> None:
    """Exit 2 and no event."""
    found = judge(NODES, rest(failed("no such operation", stage="config")), ())
    assert (found.exit_code, found.events) == (2, {})


def test_many_nodes_are_counted_and_not_listed() -> None:
    """A message has an end."""
    nodes = [Node(f"w-{n}") for n in range(40)]
    ends: list[End | None] = [failed("bad") if n < 20 else failed("worse") for n in range(40)]
    assert "w-7 and 12 more)" in judge(nodes, ends, ()).message


def test_ends_and_verdicts_survive_the_board() -> None:
    """As JSON, with nothing lost."""
    for one in (end(3.0, Found((1,), ((0, 2),), (3,), 4, "r", True)), failed(ECC)):
        assert parse_end(one.document()) == one
    made = judge(NODES, rest(end(50.0)), HUNDRED)
    assert parse_verdict(made.document()) == made
    assert isinstance(made, Verdict)


@pytest.mark.covers("P11-117")
def test_bus_bandwidth_follows_from_time_and_workers() -> None:
    """4 GiB in 0.05 s over 16 workers."""
    from aicr.fabric.nccl_output import bus_bandwidth

    algbw, busbw = bus_bandwidth(4 << 30, 0.05, 16)
    assert (round(algbw, 3), round(busbw, 2)) == (85.899, 161.06)
    assert bus_bandwidth(4 << 30, 0.05, 1)[1] == 0


def test_workers_of_uneven_nodes_have_ranks_without_gaps() -> None:
    """Node ranks to worker ranks and back."""
    job = Job("k", "a", 1, (1, 3, 2), (4,), 1, 0, "sum", "gloo", 1.0)
    assert (job.world, job.first_rank(2), job.ranks([0, 2])) == (6, 4, [0, 4, 5])
    assert [job.node_of(rank) for rank in range(6)] == [0, 1, 1, 1, 2, 2]
    assert parse_job(job.text()) == job
    with pytest.raises(AicrError, match="there is no worker 6"):
        job.node_of(6)
    result = Result((Measured(1, 2, 3, 4),), Found((1,), ((0, 1),), (), 3, "r", True))
    assert parse_result(jobs.result_document(result)) == result
    assert Failure("init", verdicts.LOST, "x").causes == ()
