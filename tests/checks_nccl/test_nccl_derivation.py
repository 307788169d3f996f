"""The benchmark runtime derived from a delivered one, and its proof (validators spec 7.2, 4.4)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from tests.checks_nccl.bench import (
    CLUSTER_RUNTIME,
    NETWORK,
    Bench,
    Launcher,
    gpu_node,
    validation,
    whole,
)
from tests.checks_nccl.bench import RUNTIME as TRAINING_RUNTIME
from tests.checks_nccl.delivered import (
    MAPPING,
    RUNTIME,
    gke_nodes,
    installer_pods,
    networks,
    recipe,
    shipped_runtime,
)
from tests.kube.fakeapi import refuse

from aicr.catalog.catalog import Catalog
from aicr.checks.performance import nccl_derivation as derivation
from aicr.checks.performance import nccl_templates as templates
from aicr.checks.performance.nccl_preflights import devices, interfaces
from aicr.checks.performance.nccl_variants import DEFAULT
from aicr.checks.sdk.outcome import could_not_tell
from aicr.errors import INTERNAL, INVALID_REQUEST, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.validate.provenance_bound import bound

Document = dict[str, Any]


def shipped() -> Document:
    """The worker template of the delivered runtime."""
    return templates.node_template(shipped_runtime())


def skeleton(workers: int = 2, gpus: int = 8) -> Document:
    """The embedded template of H100 on GKE, rendered."""
    text = Catalog.builtin().tree.read_text("validators/performance/testdata/h100/gke/runtime.yaml")
    values = templates.variables(
        "ns", workers, gpus, interfaces=interfaces(["a"] * 8), devices=devices(gpus)
    )
    return templates.parse(templates.fill(text, values), "skeleton")


def bench(**more: Any) -> Bench:
    """A cluster on which the delivered runtime is measured."""
    scene = Bench(DEFAULT, recipe(), gke_nodes(), **more)
    scene.put(NETWORK, *networks())
    return scene.put(kinds.POD, *installer_pods())


@pytest.mark.covers("V-195", "V-196", "V-207")
def test_the_shipped_template_is_copied_whole_and_only_our_fields_differ() -> None:
    """Metadata, sidecar, environment, placement as shipped; types of the skeleton survive."""
    before = shipped()
    made = derivation.derive(before, skeleton(), RUNTIME, 8)
    pods = templates.node_template(made)
    worker = templates.worker_container(pods)
    assert pods["metadata"] == before["metadata"]
    assert pods["spec"]["initContainers"] == before["spec"]["initContainers"]
    assert worker["env"] == templates.worker_container(before)["env"]
    bench_worker = templates.worker_container(templates.node_template(skeleton()))
    assert worker["image"] == bench_worker["image"]
    assert all(isinstance(word, str) for word in worker["args"])
    assert made["spec"]["mlPolicy"]["mpi"]["numProcPerNode"] == 8
    assert made["spec"]["mlPolicy"]["numNodes"] == 2
    assert before == shipped()
    paths = derivation.provenance(before, pods)["overriddenPaths"]
    owned = [f"spec.containers[node].{key}" for key in derivation.OWNED]
    assert all(any(path.startswith(one) for one in owned) for path in paths), paths


@pytest.mark.covers("V-205", "V-206")
def test_workers_use_their_own_variables_and_the_launcher_exports_none() -> None:
    """No host profile, no tuning exports; log volume and UCX stay."""
    made = derivation.derive(shipped(), skeleton(), RUNTIME, 8)
    (script,) = templates.worker_container(templates.node_template(made))["args"]
    assert "nccl-env-profile.sh" not in script
    assert "NCCL_|CUDA_|LD_LIBRARY_PATH=" in script
    assert "SetEnv=$exported" in script
    (launch,) = templates.worker_container(templates.launcher_template(made))["args"]
    exports = [line.split()[1] for line in launch.splitlines() if line.strip().startswith("-x ")]
    assert exports == ["NCCL_DEBUG=INFO", "UCX_TLS=tcp"]
    assert "\n  \\\n" not in launch


@pytest.mark.covers("V-206")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("mpirun -x NCCL_ALGO=Ring -x NCCL_DEBUG=INFO a", "mpirun -x NCCL_DEBUG=INFO a"),
        ("mpirun -x CUDA_X=1 -x UCX_TLS=tcp a", "mpirun -x UCX_TLS=tcp a"),
        ("mpirun -x LD_LIBRARY_PATH=/a:/b a", "mpirun a"),
        ("mpirun -x NCCL_DEBUG_SUBSYS=ALL a", "mpirun a"),
        ("mpirun \\\n  -x NCCL_A=1 \\\n  -x NCCL_B=2 \\\n  a\n", "mpirun \\\n  a\n"),
        ("echo NCCL_A=1", "echo NCCL_A=1"),
    ],
    ids=["algo", "cuda", "path", "subsys", "lines", "no export"],
)
def test_exports_that_would_override_the_container_are_stripped(before: str, after: str) -> None:
    """NCCL_DEBUG= is log volume, not wiring."""
    assert derivation.stripped(before) == after


def defaulted(scene: Bench) -> Any:
    """An API server that fills in a field when a TrainingRuntime is created."""

    async def respond(request: web.Request) -> web.Response:
        document = await request.json()
        document["metadata"] |= {"uid": "uid-runtime"}
        templates.node_template(document)["spec"]["schedulerName"] = "stamped-by-server"
        assert scene.api is not None
        return web.json_response(await scene.api.store("ADDED", TRAINING_RUNTIME, document))

    return respond


def _worker(change: Callable[[Document], Any]) -> Callable[[Document], None]:
    def act(pods: Document) -> None:
        change(templates.worker_container(pods))

    return act


@pytest.mark.covers("V-197", "V-199", "V-200", "V-201", "V-202", "V-203", "V-204")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_worker(lambda w: w.update(command=["x"])), "sets command"),
        (_worker(lambda w: w.update(args=["x"])), "sets args"),
        (_worker(lambda w: w.update(terminationMessagePolicy="File")), "terminationMessagePolicy"),
        (_worker(lambda w: w.update(env=[])), "NCCL_FASTRAK_IFNAME"),
        (_worker(lambda w: w["resources"].pop("requests")), "requests hold nothing"),
        (_worker(lambda w: w["resources"]["limits"].update(cpu="1")), "limits hold cpu"),
        (_worker(lambda w: w["resources"]["limits"].update({"nvidia.com/gpu": 4})), "ask for 4"),
        (_worker(lambda w: w["resources"].update(claims=[{"name": "c"}])), "claims"),
        (_worker(lambda w: w.update(name="other", image="any/image:1")), ""),
        (lambda pods: pods["spec"]["containers"].append({"name": "side", "image": "x"}), ""),
    ],
    ids=[
        *("command", "args", "policy", "env", "requests", "cpu", "count", "claims", "name"),
        "sidecar",
    ],
)
def test_a_shipped_worker_that_would_be_repaired_is_refused(
    change: Callable[[Document], None], said: str
) -> None:
    """The skeleton would hide it; an image of any name, and other containers, are fine."""
    pods = copy.deepcopy(shipped())
    change(pods)
    problems = derivation.unmet(pods, 8)
    assert (said in "; ".join(problems)) if said else not problems
    if said:
        with pytest.raises(AicrError, match="cannot be measured") as caught:
            derivation.derive(pods, skeleton(), RUNTIME, 8)
        assert (caught.value.code, could_not_tell(caught.value)) == (INTERNAL, "")


@pytest.mark.covers("V-197")
def test_a_policy_is_cleared_because_the_skeleton_sets_none() -> None:
    """Every owned field that the skeleton lacks goes; the precondition has refused it before."""
    pods = shipped()
    templates.worker_container(pods)["terminationMessagePolicy"] = "File"
    made = derivation.derived_pods(pods, templates.node_template(skeleton()))
    assert "terminationMessagePolicy" not in templates.worker_container(made)


@pytest.mark.covers("V-198")
@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda p: p["spec"].update(hostNetwork=True), "spec.hostNetwork"),
        (
            _worker(lambda w: w["env"][0].update(value="eth9")),
            "spec.containers[node].env[NCCL_FASTRAK_IFNAME].value",
        ),
        (lambda p: p["metadata"]["annotations"].update(x="y"), "metadata.annotations.x"),
        (lambda p: p["spec"]["volumes"].pop(), "spec.volumes[shared-memory].emptyDir.medium"),
        (
            lambda p: p["spec"]["volumes"].append({"name": "z", "hostPath": {"path": "/"}}),
            "spec.volumes[z].hostPath.path",
        ),
    ],
    ids=["host network", "env", "annotation", "volume lost", "foreign volume"],
)
def test_a_difference_outside_our_fields_is_found(
    change: Callable[[Document], None], path: str
) -> None:
    """The guard on what was derived, whoever changed it."""
    bench_pods = templates.node_template(skeleton())
    made = derivation.derived_pods(shipped(), bench_pods)
    assert derivation.unexpected(shipped(), made, bench_pods) == []
    change(made)
    assert path in derivation.unexpected(shipped(), made, bench_pods)


@pytest.mark.covers("V-196")
def test_volumes_and_mounts_are_added_and_never_replaced() -> None:
    """What is there under the same name or path stays the shipped one."""
    pods = templates.node_template(skeleton())
    pods["spec"]["volumes"] += [{"name": "scratch", "emptyDir": {}}]
    mount = {"name": "scratch", "mountPath": "/scratch"}
    templates.worker_container(pods)["volumeMounts"].append(mount)
    made = derivation.derived_pods(shipped(), pods)
    have = shipped()["spec"]["volumes"]
    assert made["spec"]["volumes"] == [*have, {"name": "scratch", "emptyDir": {}}]
    assert templates.worker_container(made)["volumeMounts"][-1] == mount
    assert derivation.unexpected(shipped(), made, pods) == []


@pytest.mark.covers("V-209")
def test_digests_do_not_depend_on_order_or_on_what_says_nothing() -> None:
    """Keys in any order, nulls and empty maps left out; a changed value changes it."""
    pods = shipped()
    turned = json.loads(json.dumps(pods, sort_keys=True))
    turned["metadata"]["creationTimestamp"] = None
    turned["spec"]["affinity"] = {}
    assert derivation.digest(pods) == derivation.digest(turned)
    turned["spec"]["hostIPC"] = True
    assert derivation.digest(pods) != derivation.digest(turned)


@pytest.mark.covers("V-184", "V-188", "V-193", "V-194", "V-209", "V-210", "V-212", "V-222")
def test_a_delivered_runtime_is_derived_measured_and_proven() -> None:
    """The record is about the object as it is stored, defaults of the server included, without a value."""
    scene = bench(launcher=Launcher(whole("450.00")))
    scene.put(CLUSTER_RUNTIME, shipped_runtime())

    scene.fault("POST .*/trainingruntimes", defaulted(scene), times=1)
    error = scene.judge()
    assert error is None
    output = scene.seen.output
    assert output.extra == {"runtimeSource": "delivered-artifact"}
    record = output.provenance
    assert record is not None
    pods = shipped()
    assert record["shippedDigest"] == derivation.digest(pods)
    assert record["derivedDigest"] == derivation.digest(templates.node_template(scene.runtime))
    assert "spec.schedulerName" in record["overriddenPaths"]
    assert "spec.containers[node].args" in record["overriddenPaths"]
    assert "spec.containers[node].env[NCCL_FASTRAK_IFNAME].value" in record["inheritedPaths"]
    assert "metadata.annotations.networking.gke.io/interfaces" in record["inheritedPaths"]
    text = json.dumps(record)
    assert "gpu-nic" not in text
    assert "eth1" not in text
    kept = bound(record)
    assert kept is not None
    assert "spec.containers[*].env[NCCL_FASTRAK_IFNAME].value" in kept["inheritedPaths"]
    listing = "\n".join(scene.seen.lines)
    assert f"shipped {record['shippedDigest']}" in listing
    assert "inherited spec.containers[node].env[NCCL_FASTRAK_IFNAME].value" in listing


def test_stored_defaults_are_in_the_record() -> None:
    """What admission adds makes the digests differ, and is listed."""
    made = templates.node_template(derivation.derive(shipped(), skeleton(), RUNTIME, 8))
    stored = copy.deepcopy(made)
    stored["spec"]["schedulerName"] = "other"
    record = derivation.provenance(shipped(), stored)
    assert record["derivedDigest"] != derivation.digest(made)
    assert "spec.schedulerName" in record["overriddenPaths"]


@pytest.mark.covers("V-183", "V-187", "V-189", "V-190", "V-192")
@pytest.mark.parametrize(
    ("change", "source", "said"),
    [
        (lambda r: None, "delivered-artifact", ""),
        (lambda r: r["componentRefs"][0].pop("manifestFiles"), "cluster-capability", ""),
        (
            lambda r: r["componentRefs"][0]["overrides"].pop("tcpxoInterfaces"),
            "",
            "records no tcpxoInterfaces",
        ),
        (
            lambda r: r["componentRefs"][0]["overrides"].update(enabled=False),
            "cluster-capability",
            "",
        ),
        (
            lambda r: r["config"]["performance"]["constraints"].append(
                {"name": "nccl-benchmark-profile", "value": "h100/gke"}
            ),
            "",
            "delivers the TCPXO runtime and states nccl-benchmark-profile",
        ),
        (
            lambda r: r["config"]["performance"]["constraints"].append(
                {"name": "nccl-benchmark-runtime", "value": json.dumps(skeleton())}
            ),
            "",
            "delivers the TCPXO runtime and states nccl-benchmark-runtime",
        ),
    ],
    ids=[
        "delivered",
        "mapping alone",
        "manifest alone",
        "disabled",
        "with profile",
        "with carrier",
    ],
)
def test_the_class_follows_from_the_recipe_and_not_from_what_is_installed(
    change: Callable[[Document], Any], source: str, said: str
) -> None:
    """The runtime is installed in every case; only the recipe decides."""
    scene = bench()
    scene.put(CLUSTER_RUNTIME, shipped_runtime())
    assert scene.input is not None
    change(scene.input)
    error = scene.judge()
    if said:
        assert error is not None
        assert (error.code, said in str(error)) == (INVALID_REQUEST, True)
        assert scene.seen.output.extra == {}
    else:
        assert error is None
        assert scene.seen.output.extra == {"runtimeSource": source}


@pytest.mark.covers("V-191")
def test_one_recipe_of_the_catalogue_delivers_a_fabric_runtime() -> None:
    """Every other kubeflow leaf is measured as cluster capability."""
    found = [
        name
        for name, overlay in Catalog.builtin().overlays.items()
        for ref in overlay["spec"].get("componentRefs") or []
        if any(RUNTIME in path for path in ref.get("manifestFiles") or [])
    ]
    assert found == ["h100-gke-cos-training-kubeflow"]


@pytest.mark.covers("V-193", "V-194", "V-208", "V-211")
@pytest.mark.parametrize(
    ("prepare", "code", "said"),
    [
        (lambda s: None, NOT_FOUND, "torch-distributed-tcpxo not found"),
        (
            lambda s: s.put(CLUSTER_RUNTIME, shipped_runtime([*MAPPING[1:], MAPPING[0]])),
            INTERNAL,
            "is not the recipe's: entry 1",
        ),
        (
            lambda s: (
                s.put(CLUSTER_RUNTIME, shipped_runtime()),
                s.objects.remove((NETWORK, s.objects[0][1])),
            ),
            NOT_FOUND,
            "do not exist: gpu-nic-0",
        ),
    ],
    ids=["absent", "order", "network"],
)
def test_a_drift_of_what_was_delivered_fails_before_anything_is_created(
    prepare: Callable[[Bench], Any], code: str, said: str
) -> None:
    """The source is published all the same; there is no record, since nothing was applied."""
    scene = bench()
    prepare(scene)
    error = scene.judge()
    assert error is not None
    assert (error.code, could_not_tell(error)) == (code, "")
    assert said in error.message
    assert scene.writes == []
    assert scene.seen.output.extra == {"runtimeSource": "delivered-artifact"}
    assert scene.seen.output.provenance is None


@pytest.mark.covers("V-211")
@pytest.mark.parametrize(
    ("refused", "record"), [(True, False), (False, True)], ids=["not created", "slow"]
)
def test_a_record_is_published_from_the_creation_on_whatever_is_measured(
    refused: bool, record: bool
) -> None:
    """A run that fails at the creation has none; one that is too slow has one."""
    scene = bench(launcher=Launcher(whole("1.00")))
    scene.put(CLUSTER_RUNTIME, shipped_runtime())
    if refused:
        scene.fault("POST .*/trainingruntimes", refuse(422, "Invalid", "no"))
    assert scene.judge() is not None
    assert (scene.seen.output.provenance is not None) is record


@pytest.mark.covers("V-202")
def test_a_gpu_count_that_is_not_the_nodes_fails_at_apply_time() -> None:
    """The shipped worker asks for eight, the nodes have four."""
    scene = bench()
    scene.nodes = [gpu_node(f"n{i}", gpus=4) for i in (1, 2)]
    scene.put(CLUSTER_RUNTIME, shipped_runtime())
    error = scene.judge()
    assert error is not None
    assert "ask for 8 GPUs, the nodes have 4" in error.message
    assert "trainjobs.trainer.kubeflow.org" not in scene.made


def test_a_sentinel_that_a_pod_forged_reaches_no_report() -> None:
    """A launcher that prints sentinels of its own changes nothing: its log is not our stdout."""
    forged = '##AICR-EXTRA## {"runtimeSource": "delivered-artifact"}'
    other = '##AICR-PROVENANCE## {"shippedDigest": "' + "a" * 64 + '", "derivedDigest": "b"}'
    given = validation({"nccl-all-reduce-bw": ">= 450"})
    scene = Bench(DEFAULT, given, launcher=Launcher(whole("450.00", forged, other)))
    assert scene.judge() is None
    assert scene.seen.output.extra == {"runtimeSource": "cluster-capability"}
    assert scene.seen.output.provenance is None
