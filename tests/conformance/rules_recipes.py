"""The rules for recipes: resolution, the criteria matrix, and queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.compare import Difference, at, join, steps
from tests.conformance.rules import (
    ABSENT,
    Case,
    Everywhere,
    Exactly,
    Holding,
    Rule,
    accepted,
    refused,
    reworded,
)

from aicr.version import __version__

LEGACY = "aicr.nvidia.com/v1alpha1"
NODES_GONE = "sets criteria.nodes=8 which is no longer used for overlay selection (#1781)"
NO_CRITERIA = "no criteria provided: specify at least one of --service"


def holder(case: Case, difference: Difference) -> tuple[Any, Any]:
    """What holds the place of a difference: the golden's and ours."""
    path = join(str(step) for step in steps(difference.path)[:-1])
    return at(case.expected, path), at(case.actual, path)


def _header(_: Case, difference: Difference) -> bool:
    return bool(difference.expected == LEGACY and difference.actual == "aicr.run/v1")


def _own_version(_: Case, difference: Difference) -> bool:
    return bool(difference.expected == "dev" and difference.actual == __version__)


def _assert_text(case: Case, difference: Difference) -> bool:
    """The text is that of the file which the registry names for this very component."""
    catalog = case.facts["catalog"]
    entry = catalog.registry.get(holder(case, difference)[1]["name"])
    file = (entry.get("healthCheck") or {}).get("assertFile")
    return bool(file) and difference.actual == catalog.tree.read_text(file)


def _same_checks(case: Case, difference: Difference) -> bool:
    theirs, ours = holder(case, difference)
    return sorted(theirs) == sorted(ours)


def _named_with_reason(_: Case, difference: Difference) -> bool:
    return bool(difference.actual == {"name": difference.expected, "reason": "constraint-failed"})


def _body_that_remains(case: Case, difference: Difference) -> bool:
    """The whole section is that of the original's recipe for the overlays that are left."""
    section = str(steps(difference.path)[1])
    applied = tuple(case.actual["document"]["metadata"]["appliedOverlays"])
    golden = case.facts["bodies"][applied].get(section)
    ours = case.actual["document"].get(section)
    if section == "componentRefs":
        ours = [{k: v for k, v in ref.items() if k != "healthCheckAsserts"} for ref in ours]
    return bool(golden == ours)


def _service(word: str) -> Callable[[Any], bool]:
    return lambda document: bool(document["criteria"]["service"] == word)


def _warning(overlay: str, constraint: str, wanted: str, reason: str) -> dict[str, str]:
    return {"overlay": overlay, "constraint": constraint, "expected": wanted, "reason": reason}


ROUTINE: tuple[Rule, ...] = (
    Everywhere(
        id="api-version",
        source="decision 1",
        text="Documents of v0.11.1 become aicr.run/v1.",
        parts=("resolve", "matrix", "query", "bundle-base", "bundle-variant"),
        paths=("document.apiVersion", "document.recipe.apiVersion"),
        kinds=("value",),
        holds=_header,
        routine=True,
    ),
    Everywhere(
        id="tool-version",
        source="decision 40",
        text="The version of the tool that wrote the document is its own.",
        parts=("resolve", "matrix", "query"),
        paths=("document.metadata.version",),
        kinds=("value",),
        holds=_own_version,
        routine=True,
    ),
    Everywhere(
        id="health-check-asserts",
        source="recipe spec 3.5",
        text="A component carries the text of the assert file that the registry names for it.",
        parts=("resolve", "matrix"),
        paths=("document.componentRefs[*].healthCheckAsserts",),
        kinds=("extra",),
        holds=_assert_text,
        routine=True,
    ),
)

MERGING: tuple[Rule, ...] = (
    Everywhere(
        id="checks-united",
        source="recipe spec 4.5",
        text="Checks of a phase unite, the inherited first, instead of being replaced.",
        parts=("resolve", "matrix"),
        paths=("document.validation.conformance.checks[*]",),
        kinds=("value",),
        holds=_same_checks,
    ),
    Exactly(
        id="deep-merge",
        source="decision 2; recipe spec 4.1",
        text="Overrides merge at every depth, dependencyRefs unite, phases merge by field.",
        part="resolve",
        cases={
            "data-merge-rules-child": {
                "document.componentRefs[0].overrides.a.n.x": 1,
                "document.componentRefs[0].overrides.a.onlyParent": "p",
                "document.componentRefs[0].dependencyRefs[0]": "cert-manager",
                "document.componentRefs[0].dependencyRefs[1]": "gpu-operator",
                "document.componentRefs[0].dependencyRefs[2]": "beta2dep",
                # alpha now waits for gpu-operator too.
                "document.deploymentOrder[2]": "gamma",
                "document.deploymentOrder[3]": "kube-prometheus-stack",
                "document.deploymentOrder[4]": "gpu-operator",
                "document.deploymentOrder[5]": "alpha",
                "document.deploymentOrder[6]": "beta",
                "document.validation.deployment.checks[0]": "operator-health",
                "document.validation.deployment.checks[1]": "expected-resources",
                "document.validation.deployment.constraints": [
                    {"name": "Deployment.alpha.version", "value": ">= v1.0.0"}
                ],
            }
        },
    ),
    Exactly(
        id="deep-merge-values",
        source="decision 2; recipe spec 4.1",
        text="As deep-merge, seen in the hydrated component.",
        part="query",
        cases={
            "data-merge-rules": {
                "document.values.a.n.x": 1,
                "document.values.a.onlyParent": "p",
                "document.dependencyRefs[0]": "cert-manager",
                "document.dependencyRefs[1]": "gpu-operator",
                "document.dependencyRefs[2]": "beta2dep",
            }
        },
    ),
    Exactly(
        id="specificity",
        source="recipe spec 4.3",
        text="An omitted criterion counts no more than `any`: monitoring-hpa is the least specific.",
        part="resolve",
        cases={
            "data-sibling-explicit-any": {
                "document.metadata.appliedOverlays[1]": "monitoring-hpa",
                "document.metadata.appliedOverlays[2]": "general",
                "document.metadata.appliedOverlays[3]": "specific",
            }
        },
    ),
    Exactly(
        id="null-deletes",
        source="decision 2; recipe spec 7",
        text="A null deletes the value below it; where none of ours is below, it stays for Helm.",
        part="query",
        cases={
            "values-with-inline-null": {"document.emptyDir": ABSENT},
            "data-merge-rules": {"document.values.gone": ABSENT},
        },
    ),
    Everywhere(
        id="null-deletes-storage",
        source="decision 2; recipe spec 7",
        text="As null-deletes, in whole documents: emptyDir stands in the component's values file.",
        parts=("query", "bundle-base", "bundle-variant"),
        paths=(
            "document.components.kube-prometheus-stack.values.prometheus.prometheusSpec"
            ".storageSpec.emptyDir",
        ),
        kinds=("missing",),
        holds=lambda _, difference: difference.expected is None,
    ),
    Exactly(
        id="nodes-match-nothing",
        source="recipe spec 1.7",
        text="Nodes are metadata; an external overlay that selects on them is refused.",
        part="resolve",
        cases={
            name: refused("INVALID_REQUEST", NODES_GONE)
            for name in ("data-nodes-overlay-8", "data-nodes-overlay-4", "data-nodes-overlay-none")
        },
    ),
    Exactly(
        id="broken-registry",
        source="kit README, not comparable: data-bad-registry",
        text="A registry that cannot be read is an error, not a lack of defaults.",
        part="resolve",
        cases={
            "data-bad-registry": refused(
                "INVALID_REQUEST", "components must be a list, found a map"
            )
        },
    ),
)

SNAPSHOT: tuple[Rule, ...] = (
    Everywhere(
        id="excluded-with-reason",
        source="recipe spec 4.8",
        text="An excluded overlay is listed with the reason.",
        parts=("resolve", "query"),
        paths=("document.metadata.excludedOverlays[*]", "document[*]"),
        kinds=("type",),
        holds=_named_with_reason,
    ),
    Exactly(
        id="leaves-only",
        source="recipe spec 4.3, 4.8",
        text="Only the most specific overlay is held against the snapshot, and nothing replaces it.",
        part="resolve",
        cases={
            "snapshot-eks-h100-inference-dynamo": {
                f"document.metadata.appliedOverlays[{n}]": ABSENT for n in range(2, 6)
            },
            "snapshot-aks-gb200-inference": {
                "document.metadata.excludedOverlays": ABSENT,
                "document.metadata.constraintWarnings": ABSENT,
            },
            "snapshot-old-k8s-training": {
                "document.metadata.appliedOverlays[2]": ABSENT,
                **{f"document.metadata.excludedOverlays[{n}]": ABSENT for n in range(3)},
                "document.metadata.excludedOverlays.+": {
                    "name": "h100-eks-ubuntu-training",
                    "reason": "constraint-failed",
                },
                **{f"document.metadata.constraintWarnings[{n}]": ABSENT for n in range(2)},
            },
            "snapshot-empty": {
                **{f"document.metadata.excludedOverlays[{n}]": ABSENT for n in range(2)},
                "document.metadata.excludedOverlays.+": {
                    "name": "eks-training",
                    "reason": "constraint-failed",
                },
                **{f"document.metadata.constraintWarnings[{n}]": ABSENT for n in range(2)},
                "document.metadata.constraintWarnings.+": _warning(
                    "eks-training",
                    "K8s.server.version",
                    ">= 1.30",
                    "[NOT_FOUND] K8s.server.version: value not found in snapshot: "
                    "[NOT_FOUND] measurement type not found in snapshot",
                ),
            },
        },
    ),
    Everywhere(
        id="no-fallback",
        source="recipe spec 4.8",
        text="With the leaf excluded its ancestors go too: the rest is the body of what remains.",
        parts=("resolve",),
        paths=(
            "document.constraints.**",
            "document.componentRefs.**",
            "document.deploymentOrder.**",
            "document.validation.**",
        ),
        holds=_body_that_remains,
        only=("snapshot-eks-h100-inference-dynamo", "snapshot-old-k8s-training"),
    ),
)

CRITERIA: tuple[Rule, ...] = (
    Exactly(
        id="generic-service",
        source="recipe spec 1.2",
        text="self-managed and vanilla are the concrete service generic, no longer any.",
        part="resolve",
        cases={
            "spell-self-managed-only": accepted(_service("generic")),
            "spell-self-managed-h100": {"document.criteria.service": "generic"},
            "spell-vanilla-h100": {"document.criteria.service": "generic"},
        },
    ),
    Exactly(
        id="newer-vocabulary",
        source="recipe spec 1.2, 4.9",
        text="slurm is a platform; the kit's tree has no recipe for it.",
        part="resolve",
        cases={"err-platform": reworded("no recipe provides platform 'slurm' for criteria(")},
    ),
    Exactly(
        id="criteria-file-must-state",
        source="recipe spec 1.5",
        text="A criteria file that states nothing is refused as flags are.",
        part="resolve",
        cases={"criteria-empty-spec": refused("INVALID_REQUEST", NO_CRITERIA)},
    ),
    Exactly(
        id="no-positional-arguments",
        source="docs/differences.md: positional arguments",
        text="Words that no flag takes are refused: a forgotten dash must not pass unnoticed.",
        part="resolve",
        cases={"spell-extra-positional": refused("INVALID_REQUEST", "unexpected argument 'extra'")},
    ),
)

OUTPUT: tuple[Rule, ...] = (
    Everywhere(
        id="table-shows-what-is-set",
        source="kit README: format-* are the same documents as JSON",
        text="The table leaves out what is not set, and prints a null as nothing.",
        parts=("resolve",),
        paths=("document.*",),
        kinds=("missing", "value"),
        holds=lambda _, difference: (
            difference.expected in ("", "0", "false", "<nil>") and not difference.actual
        ),
        only=("format-table",),
    ),
    Exactly(
        id="table-header",
        source="decision 1, decision 40, recipe spec 3.5",
        text="The table shows our header and the assert texts, each cut to its first line.",
        part="resolve",
        cases={
            "format-table": {
                "document.apiversion": "aicr.run/v1",
                'document."metadata.version"': __version__,
                **{
                    f'document."componentrefs.[{n}].healthcheckasserts"': Holding("# Copyright")
                    for n in range(12)
                },
            }
        },
    ),
    Exactly(
        id="query-header",
        source="decision 1, decision 40",
        text="Header and tool version, selected one by one.",
        part="query",
        cases={
            "api-version": {"document": "aicr.run/v1"},
            "metadata": {"document.version": __version__},
            "metadata-version": {"document": __version__},
        },
    ),
    Exactly(
        id="empty-lists-present",
        source="recipe spec 6.3",
        text="Lists of the hydrated document are always there; JSON has no null for them.",
        part="query",
        cases={
            "whole-json": {
                "document.metadata.constraintWarnings": [],
                "document.metadata.excludedOverlays": [],
            }
        },
    ),
)
RECIPES: tuple[Rule, ...] = (
    *ROUTINE,
    *MERGING,
    *SNAPSHOT,
    *CRITERIA,
    *OUTPUT,
)
