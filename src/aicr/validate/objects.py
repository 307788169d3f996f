"""The objects of a run beside its Jobs: namespace, account, binding, ConfigMaps. Pure documents.

Every name holds the run's id, so two runs never meet; every object carries it as a label, and
only what carries it is ever removed. The namespace alone is shared and stays.

Source: validators spec 3.1, 3.3, 3.9; decisions 13, 66.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from aicr.contract import labels
from aicr.validate.input_document import LARGEST
from aicr.validate.plan import Place

SNAPSHOT_KEY: Final = "snapshot.yaml"
VALIDATION_KEY: Final = "validation.yaml"
REPORT_KEY: Final = "report.json"
CLUSTER_ROLE: Final = "cluster-admin"
#: Seconds after which a run's binding is taken for a leftover: twice the longest budget there is.
OLDEST_RUN: Final = 9000.0
#: Finds the bindings of all runs, for the person who removes what a killed run has left.
RBAC_SELECTOR: Final = f"{labels.NAME}={labels.VALIDATOR_PRODUCT}"


def namespace(name: str) -> dict[str, Any]:
    """The namespace of runs."""
    stated = {labels.NAME: labels.PRODUCT, labels.MANAGED_BY: labels.PRODUCT}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": stated}}


def service_account(place: Place) -> dict[str, Any]:
    """Who the checks of a run are."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": place.service_account,
            "namespace": place.namespace,
            "labels": _rbac_labels(place),
        },
    }


def binding(place: Place) -> dict[str, Any]:
    """What they may do: everything, because a check looks at everything."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": place.service_account, "labels": _rbac_labels(place)},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": CLUSTER_ROLE,
        },
        "subjects": [
            {
                "kind": "ServiceAccount",
                "name": place.service_account,
                "namespace": place.namespace,
            }
        ],
    }


def snapshot_map(place: Place, text: str) -> dict[str, Any]:
    """The snapshot for the checks."""
    return _config_map(place, place.snapshot_map, {SNAPSHOT_KEY: text})


def validation_map(place: Place, text: str) -> dict[str, Any]:
    """The validation input for the checks."""
    return _config_map(place, place.validation_map, {VALIDATION_KEY: text})


def report_map(place: Place, phase: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """The report of a phase, which stays after the run; without evidence if it is too large."""
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    if len(text.encode()) > LARGEST:
        text = json.dumps(_verdicts(report), indent=2, ensure_ascii=False) + "\n"
    document = _config_map(place, place.report_map(phase), {REPORT_KEY: text})
    document["metadata"]["labels"] |= {labels.REPORT_TYPE: "ctrf", labels.PHASE: phase}
    return document


def leftovers(bindings: Iterable[Mapping[str, Any]], run_id: str, now: float) -> list[str]:
    """Bindings of other runs that are older than a run can be: a line each.

    Args:
        bindings: documents of ClusterRoleBindings.
        run_id: of this run.
        now: seconds since 1970.
    """
    found = []
    for one in bindings:
        metadata = one.get("metadata") or {}
        name, made = str(metadata.get("name")), str(metadata.get("creationTimestamp") or "")
        theirs = (metadata.get("labels") or {}).get(labels.RUN_ID)
        try:
            age = now - datetime.fromisoformat(made).timestamp()
        except ValueError:
            continue
        if theirs != run_id and age > OLDEST_RUN:
            found.append(
                f"run {theirs or '(unknown)'} has been bound to {CLUSTER_ROLE} for "
                f"{age / 3600:.1f} h and was left behind, it seems; remove it with: "
                f"kubectl delete clusterrolebinding {name}"
            )
    return found


def _verdicts(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report without what its checks have written."""
    results = report["results"]
    tests = [
        {key: value for key, value in test.items() if key != "stdout"} for test in results["tests"]
    ]
    return {**report, "results": {**results, "tests": tests}}


def _rbac_labels(place: Place) -> dict[str, str]:
    return {
        labels.NAME: labels.VALIDATOR_PRODUCT,
        labels.MANAGED_BY: labels.PRODUCT,
        labels.RUN_ID: place.run_id,
    }


def _config_map(place: Place, name: str, data: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": place.namespace, "labels": place.labels},
        "data": data,
    }
