"""preflight-nccl-allreduce in real pods: gangs that the real controller forms, files that a kubelet mounts.

Where the tests' interpreter sees torch the gang runs its benchmark with gloo; elsewhere it ends when it has
met its file, with NCCL "not started". Both go through the whole gang stage.
"""

from __future__ import annotations

import importlib.util

import pytest
from tests.cluster.gang_replicas import (
    CHECK,
    POD_GROUP_CRD,
    VOLCANO,
    Replica,
    becomes_complete,
    grant,
    install,
    member,
    volcano_group,
)
from tests.cluster.workloads import container, pod_becomes
from tests.controlplane.client import Client, Document
from tests.controlplane.plane import ControlPlane

from aicr.preflight.gang.naming import config_map_name

pytestmark = pytest.mark.cluster
NAMES = [f"w-{n}" for n in range(3)]
TORCH = importlib.util.find_spec("torch") is not None
#: Members of the gangs that form; with torch the benchmark itself runs in each size.
SIZES = (2, 4, 8) if TORCH else (3,)


#: Passes once so many members stand in the mounted files.
REGISTERED = """
while [ "$(grep -c . $GANG_CONFIG_DIR/peers 2>/dev/null)" != %d ]; do sleep 0.2; done
"""


def with_check(
    document: Document, timeout: str, factor: str = "0.5", registered: int = 0
) -> Document:
    """An admitted pod whose waiting container is the product's check instead.

    With *registered* it begins when so many members are, so that its time does not run out before.
    """
    spec = document["spec"]
    (waits,) = [one for one in spec["initContainers"] if one["name"] == CHECK]
    settings = {
        "GANG_TIMEOUT_SECONDS": timeout,
        "NPROCS_PER_NODE": "1",
        "ALLREDUCE_BACKEND": "gloo",
        "MESSAGE_SIZES": "1M",
        "BW_THRESHOLD_GBPS": "0.0001",
        "PLATFORM_CONNECTOR_SOCKET": "/run/none.sock",
        "AICR_LOG_FORMAT": "text",
        "AICR_TIMEOUT_FACTOR": factor,
        "OMP_NUM_THREADS": "1",
    }
    env = [one for one in waits["env"] if one["name"] not in settings]
    env += [{"name": key, "value": value} for key, value in settings.items()]
    check = {key: value for key, value in waits.items() if key not in ("command", "args")}
    check |= {
        "image": "aicr.local/preflight-nccl-allreduce:dev",
        "imagePullPolicy": "Never",
        "env": env,
    }
    rest = [one for one in spec["initContainers"] if one["name"] != CHECK]
    if registered:
        first = container(REGISTERED % registered, name="registered")
        rest.append({**first, "env": waits["env"], "volumeMounts": waits["volumeMounts"]})
    return {
        **document,
        "spec": {**spec, "initContainers": [*rest, check], "restartPolicy": "Never"},
    }


def code_of(found: Document) -> int:
    """Exit code of the check."""
    for status in found["status"]["initContainerStatuses"]:
        if status["name"] == CHECK:
            code: int = status["state"]["terminated"]["exitCode"]
            return code
    raise AssertionError(found["status"])


@pytest.mark.covers("P-132", "P-196")
@pytest.mark.parametrize("size", SIZES)
def test_a_gang_that_the_controller_forms_is_found_by_its_checks(
    plane: ControlPlane, api: Client, namespace: str, size: int
) -> None:
    """Each check finds its rank in its mounted file; an event that is not sent shows as a 4."""
    names = [f"w-{n}" for n in range(size)]
    install(api, POD_GROUP_CRD)
    with Replica(grant(api, plane, namespace, VOLCANO), namespace, discovery=VOLCANO) as replica:
        volcano_group(api, namespace, size)
        for name in names:
            admitted = replica.admit(member(name), namespace)
            api.create(with_check(admitted, "600"), namespace)
        becomes_complete(api, namespace, config_map_name(f"volcano-{namespace}-train"), 1, names)
        for rank, name in enumerate(names):
            # There is no connector on these nodes: whoever has an event to send ends with 4.
            sends = rank == 0 or not TORCH
            found = pod_becomes(api, namespace, name, "Failed" if sends else "Running", 240)
            log = api.logs(namespace, name, container=CHECK)
            assert f"generation=1 rank={rank} nodes={size}" in log
            assert code_of(found) == (4 if sends else 0)
            if not TORCH:
                assert "torch.distributed is not installed" in log


@pytest.mark.covers("P-195", "P-200", "J14")
def test_a_gang_that_lacks_a_member_ends_in_a_timeout(
    plane: ControlPlane, api: Client, namespace: str
) -> None:
    """Exit 3 in the pod's status; the log says that a member never came."""
    install(api, POD_GROUP_CRD)
    with Replica(grant(api, plane, namespace, VOLCANO), namespace, discovery=VOLCANO) as replica:
        volcano_group(api, namespace, 3)
        for name in NAMES[:2]:
            admitted = replica.admit(member(name), namespace)
            api.create(with_check(admitted, "60", "0.2", len(NAMES[:2])), namespace)
        for name in NAMES[:2]:
            found = pod_becomes(api, namespace, name, "Failed", 240)
            assert code_of(found) == 3
            log = api.logs(namespace, name, container=CHECK)
            assert "Gang formation timeout after 60s: 2 of 3 members registered" in log
            assert "missing: 1 that no pod exists for" in log
