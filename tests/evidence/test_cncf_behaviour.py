"""The behavioural collector: its plan, verdicts, bounds, and the pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from aicr.checks import registry
from aicr.checks.sdk.allocation import DRA_CLAIM, policy_of
from aicr.checks.sdk.check import CONFORMANCE, Check
from aicr.checks.sdk.context import Context
from aicr.checks.sdk.outcome import Skip, failed
from aicr.cli.validate_flags import FEATURES
from aicr.contract import sentinels
from aicr.errors import NOT_FOUND, UNAUTHORIZED, AicrError
from aicr.validate.evidence import behaviour, features
from aicr.validate.evidence.times import EvidenceTimes

Run = Callable[[Context], Awaitable[None]]
Objects = Mapping[str, list[dict[str, Any]] | AicrError]


class Lists:
    """A cluster that can only be listed: kind → objects, or an error."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    async def list(self, kind: str, **selection: Any) -> list[dict[str, Any]]:
        """The objects of a kind."""
        del selection
        found = self.objects.get(kind, AicrError(NOT_FOUND, f"no kind {kind}"))
        if isinstance(found, AicrError):
            raise found
        return found


def collector(run: Run, objects: Objects | None = None, **more: Any) -> behaviour.Collector:
    """A collector whose every behaviour is *run*."""
    cluster: Any = Lists(objects or {})

    def load(name: str) -> Check:
        return Check(name, CONFORMANCE, "s", run, "5m", "d", ())

    return behaviour.Collector(cluster=cluster, run_id="run-1", policy=DRA_CLAIM, load=load, **more)


def outcome(
    run: Run, objects: Objects | None = None, feature: str = "dra-support", **more: Any
) -> behaviour.Outcome:
    """How one section ends."""
    plan = features.plan([feature])
    return asyncio.run(collector(run, objects, **more).sections(plan))[0]


async def passes(context: Context) -> None:
    """Says something, and what is transport."""
    context.out("seen on gpu-node-17")
    context.emit_extra({"nodesTotal": "2"})


def test_the_plan_is_all_features_or_those_named() -> None:
    """In the order of the specification, whatever order is asked for; each by a check that exists."""
    assert features.FEATURES == FEATURES
    assert [section.feature for section in features.plan([])] == list(FEATURES)
    chosen = features.plan(["pod-autoscaling", "dra-support"])
    assert [section.file for section in chosen] == ["dra-support.md", "pod-autoscaling.md"]
    assert {section.check for section in features.SECTIONS} <= set(registry.names(CONFORMANCE))
    with pytest.raises(AicrError, match='unknown feature "drra"'):
        features.plan(["drra"])


async def skips(context: Context) -> None:
    """There is nothing to show."""
    raise AicrError("INTERNAL", "outer") from Skip("no driver here")


async def fails(context: Context) -> None:
    """A verdict."""
    context.out("half")
    raise failed("no slice is usable")


async def refused(context: Context) -> None:
    """It could not look."""
    raise AicrError(UNAUTHORIZED, "cannot list pods")


async def breaks(context: Context) -> None:
    """A bug."""
    raise KeyError("x")


@pytest.mark.parametrize(
    ("run", "verdict", "reason"),
    [
        (passes, "PASS", ""),
        (skips, "SKIP", "no driver here"),
        (fails, "FAIL", "no slice is usable"),
        (refused, "FAIL", "cannot list pods"),
        (breaks, "FAIL", "unexpected KeyError"),
    ],
    ids=["pass", "skip", "fail", "could not look", "bug"],
)
def test_each_page_has_a_verdict(run: Run, verdict: str, reason: str) -> None:
    """That it could not be told is a failure."""
    found = outcome(run)
    assert found.verdict == verdict
    assert reason in found.reason
    text = behaviour.page(found, "2026-03-04T05:06:07Z")
    assert f"**Verdict:** {verdict}" in text
    assert reason in text


def test_a_page_shows_what_was_printed_and_listed() -> None:
    """Transport is left out; a kind that is not served is something to see."""
    objects: dict[str, list[dict[str, Any]] | AicrError] = {
        "resourceslices.resource.k8s.io": [
            {
                "metadata": {"name": "b|x"},
                "spec": {"driver": "gpu.nvidia.com", "pool": {"name": "p"}},
            },
            {"metadata": {"name": "a"}, "spec": {}},
        ]
    }
    lines = behaviour.page(outcome(passes, objects), "2026-03-04T05:06:07Z").splitlines()
    assert lines[0] == "# DRA Support (Dynamic Resource Allocation)"
    assert "seen on gpu-node-17" in lines
    assert not any(sentinels.EXTRA in line for line in lines)
    assert "The cluster does not serve this kind." in lines
    at = lines.index("Equivalent: `kubectl get resourceslices.resource.k8s.io -A`")
    assert lines[at + 2 :] == [
        "| Namespace | Name | Driver | Pool |",
        "|---|---|---|---|",
        "|  | a |  |  |",
        "|  | b\\|x | gpu.nvidia.com | p |",
    ]


def test_resource_names_have_dots() -> None:
    """The GPUs of a node are under a key with dots."""
    nodes = [{"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}]
    found = outcome(passes, {"nodes": nodes}, "secure-access")
    assert found.tables[0][1][-1] == "|  | n | 8 |"


def test_a_list_that_cannot_be_read_fails_its_section() -> None:
    """Nobody may take it for an empty one."""
    objects = {"deviceclasses.resource.k8s.io": AicrError(UNAUTHORIZED, "forbidden")}
    assert outcome(passes, objects).verdict == "FAIL"


async def hangs(context: Context) -> None:
    """Never ends."""
    await asyncio.Event().wait()


def test_a_section_has_a_bound() -> None:
    """Past it the behaviour unwinds and has failed."""
    found = outcome(hangs, times=EvidenceTimes(section=0.01))
    assert found.verdict == "FAIL"
    assert "[TIMEOUT] not done within 0.01 s" in found.reason


def test_all_sections_have_a_bound() -> None:
    """What is not reached has failed, and is told."""
    plan = features.plan([])
    times = EvidenceTimes(section=0.01, overall=0.015)
    found = asyncio.run(collector(hangs, times=times).sections(plan))
    assert len(found) == len(plan)
    assert {each.verdict for each in found} == {"FAIL"}
    assert "not reached within" in found[-1].reason


def test_the_bounds_are_those_of_the_specification() -> None:
    """5 minutes, 20 minutes, 10 MiB."""
    found = collector(passes)
    assert (found.times.section, found.times.overall) == (300.0, 1200.0)
    assert found.output == 10 * 1024 * 1024


async def talks(context: Context) -> None:
    """More than a page holds."""
    for _ in range(5):
        context.out("x" * 9)


def test_a_page_has_a_largest_size() -> None:
    """It says that something is missing, once."""
    found = outcome(talks, output=25)
    assert found.lines == ["x" * 9, "x" * 9, "… what follows was too much for one page"]


def test_a_behaviour_knows_the_policy_and_its_time() -> None:
    """The policy steers what is tried; the budget is the section's."""
    seen: list[Any] = []

    async def looks(context: Context) -> None:
        seen.append((policy_of(context), context.run_id, context.remaining() <= 300.0))

    assert outcome(looks).verdict == "PASS"
    assert seen == [(DRA_CLAIM, "run-1", True)]
