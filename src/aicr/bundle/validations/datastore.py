"""What NVSentinel's datastore needs from the cluster: a volume class and no second operator.

Source: bundler spec 6.4.16; the function is not in the seed's table.
"""

from __future__ import annotations

from aicr.bundle.validations.effective import Finding
from aicr.bundle.value_slots import held
from aicr.errors import CONFLICT, AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.bundle.validations.effective import Context, Verdict

CLASS: Final = "replsets.rs0.volumeSpec.pvc.storageClassName"

_STORAGE: Final = ("present", "multiple", "absent", "unknown")
_PERCONA: Final = (
    "absent",
    "aicr-owned",
    "api-detected",
    "crs-detected",
    "operator-detected",
    "unknown",
)
_NAME_ONE: Final = "name a class: --storage-class <name>, as `kubectl get storageclass` lists it"
_SNAPSHOT: Final = "generate the recipe from a snapshot of the cluster"


def prerequisites(context: Context) -> Verdict:
    """The database's volumes get a class, and no other Percona operator manages the database.

    Evidence is ``metadata.defaultStorageClassState`` and ``metadata.perconaOperatorState``. A class
    that is named makes the cluster's default one irrelevant.

    Remedy: ``--storage-class``, a snapshot of the cluster, or the database that is there already.
    """
    findings: list[Finding] = []
    errors: list[AicrError] = []
    for judged, error in (_storage(context), _percona(context)):
        findings += [judged] if judged is not None else []
        errors += [error] if error is not None else []
    return findings, errors


def _storage(context: Context) -> tuple[Finding | None, AicrError | None]:
    state = context.metadata.get("defaultStorageClassState") or ""
    if state not in ("", *_STORAGE):
        return None, _invalid_state("defaultStorageClassState", state, _STORAGE)
    if state == "present" or held(context.component.values, CLASS) is not None:
        return None, None
    if state == "":
        text = "the recipe does not record whether the cluster has a default StorageClass"
        return Finding(f"{context.name}: {text}", f"{_NAME_ONE}; or {_SNAPSHOT}"), None
    if state == "multiple":
        text = "the cluster has several default StorageClasses, and it picks the newest"
        return Finding(f"{context.name}: {text}", _NAME_ONE), None
    text = (
        "the cluster has no default StorageClass, so its volumes would wait forever"
        if state == "absent"
        else "the snapshot could not tell whether the cluster has a default StorageClass"
    )
    return None, AicrError(CONFLICT, f"{context.name}: {text}", hint=_NAME_ONE)


def _percona(context: Context) -> tuple[Finding | None, AicrError | None]:
    state = context.metadata.get("perconaOperatorState") or ""
    if state not in ("", *_PERCONA):
        return None, _invalid_state("perconaOperatorState", state, _PERCONA)
    if state in ("absent", "aicr-owned"):
        return None, None
    if state == "":
        text = "the recipe does not record whether the cluster runs a Percona operator already"
        return Finding(f"{context.name}: {text}", _SNAPSHOT), None
    if state == "api-detected":
        text = "the cluster serves the Percona operator's API already, though nothing uses it"
        hint = "make sure that no other Percona operator is installed"
        return Finding(f"{context.name}: {text}", hint), None
    text = {
        "crs-detected": "the cluster holds databases of another Percona operator",
        "operator-detected": "the cluster runs another Percona operator",
        "unknown": "the snapshot could not tell whether the cluster runs a Percona operator",
    }[state]
    hint = (
        "let the snapshot read CustomResourceDefinitions and Percona's objects, and take it again"
        if state == "unknown"
        else "keep that operator away from the namespace of the datastore, or leave the datastore "
        f"out: --set {context.name}:enabled=false"
    )
    return None, AicrError(CONFLICT, f"{context.name}: {text}", hint=hint)


def _invalid_state(field: str, state: str, known: tuple[str, ...]) -> AicrError:
    return invalid(
        f'invalid metadata.{field} "{state}": must be one of {", ".join(known)}',
        hint="generate the recipe again from a snapshot",
    )
