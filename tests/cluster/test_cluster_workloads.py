"""Jobs, Deployments and pods run as the real controllers and a kubelet would have it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.cluster.workloads import (
    PYTHON,
    condition,
    container,
    deployment,
    job,
    job_ends,
    kubectl,
    pod,
    pod_becomes,
    pod_is_gone,
    pod_is_ready,
    waiting_reason,
)
from tests.controlplane.agent.sandbox import namespace_name
from tests.controlplane.client import Client, Document, eventually
from tests.controlplane.network import pids_in
from tests.controlplane.plane import ControlPlane
from tests.controlplane.processes import wait_until_gone

pytestmark = pytest.mark.cluster


def test_a_job_runs_to_complete_and_its_logs_come_through_the_api_server(
    api: Client, namespace: str
) -> None:
    """Controller, scheduler, agent and log path work together."""
    api.create(job("greets", container("echo hello from $HOSTNAME; echo again"), pods=2), namespace)
    assert job_ends(api, namespace, "greets") == "Complete"
    pods = api.list("Pod", namespace, labelSelector="job-name=greets")
    assert len(pods) == 2
    for one in pods:
        name = one["metadata"]["name"]
        assert api.logs(namespace, name) == f"hello from {name}\nagain\n"
        assert api.logs(namespace, name, tailLines="1") == "again\n"


def test_a_failing_job_is_failed_with_the_exit_code_in_its_pods(
    api: Client, namespace: str
) -> None:
    """The exit code and termination message of the process arrive in the pod's status."""
    script = "echo it broke > /dev/termination-log; exit 3"
    api.create(job("breaks", container(script), retries=1), namespace)
    assert job_ends(api, namespace, "breaks") == "Failed"
    assert condition(api.get("Job", "breaks", namespace), "Failed") is not None
    pods = api.list("Pod", namespace)
    assert len(pods) == 2
    for one in pods:
        ended = one["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (3, "Error")
        assert ended["message"] == "it broke\n"
        assert one["status"]["phase"] == "Failed"


def test_a_job_past_its_deadline_is_ended(api: Client, namespace: str) -> None:
    """A pod's own deadline ends it with the reason that controllers look for."""
    api.create(pod("slow", container("sleep 60"), activeDeadlineSeconds=1), namespace)
    found = pod_becomes(api, namespace, "slow", "Failed")
    assert found["status"]["reason"] == "DeadlineExceeded"


def test_a_deployment_becomes_available_once_its_pods_answer(api: Client, namespace: str) -> None:
    """Readiness over HTTP, asked at the pod's own address."""
    web = container(
        [],
        image="test.local/web",
        workingDir="/etc",
        ports=[{"name": "http", "containerPort": 8080}],
        readinessProbe={"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1},
    )
    del web["command"]
    api.create(deployment("web", 2, web), namespace)
    eventually(
        "the Deployment to be available",
        lambda: condition(api.get("Deployment", "web", namespace), "Available"),
    )
    addresses = {one["status"]["podIP"] for one in api.list("Pod", namespace)}
    assert len(addresses) == 2


def test_a_pod_reaches_another_pod_by_its_address(api: Client, namespace: str) -> None:
    """Pods have a network of their own: the same port twice, and a way to each other."""
    serve = container(["python3", "-m", "http.server", "8080"], workingDir="/etc/ssl")
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    api.create(pod("server", {**serve, "readinessProbe": probe}), namespace)
    address = pod_is_ready(api, namespace, "server")["status"]["podIP"]
    text = f"import urllib.request as r; print(r.urlopen('http://{address}:8080').status)"
    api.create(pod("client", container(["python3", "-c", text])), namespace)
    pod_becomes(api, namespace, "client", "Succeeded")
    assert api.logs(namespace, "client") == "200\n"


def test_init_containers_run_in_order_and_share_volumes(api: Client, namespace: str) -> None:
    """Each sees what the ones before it wrote; the main container comes last."""
    shared: Document = {"volumeMounts": [{"name": "work", "mountPath": "/shared"}]}
    inits = [container(f"echo {n} >> /shared/order", name=n, **shared) for n in ("one", "two")]
    api.create(
        pod(
            "ordered",
            container("cat /shared/order; ls /shared", **shared),
            initContainers=inits,
            volumes=[{"name": "work", "emptyDir": {}}],
        ),
        namespace,
    )
    pod_becomes(api, namespace, "ordered", "Succeeded")
    assert api.logs(namespace, "ordered") == "one\ntwo\norder\n"


def test_a_failing_init_container_fails_a_pod_that_never_restarts(
    api: Client, namespace: str
) -> None:
    """The main container does not run."""
    api.create(
        pod("stuck", container("echo no"), initContainers=[container("exit 4", name="first")]),
        namespace,
    )
    found = pod_becomes(api, namespace, "stuck", "Failed")
    first = found["status"]["initContainerStatuses"][0]
    assert first["state"]["terminated"]["exitCode"] == 4
    assert "waiting" in found["status"]["containerStatuses"][0]["state"]


def test_a_native_sidecar_starts_first_and_ends_after_the_main_container(
    api: Client, namespace: str
) -> None:
    """It does not keep a Job from completing, and is ended with TERM."""
    mount: Document = {"volumeMounts": [{"name": "work", "mountPath": "/shared"}]}
    sidecar = container(
        "trap 'echo bye >> /shared/log; exit 0' TERM; echo up >> /shared/log; touch /shared/ready; "
        "while :; do sleep 0.1; done",
        name="sidecar",
        restartPolicy="Always",
        startupProbe={
            "exec": {"command": ["test", "-e", "/shared/ready"]},
            "periodSeconds": 1,
            "timeoutSeconds": 30,
            "failureThreshold": 60,
        },
        **mount,
    )
    # On the node's disk, so that the test can read it when the pod is over.
    path = f"/var/log/{namespace}"
    api.create(
        job(
            "accompanied",
            container("cat /shared/log; echo main >> /shared/log", **mount),
            initContainers=[sidecar],
            terminationGracePeriodSeconds=10,
            nodeSelector={"kubernetes.io/hostname": "runs-1"},
            volumes=[{"name": "work", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}],
        ),
        namespace,
    )
    assert job_ends(api, namespace, "accompanied") == "Complete"
    (found,) = api.list("Pod", namespace)
    assert api.logs(namespace, found["metadata"]["name"], container="main") == "up\n"
    ended = found["status"]["initContainerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 0
    reader = pod(
        "reader",
        container("cat /shared/log", **mount),
        nodeSelector={"kubernetes.io/hostname": "runs-1"},
        volumes=[{"name": "work", "hostPath": {"path": path, "type": "Directory"}}],
    )
    api.create(reader, namespace)
    pod_becomes(api, namespace, "reader", "Succeeded")
    assert api.logs(namespace, "reader") == "up\nmain\nbye\n"


@pytest.mark.parametrize(
    ("policy", "script", "restarts"),
    [("Always", "exit 0", True), ("OnFailure", "exit 1", True), ("Always", "exit 1", True)],
)
def test_a_container_is_started_again_as_its_policy_says(
    policy: str, script: str, restarts: bool, api: Client, namespace: str
) -> None:
    """With a growing pause, the last end in lastState, and the log of the run before."""
    api.create(pod("again", container(f"echo ran; {script}"), restartPolicy=policy), namespace)

    def crashed() -> Document | None:
        found = api.get("Pod", "again", namespace)
        status = found["status"].get("containerStatuses", [{}])[0]
        return found if status.get("restartCount", 0) >= 1 and status["lastState"] else None

    found = eventually("a restart", crashed)
    assert found["status"]["phase"] == "Running"
    ended = found["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert ended["exitCode"] == int(script[-1])
    eventually(
        "the log of the run before", lambda: api.logs(namespace, "again", previous="true") or None
    )
    assert api.logs(namespace, "again", previous="true") == "ran\n"


def test_a_crashing_container_says_that_it_backs_off(api: Client, namespace: str) -> None:
    """CrashLoopBackOff is what people and controllers look for."""
    api.create(pod("loops", container("exit 1"), restartPolicy="Always"), namespace)
    eventually(
        "CrashLoopBackOff",
        lambda: waiting_reason(api.get("Pod", "loops", namespace)) == "CrashLoopBackOff",
    )


def test_on_failure_leaves_a_container_alone_that_has_succeeded(
    api: Client, namespace: str
) -> None:
    """The pod succeeds with no restart."""
    api.create(pod("fine", container("exit 0"), restartPolicy="OnFailure"), namespace)
    found = pod_becomes(api, namespace, "fine", "Succeeded")
    assert found["status"]["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.parametrize(
    ("policy", "reason"), [("Never", "ErrImageNeverPull"), ("IfNotPresent", "ImagePullBackOff")]
)
def test_an_unknown_image_is_said_to_be_missing(
    policy: str, reason: str, api: Client, namespace: str
) -> None:
    """Nothing is pulled; the reason depends on whether pulling was allowed."""
    one = container("true", image="test.local/unknown", imagePullPolicy=policy)
    api.create(pod("imageless", one), namespace)
    eventually(reason, lambda: waiting_reason(api.get("Pod", "imageless", namespace)) == reason)


def test_a_command_that_is_not_there_is_a_start_error(api: Client, namespace: str) -> None:
    """Exit code 128 and a message, as container runtimes have it."""
    api.create(pod("typo", container(["no-such-program"])), namespace)
    found = pod_becomes(api, namespace, "typo", "Failed")
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert 'exec: "no-such-program": executable file not found in $PATH' in ended["message"]


def test_a_deleted_pod_gets_term_and_may_finish(
    api: Client, namespace: str, plane: ControlPlane
) -> None:
    """Its last words are in the log that kubectl follows."""
    script = "trap 'echo finishing; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    api.create(pod("polite", container(script), terminationGracePeriodSeconds=20), namespace)
    eventually("it to be up", lambda: api.logs(namespace, "polite") == "up\n")
    path = f"/api/v1/namespaces/{namespace}/pods"
    version = api.call("GET", path)["metadata"]["resourceVersion"]
    api.delete("Pod", "polite", namespace)
    codes = []
    for event in api.watch(path, {"resourceVersion": version, "timeoutSeconds": "60"}):
        states = event["object"]["status"].get("containerStatuses", [])
        codes += [
            one["state"]["terminated"]["exitCode"] for one in states if "terminated" in one["state"]
        ]
        if event["type"] == "DELETED":
            break
    assert set(codes) == {0}


def test_a_deleted_pod_that_ignores_term_is_killed_after_its_grace(
    api: Client, namespace: str, plane: ControlPlane
) -> None:
    """Together with the children that it has left behind."""
    script = "trap '' TERM; (setsid sleep 1000 &); while :; do sleep 0.1; done"
    api.create(pod("stubborn", container(script), terminationGracePeriodSeconds=1), namespace)
    found = pod_becomes(api, namespace, "stubborn", "Running")
    name = namespace_name(plane.bridge_name, found["spec"]["nodeName"], found["metadata"]["uid"])
    pids = eventually("both", lambda: pids if len(pids := pids_in(name)) >= 2 else None)
    api.delete("Pod", "stubborn", namespace)
    pod_is_gone(api, namespace, "stubborn")
    assert wait_until_gone(pids, 30) == []


def test_a_failing_liveness_probe_restarts_the_container(api: Client, namespace: str) -> None:
    """And says why in an event."""
    probe = {"exec": {"command": ["test", "!", "-e", "/ill"]}, "periodSeconds": 1}
    one = container("touch /ill; exec sleep 1000", livenessProbe={**probe, "failureThreshold": 1})
    api.create(pod("ill", one, restartPolicy="Always"), namespace)

    def restarted() -> bool:
        found = api.get("Pod", "ill", namespace)["status"].get("containerStatuses", [{}])
        return bool(found[0].get("restartCount", 0) >= 1)

    eventually("a restart", restarted)
    reasons = {one["reason"] for one in api.list("Event", namespace)}
    assert "Unhealthy" in reasons


def test_a_container_cannot_spoil_this_machine(api: Client, namespace: str) -> None:
    """It may write anywhere in its root, and nobody else sees it."""
    from pathlib import Path

    mark = Path(f"/usr/{namespace}")
    api.create(pod("writes", container(f"echo x > {mark} && cat {mark}")), namespace)
    pod_becomes(api, namespace, "writes", "Succeeded")
    assert api.logs(namespace, "writes") == "x\n"
    assert not mark.exists()


def test_exec_passes_streams_and_the_exit_code(
    api: Client, namespace: str, plane: ControlPlane
) -> None:
    """Through the API server, with the real kubectl."""
    one = container("exec sleep 1000", env=[{"name": "GREETING", "value": "hi"}])
    api.create(pod("target", one), namespace)
    pod_becomes(api, namespace, "target", "Running")
    at = ("-n", namespace, "target")
    script = 'echo "$GREETING $HOSTNAME"; cat; echo err >&2; exit 7'
    done = kubectl(plane.kubeconfig, "exec", "-i", *at, "--", "sh", "-c", script, entry="typed")
    assert done.stdout == "hi target\ntyped"
    assert done.stderr.startswith("err\n")
    assert done.returncode == 7
    done = kubectl(plane.kubeconfig, "exec", *at, "--", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_exec_into_a_pod_that_does_not_run_is_refused(
    api: Client, namespace: str, plane: ControlPlane
) -> None:
    """With a reason instead of an empty answer."""
    api.create(pod("over", container("true")), namespace)
    pod_becomes(api, namespace, "over", "Succeeded")
    done = kubectl(plane.kubeconfig, "exec", "-n", namespace, "over", "--", "true")
    assert done.returncode != 0
    assert done.stderr


def test_a_followed_log_ends_with_the_container(
    api: Client, namespace: str, plane: ControlPlane
) -> None:
    """Every line arrives, also the one that was written just before the end."""
    script = "for n in 1 2 3 4 5; do echo $n; sleep 0.2; done"
    api.create(pod("talks", container(script)), namespace)
    eventually("the first line", lambda: "1" in api.logs(namespace, "talks"))
    done = kubectl(plane.kubeconfig, "logs", "-n", namespace, "-f", "talks")
    assert done.stdout == "1\n2\n3\n4\n5\n"


def test_lines_of_a_log_have_times_that_stay(
    api: Client, namespace: str, plane: ControlPlane
) -> None:
    """Different for each line and the same in each answer, so a reader can go on where it was."""
    script = "echo a; until [ -e /go ]; do sleep 0.1; done; echo b; echo c; printf d"
    api.create(pod("says", container(script)), namespace)
    first = eventually("a line", lambda: api.logs(namespace, "says", timestamps="true") or None)
    # The next line must not be of the same second, for which it is enough that it is written later.
    eventually("another second", lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}" > first[:19])
    done = kubectl(plane.kubeconfig, "exec", "-n", namespace, "says", "--", "touch", "/go")
    assert done.returncode == 0, done.stderr
    pod_becomes(api, namespace, "says", "Succeeded")
    text = api.logs(namespace, "says", timestamps="true")
    assert api.logs(namespace, "says", timestamps="true") == text
    times, words = zip(*(line.split(" ") for line in text.splitlines()), strict=True)
    assert words == ("a", "b", "c", "d")
    assert list(times) == sorted(set(times))
    # The parameter has whole seconds, so a line of the same second may come again.
    later = api.logs(namespace, "says", sinceTime=f"{times[1][:19]}Z")
    assert later == "b\nc\nd"
    assert api.logs(namespace, "says", sinceSeconds="3600") == "a\nb\nc\nd"
    assert api.logs(namespace, "says", limitBytes="3") == "a\nb"


def test_a_python_image_runs_its_arguments(api: Client, namespace: str) -> None:
    """The image's entrypoint stays when a pod gives arguments only."""
    one = container([], image=PYTHON, args=["-c", "print($(NUMBER) * 2)"])
    del one["command"]
    one["env"] = [{"name": "NUMBER", "value": "21"}]
    api.create(pod("counts", one), namespace)
    pod_becomes(api, namespace, "counts", "Succeeded")
    assert api.logs(namespace, "counts") == "42\n"
