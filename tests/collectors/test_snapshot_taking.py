"""Taking a snapshot: all measurements in one document, and nothing lost in silence."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.collectors import clusters
from tests.collectors.machines import FakeCommands, gpus, linux, machine, smi
from tests.kube.fakeapi import FakeApi, refuse
from tests.kube.loopback import cluster, run

from aicr.collectors import local, os_files, taking
from aicr.collectors.limits import Limits
from aicr.collectors.local import LocalOptions
from aicr.collectors.readings import Collected, Missing
from aicr.collectors.taking import Plan, Taken
from aicr.constraints import paths
from aicr.errors import INTERNAL, INVALID_REQUEST, NOT_FOUND, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.snapshot import document, fingerprint
from aicr.yamlio.write import dump

WHEN = datetime(2026, 11, 30, 12, 0, tzinfo=timezone(timedelta(hours=2)))


def now() -> datetime:
    """A clock that stands still."""
    return WHEN


def take(plan: Plan) -> Taken:
    """Take a snapshot of a machine without a cluster."""
    return asyncio.run(taking.take(plan, now=now, version="1.2.3"))


def of_node(
    root: Path, api: FakeApi, *objects: Any, commands: FakeCommands | None = None, **more: Any
) -> Taken:
    """Take a snapshot of a machine that is the node gpu-1 of a cluster."""

    async def body() -> Taken:
        async with cluster(api) as (fake, client):
            await clusters.fill(fake, clusters.node(), *objects)
            plan = Plan(machine(root, commands), client, node="gpu-1", **more)
            return await taking.take(plan, now=now, version="1.2.3")

    return run(body())


def test_a_node_is_measured_whole_and_leads_to_a_fingerprint(tmp_path: Path) -> None:
    """What is written reads as a snapshot, and its criteria are those of the machine."""
    linux(tmp_path)
    gpus(tmp_path, 8)
    taken = of_node(
        tmp_path, clusters.server(), clusters.pod("a", "app:1"), commands=smi("h100.xml")
    )
    snapshot, notices = document.load(dump(taken.document), "snapshot")
    assert notices == []
    assert snapshot["metadata"] == {
        "timestamp": "2026-11-30T10:00:00Z",
        "version": "1.2.3",
        "source-node": "gpu-1",
    }
    assert [one["type"] for one in snapshot["measurements"]] == [
        *("K8s", "GPU", "OS", "NodeTopology", "NetworkTopology")
    ]
    found = fingerprint.fingerprint(snapshot)
    assert {key: found[key] for key in ("service", "accelerator", "os", "nodes")} == {
        "service": "eks",
        "accelerator": "h100",
        "os": "ubuntu",
        "nodes": 1,
    }
    # The one thing that this machine has not is systemd, and the document says so.
    assert [one["reading"] for one in snapshot["notCollected"]] == ["SystemD"]
    assert snapshot["notCollected"][0]["code"] == NOT_FOUND


def test_the_same_machine_gives_the_same_snapshot(tmp_path: Path) -> None:
    """Whatever order collectors end in (decision 3)."""
    linux(tmp_path)
    plan = Plan(machine(tmp_path), None, host="h")
    assert take(plan).document == take(plan).document


@pytest.mark.covers("A9")
def test_a_reading_that_was_not_taken_is_an_error_that_names_node_and_collector(
    tmp_path: Path,
) -> None:
    """A constraint on it neither passes nor skips."""
    linux(tmp_path)
    snapshot = take(Plan(machine(tmp_path), None, host="n1")).document
    with pytest.raises(AicrError) as caught:
        paths.extract(snapshot, paths.parse("GPU.smi.driver-version"))
    assert caught.value.code == NOT_FOUND
    assert "of node n1" in caught.value.hint
    assert "the GPU collector" in caught.value.hint


def test_a_forbidden_node_list_is_named_and_the_rest_is_there(tmp_path: Path) -> None:
    """One refusal costs one measurement; code and reason are in the document."""
    linux(tmp_path)
    api = clusters.server()
    api.next(r"GET /api/v1/nodes\?", refuse(403, "Forbidden", "no listing of nodes"))
    taken = of_node(tmp_path, api)
    types = [one["type"] for one in taken.document["measurements"]]
    assert "NodeTopology" not in types
    assert "K8s" in types
    entry = next(one for one in taken.document["notCollected"] if one["reading"] == "NodeTopology")
    assert entry["code"] == UNAUTHORIZED
    assert "no listing of nodes" in entry["reason"]


def test_a_required_reading_that_lacks_refuses_the_snapshot(tmp_path: Path) -> None:
    """The error has its code, its hint, and names what is missing."""
    linux(tmp_path)
    api = clusters.server()
    api.next(r"GET /api/v1/nodes\?", refuse(403, "Forbidden", "no listing of nodes"))
    with pytest.raises(AicrError) as caught:
        of_node(tmp_path, api, required=taking.REQUIRED_OF_CLUSTER)
    assert caught.value.code == UNAUTHORIZED
    assert caught.value.message.startswith("a snapshot must not lack NodeTopology: ")
    assert caught.value.context["missing"] == ["NodeTopology"]


@pytest.mark.parametrize(
    ("missing", "required", "refused"),
    [
        ("K8s", {"K8s.server"}, True),
        ("K8s.server", {"K8s"}, True),
        ("K8s.server", {"K8s.server"}, True),
        ("K8s.image", {"K8s.server"}, False),
        ("K8s.serverless", {"K8s.server"}, False),
        ("OS.release", set(), False),
    ],
)
def test_a_part_of_what_is_required_and_the_whole_of_it_count(
    missing: str, required: set[str], refused: bool
) -> None:
    """Names are compared part by part."""
    taken = Taken({}, (Missing(missing, AicrError(INTERNAL, "broken")),))
    if refused:
        with pytest.raises(AicrError, match="must not lack"):
            taking.require(taken, required)
    else:
        taking.require(taken, required)


@pytest.mark.parametrize(("count", "refused"), [(0, True), (1, False)])
def test_a_gpu_that_is_required_must_be_there(tmp_path: Path, count: int, refused: bool) -> None:
    """--require-gpu fails on a machine without one."""
    linux(tmp_path)
    gpus(tmp_path, count)
    plan = Plan(machine(tmp_path), None, host="h", require_gpu=True)
    if refused:
        with pytest.raises(AicrError) as caught:
            take(plan)
        assert caught.value.code == NOT_FOUND
        assert "a GPU is required and none was found" in caught.value.message
    else:
        take(plan)


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (KeyError("x"), INTERNAL, "failed unexpectedly: KeyError"),
        (TimeoutError(), TIMEOUT, "nothing was collected within 10 s"),
        (AicrError(UNAUTHORIZED, "no"), UNAUTHORIZED, "no"),
    ],
    ids=["bug", "late", "refused"],
)
def test_a_collector_that_fails_as_a_whole_is_named_as_a_whole(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
    code: str,
    words: str,
) -> None:
    """A bug, a wedged file system and a refusal cost one measurement each."""

    def fail(files: object) -> Collected:
        raise failure

    monkeypatch.setattr(os_files, "collect", fail)
    linux(tmp_path)
    taken = take(Plan(machine(tmp_path), None, host="h"))
    (missing,) = [each for each in taken.missing if each.name == "OS"]
    assert missing.error.code == code
    assert words in missing.error.message
    assert "GPU" in [one["type"] for one in taken.document["measurements"]]


def test_a_collector_that_takes_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of the machine's collectors is one of ours (recipe spec 8.4)."""
    from aicr.collectors import systemd

    async def never(files: object) -> Collected:
        await asyncio.Event().wait()
        return Collected("SystemD")

    monkeypatch.setattr(systemd, "collect", never)
    linux(tmp_path)
    taken = take(Plan(machine(tmp_path), None, host="h", limits=Limits(machine=0.05)))
    assert [each.error.code for each in taken.missing if each.name == "SystemD"] == [TIMEOUT]


def test_the_limits_are_those_of_the_specification() -> None:
    """10 s, 60 s for Kubernetes, 90 s for all nodes, 5 minutes for the agent."""
    limits = Limits()
    assert (limits.machine, limits.kubernetes, limits.topology, limits.agent) == (10, 60, 90, 300)
    assert Limits.from_environment({"AICR_TIMEOUT_FACTOR": "0.1"}).topology == pytest.approx(9)
    with pytest.raises(AicrError):
        Limits.from_environment({"AICR_TIMEOUT_FACTOR": "soon"})


def test_talos_is_told_by_its_node(tmp_path: Path) -> None:
    """No files and no units are looked for on a node that says it runs Talos."""
    linux(tmp_path)
    node = clusters.node()
    node["status"]["nodeInfo"]["osImage"] = "Talos (v1.11.2)"
    taken = of_node(tmp_path, clusters.server(), node)
    release = paths.find_subtype(taken.document, "OS", "release") or {}
    assert release["data"]["ID"] == "talos"
    assert "SystemD" not in str(taken.document)


def snapshot_here(
    options: LocalOptions, environ: dict[str, str]
) -> tuple[Taken | AicrError, list[str]]:
    """What the command does without an agent."""
    said: list[str] = []
    try:
        return asyncio.run(local.snapshot(options, environ, say=said.append, now=now)), said
    except AicrError as error:
        return error, said


def test_without_a_cluster_this_machine_alone_is_measured(tmp_path: Path) -> None:
    """And that is said."""
    linux(tmp_path)
    options = LocalOptions(root=tmp_path, commands=FakeCommands())
    taken, said = snapshot_here(options, {})
    assert isinstance(taken, Taken)
    assert said == ["no cluster is configured: only this machine is measured"]
    assert "K8s" not in [one["type"] for one in taken.document["measurements"]]
    assert "there is no NVIDIA GPU on this machine" in taken.remarks


def test_a_kubeconfig_that_is_not_there_is_an_error_and_not_no_cluster(tmp_path: Path) -> None:
    """Somebody asked for a cluster."""
    linux(tmp_path)
    options = LocalOptions(root=tmp_path, kubeconfig=str(tmp_path / "none"))
    error, _ = snapshot_here(options, {})
    assert isinstance(error, AicrError)
    assert error.code in (INVALID_REQUEST, NOT_FOUND)


@pytest.mark.parametrize(
    ("options", "environ", "applies"),
    [
        (LocalOptions(cluster=False, kubeconfig="x"), {"KUBECONFIG": "y"}, False),
        (LocalOptions(cluster=True), {}, True),
        (LocalOptions(context="prod"), {}, True),
        (LocalOptions(), {"KUBECONFIG": "y"}, True),
        (LocalOptions(), {"HOME": "/nonexistent"}, False),
        # pathlib raises for it, as it does for a home without permission.
        (LocalOptions(), {"HOME": "/" + "a" * 300}, False),
        (LocalOptions(), {}, False),
    ],
)
def test_a_cluster_applies_when_one_is_named(
    options: LocalOptions, environ: dict[str, str], applies: bool
) -> None:
    """Flags before environment before the standard file."""
    assert local.cluster_applies(options, environ) is applies


def _on(name: str, root: Path, partial: bool) -> Taken | AicrError:
    async def body() -> Taken | AicrError:
        async with cluster(clusters.server()) as (fake, client):
            await clusters.fill(fake, clusters.node())
            options = LocalOptions(root=root, commands=FakeCommands(), partial=partial)
            try:
                return await local._take(options, {"NODE_NAME": name}, client, now)
            except AicrError as error:
                return error

    return run(body())


def test_a_machine_that_is_no_node_of_its_cluster_is_refused(tmp_path: Path) -> None:
    """A laptop's operating system must not become the cluster's; --partial takes it all the same."""
    linux(tmp_path)
    refused = _on("laptop", tmp_path, False)
    assert isinstance(refused, AicrError)
    assert (refused.code, refused.context["missing"]) == (NOT_FOUND, ["K8s.node"])
    assert "--agent" in refused.hint
    partial = _on("laptop", tmp_path, True)
    assert isinstance(partial, Taken)
    assert paths.find_subtype(partial.document, "K8s", "node") is None
    assert isinstance(_on("gpu-1", tmp_path, False), Taken)
