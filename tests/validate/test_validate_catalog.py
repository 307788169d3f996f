"""The catalogue of checks: reading, merging, and what holds of the one that ships."""

from __future__ import annotations

from pathlib import Path

import pytest

from aicr.catalog.catalog import Catalog
from aicr.checks import registry
from aicr.errors import AicrError
from aicr.validate import catalog, images
from aicr.validate.phases import ORDER
from aicr.validate.timing import Timing
from aicr.values import durations

HEAD = "apiVersion: validator.nvidia.com/v1alpha1\nkind: ValidatorCatalog\nvalidators:\n"
ONE = "  - {name: a, phase: deployment, image: r/a:v1}\n"


def read(body: str, head: str = HEAD) -> catalog.ValidatorCatalog:
    """A catalogue from its entries."""
    return catalog.parse(head + body, "catalog.yaml")


@pytest.mark.covers("V-089")
def test_an_entry_has_all_its_fields() -> None:
    """Name, phase, image, text, budget, arguments, variables, resources and affinity."""
    found = read(
        "  - name: a\n    phase: conformance\n    image: r/a:v1\n    description: about\n"
        "    timeout: 90s\n    args: [a, --b]\n    env: [{name: X, value: '1'}]\n"
        "    resources: {cpu: '2', memory: 4Gi}\n    dependencyAffinity:\n"
        "      - {componentRef: p, podLabelSelector: {app: p}}\n"
    ).entries[0]
    assert (found.name, found.phase, found.image) == ("a", "conformance", "r/a:v1")
    assert found.timeout == 90 * durations.SECOND
    assert (found.args, found.env) == (("a", "--b"), (("X", "1"),))
    assert found.resources == {"cpu": "2", "memory": "4Gi"}
    assert found.affinity == (
        catalog.Affinity("p", {"app": "p"}, "preferred", "kubernetes.io/hostname"),
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("  - {phase: deployment, image: r}\n", "a check needs a name"),
        ("  - {name: A_b, phase: deployment, image: r}\n", "is no DNS label"),
        ("  - {name: a, phase: readiness, image: r}\n", 'unknown phase "readiness"'),
        ("  - {name: a, phase: deploymnt, image: r}\n", 'did you mean "deployment"'),
        ("  - {name: a, phase: deployment}\n", 'check "a" has no image'),
        ("  - {name: a, phase: deployment, image: r, timeout: 5 min}\n", "invalid timeout"),
        ("  - {name: a, phase: deployment, image: r, timeout: 5ms}\n", "less than a second"),
        ("  - {name: a, phase: deployment, image: r, tiemout: 5m}\n", "timeout"),
        ("  - {name: a, phase: deployment, image: r, args: a}\n", "must be a list"),
        ("  - {name: a, phase: deployment, image: r, args: [1]}\n", 'quote it: "1"'),
        ("  - {name: a, phase: deployment, image: r, env: [{value: x}]}\n", "needs a name"),
        ("  - 3\n", "must be a map"),
        (
            "  - {name: a, phase: deployment, image: r, dependencyAffinity: "
            "[{podLabelSelector: {a: b}}]}\n",
            "componentRef is required",
        ),
        (
            "  - {name: a, phase: deployment, image: r, dependencyAffinity: [{componentRef: p}]}\n",
            "podLabelSelector is required",
        ),
        (
            "  - {name: a, phase: deployment, image: r, dependencyAffinity: "
            "[{componentRef: p, podLabelSelector: {a: b}, requirement: soft}]}\n",
            'invalid requirement "soft"',
        ),
    ],
)
def test_a_wrong_entry_is_refused_with_its_place(body: str, said: str) -> None:
    """Every refusal is INVALID_REQUEST and says file, line and column."""
    with pytest.raises(AicrError) as raised:
        read(body)
    error = raised.value
    assert error.code == "INVALID_REQUEST"
    assert said in f"{error} {error.hint}"
    assert error.where.startswith("catalog.yaml:4:")


@pytest.mark.parametrize(
    "head", ["kind: X\nvalidators:\n", HEAD.replace("v1alpha1", "v2"), "- 1\n- "]
)
def test_another_header_is_refused(head: str) -> None:
    """Kind and apiVersion are checked before anything else."""
    with pytest.raises(AicrError) as raised:
        read(ONE, head)
    assert raised.value.code == "INVALID_REQUEST"


@pytest.mark.covers("V10-33")
def test_a_name_is_unique_over_all_phases() -> None:
    """The same name in two phases is a load error that names both places."""
    with pytest.raises(AicrError) as raised:
        read(ONE + "  - {name: a, phase: conformance, image: r/b:v1}\n")
    assert raised.value.message == 'duplicate check name "a"'
    assert "catalog.yaml:4" in raised.value.hint
    assert raised.value.where.startswith("catalog.yaml:5")


def test_order_is_kept_and_an_unknown_phase_is_empty() -> None:
    """`for_phase` gives the catalogue's order."""
    found = read(
        "  - {name: b, phase: deployment, image: r}\n  - {name: c, phase: performance, image: r}\n"
        + ONE
    )
    assert [entry.name for entry in found.for_phase("deployment")] == ["b", "a"]
    assert found.for_phase("readiness") == []


@pytest.mark.covers("V10-35", "V-442")
def test_a_data_directory_replaces_by_name_and_appends(tmp_path: Path) -> None:
    """A known name is replaced as a whole and keeps its place; new names come last."""
    (tmp_path / "registry.yaml").write_text(
        "apiVersion: aicr.run/v1beta1\nkind: ComponentRegistry\ncomponents: []\n"
    )
    (tmp_path / "validators").mkdir()
    (tmp_path / "validators" / "catalog.yaml").write_text(
        HEAD
        + "  - {name: our-own, phase: conformance, image: registry.example/own:v1}\n"
        + "  - {name: operator-health, phase: deployment, image: registry.example/op:v2}\n"
    )
    shipped = catalog.load(Catalog.builtin().tree)
    found = catalog.load(Catalog.builtin().overlay(str(tmp_path)).tree)
    assert found.names() == [*shipped.names(), "our-own"]
    replaced = found.find("operator-health")
    assert replaced is not None
    assert (replaced.image, replaced.args) == ("registry.example/op:v2", ())
    assert found.find("dra-support") == shipped.find("dra-support")


@pytest.mark.covers("V-079", "V-081", "V-435")
def test_what_holds_of_the_shipped_catalogue() -> None:
    """Every entry is a check of this product, its budget fits, and its deadlines nest."""
    found = catalog.load(Catalog.builtin().tree)
    timing = Timing()
    assert sorted(found.names()) == sorted(registry.names())
    assert {entry.phase for entry in found.entries} == set(ORDER)
    for entry in found.entries:
        budget = entry.timeout / durations.SECOND
        assert entry.args[0] == entry.name
        assert entry.env == ()
        assert images.is_ours(entry.image)
        assert entry.image.endswith(f"aicr-checks-{entry.phase}:latest")
        assert budget + 210 < 75 * 60, entry.name
        assert budget < timing.wait_seconds(budget) < timing.job_deadline(budget)
    assert {"inference-perf", "inference-gateway", "nccl-all-reduce-bw-net"} <= set(found.names())
