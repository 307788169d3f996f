"""The Job of a check: names, labels, environment, mounts, deadlines; and the objects beside it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.validate.cases import RUN, Heard, entry, order, recipe

from aicr.errors import AicrError
from aicr.validate import affinity, catalog, objects
from aicr.validate.catalog import Affinity, Entry
from aicr.validate.environment import Setting
from aicr.validate.input_document import mounted_text, validation_input
from aicr.validate.plan import Place, job, job_name, plan, selected
from aicr.validate.run import gates
from aicr.validate.timing import Timing
from aicr.values import durations

PLACE = Place("aicr-validation", RUN, ("secret-1",))


def made(found: Entry, setting: Setting | None = None, **fields: Any) -> dict[str, Any]:
    """The Job of an entry."""
    return job(plan(found, PLACE, setting or Setting(RUN), Timing(), **fields))


def container(document: dict[str, Any]) -> dict[str, Any]:
    """Its one container."""
    found: dict[str, Any] = document["spec"]["template"]["spec"]["containers"][0]
    return found


def env(document: dict[str, Any]) -> dict[str, str]:
    """Its plain variables."""
    return {one["name"]: one["value"] for one in container(document)["env"] if "value" in one}


@pytest.mark.covers("V-003", "V-080")
def test_the_job_has_the_names_and_labels_that_tools_select_by() -> None:
    """One Job a check, of this run; the pod carries the run's id as well (decision 13)."""
    document = made(entry("operator-health"))
    assert re.fullmatch(r"aicr-operator-health-[0-9a-f]{8}", document["metadata"]["name"])
    assert document["metadata"]["namespace"] == "aicr-validation"
    assert document["metadata"]["labels"] == {
        "app.kubernetes.io/name": "aicr",
        "app.kubernetes.io/component": "validation",
        "app.kubernetes.io/managed-by": "aicr",
        "aicr.run/run-id": RUN,
        "aicr.run/job-type": "validation",
        "aicr.run/validator": "operator-health",
        "aicr.run/phase": "deployment",
    }
    labels = document["spec"]["template"]["metadata"]["labels"]
    assert labels == {
        "app.kubernetes.io/name": "aicr",
        "app.kubernetes.io/component": "validation",
        "aicr.run/validator": "operator-health",
        "aicr.run/run-id": RUN,
    }


def test_names_fit_and_differ_between_runs() -> None:
    """At most 63 characters, whatever the check is called; another run has another name."""
    long = "a" * 63
    assert len(job_name(long, RUN)) == 63
    assert job_name("a", RUN) == job_name("a", RUN)
    assert job_name("a", RUN) != job_name("a", RUN[:-1] + "0")
    assert job_name("x" * 48 + "-" + "y" * 14, RUN)[52] != "-"


@pytest.mark.covers("V-112")
def test_the_pod_spec_is_the_contract() -> None:
    """What the spec fixes about the pod."""
    spec = made(entry("a"))["spec"]["template"]["spec"]
    assert spec["restartPolicy"] == "Never"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["serviceAccountName"] == f"aicr-validator-{RUN}"
    assert spec["imagePullSecrets"] == [{"name": "secret-1"}]
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert "securityContext" not in spec
    assert "nodeSelector" not in spec
    only = spec["containers"][0]
    assert only["name"] == "validator"
    assert only["terminationMessagePath"] == "/dev/termination-log"
    assert only["terminationMessagePolicy"] == "File"
    assert only["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    assert only["resources"]["requests"] == only["resources"]["limits"]


@pytest.mark.covers("V10-38", "V-094", "V-270")
def test_three_deadlines_nest() -> None:
    """The check's budget, the wait, and the Job, which would delete the log."""
    document = made(entry("a", timeout=2 * durations.MINUTE))
    assert document["spec"]["activeDeadlineSeconds"] == 330
    assert env(document)["AICR_CHECK_TIMEOUT"] == "2m0s"
    assert document["spec"]["backoffLimit"] == 0
    assert document["spec"]["ttlSecondsAfterFinished"] == 3600
    assert Timing().wait_seconds(120) == 270
    for factor in (0.001, 0.1, 3):
        timing = Timing().scaled(factor)
        assert timing.job_deadline(1) > timing.wait_seconds(1) > 1


def test_the_buffers_of_two_deadlines_nest() -> None:
    """Check before orchestrator before Job, or the logs are lost (spec 3.5)."""
    assert 0 < Timing().wait_buffer < Timing().job_headroom


def test_the_waiting_times_are_those_of_the_table() -> None:
    """The real ones, which no other test waits for; a factor shortens all but what others are told."""
    assert Timing() == Timing(
        wait_buffer=150,
        job_headroom=210,
        create=30,
        cleanup=30,
        pod_gone=60,
        schedule=120,
        pod_created=30,
        pull=30,
        log=10,
        poll=2,
        repeat=0.5,
        grace=30,
        job_ttl=3600,
    )
    assert catalog.DEFAULT_TIMEOUT == 300 * durations.SECOND
    short = Timing.from_environment({"AICR_TIMEOUT_FACTOR": "0.1"})
    assert (short.wait_buffer, short.grace, short.job_ttl) == (15.0, 30, 3600)
    assert Timing.from_environment({}) == Timing()
    with pytest.raises(AicrError, match="AICR_TIMEOUT_FACTOR"):
        Timing.from_environment({"AICR_TIMEOUT_FACTOR": "fast"})


@pytest.mark.covers("V-090", "V-091")
def test_documents_are_mounted_where_checks_look() -> None:
    """Snapshot and validation input, both read-only."""
    document = made(entry("a"))
    mounts = {one["name"]: one for one in container(document)["volumeMounts"]}
    assert mounts["snapshot"] == {
        "name": "snapshot",
        "mountPath": "/data/snapshot",
        "readOnly": True,
    }
    assert mounts["validation"]["mountPath"] == "/data/validation"
    volumes = {
        one["name"]: one["configMap"]["name"]
        for one in document["spec"]["template"]["spec"]["volumes"]
    }
    assert volumes == {
        "snapshot": f"aicr-snapshot-{RUN}",
        "validation": f"aicr-validation-{RUN}",
    }
    assert objects.snapshot_map(PLACE, "x")["data"] == {"snapshot.yaml": "x"}
    assert objects.validation_map(PLACE, "x")["data"] == {"validation.yaml": "x"}
    found = env(document)
    assert found["AICR_SNAPSHOT_PATH"] == "/data/snapshot/snapshot.yaml"
    assert found["AICR_VALIDATION_PATH"] == "/data/validation/validation.yaml"


@pytest.mark.covers("V-092", "V-093", "V-095", "V-096", "V-097", "V-098")
def test_the_environment_has_its_exact_order() -> None:
    """Engine first, then what was asked for and is not empty, then the catalogue's."""
    setting = Setting(
        RUN,
        version="v1.2.3",
        commit="abc1234",
        registry="r.example",
        tag="edge",
        node_selector={"b": "2", "a": "1"},
        tolerations=[
            {"operator": "Exists"},
            {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
        ],
    )
    document = made(entry("a", env=(("OWN", "x"), ("EMPTY", ""))), setting)
    names = [one["name"] for one in container(document)["env"]]
    assert names == [
        *("AICR_SNAPSHOT_PATH", "AICR_VALIDATION_PATH", "AICR_VALIDATOR_NAME"),
        *("AICR_VALIDATOR_PHASE", "AICR_RUN_ID", "AICR_NAMESPACE", "AICR_CHECK_TIMEOUT"),
        *("AICR_NODE_SELECTOR", "AICR_TOLERATIONS", "AICR_CLI_VERSION", "AICR_CLI_COMMIT"),
        *("AICR_VALIDATOR_IMAGE_REGISTRY", "AICR_VALIDATOR_IMAGE_TAG", "OWN", "EMPTY"),
    ]
    found = env(document)
    assert found["AICR_NODE_SELECTOR"] == "a=1,b=2"
    assert found["AICR_TOLERATIONS"] == "*,k=v:NoSchedule"
    assert found["EMPTY"] == ""
    namespace = container(document)["env"][5]
    assert namespace["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}


def test_what_was_not_asked_for_is_no_variable() -> None:
    """Unset is not the same as empty."""
    assert len(container(made(entry("a")))["env"]) == 7


@pytest.mark.covers("V-099", "V-101", "V-102", "V-106", "V-107")
@pytest.mark.parametrize(
    ("name", "value", "checks", "forwarded"),
    [
        ("HF_TOKEN", "t", ("inference-perf",), "t"),
        ("AICR_REQUIRE_SCOPED_INFERENCE_GATEWAY", "yes", ("inference-gateway",), "yes"),
        ("AICR_NCCL_FABRIC", "roce", ("nccl-all-reduce-bw-net",), "roce"),
        (
            "AICR_NCCL_RUNTIME_IMAGE",
            "r/x:v1",
            ("nccl-all-reduce-bw", "nccl-all-reduce-bw-net", "nccl-all-reduce-bw-nvls"),
            "r/x:v1",
        ),
        ("AICR_INFERENCE_PERF_NO_CLEANUP", "True", ("inference-perf",), "1"),
        ("AICR_INFERENCE_PERF_NO_CLEANUP", "t", ("inference-perf",), "1"),
        ("AICR_INFERENCE_PERF_NO_CLEANUP", "yes", (), ""),
        ("AICR_INFERENCE_PERF_NO_CLEANUP", "0", (), ""),
        ("HF_TOKEN", "", (), ""),
    ],
)
def test_what_is_forwarded_and_to_whom(
    name: str, value: str, checks: tuple[str, ...], forwarded: str
) -> None:
    """A token reaches the one check that needs it and no other."""
    setting = Setting(RUN, environ={name: value})
    for check in (
        "inference-perf",
        "inference-gateway",
        "nccl-all-reduce-bw",
        "nccl-all-reduce-bw-net",
        "nccl-all-reduce-bw-nvls",
        "dra-support",
    ):
        found = env(made(entry(check), setting))
        assert found.get(name) == (forwarded if check in checks else None), check


@pytest.mark.covers("V10-36", "V-100")
@pytest.mark.parametrize("check", ["inference-perf", "operator-health"])
def test_a_catalogue_cannot_set_what_is_forwarded(check: str) -> None:
    """Its value is dropped for every check, entitled or not."""
    found = entry(check, env=(("HF_TOKEN", "stolen"), ("AICR_NCCL_FABRIC", "efa"), ("OWN", "1")))
    names = [one["name"] for one in container(made(found))["env"]]
    assert names[7:] == ["OWN"]
    own = env(made(found, Setting(RUN, environ={"HF_TOKEN": "mine"})))
    assert own.get("HF_TOKEN") == ("mine" if check == "inference-perf" else None)


@pytest.mark.covers("V10-34")
@pytest.mark.parametrize(
    "resources", [{"cpu": "2"}, {"memory": "1Gi"}, {"cpu": "two", "memory": "1Gi"}]
)
def test_resources_are_both_or_none_and_quantities(resources: dict[str, str]) -> None:
    """Refused when the run is planned, before any Job."""
    with pytest.raises(AicrError) as raised:
        made(entry("a", resources=resources))
    assert raised.value.code == "INVALID_REQUEST"


@pytest.mark.covers("V10-39", "V-072")
def test_a_required_component_that_is_missing_ends_the_run_before_any_phase() -> None:
    """Also when its check belongs to the last phase; a preferred one leaves its term out."""
    needs = entry("a", "performance", affinity=(Affinity("slurm", {"app": "s"}, "required"),))
    likes = entry("b", affinity=(Affinity("slurm", {"app": "s"}),))
    document = recipe(deployment=["b"], performance=["a"])
    with pytest.raises(AicrError) as raised:
        gates(order(document, [likes, needs]), Heard())
    assert raised.value.code == "INVALID_REQUEST"
    assert '"slurm"' in raised.value.message
    disabled = {"name": "slurm", "overrides": {"enabled": False}}
    document["componentRefs"].append(disabled)
    with pytest.raises(AicrError):
        gates(order(document, [likes, needs]), Heard())
    assert "podAffinity" not in affinity.resolve([likes], document)["b"]


def test_dependency_terms_are_resolved_to_the_components_namespace() -> None:
    """Required terms must hold, preferred ones weigh 100."""
    wishes = (
        Affinity("gpu-operator", {"app": "x"}, "required", "zone"),
        Affinity("gpu-operator", {"app": "y"}),
    )
    found = affinity.resolve([entry("a", affinity=wishes)], recipe())["a"]["podAffinity"]
    assert found["requiredDuringSchedulingIgnoredDuringExecution"] == [
        {
            "labelSelector": {"matchLabels": {"app": "x"}},
            "namespaces": ["gpu-operator"],
            "topologyKey": "zone",
        }
    ]
    preferred = found["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [one["weight"] for one in preferred] == [100]


@pytest.mark.covers("V-441")
def test_pods_prefer_nodes_without_gpus_and_never_take_a_simulated_one() -> None:
    """A node that runs nothing would report a check as done that never ran."""
    found = made(entry("a"))["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    preferred = found["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred == [
        {
            "weight": 100,
            "preference": {
                "matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "DoesNotExist"}]
            },
        }
    ]
    terms = found["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [one["key"] for one in terms[0]["matchExpressions"]] == ["type", "aicr.run/hollow"]


@pytest.mark.covers("V-109", "V-110", "V-111")
def test_account_and_binding_are_the_runs_own() -> None:
    """Named after the run, found by label, bound to cluster-admin."""
    account, binding = objects.service_account(PLACE), objects.binding(PLACE)
    assert account["metadata"]["name"] == binding["metadata"]["name"] == f"aicr-validator-{RUN}"
    for document in (account, binding):
        assert document["metadata"]["labels"]["app.kubernetes.io/name"] == "aicr-validator"
        assert document["metadata"]["labels"]["aicr.run/run-id"] == RUN
    assert binding["roleRef"]["name"] == "cluster-admin"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": f"aicr-validator-{RUN}", "namespace": "aicr-validation"}
    ]
    other = Place("aicr-validation", RUN[:-1] + "0")
    assert objects.binding(other)["metadata"]["name"] != binding["metadata"]["name"]


def test_the_selection_follows_the_catalogue() -> None:
    """Declared checks in the catalogue's order; withheld ones apart."""
    found = order(
        recipe(deployment=["c", "a", "b"]), [entry("a"), entry("b"), entry("c"), entry("d")]
    )
    run, withheld = selected(found.catalog, found.recipe, "deployment", ["b"])
    assert [one.name for one in run] == ["a", "c"]
    assert [one.name for one in withheld] == ["b"]


def test_the_validation_input_is_the_recipe_as_checks_know_it() -> None:
    """Readiness is in it although it is no phase; the recipe itself stays as it was."""
    document = recipe([{"name": "x", "value": "1"}], deployment=["a"])
    document["validation"]["readiness"] = {"constraints": [{"name": "y", "value": "2"}]}
    document["criteria"] = {"service": "eks"}
    found = validation_input(document, "dra-resource-claim")
    assert set(found) == {
        "constraints",
        "config",
        "criteria",
        "componentRefs",
        "gpuAllocationPolicy",
    }
    assert found["config"]["readiness"] == {"constraints": [{"name": "y", "value": "2"}]}
    assert found["gpuAllocationPolicy"] == "dra-resource-claim"
    found["constraints"].clear()
    assert document["constraints"]


def test_a_document_that_no_config_map_holds_is_refused_with_the_way_out() -> None:
    """Compact JSON is tried first; then the error names the runner without that limit."""
    wide = {"a": {"b": {"c": {"d": {"e": ["x"] * 100_000}}}}}
    assert mounted_text(wide, "snapshot").startswith("{")
    with pytest.raises(AicrError, match="snapshot") as raised:
        mounted_text({"a": "x" * 1_100_000}, "snapshot")
    assert "--runner local" in raised.value.hint
