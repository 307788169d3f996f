"""The rules for bundles."""

from __future__ import annotations

from tests.conformance.rules import Rule

BUNDLES: tuple[Rule, ...] = ()
