"""`aicr gate`: flags, what is printed and logged, and how it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.assertions.fake_cluster import check
from tests.assertions.served_api import Served, served
from tests.cli.program import Result, aicr
from tests.kube import fakeapi

from aicr.assertions.gate import Settings
from aicr.assertions.timing import Timing
from aicr.bundle import readiness
from aicr.cli import gate
from aicr.cli.console import Console
from aicr.kube import kinds

RUNNING = check("assert", "{apiVersion: v1, kind: Pod, status: {phase: Running}}")
SHORT = ("--poll-interval=50ms", "--stability-window=100ms")
#: For a gate that opens, which is as soon as it can, and for one that never does.
OPENS = ("--timeout=60s", "--max-wait=120s")
CLOSED = ("--timeout=1s", "--max-wait=2s")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A folder with the test of one component."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "app.yaml").write_text(RUNNING, encoding="utf-8")
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    """An API server without objects."""
    with served(tmp_path) as found:
        yield found


def run(server: Served, bundle: Path, *words: str) -> Result:
    """Run the gate on the server with short times."""
    return aicr(
        "gate", "--bundle", bundle, "--namespace=ns", *SHORT, *words, "--kubeconfig", server.config
    )


def pod(phase: str) -> dict[str, Any]:
    """A pod in a phase."""
    metadata = {"name": "p", "namespace": "ns"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": phase}}


def test_a_gate_that_opens_exits_0_and_says_so_on_stdout(server: Served, bundle: Path) -> None:
    """One line of result; the story goes to stderr, the cluster first."""
    server.store("ADDED", kinds.POD, pod("Running"))
    done = run(server, bundle, *OPENS)
    assert done.status == 0
    assert done.out.startswith("AllPass: All 1 component(s) passing (stable for ")
    assert done.lines[0].startswith("gate: waits with context test, server http://127.0.0.1:")
    assert done.lines[1] == "gate: 1 component(s): app"
    assert ": Stabilizing: All components passing; stabilizing for " in done.lines[2]


@pytest.mark.covers("V-404")
@pytest.mark.parametrize("forbidden", [False, True], ids=["fail", "unknown"])
def test_a_gate_that_does_not_open_exits_8(server: Served, bundle: Path, forbidden: bool) -> None:
    """Fail and Unknown alike; the error has the deadline, the component and what to look at."""
    if forbidden:
        refusal = fakeapi.refuse(403, "Forbidden", "pods is forbidden")
        server.api.next("GET .*/pods", refusal, times=1000)
    done = run(server, bundle, *CLOSED)
    assert done.status == 8
    assert done.out == "DeadlineExceeded: Gate did not become Ready within 2s\n"
    word = "Unknown" if forbidden else "Fail"
    assert (
        "error: [TIMEOUT] Gate did not become Ready within 2s; 1 component(s) failing: app: "
        f"{word} ("
    ) in done.err
    assert ("look at the API server" in done.err) is forbidden


def test_in_a_pod_the_story_is_json_and_has_every_component(
    server: Served, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys of decision 45, and the condition as fields."""
    server.store("ADDED", kinds.POD, pod("Running"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    done = run(server, bundle, *OPENS)
    assert done.status == 0
    records = [json.loads(line) for line in done.lines]
    assert all({"time", "level", "msg", "module", "version"} <= each.keys() for each in records)
    last = records[-1]
    assert (last["status"], last["reason"], last["components"]) == (
        True,
        "AllPass",
        {"app": "Pass"},
    )


def test_the_last_words_go_to_the_termination_message_of_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most what Kubernetes keeps; nothing outside of a pod, and no failure without the file."""
    from aicr.contract import container

    place = tmp_path / "log"
    place.touch()
    monkeypatch.setattr(container, "TERMINATION_LOG", str(place))
    gate.leave_word("x", {})
    assert place.read_bytes() == b""
    gate.leave_word("é" * 5000, {"KUBERNETES_SERVICE_HOST": "h"})
    assert 0 < len(place.read_bytes()) <= 4096
    place.unlink()
    gate.leave_word("x", {"KUBERNETES_SERVICE_HOST": "h"})
    assert not place.exists()


def test_the_flags_of_a_bundles_job_are_taken() -> None:
    """Those that readiness.py writes, with their values; and the product's defaults are the same."""
    words = [
        *("--bundle=/bundle", "--namespace=app", f"--timeout={readiness.EVALUATION}"),
        *(f"--poll-interval={readiness.POLL}", f"--stability-window={readiness.STABILITY}"),
        f"--max-wait={readiness.MAX_WAIT}",
    ]
    expected = (Settings(10.0, 30.0, 5400.0), Timing(120.0, 5.0, 30.0))
    parser = gate.parser()
    assert gate.times(parser.parse(words), {}) == expected
    assert gate.times(parser.parse([]), {}) == expected
    scaled = gate.times(parser.parse(["--absent-grace=0s"]), {"AICR_TIMEOUT_FACTOR": "0.5"})
    assert scaled == (Settings(5.0, 15.0, 2700.0), Timing(60.0, 2.5, 0.0))


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "flag --bundle is required"),
        (["--bundle", "nope"], 3, "does not exist"),
        (["--bundle", "{bundle}", "--timeout", "2"], 2, "--timeout"),
        (["--bundle", "{bundle}", "--poll-interval", "0s"], 2, "no time to wait"),
        (["--bundle", "{bundle}", "--max-wait=-1s"], 2, "no time to wait"),
        (["--bundle", "{bundle}", "--kubeconfig", "nope"], 2, "does not exist"),
        (["--bundle", "{bundle}", "--max-wiat", "1s"], 2, "did you mean --max-wait?"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_asked(
    bundle: Path, words: list[str], status: int, said: str
) -> None:
    """Exit 2 or 3; nothing on stdout."""
    aicr("gate", *(word.replace("{bundle}", str(bundle)) for word in words)).refused(status, said)


def test_a_test_that_does_more_than_look_is_refused(server: Served, bundle: Path) -> None:
    """Exit 2 with the place in the file; the cluster is not asked."""
    (bundle / "app.yaml").write_text(check("delete", "{}"), encoding="utf-8")
    run(server, bundle).refused(2, 'uses operation "delete"', "app.yaml:")
    assert server.api.seen == []


def test_a_log_line_that_nobody_reads_is_no_failure() -> None:
    """stderr may be closed."""
    console = Console(io.StringIO(), io.StringIO())
    gate.speaker(console, {})("words", {})
    assert console.err.getvalue() == "gate: words\n"  # type: ignore[attr-defined]
