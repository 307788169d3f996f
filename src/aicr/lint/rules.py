"""The table of all rules: importing this module registers every one of them.

To add a rule, write a function in the module of its subject and give it an id, a severity and a reason
with ``findings.rule``; then write the manual's page again (``python -m tools.gen_lint_page``).
"""

from __future__ import annotations

from typing import Final

from aicr.lint import (
    check_rules,
    constraint_rules,
    document_rules,
    engine_rules,
    file_rules,
    overlay_rules,
    override_rules,
    registry_rules,
    trial_rules,
    upgrade_rules,
    validator_rules,
    values_rules,
)
from aicr.lint.findings import Rule, table

MODULES: Final = (
    document_rules,
    registry_rules,
    overlay_rules,
    constraint_rules,
    file_rules,
    trial_rules,
    override_rules,
    values_rules,
    check_rules,
    engine_rules,
    validator_rules,
    upgrade_rules,
)

#: Every rule by id, sorted.
RULES: Final[dict[str, Rule]] = table()
