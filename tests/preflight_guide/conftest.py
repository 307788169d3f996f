"""The guide's commands need a control plane; `make test-cluster` runs those, a plain pytest the rest."""

from __future__ import annotations

import pytest
from tests.controlplane import fixtures
from tests.controlplane.fixtures import api, namespace, plane

__all__ = ["api", "namespace", "plane"]


def pytest_configure(config: pytest.Config) -> None:
    """Let the marker be known when this folder alone is collected."""
    config.addinivalue_line("markers", f"{fixtures.MARKER}: needs a real control plane")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these tests out of runs that did not ask for them."""
    fixtures.leave_out_unless_wanted(config, items)
