"""What a pod finds around itself: variables, volumes, a token that works, its own file system."""

from __future__ import annotations

import json

import pytest
from tests.cluster.workloads import (
    condition,
    config_map,
    container,
    kubectl,
    pod,
    pod_becomes,
    pod_is_ready,
    secret,
    waiting_reason,
)
from tests.controlplane.client import Client, Document, eventually
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster


def field(name: str, path: str) -> Document:
    """A variable with a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def test_variables_come_from_every_source(api: Client, namespace: str) -> None:
    """Fields, limits, ConfigMaps, Secrets and other variables."""
    api.create(config_map("settings", {"COLOR": "blue"}), namespace)
    api.create(secret("hidden", {"word": "open sesame"}), namespace)
    variables = [
        field("NAME", "metadata.name"),
        field("NODE", "spec.nodeName"),
        field("ADDRESS", "status.podIP"),
        field("LABEL", "metadata.labels['app']"),
        {
            "name": "MILLIS",
            "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}},
        },
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "word"}}},
        {"name": "BOTH", "value": "$(NAME)/$(COLOR)/$$(NAME)/$(NOBODY)"},
    ]
    one = container(
        'echo "$NAME|$NODE|$LABEL|$MILLIS|$WORD|$BOTH|$ADDRESS"',
        env=variables,
        envFrom=[{"configMapRef": {"name": "settings"}}],
        resources={"limits": {"cpu": "1500m"}},
    )
    api.create(pod("told", one, labels={"app": "x"}), namespace)
    found = pod_becomes(api, namespace, "told", "Succeeded")
    words = api.logs(namespace, "told").strip().split("|")
    assert words == [
        "told",
        found["spec"]["nodeName"],
        "x",
        "1500",
        "open sesame",
        "told/blue/$(NAME)/$(NOBODY)",
        found["status"]["podIP"],
    ]


def test_a_missing_reference_keeps_a_container_from_starting(api: Client, namespace: str) -> None:
    """It says which, and starts once the object is there."""
    source = {"configMapKeyRef": {"name": "late", "key": "COLOR"}}
    one = container("echo $COLOR", env=[{"name": "COLOR", "valueFrom": source}])
    api.create(pod("patient", one), namespace)
    eventually(
        "CreateContainerConfigError",
        lambda: (
            waiting_reason(api.get("Pod", "patient", namespace)) == "CreateContainerConfigError"
        ),
    )
    api.create(config_map("late", {"COLOR": "red"}), namespace)
    pod_becomes(api, namespace, "patient", "Succeeded")
    assert api.logs(namespace, "patient") == "red\n"


def test_volumes_show_objects_with_modes_and_parts(api: Client, namespace: str) -> None:
    """ConfigMap with items, Secret with a mode, downward fields, one file by subPath."""
    data = {"a.txt": "A", "b.txt": "B"}
    api.create(config_map("files", data), namespace)
    api.create(secret("hidden", {"key": "K"}), namespace)
    volumes = [
        {
            "name": "files",
            "configMap": {"name": "files", "items": [{"key": "a.txt", "path": "x/a"}]},
        },
        {"name": "whole", "configMap": {"name": "files"}},
        {"name": "hidden", "secret": {"secretName": "hidden", "defaultMode": 0o400}},
        {
            "name": "about",
            "downwardAPI": {
                "items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]
            },
        },
    ]
    mounts = [
        {"name": "files", "mountPath": "/etc/files"},
        {"name": "whole", "mountPath": "/etc/one.txt", "subPath": "b.txt"},
        {"name": "hidden", "mountPath": "/var/run/hidden", "readOnly": True},
        {"name": "about", "mountPath": "/about"},
    ]
    script = (
        "cat /etc/files/x/a /etc/one.txt /var/run/hidden/key /about/name; echo; "
        "stat -L -c %a /var/run/hidden/key; touch /var/run/hidden/new || echo read only"
    )
    api.create(pod("reads", container(script, volumeMounts=mounts), volumes=volumes), namespace)
    pod_becomes(api, namespace, "reads", "Succeeded")
    lines = api.logs(namespace, "reads").splitlines()
    assert lines[:2] == ["ABKreads", "400"]
    assert lines[-1] == "read only"


def test_a_changed_config_map_arrives_in_a_running_pod(api: Client, namespace: str) -> None:
    """As a whole, by the swap of one link."""
    settings = config_map("s", {"v": "1"})
    api.create(settings, namespace)
    script = "until grep -q 2 /s/v; do sleep 0.1; done; cat /s/v"
    one = container(script, volumeMounts=[{"name": "s", "mountPath": "/s"}])
    api.create(pod("watches", one, volumes=[{"name": "s", "configMap": {"name": "s"}}]), namespace)
    pod_becomes(api, namespace, "watches", "Running")
    api.apply({**settings, "data": {"v": "2"}}, namespace)
    pod_becomes(api, namespace, "watches", "Succeeded")
    assert api.logs(namespace, "watches") == "2"


def test_a_pod_talks_to_the_api_server_as_its_service_account(api: Client, namespace: str) -> None:
    """With the token and the certificate that it finds, and with no more rights than it was given."""
    script = """
import json, os, ssl, urllib.error, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount/"
text = {name: open(place + name).read() for name in ("token", "namespace")}
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
tls = ssl.create_default_context(cafile=place + "ca.crt")
def ask(path, body=None):
    request = urllib.request.Request(f"https://{host}:{port}{path}", body)
    request.add_header("Authorization", f"Bearer {text['token']}")
    request.add_header("Content-Type", "application/json")
    return json.load(urllib.request.urlopen(request, context=tls))
review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
who = ask("/apis/authentication.k8s.io/v1/selfsubjectreviews", json.dumps(review).encode())
print(json.dumps(who["status"]["userInfo"]))
try:
    ask(f"/api/v1/namespaces/{text['namespace']}/pods")
except urllib.error.HTTPError as error:
    print(error.code)
"""
    api.create(pod("caller", container(["python3", "-c", script])), namespace)
    pod_becomes(api, namespace, "caller", "Succeeded")
    who, code = api.logs(namespace, "caller").splitlines()
    user = json.loads(who)
    assert user["username"] == f"system:serviceaccount:{namespace}:default"
    # The token is bound to the pod, as the kubelet's are.
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["caller"]
    assert code == "403"


def test_a_volume_that_is_not_supported_is_refused_with_an_event(
    api: Client, namespace: str
) -> None:
    """Rather than left out."""
    volume = {"name": "v", "nfs": {"server": "nowhere", "path": "/"}}
    api.create(pod("nfs", container("true"), volumes=[volume]), namespace)

    def told() -> str | None:
        events = api.list("Event", namespace)
        return next((one["message"] for one in events if one["reason"] == "FailedMount"), None)

    assert "has no nfs volumes" in eventually("the event", told)


def test_users_roots_and_network_are_as_the_pod_asks(api: Client, namespace: str) -> None:
    """runAsUser, a root that cannot be written, the node's network."""
    one = container(
        "id -u; touch /new 2>/dev/null || echo read only; hostname",
        securityContext={"runAsUser": 1234, "readOnlyRootFilesystem": True},
    )
    api.create(pod("asks", one, hostNetwork=True, nodeName="runs-1"), namespace)
    found = pod_becomes(api, namespace, "asks", "Succeeded")
    assert api.logs(namespace, "asks") == "1234\nread only\nruns-1\n"
    assert found["status"]["podIP"] == found["status"]["hostIP"]


def test_a_pod_is_not_ready_before_its_gates_and_probes_say_so(
    api: Client, namespace: str, plane: ControlPlane
) -> None:
    """The startup probe comes first, then readiness."""

    def probe(path: str) -> Document:
        # It fails for as long as this test takes.
        times = {"periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 1000}
        return {"exec": {"command": ["test", "-e", path]}, **times}

    def touch(path: str) -> None:
        done = kubectl(plane.kubeconfig, "exec", "-n", namespace, "slow", "--", "touch", path)
        assert done.returncode == 0, done.stderr

    def started() -> bool:
        found = api.get("Pod", "slow", namespace)["status"]["containerStatuses"][0]
        return bool(found["started"])

    one = container(
        "exec sleep 1000", startupProbe=probe("/started"), readinessProbe=probe("/ready")
    )
    api.create(pod("slow", one), namespace)
    pod_becomes(api, namespace, "slow", "Running")
    assert not started()
    touch("/started")
    eventually("the startup probe to pass", started)
    assert condition(api.get("Pod", "slow", namespace), "Ready") is None
    touch("/ready")
    pod_is_ready(api, namespace, "slow")
    assert started()
