"""`aicr-check`: exit codes, termination message, budget, signals (validators spec 3.8, 5.2)."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from aicr.checks import main as program
from aicr.checks.sdk import Check, Context, Skip, failed
from aicr.checks.sdk.timeouts import Timeouts
from aicr.contract.sentinels import parse_output
from aicr.errors import INTERNAL, UNAUTHORIZED, AicrError, not_found
from aicr.kube.port import Cluster

SNAPSHOT = "kind: Snapshot\napiVersion: aicr.run/v1\nmeasurements: []\n"
VALIDATION = """\
config: {deployment: {constraints: [{name: a.b.c, value: ">= 1.2"}]}}
componentRefs: [{name: gpu-operator}]
"""
Run = Callable[[Context], Awaitable[None]]


class Broken(io.StringIO):
    """A stream that nobody reads."""

    def write(self, text: str) -> int:
        """Fail as a closed pipe does."""
        raise BrokenPipeError("gone")


class Program:
    """One start of `aicr-check`, with files and environment of its own."""

    def __init__(self, folder: Path, run: Run | None = None) -> None:
        self.termination = folder / "termination"
        self.files = {"/data/snapshot/snapshot.yaml": SNAPSHOT}
        self.environ = {
            "AICR_TERMINATION_LOG": str(self.termination),
            "AICR_CHECK_TIMEOUT": "5m0s",
            "AICR_RUN_ID": "run-1",
            "AICR_LOG_FORMAT": "json",
        }
        self.stdout: io.StringIO = io.StringIO()
        self.stderr = io.StringIO()
        self.seen: list[Context] = []
        self.run = run
        self.closed = 0

    def start(self, *argv: str) -> int:
        """The exit status."""
        around = program.Surroundings(
            environ=self.environ,
            stdout=self.stdout,
            stderr=self.stderr,
            read_text=self._read,
            connect=self._connect,
            load=self._load,
        )
        return program.main(argv, around)

    @property
    def message(self) -> str:
        """The termination message; "" when none was written."""
        return self.termination.read_text() if self.termination.exists() else ""

    @property
    def log(self) -> list[dict[str, Any]]:
        """The log lines."""
        return [json.loads(line) for line in self.stderr.getvalue().splitlines()]

    def _read(self, path: str) -> str:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    @asynccontextmanager
    async def _connect(
        self, environ: Mapping[str, str], timeouts: Timeouts
    ) -> AsyncIterator[Cluster]:
        try:
            yield cast("Cluster", object())
        finally:
            self.closed += 1

    def _load(self, name: str) -> Check:
        if name != "probe":
            raise not_found(f"unknown check: {name}", hint="did you mean probe?")

        async def run(context: Context) -> None:
            self.seen.append(context)
            if self.run is not None:
                await self.run(context)

        return Check("probe", "deployment", "s", run, "2m", "d", ())


@pytest.mark.covers("V-133")
def test_a_check_that_returns_passes_and_leaves_no_message(tmp_path: Path) -> None:
    """Exit 0, evidence on stdout, the connection closed."""

    async def run(context: Context) -> None:
        context.out("all well")

    started = Program(tmp_path, run)
    assert started.start("probe") == 0
    assert started.stdout.getvalue() == "all well\n"
    assert started.message == ""
    assert started.closed == 1


@pytest.mark.covers("V-084", "V-133")
@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "wrapped"])
def test_a_skip_exits_2_with_its_reason_as_the_message_and_its_code_as_extra(
    wrapped: bool, tmp_path: Path
) -> None:
    """Whether an error is a skip is told by its chain; counts emitted before are kept (decision 63)."""

    async def run(context: Context) -> None:
        context.emit_extra({"nodesTotal": "2"})
        skip = Skip("all GPU nodes are cordoned", "no-schedulable-gpu-nodes")
        if wrapped:
            raise AicrError(INTERNAL, "outer") from skip
        raise skip

    started = Program(tmp_path, run)
    assert started.start("probe") == 2
    assert started.message == "all GPU nodes are cordoned"
    assert parse_output(started.stdout.getvalue()).extra == {
        "nodesTotal": "2",
        "skipReason": "no-schedulable-gpu-nodes",
    }
    assert started.log[-1]["msg"] == "SKIP"
    assert started.log[-1]["reason"] == "all GPU nodes are cordoned"


@pytest.mark.covers("V-087", "V-133")
def test_a_failure_exits_1_with_its_text_and_the_next_step(tmp_path: Path) -> None:
    """A verdict publishes no code: it could be told."""

    async def run(context: Context) -> None:
        raise failed("no pods in Running state", hint="look at the pods")

    started = Program(tmp_path, run)
    assert started.start("probe") == 1
    assert started.message == "[INTERNAL] no pods in Running state\nnext: look at the pods"
    assert parse_output(started.stdout.getvalue()).extra == {}


def test_a_look_that_failed_publishes_the_code_that_says_why(tmp_path: Path) -> None:
    """Decision 62: INTERNAL because of UNAUTHORIZED is published as UNAUTHORIZED, counts are kept."""

    async def run(context: Context) -> None:
        context.emit_extra({"nodesTotal": "2", "nodesValidated": "0"})
        raise AicrError(INTERNAL, "failed to list") from AicrError(UNAUTHORIZED, "no")

    started = Program(tmp_path, run)
    assert started.start("probe") == 1
    assert started.message == "[INTERNAL] failed to list: [UNAUTHORIZED] no"
    assert parse_output(started.stdout.getvalue()).extra == {
        "nodesTotal": "2",
        "nodesValidated": "0",
        "code": "UNAUTHORIZED",
    }


def test_a_bug_in_a_check_is_a_failure_with_its_place_and_no_traceback(tmp_path: Path) -> None:
    """No traceback reaches anybody."""

    async def run(context: Context) -> None:
        raise KeyError("x")

    started = Program(tmp_path, run)
    assert started.start("probe") == 1
    assert started.message.startswith("[INTERNAL] ")
    assert "unexpected KeyError: 'x'" in started.message
    assert "Traceback" not in started.message + started.stderr.getvalue()


@pytest.mark.covers("V-087")
def test_a_long_failure_leaves_at_most_4096_bytes(tmp_path: Path) -> None:
    """The kubelet would cut the rest, maybe inside a character."""

    async def run(context: Context) -> None:
        raise failed("é" * 5000)

    started = Program(tmp_path, run)
    assert started.start("probe") == 1
    assert len(started.termination.read_bytes()) <= 4096
    assert "... [truncated" in started.message


@pytest.mark.covers("V-089")
@pytest.mark.parametrize(
    ("argv", "message"),
    [((), "usage: aicr-check <check-name>"), (("prob",), "unknown check: prob")],
    ids=["no name", "unknown name"],
)
def test_no_name_or_an_unknown_one_fails_before_anything_is_read(
    argv: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    """Exit 1 with the message of the contract."""
    started = Program(tmp_path)
    started.files.clear()
    assert started.start(*argv) == 1
    assert started.message == message
    assert message in started.stderr.getvalue()
    assert started.closed == 0


@pytest.mark.covers("V-090", "V-091")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"/data/snapshot/snapshot.yaml": None}, "there is no snapshot"),
        ({"/data/snapshot/snapshot.yaml": "kind: Pod"}, "[INVALID_REQUEST]"),
        ({"/data/snapshot/snapshot.yaml": "a: [b"}, "[INVALID_REQUEST]"),
        ({"/data/validation/validation.yaml": "a: [b"}, "[INVALID_REQUEST]"),
        ({"/data/validation/validation.yaml": "- a"}, "validation input is not a map"),
        (
            {"/data/validation/validation.yaml": "componentRefs: [{}]"},
            "componentRefs[0] has no name",
        ),
        ({"/data/validation/validation.yaml": "config: {deployment: 3}"}, "config.deployment"),
        ({"/data/validation/validation.yaml": ""}, "validation input is not a map"),
    ],
    ids=[
        *("no snapshot", "other document", "no YAML", "validation no YAML", "validation a list"),
        *("ref without name", "config no map", "empty"),
    ],
)
def test_a_context_that_cannot_be_loaded_fails(
    change: dict[str, str | None], said: str, tmp_path: Path
) -> None:
    """`failed to load context: …` and exit 1; the check does not run."""
    started = Program(tmp_path)
    for path, text in change.items():
        if text is None:
            del started.files[path]
        else:
            started.files[path] = text
    assert started.start("probe") == 1
    assert started.message.startswith("failed to load context: [")
    assert said in started.message
    assert started.seen == []


@pytest.mark.covers("V-090", "V-091", "V-093", "V-097", "V-098", "V-130", "V-131")
def test_the_context_is_built_from_the_environment_and_the_mounted_files(tmp_path: Path) -> None:
    """Paths can be moved; unset selector and tolerations are None, set and empty ones are empty."""
    started = Program(tmp_path)
    started.files = {"/s": SNAPSHOT, "/v": VALIDATION}
    started.environ |= {
        "AICR_SNAPSHOT_PATH": "/s",
        "AICR_VALIDATION_PATH": "/v",
        "AICR_NAMESPACE": "fallback",
        "AICR_NODE_SELECTOR": "pool=gpu",
        "AICR_TOLERATIONS": "",
        "AICR_VALIDATOR_PHASE": "deployment",
    }
    assert started.start("probe") == 0
    context = started.seen[0]
    assert (context.name, context.phase, context.run_id) == ("probe", "deployment", "run-1")
    assert context.namespace == "fallback"
    assert context.node_selector == {"pool": "gpu"}
    assert context.tolerations == []
    assert context.snapshot is not None
    assert context.constraint("a.b.c") == ">= 1.2"
    assert context.constraint("a.b.c", "conformance") is None
    assert context.component("gpu-operator") == {"name": "gpu-operator"}

    bare = Program(tmp_path)
    del bare.environ["AICR_RUN_ID"]
    bare.files["/var/run/secrets/kubernetes.io/serviceaccount/namespace"] = "of-the-account\n"
    bare.environ["AICR_NAMESPACE"] = "fallback"
    assert bare.start("probe") == 0
    context = bare.seen[0]
    assert context.validation is None
    assert context.node_selector is None
    assert context.tolerations is None
    assert context.namespace == "of-the-account"
    assert context.run_id.count("-") == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AICR_NODE_SELECTOR", "pool"),
        ("AICR_TOLERATIONS", "a:b:c"),
        ("AICR_TIMEOUT_FACTOR", "fast"),
        ("AICR_LOG_FORMAT", "xml"),
    ],
)
def test_a_variable_that_cannot_be_read_fails_the_context(
    name: str, value: str, tmp_path: Path
) -> None:
    """A selector that is dropped would test other nodes than the user asked for."""
    started = Program(tmp_path)
    started.environ[name] = value
    assert started.start("probe") == 1
    assert started.message.startswith("failed to load context: [INVALID_REQUEST]")


@pytest.mark.covers("V-094")
@pytest.mark.parametrize(
    ("text", "seconds", "warned"),
    [("90s", 90.0, False), ("", 3300.0, True), ("soon", 3300.0, True), ("-1m", 3300.0, True)],
    ids=["stated", "unset", "malformed", "negative"],
)
def test_the_budget_is_stated_or_the_default_with_a_warning(
    text: str, seconds: float, warned: bool, tmp_path: Path
) -> None:
    """Unset or malformed falls back to 55 minutes, logged at WARN."""
    started = Program(tmp_path)
    started.environ["AICR_CHECK_TIMEOUT"] = text
    remaining: list[float] = []

    async def run(context: Context) -> None:
        remaining.append(context.remaining())
        remaining.append(context.timeout(1.0))

    started.run = run
    assert started.start("probe") == 0
    assert seconds - 60 < remaining[0] <= seconds
    assert remaining[1] == 1.0
    assert [line["level"] for line in started.log].count("WARNING") == warned


@pytest.mark.covers("V-094")
def test_a_check_that_uses_up_its_budget_fails_and_cleans_up_first(tmp_path: Path) -> None:
    """TIMEOUT, published as a code; what stands in `finally` has happened."""
    cleaned: list[str] = []

    async def run(context: Context) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append("yes")

    started = Program(tmp_path, run)
    started.environ["AICR_CHECK_TIMEOUT"] = "20ms"
    assert started.start("probe") == 1
    assert started.message.startswith("[TIMEOUT] probe did not finish within 20ms")
    assert cleaned == ["yes"]
    assert parse_output(started.stdout.getvalue()).extra == {"code": "TIMEOUT"}


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"]
)
def test_a_request_to_end_unwinds_the_check_without_a_verdict(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    """Neither passed, failed nor skipped. A second signal does not break the clean-up."""
    cleaned: list[str] = []

    async def run(context: Context) -> None:
        os.kill(os.getpid(), number)
        try:
            await asyncio.sleep(60)
        finally:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.01)
            cleaned.append("yes")

    before = signal.getsignal(number)
    started = Program(tmp_path, run)
    assert started.start("probe") == status
    assert cleaned == ["yes"]
    assert started.message == "probe was asked to end before it had a verdict"
    assert started.closed == 1
    assert signal.getsignal(number) == before


@pytest.mark.covers("V-169")
def test_evidence_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    """A closed stdout never flips the verdict."""

    async def run(context: Context) -> None:
        context.out("evidence")
        context.emit_extra({"nodesTotal": "1"})
        context.emit_extra({"nodesTotal": 1})  # type: ignore[dict-item]
        context.emit_provenance({"shippedDigest": "x"})

    started = Program(tmp_path, run)
    started.stdout = Broken()
    assert started.start("probe") == 0
    warnings = [line["msg"] for line in started.log if line["level"] == "WARNING"]
    assert len(warnings) == 4
    assert warnings[0].startswith("cannot write evidence:")


def test_a_termination_log_that_cannot_be_written_changes_no_verdict(tmp_path: Path) -> None:
    """The message is logged instead."""

    async def run(context: Context) -> None:
        raise failed("the reason")

    started = Program(tmp_path, run)
    started.environ["AICR_TERMINATION_LOG"] = str(tmp_path / "none" / "log")
    assert started.start("probe") == 1
    assert any("the reason" in line["msg"] for line in started.log if line["level"] == "ERROR")


def test_the_log_is_json_inside_a_cluster_and_text_elsewhere(tmp_path: Path) -> None:
    """Decision 45: time, level, msg, module, version and the fields."""
    inside = Program(tmp_path)
    del inside.environ["AICR_LOG_FORMAT"]
    inside.environ["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    assert inside.start("probe") == 0
    assert {"time", "level", "msg", "module", "version", "check"} == set(inside.log[-1])

    outside = Program(tmp_path)
    del outside.environ["AICR_LOG_FORMAT"]
    assert outside.start("probe") == 0
    assert outside.stderr.getvalue() == "level=INFO msg=PASS check=probe\n"
