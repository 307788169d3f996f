"""From a check to its Job: what will run, decided before anything does.

`plans` chooses the checks of a recipe in the order of running and says for each what its Job is;
`job` writes the Job as a document. Both are pure: the same inputs give the same names and the
same bytes.

Source: validators spec 3.1 to 3.5, 3.10.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.contract import container, images, labels
from aicr.errors import INTERNAL, AicrError, invalid
from aicr.validate.affinity import node_affinity
from aicr.validate.catalog import Entry, ValidatorCatalog
from aicr.validate.environment import Setting, variables
from aicr.validate.phases import declared_checks
from aicr.validate.timing import Timing
from aicr.values import durations, quantities

JOB_TYPE: Final = "validation"
COMPONENT: Final = "validation"
#: Seconds that a container gets between TERM and KILL.
_LONGEST_NAME: Final = 63
_DEFAULT_RESOURCES: Final = {"cpu": "1", "memory": "1Gi"}


@dataclass(frozen=True, slots=True)
class JobPlan:
    """One check as it will run; times are in seconds, documents in wire form."""

    name: str
    phase: str
    job_name: str
    namespace: str
    run_id: str
    image: str
    pull_policy: str
    args: tuple[str, ...]
    env: Sequence[Mapping[str, Any]]
    resources: Mapping[str, str]
    timeout: float
    deadline: int
    service_account: str
    pull_secrets: tuple[str, ...]
    affinity: Mapping[str, Any]
    ttl: int
    grace: int

    @property
    def timeout_text(self) -> str:
        """The check's budget as Go writes it."""
        return durations.format(round(self.timeout * durations.SECOND))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the Jobs of a run are."""

    namespace: str
    run_id: str
    pull_secrets: tuple[str, ...] = ()

    @property
    def service_account(self) -> str:
        """Name of the run's ServiceAccount and of its ClusterRoleBinding."""
        return f"aicr-validator-{self.run_id}"

    @property
    def snapshot_map(self) -> str:
        """Name of the ConfigMap with the snapshot."""
        return f"aicr-snapshot-{self.run_id}"

    @property
    def validation_map(self) -> str:
        """Name of the ConfigMap with the validation input."""
        return f"aicr-validation-{self.run_id}"

    def report_map(self, phase: str) -> str:
        """Name of the ConfigMap with a phase's report."""
        return f"aicr-ctrf-{self.run_id}-{phase}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of everything that the run makes."""
        return {
            labels.NAME: labels.PRODUCT,
            labels.COMPONENT: COMPONENT,
            labels.MANAGED_BY: labels.PRODUCT,
            labels.RUN_ID: self.run_id,
        }


def selected(
    catalog: ValidatorCatalog, recipe: Mapping[str, Any], phase: str, skipped: Iterable[str] = ()
) -> tuple[list[Entry], list[Entry]]:
    """The declared checks of a phase in the catalogue's order: those that run, those withheld."""
    wanted = set(declared_checks(recipe, phase))
    withheld = set(skipped)
    declared = [entry for entry in catalog.for_phase(phase) if entry.name in wanted]
    return (
        [entry for entry in declared if entry.name not in withheld],
        [entry for entry in declared if entry.name in withheld],
    )


def job_name(check: str, run_id: str) -> str:
    """``aicr-<check>-<8 hex>``, at most 63 characters; the same for the same run."""
    mark = hashlib.sha256(f"{run_id}/{check}".encode()).hexdigest()[:8]
    room = _LONGEST_NAME - len("aicr--") - len(mark)
    return f"aicr-{check[:room].rstrip('-')}-{mark}"


def plan(
    entry: Entry,
    place: Place,
    setting: Setting,
    timing: Timing,
    affinity: Mapping[str, Any] | None = None,
) -> JobPlan:
    """What one check runs as.

    Raises:
        AicrError: INVALID_REQUEST for resources of which only one is set or that are no
            quantities, and for a toleration that has no text form.
    """
    budget = entry.timeout / durations.SECOND
    return JobPlan(
        name=entry.name,
        phase=entry.phase,
        job_name=job_name(entry.name, place.run_id),
        namespace=place.namespace,
        run_id=place.run_id,
        image=entry.image,
        pull_policy=images.pull_policy(entry.image, setting.tag),
        args=entry.args,
        env=variables(entry, setting),
        resources=_resources(entry),
        timeout=budget,
        deadline=timing.job_deadline(budget),
        service_account=place.service_account,
        pull_secrets=place.pull_secrets,
        affinity=affinity or {"nodeAffinity": node_affinity()},
        ttl=int(timing.job_ttl),
        grace=int(timing.grace),
    )


def _resources(entry: Entry) -> dict[str, str]:
    found = {key: value for key, value in (entry.resources or {}).items() if value}
    if not found:
        return dict(_DEFAULT_RESOURCES)
    missing = sorted(set(_DEFAULT_RESOURCES) - set(found))
    if missing:
        raise invalid(
            f'check "{entry.name}" sets {next(iter(found))} and not {missing[0]}',
            where=entry.where,
            hint="set both or none",
        )
    for key, value in found.items():
        try:
            quantities.parse(value)
        except AicrError as error:
            raise invalid(
                f'check "{entry.name}": resources.{key} "{value}" is no quantity',
                where=entry.where,
                hint=error.hint,
            ) from error
    return found


def job(planned: JobPlan) -> dict[str, Any]:
    """The Job of a plan, for server-side apply.

    Raises:
        AicrError: INTERNAL for a plan whose Job would be ended at once.
    """
    if planned.deadline <= planned.timeout:
        raise AicrError(
            INTERNAL, f"a Job deadline of {planned.deadline}s ends before the check can"
        )
    place = Place(planned.namespace, planned.run_id)
    pod_labels = {
        labels.NAME: labels.PRODUCT,
        labels.COMPONENT: COMPONENT,
        labels.VALIDATOR: planned.name,
        labels.RUN_ID: planned.run_id,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": planned.job_name,
            "namespace": planned.namespace,
            "labels": {
                **place.labels,
                labels.JOB_TYPE: JOB_TYPE,
                labels.VALIDATOR: planned.name,
                labels.PHASE: planned.phase,
            },
        },
        "spec": {
            "activeDeadlineSeconds": planned.deadline,
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": planned.ttl,
            "template": {
                "metadata": {"labels": pod_labels},
                "spec": _pod(planned, place),
            },
        },
    }


def _pod(planned: JobPlan, place: Place) -> dict[str, Any]:
    secrets = [{"name": name} for name in planned.pull_secrets]
    mounts = (
        ("snapshot", place.snapshot_map, container.DEFAULT_SNAPSHOT_PATH),
        ("validation", place.validation_map, container.DEFAULT_VALIDATION_PATH),
    )
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": planned.grace,
        "serviceAccountName": planned.service_account,
        **({"imagePullSecrets": secrets} if secrets else {}),
        "tolerations": [{"operator": "Exists"}],
        "affinity": dict(planned.affinity),
        "containers": [
            {
                "name": container.CONTAINER,
                "image": planned.image,
                "imagePullPolicy": planned.pull_policy,
                "args": list(planned.args),
                "env": [dict(one) for one in planned.env],
                "resources": {
                    "requests": dict(planned.resources),
                    "limits": dict(planned.resources),
                },
                "terminationMessagePath": container.TERMINATION_LOG,
                "terminationMessagePolicy": "File",
                "volumeMounts": [
                    {"name": name, "mountPath": path.rpartition("/")[0], "readOnly": True}
                    for name, _, path in mounts
                ],
            }
        ],
        "volumes": [{"name": name, "configMap": {"name": source}} for name, source, _ in mounts],
    }
