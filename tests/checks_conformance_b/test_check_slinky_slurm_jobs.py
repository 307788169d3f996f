"""slinky-slurm-gpu-access and slinky-slurm-imex-channel: what jobs get (validators spec 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web
from tests.checks_conformance_b.bench import Answer, declared
from tests.checks_conformance_b.slurm_site import (
    BUSY,
    CRITERIA,
    Answers,
    login,
    site,
    slurm,
    worker,
)
from tests.checks_deployment.answers import COULD_NOT_LOOK

from aicr.checks.conformance import slinky_slurm_gpu_access, slinky_slurm_imex_channel
from aicr.checks.conformance.slurm_probe import gpu_script
from aicr.checks.sdk.check import Check
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, NOT_FOUND, SERVICE_UNAVAILABLE, TIMEOUT, AicrError

Document = dict[str, Any]
ACCESS = slinky_slurm_gpu_access.CHECK
IMEX = slinky_slurm_imex_channel.CHECK


def report(devices: str = "01", *, node: str = "slinky-0", gpus: int = 1) -> Answer:
    """What the probe prints: the errno of each device as a digit."""
    lines = [f"NODE={node}", "CUDA_VISIBLE_DEVICES=", "NVSMI_RC=0"]
    lines += [f"NVSMI_LINE=GPU-{number}, Disabled" for number in range(gpus)]
    lines += [f"DEV=/dev/nvidia{number} {errno}" for number, errno in enumerate(devices)]
    return Answer(0, "\n".join([*lines, f"DEVICES_LISTED={len(devices)}", "DONE=1", ""]))


NONE = report("11", gpus=0)


def jobs(with_one: Answer | AicrError, without: Answer | AicrError = NONE) -> Answers:
    """Answers to the job with a GPU and the one without."""
    return lambda command: with_one if "--gpus=1" in command else without


def test_one_gpu_for_who_asked_and_none_for_who_did_not_passes() -> None:
    """Two jobs with the spec's flags, the second on the first one's node; evidence with a verdict."""
    found = site(ACCESS, answer=jobs(report()))
    assert found.judge() is None
    words = "srun --immediate=30 --time=1:00 --nodes=1 --ntasks=1 --cpus-per-task=1 --mem=128M"
    script = f"/bin/sh -c {gpu_script()}"
    assert found.ran == [
        f"slurm/login-0/login: {words} --gpus=1 {script}",
        f"slurm/login-0/login: {words} --nodelist=slinky-0 {script}",
    ]
    assert "--- Slinky Slurm GPU access and isolation ---" in found.seen.lines
    assert found.seen.lines[-1] == "Verdict: PASS"


@pytest.mark.covers("V-249", "V-250")
@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (report("00"), NONE, "with a GPU: 2 of 2 devices can be opened"),
        (report("11"), NONE, "with a GPU: 0 of 2 devices can be opened"),
        (report(gpus=2), NONE, "nvidia-smi lists 2 GPUs"),
        (report(), report("01", gpus=0), "without a GPU: it can open /dev/nvidia0"),
        (report(), report("11", gpus=1), "without a GPU: nvidia-smi lists 1 GPUs"),
        (report(), report("11", gpus=0, node="slinky-1"), "it ran on slinky-1, not on slinky-0"),
    ],
)
def test_a_job_that_gets_what_it_did_not_ask_for_fails(
    first: Answer, second: Answer, words: str
) -> None:
    """A verdict, with the facts as evidence."""
    found = site(ACCESS, answer=jobs(first, second))
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == ""
    assert words in error.message
    assert found.seen.lines[-1] == "Verdict: FAIL"


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (report("06"), NONE, INTERNAL),
        (report(), report("12", gpus=0), INTERNAL),
        (Answer(0, "hello\n"), NONE, INTERNAL),
        (Answer(0, "PROBE_ERROR=x\n"), NONE, INTERNAL),
        (Answer(1, "", BUSY), NONE, SERVICE_UNAVAILABLE),
        (report(), Answer(1, "", BUSY), SERVICE_UNAVAILABLE),
        (AicrError(TIMEOUT, "exec"), NONE, TIMEOUT),
        (report(), AicrError(SERVICE_UNAVAILABLE, "exec"), SERVICE_UNAVAILABLE),
    ],
    ids=["errno", "errno of none", "words", "error", "full", "full later", "slow", "down"],
)
def test_what_leaves_it_open_could_not_tell(first: Any, second: Any, code: str) -> None:
    """Neither a verdict nor a skip."""
    error = site(ACCESS, answer=jobs(first, second)).judge()
    assert error is not None
    assert skip_in(error) is None
    assert could_not_tell(error) == code


@pytest.mark.parametrize("check", [ACCESS, IMEX], ids=["access", "imex"])
def test_a_job_that_slurm_refuses_fails(check: Check) -> None:
    """A verdict, with Slurm's words."""
    refused = Answer(1, "", "srun: error: Invalid account\n")
    error = site(check, answer=lambda _: refused).judge()
    assert error is not None
    assert could_not_tell(error) == ""
    assert "Invalid account" in error.message


def test_a_budget_that_is_used_up_between_the_jobs_is_a_timeout() -> None:
    """The second job is not started."""
    now = [0.0]

    class Clock:
        def now(self) -> float:
            return now[0]

    def answer(_: Sequence[str]) -> Answer:
        now[0] = 100.0
        return report()

    found = site(ACCESS, answer=answer, settings={"clock": Clock(), "deadline": 50.0})
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == TIMEOUT
    assert len(found.ran) == 1


BARE = (worker("slinky-0", "a", gpus=0),)


def test_no_gpus_fails_when_the_recipe_promises_them_and_skips_when_it_does_not() -> None:
    """Complete criteria promise; an open or missing one does not."""
    error = site(ACCESS, workers=BARE).judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (SERVICE_UNAVAILABLE, "")
    for criteria in ({**CRITERIA, "os": "any"}, {"service": "eks"}):
        error = site(ACCESS, workers=BARE, validation=slurm(criteria=criteria)).judge()
        assert error is not None
        assert skip_in(error) is not None


@pytest.mark.parametrize("check", [ACCESS, IMEX], ids=["access", "imex"])
@pytest.mark.parametrize(
    "settings", [{"validation": declared("gpu-operator")}, {"kwok": True}], ids=["none", "kwok"]
)
def test_no_slurm_that_could_run_anything_skips(check: Check, settings: Document) -> None:
    """Before any command."""
    found = site(check, **settings)
    error = found.judge()
    assert error is not None
    assert skip_in(error) is not None
    assert found.ran == []


def test_service_kind_skips() -> None:
    """Whatever is there."""
    found = site(ACCESS, validation=slurm(criteria={**CRITERIA, "service": "kind"}))
    error = found.judge()
    assert error is not None
    assert skip_in(error) is not None
    assert found.api.seen == []


@pytest.mark.parametrize("check", [ACCESS, IMEX], ids=["access", "imex"])
def test_without_a_ready_login_pod_it_fails(check: Check) -> None:
    """A verdict."""
    error = site(check, logins=(login(ready=False),)).judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (SERVICE_UNAVAILABLE, "")


@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
@pytest.mark.parametrize("check", [ACCESS, IMEX], ids=["access", "imex"])
@pytest.mark.parametrize("what", ["loginsets", "nodesets", "/pods", "/nodes"])
def test_what_cannot_be_looked_at_is_never_a_verdict_nor_a_skip(
    what: str, check: Check, answer: web.Response, code: str
) -> None:
    """Field case G2."""
    error = site(check).fault(f"GET .*{what}", answer).judge()
    assert error is not None
    assert skip_in(error) is None
    assert could_not_tell(error) == code


def channel_report(*numbers: int, start: int = 10, end: int = 20) -> Answer:
    """What the probe prints for channels that open."""
    lines = ["NODE=slinky-0", f"START={start}"]
    lines += [f"CHANNEL=/dev/nvidia-caps-imex-channels/channel{number} 0" for number in numbers]
    lines += [f"CHANNELS_LISTED={len(numbers)}", f"END={end}", "DONE=1", ""]
    return Answer(0, "\n".join(lines))


def one_after_another(*found: Answer | AicrError) -> Answers:
    """Answers in turn."""
    left = list(found)
    return lambda _: left.pop(0)


def test_two_jobs_with_channels_of_their_own_pass() -> None:
    """Side by side, from the login container."""
    found = site(IMEX, answer=one_after_another(channel_report(1), channel_report(2)))
    assert found.judge() is None
    assert len(found.ran) == 2
    assert all("srun --immediate=30 --time=1:00" in line for line in found.ran)
    assert found.seen.lines[0] == "NodeSet pods in NVLink domains: 2/2"
    assert found.seen.lines[-1] == "Verdict: PASS"


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (channel_report(1), "both jobs have IMEX channel 1"),
        (channel_report(), "can open 0 IMEX channels"),
        (channel_report(2, 3), "can open 2 IMEX channels"),
    ],
    ids=["same", "none", "two"],
)
def test_channels_that_are_shared_or_missing_fail(second: Answer, words: str) -> None:
    """A verdict."""
    found = site(IMEX, answer=one_after_another(channel_report(1), second))
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == ""
    assert words in error.message
    assert found.seen.lines[-1] == "Verdict: FAIL"


@pytest.mark.parametrize(
    ("second", "code"),
    [
        (channel_report(2, start=30, end=40), INTERNAL),
        (Answer(0, "hello\n"), INTERNAL),
        (Answer(1, "", BUSY), SERVICE_UNAVAILABLE),
        (AicrError(TIMEOUT, "exec"), TIMEOUT),
    ],
    ids=["apart", "words", "full", "slow"],
)
def test_jobs_that_prove_nothing_could_not_tell(second: Any, code: str) -> None:
    """Neither a verdict nor a skip."""
    error = site(IMEX, answer=one_after_another(channel_report(1), second)).judge()
    assert error is not None
    assert could_not_tell(error) == code


def test_no_nvlink_domain_skips() -> None:
    """No node is labelled with a clique."""
    error = site(IMEX, clique="").judge()
    assert error is not None
    assert skip_in(error) is not None


def test_a_pod_without_channels_fails_before_any_job() -> None:
    """Named."""
    workers = (worker("slinky-0", "a"), worker("slinky-1", "b", claim="something-else"))
    found = site(IMEX, workers=workers)
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")
    assert "slinky-1" in error.message
    assert found.ran == []
