"""The snapshot agent on a real control plane: from the Job to a recipe, and what it leaves: nothing."""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import aicr, start
from tests.collectors.machines import UBUNTU
from tests.controlplane.client import Client, eventually
from tests.controlplane.plane import ControlPlane

from aicr.collectors import agent, agent_objects
from aicr.collectors.agent_options import AgentOptions
from aicr.collectors.limits import Limits
from aicr.constraints import paths
from aicr.errors import SERVICE_UNAVAILABLE, TIMEOUT, UNAUTHORIZED, AicrError
from aicr.kube import connect, kinds

pytestmark = pytest.mark.cluster

NODE = {"kubernetes.io/hostname": "runs-1"}
QUICK = Limits(agent=120, poll=0.2, unschedulable=1, cleanup=60)


@pytest.fixture(autouse=True)
def ubuntu(plane: ControlPlane) -> None:
    """Nodes of the plane have an operating system."""
    for name in ("runs-1", "runs-2"):
        place = plane.folder / "nodes" / name / "disk/etc/os-release"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(UBUNTU)


def options(namespace: str, **more: Any) -> AgentOptions:
    """An agent on a node that runs pods."""
    given: dict[str, Any] = {"namespace": namespace, "node_selector": NODE, "times": QUICK}
    return AgentOptions(**{**given, **more})


def capture(kubeconfig: Path, asked: AgentOptions, said: list[str] | None = None) -> dict[str, Any]:
    """Take a snapshot as the owner of *kubeconfig*."""

    async def body() -> dict[str, Any]:
        async with connect(kubeconfig=str(kubeconfig), environ={}) as cluster:
            return await agent.capture(
                cluster, asked, say=(said if said is not None else []).append
            )

    return asyncio.run(asyncio.wait_for(body(), 240))


def left_over(plane: ControlPlane, namespace: str) -> list[str]:
    """Objects of any agent run, seen through another client."""

    async def body() -> list[str]:
        found = []
        async with connect(kubeconfig=str(plane.kubeconfig), environ={}) as cluster:
            for kind in agent._KINDS.values():
                place = namespace if kind.namespaced else ""
                labels = {"app.kubernetes.io/component": agent_objects.COMPONENT}
                for one in await cluster.list(kind, namespace=place, labels=labels):
                    if "deletionTimestamp" not in one["metadata"]:
                        found.append(f"{kind.kind} {one['metadata']['name']}")
        return found

    return asyncio.run(body())


def reading(snapshot: dict[str, Any], path: str) -> str:
    """A reading as constraints see it."""
    return paths.extract(snapshot, paths.parse(path))


def test_an_agent_measures_its_node_and_its_cluster(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """OS of the node, version of the server, labels of all nodes; nothing stays behind."""
    said: list[str] = []
    snapshot = capture(plane.kubeconfig, options(namespace), said)
    assert snapshot["metadata"]["source-node"] == "runs-1"
    assert reading(snapshot, "OS.release.ID") == "ubuntu"
    assert reading(snapshot, "OS.sysctl./proc/sys/kernel/ostype") == "Linux"
    assert reading(snapshot, "K8s.server.version").startswith("v1.")
    assert reading(snapshot, "K8s.node.source-node") == "runs-1"
    assert int(reading(snapshot, "NodeTopology.summary.node-count")) == len(api.list("Node"))
    assert reading(snapshot, "GPU.hardware.gpu-present") == "false"
    assert [one["reading"] for one in snapshot["notCollected"]] == ["SystemD"]
    assert said[0].startswith("snapshot agent: run ")
    assert left_over(plane, namespace) == []


def test_a_recipe_is_made_from_the_snapshot_of_the_command(
    plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """`aicr snapshot --agent` and then `aicr recipe -s`, with what only flags can say."""
    file = tmp_path / "snapshot.yaml"
    taken = aicr(
        *("snapshot", "--agent", "--kubeconfig", plane.kubeconfig, "--namespace", namespace),
        *("--node-selector", "kubernetes.io/hostname=runs-1", "-o", file),
    )
    assert taken.status == 0, taken.err
    assert "warning: SystemD could not be told" in taken.err
    made = aicr(
        *("recipe", "-s", file, "--service", "eks", "--accelerator", "h100"),
        *("--intent", "training", "--format", "json"),
    )
    assert made.status == 0, made.err
    assert "os=ubuntu" in made.err
    assert json.loads(made.out)["criteria"]["os"] == "ubuntu"


def test_a_snapshot_goes_into_a_config_map_and_is_read_from_there(
    plane: ControlPlane, namespace: str
) -> None:
    """cm:// as output of one command and input of the next."""
    target = f"cm://{namespace}/aicr-snapshot"
    taken = aicr(
        *("snapshot", "--kubeconfig", plane.kubeconfig, "--namespace", namespace),
        *("--node-selector", "kubernetes.io/hostname=runs-2", "-o", target),
    )
    assert taken.status == 0, taken.err
    assert "the agent takes the snapshot, because of --namespace, --node-selector" in taken.err

    async def stored() -> dict[str, Any]:
        async with connect(kubeconfig=str(plane.kubeconfig), environ={}) as cluster:
            return await cluster.get(kinds.CONFIG_MAP, "aicr-snapshot", namespace=namespace)

    data = asyncio.run(stored())["data"]
    assert list(data) == ["snapshot.yaml"]
    assert "source-node: runs-2" in data["snapshot.yaml"]
    assert left_over(plane, namespace) == []


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"image": "aicr.local/not-there:v1"}, SERVICE_UNAVAILABLE, "ErrImageNeverPull"),
        ({"node_selector": {"no": "such"}}, TIMEOUT, "finds no node"),
        ({"require_gpu": True}, "NOT_FOUND", "a GPU is required and none was found"),
        ({"image": "test.local/pause", "times": replace(QUICK, agent=2)}, TIMEOUT, "within 2 s"),
    ],
    ids=["no-image", "no-node", "no-gpu", "too-late"],
)
def test_an_agent_that_cannot_deliver_says_why_and_leaves_nothing(
    plane: ControlPlane, namespace: str, change: dict[str, Any], code: str, words: str
) -> None:
    """The cause that Kubernetes or the agent gives, within seconds, and everything removed."""
    with pytest.raises(AicrError) as caught:
        capture(plane.kubeconfig, options(namespace, **change))
    assert caught.value.code == code
    assert words in caught.value.message
    assert left_over(plane, namespace) == []


def test_missing_permissions_are_all_named_before_anything_is_made(
    plane: ControlPlane, namespace: str
) -> None:
    """A user who may do nothing learns the whole list at once."""
    with pytest.raises(AicrError) as caught:
        capture(plane.kubeconfig_for("nobody-special"), options(namespace))
    assert caught.value.code == UNAUTHORIZED
    missing = caught.value.context["missing"]
    assert f"create jobs.batch in namespace {namespace}" in missing
    assert "delete clusterrolebindings.rbac.authorization.k8s.io in the whole cluster" in missing
    assert left_over(plane, namespace) == []


def test_an_account_that_exists_is_used_and_nothing_is_granted_to_it(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """Its own rights decide: without any, the agent's error is UNAUTHORIZED."""
    api.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mine"}}, namespace
    )
    said: list[str] = []
    with pytest.raises(AicrError) as caught:
        capture(plane.kubeconfig, options(namespace, service_account="mine"), said)
    assert caught.value.code == UNAUTHORIZED
    assert "the agent failed" in caught.value.message
    assert any(line.startswith("agent: {") for line in said)
    assert left_over(plane, namespace) == []
    assert api.get("ServiceAccount", "mine", namespace)


def test_no_cleanup_leaves_the_run_and_says_how_to_remove_it(
    plane: ControlPlane, namespace: str
) -> None:
    """All objects carry the run's id, and the command in the message removes them."""
    said: list[str] = []
    run = "20261130-100000-0123456789abcdef"
    capture(plane.kubeconfig, options(namespace, cleanup=False, run_id=run), said)
    left = left_over(plane, namespace)
    assert {one.split()[0] for one in left} == {
        *("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
        *("Job", "ConfigMap"),
    }
    assert all(run in one for one in left)
    assert f"kubectl delete clusterrole,clusterrolebinding -l aicr.run/run-id={run}" in said[-1]

    async def remove() -> None:
        async with connect(kubeconfig=str(plane.kubeconfig), environ={}) as cluster:
            for one in left:
                kind, name = one.split()
                place = namespace if agent._KINDS[kind].namespaced else ""
                await cluster.delete(agent._KINDS[kind], name, namespace=place)

    asyncio.run(remove())


def test_two_runs_at_once_do_not_meet(plane: ControlPlane, namespace: str) -> None:
    """Each gets the snapshot of its own node and removes its own objects."""

    async def body() -> list[dict[str, Any]]:
        async with connect(kubeconfig=str(plane.kubeconfig), environ={}) as cluster:
            asked = [
                options(namespace, node_selector={"kubernetes.io/hostname": name})
                for name in ("runs-1", "runs-2")
            ]
            return list(await asyncio.gather(*(agent.capture(cluster, one) for one in asked)))

    one, two = asyncio.run(asyncio.wait_for(body(), 240))
    assert one["metadata"]["source-node"] == "runs-1"
    assert two["metadata"]["source-node"] == "runs-2"
    assert left_over(plane, namespace) == []


def test_ctrl_c_while_waiting_removes_everything(plane: ControlPlane, namespace: str) -> None:
    """Exit 130; neither Job nor roles stay behind."""
    program = start(
        *("snapshot", "--agent", "--kubeconfig", plane.kubeconfig, "--namespace", namespace),
        *("--node-selector", "kubernetes.io/hostname=runs-1", "--image", "test.local/pause"),
    )
    try:
        eventually(
            "the agent's Job", lambda: "Job " in " ".join(left_over(plane, namespace)) or None
        )
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=120)
    finally:
        if program.poll() is None:
            program.kill()
            program.communicate()
    assert program.returncode == 130, err
    assert "Traceback" not in err
    assert left_over(plane, namespace) == []


def test_the_doctor_sees_what_a_user_may_do(plane: ControlPlane) -> None:
    """An administrator's commands would work, a stranger lacks permissions by name."""
    admin = aicr("doctor", "validate", "--kubeconfig", plane.kubeconfig)
    assert admin.status == 0, admin.out
    stranger = aicr(
        "doctor", "snapshot", "check-health", "--kubeconfig", plane.kubeconfig_for("stranger")
    )
    assert stranger.status == 8
    assert "create jobs.batch in namespace default" in stranger.out
