"""secure-accelerator-access, and the GPU test pods that it shares with dra-support (spec 6.2)."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from tests.checks.contexts import node, validation
from tests.checks_conformance.gpu_scenes import (
    ONE,
    TWO,
    by_claim,
    by_plugin,
    gpu_slice,
    listing,
    nothing,
    pods,
)
from tests.checks_conformance.scene import DRA, IMPATIENT, SLICE, Scene
from tests.checks_deployment.answers import COULD_NOT_LOOK
from tests.checks_deployment.kubelet import Ends
from tests.kube.fakeapi import refuse

from aicr.checks.conformance import gpu_pods
from aicr.checks.conformance.secure_accelerator_access import CHECK
from aicr.checks.sdk.allocation import DEVICE_PLUGIN, DRA_CLAIM
from aicr.checks.sdk.outcome import could_not_tell, skip_in
from aicr.errors import INTERNAL, INVALID_REQUEST, SERVICE_UNAVAILABLE, TIMEOUT, AicrError
from aicr.kube import kinds

Document = dict[str, Any]


def policy(name: str) -> Document:
    """A recipe with this policy."""
    return {**validation("gpu-operator"), "gpuAllocationPolicy": name}


@pytest.mark.covers("V-242")
@pytest.mark.parametrize("build", [by_plugin, by_claim], ids=["device plugin", "DRA"])
def test_one_gpu_for_who_has_it_and_none_for_others_passes(build: Any) -> None:
    """Two pods in one namespace of the run, which is gone afterwards."""
    found: Scene = build(CHECK)
    assert found.judge() is None
    assert found.left == []
    assert found.api is not None
    assert found.seen.lines[-1] == (
        "One GPU is seen by the container that has it, and by nobody else on gpu-node"
    )
    made = [line for line in found.api.seen if line.startswith("POST") and "/pods?" in line]
    assert len(made) == 2
    (space,) = {line.split("/")[4] for line in made}
    assert len(space.removeprefix("aicr-gpu-test-")) == 32
    deleted = [line for line in found.api.seen if line.startswith("DELETE")]
    assert any(f"/namespaces/{space}" in line for line in deleted)


@pytest.mark.parametrize(
    ("behave", "words"),
    [
        (pods(given=listing(TWO)), "given one GPU sees 2"),
        (pods(given=listing("")), "given one GPU sees 0"),
        (pods(given=listing("", status=9)), "nvidia-smi ended with 9"),
        (pods(given=listing("", status=127)), "nvidia-smi ended with 127"),
        (pods(denied=nothing("nvidia0")), "without a GPU sees /dev/nvidia0"),
        (pods(denied=nothing("nvidiactl")), "without a GPU sees /dev/nvidiactl"),
        (pods(other=nothing("nvidia3")), "a pod without a GPU on the same node sees /dev/nvidia3"),
    ],
    ids=["two", "none", "broken", "no nvidia-smi", "neighbour", "control node", "other pod"],
)
def test_what_sees_more_or_less_than_its_own_fails(behave: Any, words: str) -> None:
    """A verdict; the namespace is gone all the same."""
    found = by_plugin(CHECK, behave=behave)
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (INTERNAL, "")
    assert words in error.message
    assert found.left == []


@pytest.mark.covers("V-441")
def test_nodes_that_only_play_nodes_skip_before_a_policy_is_judged() -> None:
    """Nothing runs there, so nothing can be seen; whatever the recipe says."""
    fake = node("fake", gpus=8, labels={"type": "kwok"})
    found = Scene(CHECK, validation=policy(DEVICE_PLUGIN)).put(kinds.NODE, fake)
    error = found.judge()
    assert error is not None
    skip = skip_in(error)
    assert skip is not None
    assert skip.reason_code == "no-schedulable-gpu-nodes"


@pytest.mark.covers("V-247")
@pytest.mark.parametrize(
    ("name", "build", "mechanism"),
    [
        ("unspecified", by_plugin, DEVICE_PLUGIN),
        ("unspecified", by_claim, DRA_CLAIM),
        (DEVICE_PLUGIN, by_plugin, DEVICE_PLUGIN),
        (DRA_CLAIM, by_claim, DRA_CLAIM),
    ],
)
def test_a_policy_forces_the_mechanism_and_none_selects_it(
    name: str, build: Any, mechanism: str
) -> None:
    """The pod asks that way."""
    made: list[Document] = []
    plain = pods()

    def behave(pod: Document) -> Ends | None:
        made.append(pod)
        return plain(pod)

    found: Scene = build(CHECK, validation=policy(name), behave=behave)
    assert found.judge() is None
    first = made[0]["spec"]["containers"][0]["resources"]
    assert ("claims" in first) == (mechanism == DRA_CLAIM)
    assert ("limits" in first) == (mechanism == DEVICE_PLUGIN)


@pytest.mark.covers("V-247", "G7")
def test_a_forced_device_plugin_is_used_beside_dra_with_a_warning() -> None:
    """The same GPUs are handed out twice: said, and the policy decides."""
    made: list[Document] = []
    plain = pods()

    def behave(pod: Document) -> Ends | None:
        made.append(pod)
        return plain(pod)

    found = by_plugin(CHECK, validation=policy(DEVICE_PLUGIN), behave=behave)
    found.put(SLICE, gpu_slice("gpu-node"))
    assert found.judge() is None
    assert any("are handed out twice" in line for line in found.seen.lines)
    assert made[0]["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


@pytest.mark.parametrize(
    ("name", "build"), [(DRA_CLAIM, by_plugin), (DEVICE_PLUGIN, by_claim)], ids=["DRA", "plugin"]
)
def test_a_policy_that_the_cluster_contradicts_is_refused(name: str, build: Any) -> None:
    """INVALID_REQUEST before anything is created."""
    found: Scene = build(CHECK, validation=policy(name))
    error = found.judge()
    assert error is not None
    assert error.code == INVALID_REQUEST
    assert found.api is not None
    assert not any(line.startswith("POST") for line in found.api.seen)


def test_a_cluster_without_a_usable_gpu_is_a_verdict() -> None:
    """SERVICE_UNAVAILABLE: cordoned and silent nodes give nothing."""
    found = Scene(CHECK, served=DRA)
    found.put(kinds.NODE, node("a", gpus=8, cordoned=True), node("b"))
    error = found.judge()
    assert error is not None
    assert (error.code, could_not_tell(error), skip_in(error)) == (SERVICE_UNAVAILABLE, "", None)


@pytest.mark.covers("V-248")
def test_slurm_skips_before_any_look() -> None:
    """With the reason; a disabled one does not count."""
    found = by_plugin(CHECK, validation=validation("slinky-slurm"))
    error = found.judge()
    assert error is not None
    skip = skip_in(error)
    assert skip is not None
    assert "slinky-slurm-gpu-access" in skip.reason
    assert found.api is not None
    assert found.api.seen == []
    assert by_plugin(CHECK, validation=validation(disabled=("slinky-slurm",))).judge() is None


@pytest.mark.parametrize(
    "pattern",
    [
        "GET /api/v1/nodes",
        "GET .*/resourceslices",
        "POST /api/v1/namespaces\\?",
        "POST .*/pods",
    ],
)
@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK)
def test_a_request_that_fails_could_not_be_told(
    pattern: str, answer: web.Response, code: str
) -> None:
    """Neither passed nor skipped."""
    found = by_plugin(CHECK).fault(pattern, answer)
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == code
    assert skip_in(error) is None


@pytest.mark.parametrize(("answer", "code"), COULD_NOT_LOOK[:4])
def test_a_log_that_cannot_be_read_could_not_be_told(answer: web.Response, code: str) -> None:
    """The pod ran, and what it saw is not known."""
    error = by_plugin(CHECK).fault("GET .*/pods/gpu-access/log", answer).judge()
    assert error is not None
    assert could_not_tell(error) == code


def test_a_report_that_is_cut_short_could_not_be_told() -> None:
    """INTERNAL: it may have ended before it saw more."""
    error = by_plugin(CHECK, behave=pods(denied="DEV")).judge()
    assert error is not None
    assert could_not_tell(error) == INTERNAL


def test_a_pod_that_never_runs_could_not_be_told() -> None:
    """TIMEOUT, or what the scheduler said; nothing is left."""
    found = by_plugin(CHECK, behave=lambda _: None, timeouts=IMPATIENT)
    error = found.judge()
    assert error is not None
    assert could_not_tell(error) == TIMEOUT
    assert found.left == []
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    ends = Ends("Pending", status={"conditions": [{**condition, "message": "no GPU is free"}]})
    stuck = by_plugin(CHECK, behave=lambda _: ends).judge()
    assert stuck is not None
    assert could_not_tell(stuck) == INTERNAL
    assert "no GPU is free" in stuck.message


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [("DELETE /api/v1/namespaces/", refuse(403, "Forbidden", "no"))],
    ids=["may not delete"],
)
def test_a_namespace_that_stays_turns_a_pass_into_a_failure(
    pattern: str, answer: web.Response
) -> None:
    """And it is named with the command; an earlier failure stays the failure."""
    found = by_plugin(CHECK, timeouts=IMPATIENT).fault(pattern, answer)
    error = found.judge()
    assert error is not None
    assert error.code == INTERNAL
    assert "could not be removed" in error.message
    assert "kubectl delete namespaces aicr-gpu-test-" in error.hint
    other = by_plugin(CHECK, behave=pods(given=listing(TWO)), timeouts=IMPATIENT)
    first = other.fault(pattern, answer).judge()
    assert first is not None
    assert "GPUs are not isolated" in first.message


@pytest.mark.parametrize(("left", "runs"), [(None, True), (121, True), (119, False), (60, False)])
def test_ninety_seconds_are_kept_and_thirty_are_needed(left: float | None, runs: bool) -> None:
    """Else TIMEOUT, before anything is created."""
    found = by_plugin(CHECK)
    now = [100.0]

    class Still:
        """A clock that stands still."""

        def now(self) -> float:
            """The time."""
            return now[0]

        async def sleep(self, seconds: float) -> None:
            """Let time pass."""
            now[0] += seconds

    found.settings = {"clock": Still(), "deadline": None if left is None else 100.0 + left}
    error = found.judge()
    assert (error is None) == runs
    if error is not None:
        assert (error.code, could_not_tell(error)) == (TIMEOUT, TIMEOUT)


def stored(**more: Any) -> Document:
    """The test pod as a server stores it, with what an admission plugin adds."""
    pod = gpu_pods.with_one_gpu(DEVICE_PLUGIN, ["a"])
    pod["spec"] |= more
    return pod


def test_what_admission_adds_to_the_pod_is_looked_at() -> None:
    """A device of the node, or a GPU for the second container."""
    assert gpu_pods.spec_problems(stored()) == []
    volume = {"name": "dev", "hostPath": {"path": "/dev/nvidia0"}}
    assert gpu_pods.spec_problems(stored(volumes=[volume])) == [
        "volume dev mounts /dev/nvidia0 of the node"
    ]
    assert gpu_pods.spec_problems(stored(volumes=[{"name": "e", "emptyDir": {}}])) == []
    for held in ({"limits": {"nvidia.com/gpu": "1"}}, {"claims": [{"name": "gpu"}]}):
        pod = stored()
        pod["spec"]["containers"][1]["resources"] = held
        (problem,) = gpu_pods.spec_problems(pod)
        assert problem.startswith("container unauthorized has been given a ")


@pytest.mark.covers("V-135")
def test_only_the_first_container_asks_for_a_gpu_and_the_denied_pod_is_pinned() -> None:
    """The scheduler chooses among nodes by name; the second pod passes it by."""
    for mechanism in (DRA_CLAIM, DEVICE_PLUGIN):
        spec = gpu_pods.with_one_gpu(mechanism, ["a", "b"])["spec"]
        assert "resources" in spec["containers"][0]
        assert "resources" not in spec["containers"][1]
        assert "volumes" not in spec
    assert gpu_pods.without_gpu("a")["spec"]["nodeName"] == "a"


@pytest.mark.parametrize(
    ("text", "gpus", "devices", "status"),
    [
        (listing(), 1, 1, 0),
        (listing(ONE + ONE), 2, 1, 0),
        (listing(ONE + "  MIG 1g.10gb Device 0: (UUID: MIG-1)\n"), 1, 1, 0),
        (nothing(), 0, 0, None),
        ("", 0, 0, None),
        ("NVSMI_RC=x\nDONE=1", 0, 0, None),
    ],
    ids=["one", "twice the same", "with a MIG device", "nothing", "empty", "no number"],
)
def test_reports_are_read_line_by_line(
    text: str, gpus: int, devices: int, status: int | None
) -> None:
    """Unknown lines do not matter."""
    sight = gpu_pods.read_sight(text)
    assert (len(sight.gpus), len(sight.devices), sight.status) == (gpus, devices, status)


def test_one_gpu_listed_twice_is_one_gpu() -> None:
    """By UUID."""
    assert gpu_pods.judge(listing(ONE + ONE), nothing()) == []
    with pytest.raises(AicrError, match="cut short"):
        gpu_pods.judge_other("")
