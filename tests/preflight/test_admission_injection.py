"""What an injected container, and the patch around it, look like (preflight spec 11.4)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.preflight.admission_cases import (
    ALLREDUCE,
    DCGM,
    GANG,
    GPU,
    LOOPBACK,
    SOCKET,
    TOKEN_VOLUME,
    container,
    entry,
    gangs,
    gpu_container,
    names,
    pod,
    prepared,
    send,
    without_gangs,
)

from aicr.errors import AicrError
from aicr.preflight.admission.globs import matcher
from aicr.preflight.admission.memo import Memo
from aicr.preflight.admission.prepared import prepare
from aicr.preflight.config import parse


@pytest.mark.covers("P11-38", "P-020", "P-047", "P-048", "P-049", "P-050", "P-002", "P-003", "I7")
def test_the_patch_of_a_minimal_pod_is_complete_and_nothing_else() -> None:
    """One op an array that the pod lacks, in the order of spec 2.7; the env in the order of 2.5.1."""
    made = {
        "metadata": {"generateName": "job-"},
        "spec": {"containers": [gpu_container()]},
    }
    reply = send(made)
    assert reply.paths == ["/spec/initContainers", "/spec/volumes"]
    assert {operation["op"] for operation in reply.patch} == {"add"}
    assert reply.order == [DCGM, LOOPBACK, ALLREDUCE]
    assert reply.pod["spec"]["volumes"] == [SOCKET, TOKEN_VOLUME]
    for name in reply.order:
        # An ordinary init container: the workload starts once it has passed, and only then.
        assert "restartPolicy" not in reply.check(name)
        assert list(reply.env(name).items()) == [
            ("BW_THRESHOLD_GBPS", "100"),
            ("NODE_NAME", {"fieldRef": {"fieldPath": "spec.nodeName"}}),
            ("PLATFORM_CONNECTOR_SOCKET", "unix:///var/run/nvsentinel.sock"),
            ("PROCESSING_STRATEGY", "EXECUTE_REMEDIATION"),
            ("PLATFORM_CONNECTOR_TOKEN_PATH", "/var/run/secrets/connector/token"),
        ]
        assert reply.mounts(name) == [
            ("nvsentinel-socket", "/var/run"),
            ("nvsentinel-connector-token", "/var/run/secrets/connector"),
        ]
        assert reply.check(name)["resources"]["requests"] == {
            "cpu": "100m",
            "memory": "500Mi",
            GPU: "1",
        }


@pytest.mark.covers("P11-39", "P-031", "P-032", "P-034")
@pytest.mark.parametrize(
    ("placement", "order", "paths"),
    [
        ("append", ["setup", DCGM, LOOPBACK, ALLREDUCE], ["/spec/initContainers/-"] * 3),
        (
            "prepend",
            [DCGM, LOOPBACK, ALLREDUCE, "setup"],
            [f"/spec/initContainers/{i}" for i in range(3)],
        ),
    ],
)
def test_placement_decides_on_which_side_of_the_pods_own_they_stand(
    placement: str, order: list[str], paths: list[str]
) -> None:
    """Appended, what a provider sets up is there first; prepended, the checks gate everything."""
    made = pod(initContainers=[{"name": "setup", "image": "s"}])
    reply = send(made, without_gangs(initContainerPlacement=placement))
    assert reply.order == order
    assert reply.paths[:3] == paths


@pytest.mark.covers("I2", "P-032")
@pytest.mark.parametrize("placement", ["append", "prepend"])
def test_native_sidecars_and_fields_of_the_future_survive(placement: str) -> None:
    """The patch adds; nothing that the pod has is named in it, so nothing can be lost."""
    inits = [
        {"name": "proxy", "image": "p", "restartPolicy": "Always", "startupProbe": {"x": 1}},
        {"name": "setup", "image": "s", "restartPolicyRules": [{"action": "Restart"}]},
    ]
    made = pod({**gpu_container("8"), "futureField": {"a": 1}}, initContainers=inits)
    made["futureTop"] = [1]
    reply = send(made, without_gangs(initContainerPlacement=placement))
    kept = [c for c in reply.pod["spec"]["initContainers"] if c["name"] in ("proxy", "setup")]
    assert kept == inits
    assert reply.pod["spec"]["containers"] == made["spec"]["containers"]
    assert reply.pod["futureTop"] == [1]
    assert all(path.startswith(("/spec/initContainers/", "/spec/volumes")) for path in reply.paths)


@pytest.mark.covers(
    "P11-40", "P11-41", "P11-42", "P11-43", "P11-44", "P-053", "P-083", "P-086", "P-087"
)
def test_env_is_inherited_where_the_check_leaves_a_gap() -> None:
    """Template before injected before inherited; of the workload's, the first container wins."""
    checks = [
        entry(DCGM, env=[{"name": "PROCESSING_STRATEGY", "value": "STORE_ONLY"}]),
        entry(LOOPBACK),
        entry(ALLREDUCE, env=[{"name": "NCCL_DEBUG", "value": "INFO"}]),
    ]
    secret = {"secretKeyRef": {"name": "s", "key": "k"}}
    made = pod(
        gpu_container(
            "1",
            "c0",
            env=[
                {"name": "NCCL_DEBUG", "value": "TRACE"},
                {"name": "NCCL_IB_HCA", "value": "x"},
                {"name": "NCCL_TOKEN", "valueFrom": secret},
                {"name": "NCCL_REDUCE_OP", "value": "prod"},
                {"name": "OTHER", "value": "1"},
                {"name": "NODE_NAME", "value": "fake"},
            ],
            envFrom=[{"configMapRef": {"name": "gives-NCCL_X"}}],
        ),
        gpu_container("1", "c1", env=[{"name": "NCCL_IB_HCA", "value": "y"}]),
        initContainers=[{"name": "i", "image": "i", "env": [{"name": "NCCL_I", "value": "1"}]}],
    )
    reply = send(made, without_gangs(initContainers=checks))
    assert reply.env(DCGM)["PROCESSING_STRATEGY"] == "STORE_ONLY"
    assert [e["name"] for e in reply.check(DCGM)["env"]].count("PROCESSING_STRATEGY") == 1
    assert reply.env(ALLREDUCE)["NCCL_DEBUG"] == "INFO"
    assert reply.env(DCGM)["NCCL_DEBUG"] == reply.env(LOOPBACK)["NCCL_DEBUG"] == "TRACE"
    for name in (DCGM, LOOPBACK, ALLREDUCE):
        env = reply.env(name)
        assert env["NCCL_IB_HCA"] == "x"
        assert env["NCCL_TOKEN"] == secret
        assert env["NODE_NAME"] != "fake"
        assert not {"NCCL_X", "OTHER", "NCCL_I", "NCCL_REDUCE_OP"} & env.keys()


@pytest.mark.covers("P11-45", "P11-46", "P-085")
@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("[!N]*", "NCCL_X", True),
        ("[!N]*", "!x", True),
        ("[!N]*", "UCX", False),
        ("[^N]*", "NCCL_X", False),
        ("[^N]*", "UCX", True),
        ("[", "NCCL_X", False),
        ("[", "[", False),
        ("[]", "x", False),
        ("[a", "a", False),
        ("[-a]", "a", False),
        ("[a-]", "a", False),
        ("[c-a]", "b", False),
        ("[^c-a]", "b", True),
        ("[a-c]x", "bx", True),
        ("[\\]]", "]", True),
        ("a\\", "a", False),
        ("NCCL_*", "NCCL_IB/HCA", False),
        ("NCCL_*", "NCCL_", True),
        ("NCCL_*", "XNCCL_A", False),
        ("nccl_*", "NCCL_A", False),
        ("N?CL", "NCCL", True),
        ("N?CL", "N/CL", False),
        ("\\*", "*", True),
        ("\\*", "x", False),
        ("a.b", "axb", False),
        ("*", "", True),
        ("*\n", "a\n", True),
    ],
)
def test_patterns_are_gos_path_match(pattern: str, text: str, matches: bool) -> None:
    """`!` is a letter, `^` negates, `*` stops at a slash, a malformed pattern matches nothing."""
    assert bool(matcher([pattern])(text)) is matches
    assert bool(matcher(["never", pattern, "["])(text)) is matches


def test_no_pattern_matches_nothing() -> None:
    """Without patterns nothing is inherited."""
    assert not matcher([])("")


@pytest.mark.covers("P11-47", "P11-48", "P-084")
def test_mounts_are_inherited_once_a_volume_and_a_path() -> None:
    """The first mount of a volume counts; a path is mounted once, and /dev/shm is the workload's."""
    made = pod(
        gpu_container(
            volumeMounts=[
                {"name": "nccl-plugin", "mountPath": "/p", "readOnly": True, "subPath": "s"},
                {"name": "nccl-plugin", "mountPath": "/q"},
                {"name": "nccl-other", "mountPath": "/p/"},
                {"name": "dev-shm", "mountPath": "/dev/shm"},
                {"name": "data", "mountPath": "/data"},
            ]
        ),
        volumes=[
            {"name": name, "emptyDir": {}}
            for name in ("nccl-plugin", "nccl-other", "dev-shm", "data")
        ],
    )
    reply = send(made, prepared(), GANG)
    for name in (DCGM, LOOPBACK, ALLREDUCE):
        assert reply.mounts(name) == [
            ("nvsentinel-socket", "/var/run"),
            ("nvsentinel-connector-token", "/var/run/secrets/connector"),
            ("nccl-plugin", "/p"),
            ("dev-shm", "/dev/shm"),
            ("nvsentinel-preflight-gang-config", "/etc/preflight"),
        ]
        assert made["spec"]["containers"][0]["volumeMounts"][0] in reply.check(name)["volumeMounts"]
    assert "dshm" not in reply.volumes


def test_a_shared_memory_volume_of_any_name_is_reused() -> None:
    """Decision 24: what the workload has at /dev/shm is used, also when no pattern names it."""
    made = pod(
        gpu_container(volumeMounts=[{"name": "shm", "mountPath": "/dev/shm/"}]),
        volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    )
    reply = send(made, prepared(), GANG)
    assert ("shm", "/dev/shm/") in reply.mounts()
    assert "dshm" not in reply.volumes
    own = pod(
        gpu_container(volumeMounts=[{"name": "dshm", "mountPath": "/dev/shm"}]),
        volumes=[{"name": "dshm", "emptyDir": {"sizeLimit": "1Gi"}}],
    )
    assert names(send(own, prepared(), GANG).pod["spec"]["volumes"]).count("dshm") == 1


@pytest.mark.covers("P11-49", "P-054", "P-088")
def test_a_check_can_keep_its_environment_to_itself() -> None:
    """The two switches work for each check alone."""
    checks = [
        entry(DCGM, inheritUserEnv=False),
        entry(LOOPBACK, inheritUserVolumeMounts=False),
        entry(ALLREDUCE),
    ]
    made = pod(
        gpu_container(
            env=[{"name": "NCCL_A", "value": "1"}],
            volumeMounts=[{"name": "nccl-x", "mountPath": "/x"}],
        ),
        volumes=[{"name": "nccl-x", "emptyDir": {}}],
    )
    reply = send(made, without_gangs(initContainers=checks))
    assert ["NCCL_A" in reply.env(n) for n in (DCGM, LOOPBACK, ALLREDUCE)] == [False, True, True]
    assert [("nccl-x", "/x") in reply.mounts(n) for n in (DCGM, LOOPBACK, ALLREDUCE)] == [
        True,
        False,
        True,
    ]


@pytest.mark.covers("P-090", "P-136", "P-134", "P-051", "P-089")
def test_checks_of_a_gang_pod_get_the_gangs_env_mounts_and_volumes() -> None:
    """In the order of spec 2.5.1, 2.5.5 and 2.7, on every check of the pod."""
    config = prepared(
        **gangs(
            timeout="90s",
            masterPort=1234,
            configMapMountPath="/gang",
            ncclTopoConfigMap="topo",
            extraHostPathMounts=[
                {
                    "name": "libs",
                    "hostPath": "/o",
                    "mountPath": "/libs",
                    "hostPathType": "Directory",
                },
                {"name": "rw", "hostPath": "/r", "mountPath": "/rw", "readOnly": False},
            ],
            extraVolumeMounts=[
                {"name": "tcpxo", "mountPath": "/tcpxo"},
                {"name": "absent", "mountPath": "/absent"},
            ],
        )
    )
    made = pod(volumes=[{"name": "tcpxo", "emptyDir": {}}])
    reply = send(made, config, GANG)
    for name in (DCGM, LOOPBACK, ALLREDUCE):
        env = list(reply.env(name).items())
        assert env[5:] == [
            ("GANG_ID", "volcano-team-a-pg1"),
            ("GANG_CONFIG_DIR", "/gang"),
            ("GANG_TIMEOUT_SECONDS", "90"),
            ("MASTER_PORT", "1234"),
            ("POD_NAME", {"fieldRef": {"fieldPath": "metadata.name"}}),
            ("POD_IP", {"fieldRef": {"fieldPath": "status.podIP"}}),
            ("POD_UID", {"fieldRef": {"fieldPath": "metadata.uid"}}),
        ]
        mounts = {m["mountPath"]: m for m in reply.check(name)["volumeMounts"][2:]}
        assert list(mounts) == ["/gang", "/dev/shm", "/etc/nccl", "/libs", "/rw", "/tcpxo"]
        read_only = [mount.get("readOnly", False) for mount in mounts.values()]
        assert read_only == [True, False, True, True, False, True]
    assert reply.pod["spec"]["volumes"][1:] == [
        SOCKET,
        TOKEN_VOLUME,
        {
            "name": "nvsentinel-preflight-gang-config",
            "configMap": {"name": GANG.config_map, "optional": True},
        },
        {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
        {"name": "nccl-topo", "configMap": {"name": "topo", "optional": True}},
        {"name": "libs", "hostPath": {"path": "/o", "type": "Directory"}},
        {"name": "rw", "hostPath": {"path": "/r"}},
    ]
    assert any("no volume absent" in warning for warning in reply.warnings)


def test_what_is_mounted_already_is_not_mounted_again() -> None:
    """A path is mounted once; that the gang's settings lose to the operator's is said."""
    checks = [entry(DCGM, volumeMounts=[{"name": "own", "mountPath": "/etc/preflight/"}])]
    config = prepared(initContainers=checks)
    reply = send(pod(volumes=[{"name": "own", "emptyDir": {}}]), config, GANG)
    assert [path for _, path in reply.mounts()].count("/etc/preflight") == 0
    assert any("/etc/preflight is mounted already" in warning for warning in reply.warnings)


def test_the_workload_cannot_hide_the_gangs_directory() -> None:
    """An inherited mount gives way: without the directory the members never meet."""
    made = pod(
        gpu_container(volumeMounts=[{"name": "nccl-x", "mountPath": "/etc/preflight"}]),
        volumes=[{"name": "nccl-x", "emptyDir": {}}],
    )
    reply = send(made, prepared(), GANG)
    assert ("nvsentinel-preflight-gang-config", "/etc/preflight") in reply.mounts()
    assert ("nccl-x", "/etc/preflight") not in reply.mounts()


@pytest.mark.covers("P-137")
@pytest.mark.parametrize(
    ("mirror", "member", "claims"),
    [
        (None, GANG, [{"name": "own"}, {"name": "a"}, {"name": "b"}]),
        (False, GANG, [{"name": "own"}]),
        (None, None, [{"name": "own"}]),
    ],
)
def test_claims_of_a_gang_pod_are_mirrored_once(mirror: Any, member: Any, claims: Any) -> None:
    """By name, without requests; a claim that the operator names already is not repeated."""
    checks = [entry(DCGM, resources={"claims": [{"name": "own"}]})]
    config = prepared(initContainers=checks, **gangs(mirrorResourceClaims=mirror))
    made = pod(
        gpu_container(),
        resourceClaims=[{"name": n, "resourceClaimName": n} for n in ("own", "a", "b")],
    )
    assert send(made, config, member).check()["resources"]["claims"] == claims


@pytest.mark.covers("P11-55")
@pytest.mark.parametrize(
    ("template", "workload", "limits", "requests"),
    [
        pytest.param({}, {}, (None, None), ("100m", "500Mi"), id="defaults, no limit"),
        pytest.param(
            {"limits": {"memory": "256Mi"}}, {}, (None, "256Mi"), ("100m", "256Mi"), id="small limit"
        ),
        pytest.param(
            {"requests": {"cpu": 2, "memory": "1Gi"}}, {}, (None, None), ("2", "1Gi"), id="own requests"
        ),
        pytest.param(
            {},
            {"limits": {"cpu": "8", "memory": "64Gi"}, "requests": {"cpu": "8", "memory": "64Gi"}},
            ("8", "64Gi"),
            ("8", "64Gi"),
            id="guaranteed",
        ),
        pytest.param(
            {"limits": {"cpu": "4"}, "requests": {"cpu": "1"}},
            {"limits": {"cpu": "8000m", "memory": "64Gi"}},
            ("4", "64Gi"),
            ("4", "64Gi"),
            id="guaranteed wins over a loose template",
        ),
        pytest.param(
            {"requests": {"memory": "1Gi"}},
            {"limits": {"cpu": "8", "memory": "64Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            ("8", "64Gi"),
            ("100m", "1Gi"),
            id="burstable with limits",
        ),
        pytest.param(
            {}, {"limits": {"cpu": "50m", "memory": "64Mi"}, "requests": {"cpu": "10m"}},
            ("50m", "64Mi"), ("50m", "64Mi"), id="burstable and small",
        ),
    ],
)  # fmt: skip
def test_cpu_and_memory_fit_the_pod(
    template: Any, workload: Any, limits: Any, requests: Any
) -> None:
    """Requests never exceed limits, a Guaranteed pod stays one, and nothing throttles without need."""
    stated: Any = {kind: {**workload.get(kind, {}), GPU: "1"} for kind in ("limits", "requests")}
    made = pod(container(**stated))
    reply = send(made, without_gangs(initContainers=[entry(DCGM, resources=template)]))
    resources = reply.check()["resources"]
    assert tuple(resources["limits"].get(r) for r in ("cpu", "memory")) == limits
    assert tuple(resources["requests"].get(r) for r in ("cpu", "memory")) == requests
    assert resources["limits"][GPU] == resources["requests"][GPU] == "1"


def test_a_guaranteed_pod_stays_guaranteed_whatever_else_it_has() -> None:
    """All containers, the injected ones included, ask for what they may use."""
    size = {"cpu": "8", "memory": "64Gi", GPU: "1"}
    small = {"cpu": "1", "memory": "1Gi"}
    made = pod(
        container("a", limits=size, requests=size),
        container("b", limits=small),
        initContainers=[container("i", limits=small, requests=small)],
    )
    reply = send(made)
    for item in (*reply.pod["spec"]["initContainers"], *reply.pod["spec"]["containers"]):
        resources = item["resources"]
        for resource in ("cpu", "memory"):
            limit = resources["limits"][resource]
            assert resources.get("requests", resources["limits"])[resource] == limit
    assert reply.check()["resources"]["limits"]["memory"] == "64Gi"


@pytest.mark.covers("P11-56", "I9")
@pytest.mark.parametrize("mangle", ["as it is", "another first", "another config"])
def test_a_pod_that_has_its_checks_is_left_alone(mangle: str) -> None:
    """Re-invocation and re-applied specifications: no second set, and nothing is overwritten."""
    config = prepared()
    first = send(pod(), config, GANG)
    made = first.pod
    if mangle == "another first":
        spec = made["spec"]
        inits = [{"name": "istio-init", "image": "i"}, *spec["initContainers"]]
        made = {**made, "spec": {**spec, "initContainers": inits}}
    elif mangle == "another config":
        config = prepared(connectorSocket="", **gangs(masterPort=1))
    reply = send(made, config, GANG)
    assert reply.response == {"uid": "u-1", "allowed": True}


def test_only_the_checks_that_are_missing_are_added() -> None:
    """A container of a check's name is left as it is, wherever it stands, and that is said."""
    made = pod(
        gpu_container(), container(LOOPBACK), initContainers=[{"name": DCGM, "image": "mine"}]
    )
    reply = send(made)
    assert reply.order == [DCGM, ALLREDUCE]
    assert reply.check(DCGM) == {"name": DCGM, "image": "mine"}
    assert any(f"{DCGM}, {LOOPBACK}" in warning for warning in reply.warnings)


def test_a_quantity_that_is_none_ends_the_start() -> None:
    """A configuration that would have every GPU pod refused is refused itself."""
    with pytest.raises(AicrError, match=r"initContainers c: resources.limits\[cpu\]"):
        prepare(
            parse({"initContainers": [{"name": "c", "resources": {"limits": {"cpu": "lots"}}}]})
        )


def test_what_is_remembered_has_a_limit() -> None:
    """Names come from users, so a memory of them may not grow with their number."""
    asked: list[int] = []

    def double(key: int) -> int:
        asked.append(key)
        return key * 2

    memo = Memo(double, largest=3)
    assert [memo[key] for key in (1, 1, 2, 3, 4, 1)] == [2, 2, 4, 6, 8, 2]
    assert asked == [1, 2, 3, 4, 1]
    assert len(memo) <= 3
