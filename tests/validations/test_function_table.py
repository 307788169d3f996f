"""Every validation on real recipes: it fires, it is silent, and it goes with its component."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tools.validation_table import DISABLED, FIRES, SILENT, SITUATIONS, Result, Situation, report

from aicr.bundle.validations.table import FUNCTIONS
from aicr.catalog.catalog import Catalog
from tools import validation_table


@pytest.mark.covers(
    "V-342",
    "B10-66",
    "B10-67",
    "B10-68",
    "B10-69",
    "B10-70",
    "B10-71",
    "B10-72",
    "B10-73",
    "B10-74",
)
@pytest.mark.parametrize(
    "situation", SITUATIONS, ids=lambda each: f"{each.function}-{each.kind.replace(' ', '-')}"
)
def test_a_function_on_a_real_recipe(situation: Situation) -> None:
    """Outcome, code and words on a leaf of the built-in catalogue."""
    result = validation_table.run(situation)
    assert result.outcome == situation.outcome, result.said
    assert result.expected, result.said


def test_every_function_has_its_three_situations() -> None:
    """A new function comes with a leaf on which it fires."""
    found: dict[str, list[str]] = {function: [] for function in FUNCTIONS}
    for situation in SITUATIONS:
        found[situation.function].append(situation.kind)
    assert found == {function: [FIRES, SILENT, DISABLED] for function in FUNCTIONS}


def test_the_registry_wires_every_function_and_only_these() -> None:
    """The built-in registry names no function that does not ship, and leaves none out."""
    wired = {
        block["function"]
        for entry in Catalog.builtin().registry.entries
        for block in entry.get("validations") or ()
    }
    assert wired == set(FUNCTIONS)


@pytest.mark.covers("V-356", "V-344")
def test_severities_are_those_of_the_seed() -> None:
    """Component, severity and conditions of each function (decision 55, bundler spec 6.4)."""
    nodewright, sentinel = "nodewright-customizations", "nvsentinel"
    wired = {
        (entry["name"], block["function"]): (block.get("severity"), block.get("conditions", {}))
        for entry in Catalog.builtin().registry.entries
        for block in entry.get("validations") or ()
    }
    none: dict[str, list[str]] = {}
    error, warning, info = ("error", none), ("warning", none), "info"
    aks = {"service": ["aks"]}
    assert wired == {
        (nodewright, "CheckWorkloadSelectorMissing"): ("warning", {"intent": ["training"]}),
        (nodewright, "CheckAcceleratedSelectorMissing"): (
            info,
            {"intent": ["inference", "training"]},
        ),
        ("gpu-operator", "CheckHostMofedWithoutNetworkOperator"): ("warning", aks),
        (nodewright, "CheckWildcardAcceleratedToleration"): ("error", aks),
        (nodewright, "CheckGB300HostKernelGranule"): (
            info,
            {"service": ["generic"], "accelerator": ["gb300"]},
        ),
        ("node-problem-detector", "CheckNPDNotDuplicatingProviderNPD"): error,
        ("gpu-operator", "CheckDriverOwnershipCoherence"): error,
        ("gpu-operator-ocp", "CheckDriverOwnershipCoherence"): error,
        ("mariadb-operator", "CheckMariaDBOperatorOwnershipCoherence"): warning,
        ("kubeflow-trainer", "CheckGKETCPXOInterfacesCoherence"): (
            "error",
            {"service": ["gke"], "accelerator": ["h100"]},
        ),
        (sentinel, "CheckNVSentinelDriverLabelDetectable"): error,
        (sentinel, "CheckNVSentinelRuntimeClassCoherence"): error,
        (sentinel, "CheckNVSentinelTracingEndpointRequired"): error,
        (sentinel, "CheckNVSentinelNicHealthMonitorRequiresMetadataCollector"): error,
        (sentinel, "CheckNVSentinelPreflightDCGMReachable"): error,
        (sentinel, "CheckNVSentinelPreflightGangSchedulerRequired"): error,
        ("nvsentinel-mongodb", "CheckNVSentinelDatastorePrerequisites"): warning,
    }


def test_the_report_shows_every_situation_and_what_is_wrong() -> None:
    """What is shown for a closing note is what is tested here."""
    results = [Result(each, each.outcome, each.said) for each in SITUATIONS]
    lines = report(results).splitlines()
    assert lines[-1] == "16 functions, 48 situations, 0 not as expected"
    assert [line for line in lines if not line.startswith(" ")][:-1] == list(FUNCTIONS)
    results[0] = Result(SITUATIONS[0], SILENT, "")
    assert "WRONG: expected note" in report(results)


PLAN = """
import sys
import aicr
from aicr.bundle.plan import plan
catalog = aicr.Catalog.builtin()
recipe = aicr.resolve(catalog, aicr.Criteria(**CRITERIA))
plan(recipe.document, catalog, aicr.BundleOptions(set=SET))
mine = "aicr.bundle.validations."
print(*sorted(name.removeprefix(mine) for name in sys.modules if name.startswith(mine)))
"""
ENGINE = {"conditions", "effective", "engine", "table"}
SENTINEL = {
    *("nvsentinel_gang", "nvsentinel_labels", "nvsentinel_nic", "nvsentinel_preflight"),
    *("nvsentinel_runtime_class", "nvsentinel_tracing"),
}


@pytest.mark.parametrize(
    ("criteria", "flags", "modules"),
    [
        (
            {"service": "eks", "accelerator": "h100", "intent": "training"},
            (),
            {*ENGINE, *SENTINEL, "driver_ownership", "selectors"},
        ),
        (
            {"service": "eks", "accelerator": "h100", "intent": "training"},
            ("nvsentinel:enabled=false", "nodewright-customizations:enabled=false"),
            {*ENGINE, "driver_ownership"},
        ),
    ],
    ids=["whole", "without two components"],
)
def test_only_the_checks_that_apply_are_loaded(
    criteria: dict[str, str], flags: tuple[str, ...], modules: set[str]
) -> None:
    """A bundle imports what its rendered components wire and its criteria ask for."""
    code = PLAN.replace("CRITERIA", repr(criteria)).replace("SET", repr(flags))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == modules
