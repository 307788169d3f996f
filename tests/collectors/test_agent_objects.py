"""What the snapshot agent's run makes: names, labels, roles and the pod, rendered without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from aicr.collectors import agent_objects, agent_options
from aicr.collectors.agent_objects import Names
from aicr.collectors.agent_options import AgentOptions
from aicr.errors import INVALID_REQUEST, AicrError

RUN = "20261130-100000-0123456789abcdef"


def job(**options: Any) -> dict[str, Any]:
    """The Job of a run with these options."""
    asked = AgentOptions(**options)
    return agent_objects.job(asked, Names.of(asked, RUN), RUN)


def pod(**options: Any) -> dict[str, Any]:
    """The pod's spec of that Job."""
    found: dict[str, Any] = job(**options)["spec"]["template"]["spec"]
    return found


def container(**options: Any) -> dict[str, Any]:
    """The container of that pod."""
    (only,) = pod(**options)["containers"]
    found: dict[str, Any] = only
    return found


def environment(**options: Any) -> dict[str, Any]:
    """The container's variables that have a value of their own."""
    return {one["name"]: one["value"] for one in container(**options)["env"] if "value" in one}


def test_every_object_carries_the_run_in_name_and_label() -> None:
    """Two runs never meet, and one selector finds all of a run."""
    asked = AgentOptions(namespace="ns")
    names = Names.of(asked, RUN)
    made = [*agent_objects.access(asked, names, RUN), agent_objects.job(asked, names, RUN)]
    assert [(one["kind"], one["metadata"]["name"]) for one in made] == [
        ("ServiceAccount", f"aicr-{RUN}"),
        ("Role", f"aicr-{RUN}"),
        ("RoleBinding", f"aicr-{RUN}"),
        ("ClusterRole", f"aicr-node-reader-{RUN}"),
        ("ClusterRoleBinding", f"aicr-node-reader-{RUN}"),
        ("Job", f"aicr-{RUN}"),
    ]
    labels = {
        "app.kubernetes.io/name": "aicr",
        "app.kubernetes.io/component": "snapshot-agent",
        "app.kubernetes.io/managed-by": "aicr",
        "aicr.run/run-id": RUN,
    }
    assert all(one["metadata"]["labels"] == labels for one in made)
    assert made[-1]["spec"]["template"]["metadata"]["labels"] == labels
    assert all(len(one["metadata"]["name"]) <= 63 for one in made)


def test_the_agent_may_only_read_the_cluster_and_write_config_maps() -> None:
    """No verb that changes anything outside its own namespace's ConfigMaps."""
    asked = AgentOptions()
    made = agent_objects.access(asked, Names.of(asked, RUN), RUN)
    by_kind = {one["kind"]: one for one in made}
    assert by_kind["Role"]["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "update"]}
    ]
    verbs = {verb for rule in by_kind["ClusterRole"]["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "list"}
    resources = {name for rule in by_kind["ClusterRole"]["rules"] for name in rule["resources"]}
    assert "secrets" not in resources
    assert by_kind["ClusterRoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": f"aicr-{RUN}", "namespace": "default"}
    ]


def test_the_job_runs_once_and_goes_away_by_itself() -> None:
    """Deadline beyond the caller's patience, no retries, removed an hour after its end."""
    spec = job()["spec"]
    assert spec["activeDeadlineSeconds"] == 360
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (0, 3600)
    assert pod()["restartPolicy"] == "Never"


def test_the_node_is_mounted_read_only_and_no_namespace_of_it_is_shared() -> None:
    """/proc, /sys, os-release and systemd below /host."""
    mounts = container()["volumeMounts"]
    assert {one["mountPath"] for one in mounts} == {
        *("/host/proc", "/host/sys", "/host/etc/os-release", "/host/run/systemd")
    }
    assert all(one["readOnly"] for one in mounts)
    assert not {"hostPID", "hostNetwork", "hostIPC"} & set(pod())
    assert container()["securityContext"]["privileged"] is True
    assert environment()["AICR_HOST_ROOT"] == "/host"


def test_talos_has_no_files_to_mount() -> None:
    """Neither os-release nor systemd."""
    mounts = container(os="talos")["volumeMounts"]
    assert {one["mountPath"] for one in mounts} == {"/host/proc", "/host/sys"}
    assert environment(os="talos")["AICR_OS"] == "talos"


def test_an_unprivileged_agent_asks_for_nothing_that_restricted_namespaces_refuse() -> None:
    """No host paths, no root, all capabilities dropped."""
    assert "volumes" not in pod(privileged=False)
    found = container(privileged=False)
    assert "volumeMounts" not in found
    assert found["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert "AICR_HOST_ROOT" not in environment(privileged=False)


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        (None, [{"operator": "Exists"}]),
        ([], []),
        ([{"key": "a", "operator": "Exists"}], [{"key": "a", "operator": "Exists"}]),
    ],
    ids=["unset", "empty", "given"],
)
def test_no_tolerations_and_an_empty_list_are_two_things(
    tolerations: Any, expected: list[dict[str, Any]]
) -> None:
    """Unset tolerates everything, [] nothing (validators spec 1.1)."""
    assert pod(tolerations=tolerations)["tolerations"] == expected


def test_without_a_selector_gpu_nodes_are_preferred_and_not_demanded() -> None:
    """A selector replaces the preference."""
    (term,) = pod()["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["preference"]["matchExpressions"][0]["key"] == "nvidia.com/gpu.present"
    selected = pod(node_selector={"pool": "gpu"})
    assert selected["nodeSelector"] == {"pool": "gpu"}
    assert list(selected["affinity"]["nodeAffinity"]) == [
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]


@pytest.mark.parametrize("selector", [{}, {"pool": "gpu"}], ids=["anywhere", "selected"])
def test_a_node_that_only_plays_a_node_is_never_measured(selector: dict[str, str]) -> None:
    """Its kubelet would report success for a pod that never ran (decision 84)."""
    affinity = pod(node_selector=selector)["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {entry["key"]: entry["operator"] for entry in term["matchExpressions"]} == {
        "type": "NotIn",
        "aicr.run/hollow": "DoesNotExist",
    }


def test_requiring_a_gpu_asks_for_one_unless_a_limit_says_how_many() -> None:
    """nvidia.com/gpu joins the limits."""
    assert container(require_gpu=True)["resources"]["limits"]["nvidia.com/gpu"] == "1"
    more = container(require_gpu=True, limits={"nvidia.com/gpu": "8"})
    assert more["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert "nvidia.com/gpu" not in container()["resources"]["limits"]
    assert environment(require_gpu=True)["AICR_REQUIRE_GPU"] == "true"


def test_requests_and_limits_change_what_they_name() -> None:
    """The rest keeps its default."""
    found = container(requests={"cpu": "500m"}, limits={"memory": "4Gi"})["resources"]
    assert found == {
        "requests": {"cpu": "500m", "memory": "256Mi"},
        "limits": {"cpu": "1", "memory": "4Gi"},
    }


def test_secrets_runtime_class_and_numbers_are_passed_on() -> None:
    """Each option in its place."""
    found = pod(image_pull_secrets=["a", "b"], runtime_class="nvidia", most_names=7, partial=True)
    assert found["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert found["runtimeClassName"] == "nvidia"
    variables = environment(most_names=7, partial=True)
    assert variables["AICR_MAX_NODES_PER_ENTRY"] == "7"
    assert variables["AICR_PARTIAL"] == "true"
    assert variables["AICR_STAGING"] == f"aicr-agent-snapshot-{RUN}"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("aicr.local/aicr-agent:latest", "Never"),
        ("ko.local/x:v1", "Never"),
        ("kind.local/x:v1", "Never"),
        ("registry.test/x:latest", "Always"),
        ("registry.test/x:latest@sha256:abc", "IfNotPresent"),
        ("registry.test/x:v1", "IfNotPresent"),
        ("aicr.local.test/x:v1", "IfNotPresent"),
    ],
)
def test_images_are_pulled_as_their_name_says(image: str, policy: str) -> None:
    """Those put on nodes by hand never, moving ones always."""
    assert container(image=image)["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("environ", "image"),
    [
        ({}, agent_options.IMAGE),
        ({"AICR_VALIDATOR_IMAGE": "r.test/mine:v2"}, "r.test/mine:v2"),
        (
            {"AICR_VALIDATOR_IMAGE_REGISTRY": "r.test:5000/", "AICR_VALIDATOR_IMAGE_TAG": "v9"},
            "r.test:5000/aicr-agent:v9",
        ),
    ],
)
def test_the_default_image_follows_the_environment(environ: dict[str, str], image: str) -> None:
    """Whole, or registry and tag (decision 41)."""
    assert agent_options.default_image(environ) == image


def test_an_account_that_exists_is_used_by_its_own_name() -> None:
    """A name that does not is a prefix, cut so that the run id fits."""
    asked = AgentOptions(service_account="a" * 40)
    assert Names.of(asked, RUN, existing_account="mine").account == "mine"
    assert Names.of(asked, RUN).account == f"{'a' * 30}-{RUN}"


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"namespace": "No"}, "--namespace"),
        ({"namespace": ""}, "--namespace"),
        ({"job_name": "a" * 31}, "--job-name"),
        ({"job_name": "-a"}, "--job-name"),
        ({"service_account": "a_b"}, "--service-account-name"),
        ({"image": " "}, "--image"),
        ({"image": "a b"}, "--image"),
        ({"require_gpu": True, "runtime_class": "nvidia"}, "--runtime-class"),
        ({"os": "ubunto"}, "--os"),
        ({"most_names": -1}, "--max-nodes-per-entry"),
        ({"requests": {"cpu": "1GB"}}, "--requests"),
        ({"limits": {"memory": "much"}}, "--limits"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_sent(
    options: dict[str, Any], flag: str
) -> None:
    """INVALID_REQUEST names the flag."""
    with pytest.raises(AicrError) as caught:
        AgentOptions(**options)
    assert (caught.value.code, caught.value.where) == (INVALID_REQUEST, flag)


@pytest.mark.parametrize("text", ["cpu", "cpu=", "=1", "cpu=1,cpu=2"])
def test_amounts_that_are_no_list_are_refused(text: str) -> None:
    """A name twice is a contradiction."""
    with pytest.raises(AicrError):
        agent_options.parse_amounts(text, "--limits")


def test_amounts_are_a_list_of_names_and_quantities() -> None:
    """Blanks around entries do not matter."""
    assert agent_options.parse_amounts(" cpu=1 , memory=2Gi,", "--limits") == {
        "cpu": "1",
        "memory": "2Gi",
    }
