"""Two MariaDB operators in one cluster fight over the same objects (bundler spec 6.4.8)."""

from __future__ import annotations

from aicr.bundle.owned import AICR_PROVIDED
from aicr.bundle.validations.effective import Finding
from aicr.errors import CONFLICT, AicrError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.bundle.validations.effective import Context, Verdict

_STATES: Final = ("absent", "api-detected", "crs-detected", "unknown")
_REMEDY: Final = (
    "use that operator and its database: generate the recipe with "
    "--slurm-accounting-mode customer-managed"
)


def operator_ownership(context: Context) -> Verdict:
    """The MariaDB operator for accounting of our own does not meet one that the cluster has.

    Evidence is ``metadata.mariaDBOperatorState``, which a snapshot gives: objects of another
    operator or an unreadable state block, its API alone or no snapshot warns.

    Remedy: ``--slurm-accounting-mode customer-managed``, or take a snapshot of the cluster.
    """
    mode = ((context.configuration.get("slurm") or {}).get("accounting") or {}).get("mode")
    if mode != AICR_PROVIDED:
        return [], []
    state = context.metadata.get("mariaDBOperatorState") or ""
    if state == "absent":
        return [], []
    if state == "":
        return [
            Finding(
                f"{context.name}: the recipe does not record whether the cluster runs a MariaDB "
                f"operator already",
                "generate the recipe from a snapshot of the cluster, or check: kubectl get crd "
                "mariadbs.k8s.mariadb.com",
            )
        ], []
    if state == "api-detected":
        return [
            Finding(
                f"{context.name}: the cluster serves the MariaDB operator's API already, though no "
                f"object uses it",
                "make sure that no other MariaDB operator is installed",
            )
        ], []
    if state == "crs-detected":
        problem = "the cluster holds objects of another MariaDB operator"
        return [], [AicrError(CONFLICT, f"{context.name}: {problem}", hint=_REMEDY)]
    if state == "unknown":
        return [], [
            AicrError(
                CONFLICT,
                f"{context.name}: the snapshot could not tell whether the cluster runs a MariaDB "
                f"operator",
                hint="let the snapshot read CustomResourceDefinitions and MariaDB objects, take it "
                "again and generate the recipe from it",
            )
        ]
    return [], [
        invalid(
            f'invalid metadata.mariaDBOperatorState "{state}": must be one of {", ".join(_STATES)}',
            hint="generate the recipe again from a snapshot",
        )
    ]
