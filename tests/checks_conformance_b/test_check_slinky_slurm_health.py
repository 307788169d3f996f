"""slinky-slurm-health: Slurm answers, runs jobs and records them (validators spec 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import validation
from tests.checks_conformance_b.bench import SHORT, Answer, declared
from tests.checks_conformance_b.slurm_site import BUSY, DOWN, UP, Answers, login, site, slurm
from tests.checks_deployment.answers import COULD_NOT_LOOK

from aicr.checks.conformance.slinky_slurm_health import (
    CHECK,
    accounting_enabled,
    has_gpus,
    job_id,
    record_of,
)
from aicr.checks.conformance.slurm import of_cluster, selector_of
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import (
    INTERNAL,
    INVALID_REQUEST,
    NOT_FOUND,
    SERVICE_UNAVAILABLE,
    TIMEOUT,
    AicrError,
)

Document = dict[str, Any]
ACCOUNTED = slurm({"accounting": {"enabled": True}})
IMPATIENT = replace(SHORT, slurm_accounting_record=0.2)


def answers(**changed: Answer | AicrError | list[Answer]) -> Answers:
    """A Slurm that works, but for what is given by the first word; a list is one answer after another."""
    standard: dict[str, Any] = {
        "scontrol": Answer(0, UP),
        "/bin/sh": Answer(),
        "hostname": Answer(0, "slinky-0\n"),
        "sinfo": Answer(0, "gpu:gb200:4(S:0-1)\n"),
        "nvidia-smi": Answer(0, "GPU 0: NVIDIA GB200 (UUID: GPU-1)\n"),
        "sbatch": Answer(0, "7\n"),
        "sacct": [Answer(), Answer(0, "7|RUNNING|0:0\n"), Answer(0, "7|COMPLETED|0:0\n")],
        "scancel": Answer(),
    }
    table = {**standard, **{key.replace("room", "/bin/sh"): each for key, each in changed.items()}}

    def answer(command: Sequence[str]) -> Answer | AicrError:
        word = command[0]
        if word == "srun":
            word = "nvidia-smi" if "nvidia-smi" in command else "hostname"
        found = table[word]
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        assert isinstance(found, Answer | AicrError)
        return found

    return answer


def test_a_slurm_that_runs_a_job_with_a_gpu_passes() -> None:
    """From the login container, with the commands of the spec."""
    found = site(CHECK, answer=answers())
    assert found.judge() is None
    assert found.ran == [
        f"slurm/login-0/login: {command}"
        for command in (
            "scontrol ping",
            "/bin/sh -c sinfo -h -Ne -t idle,mix | grep -q .",
            "srun --immediate=5 --time=0:03 hostname",
            "sinfo -h -o %G",
            "srun --immediate=5 --time=0:03 --gpus=1 nvidia-smi -L",
        )
    ]
    assert found.seen.lines[0] == "LoginSets: 1, NodeSets: 1, NodeSet pods: 2/2 ready"
    assert "--- Slurm controller ---" in found.seen.lines
    assert found.seen.lines[-1] == "Accounting: not switched on by the recipe"


def test_without_gpus_in_slurm_no_gpu_is_asked_for() -> None:
    """GRES decides, not Kubernetes."""
    found = site(CHECK, answer=answers(sinfo=Answer(0, "(null)\n")))
    assert found.judge() is None
    assert not any("--gpus" in line for line in found.ran)
    assert "Slurm nodes with GPUs: none" in found.seen.lines


def test_a_batch_job_is_followed_into_the_records() -> None:
    """Until it is COMPLETED; it need not be taken back."""
    found = site(CHECK, answer=answers(), validation=ACCOUNTED)
    assert found.judge() is None
    assert found.seen.lines[-1] == "Accounting: job 7 is recorded as COMPLETED 0:0"
    assert sum("sacct -n -P -X -j 7" in line for line in found.ran) == 3
    assert not any("scancel" in line for line in found.ran)


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({"scontrol": Answer(1, DOWN)}, INTERNAL, "controller does not answer"),
        ({"scontrol": Answer(0, DOWN)}, INTERNAL, "controller does not answer"),
        ({"room": Answer(1)}, INTERNAL, "no Slurm node is idle or mixed"),
        (
            {"hostname": Answer(1, "", "srun: error: invalid partition\n")},
            INTERNAL,
            "srun: error: invalid partition",
        ),
        ({"nvidia-smi": Answer(0, "No devices were found\n")}, INTERNAL, "lists none"),
        ({"nvidia-smi": Answer(9, "", "NVML: no driver\n")}, INTERNAL, "exit status 9"),
        ({"sbatch": Answer(1, "", "sbatch: error: no account\n")}, INTERNAL, "submitting a batch"),
        ({"sacct": Answer(0, "7|FAILED|1:0\n")}, INTERNAL, "batch job 7 ended as FAILED 1:0"),
        ({"sacct": Answer(0, "7|COMPLETED|2:0\n")}, INTERNAL, "ended as COMPLETED 2:0"),
        ({"sacct": Answer(0, "7|PENDING|0:0\n")}, TIMEOUT, "not recorded as completed within"),
        (
            {"sacct": Answer(1, "", "sacct: error: slurmdbd: connection refused\n")},
            TIMEOUT,
            "slurmdbd: connection refused",
        ),
    ],
    ids=[
        "ping",
        "ping by words",
        "no room",
        "job",
        "no GPU",
        "GPU job",
        "sbatch",
        "failed",
        "exit code",
        "pending",
        "no records",
    ],
)
def test_what_does_not_work_fails(changed: Document, code: str, words: str) -> None:
    """A verdict, with Slurm's own words."""
    impatient = IMPATIENT if code == TIMEOUT else SHORT
    found = site(CHECK, answer=answers(**changed), validation=ACCOUNTED, timeouts=impatient)
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (code, "")
    assert words in error.message


@pytest.mark.parametrize("cancelled", [Answer(), Answer(1), AicrError(TIMEOUT, "slow")])
def test_a_batch_job_that_did_not_end_is_taken_back(cancelled: Any) -> None:
    """And named when it could not be."""
    found = site(
        CHECK,
        answer=answers(sacct=Answer(0, "7|PENDING|0:0\n"), scancel=cancelled),
        validation=ACCOUNTED,
        timeouts=IMPATIENT,
    )
    assert found.judge() is not None
    assert found.ran[-1] == "slurm/login-0/login: scancel 7"
    assert ("scancel 7" in found.seen.log) is (cancelled != Answer())


@pytest.mark.parametrize("key", ["hostname", "nvidia-smi"])
def test_a_job_for_which_there_was_no_room_could_not_tell(key: str) -> None:
    """The queue is full; nothing is wrong with Slurm."""
    error = site(CHECK, answer=answers(**{key: Answer(1, "", BUSY)})).judge()
    assert error is not None
    assert could_not_tell(error) == SERVICE_UNAVAILABLE


@pytest.mark.parametrize("key", ["scontrol", "room", "hostname", "sinfo", "sbatch", "sacct"])
@pytest.mark.parametrize("code", [TIMEOUT, SERVICE_UNAVAILABLE])
def test_a_command_that_could_not_be_run_could_not_tell(key: str, code: str) -> None:
    """Neither a verdict nor a skip."""
    error = site(
        CHECK, answer=answers(**{key: AicrError(code, "exec")}), validation=ACCOUNTED
    ).judge()
    assert error is not None
    assert skip_in(error) is None
    assert could_not_tell(error) == code


def test_words_that_are_none_of_slurms_could_not_tell() -> None:
    """A job without an id, and a list of resources that fails."""
    for changed in ({"sbatch": Answer(0, "hello\n")}, {"sinfo": Answer(1, "", "no\n")}):
        error = site(CHECK, answer=answers(**changed), validation=ACCOUNTED).judge()
        assert error is not None
        assert could_not_tell(error) == INTERNAL


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"without": "LoginSet"}, NOT_FOUND, "no LoginSet in slurm"),
        ({"without": "NodeSet"}, NOT_FOUND, "no NodeSet in slurm"),
        ({"workers": ()}, NOT_FOUND, "have no pods"),
        ({"logins": ()}, SERVICE_UNAVAILABLE, "no login pod in slurm is ready (0 there)"),
        (
            {"logins": (login(ready=False),)},
            SERVICE_UNAVAILABLE,
            "no login pod in slurm is ready (1 there)",
        ),
    ],
    ids=["LoginSet", "NodeSet", "pods", "no login", "login not ready"],
)
def test_a_cluster_that_is_not_whole_fails(settings: Document, code: str, words: str) -> None:
    """A verdict, before any command."""
    found = site(CHECK, **settings)
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (code, "")
    assert words in error.message
    assert found.ran == []


def test_a_kind_that_is_not_served_is_a_verdict() -> None:
    """Declared, and its CRDs are absent."""
    found = site(CHECK, served=())
    found.objects = []
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (NOT_FOUND, "")


@pytest.mark.parametrize(
    "settings",
    [
        {"validation": declared("gpu-operator")},
        {"validation": validation(disabled=("slinky-slurm",))},
        {"kwok": True},
    ],
    ids=["not declared", "disabled", "kwok"],
)
def test_no_slurm_that_could_run_anything_skips(settings: Document) -> None:
    """Before any command."""
    found = site(CHECK, **settings)
    error = found.judge()
    assert error is not None
    assert skip_in(error) is not None
    assert found.ran == []


@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
@pytest.mark.parametrize("what", ["loginsets", "nodesets", "/pods", "/nodes"])
def test_what_cannot_be_looked_at_is_never_a_verdict_nor_a_skip(
    what: str, answer: web.Response, code: str
) -> None:
    """Field case G2."""
    error = site(CHECK, answer=answers()).fault(f"GET .*{what}", answer).judge()
    assert error is not None
    assert skip_in(error) is None
    assert could_not_tell(error) == code


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({}, False),
        ({"accounting": {}}, False),
        ({"accounting": {"enabled": False}}, False),
        ({"accounting": {"enabled": True}}, True),
    ],
)
def test_accounting_is_what_the_recipe_says(overrides: Document, expected: bool) -> None:
    """Off when it says nothing."""
    assert accounting_enabled({"overrides": overrides}) is expected


@pytest.mark.parametrize("accounting", [{"enabled": "true"}, {"enabled": 1}, [], "yes"])
def test_accounting_that_is_neither_true_nor_false_is_refused(accounting: Any) -> None:
    """Before anything is looked at."""
    found = site(CHECK, validation=slurm({"accounting": accounting}))
    error = found.judge()
    assert error is not None
    assert error.code == INVALID_REQUEST
    assert found.api.seen == []


def test_sets_and_their_pods_are_found_by_what_controllers_report() -> None:
    """The sets of the recipe's controller first; a set's own selector, else its name."""
    mine: Document = {
        "metadata": {"name": "mine"},
        "spec": {"controllerRef": {"name": "slinky-slurm"}},
    }
    other: Document = {"metadata": {"name": "other"}, "status": {"selector": "a=b"}}
    assert of_cluster([other, mine]) == [mine]
    assert of_cluster([other]) == [other]
    assert selector_of(other) == "a=b"
    assert selector_of(mine) == "app.kubernetes.io/instance=mine"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu:h100:8(S:0-1)\n", True),
        ("(null)\nshard:2,gpu:1\n", True),
        ("(null)\n", False),
        ("", False),
        ("gpumem:3\n", False),
    ],
)
def test_gres_of_sinfo(text: str, expected: bool) -> None:
    """In the forms that Slurm prints."""
    assert has_gpus(text) is expected


@pytest.mark.parametrize("text", ["42\n", "42;cluster\n", "Submitted batch job 42\n"])
def test_the_id_of_a_batch_job(text: str) -> None:
    """With and without --parsable, with and without a cluster."""
    assert job_id(text) == "42"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("42|COMPLETED|0:0\n", ("COMPLETED", "0:0")),
        ("42|CANCELLED by 0|0:15\n", ("CANCELLED", "0:15")),
        ("41|COMPLETED|0:0\n42.batch|COMPLETED|0:0\n", ("", "")),
        ("", ("", "")),
        ("42|x\n", ("", "")),
    ],
)
def test_the_record_of_a_job(text: str, expected: tuple[str, str]) -> None:
    """Its own line, and none of its steps."""
    assert record_of(text, "42") == expected
