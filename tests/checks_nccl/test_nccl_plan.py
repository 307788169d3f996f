"""What a run measures, from the recipe alone (validators spec 7.1, 7.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.checks_nccl.bench import validation

from aicr.catalog.catalog import Catalog
from aicr.checks.performance import nccl_carrier, nccl_settings, nccl_templates, nccl_variants
from aicr.checks.performance.nccl_plan import Plan, resolve
from aicr.checks.performance.nccl_variants import DEFAULT, EFA, NET, NVLS, ROCE, Pair, Variant
from aicr.checks.sdk import Skip
from aicr.errors import INVALID_REQUEST, AicrError
from aicr.validate import runtime_ref

READ = Catalog.builtin().tree.read_text
#: validators spec 7.2: what a profile may name.
PROFILES = [
    *("b200/any", "gb200/any", "gb200/eks", "gb200/gke", "gb200/oke", "gb300/eks"),
    *("gb300/generic", "h100/aks", "h100/eks", "h100/gke", "h200/eks", "vr200/rke2"),
]
CARRIER = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: theirs}
spec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: %s}}}}]}}}
"""
PODS = "{containers: [{name: node, image: a}]}"
CLAIM = "{containers: [{name: node}], resourceClaims: [{name: c, %s}]}"


def plan(
    variant: Variant,
    service: str,
    accelerator: str,
    environ: Mapping[str, str] | None = None,
    **stated: str,
) -> Plan:
    """The plan for criteria; *stated* are constraints, with ``_`` for ``-``."""
    more = {key.replace("_", "-"): value for key, value in stated.items()}
    given = validation({variant.check: ">= 40", **more}, service, accelerator)
    return resolve(variant, given, environ or {}, READ)


@pytest.mark.covers("V-283")
def test_every_advertised_pair_has_a_template_of_ours() -> None:
    """It parses, names only placeholders that have a value, and can be applied."""
    advertised = list(nccl_variants.template_paths())
    assert len({path for *_, path in advertised}) == len(advertised) == 16
    for variant, pair, _, path in advertised:
        text = READ(path)
        assert nccl_templates.unfilled(text) == [], path
        runtime = nccl_templates.parse(nccl_templates.sample(text), path)
        nccl_templates.check(runtime)
        launcher = nccl_templates.launcher_template(runtime)
        (script,) = nccl_templates.worker_container(launcher)["args"]
        assert "NCCL_DEBUG=INFO" in script, path
        pods = nccl_templates.node_template(runtime)
        claims = [
            one["resourceClaimTemplateName"] for one in pods["spec"].get("resourceClaims", [])
        ]
        assert claims == ([nccl_templates.IMEX_TEMPLATE] if variant is NVLS else []), pair
        assert ("NCCL_MNNVL_ENABLE=0" in script) is (variant is NET), pair
        worker = nccl_templates.worker_container(pods)
        assert worker["resources"]["limits"]["nvidia.com/gpu"] == 8
        assert "terminationMessagePolicy" not in worker


def test_no_template_lies_there_that_nobody_advertises() -> None:
    """Files and matrix are the same set."""
    there = {
        path
        for path in Catalog.builtin().tree.paths()
        if path.startswith("validators/performance/testdata/")
    }
    assert there == {path for *_, path in nccl_variants.template_paths()}


@pytest.mark.covers("V-279", "V-283")
def test_profiles_are_the_pairs_of_the_matrix() -> None:
    """No more and no fewer than the specification lists."""
    assert nccl_variants.profiles() == PROFILES


@pytest.mark.covers("V-278")
@pytest.mark.parametrize(
    ("variant", "service", "accelerator", "path"),
    [
        (DEFAULT, "eks", "h100", "h100/eks/runtime.yaml"),
        (DEFAULT, "any", "gb200", "gb200/any/runtime.yaml"),
        (DEFAULT, "", "b200", "b200/any/runtime.yaml"),
        (DEFAULT, "eks", "gb200", ""),
        (DEFAULT, "oke", "h100", ""),
        (NET, "eks", "gb300", "gb300/eks/runtime-net.yaml"),
        (NET, "oke", "gb200", "gb200/oke/runtime-net.yaml"),
        (NET, "gke", "gb200", ""),
        (NVLS, "gke", "gb200", "gb200/gke/runtime-nvls.yaml"),
        (NVLS, "rke2", "vr200", "vr200/rke2/runtime-nvls.yaml"),
        (NVLS, "any", "gb200", ""),
    ],
)
def test_the_matrix_decides_without_a_profile(
    variant: Variant, service: str, accelerator: str, path: str
) -> None:
    """Criteria that say nothing are `any`; a pair that is not there skips."""
    if path:
        assert plan(variant, service, accelerator).place.endswith(f"testdata/{path}")
        return
    with pytest.raises(Skip, match="requires Service \\+ Accelerator to be implemented"):
        plan(variant, service, accelerator)


@pytest.mark.covers("V-279", "V-280", "V-282")
def test_a_profile_chooses_template_and_plumbing_and_not_the_nodes() -> None:
    """The environment has no say; the accelerator stays the recipe's."""
    environ = {"AICR_NCCL_BENCHMARK_PROFILE": "h200/eks", "NCCL_BENCHMARK_PROFILE": "h200/eks"}
    found = plan(DEFAULT, "mine", "a100", environ, nccl_benchmark_profile="h100/eks")
    assert (found.pair, found.accelerator, found.service) == (
        Pair("h100", "eks"),
        "a100",
        "mine",
    )


@pytest.mark.covers("V-273")
@pytest.mark.parametrize(
    ("variant", "value", "path"),
    [
        (NET, "", "gb200/eks/runtime-net.yaml"),
        (NET, "EFA", "gb200/eks/runtime-net.yaml"),
        (NET, "RoCE", "roce/eks/runtime-net.yaml"),
        (NVLS, "nonsense", "gb200/eks/runtime-nvls.yaml"),
    ],
)
def test_the_fabric_is_a_choice_of_the_network_variant(
    variant: Variant, value: str, path: str
) -> None:
    """In any case; others do not read it. Method is the check's, the threshold stays the recipe's."""
    found = plan(variant, "eks", "gb200", {"AICR_NCCL_FABRIC": value})
    assert found.place.endswith(path)
    assert found.threshold.gbps == 40
    assert found.fabric == (ROCE if "roce" in path else EFA)


@pytest.mark.covers("V-274")
def test_an_unknown_fabric_is_refused_and_roce_elsewhere_skips() -> None:
    """A word that nobody knows is no EFA; RoCE has a template on EKS only."""
    with pytest.raises(AicrError, match='AICR_NCCL_FABRIC "ib"') as caught:
        plan(NET, "eks", "gb200", {"AICR_NCCL_FABRIC": "ib"})
    assert caught.value.code == INVALID_REQUEST
    with pytest.raises(Skip):
        plan(NET, "oke", "gb200", {"AICR_NCCL_FABRIC": "roce"})


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("nccl", True),
        ("reg.test:5000/a/b:v1", True),
        ("reg.test/a@sha256:" + "0" * 64, True),
        ("reg.test/a:v1@sha256:" + "0" * 64, True),
        ("Upper/case", False),
        ("a b", False),
        ("a:", False),
        ("a@sha256:123", False),
        ("https://reg.test/a", False),
        ("a/../b", False),
    ],
)
def test_an_image_that_is_no_reference_is_refused(text: str, fine: bool) -> None:
    """INVALID_REQUEST, in the pod, before anything is deployed."""
    if fine:
        assert nccl_settings.image({"AICR_NCCL_RUNTIME_IMAGE": text}) == text
        return
    with pytest.raises(AicrError) as caught:
        nccl_settings.image({"AICR_NCCL_RUNTIME_IMAGE": text})
    assert caught.value.code == INVALID_REQUEST


@pytest.mark.covers("V-277")
@pytest.mark.parametrize(
    ("expression", "gbps", "least"),
    [
        (">= 450 GB/s", 450.0, 405.0),
        ("450", 450.0, 405.0),
        ("== 300", 300.0, 270.0),
        ("<=0.1", 0.1, 0.09),
        ("!= 40.5 or so", 40.5, 36.45),
    ],
)
def test_a_threshold_is_the_first_number_and_its_operator_is_not_looked_at(
    expression: str, gbps: float, least: float
) -> None:
    """Nine tenths, exact on the decimals."""
    found = nccl_settings.threshold(expression, "x")
    assert (found.gbps, found.least) == (gbps, least)
    assert found.is_met(least)
    assert not found.is_met(least - 0.001)


@pytest.mark.covers("V-285", "V-286", "V-288", "V-293", "V-297")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CARRIER % PODS, ""),
        (
            (CARRIER % PODS).replace("kind: Training", "kind: ClusterTraining"),
            "ClusterTrainingRuntime",
        ),
        ((CARRIER % PODS).replace("v1alpha1", "v1"), "trainer.kubeflow.org/v1 "),
        (
            (CARRIER % PODS).replace("name: node, template", "name: worker, template"),
            'no replicated job "node"',
        ),
        (CARRIER % "{}", "has no pod spec"),
        (CARRIER % "{containers: [{name: node}], nodeSelector: {a: 1}}", "not a map of text"),
        (CARRIER % (CLAIM % "resourceClaimName: x"), 'claims "x"'),
        (CARRIER % (CLAIM % "resourceClaimTemplateName: other"), 'claims "other"'),
        (CARRIER % PODS + "---\nkind: Secret\n", "holds 2 documents"),
        ("just words", "holds 1 documents"),
        ("a: [", "cannot be used"),
    ],
    ids=[
        "fine",
        "kind",
        "version",
        "no node",
        "no spec",
        "selector",
        "claim",
        "template",
        "two",
        "words",
        "yaml",
    ],
)
def test_a_carrier_is_one_training_runtime_and_nothing_else(text: str, said: str) -> None:
    """INVALID_REQUEST says what of it cannot be used."""
    if not said:
        assert plan(DEFAULT, "mine", "own", nccl_benchmark_runtime=text).supplied
        return
    with pytest.raises(AicrError) as caught:
        plan(DEFAULT, "mine", "own", nccl_benchmark_runtime=text)
    assert caught.value.code == INVALID_REQUEST
    assert said in str(caught.value)


@pytest.mark.covers("V-295")
def test_a_carrier_and_a_profile_exclude_each_other() -> None:
    """One owner of the wiring."""
    with pytest.raises(AicrError, match="both stated"):
        plan(
            DEFAULT,
            *("eks", "h100"),
            nccl_benchmark_profile="h100/eks",
            nccl_benchmark_runtime=CARRIER % PODS,
        )


@pytest.mark.parametrize("name", [nccl_carrier.REF, nccl_carrier.CARRIER])
def test_a_constraint_that_is_stated_twice_is_refused(name: str) -> None:
    """Nobody could tell which one was measured."""
    stated = [{"name": name, "value": "a/b"}, {"name": name, "value": "a/b"}]
    with pytest.raises(AicrError, match="stated 2 times"):
        nccl_carrier.carried(stated)


def test_write_side_and_read_side_have_the_same_names() -> None:
    """What the orchestrator writes, the pod reads."""
    assert (nccl_carrier.REF, nccl_carrier.CARRIER) == (runtime_ref.REF, runtime_ref.CARRIER)


@pytest.mark.covers("V-284", "V-285", "V-286", "V10-63")
def test_a_reference_becomes_the_carrier_that_the_pod_takes() -> None:
    """From a file of the layout of our own templates to a plan; a traversal is refused."""
    recipe: dict[str, Any] = {
        "validation": {
            "performance": {
                "constraints": [
                    {"name": "nccl-all-reduce-bw", "value": ">= 1"},
                    {"name": runtime_ref.REF, "value": "h100/eks"},
                ]
            }
        }
    }
    resolved = runtime_ref.resolve(recipe, Catalog.builtin().tree)
    given = {"config": {"performance": resolved["validation"]["performance"]}}
    found = resolve(DEFAULT, given, {}, READ)
    assert found.supplied
    assert "numNodes: ${WORKER_COUNT}" in found.template
    recipe["validation"]["performance"]["constraints"][1]["value"] = "../x/y"
    with pytest.raises(AicrError) as caught:
        runtime_ref.resolve(recipe, Catalog.builtin().tree)
    assert caught.value.code == INVALID_REQUEST


def test_placeholders_keep_their_kind_and_a_shells_are_left_alone() -> None:
    """A bare one becomes a number, a quoted one text."""
    text = "a: ${WORKER_COUNT}\nb: '${WORKER_COUNT}'\nc: ${HOME}\nd: $try\n"
    filled = nccl_templates.fill(text, nccl_templates.variables("ns", 3, 8))
    assert nccl_templates.parse(filled, "x") == {"a": 3, "b": "3", "c": "${HOME}", "d": "$try"}
    assert nccl_templates.unfilled(text) == ["HOME"]
