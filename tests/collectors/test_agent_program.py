"""The program of the agent's pod: what it reads from its environment, what it leaves, how it fails."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.collectors import clusters
from tests.collectors.machines import linux
from tests.kube.fakeapi import FakeApi, refuse, serving

from aicr.collectors import main as program
from aicr.collectors import staging
from aicr.errors import EXIT_STATUS, INVALID_REQUEST, NOT_FOUND, UNAUTHORIZED

NAME = "aicr-agent-snapshot-x"


class Ran:
    """How the program ended."""

    def __init__(self, status: int, message: str, api: FakeApi, err: str, out: str) -> None:
        self.status, self.message, self.api = status, message, api
        self.log = [json.loads(line) for line in err.splitlines()]
        self.out = out

    def snapshot(self) -> dict[str, Any]:
        """The snapshot that was staged."""
        table = self.api.objects["configmaps"]
        return staging.unpack([table["ns", NAME]])


def run(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    api: FakeApi | None = None,
    **environ: str,
) -> Ran:
    """Run the program on a Linux machine that is node gpu-1 of a cluster."""
    linux(tmp_path / "host")
    message = tmp_path / "message"
    fake = api or clusters.server()
    status = 0

    async def body() -> None:
        nonlocal status
        await clusters.fill(fake, clusters.node())
        async with serving(fake.handle) as server:
            kubeconfig = tmp_path / "kubeconfig"
            kubeconfig.write_text(
                json.dumps(
                    {
                        "apiVersion": "v1",
                        "kind": "Config",
                        "current-context": "c",
                        "clusters": [{"name": "c", "cluster": {"server": server}}],
                        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                        "users": [{"name": "u", "user": {"token": "t"}}],
                    }
                )
            )
            given = {
                "KUBECONFIG": str(kubeconfig),
                "NODE_NAME": "gpu-1",
                "AICR_HOST_ROOT": str(tmp_path / "host"),
                "AICR_STAGING": NAME,
                "AICR_NAMESPACE": "ns",
                "AICR_RUN_ID": "r",
                "AICR_TERMINATION_LOG": str(message),
                # No collector is given up because this machine is busy.
                "AICR_TIMEOUT_FACTOR": "10",
                **environ,
            }
            status = await asyncio.to_thread(program.main, given)

    asyncio.run(asyncio.wait_for(body(), 120))
    printed = capsys.readouterr()
    said = message.read_text() if message.exists() else ""
    return Ran(status, said, fake, printed.err, printed.out)


def test_the_snapshot_is_left_in_a_config_map_of_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the run's labels, and nothing on stdout."""
    ended = run(tmp_path, capsys)
    assert (ended.status, ended.message, ended.out) == (0, "", "")
    assert ended.snapshot()["metadata"]["source-node"] == "gpu-1"
    stored = ended.api.objects["configmaps"]["ns", NAME]
    assert stored["metadata"]["labels"]["aicr.run/run-id"] == "r"
    assert stored["metadata"]["labels"]["app.kubernetes.io/component"] == "snapshot-agent"


def test_the_log_is_json_with_the_agreed_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was not collected is logged in the original's words (decision 45, recipe spec 8.4)."""
    ended = run(tmp_path, capsys)
    for line in ended.log:
        assert {"time", "level", "msg", "module", "version"} <= set(line)
    assert "failed to collect SystemD - skipping" in [line["msg"] for line in ended.log]


def test_a_second_start_of_the_pod_replaces_what_the_first_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A container that ran twice is no conflict."""
    first = run(tmp_path, capsys)
    again = run(tmp_path, capsys, first.api)
    assert again.status == 0, again.log
    assert again.snapshot()["kind"] == "Snapshot"


def test_without_staging_the_snapshot_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a look by hand."""
    ended = run(tmp_path, capsys, AICR_STAGING="")
    assert ended.status == 0
    assert json.loads(ended.out)["kind"] == "Snapshot"


def test_a_failure_is_a_status_a_message_and_a_log_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The termination message begins with the code, so that the caller can have it back."""
    api = clusters.server()
    api.next(r"GET /api/v1/nodes\?", refuse(403, "Forbidden", "no"))
    ended = run(tmp_path, capsys, api)
    assert ended.status == EXIT_STATUS[UNAUTHORIZED]
    assert ended.message.startswith("[UNAUTHORIZED] a snapshot must not lack NodeTopology")
    assert ended.log[-1]["level"] == "ERROR"
    assert "configmaps" not in ended.api.objects


def test_partial_takes_what_can_be_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The snapshot says what it lacks."""
    api = clusters.server()
    api.next(r"GET /api/v1/nodes\?", refuse(403, "Forbidden", "no"))
    ended = run(tmp_path, capsys, api, AICR_PARTIAL="true")
    assert ended.status == 0
    lacking = [one["reading"] for one in ended.snapshot()["notCollected"]]
    assert lacking == ["SystemD", "NodeTopology"]


def test_without_the_hosts_files_only_the_cluster_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pod's own files are no node's; what could not be seen is named."""
    ended = run(tmp_path, capsys, AICR_HOST_ROOT="")
    assert ended.status == 0, ended.log
    snapshot = ended.snapshot()
    assert {one["type"] for one in snapshot["measurements"]} == {"K8s", "NodeTopology"}
    missing = {one["reading"] for one in snapshot["notCollected"]}
    assert {"OS.release", "GPU.hardware", "SystemD"} <= missing


@pytest.mark.parametrize(
    ("environ", "code"),
    [
        ({"AICR_MAX_NODES_PER_ENTRY": "many"}, INVALID_REQUEST),
        ({"AICR_REQUIRE_GPU": "true"}, NOT_FOUND),
        ({"NODE_NAME": "other"}, NOT_FOUND),
        ({"KUBECONFIG": "/nonexistent"}, INVALID_REQUEST),
        ({"AICR_TIMEOUT_FACTOR": "x"}, INVALID_REQUEST),
    ],
    ids=["number", "no-gpu", "no-node", "no-cluster", "factor"],
)
def test_what_cannot_be_done_ends_with_its_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], environ: dict[str, str], code: str
) -> None:
    """Never with a snapshot."""
    ended = run(tmp_path, capsys, None, **environ)
    assert ended.status == EXIT_STATUS[code], ended.log
    assert ended.message.startswith(f"[{code}]")
    assert "configmaps" not in ended.api.objects


def test_no_place_for_a_message_is_no_other_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is still that of the error."""
    ended = run(tmp_path, capsys, NODE_NAME="other", AICR_TERMINATION_LOG=str(tmp_path / "a/b"))
    assert ended.status == EXIT_STATUS[NOT_FOUND]
    assert ended.log[-1]["msg"].startswith("no termination message could be left")
