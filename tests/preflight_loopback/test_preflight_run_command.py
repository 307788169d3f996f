"""`aicr preflight run` and `aicr preflight thresholds`, with an nvidia-smi and a benchmark of the test."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fabric.tables import Measured, table
from tests.preflight_dcgm.scripted import FAIL, PASS, Engine, answer, busy, uuid
from tests.preflight_health.receiver import receiving

from aicr.cli.console import Console
from aicr.cli.main import main
from aicr.preflight.checks.dcgm import bindings


@dataclass
class Ended:
    """What a command line gave."""

    status: int
    out: str
    err: str


#: Runs a command line with programs that print as told.
Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Put an nvidia-smi and a benchmark of the test's own where the command finds them."""
    binary = tmp_path / "all_reduce_perf"

    def program(path: Path, text: str) -> None:
        path.with_suffix(".txt").write_text(text)
        path.write_text(f"#!/bin/sh\nexec cat {path.with_suffix('.txt')}\n")
        path.chmod(0o755)

    def running(*words: str, smi: str = "NVIDIA H100 80GB HBM3\n" * 8, output: str = "") -> Ended:
        program(tmp_path / "nvidia-smi", smi)
        program(binary, output or table())
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.setenv("NCCL_TEST_BINARY_PATH", str(binary))
        monkeypatch.setenv("AICR_TIMEOUT_FACTOR", "0.05")
        out, err = io.StringIO(), io.StringIO()
        status = main(["preflight", *words], Console(out, err))
        return Ended(status, out.getvalue(), err.getvalue())

    return running


@pytest.mark.parametrize(
    ("busbw", "status", "code", "verdict"),
    [("197.87", 0, 0, "passed"), ("17.00", 8, 1, "failed")],
    ids=["passes", "degraded"],
)
def test_loopback_can_be_run_by_hand(
    run: Run, busbw: str, status: int, code: int, verdict: str
) -> None:
    """The result as a document; nothing is sent without a socket."""
    ended = run("run", "nccl-loopback", "--format", "json", output=table(Measured(busbw=busbw)))
    assert ended.status == status
    document = json.loads(ended.out)
    assert (document["check"], document["exitCode"], document["verdict"]) == (
        "preflight-nccl-loopback",
        code,
        verdict,
    )
    assert document["details"]["busbwGBps"] == float(busbw)
    assert "Bandwidth measured" in ended.err


def test_flags_go_before_variables(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the text for people says with what the container would exit."""
    monkeypatch.setenv("BW_THRESHOLD_GBPS", "15")
    text = table(Measured(busbw="17.00"))
    assert run("run", "nccl-loopback", output=text).status == 0
    ended = run("run", "preflight-nccl-loopback", "--threshold", "18", output=text)
    assert ended.status == 8
    assert "the container would exit with 1" in ended.out
    assert "NCCLLoopbackTest: FATAL: " in ended.out
    assert (
        run(
            "run", "nccl-loopback", "--threshold", "18", "--skip-bandwidth-check", output=text
        ).status
        == 0
    )


def test_one_gpu_is_no_pass_for_a_person(run: Run) -> None:
    """The pod would start; the command says that nothing was tested."""
    ended = run("run", "nccl-loopback", smi="NVIDIA L4\n")
    assert ended.status == 6
    assert "could not test" in ended.out


def test_events_are_sent_when_a_socket_is_named(run: Run) -> None:
    """With the node's name and the strategy that were given."""
    with receiving() as receiver:
        ended = run(
            *("run", "nccl-loopback", "--socket", receiver.path, "--node", "n-7"),
            *("--strategy", "STORE_ONLY"),
        )
    assert ended.status == 0
    (event,) = receiver.events
    assert (event.agent, event.componentClass, event.nodeName, event.processingStrategy) == (
        "preflight-nccl-loopback",
        "Node",
        "n-7",
        2,
    )


def test_a_connector_that_is_not_there_is_said(run: Run, tmp_path: Path) -> None:
    """What would have been sent is still shown."""
    ended = run("run", "nccl-loopback", "--socket", str(tmp_path / "none"))
    assert ended.status == 6
    assert "not sent: Failed to send health event after 5 retries" in ended.out
    assert "the container would exit with 3" in ended.out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "name a check"),
        (["dcgm-dag"], "did you mean dcgm-diag?"),
        (["nccl-allreduce", "--level", "2"], "flag --level is for dcgm-diag"),
        (["nccl-allreduce", "--sizes", "4K"], "invalid MESSAGE_SIZES: '4K' is no size"),
        (["nccl-allreduce", "--gang-dir", "/none"], "folder of the gang's ConfigMap is not there"),
        (["nccl-loopback", "--sizes", "4G"], "flag --sizes is for nccl-allreduce"),
        (["nccl-loopback", "--level", "2"], "flag --level is for dcgm-diag"),
        (["dcgm-diag", "--strategy", "STORE_ONL"], "did you mean STORE_ONLY?"),
        (["nccl-allreduce", "--strategy", "x"], "Invalid PROCESSING_STRATEGY: x"),
        (["nccl-loopback", "--threshold", "x"], "invalid BW_THRESHOLD_GBPS: 'x' is no number"),
        (
            ["nccl-loopback", "--strategy", "LATER", "--socket", "/none"],
            "Invalid PROCESSING_STRATEGY: LATER",
        ),
        (["dcgm-diag", "--level", "9"], "DCGM_DIAG_LEVEL must be 1-4, got 9"),
        (["dcgm-diag", "--format", "xml"], "unknown output format"),
    ],
    ids=str,
)
def test_wrong_use_is_status_2_with_words(run: Run, words: list[str], text: str) -> None:
    """Nothing is run."""
    ended = run("run", *words)
    assert (ended.status, ended.out) == (2, "")
    assert text in ended.err


@pytest.mark.parametrize(
    ("step", "status", "code", "text"),
    [
        (answer(("memory", 6, PASS)), 0, 0, "preflight-dcgm-diag: passed"),
        (
            answer(("memory", 6, FAIL), errors=[("memory", 6, 56, "bad")]),
            8,
            1,
            "DcgmDiagnosticMemory: FATAL: bad",
        ),
        (busy("DCGM_ST_IN_USE"), 6, 0, "code DCGM_ST_IN_USE"),
    ],
    ids=["passes", "fails", "busy"],
)
def test_dcgm_diag_can_be_run_by_hand(
    run: Run, monkeypatch: pytest.MonkeyPatch, step: object, status: int, code: int, text: str
) -> None:
    """On the GPUs of this machine, at the hostengine that is named."""
    engine = Engine([step])  # type: ignore[list-item]
    monkeypatch.setattr(bindings.Bindings, "connect", lambda self, address: engine.connect(address))
    ended = run(
        *("run", "dcgm-diag", "--hostengine", "good:5555", "--level", "1", "--attempts", "2"),
        *("--interval", "0.1"),
        smi=f"{uuid(6)}, Disabled, NVIDIA H100\n",
    )
    assert ended.status == status
    assert text in ended.out
    assert f"the container would exit with {code}" in ended.out
    assert engine.levels[0] == 1
    assert engine.groups == [[6]]


def test_the_default_hostengine_is_the_service_of_the_gpu_operator(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both names, in order."""
    engine = Engine(good="nvidia-dcgm.gpu-operator.svc:5555", steps=[answer(("memory", 6, PASS))])
    monkeypatch.setattr(bindings.Bindings, "connect", lambda self, address: engine.connect(address))
    ended = run("run", "dcgm-diag", smi=f"{uuid(6)}, [N/A], NVIDIA H100\n")
    assert ended.status == 0
    assert engine.asked == [
        "nvidia-dcgm-dra.gpu-operator.svc:5555",
        "nvidia-dcgm.gpu-operator.svc:5555",
    ]


def test_thresholds_are_listed_with_their_sources(run: Run) -> None:
    """For people and for programs."""
    ended = run("thresholds", "--check", "nccl-allreduce", "--fabric", "efa", "--gpu", "h100")
    assert ended.status == 0
    assert "335" in ended.out
    assert "default of nccl-allreduce: 100 GB/s" in ended.out
    document = json.loads(run("thresholds", "--fabric", "mnnvl", "--format", "json").out)
    assert [row["busbwGBps"] for row in document["references"]] == [617, 689]
    assert all(row["source"] for row in document["references"])


def test_an_unknown_pair_is_said_and_nothing_is_invented(run: Run) -> None:
    """No figure is an answer."""
    ended = run("thresholds", "--fabric", "efa", "--gpu", "b200")
    assert ended.status == 0
    assert "no figure is on record" in ended.err
    assert "measured" not in ended.out


@pytest.mark.parametrize("words", [["--fabric", "ethernet"], ["--check", "dcgm-diag"]], ids=str)
def test_a_name_that_does_not_exist_is_refused(run: Run, words: list[str]) -> None:
    """With the nearest one, or all."""
    ended = run("thresholds", *words)
    assert ended.status == 2
    assert "known: " in ended.err or "did you mean" in ended.err
