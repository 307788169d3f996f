"""The webhook as a process: start, serve, rotate, drain, and the ways in which it ends (spec 1.1)."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.preflight.admission_cases import document, pod, request_for
from tests.preflight.webhook_process import Webhook, serving

from aicr.errors import SERVICE_UNAVAILABLE, AicrError
from aicr.kube.client import Client
from aicr.preflight import logs, server
from aicr.preflight.admission.gang_port import Membership
from aicr.yamlio.write import dump


@pytest.mark.covers("P11-5", "P11-12", "P11-57", "P-018", "P-181", "P-182", "P-167", "P-180")
def test_a_webhook_without_a_cluster_serves_probes_admissions_and_metrics(tmp_path: Path) -> None:
    """With coordination and DRA off nothing of a cluster is needed; everything is on its port."""
    with serving(tmp_path, "--drain-seconds", "0") as webhook:
        assert webhook.ask("/healthz") == (200, b"ok")
        assert webhook.ask("/readyz") == (200, b"ok")
        status, body = webhook.ask("/mutate?timeout=10s", request_for(pod()))
        assert status == 200
        assert json.loads(body)["response"]["patchType"] == "JSONPatch"
        assert webhook.ask("/mutate", b"{") == (400, b"failed to unmarshal admission review")
        assert webhook.ask("/other")[0] == 404
        webhook.ask("/mutate", request_for(pod({"name": "cpu"})))
        text = webhook.metrics()
        for line in (
            'preflight_injection_total{result="injected"} 1.0',
            'preflight_injection_total{result="skipped_no_gpu"} 1.0',
            'preflight_injection_total{result="error"} 1.0',
            'preflight_injection_total{result="rejected"} 0.0',
            'preflight_injection_total{result="skipped_no_checks"} 0.0',
            "preflight_webhook_latency_seconds_count 3.0",
        ):
            assert line in text
        assert "preflight_certificate_expiry_timestamp_seconds" in text
        first = webhook.lines()[0]
        assert first["msg"] == "Starting preflight"
        assert {"time", "level", "msg", "module", "version", "commit"} <= first.keys()
        loaded = webhook.wait_for("Configuration loaded")
        assert loaded["initContainers"] == 3
        assert loaded["gangCoordinationEnabled"] is False
        mutated = webhook.wait_for("Mutating pod")
        assert (mutated["namespace"], mutated["pod"]) == ("team-a", "w-0")
        webhook.process.send_signal(signal.SIGTERM)
        assert webhook.process.wait(60) == 0


def test_a_rotated_certificate_is_taken_up_while_serving(tmp_path: Path) -> None:
    """A connection that is open goes on; a new one is shown the new certificate."""
    with serving(tmp_path) as webhook:
        kept = webhook.connection()
        kept.request("GET", "/healthz")
        kept.getresponse().read()
        before = ssl.get_server_certificate(("127.0.0.1", webhook.port))
        webhook.certify()
        webhook.wait_for("Reloaded certificate")
        assert ssl.get_server_certificate(("127.0.0.1", webhook.port)) != before
        assert webhook.ask("/healthz") == (200, b"ok")
        kept.request("GET", "/healthz")
        assert kept.getresponse().read() == b"ok"
        kept.close()


def test_a_process_that_is_told_to_end_answers_what_it_was_asked(tmp_path: Path) -> None:
    """While draining it is not ready, answers, and asks to reconnect; in the end it exits with 0."""
    with serving(tmp_path, "--drain-seconds", "600") as webhook:
        late = webhook.connection()
        late.connect()
        webhook.process.send_signal(signal.SIGTERM)
        webhook.wait_for("Draining")
        assert webhook.ask("/readyz") == (503, b"shutting down")
        body = request_for(pod())
        # Half a request before the end of draining, the other half after it.
        head = f"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        late.sock.sendall(head + body[:100])
        for _ in range(3):
            assert webhook.ask("/mutate", body)[0] == 200
        # A second request to end is the end of draining, whenever this machine gets to it.
        webhook.process.send_signal(signal.SIGTERM)
        while webhook.process.poll() is None:
            try:
                status, _ = webhook.ask("/mutate", body)
            except OSError:
                # Refused, or cut: who comes just when the door closes was never let in.
                break
            assert status == 200
        late.sock.sendall(body[100:])
        answer = http.client.HTTPResponse(late.sock)
        answer.begin()
        assert answer.status == 200
        assert b"JSONPatch" in answer.read()
        late.close()
        assert webhook.process.wait(60) == 0
        assert webhook.wait_for("Stopped preflight")


@pytest.mark.covers("P11-1")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param("port", "cannot listen on 127.0.0.1:", id="port taken"),
        pytest.param("metrics port", "for metrics: Address already in use", id="metrics port"),
        pytest.param("no certificate", "there is no ", id="certificate"),
        pytest.param("no config", "failed to read config file: there is no ", id="config"),
        pytest.param(
            "bad config", 'invalid file config: duplicate init container name "a"', id="rule"
        ),
        pytest.param("no cluster", "no cluster", id="cluster"),
    ],
)
def test_a_start_that_fails_is_one_line_and_status_one(
    tmp_path: Path, change: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Fatal error` with the whole chain, so that a log is enough to know what to do."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    webhook = Webhook(tmp_path)
    config = tmp_path / "config.yaml"
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        if change == "port":
            webhook.port = taken
        elif change == "metrics port":
            webhook.metrics_port = taken
        elif change == "no certificate":
            (tmp_path / "tls.key").unlink()
        elif change == "no config":
            config.unlink()
        elif change == "bad config":
            config.write_text("initContainers: [{name: a}, {name: a}]")
        else:
            config.write_text(dump(document()))
        webhook.start()
        assert webhook.process.wait(120) == 1
    fatal = [line for line in webhook.lines() if line["msg"] == "Fatal error"]
    assert len(fatal) == 1
    assert fatal[0]["level"] == "ERROR"
    assert said in fatal[0]["error"]


class Ended:
    """A gang service that fails to start, or whose controllers end."""

    def __init__(self, start: AicrError | None = None, run: AicrError | None = None) -> None:
        self._start, self._run = start, run

    async def start(self) -> None:
        """Fail if told to."""
        if self._start is not None:
            raise self._start

    async def run(self) -> None:
        """End soon."""
        await asyncio.sleep(0.05)
        if self._run is not None:
            raise self._run

    def unready(self) -> str:
        """Never ready."""
        return "caches are not synced"

    async def identify(self, pod: Mapping[str, Any], namespace: str) -> Membership | None:
        """No pod is in a gang."""

    async def register(
        self, membership: Membership, pod: Mapping[str, Any], checks: Sequence[str], dry_run: bool
    ) -> None:
        """Nobody registers."""


class NoCluster(Client):
    """A client that nobody may use."""

    def __init__(self) -> None:
        """Nothing is connected."""

    async def close(self) -> None:
        """There is nothing to close."""


def run_with(folder: Path, service: Ended, capsys: pytest.CaptureFixture[str]) -> list[Any]:
    """The log of a webhook with *service*, which ends by itself with status 1."""
    webhook = Webhook(folder, gangCoordination={"enabled": True})
    logs.set_up("test")
    options = server.Options(
        config=str(folder / "config.yaml"),
        certificates=str(folder),
        host="127.0.0.1",
        port=webhook.port,
        metrics_port=0,
        drain=0,
    )
    access = server.Access(NoCluster, lambda client, config, metrics: service)
    assert server.run(options, access, {}) == 1
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.fixture
def _logging_restored() -> Iterator[None]:
    """Leave logging as it was: the server sets it up for its process."""
    import logging

    root = logging.getLogger()
    kept = (root.handlers[:], root.level, logging._srcfile, logging.logThreads)
    levels = {
        name: logging.getLogger(name).level for name in ("uvicorn", "uvicorn.error", "asyncio")
    }
    yield
    root.handlers[:], root.level, logging._srcfile, logging.logThreads = kept
    logging.logProcesses = logging.logMultiprocessing = logging.raiseExceptions = True
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.usefixtures("_logging_restored")
@pytest.mark.covers("P11-11", "P-015", "P-016", "P-008")
def test_a_cluster_without_a_gang_api_ends_the_start_in_the_quoted_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line that operators know from the original's documentation, byte for byte."""
    reason = AicrError(
        SERVICE_UNAVAILABLE,
        "kubernetes native gang API not available (requires K8s 1.35 Workload or K8s 1.36+ PodGroup)",
    )
    inner = AicrError(SERVICE_UNAVAILABLE, "failed to create default gang discoverer")
    inner.__cause__ = reason
    outer = AicrError(SERVICE_UNAVAILABLE, "failed to create gang discoverer resolver")
    outer.__cause__ = inner
    lines = run_with(tmp_path, Ended(start=outer), capsys)
    assert lines[-1]["level"] == "ERROR"
    assert lines[-1]["msg"] == "Fatal error"
    assert lines[-1]["error"] == (
        "failed to create gang discoverer resolver: failed to create default gang discoverer: "
        "kubernetes native gang API not available (requires K8s 1.35 Workload or K8s 1.36+ PodGroup)"
    )


@pytest.mark.usefixtures("_logging_restored")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            AicrError(SERVICE_UNAVAILABLE, "watch is gone"),
            "controller manager failed: watch is gone",
        ),
        (None, "controller manager failed: it ended by itself"),
    ],
)
def test_controllers_that_end_take_the_process_with_them(
    tmp_path: Path, error: AicrError | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A webhook that no longer keeps gangs would let them wait for ever."""
    lines = run_with(tmp_path, Ended(run=error), capsys)
    messages = [line["msg"] for line in lines]
    assert "Controller manager failed, initiating shutdown" in messages
    assert lines[-1]["msg"] == "Fatal error"
    assert lines[-1]["error"] == said


@pytest.mark.usefixtures("_logging_restored")
def test_a_missing_extra_is_the_pip_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Decision 39: one error with what to install."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    logs.set_up("test")
    access = server.Access(NoCluster, lambda *_: Ended())
    assert server.run(server.Options(config=str(tmp_path / "c")), access, {}) == 1
    line = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert line["hint"] == 'pip install "aicr[webhook]"'
    assert "uvicorn" in line["error"]


def test_nothing_but_serving_needs_an_extra() -> None:
    """Decision 39: the decision, its commands and the server's module import with the base install."""
    blocked = ["aiohttp", "uvicorn", "uvloop", "httptools", "prometheus_client", "kubernetes"]
    script = (
        f"import sys\nfor name in {blocked}: sys.modules[name] = None\n"
        "import aicr.preflight.server, aicr.preflight.offline, aicr.preflight.server_app\n"
        "import aicr.preflight.admission.handler, aicr.preflight.admission.claim_lookup\n"
        "import aicr.preflight.controller.service, aicr.cli.preflight_serve\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_by_default_both_families_are_listened_on() -> None:
    """Pods of a cluster with IPv6 alone are reached as well; one address is one address."""
    with server.listen("", 0, "x") as everywhere:
        port = everywhere.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            pass
        if socket.has_dualstack_ipv6():
            with socket.create_connection(("::1", port)):
                pass
    with server.listen("127.0.0.1", 0, "x") as one:
        assert one.getsockname()[0] == "127.0.0.1"
