"""Labels and annotations on every object that a run creates, and the run's id.

A run removes only what carries its own id; tools of others select by these labels and never by name.
This module must not know which objects there are. Source: validators spec 3.1 and 1.7, decisions 13 and
66.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

DOMAIN: Final = "aicr.run"

NAME: Final = "app.kubernetes.io/name"
COMPONENT: Final = "app.kubernetes.io/component"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"

RUN_ID: Final = f"{DOMAIN}/run-id"
JOB_TYPE: Final = f"{DOMAIN}/job-type"
VALIDATOR: Final = f"{DOMAIN}/validator"
PHASE: Final = f"{DOMAIN}/phase"
REPORT_TYPE: Final = f"{DOMAIN}/report-type"
#: The check that made an object inside a run.
CHECK: Final = f"{DOMAIN}/check"
#: Annotation: random text that only the process which created the object knows.
OWNER_TOKEN: Final = f"{DOMAIN}/owner-token"

#: Label of a node of our tests whose pods only seem to run.
HOLLOW: Final = f"{DOMAIN}/hollow"
#: Expressions that leave out nodes which only play a node (KWOK, hollow test nodes): they report a pod as
#: done without running it, which would be a pass that nothing earned.
RUNS_PODS: Final = (
    {"key": "type", "operator": "NotIn", "values": ["kwok"]},
    {"key": HOLLOW, "operator": "DoesNotExist"},
)

PRODUCT: Final = "aicr"
VALIDATOR_PRODUCT: Final = "aicr-validator"
FIELD_MANAGER: Final = "aicr"
REPORT_FIELD_MANAGER: Final = "aicr-validator"


def run_id(now: datetime, token: str) -> str:
    """``YYYYMMDD-HHMMSS-<16 hex>`` in UTC; *token* is the random part (validators spec 1.7)."""
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{token}"


def check_labels(run: str, check: str) -> dict[str, str]:
    """Labels of an object that check *check* creates in run *run*."""
    return {
        NAME: PRODUCT,
        COMPONENT: "validation",
        MANAGED_BY: PRODUCT,
        RUN_ID: run,
        CHECK: check,
    }
