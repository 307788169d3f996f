"""The flag that writes golden bundles anew (see ``golden``), and the tests that need built tools."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        default=False,
        help="write the bundles in tests/golden/deployers anew instead of comparing them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let the marker be known when this folder alone is collected."""
    config.addinivalue_line("markers", "tools: needs programs that `make test-tools` builds")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests with built programs out of runs that did not ask for them."""
    if "tools" in str(config.option.markexpr):
        return
    dropped = [item for item in items if item.get_closest_marker("tools")]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]
