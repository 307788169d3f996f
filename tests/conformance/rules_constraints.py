"""The rules for constraints."""

from __future__ import annotations

from tests.conformance.rules import Rule

CONSTRAINTS: tuple[Rule, ...] = ()
